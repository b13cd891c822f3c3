//! All kernels by family. The file of a family contains its sources and the functions that launch them.

use mxnet_core::Result;
use mxnet_tensor::DeviceKind;

mod along;
mod attention;
mod axes;
mod boxes;
mod conv;
mod copy;
mod create;
mod factor;
mod fold;
mod functions;
mod index;
mod loss;
mod map;
mod matmul;
mod norm;
mod operand;
mod order;
mod pool;
mod random;
mod reduce;
mod rnn;
mod scan;
mod segment;
mod slide;
mod softmax;
mod sparse;
mod ufunc;
mod update;

/// Adds the kernels of all families.
///
/// # Errors
/// [`mxnet_core::Error::Value`] if a kernel names an unknown operator.
pub(crate) fn register(kind: DeviceKind) -> Result<()> {
    along::register(kind)?;
    attention::register(kind)?;
    boxes::register(kind)?;
    conv::register(kind)?;
    copy::register(kind)?;
    create::register(kind)?;
    factor::register(kind)?;
    functions::register(kind)?;
    index::register(kind)?;
    loss::register(kind)?;
    matmul::register(kind)?;
    norm::register(kind)?;
    order::register(kind)?;
    pool::register(kind)?;
    random::register(kind)?;
    reduce::register(kind)?;
    rnn::register(kind)?;
    scan::register(kind)?;
    segment::register(kind)?;
    slide::register(kind)?;
    softmax::register(kind)?;
    sparse::register(kind)?;
    ufunc::register(kind)?;
    update::register(kind)?;
    Ok(())
}

/// All kernel sources for all of their dtypes, under their keys, for tests that compile them.
pub fn texts() -> Vec<(String, String)> {
    let mut texts = Vec::new();
    along::texts(&mut texts);
    attention::texts(&mut texts);
    boxes::texts(&mut texts);
    conv::texts(&mut texts);
    copy::texts(&mut texts);
    create::texts(&mut texts);
    factor::texts(&mut texts);
    functions::texts(&mut texts);
    index::texts(&mut texts);
    loss::texts(&mut texts);
    matmul::texts(&mut texts);
    norm::texts(&mut texts);
    operand::texts(&mut texts);
    order::texts(&mut texts);
    pool::texts(&mut texts);
    random::texts(&mut texts);
    reduce::texts(&mut texts);
    rnn::texts(&mut texts);
    scan::texts(&mut texts);
    segment::texts(&mut texts);
    slide::texts(&mut texts);
    softmax::texts(&mut texts);
    sparse::texts(&mut texts);
    ufunc::texts(&mut texts);
    update::texts(&mut texts);
    // f16, bf16 and float32 share sources.
    texts.sort();
    texts.dedup();
    texts
}
