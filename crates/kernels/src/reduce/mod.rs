//! Reductions over any set of axes of a strided view. The blocking depends only on the sizes.
//!
//! [`reduce`] folds with one associative operator, [`reduce_computed`] does so with elements that are computed when they are read, [`arg_reduce`] finds positions, [`moments`] and [`log_sum_exp`] have
//! two numbers per output. Scans are in `scan`, reductions over windows in `pool`.

mod arg;
mod blocks;
mod computed;
mod count;
mod elements;
#[cfg(test)]
pub(crate) mod fixtures;
mod fold;
pub(crate) mod kernel;
pub(crate) mod number;
pub(crate) mod plan;
pub(crate) mod product;
mod stats;
mod types;

pub use arg::{Extreme, arg_reduce, arg_reduce_contiguous};
pub use computed::{ComputeRow, Computed, num_tasks_computed, reduce_computed};
pub(crate) use count::count_bytes;
pub use fold::Reduce;
pub(crate) use kernel::by_isa;
pub(crate) use number::{Number, with_elem};
pub use stats::{Moments, log_sum_exp, moments};
pub(crate) use types::Types;

use crate::{Elem, Threads};

/// Reduces `src` over the axes marked in `axes` into `out`.
///
/// Sums and products of bool and integers accumulate in 64 bits (in f64 for a float output and for the mean), f16, bf16 and f32 in
/// f32, or in f64 if `out` is f64, complex in the wider of the two types. Floating-point sums use independent lanes and combine blocks in a
/// fixed binary tree, so that rounding errors grow with the logarithm of the length. A product of floats that over- or underflows in this
/// order is computed again in the order of the elements. Results do not depend on `threads`.
///
/// # Safety
/// Every element of `src` can be read and every element of `out` (along the kept axes) can be written; `out` does not overlap `src`
/// and its elements do not overlap each other; `axes` and both strides have one entry per axis of `src`.
pub unsafe fn reduce(threads: &dyn Threads, op: Reduce, src: &Source, axes: &[bool], out: &Target) {
    // The extremes of truth values say whether any or all are true, which is often known before the end.
    let op = match op {
        Reduce::Max if (src.elem, out.elem) == (Elem::Bool, Elem::Bool) => Reduce::Any,
        Reduce::Min if (src.elem, out.elem) == (Elem::Bool, Elem::Bool) => Reduce::All,
        _ => op,
    };
    // SAFETY: guaranteed by the caller.
    unsafe { fold::reduce(threads, op, src, axes, out) };
    if op == Reduce::Prod {
        // SAFETY: guaranteed by the caller; the products are written.
        unsafe { product::recompute(threads, src, axes, out) };
    }
}

/// A strided array to read.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The element with index 0 on every axis.
    pub ptr: *const u8,
    /// Element type.
    pub elem: Elem,
    /// Length of every axis.
    pub shape: &'a [usize],
    /// Byte strides; negative and zero are allowed.
    pub strides: &'a [isize],
}

/// Output of a reduction.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// The element with index 0 on every axis.
    pub ptr: *mut u8,
    /// Element type; the result is converted to it.
    pub elem: Elem,
    /// Byte strides, one per axis of the *source*; those of reduced axes are ignored.
    pub strides: &'a [isize],
}

// SAFETY: a `Source` is only read, and the caller of every kernel keeps its memory alive and unchanged.
unsafe impl Sync for Source<'_> {}
// SAFETY: the drivers give every task its own outputs, so that no two threads write the same element.
unsafe impl Sync for Target<'_> {}
