//! Integer sort keys that have the order of the elements.

use super::quicksort::Word;
use crate::reduce::number::{Bit, Complex};

/// An element with a sort key.
pub(super) trait Keyed: Copy + Send + Sync + 'static {
    type Key: Key;
    /// The key; equal for elements that compare equal (both zeros, all NaNs).
    fn key(self) -> Self::Key;
    fn is_nan(self) -> bool;
}

/// An element whose key is a signed integer: every real type.
pub(super) trait OrderedWord: Keyed {
    type Word: Word + Key;
    /// A key that also distinguishes the two zeros, so that the element can be restored (every NaN as the same NaN).
    fn exact(self) -> Self::Word;
    fn from_exact(word: Self::Word) -> Self;
    /// The key as an integer; equal for elements that compare equal.
    fn word(self) -> Self::Word;
}

/// The sort key of an element.
pub(super) trait Key: Copy + Ord + Send + Sync + 'static {
    /// The smallest key.
    const LEAST: Self;
    /// The largest key.
    const GREATEST: Self;
    /// Distance from `least`, if distances of this key type count the keys in between.
    fn distance_from(self, least: Self) -> Option<usize>;
    /// A hash: its upper bits differ for most different keys.
    fn mixed(self) -> u64;
}

/// Two rounds of multiply and fold, because floats with few digits differ only in their upper bits and integers only in their lower ones.
#[inline(always)]
fn mixed(x: u64) -> u64 {
    let x = (x ^ (x >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (x ^ (x >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9)
}

macro_rules! keys {
    ($($t:ty, $bits:ty);*) => { $(impl Key for $t {
        const LEAST: $t = <$t>::MIN;
        const GREATEST: $t = <$t>::MAX;
        #[inline(always)]
        fn distance_from(self, least: $t) -> Option<usize> {
            usize::try_from(self.wrapping_sub(least) as $bits).ok()
        }
        #[inline(always)]
        fn mixed(self) -> u64 {
            mixed(u64::from(self as $bits))
        }
    })* };
}
keys!(i32, u32; i64, u64);

/// Key of a complex number: which parts are NaN, then the parts.
pub(super) type Parts = (u8, i64, i64);

impl Key for Parts {
    const LEAST: Parts = (0, i64::MIN, i64::MIN);
    const GREATEST: Parts = (u8::MAX, i64::MAX, i64::MAX);
    fn distance_from(self, _: Parts) -> Option<usize> {
        None
    }
    fn mixed(self) -> u64 {
        mixed(u64::from(self.0) ^ mixed(self.1 as u64) ^ mixed(self.2 as u64).rotate_left(32))
    }
}

macro_rules! integers {
    ($($t:ty, $word:ty, $bias:expr);*) => { $(
        impl Keyed for $t {
            type Key = $word;
            #[inline(always)]
            fn key(self) -> $word { (self as $word) ^ $bias }
            #[inline(always)]
            fn is_nan(self) -> bool { false }
        }
        impl OrderedWord for $t {
            type Word = $word;
            #[inline(always)]
            fn exact(self) -> $word { self.key() }
            #[inline(always)]
            fn from_exact(word: $word) -> Self { (word ^ $bias) as $t }
            #[inline(always)]
            fn word(self) -> $word { self.key() }
        }
    )* };
}
// Unsigned integers of 32 and 64 bits flip their sign bit, so that the smallest becomes the most negative.
integers!(u8, i32, 0; u16, i32, 0; u32, i32, i32::MIN; u64, i64, i64::MIN; i8, i32, 0; i16, i32, 0; i32, i32, 0; i64, i64, 0);

impl Keyed for Bit {
    type Key = i32;
    fn key(self) -> i32 {
        (self.0 != 0) as i32
    }
    fn is_nan(self) -> bool {
        false
    }
}

impl OrderedWord for Bit {
    type Word = i32;
    fn exact(self) -> i32 {
        self.key()
    }
    fn from_exact(word: i32) -> Self {
        Bit(word as u8)
    }
    fn word(self) -> i32 {
        self.key()
    }
}

macro_rules! floats {
    ($($t:ty, $bits:ty, $signed:ty, $word:ty);*) => { $(
        impl Keyed for $t {
            type Key = $word;
            #[inline(always)]
            fn key(self) -> $word {
                // The key of -0 is one below that of +0.
                let word = self.exact();
                if word == -1 { 0 } else { word }
            }
            #[inline(always)]
            fn is_nan(self) -> bool { <$t>::is_nan(self) }
        }
        impl OrderedWord for $t {
            type Word = $word;
            // Positive floats order like their bits; for negative ones all bits but the sign are inverted.
            #[inline(always)]
            fn exact(self) -> $word {
                let bits = self.to_bits() as $signed;
                let ordered = bits ^ ((bits >> (<$bits>::BITS - 1)) & <$signed>::MAX);
                (if Keyed::is_nan(self) { <$signed>::MAX } else { ordered }) as $word
            }
            #[inline(always)]
            fn from_exact(word: $word) -> Self {
                let bits = word as $signed;
                <$t>::from_bits((bits ^ ((bits >> (<$bits>::BITS - 1)) & <$signed>::MAX)) as $bits)
            }
            #[inline(always)]
            fn word(self) -> $word { self.key() }
        }
    )* };
}
floats!(half::f16, u16, i16, i32; half::bf16, u16, i16, i32; f32, u32, i32, i32; f64, u64, i64, i64);

macro_rules! complex {
    ($($t:ty),*) => { $(impl Keyed for Complex<$t> {
        type Key = Parts;
        // Numbers with a NaN imaginary part come after all others, those with a NaN real part after these.
        #[inline(always)]
        fn key(self) -> Parts {
            ((self.re.is_nan() as u8) << 1 | self.im.is_nan() as u8, self.re.key() as i64, self.im.key() as i64)
        }
        #[inline(always)]
        fn is_nan(self) -> bool { self.re.is_nan() || self.im.is_nan() }
    })* };
}
complex!(f32, f64);

/// Evaluates `$real` with `$T` as the type of a real element, or `$complex` with that of a complex one.
macro_rules! with_keys {
    ($elem:expr, $T:ident => $real:expr, $C:ident => $complex:expr) => {{
        match $elem {
            $crate::Elem::Bool => {
                type $T = $crate::reduce::number::Bit;
                $real
            }
            $crate::Elem::I8 => {
                type $T = i8;
                $real
            }
            $crate::Elem::I16 => {
                type $T = i16;
                $real
            }
            $crate::Elem::I32 => {
                type $T = i32;
                $real
            }
            $crate::Elem::I64 => {
                type $T = i64;
                $real
            }
            $crate::Elem::U8 => {
                type $T = u8;
                $real
            }
            $crate::Elem::U16 => {
                type $T = u16;
                $real
            }
            $crate::Elem::U32 => {
                type $T = u32;
                $real
            }
            $crate::Elem::U64 => {
                type $T = u64;
                $real
            }
            $crate::Elem::F16 => {
                type $T = half::f16;
                $real
            }
            $crate::Elem::BF16 => {
                type $T = half::bf16;
                $real
            }
            $crate::Elem::F32 => {
                type $T = f32;
                $real
            }
            $crate::Elem::F64 => {
                type $T = f64;
                $real
            }
            $crate::Elem::C64 => {
                type $C = $crate::reduce::number::Complex<f32>;
                $complex
            }
            $crate::Elem::C128 => {
                type $C = $crate::reduce::number::Complex<f64>;
                $complex
            }
        }
    }};
}
pub(super) use with_keys;
