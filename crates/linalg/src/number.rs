//! The four element types (f32, f64, c64, c128) and their operations in this crate.

use crate::memory::{buffer, filled};
use std::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub, SubAssign};

use faer::linalg::evd::{self, ComputeEigenvectors, EvdError};
use faer::traits::{ComplexField, RealField};
use faer::{MatMut, MatRef, Par};
use num_complex::Complex;

/// A real type.
pub(crate) trait RealElement:
    RealField + MatrixElement<Real = Self> + Copy + PartialOrd + Send + Sync + 'static
{
    /// Distance from 1 to the next number.
    const EPSILON: Self;
    /// Not a number.
    const NOT_A_NUMBER: Self;
    /// Minus infinity.
    const MINUS_INFINITY: Self;
    /// Numbers with an exponent of two up to this size can be squared without overflow.
    const SAFE: i32;
    /// Numbers with an exponent below minus this one have reciprocals near the overflow threshold.
    const MIN_UNSCALED: i32;
    /// The largest exponent of two.
    const LARGEST: i32;
    /// Powers of two with exponents from `-STEP` to `STEP` are exact.
    const STEP: i32;
    /// Exponent of the largest power of two that does not exceed a positive number.
    fn exponent(self) -> i32;
    /// Converts an integer.
    fn from_integer(n: i32) -> Self;
    /// 2 to a power of at most [`RealElement::STEP`] in magnitude.
    fn power_of_two(exponent: i32) -> Self;
    /// Square root.
    fn root(self) -> Self;
    /// Natural logarithm.
    fn log(self) -> Self;
    /// Exponential function.
    fn exponential(self) -> Self;
    /// sqrt(self^2 + other^2) without overflow.
    fn hypotenuse(self, other: Self) -> Self;
}

/// A real or complex type.
pub(crate) trait MatrixElement:
    ComplexField
    + Copy
    + Send
    + Sync
    + 'static
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
{
    /// The real type, with the operations of this crate.
    type Re: RealElement;
    /// Whether the type is complex.
    const IS_COMPLEX: bool;
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// The real part.
    fn re(self) -> Self::Re;
    /// The imaginary part.
    fn im(self) -> Self::Re;
    /// Constructs a number from its parts; real types ignore the imaginary one.
    fn of(re: Self::Re, im: Self::Re) -> Self;
    /// The complex conjugate.
    fn conjugate(self) -> Self;
    /// Absolute value.
    fn modulus(self) -> Self::Re;
    /// Sum of the absolute values of both parts, by which pivots are chosen.
    fn sum_of_parts(self) -> Self::Re;
    /// Drops the imaginary part, which is zero on the diagonal of Hermitian matrices.
    fn without_imaginary(self) -> Self {
        Self::of(self.re(), <Self::Re as MatrixElement>::ZERO)
    }
    /// The product with a real number.
    fn times(self, factor: Self::Re) -> Self {
        self * Self::of(factor, <Self::Re as MatrixElement>::ZERO)
    }
    /// Whether it is neither infinite nor NaN.
    fn is_number(self) -> bool {
        // x - x is NaN for infinities and NaNs.
        let zero = <Self::Re as MatrixElement>::ZERO;
        self.re() - self.re() == zero && self.im() - self.im() == zero
    }
    /// Eigenvalues and, if asked for, right eigenvectors (columns, not normalised) of an n x n matrix of finite numbers.
    fn eigen(
        a: MatRef<'_, Self>,
        w: &mut [Complex<Self::Re>],
        v: Option<&mut [Complex<Self::Re>]>,
    ) -> Result<(), EvdError>;
}

fn memory<T: ComplexField>(n: usize, vectors: bool) -> faer::dyn_stack::MemBuffer {
    let right = if vectors {
        ComputeEigenvectors::Yes
    } else {
        ComputeEigenvectors::No
    };
    let left = ComputeEigenvectors::No;
    buffer(evd::evd_scratch::<T>(
        n,
        left,
        right,
        Par::Seq,
        Default::default(),
    ))
}

macro_rules! real {
    ($t:ident, $safe:literal, $min_unscaled:literal, $step:literal) => {
        impl RealElement for $t {
            const EPSILON: Self = $t::EPSILON;
            const NOT_A_NUMBER: Self = $t::NAN;
            const MINUS_INFINITY: Self = $t::NEG_INFINITY;
            const SAFE: i32 = $safe;
            const MIN_UNSCALED: i32 = $min_unscaled;
            const LARGEST: i32 = $t::MAX_EXP;
            const STEP: i32 = $step;
            fn exponent(self) -> i32 {
                f64::from(self).log2().floor() as i32
            }
            fn from_integer(n: i32) -> Self {
                n as $t
            }
            fn power_of_two(exponent: i32) -> Self {
                $t::powi(2.0, exponent)
            }
            fn root(self) -> Self {
                $t::sqrt(self)
            }
            fn log(self) -> Self {
                $t::ln(self)
            }
            fn exponential(self) -> Self {
                $t::exp(self)
            }
            fn hypotenuse(self, other: Self) -> Self {
                $t::hypot(self, other)
            }
        }

        impl MatrixElement for $t {
            type Re = $t;
            const IS_COMPLEX: bool = false;
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            #[inline]
            fn re(self) -> $t {
                self
            }
            #[inline]
            fn im(self) -> $t {
                0.0
            }
            #[inline]
            fn of(re: $t, _: $t) -> Self {
                re
            }
            #[inline]
            fn conjugate(self) -> Self {
                self
            }
            #[inline]
            fn modulus(self) -> $t {
                $t::abs(self)
            }
            #[inline]
            fn sum_of_parts(self) -> $t {
                $t::abs(self)
            }
            #[inline]
            fn times(self, factor: $t) -> Self {
                self * factor
            }
            fn eigen(
                a: MatRef<'_, $t>,
                w: &mut [Complex<$t>],
                v: Option<&mut [Complex<$t>]>,
            ) -> Result<(), EvdError> {
                real_eigen(a, w, v)
            }
        }

        impl MatrixElement for Complex<$t> {
            type Re = $t;
            const IS_COMPLEX: bool = true;
            const ZERO: Self = Complex { re: 0.0, im: 0.0 };
            const ONE: Self = Complex { re: 1.0, im: 0.0 };
            #[inline]
            fn re(self) -> $t {
                self.re
            }
            #[inline]
            fn im(self) -> $t {
                self.im
            }
            #[inline]
            fn of(re: $t, im: $t) -> Self {
                Complex { re, im }
            }
            #[inline]
            fn conjugate(self) -> Self {
                Complex {
                    re: self.re,
                    im: -self.im,
                }
            }
            #[inline]
            fn modulus(self) -> $t {
                self.re.hypot(self.im)
            }
            #[inline]
            fn sum_of_parts(self) -> $t {
                self.re.abs() + self.im.abs()
            }
            #[inline]
            fn times(self, factor: $t) -> Self {
                Complex {
                    re: self.re * factor,
                    im: self.im * factor,
                }
            }
            fn eigen(
                a: MatRef<'_, Self>,
                w: &mut [Self],
                v: Option<&mut [Self]>,
            ) -> Result<(), EvdError> {
                complex_eigen::<$t>(a, w, v)
            }
        }
    };
}
real!(f32, 16, 110, 60);
real!(f64, 200, 900, 500);

fn real_eigen<R: RealElement>(
    a: MatRef<'_, R>,
    w: &mut [Complex<R>],
    v: Option<&mut [Complex<R>]>,
) -> Result<(), EvdError> {
    let n = a.nrows();
    let zero = <R as MatrixElement>::ZERO;
    let (mut re, mut im) = (filled(n, zero), filled(n, zero));
    let mut packed = filled(if v.is_some() { n * n } else { 0 }, zero);
    let mut memory = memory::<R>(n, v.is_some());
    let vectors = v
        .is_some()
        .then(|| MatMut::from_column_major_slice_mut(&mut packed, n, n));
    evd::evd_real(
        a,
        faer::diag::DiagMut::from_slice_mut(&mut re),
        faer::diag::DiagMut::from_slice_mut(&mut im),
        None,
        vectors,
        Par::Seq,
        faer::dyn_stack::MemStack::new(&mut memory),
        Default::default(),
    )?;
    for (w, (&re, &im)) in w.iter_mut().zip(re.iter().zip(&im)) {
        *w = Complex { re, im };
    }
    let Some(v) = v else { return Ok(()) };
    // A conjugate pair uses two columns: the real and the imaginary parts of the first eigenvector.
    let mut j = 0;
    while j < n {
        let pair = im[j] != zero && j + 1 < n;
        for i in 0..n {
            let re = packed[j * n + i];
            let im = if pair { packed[(j + 1) * n + i] } else { zero };
            v[j * n + i] = Complex { re, im };
            if pair {
                v[(j + 1) * n + i] = Complex { re, im: -im };
            }
        }
        j += 1 + usize::from(pair);
    }
    Ok(())
}

fn complex_eigen<R: RealElement>(
    a: MatRef<'_, Complex<R>>,
    w: &mut [Complex<R>],
    v: Option<&mut [Complex<R>]>,
) -> Result<(), EvdError> {
    let n = a.nrows();
    let mut memory = memory::<Complex<R>>(n, v.is_some());
    evd::evd_cplx(
        a,
        faer::diag::DiagMut::from_slice_mut(w),
        None,
        v.map(|v| MatMut::from_column_major_slice_mut(v, n, n)),
        Par::Seq,
        faer::dyn_stack::MemStack::new(&mut memory),
        Default::default(),
    )
}
