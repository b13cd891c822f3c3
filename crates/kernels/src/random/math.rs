//! Logarithm, sine and cosine without branches, for loops that vectorise.

/// A float samples are computed in.
pub(super) trait Real:
    Copy
    + PartialOrd
    + 'static
    + std::ops::Neg<Output = Self>
    + std::ops::Mul<Output = Self>
    + std::ops::Add<Output = Self>
{
    /// Samples per counter block.
    const PER_BLOCK: usize;
    fn of(x: f64) -> Self;
    fn sqrt(self) -> Self;
    /// Natural logarithm of a positive normal number, within 2 ulp.
    fn ln(self) -> Self;
    /// Cosine and sine of 2 pi x for x in [0, 1), within 2 ulp of 1.
    fn cos_sin_turns(self) -> (Self, Self);
    /// The random word of one sample.
    type Word: Copy;
    /// The words of some blocks, in order.
    fn word_list(bits: &[[u32; 4]]) -> &[Self::Word];
    /// A number in [0, 1), with all the bits of the type's mantissa.
    fn unit(word: Self::Word) -> Self;
    /// A number in (0, 1], with all the word's bits where they count, near 0.
    fn positive(word: Self::Word) -> Self;
}

macro_rules! real {
    ($t:ident, $int:ident, $mantissa:literal, $bias:literal, $per_block:literal, ln $($l:literal)*, sin $($s:literal)*, cos $($c:literal)*,
     $word:ty, |$bits:ident| $list:expr, |$x:ident| $unit:expr, $positive:expr) => {
        impl Real for $t {
            const PER_BLOCK: usize = $per_block;
            #[inline(always)]
            fn of(x: f64) -> Self { x as $t }
            #[inline(always)]
            fn sqrt(self) -> Self { <$t>::sqrt(self) }
            // x = m 2^e with m in [sqrt(1/2), sqrt(2)); ln m = 2 artanh(s) with s = (m - 1) / (m + 1), by its series in s^2 <= 0.0295.
            #[inline(always)]
            fn ln(self) -> Self {
                const HALF_ROOT: $int = std::$t::consts::FRAC_1_SQRT_2.to_bits() as $int;
                let shifted = (self.to_bits() as $int).wrapping_sub(HALF_ROOT);
                let e = shifted >> $mantissa;
                let m = <$t>::from_bits((self.to_bits() as $int).wrapping_sub(e << $mantissa) as _);
                let s = (m - 1.0) / (m + 1.0);
                let z = s * s;
                let mut p = 0.0;
                $( p = p * z + 2.0 / $l; )*
                e as i32 as $t * std::$t::consts::LN_2 + s * p
            }
            // The nearest quarter turn is taken off; Taylor series on the eighth of a turn to either side.
            #[inline(always)]
            fn cos_sin_turns(self) -> (Self, Self) {
                let quarter = (self * 4.0 + 0.5) as i32;
                let r = (self - quarter as $t * 0.25) * (2.0 * std::$t::consts::PI);
                let z = r * r;
                let mut sin = 0.0;
                $( sin = sin * z + 1.0 / $s; )*
                let sin = sin * r;
                let mut cos = 0.0;
                $( cos = cos * z + 1.0 / $c; )*
                let (a, b) = if quarter & 1 == 0 { (cos, sin) } else { (sin, cos) };
                let a = if quarter.wrapping_add(1) & 2 == 0 { a } else { -a };
                (a, if quarter & 2 == 0 { b } else { -b })
            }
            type Word = $word;
            #[inline(always)]
            fn word_list($bits: &[[u32; 4]]) -> &[$word] { $list }
            #[inline(always)]
            fn unit($x: $word) -> Self { $unit }
            #[inline(always)]
            fn positive($x: $word) -> Self { $positive }
        }
    };
}
real!(f32, i32, 23, 127, 4,
    ln 11.0 9.0 7.0 5.0 3.0 1.0,
    sin 362880.0 -5040.0 120.0 -6.0 1.0,
    cos -3628800.0 40320.0 -720.0 24.0 -2.0 1.0,
    u32, |bits| bits.as_flattened(), |x| (x >> 8) as f32 * 2f32.powi(-24), (x as f32 + 1.0) * 2f32.powi(-32));
real!(f64, i64, 52, 1023, 2,
    ln 23.0 21.0 19.0 17.0 15.0 13.0 11.0 9.0 7.0 5.0 3.0 1.0,
    sin 355687428096000.0 -1307674368000.0 6227020800.0 -39916800.0 362880.0 -5040.0 120.0 -6.0 1.0,
    cos 20922789888000.0 -87178291200.0 479001600.0 -3628800.0 40320.0 -720.0 24.0 -2.0 1.0,
    [u32; 2], |bits| bits.as_flattened().as_chunks().0,
    |x| (long(x) >> 11) as f64 * 2f64.powi(-53), (long(x) as f64 + 1.0) * 2f64.powi(-64));

/// Two words as one of 64 bits.
#[inline(always)]
pub(super) fn long(words: [u32; 2]) -> u64 {
    words[0] as u64 | (words[1] as u64) << 32
}

/// Half `i` of a block as one 64-bit word.
#[inline(always)]
pub(super) fn half(block: &[u32; 4], i: usize) -> [u32; 2] {
    [block[2 * i], block[2 * i + 1]]
}
