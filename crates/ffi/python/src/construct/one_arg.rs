//! Entries of `array`, `asarray` and relatives for calls with one argument.

use mxnet::core::{Array, dtype_of_number, mode};
use mxnet::tensor::{Device, Scalar};
use pyo3::prelude::*;

use super::{copied, exact_array};
use crate::array::{Get, PyArray};
use crate::error::raise;
use crate::sharing::Sharing;
use crate::{buffer_protocol, call, nested_sequence, numbers};

/// Gives these functions an entry point for calls with one argument.
pub fn add_one_arg_entries(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let entries: [(&str, call::OneArg); 5] = [
        ("array", |object| match exact_array(object) {
            Some(x) => Ok(copied(x)?.map(Py::into_any)),
            None => match of_numbers(object)? {
                None if mode::current_device() == Device::cpu(0) => of_numpys(object),
                made => Ok(made),
            },
        }),
        ("asarray", given_or_made),
        ("asanyarray", given_or_made),
        ("ascontiguousarray", |object| {
            given_back(object, |x| x.ndim() > 0 && x.layout().is_contiguous())
        }),
        ("asfortranarray", |object| {
            given_back(object, |x| x.ndim() > 0 && x.layout().is_fortran())
        }),
    ];
    for (name, one_arg) in entries {
        let function = module.getattr(name)?;
        module.setattr(name, call::with_one_arg_entry(&function, one_arg)?)?;
    }
    Ok(())
}

/// A copy of an array of NumPy's own class, if it has a dtype that we have.
fn of_numpys(object: &Bound<'_, PyAny>) -> PyResult<Option<Py<PyAny>>> {
    if buffer_protocol::numpys_dtype(object)?.is_none() {
        return Ok(None);
    }
    let array = buffer_protocol::from_numpy(object, Sharing::Never)?;
    PyArray::wrap(object.py(), array).map(|made| Some(made.into_any()))
}

/// The array itself; a new array from a number or a list; an array over the memory of a NumPy array.
#[inline]
fn given_or_made(object: &Bound<'_, PyAny>) -> PyResult<Option<Py<PyAny>>> {
    if exact_array(object).is_some() {
        return given_back(object, |x| x.ndim() > 0);
    }
    let made = of_numbers(object)?;
    if made.is_some() || mode::current_device() != Device::cpu(0) {
        return Ok(made);
    }
    let Some(dtype) = buffer_protocol::numpys_dtype(object)? else {
        return Ok(None);
    };
    let seen = buffer_protocol::share_memory(object, dtype, Sharing::Allowed)?;
    seen.map(|array| Ok(PyArray::wrap(object.py(), array)?.into_any()))
        .transpose()
}

/// The array itself, if it has exactly the class `ndarray` and `fits` returns true.
#[inline]
fn given_back(
    object: &Bound<'_, PyAny>,
    fits: impl FnOnce(&Array) -> bool,
) -> PyResult<Option<Py<PyAny>>> {
    let x = exact_array(object).filter(|x| fits(&x.get().borrow(x.py())));
    Ok(x.map(|x| x.clone().into_any().unbind()))
}

/// An array from a Python number, or from the content of a list or tuple.
#[inline]
fn of_numbers(object: &Bound<'_, PyAny>) -> PyResult<Option<Py<PyAny>>> {
    let py = object.py();
    if mode::current_device() != Device::cpu(0) {
        return Ok(None);
    }
    let array = if numbers::is_list(object) {
        nested_sequence::read(object, None, 0)?
    } else {
        match numbers::number(object)? {
            Some(number @ (Scalar::F64(_) | Scalar::I64(_) | Scalar::Bool(_))) => {
                let made = Array::scalar(number, dtype_of_number(number));
                made.map_err(|error| raise(py, error))?
            }
            _ => return Ok(None),
        }
    };
    if array.device() != Device::cpu(0) {
        return Ok(None);
    }
    PyArray::wrap(py, array).map(|object| Some(object.into_any()))
}
