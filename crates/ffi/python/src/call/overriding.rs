//! NumPy's `__array_function__` protocol for operators that are not ufuncs.
//!
//! The protocol is tried only if the arguments could not be bound, so that calls with arrays cost nothing.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use super::binding::Binding;
use crate::array::PyArray;
use crate::keywords::Keywords;
use crate::numbers;

/// The result of the first argument, or element of a list argument, whose `__array_function__` handles the call; `None` if there is none.
#[cold]
pub fn answered(
    py: Python<'_>,
    binding: &'static Binding,
    positional: &[*mut ffi::PyObject],
    named: &Keywords,
) -> PyResult<Option<Py<PyAny>>> {
    // SAFETY: borrowed arguments of the running call.
    let object = |p: *mut ffi::PyObject| unsafe { Bound::from_borrowed_ptr(py, p) };
    let arguments = PyTuple::new(py, positional.iter().map(|&p| object(p)))?;
    let keywords = PyDict::new(py);
    for i in 0..named.len {
        let (name, value) = named.get(i);
        keywords.set_item(object(name), object(value))?;
    }
    let mut overriders = Vec::new();
    for argument in arguments.iter().chain(keywords.values().iter()) {
        if numbers::is_list(&argument) {
            for item in argument.try_iter()? {
                collect(item?, &mut overriders)?;
            }
        } else {
            collect(argument, &mut overriders)?;
        }
    }
    let types = PyList::new(py, overriders.iter().map(|overrider| overrider.get_type()))?;
    let spaces = py.import("mxnet._core")?.getattr("namespaces")?;
    for overrider in &overriders {
        // Operators that were added at run time are not in the namespace.
        let function = match spaces.get_item("op")?.get_item(binding.op.name) {
            Ok(function) => function,
            Err(_) => {
                super::function(py, binding.op, binding.op.name, "mxnet._core")?.into_bound(py)
            }
        };
        let method = overrider
            .get_type()
            .getattr(crate::once_box::interned!(py, "__array_function__"))?;
        let answer = method.call1((overrider, function, &types, &arguments, &keywords))?;
        if !answer.is(py.NotImplemented()) {
            return Ok(Some(answer.unbind()));
        }
    }
    Ok(None)
}

/// Adds an object whose class implements the protocol, one of each class. Our arrays and NumPy's are converted instead.
fn collect<'py>(
    object: Bound<'py, PyAny>,
    overriders: &mut Vec<Bound<'py, PyAny>>,
) -> PyResult<()> {
    let py = object.py();
    let class = object.get_type();
    let is_array = object.is_instance_of::<PyArray>()
        || object.is_instance(&py.import("numpy")?.getattr("ndarray")?)?;
    if !is_array
        && !overriders.iter().any(|other| other.get_type().is(&class))
        && class.hasattr(crate::once_box::interned!(py, "__array_function__"))?
    {
        overriders.push(object);
    }
    Ok(())
}
