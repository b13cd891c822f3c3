//! Blocked attention and its gradients: `softmax(scale * q @ k.T + mask) @ v`.
//!
//! The scores of a block of queries and a block of keys stay in cache. When a later block has a larger score, the running sum of exponentials and
//! the running result are rescaled (Milakov and Gimelshein 2018; Dao et al. 2022). Each segment has its own number of queries and keys.

mod backward;
mod forward;

#[cfg(test)]
mod tests;

use crate::real::{Real, Shared, with_real};
use crate::{Elem, Threads};

/// Which keys a query attends to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// All keys of its segment.
    All,
    /// The keys up to and including the query's position in the segment.
    Causal,
}

/// Shapes of the operands, all dense: queries `(q rows, heads, dim)`, keys `(k rows, heads, dim)`, values `(k rows, heads, value_dim)`.
/// Segment `s` has the query rows `q_offsets[s]..q_offsets[s + 1]` and the key and value rows `k_offsets[s]..k_offsets[s + 1]`.
#[derive(Clone, Copy, Debug)]
pub struct Attention<'a> {
    /// Element type of all operands: `F32` or `F64`.
    pub elem: Elem,
    /// Row offsets of the segments of queries.
    pub q_offsets: &'a [i64],
    /// Row offsets of the segments of keys and values; as long as `q_offsets`.
    pub k_offsets: &'a [i64],
    /// Number of heads.
    pub heads: usize,
    /// Length of a query and of a key.
    pub dim: usize,
    /// Length of a value.
    pub value_dim: usize,
    /// Factor of the scores.
    pub scale: f64,
    /// Which keys a query attends to.
    pub pattern: Pattern,
}

/// An additive mask: one number for each query and key of a segment, added to the scores.
#[derive(Clone, Copy, Debug)]
pub struct Mask<'a> {
    /// First element.
    pub ptr: *const u8,
    /// For each segment, the offset of its mask from `ptr`, in elements.
    pub starts: &'a [isize],
    /// Stride between queries, in elements.
    pub row_stride: isize,
    /// Stride between keys, in elements.
    pub col_stride: isize,
}

// SAFETY: the mask is only read.
unsafe impl Sync for Mask<'_> {}

/// Number of queries in a block.
const QUERIES: usize = 64;
/// Number of keys in a block.
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

    /// Number of keys that at least one of the first `queries` queries attends to.
    fn num_visible(&self, queries: usize, keys: usize) -> usize {
        match self.pattern {
            Pattern::All => keys,
            Pattern::Causal => keys.min(queries),
        }
    }
}

/// Writes the result to `out`, shape `(q rows, heads, value_dim)`, and the log-sum-exp of each query's scores, which [`backward`] needs, to `lse`,
/// shape `(q rows, heads)`. A query without keys, or whose keys all have the mask -inf, gets zeros in `out` and -inf in `lse`.
///
/// # Panics
/// If `elem` is neither `F32` nor `F64`.
///
/// # Safety
/// Both offset arrays passed `segment::check` and have equal length; operands are dense, aligned and of the shapes in `g`; the mask has an element
/// for each query and key of each segment; the results overlap no operand.
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
    // SAFETY: same contract.
    with_real!(g.elem, T => unsafe {
        let s = |p: *const u8| Shared(p.cast_mut().cast::<T>());
        forward::run::<T>(threads, g, mask, [s(q), s(k), s(v)], s(out), s(lse));
    })
}

/// Operands of [`backward`].
#[derive(Clone, Copy, Debug)]
pub struct Saved {
    /// Queries.
    pub q: *const u8,
    /// Keys.
    pub k: *const u8,
    /// Values.
    pub v: *const u8,
    /// The result of [`forward`].
    pub out: *const u8,
    /// The log-sum-exp that [`forward`] wrote.
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
/// Same as for [`forward`].
pub unsafe fn backward(
    threads: &dyn Threads,
    g: &Attention,
    mask: Option<&Mask>,
    saved: &Saved,
    dq: *mut u8,
    dk: *mut u8,
    dv: *mut u8,
) {
    // SAFETY: same contract.
    with_real!(g.elem, T => unsafe {
        let s = |p: *const u8| Shared(p.cast_mut().cast::<T>());
        backward::run::<T>(threads, g, mask, saved, [s(dq), s(dk), s(dv)]);
    })
}

/// Adds the mask to a block of scores and sets the scores of keys after the query (causal attention) to -inf.
///
/// # Safety
/// `scores` has `rows` rows of `cols`; the mask covers the block.
unsafe fn add_mask<T: Real>(
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
                // SAFETY: inside the mask and the block (the caller guarantees it).
                unsafe { *scores.add(i * cols + j) += *mask.ptr.cast::<T>().offset(at) }
            }
        }
    }
    if g.pattern == Pattern::Causal {
        for i in 0..rows {
            let num_visible = (first_row + i + 1).saturating_sub(first_col).min(cols);
            // SAFETY: the last elements of row i of the block.
            unsafe {
                std::slice::from_raw_parts_mut(
                    scores.add(i * cols + num_visible),
                    cols - num_visible,
                )
                .fill(T::NEG_INFINITY);
            }
        }
    }
}
