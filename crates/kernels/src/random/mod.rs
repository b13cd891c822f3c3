//! Samplers. Element i of a fill depends on (seed, offset, i) and on nothing else: not on threads, not on the instruction set's width.
//!
//! The generator is Philox 4x32-10 (`philox`). A fill of n elements uses the counters `offset .. offset + blocks(n)`; the caller moves its
//! offset on by that. Samplers that reject draw their next try from the same counter with a higher upper half, so they never run into
//! other elements' numbers.

mod choice;
mod fill;
mod math;
mod philox;
mod reject;

pub use choice::{categorical, permutation};
pub use fill::{Distribution, fill};
pub use philox::philox;
pub use reject::{Parameter, Rejecting, fill_binomial, fill_rejecting, integers};

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
