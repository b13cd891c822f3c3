//! Every dense operator: one [`OpDef`] each in family files, [`Array`], [`invoke`] and the autograd tape.

#![deny(unsafe_code)]
#![warn(missing_docs)]

mod args;
mod array;
pub mod autograd;
mod cpu;
mod cx;
mod eager;
mod error;
mod few;
pub mod floats;
pub mod interp;
pub mod interrupt;
mod invoke;
mod laid;
mod launch;
mod lone;
mod methods;
mod opdef;
pub mod origin;
pub mod plan;
mod quick;
mod read;
pub mod registry;
mod types;
pub mod variants;

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

use smallvec::SmallVec;

pub use args::{Args, Attrs, Default, Param, ParamKind, Value};
pub use array::{Array, Element, waits};
pub use cx::{CallCx, CompositeCx, EagerCx, InferCx, KernelCx, RngState, ViewCx};
pub use error::{Error, Fault, OperandFacts, Result, Tuple};
pub use invoke::{Call, dispatch, dispatch_into, invoke, invoke_with, invoke1, only};
pub use launch::Pool;
pub use lone::{Lone, One, quick_elements};
pub use opdef::{
    Amp, Bundle, Cost, Cpu, Cuda, Fold, Form, Grad, GradRule, Grads, InferFn, Inferred, Keep,
    OfNumber, Onnx, OpDef, OutSpec, Probe, Rng, Sole, Sparse, Surface, Viewed, Warned, Warning,
    Words, one, one_of,
};
pub use quick::Quick;
pub use read::{ArrayReadGuard, copy_at_hand, read_all};
pub use types::{
    DTypes, Lift, Out, Types, check_element, default_dtype, dtype_of_number, out_of_bounds,
    promoted, resolve_call,
};

/// Outputs of a call.
pub type Outputs = SmallVec<[Array; 1]>;
