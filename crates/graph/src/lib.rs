//! Graphs of operator calls: traced from a function, optimised, compiled, run without Python, printed.
//!
//! [`trace::Tracer`] records the calls of a function as an [`ir::Graph`]. [`passes`] optimise it. [`compile::Executable`] plans its memory, prepares
//! the kernels and runs it, from many threads at once. [`model::Model`] reads a graph and its arrays from files.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod compile;
pub mod dynamic;
pub mod edit;
mod execute;
mod file;
mod fuse;
mod interpret;
pub mod ir;
pub mod model;
mod partition;
pub mod passes;
pub mod plan;
mod print;
mod provider;
pub mod random;
pub mod split;
pub mod trace;
mod verify;

pub use compile::{Executable, Options};
pub use dynamic::{Decision, Finished, Program, Sample, Symbol, Template, fit};
pub use interpret::RunDraws;
pub use ir::{BufferId, Graph, Input, Node, Operand, Source, View};
pub use model::Model;
pub use partition::{PartCall, can_be_taken, partition};
pub use provider::{Provider, set_provider};
pub use trace::{Traced, Tracer};
