//! Incomplete gamma and beta functions, computed in f64: the inner loops, and what both families share.
//!
//! A distribution function F with density f is computed as a tail, the smaller of F and 1 - F, because the larger one loses the digits of the
//! smaller one. Each tail is a weight, known to full accuracy, times a ratio of moderate size. The same loop that computes the ratio computes its
//! derivatives with respect to the shape parameters.

mod beta;
mod gamma;

use std::sync::LazyLock;

use super::OutElem::Same;
use super::row::{binary_rows, ternary_rows};
use super::special::digamma;

binary_rows! {
    /// The regularised lower incomplete gamma function, P(a, x).
    GAMMAINC "gammainc", Same, cost 250, params 0, heavy true, binary_one {
        [f32] |a, x, _| -> T { gamma::both(a.into(), x.into())[0] as f32 }
        [f64] |a, x, _| -> T { gamma::both(a, x)[0] }
    }
    /// The regularised upper incomplete gamma function, Q(a, x).
    GAMMAINCC "gammaincc", Same, cost 250, params 0, heavy true, binary_one {
        [f32] |a, x, _| -> T { gamma::both(a.into(), x.into())[1] as f32 }
        [f64] |a, x, _| -> T { gamma::both(a, x)[1] }
    }
    /// The x with P(a, x) = p.
    GAMMAINCINV "gammaincinv", Same, cost 250, params 0, heavy true, binary_one {
        [f32] |a, p, _| -> T { gamma::inverse(a.into(), p.into(), 1.0 - f64::from(p)) as f32 }
        [f64] |a, p, _| -> T { gamma::inverse(a, p, 1.0 - p) }
    }
    /// The x with Q(a, x) = q.
    GAMMAINCCINV "gammainccinv", Same, cost 250, params 0, heavy true, binary_one {
        [f32] |a, q, _| -> T { gamma::inverse(a.into(), 1.0 - f64::from(q), q.into()) as f32 }
        [f64] |a, q, _| -> T { gamma::inverse(a, 1.0 - q, q) }
    }
    /// The derivative of P(a, x) with respect to a.
    GAMMAINC_SLOPE "gammainc_slope", Same, cost 250, params 0, heavy true, binary_one {
        [f32] |a, x, _| -> T { gamma::slope(a.into(), x.into()) as f32 }
        [f64] |a, x, _| -> T { gamma::slope(a, x) }
    }
    /// The derivative of P(a, x) with respect to x.
    GAMMA_DENSITY "gamma_density", Same, cost 100, params 0, heavy true, binary_one {
        [f32] |a, x, _| -> T { gamma::density(a.into(), x.into()) as f32 }
        [f64] |a, x, _| -> T { gamma::density(a, x) }
    }
    /// The derivative of a quantile x with respect to a, at constant P(a, x); with `p[0]` not 0, that of ln x, where the operand is ln x.
    GAMMA_SLOPE "gamma_slope", Same, cost 250, params 1, heavy true, binary_one {
        [f32] |a, x, p| -> T { gamma::quantile_slope(a.into(), x.into(), p[0] != 0.0) as f32 }
        [f64] |a, x, p| -> T { gamma::quantile_slope(a, x, p[0] != 0.0) }
    }
}

ternary_rows! {
    /// The regularised incomplete beta function, I(x; a, b).
    BETAINC "betainc", cost 250 {
        [f32] |a, b, x| { beta::values(a.into(), b.into(), x.into())[0] as f32 }
        [f64] |a, b, x| { beta::values(a, b, x)[0] }
    }
    /// Its complement, I(1 - x; b, a).
    BETAINCC "betaincc", cost 250 {
        [f32] |a, b, x| { beta::values(a.into(), b.into(), x.into())[1] as f32 }
        [f64] |a, b, x| { beta::values(a, b, x)[1] }
    }
    /// The x with I(x; a, b) = p.
    BETAINCINV "betaincinv", cost 250 {
        [f32] |a, b, p| { beta::inverse(a.into(), b.into(), p.into(), 1.0 - f64::from(p)) as f32 }
        [f64] |a, b, p| { beta::inverse(a, b, p, 1.0 - p) }
    }
    /// The x with I(1 - x; b, a) = q.
    BETAINCCINV "betainccinv", cost 250 {
        [f32] |a, b, q| { beta::inverse(a.into(), b.into(), 1.0 - f64::from(q), q.into()) as f32 }
        [f64] |a, b, q| { beta::inverse(a, b, 1.0 - q, q) }
    }
    /// The derivative of I(x; a, b) with respect to a.
    BETAINC_SLOPE_A "betainc_slope_a", cost 250 {
        [f32] |a, b, x| { beta::slopes(a.into(), b.into(), x.into())[0] as f32 }
        [f64] |a, b, x| { beta::slopes(a, b, x)[0] }
    }
    /// The derivative of I(x; a, b) with respect to b.
    BETAINC_SLOPE_B "betainc_slope_b", cost 250 {
        [f32] |a, b, x| { beta::slopes(a.into(), b.into(), x.into())[1] as f32 }
        [f64] |a, b, x| { beta::slopes(a, b, x)[1] }
    }
    /// The derivative of I(x; a, b) with respect to x.
    BETA_DENSITY "beta_density", cost 200 {
        [f32] |a, b, x| { beta::density(a.into(), b.into(), x.into()) as f32 }
        [f64] |a, b, x| { beta::density(a, b, x) }
    }
}

/// The part of a distribution that a tail belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    /// Below the argument.
    Lower,
    /// Above it.
    Upper,
}

/// `ln(1 + w) - w`, without cancellation near 0.
fn log1p_minus(w: f64) -> f64 {
    if w.is_nan() || w.abs() > 0.5 {
        return libm::log1p(w) - w;
    }
    // With v = w / (2 + w): ln(1 + w) = 2 artanh(v) (DLMF 4.37.24, 4.38.5), and 2 v - w = -w v.
    let v = w / (2.0 + w);
    let (square, mut term, mut sum, mut k) = (v * v, v * v * v, 0.0, 3.0);
    loop {
        let next = sum + term / k;
        if next == sum {
            return 2.0 * sum - w * v;
        }
        (sum, term, k) = (next, term * square, k + 2.0);
    }
}

/// `c ln(c / mean) + mean - c`, which is 0 where `mean` is `c`, given `gap = (mean - c) / c`. Weights are functions of it, so that they keep their digits
/// for large parameters. Source: Loader, "Fast and accurate computation of binomial probabilities", 2000.
fn deviance(c: f64, mean: f64, gap: f64) -> f64 {
    if gap < -0.9 {
        return c * libm::log(c / mean) + (mean - c);
    }
    -c * log1p_minus(gap)
}

/// `exp(s) - 1 - s`, without cancellation near 0.
fn expm1_minus(s: f64) -> f64 {
    if s.abs() > 0.5 {
        return libm::expm1(s) - s;
    }
    // The terms from s^15 / 15! on are below 2^-53 of the first.
    let mut sum = 1.0;
    for k in (3..=15).rev() {
        sum = 1.0 + sum * s / f64::from(k);
    }
    0.5 * s * s * sum
}

/// Half of ln(2 pi).
const LOG_SQRT_TAU: f64 = 0.918_938_533_204_672_7;

/// From here on the asymptotic series of [`stirling_error`] and [`digamma_minus_log`] are accurate.
const ASYMPTOTIC: f64 = 16.0;

/// Sum of the series `coefficients[k] z^k`.
fn polynomial(coefficients: &[f64], z: f64) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, &c| sum * z + c)
}

/// `ln gamma(a + 1) - (a + 1/2) ln a + a - ln(2 pi) / 2`: the relative error of Stirling's formula, as a logarithm (DLMF 5.11.1).
fn stirling_error(a: f64) -> f64 {
    if a < ASYMPTOTIC {
        return log_gamma_1p(a) - (a + 0.5) * libm::log(a) + a - LOG_SQRT_TAU;
    }
    // B(2k) / (2k (2k - 1)).
    const SERIES: [f64; 7] = [
        1.0 / 12.0,
        -1.0 / 360.0,
        1.0 / 1260.0,
        -1.0 / 1680.0,
        1.0 / 1188.0,
        -691.0 / 360_360.0,
        1.0 / 156.0,
    ];
    polynomial(&SERIES, 1.0 / (a * a)) / a
}

/// `digamma(a) - ln(a)` for a > 0 (DLMF 5.11.2).
fn digamma_minus_log(a: f64) -> f64 {
    if a < ASYMPTOTIC {
        return digamma(a) - libm::log(a);
    }
    // -B(2k) / 2k.
    const SERIES: [f64; 6] = [
        -1.0 / 12.0,
        1.0 / 120.0,
        -1.0 / 252.0,
        1.0 / 240.0,
        -1.0 / 132.0,
        691.0 / 32_760.0,
    ];
    let z = 1.0 / (a * a);
    -0.5 / a + polynomial(&SERIES, z) * z
}

/// `ln gamma(1 + a)` for a >= 0, accurate near its root 0.
fn log_gamma_1p(a: f64) -> f64 {
    if a >= 0.125 {
        return libm::lgamma(1.0 + a);
    }
    // Minus Euler's constant, then (-1)^k zeta(k) / k (DLMF 5.7.3).
    const SERIES: [f64; 17] = [
        -0.577_215_664_901_532_9,
        0.822_467_033_424_113_2,
        -0.400_685_634_386_531_43,
        0.270_580_808_427_784_55,
        -0.207_385_551_028_673_98,
        0.169_557_176_997_408_2,
        -0.144_049_896_768_846_1,
        0.125_509_669_524_743_05,
        -0.111_334_265_869_564_69,
        0.100_099_457_512_781_8,
        -0.090_954_017_145_829_04,
        0.083_353_840_546_109,
        -0.076_932_516_411_352_2,
        0.071_432_946_295_361_34,
        -0.066_668_705_882_420_46,
        0.062_500_955_141_213_04,
        -0.058_823_978_658_684_58,
    ];
    a * polynomial(&SERIES, a)
}

/// Abscissas and weights of the trapezoidal rule after `s = exp(v - exp(-v))`, for integrals from 0 to infinity of functions that decay
/// exponentially. Source: Takahasi and Mori, "Double exponential formulas for numerical integration", 1974.
static NODES: LazyLock<Vec<[f64; 2]>> = LazyLock::new(|| {
    const STEP: f64 = 0.1;
    let node = |k: i32| {
        let v = STEP * f64::from(k);
        let s = libm::exp(v - libm::exp(-v));
        [s, STEP * s * (1.0 + libm::exp(-v))]
    };
    // Below, abscissas and weights are less than 1e-17; above, decaying functions are.
    (-37..=38).map(node).collect()
});

/// Integrals over s from 0 to infinity of a function, and of the function times each of two factors. `at(s)` returns the logarithm of the function and the
/// factors. The logarithm is 0 at 0, concave, and falls by about 1 within `scale`.
fn integrals(scale: f64, at: impl Fn(f64) -> (f64, [f64; 2])) -> (f64, [f64; 2]) {
    let (mut total, mut with_factor) = (0.0, [0.0; 2]);
    for &[s, weight] in NODES.iter() {
        let (exponent, factors) = at(scale * s);
        if exponent < -745.0 {
            break;
        }
        let part = weight * libm::exp(exponent);
        total += part;
        with_factor[0] += part * factors[0];
        with_factor[1] += part * factors[1];
    }
    (scale * total, with_factor.map(|sum| scale * sum))
}

/// A number that depends on `N` parameters, and its derivatives (forward differentiation).
#[derive(Clone, Copy)]
struct Dual<const N: usize>(f64, [f64; N]);

impl<const N: usize> Dual<N> {
    fn constant(x: f64) -> Self {
        Dual(x, [0.0; N])
    }
    fn plus(self, other: Self) -> Self {
        Dual(
            self.0 + other.0,
            std::array::from_fn(|i| self.1[i] + other.1[i]),
        )
    }
    fn shifted(self, by: f64) -> Self {
        Dual(self.0 + by, self.1)
    }
    fn scaled(self, by: f64) -> Self {
        Dual(self.0 * by, self.1.map(|slope| slope * by))
    }
    fn times(self, other: Self) -> Self {
        let slope = |i| self.1[i] * other.0 + self.0 * other.1[i];
        Dual(self.0 * other.0, std::array::from_fn(slope))
    }
    fn over(self, other: Self) -> Self {
        let quotient = self.0 / other.0;
        Dual(
            quotient,
            std::array::from_fn(|i| (self.1[i] - quotient * other.1[i]) / other.0),
        )
    }
}

/// More terms than any argument needs; a loop that reaches it returns what it has.
const MAX_TERMS: i32 = 100_000;

/// The continued fraction `b(0) + a(1) / (b(1) + a(2) / (b(2) + ...))`, where `at(k)` returns a(k) and b(k). Source: Thompson and Barnett, "Coulomb and
/// Bessel functions of complex arguments and order", 1986 (Lentz' algorithm, modified).
fn continued_fraction<const N: usize>(
    first: Dual<N>,
    at: impl Fn(f64) -> (Dual<N>, Dual<N>),
) -> Dual<N> {
    let (mut value, mut c, mut d) = (first, first, Dual::constant(0.0));
    for k in 1..MAX_TERMS {
        let (a, b) = at(f64::from(k));
        d = Dual::constant(1.0).over(b.plus(a.times(d)));
        c = b.plus(a.over(c));
        let factor = c.times(d);
        value = value.times(factor);
        let settled = (0..N).all(|i| {
            (value.0 * factor.1[i]).abs() <= 1e-16 * value.1[i].abs().max(value.0.abs() * 1e-3)
        });
        if (factor.0 - 1.0).abs() < 2e-16 && settled || value.0.is_nan() {
            break;
        }
    }
    value
}

/// An approximation of the quantile of the standard normal distribution, for p from 0 to 1/2; the error is below 4.5e-4. Source: Abramowitz and Stegun,
/// 26.2.23.
fn rough_normal_quantile(p: f64) -> f64 {
    let t = (-2.0 * libm::log(p)).sqrt();
    let below = polynomial(&[1.0, 1.432_788, 0.189_269, 0.001_308], t);
    polynomial(&[2.515_517, 0.802_853, 0.010_328], t) / below - t
}

/// Moves an argument until the logarithm of its tail is `log_p`, by Newton's method. `step(dz)` moves it by `dz` in the coordinate z, and returns the
/// logarithm of the tail and its derivative with respect to z. The logarithm is concave in z (ln x, or ln(x / (1 - x))), so all steps but the first have one
/// sign and the method converges from any start.
fn solve_tail(log_p: f64, tolerance: f64, mut step: impl FnMut(f64) -> (f64, f64)) {
    let mut dz: f64 = 0.0;
    for _ in 0..100 {
        let (log_tail, slope) = step(dz);
        let next = (log_p - log_tail) / slope;
        if next.is_nan() {
            return;
        }
        dz = next.clamp(-700.0, 700.0);
        if dz.abs() <= tolerance {
            step(dz);
            return;
        }
    }
}
