//! Products of rows with the rows in a window around them: attention to neighbours.
//!
//! Operands are dense: rows `(batch, length, heads, dim)`, scores `(batch, length, heads, width)`. Score `j` of row `i` belongs to row
//! `i + dilation * (j - before)`, with a dilation for each head; rows outside of the sequence count as 0.

use crate::Threads;
use crate::real::{Real, Shared, with_real};

/// Sizes of windows and of what they look at.
#[derive(Clone, Copy, Debug)]
pub struct Window<'a> {
    /// Type of the elements.
    pub elem: crate::Elem,
    /// Number of sequences.
    pub batch: usize,
    /// Rows of a sequence.
    pub length: usize,
    /// Distance between neighbours in a window, for each head.
    pub dilations: &'a [i64],
    /// Elements of a row of a head.
    pub dim: usize,
    /// Rows of a window before its own one.
    pub before: usize,
    /// Rows of a window.
    pub width: usize,
}

/// Which way [`sums`] carries rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// To each row from the rows in its window.
    Gather,
    /// From each row to the rows in its window.
    Scatter,
}

impl Window<'_> {
    /// Number of rows of all sequences and heads.
    fn rows(&self) -> usize {
        self.batch * self.length * self.dilations.len()
    }

    /// The row, counted through, of score `j` of row `row`, or for [`Flow::Scatter`] the row whose score `j` belongs to `row`.
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

/// Writes the product of each row of `x` with the rows of `y` in its window, as scores.
///
/// # Safety
/// `x` and `y` have the elements of the rows, `out` those of the scores, all dense.
pub unsafe fn scores(threads: &dyn Threads, g: &Window, x: *const u8, y: *const u8, out: *mut u8) {
    with_real!(g.elem, T => unsafe {
        // SAFETY: forwarded.
        scores_of::<T>(threads, g, x.cast(), y.cast(), out.cast());
    });
}

/// # Safety
/// As [`scores`]'s.
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
            // SAFETY: a score of this row, which is the task's own.
            unsafe { *out.at(row * g.width + j) = product };
        }
    });
}

/// Writes for each row the sum of the rows of `x` in its window, times its scores; for [`Flow::Scatter`] the sum of the rows in whose windows it is,
/// times their scores for it.
///
/// # Safety
/// `scores` has the elements of the scores, `x` and `out` those of the rows, all dense.
pub unsafe fn sums(
    threads: &dyn Threads,
    g: &Window,
    flow: Flow,
    scores: *const u8,
    x: *const u8,
    out: *mut u8,
) {
    with_real!(g.elem, T => unsafe {
        // SAFETY: forwarded.
        sums_of::<T>(threads, g, flow, scores.cast(), x.cast(), out.cast());
    });
}

/// # Safety
/// As [`sums`]'s.
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
        // SAFETY: the row of this task, rows of the operands, and scores of these.
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

/// Calls `body` for each row, a block of rows a task.
fn in_blocks(threads: &dyn Threads, g: &Window, body: &(dyn Fn(usize) + Sync)) {
    const BLOCK: usize = 64;
    let rows = g.rows();
    threads.run(rows.div_ceil(BLOCK), &|task| {
        (task * BLOCK..rows.min((task + 1) * BLOCK)).for_each(body);
    });
}

crate::real::per_isa! {
    /// Sum of the products of two dense rows.
    ///
    /// # Safety
    /// `n` elements are readable at `x` and `y`.
    unsafe fn dot<T>(x: *const T, y: *const T, n: usize) -> T = dot_body
}

#[inline(always)]
unsafe fn dot_body<T: Real, const FMA: bool>(x: *const T, y: *const T, n: usize) -> T {
    // SAFETY: by the caller.
    let (x, y) = unsafe {
        (
            std::slice::from_raw_parts(x, n),
            std::slice::from_raw_parts(y, n),
        )
    };
    let mut lanes = [T::ZERO; crate::real::LANES];
    let blocks = x
        .chunks(crate::real::LANES)
        .zip(y.chunks(crate::real::LANES));
    for (x, y) in blocks {
        for (lane, (&x, &y)) in lanes.iter_mut().zip(x.iter().zip(y)) {
            *lane = x.fma::<FMA>(y, *lane);
        }
    }
    crate::real::fold_lanes(lanes)
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
        // SAFETY: by the caller.
        unsafe { *sum.add(i) = factor.fma::<FMA>(*x.add(i), *sum.add(i)) };
    }
}
