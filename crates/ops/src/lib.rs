//! Every dense operator: one [`OpDef`] each in family files.

#![deny(unsafe_code)]
#![warn(missing_docs)]

mod families;
mod inline_scalar;
mod operand;
mod seqlock_read;

pub mod creation;
pub mod elementwise;
pub mod fft;
pub mod index;
pub mod linalg;
pub mod nn;
pub mod order;
pub mod random;
pub mod reduce;
pub mod shape;
pub mod signal;
pub mod ufunc;

pub use inline_scalar::{ElementOperand, InlineScalar, apply_to_elements};
use mxnet_core::*;
pub use operand::Operand;
