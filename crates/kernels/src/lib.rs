//! Typed CPU loops over pointers, byte strides and lengths.
//!
//! This crate knows nothing of arrays, operators or Python: callers guarantee bounds, allocate outputs and provide threads.
//! Every entry point is an `unsafe fn` (or a table of them) whose `# Safety` section lists what the caller must guarantee.

#![warn(missing_docs)]

pub mod elem;
pub mod isa;
pub mod threads;

mod nd;

pub mod cast;
pub mod copy;
pub mod map;
pub mod reduce;
pub mod scan;

pub mod bits;
pub mod index;
pub mod polynomial;
pub mod random;
pub mod sequence;
pub mod sort;
pub mod update;

mod lanes;
mod panels;
mod prefetch;
pub mod real;
pub mod scratch;
#[cfg(test)]
mod values;

pub mod attention;
pub mod calibration;
pub mod conv;
pub mod ctc;
pub mod gemm;
pub mod int8;
pub mod linear;
pub mod norm;
pub mod pool;
pub mod regions;
pub mod rnn;
pub mod segment;
pub mod softmax;
pub mod sparse;
pub mod window;

pub use elem::Elem;
pub use real::UnsupportedElem;
pub use threads::{Scoped, Serial, Threads};
