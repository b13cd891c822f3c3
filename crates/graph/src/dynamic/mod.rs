//! Graphs for arrays of any size: one function traced at three sizes, the integers that differ as polynomials of the sizes.

mod fit;
mod json;
mod number;
mod program;
mod template;
mod walk;

pub use fit::{Decision, Sample, fit};
pub use program::{Finished, Program};
pub use template::{Symbol, Template};
