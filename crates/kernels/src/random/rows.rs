//! Multivariate discrete distributions (multinomial, multivariate hypergeometric): each count is drawn conditional on those before it.

use super::Stream;
use super::counts::{Binomial, hypergeometric};
use super::source::{Source, each};
use crate::{Threads, scratch};

/// Fills `rows` rows of `k` contiguous integers with multinomial counts and returns the number of counter blocks used, `rows`. `tries` has one
/// element for all rows or one per row; `p` has one row of `k` probabilities or one per row. The last probability is taken as 1 minus the others.
///
/// # Safety
/// `out` has room for `rows * k` integers.
pub unsafe fn multinomial(
    threads: &dyn Threads,
    stream: Stream,
    tries: &[f64],
    p: &[f64],
    rows: usize,
    k: usize,
    out: *mut i64,
) -> u64 {
    // The probability of each category, given that none before it came up.
    let conditional = |p: &[f64], into: &mut Vec<Binomial>| {
        let mut rest = 1.0;
        into.clear();
        scratch::reserve(into, k - 1);
        for &p in &p[..k - 1] {
            into.push(Binomial::new(if p < rest { p / rest } else { 1.0 }));
            rest = f64::max(rest - p, 0.0);
        }
    };
    let mut shared = Vec::new();
    if p.len() == k {
        conditional(p, &mut shared);
    }
    let fill = |row: usize, source: &mut Source, out: &mut [i64]| {
        let mut own = Vec::new();
        let chances = if p.len() == k {
            &shared
        } else {
            conditional(&p[row * k..(row + 1) * k], &mut own);
            &own
        };
        let mut left = tries[row.min(tries.len() - 1)];
        for (out, chance) in out.iter_mut().zip(chances) {
            let drawn = chance.draw(source, left);
            *out = drawn as i64;
            left -= drawn;
        }
        out[k - 1] = left as i64;
    };
    // SAFETY: guaranteed by the caller.
    unsafe { by_row(threads, stream, rows, k, out, &fill) }
}

/// Fills `rows` rows of `k` contiguous integers with the number of items of each color in a sample drawn without replacement. Returns the number of
/// counter blocks used, `rows`. The sample is not larger than the sum of the colors.
///
/// # Safety
/// `out` has room for `rows * k` integers.
pub unsafe fn multivariate_hypergeometric(
    threads: &dyn Threads,
    stream: Stream,
    colors: &[f64],
    sample: f64,
    rows: usize,
    out: *mut i64,
) -> u64 {
    let all: f64 = colors.iter().sum();
    let fill = |_: usize, source: &mut Source, out: &mut [i64]| {
        let (mut rest, mut left) = (all, sample);
        for (out, &good) in out.iter_mut().zip(colors) {
            rest -= good;
            let drawn = hypergeometric(source, good, rest, left);
            *out = drawn as i64;
            left -= drawn;
        }
    };
    // SAFETY: guaranteed by the caller.
    unsafe { by_row(threads, stream, rows, colors.len(), out, &fill) }
}

/// # Safety
/// `out` has room for `rows * k` integers.
unsafe fn by_row(
    threads: &dyn Threads,
    stream: Stream,
    rows: usize,
    k: usize,
    out: *mut i64,
    fill: &(dyn Fn(usize, &mut Source, &mut [i64]) + Sync),
) -> u64 {
    let out = out as usize;
    each(threads, stream, 60 * k, rows, &|row, source| {
        // SAFETY: row `row` exists, and each task has a different row.
        let out = unsafe { std::slice::from_raw_parts_mut((out as *mut i64).add(row * k), k) };
        fill(row, source, out);
    })
}
