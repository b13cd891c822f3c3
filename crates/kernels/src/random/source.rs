//! The random words of one element, for samplers that need a varying number of them, and the loop over the elements.

use super::Stream;
use super::math::{SampleFloat, half, long};
use super::philox::{philox, words};
use crate::reduce::kernel::store_of;
use crate::threads::split;
use crate::{Elem, Threads};

/// Elements per tile.
pub(super) const TILE: usize = 256;

/// Elements in the tile of an output that fits one tile of this size: initialising `TILE` elements would dominate.
pub(super) const SINGLE_TILE: usize = 32;

/// The random numbers of element i: the counter blocks whose low half is `offset + i`, with any upper half.
pub(super) struct Source {
    seed: u64,
    counter: [u64; 2],
    held: [u64; 2],
    left: usize,
}

impl Source {
    /// The random numbers of element `i`; `block` is its first counter block.
    fn new(stream: Stream, i: u64, block: [u32; 4]) -> Source {
        Source {
            seed: stream.seed,
            counter: [stream.offset.wrapping_add(i), 1],
            held: [long(half(&block, 0)), long(half(&block, 1))],
            left: 2,
        }
    }

    /// 64 random bits.
    #[inline]
    pub(super) fn word(&mut self) -> u64 {
        if self.left == 0 {
            let block = philox(self.counter, self.seed);
            self.counter[1] += 1;
            self.held = [long(half(&block, 0)), long(half(&block, 1))];
            self.left = 2;
        }
        self.left -= 1;
        self.held[1 - self.left]
    }

    /// A uniform number in [0, 1).
    #[inline]
    pub(super) fn unit(&mut self) -> f64 {
        (self.word() >> 11) as f64 * 2f64.powi(-53)
    }

    /// A uniform number in (0, 1]. Near 0, where precision matters, all bits of the word are used.
    #[inline]
    pub(super) fn positive(&mut self) -> f64 {
        (self.word() as f64 + 1.0) * 2f64.powi(-64)
    }

    /// Two independent standard normal numbers. Source: Box and Muller, 1958.
    pub(super) fn normals(&mut self) -> (f64, f64) {
        let radius = (-2.0 * self.positive().ln()).sqrt();
        let (cos, sin) = self.unit().cos_sin_turns();
        (radius * cos, radius * sin)
    }
}

/// Calls `draw` for each of `0..n` with the random numbers of that element, and returns the number of counter blocks used. A draw costs about as much
/// as `work` additions.
pub(super) fn each(
    threads: &dyn Threads,
    stream: Stream,
    work: usize,
    n: usize,
    draw: &(dyn Fn(usize, &mut Source) + Sync),
) -> u64 {
    if n <= SINGLE_TILE {
        each_in_tiles::<SINGLE_TILE>(threads, stream, work, n, draw);
    } else {
        each_in_tiles::<TILE>(threads, stream, work, n, draw);
    }
    n as u64
}

fn each_in_tiles<const TILE: usize>(
    threads: &dyn Threads,
    stream: Stream,
    work: usize,
    n: usize,
    draw: &(dyn Fn(usize, &mut Source) + Sync),
) {
    split(threads, n.div_ceil(TILE), n.saturating_mul(work), &|tile| {
        let first = tile * TILE;
        let mut bits = [[0u32; 4]; TILE];
        let bits = &mut bits[..TILE.min(n - first)];
        // SAFETY: the buffer is a local array.
        unsafe { words(stream, first as u64, bits) };
        for (i, block) in (first..).zip(bits) {
            draw(i, &mut Source::new(stream, i as u64, *block));
        }
    });
}

/// [`each`] that stores the results in the `n` contiguous elements of type `elem` at `out`.
///
/// # Safety
/// `out` has room for `n` elements.
pub(super) unsafe fn fill_each(
    threads: &dyn Threads,
    stream: Stream,
    work: usize,
    elem: Elem,
    n: usize,
    out: *mut u8,
    draw: &(dyn Fn(usize, &mut Source) -> f64 + Sync),
) -> u64 {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if n <= SINGLE_TILE {
            fill_in_tiles::<SINGLE_TILE>(threads, stream, work, elem, n, out, draw);
        } else {
            fill_in_tiles::<TILE>(threads, stream, work, elem, n, out, draw);
        }
    };
    n as u64
}

/// # Safety
/// Same as for [`fill_each`].
unsafe fn fill_in_tiles<const TILE: usize>(
    threads: &dyn Threads,
    stream: Stream,
    work: usize,
    elem: Elem,
    n: usize,
    out: *mut u8,
    draw: &(dyn Fn(usize, &mut Source) -> f64 + Sync),
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        tiles::<TILE>(threads, work, elem, n, out, &|first, made| {
            let mut bits = [[0u32; 4]; TILE];
            let bits = &mut bits[..made.len()];
            words(stream, first as u64, bits);
            for ((i, made), block) in (first..).zip(made).zip(bits) {
                *made = draw(i, &mut Source::new(stream, i as u64, *block));
            }
        })
    };
}

/// Fills `n` contiguous elements of type `elem` in tiles of `TILE`: `make` gets the index of a tile's first element, and the tile.
///
/// # Safety
/// `out` has room for `n` elements.
pub(super) unsafe fn tiles<const TILE: usize>(
    threads: &dyn Threads,
    work: usize,
    elem: Elem,
    n: usize,
    out: *mut u8,
    make: &(dyn Fn(usize, &mut [f64]) + Sync),
) {
    let store = store_of(Elem::F64, elem).expect("F64 converts to all");
    let out = out as usize;
    split(threads, n.div_ceil(TILE), n.saturating_mul(work), &|tile| {
        let first = tile * TILE;
        let count = TILE.min(n - first);
        let mut made = [0f64; TILE];
        make(first, &mut made[..count]);
        let to = (out as *mut u8).wrapping_add(first * elem.size());
        // SAFETY: elements `first..first + count` of the output exist.
        unsafe { store(made.as_ptr().cast(), to, elem.size() as isize, count) };
    });
}
