//! Array objects written where they stay. `Py::new` moves the array through several places on its way, and asks the base class for its
//! constructor, at every call; for a small result that is a third of the time.

use std::alloc::Layout;
use std::mem::MaybeUninit;

use mxnet::ops::Array;
use mxnet::tensor::{DType, Device, Tensor};
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::{PyTypeInfo, ffi};

use super::PyArray;

/// What is the same for all objects of the class.
struct Mould {
    class: *mut ffi::PyTypeObject,
    /// Bytes from the object's beginning to the array.
    at: usize,
    /// Bytes of an object.
    len: usize,
}

// SAFETY: the class lives as long as the interpreter, and is only given back to it.
unsafe impl Send for Mould {}
// SAFETY: as above.
unsafe impl Sync for Mould {}

impl Mould {
    /// `None` if an object that `Py::new` made shows anything beside header and array that is not zero: then only `Py::new` knows how to make one.
    fn of(py: Python<'_>) -> PyResult<Option<Mould>> {
        let tensor = Tensor::empty(&[], DType::F32, Device::cpu(0));
        let tensor = tensor.map_err(|error| PyMemoryError::new_err(error.to_string()))?;
        let example = Bound::new(py, PyArray::plain(Array::from_tensor(tensor)))?;
        let class = PyArray::type_object(py);
        let len: usize = class.getattr("__basicsize__")?.extract()?;
        let start = example.as_ptr().cast::<u8>().cast_const();
        let at = std::ptr::from_ref(example.get()).addr() - start.addr();
        let own = Layout::new::<PyArray>();
        let is_zero = |from: usize, to: usize| {
            // SAFETY: the object has `len` bytes, of which these were written when it was made.
            (from..to).all(|i| unsafe { *start.add(i) } == 0)
        };
        let is_simple = at >= HEADER
            && at % own.align() == 0
            && at + own.size() <= len
            && is_zero(HEADER, at)
            && is_zero(at + own.size(), len);
        // SAFETY: these only look at the class.
        let is_collected = unsafe { ffi::PyType_IS_GC(class.as_type_ptr()) } != 0;
        Ok((is_simple && is_collected).then(|| Mould {
            class: class.as_type_ptr(),
            at,
            len,
        }))
    }
}

/// Sets a few bytes to zero: a word or two, for which a call of the C library's function is too much.
///
/// # Safety
/// `to` is valid for writing `len` bytes.
#[inline]
unsafe fn zero(to: *mut u8, len: usize) {
    for at in (0..len).step_by(8) {
        // SAFETY: the caller's promise.
        unsafe {
            match len - at {
                8.. => to.add(at).cast::<u64>().write_unaligned(0),
                rest => to.add(at).write_bytes(0, rest),
            }
        }
    }
}

/// Bytes at the beginning of every object.
const HEADER: usize = size_of::<ffi::PyObject>();

/// A new object around what `make` makes. The garbage collector need not look at it: what arrays refer to is no container.
#[inline]
pub(super) fn place(py: Python<'_>, make: impl FnOnce() -> PyArray) -> PyResult<Py<PyArray>> {
    // SAFETY: the place is written.
    unsafe { place_by(py, |to| to.write(make())) }
}

/// A new object around what `write` writes to its place.
///
/// # Safety
/// `write` initialises the place that it is given, and does not panic before.
#[inline]
pub(super) unsafe fn place_by(
    py: Python<'_>,
    write: impl FnOnce(*mut PyArray),
) -> PyResult<Py<PyArray>> {
    static MOULD: PyOnceLock<Option<Mould>> = PyOnceLock::new();
    let mould = match MOULD.get(py) {
        Some(mould) => mould,
        None => MOULD.get_or_try_init(py, || Mould::of(py))?,
    };
    let Some(mould) = mould else {
        let mut room = MaybeUninit::<PyArray>::uninit();
        write(room.as_mut_ptr());
        // SAFETY: `write` has initialised it, the caller says.
        return Py::new(py, unsafe { room.assume_init() });
    };
    // SAFETY: 1. The class is one of collected objects: this makes an untracked one with its header written, or returns null with an exception
    // set. 2. There is room for the array at `at`, aligned; all else beside the header is to be zero (`Mould::of` has seen that). 3. The
    // reference is ours.
    unsafe {
        let object = ffi::PyObject_GC_New::<ffi::PyObject>(mould.class);
        if object.is_null() {
            return Err(PyErr::fetch(py));
        }
        let start = object.cast::<u8>();
        let end = mould.at + size_of::<PyArray>();
        zero(start.add(HEADER), mould.at - HEADER);
        zero(start.add(end), mould.len - end);
        write(start.add(mould.at).cast::<PyArray>());
        Ok(Bound::from_owned_ptr(py, object)
            .cast_into_unchecked::<PyArray>()
            .unbind())
    }
}
