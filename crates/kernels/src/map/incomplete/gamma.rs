//! The incomplete gamma functions, of the parameter a and the argument x: the distribution of gamma samples (DLMF 8.2).

use super::{
    Dual, LOG_SQRT_TAU, MAX_TERMS, Side, continued_fraction, deviance, digamma, digamma_minus_log,
    expm1_minus, integrals, log_gamma_1p, rough_normal_quantile, solve_tail, stirling_error,
};

/// From this parameter on tails are integrated numerically: the number of terms of the series and of the fraction grows like its root.
const INTEGRATES: f64 = 300.0;

/// The smaller tail: ratio to the [`weight`], and derivative with respect to a, divided by the weight.
struct Tail {
    side: Side,
    ratio: f64,
    slope: f64,
}

/// The logarithm of the weight `x^a e^-x / gamma(a + 1)`, for a, x > 0.
fn log_weight(a: f64, x: f64) -> f64 {
    if a < 1.0 {
        return a * libm::log(x) - x - log_gamma_1p(a);
    }
    -deviance(a, x, (x - a) / a) - stirling_error(a) - 0.5 * libm::log(a) - LOG_SQRT_TAU
}

fn weight(a: f64, x: f64) -> f64 {
    libm::exp(log_weight(a, x))
}

/// `ln x - digamma(a)`.
fn log_ratio(a: f64, x: f64, log_x: f64) -> f64 {
    if a < INTEGRATES {
        return log_x - digamma(a);
    }
    let log = if x < 0.5 * a {
        libm::log(x / a)
    } else {
        libm::log1p((x - a) / a)
    };
    log - digamma_minus_log(a)
}

/// For finite a > 0 and x >= 0; `log_x` counts where x has underflowed.
fn tail(a: f64, x: f64, log_x: f64) -> Tail {
    let side = if x <= a.max(1.0) {
        Side::Lower
    } else {
        Side::Upper
    };
    if a >= INTEGRATES {
        // t = x exp(-s) or x exp(s).
        let sign = if side == Side::Lower { -1.0 } else { 1.0 };
        let drift = (x - a).abs();
        let scale = 1.0 / (drift + x.sqrt());
        let (ratio, [moment, _]) = integrals(scale, |s| {
            (-drift * s - x * expm1_minus(sign * s), [sign * s, 0.0])
        });
        let slope = ratio * log_ratio(a, x, log_x) + moment;
        Tail {
            side,
            ratio: a * ratio,
            slope: a * slope,
        }
    } else if side == Side::Lower {
        // The sum of x^n / ((a + 1) ... (a + n)) (DLMF 8.11.4).
        let (mut term, mut sum, mut harmonic, mut slope) = (1.0, 1.0, 0.0, 0.0);
        for n in 1..MAX_TERMS {
            let divisor = a + f64::from(n);
            term *= x / divisor;
            harmonic += 1.0 / divisor;
            sum += term;
            slope -= term * harmonic;
            if term * harmonic.max(1.0) < 1e-17 * sum {
                break;
            }
        }
        Tail {
            side,
            ratio: sum,
            slope: sum * (log_x - digamma(a + 1.0)) + slope,
        }
    } else {
        // 1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / ...)) (DLMF 8.9.2).
        let below = continued_fraction(Dual(x + 1.0 - a, [-1.0]), |k| {
            (Dual(k * (a - k), [k]), Dual(x + 2.0 * k + 1.0 - a, [-1.0]))
        });
        let Dual(h, [dh]) = Dual::constant(1.0).over(below);
        Tail {
            side,
            ratio: a * h,
            slope: a * (h * log_ratio(a, x, log_x) + dh),
        }
    }
}

/// Values where a or x is 0, infinite or invalid: the lower function.
fn limit(a: f64, x: f64) -> Option<f64> {
    if a.is_nan() || x.is_nan() || a < 0.0 || x < 0.0 {
        return Some(f64::NAN);
    }
    let is_point = a == 0.0 && x == 0.0 || a == f64::INFINITY && x == f64::INFINITY;
    if is_point {
        return Some(f64::NAN);
    }
    if a == 0.0 || x == f64::INFINITY {
        return Some(1.0);
    }
    (x == 0.0 || a == f64::INFINITY).then_some(0.0)
}

/// The regularised lower and upper functions, P(a, x) and Q(a, x).
#[inline(never)]
pub(super) fn both(a: f64, x: f64) -> [f64; 2] {
    if let Some(lower) = limit(a, x) {
        return [lower, 1.0 - lower];
    }
    if a < 1.0 && x <= 1.0 {
        return near_zero(a, x);
    }
    let Tail { side, ratio, .. } = tail(a, x, libm::log(x));
    let part = (weight(a, x) * ratio).min(1.0);
    match side {
        Side::Lower => [part, 1.0 - part],
        Side::Upper => [1.0 - part, part],
    }
}

/// For a < 1 and x <= 1, where either function may be the small one: P = x^a / gamma(a + 1) times the sum of a (-x)^n / (n! (a + n)) (DLMF 8.7.1).
fn near_zero(a: f64, x: f64) -> [f64; 2] {
    let (mut term, mut sum) = (a, 0.0);
    for n in 1..MAX_TERMS {
        let n = f64::from(n);
        term *= -x / n;
        let next = sum + term / (a + n);
        if next == sum {
            break;
        }
        sum = next;
    }
    // The sum lacks its first term, 1.
    let log_power = a * libm::log(x) - log_gamma_1p(a);
    let power = libm::exp(log_power);
    [power * (1.0 + sum), -libm::expm1(log_power) - power * sum]
}

/// Derivative of P(a, x) with respect to a.
#[inline(never)]
pub(super) fn slope(a: f64, x: f64) -> f64 {
    match limit(a, x) {
        Some(lower) if lower.is_nan() || a == 0.0 => f64::NAN,
        Some(_) => 0.0,
        None => {
            let Tail { side, slope, .. } = tail(a, x, libm::log(x));
            let slope = weight(a, x) * slope;
            if side == Side::Lower { slope } else { -slope }
        }
    }
}

/// Derivative of P(a, x) with respect to x: the density of the gamma distribution.
#[inline(never)]
pub(super) fn density(a: f64, x: f64) -> f64 {
    match limit(a, x) {
        Some(lower) if lower.is_nan() => f64::NAN,
        Some(_) if x == 0.0 && a <= 1.0 => {
            if a == 1.0 {
                1.0
            } else {
                f64::INFINITY
            }
        }
        Some(_) => 0.0,
        None => weight(a, x) * a / x,
    }
}

/// Derivative of a quantile x with respect to a, `dx / da` at constant P(a, x), which is minus the slope over the density. With `is_log`, `d ln x / da` for
/// the logarithm `x` of a quantile. A quantile 0 or infinity has derivative 0; the logarithm of one that has underflowed has not.
///
/// Source: Figurnov, Mohamed and Mnih, "Implicit reparameterization gradients", 2018.
#[inline(never)]
pub(super) fn quantile_slope(a: f64, x: f64, is_log: bool) -> f64 {
    let is_end = x == f64::INFINITY || x == 0.0 && !is_log;
    if is_end && a >= 0.0 {
        return 0.0;
    }
    if a.is_nan() || a <= 0.0 || x.is_nan() || x < 0.0 && !is_log {
        return f64::NAN;
    }
    let (x, log_x) = if is_log {
        (libm::exp(x), x)
    } else {
        (x, libm::log(x))
    };
    let Tail { side, slope, .. } = tail(a, x, log_x);
    // The density times x is a times the weight.
    let log_slope = if side == Side::Lower {
        -slope / a
    } else {
        slope / a
    };
    if is_log { log_slope } else { x * log_slope }
}

/// The logarithm of P(a, x) or Q(a, x), and its derivative with respect to ln x.
fn log_tail(a: f64, x: f64, side: Side) -> (f64, f64) {
    let log_weight = log_weight(a, x);
    let sign = if side == Side::Lower { 1.0 } else { -1.0 };
    if a >= 1.0 || x > 1.0 {
        let tail = tail(a, x, libm::log(x));
        if tail.side == side {
            return (log_weight + libm::log(tail.ratio), sign * a / tail.ratio);
        }
    }
    let [lower, upper] = both(a, x);
    let part = if side == Side::Lower { lower } else { upper };
    (libm::log(part), sign * a * libm::exp(log_weight) / part)
}

/// The x with P(a, x) = p and Q(a, x) = q, where p + q = 1.
#[inline(never)]
pub(super) fn inverse(a: f64, p: f64, q: f64) -> f64 {
    if a.is_nan() || a < 0.0 || !(0.0..=1.0).contains(&p) || !(0.0..=1.0).contains(&q) {
        return f64::NAN;
    }
    if p == 0.0 || q == 0.0 {
        return if p == 0.0 { 0.0 } else { f64::INFINITY };
    }
    if a == 0.0 || a == f64::INFINITY {
        return f64::NAN;
    }
    let side = if p <= q { Side::Lower } else { Side::Upper };
    let goal = libm::log(p.min(q));
    // P(a, x) <= x^a / gamma(a + 1).
    let log_p = if side == Side::Lower {
        goal
    } else {
        libm::log1p(-q)
    };
    let log_least = (log_p + log_gamma_1p(a)) / a;
    // The two are equal where x is small.
    if log_least < -745.2 {
        return 0.0;
    }
    let mut x = if a < 1.0 && side == Side::Upper {
        // Q(a, x) <= exp(-x).
        -goal
    } else if a < 1.0 {
        libm::exp(log_least)
    } else {
        // Wilson and Hilferty's approximation (Abramowitz and Stegun, 26.4.17).
        let z = rough_normal_quantile(p.min(q));
        let z = if side == Side::Lower { z } else { -z };
        let root = 1.0 - 1.0 / (9.0 * a) + z / (3.0 * a.sqrt());
        (a * root * root * root).max(libm::exp(log_least))
    };
    // P(a, x) is nearly x^a, so its relative error is that of x times a.
    let tolerance = match side {
        Side::Lower => 1e-14 * (1.0 + 1.0 / a),
        Side::Upper => 1e-14,
    };
    solve_tail(goal, tolerance, |dz| {
        x *= libm::exp(dz);
        log_tail(a, x, side)
    });
    x
}
