//! Uniform integers of a range. Source: Lemire, "Fast random integer generation in an interval", 2019: multiplication, with rejection of the few
//! low products that would cause a bias.

use super::Stream;
use super::math::{half, long};
use super::philox::{philox, words};
use crate::reduce::by_isa;
use crate::reduce::kernel::store_of;
use crate::threads::split;
use crate::{Elem, Threads};

/// Counter blocks per tile.
const TILE: usize = 256;

/// Counter blocks in the tile of an output that fits one tile of this size: initialising `TILE` blocks would dominate.
const SINGLE_TILE: usize = 16;

/// Fills `n` contiguous elements of the integer (or float) type `elem` at `out` with uniform integers of `low..high`. Returns the number of counter
/// blocks used: a quarter of `n` for ranges up to 2^32, otherwise half of `n`.
///
/// # Safety
/// `low < high`; `out` has room for `n` elements.
pub unsafe fn integers(
    threads: &dyn Threads,
    stream: Stream,
    low: i64,
    high: i128,
    elem: Elem,
    n: usize,
    out: *mut u8,
) -> u64 {
    debug_assert!((low as i128) < high && high - low as i128 <= 1 << 64);
    // 0 represents 2^64.
    let range = (high - low as i128) as u64;
    let is_one_word = range != 0 && range <= 1 << 32;
    let per_block = if is_one_word { 4 } else { 2 };
    let bounds = (low, range, is_one_word);
    // SAFETY: guaranteed by the caller.
    unsafe {
        if n <= SINGLE_TILE * per_block {
            in_tiles::<SINGLE_TILE>(threads, stream, bounds, elem, n, out);
        } else {
            in_tiles::<TILE>(threads, stream, bounds, elem, n, out);
        }
    }
    n.div_ceil(per_block) as u64
}

/// Samples of `low..low + range`; says whether each takes one word instead of two.
///
/// # Safety
/// Same as for [`integers`].
unsafe fn in_tiles<const TILE: usize>(
    threads: &dyn Threads,
    stream: Stream,
    (low, range, is_one_word): (i64, u64, bool),
    elem: Elem,
    n: usize,
    out: *mut u8,
) {
    let per_block = if is_one_word { 4 } else { 2 };
    let store = store_of(Elem::I64, elem).expect("I64 converts to all");
    let out = out as usize;
    split(threads, n.div_ceil(TILE * per_block), 2 * n, &|tile| {
        let first = tile * TILE;
        let count = (TILE * per_block).min(n - first * per_block);
        let mut bits = [[0u32; 4]; TILE];
        let mut made = [[0i64; 4]; TILE];
        let made = &mut made.as_flattened_mut()[..count];
        let to = (out as *mut u8).wrapping_add(first * per_block * elem.size());
        // SAFETY: the words go to a local buffer; tile `tile` of the output is inside it.
        unsafe {
            words(stream, first as u64, &mut bits[..count.div_ceil(per_block)]);
            if is_one_word {
                one_word(stream, first as u64, &bits, range, low, made);
            } else {
                two_words(stream, first as u64, &bits, range, low, made);
            }
            store(made.as_ptr().cast(), to, elem.size() as isize, count);
        }
    });
}

by_isa! {
    /// Samples of ranges up to 2^32, one word each. `first` is the index of the first counter block in `bits`.
    unsafe fn one_word [] [] (stream: Stream, first: u64, bits: &[[u32; 4]], range: u64, low: i64, out: &mut [i64]) {
        let words = bits.as_flattened();
        let mut least = u32::MAX;
        for (x, &word) in out.iter_mut().zip(words) {
            let product = word as u64 * range;
            least = least.min(product as u32);
            *x = low.wrapping_add((product >> 32) as i64);
        }
        // The threshold is below `range`, so the division is computed only where it can matter.
        if least as u64 >= range {
            return;
        }
        let threshold = (1u64 << 32) % range;
        for (i, (x, &word)) in out.iter_mut().zip(words).enumerate() {
            let (mut product, mut retry) = (word as u64 * range, 0);
            while (product as u32 as u64) < threshold {
                retry += 1;
                let counter = stream.offset.wrapping_add(first + i as u64 / 4);
                product = philox([counter, retry], stream.seed)[i % 4] as u64 * range;
            }
            *x = low.wrapping_add((product >> 32) as i64);
        }
    }
}

by_isa! {
    /// Samples of larger ranges, two words each.
    unsafe fn two_words [] [] (stream: Stream, first: u64, bits: &[[u32; 4]], range: u64, low: i64, out: &mut [i64]) {
        let words = bits.as_flattened().as_chunks().0;
        if range == 0 {
            out.iter_mut().zip(words).for_each(|(x, &word)| *x = low.wrapping_add(long(word) as i64));
            return;
        }
        let mut least = u64::MAX;
        for (x, &word) in out.iter_mut().zip(words) {
            let product = long(word) as u128 * range as u128;
            least = least.min(product as u64);
            *x = low.wrapping_add((product >> 64) as i64);
        }
        // The threshold is below `range`, so the division is computed only where it can matter.
        if least >= range {
            return;
        }
        let threshold = bias(range);
        for (i, (x, &word)) in out.iter_mut().zip(words).enumerate() {
            let block = stream.offset.wrapping_add(first + i as u64 / 2);
            *x = low.wrapping_add(below(range, threshold, long(word), stream.seed, block, i % 2) as i64);
        }
    }
}

/// Threshold below which a product is rejected.
fn bias(range: u64) -> u64 {
    if range == 0 {
        0
    } else {
        range.wrapping_neg() % range
    }
}

/// An integer below `range` (0 represents 2^64) from `word`, which is half `lane` of counter block `block`, or from further attempts.
#[inline(always)]
fn below(range: u64, threshold: u64, mut word: u64, seed: u64, block: u64, lane: usize) -> u64 {
    if range == 0 {
        return word;
    }
    let mut retry = 0;
    loop {
        let product = word as u128 * range as u128;
        if product as u64 >= threshold {
            return (product >> 64) as u64;
        }
        retry += 1;
        word = long(half(&philox([block, retry], seed), lane));
    }
}

/// Writes a uniform integer of `low[i]..=last[i]` to each of the contiguous elements of type `elem` and returns the number of counter blocks used,
/// half of the number of elements. `low` and `last` hold integers of either sign as 64-bit patterns, with `low` not above `last`.
///
/// # Safety
/// `out` has room for as many elements as `low` and `last` have.
pub unsafe fn integers_between(
    threads: &dyn Threads,
    stream: Stream,
    low: &[u64],
    last: &[u64],
    elem: Elem,
    out: *mut u8,
) -> u64 {
    let n = low.len();
    debug_assert_eq!(n, last.len());
    let store = store_of(Elem::I64, elem).expect("I64 converts to all");
    let out = out as usize;
    split(threads, n.div_ceil(2 * TILE), 10 * n, &|tile| {
        let first = tile * TILE;
        let count = (2 * TILE).min(n - 2 * first);
        let mut bits = [[0u32; 4]; TILE];
        let mut made = [0u64; 2 * TILE];
        // SAFETY: the buffer is a local array.
        unsafe { words(stream, first as u64, &mut bits[..count.div_ceil(2)]) };
        for (i, made) in made[..count].iter_mut().enumerate() {
            let (low, last) = (low[2 * first + i], last[2 * first + i]);
            let range = last.wrapping_sub(low).wrapping_add(1);
            let block = stream.offset.wrapping_add((first + i / 2) as u64);
            let word = long(half(&bits[i / 2], i % 2));
            // The division is computed only where the product is small enough for it to matter.
            let product = word as u128 * range as u128;
            *made = low.wrapping_add(if range != 0 && product as u64 >= range {
                (product >> 64) as u64
            } else {
                below(range, bias(range), word, stream.seed, block, i % 2)
            });
        }
        let to = (out as *mut u8).wrapping_add(2 * first * elem.size());
        // SAFETY: tile `tile` of the output is inside it.
        unsafe { store(made.as_ptr().cast(), to, elem.size() as isize, count) };
    });
    n.div_ceil(2) as u64
}
