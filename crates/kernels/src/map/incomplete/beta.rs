//! The incomplete beta function, of the parameters a and b and the argument x: the distribution of beta samples (DLMF 8.17).

use super::{
    ASYMPTOTIC, Dual, LOG_SQRT_TAU, MAX_TERMS, Side, continued_fraction, deviance,
    digamma_minus_log, expm1_minus, integrals, log_gamma_1p, log1p_minus, rough_normal_quantile,
    solve_tail, stirling_error,
};

/// If both parameters are at least this, tails are integrated numerically: the number of terms of the fraction grows like their roots.
const INTEGRATES: f64 = 200.0;

/// The smaller tail: ratio to the [`weight`], and derivatives with respect to a and b, divided by the weight.
struct Tail {
    side: Side,
    ratio: f64,
    slopes: [f64; 2],
}

/// The logarithm of the weight `x^a y^b / B(a, b)` with y = 1 - x, for a, b, x, y > 0.
fn log_weight(a: f64, b: f64, x: f64, y: f64) -> f64 {
    let log_ratio = libm::log(a) - libm::log1p(a / b);
    if a.min(b) < 1.0 {
        return log_ratio + log_ways(a, b) + a * log_of_part(x, y) + b * log_of_part(y, x);
    }
    let gap = b * x - a * y;
    stirling_error(a + b)
        - stirling_error(a)
        - stirling_error(b)
        - deviance(a, (a + b) * x, gap / a)
        - deviance(b, (a + b) * y, -gap / b)
        + 0.5 * log_ratio
        - LOG_SQRT_TAU
}

fn weight(a: f64, b: f64, x: f64, y: f64) -> f64 {
    libm::exp(log_weight(a, b, x, y))
}

/// ln x, for x + y = 1.
fn log_of_part(x: f64, y: f64) -> f64 {
    if y < 0.5 {
        libm::log1p(-y)
    } else {
        libm::log(x)
    }
}

/// `ln(gamma(1 + a + b) / (gamma(1 + a) gamma(1 + b)))`, with a small relative error also where one parameter is near 0.
fn log_ways(a: f64, b: f64) -> f64 {
    let (small, mut large) = (a.min(b), a.max(b));
    let mut value = -log_gamma_1p(small);
    while large < ASYMPTOTIC {
        large += 1.0;
        value -= libm::log1p(small / large);
    }
    let n = large + small;
    // The difference of two numbers that are nearly equal is their derivative in the middle times the step.
    let change = if small < 1e-4 {
        let middle = large + 0.5 * small;
        small * (digamma_minus_log(middle) + 0.5 / middle)
    } else {
        stirling_error(n) - stirling_error(large)
    };
    value + change + ((large + 0.5) * libm::log1p(small / large) - small) + small * libm::log(n)
}

/// For finite a, b > 0 and x, y > 0 with x + y = 1.
fn tail(a: f64, b: f64, x: f64, y: f64) -> Tail {
    let side = side(a, b, x, y);
    let (ratio, slopes) = match side {
        Side::Lower => lower(a, b, x, y),
        Side::Upper => {
            let (ratio, [by_b, by_a]) = lower(b, a, y, x);
            (ratio, [by_a, by_b])
        }
    };
    Tail {
        side,
        ratio,
        slopes,
    }
}

/// The tail below x, for x at most about the mean.
fn lower(a: f64, b: f64, x: f64, y: f64) -> (f64, [f64; 2]) {
    // ln x - digamma(a) + digamma(a + b) and the same for y, whose sums with logarithms of the mean cancel.
    let n = a + b;
    let common = digamma_minus_log(n);
    let log_ratio = |c: f64, z: f64, other: f64, z_other: f64| {
        // ln(n z / c), where n z - c = other z - c z_other.
        let gap = (other * z - c * z_other) / c;
        let log = if gap < -0.5 {
            libm::log(z) + libm::log(n / c)
        } else {
            libm::log1p(gap)
        };
        log - digamma_minus_log(c) + common
    };
    let logs = [log_ratio(a, x, b, y), log_ratio(b, y, a, x)];
    let Dual(ratio, slopes) = if a.min(b) >= INTEGRATES {
        integral(a, b, x, y)
    } else {
        fraction(a, b, x, y)
    };
    (ratio, std::array::from_fn(|i| ratio * logs[i] + slopes[i]))
}

/// The integral of the density below x over the weight, with ln(t / (1 - t)) as the variable; the slopes are those of the integrand.
fn integral(a: f64, b: f64, x: f64, y: f64) -> Dual<2> {
    // At ln(x / y) - s the integrand is exp(a A + b B), with A = ln(t / x), B = ln((1 - t) / y) = A + s.
    let drift = (a * y - b * x).max(0.0);
    let scale = 1.0 / (drift + ((a + b) * x * y).sqrt());
    let (ratio, slopes) = integrals(scale, |s| {
        if x <= 0.5 {
            let w = x * libm::expm1(-s);
            let log = -libm::log1p(w);
            let rest = -x * expm1_minus(-s) - log1p_minus(w);
            (-drift * s + (a + b) * rest, [log - s, log])
        } else {
            let w = y * libm::expm1(s);
            let log = -libm::log1p(w);
            let rest = -y * expm1_minus(s) - log1p_minus(w);
            (-drift * s + (a + b) * rest, [log, log + s])
        }
    });
    Dual(ratio, slopes)
}

/// The ratio of the tail below x to the weight as a continued fraction, with its derivatives. Source: DiDonato and Morris, "Significant digit computation
/// of the incomplete beta function ratios", 1992, equation 9. Other than DLMF 8.17.22 it keeps its digits near x = 1.
fn fraction(a: f64, b: f64, x: f64, y: f64) -> Dual<2> {
    let [a, b] = [Dual(a, [1.0, 0.0]), Dual(b, [0.0, 1.0])];
    let drift = a.scaled(y).plus(b.scaled(-x));
    let at = |m: f64| {
        let odd = a.shifted(2.0 * m - 1.0);
        let step = b.shifted(-m).scaled(m * x).over(odd);
        let above = a
            .shifted(m - 1.0)
            .over(odd)
            .times(a.plus(b).shifted(m - 1.0).scaled(x))
            .times(step);
        let rest = a
            .shifted(m)
            .over(a.shifted(2.0 * m + 1.0))
            .times(drift.shifted(1.0 + m * (1.0 + y)));
        (above, step.plus(rest).shifted(m))
    };
    let first = a.over(a.shifted(1.0)).times(drift.shifted(1.0));
    Dual::constant(1.0).over(continued_fraction(first, at))
}

/// Values where a, b or x is at an end of its range, or invalid.
fn limit(a: f64, b: f64, x: f64) -> Option<f64> {
    if a.is_nan() || b.is_nan() || a < 0.0 || b < 0.0 || !(0.0..=1.0).contains(&x) {
        return Some(f64::NAN);
    }
    if a == 0.0 && b == 0.0 || a == f64::INFINITY && b == f64::INFINITY {
        return Some(f64::NAN);
    }
    // All probability lies at 0, or at 1.
    if a == 0.0 || b == f64::INFINITY {
        return Some(if x > 0.0 { 1.0 } else { 0.0 });
    }
    if b == 0.0 || a == f64::INFINITY {
        return Some(if x < 1.0 { 0.0 } else { 1.0 });
    }
    (x == 0.0 || x == 1.0).then_some(x)
}

/// The regularised function I(x; a, b) and its complement, with y = 1 - x.
fn both(a: f64, b: f64, x: f64, y: f64) -> [f64; 2] {
    let side = side(a, b, x, y);
    let [part, rest] = if side == Side::Lower && a < 1.0 {
        near_zero(a, b, x, y)
    } else if side == Side::Upper && b < 1.0 {
        near_zero(b, a, y, x)
    } else {
        let part = (weight(a, b, x, y) * tail(a, b, x, y).ratio).min(1.0);
        [part, 1.0 - part]
    };
    if side == Side::Lower {
        [part, rest]
    } else {
        [rest, part]
    }
}

/// For a < 1 and x in the lower tail, where either function may be the small one: I = x^a / (a B(a, b)) times the sum of a (1 - b) ... (n - b) x^n / (n! (a + n))
/// (DLMF 8.17.7).
fn near_zero(a: f64, b: f64, x: f64, y: f64) -> [f64; 2] {
    let (mut term, mut sum) = (a, 0.0);
    for n in 1..MAX_TERMS {
        let n = f64::from(n);
        term *= (n - b) / n * x;
        let next = sum + term / (a + n);
        if next == sum {
            break;
        }
        sum = next;
    }
    // The sum lacks its first term, 1.
    let log_power = a * log_of_part(x, y) + log_ways(a, b) - libm::log1p(a / b);
    let power = libm::exp(log_power);
    [power * (1.0 + sum), -libm::expm1(log_power) - power * sum]
}

/// The side of the smaller tail, nearly: the one in which the continued fraction converges fast, or that ends at the mean.
fn side(a: f64, b: f64, x: f64, y: f64) -> Side {
    let is_lower = if a.min(b) >= INTEGRATES {
        b * x <= a * y
    } else {
        x * (b + 1.0) <= (a + 1.0) * y
    };
    if is_lower { Side::Lower } else { Side::Upper }
}

/// The regularised function I(x; a, b) and its complement.
#[inline(never)]
pub(super) fn values(a: f64, b: f64, x: f64) -> [f64; 2] {
    match limit(a, b, x) {
        Some(value) => [value, 1.0 - value],
        None => both(a, b, x, 1.0 - x),
    }
}

/// Derivatives of I(x; a, b) with respect to a and b.
#[inline(never)]
pub(super) fn slopes(a: f64, b: f64, x: f64) -> [f64; 2] {
    match limit(a, b, x) {
        Some(value) if value.is_nan() || a == 0.0 || b == 0.0 => [f64::NAN; 2],
        Some(_) => [0.0; 2],
        None => {
            let Tail { side, slopes, .. } = tail(a, b, x, 1.0 - x);
            let weight = weight(a, b, x, 1.0 - x);
            slopes.map(|slope| {
                if side == Side::Lower {
                    weight * slope
                } else {
                    -weight * slope
                }
            })
        }
    }
}

/// Derivative of I(x; a, b) with respect to x: the density of the beta distribution.
#[inline(never)]
pub(super) fn density(a: f64, b: f64, x: f64) -> f64 {
    match limit(a, b, x) {
        Some(value) if value.is_nan() => f64::NAN,
        Some(_) if a == 0.0 || b == 0.0 || a == f64::INFINITY || b == f64::INFINITY => f64::NAN,
        Some(_) => {
            // The exponent and the other parameter at this end.
            let (power, other) = if x == 0.0 { (a, b) } else { (b, a) };
            if power == 1.0 {
                other
            } else if power < 1.0 {
                f64::INFINITY
            } else {
                0.0
            }
        }
        None => weight(a, b, x, 1.0 - x) / x / (1.0 - x),
    }
}

/// The x with I(x; a, b) = p and I(1 - x; b, a) = q, where p + q = 1.
#[inline(never)]
pub(super) fn inverse(a: f64, b: f64, p: f64, q: f64) -> f64 {
    let is_valid = a > 0.0 && b > 0.0 && a.min(b) < f64::INFINITY;
    if !is_valid || !(0.0..=1.0).contains(&p) || !(0.0..=1.0).contains(&q) {
        return f64::NAN;
    }
    if p == 0.0 || q == 0.0 {
        return if p == 0.0 { 0.0 } else { 1.0 };
    }
    // All probability lies at 1, or at 0.
    if a == f64::INFINITY || b == f64::INFINITY {
        return if a == f64::INFINITY { 1.0 } else { 0.0 };
    }
    if p <= q {
        lower_inverse(a, b, p)[0]
    } else {
        lower_inverse(b, a, q)[1]
    }
}

/// The x and y = 1 - x with I(x; a, b) = p, for p up to 1/2.
fn lower_inverse(a: f64, b: f64, p: f64) -> [f64; 2] {
    let goal = libm::log(p);
    // I(x; a, b) = x^a / (a B(a, b)) near 0.
    let log_start = (goal + libm::log1p(a / b) - log_ways(a, b)) / a;
    if log_start < -745.2 {
        return [0.0, 1.0];
    }
    // The odds x / y.
    let mut odds = if a >= 1.0 && b >= 1.0 {
        // Abramowitz and Stegun, 26.5.22.
        let z = rough_normal_quantile(p);
        let (u, v) = (1.0 / (2.0 * a - 1.0), 1.0 / (2.0 * b - 1.0));
        let h = 2.0 / (u + v);
        let lambda = (z * z - 3.0) / 6.0;
        let w = -z * (h + lambda).max(0.0).sqrt() / h
            - (v - u) * (lambda + 5.0 / 6.0 - 2.0 / (3.0 * h));
        (a / b) * libm::exp((-2.0 * w).clamp(-700.0, 700.0))
    } else if log_start < 0.0 {
        let x = libm::exp(log_start);
        (x / -libm::expm1(log_start)).min(a / b)
    } else {
        a / b
    };
    const RANGE: [f64; 2] = [1e-307, 1e307];
    let parts = |odds: f64| [odds / (1.0 + odds), 1.0 / (1.0 + odds)];
    solve_tail(goal, 1e-14 * (1.0 + 1.0 / a), |dz| {
        odds = (odds * libm::exp(dz)).clamp(RANGE[0], RANGE[1]);
        let [x, y] = parts(odds);
        let log_weight = log_weight(a, b, x, y);
        let tail = tail(a, b, x, y);
        if tail.side == Side::Lower {
            return (log_weight + libm::log(tail.ratio), 1.0 / tail.ratio);
        }
        let part = both(a, b, x, y)[0];
        (libm::log(part), libm::exp(log_weight) / part)
    });
    match odds {
        odds if odds <= RANGE[0] => [0.0, 1.0],
        odds if odds >= RANGE[1] => [1.0, 0.0],
        odds => parts(odds),
    }
}
