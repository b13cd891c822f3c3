//! Sliding-window attention: products of each row with the rows in a window around it.
//!
//! Operands are dense: rows `(batch, length, heads, dim)`, scores `(batch, length, heads, width)`. Score `j` of row `i` belongs to row
//! `i + dilation * (j - before)`, with one dilation per head; rows outside of the sequence count as 0.

use crate::Threads;
use crate::lanes::in_lanes;
use crate::real::{Real, Shared, with_real};

/// Sizes of the operands and of the windows.
#[derive(Clone, Copy, Debug)]
pub struct Window<'a> {
    /// Element type.
    pub elem: crate::Elem,
    /// Number of sequences.
    pub batch: usize,
    /// Rows per sequence.
    pub length: usize,
    /// Distance between neighbouring rows of a window, per head.
    pub dilations: &'a [i64],
    /// Elements per row and head.
    pub dim: usize,
    /// Rows of a window before its centre.
    pub before: usize,
    /// Rows per window.
    pub width: usize,
}

/// Direction of [`sums`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Each row receives from the rows in its window.
    Gather,
    /// Each row sends to the rows in its window.
    Scatter,
}

impl Window<'_> {
    /// Number of rows of all sequences and heads.
    fn rows(&self) -> usize {
        self.batch * self.length * self.dilations.len()
    }

    /// The flat index of the row of score `j` of row `row`; for [`Flow::Scatter`], of the row whose score `j` belongs to `row`.
    #[inline(always)]
    fn other(&self, row: usize, j: usize, flow: Flow) -> Option<usize> {
        let heads = self.dilations.len();
        let (i, head) = (row / heads % self.length, row % heads);
        let away = self.dilations[head].checked_mul(j as i64 - self.before as i64)?;
        let away = match flow {
            Flow::Gather => away,
            Flow::Scatter => -away,
        };
        let at = (i as i64).checked_add(away)?;
        (0..self.length as i64)
            .contains(&at)
            .then(|| (row as i64 + away * heads as i64) as usize)
    }
}

/// Writes the dot products of each row of `x` with the rows of `y` in its window, as scores.
///
/// # Safety
/// `x` and `y` have the elements of the rows, `out` has those of the scores; all are dense.
pub unsafe fn scores(threads: &dyn Threads, g: &Window, x: *const u8, y: *const u8, out: *mut u8) {
    with_real!(g.elem, T => unsafe {
        // SAFETY: same contract.
        scores_of::<T>(threads, g, x.cast(), y.cast(), out.cast());
    });
}

/// # Safety
/// Same as for [`scores`].
unsafe fn scores_of<T: Real>(
    threads: &dyn Threads,
    g: &Window,
    x: *const T,
    y: *const T,
    out: *mut T,
) {
    let (x, y, out) = (Shared(x.cast_mut()), Shared(y.cast_mut()), Shared(out));
    in_blocks(threads, g, &|row| {
        for j in 0..g.width {
            let product = match g.other(row, j, Flow::Gather) {
                // SAFETY: both are rows of the operands.
                Some(other) => unsafe { dot(x.at(row * g.dim), y.at(other * g.dim), g.dim) },
                None => T::ZERO,
            };
            // SAFETY: a score of the row of this task.
            unsafe { *out.at(row * g.width + j) = product };
        }
    });
}

/// Writes for each row the sum of the rows of `x` in its window, weighted by its scores. For [`Flow::Scatter`] (the transpose), the sum of the rows
/// whose windows contain it, weighted by their scores for it.
///
/// # Safety
/// `scores` has the elements of the scores, `x` and `out` have those of the rows; all are dense.
pub unsafe fn sums(
    threads: &dyn Threads,
    g: &Window,
    flow: Flow,
    scores: *const u8,
    x: *const u8,
    out: *mut u8,
) {
    with_real!(g.elem, T => unsafe {
        // SAFETY: same contract.
        sums_of::<T>(threads, g, flow, scores.cast(), x.cast(), out.cast());
    });
}

/// # Safety
/// Same as for [`sums`].
unsafe fn sums_of<T: Real>(
    threads: &dyn Threads,
    g: &Window,
    flow: Flow,
    scores: *const T,
    x: *const T,
    out: *mut T,
) {
    let (scores, x, out) = (Shared(scores.cast_mut()), Shared(x.cast_mut()), Shared(out));
    in_blocks(threads, g, &|row| {
        let sum = out.at(row * g.dim);
        // SAFETY: the row of this task, rows of the operands, and their scores.
        unsafe {
            std::slice::from_raw_parts_mut(sum, g.dim).fill(T::ZERO);
            for j in 0..g.width {
                if let Some(other) = g.other(row, j, flow) {
                    let owner = match flow {
                        Flow::Gather => row,
                        Flow::Scatter => other,
                    };
                    add_scaled(
                        *scores.at(owner * g.width + j),
                        x.at(other * g.dim),
                        sum,
                        g.dim,
                    );
                }
            }
        }
    });
}

/// Calls `body` for each row, one task per block of rows.
fn in_blocks(threads: &dyn Threads, g: &Window, body: &(dyn Fn(usize) + Sync)) {
    const BLOCK: usize = 64;
    let rows = g.rows();
    threads.run(rows.div_ceil(BLOCK), &|task| {
        (task * BLOCK..rows.min((task + 1) * BLOCK)).for_each(body);
    });
}

crate::real::per_isa! {
    /// Dot product of two dense rows.
    ///
    /// # Safety
    /// `n` elements are readable at `x` and `y`.
    unsafe fn dot<T>(x: *const T, y: *const T, n: usize) -> T = dot_body
}

#[inline(always)]
unsafe fn dot_body<T: Real, const FMA: bool>(x: *const T, y: *const T, n: usize) -> T {
    // SAFETY: i < n.
    unsafe {
        in_lanes!(32; T::ZERO, |a, b| a + b; i in 0, n, |sum| (*x.add(i)).fma::<FMA>(*y.add(i), sum))
    }
}

crate::real::per_isa! {
    /// Adds `factor` times a dense row to another.
    ///
    /// # Safety
    /// `n` elements are readable at `x` and writable at `sum`, which do not overlap.
    unsafe fn add_scaled<T>(factor: T, x: *const T, sum: *mut T, n: usize) = add_scaled_body
}

#[inline(always)]
unsafe fn add_scaled_body<T: Real, const FMA: bool>(factor: T, x: *const T, sum: *mut T, n: usize) {
    for i in 0..n {
        // SAFETY: guaranteed by the caller.
        unsafe { *sum.add(i) = factor.fma::<FMA>(*x.add(i), *sum.add(i)) };
    }
}
