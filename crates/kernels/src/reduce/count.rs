//! Number of nonzero elements.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::blocks::SEGMENT;
use super::kernel::{by_isa, truth_of};
use crate::threads::split;
use crate::{Elem, Threads};

/// Number of nonzero elements among `n` dense ones.
///
/// # Safety
/// `from` has `n` elements.
pub(super) unsafe fn count_dense(
    threads: &dyn Threads,
    elem: Elem,
    from: *const u8,
    n: usize,
) -> usize {
    const PIECE: usize = 4096;
    let load = truth_of(elem);
    let size = elem.size();
    let (from, total) = (from as usize, AtomicUsize::new(0));
    split(threads, n.div_ceil(SEGMENT), n, &|segment| {
        let (start, end) = (segment * SEGMENT, n.min((segment + 1) * SEGMENT));
        let mut count = 0;
        if elem == Elem::Bool {
            // SAFETY: the segment lies inside the source.
            count = unsafe { count_bytes((from as *const u8).add(start), end - start) };
        } else {
            let mut truths = [0_u8; PIECE];
            for at in (start..end).step_by(PIECE) {
                let m = PIECE.min(end - at);
                // SAFETY: the piece lies inside the source, its truth values in the buffer.
                unsafe {
                    load(
                        (from as *const u8).add(at * size),
                        size as isize,
                        m,
                        truths.as_mut_ptr(),
                    );
                    count += count_bytes(truths.as_ptr(), m);
                }
            }
        }
        total.fetch_add(count, Ordering::Relaxed);
    });
    total.into_inner()
}

by_isa! {
    /// Number of nonzero bytes among `n`.
    #[allow(clippy::needless_range_loop, reason = "lanes of a register; iterator adapters may be compiled apart from it")]
    ///
    /// # Safety
    /// `bytes` has `n` bytes.
    pub(crate) unsafe fn count_bytes[][](bytes: *const u8, n: usize) -> usize {
        const LANES: usize = 64;
        // A one-byte counter holds at most 255.
        const ROWS: usize = 255;
        let (mut total, mut at) = (0, 0);
        while at + LANES <= n {
            let mut counts = [0_u8; LANES];
            let rows = ((n - at) / LANES).min(ROWS);
            for _ in 0..rows {
                for lane in 0..LANES {
                    // SAFETY: a whole row of lanes ends before `n`.
                    counts[lane] += (unsafe { *bytes.add(at + lane) } != 0) as u8;
                }
                at += LANES;
            }
            for lane in 0..LANES {
                total += counts[lane] as usize;
            }
        }
        while at < n {
            // SAFETY: at < n.
            total += (unsafe { *bytes.add(at) } != 0) as usize;
            at += 1;
        }
        total
    }
}
