//! `x[...]`: basic expressions become views here; arrays and masks go to the indexing operators.

use mxnet::ops::{Array, shape};
use mxnet::tensor::{IndexItem, Layout};
use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyInt, PySlice, PyTuple};
use smallvec::SmallVec;

use crate::array::PyArray;
use crate::convert;
use crate::error::raise;

/// `x[key]`.
pub fn get(slf: &Bound<'_, PyArray>, key: &Bound<'_, PyAny>) -> PyResult<Py<PyArray>> {
    let py = slf.py();
    let layout = slf.get().with(py, |x| basic(x.layout(), key));
    let array = slf.get().array(py);
    match layout? {
        Some(layout) => PyArray::wrap(py, Array::from_tensor(array.tensor().with_layout(layout))),
        None => Err(PyIndexError::new_err(
            "only integers, slices, ellipsis and None are valid indices",
        )),
    }
}

/// `x[key] = value`.
pub fn set(
    slf: &Bound<'_, PyArray>,
    key: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let py = slf.py();
    let array = slf.get().array(py);
    let Some(value) = convert::operand(value)? else {
        return Err(PyTypeError::new_err(
            "the value must be an array or a number",
        ));
    };
    match basic(array.layout(), key)? {
        Some(layout) => {
            let target = Array::from_tensor(array.tensor().with_layout(layout));
            shape::assign(&target, &value.array()).map_err(|error| raise(py, error))
        }
        None => Err(PyIndexError::new_err(
            "only integers, slices, ellipsis and None are valid indices",
        )),
    }
}

/// The layout of a basic index expression; `None` if it holds arrays or masks.
fn basic(layout: &Layout, key: &Bound<'_, PyAny>) -> PyResult<Option<Layout>> {
    let py = key.py();
    if let Ok(slice) = key.cast::<PySlice>() {
        let (start, stop, step) = bounds(slice)?;
        return layout
            .slice(0, start, stop, step)
            .map(Some)
            .map_err(|error| raise(py, error.into()));
    }
    if key.is_exact_instance_of::<PyInt>() {
        return layout
            .select(0, key.extract()?)
            .map(Some)
            .map_err(|error| raise(py, error.into()));
    }
    match items(key) {
        Ok(items)
            if items
                .iter()
                .any(|i| matches!(i, IndexItem::Array { .. } | IndexItem::Mask { .. })) =>
        {
            Ok(None)
        }
        Ok(items) => layout
            .index(&items)
            .map(|found| Some(found.view))
            .map_err(|error| raise(py, error.into())),
        Err(error) => Err(error),
    }
}

/// Start, stop and step of a slice as they are written.
fn bounds(slice: &Bound<'_, PySlice>) -> PyResult<(Option<isize>, Option<isize>, Option<isize>)> {
    let (mut start, mut stop, mut step) = (0, 0, 0);
    // SAFETY: a slice object and three places to write to.
    if unsafe { ffi::PySlice_Unpack(slice.as_ptr(), &mut start, &mut stop, &mut step) } < 0 {
        return Err(PyErr::fetch(slice.py()));
    }
    // Missing bounds come back as the extreme values, which clip to the ends.
    Ok((Some(start), Some(stop), Some(step)))
}

/// The entries of an index expression, arrays by their shapes.
pub fn items(key: &Bound<'_, PyAny>) -> PyResult<Vec<IndexItem>> {
    match key.cast::<PyTuple>() {
        Ok(tuple) => tuple.iter().map(|entry| item(&entry)).collect(),
        Err(_) => Ok(vec![item(key)?]),
    }
}

fn item(entry: &Bound<'_, PyAny>) -> PyResult<IndexItem> {
    if let Ok(slice) = entry.cast::<PySlice>() {
        let (start, stop, step) = bounds(slice)?;
        return Ok(IndexItem::Slice { start, stop, step });
    }
    if entry.is_none() {
        return Ok(IndexItem::NewAxis);
    }
    if entry.is_instance_of::<PyEllipsis>() {
        return Ok(IndexItem::Ellipsis);
    }
    if entry.is_instance_of::<PyBool>() {
        return Ok(IndexItem::Mask {
            shape: SmallVec::new(),
        });
    }
    match entry.extract::<isize>() {
        Ok(index) => Ok(IndexItem::Int(index)),
        Err(_) => Err(PyIndexError::new_err(
            "only integers, slices (`:`), ellipsis (`...`), None and integer or boolean arrays are valid indices",
        )),
    }
}

/// Iterates over the first axis.
#[pyclass]
pub struct Rows {
    array: Py<PyArray>,
    next: usize,
    len: usize,
}

impl Rows {
    /// Iterates over the rows of an array.
    pub fn new(slf: &Bound<'_, PyArray>) -> PyResult<Rows> {
        let py = slf.py();
        match slf.get().with(py, |x| x.shape().first().copied()) {
            Some(len) => Ok(Rows {
                array: slf.clone().unbind(),
                next: 0,
                len,
            }),
            None => Err(PyTypeError::new_err("iteration over a 0-d array")),
        }
    }
}

#[pymethods]
impl Rows {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<Py<PyArray>>> {
        if self.next >= self.len {
            return Ok(None);
        }
        let index = (self.next as isize).into_pyobject(py)?.into_any();
        self.next += 1;
        get(self.array.bind(py), &index).map(Some)
    }

    fn __length_hint__(&self) -> usize {
        self.len - self.next
    }
}
