//! Pickling of arrays.

use mxnet::core::Array;
use mxnet::tensor::DType;
use pyo3::prelude::*;

use crate::array::{Get, PyArray};
use crate::buffer_protocol::from_numpy;
use crate::error::raise;
use crate::numpy_export::{array_to_numpy, to_numpy};
use crate::sharing::Sharing;

/// `__reduce__`: the class, and a NumPy array and a dtype name as the state.
pub fn reduce(slf: &Bound<'_, PyArray>) -> PyResult<Py<PyAny>> {
    let py = slf.py();
    let array = slf.get().array(py);
    let rebuild = py.import("copyreg")?.getattr("__newobj__")?;
    let values = match array.dtype() {
        DType::BF16 => {
            let bits = array.contiguous().map_err(|error| raise(py, error))?;
            array_to_numpy(
                py,
                &Array::from_tensor(
                    bits.tensor()
                        .with_dtype_view(DType::U16)
                        .map_err(|error| raise(py, error.into()))?,
                ),
            )?
        }
        _ => to_numpy(slf)?,
    };
    let state = (values, array.dtype().name());
    // An array that stands for a NumPy scalar is restored as such.
    if slf.get().is_scalar() && slf.is_exact_instance_of::<PyArray>() {
        let element = py.import("mxnet._core")?.getattr("element_of_state")?;
        return Ok((element, state).into_pyobject(py)?.into_any().unbind());
    }
    Ok((rebuild, (slf.get_type(), 0), state)
        .into_pyobject(py)?
        .into_any()
        .unbind())
}

/// The element with this pickled state.
#[pyfunction]
pub fn element_of_state(
    py: Python<'_>,
    values: &Bound<'_, PyAny>,
    dtype: &str,
) -> PyResult<Py<PyArray>> {
    PyArray::wrap_result(py, of_state(values, dtype)?)
}

/// The array with this pickled state.
pub fn of_state(values: &Bound<'_, PyAny>, dtype: &str) -> PyResult<Array> {
    let py = values.py();
    let array = from_numpy(values, Sharing::Never)?;
    Ok(match DType::from_name(dtype) {
        Some(DType::BF16) => Array::from_tensor(
            array
                .tensor()
                .with_dtype_view(DType::BF16)
                .map_err(|error| raise(py, error.into()))?,
        ),
        _ => array,
    })
}
