//! Branch-free logarithm, exponential, sine and cosine for loops that vectorise.

/// A floating-point type in which samples are computed.
pub(super) trait SampleFloat:
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
    /// The words of some counter blocks, in order.
    fn word_list(bits: &[[u32; 4]]) -> &[Self::Word];
    /// A number in [0, 1), with all the bits of the type's mantissa.
    fn unit(word: Self::Word) -> Self;
    /// A number in (0, 1]. Near 0, where precision matters, all bits of the word are used.
    fn positive(word: Self::Word) -> Self;
    /// A number x in (0, 1); the complement of the word gives 1 - x, up to rounding.
    fn inner(word: Self::Word) -> Self;
    /// The word with all bits inverted.
    fn complement(word: Self::Word) -> Self::Word;
    /// The lowest bit as a random sign.
    fn sign(word: Self::Word) -> bool;
    /// The word without the bit that [`SampleFloat::sign`] uses.
    fn without_sign(word: Self::Word) -> Self::Word;
}

macro_rules! real {
    ($t:ident, $int:ident, $mantissa:literal, $bias:literal, $per_block:literal, ln $($l:literal)*, sin $($s:literal)*, cos $($c:literal)*,
     $word:ty, |$bits:ident| $list:expr, |$x:ident| $unit:expr, $positive:expr, $inner:expr, $complement:expr, $sign:expr, $without_sign:expr) => {
        impl SampleFloat for $t {
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
            // Subtracts the nearest quarter turn; Taylor series up to an eighth of a turn on both sides.
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
            #[inline(always)]
            fn inner($x: $word) -> Self { $inner }
            #[inline(always)]
            fn complement($x: $word) -> $word { $complement }
            #[inline(always)]
            fn sign($x: $word) -> bool { $sign }
            #[inline(always)]
            fn without_sign($x: $word) -> $word { $without_sign }
        }
    };
}
real!(f32, i32, 23, 127, 4,
    ln 11.0 9.0 7.0 5.0 3.0 1.0,
    sin 362880.0 -5040.0 120.0 -6.0 1.0,
    cos -3628800.0 40320.0 -720.0 24.0 -2.0 1.0,
    u32, |bits| bits.as_flattened(), |x| (x >> 8) as f32 * 2f32.powi(-24), (x as f32 + 1.0) * 2f32.powi(-32),
    (x as f32 + 0.5) * 2f32.powi(-32), !x, x & 1 == 1, x & !1);
real!(f64, i64, 52, 1023, 2,
    ln 23.0 21.0 19.0 17.0 15.0 13.0 11.0 9.0 7.0 5.0 3.0 1.0,
    sin 355687428096000.0 -1307674368000.0 6227020800.0 -39916800.0 362880.0 -5040.0 120.0 -6.0 1.0,
    cos 20922789888000.0 -87178291200.0 479001600.0 -3628800.0 40320.0 -720.0 24.0 -2.0 1.0,
    [u32; 2], |bits| bits.as_flattened().as_chunks().0,
    |x| (long(x) >> 11) as f64 * 2f64.powi(-53), (long(x) as f64 + 1.0) * 2f64.powi(-64),
    (long(x) as f64 + 0.5) * 2f64.powi(-64), [!x[0], !x[1]], x[0] & 1 == 1, [x[0] & !1, x[1]]);

const FACTORIALS: [f64; 14] = [
    1.0,
    1.0,
    2.0,
    6.0,
    24.0,
    120.0,
    720.0,
    5040.0,
    40320.0,
    362880.0,
    3628800.0,
    39916800.0,
    479001600.0,
    6227020800.0,
];

/// [`SampleFloat::ln`] of an f64. A method call `x.ln()` would resolve to the inherent method.
#[inline(always)]
pub(super) fn log(x: f64) -> f64 {
    SampleFloat::ln(x)
}

/// `e^x` for x <= 0, within 2 ulp; 0 where the result would be subnormal.
#[inline(always)]
pub(super) fn exp(x: f64) -> f64 {
    let x = if x < -709.0 { -800.0 } else { x };
    // Adding 1.5 * 2^52 rounds to an integer, which is then in the low bits.
    let shifted = x * std::f64::consts::LOG2_E + 6_755_399_441_055_744.0;
    let n = shifted - 6_755_399_441_055_744.0;
    // ln 2 in two parts: the product of the first with n is exact.
    let r = x - n * 0.693_147_180_369_123_8 - n * 1.908_214_929_270_587_7e-10;
    // Taylor series on |r| <= 0.35: the first omitted term is below 2^-57.
    let mut p = 0.0;
    for factorial in FACTORIALS.iter().rev() {
        p = p * r + 1.0 / factorial;
    }
    let power = f64::from_bits(
        ((shifted.to_bits() as i64 - 6_755_399_441_055_744.0f64.to_bits() as i64 + 1023) as u64)
            << 52,
    );
    if x < -709.0 { 0.0 } else { p * power }
}

/// `ln k!`. Exact factorials up to 18, above that Stirling's series (DLMF 5.11.1): errors below 1e-15 of the result.
pub(super) fn log_factorial(k: f64) -> f64 {
    if k < 19.0 {
        return ((2..=k as u64).product::<u64>() as f64).ln();
    }
    let z = 1.0 / (k * k);
    let tail = (1.0 / 12.0 - z * (1.0 / 360.0 - z * (1.0 / 1260.0 - z / 1680.0))) / k;
    (k + 0.5) * k.ln() - k + 0.918_938_533_204_672_8 + tail
}

/// Two 32-bit words as one 64-bit word.
#[inline(always)]
pub(super) fn long(words: [u32; 2]) -> u64 {
    words[0] as u64 | (words[1] as u64) << 32
}

/// The two words of half `i` of a counter block.
#[inline(always)]
pub(super) fn half(block: &[u32; 4], i: usize) -> [u32; 2] {
    [block[2 * i], block[2 * i + 1]]
}
