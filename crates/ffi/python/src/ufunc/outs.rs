//! The argument `out`: our arrays, or NumPy arrays, whose memory is written directly.

use mxnet::core::{Array, Attrs, Call, Error, OpDef, Outputs, dispatch};
use mxnet::ops::shape;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyEllipsis, PyTuple};
use smallvec::SmallVec;

use crate::array::{Get, PyArray};
use crate::error::raise;
use crate::interop;
use crate::sharing::Sharing;

/// One entry for each output; `None` allocates a new array.
#[derive(Default)]
pub struct Outs<'py> {
    /// The arrays.
    pub arrays: SmallVec<[Option<Bound<'py, PyArray>>; 1]>,
    /// The caller's objects, which are returned.
    objects: SmallVec<[Option<Bound<'py, PyAny>>; 1]>,
}

impl<'py> Outs<'py> {
    /// The argument `out` of a call with `nout` outputs: a single array, or a tuple with one entry for each output.
    pub fn argument(op: &OpDef, object: &Bound<'py, PyAny>, nout: usize) -> PyResult<Outs<'py>> {
        let mut outs = Outs::default();
        // In NumPy `out=...` requests arrays instead of scalars. Results are always arrays here.
        if object.is(PyEllipsis::get(object.py())) {
            return Ok(outs);
        }
        if let Ok(tuple) = object.cast::<PyTuple>() {
            if tuple.len() != nout {
                return Err(PyValueError::new_err(format!(
                    "{}: the 'out' tuple must have exactly one entry per ufunc output: {nout}, found {}",
                    op.name,
                    tuple.len()
                )));
            }
            for item in tuple {
                outs.push(op, &item)?;
            }
        } else if object.is_none() {
            return Ok(outs);
        } else if nout == 1 {
            outs.push(op, object)?;
        } else {
            return Err(PyTypeError::new_err(format!(
                "{}: 'out' must be a tuple of {nout} arrays",
                op.name
            )));
        }
        if outs.arrays.iter().all(Option::is_none) {
            outs = Outs::default();
        }
        Ok(outs)
    }

    /// Adds the entry of the next output.
    pub fn push(&mut self, op: &OpDef, item: &Bound<'py, PyAny>) -> PyResult<()> {
        let array = if item.is_none() {
            None
        } else if item.is(PyEllipsis::get(item.py())) {
            return Err(PyTypeError::new_err(
                "must use `...` as `out=...` and not per-operand/in a tuple",
            ));
        } else if let Ok(array) = item.cast::<PyArray>() {
            Some(array.clone())
        } else {
            Some(foreign(op, item)?)
        };
        self.objects.push(array.as_ref().map(|_| item.clone()));
        self.arrays.push(array);
        Ok(())
    }

    /// Whether all results go to new arrays.
    pub fn is_empty(&self) -> bool {
        self.arrays.is_empty()
    }

    /// Makes sure that writing to these arrays can be recorded.
    pub fn check_writable(&self, py: Python<'_>) -> PyResult<()> {
        let mut given = self.arrays.iter().flatten();
        given.try_for_each(|out| out.get().check_writable(py))
    }

    /// The array for output `i`.
    pub fn get(&self, i: usize) -> Option<&Bound<'py, PyArray>> {
        self.arrays.get(i).and_then(Option::as_ref)
    }

    /// The objects to return for results that the core has written to these arrays or to new ones. Recorded results replace the arrays.
    pub fn finish(&self, py: Python<'py>, outputs: Outputs) -> PyResult<Py<PyAny>> {
        let mut results: SmallVec<[Py<PyAny>; 2]> = SmallVec::new();
        for (i, y) in outputs.into_iter().enumerate() {
            results.push(match (self.get(i), self.objects.get(i)) {
                (Some(out), Some(Some(object))) => {
                    out.get().adopt_written(py, y)?;
                    object.clone().unbind()
                }
                _ => PyArray::wrap_result(py, y)?.into_any(),
            });
        }
        if results.len() == 1
            && let Some(y) = results.pop()
        {
            return Ok(y);
        }
        Ok(PyTuple::new(py, results)?.into_any().unbind())
    }

    /// As [`Outs::write`], but `out` must have exactly the results' shapes, as folds require.
    pub fn write_exactly(
        &self,
        py: Python<'py>,
        op: &'static OpDef,
        y: Array,
    ) -> PyResult<Py<PyAny>> {
        if let Some(out) = self.get(0) {
            if let Some(problem) = out.get().with(py, |out| misfit(out, &y)) {
                return Err(raise(py, Error::shape(op.name, problem)));
            }
            interop::check_real(py, y.dtype(), out.get().with(py, Array::dtype))?;
        }
        self.write(py, op, Outputs::from_iter([y]))
    }

    /// Writes results to these arrays, with any conversion of dtype; returns as [`Outs::finish`] does.
    pub fn write(
        &self,
        py: Python<'py>,
        op: &'static OpDef,
        outputs: Outputs,
    ) -> PyResult<Py<PyAny>> {
        let written = outputs
            .into_iter()
            .enumerate()
            .map(|(i, y)| match self.get(i) {
                Some(out) => written(op, &y, &out.get().array(py)),
                None => Ok(y),
            })
            .collect::<Result<Outputs, Error>>()
            .map_err(|error| raise(py, error))?;
        self.finish(py, written)
    }
}

/// A description of how the shapes differ, if they do.
fn misfit(out: &Array, y: &Array) -> Option<String> {
    (out.shape() != y.shape()).then(|| {
        format!(
            "non-broadcastable output operand: `out` has shape {}, the result has shape {}",
            mxnet::core::Tuple(out.shape()),
            mxnet::core::Tuple(y.shape())
        )
    })
}

/// Copies `y` to `out` by an operator call.
fn written(op: &'static OpDef, y: &Array, out: &Array) -> Result<Array, Error> {
    let y = match y.layout().broadcast_to(out.shape()) {
        Ok(_) if y.shape() != out.shape() => y.broadcast_to(out.shape())?,
        _ => y.clone(),
    };
    if let Some(problem) = misfit(out, &y) {
        return Err(Error::shape(op.name, problem));
    }
    let y = y.astype(out.dtype())?;
    let outputs = dispatch(&Call {
        op: &shape::COPY,
        inputs: &[Some(&y)],
        attrs: &Attrs::none(),
        outs: &[Some(out)],
        dtype: None,
    })?;
    mxnet::core::only(&shape::COPY, outputs)
}

/// A view of a NumPy array whose memory can be written in place.
fn foreign<'py>(op: &OpDef, item: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray>> {
    let py = item.py();
    if !item.is_instance(&py.import("numpy")?.getattr("ndarray")?)? {
        return Err(PyTypeError::new_err(format!(
            "{}: return arrays must be of type ndarray, not '{}'",
            op.name,
            item.get_type().name()?
        )));
    }
    let array = interop::from_numpy(item, Sharing::Allowed)?;
    let (address, _): (usize, bool) = item
        .getattr("__array_interface__")?
        .get_item("data")?
        .extract()?;
    if array.tensor().data_ptr() as usize != address && !array.is_empty() {
        return Err(PyTypeError::new_err(format!(
            "{}: NumPy array in `out` must be aligned and in native byte order",
            op.name
        )));
    }
    Ok(PyArray::wrap(py, array)?.into_bound(py))
}
