//! From the core's outputs to what Python gets.

use mxnet::ops::{OpDef, Outputs};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::array::PyArray;

/// One output as it is, several as a tuple, none as `None`.
pub fn finish(py: Python<'_>, mut outputs: Outputs) -> PyResult<Py<PyAny>> {
    if outputs.is_empty() {
        return Ok(py.None());
    }
    if outputs.len() == 1
        && let Some(y) = outputs.pop()
    {
        return Ok(PyArray::wrap(py, y)?.into_any());
    }
    let items: Vec<Py<PyArray>> = outputs
        .into_iter()
        .map(|y| PyArray::wrap(py, y))
        .collect::<PyResult<_>>()?;
    Ok(PyTuple::new(py, items)?.into_any().unbind())
}

/// As [`finish`], or always as a tuple if the operator says so.
pub fn finish_as(
    py: Python<'_>,
    op: &'static OpDef,
    given: usize,
    outputs: Outputs,
) -> PyResult<Py<PyAny>> {
    if !(op.always_tuple)(given) {
        return finish(py, outputs);
    }
    let items: Vec<Py<PyArray>> = outputs
        .into_iter()
        .map(|y| PyArray::wrap(py, y))
        .collect::<PyResult<_>>()?;
    Ok(PyTuple::new(py, items)?.into_any().unbind())
}

/// Outputs that were written into given arrays take their place in the recorded graph too.
pub fn finish_into(
    py: Python<'_>,
    outputs: Outputs,
    outs: &[Option<Bound<'_, PyArray>>],
) -> PyResult<Py<PyAny>> {
    if outs.iter().all(Option::is_none) {
        return finish(py, outputs);
    }
    let mut results = Vec::new();
    for (i, y) in outputs.into_iter().enumerate() {
        match outs.get(i).and_then(Option::as_ref) {
            Some(out) => {
                if y.entry().is_some() {
                    out.get().adopt(py, y);
                }
                results.push(out.clone().unbind());
            }
            None => results.push(PyArray::wrap(py, y)?),
        }
    }
    if results.len() == 1
        && let Some(y) = results.pop()
    {
        return Ok(y.into_any());
    }
    Ok(PyTuple::new(py, results)?.into_any().unbind())
}
