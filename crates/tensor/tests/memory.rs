//! The allocator: blocks, caching, statistics. Tests run one at a time, because the statistics are global to the process.

use std::cell::RefCell;
use std::panic::resume_unwind;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

use mxnet_tensor::TensorError;
use mxnet_tensor::memory::{
    MemoryStats, allocate, allocate_zeroed, cache_limit, free, reset_peak, set_cache_limit, stats,
    trim,
};

const MIB: usize = 1 << 20;

/// Runs a test exclusively, on a new thread, whose cache is gone when the next test begins.
fn alone(test: impl FnOnce() + Send + 'static) {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Err(panic) = thread::spawn(test).join() {
        resume_unwind(panic);
    }
}

/// A block that frees itself and can be sent to other threads.
struct Block {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the block is owned.
unsafe impl Send for Block {}

impl Block {
    fn new(len: usize) -> Block {
        Block {
            start: allocate(len).expect("enough memory"),
            len,
        }
    }

    fn zeroed(len: usize) -> Block {
        Block {
            start: allocate_zeroed(len).expect("enough memory"),
            len,
        }
    }

    fn fill(&mut self, value: u8) {
        // SAFETY: the block is ours and has this length.
        unsafe { self.start.write_bytes(value, self.len) };
    }

    /// Only after `fill`, or for zeroed blocks.
    fn is_filled_with(&self, value: u8) -> bool {
        // SAFETY: the block is ours, has this length and has been written.
        let bytes = unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) };
        bytes.iter().all(|&byte| byte == value)
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: the block was allocated with this length, and nobody else has it.
        unsafe { free(self.start, self.len) };
    }
}

#[test]
fn blocks_are_aligned_and_disjoint() {
    alone(|| {
        let before = stats().in_use_bytes;
        let mut blocks: Vec<(Block, u8)> = Vec::new();
        let mut random = 12345u64;
        for round in 0..4000u32 {
            random = random
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let pick = (random >> 33) as usize;
            if blocks.len() > 60 || (round % 3 == 0 && !blocks.is_empty()) {
                let (block, value) = blocks.swap_remove(pick % blocks.len());
                assert!(
                    block.is_filled_with(value),
                    "block of {} bytes was overwritten",
                    block.len
                );
            } else {
                // Lengths of all magnitudes up to 512 KiB.
                let len = (pick >> 5) % (2 << (pick % 19));
                let mut block = Block::new(len);
                let align = if len > 256 { 64 } else { 16 };
                assert_eq!(block.start.as_ptr() as usize % align, 0, "{len}");
                block.fill(round as u8);
                blocks.push((block, round as u8));
            }
        }
        assert!(
            blocks
                .iter()
                .all(|(block, value)| block.is_filled_with(*value))
        );
        drop(blocks);
        assert_eq!(stats().in_use_bytes, before);
    });
}

#[test]
fn freed_blocks_are_reused() {
    alone(|| {
        for len in [1, 16, 100, 257, 5000, 65536, 65537, 3 * MIB, 20 * MIB] {
            let first = Block::new(len);
            let start = first.start;
            drop(first);
            let before = stats();
            let second = Block::new(len);
            let after = stats();
            assert_eq!(second.start, start, "{len}");
            assert_eq!(after.system_allocations, before.system_allocations);
            assert_eq!(after.allocations, before.allocations + 1);
            let taken = after.in_use_bytes - before.in_use_bytes;
            assert!(
                taken >= len && taken <= len + len / 4 + 16,
                "{len} bytes take {taken}"
            );
            assert_eq!(before.cached_bytes - after.cached_bytes, taken);
        }
    });
}

#[test]
fn zeroed_blocks_are_zero_even_when_used_before() {
    alone(|| {
        for len in [1, 300, 65536, 70_000, 2 * MIB, 5 * MIB] {
            let mut block = Block::new(len);
            block.fill(0xAA);
            let start = block.start;
            drop(block);
            let block = Block::zeroed(len);
            assert_eq!(block.start, start, "{len}");
            assert!(block.is_filled_with(0), "{len}");
        }
        trim();
        assert!(Block::zeroed(5 * MIB).is_filled_with(0));
    });
}

#[test]
fn empty_blocks_take_no_memory() {
    alone(|| {
        let before = stats();
        let blocks: Vec<Block> = (0..10).map(|_| Block::new(0)).collect();
        assert!(
            blocks
                .iter()
                .all(|block| block.start.as_ptr().addr().is_multiple_of(64))
        );
        assert_eq!(stats(), before);
    });
}

#[test]
fn caches_are_bounded() {
    alone(|| {
        trim();
        let before = stats().cached_bytes;
        drop((0..10_000).map(|_| Block::new(64)).collect::<Vec<_>>());
        let kept = stats().cached_bytes - before;
        assert_eq!(kept, 64 << 10);

        let limit = cache_limit();
        set_cache_limit(8 * MIB);
        drop((0..10).map(|_| Block::new(2 * MIB)).collect::<Vec<_>>());
        assert_eq!(stats().cached_bytes - before - kept, 8 * MIB);
        drop(Block::new(16 * MIB));
        assert_eq!(stats().cached_bytes - before - kept, 8 * MIB);
        assert_eq!(trim(), 8 * MIB + kept + before);
        assert_eq!(stats().cached_bytes, 0);
        set_cache_limit(limit);
    });
}

#[test]
fn the_least_recently_freed_block_is_released_first() {
    alone(|| {
        let limit = cache_limit();
        trim();
        set_cache_limit(8 * MIB);
        let (old, new) = (Block::new(4 * MIB), Block::new(3 * MIB));
        let kept = new.start;
        drop(old);
        drop(new);
        drop(Block::new(2 * MIB));
        assert_eq!(stats().cached_bytes, 5 * MIB);
        assert_eq!(Block::new(3 * MIB).start, kept);
        trim();
        // Also among blocks of one length.
        let (old, new) = (Block::new(4 * MIB), Block::new(4 * MIB));
        let kept = new.start;
        drop(old);
        drop(new);
        drop(Block::new(2 * MIB));
        assert_eq!(Block::new(4 * MIB).start, kept);
        trim();
        set_cache_limit(limit);
    });
}

#[test]
fn peak_is_the_largest_number_of_bytes_in_use() {
    alone(|| {
        trim();
        reset_peak();
        let before = stats().peak_bytes;
        let (a, b) = (Block::new(4 * MIB), Block::new(2 * MIB));
        drop((a, b));
        drop(Block::new(4 * MIB));
        assert_eq!(stats().peak_bytes - before, 6 * MIB);
        reset_peak();
        assert_eq!(stats().peak_bytes, before);
    });
}

#[test]
fn blocks_are_freed_on_any_thread() {
    alone(|| {
        let before = stats();
        let (sender, receiver) = mpsc::sync_channel::<Block>(100);
        let consumer = thread::spawn(move || {
            for (i, block) in receiver.into_iter().enumerate() {
                assert!(block.is_filled_with(i as u8));
            }
            stats().cached_bytes
        });
        for i in 0..20_000usize {
            let mut block = Block::new([16, 200, 1000, 40_000][i % 4]);
            block.fill(i as u8);
            sender.send(block).expect("the consumer lives");
        }
        drop(sender);
        consumer.join().expect("all blocks are intact");
        let after = stats();
        assert_eq!(after.in_use_bytes, before.in_use_bytes);
        assert_eq!(after.allocations, before.allocations + 20_000);
        // The consumer's cache was destroyed with its thread.
        assert!(
            after.cached_bytes <= before.cached_bytes + (64 << 10) * 4,
            "{after:?}"
        );
    });
}

#[test]
fn threads_allocate_while_they_end() {
    alone(|| {
        struct AtExit(Option<Block>);
        impl Drop for AtExit {
            fn drop(&mut self) {
                self.0 = None;
                drop((0..100).map(|_| Block::new(100)).collect::<Vec<_>>());
            }
        }
        thread_local! {
            static EARLY: RefCell<AtExit> = const { RefCell::new(AtExit(None)) };
            static LATE: RefCell<AtExit> = const { RefCell::new(AtExit(None)) };
        }
        let before = stats();
        let work = || {
            // The order of this destructor and the allocator's is not defined, so both orders are tried.
            EARLY.with_borrow_mut(|slot| slot.0 = None);
            let block = Block::new(48);
            EARLY.with_borrow_mut(|slot| slot.0 = Some(block));
            LATE.with_borrow_mut(|slot| slot.0 = Some(Block::new(48)));
        };
        (0..8)
            .map(|_| thread::spawn(work))
            .for_each(|thread| thread.join().expect("no panic at exit"));
        let after = stats();
        assert_eq!(after.in_use_bytes, before.in_use_bytes);
        assert_eq!(after.cached_bytes, before.cached_bytes);
        assert_eq!(after.allocations, before.allocations + 8 * 202);
    });
}

#[test]
fn refusal_is_an_error_with_the_numbers() {
    alone(|| {
        for len in [1 << 46, 1 << 60, usize::MAX] {
            let error = allocate(len).expect_err("more than there is");
            assert!(matches!(error, TensorError::Memory(_)));
            assert!(
                error
                    .to_string()
                    .starts_with(&format!("cpu(0): cannot allocate {len} bytes (")),
                "{error}"
            );
            assert!(allocate_zeroed(len).is_err());
        }
        let after: MemoryStats = stats();
        assert!(after.in_use_bytes < 1 << 40);
    });
}

#[cfg(unix)]
#[test]
fn forked_children_can_allocate() {
    alone(|| {
        use std::sync::atomic::{AtomicBool, Ordering};
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            // The other threads hold the allocator's locks most of the time.
            for _ in 0..2 {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        drop((Block::new(100_000), stats()));
                    }
                });
            }
            for _ in 0..50 {
                // SAFETY: the child calls the allocator and leaves.
                let child = unsafe { libc::fork() };
                if child == 0 {
                    // If a lock is never released, this alarm ends the child.
                    // SAFETY: plain system calls, and `_exit` below does not run the parent's destructors.
                    unsafe { libc::alarm(10) };
                    drop((
                        Block::new(100_000),
                        Block::new(100),
                        Block::new(2 * MIB),
                        stats(),
                    ));
                    // SAFETY: as above.
                    unsafe { libc::_exit(7) };
                }
                let mut status = 0;
                // SAFETY: waits for our own child.
                unsafe { libc::waitpid(child, &raw mut status, 0) };
                assert!(
                    libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 7,
                    "the child hung or died: {status}"
                );
            }
            stop.store(true, Ordering::Relaxed);
        });
    });
}
