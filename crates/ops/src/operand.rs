//! Operands of the fast paths for element access.

use mxnet_tensor::Scalar;

use crate::Array;

/// An operand: an array, or a Python number, which promotes by its kind only.
#[derive(Clone, Copy)]
pub enum Operand<'a> {
    /// An array.
    Array(&'a Array),
    /// A Python number, by reference: copying a value that was just written in parts stalls on the store buffer.
    Number(&'a Scalar),
}
