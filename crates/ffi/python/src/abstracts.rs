//! Abstract arrays: a shape, a dtype and a device, but no values.

use mxnet::core::Array;
use mxnet::core::mode::current_device;
use pyo3::prelude::*;

use crate::array::PyArray;
use crate::error::raise;
use crate::numpy_dtype;
use crate::typed::Get;

/// An array of this shape and dtype without values. Operators on it return such arrays, with the inferred shape and dtype; operations that
/// need values raise `AbstractArrayError`.
#[pyfunction]
pub fn abstract_array(
    py: Python<'_>,
    shape: Vec<usize>,
    dtype: &Bound<'_, PyAny>,
) -> PyResult<Py<PyArray>> {
    let dtype = numpy_dtype::read(dtype)?;
    let made = Array::without_values(&shape, dtype, current_device());
    PyArray::wrap(py, made.map_err(|error| raise(py, error))?)
}

/// Whether an array has no values.
#[pyfunction]
pub fn is_abstract(array: &Bound<'_, PyArray>) -> bool {
    array.get().with(array.py(), Array::is_abstract)
}
