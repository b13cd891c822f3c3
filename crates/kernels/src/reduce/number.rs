//! Conversions between element types, and the dispatch from `Elem` to a Rust type.

use half::{bf16, f16};

/// A boolean element: any nonzero byte reads as true; only 0 and 1 are written.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
#[repr(transparent)]
pub(crate) struct Bit(pub u8);

/// A complex element with NumPy's order: by real part, then by imaginary part. If any part is NaN, comparisons are false.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub(crate) struct Complex<T> {
    pub re: T,
    pub im: T,
}

impl<T: PartialOrd> PartialOrd for Complex<T> {
    #[inline(always)]
    fn partial_cmp(&self, other: &Complex<T>) -> Option<std::cmp::Ordering> {
        // The imaginary parts are compared even if the real parts decide, because one of them may be NaN.
        let imaginary = self.im.partial_cmp(&other.im)?;
        Some(self.re.partial_cmp(&other.re)?.then(imaginary))
    }
}

/// An element type that converts to and from every other as NumPy's `astype` does.
pub(crate) trait Number: Copy + PartialEq + PartialOrd + Send + Sync + 'static {
    const ZERO: Self;
    /// The largest value in sorting order, except NaN.
    const TOP: Self;
    /// The smallest value in sorting order.
    const BOTTOM: Self;
    /// Whether it has two parts. Then NaNs differ in the other part.
    const IS_COMPLEX: bool = false;
    fn to_i64(self) -> i64;
    fn to_u64(self) -> u64;
    fn to_f32(self) -> f32;
    fn to_f64(self) -> f64;
    fn imag(self) -> f64;
    fn from_number<S: Number>(s: S) -> Self;

    #[inline(always)]
    fn is_nonzero(self) -> bool {
        self != Self::ZERO
    }

    /// Whether the value is NaN (for complex numbers: either part).
    #[inline(always)]
    #[expect(clippy::eq_op, reason = "only NaN differs from itself")]
    fn is_nan(self) -> bool {
        self != self
    }

    /// NaN if either is NaN. May be NaN of two infinities too. Types without NaN give `self`.
    #[inline(always)]
    fn join_nan(self, _other: Self) -> Self {
        self
    }
}

macro_rules! integers {
    ($($t:ty, $via:ident);*) => { $(impl Number for $t {
        const ZERO: Self = 0;
        const TOP: Self = <$t>::MAX;
        const BOTTOM: Self = <$t>::MIN;
        #[inline(always)]
        fn to_i64(self) -> i64 { self as i64 }
        #[inline(always)]
        fn to_u64(self) -> u64 { self as u64 }
        #[inline(always)]
        fn to_f32(self) -> f32 { self as f32 }
        #[inline(always)]
        fn to_f64(self) -> f64 { self as f64 }
        #[inline(always)]
        fn imag(self) -> f64 { 0.0 }
        #[inline(always)]
        fn from_number<S: Number>(s: S) -> Self { s.$via() as $t }
    })* };
}
integers!(i8, to_i64; i16, to_i64; i32, to_i64; i64, to_i64;
          u8, to_i64; u16, to_i64; u32, to_i64; u64, to_u64);

macro_rules! floats {
    ($($t:ty, $zero:expr, $inf:expr, |$x:ident| $f32:expr, $f64:expr, |$s:ident| $make:expr);*) => { $(impl Number for $t {
        const ZERO: Self = $zero;
        const TOP: Self = $inf.0;
        const BOTTOM: Self = $inf.1;
        #[inline(always)]
        fn to_i64(self) -> i64 { self.to_f64() as i64 }
        // Negative values wrap, as a cast through i64 does.
        #[inline(always)]
        fn to_u64(self) -> u64 {
            let x = self.to_f64();
            if x < 0.0 { x as i64 as u64 } else { x as u64 }
        }
        #[inline(always)]
        fn join_nan(self, other: Self) -> Self { self + other }
        #[inline(always)]
        fn to_f32(self) -> f32 { let $x = self; $f32 }
        #[inline(always)]
        fn to_f64(self) -> f64 { let $x = self; $f64 }
        #[inline(always)]
        fn imag(self) -> f64 { 0.0 }
        #[inline(always)]
        fn from_number<S: Number>($s: S) -> Self { $make }
    })* };
}
floats!(
    f16, f16::ZERO, (f16::INFINITY, f16::NEG_INFINITY),
        |x| widen_f16(x.to_bits()), widen_f16(x.to_bits()) as f64, |s| f16::from_f64(s.to_f64());
    bf16, bf16::ZERO, (bf16::INFINITY, bf16::NEG_INFINITY),
        |x| f32::from_bits((x.to_bits() as u32) << 16), x.to_f32() as f64, |s| bf16::from_f64(s.to_f64());
    f32, 0.0, (f32::INFINITY, f32::NEG_INFINITY), |x| x, x as f64, |s| s.to_f32();
    f64, 0.0, (f64::INFINITY, f64::NEG_INFINITY), |x| x as f32, x, |s| s.to_f64()
);

impl Number for Bit {
    const ZERO: Self = Bit(0);
    const TOP: Self = Bit(1);
    const BOTTOM: Self = Bit(0);
    #[inline(always)]
    fn to_i64(self) -> i64 {
        (self.0 != 0) as i64
    }
    #[inline(always)]
    fn to_u64(self) -> u64 {
        (self.0 != 0) as u64
    }
    #[inline(always)]
    fn to_f32(self) -> f32 {
        (self.0 != 0) as u8 as f32
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        (self.0 != 0) as u8 as f64
    }
    #[inline(always)]
    fn imag(self) -> f64 {
        0.0
    }
    #[inline(always)]
    fn from_number<S: Number>(s: S) -> Self {
        Bit(s.is_nonzero() as u8)
    }
}

macro_rules! complex {
    ($($t:ty);*) => { $(impl Number for Complex<$t> {
        const IS_COMPLEX: bool = true;
        const ZERO: Self = Complex { re: 0.0, im: 0.0 };
        const TOP: Self = Complex { re: <$t>::INFINITY, im: <$t>::INFINITY };
        const BOTTOM: Self = Complex { re: <$t>::NEG_INFINITY, im: <$t>::NEG_INFINITY };
        #[inline(always)]
        fn join_nan(self, other: Self) -> Self {
            Complex { re: self.re + other.re, im: self.im + other.im }
        }
        #[inline(always)]
        fn to_i64(self) -> i64 { self.re as i64 }
        #[inline(always)]
        fn to_u64(self) -> u64 { self.re.to_u64() }
        #[inline(always)]
        fn to_f32(self) -> f32 { self.re as f32 }
        #[inline(always)]
        fn to_f64(self) -> f64 { self.re as f64 }
        #[inline(always)]
        fn imag(self) -> f64 { self.im as f64 }
        #[inline(always)]
        fn from_number<S: Number>(s: S) -> Self { Complex { re: s.to_f64() as $t, im: s.imag() as $t } }
    })* };
}
complex!(f32; f64);

/// binary16 to binary32 without branches, so that loops over it vectorise; `half`'s own conversion checks the CPU's features at every call.
#[inline(always)]
pub(crate) fn widen_f16(h: u16) -> f32 {
    // The shifted exponent is 112 too small. Multiplying by 2^112 corrects it, for subnormals too.
    let magnitude = f32::from_bits(((h & 0x7fff) as u32) << 13) * f32::from_bits((127 + 112) << 23);
    let special = if h & 0x7c00 == 0x7c00 { 0x7f80_0000 } else { 0 };
    f32::from_bits(magnitude.to_bits() | special | (((h & 0x8000) as u32) << 16))
}

/// Runs `$body` with `$T` as the Rust type of `$elem`.
macro_rules! with_elem {
    ($elem:expr, $T:ident => $body:expr) => {{
        use $crate::reduce::number::{Bit, Complex};
        match $elem {
            $crate::Elem::Bool => {
                type $T = Bit;
                $body
            }
            $crate::Elem::I8 => {
                type $T = i8;
                $body
            }
            $crate::Elem::I16 => {
                type $T = i16;
                $body
            }
            $crate::Elem::I32 => {
                type $T = i32;
                $body
            }
            $crate::Elem::I64 => {
                type $T = i64;
                $body
            }
            $crate::Elem::U8 => {
                type $T = u8;
                $body
            }
            $crate::Elem::U16 => {
                type $T = u16;
                $body
            }
            $crate::Elem::U32 => {
                type $T = u32;
                $body
            }
            $crate::Elem::U64 => {
                type $T = u64;
                $body
            }
            $crate::Elem::F16 => {
                type $T = half::f16;
                $body
            }
            $crate::Elem::BF16 => {
                type $T = half::bf16;
                $body
            }
            $crate::Elem::F32 => {
                type $T = f32;
                $body
            }
            $crate::Elem::F64 => {
                type $T = f64;
                $body
            }
            $crate::Elem::C64 => {
                type $T = Complex<f32>;
                $body
            }
            $crate::Elem::C128 => {
                type $T = Complex<f64>;
                $body
            }
        }
    }};
}
pub(crate) use with_elem;
