//! Keyword arguments of calls in the vectorcall convention.

use pyo3::ffi;

/// Keyword arguments of a fast call.
pub struct Keywords {
    /// One borrowed object for each name.
    pub values: *const *mut ffi::PyObject,
    /// A tuple of strings, or null.
    pub names: *mut ffi::PyObject,
    /// Number of keyword arguments.
    pub len: usize,
}

impl Keywords {
    /// # Safety
    /// `names` is null or a tuple of strings, with one borrowed object each at `values`.
    pub unsafe fn new(values: *const *mut ffi::PyObject, names: *mut ffi::PyObject) -> Keywords {
        // SAFETY: null or a tuple, by the contract.
        let len = if names.is_null() {
            0
        } else {
            // SAFETY: a tuple of names, by the contract.
            unsafe { ffi::PyTuple_Size(names) as usize }
        };
        Keywords { values, names, len }
    }

    /// Name and value of keyword `i`.
    #[inline]
    pub fn get(&self, i: usize) -> (*mut ffi::PyObject, *mut ffi::PyObject) {
        debug_assert!(i < self.len);
        // SAFETY: `i < len`, by the contract of `new`.
        unsafe {
            (
                ffi::PyTuple_GetItem(self.names, i as ffi::Py_ssize_t),
                *self.values.add(i),
            )
        }
    }
}
