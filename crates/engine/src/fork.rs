//! `fork`: the child inherits one thread, the variables and no lock that another thread would have to release.
//!
//! `GATE` is held shared by every section that takes a variable's lock outside of a running operation, and exclusively
//! around `fork`. Foreign code never runs under it, so that it is never entered twice by one thread.

#[cfg(not(loom))]
mod gate {
    use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

    static GATE: RwLock<()> = RwLock::new(());

    /// Keeps `fork` out of a section that holds locks.
    pub(crate) fn enter() -> RwLockReadGuard<'static, ()> {
        GATE.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn close() -> RwLockWriteGuard<'static, ()> {
        GATE.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// No model forks.
#[cfg(loom)]
mod gate {
    pub(crate) struct Open;

    pub(crate) fn enter() -> Open {
        Open
    }
}

pub(crate) use gate::enter;

#[cfg(not(loom))]
mod handlers {
    use std::cell::RefCell;
    use std::sync::RwLockWriteGuard;
    use std::time::{Duration, Instant};

    use super::gate;
    use crate::engine::Engine;
    use crate::pool::{PoolState, depth, is_worker};
    use crate::read::{FORKING, num_guards};
    use crate::sync::{MutexGuard, Ordering};
    use crate::wait::Outcome;

    /// Operations that wait for nothing but other threads' inline operations get this long to become ready.
    const GRACE: Duration = Duration::from_millis(100);

    /// Threads that read on the host get this long to end it.
    const READ_GRACE: Duration = Duration::from_secs(2);

    /// All that is locked around `fork`, in the order of locking.
    struct Locked {
        _gate: RwLockWriteGuard<'static, ()>,
        progress: MutexGuard<'static, crate::engine::Progress>,
        pool: MutexGuard<'static, PoolState>,
    }

    thread_local! {
        static LOCKED: RefCell<Option<Locked>> = const { RefCell::new(None) };
    }

    impl Engine {
        /// Before `fork`: waits until no operation is ready or running, except one that this thread is inside of,
        /// and takes the engine's locks. One of the two `after_fork` functions must follow on the same thread.
        ///
        /// An operation that needs something the forking thread holds (Python's interpreter lock, say) would never
        /// end: whoever binds such a runtime waits for the engine, without that lock, before it forks.
        pub fn prepare_fork(&'static self) {
            let shared = &*self.shared;
            let own = depth();
            let begin = Instant::now();
            loop {
                let start = Instant::now();
                let mut is_idle = || {
                    let (is_quiet, is_empty) = shared.quiet(own);
                    is_quiet && (is_empty || start.elapsed() >= GRACE)
                };
                let outcome = shared.help_until(&mut is_idle, &mut || false);
                debug_assert_eq!(
                    outcome,
                    Outcome::Done,
                    "a check that is always false does not interrupt"
                );
                let gate = gate::close();
                let progress = shared.progress.lock();
                let pool = shared.pool.lock();
                // From here on no read guard begins.
                let readers = shared.readers.fetch_or(FORKING, Ordering::SeqCst) & !FORKING;
                let is_unread = readers <= num_guards() || begin.elapsed() >= READ_GRACE;
                if is_unread && shared.pool.is_quiet(&pool, own) {
                    LOCKED.with(|slot| {
                        *slot.borrow_mut() = Some(Locked {
                            _gate: gate,
                            progress,
                            pool,
                        })
                    });
                    return;
                }
                shared.readers.fetch_and(!FORKING, Ordering::SeqCst);
                drop((pool, progress, gate));
                if !is_unread {
                    std::thread::sleep(Duration::from_micros(100));
                }
            }
        }

        /// After `fork` in the parent.
        pub fn after_fork_parent(&'static self) {
            self.shared.readers.fetch_and(!FORKING, Ordering::SeqCst);
            drop(LOCKED.with(|slot| slot.borrow_mut().take()));
        }

        /// After `fork` in the child: the pool has no workers and starts new ones when needed, the variables are as they were.
        ///
        /// A variable that another thread was using inline at the moment of the fork stays in use, and so does one that it has
        /// held for reading for longer than two seconds.
        pub fn after_fork_child(&'static self) {
            if let Some(mut locked) = LOCKED.with(|slot| slot.borrow_mut().take()) {
                locked.progress.waiting = 0;
                let own = usize::from(is_worker());
                self.shared.pool.forget_threads(&mut locked.pool, own);
            }
            self.shared.readers.store(num_guards(), Ordering::SeqCst);
            self.shared.waiting_readers.store(0, Ordering::SeqCst);
            // A `wait_all` of a thread that is gone will not end its turn.
            self.shared.is_draining.store(false, Ordering::Release);
        }
    }

    /// Registers the three functions for [`crate::engine()`]'s engine.
    #[cfg(unix)]
    pub(crate) fn register() {
        extern "C" fn prepare() {
            crate::engine().prepare_fork();
        }
        extern "C" fn parent() {
            crate::engine().after_fork_parent();
        }
        extern "C" fn child() {
            crate::engine().after_fork_child();
        }
        // SAFETY: the three are `extern "C"` functions without arguments that live as long as this library; the library
        // is not unloaded, since its workers run in it.
        let status = unsafe { libc::pthread_atfork(Some(prepare), Some(parent), Some(child)) };
        if status != 0 {
            eprintln!(
                "mxnet: pthread_atfork failed with status {status}; a forked child must not use mxnet"
            );
        }
    }

    #[cfg(not(unix))]
    pub(crate) fn register() {}
}

#[cfg(not(loom))]
pub(crate) use handlers::register;
