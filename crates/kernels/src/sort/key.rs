//! Integer keys with the order of the elements.

use crate::reduce::number::{Bit, Cx};

/// An element with a sorting key.
pub(super) trait Keyed: Copy + Send + Sync + 'static {
    type Key: Key;
    /// Equal for elements that compare equal (both zeros, all NaNs).
    fn key(self) -> Self::Key;
    /// A key that still tells zeros apart, and the element back from it (every NaN as the same NaN); `None` for complex numbers.
    fn exact(self) -> Self::Key;
    fn from_exact(key: Self::Key) -> Option<Self>;
    fn is_nan(self) -> bool;
}

/// An unsigned integer, or what orders like one.
pub(super) trait Key: Copy + Ord + Send + Sync + 'static {
    /// A key together with the number of its element; orders by key, then by number.
    type Item: Item;
    fn item(self, number: usize) -> Self::Item;
    fn number(item: Self::Item) -> usize;
    /// The key before all others.
    const LEAST: Self;
    /// The key after all others.
    const GREATEST: Self;
    /// The key whose order is reversed.
    fn reversed(self) -> Self;
    /// How far the key is behind another, if such distances say how many keys lie between.
    fn beyond(self, least: Self) -> Option<usize>;
    /// A number whose upper bits differ for most keys that differ.
    fn mixed(self) -> u64;
    /// Sorts keys without numbers.
    fn sort(threads: &dyn crate::Threads, keys: Vec<Self>) -> Vec<Self>;
}

/// Something radix sort can take apart: `digit(pass)` for passes `0..PASSES`, least significant first; 0 passes if it cannot.
pub(super) trait Item: Copy + Ord + Send + Sync + 'static {
    const PASSES: usize;
    /// Items up to which radix passes are faster than comparisons: beyond the second-level cache only narrow items gain.
    const MOST: usize = 64 * 1024;
    fn digit(self, pass: usize) -> usize;
}

/// Bits of one digit.
pub(super) const DIGIT: usize = 8;
const MASK: u64 = (1 << DIGIT) - 1;

impl Item for u32 {
    const PASSES: usize = 4;
    const MOST: usize = usize::MAX;
    #[inline(always)]
    fn digit(self, pass: usize) -> usize {
        ((self as u64 >> (DIGIT * pass)) & MASK) as usize
    }
}

impl Item for u64 {
    const PASSES: usize = 8;
    #[inline(always)]
    fn digit(self, pass: usize) -> usize {
        ((self >> (DIGIT * pass)) & MASK) as usize
    }
}

/// A 32-bit key above a 32-bit number. Items start in the order of their numbers and passes are stable: only the key is taken apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Packed(u64);

impl Item for Packed {
    const PASSES: usize = 4;
    #[inline(always)]
    fn digit(self, pass: usize) -> usize {
        (((self.0 >> 32) >> (DIGIT * pass)) & MASK) as usize
    }
}

impl Item for (u64, u64) {
    const PASSES: usize = 8;
    #[inline(always)]
    fn digit(self, pass: usize) -> usize {
        self.0.digit(pass)
    }
}

/// Complex: which parts are NaN, then the parts.
pub(super) type Parts = (u8, u64, u64);

impl Item for (Parts, u64) {
    const PASSES: usize = 0;
    fn digit(self, _: usize) -> usize {
        0
    }
}

/// Two rounds of multiplying and folding: floats of few digits differ in their upper bits only, integers in their lower ones.
#[inline(always)]
fn mixed(x: u64) -> u64 {
    let x = (x ^ (x >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (x ^ (x >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9)
}

impl Key for u32 {
    type Item = Packed;
    // Rows of 2^32 elements and more would need a wider number.
    fn item(self, number: usize) -> Packed {
        Packed((self as u64) << 32 | number as u64)
    }
    fn number(item: Packed) -> usize {
        item.0 as u32 as usize
    }
    const LEAST: u32 = u32::MIN;
    const GREATEST: u32 = u32::MAX;
    fn reversed(self) -> u32 {
        !self
    }
    #[inline(always)]
    fn beyond(self, least: u32) -> Option<usize> {
        usize::try_from(self.wrapping_sub(least)).ok()
    }
    #[inline(always)]
    fn mixed(self) -> u64 {
        mixed(u64::from(self))
    }
    fn sort(threads: &dyn crate::Threads, keys: Vec<u32>) -> Vec<u32> {
        super::radix::sort(threads, keys)
    }
}

impl Key for u64 {
    type Item = (u64, u64);
    fn item(self, number: usize) -> (u64, u64) {
        (self, number as u64)
    }
    fn number(item: (u64, u64)) -> usize {
        item.1 as usize
    }
    const LEAST: u64 = u64::MIN;
    const GREATEST: u64 = u64::MAX;
    fn reversed(self) -> u64 {
        !self
    }
    #[inline(always)]
    fn beyond(self, least: u64) -> Option<usize> {
        usize::try_from(self.wrapping_sub(least)).ok()
    }
    #[inline(always)]
    fn mixed(self) -> u64 {
        mixed(self)
    }
    fn sort(threads: &dyn crate::Threads, keys: Vec<u64>) -> Vec<u64> {
        super::radix::sort(threads, keys)
    }
}

impl Key for Parts {
    type Item = (Parts, u64);
    fn item(self, number: usize) -> (Parts, u64) {
        (self, number as u64)
    }
    fn number(item: (Parts, u64)) -> usize {
        item.1 as usize
    }
    const LEAST: Parts = (0, 0, 0);
    const GREATEST: Parts = (u8::MAX, u64::MAX, u64::MAX);
    fn reversed(self) -> Parts {
        (!self.0, !self.1, !self.2)
    }
    fn beyond(self, _: Parts) -> Option<usize> {
        None
    }
    fn mixed(self) -> u64 {
        mixed(u64::from(self.0) ^ mixed(self.1) ^ mixed(self.2).rotate_left(32))
    }
    fn sort(_: &dyn crate::Threads, mut keys: Vec<Parts>) -> Vec<Parts> {
        keys.sort_unstable();
        keys
    }
}

macro_rules! integers {
    ($($t:ty, $key:ty, $bias:expr);*) => { $(impl Keyed for $t {
        type Key = $key;
        #[inline(always)]
        fn key(self) -> $key { (self as $key) ^ $bias }
        #[inline(always)]
        fn exact(self) -> $key { self.key() }
        #[inline(always)]
        fn from_exact(key: $key) -> Option<Self> { Some((key ^ $bias) as $t) }
        #[inline(always)]
        fn is_nan(self) -> bool { false }
    })* };
}
// Sign extension keeps the order once the key's own sign bit is flipped.
integers!(u8, u32, 0; u16, u32, 0; u32, u32, 0; u64, u64, 0; i8, u32, 1 << 31; i16, u32, 1 << 31; i32, u32, 1 << 31; i64, u64, 1 << 63);

impl Keyed for Bit {
    type Key = u32;
    fn key(self) -> u32 {
        (self.0 != 0) as u32
    }
    fn exact(self) -> u32 {
        self.key()
    }
    fn from_exact(key: u32) -> Option<Self> {
        Some(Bit(key as u8))
    }
    fn is_nan(self) -> bool {
        false
    }
}

macro_rules! floats {
    ($($t:ty, $bits:ty, $key:ty);*) => { $(impl Keyed for $t {
        type Key = $key;
        #[inline(always)]
        fn key(self) -> $key {
            const ZERO: $key = 1 << (<$bits>::BITS - 1);
            // -0 is the key just below +0.
            let key = self.exact();
            if key == ZERO - 1 { ZERO } else { key }
        }
        // Positive numbers order as their bits with the sign set, negative ones as their complement.
        #[inline(always)]
        fn exact(self) -> $key {
            let bits = self.to_bits();
            let sign: $bits = 1 << (<$bits>::BITS - 1);
            let ordered = if bits & sign == 0 { bits | sign } else { !bits };
            (if Keyed::is_nan(self) { <$bits>::MAX } else { ordered }) as $key
        }
        #[inline(always)]
        fn from_exact(key: $key) -> Option<Self> {
            let key = key as $bits;
            let sign: $bits = 1 << (<$bits>::BITS - 1);
            Some(<$t>::from_bits(if key & sign != 0 { key & !sign } else { !key }))
        }
        #[inline(always)]
        fn is_nan(self) -> bool { <$t>::is_nan(self) }
    })* };
}
floats!(half::f16, u16, u32; half::bf16, u16, u32; f32, u32, u32; f64, u64, u64);

macro_rules! complex {
    ($($t:ty),*) => { $(impl Keyed for Cx<$t> {
        type Key = Parts;
        // All with a NaN imaginary part come after all numbers, all with a NaN real part after those.
        #[inline(always)]
        fn key(self) -> Parts {
            ((self.re.is_nan() as u8) << 1 | self.im.is_nan() as u8, self.re.key() as u64, self.im.key() as u64)
        }
        #[inline(always)]
        fn exact(self) -> Parts { self.key() }
        #[inline(always)]
        fn from_exact(_: Parts) -> Option<Self> { None }
        #[inline(always)]
        fn is_nan(self) -> bool { self.re.is_nan() || self.im.is_nan() }
    })* };
}
complex!(f32, f64);
