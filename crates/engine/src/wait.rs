//! Waits for a variable, for all operations, or for the bytes in flight to fall below the limit. A waiter runs ready operations before it parks. It
//! leaves long ones to workers, so that it notices an interrupt.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::Shared;
use crate::failure::WaitError;
use crate::fork;
use crate::pool::{Help, Next};
use crate::read;
use crate::schedule::Ready;
use crate::spin::Ended;
use crate::sync::{AtomicUsize, Ordering};
use crate::var::{Access, Var};

/// Time between two calls of a waiter's `check`.
const CHECK_EVERY: Duration = Duration::from_millis(50);

/// A thread in the queues of variables that waits until it reaches the head of all of them.
pub(crate) struct Waiter {
    /// Number of missing grants.
    missing: AtomicUsize,
    is_reader: bool,
}

impl Waiter {
    pub(crate) fn new(missing: usize) -> Waiter {
        Waiter {
            missing: AtomicUsize::new(missing),
            is_reader: false,
        }
    }

    /// A waiter that holds the variables granted to it. It counts in `Shared::waiting_readers` until it has all.
    pub(crate) fn reader(missing: usize) -> Waiter {
        Waiter {
            is_reader: true,
            ..Waiter::new(missing)
        }
    }

    pub(crate) fn is_granted(&self) -> bool {
        self.missing.load(Ordering::Acquire) == 0
    }
}

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    Interrupted,
}

#[cfg(not(loom))]
thread_local! {
    /// When this thread's waits made their last check.
    static LAST_CHECK: std::cell::Cell<Option<std::time::Instant>> = const { std::cell::Cell::new(None) };
}

/// Whether it is time for this thread's next check. The time runs on from one wait to the next: a call of many operators may wait often and never for
/// long. Loom has no time, so a check never becomes due there.
fn is_check_due() -> bool {
    #[cfg(not(loom))]
    return LAST_CHECK
        .get()
        .is_none_or(|last| last.elapsed() >= CHECK_EVERY);
    #[cfg(loom)]
    false
}

/// As [`is_check_due`]; the caller must make the check.
fn takes_check() -> bool {
    let is_due = is_check_due();
    #[cfg(not(loom))]
    if is_due {
        LAST_CHECK.set(Some(std::time::Instant::now()));
    }
    is_due
}

impl Shared {
    /// Gives a waiter `count` of the grants it waits for.
    pub(crate) fn grant(&self, waiter: &Waiter, count: usize) {
        let is_last = waiter.missing.fetch_sub(count, Ordering::AcqRel) == count;
        if is_last && waiter.is_reader {
            self.waiting_readers.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Runs jobs of the pool until `done`. If there are none, spins for a moment, then parks. Before it parks, `done` is called under the `progress`
    /// lock.
    ///
    /// Threads that change a state that `done` may read wake parked waiters, see [`Shared::notify_waiters`]. Waiters also check every 50 ms for
    /// conditions that nobody announces.
    pub(crate) fn help_until(
        &self,
        done: &mut dyn FnMut() -> bool,
        check: &mut dyn FnMut() -> bool,
    ) -> Outcome {
        if done() {
            return Outcome::Done;
        }
        // `check` may need a lock whose holder waits for a variable that this thread holds.
        let may_check = read::num_guards() == 0;
        let mut may_spin = true;
        loop {
            if may_check && takes_check() && check() {
                return Outcome::Interrupted;
            }
            let mut help = self.help_once();
            if help == Help::Idle && may_spin {
                match self.spin_for_job(done) {
                    // A publisher may expect this thread to take a job.
                    Ended::JobsPublished => help = self.help_once(),
                    Ended::Done => return Outcome::Done,
                    Ended::Idle | Ended::Preempted => may_spin = false,
                }
            }
            if help == Help::Ran {
                may_spin = true;
                if done() {
                    return Outcome::Done;
                }
            } else if help == Help::Left || !may_spin {
                let mut progress = self.progress.lock();
                progress.waiting += 1;
                let is_done = loop {
                    if done() {
                        break true;
                    }
                    // Without workers no other thread would run a job that has become ready meanwhile.
                    if self.pool.needs_helpers() {
                        break false;
                    }
                    let (guard, timed_out) = self.progress_changed.wait_for(progress, CHECK_EVERY);
                    progress = guard;
                    // If operations end more often than every 50 ms, the wait never times out.
                    if timed_out || is_check_due() {
                        break done();
                    }
                };
                progress.waiting -= 1;
                drop(progress);
                if is_done {
                    return Outcome::Done;
                }
            }
        }
    }

    /// Wakes parked waiters after a change that they may wait for.
    pub(crate) fn notify_waiters(&self) {
        if self.progress.lock().waiting > 0 {
            self.progress_changed.notify_all();
        }
    }

    pub(crate) fn wait_for(
        &self,
        var: &Var,
        access: Access,
        check: &mut dyn FnMut() -> bool,
    ) -> Result<(), WaitError> {
        assert!(
            !access.is_write() || !read::is_held(var),
            "a thread waits to write a variable that its own read guard holds"
        );
        // A thread that holds the variable needs no place in the queue.
        let has_turn = !access.is_write() && read::may_read_again(var);
        if !has_turn && !var.is_grantable(access) {
            let waiter = Arc::new(Waiter::new(1));
            let is_granted = {
                let _gate = fork::enter();
                var.enqueue_waiter(&waiter, access)
            };
            let mut done = || waiter.is_granted();
            if !is_granted && self.help_until(&mut done, check) == Outcome::Interrupted {
                let _gate = fork::enter();
                let mut ready = Ready::default();
                var.remove_waiter(&waiter, &mut ready);
                self.schedule(ready, Next::Other);
                return Err(WaitError::Interrupted);
            }
        }
        if !var.wait_events(access, check) {
            return Err(WaitError::Interrupted);
        }
        match var.failure() {
            None => Ok(()),
            Some(failure) => {
                failure.mark_reported();
                Err(WaitError::Failed(failure))
            }
        }
    }

    /// Waits for every operation pushed before, however many are pushed meanwhile.
    ///
    /// Operations count in one of two generations. A waiter waits until the older one is empty, makes the current one the older, and waits until that
    /// is empty. One waiter at a time does so; the others wait until it is done.
    pub(crate) fn drain(&self, check: &mut dyn FnMut() -> bool) -> Outcome {
        enum Stage {
            Turn,
            Older,
            Current(usize),
        }
        let mut stage = Stage::Turn;
        let mut done = || loop {
            match stage {
                Stage::Turn => {
                    let turn = self.is_draining.compare_exchange(
                        false,
                        true,
                        Ordering::AcqRel,
                        Ordering::Acquire,
                    );
                    if turn.is_err() {
                        return false;
                    }
                    stage = Stage::Older;
                }
                Stage::Older => {
                    let current = self.generation.load(Ordering::SeqCst);
                    if self.outstanding[1 - current].load(Ordering::SeqCst) != 0 {
                        return false;
                    }
                    self.generation.store(1 - current, Ordering::SeqCst);
                    stage = Stage::Current(current);
                }
                Stage::Current(generation) => {
                    return self.outstanding[generation].load(Ordering::SeqCst) == 0;
                }
            }
        };
        let outcome = self.help_until(&mut done, check);
        if !matches!(stage, Stage::Turn) {
            self.is_draining.swap(false, Ordering::AcqRel);
            self.notify_waiters();
        }
        outcome
    }

    pub(crate) fn wait_all(&self, check: &mut dyn FnMut() -> bool) -> Result<(), WaitError> {
        if self.drain(check) == Outcome::Interrupted {
            return Err(WaitError::Interrupted);
        }
        match self.take_unreported() {
            None => Ok(()),
            Some(failure) => Err(WaitError::Failed(failure)),
        }
    }
}
