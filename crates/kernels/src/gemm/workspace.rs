//! Workspace of the `gemm` crate. The crate ends the process if it cannot allocate it, so this module asks for as much memory beforehand.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

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

/// Bytes that the products of all threads have reserved. After a fork the child still counts what the other threads of its parent had reserved, so it
/// requires more free memory than it needs.
static RESERVED: AtomicUsize = AtomicUsize::new(0);

/// Memory of a product, reserved until this is dropped.
#[must_use]
pub(super) struct Reserved(usize);

impl Reserved {
    /// Checks that what all threads have reserved can be allocated, twice over.
    fn new(len_bytes: usize) -> Reserved {
        let reserved = Reserved(len_bytes);
        let all = RESERVED.fetch_add(len_bytes, Ordering::Relaxed) + len_bytes;
        scratch::check_available(2 * all);
        reserved
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        RESERVED.fetch_sub(self.0, Ordering::Relaxed);
    }
}

/// Reserves the workspace of a product of (m, k) and (k, n).
///
/// # Panics
/// If there is no memory for it; the payload is the allocator's error.
#[inline]
pub(super) fn reserve<T>(m: usize, n: usize, k: usize) -> Option<Reserved> {
    if !HAS_SLAB.get() {
        make_slab();
    }
    let len_bytes = packed_bytes::<T>(m, n, k);
    (len_bytes >= MIN_BYTES).then(|| Reserved::new(len_bytes))
}

/// Upper bound of the memory that a call allocates. The crate may exchange the operands.
fn packed_bytes<T>(m: usize, n: usize, k: usize) -> usize {
    let rows = m.max(n);
    (k.min(MAX_DEPTH) * size_of::<T>())
        .saturating_mul(rows.saturating_add(rows.min(MAX_ROWS) + 2 * PADDED_ROWS))
}

/// Makes the buffer that the crate keeps for each thread.
#[cold]
fn make_slab() {
    let _reserved = Reserved::new(CACHE_INFO[1].cache_bytes);
    L2_SLAB.with(|_| HAS_SLAB.set(true));
}
