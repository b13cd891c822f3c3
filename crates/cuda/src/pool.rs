//! Caching allocator of device memory: freed blocks are cached by size, with the events of the work that still uses them, and reused in stream order.
//!
//! The blocks come from the driver's stream-ordered pool, or from `cuMemAlloc` if the device has no such pool.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::ptr::{self, NonNull};
use std::sync::{Arc, OnceLock};

use mxnet_engine::{Event, Stream};
use mxnet_tensor::error::MemoryError;
use mxnet_tensor::memory::MemoryStats;
use mxnet_tensor::{Allocation, Device, MemoryInfo, TensorError};
use parking_lot::Mutex;

use crate::driver::{self, Address, Context, Driver, Handle, PoolAccess};
use crate::error::{OUT_OF_MEMORY, check, failed};
use crate::stream::{self, Mark, Queue};

/// Granularity of block sizes.
const GRAIN_BYTES: usize = 512;

/// Maximum number of cached blocks of a size, most recent first, that are checked for one that is free.
const MAX_CHECKED: usize = 16;

/// Number of the largest blocks that an out-of-memory error lists.
const NUM_HOLDERS: usize = 8;

/// `CU_MEMPOOL_ATTR_RELEASE_THRESHOLD`.
const RELEASE_THRESHOLD: i32 = 4;

/// Size class of `len_bytes`: rounded up by at most an eighth of a power of two, so that arrays of similar sizes reuse blocks.
fn class_bytes(len_bytes: usize) -> usize {
    let len = len_bytes.max(1);
    let step = (len.next_power_of_two() / 16).max(GRAIN_BYTES);
    len.checked_next_multiple_of(step).unwrap_or(len)
}

/// A block that is in use.
struct Used {
    len_bytes: usize,
    class_bytes: usize,
    /// Source line that allocated it, if lines are recorded.
    line: Option<Arc<str>>,
}

/// A freed block in the cache.
struct FreeBlock {
    address: usize,
    in_flight: Vec<Arc<dyn Event>>,
}

/// The allocator state of a device.
#[derive(Default)]
struct Pool {
    used: HashMap<usize, Used>,
    free_blocks: HashMap<usize, Vec<FreeBlock>>,
    stats: MemoryStats,
}

/// Where new blocks come from.
struct Source {
    /// The stream in which blocks are allocated and freed.
    queue: Queue,
    /// `CUmemoryPool`; null if the driver has none.
    pool: Handle,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Source {}
// SAFETY: as above.
unsafe impl Sync for Source {}

/// Upper limit of the number of devices.
const MAX_DEVICES: usize = 64;
static POOLS: [OnceLock<Mutex<Pool>>; MAX_DEVICES] = [const { OnceLock::new() }; MAX_DEVICES];
static SOURCES: [OnceLock<Source>; MAX_DEVICES] = [const { OnceLock::new() }; MAX_DEVICES];

fn pool(id: u32) -> &'static Mutex<Pool> {
    POOLS[id as usize % MAX_DEVICES].get_or_init(Mutex::default)
}

fn source(id: u32) -> Result<&'static Source, TensorError> {
    let slot = &SOURCES[id as usize % MAX_DEVICES];
    if let Some(source) = slot.get() {
        return Ok(source);
    }
    let (driver, context) = Context::enter(id)?;
    let made = Source {
        queue: Queue::new(id)?,
        pool: driver_pool(driver, context).unwrap_or(ptr::null_mut()),
    };
    Ok(slot.get_or_init(|| made))
}

/// The device's default pool, configured to keep freed memory until it is trimmed; `None` if the device has no pool.
fn driver_pool(driver: &Driver, context: &Context) -> Option<Handle> {
    let (ask, set) = (
        driver.cuDeviceGetDefaultMemPool?,
        driver.cuMemPoolSetAttribute?,
    );
    driver.cuMemAllocFromPoolAsync.and(driver.cuMemFreeAsync)?;
    let (mut pool, mut threshold) = (ptr::null_mut(), u64::MAX);
    // SAFETY: `pool` is writable; the attribute is a 64-bit number.
    let status = unsafe {
        match ask(&raw mut pool, context.device) {
            0 => set(pool, RELEASE_THRESHOLD, (&raw mut threshold).cast()),
            status => status,
        }
    };
    (status == 0 && !pool.is_null()).then_some(pool)
}

impl Source {
    /// A new block with the events that precede its first use. `Ok(None)`: not enough memory.
    fn allocate(&self, id: u32, len_bytes: usize) -> Result<Option<Allocation>, TensorError> {
        let (driver, _) = Context::enter(id)?;
        let mut address: Address = 0;
        // SAFETY: `address` is writable; pool and stream belong to this device.
        let status = unsafe {
            match driver.cuMemAllocFromPoolAsync {
                Some(allocate) if !self.pool.is_null() => {
                    allocate(&raw mut address, len_bytes, self.pool, self.queue.handle())
                }
                _ => (driver.cuMemAlloc)(&raw mut address, len_bytes),
            }
        };
        match (status, NonNull::new(address as *mut u8)) {
            (0, Some(ptr)) => {
                let mut block = Allocation::from(ptr);
                if !self.pool.is_null() {
                    block.in_flight.push(Arc::new(self.queue.mark()));
                }
                Ok(Some(block))
            }
            (0 | OUT_OF_MEMORY, _) => Ok(None),
            (status, _) => Err(failed(id, "allocating memory", status)),
        }
    }

    /// Returns a block to the driver after the work in flight on it.
    fn free(&self, id: u32, block: &FreeBlock) -> Result<(), TensorError> {
        let (driver, _) = Context::enter(id)?;
        let address = block.address as Address;
        let status = match driver.cuMemFreeAsync {
            Some(free) if !self.pool.is_null() => {
                for event in &block.in_flight {
                    self.queue.wait(event, false);
                }
                // SAFETY: the block came from the pool, and the stream waits for its users.
                unsafe { free(address, self.queue.handle()) }
            }
            _ => {
                for event in &block.in_flight {
                    // A failure is reported to the reader of the result.
                    let _ = event.wait();
                }
                // SAFETY: the block came from the driver, and nobody uses it any more.
                unsafe { (driver.cuMemFree)(address) }
            }
        };
        check(id, "freeing memory", status)
    }
}

impl Pool {
    /// A cached block of a size class that can be used now: its work has ended, or is in the stream of the calling thread, which will use the block
    /// next.
    fn reuse(&mut self, class_bytes: usize, own: Option<&Queue>) -> Option<FreeBlock> {
        let free_blocks = self.free_blocks.get_mut(&class_bytes)?;
        let is_near = |event: &Arc<dyn Event>| {
            let mark = event.as_any().downcast_ref::<Mark>();
            let is_own = matches!((mark, own), (Some(mark), Some(own)) if mark.is_of(own));
            is_own || event.query()
        };
        let candidates = free_blocks.iter().enumerate().rev().take(MAX_CHECKED);
        let found = candidates
            .filter(|(_, block)| block.in_flight.iter().all(is_near))
            .map(|(i, _)| i)
            .next()?;
        Some(free_blocks.remove(found))
    }

    fn enter(&mut self, address: usize, len_bytes: usize, class_bytes: usize) {
        let line = mxnet_core::call_site::current();
        let used = Used {
            len_bytes,
            class_bytes,
            line,
        };
        self.used.insert(address, used);
        let stats = &mut self.stats;
        stats.in_use_bytes += class_bytes;
        stats.peak_bytes = stats.peak_bytes.max(stats.in_use_bytes);
        stats.allocations += 1;
    }

    /// The message of an out-of-memory error.
    fn report(&self, info: MemoryInfo) -> String {
        let mebibytes = |bytes: usize| bytes as f64 / f64::from(1 << 20);
        let mut lines = vec![format!(
            "  {:.1} of {:.1} MiB are free; arrays hold {:.1} MiB in {} blocks",
            mebibytes(info.free),
            mebibytes(info.total),
            mebibytes(self.stats.in_use_bytes),
            self.used.len()
        )];
        let mut groups = HashMap::<(usize, Option<&str>), usize>::new();
        for used in self.used.values() {
            *groups
                .entry((used.len_bytes, used.line.as_deref()))
                .or_default() += 1;
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by_key(|&((len, line), count)| (std::cmp::Reverse(len * count), line));
        for ((len, line), count) in groups.iter().take(NUM_HOLDERS) {
            let made = line.map_or(String::new(), |line| format!(", made at {line}"));
            lines.push(format!("  {count} x {:.1} MiB{made}", mebibytes(*len)));
        }
        if groups.len() > NUM_HOLDERS {
            lines.push(format!("  and {} more sizes", groups.len() - NUM_HOLDERS));
        }
        if !mxnet_core::call_site::is_enabled() {
            lines.push(
                "  hint: with `mx.config.set('debug_lines', True)` this list names the lines that made the arrays"
                    .to_owned(),
            );
        }
        lines.join("\n")
    }
}

/// Allocates memory on device `id`.
///
/// # Errors
/// `Memory` if there is not enough, even after the cached blocks were returned to the driver; `Device` if the device fails.
pub fn allocate(id: u32, len_bytes: usize) -> Result<Allocation, TensorError> {
    driver::check_process(id)?;
    let own = stream::for_kernels(id)?;
    let class_bytes = class_bytes(len_bytes);
    let reused = {
        let mut pool = pool(id).lock();
        let reused = pool.reuse(class_bytes, Some(&own));
        if let Some(block) = &reused {
            pool.stats.cached_bytes -= class_bytes;
            pool.enter(block.address, len_bytes, class_bytes);
        }
        reused
    };
    if let Some(block) = reused {
        let ptr = NonNull::new(block.address as *mut u8)
            .ok_or_else(|| failed(id, "allocating memory", 1))?;
        let mut in_flight = block.in_flight;
        in_flight.retain(|event| {
            let mark = event.as_any().downcast_ref::<Mark>();
            !mark.is_some_and(Mark::is_known_complete)
        });
        return Ok(Allocation { ptr, in_flight });
    }
    let source = source(id)?;
    let mut block = source.allocate(id, class_bytes)?;
    if block.is_none() {
        empty_cache(id)?;
        block = source.allocate(id, class_bytes)?;
    }
    let mut pool = pool(id).lock();
    let Some(block) = block else {
        let report = pool.report(info(id));
        drop(pool);
        return Err(MemoryError::OutOfDeviceMemory {
            device: Device::gpu(id),
            requested_bytes: len_bytes,
            report: report.into(),
        }
        .into());
    };
    pool.stats.system_allocations += 1;
    pool.enter(block.ptr.as_ptr() as usize, len_bytes, class_bytes);
    Ok(block)
}

/// Allocates memory that is zero once its events are complete.
///
/// # Errors
/// Same as for [`allocate`].
pub fn allocate_zeroed(id: u32, len_bytes: usize) -> Result<Allocation, TensorError> {
    let mut block = allocate(id, len_bytes)?;
    let queue = stream::for_kernels(id)?;
    for event in &block.in_flight {
        queue.wait(event, false);
    }
    let (driver, _) = Context::enter(id)?;
    let address = block.ptr.as_ptr() as Address;
    // SAFETY: the block has `len_bytes` bytes, and the stream waits for all of its former users.
    let status = unsafe { (driver.cuMemsetD8Async)(address, 0, len_bytes, queue.handle()) };
    block.in_flight = vec![Arc::new(queue.mark())];
    if let Err(error) = check(id, "filling memory", status) {
        free(id, block.ptr, &block.in_flight);
        return Err(error);
    }
    Ok(block)
}

/// Puts a block into the cache.
pub fn free(id: u32, block: NonNull<u8>, in_flight: &[Arc<dyn Event>]) {
    if driver::is_forked() {
        return;
    }
    let address = block.as_ptr() as usize;
    let mut pool = pool(id).lock();
    let Some(used) = pool.used.remove(&address) else {
        return;
    };
    pool.stats.in_use_bytes -= used.class_bytes;
    pool.stats.cached_bytes += used.class_bytes;
    let in_flight = in_flight.to_vec();
    let free_blocks = pool.free_blocks.entry(used.class_bytes).or_default();
    free_blocks.push(FreeBlock { address, in_flight });
}

/// Returns the cached blocks to the driver, and the driver's unused memory to the system.
///
/// # Errors
/// `Device` if the device fails.
pub fn empty_cache(id: u32) -> Result<(), TensorError> {
    let (driver, _) = Context::enter(id)?;
    let free_blocks = {
        let mut pool = pool(id).lock();
        pool.stats.cached_bytes = 0;
        std::mem::take(&mut pool.free_blocks)
    };
    let source = source(id)?;
    for block in free_blocks.values().flatten() {
        source.free(id, block)?;
    }
    source.queue.synchronize()?;
    if let (Some(trim), false) = (driver.cuMemPoolTrimTo, source.pool.is_null()) {
        // SAFETY: the pool belongs to the device.
        let status = unsafe { trim(source.pool, 0) };
        check(id, "trimming its memory pool", status)?;
    }
    Ok(())
}

/// Gives another device access to the memory of device `id`.
///
/// # Errors
/// `Device` if the driver refuses it.
pub fn allow_access(id: u32, other: &Context) -> Result<(), TensorError> {
    let source = source(id)?;
    let (driver, _) = Context::enter(id)?;
    let (Some(allow), false) = (driver.cuMemPoolSetAccess, source.pool.is_null()) else {
        // Without a pool, peer access between contexts is sufficient.
        return Ok(());
    };
    let access = PoolAccess::of(other.device);
    // SAFETY: the pool belongs to the device; one descriptor is passed.
    let status = unsafe { allow(source.pool, &raw const access, 1) };
    check(id, "sharing its memory pool", status)
}

/// Free and total memory according to the driver; zeros if the query fails.
pub fn info(id: u32) -> MemoryInfo {
    let (mut free, mut total) = (0, 0);
    if let Ok((driver, _)) = Context::enter(id) {
        // SAFETY: both are writable.
        let status = unsafe { (driver.cuMemGetInfo)(&raw mut free, &raw mut total) };
        if status != 0 {
            (free, total) = (0, 0);
        }
    }
    MemoryInfo { free, total }
}

/// Statistics of the allocator.
pub fn stats(id: u32) -> MemoryStats {
    pool(id).lock().stats
}

/// Resets `peak_bytes` to the memory in use.
pub fn reset_peak(id: u32) {
    let stats = &mut pool(id).lock().stats;
    stats.peak_bytes = stats.in_use_bytes;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_classes_waste_at_most_an_eighth() {
        for len in (1..200_000).chain([1 << 20, (1 << 20) + 1, (1 << 33) + 12345]) {
            let class = class_bytes(len);
            assert!(
                class >= len && class.is_multiple_of(GRAIN_BYTES),
                "{len}: {class}"
            );
            assert!(class - len < (len / 8).max(GRAIN_BYTES), "{len}: {class}");
            assert_eq!(class_bytes(class), class);
        }
    }

    #[test]
    fn memory_report_lists_the_largest_blocks_first() {
        let mut pool = Pool::default();
        for (address, len) in [(1, 1 << 20), (2, 5 << 20), (3, 3 << 20), (4, 3 << 20)] {
            pool.enter(address, len, class_bytes(len));
        }
        let info = MemoryInfo {
            free: 1 << 20,
            total: 16 << 20,
        };
        let report = pool.report(info);
        let lines: Vec<&str> = report.lines().map(str::trim).collect();
        assert_eq!(
            lines[..4],
            [
                "1.0 of 16.0 MiB are free; arrays hold 12.0 MiB in 4 blocks",
                "2 x 3.0 MiB",
                "1 x 5.0 MiB",
                "1 x 1.0 MiB"
            ]
        );
    }
}
