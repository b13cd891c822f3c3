//! Reductions of segments: runs of rows that follow one another, as the stored elements of each row of a matrix do.

use super::pattern::Pattern;
use super::value::{Operand, Value, output, per_isa_value, with_value};
use crate::real::Shared;
use crate::{Elem, Threads};

/// What is made of the elements of a segment. An empty one gives the value of an empty sum or product, and 0 for extremes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// Their sum.
    Sum,
    /// Their product.
    Prod,
    /// The largest; NaN wherever there is one.
    Max,
    /// The smallest; NaN wherever there is one.
    Min,
}

/// `out[i] = fold of x[k]` over the rows k of segment i, element by element of rows of `width`. For extremes `arg`, if given, gets the row each came
/// from, -1 for empty segments.
///
/// # Safety
/// `x` holds a row of `width` elements of `elem` for each row of the segments; at `out` (and `arg`) a row for each segment can be written. `elem` is
/// one of those that sparse kernels compute in, and is real for extremes.
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
        // SAFETY: the caller's.
        let x = unsafe { x.as_slice::<T>() };
        assert_eq!(x.len(), segments.indices.len() * width);
        let (to, arg) = (Shared(out.cast::<T>()), Shared(arg.unwrap_or(std::ptr::null_mut())));
        segments.for_rows(threads, width, &|rows| {
            for i in rows {
                let range = segments.row(i);
                // SAFETY: segments have rows of their own.
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
        // Four sums at a time: one would wait for itself.
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

/// Zeros in `num_rows` rows of `width`, to which row `k` of `x` is added at `positions[k]`, one after the other; negative positions are left out.
///
/// # Safety
/// `x` holds a row of `elem` for each position, which are below `num_rows`; at `out` so many rows can be written. `elem` is one of those that sparse
/// kernels compute in.
pub unsafe fn add_rows(
    threads: &dyn Threads,
    elem: Elem,
    positions: &[i64],
    width: usize,
    x: Operand,
    out: *mut u8,
    num_rows: usize,
) {
    // Tasks are parts of the rows' width, so that each sums in the order of positions.
    const PART: usize = 64;
    let parts = width.div_ceil(PART);
    with_value!(elem, T => {
        // SAFETY: the caller's.
        let (x, y) = unsafe { (x.as_slice::<T>(), output::<T>(out, num_rows * width)) };
        y.fill(T::ZERO);
        let to = Shared(y.as_mut_ptr());
        let task = |part: usize| {
            let (first, n) = (part * PART, PART.min(width - part * PART));
            for (k, &at) in positions.iter().enumerate() {
                let Ok(at) = usize::try_from(at) else { continue };
                // SAFETY: the position is in range; tasks write parts of rows that are apart.
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
