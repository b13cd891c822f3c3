//! Large blocks: one pool for all threads. Freed blocks are cached, because touching fresh pages costs more than an elementwise operation on them.
//! Above the limit the least recently used blocks are released.

use std::alloc::{self, Layout};
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use super::classes::{MAX_POOL_BYTES, NUM_POOL_CLASSES, pool_class, pool_class_bytes};
use super::fork::{self, ForkSafe};
use super::{Fill, MemoryStats, system, thread};

/// From this size on, blocks are separate mappings, page-aligned and zeroed.
const MAPPED: usize = 1 << 20;

/// Up to this size, clearing a cached block is faster than touching fresh pages. A larger array of zeros may be sparse; fresh pages are allocated
/// only where it is touched.
const CLEARED: usize = 1 << 26;

struct Pool {
    /// Free blocks by class, least recently used first.
    classes: [VecDeque<Cached>; NUM_POOL_CLASSES],
    cached_bytes: usize,
    limit_bytes: Option<usize>,
    /// Incremented when a block is freed.
    clock: u64,
}

struct Cached {
    block: NonNull<u8>,
    freed_at: u64,
}

// SAFETY: a cached block is used by the pool only.
unsafe impl Send for Cached {}

static POOL: ForkSafe<Pool> = ForkSafe::new(Pool::new());
static IN_USE_BYTES: AtomicUsize = AtomicUsize::new(0);
static PEAK_BYTES: AtomicUsize = AtomicUsize::new(0);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static SYSTEM_ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

impl Pool {
    const fn new() -> Pool {
        Pool {
            classes: [const { VecDeque::new() }; NUM_POOL_CLASSES],
            cached_bytes: 0,
            limit_bytes: None,
            clock: 0,
        }
    }

    fn limit(&mut self) -> usize {
        *self
            .limit_bytes
            .get_or_insert_with(|| (system::limit() / 8).min(1 << 30))
    }

    fn take(&mut self, class: usize) -> Option<NonNull<u8>> {
        let cached = self.classes[class].pop_back()?;
        self.cached_bytes -= pool_class_bytes(class);
        Some(cached.block)
    }

    /// Removes the least recently used blocks until the others are within the limit.
    fn evict(&mut self, limit: usize) -> Vec<(NonNull<u8>, usize)> {
        let mut victims = Vec::new();
        while self.cached_bytes > limit {
            let oldest = (0..NUM_POOL_CLASSES)
                .filter_map(|class| Some((self.classes[class].front()?.freed_at, class)))
                .min();
            let Some((_, class)) = oldest else { break };
            if let Some(cached) = self.classes[class].pop_front() {
                self.cached_bytes -= pool_class_bytes(class);
                victims.push((cached.block, class));
            }
        }
        victims
    }
}

pub(super) fn allocate(len: usize, fill: Fill) -> Option<NonNull<u8>> {
    if len > MAX_POOL_BYTES {
        return None;
    }
    let class = pool_class(len);
    let bytes = pool_class_bytes(class);
    let cached = if fill == Fill::Any || bytes <= CLEARED {
        POOL.lock().take(class)
    } else {
        None
    };
    let block = match cached {
        Some(block) => {
            if fill == Fill::Zero {
                // SAFETY: the block was taken from the pool, so nobody else uses it; it has at least `len` bytes.
                unsafe { block.write_bytes(0, len) };
            }
            block
        }
        None => {
            fork::register();
            SYSTEM_ALLOCATIONS.fetch_add(1, Relaxed);
            fresh(bytes, fill)
                .or_else(|| (super::trim() > 0).then(|| fresh(bytes, fill)).flatten())?
        }
    };
    ALLOCATIONS.fetch_add(1, Relaxed);
    IN_USE_BYTES.fetch_add(bytes, Relaxed);
    note_peak();
    Some(block)
}

/// # Safety
///
/// The block must come from `allocate` with this length and is not used afterwards.
pub(super) unsafe fn free(block: NonNull<u8>, len: usize) {
    let class = pool_class(len);
    let bytes = pool_class_bytes(class);
    IN_USE_BYTES.fetch_sub(bytes, Relaxed);
    let victims = {
        let mut pool = POOL.lock();
        let limit = pool.limit();
        if bytes > limit {
            vec![(block, class)]
        } else {
            pool.clock += 1;
            let freed_at = pool.clock;
            pool.classes[class].push_back(Cached { block, freed_at });
            pool.cached_bytes += bytes;
            pool.evict(limit)
        }
    };
    // SAFETY: the blocks were taken from the pool, or never were in it.
    unsafe { release(victims) };
}

fn fresh(bytes: usize, fill: Fill) -> Option<NonNull<u8>> {
    if bytes >= MAPPED {
        return system::map(bytes);
    }
    let layout = layout(bytes)?;
    // SAFETY: no class has size 0.
    NonNull::new(unsafe {
        match fill {
            Fill::Any => alloc::alloc(layout),
            Fill::Zero => alloc::alloc_zeroed(layout),
        }
    })
}

/// # Safety
///
/// The blocks must be from `fresh` with their class's size, and are not used afterwards.
unsafe fn release(blocks: Vec<(NonNull<u8>, usize)>) {
    for (block, class) in blocks {
        let bytes = pool_class_bytes(class);
        if bytes >= MAPPED {
            // SAFETY: `fresh` mapped it with this length.
            unsafe { system::unmap(block, bytes) };
        } else if let Some(layout) = layout(bytes) {
            // SAFETY: `fresh` allocated it with this layout.
            unsafe { alloc::dealloc(block.as_ptr(), layout) };
        }
    }
}

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes, 64).ok()
}

/// Called when the bytes in use may have reached a new maximum.
pub(super) fn note_peak() {
    let now = IN_USE_BYTES.load(Relaxed) + thread::HELD_BYTES.load(Relaxed);
    if now > PEAK_BYTES.load(Relaxed) {
        PEAK_BYTES.fetch_max(now, Relaxed);
    }
}

pub(super) fn reset_peak() {
    PEAK_BYTES.store(0, Relaxed);
    note_peak();
}

pub(super) fn trim() -> usize {
    let (victims, bytes) = {
        let mut pool = POOL.lock();
        let bytes = pool.cached_bytes;
        (pool.evict(0), bytes)
    };
    // SAFETY: the blocks were taken from the pool.
    unsafe { release(victims) };
    bytes
}

/// Limit for the bytes of freed large blocks that are cached. Default: an eighth of the memory limit, at most 1 GiB.
pub fn cache_limit() -> usize {
    POOL.lock().limit()
}

/// Sets [`cache_limit`] and releases cached blocks above it.
pub fn set_cache_limit(limit_bytes: usize) {
    let victims = {
        let mut pool = POOL.lock();
        pool.limit_bytes = Some(limit_bytes);
        pool.evict(limit_bytes)
    };
    // SAFETY: the blocks were taken from the pool.
    unsafe { release(victims) };
}

pub(super) fn reserved_bytes() -> (usize, usize) {
    let now = IN_USE_BYTES.load(Relaxed) + thread::HELD_BYTES.load(Relaxed);
    (now, PEAK_BYTES.load(Relaxed).max(now))
}

pub(super) fn stats() -> MemoryStats {
    MemoryStats {
        in_use_bytes: IN_USE_BYTES.load(Relaxed),
        cached_bytes: POOL.lock().cached_bytes,
        peak_bytes: PEAK_BYTES.load(Relaxed),
        allocations: ALLOCATIONS.load(Relaxed),
        system_allocations: SYSTEM_ALLOCATIONS.load(Relaxed),
    }
}

/// # Safety
///
/// As [`ForkSafe::renew`].
pub(super) unsafe fn renew() {
    // SAFETY: the caller's promise.
    unsafe { POOL.renew(Pool::new()) }
}
