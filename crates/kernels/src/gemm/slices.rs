//! Products with a small C and a long inner axis: slices of k run as tasks, and their sums are added in order.
//!
//! The slices depend only on the problem, so the result does not depend on the number of threads.

use super::{Cut, GemmFloat, Problem, Tile};
use crate::{Threads, scratch};

/// Largest number of slices: enough for many cores.
const MAX_SLICES: usize = 16;
/// Shortest slice. Computing it takes this many times as long as adding its result.
const MIN_DEPTH: usize = 256;

/// Length of a slice of a product whose C is one tile; `p.k` if slices are not worth a task.
pub(super) fn depth(p: &Problem) -> usize {
    let work = p.m.saturating_mul(p.n).saturating_mul(p.k);
    let worth = Cut::min_task_work(p);
    if work < 2 * worth || p.k < 2 * MIN_DEPTH {
        return p.k;
    }
    let slices = (work / worth).min(p.k / MIN_DEPTH).min(MAX_SLICES);
    // Whole cache lines and unrolled loops.
    p.k.div_ceil(slices).next_multiple_of(64)
}

/// The operands, and a result for each slice.
struct Slices<'a, T> {
    tile: &'a Tile<T>,
    depth: usize,
    sums: *mut T,
}

// SAFETY: tasks read the operands and write results of their own.
unsafe impl<T> Sync for Slices<'_, T> {}

impl<T: GemmFloat> Slices<'_, T> {
    /// # Safety
    /// Slice `s` begins inside the operands; no other thread computes the same slice.
    unsafe fn compute(&self, s: usize) {
        let (t, first) = (self.tile, s * self.depth);
        let slice = Tile {
            k: self.depth.min(t.k - first),
            a: t.a.wrapping_offset(first as isize * t.a_strides.1),
            b: t.b.wrapping_offset(first as isize * t.b_strides.0),
            c: self.sums.wrapping_add(s * t.m * t.n),
            c_strides: (t.n as isize, 1),
            alpha: T::from_real(1.0),
            beta: T::from_real(0.0),
            ..*t
        };
        // SAFETY: the slice is inside the operands, its result inside `sums`.
        unsafe { T::multiply(&slice) }
    }
}

/// The product of a tile as slices of `depth`.
///
/// # Safety
/// Same as for `dense`.
pub(super) unsafe fn multiply<T: GemmFloat>(threads: &dyn Threads, t: &Tile<T>, depth: usize) {
    let (len, count) = (t.m * t.n, t.k.div_ceil(depth));
    let mut sums = scratch::filled(count * len, T::from_real(0.0));
    scratch::count_bytes(size_of_val(&*sums));
    let slices = Slices {
        tile: t,
        depth,
        sums: sums.as_mut_ptr(),
    };
    // SAFETY: each slice begins before k and is computed once.
    threads.run(count, &|s| unsafe { slices.compute(s) });
    for at in 0..len {
        let sum = (1..count).fold(sums[at], |sum, s| sum + sums[s * len + at]);
        // SAFETY: (at / n, at % n) is inside C.
        unsafe { t.store(at / t.n, at % t.n, sum) }
    }
}
