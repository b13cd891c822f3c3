//! Number protocol of 0-d arrays: attributes and operations that Python expects of numbers.

use mxnet::core::{Array, OpDef};
use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt};

use crate::array::{Get, PyArray};
use crate::operators::unary;
use crate::values;

/// Whether the array is 0-d, so that it behaves as a number.
fn is_number(slf: &Bound<'_, PyArray>) -> bool {
    let py = slf.py();
    slf.get().inline_scalar(py).is_some() || slf.get().with(py, Array::ndim) == 0
}

/// Whether `x * other` repeats a sequence that has no `__rmul__`, as NumPy's integer scalars do: the sequence's `sq_repeat` takes the integer.
#[cold]
pub fn repeats(slf: &Bound<'_, PyArray>, other: &Bound<'_, PyAny>) -> bool {
    let array = slf.get();
    if !array.is_scalar()
        || other.is_instance_of::<PyArray>()
        || !array.with(slf.py(), |x| x.dtype().is_integer())
    {
        return false;
    }
    let class = other.get_type();
    // SAFETY: a type object; any slot may be queried.
    let has = |slot| unsafe { !ffi::PyType_GetSlot(class.as_type_ptr(), slot).is_null() };
    has(ffi::Py_sq_repeat) && !has(ffi::Py_nb_multiply)
}

/// The result of an operator with a number of another library or a time span as the other operand, which supports Python numbers but not arrays:
/// applied to the element's Python number. `None` for other operands.
#[cold]
pub fn with_other_number(
    slf: &Bound<'_, PyArray>,
    op: &'static OpDef,
    other: &Bound<'_, PyAny>,
    swapped: bool,
) -> PyResult<Option<Py<PyAny>>> {
    let py = slf.py();
    let name = match op.name {
        "add" => "add",
        "subtract" => "sub",
        "multiply" => "mul",
        "divide" => "truediv",
        "floor_divide" => "floordiv",
        "remainder" => "mod",
        "power" => "pow",
        "less" => "lt",
        "less_equal" => "le",
        "greater" => "gt",
        "greater_equal" => "ge",
        _ => return Ok(None),
    };
    let knows_numbers = |module, class| other.is_instance(&py.import(module)?.getattr(class)?);
    if !is_number(slf)
        || !(knows_numbers("numbers", "Number")? || knows_numbers("datetime", "timedelta")?)
    {
        return Ok(None);
    }
    let number = slf.call_method0("item")?;
    let operands = match swapped {
        true => (other, &number),
        false => (&number, other),
    };
    let result = py.import("operator")?.call_method1(name, operands)?;
    Ok(Some(result.unbind()))
}

/// Attribute of the element's Python number (`is_integer`, `numerator`). An error for arrays with axes.
pub fn attribute(slf: &Bound<'_, PyArray>, name: &'static str) -> PyResult<Py<PyAny>> {
    if !is_number(slf) {
        return Err(PyAttributeError::new_err(format!(
            "'{}' object has no attribute '{name}': only 0-d arrays have it",
            slf.get_type().name()?
        )));
    }
    let mut number = slf.call_method0("item")?;
    if name == "is_integer" && number.is_exact_instance_of::<PyBool>() {
        // Python's booleans have the method from 3.12 on, NumPy's do not.
        let problem = "an array of truth values has no attribute 'is_integer'";
        return Err(PyAttributeError::new_err(problem));
    }
    if name == "is_integer" && number.is_exact_instance_of::<PyInt>() {
        // Integers have the method from Python 3.12 on.
        number = PyFloat::new(slf.py(), 0.0).into_any();
    }
    Ok(number.getattr(name)?.unbind())
}

/// `hash(x)`: equal numbers have equal hashes, whatever their dtype.
pub fn hash(slf: &Bound<'_, PyArray>) -> PyResult<isize> {
    if is_number(slf) {
        return values::scalar(slf)?.into_bound(slf.py()).hash();
    }
    Err(PyTypeError::new_err(format!(
        "unhashable type: '{}'",
        slf.get_type().name()?
    )))
}

/// `math.floor(x)` and similar functions: a Python integer for a 0-d array; for other arrays `op`, elementwise.
pub fn whole(slf: &Bound<'_, PyArray>, op: &'static OpDef) -> PyResult<Py<PyAny>> {
    if !is_number(slf) {
        return unary(slf, op);
    }
    let number = slf.call_method0("item")?;
    let math = slf.py().import("math")?;
    Ok(math.call_method1(op.name, (number,))?.unbind())
}

/// `round(x)`: a Python integer for a 0-d array; with `ndigits`, or for other arrays, the rounded elements.
pub fn round(slf: &Bound<'_, PyArray>, ndigits: Option<isize>) -> PyResult<Py<PyAny>> {
    match ndigits {
        None if is_number(slf) => {
            let number = slf.call_method0("item")?;
            let builtins = slf.py().import("builtins")?;
            Ok(builtins.call_method1("round", (number,))?.unbind())
        }
        digits => Ok(slf.call_method1("round", (digits.unwrap_or(0),))?.unbind()),
    }
}
