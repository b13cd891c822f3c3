//! Ownership of structures of Arrow's C data interface, which Python code fills in.
//!
//! Consumers call `release`, and destroy capsules, also while a Python error is set and from threads without the GIL. So these callbacks are not
//! written in Python.
//!
//! Source: the Arrow C data interface and the Arrow PyCapsule interface.

use std::ffi::{CStr, c_char, c_void};

use pyo3::ffi;
use pyo3::prelude::*;

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";

/// What both structures have in common: children, and the owner of the memory.
trait Node: Sized {
    const NAME: &'static CStr;
    fn children(&self) -> (i64, *mut *mut Self);
    fn release(&mut self) -> &mut Option<unsafe extern "C" fn(*mut Self)>;
    fn owner(&mut self) -> &mut *mut c_void;
}

#[repr(C)]
struct Schema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut Schema,
    dictionary: *mut Schema,
    release: Option<unsafe extern "C" fn(*mut Schema)>,
    private_data: *mut c_void,
}

#[repr(C)]
struct Array {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut Array,
    dictionary: *mut Array,
    release: Option<unsafe extern "C" fn(*mut Array)>,
    private_data: *mut c_void,
}

macro_rules! node {
    ($structure:ident, $name:expr) => {
        impl Node for $structure {
            const NAME: &'static CStr = $name;

            fn children(&self) -> (i64, *mut *mut Self) {
                (self.n_children, self.children)
            }

            fn release(&mut self) -> &mut Option<unsafe extern "C" fn(*mut Self)> {
                &mut self.release
            }

            fn owner(&mut self) -> &mut *mut c_void {
                &mut self.private_data
            }
        }
    };
}
node!(Schema, SCHEMA);
node!(Array, ARRAY);

/// Capsules of a schema and an array, which are released by their consumer or with the capsules.
///
/// Parameters
/// ----------
/// schema, array : int
///     Addresses of structures whose members for ownership are not set, with children likewise.
/// owner : object
///     Holds the memory of the structures, and what they point to.
///
/// Returns
/// -------
/// tuple of two capsules
#[pyfunction]
pub fn arrow_capsules(
    py: Python<'_>,
    schema: usize,
    array: usize,
    owner: &Bound<'_, PyAny>,
) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
    // SAFETY: the caller passes addresses of such structures, which `owner` keeps alive.
    unsafe {
        Ok((
            capsule(py, schema as *mut Schema, owner)?,
            capsule(py, array as *mut Array, owner)?,
        ))
    }
}

/// # Safety
/// `node` is a structure that `owner` keeps alive, as are its children.
unsafe fn capsule<T: Node>(
    py: Python<'_>,
    node: *mut T,
    owner: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    // SAFETY: the structure is alive by the contract. The capsule has a reference to the owner of its own, because a consumer moves the
    // structure out of it.
    unsafe {
        let made = ffi::PyCapsule_New(node.cast(), T::NAME.as_ptr(), Some(drop_capsule::<T>));
        let made = Bound::from_owned_ptr_or_err(py, made)?;
        own(node, owner);
        ffi::PyCapsule_SetContext(made.as_ptr(), owner.clone().into_ptr().cast());
        Ok(made.unbind())
    }
}

/// Gives a structure and its children a reference to the owner each, because a consumer may keep a child alone.
///
/// # Safety
/// As for `capsule`.
unsafe fn own<T: Node>(node: *mut T, owner: &Bound<'_, PyAny>) {
    // SAFETY: by the contract.
    unsafe {
        let (count, children) = (*node).children();
        for i in 0..usize::try_from(count).unwrap_or(0) {
            own(*children.add(i), owner);
        }
        *(*node).owner() = owner.clone().into_ptr().cast();
        *(*node).release() = Some(release::<T>);
    }
}

/// The callback of a structure: releases the children that are left, then the owner.
unsafe extern "C" fn release<T: Node>(node: *mut T) {
    // SAFETY: the consumer passes a structure that `own` has set up, perhaps moved, once. The owner keeps the children alive until the end.
    unsafe {
        let (count, children) = (*node).children();
        for i in 0..usize::try_from(count).unwrap_or(0) {
            let child = *children.add(i);
            if let Some(release) = *(*child).release() {
                release(child);
            }
        }
        let owner = *(*node).owner();
        *(*node).release() = None;
        drop_reference(owner.cast());
    }
}

/// Destructor of a capsule.
unsafe extern "C" fn drop_capsule<T: Node>(capsule: *mut ffi::PyObject) {
    // SAFETY: Python passes a capsule of `capsule`. If its structure was moved, `release` in it is empty.
    unsafe {
        let node = ffi::PyCapsule_GetPointer(capsule, T::NAME.as_ptr()).cast::<T>();
        let owner = ffi::PyCapsule_GetContext(capsule);
        if let Some(release) = *(*node).release() {
            release(node);
        }
        drop_reference(owner.cast());
    }
}

/// Drops a reference, which may run Python code, in any thread and while an error is set.
///
/// # Safety
/// The caller owns the reference.
unsafe fn drop_reference(object: *mut ffi::PyObject) {
    // SAFETY: the interpreter is initialised. A finalised one frees no objects any more.
    unsafe {
        if ffi::Py_IsInitialized() == 0 {
            return;
        }
        let state = ffi::PyGILState_Ensure();
        let mut kind = std::ptr::null_mut();
        let (mut value, mut traceback) = (kind, kind);
        ffi::PyErr_Fetch(&mut kind, &mut value, &mut traceback);
        ffi::Py_DecRef(object);
        ffi::PyErr_Restore(kind, value, traceback);
        ffi::PyGILState_Release(state);
    }
}
