//! Memory of arrays shown to other libraries by the buffer protocol (PEP 3118).

use std::ffi::{c_char, c_int, c_long, c_void};
use std::ptr;

use mxnet::core::Array;
use mxnet::tensor::{DType, Strides, Tensor};
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use smallvec::SmallVec;

use crate::array::{Get, PyArray};
use crate::sharing::{complete_for_others, is_complete_for_others, on_device};

/// Fills a buffer view of an array: waits, then shows its memory. The storage is synchronous from then on.
///
/// # Safety
/// `view` may be written.
pub unsafe fn fill_buffer(
    slf: &Bound<'_, PyArray>,
    view: *mut ffi::Py_buffer,
    flags: c_int,
) -> PyResult<()> {
    let py = slf.py();
    // SAFETY: `view` may be written (contract); Python asks for a null owner on failure.
    unsafe { (*view).obj = ptr::null_mut() };
    let array = slf.get().borrow(py);
    if !array.device().is_host() {
        return Err(PyBufferError::new_err(on_device(array.device())));
    }
    if array.dtype() == DType::BF16 {
        return Err(PyBufferError::new_err(
            "buffers have no format for bfloat16: use asnumpy() or DLPack",
        ));
    }
    if array.tensor().is_read_only() && flags & ffi::PyBUF_WRITABLE == ffi::PyBUF_WRITABLE {
        return Err(PyBufferError::new_err("the array is read-only"));
    }
    if flags & ffi::PyBUF_STRIDES != ffi::PyBUF_STRIDES && !array.layout().is_contiguous() {
        return Err(PyBufferError::new_err(
            "the array is not contiguous and the consumer takes no strides",
        ));
    }
    let show = |array: &Array| {
        let tensor = array.tensor();
        // SAFETY: `view` may be written (contract).
        unsafe { export(slf.as_any(), tensor, view, tensor.is_read_only()) };
        Ok(())
    };
    if is_complete_for_others(&array) {
        return show(&array);
    }
    let waited = array.clone();
    array.end();
    complete_for_others(py, &waited)?;
    show(&waited)
}

/// Frees the data of an exported buffer.
///
/// # Safety
/// `view` was filled by [`export`].
pub unsafe fn release_buffer(view: *mut ffi::Py_buffer) {
    // SAFETY: `internal` is the box that `export` leaked (contract); it is freed only once.
    drop(unsafe { Box::from_raw((*view).internal.cast::<Exported>()) });
}

/// Data of an exported buffer.
struct Exported {
    shape: SmallVec<[isize; 4]>,
    strides: Strides,
    _tensor: Tensor,
}

/// PEP 3118 format of a data type.
fn format(dtype: DType) -> &'static std::ffi::CStr {
    match dtype {
        DType::Bool => c"?",
        DType::I8 => c"b",
        DType::I16 => c"h",
        DType::I32 => c"i",
        // NumPy distinguishes `long` from `long long`; its int64 is `long` where that has 8 bytes.
        DType::I64 if size_of::<c_long>() == 8 => c"l",
        DType::U64 if size_of::<c_long>() == 8 => c"L",
        DType::I64 => c"q",
        DType::U8 => c"B",
        DType::U16 | DType::BF16 => c"H",
        DType::U32 => c"I",
        DType::U64 => c"Q",
        DType::F16 => c"e",
        DType::F32 => c"f",
        DType::F64 => c"d",
        DType::C64 => c"Zf",
        DType::C128 => c"Zd",
    }
}

/// A temporary tensor that NumPy reads while it prints.
#[pyclass(frozen)]
pub struct Window {
    /// What it shows.
    pub tensor: Tensor,
}

#[pymethods]
impl Window {
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        _flags: c_int,
    ) -> PyResult<()> {
        // SAFETY: Python passes a structure to fill.
        unsafe { export(slf.as_any(), &slf.get().tensor, view, true) };
        Ok(())
    }

    unsafe fn __releasebuffer__(&self, view: *mut ffi::Py_buffer) {
        // SAFETY: Python passes a buffer that `__getbuffer__` filled.
        unsafe { release_buffer(view) }
    }
}

/// Fills a buffer view of a complete tensor.
///
/// # Safety
/// `view` may be written.
unsafe fn export(
    owner: &Bound<'_, PyAny>,
    tensor: &Tensor,
    view: *mut ffi::Py_buffer,
    read_only: bool,
) {
    let exported = Box::new(Exported {
        shape: tensor.shape().iter().map(|&n| n as isize).collect(),
        strides: tensor.byte_strides(),
        _tensor: tensor.clone(),
    });
    let exported = Box::into_raw(exported);
    // SAFETY: 1. `view` may be written (contract). 2. `exported` lives until `release_buffer` takes it back.
    unsafe {
        (*view).obj = owner.clone().into_ptr();
        (*view).buf = tensor.data_ptr().cast::<c_void>();
        (*view).len = (tensor.len() * tensor.dtype().size()) as isize;
        (*view).readonly = c_int::from(read_only);
        (*view).itemsize = tensor.dtype().size() as isize;
        (*view).format = format(tensor.dtype()).as_ptr().cast_mut().cast::<c_char>();
        (*view).ndim = tensor.shape().len() as c_int;
        (*view).shape = (*exported).shape.as_mut_ptr();
        (*view).strides = (*exported).strides.as_mut_ptr();
        (*view).suboffsets = ptr::null_mut();
        (*view).internal = exported.cast::<c_void>();
    }
}
