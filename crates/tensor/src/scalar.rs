//! `Scalar`: one value of any data type (Python scalars, fill values, elements), without arithmetic.

use half::{bf16, f16};
use num_complex::Complex;

use crate::{DType, Kind};

/// A value in the largest type of its kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// A boolean.
    Bool(bool),
    /// An integer in the range of int64; also of unsigned types.
    I64(i64),
    /// An element of a `uint64` array, or an integer above the range of `I64`.
    U64(u64),
    /// An integer beyond 64 bits, rounded to the nearest float (infinite if too large). No integer type holds it.
    Wide(f64),
    /// A real number.
    F64(f64),
    /// A complex number.
    C128(Complex<f64>),
}

impl Scalar {
    /// Its kind in type promotion, if it is a Python scalar.
    #[inline]
    pub const fn kind(&self) -> Kind {
        match *self {
            Scalar::Bool(_) => Kind::Bool,
            Scalar::I64(_) | Scalar::U64(_) | Scalar::Wide(_) => Kind::Integer,
            Scalar::F64(_) => Kind::Float,
            Scalar::C128(_) => Kind::Complex,
        }
    }

    /// The value as a real number, rounded to nearest; the real part of a complex number.
    #[inline]
    pub const fn as_f64(&self) -> f64 {
        match *self {
            Scalar::Bool(x) => x as u8 as f64,
            Scalar::I64(x) => x as f64,
            Scalar::U64(x) => x as f64,
            Scalar::Wide(x) | Scalar::F64(x) => x,
            Scalar::C128(x) => x.re,
        }
    }

    /// The value as an integer: floats are truncated and clipped (NaN gives 0), `U64` wraps, complex numbers use their real part.
    #[inline]
    pub const fn as_i64(&self) -> i64 {
        match *self {
            Scalar::Bool(x) => x as i64,
            Scalar::I64(x) => x,
            Scalar::U64(x) => x as i64,
            Scalar::Wide(x) | Scalar::F64(x) => x as i64,
            Scalar::C128(x) => x.re as i64,
        }
    }

    /// The value as an unsigned integer: as [`Scalar::as_i64`], but negative numbers wrap and large floats keep their value.
    #[inline]
    pub const fn as_u64(&self) -> u64 {
        match *self {
            Scalar::Bool(x) => x as u64,
            Scalar::I64(x) => x as u64,
            Scalar::U64(x) => x,
            Scalar::Wide(x) | Scalar::F64(x) => real_to_u64(x),
            Scalar::C128(x) => real_to_u64(x.re),
        }
    }

    /// Whether the value is not zero; NaN is true.
    #[inline]
    pub fn as_bool(&self) -> bool {
        match *self {
            Scalar::Bool(x) => x,
            Scalar::I64(x) => x != 0,
            Scalar::U64(x) => x != 0,
            Scalar::Wide(x) | Scalar::F64(x) => x != 0.0,
            Scalar::C128(x) => x.re != 0.0 || x.im != 0.0,
        }
    }

    /// The value as a complex number.
    #[inline]
    pub const fn as_c128(&self) -> Complex<f64> {
        match *self {
            Scalar::C128(x) => x,
            real => Complex::new(real.as_f64(), 0.0),
        }
    }

    /// The value if it is an integer in the range of int64 (booleans are 0 and 1). Floats are not integers here, even if they have no fraction.
    #[inline]
    pub const fn to_i64(&self) -> Option<i64> {
        match *self {
            Scalar::Bool(x) => Some(x as i64),
            Scalar::I64(x) => Some(x),
            Scalar::U64(x) if x <= i64::MAX as u64 => Some(x as i64),
            _ => None,
        }
    }

    /// Whether the dtype accepts the value by NumPy's rules for Python scalars: its kind is not below the value's, and an integer is in range. Every
    /// float type accepts finite floats (they may round to infinity), and integers beyond 64 bits if it has floats as large.
    #[inline]
    pub fn fits(&self, dtype: DType) -> bool {
        match self {
            Scalar::Bool(_) => true,
            Scalar::I64(_) if dtype == DType::I64 => true,
            Scalar::I64(_) | Scalar::F64(_) if dtype.is_inexact() => true,
            _ => self.fits_by_range(dtype),
        }
    }

    fn fits_by_range(&self, dtype: DType) -> bool {
        if let Scalar::Wide(x) = *self {
            return dtype.is_inexact() && x.is_finite();
        }
        if self.kind() > dtype.kind() {
            return match self.to_i64() {
                // The integers 0 and 1 convert to booleans.
                Some(x) => dtype == DType::Bool && (x == 0 || x == 1),
                None => false,
            };
        }
        if !dtype.is_integer() {
            return true;
        }
        let value = match *self {
            Scalar::U64(x) => i128::from(x),
            other => i128::from(other.as_i64()),
        };
        let bits = dtype.size() * 8;
        let (low, high) = if dtype.is_signed() {
            (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
        } else {
            (0, (1i128 << bits) - 1)
        };
        (low..=high).contains(&value)
    }

    /// Writes the value as one element, with C's conversions: integers wrap, floats truncate towards zero, complex numbers lose their imaginary part,
    /// nonzero values are true.
    ///
    /// # Safety
    ///
    /// `to` must be valid for writing `dtype.size()` bytes. It need not be aligned.
    #[inline]
    pub unsafe fn write(&self, dtype: DType, to: *mut u8) {
        // C does not define the conversion of floats outside the 64-bit range. Inside it, smaller types take the low bits.
        let signed = || self.as_i64();
        macro_rules! put {
            ($value:expr) => {{
                let value = $value;
                // SAFETY: the caller promises memory for one element of `dtype`, whose size is that of `value`.
                unsafe { put(to, value) }
            }};
        }
        match dtype {
            DType::Bool => put!(u8::from(self.as_bool())),
            DType::I8 => put!(signed() as i8),
            DType::I16 => put!(signed() as i16),
            DType::I32 => put!(signed() as i32),
            DType::I64 => put!(signed()),
            DType::U8 => put!(signed() as u8),
            DType::U16 => put!(signed() as u16),
            DType::U32 => put!(signed() as u32),
            DType::U64 => put!(self.as_u64()),
            DType::F16 => put!(f16::from_f64(self.as_f64())),
            DType::BF16 => put!(bf16::from_f64(self.as_f64())),
            DType::F32 => put!(self.as_f32()),
            DType::F64 => put!(self.as_f64()),
            DType::C64 => {
                let im = self.as_c128().im as f32;
                put!([self.as_f32(), im]);
            }
            DType::C128 => {
                let z = self.as_c128();
                put!([z.re, z.im]);
            }
        }
    }

    /// Reads one element. Integers of `uint64` become `U64`, all others `I64`.
    ///
    /// # Safety
    ///
    /// `from` must be valid for reading `dtype.size()` initialised bytes. It need not be aligned.
    #[inline]
    pub unsafe fn read(dtype: DType, from: *const u8) -> Scalar {
        macro_rules! get {
            ($type:ty) => {{
                // SAFETY: the caller promises one element of `dtype`, which `$type` represents.
                unsafe { from.cast::<$type>().read_unaligned() }
            }};
        }
        match dtype {
            // A byte other than 0 and 1 is true, as in NumPy; read as `bool` it would be undefined behaviour.
            DType::Bool => Scalar::Bool(get!(u8) != 0),
            DType::I8 => Scalar::I64(get!(i8).into()),
            DType::I16 => Scalar::I64(get!(i16).into()),
            DType::I32 => Scalar::I64(get!(i32).into()),
            DType::I64 => Scalar::I64(get!(i64)),
            DType::U8 => Scalar::I64(get!(u8).into()),
            DType::U16 => Scalar::I64(get!(u16).into()),
            DType::U32 => Scalar::I64(get!(u32).into()),
            DType::U64 => Scalar::U64(get!(u64)),
            DType::F16 => Scalar::F64(get!(f16).to_f64()),
            DType::BF16 => Scalar::F64(get!(bf16).to_f64()),
            DType::F32 => Scalar::F64(get!(f32).into()),
            DType::F64 => Scalar::F64(get!(f64)),
            DType::C64 => {
                let [re, im] = get!([f32; 2]);
                Scalar::C128(Complex::new(re.into(), im.into()))
            }
            DType::C128 => {
                let [re, im] = get!([f64; 2]);
                Scalar::C128(Complex::new(re, im))
            }
        }
    }

    /// Rounds once: integers are not converted to f64 first.
    #[inline]
    const fn as_f32(&self) -> f32 {
        match *self {
            Scalar::I64(x) => x as f32,
            Scalar::U64(x) => x as f32,
            other => other.as_f64() as f32,
        }
    }
}

/// # Safety
///
/// `to` must be valid for writing a `T`.
#[inline]
unsafe fn put<T>(to: *mut u8, value: T) {
    // SAFETY: the caller promises memory for a `T`; the write needs no alignment.
    unsafe { to.cast::<T>().write_unaligned(value) }
}

/// Negative numbers wrap, as in C; numbers above the signed range keep their value.
const fn real_to_u64(x: f64) -> u64 {
    if x < 0.0 { x as i64 as u64 } else { x as u64 }
}

macro_rules! from {
    ($($variant:ident: $($type:ty),*;)*) => {$($(
        impl From<$type> for Scalar {
            fn from(value: $type) -> Scalar { Scalar::$variant(value.into()) }
        }
    )*)*};
}

from! {
    Bool: bool;
    I64: i8, i16, i32, i64, u8, u16, u32;
    U64: u64;
    F64: f32, f64, f16, bf16;
    C128: Complex<f64>;
}

impl From<Complex<f32>> for Scalar {
    fn from(value: Complex<f32>) -> Scalar {
        Scalar::C128(Complex::new(value.re.into(), value.im.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a value to an unaligned address and reads it back.
    fn through(value: Scalar, dtype: DType) -> Scalar {
        let mut bytes = [0u8; 17];
        // SAFETY: at least 16 bytes follow the first byte, the size of the largest element.
        unsafe {
            value.write(dtype, bytes.as_mut_ptr().add(1));
            Scalar::read(dtype, bytes.as_ptr().add(1))
        }
    }

    #[test]
    fn values_survive_where_they_fit() {
        for dtype in DType::ALL {
            for value in [0u8, 1] {
                let back = through(Scalar::from(value), dtype);
                assert_eq!(back.as_f64(), f64::from(value), "{dtype}");
                assert_eq!(back.kind(), dtype.kind());
            }
        }
        assert_eq!(through(Scalar::I64(-3), DType::I8), Scalar::I64(-3));
        assert_eq!(
            through(Scalar::U64(u64::MAX), DType::U64),
            Scalar::U64(u64::MAX)
        );
        assert_eq!(through(Scalar::F64(-0.5), DType::BF16), Scalar::F64(-0.5));
        let z = Complex::new(1.5, -2.0);
        assert_eq!(through(Scalar::C128(z), DType::C64), Scalar::C128(z));
    }

    #[test]
    fn conversions_follow_c() {
        assert_eq!(through(Scalar::I64(300), DType::U8), Scalar::I64(44));
        assert_eq!(through(Scalar::I64(-1), DType::U64), Scalar::U64(u64::MAX));
        assert_eq!(through(Scalar::F64(-1.9), DType::I32), Scalar::I64(-1));
        assert_eq!(
            through(Scalar::F64(1.8e19), DType::U64),
            Scalar::U64(18_000_000_000_000_000_000)
        );
        assert_eq!(
            through(Scalar::F64(f64::NAN), DType::Bool),
            Scalar::Bool(true)
        );
        assert_eq!(
            through(Scalar::C128(Complex::new(2.0, 3.0)), DType::F32),
            Scalar::F64(2.0)
        );
        assert_eq!(
            through(Scalar::F64(1e300), DType::F32),
            Scalar::F64(f64::INFINITY)
        );
        // Above 2^53, halfway cases would round twice through f64.
        let x = (1i64 << 54) + (1i64 << 30) + 1;
        assert_eq!(
            through(Scalar::I64(x), DType::F32),
            Scalar::F64((x as f32).into())
        );
    }

    #[test]
    fn integers_beyond_64_bits_are_floats_of_the_integers_kind() {
        let value = Scalar::Wide(1180591620717411303424.0);
        assert_eq!((value.kind(), value.to_i64()), (Kind::Integer, None));
        assert_eq!(through(value, DType::F64), Scalar::F64(value.as_f64()));
        assert!(value.fits(DType::F16) && value.fits(DType::C64));
        assert!(!value.fits(DType::U64) && !value.fits(DType::Bool));
        assert!(!Scalar::Wide(f64::INFINITY).fits(DType::F64));
    }

    #[test]
    fn fits_is_numpys_rule_for_python_scalars() {
        assert!(Scalar::I64(255).fits(DType::U8) && !Scalar::I64(256).fits(DType::U8));
        assert!(!Scalar::I64(-1).fits(DType::U64) && Scalar::U64(u64::MAX).fits(DType::U64));
        assert!(!Scalar::U64(1 << 63).fits(DType::I64) && Scalar::I64(i64::MIN).fits(DType::I64));
        assert!(Scalar::I64(-128).fits(DType::I8) && !Scalar::I64(128).fits(DType::I8));
        assert!(Scalar::F64(1e300).fits(DType::F16) && !Scalar::F64(1.0).fits(DType::I64));
        assert!(
            Scalar::Bool(true).fits(DType::I8)
                && Scalar::I64(1).fits(DType::Bool)
                && !Scalar::I64(2).fits(DType::Bool)
        );
        assert!(
            !Scalar::C128(Complex::new(1.0, 0.0)).fits(DType::F64)
                && Scalar::I64(7).fits(DType::C64)
        );
    }
}
