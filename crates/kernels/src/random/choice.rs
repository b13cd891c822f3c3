//! Random choices: permutations, samples without replacement, and categorical samples.

use std::collections::HashMap;

use super::Stream;
use super::alias::Alias;
use super::math::{SampleFloat, half, long};
use super::philox::words;
use crate::Threads;
use crate::scratch;
use crate::threads::split;

/// Counter blocks per tile.
const TILE: usize = 256;

/// Writes a random permutation of `0..n` to each of `rows` rows of `out` and returns the number of counter blocks used, half of `n` (rounded up) per
/// row.
///
/// Fisher-Yates shuffle; the bias of its 64-bit products is below n / 2^64.
///
/// # Safety
/// `out` has room for `rows * n` integers.
pub unsafe fn permutations(
    threads: &dyn Threads,
    stream: Stream,
    rows: usize,
    n: usize,
    out: *mut i64,
) -> u64 {
    let blocks = n.div_ceil(2) as u64;
    let out = out as usize;
    split(threads, rows, rows * n * 4, &|row| {
        let stream = Stream {
            offset: stream.offset.wrapping_add(row as u64 * blocks),
            ..stream
        };
        // SAFETY: row `row` exists; it is written before it is read.
        let out = unsafe {
            let out = (out as *mut i64).add(row * n);
            (0..n).for_each(|i| *out.add(i) = i as i64);
            std::slice::from_raw_parts_mut(out, n)
        };
        // From the end, so that each position is exchanged with one before it or itself.
        exchanges(stream, n, n, |last, other| out.swap(last, other));
    });
    rows as u64 * blocks
}

/// Shuffles `n` contiguous elements of `size` bytes (1, 2, 4, 8 or 16) into the order of one row of [`permutations`]. Returns the number of counter
/// blocks used, half of `n`.
///
/// # Safety
/// There are `n` elements at `data`.
pub unsafe fn shuffle(stream: Stream, n: usize, size: usize, data: *mut u8) -> u64 {
    // SAFETY: guaranteed by the caller; elements are moved as byte arrays, which have no alignment.
    unsafe {
        match size {
            1 => shuffle_as::<1>(stream, n, data),
            2 => shuffle_as::<2>(stream, n, data),
            4 => shuffle_as::<4>(stream, n, data),
            8 => shuffle_as::<8>(stream, n, data),
            _ => shuffle_as::<16>(stream, n, data),
        }
    }
    n.div_ceil(2) as u64
}

/// # Safety
/// There are `n` elements of `SIZE` bytes at `data`.
unsafe fn shuffle_as<const SIZE: usize>(stream: Stream, n: usize, data: *mut u8) {
    // SAFETY: guaranteed by the caller.
    let data = unsafe { std::slice::from_raw_parts_mut(data.cast::<[u8; SIZE]>(), n) };
    exchanges(stream, n, n, |last, other| data.swap(last, other));
}

/// Calls `exchange(last, other)` `count` times, for `last` from `n - 1` down, with a uniformly distributed `other` in `0..=last`.
fn exchanges(stream: Stream, n: usize, count: usize, mut exchange: impl FnMut(usize, usize)) {
    let mut bits = [[0u32; 4]; TILE];
    for first in (0..count.div_ceil(2)).step_by(TILE) {
        let drawn = count.min(2 * (first + TILE)) - 2 * first;
        // SAFETY: the buffer is a local array.
        unsafe { words(stream, first as u64, &mut bits[..drawn.div_ceil(2)]) };
        for draw in 0..drawn {
            let last = n - 1 - (2 * first + draw);
            let word = long(half(&bits[draw / 2], draw % 2));
            exchange(last, ((word as u128 * (last as u128 + 1)) >> 64) as usize);
        }
    }
}

/// Writes `count` distinct integers of `0..n` in random order to `out` and returns the number of counter blocks used, half of `count`. Every ordered
/// choice is equally likely. The result is that of the first `count` exchanges of [`permutations`]; a small `count` does not need memory for all `n`.
///
/// # Safety
/// `count <= n`; `out` has room for `count` integers.
pub unsafe fn distinct_integers(stream: Stream, n: usize, count: usize, out: *mut i64) -> u64 {
    debug_assert!(count <= n);
    // SAFETY: guaranteed by the caller; every element is written before it is read.
    let out = unsafe {
        std::ptr::write_bytes(out, 0, count);
        std::slice::from_raw_parts_mut(out, count)
    };
    let mut made = out.iter_mut();
    if count < n / 16 {
        // Only the positions that took part in an exchange are stored; any other holds its own index.
        let mut moved: HashMap<usize, usize> = HashMap::new();
        scratch::reserve_map(&mut moved, 2 * count);
        exchanges(stream, n, count, |last, other| {
            let end = moved.remove(&last).unwrap_or(last);
            let taken = if other == last {
                end
            } else {
                moved.insert(other, end).unwrap_or(other)
            };
            if let Some(x) = made.next() {
                *x = taken as i64;
            }
        });
    } else {
        let mut all = scratch::collected(n, 0..n as i64);
        exchanges(stream, n, count, |last, other| {
            all.swap(last, other);
            if let Some(x) = made.next() {
                *x = all[last];
            }
        });
    }
    count.div_ceil(2) as u64
}

/// Draws `draws` indices for each of `rows` rows of `k` weights (contiguous f64, not negative, at least one positive in each row), with
/// replacement. Probabilities are proportional to the row's weights. Returns the number of counter blocks used, half of `rows * draws`.
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
    // The draws of a row are split into pieces, so that a single row also gives several tasks.
    const PIECE: usize = 8192;
    let pieces = draws.div_ceil(PIECE);
    // SAFETY: guaranteed by the caller.
    let weights = unsafe { std::slice::from_raw_parts(weights, rows * k) };
    let out = out as usize;
    let mut of_one_row = None;
    if rows == 1 && k <= draws {
        of_one_row = Some(Alias::new(weights));
    }
    split(threads, rows * pieces, rows * (k + 8 * draws), &|task| {
        let (row, piece) = (task / pieces, task % pieces);
        let weights = &weights[row * k..(row + 1) * k];
        let first = row * draws + piece * PIECE;
        let count = PIECE.min(draws - piece * PIECE);
        // SAFETY: the draws of this piece, which no other task writes.
        let out = unsafe { std::slice::from_raw_parts_mut((out as *mut i64).add(first), count) };
        let own;
        // Building an alias table costs about as much as a few draws by binary search in the cumulative sums.
        if k <= draws {
            let table = match &of_one_row {
                Some(table) => table,
                None => {
                    own = Alias::new(weights);
                    &own
                }
            };
            drawn(stream, first, count, |i, word| {
                out[i] = table.pick(word) as i64
            });
            return;
        }
        let mut sum = 0.0;
        let sums: Vec<f64> = weights
            .iter()
            .map(|w| {
                sum += w;
                sum
            })
            .collect();
        drawn(stream, first, count, |i, word| {
            let u = f64::unit([word as u32, (word >> 32) as u32]);
            // The first cumulative sum above u. Its weight is not 0, because the sum before it is not above u.
            let found = sums.partition_point(|&s| s <= u * sum);
            // u * sum may round up to the last sum; then the last nonzero weight is drawn.
            out[i] = if found < k {
                found
            } else {
                sums.partition_point(|&s| s < sum)
            } as i64;
        });
    });
    (rows * draws).div_ceil(2) as u64
}

/// Calls `take(i, word)` with the random words of draws `first..first + count`, two per counter block.
fn drawn(stream: Stream, first: usize, count: usize, mut take: impl FnMut(usize, u64)) {
    let mut bits = [[0u32; 4]; TILE];
    let end = first + count;
    for block in (first / 2..end.div_ceil(2)).step_by(TILE) {
        let blocks = TILE.min(end.div_ceil(2) - block);
        // SAFETY: the buffer is a local array.
        unsafe { words(stream, block as u64, &mut bits[..blocks]) };
        for i in (2 * block).max(first)..(2 * (block + blocks)).min(end) {
            take(i - first, long(half(&bits[i / 2 - block], i % 2)));
        }
    }
}
