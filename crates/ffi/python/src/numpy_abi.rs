//! NumPy's C API: creates arrays, and reads the address, shape and strides of arrays, without calls of Python functions.
//!
//! The definitions here are part of NumPy's stable binary interface, against which extension modules are compiled: indices of functions in the table
//! `_ARRAY_API`, and the members of `PyArrayObject_fields`. They are the same in all releases from 2.0 on. The version of the interface is checked
//! once; with another version, the buffer protocol is used instead.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr::{self, NonNull};

use mxnet::tensor::DType;
use pyo3::exceptions::PyException;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::numpy_dtype;
use crate::once_box::OnceBox;

/// The leading members of NumPy's `PyArrayObject_fields`.
#[repr(C)]
pub struct Fields {
    head: ffi::PyObject,
    data: *mut u8,
    ndim: c_int,
    shape: *const isize,
    strides: *const isize,
    base: *mut ffi::PyObject,
    dtype: *mut ffi::PyObject,
    flags: c_int,
}

/// `NPY_ARRAY_C_CONTIGUOUS`, `NPY_ARRAY_ALIGNED`, `NPY_ARRAY_WRITEABLE`, `NPY_ARRAY_WARN_ON_WRITE`.
const C_CONTIGUOUS: c_int = 0x0001;
const ALIGNED: c_int = 0x0100;
const WRITEABLE: c_int = 0x0400;
const WARN_ON_WRITE: c_int = c_int::MIN;

impl Fields {
    /// The address of the first element.
    pub fn address(&self) -> *mut u8 {
        self.data
    }

    /// The sizes of the axes.
    pub fn shape(&self) -> &[isize] {
        match self.ndim {
            0 => &[],
            // SAFETY: NumPy keeps one size for each axis while the array lives.
            n => unsafe { std::slice::from_raw_parts(self.shape, n as usize) },
        }
    }

    /// The strides in bytes.
    pub fn strides(&self) -> &[isize] {
        match self.ndim {
            0 => &[],
            // SAFETY: NumPy keeps one stride for each axis while the array lives.
            n => unsafe { std::slice::from_raw_parts(self.strides, n as usize) },
        }
    }

    /// Whether the elements are contiguous in C order and aligned.
    pub fn is_dense(&self) -> bool {
        self.flags & (C_CONTIGUOUS | ALIGNED) == C_CONTIGUOUS | ALIGNED
    }

    /// Whether the array is read-only; as in NumPy's buffers, this includes arrays for which NumPy warns on writes.
    pub fn is_read_only(&self) -> bool {
        self.flags & (WRITEABLE | WARN_ON_WRITE) != WRITEABLE
    }
}

type NewFromDescr = unsafe extern "C" fn(
    class: *mut ffi::PyTypeObject,
    dtype: *mut ffi::PyObject,
    ndim: c_int,
    shape: *const isize,
    strides: *const isize,
    data: *mut c_void,
    flags: c_int,
    owner: *mut ffi::PyObject,
) -> *mut ffi::PyObject;

/// The functions of the table that are used.
#[derive(Clone, Copy)]
struct Interface {
    class: NonNull<ffi::PyTypeObject>,
    new: NewFromDescr,
}

// SAFETY: the class lives as long as NumPy, which is never unloaded.
unsafe impl Send for Interface {}
// SAFETY: as above; both are only read.
unsafe impl Sync for Interface {}

static INTERFACE: OnceBox<Option<Interface>> = OnceBox::new();

/// Looks up the interface when the package is imported. An error (Ctrl-C, for example) is returned to the caller; if NumPy does not have the
/// interface, the buffer protocol is used.
pub fn init(py: Python<'_>) -> PyResult<()> {
    let found = match Interface::find(py) {
        Err(error) if error.is_instance_of::<PyException>(py) => None,
        found => found?,
    };
    INTERFACE.set(found);
    Ok(())
}

impl Interface {
    /// `None` if NumPy has another binary interface.
    #[inline]
    fn get() -> Option<Interface> {
        INTERFACE.get().copied().flatten()
    }

    #[cold]
    fn find(py: Python<'_>) -> PyResult<Option<Interface>> {
        /// Indices in the table of functions.
        const VERSION: usize = 0;
        const CLASS: usize = 2;
        const NEW_FROM_DESCR: usize = 94;
        /// `NPY_VERSION` of NumPy 2.
        const NUMPY_2: c_uint = 0x0200_0000;

        let capsule = py
            .import("numpy._core._multiarray_umath")?
            .getattr("_ARRAY_API")?;
        // SAFETY: the function accepts any object; for an object that is not a capsule with this name it returns null and sets an exception.
        let table = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), ptr::null()) };
        if table.is_null() {
            return Err(PyErr::fetch(py));
        }
        let table = table.cast::<*mut c_void>();
        // SAFETY: NumPy's table has these entries in all versions; the first one is a function that returns the version.
        unsafe {
            let version = std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> c_uint>(
                *table.add(VERSION),
            );
            if version() != NUMPY_2 {
                return Ok(None);
            }
            let new = std::mem::transmute::<*mut c_void, NewFromDescr>(*table.add(NEW_FROM_DESCR));
            let class = NonNull::new((*table.add(CLASS)).cast::<ffi::PyTypeObject>());
            Ok(class.map(|class| Interface { class, new }))
        }
    }
}

/// The members of an array of exactly NumPy's class; `None` for other objects.
#[inline]
pub fn fields<'a>(object: &'a Bound<'_, PyAny>) -> Option<&'a Fields> {
    let interface = Interface::get()?;
    // SAFETY: a live object; an object of exactly this class begins with these members.
    unsafe {
        let is_numpys = ffi::Py_TYPE(object.as_ptr()) == interface.class.as_ptr();
        is_numpys.then(|| &*object.as_ptr().cast::<Fields>())
    }
}

/// The dtype of the array, if it is one of ours in native byte order.
#[inline]
pub fn dtype(py: Python<'_>, fields: &Fields) -> PyResult<Option<DType>> {
    // SAFETY: NumPy keeps the dtype object while the array lives.
    let dtype = unsafe { Bound::from_borrowed_ptr(py, fields.dtype) };
    numpy_dtype::known(&dtype)
}

/// A new, uninitialised NumPy array in C order, and the address of its first element. `None` if NumPy has another binary interface, or does not have
/// the dtype.
#[inline]
pub fn empty<'py>(
    py: Python<'py>,
    shape: &[usize],
    dtype: DType,
) -> PyResult<Option<(Bound<'py, PyAny>, *mut u8)>> {
    let Some(interface) = Interface::get().filter(|_| dtype != DType::BF16) else {
        return Ok(None);
    };
    let kind = numpy_dtype::object(py, dtype)?;
    // SAFETY: 1. a class and a dtype object of NumPy; the call takes over the reference to the latter. 2. `shape` has `shape.len()` sizes, none
    // above `isize::MAX`, as in every array. 3. the result is a new array, or null with an exception set.
    unsafe {
        let made = (interface.new)(
            interface.class.as_ptr(),
            kind.into_ptr(),
            shape.len() as c_int,
            shape.as_ptr().cast(),
            ptr::null(),
            ptr::null_mut(),
            0,
            ptr::null_mut(),
        );
        let made = Bound::from_owned_ptr_or_err(py, made)?;
        let address = (*made.as_ptr().cast::<Fields>()).data;
        Ok(Some((made, address)))
    }
}
