//! All kernels, by family. A family's file has its texts beside the functions that launch them.

use mxnet_core::Result;
use mxnet_tensor::DeviceKind;

mod map;

/// Adds the kernels of all families.
///
/// # Errors
/// [`mxnet_core::Error::Value`] if a kernel is of no operator.
pub(crate) fn register(kind: DeviceKind) -> Result<()> {
    map::register(kind)?;
    Ok(())
}

/// Every text, for every dtype it is made for, under its key: for tests that compile them all.
pub fn texts() -> Vec<(String, String)> {
    let mut texts = Vec::new();
    map::texts(&mut texts);
    texts
}
