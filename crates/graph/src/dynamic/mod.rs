//! Graphs for arrays of any size: a function is traced at three sizes, and integers that differ become polynomials of the sizes.

mod fit;
mod json;
pub mod number;
mod program;
mod template;
mod walk;

pub use fit::{Decision, Sample, fit};
pub use program::{Finished, Program};
pub use template::{Symbol, Template};
