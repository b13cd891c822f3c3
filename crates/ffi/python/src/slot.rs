//! Slots of classes that PyO3 makes, given other functions.
//!
//! The stable ABI can tell what a slot of a class holds, and has no way to change it. But all slots of a class lie within the class object; where
//! exactly one of its words is the function, that word is the slot. If ever there is none, or there are two, PyO3's function stays.

use std::ffi::{c_int, c_void};

use pyo3::prelude::*;
use pyo3::types::PyType;
use pyo3::{PyTypeInfo, ffi, intern};

/// A word of a class that holds a function.
pub struct Slot {
    place: *mut *mut c_void,
    /// What it holds.
    pub usual: *mut c_void,
}

impl Slot {
    /// The slot with this number (`ffi::Py_nb_add`, ...), if it is found.
    pub fn find(class: &Bound<'_, PyType>, number: c_int) -> PyResult<Option<Slot>> {
        let py = class.py();
        // Bytes of a class: of an object of the class of classes.
        let bytes = PyType::type_object(py).getattr(intern!(py, "__basicsize__"))?;
        let len = bytes.extract::<usize>()? / size_of::<*mut c_void>();
        // SAFETY: this only looks at the class.
        let usual = unsafe { ffi::PyType_GetSlot(class.as_type_ptr(), number) };
        let first = class.as_ptr().cast::<*mut c_void>();
        let words = (0..len).map(|i| first.wrapping_add(i));
        // SAFETY: a class that was made from a specification, of so many words; the lock is held.
        let mut found = words.filter(|&word| unsafe { word.read() } == usual);
        Ok(match (found.next(), found.next()) {
            (Some(place), None) if !usual.is_null() => Some(Slot { place, usual }),
            _ => None,
        })
    }

    /// Puts another function there.
    ///
    /// # Safety
    /// It is one that this slot is called as.
    pub unsafe fn put(&self, function: *mut c_void) {
        // SAFETY: a word of a class, which only changes while the lock is held, as it is.
        unsafe { self.place.write(function) };
    }
}
