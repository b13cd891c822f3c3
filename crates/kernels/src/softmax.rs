//! Softmax, log-softmax, log-sum-exp and softmax cross-entropy along one axis of dense `(outer, len, inner)` data, with gradients.
//!
//! If `inner` is not 1, rows are strided, and a few at a time are copied to working memory and back.

pub(crate) mod loops;

#[cfg(test)]
mod tests;

use crate::real::{Real, Shared, with_real};
use crate::{Elem, Threads, scratch};

/// Geometry of a softmax. Row `r` is the `len` elements at `(r / inner, ·, r % inner)`; there are `outer * inner` rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Softmax {
    /// Element type of all operands: `F32` or `F64`.
    pub elem: Elem,
    /// Product of the axes before the normalised one.
    pub outer: usize,
    /// Length of the normalised axis.
    pub len: usize,
    /// Product of the axes after it.
    pub inner: usize,
    /// Divisor of the data.
    pub temperature: f64,
}

/// Softmax or log-softmax.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `exp(x) / sum(exp(x))`.
    Softmax,
    /// `x - log(sum(exp(x)))`.
    LogSoftmax,
}

impl Softmax {
    fn rows(&self) -> usize {
        self.outer * self.inner
    }

    /// Rows per task: about 8 K elements.
    fn block(&self) -> usize {
        ((1 << 13) / self.len.max(1)).max(1)
    }

    /// Rows copied at once if they are not dense: a cache line's worth, fewer if rows are long.
    fn copied(&self) -> usize {
        (self.block() * 4).clamp(1, 16)
    }
}

/// Calls `rows(first, count, x, out)` for blocks of `count` dense rows from row `first` on: the rows themselves or dense copies. `x` are `K` inputs of
/// the data's shape.
///
/// # Safety
/// Inputs and output have the data's size; `out` overlaps an input only if it is that input.
unsafe fn each_block<T: Real, const K: usize>(
    threads: &dyn Threads,
    g: &Softmax,
    inputs: [Shared<T>; K],
    out: Shared<T>,
    rows: impl Fn(usize, usize, [*const T; K], *mut T) + Sync,
) {
    if g.rows() * g.len == 0 {
        return;
    }
    let run = |n: usize, task: &(dyn Fn(usize) + Sync)| {
        if n == 1 {
            task(0)
        } else {
            threads.run(n, task)
        }
    };
    if g.inner == 1 {
        let block = g.block();
        return run(g.outer.div_ceil(block), &|t| {
            let first = t * block;
            rows(
                first,
                block.min(g.outer - first),
                inputs.map(|x| x.at(first * g.len).cast_const()),
                out.at(first * g.len),
            );
        });
    }
    let copied = g.copied();
    let pieces = g.inner.div_ceil(copied);
    run(g.outer * pieces, &|t| {
        let (o, first) = (t / pieces, t % pieces * copied);
        let count = copied.min(g.inner - first);
        scratch::with::<T, _>((K + 1) * count * g.len, |memory| {
            let address = |k: usize, c: usize| memory.wrapping_add((k * count + c) * g.len);
            let corner = |j: usize| (o * g.len + j) * g.inner + first;
            // SAFETY: `count` neighbouring rows of the data; the scratch has room for dense copies of them for every operand.
            unsafe {
                for (k, x) in inputs.iter().enumerate() {
                    for j in 0..g.len {
                        (0..count).for_each(|c| *address(k, c).add(j) = *x.at(corner(j) + c));
                    }
                }
                rows(
                    o * g.inner + first,
                    count,
                    std::array::from_fn(|k| address(k, 0).cast_const()),
                    address(K, 0),
                );
                for j in 0..g.len {
                    (0..count).for_each(|c| *out.at(corner(j) + c) = *address(K, c).add(j));
                }
            }
        });
    });
}

/// Lengths of `count` rows from row `first` on, or null.
fn lengths_from(lengths: Shared<i32>, first: usize) -> *const i32 {
    if lengths.is_null() {
        std::ptr::null()
    } else {
        lengths.at(first).cast_const()
    }
}

/// Writes the softmax or log-softmax of every row to `y`. `lengths` (one per row) may be null; otherwise only the first `lengths[r]` elements of
/// row `r` are used and the results of the others are 0.
///
/// # Panics
/// If `elem` is neither `F32` nor `F64`.
///
/// # Safety
/// Operands are dense, aligned and of the sizes that `g` says; `y` may be `x` and overlaps nothing else.
pub unsafe fn softmax(
    threads: &dyn Threads,
    g: &Softmax,
    kind: Kind,
    x: *const u8,
    lengths: *const i32,
    y: *mut u8,
) {
    let lengths = Shared(lengths.cast_mut());
    with_real!(g.elem, T => {
        let scale = T::from_f64(1.0 / g.temperature);
        // SAFETY: rows of the data, and their lengths.
        unsafe {
            each_block::<T, 1>(threads, g, [Shared(x.cast_mut().cast())], Shared(y.cast()), |first, count, [x], y| {
                loops::softmax_rows(kind, x, (count, g.len), lengths_from(lengths, first), scale, y)
            });
        }
    })
}

/// Writes the gradient of [`softmax`] to `dx`, given the result `y`. With `lengths`, elements after the length get 0.
///
/// # Panics
/// If `elem` is neither `F32` nor `F64`.
///
/// # Safety
/// Operands are dense, aligned and of the sizes that `g` says; `dx` may be `dy` or `y` and overlaps nothing else.
pub unsafe fn softmax_backward(
    threads: &dyn Threads,
    g: &Softmax,
    kind: Kind,
    y: *const u8,
    dy: *const u8,
    lengths: *const i32,
    dx: *mut u8,
) {
    let lengths = Shared(lengths.cast_mut());
    with_real!(g.elem, T => {
        let scale = T::from_f64(1.0 / g.temperature);
        let inputs = [Shared(y.cast_mut().cast()), Shared(dy.cast_mut().cast())];
        // SAFETY: rows of the data, and their lengths.
        unsafe {
            each_block::<T, 2>(threads, g, inputs, Shared(dx.cast()), |first, count, [y, dy], dx| {
                loops::softmax_slopes(kind, y, dy, (count, g.len), lengths_from(lengths, first), scale, dx)
            });
        }
    })
}

/// `out[r] = log(sum(exp(x / temperature)))` of row `r`; -inf for empty rows.
///
/// # Panics
/// If `elem` is neither `F32` nor `F64`.
///
/// # Safety
/// `x` has the size that `g` says, `out` one element per row; both are dense and aligned and do not overlap.
pub unsafe fn log_sum_exp(threads: &dyn Threads, g: &Softmax, x: *const u8, out: *mut u8) {
    with_real!(g.elem, T => {
        let (scale, x, out) = (T::from_f64(1.0 / g.temperature), Shared(x.cast_mut().cast::<T>()), Shared(out.cast::<T>()));
        let block = g.block();
        if g.len == 0 {
            // SAFETY: one element per row.
            return unsafe { std::slice::from_raw_parts_mut(out.at(0), g.rows()).fill(T::NEG_INFINITY) };
        }
        let task = |t: usize| {
            scratch::with::<T, _>(if g.inner == 1 { 0 } else { g.len }, |memory| {
                for r in t * block..((t + 1) * block).min(g.rows()) {
                    // SAFETY: elements of this row; the scratch holds one row.
                    unsafe {
                        let row = if g.inner == 1 {
                            x.at(r * g.len).cast_const()
                        } else {
                            let first = r / g.inner * g.len * g.inner + r % g.inner;
                            (0..g.len).for_each(|j| *memory.add(j) = *x.at(first + j * g.inner));
                            memory.cast_const()
                        };
                        *out.at(r) = row_log_sum_exp(row, g.len, scale);
                    }
                }
            });
        };
        match g.rows().div_ceil(block) {
            0 => {}
            1 => task(0),
            n => threads.run(n, &task),
        }
    })
}

/// # Safety
/// `n > 0` elements are readable at `x`.
unsafe fn row_log_sum_exp<T: Real>(x: *const T, n: usize, scale: T) -> T {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let max = loops::max(x, n);
        // An infinite maximum is the result; subtracting it from itself would give NaN.
        let infinite = max.abs() == -T::NEG_INFINITY;
        if infinite {
            max * scale
        } else {
            T::from_f64((max * scale).to_f64() + loops::exp_sum(x, n, max, scale).ln())
        }
    }
}

/// Softmax cross-entropy with integer labels; rows must be dense (`inner` is 1). `loss[r] = lse[r] - x[r, labels[r]] / temperature`, where `lse[r]`
/// is the log-sum-exp that [`cross_entropy_backward`] needs. A label outside `0..len` gives NaN, the label `ignore` gives 0.
///
/// # Panics
/// If `elem` is neither `F32` nor `F64`, or `inner` is not 1.
///
/// # Safety
/// `x` has the size that `g` says; `labels`, `loss` and `lse` have one element per row; all are dense and aligned; the results overlap nothing.
pub unsafe fn cross_entropy(
    threads: &dyn Threads,
    g: &Softmax,
    x: *const u8,
    labels: *const i64,
    ignore: Option<i64>,
    loss: *mut u8,
    lse: *mut u8,
) {
    assert_eq!(g.inner, 1, "cross entropy takes dense rows");
    // SAFETY: same contract.
    unsafe { log_sum_exp(threads, g, x, lse) };
    with_real!(g.elem, T => {
        let (x, loss, lse) = (x.cast::<T>(), loss.cast::<T>(), lse.cast::<T>());
        let scale = T::from_f64(1.0 / g.temperature);
        for r in 0..g.outer {
            // SAFETY: one label, loss and lse per row; the label is checked before it is used.
            unsafe {
                let label = *labels.add(r);
                *loss.add(r) = match usize::try_from(label) {
                    _ if ignore == Some(label) => T::ZERO,
                    Ok(c) if c < g.len => *lse.add(r) - *x.add(r * g.len + c) * scale,
                    _ => T::from_f64(f64::NAN),
                };
            }
        }
    })
}

/// `dx[r, c] = dloss[r] * (softmax(x)[r, c] - (c == labels[r])) / temperature`. Rows with the label `ignore` get 0, those with an invalid label NaN.
///
/// # Panics
/// If `elem` is neither `F32` nor `F64`, or `inner` is not 1.
///
/// # Safety
/// Same as for [`cross_entropy`]; `lse` is what it wrote, `dloss` has one element per row, `dx` may be `x`.
#[allow(clippy::too_many_arguments, reason = "the operator's operands")]
pub unsafe fn cross_entropy_backward(
    threads: &dyn Threads,
    g: &Softmax,
    x: *const u8,
    labels: *const i64,
    ignore: Option<i64>,
    lse: *const u8,
    dloss: *const u8,
    dx: *mut u8,
) {
    assert_eq!(g.inner, 1, "cross entropy takes dense rows");
    let labels = Shared(labels.cast_mut());
    with_real!(g.elem, T => {
        let (lse, dloss) = (Shared(lse.cast_mut().cast::<T>()), Shared(dloss.cast_mut().cast::<T>()));
        let scale = T::from_f64(1.0 / g.temperature);
        // SAFETY: rows of the data, with one label, lse and dloss per row.
        unsafe {
            each_block::<T, 1>(threads, g, [Shared(x.cast_mut().cast())], Shared(dx.cast()), |first, count, [x], dx| {
                for r in first..first + count {
                    let at = (r - first) * g.len;
                    let (x, dx) = (x.add(at), dx.add(at));
                    let label = *labels.at(r);
                    if ignore == Some(label) {
                        std::slice::from_raw_parts_mut(dx, g.len).fill(T::ZERO);
                        continue;
                    }
                    let Some(c) = usize::try_from(label).ok().filter(|&c| c < g.len) else {
                        std::slice::from_raw_parts_mut(dx, g.len).fill(T::from_f64(f64::NAN));
                        continue;
                    };
                    let slope = *dloss.at(r) * scale;
                    loops::exp_scaled(x, g.len, *lse.at(r), scale, slope, dx);
                    *dx.add(c) -= slope;
                }
            });
        }
    })
}
