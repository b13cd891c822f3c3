//! Samplers. Element i of a result depends only on (seed, offset, i), not on the number of threads or on the instruction set.
//!
//! The generator is Philox 4x32-10 (`philox`). A sampler uses the counters `offset .. offset + blocks` and returns `blocks`; the caller advances its
//! offset by that. Samplers with rejection take further attempts from the same counter with a larger upper half, so they never use the counters of
//! other elements.

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
pub use choice::{categorical, distinct_integers, permutations, shuffle};
pub use counts::{Counts, fill_counts};
pub use fill::{Distribution, fill};
pub use gamma::{Scale, fill_gamma};
pub use integers::{integers, integers_between};
pub use philox::philox;
pub use rows::{multinomial, multivariate_hypergeometric};

/// State of the generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// The key.
    pub seed: u64,
    /// The first counter.
    pub offset: u64,
}

#[cfg(test)]
mod tests;
