//! The type `mxnet.numpy.ndarray`: allocation and deallocation of its objects.

use std::ffi::c_void;
use std::mem::offset_of;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use mxnet::core::Array;
use pyo3::exceptions::{PyMemoryError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyType;
use pyo3::{PyTypeInfo, ffi};

use super::PyArray;
use crate::gil_cell::GilCell;
use crate::gil_release::with_python;
use crate::typed::{self, Typed, slot};

/// An array object in memory.
type Object = crate::typed::Object<PyArray>;

/// The type; null before it is made.
static CLASS: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(ptr::null_mut());

// SAFETY: there is one such type, whose objects, and those of derived classes, begin with an `Object`.
unsafe impl PyTypeInfo for PyArray {
    #[inline]
    fn type_object_raw(_py: Python<'_>) -> *mut ffi::PyTypeObject {
        let class = CLASS.load(Ordering::Relaxed);
        assert!(!class.is_null(), "the type is created first");
        class
    }
}

impl pyo3::types::DerefToPyAny for PyArray {}

// SAFETY: as above.
unsafe impl Typed for PyArray {}

/// Makes the type from its slots, which this adds those for memory to.
pub(super) fn make(py: Python<'_>, mut all: Vec<ffi::PyType_Slot>) -> PyResult<Bound<'_, PyType>> {
    // Python keeps pointers into the tables of members, attributes and methods.
    let members: &'static mut [ffi::PyMemberDef] = Box::leak(Box::new([
        ffi::PyMemberDef {
            name: c"__weaklistoffset__".as_ptr(),
            type_code: ffi::Py_T_PYSSIZET,
            offset: offset_of!(Object, weak) as ffi::Py_ssize_t,
            flags: ffi::Py_READONLY,
            doc: ptr::null(),
        },
        // SAFETY: an entry of zeros ends the table.
        unsafe { std::mem::zeroed() },
    ]));
    all.extend([
        slot(ffi::Py_tp_members, members.as_mut_ptr().cast()),
        slot(ffi::Py_tp_dealloc, dealloc as *mut c_void),
    ]);
    let (name, flags) = (c"mxnet.numpy.ndarray", ffi::Py_TPFLAGS_BASETYPE);
    // SAFETY: the tables that Python keeps are leaked; every function has the signature of its slot.
    let class = unsafe { typed::make::<PyArray>(py, name, flags, all) }?;
    class.setattr("__array_priority__", 1000.0)?;
    // Never freed.
    CLASS.store(class.clone().into_ptr().cast(), Ordering::Relaxed);
    Ok(class)
}

/// Free list: memory of deallocated objects, for reuse.
struct FreeList {
    objects: [*mut Object; FreeList::MAX_LEN],
    len: usize,
}

// SAFETY: the memory belongs to the list only, and any thread may use and free it.
unsafe impl Send for FreeList {}

static FREE_LIST: GilCell<FreeList> = GilCell::new(FreeList {
    objects: [ptr::null_mut(); FreeList::MAX_LEN],
    len: 0,
});

impl FreeList {
    /// Enough for the temporaries of an expression or of a few calls; about 16 KiB.
    const MAX_LEN: usize = 64;

    /// Memory for one object; `None` if there is none.
    #[inline]
    fn pop(&mut self) -> Option<*mut Object> {
        self.len = self.len.checked_sub(1)?;
        Some(self.objects[self.len])
    }

    /// Stores the memory of an object. Returns false if the list is full.
    #[inline]
    fn push(&mut self, object: *mut Object) -> bool {
        let Some(slot) = self.objects.get_mut(self.len) else {
            return false;
        };
        *slot = object;
        self.len += 1;
        true
    }
}

/// A new object of exactly this type with one reference. Its array is not initialised.
#[inline]
fn blank(py: Python<'_>) -> PyResult<*mut Object> {
    let memory = match FREE_LIST.change(py, FreeList::pop) {
        Some(memory) => memory,
        None => fresh()?,
    };
    // SAFETY: memory for an object, which is not shared yet.
    unsafe {
        ffi::PyObject_Init(memory.cast(), PyArray::type_object_raw(py));
        (&raw mut (*memory).weak).write(ptr::null_mut());
    }
    Ok(memory)
}

/// Memory for an object from Python's allocator.
#[cold]
#[inline(never)]
fn fresh() -> PyResult<*mut Object> {
    // SAFETY: the lock is held.
    let memory = unsafe { ffi::PyObject_Malloc(size_of::<Object>()) };
    if memory.is_null() {
        return Err(PyMemoryError::new_err(()));
    }
    Ok(memory.cast())
}

/// Frees the memory of an object and releases its reference to its class.
///
/// # Safety
/// No reference to the object is left, and its content has been dropped.
#[inline]
unsafe fn release(py: Python<'_>, object: *mut Object) {
    // SAFETY: 1. the caller's promise. 2. every object refers to its class, which knows how to free its memory. Objects of exactly this type have
    // the same size and come from `PyObject_Malloc`: Python allows `x.__class__ = ...` only for classes with the same size and deallocator.
    unsafe {
        let class = ffi::Py_TYPE(object.cast());
        if !ptr::eq(class, PyArray::type_object_raw(py)) {
            let free = ffi::PyType_GetSlot(class, ffi::Py_tp_free);
            std::mem::transmute::<*mut c_void, ffi::freefunc>(free)(object.cast());
        } else if !FREE_LIST.change(py, |kept| kept.push(object)) {
            ffi::PyObject_Free(object.cast());
        }
        ffi::Py_DECREF(class.cast());
    }
}

/// The deallocator of the type and of derived classes.
unsafe extern "C" fn dealloc(object: *mut ffi::PyObject) {
    // SAFETY: 1. Python calls it with the lock held, when no reference is left. 2. every such object begins like this.
    unsafe {
        let py = Python::assume_attached();
        let object = object.cast::<Object>();
        if !(*object).weak.is_null() {
            ffi::PyObject_ClearWeakRefs(object.cast());
        }
        let array = &raw mut (*object).value;
        if let Some(base) = (&raw mut (*array).base).replace(None) {
            ffi::Py_DECREF(base.into_ptr());
        }
        match (*array).drops_without_python(py) {
            true => ptr::drop_in_place(array),
            // PyO3 drops references immediately only where it knows that the lock is held.
            false => with_python(|_| ptr::drop_in_place(array)),
        }
        release(py, object);
    }
}

/// A new object that contains the result of `make`. It is not tracked by the garbage collector: arrays refer to no containers.
#[inline]
pub(super) fn new_object(py: Python<'_>, make: impl FnOnce() -> PyArray) -> PyResult<Py<PyArray>> {
    let write = |to: *mut PyArray| {
        // SAFETY: `to` is valid for writes.
        unsafe { to.write(make()) };
        true
    };
    // SAFETY: `write` initialises the object's content.
    let made = unsafe { new_object_if(py, write) }?;
    Ok(made.expect("it is always written"))
}

/// A new object whose content `write` constructs in place; `None` if `write` returns false. `write` runs no Python code.
///
/// # Safety
/// `write` initialises its argument if it returns true, and does not panic before that.
#[inline]
pub(super) unsafe fn new_object_if(
    py: Python<'_>,
    write: impl FnOnce(*mut PyArray) -> bool,
) -> PyResult<Option<Py<PyArray>>> {
    let object = blank(py)?;
    // SAFETY: the object is not shared yet; all of it but the content is initialised.
    unsafe {
        if !write(&raw mut (*object).value) {
            release(py, object);
            return Ok(None);
        }
        let object = Bound::from_owned_ptr(py, object.cast()).cast_into_unchecked::<PyArray>();
        Ok(Some(object.unbind()))
    }
}

/// A new object of `class` (the type or a derived class) that contains an array; its `__init__` is not called.
pub fn wrap_as(class: &Bound<'_, PyType>, array: Array) -> PyResult<Py<PyArray>> {
    let py = class.py();
    let own = PyArray::type_object(py);
    if class.is(&own) {
        return PyArray::wrap(py, array);
    }
    if !class.is_subclass(&own)? {
        return Err(PyTypeError::new_err(format!(
            "{} is not derived from mxnet.numpy.ndarray",
            class.name()?
        )));
    }
    // SAFETY: 1. a class derived from the type, whose allocator zeroes the memory after the head. 2. the new object begins like all of them.
    unsafe {
        let allocate = ffi::PyType_GetSlot(class.as_type_ptr(), ffi::Py_tp_alloc);
        let allocate = std::mem::transmute::<*mut c_void, ffi::allocfunc>(allocate);
        let object = allocate(class.as_type_ptr(), 0);
        if object.is_null() {
            return Err(PyErr::fetch(py));
        }
        (&raw mut (*object.cast::<Object>()).value).write(PyArray::of(array));
        let object = Bound::from_owned_ptr(py, object).cast_into_unchecked::<PyArray>();
        Ok(object.unbind())
    }
}
