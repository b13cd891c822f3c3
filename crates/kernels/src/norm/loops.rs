//! Loops over dense rows, compiled per instruction set.

use crate::real::{Real, normalised, per_isa, sum_in_lanes};

per_isa! {
    /// Sum of `(x - mean)^2`.
    ///
    /// # Safety
    /// `n` elements are readable at `x`.
    pub(super) unsafe fn square_deviation<T>(x: *const T, n: usize, mean: T) -> f64 = square_deviation_body
}

#[inline(always)]
unsafe fn square_deviation_body<T: Real, const FMA: bool>(x: *const T, n: usize, mean: T) -> f64 {
    sum_in_lanes!(n, |sum, i| {
        // SAFETY: i < n.
        let deviation = unsafe { *x.add(i) } - mean;
        deviation.fma::<FMA>(deviation, sum)
    })
}

per_isa! {
    /// `to = gamma / sqrt(var + epsilon)`, computed in f64 and rounded once; a null `gamma` is 1.
    ///
    /// # Safety
    /// `n` elements at the pointers that are not null.
    pub(super) unsafe fn over_deviations<T>(gamma: *const T, var: *const T, n: usize, epsilon: f64, to: *mut T) = over_deviations_body
}

#[inline(always)]
unsafe fn over_deviations_body<T: Real, const FMA: bool>(
    gamma: *const T,
    var: *const T,
    n: usize,
    epsilon: f64,
    to: *mut T,
) {
    for i in 0..n {
        // SAFETY: i < n, and `gamma` is read only if it is not null.
        unsafe {
            let gamma = if gamma.is_null() {
                1.0
            } else {
                (*gamma.add(i)).to_f64()
            };
            *to.add(i) = T::from_f64(gamma / ((*var.add(i)).to_f64() + epsilon).sqrt());
        }
    }
}

per_isa! {
    /// `y = (x - mean) * scale + shift`.
    ///
    /// # Safety
    /// `n` elements at `x` and `y`, which are equal or do not overlap.
    pub(crate) unsafe fn scale_shift<T>(x: *const T, n: usize, mean: T, scale: T, shift: T, y: *mut T) = scale_shift_body
}

#[inline(always)]
unsafe fn scale_shift_body<T: Real, const FMA: bool>(
    x: *const T,
    n: usize,
    mean: T,
    scale: T,
    shift: T,
    y: *mut T,
) {
    for i in 0..n {
        // SAFETY: i < n.
        unsafe { *y.add(i) = normalised::<T, FMA>(*x.add(i), [mean, scale, shift]) }
    }
}

per_isa! {
    /// `y = (x - mean) * scale * gamma + beta` with vectors `gamma` and `beta`.
    ///
    /// # Safety
    /// `n` elements at all pointers; `y` is `x` or overlaps nothing.
    pub(super) unsafe fn scale_shift_vectors<T>(x: *const T, n: usize, mean: T, scale: T, gamma: *const T, beta: *const T, y: *mut T) = scale_shift_vectors_body
}

#[inline(always)]
unsafe fn scale_shift_vectors_body<T: Real, const FMA: bool>(
    x: *const T,
    n: usize,
    mean: T,
    scale: T,
    gamma: *const T,
    beta: *const T,
    y: *mut T,
) {
    for i in 0..n {
        // SAFETY: i < n.
        unsafe { *y.add(i) = ((*x.add(i) - mean) * scale).fma::<FMA>(*gamma.add(i), *beta.add(i)) }
    }
}

per_isa! {
    /// `(sum of dy * weight, sum of dy * weight * (x - mean))`; a null `weight` is 1.
    ///
    /// # Safety
    /// `n` elements at the pointers that are not null.
    pub(super) unsafe fn moments<T>(x: *const T, dy: *const T, weight: *const T, n: usize, mean: T) -> [f64; 2] = moments_body
}

#[inline(always)]
unsafe fn moments_body<T: Real, const FMA: bool>(
    x: *const T,
    dy: *const T,
    weight: *const T,
    n: usize,
    mean: T,
) -> [f64; 2] {
    // SAFETY: i < n, and `weight` is read only if it is not null.
    unsafe {
        if weight.is_null() {
            return [
                sum_in_lanes!(n, |sum, i| sum + *dy.add(i)),
                sum_in_lanes!(n, |sum, i| (*dy.add(i)).fma::<FMA>(*x.add(i) - mean, sum)),
            ];
        }
        [
            sum_in_lanes!(n, |sum, i| (*dy.add(i)).fma::<FMA>(*weight.add(i), sum)),
            sum_in_lanes!(n, |sum, i| (*dy.add(i) * *weight.add(i))
                .fma::<FMA>(*x.add(i) - mean, sum)),
        ]
    }
}

per_isa! {
    /// `dx = a * dy + b * (x - mean) + c`.
    ///
    /// # Safety
    /// `n` elements at all pointers; `dx` is `dy` or overlaps nothing.
    pub(super) unsafe fn combine<T>(x: *const T, dy: *const T, n: usize, mean: T, a: T, b: T, c: T, dx: *mut T) = combine_body
}

#[inline(always)]
#[allow(
    clippy::too_many_arguments,
    reason = "a row's operands are pointers and lengths"
)]
unsafe fn combine_body<T: Real, const FMA: bool>(
    x: *const T,
    dy: *const T,
    n: usize,
    mean: T,
    a: T,
    b: T,
    c: T,
    dx: *mut T,
) {
    for i in 0..n {
        // SAFETY: i < n.
        unsafe { *dx.add(i) = a.fma::<FMA>(*dy.add(i), b.fma::<FMA>(*x.add(i) - mean, c)) }
    }
}

per_isa! {
    /// `dx = a * dy * gamma + b * (x - mean) + c` with a vector `gamma`.
    ///
    /// # Safety
    /// `n` elements at all pointers; `dx` is `dy` or overlaps nothing.
    pub(super) unsafe fn combine_vector<T>(x: *const T, dy: *const T, gamma: *const T, n: usize, mean: T, a: T, b: T, c: T, dx: *mut T) = combine_vector_body
}

#[inline(always)]
#[allow(
    clippy::too_many_arguments,
    reason = "a row's operands are pointers and lengths"
)]
unsafe fn combine_vector_body<T: Real, const FMA: bool>(
    x: *const T,
    dy: *const T,
    gamma: *const T,
    n: usize,
    mean: T,
    a: T,
    b: T,
    c: T,
    dx: *mut T,
) {
    for i in 0..n {
        // SAFETY: i < n.
        unsafe {
            *dx.add(i) =
                (a * *gamma.add(i)).fma::<FMA>(*dy.add(i), b.fma::<FMA>(*x.add(i) - mean, c))
        }
    }
}

per_isa! {
    /// `beta += dy`, `gamma += dy * (x - mean) * scale`: the contribution of one row to the gradients of the affine parameters.
    ///
    /// # Safety
    /// `n` elements at all pointers; the two sums overlap nothing.
    pub(super) unsafe fn add_affine<T>(x: *const T, dy: *const T, n: usize, mean: T, scale: T, gamma: *mut T, beta: *mut T) = add_affine_body
}

#[inline(always)]
unsafe fn add_affine_body<T: Real, const FMA: bool>(
    x: *const T,
    dy: *const T,
    n: usize,
    mean: T,
    scale: T,
    gamma: *mut T,
    beta: *mut T,
) {
    // SAFETY: guaranteed by the caller. Slices tell the compiler that the sums do not overlap.
    unsafe {
        let (gamma, beta) = (
            std::slice::from_raw_parts_mut(gamma, n),
            std::slice::from_raw_parts_mut(beta, n),
        );
        let (x, dy) = (
            std::slice::from_raw_parts(x, n),
            std::slice::from_raw_parts(dy, n),
        );
        for i in 0..n {
            beta[i] += dy[i];
            gamma[i] = (dy[i] * scale).fma::<FMA>(x[i] - mean, gamma[i]);
        }
    }
}
