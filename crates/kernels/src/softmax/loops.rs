//! Loops over dense rows, compiled per instruction set.

use super::Kind;
use crate::lanes::in_lanes;
use crate::real::{Real, per_isa, sum_in_lanes, sum_row_body};

per_isa! {
    /// Softmax or log-softmax of dense rows; `shape` is their number and length. With `lengths`, only the first `lengths[r]` elements of row `r` are used,
    /// and the results of the others are 0.
    ///
    /// # Safety
    /// `x` and `y` hold the rows and are equal or do not overlap; `lengths` is null or has a number for each row.
    pub(crate) unsafe fn softmax_rows<T>(kind: Kind, x: *const T, shape: (usize, usize), lengths: *const i32, scale: T, y: *mut T) = softmax_rows_body
}

#[inline(always)]
unsafe fn softmax_rows_body<T: Real, const FMA: bool>(
    kind: Kind,
    x: *const T,
    (count, len): (usize, usize),
    lengths: *const i32,
    scale: T,
    y: *mut T,
) {
    for r in 0..count {
        // SAFETY: row `r`, and its length.
        unsafe {
            let (x, y) = (x.add(r * len), y.add(r * len));
            let n = valid(lengths, r, len);
            let max = max_body::<T, FMA>(x, n);
            match kind {
                Kind::Softmax => {
                    let sum = exp_row_body::<T, FMA>(x, n, max, scale, y);
                    multiply_body::<T, FMA>(y, n, T::from_f64(1.0 / sum));
                }
                Kind::LogSoftmax => {
                    let log = exp_sum_body::<T, FMA>(x, n, max, scale).ln();
                    shift_body::<T, FMA>(x, n, max, scale, T::from_f64(log), y);
                }
            }
            std::slice::from_raw_parts_mut(y.add(n), len - n).fill(T::ZERO);
        }
    }
}

/// How many elements of row `r` are used.
///
/// # Safety
/// `lengths` is null or has a number for row `r`.
#[inline(always)]
unsafe fn valid(lengths: *const i32, r: usize, len: usize) -> usize {
    if lengths.is_null() {
        return len;
    }
    // SAFETY: guaranteed by the caller.
    let length = unsafe { *lengths.add(r) };
    length.clamp(0, len.min(i32::MAX as usize) as i32) as usize
}

per_isa! {
    /// Gradients of [`softmax_rows`], given its results `y`; 0 for elements that were not used.
    ///
    /// # Safety
    /// All pointers hold the rows; `dx` is one of the others or does not overlap them; `lengths` is null or has a number for each row.
    pub(crate) unsafe fn softmax_slopes<T>(kind: Kind, y: *const T, dy: *const T, shape: (usize, usize), lengths: *const i32, scale: T, dx: *mut T) = softmax_slopes_body
}

#[inline(always)]
#[allow(
    clippy::too_many_arguments,
    reason = "a row's operands are pointers and lengths"
)]
unsafe fn softmax_slopes_body<T: Real, const FMA: bool>(
    kind: Kind,
    y: *const T,
    dy: *const T,
    (count, len): (usize, usize),
    lengths: *const i32,
    scale: T,
    dx: *mut T,
) {
    for r in 0..count {
        // SAFETY: row `r`, and its length.
        unsafe {
            let (y, dy, dx) = (y.add(r * len), dy.add(r * len), dx.add(r * len));
            let n = valid(lengths, r, len);
            match kind {
                Kind::Softmax => {
                    let dot = dot_body::<T, FMA>(y, dy, n);
                    softmax_slope_body::<T, FMA>(y, dy, n, dot, scale, dx);
                }
                Kind::LogSoftmax => {
                    let sum = sum_row_body::<T, FMA>(dy, n);
                    log_softmax_slope_body::<T, FMA>(y, dy, n, sum, scale, dx);
                }
            }
            std::slice::from_raw_parts_mut(dx.add(n), len - n).fill(T::ZERO);
        }
    }
}

per_isa! {
    /// The maximum, ignoring NaN; -inf without elements.
    ///
    /// # Safety
    /// `n` elements are readable at `x`.
    pub(crate) unsafe fn max<T>(x: *const T, n: usize) -> T = max_body
}

/// The larger one; `a` if `b` is NaN.
#[inline(always)]
fn larger<T: Real>(a: T, b: T) -> T {
    if b > a { b } else { a }
}

#[inline(always)]
unsafe fn max_body<T: Real, const FMA: bool>(x: *const T, n: usize) -> T {
    // SAFETY: i < n.
    in_lanes!(32; T::NEG_INFINITY, |a, b| larger(a, b); i in 0, n, |max| larger(max, unsafe { *x.add(i) }))
}

per_isa! {
    /// `y = exp((x - max) * scale)`; returns the sum.
    ///
    /// # Safety
    /// `n` elements at `x` and `y`, which are equal or do not overlap.
    pub(crate) unsafe fn exp_row<T>(x: *const T, n: usize, max: T, scale: T, y: *mut T) -> f64 = exp_row_body
}

#[inline(always)]
unsafe fn exp_row_body<T: Real, const FMA: bool>(
    x: *const T,
    n: usize,
    max: T,
    scale: T,
    y: *mut T,
) -> f64 {
    for i in 0..n {
        // SAFETY: i < n.
        unsafe { *y.add(i) = ((*x.add(i) - max) * scale).exp::<FMA>() }
    }
    // A second loop: with the stores in the fold, LLVM would keep the lanes in memory.
    // SAFETY: i < n.
    sum_in_lanes!(n, |sum, i| unsafe { sum + *y.add(i) })
}

per_isa! {
    /// Sum of `exp((x - max) * scale)`.
    ///
    /// # Safety
    /// `n` elements are readable at `x`.
    pub(crate) unsafe fn exp_sum<T>(x: *const T, n: usize, max: T, scale: T) -> f64 = exp_sum_body
}

#[inline(always)]
unsafe fn exp_sum_body<T: Real, const FMA: bool>(x: *const T, n: usize, max: T, scale: T) -> f64 {
    // SAFETY: i < n.
    sum_in_lanes!(n, |sum, i| unsafe {
        sum + ((*x.add(i) - max) * scale).exp::<FMA>()
    })
}

per_isa! {
    /// `y = factor * exp(x * scale - shift)`.
    ///
    /// # Safety
    /// `n` elements at `x` and `y`, which are equal or do not overlap.
    pub(crate) unsafe fn exp_scaled<T>(x: *const T, n: usize, shift: T, scale: T, factor: T, y: *mut T) = exp_scaled_body
}

#[inline(always)]
unsafe fn exp_scaled_body<T: Real, const FMA: bool>(
    x: *const T,
    n: usize,
    shift: T,
    scale: T,
    factor: T,
    y: *mut T,
) {
    for i in 0..n {
        // SAFETY: i < n.
        unsafe { *y.add(i) = factor * (*x.add(i) * scale - shift).exp::<FMA>() }
    }
}

per_isa! {
    /// `y = (x - max) * scale - log`.
    ///
    /// # Safety
    /// `n` elements at `x` and `y`, which are equal or do not overlap.
    pub(crate) unsafe fn shift<T>(x: *const T, n: usize, max: T, scale: T, log: T, y: *mut T) = shift_body
}

#[inline(always)]
unsafe fn shift_body<T: Real, const FMA: bool>(
    x: *const T,
    n: usize,
    max: T,
    scale: T,
    log: T,
    y: *mut T,
) {
    for i in 0..n {
        // SAFETY: i < n.
        unsafe { *y.add(i) = (*x.add(i) - max).fma::<FMA>(scale, -log) }
    }
}

per_isa! {
    /// `y *= factor`.
    ///
    /// # Safety
    /// `n` elements at `y`.
    pub(crate) unsafe fn multiply<T>(y: *mut T, n: usize, factor: T) = multiply_body
}

#[inline(always)]
unsafe fn multiply_body<T: Real, const FMA: bool>(y: *mut T, n: usize, factor: T) {
    // SAFETY: guaranteed by the caller.
    unsafe { std::slice::from_raw_parts_mut(y, n) }
        .iter_mut()
        .for_each(|y| *y *= factor);
}

per_isa! {
    /// Dot product.
    ///
    /// # Safety
    /// `n` elements at `a` and `b`.
    pub(crate) unsafe fn dot<T>(a: *const T, b: *const T, n: usize) -> f64 = dot_body
}

#[inline(always)]
unsafe fn dot_body<T: Real, const FMA: bool>(a: *const T, b: *const T, n: usize) -> f64 {
    // SAFETY: i < n.
    sum_in_lanes!(n, |sum, i| unsafe { sum + *a.add(i) * *b.add(i) })
}

per_isa! {
    /// `dx = y * (dy - dot) * scale`.
    ///
    /// # Safety
    /// `n` elements at all pointers; `dx` is one of the others or does not overlap them.
    pub(crate) unsafe fn softmax_slope<T>(y: *const T, dy: *const T, n: usize, dot: f64, scale: T, dx: *mut T) = softmax_slope_body
}

#[inline(always)]
unsafe fn softmax_slope_body<T: Real, const FMA: bool>(
    y: *const T,
    dy: *const T,
    n: usize,
    dot: f64,
    scale: T,
    dx: *mut T,
) {
    let dot = T::from_f64(dot);
    for i in 0..n {
        // SAFETY: i < n.
        unsafe { *dx.add(i) = *y.add(i) * (*dy.add(i) - dot) * scale }
    }
}

per_isa! {
    /// `dx = (dy - exp(y) * sum) * scale`.
    ///
    /// # Safety
    /// `n` elements at all pointers; `dx` is one of the others or does not overlap them.
    pub(crate) unsafe fn log_softmax_slope<T>(y: *const T, dy: *const T, n: usize, sum: T, scale: T, dx: *mut T) = log_softmax_slope_body
}

#[inline(always)]
unsafe fn log_softmax_slope_body<T: Real, const FMA: bool>(
    y: *const T,
    dy: *const T,
    n: usize,
    sum: T,
    scale: T,
    dx: *mut T,
) {
    for i in 0..n {
        // SAFETY: i < n.
        unsafe { *dx.add(i) = (*dy.add(i) - (*y.add(i)).exp::<FMA>() * sum) * scale }
    }
}
