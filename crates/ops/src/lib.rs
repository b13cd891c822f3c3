//! Every dense operator: one [`OpDef`] each in family files.

#![deny(unsafe_code)]
#![warn(missing_docs)]

mod families;
mod few;
mod lone;
mod quick;

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

pub use lone::{Lone, One, quick_elements};
use mxnet_core::*;
pub use quick::Quick;
