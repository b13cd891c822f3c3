//! asin, acos, atan, atan2.

use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI};

use super::log::rough_reciprocal32;
use super::{Float, poly};
use crate::map::row::Level;

/// pi/2 minus its nearest f64.
const FRAC_PI_2_LO: f64 = 6.123_233_995_736_766e-17;

/// atan(lo / hi) for 0 <= lo <= hi, hi > 0 or NaN. Error below 1 ulp.
#[inline(always)]
fn atan_ratio<L: Level>(lo: f64, hi: f64) -> f64 {
    // Above tan(pi/8): atan(t) = pi/4 + atan((t - 1) / (t + 1)). Halved operands keep the sum finite.
    let upper = lo > 0.414_213_562_373_095_03 * hi;
    let num = if upper { 0.5 * lo - 0.5 * hi } else { lo };
    let den = if upper { 0.5 * lo + 0.5 * hi } else { hi };
    let t = num / den;
    let z = t * t;
    // (atan t - t) / t^3 on [0, tan(pi/8)]: error 2^-59.4.
    let a = poly!(L, z;
        -0.333_333_333_333_332_04, 0.199_999_999_999_550_4, -0.142_857_142_803_173_94, 0.111_111_107_886_550_57,
        -0.090_908_978_892_952_49, 0.076_920_623_079_964_75, -0.066_631_255_463_304_88, 0.058_480_316_198_539_37,
        -0.050_398_910_400_137_78, 0.038_078_232_550_492_044, -0.017_920_987_933_774_16);
    let tail = (z * t) * a;
    let (base, base_lo) = if upper {
        (FRAC_PI_4, 0.5 * FRAC_PI_2_LO)
    } else {
        (0.0, 0.0)
    };
    base + (t + (tail + base_lo))
}

/// Error below 1 ulp.
#[inline(always)]
pub(super) fn atan<L: Level>(x: f64) -> f64 {
    let a = x.abs();
    let big = a > 1.0;
    let small_part = atan_ratio::<L>(if big { 1.0 } else { a }, if big { a } else { 1.0 });
    let value = if big {
        FRAC_PI_2 - (small_part - FRAC_PI_2_LO)
    } else {
        small_part
    };
    value.copysign(x)
}

/// Angle of the point (`x`, `y`). Error below 2 ulp.
#[inline(always)]
pub(super) fn atan2<L: Level>(y: f64, x: f64) -> f64 {
    let (ax, ay) = (x.abs(), y.abs());
    let steep = ay > ax;
    let hi = if steep { ay } else { ax };
    let lo = if steep { ax } else { ay };
    // The ratio of two infinities is taken as 1, that at the origin as 0.
    let lo = if lo == f64::INFINITY { 1.0 } else { lo };
    let hi = if (hi == f64::INFINITY) & (lo == 1.0) & (ax == ay) {
        1.0
    } else {
        hi
    };
    let hi = if hi == 0.0 { 1.0 } else { hi };
    let a = atan_ratio::<L>(lo, hi);
    let a = if steep {
        FRAC_PI_2 - (a - FRAC_PI_2_LO)
    } else {
        a
    };
    let a = if x.is_sign_negative() {
        PI - (a - 2.0 * FRAC_PI_2_LO)
    } else {
        a
    };
    let a = a.copysign(y);
    if x.is_nan() | y.is_nan() { f64::NAN } else { a }
}

/// (asin t - t) / t for z = t^2 <= 1/4.
#[inline(always)]
fn asin_rest<L: Level>(z: f64) -> f64 {
    // (asin t - t) / t^3: error 2^-59.8.
    z * poly!(L, z;
        0.166_666_666_666_667_57, 0.074_999_999_999_713_88, 0.044_642_857_174_276_58, 0.030_381_942_716_861_066,
        0.022_372_214_870_978_246, 0.017_351_612_250_260_73, 0.013_980_834_966_358_578, 0.011_398_681_540_015_047,
        0.010_782_062_665_649_416, 0.003_697_941_828_180_985_3, 0.021_731_419_097_396_187, -0.021_037_102_118_621_184,
        0.032_654_662_229_278_77)
}

/// `sqrt((1 - a) / 2)` as the sum of two numbers, and the higher terms of the asin series at that root: asin(a) = pi/2 - 2 asin(root).
#[inline(always)]
fn far_part<L: Level>(a: f64) -> (f64, f64, f64) {
    let z = 0.5 * (1.0 - a);
    let root = z.sqrt();
    // The square of the root's upper half of bits is exact; the lower half follows from z - head^2.
    let head = f64::from_bits(root.to_bits() & !0xffff_ffff);
    let low = (z - head * head) / (root + head);
    let low = if z == 0.0 { 0.0 } else { low };
    (head, low, root * asin_rest::<L>(z))
}

/// Error below 1 ulp.
#[inline(always)]
pub(super) fn asin<L: Level>(x: f64) -> f64 {
    let a = x.abs();
    let near = a + a * asin_rest::<L>(a * a);
    let (head, low, rest) = far_part::<L>(a);
    let far = FRAC_PI_4 - ((2.0 * (low + rest) - FRAC_PI_2_LO) - (FRAC_PI_4 - 2.0 * head));
    (if a < 0.5 { near } else { far }).copysign(x)
}

/// Error below 1 ulp.
#[inline(always)]
pub(super) fn acos<L: Level>(x: f64) -> f64 {
    let a = x.abs();
    let near = FRAC_PI_2 - (x - (FRAC_PI_2_LO - x * asin_rest::<L>(x * x)));
    let (head, low, rest) = far_part::<L>(a);
    let right = 2.0 * (head + (low + rest));
    let left = PI - (right - 2.0 * FRAC_PI_2_LO);
    let far = if x < 0.0 { left } else { right };
    if a < 0.5 { near } else { far }
}

const FRAC_PI_2_32: f32 = std::f32::consts::FRAC_PI_2;
const FRAC_PI_4_32: f32 = std::f32::consts::FRAC_PI_4;
/// pi/2 minus its nearest f32.
const FRAC_PI_2_LO32: f32 = -4.371_139e-8;

/// Error below 2 ulp.
#[inline(always)]
pub(super) fn atan32<L: Level>(x: f32) -> f32 {
    let a = x.abs();
    // tan(3 pi/8) and tan(pi/8): above these the angle is measured from pi/2 or pi/4. One division serves all cases.
    let (far, middle) = (a > 2.414_213_6, a > 0.414_213_57);
    let num = if middle { a - 1.0 } else { a };
    let den = if middle { a + 1.0 } else { 1.0 };
    let t = if far { -1.0 } else { num } / if far { a } else { den };
    let base = if middle { FRAC_PI_4_32 } else { 0.0 };
    let base_lo = if middle { 0.5 * FRAC_PI_2_LO32 } else { 0.0 };
    let base = if far { FRAC_PI_2_32 } else { base };
    let base_lo = if far { FRAC_PI_2_LO32 } else { base_lo };
    let z = t * t;
    // (atan t - t) / t^3 on |t| <= tan(pi/8): error 2^-30.5.
    let p = poly!(L, z; -0.333_333_16, 0.199_984_71, -0.142_435_34, 0.105_938_15, -0.060_782_254);
    (base + (t + (z * t).mul_sum::<L>(p, base_lo))).copysign(x)
}

/// Angle of the point (`x`, `y`). Error below 2 ulp.
#[inline(always)]
pub(super) fn atan2_32<L: Level>(y: f32, x: f32) -> f32 {
    let (ax, ay) = (x.abs(), y.abs());
    let steep = ay > ax;
    let hi = if steep { ay } else { ax };
    let lo = if steep { ax } else { ay };
    // The ratio of two infinities is taken as 1, that at the origin as 0. Scaling keeps the sum of the largest numbers finite and all bits of the
    // smallest.
    let both = lo == f32::INFINITY;
    let scale = if hi > 1e38 { 0.25 } else { 1.0 };
    // The scale is a power of two.
    let scale = if hi < 1e-30 {
        (1_u64 << 50) as f32
    } else {
        scale
    };
    let lo = if both { 1.0 } else { lo * scale };
    let hi = if both | (hi == 0.0) { 1.0 } else { hi * scale };
    // Above tan(pi/8), as in `atan_ratio`.
    let upper = lo > 0.414_213_57 * hi;
    let t = if upper { lo - hi } else { lo } / if upper { lo + hi } else { hi };
    let (base, base_lo) = if upper {
        (FRAC_PI_4_32, 0.5 * FRAC_PI_2_LO32)
    } else {
        (0.0, 0.0)
    };
    let z = t * t;
    // As in `atan32`.
    let p = poly!(L, z; -0.333_333_16, 0.199_984_71, -0.142_435_34, 0.105_938_15, -0.060_782_254);
    let a = base + (t + (z * t).mul_sum::<L>(p, base_lo));
    let a = if steep {
        FRAC_PI_2_32 - (a - FRAC_PI_2_LO32)
    } else {
        a
    };
    let a = if x.is_sign_negative() {
        std::f32::consts::PI - (a - 2.0 * FRAC_PI_2_LO32)
    } else {
        a
    };
    let a = a.copysign(y);
    if x.is_nan() | y.is_nan() { f32::NAN } else { a }
}

/// (asin t - t) / t for z = t^2 <= 1/4.
#[inline(always)]
fn asin_rest32<L: Level>(z: f32) -> f32 {
    // (asin t - t) / t^3: error 2^-31.8.
    z * poly!(L, z; 0.166_666_6, 0.075_005_04, 0.044_516_955, 0.031_807_737, 0.014_438_592, 0.037_516_482)
}

/// [`far_part`] for f32; below 1/2 the series terms are those at `a` itself. Returns (head, low, rest).
#[inline(always)]
fn asin_parts32<L: Level>(a: f32) -> (f32, f32, f32) {
    let far = a >= 0.5;
    let z = 0.5 * (1.0 - a);
    let root = z.sqrt();
    let head = f32::from_bits(root.to_bits() & !0xfff);
    // The quotient is the lower half of the root's bits. One Newton step makes the rough reciprocal accurate enough, with four bits to spare.
    let sum = root + head;
    let r = rough_reciprocal32::<L>(sum);
    let r = r * (-sum).mul_sum::<L>(r, 2.0);
    let low = (z - head * head) * r;
    let low = if z == 0.0 { 0.0 } else { low };
    let rest = asin_rest32::<L>(if far { z } else { a * a });
    (head, low, if far { root } else { a } * rest)
}

/// Error below 1.5 ulp.
#[inline(always)]
pub(super) fn asin32<L: Level>(x: f32) -> f32 {
    let a = x.abs();
    let (head, low, rest) = asin_parts32::<L>(a);
    let far = FRAC_PI_4_32 - ((2.0 * (low + rest) - FRAC_PI_2_LO32) - (FRAC_PI_4_32 - 2.0 * head));
    (if a < 0.5 { a + rest } else { far }).copysign(x)
}

/// Error below 1.5 ulp.
#[inline(always)]
pub(super) fn acos32<L: Level>(x: f32) -> f32 {
    let a = x.abs();
    let (head, low, rest) = asin_parts32::<L>(a);
    let near = FRAC_PI_2_32 - (x - (FRAC_PI_2_LO32 - rest.copysign(x)));
    let right = 2.0 * (head + (low + rest));
    let left = std::f32::consts::PI - (right - 2.0 * FRAC_PI_2_LO32);
    let far = if x < 0.0 { left } else { right };
    if a < 0.5 { near } else { far }
}
