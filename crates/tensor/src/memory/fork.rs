//! A mutex that a forked child can use, whatever another thread did with it in the parent at that moment.

use std::cell::UnsafeCell;
use std::mem;
use std::sync::Once;

use parking_lot::{Mutex, MutexGuard};

/// A static mutex around a value that can be given up.
pub(super) struct ForkSafe<T>(UnsafeCell<Mutex<T>>);

// SAFETY: the mutex serialises access; `renew` replaces it only while there is one thread.
unsafe impl<T: Send> Sync for ForkSafe<T> {}

impl<T> ForkSafe<T> {
    pub const fn new(value: T) -> ForkSafe<T> {
        ForkSafe(UnsafeCell::new(Mutex::new(value)))
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        // SAFETY: exclusive references exist only in `renew`, when no other thread runs.
        unsafe { &*self.0.get() }.lock()
    }

    /// Puts a fresh mutex in place: around the old value, or, if a thread that is gone was changing that, around
    /// `empty`; what the old value held leaks. Unlocking the old mutex could wait for waiters that are gone.
    ///
    /// # Safety
    ///
    /// There is only one thread, and it does not hold the lock.
    pub unsafe fn renew(&self, empty: T) {
        // SAFETY: the caller promises that nobody else looks.
        let mutex = unsafe { &mut *self.0.get() };
        let value = match mutex.try_lock() {
            Some(mut guard) => {
                let value = mem::replace(&mut *guard, empty);
                mem::forget(guard);
                value
            }
            None => empty,
        };
        mem::forget(mem::replace(mutex, Mutex::new(value)));
    }
}

/// Makes forked children renew the allocator's locks.
pub(super) fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        #[cfg(unix)]
        {
            extern "C" fn child() {
                // SAFETY: a forked child has one thread, and no allocator function forks.
                unsafe {
                    super::pool::renew();
                    super::thread::renew();
                }
            }
            // SAFETY: the handler lives as long as the program. Failure (no memory for the entry) leaves children of
            // multi-threaded parents where they would be without.
            unsafe { libc::pthread_atfork(None, None, Some(child)) };
        }
    });
}
