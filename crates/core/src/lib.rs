//! The base of all operators: [`Array`], definitions ([`OpDef`]), parameters, modes and interpreters, plans, launch, autograd, floating-point errors,
//! the registry. The operators themselves are in crates that build on this one.

#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod args;
pub mod array;
pub mod atomic_file;
mod autocast;
pub mod autograd;
pub mod batching;
pub mod bind;
pub mod blas;
pub mod builtins;
pub mod call_site;
pub mod caller;
pub mod config;
pub mod context;
mod copying;
pub mod cpu;
pub mod creation;
mod declared;
pub mod device_kernels;
pub mod eager;
pub mod error;
pub mod files;
pub mod fp_errors;
mod generated;
pub mod interrupt;
pub mod invoke;
pub mod launch;
pub mod memory;
pub mod memory_order;
mod methods;
pub mod mode;
pub mod opdef;
mod out_arrays;
pub mod plan;
mod prepare;
pub mod profiler;
pub mod read;
pub mod registry;
pub mod rng;
pub mod serialised;
pub mod tiles;
pub mod types;
mod value;
pub mod workspace;

use smallvec::SmallVec;

pub use args::{Args, Attrs, Default, Param, ParamKind, Value};
pub use array::{Array, Element, waits};
pub use batching::{Batch, BatchContext};
pub use context::{
    CallContext, CompositeContext, EagerContext, InferContext, KernelContext, RngState, ViewContext,
};
pub use error::{Error, Fault, OperandFacts, Result, Tuple};
pub use invoke::{Call, dispatch, dispatch_into, invoke, invoke_with, invoke1, only};
pub use launch::Pool;
pub use methods::sum_to;
pub use opdef::{
    Amp, Bundle, Cost, Cpu, Expansion, Fold, Form, FpErrors, Grad, GradRule, Grads, InferFn,
    Inferred, Keep, Known, OnOverflow, OpDef, OutSpec, Pole, Probe, Rng, ScalarPart, Sparse,
    Surface, Viewed, Warned, Warning, Words, ZeroDimResult, one, one_of,
};
pub use read::{ArrayReadGuard, copy_if_ready, read_all};
pub use types::{
    DTypes, Lift, Out, Types, check_element, default_dtype, dtype_of_number, out_of_bounds,
    promoted, resolve_call,
};

/// Outputs of a call.
pub type Outputs = SmallVec<[Array; 1]>;
