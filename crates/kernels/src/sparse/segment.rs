//! Extrema of segments, which are runs of consecutive rows such as the stored elements of each row of a matrix, with their positions; sums of rows
//! that have the same position. Sums, products and softmax of segments are in [`crate::segment`].

use super::pattern::Pattern;
use super::value::{Operand, Value, output, per_isa_value, with_value};
use crate::real::Shared;
use crate::{Elem, Threads};

/// Which extremum of a segment. That of an empty one is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extremum {
    /// Maximum; NaN is larger than all numbers.
    Max,
    /// Minimum; NaN is smaller than all numbers.
    Min,
}

/// `out[i]` is the extremum of `x[k]` over the rows k of segment i, for each of the `width` columns, and `arg[i]` the first row with it; -1 for empty
/// segments.
///
/// # Safety
/// `x` holds a row of `width` elements of `elem` for each row of the segments; `out` and `arg` have room for a row per segment. `elem` is one of the
/// real types that sparse kernels compute in.
pub unsafe fn extreme_segments(
    threads: &dyn Threads,
    elem: Elem,
    extremum: Extremum,
    segments: &Pattern,
    width: usize,
    x: Operand,
    (out, arg): (*mut u8, *mut i64),
) {
    if width == 0 {
        return;
    }
    with_value!(elem, T => {
        // SAFETY: guaranteed by the caller.
        let x = unsafe { x.as_slice::<T>() };
        assert_eq!(x.len(), segments.indices.len() * width);
        let (to, arg) = (Shared(out.cast::<T>()), Shared(arg));
        segments.for_rows(threads, width, &|rows| {
            let (first, n) = (rows.start * width, rows.len() * width);
            // SAFETY: runs of segments have disjoint rows of the outputs.
            let (out, arg) = unsafe {
                (
                    std::slice::from_raw_parts_mut(to.at(first), n),
                    std::slice::from_raw_parts_mut(arg.at(first), n),
                )
            };
            extreme_rows::<T>(extremum, segments, rows.start, width, x, out, arg);
        });
    });
}

per_isa_value! {
    /// The extrema of the columns of the segments from `start` on, one for each row of `out`, and their rows.
    fn extreme_rows<T>(extremum: Extremum, segments: &Pattern, start: usize, width: usize, x: &[T], out: &mut [T], arg: &mut [i64]) = extreme_body
}

#[inline(always)]
fn extreme_body<T: Value>(
    extremum: Extremum,
    segments: &Pattern,
    start: usize,
    width: usize,
    x: &[T],
    out: &mut [T],
    arg: &mut [i64],
) {
    let outputs = out.chunks_exact_mut(width).zip(arg.chunks_exact_mut(width));
    for (i, (out, arg)) in (start..).zip(outputs) {
        let range = segments.row(i);
        let x = &x[range.start * width..range.end * width];
        match extremum {
            Extremum::Max => best_rows(|x, y| x > y, range.start, x, out, arg),
            Extremum::Min => best_rows(|x, y| x < y, range.start, x, out, arg),
        }
    }
}

/// From this number of columns on, all are compared in vectors, without branches. With fewer columns a branch is cheaper, because an element is
/// rarely a new extremum.
const VECTOR: usize = 16;

#[inline(always)]
fn best_rows<T: Value>(
    beats: impl Fn(T, T) -> bool,
    first: usize,
    x: &[T],
    out: &mut [T],
    arg: &mut [i64],
) {
    let width = out.len();
    let mut rows = x.chunks_exact(width);
    let Some(row) = rows.next() else {
        out.fill(T::ZERO);
        arg.fill(-1);
        return;
    };
    out.copy_from_slice(row);
    arg.fill(first as i64);
    for (r, row) in (first as i64 + 1..).zip(rows) {
        for ((best, at), &x) in out.iter_mut().zip(arg.iter_mut()).zip(row) {
            #[expect(clippy::eq_op, reason = "only NaN differs from itself")]
            let is_better = (*best == *best) & ((x != x) | beats(x, *best));
            if width < VECTOR {
                if is_better {
                    (*best, *at) = (x, r);
                }
            } else {
                *best = if is_better { x } else { *best };
                *at = if is_better { r } else { *at };
            }
        }
    }
}

/// Sets `num_rows` rows of `width` to zero, then adds row `k` of `x` to row `positions[k]`, in order; negative positions are skipped.
///
/// # Safety
/// `x` holds a row of `elem` for each position; positions are below `num_rows`; `out` has room for `num_rows` rows. `elem` is one of the types that
/// sparse kernels compute in.
pub unsafe fn add_rows(
    threads: &dyn Threads,
    elem: Elem,
    positions: &[i64],
    width: usize,
    x: Operand,
    out: *mut u8,
    num_rows: usize,
) {
    // Tasks are ranges of columns, so that each adds in the order of positions.
    const PART: usize = 64;
    let parts = width.div_ceil(PART);
    with_value!(elem, T => {
        // SAFETY: guaranteed by the caller.
        let (x, y) = unsafe { (x.as_slice::<T>(), output::<T>(out, num_rows * width)) };
        y.fill(T::ZERO);
        let to = Shared(y.as_mut_ptr());
        let task = |part: usize| {
            let (first, n) = (part * PART, PART.min(width - part * PART));
            for (k, &at) in positions.iter().enumerate() {
                let Ok(at) = usize::try_from(at) else { continue };
                // SAFETY: the position is in range; tasks write disjoint ranges of columns.
                let y = unsafe { std::slice::from_raw_parts_mut(to.at(at * width + first), n) };
                for (y, &x) in y.iter_mut().zip(&x[k * width + first..]) {
                    *y = y.plus(x);
                }
            }
        };
        match parts > 1 && threads.count() > 1 {
            true => threads.run(parts, &task),
            false => (0..parts).for_each(task),
        }
    });
}
