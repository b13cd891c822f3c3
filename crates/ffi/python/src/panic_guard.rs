//! Bodies of C functions: errors and panics become Python exceptions.

use std::ptr;

use pyo3::ffi;
use pyo3::prelude::*;

use crate::error::raise;
use crate::gil_release::with_python;

/// Runs `body` for a C function that returns an object: errors and panics become Python exceptions.
#[inline]
pub fn guarded(
    py: Python<'_>,
    op: &'static str,
    body: impl FnOnce() -> PyResult<Py<PyAny>>,
) -> *mut ffi::PyObject {
    guarded_or(py, op, ptr::null_mut(), || body().map(Py::into_ptr))
}

/// The same for a C function that answers `failed` where an exception is set.
#[inline]
pub fn guarded_or<T>(
    py: Python<'_>,
    op: &'static str,
    failed: T,
    body: impl FnOnce() -> PyResult<T>,
) -> T {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)) {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => {
            // PyO3 drops immediately the references that the call released before the error.
            with_python(|py| error.restore(py));
            failed
        }
        Err(panic) => {
            raise(py, mxnet::core::Error::from_panic(op, panic)).restore(py);
            failed
        }
    }
}
