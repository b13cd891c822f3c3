//! Alias method: samples from a discrete distribution in constant time.

use super::Stream;
use super::math::{half, long};
use super::philox::words;
use crate::reduce::kernel::store_of;
use crate::scratch;
use crate::threads::split;
use crate::{Elem, Threads};

/// A table with as many equally likely cells as there are weights; each cell holds one or two outcomes.
///
/// Sources: Walker, 1977; construction by Vose, 1991. Probabilities are 64-bit fractions: a weight below 2^-64 of the mean is lost.
pub(super) struct Alias(Vec<Cell>);

#[derive(Clone, Copy)]
struct Cell {
    /// Fractions below `own` give the cell's own outcome, all others its alias.
    own: u64,
    other: u32,
}

impl Alias {
    /// The table for weights that are not negative and not all 0.
    pub(super) fn new(weights: &[f64]) -> Alias {
        let scale = weights.len() as f64 / weights.iter().sum::<f64>();
        let mut shares = scratch::collected(weights.len(), weights.iter().map(|w| w * scale));
        let numbers = || 0..weights.len() as u32;
        let is_below_one = |i: &u32| shares[*i as usize] < 1.0;
        let num_below_one = numbers().filter(is_below_one).count();
        let mut below_one = scratch::collected(weights.len(), numbers().filter(is_below_one));
        let mut above_one = scratch::collected(
            weights.len() - num_below_one,
            numbers().filter(|i| !is_below_one(i)),
        );
        let cells = numbers().map(|i| Cell {
            own: u64::MAX,
            other: i,
        });
        let mut cells = scratch::collected(weights.len(), cells);
        while let (Some(&i), Some(&j)) = (below_one.last(), above_one.last()) {
            below_one.pop();
            cells[i as usize] = Cell {
                own: (shares[i as usize] * 2f64.powi(64)) as u64,
                other: j,
            };
            shares[j as usize] -= 1.0 - shares[i as usize];
            if shares[j as usize] < 1.0 {
                above_one.pop();
                below_one.push(j);
            }
        }
        // Cells that remain because of rounding get only their own outcome. An outcome of weight 0 must never be drawn, so its cell gives the most
        // probable outcome.
        for i in below_one {
            if weights[i as usize] == 0.0 {
                let heaviest =
                    (0..weights.len()).max_by(|&a, &b| weights[a].total_cmp(&weights[b]));
                cells[i as usize] = Cell {
                    own: 0,
                    other: heaviest.unwrap_or(0) as u32,
                };
            }
        }
        Alias(cells)
    }

    /// The outcome for 64 random bits.
    #[inline]
    pub(super) fn pick(&self, word: u64) -> usize {
        let product = word as u128 * self.0.len() as u128;
        let at = (product >> 64) as usize;
        let cell = &self.0[at];
        if (product as u64) < cell.own {
            at
        } else {
            cell.other as usize
        }
    }
}

/// Counter blocks per tile.
const TILE: usize = 128;

/// Counter blocks in the tile of an output that fits one tile of this size: initialising `TILE` blocks would dominate.
const SINGLE_TILE: usize = 16;

/// Fills `n` contiguous elements with `low` plus an outcome of the table and returns the number of counter blocks used, half of `n`.
///
/// # Safety
/// `out` has room for `n` elements.
pub(super) unsafe fn fill(
    threads: &dyn Threads,
    stream: Stream,
    table: &Alias,
    low: i64,
    elem: Elem,
    n: usize,
    out: *mut u8,
) -> u64 {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if n <= 2 * SINGLE_TILE {
            in_tiles::<SINGLE_TILE>(threads, stream, table, low, elem, n, out);
        } else {
            in_tiles::<TILE>(threads, stream, table, low, elem, n, out);
        }
    }
    n.div_ceil(2) as u64
}

/// # Safety
/// Same as for [`fill`].
unsafe fn in_tiles<const TILE: usize>(
    threads: &dyn Threads,
    stream: Stream,
    table: &Alias,
    low: i64,
    elem: Elem,
    n: usize,
    out: *mut u8,
) {
    let store = store_of(Elem::I64, elem).expect("I64 converts to all");
    let out = out as usize;
    split(threads, n.div_ceil(2 * TILE), 8 * n, &|tile| {
        let first = tile * TILE;
        let count = (2 * TILE).min(n - 2 * first);
        let mut bits = [[0u32; 4]; TILE];
        let mut made = [[0i64; 2]; TILE];
        // SAFETY: the buffer is a local array.
        unsafe { words(stream, first as u64, &mut bits[..count.div_ceil(2)]) };
        for (made, block) in made.iter_mut().zip(&bits).take(count.div_ceil(2)) {
            made[0] = low + table.pick(long(half(block, 0))) as i64;
            made[1] = low + table.pick(long(half(block, 1))) as i64;
        }
        let to = (out as *mut u8).wrapping_add(2 * first * elem.size());
        // SAFETY: tile `tile` of the output is inside it.
        unsafe { store(made.as_ptr().cast(), to, elem.size() as isize, count) };
    });
}
