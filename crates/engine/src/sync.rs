//! Atomics, locks and threads, from `std` or, under `cfg(loom)`, from `loom`. Nothing else of the crate names either.
//!
//! The locks ignore poisoning: no lock of this crate is held while foreign code runs, so that a panic cannot leave
//! one half-way. They are `std`'s because its futex locks keep all state in the lock word, which a forked child inherits
//! usable; a lock with a process-wide table of waiters would not survive `fork`.

#[cfg(loom)]
use loom::sync as imp;
#[cfg(not(loom))]
use std::sync as imp;
use std::time::Duration;

pub(crate) use imp::MutexGuard;
pub(crate) use imp::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};

#[cfg(loom)]
pub(crate) use loom::{thread, thread_local};
#[cfg(not(loom))]
pub(crate) use std::{thread, thread_local};

/// A mutex whose `lock` cannot fail.
pub(crate) struct Mutex<T>(imp::Mutex<T>);

impl<T> Mutex<T> {
    #[cfg(not(loom))]
    pub(crate) const fn new(value: T) -> Mutex<T> {
        Mutex(imp::Mutex::new(value))
    }

    #[cfg(loom)]
    pub(crate) fn new(value: T) -> Mutex<T> {
        Mutex(imp::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// A condition variable for [`Mutex`].
#[cfg(not(loom))]
pub(crate) struct Condvar(imp::Condvar);

#[cfg(not(loom))]
impl Condvar {
    pub(crate) fn new() -> Condvar {
        Condvar(imp::Condvar::new())
    }

    pub(crate) fn wait<'a, T>(
        &self,
        _mutex: &'a Mutex<T>,
        guard: MutexGuard<'a, T>,
    ) -> MutexGuard<'a, T> {
        self.0
            .wait(guard)
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Waits at most `limit`; true when the time ran out.
    pub(crate) fn wait_for<'a, T>(
        &self,
        _mutex: &'a Mutex<T>,
        guard: MutexGuard<'a, T>,
        limit: Duration,
    ) -> (MutexGuard<'a, T>, bool) {
        let (guard, result) = self
            .0
            .wait_timeout(guard, limit)
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        (guard, result.timed_out())
    }

    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// The model of a condition variable: a count of notifications, as futex-based ones have it.
///
/// Loom's own lets a thread that waited pass locks that are held, in programs with several locks (loom 0.7.2). With
/// this one a notification that is missing shows as a model that exceeds its number of branches. Time never runs out.
#[cfg(loom)]
pub(crate) struct Condvar(AtomicUsize);

#[cfg(loom)]
impl Condvar {
    pub(crate) fn new() -> Condvar {
        Condvar(AtomicUsize::new(0))
    }

    pub(crate) fn wait<'a, T>(
        &self,
        mutex: &'a Mutex<T>,
        guard: MutexGuard<'a, T>,
    ) -> MutexGuard<'a, T> {
        let before = self.0.load(Ordering::Acquire);
        drop(guard);
        while self.0.load(Ordering::Acquire) == before {
            thread::yield_now();
        }
        mutex.lock()
    }

    pub(crate) fn wait_for<'a, T>(
        &self,
        mutex: &'a Mutex<T>,
        guard: MutexGuard<'a, T>,
        _limit: Duration,
    ) -> (MutexGuard<'a, T>, bool) {
        (self.wait(mutex, guard), false)
    }

    pub(crate) fn notify_one(&self) {
        self.notify_all();
    }

    pub(crate) fn notify_all(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}
