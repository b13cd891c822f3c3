//! Hyperbolic functions and their inverses.

use std::f64::consts::LN_2;

use super::Float;
use super::exp::{exp_scaled32, exp_scaled64, expm1_32, expm1_64};
use super::log::{log1p_32, log1p_64};
use super::poly;
use crate::map::row::Level;

/// Error below 2 ulp.
#[inline(always)]
pub(super) fn sinh<L: Level>(x: f64) -> f64 {
    let a = x.abs();
    let z = a * a;
    // (sinh x - x) / x^3 on [0, 1]: error 2^-63.
    let p = poly!(L, z;
        0.166_666_666_666_666_69, 0.008_333_333_333_333_14, 1.984_126_984_143_729_4e-4, 2.755_731_915_538_966_6e-6,
        2.505_212_339_826_653_2e-8, 1.605_723_987_335_737_2e-10, 7.759_338_455_448_084e-13);
    let near = a + (z * a) * p;
    let half = exp_scaled64::<L>(a, 0.0, -1);
    let far = half - 0.25 / half;
    (if a < 1.0 { near } else { far }).copysign(x)
}

/// Error below 2 ulp.
#[inline(always)]
pub(super) fn cosh<L: Level>(x: f64) -> f64 {
    let half = exp_scaled64::<L>(x.abs(), 0.0, -1);
    half + 0.25 / half
}

/// Error below 2 ulp.
#[inline(always)]
pub(super) fn tanh64<L: Level>(x: f64) -> f64 {
    let a = x.abs();
    // tanh is 1 in f64 from 19.1 on; NaN passes the comparison.
    let a = if a > 20.0 { 20.0 } else { a };
    let e = expm1_64::<L>(2.0 * a);
    let z = a * a;
    // Polynomial for (tanh x - x) / x^3 on [0, 0.4], where the quotient would lose two bits: error 2^-59.
    let p = poly!(L, z;
        -0.333_333_333_333_332_15, 0.133_333_333_333_030_82, -0.053_968_253_941_784_027, 0.021_869_487_401_986_586,
        -0.008_863_208_021_673_157, 0.003_591_724_063_853_815_6, -0.001_452_159_455_499_738_8, 5.696_415_385_210_905e-4,
        -1.747_066_925_808_889e-4);
    let near = a + (z * a) * p;
    (if a < 0.4 { near } else { e / (e + 2.0) }).copysign(x)
}

/// Error below 2 ulp.
#[inline(always)]
pub(super) fn tanh32<L: Level>(x: f32) -> f32 {
    let a = x.abs();
    let a = if a > 10.0 { 10.0 } else { a };
    let e = expm1_32::<L>(2.0 * a);
    (e / (e + 2.0)).copysign(x)
}

/// From here on x + 1 rounds to x, and the inverse functions are log(2 x).
const HUGE: f64 = 18_014_398_509_481_984.0; // 2^54

/// Error below 2 ulp.
#[inline(always)]
pub(super) fn asinh<L: Level>(x: f64) -> f64 {
    let a = x.abs();
    let big = a > HUGE;
    let b = if big { 1.0 } else { a };
    let grown = b + b * b / (1.0 + b.mul_sum::<L>(b, 1.0).sqrt());
    let value = log1p_64::<L>(if big { a } else { grown }) + if big { LN_2 } else { 0.0 };
    (if a < 1e-17 { a } else { value }).copysign(x)
}

/// Error below 2 ulp.
#[inline(always)]
pub(super) fn acosh<L: Level>(x: f64) -> f64 {
    let big = x > HUGE;
    let t = if big { 1.0 } else { x - 1.0 };
    let grown = t + (2.0 * t + t * t).sqrt();
    let value = log1p_64::<L>(if big { x } else { grown }) + if big { LN_2 } else { 0.0 };
    if x < 1.0 { f64::NAN } else { value }
}

/// Error below 2 ulp.
#[inline(always)]
pub(super) fn atanh<L: Level>(x: f64) -> f64 {
    let a = x.abs();
    let value = 0.5 * log1p_64::<L>(2.0 * a / (1.0 - a));
    // For |x| > 1 the ratio is below -1, where log1p gives NaN. For tiny x the result is x.
    (if a < 1e-9 { a } else { value }).copysign(x)
}

/// Error below 2 ulp.
#[inline(always)]
pub(super) fn sinh32<L: Level>(x: f32) -> f32 {
    let a = x.abs();
    let z = a * a;
    // (sinh x - x) / x^3 on [0, 1]: error 2^-34.
    let p = poly!(L, z; 0.166_666_67, 0.008_333_35, 1.983_616e-4, 2.816_951_3e-6);
    let near = (z * a).mul_sum::<L>(p, a);
    let half = exp_scaled32::<L>(a, -1);
    let far = half - 0.25 / half;
    (if a < 1.0 { near } else { far }).copysign(x)
}

/// Error below 2 ulp.
#[inline(always)]
pub(super) fn cosh32<L: Level>(x: f32) -> f32 {
    let half = exp_scaled32::<L>(x.abs(), -1);
    half + 0.25 / half
}

/// Above this the square may overflow, and adding 1 to it has no effect.
const HUGE32: f32 = 1e9;

/// Error below 3 ulp.
#[inline(always)]
pub(super) fn asinh32<L: Level>(x: f32) -> f32 {
    let a = x.abs();
    let big = a > HUGE32;
    let b = if big { 1.0 } else { a };
    let grown = b + b * b / (1.0 + b.mul_sum::<L>(b, 1.0).sqrt());
    let value = log1p_32::<L>(if big { a } else { grown }) + if big { LN_2 as f32 } else { 0.0 };
    (if a < 1e-9 { a } else { value }).copysign(x)
}

/// Error below 3 ulp.
#[inline(always)]
pub(super) fn acosh32<L: Level>(x: f32) -> f32 {
    let big = x > HUGE32;
    let t = if big { 1.0 } else { x - 1.0 };
    let grown = t + t.mul_sum::<L>(t, 2.0 * t).sqrt();
    let value = log1p_32::<L>(if big { x } else { grown }) + if big { LN_2 as f32 } else { 0.0 };
    if x < 1.0 { f32::NAN } else { value }
}

/// Error below 3 ulp.
#[inline(always)]
pub(super) fn atanh32<L: Level>(x: f32) -> f32 {
    let a = x.abs();
    let value = 0.5 * log1p_32::<L>(2.0 * a / (1.0 - a));
    // For |x| > 1 the ratio is below -1, where log1p gives NaN. Up to 1e-4 the cubic term is less than half an ulp.
    (if a < 1e-4 { a } else { value }).copysign(x)
}
