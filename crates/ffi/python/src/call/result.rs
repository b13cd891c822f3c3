//! Conversion of the core's outputs to Python objects.

use mxnet::core::{Array, Bundle, Cpu, OpDef, Outputs, ZeroDimResult};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use smallvec::SmallVec;

use crate::array::{Get, PyArray};
use crate::convert::Operand;

/// A single output itself, several as a tuple, none as `None`.
#[inline]
pub fn finish(py: Python<'_>, op: &'static OpDef, outputs: &mut Outputs) -> PyResult<Py<PyAny>> {
    if outputs.is_empty() {
        return Ok(py.None());
    }
    if outputs.len() == 1 {
        return Ok(PyArray::wrap_output(py, op, outputs)?.into_any());
    }
    let results = outputs.drain(..);
    tuple_of(py, results.map(|y| PyArray::wrap_made(py, op, y)))
}

/// The results of a call as a tuple. A lack of memory for many of them is an error.
fn tuple_of(
    py: Python<'_>,
    results: impl ExactSizeIterator<Item = PyResult<Py<PyArray>>>,
) -> PyResult<Py<PyAny>> {
    const MANY: usize = 1024;
    if results.len() < MANY {
        let items: SmallVec<[Py<PyArray>; 4]> = results.collect::<PyResult<_>>()?;
        return Ok(PyTuple::new(py, items)?.into_any().unbind());
    }
    // Creating a tuple by its length panics if there is no memory.
    let items = PyList::empty(py);
    for result in results {
        items.append(result?)?;
    }
    Ok(py.get_type::<PyTuple>().call1((items,))?.unbind())
}

/// As [`finish`]; a result that is a view of one of `sources` has it as its base.
pub fn finish_of<'a, 'py: 'a>(
    py: Python<'py>,
    op: &'static OpDef,
    outputs: &mut Outputs,
    sources: impl IntoIterator<Item = &'a Bound<'py, PyArray>> + Clone,
) -> PyResult<Py<PyAny>> {
    if outputs.is_empty() {
        return finish(py, op, outputs);
    }
    if outputs.len() == 1
        && let Some(y) = outputs.pop()
    {
        return Ok(wrap_of(py, op, y, sources)?.into_any());
    }
    let results = outputs.drain(..);
    tuple_of(py, results.map(|y| wrap_of(py, op, y, sources.clone())))
}

/// A Python object for an output, which may be a view of one of `sources`.
fn wrap_of<'a, 'py: 'a>(
    py: Python<'py>,
    op: &'static OpDef,
    y: Array,
    sources: impl IntoIterator<Item = &'a Bound<'py, PyArray>> + Clone,
) -> PyResult<Py<PyArray>> {
    let storage = y.tensor().storage();
    let source = sources
        .clone()
        .into_iter()
        .find(|x| std::sync::Arc::ptr_eq(x.get().borrow(py).tensor().storage(), storage));
    match source {
        Some(source) => PyArray::wrap_of(py, y, source),
        None => PyArray::wrap_made_of(py, op, y, sources.into_iter().next()),
    }
}

/// As [`finish`], or as a tuple or list if the operator says so.
pub fn finish_as(
    py: Python<'_>,
    op: &'static OpDef,
    inputs: &[Option<Operand>],
    outputs: &mut Outputs,
) -> PyResult<Py<PyAny>> {
    let held = inputs.iter().flatten().filter_map(Operand::held);
    let number = outputs.len();
    let result = match op.cpu {
        Cpu::View(_) | Cpu::Composite(_) => finish_of(py, op, outputs, held),
        // A copy of a scalar is a scalar.
        _ if op.zero_dim == ZeroDimResult::AsOperand && outputs.iter().any(|y| y.ndim() == 0) => {
            finish_of(py, op, outputs, held)
        }
        _ => finish(py, op, outputs),
    }?;
    Ok(match (op.bundle)(inputs.iter().flatten().count()) {
        Bundle::Natural => result,
        Bundle::Tuple => match number {
            0 => PyTuple::empty(py).into_any().unbind(),
            1 => PyTuple::new(py, [result])?.into_any().unbind(),
            _ => result,
        },
        Bundle::List => match number {
            0 => PyList::empty(py).into_any().unbind(),
            1 => PyList::new(py, [result])?.into_any().unbind(),
            _ => py.get_type::<PyList>().call1((result,))?.unbind(),
        },
    })
}

/// Results that were written to given arrays replace them in the recorded graph, too.
pub fn finish_into(
    py: Python<'_>,
    op: &'static OpDef,
    mut outputs: Outputs,
    outs: &[Option<Bound<'_, PyArray>>],
) -> PyResult<Py<PyAny>> {
    if outs.iter().all(Option::is_none) {
        return finish(py, op, &mut outputs);
    }
    let mut results = Vec::new();
    for (i, y) in outputs.into_iter().enumerate() {
        match outs.get(i).and_then(Option::as_ref) {
            Some(out) => {
                out.get().adopt_written(py, y)?;
                results.push(out.clone().unbind());
            }
            None => results.push(PyArray::wrap_made(py, op, y)?),
        }
    }
    if results.len() == 1
        && let Some(y) = results.pop()
    {
        return Ok(y.into_any());
    }
    Ok(PyTuple::new(py, results)?.into_any().unbind())
}
