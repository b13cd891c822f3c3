//! Number protocol of 0-d arrays: attributes and operations that Python expects of numbers.

use mxnet::core::OpDef;
use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt};

use crate::array::PyArray;
use crate::operators::{is_number, unary};
use crate::values;

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
