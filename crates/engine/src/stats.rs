//! Counters of an engine. The counter of inline operations is per thread, because incrementing a shared counter would double the cost of an inline
//! acquisition.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of an engine since its creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Operations pushed.
    pub pushed: u64,
    /// Operations granted to run inline.
    pub inline: u64,
    /// Pushed operations that had to wait for a variable.
    pub queued: u64,
    /// Operations that failed or panicked, inline ones included.
    pub failed: u64,
    /// Pushed operations not run because they read a poisoned variable.
    pub skipped: u64,
    /// Pushed operations not finished yet.
    pub in_flight: usize,
    /// Bytes held by unfinished operations.
    pub bytes_in_flight: usize,
    /// Largest value of `bytes_in_flight` so far.
    pub peak_bytes_in_flight: usize,
    /// Workers that are started.
    pub workers: usize,
}

/// The shared counters of [`Stats`].
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) pushed: AtomicU64,
    pub(crate) queued: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) skipped: AtomicU64,
}

/// Adds one. Relaxed, since statistics order nothing.
pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// The inline counters of all threads that used one engine.
#[derive(Default)]
pub(crate) struct InlineCounts {
    live: Vec<Arc<AtomicU64>>,
    /// Sum over threads that have ended.
    retired: u64,
}

impl InlineCounts {
    pub(crate) fn total(&self) -> u64 {
        self.retired
            + self
                .live
                .iter()
                .map(|count| count.load(Ordering::Relaxed))
                .sum::<u64>()
    }

    /// Returns a counter for a new thread. Adds up counters whose threads have ended.
    pub(crate) fn add_thread(&mut self) -> Arc<AtomicU64> {
        let gone = self
            .live
            .extract_if(.., |count| Arc::strong_count(count) == 1);
        self.retired += gone.map(|count| count.load(Ordering::Acquire)).sum::<u64>();
        let count = Arc::new(AtomicU64::new(0));
        self.live.push(Arc::clone(&count));
        count
    }
}

/// This thread's counter for the engine it used last.
#[cfg(not(loom))]
struct Slot {
    engine: u64,
    count: Option<Arc<AtomicU64>>,
}

#[cfg(not(loom))]
thread_local! {
    static SLOT: std::cell::RefCell<Slot> = const { std::cell::RefCell::new(Slot { engine: 0, count: None }) };
}

/// Counts one inline operation of engine number `engine` (never 0). `register` makes this thread's counter.
#[cfg(not(loom))]
#[inline]
pub(crate) fn count_inline(engine: u64, register: impl FnOnce() -> Arc<AtomicU64>) {
    // `try_with` fails on a thread whose locals are already destroyed: such operations are not counted.
    let _ = SLOT.try_with(|slot| {
        let mut slot = slot.borrow_mut();
        if slot.engine != engine {
            *slot = Slot {
                engine,
                count: Some(register()),
            };
        }
        if let Some(count) = &slot.count {
            // Only this thread writes it.
            count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    });
}

/// Under loom many model threads run on one system thread. Models do not use statistics.
#[cfg(loom)]
pub(crate) fn count_inline(_engine: u64, _register: impl FnOnce() -> Arc<AtomicU64>) {}
