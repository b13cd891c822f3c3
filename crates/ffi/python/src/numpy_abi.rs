//! NumPy's C interface: new arrays, and where an array has its elements, without a call of Python.
//!
//! What stands here is part of NumPy's binary interface, which extension modules are compiled against: the places of functions in
//! the table `_ARRAY_API` and the members of `PyArrayObject_fields`, the same in all releases from 2.0 on. The interface's version
//! is asked for once; where it is another one the buffer protocol serves.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr::{self, NonNull};

use mxnet::tensor::DType;
use pyo3::exceptions::PyException;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::convert;
use crate::once_box::OnceBox;

/// NumPy's `PyArrayObject_fields`, as far as it is read here.
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

    /// Whether the elements lie one after the other in C order, at addresses that are multiples of their size.
    pub fn is_dense(&self) -> bool {
        self.flags & (C_CONTIGUOUS | ALIGNED) == C_CONTIGUOUS | ALIGNED
    }

    /// As NumPy's buffers say it: arrays that it warns to write to are read-only too.
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

/// What is used of the table.
#[derive(Clone, Copy)]
struct Interface {
    class: NonNull<ffi::PyTypeObject>,
    new: NewFromDescr,
}

// SAFETY: the class lives as long as NumPy is loaded, which is never unloaded.
unsafe impl Send for Interface {}
// SAFETY: as above; both are only read.
unsafe impl Sync for Interface {}

static INTERFACE: OnceBox<Option<Interface>> = OnceBox::new();

/// Looks for the interface, when the package is imported. What stops that, Ctrl-C for one, is for the caller; a NumPy without the
/// interface is served by the buffer protocol.
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
        /// Places in the table of functions.
        const VERSION: usize = 0;
        const CLASS: usize = 2;
        const NEW_FROM_DESCR: usize = 94;
        /// `NPY_VERSION` of NumPy 2.
        const NUMPY_2: c_uint = 0x0200_0000;

        let capsule = py
            .import("numpy._core._multiarray_umath")?
            .getattr("_ARRAY_API")?;
        // SAFETY: any object may be asked; an object that is no capsule without a name gives null and an exception.
        let table = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), ptr::null()) };
        if table.is_null() {
            return Err(PyErr::fetch(py));
        }
        let table = table.cast::<*mut c_void>();
        // SAFETY: NumPy's table, which has these entries in all versions; the first one is a function that says the version.
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

/// Where an array of NumPy's own class has its elements. `None`: it is something else.
#[inline]
pub fn fields<'a>(object: &'a Bound<'_, PyAny>) -> Option<&'a Fields> {
    let interface = Interface::get()?;
    // SAFETY: a live object; one of this very class begins with these members.
    unsafe {
        let is_numpys = ffi::Py_TYPE(object.as_ptr()) == interface.class.as_ptr();
        is_numpys.then(|| &*object.as_ptr().cast::<Fields>())
    }
}

/// The data type of such an array, if it holds numbers as ours do, in the order of the machine's bytes.
#[inline]
pub fn dtype(py: Python<'_>, fields: &Fields) -> PyResult<Option<DType>> {
    // SAFETY: NumPy keeps the dtype object while the array lives.
    let dtype = unsafe { Bound::from_borrowed_ptr(py, fields.dtype) };
    convert::known_dtype(&dtype)
}

/// A new array of undefined elements in C order, and the address of the first. `None`: NumPy has another binary interface, or no
/// such dtype.
#[inline]
pub fn empty<'py>(
    py: Python<'py>,
    shape: &[usize],
    dtype: DType,
) -> PyResult<Option<(Bound<'py, PyAny>, *mut u8)>> {
    let Some(interface) = Interface::get().filter(|_| dtype != DType::BF16) else {
        return Ok(None);
    };
    let kind = convert::numpy_dtype(py, dtype)?;
    // SAFETY: 1. a class and a dtype object of NumPy, whose reference the call takes over. 2. `shape` has `shape.len()` sizes, none
    // above `isize::MAX`, as each axis of an array. 3. the result is a new array, or null with an exception set.
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
