//! `ufunc` objects in memory: their fields, their type and their names. `object.rs` builds the type.

use std::collections::HashMap;
use std::sync::OnceLock;

use mxnet::core::OpDef;
use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::call::Binding;
use crate::once_box::OnceBox;

/// A `ufunc` object in memory.
#[repr(C)]
pub(super) struct Object {
    pub head: ffi::PyObject,
    /// The vectorcall function; Python finds it by its offset.
    pub call: Option<Vectorcall>,
    pub binding: &'static Binding,
}

pub(super) type Vectorcall = unsafe extern "C" fn(
    *mut ffi::PyObject,
    *const *mut ffi::PyObject,
    usize,
    *mut ffi::PyObject,
) -> *mut ffi::PyObject;

pub(super) static TYPE: OnceBox<Py<PyType>> = OnceBox::new();
/// The objects by the names of their operators and NumPy's names.
pub(super) static OBJECTS: OnceLock<HashMap<&'static str, Py<PyAny>>> = OnceLock::new();

/// The binding of a `ufunc`; `None` for other objects.
fn binding(object: &Bound<'_, PyAny>) -> Option<&'static Binding> {
    let class = TYPE.get()?;
    if !object.get_type().is(class.bind(object.py())) {
        return None;
    }
    // SAFETY: objects of the type are only made by `make` (it cannot be instantiated or subclassed), so this is an `Object`.
    Some(unsafe { (*object.as_ptr().cast::<Object>()).binding })
}

/// Whether an object is of this type.
pub fn is_ufunc(object: &Bound<'_, PyAny>) -> bool {
    binding(object).is_some()
}

/// The operator of a method's `self`.
pub(super) fn operator(object: &Bound<'_, PyAny>) -> PyResult<&'static OpDef> {
    binding(object)
        .map(|b| b.op)
        .ok_or_else(|| PyValueError::new_err("self is not a ufunc"))
}

/// The ufunc with this name in the registry or in NumPy.
pub fn find(py: Python<'_>, name: &str) -> Option<Py<PyAny>> {
    Some(OBJECTS.get()?.get(name)?.clone_ref(py))
}

/// The ufunc with this name, for unpickling.
#[pyfunction]
pub fn _ufunc(py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
    find(py, name).ok_or_else(|| PyValueError::new_err(format!("no ufunc is called '{name}'")))
}
