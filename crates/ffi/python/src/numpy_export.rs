//! NumPy arrays, bytes and interface descriptions of our arrays. The opposite direction is in `interop.rs`.

use std::ptr;

use mxnet::core::{Array, Error, copy_if_ready};
use mxnet::ops::index::with_bytes;
use mxnet::tensor::{DType, DeviceKind, Layout, Storage, Tensor};
use pyo3::exceptions::{PyAttributeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::array::{Get, PyArray};
use crate::error::raise;
use crate::gil_release::without_gil;
use crate::sharing::Sharing;
use crate::sharing::{complete_for_others, on_device};
use crate::{buffer_protocol, dlpack, numpy_dtype};

/// A `bytes` object. Unlike `PyBytes::new`, which panics, this returns an error if there is no memory for it.
pub fn bytes_of<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    // SAFETY: `bytes` is valid for its length; the result is a new object, or null with an exception set.
    let made = unsafe {
        let made = ffi::PyBytes_FromStringAndSize(bytes.as_ptr().cast(), bytes.len() as isize);
        Bound::from_owned_ptr_or_err(py, made)?
    };
    Ok(made.cast_into()?)
}

/// The bytes of an array that is contiguous in this order; `None` for other arrays and orders.
pub fn bytes<'py>(slf: &Bound<'py, PyArray>, order: &str) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let py = slf.py();
    let keeps_c_order = matches!(order, "C" | "A" | "K");
    // Creating a bytes object runs no Python code.
    if keeps_c_order
        && let Some(made) = with_bytes(&slf.get().borrow(py), |bytes| bytes_of(py, bytes))
    {
        return made.map(Some);
    }
    let array = slf.get().array(py);
    let dense = keeps_c_order && array.layout().is_contiguous();
    if !dense || array.device().kind() != DeviceKind::Cpu {
        return Ok(None);
    }
    let len = array.len() * array.dtype().size();
    // SAFETY: a new object of `len` bytes, or null with an exception set.
    let made = unsafe {
        let made = ffi::PyBytes_FromStringAndSize(ptr::null(), len as ffi::Py_ssize_t);
        Bound::from_owned_ptr_or_err(py, made)?
    };
    // SAFETY: it is a bytes object, as just made.
    let to = unsafe { ffi::PyBytes_AsString(made.as_ptr()) };
    // SAFETY: nobody else knows the new object, which has room for `len` bytes and is kept longer than the storage.
    let storage =
        unsafe { Storage::from_foreign(to.cast(), len, array.device(), Box::new(()), false) };
    let copied = Tensor::new(storage, Layout::contiguous(array.shape()), array.dtype())
        .map_err(|error| raise(py, error.into()))?;
    let copied = Array::from_tensor(copied);
    without_gil(py, || array.read_to(&copied)).map_err(|error| raise(py, error))?;
    Ok(Some(made.cast_into()?))
}

/// A copy of the elements as a NumPy array.
pub fn to_numpy(slf: &Bound<'_, PyArray>) -> PyResult<Py<PyAny>> {
    let py = slf.py();
    let array = slf.get().array(py);
    array_to_numpy(py, &array)
}

/// A copy of the elements as a NumPy array.
pub fn array_to_numpy(py: Python<'_>, array: &Array) -> PyResult<Py<PyAny>> {
    if array.dtype() == DType::BF16 {
        // NumPy may not have the dtype, so it gets the bits.
        let bits = array.tensor().with_dtype_view(DType::U16);
        let bits = Array::from_tensor(bits.map_err(|error| raise(py, error.into()))?);
        return bf16_from_bits(py, &copied_to_numpy(py, &bits)?);
    }
    copied_to_numpy(py, array).map(Bound::unbind)
}

/// A copy of the elements as a NumPy array with the same memory order.
fn copied_to_numpy<'py>(py: Python<'py>, array: &Array) -> PyResult<Bound<'py, PyAny>> {
    let made = buffer_protocol::new_numpys(py, array)?;
    let to = made.address;
    // Copying bytes runs no Python code.
    let is_copied = match &made.strides {
        None => {
            // SAFETY: the new NumPy array is dense, has this many bytes and is not shared yet.
            let copy = |bytes: &[u8]| unsafe {
                ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
            };
            with_bytes(array, copy).is_some()
        }
        // SAFETY: the new NumPy array has these strides and as many elements, and is not shared yet.
        Some(strides) => unsafe { copy_if_ready(array, to, strides) },
    };
    if !is_copied {
        let Some(target) =
            buffer_protocol::share_memory(&made.object, array.dtype(), Sharing::Allowed)?
        else {
            let problem = "a new array of NumPy is not aligned".to_owned();
            return Err(raise(py, Error::internal("asnumpy", problem)));
        };
        without_gil(py, || array.read_to(&target)).map_err(|error| raise(py, error))?;
    }
    Ok(made.object)
}

/// bfloat16 bits as `ml_dtypes.bfloat16`, or widened to float32 if that package is missing.
pub fn bf16_from_bits(py: Python<'_>, bits: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    if let Ok(ml) = py.import("ml_dtypes") {
        return Ok(bits
            .call_method1("view", (ml.getattr("bfloat16")?,))?
            .unbind());
    }
    let wide = bits.call_method1("astype", ("uint32",))?;
    Ok(wide
        .call_method1("__lshift__", (16,))?
        .call_method1("astype", ("uint32",))?
        .call_method1("view", ("float32",))?
        .unbind())
}

/// `numpy.asarray(x)`: NumPy's own array; it shares the memory unless `copy` is True.
pub fn array_protocol(
    slf: &Bound<'_, PyArray>,
    dtype: Option<&Bound<'_, PyAny>>,
    copy: Option<bool>,
) -> PyResult<Py<PyAny>> {
    let py = slf.py();
    let array = slf.get().array(py);
    let numpy = py.import("numpy")?;
    let same = match dtype {
        Some(dtype) if !dtype.is_none() => {
            numpy_dtype::read(dtype).is_ok_and(|d| d == array.dtype())
        }
        _ => true,
    };
    if copy == Some(false) && !array.device().is_host() {
        return Err(PyValueError::new_err(on_device(array.device())));
    }
    if copy == Some(false) && (!same || array.dtype() == DType::BF16) {
        return Err(PyValueError::new_err(
            "cannot change the dtype without a copy",
        ));
    }
    let must_copy = !same || array.dtype() == DType::BF16 || !array.device().is_host();
    let base = match copy == Some(true) || must_copy {
        true => to_numpy(slf)?,
        false => numpy
            .call_method1(
                "asarray",
                (py.get_type::<pyo3::types::PyMemoryView>().call1((slf,))?,),
            )?
            .unbind(),
    };
    match dtype {
        Some(dtype) if !same => base
            .bind(py)
            .call_method1("astype", (dtype,))
            .map(Bound::unbind),
        _ => Ok(base),
    }
}

/// `__array_interface__`, version 3.
pub fn interface(slf: &Bound<'_, PyArray>) -> PyResult<Py<PyAny>> {
    let py = slf.py();
    let array = slf.get().array(py);
    if !array.device().is_host() {
        return Err(PyAttributeError::new_err(on_device(array.device())));
    }
    if array.dtype() == DType::BF16 {
        return Err(PyAttributeError::new_err(
            "__array_interface__ has no name for bfloat16: use asnumpy() or DLPack",
        ));
    }
    complete_for_others(py, &array)?;
    Ok(described(py, &array)?.into_any().unbind())
}

/// `__cuda_array_interface__`, version 3. The consumer must order its work after the stream that it names.
pub fn cuda_interface(slf: &Bound<'_, PyArray>) -> PyResult<Py<PyAny>> {
    let py = slf.py();
    let array = slf.get().array(py);
    let device = array.device();
    if device.kind() != DeviceKind::Gpu {
        let problem =
            format!("__cuda_array_interface__ is for arrays on a GPU, this one is on {device}");
        return Err(PyAttributeError::new_err(problem));
    }
    if array.dtype() == DType::BF16 {
        return Err(PyAttributeError::new_err(
            "__cuda_array_interface__ has no name for bfloat16: use DLPack",
        ));
    }
    let stream = dlpack::ordered_on_own_stream(py, &array)?;
    let facts = described(py, &array)?;
    facts.set_item("stream", stream)?;
    Ok(facts.into_any().unbind())
}

/// The entries that both interfaces have in common.
fn described<'py>(py: Python<'py>, array: &Array) -> PyResult<Bound<'py, PyDict>> {
    let facts = PyDict::new(py);
    facts.set_item("version", 3)?;
    facts.set_item("shape", PyTuple::new(py, array.shape())?)?;
    facts.set_item("strides", PyTuple::new(py, array.tensor().byte_strides())?)?;
    let typestr = numpy_dtype::object(py, array.dtype())?
        .bind(py)
        .getattr("str")?;
    facts.set_item("typestr", typestr)?;
    facts.set_item(
        "data",
        (
            array.tensor().data_ptr() as usize,
            array.tensor().is_read_only(),
        ),
    )?;
    Ok(facts)
}
