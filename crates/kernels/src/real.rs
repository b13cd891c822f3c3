//! The trait [`Real`] (f32 and f64) of the neural-network kernels, and the macros that compile loops for each instruction set.
//!
//! A loop is an `#[inline(always)]` generic body with a const parameter `FMA`; [`per_isa`] wraps it in functions with each level's target features.

use std::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub, SubAssign};

/// Defines `$name`, which runs `$body::<T, FMA>` compiled for the CPU's instruction set.
#[macro_export]
macro_rules! per_isa {
    ($(#[$doc:meta])* $vis:vis unsafe fn $name:ident<T>($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? = $body:ident) => {
        $(#[$doc])*
        #[allow(clippy::too_many_arguments, reason = "a row's operands are pointers and lengths")]
        $vis unsafe fn $name<T: $crate::real::Real>($($arg: $ty),*) $(-> $ret)? {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,movbe")]
            #[allow(clippy::too_many_arguments, reason = "a row's operands are pointers and lengths")]
            unsafe fn avx2<T: $crate::real::Real>($($arg: $ty),*) $(-> $ret)? {
                // SAFETY: the caller of `$name` upholds the contract of `$body`.
                unsafe { $body::<T, true>($($arg),*) }
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,movbe,avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
            #[allow(clippy::too_many_arguments, reason = "a row's operands are pointers and lengths")]
            unsafe fn avx512<T: $crate::real::Real>($($arg: $ty),*) $(-> $ret)? {
                // SAFETY: the caller of `$name` upholds the contract of `$body`.
                unsafe { $body::<T, true>($($arg),*) }
            }
            match $crate::isa::isa() {
                #[cfg(target_arch = "x86_64")]
                // SAFETY: `isa()` found the features; the caller upholds the contract of `$body`.
                $crate::isa::Isa::Avx512 => unsafe { avx512::<T>($($arg),*) },
                #[cfg(target_arch = "x86_64")]
                // SAFETY: `isa()` found the features; the caller upholds the contract of `$body`.
                $crate::isa::Isa::Avx2 => unsafe { avx2::<T>($($arg),*) },
                // SAFETY: the caller of `$name` upholds the contract of `$body`.
                _ => unsafe { $body::<T, false>($($arg),*) },
            }
        }
    };
}
pub(crate) use crate::per_isa;

/// `(x - mean) * factor + shift`: batch normalisation with given statistics, by itself and behind a convolution.
#[inline(always)]
pub(crate) fn normalised<T: Real, const FMA: bool>(x: T, [mean, factor, shift]: [T; 3]) -> T {
    (x - mean).fma::<FMA>(factor, shift)
}

/// The payload of a panic of a kernel that does not take elements of this type. Kernels cannot return errors; the launch converts it to one.
#[derive(Debug)]
pub struct UnsupportedElem(pub crate::Elem);

/// Unwinds with [`UnsupportedElem`], without printing a message.
#[cold]
pub(crate) fn unsupported(elem: crate::Elem) -> ! {
    std::panic::resume_unwind(Box::new(UnsupportedElem(elem)))
}

/// Evaluates `$call` with `$T` as the Rust type of `$elem`, which must be `F32` or `F64`.
macro_rules! with_real {
    ($elem:expr, $T:ident => $call:expr) => {
        match $elem {
            $crate::Elem::F32 => {
                type $T = f32;
                $call
            }
            $crate::Elem::F64 => {
                type $T = f64;
                $call
            }
            other => $crate::real::unsupported(other),
        }
    };
}
pub(crate) use with_real;

/// A pointer that tasks share; each task writes only its own elements.
#[derive(Clone, Copy)]
pub(crate) struct Shared<T>(pub *mut T);

// SAFETY: the tasks of a kernel write disjoint elements through it; every use shows that they do.
unsafe impl<T> Sync for Shared<T> {}
// SAFETY: as above.
unsafe impl<T> Send for Shared<T> {}

impl<T> Shared<T> {
    /// Whether the operand is missing (null).
    #[inline(always)]
    pub(crate) fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// Pointer to element `i`.
    #[inline(always)]
    pub(crate) fn at(&self, i: usize) -> *mut T {
        self.0.wrapping_add(i)
    }
}

/// Terms summed in lanes before they are added to a total, which bounds the error of long rows.
pub(crate) const CHUNK: usize = 4096;

/// A sum over `$i` below `$n`, of which `$next` is `$sum` with the next term: chunks in lanes of `T`, the total in f64.
macro_rules! sum_in_lanes {
    ($n:expr, |$sum:ident, $i:ident| $next:expr) => {{
        let (mut total, mut start, n) = (0.0, 0, $n);
        while start < n {
            let end = (start + $crate::real::CHUNK).min(n);
            total += $crate::lanes::in_lanes!(32; T::ZERO, |a, b| a + b; $i in start, end, |$sum| $next).to_f64();
            start = end;
        }
        total
    }};
}
pub(crate) use sum_in_lanes;

per_isa! {
    /// Sum of a dense row.
    ///
    /// # Safety
    /// `n` elements are readable at `x`.
    pub(crate) unsafe fn sum_row<T>(x: *const T, n: usize) -> T = sum_row_body
}

/// # Safety
/// `n` elements are readable at `x`.
#[inline(always)]
pub(crate) unsafe fn sum_row_body<T: Real, const FMA: bool>(x: *const T, n: usize) -> T {
    // SAFETY: i < n.
    T::from_f64(sum_in_lanes!(n, |sum, i| unsafe { sum + *x.add(i) }))
}

/// ReLU with the operator's semantics: NaN gives NaN, -0.0 gives 0.0.
#[inline(always)]
pub(crate) fn relu<T: Real>(x: T) -> T {
    if x <= T::ZERO { T::ZERO } else { x }
}

/// `f32` or `f64`.
pub trait Real:
    Copy
    + PartialOrd
    + Send
    + Sync
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + 'static
{
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// Minus infinity.
    const NEG_INFINITY: Self;
    /// The element type as a value.
    const ELEM: crate::Elem;

    /// The nearest number of this type.
    fn from_f64(x: f64) -> Self;
    /// The same number in double precision.
    fn to_f64(self) -> f64;
    /// The number without its sign.
    fn abs(self) -> Self;
    /// Whether this is not a number.
    fn is_nan(self) -> bool;
    /// `self * b + c`, fused if the instruction set has fused multiply-add; never a library call.
    fn fma<const FMA: bool>(self, b: Self, c: Self) -> Self;
    /// `(2^n / 2, e^r - 1)` with `self = n ln 2 + r`: half of 2^n, because 2^n alone may overflow, and 0 where 2^n / 2 is no normal number.
    /// Branch-free; NaN is in the last part.
    fn exp_parts<const FMA: bool>(self) -> (Self, Self);

    /// `e^self` to 2 ulp, branch-free; 0 below twice the smallest normal number.
    #[inline(always)]
    fn exp<const FMA: bool>(self) -> Self {
        let (half, m1) = self.exp_parts::<FMA>();
        let two = Self::ONE + Self::ONE;
        m1.fma::<FMA>(two, two) * half
    }

    /// `e^self - 1` without cancellation, branch-free.
    #[inline(always)]
    fn exp_m1<const FMA: bool>(self) -> Self {
        let (half, m1) = self.exp_parts::<FMA>();
        // 2^n e^r - 1 = 2^n (e^r - 1) + (2^n - 1); the second term is exact where cancellation could matter (n near 0).
        let scale = half + half;
        m1.fma::<FMA>(scale, scale - Self::ONE)
    }

    /// Hyperbolic tangent, branch-free.
    #[inline(always)]
    fn tanh<const FMA: bool>(self) -> Self {
        let t = (Self::from_f64(-2.0) * self.abs()).exp_m1::<FMA>();
        let magnitude = -t / (t + Self::from_f64(2.0));
        if self < Self::ZERO {
            -magnitude
        } else {
            magnitude
        }
    }

    /// `1 / (1 + e^-self)`, branch-free.
    #[inline(always)]
    fn sigmoid<const FMA: bool>(self) -> Self {
        Self::ONE / (Self::ONE + (-self).exp::<FMA>())
    }

    /// The larger number; NaN if either is NaN.
    #[inline(always)]
    fn max_nan(self, other: Self) -> Self {
        if self > other || self.is_nan() {
            self
        } else {
            other
        }
    }
}

macro_rules! real {
    ($t:ident, $bits:ident, $signed:ident, $elem:ident, mantissa: $mant:expr, bias: $bias:expr, lowest: $low:expr, highest: $high:expr,
     round: $round:expr, ln2: ($hi:expr, $lo:expr), taylor: [$first:expr, $($c:expr),*]) => {
        impl Real for $t {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const NEG_INFINITY: Self = $t::NEG_INFINITY;
            const ELEM: crate::Elem = crate::Elem::$elem;

            #[inline(always)]
            fn from_f64(x: f64) -> Self {
                x as $t
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn abs(self) -> Self {
                $t::abs(self)
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                self != self
            }
            #[inline(always)]
            fn fma<const FMA: bool>(self, b: Self, c: Self) -> Self {
                if FMA { self.mul_add(b, c) } else { self * b + c }
            }
            #[inline(always)]
            fn exp_parts<const FMA: bool>(self) -> (Self, Self) {
                // Outside of these bounds the result is 0 or infinity; NaN passes both comparisons.
                let x = if self < $low { $low } else { self };
                let x = if x > $high { $high } else { x };
                // Adding 1.5 * 2^mantissa rounds to an integer, which is then in the low bits.
                let shifted = x.fma::<FMA>(std::$t::consts::LOG2_E, $round);
                let n = shifted - $round;
                let r = n.fma::<FMA>(-$hi, x);
                let r = n.fma::<FMA>(-$lo, r);
                // Taylor polynomial of (e^r - 1 - r) / r^2 on |r| <= ln(2)/2, highest power first.
                let mut q: $t = $first;
                $(q = q.fma::<FMA>(r, $c);)*
                let m1 = (q * r).fma::<FMA>(r, r);
                // The exponent of 2^n / 2 as it is stored, which is positive for normal numbers.
                let exponent = shifted.to_bits().wrapping_sub(($round as $t).to_bits()) as $signed + ($bias - 1);
                (<$t>::from_bits((exponent.max(0) as $bits) << $mant), m1)
            }
        }
    };
}

// ln 2 in two parts; the first ends in zeros, so that n * hi is exact (Cody and Waite).
real!(f32, u32, i32, F32, mantissa: 23, bias: 127, lowest: -104.0, highest: 89.0, round: 12582912.0,
    ln2: (0.693_359_4, -2.121_944_4e-4),
    taylor: [1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5]);
real!(f64, u64, i64, F64, mantissa: 52, bias: 1023, lowest: -746.0, highest: 710.0, round: 6755399441055744.0,
    ln2: (0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10),
    taylor: [1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0, 1.0 / 362880.0,
        1.0 / 40320.0, 1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5]);

#[cfg(test)]
mod tests {
    use super::Real;

    /// Error in units in the last place of `want` rounded to f32; infinities and NaN must agree.
    fn ulp32(got: f32, want: f64) -> f64 {
        let rounded = want as f32;
        if got == rounded || (got.is_nan() && rounded.is_nan()) {
            return 0.0;
        }
        let step = (f32::from_bits(rounded.abs().to_bits() + 1) - rounded.abs()) as f64;
        (got as f64 - want).abs() / step
    }

    #[test]
    fn exp_and_tanh_f32_stay_within_their_ulp() {
        for i in -120_000..120_000 {
            let x = i as f32 * 1e-3;
            for got in [x.exp_at_best(), Real::exp::<false>(x)] {
                let want = (x as f64).exp();
                // Small results may be 0.
                let flushed = got == 0.0 && want < 2.0 * f64::from(f32::MIN_POSITIVE);
                assert!(flushed || ulp32(got, want) <= 2.0, "exp({x}) = {got}");
            }
            let small = x * 1e-2;
            assert!(
                ulp32(Real::tanh::<false>(small), (small as f64).tanh()) <= 4.0,
                "tanh({small})"
            );
            assert!(
                ulp32(Real::exp_m1::<false>(small), (small as f64).exp_m1()) <= 4.0,
                "expm1({small})"
            );
        }
    }

    #[test]
    fn exp_f64_stays_within_2_ulp_of_libm() {
        for i in -80_000..80_000 {
            let x = i as f64 * 1e-2 + 1e-5;
            let (got, want) = (Real::exp::<false>(x), libm::exp(x));
            let step = f64::from_bits(want.to_bits() + 1) - want;
            let flushed = got == 0.0 && want < 2.0 * f64::MIN_POSITIVE;
            assert!(
                flushed || got == want || (got - want).abs() <= 2.0 * step,
                "exp({x}) = {got}, {want}"
            );
            let (got, want) = (Real::tanh::<false>(x * 1e-2), libm::tanh(x * 1e-2));
            assert!(
                (got - want).abs() <= 4.0 * f64::EPSILON * want.abs(),
                "tanh = {got}, {want}"
            );
        }
    }

    #[test]
    fn exp_keeps_nan_and_infinities() {
        assert!(Real::exp::<false>(f32::NAN).is_nan() && Real::exp::<false>(f64::NAN).is_nan());
        assert_eq!(Real::exp::<false>(f32::INFINITY), f32::INFINITY);
        assert_eq!(Real::exp::<false>(f64::INFINITY), f64::INFINITY);
        assert_eq!(Real::exp::<false>(f32::NEG_INFINITY), 0.0);
        assert_eq!(Real::exp::<false>(f64::NEG_INFINITY), 0.0);
        assert!(Real::tanh::<false>(f32::NAN).is_nan());
        assert_eq!(Real::tanh::<false>(f32::NEG_INFINITY), -1.0);
    }

    trait AtBest {
        fn exp_at_best(self) -> f32;
    }
    impl AtBest for f32 {
        /// `exp` compiled for the CPU's instruction set, as kernels call it.
        fn exp_at_best(self) -> f32 {
            super::per_isa! { unsafe fn one<T>(x: T) -> T = body }
            #[inline(always)]
            unsafe fn body<T: Real, const FMA: bool>(x: T) -> T {
                x.exp::<FMA>()
            }
            // SAFETY: no premise.
            unsafe { one(self) }
        }
    }
}
