//! sin, cos, tan.

use super::Float;
use super::exp::MAGIC64;
use super::poly;
use crate::map::row::Level;

/// For larger arguments the quotient by pi/2 has more than 20 bits, and its products with the first parts of pi/2 are no longer exact.
pub(super) const FAR64: f64 = 1.0e6;
pub(super) const FAR32: f32 = 1.0e6;

/// pi/2 as a sum: three parts of 33 bits and a remainder.
const HALF_PI: [f64; 4] = [
    1.570_796_326_734_125_6,
    6.077_100_506_303_966e-11,
    2.022_266_248_711_166_5e-21,
    8.478_427_660_348_229e-32,
];

/// Range reduction: `x = n pi/2 + (r + tail)` with |r| <= pi/4. Returns the lowest bits of n, r and tail. Requires |x| <= 1e6.
#[inline(always)]
fn reduce<L: Level>(x: f64) -> (u64, f64, f64) {
    let k = x.mul_sum::<L>(std::f64::consts::FRAC_2_PI, MAGIC64);
    let n = k - MAGIC64;
    // The first two products and the first difference are exact; the rounding error of the second difference goes into the tail.
    let first = x - n * HALF_PI[0];
    let product = n * HALF_PI[1];
    let second = first - product;
    let lost = (first - second) - product;
    let product = n * HALF_PI[2];
    let r = second - product;
    let lost = lost + ((second - r) - product);
    (k.to_bits(), r, lost - n * HALF_PI[3])
}

/// sin(r + tail), |r| <= pi/4.
#[inline(always)]
fn sin_part<L: Level>(r: f64, tail: f64) -> f64 {
    let z = r * r;
    // Polynomial for (sin r - r) / r^3: error 2^-68.8.
    let s = poly!(L, z;
        -0.166_666_666_666_666_66, 0.008_333_333_333_333_323, -1.984_126_984_125_509_6e-4, 2.755_731_921_419_565e-6,
        -2.505_210_491_104_366_2e-8, 1.605_836_637_321_952e-10, -7.578_677_961_672_909e-13);
    r + (z * r).mul_sum::<L>(s, tail * (1.0 - 0.5 * z))
}

/// cos(r + tail), |r| <= pi/4.
#[inline(always)]
fn cos_part<L: Level>(r: f64, tail: f64) -> f64 {
    let z = r * r;
    // Polynomial for (cos r - 1 + r^2/2) / r^4: error 2^-75.
    let c = poly!(L, z;
        0.041_666_666_666_666_664, -0.001_388_888_888_888_887_4, 2.480_158_730_157_200_4e-5, -2.755_731_921_555_627_5e-7,
        2.087_675_440_043_815_7e-9, -1.147_029_659_140_360_3e-11, 4.738_238_501_055_235e-14);
    let half = 0.5 * z;
    let w = 1.0 - half;
    w + (((1.0 - w) - half) + (z * z).mul_sum::<L>(c, -(r * tail)))
}

/// Changes the sign if the lowest bit of `bit` is set.
#[inline(always)]
fn negate_if(x: f64, bit: u64) -> f64 {
    f64::from_bits(x.to_bits() ^ (bit << 63))
}

/// Error below 1 ulp up to `FAR64`.
#[inline(always)]
pub(super) fn sin64<L: Level>(x: f64) -> f64 {
    let (n, r, tail) = reduce::<L>(x);
    let (s, c) = (sin_part::<L>(r, tail), cos_part::<L>(r, tail));
    let value = negate_if(if n & 1 == 0 { s } else { c }, n >> 1);
    // Restores the sign of -0, the only argument whose sign is lost.
    if x == 0.0 { x } else { value }
}

/// Error below 1 ulp up to `FAR64`.
#[inline(always)]
pub(super) fn cos64<L: Level>(x: f64) -> f64 {
    let (n, r, tail) = reduce::<L>(x);
    let (s, c) = (sin_part::<L>(r, tail), cos_part::<L>(r, tail));
    negate_if(if n & 1 == 0 { c } else { s }, n.wrapping_add(1) >> 1)
}

/// Error below 2 ulp up to `FAR64`.
#[inline(always)]
pub(super) fn tan64<L: Level>(x: f64) -> f64 {
    let (n, r, tail) = reduce::<L>(x);
    let (s, c) = (sin_part::<L>(r, tail), cos_part::<L>(r, tail));
    let even = n & 1 == 0;
    let value = negate_if(if even { s } else { c } / if even { c } else { s }, n);
    if x == 0.0 { x } else { value }
}

/// Range reduction in f64 for f32 arguments. Returns n and r; before r is rounded to f32, its absolute error is 2^-60.
#[inline(always)]
fn reduce32<L: Level>(x: f32) -> (u32, f32) {
    const REST: f64 = HALF_PI[1] + HALF_PI[2];
    let x = f64::from(x);
    let k = x.mul_sum::<L>(std::f64::consts::FRAC_2_PI, MAGIC64);
    let n = k - MAGIC64;
    let r = (-n).mul_sum::<L>(REST, x - n * HALF_PI[0]);
    (k.to_bits() as u32, r as f32)
}

/// sin(r) and cos(r), |r| <= pi/4.
#[inline(always)]
fn waves32<L: Level>(r: f32) -> (f32, f32) {
    let z = r * r;
    // Errors 2^-28 and 2^-33.
    let s = poly!(L, z; -0.166_666_55, 0.008_332_16, -1.951_525e-4);
    let c = poly!(L, z; 0.041_666_646, -0.001_388_731_6, 2.443_311_9e-5);
    let s = (z * r).mul_sum::<L>(s, r);
    let c = (z * z).mul_sum::<L>(c, (-0.5f32).mul_sum::<L>(z, 1.0));
    (s, c)
}

/// sin r if the lowest bit of n is 0, else cos r; negated if the second bit of n is set.
#[inline(always)]
fn wave32<L: Level>(n: u32, r: f32) -> f32 {
    let (s, c) = waves32::<L>(r);
    let value = if n & 1 == 0 { s } else { c };
    f32::from_bits(value.to_bits() ^ ((n >> 1) << 31))
}

/// Error below 1.5 ulp up to `FAR32`.
#[inline(always)]
pub(super) fn sin32<L: Level>(x: f32) -> f32 {
    let (n, r) = reduce32::<L>(x);
    let value = wave32::<L>(n, r);
    if x == 0.0 { x } else { value }
}

/// Error below 1.5 ulp up to `FAR32`; 1.6 ulp without fused multiply-add.
#[inline(always)]
pub(super) fn cos32<L: Level>(x: f32) -> f32 {
    let (n, r) = reduce32::<L>(x);
    wave32::<L>(n.wrapping_add(1), r)
}

/// Error below 3 ulp up to `FAR32`.
#[inline(always)]
pub(super) fn tan32<L: Level>(x: f32) -> f32 {
    let (n, r) = reduce32::<L>(x);
    let (s, c) = waves32::<L>(r);
    let even = n & 1 == 0;
    let value = if even { s } else { -c } / if even { c } else { s };
    if x == 0.0 { x } else { value }
}
