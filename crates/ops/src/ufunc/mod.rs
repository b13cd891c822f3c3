//! Methods of binary elementwise functions: `reduce`, `accumulate`, `reduceat`, `outer`, `at`.
//!
//! `reduce.rs` chooses the implementation: a reduction operator with its own kernel, the general kernel, or a composition while a gradient is
//! recorded. `kernels.rs` has the general operators, `deliver.rs` the keywords `casting`, `order`, `out` and `where` of composite operators, `at.rs`
//! the in-place method, `dtype.rs` the dtypes a function has loops for.

mod at;
pub(crate) mod deliver;
mod dtype;
mod kernels;
mod reduce;

pub use at::{AT, at};
pub use dtype::{Loop, fold_dtype, loops, num_inputs, num_outputs};
pub use kernels::{FOLD, SEGMENTS, STEPS};
pub use reduce::{Initial, Reduction, accumulate, outer, reduce, reduceat};

use crate::opdef::OpDef;

pub(crate) static OPS: &[&OpDef] = &[&FOLD, &STEPS, &SEGMENTS, &AT];
