//! A tensor engine: arrays, automatic differentiation, optimizers and files.
//!
//! ```
//! use mxnet::{Array, record};
//!
//! # fn main() -> mxnet::Result<()> {
//! let mut x = Array::from_slice(&[1.0_f32, 2.0, 3.0], &[3])?;
//! x.attach_grad()?;
//! let y = record(|| (&x * &x + &x)?.sum())?;
//! y.backward()?;
//! assert_eq!(x.grad()?.to_vec::<f32>()?, [3.0, 5.0, 7.0]);
//! # Ok(())
//! # }
//! ```
//!
//! [`Array`] has operators on references and indexing by ranges; [`call`] calls any operator of the registry by name; [`optimizer`] has update rules,
//! [`random`] random arrays, [`profiler`] shows where the time goes, [`runtime`] what the machine has, [`save`] and [`load`] handle files,
//! [`dlpack`] shares memory with other libraries. Everything
//! that can fail returns a [`Result`]. Operators such as `&a * &b` also take results as operands, so `(&a * &b + &c)?` needs one `?`.
//! Rust allows no such operator for a result and a number, or two results: write `((&a * &b)? + 1.0)?`.
//!
//! Features: `image`, `simulated`, `module` and `cuda` are on by default. With `default-features = false, features = ["cpu"]` the crate supports the
//! CPU only.
//!
//! The crates of the engine are re-exported: [`core`] has the call path, [`ops`] the operators, [`tensor`] data types, layouts and devices,
//! [`engine`] the scheduler.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod array;
mod autograd;
mod construct;
mod display;
pub mod dlpack;
mod elementwise;
mod file;
mod graph_file;
mod index;
mod operators;
pub mod optimizer;
pub mod profiler;
pub mod random;
mod reductions;
pub mod runtime;

pub use mxnet_core as core;
#[cfg(feature = "cuda")]
pub use mxnet_cuda as cuda;
pub use mxnet_engine as engine;
pub use mxnet_graph as graph;
#[cfg(feature = "image")]
pub use mxnet_image as image;
#[cfg(feature = "module")]
pub use mxnet_module as module;
pub use mxnet_ops as ops;
pub use mxnet_ragged as ragged;
#[cfg(feature = "simulated")]
pub use mxnet_simulated as simulated;
pub use mxnet_sparse as sparse;
pub use mxnet_tensor as tensor;

pub use array::{Array, call};
pub use autograd::{grad, record, without_recording};
pub use construct::{concatenate, stack};
pub use elementwise::where_;
pub use file::{from_bytes, load, save, to_bytes};
pub use graph_file::Graph;
pub use index::{Ellipsis, IndexPart, IntoIndex, NewAxis, Step, StepRange, step};
pub use mxnet_core::autograd::GradReq;
pub use mxnet_core::bind::Given;
pub use mxnet_core::config;
pub use mxnet_core::{Element, Error, Result};
pub use mxnet_tensor::{DType, Device};
