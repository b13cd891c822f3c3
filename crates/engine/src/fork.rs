//! `fork`: the child inherits one thread and the variables, and no lock that another thread would have to release.
//!
//! Every section that takes a variable's lock outside of a running operation holds `GATE` shared; `fork` holds it exclusively. No destructor or
//! callback runs under it, so that no thread enters it twice.

use crate::engine::{Progress, Shared};
use crate::pool::{PoolState, depth};
use crate::read::{FORKING, num_guards};
use crate::sync::{MutexGuard, Ordering};
use crate::wait::Outcome;
use timeouts::{Timeout, pause};

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

/// Loom models have no gate unless they fork, because it would double their interleavings.
#[cfg(loom)]
mod gate {
    use std::cell::Cell;
    use std::sync::PoisonError;

    use loom::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

    std::thread_local! {
        /// Loom runs all threads of a model on one system thread.
        static HAS_GATE: Cell<bool> = const { Cell::new(false) };
    }

    loom::lazy_static! {
        static ref GATE: RwLock<()> = RwLock::new(());
    }

    pub(crate) fn enter() -> Option<RwLockReadGuard<'static, ()>> {
        let open = || GATE.read().unwrap_or_else(PoisonError::into_inner);
        HAS_GATE.get().then(open)
    }

    pub(crate) fn close() -> RwLockWriteGuard<'static, ()> {
        assert!(
            HAS_GATE.get(),
            "a model that forks calls `set_gate` before it begins"
        );
        GATE.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets whether the model forks. Must be called before the model begins.
    pub fn set_gate(has_gate: bool) {
        HAS_GATE.set(has_gate);
    }
}

pub(crate) use gate::enter;

/// Keeps `fork` out while it lives.
#[cfg(not(loom))]
pub struct ForkGate(#[expect(dead_code, reason = "held")] std::sync::RwLockReadGuard<'static, ()>);

/// Keeps `fork` out of a short section that holds locks which a child would need. The section must not use the engine, nor enter another one.
#[cfg(not(loom))]
pub fn hold_off_fork() -> ForkGate {
    ForkGate(gate::enter())
}

#[cfg(not(loom))]
static IN_CHILD: std::sync::OnceLock<fn()> = std::sync::OnceLock::new();

/// Installs a function that runs in each forked child, after the engine is ready there. If there is one already, this call has no effect.
#[cfg(not(loom))]
pub fn at_fork_in_child(hook: fn()) {
    let _ = IN_CHILD.set(hook);
}

#[cfg(loom)]
pub use gate::set_gate;

/// Time limits of a fork. Loom has no time.
#[cfg(not(loom))]
mod timeouts {
    use std::time::{Duration, Instant};

    /// Time for operations that wait only for other threads' inline operations to become ready.
    const GRACE: Duration = Duration::from_millis(100);

    /// Time for threads that hold read guards to release them.
    const READ_GRACE: Duration = Duration::from_secs(2);

    pub(super) struct Timeout(Instant);

    impl Timeout {
        pub(super) fn begin() -> Timeout {
            Timeout(Instant::now())
        }

        pub(super) fn is_over(&self) -> bool {
            self.0.elapsed() >= GRACE
        }

        pub(super) fn is_over_for_readers(&self) -> bool {
            self.0.elapsed() >= READ_GRACE
        }
    }

    pub(super) fn pause() {
        std::thread::sleep(Duration::from_micros(100));
    }
}

#[cfg(loom)]
mod timeouts {
    pub(super) struct Timeout;

    impl Timeout {
        pub(super) fn begin() -> Timeout {
            Timeout
        }

        pub(super) fn is_over(&self) -> bool {
            false
        }

        pub(super) fn is_over_for_readers(&self) -> bool {
            false
        }
    }

    pub(super) fn pause() {
        loom::thread::yield_now();
    }
}

/// All locks that are held around `fork`, in the order of locking.
struct Locked<'s> {
    _gate: crate::sync::RwLockWriteGuard<'static, ()>,
    #[cfg_attr(loom, expect(dead_code, reason = "only a child changes it"))]
    progress: MutexGuard<'s, Progress>,
    #[cfg_attr(loom, expect(dead_code, reason = "only a child changes it"))]
    pool: MutexGuard<'s, PoolState>,
}

impl Shared {
    /// Waits until no operation is ready or running, except one that this thread is inside of, and locks everything.
    fn lock_for_fork(&self) -> Locked<'_> {
        let own = depth();
        let begin = Timeout::begin();
        loop {
            let start = Timeout::begin();
            let mut is_idle = || {
                let (is_quiet, is_empty) = self.idle_state(own);
                is_quiet && (is_empty || start.is_over())
            };
            let outcome = self.help_until(&mut is_idle, &mut || false);
            debug_assert_eq!(
                outcome,
                Outcome::Done,
                "a check that is always false does not interrupt"
            );
            let gate = gate::close();
            let progress = self.progress.lock();
            let pool = self.pool.lock();
            // No read guard begins from here on.
            let readers = self.readers.fetch_or(FORKING, Ordering::SeqCst) & !FORKING;
            let is_unread = readers <= num_guards() || begin.is_over_for_readers();
            if is_unread && self.pool.is_quiet(&pool, own) {
                return Locked {
                    _gate: gate,
                    progress,
                    pool,
                };
            }
            self.readers.fetch_and(!FORKING, Ordering::SeqCst);
            drop((pool, progress, gate));
            if !is_unread {
                pause();
            }
        }
    }

    /// After the fork, in the parent: it continues as before.
    fn unlock_after_fork(&self, locked: Option<Locked<'_>>) {
        self.readers.fetch_and(!FORKING, Ordering::SeqCst);
        drop(locked);
    }
}

#[cfg(loom)]
impl crate::engine::Engine {
    /// Runs `body` in the state of a fork, for tests.
    pub fn while_forking(&self, body: impl FnOnce()) {
        let locked = self.shared.lock_for_fork();
        body();
        self.shared.unlock_after_fork(Some(locked));
    }
}

#[cfg(not(loom))]
mod handlers {
    use std::cell::RefCell;

    use super::Locked;
    use crate::engine::Engine;
    use crate::pool::is_worker;
    use crate::read::num_guards;
    use crate::sync::Ordering;

    thread_local! {
        static LOCKED: RefCell<Option<Locked<'static>>> = const { RefCell::new(None) };
    }

    impl Engine {
        /// Before `fork`: waits until no operation is ready or running, except one that this thread is inside of,
        /// and takes the engine's locks. One of the two `after_fork` functions must follow on the same thread.
        ///
        /// An operation that needs something the forking thread holds (Python's interpreter lock, say) would never end: a binding must release that
        /// lock and wait for the engine before it forks.
        pub fn prepare_fork(&'static self) {
            let locked = self.shared.lock_for_fork();
            LOCKED.with(|slot| *slot.borrow_mut() = Some(locked));
        }

        /// After `fork` in the parent.
        pub fn after_fork_parent(&'static self) {
            let locked = LOCKED.with(|slot| slot.borrow_mut().take());
            self.shared.unlock_after_fork(locked);
        }

        /// After `fork` in the child: the pool has no workers and starts new ones when needed. The variables are unchanged.
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
            // The thread that was draining does not exist in the child.
            self.shared.is_draining.store(false, Ordering::Release);
        }
    }

    /// Registers these functions as fork handlers of [`crate::engine()`]'s engine.
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
            if let Some(hook) = super::IN_CHILD.get() {
                hook();
            }
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
