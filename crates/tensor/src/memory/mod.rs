//! Main memory for arrays: blocks up to 64 KiB come from a cache per thread, larger ones from a pool that all threads share. Also statistics. Device
//! memory is managed by each device's backend.
//!
//! Sizes are rounded up to size classes: multiples of 16 bytes up to 256, then four classes for each power of two (eight above 64 KiB).

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
use classes::MAX_THREAD_BYTES;

/// Address of blocks of size 0: aligned like others, never read.
const EMPTY_BLOCK: NonNull<u8> =
    NonNull::without_provenance(std::num::NonZero::new(64).expect("64 is not 0"));

/// Whether a new block must be zeroed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fill {
    Any,
    Zero,
}

/// Allocates an uninitialised block, aligned to 64 bytes, or to 16 for lengths up to 256.
///
/// # Errors
///
/// `Memory` if the system refuses even after all cached blocks were released.
#[inline]
pub fn allocate(len_bytes: usize) -> Result<NonNull<u8>, TensorError> {
    if len_bytes == 0 {
        return Ok(EMPTY_BLOCK);
    }
    let block = if len_bytes <= MAX_THREAD_BYTES {
        thread::allocate(len_bytes)
    } else {
        pool::allocate(len_bytes, Fill::Any)
    };
    block.ok_or_else(|| refused(len_bytes))
}

/// As [`allocate`], with all bytes zero. Large blocks come zeroed from the system, and their pages are allocated when they are touched.
///
/// # Errors
///
/// As [`allocate`].
pub fn allocate_zeroed(len_bytes: usize) -> Result<NonNull<u8>, TensorError> {
    if len_bytes > MAX_THREAD_BYTES {
        return pool::allocate(len_bytes, Fill::Zero).ok_or_else(|| refused(len_bytes));
    }
    let block = allocate(len_bytes)?;
    // SAFETY: the block is ours and has `len_bytes` bytes.
    unsafe { block.write_bytes(0, len_bytes) };
    Ok(block)
}

/// Frees a block, on any thread.
///
/// # Safety
///
/// `block` must come from [`allocate`] or [`allocate_zeroed`] with this `len_bytes`, and is not used afterwards.
#[inline]
pub unsafe fn free(block: NonNull<u8>, len_bytes: usize) {
    if len_bytes == 0 {
        return;
    }
    // SAFETY: the caller's promise; the length alone determines the allocator.
    unsafe {
        if len_bytes <= MAX_THREAD_BYTES {
            thread::free(block, len_bytes)
        } else {
            pool::free(block, len_bytes)
        }
    }
}

/// Releases cached blocks to the system: those of the shared pool and those of the calling thread. Returns their size in bytes.
pub fn trim() -> usize {
    thread::trim() + pool::trim()
}

/// Statistics of the allocator. Sizes are those of blocks, rounded up to their class. Memory of other devices and memory of other owners is not
/// counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStats {
    /// Bytes in allocated blocks.
    pub in_use_bytes: usize,
    /// Bytes in free blocks that are cached for reuse.
    pub cached_bytes: usize,
    /// Largest `in_use_bytes` so far; blocks in threads' caches count as in use here.
    pub peak_bytes: usize,
    /// Blocks allocated so far.
    pub allocations: u64,
    /// Number of allocations that the system had to provide.
    pub system_allocations: u64,
}

/// The current statistics. While other threads allocate, the figures may be from slightly different moments.
pub fn stats() -> MemoryStats {
    let (by_thread, by_pool) = (thread::stats(), pool::stats());
    MemoryStats {
        in_use_bytes: by_thread.in_use_bytes + by_pool.in_use_bytes,
        cached_bytes: by_thread.cached_bytes + by_pool.cached_bytes,
        peak_bytes: by_pool.peak_bytes,
        allocations: by_thread.allocations + by_pool.allocations,
        system_allocations: by_thread.system_allocations + by_pool.system_allocations,
    }
}

/// Bytes in blocks of the pool and of threads' caches, and the largest number so far. Two atomic reads: unlike [`stats`] it takes no lock.
pub fn reserved_bytes() -> (usize, usize) {
    pool::reserved_bytes()
}

/// Resets `peak_bytes` to `in_use_bytes`.
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
