//! Arrays filled with one value.

use mxnet_tensor::{DType, Device, DeviceKind, Scalar, Tensor};

use crate::Array;
use crate::args::{Attrs, Value};
use crate::builtins::builtins;
use crate::error::Result;
use crate::invoke::invoke1;
use crate::mode::Flags;

/// An array of `value`.
///
/// # Errors
/// [`crate::Error::Memory`].
pub fn full(shape: &[usize], value: Scalar, dtype: DType, device: Device) -> Result<Array> {
    let attrs: Attrs = [
        Value::from(shape),
        Value::Scalar(value),
        Value::DType(dtype),
        Value::Device(device),
    ]
    .into_iter()
    .collect();
    invoke1(builtins().filled, &[], &attrs)
}

/// An array of zeros.
///
/// # Errors
/// [`crate::Error::Memory`].
pub fn zeros(shape: &[usize], dtype: DType, device: Device) -> Result<Array> {
    if device.kind() == DeviceKind::Cpu && Flags::current().allows_copies() {
        return Ok(Array::from_tensor(Tensor::zeros(shape, dtype, device)?));
    }
    full(shape, Scalar::I64(0), dtype, device)
}

/// An array of ones.
///
/// # Errors
/// [`crate::Error::Memory`].
pub fn ones(shape: &[usize], dtype: DType, device: Device) -> Result<Array> {
    full(shape, Scalar::I64(1), dtype, device)
}
