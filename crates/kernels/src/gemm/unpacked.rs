//! Products without packing, for matrices so small that packing would cost more than multiplying.

use super::Tile;
use num_complex::Complex;
use std::ops::{Add, Mul};

/// Element types of these loops.
pub(crate) trait Scalar:
    Copy + PartialEq + Send + Sync + Add<Output = Self> + Mul<Output = Self> + 'static
{
    /// The real number `x`.
    fn from_real(x: f64) -> Self;
}

impl Scalar for f32 {
    #[inline(always)]
    fn from_real(x: f64) -> Self {
        x as f32
    }
}
impl Scalar for f64 {
    #[inline(always)]
    fn from_real(x: f64) -> Self {
        x
    }
}
impl Scalar for Complex<f32> {
    #[inline(always)]
    fn from_real(x: f64) -> Self {
        Complex::new(x as f32, 0.0)
    }
}
impl Scalar for Complex<f64> {
    #[inline(always)]
    fn from_real(x: f64) -> Self {
        Complex::new(x, 0.0)
    }
}

/// Longest row of C that is accumulated in registers.
const WIDTH: usize = 8;

/// Whether [`multiply`] is faster than the blocked product.
#[inline]
pub(super) fn is_preferred<T>(t: &Tile<T>) -> bool {
    t.m * t.n * t.k <= 512 || t.k == 0
}

/// # Safety
/// The tile is in bounds and C overlaps no input.
pub(super) unsafe fn multiply<T: Scalar>(t: &Tile<T>) {
    let mut left = 0;
    while left < t.n {
        let width = (t.n - left).min(WIDTH);
        for i in 0..t.m {
            // SAFETY: rows i, columns left..left + width are inside the tile.
            unsafe {
                let acc = match (width, t.b_strides.1) {
                    (4, 1) => fixed_row::<T, 4>(t, i, left),
                    (8, 1) => fixed_row::<T, 8>(t, i, left),
                    _ => row(t, i, left, width),
                };
                for (j, &x) in acc.iter().enumerate().take(width) {
                    t.store(i, left + j, x);
                }
            }
        }
        left += width;
    }
}

/// # Safety
/// Row `i` of A and columns `left..left + width` of B are in bounds; `width <= WIDTH`.
#[inline(always)]
unsafe fn row<T: Scalar>(t: &Tile<T>, i: usize, left: usize, width: usize) -> [T; WIDTH] {
    let ((ar, ac), (br, bc)) = (t.a_strides, t.b_strides);
    let mut acc = [T::from_real(0.0); WIDTH];
    for p in 0..t.k as isize {
        // SAFETY: p < k; same contract.
        unsafe {
            let x = *t.a.offset(i as isize * ar + p * ac);
            let b = t.b.offset(p * br + left as isize * bc);
            for (j, acc) in acc.iter_mut().enumerate().take(width) {
                *acc = *acc + x * *b.offset(j as isize * bc);
            }
        }
    }
    acc
}

/// The most frequent small case: `N` contiguous columns, a loop count known at compile time.
///
/// # Safety
/// Same as for [`row`], with B's columns contiguous.
#[inline(always)]
unsafe fn fixed_row<T: Scalar, const N: usize>(t: &Tile<T>, i: usize, left: usize) -> [T; WIDTH] {
    let ((ar, ac), br) = (t.a_strides, t.b_strides.0);
    let mut acc = [T::from_real(0.0); N];
    for p in 0..t.k as isize {
        // SAFETY: p < k; same contract.
        unsafe {
            let x = *t.a.offset(i as isize * ar + p * ac);
            let b = t.b.offset(p * br).add(left).cast::<[T; N]>().read();
            for j in 0..N {
                acc[j] = acc[j] + x * b[j];
            }
        }
    }
    let mut wide = [T::from_real(0.0); WIDTH];
    wide[..N].copy_from_slice(&acc);
    wide
}
