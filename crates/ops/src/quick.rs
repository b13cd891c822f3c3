//! Copies of small arrays (`copies.rs`): made at the call, without inference and queue.
#![allow(unsafe_code)]

mod copies;

use mxnet_tensor::Scalar;

use crate::Array;

pub use copies::{duplicate, duplicate_fortran};

/// Up to this many elements the set-up of the general driver costs more than the work.
pub(crate) const SMALL_LEN: usize = 4096;

/// An operand: an array, or a Python number, which promotes by its kind only.
#[derive(Clone, Copy)]
pub enum Quick<'a> {
    /// An array.
    Array(&'a Array),
    /// A number, where it is: moving one costs more than looking at it, since it was written in parts a moment ago.
    Number(&'a Scalar),
}
