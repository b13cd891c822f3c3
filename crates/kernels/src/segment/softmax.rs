//! Softmax and log-softmax over the rows of each segment, per column, with gradients.

use std::ops::Range;

use super::{Segments, run};
use crate::real::{Real, Shared, per_isa, with_real};
use crate::softmax::{Kind, loops};
use crate::{Elem, Threads};

/// Writes the softmax or log-softmax of each column of each segment to `y`.
///
/// # Panics
/// If `elem` is neither `F32` nor `F64`.
///
/// # Safety
/// The offsets passed [`super::check`]; `x` and `y` have `rows * inner` elements, dense and aligned; `y` may be `x`.
pub unsafe fn softmax(
    threads: &dyn Threads,
    g: &Segments,
    kind: Kind,
    elem: Elem,
    x: *const u8,
    y: *mut u8,
) {
    with_real!(elem, T => {
        let (x, y) = (Shared(x.cast_mut().cast::<T>()), Shared(y.cast::<T>()));
        let largest = |at: usize, n: usize, inner: usize, _: &[T], acc: &mut [T]| {
            // SAFETY: rows of the data; `acc` has one number per column.
            unsafe { max::<T>(x.at(at), n, inner, acc.as_mut_ptr()) }
        };
        // The output holds the exponentials until the last step.
        let sums = |at: usize, n: usize, inner: usize, found: &[T], acc: &mut [T]| {
            // SAFETY: as above; only this task accesses these rows of the output.
            unsafe { exp_sum::<T>(kind, x.at(at), n, inner, found.as_ptr(), y.at(at), acc.as_mut_ptr()) }
        };
        let last = |at: usize, n: usize, inner: usize, found: &[T]| {
            // SAFETY: as above; in `found`, the sums follow the maxima.
            unsafe { finish::<T>(kind, n, inner, found[inner..].as_ptr(), y.at(at)) }
        };
        // SAFETY: as above.
        let group = |segments| unsafe { softmax_group::<T>(g, segments, x, y) };
        let pass = Pass {
            columns: 2,
            steps: &[&largest, &sums],
            last: &last,
            group: (g.inner == 1 && kind == Kind::Softmax).then_some(&group),
        };
        pass.run(threads, g);
    })
}

/// Writes the gradient of [`softmax`] to `dx`, given the result `y`.
///
/// # Panics
/// If `elem` is neither `F32` nor `F64`.
///
/// # Safety
/// Same as for [`softmax`]; `dx` may be `dy` or `y`.
pub unsafe fn softmax_backward(
    threads: &dyn Threads,
    g: &Segments,
    kind: Kind,
    elem: Elem,
    y: *const u8,
    dy: *const u8,
    dx: *mut u8,
) {
    with_real!(elem, T => {
        let (y, dy) = (Shared(y.cast_mut().cast::<T>()), Shared(dy.cast_mut().cast::<T>()));
        let dx = Shared(dx.cast::<T>());
        let sums = |at: usize, n: usize, inner: usize, _: &[T], acc: &mut [T]| {
            // SAFETY: rows of the data; `acc` has one number per column.
            unsafe { products::<T>(kind, y.at(at), dy.at(at), n, inner, acc.as_mut_ptr()) }
        };
        let last = |at: usize, n: usize, inner: usize, found: &[T]| {
            // SAFETY: as above; only this task accesses these rows of the output.
            unsafe { slope::<T>(kind, y.at(at), dy.at(at), n, inner, found.as_ptr(), dx.at(at)) }
        };
        let pass = Pass {
            columns: 1,
            steps: &[&sums],
            last: &last,
            group: None,
        };
        pass.run(threads, g);
    })
}

/// A step: computes one number per column, `(first element, rows, inner, numbers of the steps before, accumulator)`.
type Step<'a, T> = &'a (dyn Fn(usize, usize, usize, &[T], &mut [T]) + Sync);

/// The last step, which uses these numbers: `(first element, rows, inner, numbers)`.
type Last<'a, T> = &'a (dyn Fn(usize, usize, usize, &[T]) + Sync);

/// Several passes over the rows of a segment: each of `steps` computes a number per column, and `last` uses all of them.
struct Pass<'a, T> {
    columns: usize,
    steps: &'a [Step<'a, T>],
    last: Last<'a, T>,
    /// Runs all steps for a range of segments, none of which is long.
    group: Option<&'a (dyn Fn(Range<usize>) + Sync)>,
}

impl<T: Real> Pass<'_, T> {
    /// Whether step `k` computes a maximum rather than a sum: the first of two steps does.
    fn is_max(&self, k: usize) -> bool {
        self.columns == 2 && k == 0
    }

    fn start(&self, k: usize) -> T {
        match self.is_max(k) {
            true => T::NEG_INFINITY,
            false => T::ZERO,
        }
    }

    fn run(&self, threads: &dyn Threads, g: &Segments) {
        let inner = g.inner;
        if inner == 0 {
            return;
        }
        let (long, groups) = g.groups(g.task_rows());
        run(threads, groups.len(), &|t| {
            if let Some(group) = self.group {
                return group(groups[t].clone());
            }
            let mut found = crate::scratch::filled(self.columns * inner, T::ZERO);
            for s in groups[t].clone() {
                let rows = g.range(s);
                if rows.is_empty() {
                    continue;
                }
                for (k, step) in self.steps.iter().enumerate() {
                    let (before, rest) = found.split_at_mut(k * inner);
                    let acc = &mut rest[..inner];
                    acc.fill(self.start(k));
                    step(rows.start * inner, rows.len(), inner, before, acc);
                }
                (self.last)(rows.start * inner, rows.len(), inner, &found);
            }
        });
        for s in long {
            self.run_long(threads, g, g.range(s));
        }
    }

    /// Runs all steps for one long segment, on all threads.
    fn run_long(&self, threads: &dyn Threads, g: &Segments, rows: std::ops::Range<usize>) {
        let (inner, step_rows) = (g.inner, g.task_rows());
        let tasks = rows.len().div_ceil(step_rows);
        let part = |t: usize| {
            let first = rows.start + t * step_rows;
            (first * inner, step_rows.min(rows.end - first))
        };
        let mut found = crate::scratch::filled(self.columns * inner, T::ZERO);
        let mut parts = crate::scratch::filled(tasks * inner, T::ZERO);
        for (k, step) in self.steps.iter().enumerate() {
            parts.fill(self.start(k));
            let (before, rest) = found.split_at_mut(k * inner);
            let at = Shared(parts.as_mut_ptr());
            run(threads, tasks, &|t| {
                let (first, n) = part(t);
                // SAFETY: the numbers of this task.
                let acc = unsafe { std::slice::from_raw_parts_mut(at.at(t * inner), inner) };
                step(first, n, inner, before, acc);
            });
            for (j, to) in rest[..inner].iter_mut().enumerate() {
                let column = parts[j..].iter().step_by(inner).copied();
                *to = match self.is_max(k) {
                    true => column.fold(T::NEG_INFINITY, |a, b| if b > a { b } else { a }),
                    false => T::from_f64(column.map(T::to_f64).sum()),
                };
            }
        }
        run(threads, tasks, &|t| {
            let (first, n) = part(t);
            (self.last)(first, n, inner, &found);
        });
    }
}

/// Up to this number of elements, a loop for the baseline is faster than a call that selects the instruction set.
const MIN_DISPATCHED_LEN: usize = 64;

/// Softmax of a range of segments of one column. The exponentials of all segments are computed in one loop, because segments are often short.
///
/// # Safety
/// The rows of the segments at `x` and `y`.
unsafe fn softmax_group<T: Real>(g: &Segments, segments: Range<usize>, x: Shared<T>, y: Shared<T>) {
    let rows = g.offsets[segments.start] as usize..g.offsets[segments.end] as usize;
    for rows in segments.clone().map(|s| g.range(s)) {
        // SAFETY: rows of a segment.
        unsafe {
            let (x, y) = (x.at(rows.start).cast_const(), y.at(rows.start));
            let largest = match rows.len() {
                n @ MIN_DISPATCHED_LEN.. => loops::max(x, n),
                n => (0..n)
                    .map(|i| *x.add(i))
                    .fold(
                        T::NEG_INFINITY,
                        |largest, x| {
                            if x > largest { x } else { largest }
                        },
                    ),
            };
            (0..rows.len()).for_each(|i| *y.add(i) = *x.add(i) - largest);
        }
    }
    // SAFETY: the rows of all segments.
    unsafe { exp_in_place::<T>(y.at(rows.start), rows.len()) };
    for rows in segments.map(|s| g.range(s)) {
        // SAFETY: rows of a segment.
        unsafe {
            let y = y.at(rows.start);
            let sum = match rows.len() {
                n @ MIN_DISPATCHED_LEN.. => crate::real::sum_row(y, n),
                n => (0..n).fold(T::ZERO, |sum, i| sum + *y.add(i)),
            };
            let scale = T::ONE / sum;
            (0..rows.len()).for_each(|i| *y.add(i) *= scale);
        }
    }
}

per_isa! {
    /// # Safety
    /// `n` elements can be read and written at `x`.
    unsafe fn exp_in_place<T>(x: *mut T, n: usize) = exp_in_place_body
}

#[inline(always)]
unsafe fn exp_in_place_body<T: Real, const FMA: bool>(x: *mut T, n: usize) {
    // SAFETY: guaranteed by the caller.
    for x in unsafe { std::slice::from_raw_parts_mut(x, n) } {
        *x = x.exp::<FMA>();
    }
}

/// # Safety
/// `n * inner` elements at `x`, `inner` at `acc`.
unsafe fn max<T: Real>(x: *const T, n: usize, inner: usize, acc: *mut T) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match inner {
            1 => *acc = loops::max(x, n),
            _ => max_table::<T>(x, n, inner, acc),
        }
    }
}

/// Softmax: `y = exp(x - max)`. Log-softmax: `y = x - max`. Adds the exponentials of each column to `acc`.
///
/// # Safety
/// `n * inner` elements at `x` and `y`, `inner` at `max` and `acc`.
unsafe fn exp_sum<T: Real>(
    kind: Kind,
    x: *const T,
    n: usize,
    inner: usize,
    max: *const T,
    y: *mut T,
    acc: *mut T,
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match (inner, kind) {
            (1, Kind::Softmax) => *acc = T::from_f64(loops::exp_row(x, n, *max, T::ONE, y)),
            (1, Kind::LogSoftmax) => {
                *acc = T::from_f64(loops::exp_sum(x, n, *max, T::ONE));
                loops::shift(x, n, *max, T::ONE, T::ZERO, y);
            }
            _ => exp_table::<T>(kind, x, n, inner, max, y, acc),
        }
    }
}

/// Softmax: divides by the sums. Log-softmax: subtracts their logarithms.
///
/// # Safety
/// `n * inner` elements at `y`, `inner` at `sums`.
unsafe fn finish<T: Real>(kind: Kind, n: usize, inner: usize, sums: *const T, y: *mut T) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match inner {
            1 => {
                let sum = (*sums).to_f64();
                match kind {
                    Kind::Softmax => loops::multiply(y, n, T::from_f64(1.0 / sum)),
                    Kind::LogSoftmax => {
                        loops::shift(y, n, T::ZERO, T::ONE, T::from_f64(sum.ln()), y);
                    }
                }
            }
            _ => {
                let sums = std::slice::from_raw_parts(sums, inner);
                let factors: Vec<T> = sums
                    .iter()
                    .map(|sum| match kind {
                        Kind::Softmax => T::from_f64(1.0 / sum.to_f64()),
                        Kind::LogSoftmax => T::from_f64(sum.to_f64().ln()),
                    })
                    .collect();
                finish_table::<T>(kind, n, inner, factors.as_ptr(), y);
            }
        }
    }
}

/// Softmax: sums of `y dy`. Log-softmax: sums of `dy`.
///
/// # Safety
/// `n * inner` elements at `y` and `dy`, `inner` at `acc`.
unsafe fn products<T: Real>(
    kind: Kind,
    y: *const T,
    dy: *const T,
    n: usize,
    inner: usize,
    acc: *mut T,
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match (inner, kind) {
            (1, Kind::Softmax) => *acc = T::from_f64(loops::dot(y, dy, n)),
            (1, Kind::LogSoftmax) => *acc = crate::real::sum_row(dy, n),
            _ => products_table::<T>(kind, y, dy, n, inner, acc),
        }
    }
}

/// Softmax: `dx = y (dy - sum)`. Log-softmax: `dx = dy - exp(y) sum`.
///
/// # Safety
/// `n * inner` elements at `y`, `dy` and `dx`, `inner` at `sums`.
#[allow(clippy::too_many_arguments, reason = "a table's operands")]
unsafe fn slope<T: Real>(
    kind: Kind,
    y: *const T,
    dy: *const T,
    n: usize,
    inner: usize,
    sums: *const T,
    dx: *mut T,
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match (inner, kind) {
            (1, Kind::Softmax) => {
                loops::softmax_slope(y, dy, n, (*sums).to_f64(), T::ONE, dx);
            }
            (1, Kind::LogSoftmax) => loops::log_softmax_slope(y, dy, n, *sums, T::ONE, dx),
            _ => slope_table::<T>(kind, y, dy, n, inner, sums, dx),
        }
    }
}

per_isa! {
    /// The maximum of each column, ignoring NaN.
    ///
    /// # Safety
    /// `n * inner` elements at `x`, `inner` at `acc`.
    unsafe fn max_table<T>(x: *const T, n: usize, inner: usize, acc: *mut T) = max_table_body
}

#[inline(always)]
unsafe fn max_table_body<T: Real, const FMA: bool>(
    x: *const T,
    n: usize,
    inner: usize,
    acc: *mut T,
) {
    // SAFETY: guaranteed by the caller.
    let (x, acc) = unsafe {
        (
            std::slice::from_raw_parts(x, n * inner),
            std::slice::from_raw_parts_mut(acc, inner),
        )
    };
    for row in x.chunks_exact(inner) {
        for (acc, &x) in acc.iter_mut().zip(row) {
            *acc = if x > *acc { x } else { *acc };
        }
    }
}

per_isa! {
    /// # Safety
    /// Same as for [`exp_sum`].
    unsafe fn exp_table<T>(kind: Kind, x: *const T, n: usize, inner: usize, max: *const T, y: *mut T, acc: *mut T) = exp_table_body
}

#[inline(always)]
unsafe fn exp_table_body<T: Real, const FMA: bool>(
    kind: Kind,
    x: *const T,
    n: usize,
    inner: usize,
    max: *const T,
    y: *mut T,
    acc: *mut T,
) {
    for i in 0..n {
        for j in 0..inner {
            // SAFETY: (i, j) is inside (the caller guarantees it).
            unsafe {
                let x = *x.add(i * inner + j) - *max.add(j);
                let e = x.exp::<FMA>();
                *y.add(i * inner + j) = match kind {
                    Kind::Softmax => e,
                    Kind::LogSoftmax => x,
                };
                *acc.add(j) += e;
            }
        }
    }
}

per_isa! {
    /// # Safety
    /// Same as for [`finish`].
    unsafe fn finish_table<T>(kind: Kind, n: usize, inner: usize, factors: *const T, y: *mut T) = finish_table_body
}

#[inline(always)]
unsafe fn finish_table_body<T: Real, const FMA: bool>(
    kind: Kind,
    n: usize,
    inner: usize,
    factors: *const T,
    y: *mut T,
) {
    for i in 0..n {
        for j in 0..inner {
            // SAFETY: (i, j) is inside (the caller guarantees it).
            unsafe {
                let (y, f) = (y.add(i * inner + j), *factors.add(j));
                *y = match kind {
                    Kind::Softmax => *y * f,
                    Kind::LogSoftmax => *y - f,
                };
            }
        }
    }
}

per_isa! {
    /// # Safety
    /// Same as for [`products`].
    unsafe fn products_table<T>(kind: Kind, y: *const T, dy: *const T, n: usize, inner: usize, acc: *mut T) = products_table_body
}

#[inline(always)]
unsafe fn products_table_body<T: Real, const FMA: bool>(
    kind: Kind,
    y: *const T,
    dy: *const T,
    n: usize,
    inner: usize,
    acc: *mut T,
) {
    for i in 0..n {
        for j in 0..inner {
            // SAFETY: (i, j) is inside (the caller guarantees it).
            unsafe {
                let (y, dy) = (*y.add(i * inner + j), *dy.add(i * inner + j));
                *acc.add(j) += match kind {
                    Kind::Softmax => y * dy,
                    Kind::LogSoftmax => dy,
                };
            }
        }
    }
}

per_isa! {
    /// # Safety
    /// Same as for [`slope`].
    unsafe fn slope_table<T>(kind: Kind, y: *const T, dy: *const T, n: usize, inner: usize, sums: *const T, dx: *mut T) = slope_table_body
}

#[inline(always)]
unsafe fn slope_table_body<T: Real, const FMA: bool>(
    kind: Kind,
    y: *const T,
    dy: *const T,
    n: usize,
    inner: usize,
    sums: *const T,
    dx: *mut T,
) {
    for i in 0..n {
        for j in 0..inner {
            // SAFETY: (i, j) is inside (the caller guarantees it).
            unsafe {
                let at = i * inner + j;
                let (y, dy, sum) = (*y.add(at), *dy.add(at), *sums.add(j));
                *dx.add(at) = match kind {
                    Kind::Softmax => y * (dy - sum),
                    Kind::LogSoftmax => dy - y.exp::<FMA>() * sum,
                };
            }
        }
    }
}
