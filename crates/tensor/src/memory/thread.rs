//! Small blocks: a cache per thread with a list of free blocks per class. Its fast path uses no locks and no shared counters.
//!
//! A block that is freed on another thread goes to that thread's cache. Lists are bounded; further blocks are released to the system. When the
//! thread's cache has been destroyed (at thread exit), blocks are allocated and released directly.

use std::alloc;
use std::cell::Cell;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use super::MemoryStats;
use super::classes::{NUM_THREAD_CLASSES, thread_class, thread_class_bytes, thread_class_layout};
use super::fork::{self, ForkSafe};

/// A free block begins with this.
struct Free {
    next: *mut Free,
}

/// Largest number of free blocks in a list of each class: 64 KiB, and at least four.
const LIMITS: [u32; NUM_THREAD_CLASSES] = {
    let mut limits = [0; NUM_THREAD_CLASSES];
    let mut class = 0;
    while class < NUM_THREAD_CLASSES {
        let fit = (1 << 16) / thread_class_bytes(class) as u32;
        limits[class] = if fit < 4 { 4 } else { fit };
        class += 1;
    }
    limits
};

/// Length of the lists of an unregistered thread: they count as full, so that the first `free` takes the slow path.
const UNREGISTERED: u32 = u32::MAX;

struct Cache {
    heads: [Cell<*mut Free>; NUM_THREAD_CLASSES],
    lengths: [Cell<u32>; NUM_THREAD_CLASSES],
    /// Set before the first block enters a list.
    counters: Cell<Option<NonNull<Counters>>>,
}

/// Statistics of a thread: written by it, read by any thread.
struct Counters {
    allocated: [AtomicU64; NUM_THREAD_CLASSES],
    freed: [AtomicU64; NUM_THREAD_CLASSES],
}

thread_local! {
    static CACHE: Cache = const {
        Cache {
            heads: [const { Cell::new(ptr::null_mut()) }; NUM_THREAD_CLASSES],
            lengths: [const { Cell::new(UNREGISTERED) }; NUM_THREAD_CLASSES],
            counters: Cell::new(None),
        }
    };
}

/// Counters of running threads, and the sums of those of ended threads.
static THREADS: ForkSafe<Threads> = ForkSafe::new(Threads::new());

struct Threads {
    living: Vec<Arc<Counters>>,
    ended: Counters,
}

/// Bytes of small blocks allocated from the system, in use or cached.
pub(super) static HELD_BYTES: AtomicUsize = AtomicUsize::new(0);
static SYSTEM_ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

#[inline]
pub(super) fn allocate(len: usize) -> Option<NonNull<u8>> {
    let class = thread_class(len);
    let cached = CACHE.try_with(|cache| {
        let head = NonNull::new(cache.heads[class].get())?;
        // SAFETY: blocks on the list belong to this cache and start with a `Free`.
        cache.heads[class].set(unsafe { head.as_ref() }.next);
        cache.lengths[class].set(cache.lengths[class].get() - 1);
        cache.count(|counters| &counters.allocated[class]);
        Some(head.cast())
    });
    match cached {
        Ok(Some(block)) => Some(block),
        _ => allocate_from_system(class),
    }
}

/// # Safety
///
/// The block must come from `allocate` with this length and is not used afterwards.
#[inline]
pub(super) unsafe fn free(block: NonNull<u8>, len: usize) {
    let class = thread_class(len);
    let is_cached = CACHE.try_with(|cache| {
        let length = cache.lengths[class].get();
        if length >= LIMITS[class] {
            return false;
        }
        // SAFETY: the caller gives up the block, which has at least 16 bytes and is aligned to 16.
        unsafe { cache.push(class, block) };
        cache.count(|counters| &counters.freed[class]);
        true
    });
    if is_cached != Ok(true) {
        // SAFETY: this function's contract.
        unsafe { register_and_free(block, class) }
    }
}

impl Cache {
    /// Increments one of the thread's counters. Only this thread writes it, so no atomic addition is needed.
    #[inline]
    fn count(&self, counter: impl Fn(&Counters) -> &AtomicU64) {
        if let Some(counters) = self.counters.get() {
            // SAFETY: registered counters live until the cache is dropped.
            let counter = counter(unsafe { counters.as_ref() });
            counter.store(counter.load(Relaxed) + 1, Relaxed);
        }
    }

    /// # Safety
    ///
    /// `block` is a block of this class that nobody uses.
    #[inline]
    unsafe fn push(&self, class: usize, block: NonNull<u8>) {
        let block = block.cast::<Free>().as_ptr();
        // SAFETY: nobody uses the block, and it has the size and alignment of a `Free`.
        unsafe {
            block.write(Free {
                next: self.heads[class].get(),
            })
        };
        self.heads[class].set(block);
        self.lengths[class].set(self.lengths[class].get() + 1);
    }

    #[cold]
    fn register(&self) {
        fork::register();
        let counters = Arc::new(Counters::new());
        self.counters.set(Some(NonNull::from(&*counters)));
        self.lengths.iter().for_each(|length| length.set(0));
        THREADS.lock().living.push(counters);
    }

    /// Releases all free blocks to the system. Returns their size in bytes.
    fn empty(&self) -> usize {
        let mut bytes = 0;
        for class in 0..NUM_THREAD_CLASSES {
            let mut head = self.heads[class].replace(ptr::null_mut());
            if !head.is_null() {
                self.lengths[class].set(0);
            }
            while let Some(block) = NonNull::new(head) {
                // SAFETY: blocks on the list belong to this cache and start with a `Free`.
                head = unsafe { block.as_ref() }.next;
                // SAFETY: nobody uses a block on the list, and it has been removed from the list.
                unsafe { release(block.cast(), class) };
                bytes += thread_class_bytes(class);
            }
        }
        bytes
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        self.empty();
        if let Some(counters) = self.counters.take() {
            let mut threads = THREADS.lock();
            let position = threads
                .living
                .iter()
                .position(|living| ptr::eq(&raw const **living, counters.as_ptr()));
            // In a forked child the list of counters may have been reset.
            if let Some(position) = position {
                let counters = threads.living.swap_remove(position);
                threads.ended.add(&counters);
            }
        }
    }
}

impl Counters {
    const fn new() -> Counters {
        Counters {
            allocated: [const { AtomicU64::new(0) }; NUM_THREAD_CLASSES],
            freed: [const { AtomicU64::new(0) }; NUM_THREAD_CLASSES],
        }
    }

    fn add(&self, other: &Counters) {
        for class in 0..NUM_THREAD_CLASSES {
            self.allocated[class].fetch_add(other.allocated[class].load(Relaxed), Relaxed);
            self.freed[class].fetch_add(other.freed[class].load(Relaxed), Relaxed);
        }
    }
}

impl Threads {
    const fn new() -> Threads {
        Threads {
            living: Vec::new(),
            ended: Counters::new(),
        }
    }
}

/// Slow path: the list is empty, or does not exist yet, or the cache has been destroyed.
#[cold]
#[inline(never)]
fn allocate_from_system(class: usize) -> Option<NonNull<u8>> {
    register_and_count(class, |counters| &counters.allocated);
    let layout = thread_class_layout(class);
    // SAFETY: no class has size 0.
    let fresh = || NonNull::new(unsafe { alloc::alloc(layout) });
    let block = fresh().or_else(|| (super::trim() > 0).then(fresh).flatten())?;
    HELD_BYTES.fetch_add(layout.size(), Relaxed);
    SYSTEM_ALLOCATIONS.fetch_add(1, Relaxed);
    super::pool::note_peak();
    Some(block)
}

/// # Safety
///
/// As [`free`].
#[cold]
#[inline(never)]
unsafe fn register_and_free(block: NonNull<u8>, class: usize) {
    register_and_count(class, |counters| &counters.freed);
    // After registration the lists have space.
    let is_cached = CACHE.try_with(|cache| {
        let has_space = cache.lengths[class].get() < LIMITS[class];
        if has_space {
            // SAFETY: the caller gives up the block.
            unsafe { cache.push(class, block) };
        }
        has_space
    });
    if is_cached != Ok(true) {
        // SAFETY: the caller gives up the block.
        unsafe { release(block, class) };
    }
}

/// Increments a counter of the thread, which is registered first if needed, or a counter of ended threads if the cache has been destroyed.
fn register_and_count(
    class: usize,
    counters: impl Fn(&Counters) -> &[AtomicU64; NUM_THREAD_CLASSES],
) {
    let counted = CACHE.try_with(|cache| {
        if cache.counters.get().is_none() {
            cache.register();
        }
        cache.count(|c| &counters(c)[class]);
    });
    if counted.is_err() {
        counters(&THREADS.lock().ended)[class].fetch_add(1, Relaxed);
    }
}

/// # Safety
///
/// The block must be of this class, from `allocate_from_system`, and is not used afterwards.
unsafe fn release(block: NonNull<u8>, class: usize) {
    let layout = thread_class_layout(class);
    // SAFETY: the block was allocated with the class's layout.
    unsafe { alloc::dealloc(block.as_ptr(), layout) };
    HELD_BYTES.fetch_sub(layout.size(), Relaxed);
}

pub(super) fn trim() -> usize {
    CACHE
        .try_with(|cache| {
            if cache.counters.get().is_some() {
                cache.empty()
            } else {
                0
            }
        })
        .unwrap_or(0)
}

pub(super) fn stats() -> MemoryStats {
    let threads = THREADS.lock();
    let (mut allocations, mut in_use_bytes) = (0, 0usize);
    for counters in threads
        .living
        .iter()
        .map(|counters| &**counters)
        .chain([&threads.ended])
    {
        for class in 0..NUM_THREAD_CLASSES {
            let (allocated, freed) = (
                counters.allocated[class].load(Relaxed),
                counters.freed[class].load(Relaxed),
            );
            allocations += allocated;
            // A thread may free more than it allocates; the sum over all threads is correct.
            in_use_bytes = in_use_bytes.wrapping_add(
                (allocated.wrapping_sub(freed) as usize).wrapping_mul(thread_class_bytes(class)),
            );
        }
    }
    let held = HELD_BYTES.load(Relaxed);
    // Other threads continue meanwhile, so a sum may be slightly out of range.
    let in_use_bytes = if in_use_bytes as isize >= 0 {
        in_use_bytes.min(held)
    } else {
        0
    };
    MemoryStats {
        in_use_bytes,
        cached_bytes: held - in_use_bytes,
        peak_bytes: held,
        allocations,
        system_allocations: SYSTEM_ALLOCATIONS.load(Relaxed),
    }
}

/// # Safety
///
/// As [`ForkSafe::renew`].
pub(super) unsafe fn renew() {
    // SAFETY: the caller's promise.
    unsafe { THREADS.renew(Threads::new()) }
}
