//! exp, exp2, expm1.

use super::Float;
use super::poly;
use crate::map::row::Level;

/// Adding this constant rounds to an integer, whose value is then in the low mantissa bits. Subtracting it again gives the integer as a float.
pub(super) const MAGIC64: f64 = 6_755_399_441_055_744.0; // 1.5 * 2^52
pub(super) const MAGIC32: f32 = 12_582_912.0; // 1.5 * 2^23

/// ln 2 in two parts: the high part has few enough bits for its product with any exponent to be exact.
pub(super) const LN2_HI64: f64 = 0.693_147_180_369_123_8;
pub(super) const LN2_LO64: f64 = 1.908_214_929_270_587_7e-10;
pub(super) const LN2_HI32: f32 = 0.693_145_75;
pub(super) const LN2_LO32: f32 = 1.428_606_8e-6;

/// `p * 2^n` in two steps, so that the result may be subnormal or infinite. |n| < 2046.
#[inline(always)]
pub(super) fn scale64(p: f64, n: i64) -> f64 {
    // A logical shift of a positive number: AVX2 has no arithmetic one for 64 bits.
    let half = ((n + 4096) as u64 >> 1) as i64 - 2048;
    let power = |k: i64| f64::from_bits(((k + 1023) as u64) << 52);
    p * power(half) * power(n.wrapping_sub(half))
}

/// [`scale64`] for f32; |n| < 252.
#[inline(always)]
fn scale32(p: f32, n: i32) -> f32 {
    let half = n >> 1;
    let power = |k: i32| f32::from_bits(((k.wrapping_add(127)) as u32) << 23);
    p * power(half) * power(n.wrapping_sub(half))
}

#[inline(always)]
pub(super) fn clamp64(x: f64, low: f64, high: f64) -> f64 {
    let x = if x > high { high } else { x };
    if x < low { low } else { x }
}

#[inline(always)]
pub(super) fn clamp32(x: f32, low: f32, high: f32) -> f32 {
    let x = if x > high { high } else { x };
    if x < low { low } else { x }
}

/// `exp(x + tail) * 2^bias`, for a `tail` below an ulp of `x`. Error below 1 ulp.
#[inline(always)]
pub(super) fn exp_scaled64<L: Level>(x: f64, tail: f64, bias: i64) -> f64 {
    let x = clamp64(x, -746.0, 712.0);
    let k = x.mul_sum::<L>(std::f64::consts::LOG2_E, MAGIC64);
    let n = k - MAGIC64;
    let r = (-n).mul_sum::<L>(LN2_HI64, x);
    let r = (-n).mul_sum::<L>(LN2_LO64, r) + tail;
    // (e^r - 1 - r) / r^2 on |r| <= ln2/2: error 2^-64 of e^r.
    let q = poly!(L, r;
        0.5, 0.166_666_666_666_666_85, 0.041_666_666_666_666_73, 0.008_333_333_333_316_73, 0.001_388_888_888_885_854_7,
        1.984_126_989_710_096_2e-4, 2.480_158_737_357_320_6e-5, 2.755_723_417_943_640_7e-6, 2.755_723_348_290_128_7e-7,
        2.511_226_391_777_424_2e-8, 2.092_690_949_252_466e-9);
    let p = 1.0 + (r * r).mul_sum::<L>(q, r);
    scale64(
        p,
        (k.to_bits() as i64)
            .wrapping_sub(MAGIC64.to_bits() as i64)
            .wrapping_add(bias),
    )
}

#[inline(always)]
pub(super) fn exp64<L: Level>(x: f64) -> f64 {
    exp_scaled64::<L>(x, 0.0, 0)
}

/// Error below 1 ulp.
#[inline(always)]
pub(super) fn exp32<L: Level>(x: f32) -> f32 {
    exp_scaled32::<L>(x, 0)
}

/// `exp(x) * 2^bias`. Error below 1 ulp.
#[inline(always)]
pub(super) fn exp_scaled32<L: Level>(x: f32, bias: i32) -> f32 {
    let x = clamp32(x, -104.0, 90.0);
    let k = x.mul_sum::<L>(std::f32::consts::LOG2_E, MAGIC32);
    let n = k - MAGIC32;
    let r = (-n).mul_sum::<L>(LN2_HI32, x);
    let r = (-n).mul_sum::<L>(LN2_LO32, r);
    scale32(
        exp_near_zero32::<L>(r),
        (k.to_bits() as i32)
            .wrapping_sub(MAGIC32.to_bits() as i32)
            .wrapping_add(bias),
    )
}

/// `exp(r)` for |r| <= ln2/2.
#[inline(always)]
pub(super) fn exp_near_zero32<L: Level>(r: f32) -> f32 {
    // (e^r - 1 - r) / r^2: error 2^-28.2 of e^r.
    let q = poly!(L, r; 0.5, 0.166_665_18, 0.041_666_206, 0.008_368_91, 0.001_395_051_8);
    1.0 + (r * r).mul_sum::<L>(q, r)
}

/// `p * 2^n` for `k = n + MAGIC32`, where neither `p` nor the result is subnormal or infinite.
#[inline(always)]
pub(super) fn scaled32(p: f32, k: f32) -> f32 {
    // The shift moves n from k's low bits to the exponent's bits.
    f32::from_bits(p.to_bits().wrapping_add(k.to_bits() << 23))
}

/// `2^(x + tail)` for a small `tail`. Error below 1 ulp.
#[inline(always)]
pub(super) fn exp2_tail64<L: Level>(x: f64, tail: f64) -> f64 {
    let x = clamp64(x, -1100.0, 1030.0);
    let k = x + MAGIC64;
    let r = (x - (k - MAGIC64)) + tail;
    // (2^r - 1) / r on |r| <= 1/2: error 2^-64 of 2^r.
    let q = poly!(L, r;
        0.693_147_180_559_945_3, 0.240_226_506_959_100_72, 0.055_504_108_664_821_7, 0.009_618_129_107_628_496,
        0.001_333_355_814_639_035, 1.540_353_039_334_096_2e-4, 1.525_273_385_633_767_3e-5, 1.321_548_683_317_980_9e-6,
        1.017_805_116_140_807_6e-7, 7.054_888_202_720_083e-9, 4.456_681_697_952_536_6e-10, 2.574_187_720_317_212e-11);
    scale64(
        r.mul_sum::<L>(q, 1.0),
        (k.to_bits() as i64).wrapping_sub(MAGIC64.to_bits() as i64),
    )
}

#[inline(always)]
pub(super) fn exp2_64<L: Level>(x: f64) -> f64 {
    exp2_tail64::<L>(x, 0.0)
}

/// Error below 1 ulp.
#[inline(always)]
pub(super) fn exp2_32<L: Level>(x: f32) -> f32 {
    let x = clamp32(x, -151.0, 129.0);
    let k = x + MAGIC32;
    let r = x - (k - MAGIC32);
    // Polynomial for (2^r - 1) / r on |r| <= 1/2: error 2^-29.
    let q = poly!(L, r; 0.693_147_2, 0.240_226_5, 0.055_503_275, 0.009_618_004, 0.001_340_033_3, 1.547_638_1e-4);
    scale32(
        r.mul_sum::<L>(q, 1.0),
        (k.to_bits() as i32).wrapping_sub(MAGIC32.to_bits() as i32),
    )
}

/// `exp(x) - 1` without cancellation. Error below 2 ulp.
#[inline(always)]
pub(super) fn expm1_64<L: Level>(x: f64) -> f64 {
    // Above 709.8 the result is infinite; from 711 on the power below would overflow the exponent bits.
    let y = clamp64(x, -50.0, 710.0);
    let k = y.mul_sum::<L>(std::f64::consts::LOG2_E, MAGIC64);
    let n = k - MAGIC64;
    let r = (-n).mul_sum::<L>(LN2_HI64, y);
    let r = (-n).mul_sum::<L>(LN2_LO64, r);
    // (e^r - 1 - r) / r^2: error 2^-61.7 of e^r - 1.
    let q = poly!(L, r;
        0.5, 0.166_666_666_666_666_77, 0.041_666_666_666_666_51, 0.008_333_333_333_321_667, 0.001_388_888_888_896_237_9,
        1.984_126_988_604_367_5e-4, 2.480_158_717_258_193_7e-5, 2.755_724_428_178_272_8e-6, 2.755_740_252_856_738_4e-7,
        2.510_901_550_073_615_4e-8, 2.087_539_352_743_375e-9);
    let p = (r * r).mul_sum::<L>(q, r);
    // 2^n (1 + p) - 1 with half the power, so that 2^1024 does not overflow before the result does.
    let n = (k.to_bits() as i64).wrapping_sub(MAGIC64.to_bits() as i64);
    let half = f64::from_bits((n.wrapping_add(1022) as u64) << 52);
    let value = 2.0 * half.mul_sum::<L>(p, half - 0.5);
    // For tiny arguments the result is x itself; this also keeps the sign of -0.
    if x.abs() < 1e-17 { x } else { value }
}

/// Error below 2 ulp.
#[inline(always)]
pub(super) fn expm1_32<L: Level>(x: f32) -> f32 {
    let y = clamp32(x, -25.0, 89.0);
    let k = y.mul_sum::<L>(std::f32::consts::LOG2_E, MAGIC32);
    let n = k - MAGIC32;
    let r = (-n).mul_sum::<L>(LN2_HI32, y);
    let r = (-n).mul_sum::<L>(LN2_LO32, r);
    let q = expm1_poly32::<L>(r);
    let p = (r * r).mul_sum::<L>(q, r);
    let n = (k.to_bits() as i32).wrapping_sub(MAGIC32.to_bits() as i32);
    let half = f32::from_bits((n.wrapping_add(126) as u32) << 23);
    let value = 2.0 * half.mul_sum::<L>(p, half - 0.5);
    if x.abs() < 1e-9 { x } else { value }
}

/// `(exp(r) - 1 - r) / r^2` on |r| <= ln2/2, with an error of 2^-32 of `exp(r) - 1`.
#[inline(always)]
fn expm1_poly32<L: Level>(r: f32) -> f32 {
    poly!(L, r; 0.5, 0.166_666_66, 0.041_666_362, 0.008_333_39, 0.001_394_065_4, 1.984_593_4e-4)
}

/// `2^x` for a result that is rounded to f32; `x` is clamped to f32's range. Relative error 2^-34.
#[inline(always)]
pub(super) fn exp2_rough<L: Level>(x: f64) -> f64 {
    let x = clamp64(x, -152.0, 130.0);
    let k = x + MAGIC64;
    let r = x - (k - MAGIC64);
    // (2^r - 1) / r on |r| <= 1/2: error 2^-34.3 of 2^r.
    let q = poly!(L, r;
        0.693_147_180_704_658_5, 0.240_226_510_670_862_5, 0.055_504_103_659_166_09, 0.009_618_038_045_846_017,
        0.001_333_393_479_672_590_7, 1.546_678_637_113_310_6e-4, 1.519_629_470_735_543_5e-5);
    let n = (k.to_bits() as i64).wrapping_sub(MAGIC64.to_bits() as i64);
    r.mul_sum::<L>(q, 1.0) * f64::from_bits((n.wrapping_add(1023) as u64) << 52)
}
