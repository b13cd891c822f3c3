//! Operands of the fast paths for element access.

use mxnet_tensor::Scalar;

use crate::Array;

/// An operand: an array, or a Python number, which promotes by its kind only.
#[derive(Clone, Copy)]
pub enum Operand<'a> {
    /// An array.
    Array(&'a Array),
    /// A number, where it is: moving one costs more than looking at it, since it was written in parts a moment ago.
    Number(&'a Scalar),
}
