//! A mutex that a forked child can use, whatever other threads of the parent did with it at that moment.

use std::cell::UnsafeCell;
use std::mem;
use std::sync::Once;

use parking_lot::{Mutex, MutexGuard};

/// A static mutex that can be replaced after a fork.
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

    /// Installs a new mutex: around the old value, or around `empty` if another thread was changing the value (what the old value holds then leaks).
    /// Unlocking the old mutex could wait for threads that do not exist.
    ///
    /// # Safety
    ///
    /// There is only one thread, and it does not hold the lock.
    pub unsafe fn renew(&self, empty: T) {
        // SAFETY: the caller promises that no other thread exists.
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

/// Registers a fork handler that renews the allocator's locks in the child.
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
            // SAFETY: the handler lives as long as the program. If registration fails (no memory), forked children of multi-threaded parents may
            // deadlock, as without a handler.
            unsafe { libc::pthread_atfork(None, None, Some(child)) };
        }
    });
}
