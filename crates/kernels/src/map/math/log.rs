//! log, log2, log10, log1p.

use super::Float;
use super::exp::{LN2_HI32, LN2_LO32, MAGIC64};
use super::poly;
use crate::map::row::Level;

/// sqrt(1/2): mantissas are taken from sqrt(1/2) to sqrt(2), so that logarithms near 1 do not cancel.
const ROOT_HALF64: u64 = 0x3fe6_a09e_667f_3bcd;
const ROOT_HALF32: i32 = 0x3f35_04f3;

const TWO54: f64 = 18_014_398_509_481_984.0;

/// `x = m * 2^e` with m in [sqrt(1/2), sqrt(2)), for positive finite `x`.
#[inline(always)]
pub(super) fn split64(x: f64) -> (f64, f64) {
    let small = x < f64::MIN_POSITIVE;
    let x = if small { x * TWO54 } else { x };
    let shifted = x
        .to_bits()
        .wrapping_sub(ROOT_HALF64)
        .wrapping_add(1024 << 52);
    let biased = shifted >> 52; // e + 1024
    let m = f64::from_bits(x.to_bits().wrapping_sub(biased.wrapping_sub(1024) << 52));
    let e = f64::from_bits(MAGIC64.to_bits().wrapping_add(biased)) - (MAGIC64 + 1024.0);
    (m, if small { e - 54.0 } else { e })
}

/// `log(1 + f) = f - t`: returns t. |f| < 0.42. Error below 0.3 ulp of f.
#[inline(always)]
fn below_linear<L: Level>(f: f64) -> f64 {
    let s = f / (2.0 + f);
    let z = s * s;
    // Polynomial for R in log((1 + s) / (1 - s)) = 2 s + s^3 R(s^2) on |s| <= 0.1717: error 2^-65.7.
    let r = poly!(L, z;
        0.666_666_666_666_666_6, 0.400_000_000_000_062_36, 0.285_714_285_690_825_1, 0.222_222_226_479_718_5,
        0.181_817_755_341_605_9, 0.153_870_977_034_191_12, 0.132_499_400_541_160_52, 0.132_531_035_056_216_63);
    // 2 s = f - s f
    s * (-z).mul_sum::<L>(r, f)
}

/// Replaces `value` at the special arguments that all logarithms share: 0, negative numbers, infinity, NaN.
#[inline(always)]
fn edges64(x: f64, value: f64) -> f64 {
    let value = if x == 0.0 { f64::NEG_INFINITY } else { value };
    let value = if x < 0.0 { f64::NAN } else { value };
    // The logarithm of infinity or NaN is the argument itself.
    if x < f64::INFINITY { value } else { x }
}

/// Error below 1 ulp.
#[inline(always)]
pub(super) fn log64<L: Level>(x: f64) -> f64 {
    // ln 2 to 42 bits, so that e * HI is exact.
    const HI: f64 = 0.693_147_180_559_890_3;
    const LO: f64 = 5.497_923_018_708_371e-14;
    let (m, e) = split64(x);
    let f = m - 1.0;
    let t = below_linear::<L>(f);
    edges64(x, e.mul_sum::<L>(HI, f - (t - e * LO)))
}

/// Logarithm to another base: `f - t` times the constant `hi + lo`, plus `e * step`. Requires |e * step| > |f| or e = 0.
#[inline(always)]
fn other_base<L: Level>(m: f64, e: f64, hi: f64, lo: f64, step_hi: f64, step_lo: f64) -> f64 {
    let f = m - 1.0;
    let t = below_linear::<L>(f);
    // 21 bits of f and 32 bits of hi: their product is exact with and without fused multiply-add.
    let f_hi = f64::from_bits(f.to_bits() & !0xffff_ffff);
    let c_hi = f64::from_bits(hi.to_bits() & !0x07ff_ffff);
    let p = f_hi * c_hi;
    let rest = (f - f_hi) * hi + f_hi * (lo + (hi - c_hi)) - t * hi;
    let whole = e * step_hi;
    let sum = whole + p;
    let error = (whole - sum) + p;
    sum + (error + (rest + e * step_lo))
}

/// Error below 1 ulp; exact for powers of two.
#[inline(always)]
pub(super) fn log2_64<L: Level>(x: f64) -> f64 {
    let (m, e) = split64(x);
    edges64(
        x,
        other_base::<L>(
            m,
            e,
            std::f64::consts::LOG2_E,
            2.035_527_374_093_103_3e-17,
            1.0,
            0.0,
        ),
    )
}

/// Error below 1 ulp.
#[inline(always)]
pub(super) fn log10_64<L: Level>(x: f64) -> f64 {
    // log10(2): 42 bits, and the remainder.
    const HI: f64 = 0.301_029_995_663_952_83;
    const LO: f64 = 2.836_339_455_104_496_4e-14;
    let (m, e) = split64(x);
    edges64(
        x,
        other_base::<L>(
            m,
            e,
            std::f64::consts::LOG10_E,
            1.098_319_650_216_765e-17,
            HI,
            LO,
        ),
    )
}

/// 1/x within 0.3 % for positive normal x: a guess by integer arithmetic on the bits, which negates the exponent, and one Newton step. It is much
/// cheaper than a division.
#[inline(always)]
fn rough_reciprocal64<L: Level>(x: f64) -> f64 {
    let r = f64::from_bits(0x7fde_6238_22fc_16e6_u64.wrapping_sub(x.to_bits()));
    r * (-x).mul_sum::<L>(r, 2.0)
}

/// [`rough_reciprocal64`] for f32.
#[inline(always)]
pub(super) fn rough_reciprocal32<L: Level>(x: f32) -> f32 {
    let r = f32::from_bits(0x7ef3_11c7_u32.wrapping_sub(x.to_bits()));
    r * (-x).mul_sum::<L>(r, 2.0)
}

/// Above this, adding 1 has no effect on the logarithm; the rough reciprocal fails near the largest numbers.
const FAR64: f64 = 1e200;
const FAR32: f32 = 1e18;

/// `log(1 + x)`. Error below 2 ulp.
#[inline(always)]
pub(super) fn log1p_64<L: Level>(x: f64) -> f64 {
    let u = 1.0 + x;
    // The rounding error of the sum. log(u) is too small by this error divided by u.
    let part = u - x;
    let lost = (x - (u - part)) + (1.0 - part);
    let (m, e) = split64(u);
    let near = e == 0.0;
    let f = if near { x } else { m - 1.0 };
    // The rounding error is below an ulp of u, so a rough quotient is accurate enough.
    let c = lost * rough_reciprocal64::<L>(u);
    let c = if near | (u > FAR64) { 0.0 } else { c };
    let t = below_linear::<L>(f);
    let value = e.mul_sum::<L>(
        super::exp::LN2_HI64,
        f - (t - e.mul_sum::<L>(super::exp::LN2_LO64, c)),
    );
    let value = if x == -1.0 { f64::NEG_INFINITY } else { value };
    let value = if x < -1.0 { f64::NAN } else { value };
    let value = if x < f64::INFINITY { value } else { x };
    if x.abs() < 1e-17 { x } else { value }
}

/// [`split64`] for f32: `x = m * 2^e`.
#[inline(always)]
fn split32(x: f32) -> (f32, f32) {
    let small = x < f32::MIN_POSITIVE;
    let y = if small { x * 33_554_432.0 } else { x }; // 2^25
    let e = (y.to_bits() as i32).wrapping_sub(ROOT_HALF32) >> 23;
    let m = f32::from_bits((y.to_bits() as i32).wrapping_sub(e << 23) as u32);
    (m, e as f32 - if small { 25.0 } else { 0.0 })
}

/// `(log(1 + f) - f + f^2/2) / f^3` for f in [sqrt(1/2) - 1, sqrt(2) - 1]: error 2^-30.3 of log(1 + f).
#[inline(always)]
fn above_parabola32<L: Level>(f: f32) -> f32 {
    poly!(L, f;
        0.333_333_1, -0.249_999_87, 0.200_022_12, -0.166_692_47, 0.142_189, -0.123_845_43, 0.118_715_74, -0.117_882_89,
        0.069_165_014)
}

/// `log(1 + f) + e ln 2 + c` for f in [sqrt(1/2) - 1, sqrt(2) - 1] and a small c.
#[inline(always)]
fn join32<L: Level>(f: f32, e: f32, c: f32) -> f32 {
    let z = f * f;
    let p = above_parabola32::<L>(f);
    let tail = (z * f).mul_sum::<L>(p, e.mul_sum::<L>(LN2_LO32, c));
    e.mul_sum::<L>(LN2_HI32, (-0.5f32).mul_sum::<L>(z, tail) + f)
}

/// Error below 1 ulp.
#[inline(always)]
pub(super) fn log32<L: Level>(x: f32) -> f32 {
    let (m, e) = split32(x);
    let value = join32::<L>(m - 1.0, e, 0.0);
    let value = if x == 0.0 { f32::NEG_INFINITY } else { value };
    let value = if x < 0.0 { f32::NAN } else { value };
    if x < f32::INFINITY { value } else { x }
}

/// `log(1 + x)`. Error below 1.5 ulp.
#[inline(always)]
pub(super) fn log1p_32<L: Level>(x: f32) -> f32 {
    let u = 1.0 + x;
    let part = u - x;
    let lost = (x - (u - part)) + (1.0 - part);
    let (m, e) = split32(u);
    let near = e == 0.0;
    let c = lost * rough_reciprocal32::<L>(u);
    let value = join32::<L>(
        if near { x } else { m - 1.0 },
        e,
        if near | (u > FAR32) { 0.0 } else { c },
    );
    let value = if x == -1.0 { f32::NEG_INFINITY } else { value };
    let value = if x < -1.0 { f32::NAN } else { value };
    let value = if x < f32::INFINITY { value } else { x };
    if x.abs() < 1e-9 { x } else { value }
}

/// Logarithm of `x = (1 + f) 2^e` to another base: `log(1 + f)` times the constant `hi + lo`, plus `e` times
/// `step_hi + step_lo`; see [`other_base`].
#[inline(always)]
fn other_base32<L: Level>(x: f32, hi: f32, lo: f32, step_hi: f32, step_lo: f32) -> f32 {
    let (m, e) = split32(x);
    let f = m - 1.0;
    let t = f.mul_sum::<L>(above_parabola32::<L>(f), -0.5) * (f * f);
    // 12 bits of f and of hi: their product is exact with and without fused multiply-add.
    let f_hi = f32::from_bits(f.to_bits() & !0xfff);
    let c_hi = f32::from_bits(hi.to_bits() & !0xfff);
    let p = f_hi * c_hi;
    let rest = t.mul_sum::<L>(hi, (f - f_hi) * hi + f_hi * (lo + (hi - c_hi)));
    let whole = e * step_hi;
    let sum = whole + p;
    let error = (whole - sum) + p;
    let value = sum + (error + e.mul_sum::<L>(step_lo, rest));
    let value = if x == 0.0 { f32::NEG_INFINITY } else { value };
    let value = if x < 0.0 { f32::NAN } else { value };
    if x < f32::INFINITY { value } else { x }
}

/// Error below 1.5 ulp; exact for powers of two.
#[inline(always)]
pub(super) fn log2_32<L: Level>(x: f32) -> f32 {
    // log2(e) minus its nearest f32.
    const LO: f32 = 1.925_963e-8;
    other_base32::<L>(x, std::f32::consts::LOG2_E, LO, 1.0, 0.0)
}

/// Error below 1.5 ulp.
#[inline(always)]
pub(super) fn log10_32<L: Level>(x: f32) -> f32 {
    // log10(e) minus its nearest f32; log10(2) in 15 bits, and the remainder.
    const LO: f32 = -1.010_305e-8;
    const STEP: f32 = f32::from_bits(0x3e9a_2000);
    const STEP_LO: f32 = 4.605_039e-6;
    other_base32::<L>(x, std::f32::consts::LOG10_E, LO, STEP, STEP_LO)
}

/// log2 of a positive f32 with a relative error of 2^-38, which is enough for `pow` of f32.
#[inline(always)]
pub(super) fn log2_rough<L: Level>(x: f32) -> f64 {
    // Every nonzero f32 is a normal f64.
    let bits = f64::from(x).to_bits();
    let biased = bits.wrapping_sub(ROOT_HALF64).wrapping_add(1024 << 52) >> 52; // e + 1024
    let m = f64::from_bits(bits.wrapping_sub(biased.wrapping_sub(1024) << 52));
    let e = f64::from_bits(MAGIC64.to_bits().wrapping_add(biased)) - (MAGIC64 + 1024.0);
    let f = m - 1.0;
    // Polynomial for log2(1 + f) / f on [sqrt(1/2) - 1, sqrt(2) - 1], error 2^-38.5. Its degree is higher than with the usual quotient, but it needs
    // no division. Even and odd powers are summed separately, which halves the dependency chain.
    let z = f * f;
    let even = poly!(L, z;
        1.442_695_040_886_575_5, 0.480_898_348_802_189_6, 0.288_538_795_792_145_2, 0.206_107_121_155_473_03,
        0.160_216_683_454_095_04, 0.130_275_699_284_192, 0.132_510_840_981_746_4);
    let odd = poly!(L, z;
        -0.721_347_520_327_587_8, -0.360_673_793_128_300_06, -0.240_446_434_191_603_1, -0.180_436_733_004_888_27,
        -0.142_498_857_406_621_13, -0.134_628_279_901_867_1, -0.069_739_318_887_023_94);
    f.mul_sum::<L>(odd.mul_sum::<L>(f, even), e)
}
