//! Powers. The logarithm is computed as the sum of two f64 for f64, and as one f64 for f32.

use super::exp::{clamp32, clamp64, exp2_rough, exp2_tail64};
use super::log::{log2_rough, split64};
use super::poly;
use crate::map::row::Level;

/// Exact product: the rounded product and its rounding error.
#[inline(always)]
fn product<L: Level>(a: f64, b: f64) -> (f64, f64) {
    let p = a * b;
    if L::FMA {
        (p, a.mul_add(b, -p))
    } else {
        // Halves of 26 bits multiply exactly.
        let split = |x: f64| {
            let high = f64::from_bits(x.to_bits() & !0x07ff_ffff);
            (high, x - high)
        };
        let ((ah, al), (bh, bl)) = (split(a), split(b));
        (p, ((ah * bh - p) + ah * bl + al * bh) + al * bl)
    }
}

/// Exact sum: the rounded sum and its rounding error. `a` has the larger magnitude, or is zero.
#[inline(always)]
fn sum(a: f64, b: f64) -> (f64, f64) {
    let s = a + b;
    (s, (a - s) + b)
}

/// log2 of a positive finite number as the sum of two f64; relative error about 2^-66.
#[inline(always)]
fn log2_parts<L: Level>(x: f64) -> (f64, f64) {
    const TWO_THIRDS_LO: f64 = 3.700_743_415_417_188e-17;
    const LOG2_E_LO: f64 = 2.035_527_374_093_103_3e-17;
    let (m, e) = split64(x);
    let f = m - 1.0;
    // s = (m - 1) / (m + 1) in two parts.
    let d = m + 1.0;
    let d_lo = m - (d - 1.0);
    let reciprocal = 1.0 / d;
    let s = f * reciprocal;
    let (back, back_lo) = product::<L>(s, d);
    let s_lo = ((f - back) - back_lo - s * d_lo) * reciprocal;
    // z = s^2; 2/3 z + z^2 R(z) as the sum of two f64. R: log((1+s)/(1-s)) = 2 s + 2/3 s^3 + s^5 R(s^2), error 2^-65.
    let (z, z_lo) = product::<L>(s, s);
    let z_lo = z_lo + 2.0 * s * s_lo;
    let r = poly!(L, z;
        0.400_000_000_000_020_95, 0.285_714_285_701_600_23, 0.222_222_225_110_798_53, 0.181_817_850_140_420_68,
        0.153_867_320_963_064_82, 0.132_573_193_301_799_37, 0.131_923_370_826_459_5);
    let (c, c_lo) = product::<L>(z, 2.0 / 3.0);
    let (c, c_rest) = sum(c, z * z * r);
    let c_lo = c_rest + (c_lo + z * TWO_THIRDS_LO + z_lo * (2.0 / 3.0));
    // log m = 2 s + s c
    let (p, p_lo) = product::<L>(s, c);
    let p_lo = p_lo + s * c_lo + s_lo * c;
    let (h, h_lo) = sum(2.0 * s, p);
    let h_lo = h_lo + (p_lo + 2.0 * s_lo);
    // times log2(e), plus the exponent
    let (q, q_lo) = product::<L>(h, std::f64::consts::LOG2_E);
    let q_lo = q_lo + h * LOG2_E_LO + h_lo * std::f64::consts::LOG2_E;
    let (t, t_lo) = sum(e, q);
    sum(t, t_lo + q_lo)
}

/// The special cases of a power: signs, zeros, infinities, NaN. `value` is |x|^y for finite x != 0.
#[inline(always)]
fn edges(x: f64, y: f64, value: f64) -> f64 {
    let a = x.abs();
    let whole = y.trunc() == y;
    let half = 0.5 * y;
    let odd = whole & (half.trunc() != half);
    let grows = y > 0.0;
    let at_zero = if grows { 0.0 } else { f64::INFINITY };
    let at_infinity = if grows { f64::INFINITY } else { 0.0 };
    let value = if a == 0.0 { at_zero } else { value };
    let value = if a == f64::INFINITY {
        at_infinity
    } else {
        value
    };
    let value = if x.is_nan() | y.is_nan() {
        f64::NAN
    } else {
        value
    };
    let negative = x.is_sign_negative();
    let value = if negative & odd { -value } else { value };
    let undefined = negative & !whole & (a != 0.0) & (a != f64::INFINITY);
    let value = if undefined { f64::NAN } else { value };
    if (y == 0.0) | (x == 1.0) { 1.0 } else { value }
}

/// Larger exponents change no result: the smallest nonzero |log| is 2^-53 in f64, so the power has over- or underflowed before.
const FAR: f64 = 3.7e19;

/// Error below 1 ulp.
#[inline(always)]
pub(super) fn pow64<L: Level>(x: f64, y: f64) -> f64 {
    edges(x, y, pow64_of_positive::<L>(x.abs(), clamp64(y, -FAR, FAR)))
}

/// Whether [`pow64_of_positive`] supports these operands.
#[inline(always)]
pub(super) fn is_pow64_of_positive(x: f64, y: f64) -> bool {
    (x > 0.0) & (x < f64::INFINITY) & (y.abs() <= FAR)
}

/// The power of a positive finite number, |y| <= `FAR`. Error below 1 ulp.
#[inline(always)]
pub(super) fn pow64_of_positive<L: Level>(x: f64, y: f64) -> f64 {
    let (l, l_lo) = log2_parts::<L>(x);
    let (h, h_lo) = product::<L>(l, y);
    let h_lo = if h.abs() > 1100.0 {
        0.0
    } else {
        h_lo + l_lo * y
    };
    exp2_tail64::<L>(h, h_lo)
}

/// Error below 0.51 ulp.
#[inline(always)]
pub(super) fn pow32<L: Level>(x: f32, y: f32) -> f32 {
    let value = pow32_of_positive::<L>(x.abs(), clamp32(y, -FAR as f32, FAR as f32));
    edges(f64::from(x), f64::from(y), f64::from(value)) as f32
}

/// Whether [`pow32_of_positive`] supports these operands.
#[inline(always)]
pub(super) fn is_pow32_of_positive(x: f32, y: f32) -> bool {
    (x > 0.0) & (x < f32::INFINITY) & (y.abs() <= FAR as f32)
}

/// The power of a positive finite number, |y| <= `FAR`. Error below 0.51 ulp.
#[inline(always)]
pub(super) fn pow32_of_positive<L: Level>(x: f32, y: f32) -> f32 {
    exp2_rough::<L>(log2_rough::<L>(x) * f64::from(y)) as f32
}
