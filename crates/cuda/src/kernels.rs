//! All kernels, by family. A family's file has its texts beside the functions that launch them.

use mxnet_core::Result;
use mxnet_tensor::DeviceKind;

mod axes;
mod copy;
mod create;
mod fold;
mod functions;
mod map;
mod norm;
mod operand;
mod reduce;
mod scan;
mod softmax;

/// Adds the kernels of all families.
///
/// # Errors
/// [`mxnet_core::Error::Value`] if a kernel is of no operator.
pub(crate) fn register(kind: DeviceKind) -> Result<()> {
    copy::register(kind)?;
    create::register(kind)?;
    functions::register(kind)?;
    norm::register(kind)?;
    reduce::register(kind)?;
    scan::register(kind)?;
    softmax::register(kind)?;
    Ok(())
}

/// Every text, for every dtype it is made for, under its key: for tests that compile them all.
pub fn texts() -> Vec<(String, String)> {
    let mut texts = Vec::new();
    copy::texts(&mut texts);
    create::texts(&mut texts);
    functions::texts(&mut texts);
    norm::texts(&mut texts);
    operand::texts(&mut texts);
    reduce::texts(&mut texts);
    scan::texts(&mut texts);
    softmax::texts(&mut texts);
    // Halves and float32 share texts.
    texts.sort();
    texts.dedup();
    texts
}
