//! Reductions of segments: runs of consecutive rows, such as the stored elements of each row of a matrix.

use super::pattern::Pattern;
use super::value::{Operand, Value, output, per_isa_value, with_value};
use crate::real::Shared;
use crate::{Elem, Threads};

/// Reduction of the elements of a segment. An empty segment gives the value of an empty sum or product, and 0 for extrema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// Sum.
    Sum,
    /// Product.
    Prod,
    /// Maximum, propagating NaN.
    Max,
    /// Minimum, propagating NaN.
    Min,
}

/// `out[i] = fold of x[k]` over the rows k of segment i, for each of the `width` columns. For extrema, the row of each extremum is written to `arg`
/// if that is given; -1 for empty segments.
///
/// # Safety
/// `x` holds a row of `width` elements of `elem` for each row of the segments; `out` (and `arg`) have room for a row per segment. `elem` is one of
/// the types that sparse kernels compute in, and is real for extrema.
pub unsafe fn fold_segments(
    threads: &dyn Threads,
    elem: Elem,
    fold: Fold,
    segments: &Pattern,
    width: usize,
    x: Operand,
    (out, arg): (*mut u8, Option<*mut i64>),
) {
    if width == 0 {
        return;
    }
    with_value!(elem, T => {
        // SAFETY: guaranteed by the caller.
        let x = unsafe { x.as_slice::<T>() };
        assert_eq!(x.len(), segments.indices.len() * width);
        let (to, arg) = (Shared(out.cast::<T>()), Shared(arg.unwrap_or(std::ptr::null_mut())));
        segments.for_rows(threads, width, &|rows| {
            for i in rows {
                let range = segments.row(i);
                // SAFETY: segments have disjoint rows of the output.
                let out = unsafe { std::slice::from_raw_parts_mut(to.at(i * width), width) };
                let x = &x[range.start * width..range.end * width];
                match fold {
                    Fold::Sum => sum_rows::<T>(x, out),
                    Fold::Prod => {
                        out.fill(T::ONE);
                        for x in x.chunks_exact(width) {
                            for (y, &x) in out.iter_mut().zip(x) {
                                *y = y.times(x);
                            }
                        }
                    }
                    Fold::Max | Fold::Min => {
                        let arg = match arg.is_null() {
                            true => None,
                            // SAFETY: as above.
                            false => Some(unsafe { std::slice::from_raw_parts_mut(arg.at(i * width), width) }),
                        };
                        extreme_rows(fold, range.start, x, out, arg);
                    }
                }
            }
        });
    });
}

per_isa_value! {
    /// The sum of rows.
    fn sum_rows<T>(x: &[T], out: &mut [T]) = sum_body
}

#[inline(always)]
fn sum_body<T: Value>(x: &[T], out: &mut [T]) {
    if let [out] = out {
        // Four independent sums, because the additions of a single one would wait for each other.
        let (chunks, rest) = x.as_chunks::<4>();
        let mut lanes = [T::ZERO; 4];
        for x in chunks {
            for l in 0..4 {
                lanes[l] = lanes[l].plus(x[l]);
            }
        }
        for (l, &x) in rest.iter().enumerate() {
            lanes[l] = lanes[l].plus(x);
        }
        *out = lanes[0].plus(lanes[1]).plus(lanes[2].plus(lanes[3]));
        return;
    }
    out.fill(T::ZERO);
    for x in x.chunks_exact(out.len()) {
        for (y, &x) in out.iter_mut().zip(x) {
            *y = y.plus(x);
        }
    }
}

fn extreme_rows<T: Value>(
    fold: Fold,
    first: usize,
    x: &[T],
    out: &mut [T],
    mut arg: Option<&mut [i64]>,
) {
    let width = out.len();
    out.fill(T::ZERO);
    if let Some(arg) = &mut arg {
        arg.fill(-1);
    }
    for (r, x) in x.chunks_exact(width).enumerate() {
        for (d, &x) in x.iter().enumerate() {
            #[expect(clippy::eq_op, reason = "only NaN differs from itself")]
            let is_better = match fold {
                _ if r == 0 => true,
                _ if out[d] != out[d] => false,
                _ if x != x => true,
                Fold::Max => x > out[d],
                _ => x < out[d],
            };
            if is_better {
                out[d] = x;
                if let Some(arg) = &mut arg {
                    arg[d] = (first + r) as i64;
                }
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
