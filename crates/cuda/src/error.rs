//! Failures of the driver, as errors.

use mxnet_tensor::error::DeviceError;
use mxnet_tensor::{Device, TensorError};

use crate::driver::{self, Status};

/// `CUDA_ERROR_OUT_OF_MEMORY`.
pub const OUT_OF_MEMORY: Status = 2;
/// `CUDA_ERROR_NOT_READY`.
pub const NOT_READY: Status = 600;

/// What the driver says of a status: its name and its sentence.
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

/// The error of a status of device `id`; `action` says what was tried.
#[cold]
pub fn failed(id: u32, action: &'static str, status: Status) -> TensorError {
    refused(id, action, message(status))
}

/// The error of something that device `id` does not do.
#[cold]
pub fn refused(id: u32, action: &'static str, problem: impl Into<Box<str>>) -> TensorError {
    DeviceError::Failed {
        device: Device::gpu(id),
        action,
        message: problem.into(),
    }
    .into()
}

/// `Ok` for the status of success.
///
/// # Errors
/// `Device` for every other one.
#[inline]
pub fn check(id: u32, action: &'static str, status: Status) -> Result<(), TensorError> {
    match status {
        0 => Ok(()),
        status => Err(failed(id, action, status)),
    }
}
