//! Elementary functions on f32 and f64: branch-free, so that the inner loops around them vectorise.
//!
//! Polynomials are minimax (Remez exchange in 200-bit arithmetic, weighted for relative error) with coefficients rounded to the type. The error in
//! the comment is that of the exact polynomial. `L::FMA` says whether multiply-add is fused: where it is not, sums are arranged such that the
//! products that must be exact are.

#![allow(
    clippy::approx_constant,
    reason = "polynomial coefficients lie near constants and must not become them"
)]

mod erf;
mod exp;
mod hyper;
mod inverse;
mod log;
mod pow;
mod scalar;
mod trig;

pub(super) use erf::{normal_tail_near32, normal_tail32};

use super::row::Level;

/// `c0 + c1 x + c2 x^2 + …` by Horner's rule.
macro_rules! poly {
    ($l:ident, $x:expr; $c:expr) => { $c };
    ($l:ident, $x:expr; $c:expr, $($rest:expr),+ $(,)?) => {
        $crate::map::math::Float::mul_sum::<$l>($crate::map::math::poly!($l, $x; $($rest),+), $x, $c)
    };
}
use poly;

/// f32 or f64 with the functions that the operator tables use.
pub(crate) trait Float: Copy + PartialOrd {
    /// `self * b + c`, fused where that is one instruction.
    fn mul_sum<L: Level>(self, b: Self, c: Self) -> Self;
    fn fmod<L: Level>(a: Self, b: Self) -> Self;
    fn divmod<L: Level>(a: Self, b: Self) -> (Self, Self);
    /// Whether [`Float::fused_fmod`] and [`Float::fused_divmod`] support these operands, where there is a fused multiplication and addition.
    fn is_fused_fmod_exact(a: Self, b: Self) -> bool;
    /// Bit for bit the result of `fmod`, without branches.
    fn fused_fmod(a: Self, b: Self) -> Self;
    /// Bit for bit the results of `divmod`, without branches.
    fn fused_divmod(a: Self, b: Self) -> (Self, Self);
    fn hypot<L: Level>(a: Self, b: Self) -> Self;
    fn exp<L: Level>(self) -> Self;
    fn exp2<L: Level>(self) -> Self;
    fn expm1<L: Level>(self) -> Self;
    fn log<L: Level>(self) -> Self;
    fn log2<L: Level>(self) -> Self;
    fn log10<L: Level>(self) -> Self;
    fn log1p<L: Level>(self) -> Self;
    fn pow<L: Level>(self, y: Self) -> Self;
    /// Whether [`Float::pow_of_positive`] supports these operands.
    fn is_pow_of_positive(self, y: Self) -> bool;
    /// Power of a positive finite number with an exponent in the range that [`Float::is_pow_of_positive`] checks: bit for bit the result of `pow`.
    fn pow_of_positive<L: Level>(self, y: Self) -> Self;
    /// Sine; [`Float::is_far`] must be false.
    fn sin<L: Level>(self) -> Self;
    /// Cosine; [`Float::is_far`] must be false.
    fn cos<L: Level>(self) -> Self;
    /// Tangent; [`Float::is_far`] must be false.
    fn tan<L: Level>(self) -> Self;
    /// Whether the argument is too large for the fast reduction by multiples of pi/2.
    fn is_far(self) -> bool;
    fn sin_far(self) -> Self;
    fn cos_far(self) -> Self;
    fn tan_far(self) -> Self;
    fn asin<L: Level>(self) -> Self;
    fn acos<L: Level>(self) -> Self;
    fn atan<L: Level>(self) -> Self;
    fn atan2<L: Level>(self, x: Self) -> Self;
    fn sinh<L: Level>(self) -> Self;
    fn cosh<L: Level>(self) -> Self;
    fn tanh<L: Level>(self) -> Self;
    fn asinh<L: Level>(self) -> Self;
    fn acosh<L: Level>(self) -> Self;
    fn atanh<L: Level>(self) -> Self;
    fn sigmoid<L: Level>(self) -> Self;
    /// `log(1 + exp(self))`.
    fn softplus<L: Level>(self) -> Self;
    fn erf<L: Level>(self) -> Self;
    fn erfc<L: Level>(self) -> Self;
}

impl Float for f64 {
    #[inline(always)]
    fn mul_sum<L: Level>(self, b: f64, c: f64) -> f64 {
        if L::FMA {
            self.mul_add(b, c)
        } else {
            self * b + c
        }
    }
    #[inline(always)]
    fn fmod<L: Level>(a: f64, b: f64) -> f64 {
        scalar::fmod::<L>(a, b)
    }
    #[inline(always)]
    fn divmod<L: Level>(a: f64, b: f64) -> (f64, f64) {
        scalar::divmod64::<L>(a, b)
    }
    #[inline(always)]
    fn is_fused_fmod_exact(a: f64, b: f64) -> bool {
        scalar::is_fused_fmod_exact(a, b)
    }
    #[inline(always)]
    fn fused_fmod(a: f64, b: f64) -> f64 {
        scalar::fused_fmod(a, b)
    }
    #[inline(always)]
    fn fused_divmod(a: f64, b: f64) -> (f64, f64) {
        scalar::floored64(a, b, Self::fused_fmod(a, b))
    }
    #[inline(always)]
    fn hypot<L: Level>(a: f64, b: f64) -> f64 {
        scalar::hypot::<L>(a, b)
    }
    #[inline(always)]
    fn exp<L: Level>(self) -> f64 {
        exp::exp64::<L>(self)
    }
    #[inline(always)]
    fn exp2<L: Level>(self) -> f64 {
        exp::exp2_64::<L>(self)
    }
    #[inline(always)]
    fn expm1<L: Level>(self) -> f64 {
        exp::expm1_64::<L>(self)
    }
    #[inline(always)]
    fn log<L: Level>(self) -> f64 {
        log::log64::<L>(self)
    }
    #[inline(always)]
    fn log2<L: Level>(self) -> f64 {
        log::log2_64::<L>(self)
    }
    #[inline(always)]
    fn log10<L: Level>(self) -> f64 {
        log::log10_64::<L>(self)
    }
    #[inline(always)]
    fn log1p<L: Level>(self) -> f64 {
        log::log1p_64::<L>(self)
    }
    #[inline(always)]
    fn pow<L: Level>(self, y: f64) -> f64 {
        pow::pow64::<L>(self, y)
    }
    #[inline(always)]
    fn is_pow_of_positive(self, y: f64) -> bool {
        pow::is_pow64_of_positive(self, y)
    }
    #[inline(always)]
    fn pow_of_positive<L: Level>(self, y: f64) -> f64 {
        pow::pow64_of_positive::<L>(self, y)
    }
    #[inline(always)]
    fn sin<L: Level>(self) -> f64 {
        trig::sin64::<L>(self)
    }
    #[inline(always)]
    fn cos<L: Level>(self) -> f64 {
        trig::cos64::<L>(self)
    }
    #[inline(always)]
    fn tan<L: Level>(self) -> f64 {
        trig::tan64::<L>(self)
    }
    #[inline(always)]
    fn is_far(self) -> bool {
        self.abs() > trig::FAR64
    }
    fn sin_far(self) -> f64 {
        libm::sin(self)
    }
    fn cos_far(self) -> f64 {
        libm::cos(self)
    }
    fn tan_far(self) -> f64 {
        libm::tan(self)
    }
    #[inline(always)]
    fn asin<L: Level>(self) -> f64 {
        inverse::asin::<L>(self)
    }
    #[inline(always)]
    fn acos<L: Level>(self) -> f64 {
        inverse::acos::<L>(self)
    }
    #[inline(always)]
    fn atan<L: Level>(self) -> f64 {
        inverse::atan::<L>(self)
    }
    #[inline(always)]
    fn atan2<L: Level>(self, x: f64) -> f64 {
        inverse::atan2::<L>(self, x)
    }
    #[inline(always)]
    fn sinh<L: Level>(self) -> f64 {
        hyper::sinh::<L>(self)
    }
    #[inline(always)]
    fn cosh<L: Level>(self) -> f64 {
        hyper::cosh::<L>(self)
    }
    #[inline(always)]
    fn tanh<L: Level>(self) -> f64 {
        hyper::tanh64::<L>(self)
    }
    #[inline(always)]
    fn asinh<L: Level>(self) -> f64 {
        hyper::asinh::<L>(self)
    }
    #[inline(always)]
    fn acosh<L: Level>(self) -> f64 {
        hyper::acosh::<L>(self)
    }
    #[inline(always)]
    fn atanh<L: Level>(self) -> f64 {
        hyper::atanh::<L>(self)
    }
    #[inline(always)]
    fn sigmoid<L: Level>(self) -> f64 {
        let e = exp::exp64::<L>(-self.abs());
        (if self < 0.0 { e } else { 1.0 }) / (1.0 + e)
    }
    #[inline(always)]
    fn softplus<L: Level>(self) -> f64 {
        let above = if self > 0.0 { self } else { 0.0 };
        let tail = log::log1p_64::<L>(exp::exp64::<L>(-self.abs()));
        above + tail
    }
    #[inline(always)]
    fn erf<L: Level>(self) -> f64 {
        erf::erf64::<L>(self)
    }
    #[inline(always)]
    fn erfc<L: Level>(self) -> f64 {
        erf::erfc64::<L>(self)
    }
}

impl Float for f32 {
    #[inline(always)]
    fn mul_sum<L: Level>(self, b: f32, c: f32) -> f32 {
        if L::FMA {
            self.mul_add(b, c)
        } else {
            self * b + c
        }
    }
    #[inline(always)]
    fn fmod<L: Level>(a: f32, b: f32) -> f32 {
        scalar::fmod::<L>(f64::from(a), f64::from(b)) as f32
    }
    #[inline(always)]
    fn divmod<L: Level>(a: f32, b: f32) -> (f32, f32) {
        scalar::divmod32::<L>(a, b)
    }
    #[inline(always)]
    fn is_fused_fmod_exact(a: f32, b: f32) -> bool {
        scalar::is_fused_fmod_exact(f64::from(a), f64::from(b))
    }
    #[inline(always)]
    fn fused_fmod(a: f32, b: f32) -> f32 {
        scalar::fused_fmod(f64::from(a), f64::from(b)) as f32
    }
    #[inline(always)]
    fn fused_divmod(a: f32, b: f32) -> (f32, f32) {
        scalar::floored32(a, b, Self::fused_fmod(a, b))
    }
    #[inline(always)]
    fn hypot<L: Level>(a: f32, b: f32) -> f32 {
        // The squares are exact in f64 and cannot overflow there.
        let (x, y) = (f64::from(a), f64::from(b));
        let root = (x * x + y * y).sqrt() as f32;
        if a.is_infinite() | b.is_infinite() {
            f32::INFINITY
        } else {
            root
        }
    }
    #[inline(always)]
    fn exp<L: Level>(self) -> f32 {
        exp::exp32::<L>(self)
    }
    #[inline(always)]
    fn exp2<L: Level>(self) -> f32 {
        exp::exp2_32::<L>(self)
    }
    #[inline(always)]
    fn expm1<L: Level>(self) -> f32 {
        exp::expm1_32::<L>(self)
    }
    #[inline(always)]
    fn log<L: Level>(self) -> f32 {
        log::log32::<L>(self)
    }
    #[inline(always)]
    fn pow<L: Level>(self, y: f32) -> f32 {
        pow::pow32::<L>(self, y)
    }
    #[inline(always)]
    fn is_pow_of_positive(self, y: f32) -> bool {
        pow::is_pow32_of_positive(self, y)
    }
    #[inline(always)]
    fn pow_of_positive<L: Level>(self, y: f32) -> f32 {
        pow::pow32_of_positive::<L>(self, y)
    }
    #[inline(always)]
    fn log2<L: Level>(self) -> f32 {
        log::log2_32::<L>(self)
    }
    #[inline(always)]
    fn log10<L: Level>(self) -> f32 {
        log::log10_32::<L>(self)
    }
    #[inline(always)]
    fn tan<L: Level>(self) -> f32 {
        trig::tan32::<L>(self)
    }
    #[inline(always)]
    fn asin<L: Level>(self) -> f32 {
        inverse::asin32::<L>(self)
    }
    #[inline(always)]
    fn acos<L: Level>(self) -> f32 {
        inverse::acos32::<L>(self)
    }
    #[inline(always)]
    fn atan<L: Level>(self) -> f32 {
        inverse::atan32::<L>(self)
    }
    #[inline(always)]
    fn sinh<L: Level>(self) -> f32 {
        hyper::sinh32::<L>(self)
    }
    #[inline(always)]
    fn cosh<L: Level>(self) -> f32 {
        hyper::cosh32::<L>(self)
    }
    #[inline(always)]
    fn asinh<L: Level>(self) -> f32 {
        hyper::asinh32::<L>(self)
    }
    #[inline(always)]
    fn acosh<L: Level>(self) -> f32 {
        hyper::acosh32::<L>(self)
    }
    #[inline(always)]
    fn atanh<L: Level>(self) -> f32 {
        hyper::atanh32::<L>(self)
    }
    #[inline(always)]
    fn log1p<L: Level>(self) -> f32 {
        log::log1p_32::<L>(self)
    }
    #[inline(always)]
    fn softplus<L: Level>(self) -> f32 {
        let above = if self > 0.0 { self } else { 0.0 };
        above + log::log1p_32::<L>(exp::exp32::<L>(-self.abs()))
    }
    #[inline(always)]
    fn sin<L: Level>(self) -> f32 {
        trig::sin32::<L>(self)
    }
    #[inline(always)]
    fn cos<L: Level>(self) -> f32 {
        trig::cos32::<L>(self)
    }
    #[inline(always)]
    fn is_far(self) -> bool {
        self.abs() > trig::FAR32
    }
    fn sin_far(self) -> f32 {
        libm::sin(f64::from(self)) as f32
    }
    fn cos_far(self) -> f32 {
        libm::cos(f64::from(self)) as f32
    }
    fn tan_far(self) -> f32 {
        libm::tan(f64::from(self)) as f32
    }
    #[inline(always)]
    fn atan2<L: Level>(self, x: f32) -> f32 {
        inverse::atan2_32::<L>(self, x)
    }
    #[inline(always)]
    fn tanh<L: Level>(self) -> f32 {
        hyper::tanh32::<L>(self)
    }
    #[inline(always)]
    fn sigmoid<L: Level>(self) -> f32 {
        let e = exp::exp32::<L>(-self.abs());
        (if self < 0.0 { e } else { 1.0 }) / (1.0 + e)
    }
    #[inline(always)]
    fn erf<L: Level>(self) -> f32 {
        erf::erf32::<L>(self)
    }
    #[inline(always)]
    fn erfc<L: Level>(self) -> f32 {
        erf::erfc64::<L>(f64::from(self)) as f32
    }
}
