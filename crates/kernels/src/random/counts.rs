//! Discrete distributions: Poisson, binomial, negative binomial, hypergeometric, Zipf and logarithmic series.

use std::cell::RefCell;
use std::rc::Rc;

use super::Stream;
use super::alias::{Alias, fill};
use super::math::log_factorial;
use super::series::{log_series, zipf};
use super::source::{Source, fill_each};
use crate::{Elem, Threads};

/// Discrete distributions; the comments give the parameters in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    /// Mean.
    Poisson,
    /// Number of trials, probability of success.
    Binomial,
    /// Required number of successes (any positive number), probability of success.
    NegativeBinomial,
    /// Good items, bad items, size of the sample.
    Hypergeometric,
    /// Exponent above 1.
    Zipf,
    /// Parameter in [0, 1).
    LogSeries,
}

/// Fills `n` contiguous elements of type `elem` at `out` and returns the number of counter blocks used. Each parameter has one element for all, or
/// `n`; the values must be in range.
///
/// If one set of parameters serves all elements and the distribution has at most 256 values of non-negligible probability, elements are drawn from an
/// alias table. Otherwise each element uses one counter, with inversion by sequential search for small means and rejection for large ones.
///
/// # Safety
/// `out` has room for `n` elements.
pub unsafe fn fill_counts(
    threads: &dyn Threads,
    stream: Stream,
    what: Counts,
    parameters: &[&[f64]],
    elem: Elem,
    n: usize,
    out: *mut u8,
) -> u64 {
    if parameters.iter().all(|p| p.len() == 1)
        && let Some(table) = cached_table(what, parameters)
    {
        let (low, table) = &*table;
        // SAFETY: guaranteed by the caller.
        return unsafe { fill(threads, stream, table, *low, elem, n, out) };
    }
    let of = |p: usize, i: usize| match parameters[p] {
        [one] => *one,
        all => all[i],
    };
    // SAFETY: guaranteed by the caller.
    unsafe {
        fill_each(threads, stream, 80, elem, n, out, &|i, source| match what {
            Counts::Poisson => poisson(source, of(0, i)),
            Counts::Binomial => Binomial::new(of(1, i)).draw(source, of(0, i)),
            Counts::NegativeBinomial => {
                let p = of(1, i);
                let mean = gamma(source, of(0, i)) * ((1.0 - p) / p);
                poisson(source, mean)
            }
            Counts::Hypergeometric => hypergeometric(source, of(0, i), of(1, i), of(2, i)),
            Counts::Zipf => zipf(source, of(0, i)),
            Counts::LogSeries => log_series(source, of(0, i)),
        })
    }
}

/// The table for the parameters used last, if a table pays for them.
struct CachedTable {
    parameters: [f64; 3],
    table: Option<Rc<(i64, Alias)>>,
}

thread_local! {
    /// One per distribution that has tables. Building a table costs as much as dozens of samples, and programs often repeat the same parameters.
    static LAST_TABLES: RefCell<[Option<CachedTable>; 4]> = const { RefCell::new([const { None }; 4]) };
}

/// The smallest tabulated value and the table of the values from it on; `None` if there are too many.
fn cached_table(what: Counts, given: &[&[f64]]) -> Option<Rc<(i64, Alias)>> {
    let at = match what {
        Counts::Poisson => 0,
        Counts::Binomial => 1,
        Counts::NegativeBinomial => 2,
        Counts::Hypergeometric => 3,
        Counts::Zipf | Counts::LogSeries => return None,
    };
    let mut parameters = [0.0; 3];
    for (to, from) in parameters.iter_mut().zip(given) {
        *to = from[0];
    }
    LAST_TABLES.with_borrow_mut(|all| match &all[at] {
        Some(kept) if kept.parameters == parameters => kept.table.clone(),
        _ => {
            let table = table(what, &|i| parameters[i])
                .map(|(low, weights)| Rc::new((low as i64, Alias::new(&weights))));
            all[at] = Some(CachedTable {
                parameters,
                table: table.clone(),
            });
            table
        }
    })
}

/// The smallest value of non-negligible weight and the weights from it on, relative to the mode's; `None` if there are too many.
fn table(what: Counts, parameter: &dyn Fn(usize) -> f64) -> Option<(f64, Vec<f64>)> {
    let (a, b) = match what {
        Counts::Zipf | Counts::LogSeries => return None,
        Counts::Poisson => (parameter(0), 0.0),
        _ => (parameter(0), parameter(1)),
    };
    match what {
        Counts::Poisson => around(a.floor(), 0.0, f64::INFINITY, &|k| a / (k + 1.0)),
        Counts::Binomial if b == 0.0 || b == 1.0 => Some((a * b, vec![1.0])),
        Counts::Binomial => {
            let odds = b / (1.0 - b);
            around(((a + 1.0) * b).floor().min(a), 0.0, a, &|k| {
                (a - k) / (k + 1.0) * odds
            })
        }
        Counts::NegativeBinomial => {
            let mode = ((a - 1.0) * (1.0 - b) / b).floor().max(0.0);
            around(mode, 0.0, f64::INFINITY, &|k| {
                (a + k) / (k + 1.0) * (1.0 - b)
            })
        }
        _ => {
            let sample = parameter(2);
            let (low, high) = ((sample - b).max(0.0), sample.min(a));
            let mode = ((sample + 1.0) * (a + 1.0) / (a + b + 2.0)).floor();
            around(mode.clamp(low, high), low, high, &|k| {
                (a - k) * (sample - k) / ((k + 1.0) * (b - sample + k + 1.0))
            })
        }
    }
}

/// Computes weights outwards from the mode; `ratio(k)` is the ratio of consecutive weights.
fn around(mode: f64, low: f64, high: f64, ratio: &dyn Fn(f64) -> f64) -> Option<(f64, Vec<f64>)> {
    const MAX_TABLE_LEN: usize = 256;
    // 2^-76: the sum of all omitted weights is below 2^-64 of the total.
    const MIN_WEIGHT: f64 = 1.3e-23;
    let (mut below, mut k, mut weight) = (Vec::new(), mode, 1.0);
    while k > low {
        k -= 1.0;
        weight /= ratio(k);
        if weight < MIN_WEIGHT {
            k += 1.0;
            break;
        }
        below.push(weight);
        if below.len() == MAX_TABLE_LEN {
            return None;
        }
    }
    let first = k;
    let mut weights: Vec<f64> = below.into_iter().rev().collect();
    (k, weight) = (mode, 1.0);
    weights.push(weight);
    while k < high {
        weight *= ratio(k);
        k += 1.0;
        if weight < MIN_WEIGHT {
            break;
        }
        weights.push(weight);
        if weights.len() > MAX_TABLE_LEN {
            return None;
        }
    }
    Some((first, weights))
}

/// Gamma sample of scale 1. Source: Marsaglia and Tsang, 2000.
fn gamma(source: &mut Source, shape: f64) -> f64 {
    let (shape, boost) = if shape < 1.0 {
        (shape + 1.0, source.positive().powf(1.0 / shape))
    } else {
        (shape, 1.0)
    };
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let (x, y) = source.normals();
        for x in [x, y] {
            let t = 1.0 + c * x;
            let v = t * t * t;
            if v > 0.0 && source.positive().ln() < 0.5 * x * x + d - d * v + d * v.ln() {
                return d * v * boost;
            }
        }
    }
}

/// Inversion by sequential search: the smallest k whose cumulative probability exceeds a uniform number. `first` is P(0), `ratio(k)` is P(k + 1) /
/// P(k).
fn search(source: &mut Source, first: f64, ratio: impl Fn(f64) -> f64) -> f64 {
    let (mut u, mut weight, mut k) = (source.unit(), first, 0.0);
    // Rounding may leave a positive u after the weights have become 0.
    while u >= weight && weight > 0.0 {
        u -= weight;
        weight *= ratio(k);
        k += 1.0;
    }
    k
}

/// Poisson sample: sequential search for means below 10, otherwise PTRS (Hörmann, "The transformed rejection method for generating Poisson random
/// variables", 1993).
pub(super) fn poisson(source: &mut Source, mean: f64) -> f64 {
    if mean < 10.0 {
        return search(source, (-mean).exp(), |k| mean / (k + 1.0));
    }
    let b = 0.931 + 2.53 * mean.sqrt();
    let a = -0.059 + 0.024_83 * b;
    let v_r = 0.9277 - 3.6224 / (b - 2.0);
    loop {
        let (v, u) = (source.positive(), source.unit() - 0.5);
        let us = 0.5 - u.abs();
        let k = ((2.0 * a / us + b) * u + mean + 0.43).floor();
        if us >= 0.07 && v <= v_r {
            return k;
        }
        if k < 0.0 || (us < 0.013 && v > us) {
            continue;
        }
        let inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
        if (v * inverse_alpha / (a / (us * us) + b)).ln()
            <= -mean + k * mean.ln() - log_factorial(k)
        {
            return k;
        }
    }
}

/// A probability of success and values derived from it that are computed once.
#[derive(Clone, Copy)]
pub(super) struct Binomial {
    /// The smaller one of the probabilities of success and failure.
    p: f64,
    /// Whether `p` is the probability of failure.
    is_flipped: bool,
    odds: f64,
    log_failure: f64,
}

impl Binomial {
    pub(super) fn new(p: f64) -> Binomial {
        let is_flipped = p > 0.5;
        let p = if is_flipped { 1.0 - p } else { p };
        Binomial {
            p,
            is_flipped,
            odds: p / (1.0 - p),
            log_failure: (-p).ln_1p(),
        }
    }

    /// Number of successes in `tries` trials.
    pub(super) fn draw(&self, source: &mut Source, tries: f64) -> f64 {
        if tries == 0.0 {
            return 0.0;
        }
        let drawn = if tries * self.p < 10.0 {
            let first = (tries * self.log_failure).exp();
            search(source, first, |k| (tries - k) / (k + 1.0) * self.odds)
        } else {
            self.reject(source, tries)
        };
        if self.is_flipped {
            tries - drawn
        } else {
            drawn
        }
    }

    /// BTRS, for means of at least 10. Source: Hörmann, "The generation of binomial random variates", 1993.
    fn reject(&self, source: &mut Source, tries: f64) -> f64 {
        let p = self.p;
        let spread = (tries * p * (1.0 - p)).sqrt();
        let b = 1.15 + 2.53 * spread;
        let a = -0.0873 + 0.0248 * b + 0.01 * p;
        let v_r = 0.92 - 4.2 / b;
        loop {
            let (v, u) = (source.positive(), source.unit() - 0.5);
            let us = 0.5 - u.abs();
            let k = ((2.0 * a / us + b) * u + tries * p + 0.5).floor();
            if us >= 0.07 && v <= v_r {
                return k;
            }
            if k < 0.0 || k > tries {
                continue;
            }
            let alpha = (2.83 + 5.1 / b) * spread;
            let mode = ((tries + 1.0) * p).floor();
            let bound = log_factorial(mode) + log_factorial(tries - mode)
                - log_factorial(k)
                - log_factorial(tries - k)
                + (k - mode) * self.odds.ln();
            if (v * alpha / (a / (us * us) + b)).ln() <= bound {
                return k;
            }
        }
    }
}

/// Number of good items in a sample drawn without replacement.
///
/// By symmetry, the sample is reduced to at most half of the population, and the good items to at most half of it. Sequential search for means below
/// 10, otherwise ratio of uniforms (HRUA; Stadlober, "The ratio of uniforms approach for generating discrete random variates", 1990).
pub(super) fn hypergeometric(source: &mut Source, good: f64, bad: f64, sample: f64) -> f64 {
    let all = good + bad;
    if sample > all - sample {
        return good - hypergeometric(source, good, bad, all - sample);
    }
    if good > bad {
        return sample - hypergeometric(source, bad, good, sample);
    }
    if good == 0.0 || sample == 0.0 {
        return 0.0;
    }
    let mean = sample * good / all;
    if mean < 10.0 {
        // C(bad, sample) / C(all, sample); sample <= all / 2 <= bad.
        let first = log_factorial(bad) - log_factorial(bad - sample) + log_factorial(all - sample)
            - log_factorial(all);
        return search(source, first.exp(), |k| {
            (good - k) * (sample - k) / ((k + 1.0) * (bad - sample + k + 1.0))
        });
    }
    let center = mean + 0.5;
    let spread = ((all - sample) * mean * (bad / all) / (all - 1.0) + 0.5).sqrt();
    // 2 sqrt(2 / e) and 3 - 2 sqrt(3 / e).
    let width = 1.715_527_769_921_413_5 * spread + 0.898_916_162_058_898_8;
    let log_weight = |k: f64| {
        -(log_factorial(k)
            + log_factorial(good - k)
            + log_factorial(sample - k)
            + log_factorial(bad - sample + k))
    };
    let mode = ((sample + 1.0) * (good + 1.0) / (all + 2.0)).floor();
    let top = log_weight(mode);
    let end = (sample.min(good) + 1.0).min((center + 16.0 * spread).floor());
    loop {
        let (x, y) = (source.positive(), source.unit());
        let w = center + width * (y - 0.5) / x;
        if w < 0.0 || w >= end {
            continue;
        }
        let k = w.floor();
        let log_ratio = log_weight(k) - top;
        if x * (4.0 - x) - 3.0 <= log_ratio {
            return k;
        }
        if x * (x - log_ratio) < 1.0 && 2.0 * x.ln() <= log_ratio {
            return k;
        }
    }
}
