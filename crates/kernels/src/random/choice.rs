//! Random choices: permutations and draws from weights.

use super::Stream;
use super::math::{Real, half, long};
use super::philox::{philox, words};
use crate::Threads;
use crate::reduce::plan::split;

/// Writes a random order of `0..n` to `out` and returns the counter blocks used, half of `n`.
///
/// Fisher and Yates' exchange; the bias of its 64-bit products is below n / 2^64.
///
/// # Safety
/// `out` has room for `n` integers.
pub unsafe fn permutation(stream: Stream, n: usize, out: *mut i64) -> u64 {
    const TILE: usize = 256;
    // SAFETY: the caller's; written before it is read.
    let out = unsafe {
        (0..n).for_each(|i| *out.add(i) = i as i64);
        std::slice::from_raw_parts_mut(out, n)
    };
    let mut bits = [[0u32; 4]; TILE];
    for first in (0..n.div_ceil(2)).step_by(TILE) {
        // SAFETY: the words are our own.
        unsafe { words(stream, first as u64, &mut bits) };
        for draw in 2 * first..n.min(2 * (first + TILE)) {
            let last = n - 1 - draw;
            let other =
                (long(half(&bits[draw / 2 - first], draw % 2)) as u128 * (last as u128 + 1)) >> 64;
            out.swap(last, other as usize);
        }
    }
    n.div_ceil(2) as u64
}

/// Draws `draws` indices for each of `rows` rows of `k` weights (contiguous f64, not negative, at least one positive in each row), with
/// replacement, each with the probability its weight has in the row's sum. Returns the counter blocks used, half of `rows * draws`.
///
/// # Safety
/// `weights` holds `rows * k` numbers and `out` has room for `rows * draws`.
pub unsafe fn categorical(
    threads: &dyn Threads,
    stream: Stream,
    weights: *const f64,
    rows: usize,
    k: usize,
    draws: usize,
    out: *mut i64,
) -> u64 {
    let (weights, out) = (weights as usize, out as usize);
    split(threads, rows, rows * (k + 16 * draws), &|row| {
        // SAFETY: row `row` of both arrays exists.
        let (weights, out) = unsafe {
            (
                std::slice::from_raw_parts((weights as *const f64).add(row * k), k),
                std::slice::from_raw_parts_mut((out as *mut i64).add(row * draws), draws),
            )
        };
        let mut sum = 0.0;
        let sums: Vec<f64> = weights
            .iter()
            .map(|w| {
                sum += w;
                sum
            })
            .collect();
        for (i, out) in out.iter_mut().enumerate() {
            let i = row * draws + i;
            let u = f64::unit(half(
                &philox([stream.offset.wrapping_add(i as u64 / 2), 0], stream.seed),
                i % 2,
            ));
            // The first sum above u: its weight is not 0, as the sum before it is not above.
            let found = sums.partition_point(|&s| s <= u * sum);
            // u * sum may round up to the last sum; then the last weight that is not 0 is meant.
            *out = if found < k {
                found
            } else {
                sums.partition_point(|&s| s < sum)
            } as i64;
        }
    });
    (rows * draws).div_ceil(2) as u64
}
