//! Error and gamma functions.

use super::OutElem::{Fixed, Same};
use super::math::Float;
use super::row::{Base, Level, unary_rows};

unary_rows! {
    /// `frexp`: the mantissa with magnitude in [0.5, 1). Zeros, infinities and NaN are returned as they are.
    MANTISSA "mantissa", Same, cost 2, params 0, unary {
        [f32] |x, _| -> T { parts_f32(x).0 }
        [f64] |x, _| -> T { parts_f64(x).0 }
    }
    /// `frexp`: the exponent; 0 for zeros, infinities and NaN.
    EXPONENT "exponent", Fixed(crate::Elem::I32), cost 2, params 0, unary {
        [f32] |x, _| -> i32 { parts_f32(x).1 }
        [f64] |x, _| -> i32 { parts_f64(x).1 }
    }
    /// `sin(pi x) / (pi x)`, 1 at 0. The sine is taken of the distance to the nearest integer, which is exact.
    SINC "sinc", Same, cost 6, params 0, unary {
        [f32 f64] |x, _| -> T {
            const PI: T = std::f64::consts::PI as T;
            let nearest = x.round_ties_even();
            let is_odd = nearest - 2.0 * (nearest * 0.5).floor();
            let sine = Float::sin::<L>(PI * (x - nearest)) * (1.0 - 2.0 * is_odd);
            if x == 0.0 { 1.0 } else { sine / (PI * x) }
        }
    }
    /// The modified Bessel function of the first kind of order 0, computed in f64.
    I0 "i0", Same, cost 30, params 0, unary {
        [f32] |x, _| -> T { bessel::<L, 0>(f64::from(x)) as f32 }
        [f64] |x, _| -> T { bessel::<L, 0>(x) }
    }
    /// The modified Bessel function of the first kind of order 1, computed in f64.
    I1 "i1", Same, cost 30, params 0, unary {
        [f32] |x, _| -> T { bessel::<L, 1>(f64::from(x)) as f32 }
        [f64] |x, _| -> T { bessel::<L, 1>(x) }
    }
    /// The error function.
    ERF "erf", Same, cost 6, params 0, unary {
        [f32 f64] |x, _| -> T { Float::erf::<L>(x) }
    }
    /// `1 - erf(x)` without cancellation.
    ERFC "erfc", Same, cost 12, params 0, unary {
        [f32 f64] |x, _| -> T { Float::erfc::<L>(x) }
    }
    /// The inverse of the error function; infinite at -1 and 1, NaN outside.
    ERFINV "erfinv", Same, cost 60, params 0, unary_one {
        [f32] |x, _| -> T { erfinv(f64::from(x)) as f32 }
        [f64] |x, _| -> T { erfinv(x) }
    }
    /// The inverse of `1 - erf(x)`; infinite at 0 and 2, NaN outside.
    ERFCINV "erfcinv", Same, cost 80, params 0, unary_one {
        [f32] |x, _| -> T { erfcinv(f64::from(x)) as f32 }
        [f64] |x, _| -> T { erfcinv(x) }
    }
    /// The gamma function; NaN at negative integers.
    GAMMA "gamma", Same, cost 80, params 0, unary_one {
        [f32] |x, _| -> T { libm::tgammaf(x) }
        [f64] |x, _| -> T { libm::tgamma(x) }
    }
    /// log |gamma(x)|; infinite at 0 and at negative integers.
    LGAMMA "lgamma", Same, cost 60, params 0, unary_one {
        [f32] |x, _| -> T { libm::lgamma(f64::from(x)) as f32 }
        [f64] |x, _| -> T { libm::lgamma(x) }
    }
    /// The derivative of log gamma; NaN at 0 and at negative integers.
    DIGAMMA "digamma", Same, cost 60, params 0, unary_one {
        [f32] |x, _| -> T { digamma(f64::from(x)) as f32 }
        [f64] |x, _| -> T { digamma(x) }
    }
    /// The derivative of digamma of order `p[0]`, at least 1; infinite or NaN at 0 and at negative integers.
    POLYGAMMA "polygamma", Same, cost 100, params 1, unary_one {
        [f32] |x, p| -> T { polygamma(p[0] as usize, f64::from(x)) as f32 }
        [f64] |x, p| -> T { polygamma(p[0] as usize, x) }
    }
}

/// Mantissa and exponent of a float (`frexp`), without branches.
macro_rules! parts {
    ($name:ident, $t:ty, $bits:ty, $mantissa:literal) => {
        #[inline(always)]
        fn $name(x: $t) -> ($t, i32) {
            const FRACTION: $bits = (1 << $mantissa) - 1;
            const SIGN: $bits = 1 << (<$bits>::BITS - 1);
            const FIELD: $bits = <$bits>::MAX >> ($mantissa + 1);
            // Biased exponent of numbers in [0.5, 1).
            const HALF: $bits = (FIELD >> 1) - 1;
            let is_subnormal = x.abs() < <$t>::MIN_POSITIVE;
            // Scales subnormal numbers to normal ones.
            let scaled = if is_subnormal {
                x * (1_u64 << ($mantissa + 1)) as $t
            } else {
                x
            };
            let bits = scaled.to_bits();
            let shift = if is_subnormal { $mantissa + 1 } else { 0 };
            let exponent = ((bits >> $mantissa) & FIELD) as i32 - HALF as i32 - shift;
            let fraction = <$t>::from_bits(bits & (FRACTION | SIGN) | HALF << $mantissa);
            let is_own = (x == 0.0) | !x.is_finite();
            (
                if is_own { x } else { fraction },
                if is_own { 0 } else { exponent },
            )
        }
    };
}
parts!(parts_f32, f32, u32, 23);
parts!(parts_f64, f64, u64, 52);

/// Number of terms of both series of [`bessel`]. The truncation error is below 1e-18 of the sum, except at [`MEET`], where it reaches 4e-16.
const TERMS: usize = 36;
/// The square root of 2 pi.
const SQRT_TAU: f64 = 2.506_628_274_631_000_5;
/// Argument at which the asymptotic series replaces the power series.
const MEET: f64 = 20.0;

/// 1 / (k (k + order)): ratio of consecutive terms of the power series, divided by (x/2)^2 (DLMF 10.25.2).
const fn rising(order: usize) -> [f64; TERMS] {
    let mut factors = [0.0; TERMS];
    let mut k = 1;
    while k <= TERMS {
        factors[k - 1] = 1.0 / (k * (k + order)) as f64;
        k += 1;
    }
    factors
}

/// ((2k - 1)^2 - 4 order^2) / 8k: ratio of consecutive terms of the asymptotic series, times x (DLMF 10.40.1).
const fn falling(order: usize) -> [f64; TERMS] {
    let mut factors = [0.0; TERMS];
    let mut k = 1;
    while k <= TERMS {
        let odd = (2 * k - 1) as f64;
        factors[k - 1] = (odd * odd - (4 * order * order) as f64) / (8 * k) as f64;
        k += 1;
    }
    factors
}

/// The modified Bessel function of the first kind of order 0 or 1.
#[inline(always)]
fn bessel<L: Level, const ORDER: usize>(x: f64) -> f64 {
    const RISING: [[f64; TERMS]; 2] = [rising(0), rising(1)];
    const FALLING: [[f64; TERMS]; 2] = [falling(0), falling(1)];
    let size = x.abs();
    let is_near = size <= MEET;
    let square = if is_near { 0.25 * size * size } else { 0.0 };
    let inverse = if is_near { 0.0 } else { 1.0 / size };
    let (mut near, mut far) = (1.0, 1.0);
    for k in (0..TERMS).rev() {
        near = Float::mul_sum::<L>(near * square, RISING[ORDER][k], 1.0);
        far = Float::mul_sum::<L>(far * inverse, FALLING[ORDER][k], 1.0);
    }
    if ORDER == 1 {
        near *= 0.5 * size;
    }
    // Multiplies twice by exp(x / 2), because exp(x) overflows before the result does.
    let half = Float::exp::<L>(0.5 * size);
    let far = half * (half * (far / (SQRT_TAU * size.sqrt())));
    let value = if is_near { near } else { far };
    let value = if ORDER == 1 { value.copysign(x) } else { value };
    if x.is_nan() { x } else { value }
}

/// Solves `erf(y) = x`.
fn erfinv(x: f64) -> f64 {
    let a = x.abs();
    if a >= 1.0 || x.is_nan() {
        return if a == 1.0 {
            f64::INFINITY.copysign(x)
        } else {
            f64::NAN
        };
    }
    if a < 1e-9 {
        return x * HALF_ROOT_PI;
    }
    erf_root(a, 1.0 - a).copysign(x)
}

/// Solves `erfc(y) = x`.
fn erfcinv(x: f64) -> f64 {
    if !(0.0..=2.0).contains(&x) {
        return f64::NAN;
    }
    if (0.5..=1.5).contains(&x) {
        return erfinv(1.0 - x);
    }
    let (tail, sign) = if x < 1.0 { (x, 1.0) } else { (2.0 - x, -1.0) };
    if tail == 0.0 {
        return sign * f64::INFINITY;
    }
    sign * erf_root(1.0 - tail, tail)
}

/// sqrt(pi)/2: the derivative of erfinv at 0.
const HALF_ROOT_PI: f64 = 0.886_226_925_452_758;

/// The y above 0 with `erf(y) = a` and `erfc(y) = rest`, where `a + rest = 1`. Halley's method, on erf near 0 and on erfc in the tails, so that both keep
/// their relative accuracy.
fn erf_root(a: f64, rest: f64) -> f64 {
    // Winitzki's approximation, accurate to 0.002 (Source: S. Winitzki, A handy approximation for the error function, 2008).
    let l = if a < 0.5 {
        libm::log1p(-a * a)
    } else {
        libm::log(rest) + libm::log1p(a)
    };
    let b = 2.0 / (std::f64::consts::PI * 0.147) + 0.5 * l;
    let mut y = ((b * b - l / 0.147).sqrt() - b).sqrt();
    for _ in 0..4 {
        let error = if a < 0.5 {
            <f64 as Float>::erf::<Base>(y) - a
        } else {
            rest - <f64 as Float>::erfc::<Base>(y)
        };
        // For subnormal tails the exponential would overflow.
        let step = error * HALF_ROOT_PI * libm::exp((y * y).min(709.0));
        y -= step / (1.0 + y * step);
    }
    y
}

/// Recurrence up to 10, then the asymptotic series; reflection for negative arguments (Source: DLMF 5.5.2, 5.5.4, 5.11.2).
/// The error is relative to the larger of 1 and the result, because digamma has a root at 1.46.
pub(crate) fn digamma(x: f64) -> f64 {
    if x == f64::NEG_INFINITY || x.is_nan() {
        return f64::NAN;
    }
    if x <= 0.0 {
        if x == 0.0 {
            return f64::INFINITY.copysign(-x);
        }
        if x.trunc() == x {
            return f64::NAN;
        }
        // The fractional part keeps tan accurate for large arguments.
        let fraction = x - libm::rint(x);
        return digamma(1.0 - x)
            - std::f64::consts::PI / libm::tan(std::f64::consts::PI * fraction);
    }
    let (mut x, mut value) = (x, 0.0);
    while x < 10.0 {
        value -= 1.0 / x;
        x += 1.0;
    }
    // Bernoulli numbers: B(2k) / 2k.
    const SERIES: [f64; 7] = [
        1.0 / 12.0,
        -1.0 / 120.0,
        1.0 / 252.0,
        -1.0 / 240.0,
        1.0 / 132.0,
        -691.0 / 32760.0,
        1.0 / 12.0,
    ];
    let z = 1.0 / (x * x);
    let tail = SERIES.iter().rev().fold(0.0, |sum, &c| sum * z + c) * z;
    value + libm::log(x) - 0.5 / x - tail
}

/// Recurrence to larger arguments, then the asymptotic series; reflection for negative arguments
/// (Source: DLMF 5.15.5, 5.15.6, 5.15.8, 24.2).
fn polygamma(n: usize, x: f64) -> f64 {
    if x.is_nan() || n == 0 || n > MAX_ORDER {
        return f64::NAN;
    }
    // (-1)^(n+1): the sign of the result for positive x.
    let sign = if n.is_multiple_of(2) { -1.0 } else { 1.0 };
    if x <= 0.0 {
        if x.trunc() == x {
            return if n % 2 == 1 { f64::INFINITY } else { f64::NAN };
        }
        // psi_n(1 - x) + (-1)^(n+1) psi_n(x) = (-1)^n pi d^n/dx^n cot(pi x).
        return sign * (-sign * cotangent_derivative(n, x) - polygamma(n, 1.0 - x));
    }
    let order = n as i32;
    let factorial: f64 = (1..=n).map(|k| k as f64).product();
    let (mut x, mut sum) = (x, 0.0);
    // The series below is accurate to 1e-17 from 15 + n on.
    while x < 15.0 + n as f64 {
        sum += factorial * x.powi(-order - 1);
        x += 1.0;
    }
    // psi_n(x) ~ (-1)^(n+1) (n-1)! x^-n (1 + n/(2x) + sum over k of B(2k) (2k+n-1)! / ((2k)! (n-1)! x^2k)).
    const BERNOULLI: [f64; 8] = [
        1.0 / 6.0,
        -1.0 / 30.0,
        1.0 / 42.0,
        -1.0 / 30.0,
        5.0 / 66.0,
        -691.0 / 2730.0,
        7.0 / 6.0,
        -3617.0 / 510.0,
    ];
    let (mut tail, mut factor) = (1.0 + 0.5 * n as f64 / x, 1.0);
    for (k, b) in BERNOULLI.iter().enumerate() {
        let even = 2 * k + 2;
        factor *= ((even + n - 2) * (even + n - 1)) as f64 / ((even * (even - 1)) as f64 * x * x);
        tail += b * factor;
    }
    sign * (sum + factorial / n as f64 * x.powi(-order) * tail)
}

/// Larger orders overflow f64 for most arguments.
const MAX_ORDER: usize = 60;

/// pi d^n/dx^n cot(pi x), as a polynomial in c = cot(pi x): d c/dx = -pi (1 + c^2).
fn cotangent_derivative(n: usize, x: f64) -> f64 {
    let pi = std::f64::consts::PI;
    let c = 1.0 / libm::tan(pi * (x - libm::rint(x)));
    let mut poly = [0.0; MAX_ORDER + 2];
    poly[1] = 1.0;
    for _ in 0..n {
        let mut next = [0.0; MAX_ORDER + 2];
        for (power, &a) in poly.iter().enumerate().skip(1).filter(|(_, a)| **a != 0.0) {
            next[power - 1] -= pi * power as f64 * a;
            next[power + 1] -= pi * power as f64 * a;
        }
        poly = next;
    }
    pi * poly.iter().rev().fold(0.0, |sum, &a| sum * c + a)
}
