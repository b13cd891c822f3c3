//! Short ways of methods: our own arrays at hand, and numbers. `None`: take the general way, errors included.

use mxnet::ops::index::read_few;
use mxnet::ops::ufunc as core;
use mxnet::ops::{Array, OpDef};
use mxnet::tensor::DType;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList, PyString, PyTuple};
use smallvec::SmallVec;

use crate::array::PyArray;
use crate::call::Named;
use crate::error::raise;

type Answer = PyResult<Option<Py<PyAny>>>;

/// One method's: given the function, what was given by position, and under names.
pub(super) type Way = fn(Python<'_>, &'static OpDef, &[*mut ffi::PyObject], &Named) -> Answer;

/// Those of the methods in `methods.rs`, in their order.
pub(super) const WAYS: [Way; 7] = [reduce, accumulate, reduceat, none, none, none, none];

fn none(_: Python<'_>, _: &'static OpDef, _: &[*mut ffi::PyObject], _: &Named) -> Answer {
    Ok(None)
}

/// An argument of the running call, which holds it until the call returns.
fn borrowed<'py>(py: Python<'py>, object: *mut ffi::PyObject) -> Borrowed<'py, 'py, PyAny> {
    // SAFETY: the arguments of a call are live objects while it runs, and nothing here outlives it.
    unsafe { Borrowed::from_ptr(py, object) }
}

/// One of our own arrays, of no derived class.
fn array<'py>(py: Python<'py>, object: *mut ffi::PyObject) -> Option<Borrowed<'py, 'py, PyArray>> {
    borrowed(py, object).cast_exact::<PyArray>().ok()
}

/// The axis that is given behind `first` other arguments or under its name, and nothing else: an integer, `default` if there is none. `None`
/// inside is the Python object.
fn axis(
    py: Python<'_>,
    first: usize,
    positional: &[*mut ffi::PyObject],
    named: &Named,
) -> Option<Option<isize>> {
    let given = match (positional.len().checked_sub(first)?, named.len) {
        (0, 0) => return Some(Some(0)),
        (1, 0) => borrowed(py, positional[first]),
        (0, 1) => {
            let (name, value) = named.get(0);
            is_name(py, name, "axis").then(|| borrowed(py, value))?
        }
        _ => return None,
    };
    if given.is_none() {
        return Some(None);
    }
    Some(Some(given.cast_exact::<PyInt>().ok()?.extract().ok()?))
}

fn is_name(py: Python<'_>, name: *mut ffi::PyObject, wanted: &str) -> bool {
    borrowed(py, name)
        .cast_exact::<PyString>()
        .is_ok_and(|name| name.to_str().is_ok_and(|name| name == wanted))
}

fn made(py: Python<'_>, answer: mxnet::ops::Result<Option<Array>>) -> Answer {
    match answer.map_err(|error| raise(py, error))? {
        Some(array) => Ok(Some(PyArray::wrap_result(py, array)?.into_any())),
        None => Ok(None),
    }
}

/// `np.add.reduce(x, 1)`: what `x.sum(1)` gives.
fn reduce(
    py: Python<'_>,
    op: &'static OpDef,
    positional: &[*mut ffi::PyObject],
    named: &Named,
) -> Answer {
    let (Some(&x), Some(axis)) = (positional.first(), axis(py, 1, positional, named)) else {
        return Ok(None);
    };
    match array(py, x) {
        Some(x) => {
            let answer = core::reduce_few(op, &x.get().look(py), axis);
            made(py, answer)
        }
        None => Ok(None),
    }
}

/// `np.add.accumulate(x)`.
fn accumulate(
    py: Python<'_>,
    op: &'static OpDef,
    positional: &[*mut ffi::PyObject],
    named: &Named,
) -> Answer {
    let (Some(&x), Some(Some(axis))) = (positional.first(), axis(py, 1, positional, named)) else {
        return Ok(None);
    };
    match array(py, x) {
        Some(x) => {
            let answer = core::accumulate_few(op, &x.get().look(py), axis);
            made(py, answer)
        }
        None => Ok(None),
    }
}

/// `np.add.reduceat(x, [0, 3])`.
fn reduceat(
    py: Python<'_>,
    op: &'static OpDef,
    positional: &[*mut ffi::PyObject],
    named: &Named,
) -> Answer {
    let &[x, starts, ..] = positional else {
        return Ok(None);
    };
    let (Some(x), Some(Some(axis))) = (array(py, x), axis(py, 2, positional, named)) else {
        return Ok(None);
    };
    let Some(starts) = few_integers(&borrowed(py, starts)) else {
        return Ok(None);
    };
    let answer = core::reduceat_few(op, &x.get().look(py), &starts, axis);
    made(py, answer)
}

/// Few integers: a list or tuple of them, or an array of int64.
fn few_integers(object: &Bound<'_, PyAny>) -> Option<SmallVec<[i64; 16]>> {
    const MOST: usize = 64;
    let integer = |item: &Bound<'_, PyAny>| item.cast_exact::<PyInt>().ok()?.extract::<i64>().ok();
    if let Ok(list) = object.cast_exact::<PyList>() {
        return match list.len() <= MOST {
            true => list.iter().map(|item| integer(&item)).collect(),
            false => None,
        };
    }
    if let Ok(tuple) = object.cast_exact::<PyTuple>() {
        return match tuple.len() <= MOST {
            true => tuple.iter_borrowed().map(|item| integer(&item)).collect(),
            false => None,
        };
    }
    let x = object.cast_exact::<PyArray>().ok()?.get().look(object.py());
    if x.ndim() != 1 || x.dtype() != DType::I64 || x.is_weak() || x.len() > MOST {
        return None;
    }
    let numbers = read_few(&x)?;
    Some(numbers.iter().map(|number| number.as_i64()).collect())
}
