//! Iteration over the first axis of an array.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::array::{Get, PyArray};
use crate::index::at;

/// Iterates over the first axis.
#[pyclass]
pub struct RowIter {
    array: Py<PyArray>,
    next: usize,
    len: usize,
}

impl RowIter {
    /// An iterator over the rows of an array.
    pub fn new(slf: &Bound<'_, PyArray>) -> PyResult<RowIter> {
        let py = slf.py();
        match slf.get().with(py, |x| x.shape().first().copied()) {
            Some(len) => Ok(RowIter {
                array: slf.clone().unbind(),
                next: 0,
                len,
            }),
            None => Err(PyTypeError::new_err("iteration over a 0-d array")),
        }
    }
}

/// Checks for signals after every few thousand steps of an iterator, because `list(x)` itself does not check.
#[inline]
pub fn check_signals_after(py: Python<'_>, steps: usize) -> PyResult<()> {
    const STEPS: usize = 1 << 13;
    match steps.is_multiple_of(STEPS) {
        true => py.check_signals(),
        false => Ok(()),
    }
}

#[pymethods]
impl RowIter {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<Py<PyArray>>> {
        if self.next >= self.len {
            return Ok(None);
        }
        let index = self.next as isize;
        self.next += 1;
        check_signals_after(py, self.next)?;
        at(self.array.bind(py), index).map(Some)
    }

    fn __length_hint__(&self) -> usize {
        self.len - self.next
    }
}
