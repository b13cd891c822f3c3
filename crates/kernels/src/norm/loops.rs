//! Loops over dense rows, compiled per instruction set.

use crate::real::{LANES, Real, fold_lanes, per_isa};

/// Elements summed in SIMD lanes before they are added to a total, which bounds the error of long rows.
const CHUNK: usize = 4096;

per_isa! {
    /// Sum of `(x - mean)^2`.
    ///
    /// # Safety
    /// `n` elements are readable at `x`.
    pub(super) unsafe fn square_deviation<T>(x: *const T, n: usize, mean: T) -> f64 = square_deviation_body
}

#[inline(always)]
unsafe fn square_deviation_body<T: Real, const FMA: bool>(x: *const T, n: usize, mean: T) -> f64 {
    // SAFETY: guaranteed by the caller.
    let x = unsafe { std::slice::from_raw_parts(x, n) };
    let mut total = 0.0;
    for x in x.chunks(CHUNK) {
        let mut lanes = [T::ZERO; LANES];
        let blocks = x.chunks_exact(LANES);
        for (l, &x) in blocks.remainder().iter().enumerate() {
            lanes[l] = (x - mean) * (x - mean);
        }
        for x in blocks {
            for l in 0..LANES {
                let d = x[l] - mean;
                lanes[l] = d.fma::<FMA>(d, lanes[l]);
            }
        }
        total += fold_lanes(lanes).to_f64();
    }
    total
}

per_isa! {
    /// `y = (x - mean) * scale + shift`.
    ///
    /// # Safety
    /// `n` elements at `x` and `y`, which are equal or do not overlap.
    pub(super) unsafe fn scale_shift<T>(x: *const T, n: usize, mean: T, scale: T, shift: T, y: *mut T) = scale_shift_body
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
        unsafe { *y.add(i) = (*x.add(i) - mean).fma::<FMA>(scale, shift) }
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
    let mut totals = [0.0; 2];
    let mut start = 0;
    while start < n {
        let end = (start + CHUNK).min(n);
        let (mut first, mut second) = ([T::ZERO; LANES], [T::ZERO; LANES]);
        let mut add = |i: usize, l: usize, weighted: bool| {
            // SAFETY: i < n.
            let (x, dy) = unsafe {
                (
                    *x.add(i),
                    if weighted {
                        *dy.add(i) * *weight.add(i)
                    } else {
                        *dy.add(i)
                    },
                )
            };
            first[l] += dy;
            second[l] = dy.fma::<FMA>(x - mean, second[l]);
        };
        let weighted = !weight.is_null();
        let mut i = start;
        if weighted {
            while i + LANES <= end {
                (0..LANES).for_each(|l| add(i + l, l, true));
                i += LANES;
            }
        } else {
            while i + LANES <= end {
                (0..LANES).for_each(|l| add(i + l, l, false));
                i += LANES;
            }
        }
        (i..end).for_each(|j| add(j, j - i, weighted));
        totals[0] += fold_lanes(first).to_f64();
        totals[1] += fold_lanes(second).to_f64();
        start = end;
    }
    totals
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
