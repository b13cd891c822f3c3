//! Main memory for arrays: blocks up to 64 KiB from a cache of the thread, larger ones from a pool that all threads
//! share, and statistics. Device memory is the business of each device's backend.
//!
//! Blocks are rounded up to size classes: multiples of 16 bytes up to 256, then four per doubling (eight above 64 KiB).

mod classes;
mod fork;
mod pool;
mod system;
mod thread;

use std::ptr::NonNull;

pub use pool::{cache_limit, set_cache_limit};
pub(crate) use system::available as available_memory;
pub use system::limit as memory_limit;

use crate::Device;
use crate::error::{MemoryError, TensorError};
use classes::SMALL;

/// Address of a block of no bytes: aligned as any other, never read.
const NOTHING: NonNull<u8> =
    NonNull::without_provenance(std::num::NonZero::new(64).expect("64 is not 0"));

/// Whether a new block must hold zeros.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fill {
    Any,
    Zero,
}

/// A block of uninitialised bytes, aligned to 64 bytes, or to 16 up to a length of 256.
///
/// # Errors
///
/// `Memory` when the system refuses, even after all cached blocks went back to it.
#[inline]
pub fn allocate(len_bytes: usize) -> Result<NonNull<u8>, TensorError> {
    if len_bytes == 0 {
        return Ok(NOTHING);
    }
    let block = if len_bytes <= SMALL {
        thread::allocate(len_bytes)
    } else {
        pool::allocate(len_bytes, Fill::Any)
    };
    block.ok_or_else(|| refused(len_bytes))
}

/// Like [`allocate`], with all bytes zero. Big blocks come zero from the system, page by page as they are touched.
///
/// # Errors
///
/// As [`allocate`].
pub fn allocate_zeroed(len_bytes: usize) -> Result<NonNull<u8>, TensorError> {
    if len_bytes > SMALL {
        return pool::allocate(len_bytes, Fill::Zero).ok_or_else(|| refused(len_bytes));
    }
    let block = allocate(len_bytes)?;
    // SAFETY: the block is ours and has `len_bytes` bytes.
    unsafe { block.write_bytes(0, len_bytes) };
    Ok(block)
}

/// Gives a block back; any thread may.
///
/// # Safety
///
/// `block` must come from [`allocate`] or [`allocate_zeroed`] with this `len_bytes`, and is not used any more.
#[inline]
pub unsafe fn free(block: NonNull<u8>, len_bytes: usize) {
    if len_bytes == 0 {
        return;
    }
    // SAFETY: as the caller promises; both allocators are chosen by length alone.
    unsafe {
        if len_bytes <= SMALL {
            thread::free(block, len_bytes)
        } else {
            pool::free(block, len_bytes)
        }
    }
}

/// Returns cached blocks to the system: all of the shared pool, and the calling thread's. Returns their bytes.
pub fn trim() -> usize {
    thread::trim() + pool::trim()
}

/// Statistics of the allocator. Sizes are those of blocks, rounded up to their class. Memory of other devices and of
/// foreign owners is not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStats {
    /// Bytes in blocks that are allocated.
    pub in_use_bytes: usize,
    /// Bytes in blocks kept for reuse.
    pub cached_bytes: usize,
    /// Largest `in_use_bytes` so far; small blocks kept in threads' caches count as in use here.
    pub peak_bytes: usize,
    /// Blocks allocated so far.
    pub allocations: u64,
    /// Of these, how many the system had to provide.
    pub system_allocations: u64,
}

/// The statistics now. While other threads allocate, the figures may be of slightly different moments.
pub fn stats() -> MemoryStats {
    let (small, large) = (thread::stats(), pool::stats());
    MemoryStats {
        in_use_bytes: small.in_use_bytes + large.in_use_bytes,
        cached_bytes: small.cached_bytes + large.cached_bytes,
        peak_bytes: large.peak_bytes,
        allocations: small.allocations + large.allocations,
        system_allocations: small.system_allocations + large.system_allocations,
    }
}

/// Makes `peak_bytes` start again from what is in use.
pub fn reset_peak() {
    pool::reset_peak();
}

#[cold]
fn refused(requested_bytes: usize) -> TensorError {
    MemoryError::OutOfMemory {
        device: Device::CPU,
        requested_bytes,
        in_use_bytes: stats().in_use_bytes,
    }
    .into()
}
