//! Python operators of arrays (`x + y`, `x < y`, `x += y`).

use std::mem::MaybeUninit;

use mxnet::core::{Array, Attrs, Call, OpDef, Value, dispatch, invoke1};
use mxnet::ops::reduce::ANY;
use mxnet::ops::{ElementOperand, InlineScalar, apply_to_elements, elementwise as e};
use mxnet::tensor::Scalar;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::array::{Get, PyArray, as_array};
use crate::convert::{self, Operand};
use crate::equality::{self, is_equality, unlike};
use crate::error::raise;
use crate::gil_release::without_gil;
use crate::ufunc::{self, Override};
use crate::{call, numbers, numpy_dtype};

/// A binary operator with this array as the left operand.
#[inline]
pub fn binary(
    slf: &Bound<'_, PyArray>,
    op: &'static OpDef,
    other: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    if let Some(result) = known_binary(slf, op, other, false)? {
        return Ok(result);
    }
    if std::ptr::eq(op, &raw const e::arithmetic::MULTIPLY) && repeats(slf, other) {
        return Ok(slf.py().NotImplemented());
    }
    if let Some(result) = overriding_result(slf, op, other, false)? {
        return Ok(result);
    }
    let known = match is_equality(op) {
        false => convert::operand(other)?,
        true => match comparable(other)? {
            Some(other) => Some(other),
            None => return unequal(slf, op, other),
        },
    };
    match known {
        Some(known) => general(
            slf.py(),
            op,
            [Some(Operand::Object(slf.clone())), Some(known)],
        ),
        None => match with_other_number(slf, op, other, false)? {
            Some(result) => Ok(result),
            None => Ok(slf.py().NotImplemented()),
        },
    }
}

/// The object as an operand; `None` if it does not hold numbers.
pub fn comparable<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Operand<'py>>> {
    match convert::operand(object) {
        Err(error) if error.is_instance_of::<PyTypeError>(object.py()) => Ok(None),
        result => result,
    }
}

/// `==` or `!=` with an object that does not hold numbers: the result of its class if that knows arrays, else an elementwise comparison.
#[cold]
fn unequal(
    slf: &Bound<'_, PyArray>,
    op: &'static OpDef,
    other: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    let py = slf.py();
    let knows_none = other.is_none()
        || other.is_instance_of::<PyString>()
        || other.is_instance_of::<PyBytes>()
        || crate::interop::is_array_like(other);
    if !knows_none {
        let name = match op.name {
            "equal" => crate::once_box::interned!(py, "__eq__"),
            _ => crate::once_box::interned!(py, "__ne__"),
        };
        let theirs = other.get_type().getattr(name)?.call1((other, slf))?;
        if !theirs.is(py.NotImplemented()) {
            return Ok(theirs.unbind());
        }
    }
    unlike(slf.as_any(), op, other)
}

/// A binary operator with this array as the right operand.
pub fn reflected(
    slf: &Bound<'_, PyArray>,
    op: &'static OpDef,
    other: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    if let Some(result) = known_binary(slf, op, other, true)? {
        return Ok(result);
    }
    if std::ptr::eq(op, &raw const e::arithmetic::MULTIPLY) && repeats(slf, other) {
        return Ok(slf.py().NotImplemented());
    }
    if let Some(result) = overriding_result(slf, op, other, true)? {
        return Ok(result);
    }
    match convert::operand(other)? {
        Some(known) => general(
            slf.py(),
            op,
            [Some(known), Some(Operand::Object(slf.clone()))],
        ),
        None => match with_other_number(slf, op, other, true)? {
            Some(result) => Ok(result),
            None => Ok(slf.py().NotImplemented()),
        },
    }
}

/// The result of an operand's `__array_ufunc__`, if it has one. `NotImplemented`: Python tries the operand's own operator.
#[cold]
#[inline(never)]
fn overriding_result(
    slf: &Bound<'_, PyArray>,
    op: &'static OpDef,
    other: &Bound<'_, PyAny>,
    swapped: bool,
) -> PyResult<Option<Py<PyAny>>> {
    let py = slf.py();
    match ufunc::override_of(other)? {
        // Lists and NumPy's scalars never have one.
        Override::None
            if !numbers::is_list(other)
                && numpy_dtype::known(other.get_type().as_any())?.is_none()
                && ufunc::has_higher_priority(other)? =>
        {
            Ok(Some(py.NotImplemented()))
        }
        Override::None => Ok(None),
        Override::Disabled => Ok(Some(py.NotImplemented())),
        Override::Method(_) => match ufunc::find(py, op.name) {
            Some(function) if swapped => function.call1(py, (other, slf)).map(Some),
            Some(function) => function.call1(py, (slf, other)).map(Some),
            None => Ok(None),
        },
    }
}

#[cold]
#[inline(never)]
fn general(
    py: Python<'_>,
    op: &'static OpDef,
    operands: [Option<Operand>; 2],
) -> PyResult<Py<PyAny>> {
    call::finish(
        py,
        op,
        &mut call::run(py, op, &operands, &Attrs::none(), &[], None)?,
    )
}

/// A binary operator of two arrays of exactly this class, or of such an array and a Python number; `None` for other operands.
#[inline]
pub fn known_binary(
    slf: &Bound<'_, PyArray>,
    op: &'static OpDef,
    other: &Bound<'_, PyAny>,
    swapped: bool,
) -> PyResult<Option<Py<PyAny>>> {
    if slf.get().is_zero_dim(slf.py())
        && let Some(result) = element_binary(slf, op, other, swapped)?
    {
        return Ok(Some(result));
    }
    let operands = match swapped {
        false => [slf.as_ptr(), other.as_ptr()],
        true => [other.as_ptr(), slf.as_ptr()],
    };
    call::elementwise(slf.py(), op, &operands, None)
}

/// A binary operator of an inline scalar with another one or with a Python number; `None` for other operands.
#[inline]
fn element_binary(
    slf: &Bound<'_, PyArray>,
    op: &'static OpDef,
    other: &Bound<'_, PyAny>,
    swapped: bool,
) -> PyResult<Option<Py<PyAny>>> {
    let py = slf.py();
    // Numbers are read first: an integer beyond 64 bits raises an exception internally, which may run the garbage collector.
    let (array, number) = match as_array(other) {
        Some(array) => (Some(array), None),
        None => (None, numbers::number(other)?),
    };
    if array.is_none() && number.is_none() {
        return Ok(None);
    }
    let other = || array.map(|array| array.get().borrow(py));
    let make = |to: &mut MaybeUninit<InlineScalar>| {
        let (inline, looked);
        let this = match slf.get().inline_scalar(py) {
            Some(element) => {
                inline = element;
                ElementOperand::Inline(&inline)
            }
            None => {
                looked = slf.get().borrow(py);
                ElementOperand::Array(&looked)
            }
        };
        match (array.map(|other| other.get().inline_scalar(py)), &number) {
            (Some(Some(other)), _) => {
                apply_to_elements(op, &[this, ElementOperand::Inline(&other)], to)
            }
            (None, Some(number)) if swapped => {
                apply_to_elements(op, &[ElementOperand::Number(number), this], to)
            }
            (None, Some(number)) => {
                apply_to_elements(op, &[this, ElementOperand::Number(number)], to)
            }
            _ => other().is_some_and(|other| {
                apply_to_elements(op, &[this, ElementOperand::Array(&other)], to)
            }),
        }
    };
    // SAFETY: if `make` returns true, it has initialised the element.
    let result = unsafe { PyArray::element_by(py, make) }?;
    Ok(result.map(Py::into_any))
}

/// A unary operator of an inline scalar; `None` for other arrays.
#[inline]
fn element_unary(slf: &Bound<'_, PyArray>, op: &'static OpDef) -> PyResult<Option<Py<PyAny>>> {
    let py = slf.py();
    if slf.get().inline_scalar(py).is_none() {
        return Ok(None);
    }
    let make = |to: &mut MaybeUninit<InlineScalar>| match slf.get().inline_scalar(py) {
        Some(element) => apply_to_elements(op, &[ElementOperand::Inline(&element)], to),
        None => false,
    };
    // SAFETY: if `make` returns true, it has initialised the element.
    let result = unsafe { PyArray::element_by(py, make) }?;
    Ok(result.map(Py::into_any))
}

/// The cheaper operator that NumPy uses for a power with this Python number as exponent (`square`, …), if there is one.
pub fn unary_power(
    slf: &Bound<'_, PyArray>,
    exponent: &Bound<'_, PyAny>,
) -> PyResult<Option<&'static OpDef>> {
    if exponent.is_instance_of::<PyArray>() {
        return Ok(None);
    }
    let floats = slf.get().with(slf.py(), |x| x.dtype().is_inexact());
    Ok(match numbers::number(exponent)? {
        Some(Scalar::I64(2)) => Some(&e::arithmetic::SQUARE),
        Some(Scalar::F64(2.0)) if floats => Some(&e::arithmetic::SQUARE),
        Some(Scalar::F64(0.5)) if floats => Some(&e::explog::SQRT),
        _ => None,
    })
}

/// An operator that writes its result to this array, which is returned. For an array that stands for a scalar, returns `NotImplemented`, so that
/// Python uses the plain operator.
pub fn in_place(
    slf: &Bound<'_, PyArray>,
    op: &'static OpDef,
    other: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    let py = slf.py();
    if !slf.get().is_written_in_place(py) {
        return Ok(py.NotImplemented());
    }
    let operands = [slf.as_ptr(), other.as_ptr()];
    if let Some(result) = call::elementwise(py, op, &operands, Some(slf.as_ptr()))? {
        return Ok(result);
    }
    let Some(other) = convert::operand(other)? else {
        let problem = format!(
            "unsupported operand type for in-place {}: '{}'",
            op.name,
            other.get_type().name()?
        );
        return Err(PyTypeError::new_err(problem));
    };
    slf.get().check_writable(py)?;
    let (target, rhs) = (slf.get().array(py), other.array());
    write_back(
        slf,
        op,
        &target,
        &[Some(&target), Some(&rhs)],
        &Attrs::none(),
    )?;
    Ok(slf.clone().into_any().unbind())
}

/// Replaces the elements of this array by the result of an operator on it.
pub fn rearrange(slf: &Bound<'_, PyArray>, op: &'static OpDef, attrs: &Attrs) -> PyResult<()> {
    slf.get().check_writable(slf.py())?;
    let target = slf.get().array(slf.py());
    write_back(slf, op, &target, &[Some(&target)], attrs)
}

/// Calls an operator that writes its result to this array; `target` is its array.
fn write_back(
    slf: &Bound<'_, PyArray>,
    op: &'static OpDef,
    target: &Array,
    inputs: &[Option<&Array>],
    attrs: &Attrs,
) -> PyResult<()> {
    let py = slf.py();
    let call = Call {
        op,
        inputs,
        attrs,
        outs: &[Some(target)],
        dtype: None,
    };
    let outputs = match crate::engine::may_wait() {
        true => without_gil(py, || dispatch(&call)),
        false => dispatch(&call),
    };
    let mut outputs = outputs.map_err(|error| raise(py, error))?;
    match outputs.pop() {
        Some(result) => slf.get().adopt_written(py, result),
        None => Ok(()),
    }
}

/// A unary operator of this array.
pub fn unary(slf: &Bound<'_, PyArray>, op: &'static OpDef) -> PyResult<Py<PyAny>> {
    let py = slf.py();
    if let Some(result) = element_unary(slf, op)? {
        return Ok(result);
    }
    let result = slf.get().with(py, |x| {
        dispatch(&Call {
            op,
            inputs: &[Some(x)],
            attrs: &Attrs::none(),
            outs: &[],
            dtype: None,
        })
    });
    call::finish_of(
        py,
        op,
        &mut result.map_err(|error| raise(py, error))?,
        [slf],
    )
}

/// `value in x`: whether any element equals the value, which broadcasts.
pub fn contains(slf: &Bound<'_, PyArray>, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = slf.py();
    let value = match comparable(value)? {
        Some(value) => value,
        None => {
            return equality::unlike(slf, &e::comparison::EQUAL, value)?
                .call_method0(py, "any")?
                .is_truthy(py);
        }
    };
    let (array, value) = (slf.get().array(py), value.array());
    let found = without_gil(py, || {
        let equal = array.detach().binary(&e::comparison::EQUAL, &value)?;
        let attrs = [Value::None, Value::None, Value::Bool(false)];
        invoke1(&ANY, &[&equal], &attrs.into_iter().collect())?.item()
    });
    Ok(found.map_err(|error| raise(py, error))?.as_bool())
}

/// Whether the array is 0-d, so that it behaves as a number.
pub fn is_number(slf: &Bound<'_, PyArray>) -> bool {
    let py = slf.py();
    slf.get().inline_scalar(py).is_some() || slf.get().with(py, Array::ndim) == 0
}

/// Whether `x * other` repeats a sequence that has no `__rmul__`, as NumPy's integer scalars do: the sequence's `sq_repeat` takes the integer.
#[cold]
fn repeats(slf: &Bound<'_, PyArray>, other: &Bound<'_, PyAny>) -> bool {
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
fn with_other_number(
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
