//! Zipf and logarithmic series distributions.

use super::source::Source;

/// Largest value, because results are 64-bit integers.
const MAX_VALUE: f64 = 9_223_372_036_854_774_784.0;

/// Zipf: probabilities proportional to k^-a with a > 1. Source: Devroye, "Non-uniform random variate generation", 1986, X.6.1. The tail above the
/// largest integer is cut off before the inversion.
pub(super) fn zipf(source: &mut Source, a: f64) -> f64 {
    // 2^-(a - 1) is 0 in f64: all values above 1 have probability 0.
    if a > 1070.0 {
        return 1.0;
    }
    let above = a - 1.0;
    let b = 2f64.powf(above);
    let least = MAX_VALUE.powf(-above);
    loop {
        let (u, v) = (source.positive(), source.unit());
        let x = (least + (1.0 - least) * u).powf(-1.0 / above).floor();
        if !(1.0..=MAX_VALUE).contains(&x) {
            continue;
        }
        let t = (above * (1.0 / x).ln_1p()).exp();
        if v * x * (t - 1.0) / (b - 1.0) <= t / b {
            return x;
        }
    }
}

/// Logarithmic series: probabilities proportional to p^k / k, k >= 1. Source: Kemp, "Efficient generation of logarithmically distributed
/// pseudo-random variables", 1981, algorithm LK.
pub(super) fn log_series(source: &mut Source, p: f64) -> f64 {
    if p == 0.0 {
        return 1.0;
    }
    let r = (-p).ln_1p();
    loop {
        let v = source.positive();
        if v >= p {
            return 1.0;
        }
        let q = -(r * source.positive()).exp_m1();
        if v > q {
            return 1.0;
        }
        if v > q * q {
            return 2.0;
        }
        let k = (1.0 + v.ln() / q.ln()).floor();
        // q rounds to 1 where it is very close to 1; the quotient is then not meaningful.
        if k >= 1.0 {
            return k.min(MAX_VALUE);
        }
    }
}
