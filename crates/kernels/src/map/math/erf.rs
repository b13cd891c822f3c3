//! The error function and its complement.

use super::Float;
use super::exp::{LN2_HI32, LN2_LO32, MAGIC32, exp_near_zero32, exp_scaled64, exp32, scaled32};
use super::poly;
use crate::map::row::Level;

/// erf on |x| <= 1.
#[inline(always)]
fn near<L: Level>(x: f64) -> f64 {
    // Polynomial in x^2 for erf(x) / x - 1: error 2^-56.9.
    let p = poly!(L, x * x;
        0.128_379_167_095_512_56, -0.376_126_389_031_835_2, 0.112_837_916_709_441_86, -0.026_866_170_643_111_684,
        0.005_223_977_606_120_197, -8.548_325_929_394_707e-4, 1.205_529_357_923_019e-4, -1.492_471_234_546_801_8e-5,
        1.644_713_209_212_137_3e-6, -1.620_631_763_468_547_7e-7, 1.371_099_669_991_808_4e-8, -7.779_498_094_136_962e-10);
    x.mul_sum::<L>(p, x)
}

/// erfc(a) for a >= 1.
#[inline(always)]
fn far<L: Level>(a: f64) -> f64 {
    let a = if a > 28.0 { 28.0 } else { a };
    let t = (a - 4.0) / (a + 4.0);
    // Polynomial in t for (1 + 2 a) exp(a^2) erfc(a) on 1 <= a <= 28: error 2^-59.7.
    let p = poly!(L, t;
        1.232_995_118_625_552_6, -0.139_621_116_840_562_53, 0.015_379_652_102_620_652, 0.068_097_054_254_693_19,
        -0.101_039_066_036_376_25, 0.093_732_834_998_331_39, -0.066_330_365_809_970_72, 0.037_167_515_537_557_79,
        -0.016_197_734_094_055_66, 0.005_031_969_984_040_442, -7.577_729_477_576_717e-4, -1.992_568_167_598_689_2e-4,
        1.506_197_046_669_747_6e-4, -2.439_813_820_499_912_4e-5, -1.121_493_370_492_557_1e-5, 5.704_523_427_507_367e-6,
        2.784_100_449_295_297e-7, -8.110_397_496_687_765e-7, 9.267_983_026_907_526e-8, 8.856_782_516_949_549e-8,
        -2.562_650_888_763_252_7e-8);
    // exp(-a^2): the square of the upper half of the mantissa bits is exact.
    let high = f64::from_bits(a.to_bits() & !0x07ff_ffff);
    let e = exp_scaled64::<L>(-high * high, -(a - high) * (a + high), 0);
    e * (p / (1.0 + 2.0 * a))
}

/// Error below 1 ulp.
#[inline(always)]
pub(super) fn erf64<L: Level>(x: f64) -> f64 {
    let a = x.abs();
    let value = if a < 1.0 {
        near::<L>(a)
    } else {
        1.0 - far::<L>(a)
    };
    value.copysign(x)
}

/// Error below 4 ulp.
#[inline(always)]
pub(super) fn erfc64<L: Level>(x: f64) -> f64 {
    let tail = far::<L>(x.abs());
    let outer = if x < 0.0 { 2.0 - tail } else { tail };
    if x.abs() < 1.0 {
        1.0 - near::<L>(x)
    } else {
        outer
    }
}

/// erf in f32 where |x| is at most 1. Error below 1 ulp.
#[inline(always)]
fn erf_near32<L: Level>(x: f32) -> f32 {
    // Polynomial in x^2 for erf(x) / x - 1 on [0, 1]: error 2^-29.6.
    let p = poly!(L, x * x;
        0.128_379_17, -0.376_126_26, 0.112_835_854, -0.026_853_813, 0.005_188_328_7, -8.010_202e-4, 7.853_889e-5);
    x.mul_sum::<L>(p, x)
}

/// Error below 1 ulp.
#[inline(always)]
pub(super) fn erf32<L: Level>(x: f32) -> f32 {
    let a = x.abs();
    let near = erf_near32::<L>(a);
    // Polynomial for -log(erfc(x)) on [1, 4]; above, erf is 1. Error 2^-30.5, relative to 1.
    let b = if a > 4.0 { 4.0 } else { a };
    let q = poly!(L, b;
        -2.198_873_3e-5, 1.128_839_6, 0.634_594_9, 0.107_033_37, -0.024_393_724, 0.003_925_384_5, -3.897_527_6e-4,
        1.772_575_3e-5);
    let far = 1.0 - exp32::<L>(-q);
    (if a < 1.0 { near } else { far }).copysign(x)
}

/// Upper tail of the normal distribution at x in 0..4, as `exp(-q(x))`. Relative error below 2^-20; below 2^-22 for x < 2.
#[inline(always)]
pub(in crate::map) fn normal_tail_near32<L: Level>(x: f32) -> f32 {
    // Polynomial for (-log(2 tail(x)) - sqrt(2 / pi) x) / x^2 on [0, 4]: error 2^-23.6 of the logarithm.
    let v = poly!(L, x;
        0.318_308_92, 0.036_340_46, -0.004_790_951, -3.183_207_4e-5, 2.167_127_7e-4, -6.242_076e-5, 9.823_506e-6,
        -8.736_530_5e-7, 3.436_957e-8);
    let u = x.mul_sum::<L>(v, 0.797_884_6);
    let k = (x * u).mul_sum::<L>(-std::f32::consts::LOG2_E, MAGIC32);
    let n = k - MAGIC32;
    // The first product with n is exact, so with fused multiply-add the rounding of x u has no effect.
    let r = (-x).mul_sum::<L>(u, -n * LN2_HI32);
    let r = (-n).mul_sum::<L>(LN2_LO32, r);
    0.5 * scaled32(exp_near_zero32::<L>(r), k)
}

/// Upper tail of the normal distribution at x >= 0, with a small relative error down to the subnormals. The exponent is computed from x itself,
/// because the rounding error of x / sqrt(2) would be multiplied by x^2.
#[inline(always)]
pub(in crate::map) fn normal_tail32<L: Level>(x: f32) -> f32 {
    let x = if x > 14.7 { 14.7 } else { x };
    // exp(-x^2 / 2) with the square in two parts.
    let (square, lost) = half_squared::<L>(x);
    let k = square.mul_sum::<L>(-std::f32::consts::LOG2_E, MAGIC32);
    let n = k - MAGIC32;
    let r = (-n).mul_sum::<L>(LN2_HI32, -square);
    let r = (-n).mul_sum::<L>(LN2_LO32, r) - lost;
    // 2^64 times the power, so that it is not subnormal.
    let e = scaled32(exp_near_zero32::<L>(r), k + 64.0);
    let a = x * std::f32::consts::FRAC_1_SQRT_2;
    // One division serves t = (a - 4) / (a + 4) and 1 / (1 + 2 a).
    let (u, v) = (a + 4.0, 1.0 + 2.0 * a);
    let r = 1.0 / (u * v);
    let t = (a - 4.0) * v * r;
    // Polynomial in t for (1 + 2 a) exp(a^2) erfc(a) on 0 <= a <= 10.4: error 2^-26.
    let p = poly!(L, t;
        1.232_995_2, -0.139_621_03, 0.015_377_333, 0.068_091_99, -0.100_992_26, 0.093_834_57, -0.066_604_76, 0.036_394_864,
        -0.016_020_048, 0.006_901_046_7, 8.460_303_7e-4);
    /// 2^-65.
    const HALF: f32 = 1.0 / (36_893_488_147_419_103_232_u128 as f32);
    e * (p * (u * r) * HALF)
}

/// `x^2 / 2` rounded, and its rounding error.
#[inline(always)]
fn half_squared<L: Level>(x: f32) -> (f32, f32) {
    let half = 0.5 * x;
    let square = half * x;
    let high = f32::from_bits(x.to_bits() & !0x0fff);
    let lost = if L::FMA {
        half.mul_add(x, -square)
    } else {
        (0.5 * high * high - square) + (x - high) * (0.5 * (x + high))
    };
    (square, lost)
}
