//! Arrays of no axes as the numbers they hold: what Python asks of numbers only.

use mxnet::ops::{Array, OpDef};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::array::PyArray;
use crate::operators::unary;

/// Whether the array stands for a number.
fn is_number(slf: &Bound<'_, PyArray>) -> bool {
    slf.get().with(slf.py(), Array::ndim) == 0
}

/// `hash(x)`: equal numbers have one hash, whatever their dtype.
pub fn hash(slf: &Bound<'_, PyArray>) -> PyResult<isize> {
    if is_number(slf) {
        return slf.call_method0("item")?.hash();
    }
    Err(PyTypeError::new_err(format!(
        "unhashable type: '{}'",
        slf.get_type().name()?
    )))
}

/// `math.floor(x)` and its like: a Python integer of a number; of other arrays what `op` gives, elementwise.
pub fn whole(slf: &Bound<'_, PyArray>, op: &'static OpDef) -> PyResult<Py<PyAny>> {
    if !is_number(slf) {
        return unary(slf, op);
    }
    let number = slf.call_method0("item")?;
    let math = slf.py().import("math")?;
    Ok(math.call_method1(op.name, (number,))?.unbind())
}

/// `round(x)`: a Python integer of a number; with `ndigits`, or of other arrays, the elements rounded.
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
