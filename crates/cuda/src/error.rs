//! Conversion of driver failures to errors.

use mxnet_tensor::error::DeviceError;
use mxnet_tensor::{Device, TensorError};

use crate::driver::{self, Status};

/// `CUDA_ERROR_OUT_OF_MEMORY`.
pub const OUT_OF_MEMORY: Status = 2;
/// `CUDA_ERROR_NOT_READY`.
pub const NOT_READY: Status = 600;

/// Name and description of a status.
pub fn message(status: Status) -> String {
    let Ok(driver) = driver::get() else {
        return format!("CUDA error {status}");
    };
    format!(
        "{} ({})",
        driver.error_name(status),
        driver.error_text(status)
    )
}

/// The error for a status of device `id`; `action` says what was attempted.
#[cold]
pub fn failed(id: u32, action: &'static str, status: Status) -> TensorError {
    refused(id, action, message(status))
}

/// The error for something that device `id` does not support.
#[cold]
pub fn refused(id: u32, action: &'static str, problem: impl Into<Box<str>>) -> TensorError {
    DeviceError::Failed {
        device: Device::gpu(id),
        action,
        message: problem.into(),
    }
    .into()
}

/// `Ok` for the status 0.
///
/// # Errors
/// `Device` for every other status.
#[inline]
pub fn check(id: u32, action: &'static str, status: Status) -> Result<(), TensorError> {
    match status {
        0 => Ok(()),
        status => Err(failed(id, action, status)),
    }
}
