//! Memory that is shared with other libraries: whether an array may share it, and when its elements are complete.

use mxnet::core::Array;
use mxnet::core::array::count_host_read;
use mxnet::core::mode;
use mxnet::engine::{Access, engine};
use mxnet::tensor::Device;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::raise;
use crate::gil_release::without_gil;

/// Whether an array may share the memory of another library's array.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// Yes; writes are visible on both sides.
    Allowed,
    /// No: the elements are copied.
    Never,
    /// It must: an error if a copy is needed.
    Required,
}

impl Sharing {
    /// To be called if a copy is needed.
    ///
    /// # Errors
    /// `ValueError` for [`Sharing::Required`].
    pub fn copies(self, why: &str) -> PyResult<()> {
        match self {
            Sharing::Required => Err(PyValueError::new_err(format!(
                "copy=False was asked for, but a copy is needed: {why}"
            ))),
            Sharing::Allowed | Sharing::Never => Ok(()),
        }
    }

    /// The same, but `Allowed` instead of `Never`, for a source that is copied afterwards.
    pub fn or_allowed(self) -> Sharing {
        match self {
            Sharing::Never => Sharing::Allowed,
            other => other,
        }
    }
}

/// Runs a call on memory of another library. In a trace its result is a constant, as an array over this memory is.
pub fn of_foreign<R>(call: impl FnOnce() -> R) -> R {
    match mode::is_tracing() {
        true => mode::outside(call),
        false => call(),
    }
}

/// A copy whose elements are complete when this returns, so that the caller may change the source.
pub fn complete_copy(py: Python<'_>, array: &Array) -> PyResult<Array> {
    let copy = of_foreign(|| array.copy_in("K")).map_err(|error| raise(py, error))?;
    without_gil(py, || copy.wait_to_read()).map_err(|error| raise(py, error))?;
    Ok(copy)
}

/// Marks the storage as visible to foreign code, and waits for all writes pushed before.
///
/// The mark is set before the wait: a thread that pushes a write after it sees the mark and waits for its own write.
pub fn complete_for_others(py: Python<'_>, array: &Array) -> PyResult<()> {
    if is_complete_for_others(array) {
        return Ok(());
    }
    without_gil(py, || array.wait_to_write()).map_err(|error| raise(py, error))
}

/// Marks the storage as [`complete_for_others`] does. Returns whether no write is pending.
pub fn is_complete_for_others(array: &Array) -> bool {
    let storage = array.tensor().storage();
    storage.mark_shared();
    let hold = engine().try_hold(storage.var(), Access::Write, 0);
    if hold.is_some() {
        count_host_read();
    }
    hold.is_some()
}

/// Error text: NumPy cannot share the memory of a device.
pub fn on_device(device: Device) -> String {
    format!("the array is on {device}, whose memory the CPU cannot access: use asnumpy()")
}
