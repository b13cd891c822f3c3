//! Attention: softmax of scaled products of queries and keys, times values, block by block, with gradients.
//!
//! The scores of a block of queries and a block of keys stay in cache; the sum of the exponentials and the result are rescaled when a later block
//! has a larger score (Milakov and Gimelshein 2018; Dao et al. 2022). Segments of queries and keys have sizes of their own.

mod backward;
mod forward;

#[cfg(test)]
mod tests;

use crate::real::{Real, Shared, with_real};
use crate::{Elem, Threads};

/// Which keys a query sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// All of its segment.
    All,
    /// Those up to the query's own place in the segment.
    Causal,
}

/// Shapes. Queries are `(q rows, heads, dim)`, keys `(k rows, heads, dim)`, values `(k rows, heads, value_dim)`, all dense; segment `s` holds the
/// rows `q_offsets[s]..q_offsets[s + 1]` of queries, and those of keys and values likewise.
#[derive(Clone, Copy, Debug)]
pub struct Attention<'a> {
    /// `F32` or `F64`, of all operands.
    pub elem: Elem,
    /// Segments of queries.
    pub q_offsets: &'a [i64],
    /// As many segments of keys and values.
    pub k_offsets: &'a [i64],
    /// Heads.
    pub heads: usize,
    /// Elements of a query and of a key.
    pub dim: usize,
    /// Elements of a value.
    pub value_dim: usize,
    /// Factor of the products.
    pub scale: f64,
    /// Which keys a query sees.
    pub sight: Sight,
}

/// Numbers added to the scores.
#[derive(Clone, Copy, Debug)]
pub struct Mask<'a> {
    /// The first one.
    pub ptr: *const u8,
    /// For each segment, how many elements behind the first its mask begins.
    pub starts: &'a [isize],
    /// Elements from one query to the next.
    pub row_stride: isize,
    /// Elements from one key to the next.
    pub col_stride: isize,
}

// SAFETY: it is only read.
unsafe impl Sync for Mask<'_> {}

/// Queries of a block.
const QUERIES: usize = 64;
/// Keys of a block.
const KEYS: usize = 256;

impl Attention<'_> {
    fn segments(&self) -> usize {
        self.q_offsets.len().saturating_sub(1)
    }

    fn queries(&self, s: usize) -> std::ops::Range<usize> {
        self.q_offsets[s] as usize..self.q_offsets[s + 1] as usize
    }

    fn keys(&self, s: usize) -> std::ops::Range<usize> {
        self.k_offsets[s] as usize..self.k_offsets[s + 1] as usize
    }

    /// Number of keys that any of the first `queries` queries sees.
    fn seen(&self, queries: usize, keys: usize) -> usize {
        match self.sight {
            Sight::All => keys,
            Sight::Causal => keys.min(queries),
        }
    }
}

/// `out` `(q rows, heads, value_dim)`, and `lse` `(q rows, heads)`: the logarithm of the sum of the exponentials of each query's scores, which
/// [`backward`] needs. A query that sees no key, or only keys with the mask -inf, has zeros and -inf.
///
/// # Panics
/// If `elem` is neither `F32` nor `F64`.
///
/// # Safety
/// The offsets passed `segment::check`, and there are equally many of both; operands are dense, aligned and of the sizes that `g` says; the mask has an
/// element for each query and key of each segment; results overlap nothing.
#[allow(clippy::too_many_arguments, reason = "the operator's operands")]
pub unsafe fn forward(
    threads: &dyn Threads,
    g: &Attention,
    mask: Option<&Mask>,
    q: *const u8,
    k: *const u8,
    v: *const u8,
    out: *mut u8,
    lse: *mut u8,
) {
    // SAFETY: forwarded.
    with_real!(g.elem, T => unsafe {
        let s = |p: *const u8| Shared(p.cast_mut().cast::<T>());
        forward::run::<T>(threads, g, mask, [s(q), s(k), s(v)], s(out), s(lse));
    })
}

/// What [`backward`] reads.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    /// Queries.
    pub q: *const u8,
    /// Keys.
    pub k: *const u8,
    /// Values.
    pub v: *const u8,
    /// The result of [`forward`].
    pub out: *const u8,
    /// What it found beside it.
    pub lse: *const u8,
    /// Cotangent of the result.
    pub dout: *const u8,
}

/// Gradients of [`forward`] with respect to queries, keys and values.
///
/// # Panics
/// If `elem` is neither `F32` nor `F64`.
///
/// # Safety
/// As [`forward`]'s.
pub unsafe fn backward(
    threads: &dyn Threads,
    g: &Attention,
    mask: Option<&Mask>,
    kept: &Kept,
    dq: *mut u8,
    dk: *mut u8,
    dv: *mut u8,
) {
    // SAFETY: forwarded.
    with_real!(g.elem, T => unsafe {
        let s = |p: *const u8| Shared(p.cast_mut().cast::<T>());
        backward::run::<T>(threads, g, mask, kept, [s(dq), s(dk), s(dv)]);
    })
}

/// Adds the mask to a block of scores, and hides later keys.
///
/// # Safety
/// `scores` has `rows` rows of `cols`; the mask reaches the block.
unsafe fn cover<T: Real>(
    g: &Attention,
    mask: Option<&Mask>,
    segment: usize,
    (first_row, rows): (usize, usize),
    (first_col, cols): (usize, usize),
    scores: *mut T,
) {
    if let Some(mask) = mask {
        let corner = mask.starts[segment]
            + first_row as isize * mask.row_stride
            + first_col as isize * mask.col_stride;
        for i in 0..rows {
            for j in 0..cols {
                let at = corner + i as isize * mask.row_stride + j as isize * mask.col_stride;
                // SAFETY: inside the mask and the block, by the caller.
                unsafe { *scores.add(i * cols + j) += *mask.ptr.cast::<T>().offset(at) }
            }
        }
    }
    if g.sight == Sight::Causal {
        for i in 0..rows {
            let seen = (first_row + i + 1).saturating_sub(first_col).min(cols);
            // SAFETY: the rest of row i of the block.
            unsafe {
                std::slice::from_raw_parts_mut(scores.add(i * cols + seen), cols - seen)
                    .fill(T::NEG_INFINITY);
            }
        }
    }
}
