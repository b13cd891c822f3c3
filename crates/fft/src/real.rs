//! Real transforms through complex ones: of length `n / 2` for even `n`, of length `n` for odd `n`.

use std::f64::consts::TAU;
use std::sync::Arc;

use rustfft::num_complex::Complex;
use rustfft::{Fft, FftDirection};

use super::plan::{Sample, complex};
use mxnet_kernels::real::Real;
use mxnet_kernels::{per_isa, scratch};

/// Factors of the results of a real transform, or of the spectrum that is transformed back.
#[derive(Clone, Copy)]
pub(super) struct Factors<T> {
    /// Factor of all elements.
    pub scale: T,
    /// Additional factor of the elements of the half spectrum that stand for two.
    pub middle: T,
    /// Factor of the imaginary parts of the spectrum: 1, or -1 for the other direction.
    pub sign: T,
}

/// Plan for `n` real numbers in one direction.
pub(super) struct RealPlan<T: Sample> {
    n: usize,
    /// Complex transform of length `n / 2` for even `n` (with `twiddles`), of length `n` for odd `n`.
    fft: Arc<dyn Fft<T>>,
    /// `exp(-2 pi i k / n)` for k below `n / 4`.
    twiddles: Arc<Vec<Complex<T>>>,
}

impl<T: Sample> Clone for RealPlan<T> {
    fn clone(&self) -> RealPlan<T> {
        RealPlan {
            n: self.n,
            fft: self.fft.clone(),
            twiddles: self.twiddles.clone(),
        }
    }
}

impl<T: Sample> RealPlan<T> {
    pub fn new(n: usize, direction: FftDirection) -> RealPlan<T> {
        let is_even = n.is_multiple_of(2);
        let len = if is_even { n / 2 } else { n };
        let twiddle = |k: usize| {
            let (sin, cos) = (-TAU * k as f64 / n as f64).sin_cos();
            Complex::new(T::of(cos), T::of(sin))
        };
        RealPlan {
            n,
            fft: complex(len, direction),
            twiddles: if is_even {
                Arc::new(scratch::collected(
                    len.div_ceil(2),
                    (0..len.div_ceil(2)).map(twiddle),
                ))
            } else {
                Arc::default()
            },
        }
    }

    /// Scratch for one line, in complex numbers.
    pub fn scratch_len(&self) -> usize {
        let own = if self.n.is_multiple_of(2) { 0 } else { self.n };
        own + self.fft.get_inplace_scratch_len()
    }

    /// Computes the first half of the spectrum of `real`, which is overwritten. `self` is a forward plan.
    pub fn to_half(
        &self,
        real: &mut [T],
        half: &mut [Complex<T>],
        factors: Factors<T>,
        scratch: &mut [Complex<T>],
    ) {
        let n = self.n;
        assert!(real.len() == n && half.len() == n / 2 + 1);
        if !n.is_multiple_of(2) {
            let (line, scratch) = scratch.split_at_mut(n);
            for (z, &x) in line.iter_mut().zip(real.iter()) {
                *z = Complex::new(x, T::ZERO);
            }
            self.fft.process_with_scratch(line, scratch);
            let Factors {
                scale,
                middle,
                sign,
            } = factors;
            for (k, (y, z)) in half.iter_mut().zip(line.iter()).enumerate() {
                let s = if k == 0 { scale } else { scale * middle };
                *y = Complex::new(z.re * s, z.im * s * sign);
            }
            return;
        }
        let h = n / 2;
        // SAFETY: `n` real numbers are `n / 2` pairs; a pair needs no more alignment than one number.
        let z =
            unsafe { std::slice::from_raw_parts_mut(real.as_mut_ptr().cast::<Complex<T>>(), h) };
        self.fft.process_with_scratch(z, scratch);
        let Factors {
            scale,
            middle,
            sign,
        } = factors;
        half[0] = Complex::new((z[0].re + z[0].im) * scale, T::ZERO);
        half[h] = Complex::new((z[0].re - z[0].im) * scale, T::ZERO);
        if h.is_multiple_of(2) {
            let s = scale * middle;
            half[h / 2] = Complex::new(z[h / 2].re * s, -(z[h / 2].im * s * sign));
        }
        // SAFETY: `z` has `h` pairs, `half` has `h + 1`, there are twiddles for the pairs below `h / 2`; the three do not overlap.
        unsafe {
            unfold(
                z.as_ptr().cast(),
                half.as_mut_ptr().cast(),
                self.twiddles.as_ptr().cast(),
                h,
                T::of(0.5) * scale * middle,
                sign,
            );
        }
    }

    /// Computes the real numbers whose half spectrum is `half`. `self` is an inverse plan.
    pub fn to_real(
        &self,
        half: &[Complex<T>],
        real: &mut [T],
        factors: Factors<T>,
        scratch: &mut [Complex<T>],
    ) {
        let n = self.n;
        assert!(real.len() == n && half.len() == n / 2 + 1);
        let Factors {
            scale,
            middle,
            sign,
        } = factors;
        if !n.is_multiple_of(2) {
            let (line, scratch) = scratch.split_at_mut(n);
            line[0] = Complex::new(half[0].re * scale, T::ZERO);
            let s = scale * middle;
            for k in 1..half.len() {
                line[k] = Complex::new(half[k].re * s, half[k].im * s * sign);
                line[n - k] = line[k].conj();
            }
            self.fft.process_with_scratch(line, scratch);
            for (x, z) in real.iter_mut().zip(line.iter()) {
                *x = z.re;
            }
            return;
        }
        let h = n / 2;
        // SAFETY: as in `to_half`.
        let z =
            unsafe { std::slice::from_raw_parts_mut(real.as_mut_ptr().cast::<Complex<T>>(), h) };
        let (first, last) = (half[0].re * scale, half[h].re * scale);
        z[0] = Complex::new(first + last, first - last);
        if h.is_multiple_of(2) {
            let s = T::of(2.0) * scale * middle;
            z[h / 2] = Complex::new(half[h / 2].re * s, -(half[h / 2].im * s * sign));
        }
        // SAFETY: as in `to_half`.
        unsafe {
            fold(
                half.as_ptr().cast(),
                z.as_mut_ptr().cast(),
                self.twiddles.as_ptr().cast(),
                h,
                scale * middle,
                sign,
            );
        }
        self.fft.process_with_scratch(z, scratch);
    }
}

per_isa! {
    /// Computes the spectrum X of `2 h` real numbers from the spectrum Z of the `h` complex numbers `x[2 j] + i x[2 j + 1]`, except for the elements
    /// 0, `h / 2` and `h`.
    ///
    /// E = Z(k) + conj Z(h - k) is twice the spectrum of the even elements, O = -i (Z(k) - conj Z(h - k)) twice that of the odd ones.
    /// Then X(k) = (E + w(k) O) / 2 and X(h - k) = conj(E - w(k) O) / 2.
    ///
    /// # Safety
    /// `z` has `h` pairs, `x` has `h + 1`, `w` has `h / 2`; `x` overlaps neither of the others.
    unsafe fn unfold<T>(z: *const T, x: *mut T, w: *const T, h: usize, scale: T, sign: T) = unfold_body
}

#[inline(always)]
unsafe fn unfold_body<T: Real, const FMA: bool>(
    z: *const T,
    x: *mut T,
    w: *const T,
    h: usize,
    scale: T,
    sign: T,
) {
    for k in 1..h.div_ceil(2) {
        let j = h - k;
        // SAFETY: `k` and `j` lie in 1..h, and `k` is below h / 2 (the caller guarantees it).
        unsafe {
            let (ar, ai) = (*z.add(2 * k), *z.add(2 * k + 1));
            let (br, bi) = (*z.add(2 * j), *z.add(2 * j + 1));
            let (wr, wi) = (*w.add(2 * k), *w.add(2 * k + 1));
            let (er, ei) = (ar + br, ai - bi);
            let (or, oi) = (ai + bi, br - ar);
            let (tr, ti) = (wr * or - wi * oi, wr * oi + wi * or);
            *x.add(2 * k) = (er + tr) * scale;
            *x.add(2 * k + 1) = (ei + ti) * scale * sign;
            *x.add(2 * j) = (er - tr) * scale;
            *x.add(2 * j + 1) = (ti - ei) * scale * sign;
        }
    }
}

per_isa! {
    /// The inverse of [`unfold`], times two.
    ///
    /// With E = X(k) + conj X(h - k) and O = conj w(k) (X(k) - conj X(h - k)): Z(k) = E + i O and Z(h - k) = conj(E - i O).
    ///
    /// # Safety
    /// `x` has `h + 1` pairs, `z` has `h`, `w` has `h / 2`; `z` overlaps neither of the others.
    unsafe fn fold<T>(x: *const T, z: *mut T, w: *const T, h: usize, scale: T, sign: T) = fold_body
}

#[inline(always)]
unsafe fn fold_body<T: Real, const FMA: bool>(
    x: *const T,
    z: *mut T,
    w: *const T,
    h: usize,
    scale: T,
    sign: T,
) {
    for k in 1..h.div_ceil(2) {
        let j = h - k;
        // SAFETY: as in `unfold_body`.
        unsafe {
            let (ar, ai) = (*x.add(2 * k), *x.add(2 * k + 1) * sign);
            let (br, bi) = (*x.add(2 * j), *x.add(2 * j + 1) * sign);
            let (wr, wi) = (*w.add(2 * k), *w.add(2 * k + 1));
            let (er, ei) = (ar + br, ai - bi);
            let (dr, di) = (ar - br, ai + bi);
            let (or, oi) = (wr * dr + wi * di, wr * di - wi * dr);
            *z.add(2 * k) = (er - oi) * scale;
            *z.add(2 * k + 1) = (ei + or) * scale;
            *z.add(2 * j) = (er + oi) * scale;
            *z.add(2 * j + 1) = (or - ei) * scale;
        }
    }
}
