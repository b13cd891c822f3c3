//! Graphs for arrays of any size: one function traced at three sizes, the integers that differ as polynomials of the sizes.

mod fit;
mod json;
mod number;
mod template;
mod walk;

pub use fit::{Sample, fit};
pub use template::{Symbol, Template};
