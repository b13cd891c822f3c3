//! Workspace of the `gemm` crate. The crate ends the process if it cannot allocate it, so this module asks for as much memory beforehand.

use std::cell::Cell;
use std::sync::Mutex;

use gemm_common::cache::CACHE_INFO;
use gemm_common::gemm::L2_SLAB;

use crate::scratch;

/// Largest depth of the panels that the crate packs, and largest number of rows of the other operand that it packs as well.
const MAX_DEPTH: usize = 1024;
const MAX_ROWS: usize = 768;
/// Panels are padded to at most this many rows.
const PADDED_ROWS: usize = 64;
/// Smaller panels count as small allocations, which are not asked for.
const MIN_BYTES: usize = 64 * 1024;

thread_local! {
    static HAS_SLAB: Cell<bool> = const { Cell::new(false) };
}

/// Checks that a product of (m, k) and (k, n) finds the memory for its workspace.
///
/// # Panics
/// If it does not; the payload is the allocator's error.
#[inline]
pub(super) fn ensure_available<T>(m: usize, n: usize, k: usize) {
    if !HAS_SLAB.get() {
        make_slab();
    }
    let len_bytes = packed_bytes::<T>(m, n, k);
    if len_bytes >= MIN_BYTES {
        // Twice: another thread may take as much between the check and the allocation.
        scratch::check_available(2 * len_bytes);
    }
}

/// Upper bound of the memory that a call allocates. The crate may exchange the operands.
fn packed_bytes<T>(m: usize, n: usize, k: usize) -> usize {
    let rows = m.max(n);
    (k.min(MAX_DEPTH) * size_of::<T>())
        .saturating_mul(rows.saturating_add(rows.min(MAX_ROWS) + 2 * PADDED_ROWS))
}

/// Makes the buffer that the crate keeps for each thread. The lock makes the check and the allocation one step among threads. It is not waited for: in a
/// child of a fork it may be held for ever.
#[cold]
fn make_slab() {
    static MAKING: Mutex<()> = Mutex::new(());
    let _making = MAKING.try_lock();
    // Four times: slices of one product make the buffers of two threads at the same time, and the packed panels follow.
    scratch::check_available(4 * CACHE_INFO[1].cache_bytes);
    L2_SLAB.with(|_| HAS_SLAB.set(true));
}
