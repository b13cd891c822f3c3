//! Samplers. Element i of a fill depends on (seed, offset, i) and on nothing else: not on threads, not on the instruction set's width.
//!
//! The generator is Philox 4x32-10 (`philox`). A fill of n elements uses the counters `offset .. offset + blocks`, as it says; the caller
//! moves its offset on by that. Samplers that reject draw their next try from the same counter with a higher upper half, so they never run
//! into other elements' numbers.

mod alias;
mod angles;
mod choice;
mod counts;
mod fill;
mod gamma;
mod integers;
mod math;
mod philox;
mod rows;
mod series;
mod source;

pub use angles::fill_angles;
pub use choice::{categorical, different, permutations, shuffle};
pub use counts::{Counts, fill_counts};
pub use fill::{Distribution, fill};
pub use gamma::{Scale, fill_gamma, gamma_slopes};
pub use integers::{integers, integers_between};
pub use philox::philox;
pub use rows::{multinomial, multivariate_hypergeometric};

/// Where random numbers come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// The key.
    pub seed: u64,
    /// The first counter.
    pub offset: u64,
}

#[cfg(test)]
mod tests;
