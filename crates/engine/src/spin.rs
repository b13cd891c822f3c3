//! Threads that stay awake for a moment after their last work, since waking one takes longer than many operations.
//!
//! A worker without a job, and a thread that waits for one to be done, look for jobs for at most 50 us before they sleep.
//! A processor is only used for that while nobody else wants it: fewer threads spin than there are workers, and a thread
//! that the system has interrupted for another one makes all of them sleep for the next millisecond.

use crate::engine::Shared;
use crate::pool::{Called, Help, Pool};
use crate::sync::Ordering;

/// How a spin ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Jobs became available.
    Called,
    /// The caller's condition came true.
    Done,
    /// Its time was over.
    Idle,
    /// Another thread wanted the processor.
    Preempted,
}

/// The threads that spin, and what those that look for jobs are counted for; under the pool's lock.
#[derive(Default)]
pub(crate) struct Spins {
    spinning: usize,
    /// Available jobs that looking threads will see, and for which no other thread was woken.
    claimed: usize,
    /// Until then no spin begins.
    #[cfg(not(loom))]
    resume: Option<std::time::Instant>,
}

impl Spins {
    /// Counts threads for at most `count` jobs, of `looking` ones; returns for how many.
    pub(crate) fn claim(&mut self, count: usize, looking: usize) -> usize {
        let claimed = count.min(looking.saturating_sub(self.claimed));
        self.claimed += claimed;
        claimed
    }

    /// Some thread has looked for a job: it took one, or there is none.
    pub(crate) fn look(&mut self, is_taken: bool) {
        self.claimed = if is_taken {
            self.claimed.saturating_sub(1)
        } else {
            0
        };
    }

    /// A looking thread goes away without a look.
    pub(crate) fn leave(&mut self) {
        self.claimed = self.claimed.saturating_sub(1);
    }

    /// Counts one spinning thread more, if there may be one. With `threads` workers one processor is left to who calls the
    /// engine.
    pub(crate) fn begin(&mut self, threads: usize) -> bool {
        if self.spinning + 1 >= threads {
            return false;
        }
        #[cfg(not(loom))]
        if let Some(resume) = self.resume {
            if std::time::Instant::now() < resume {
                return false;
            }
            self.resume = None;
        }
        self.spinning += 1;
        true
    }

    /// Counts one spinning thread less.
    pub(crate) fn end(&mut self, ended: Ended) {
        self.spinning -= 1;
        #[cfg(not(loom))]
        if ended == Ended::Preempted {
            self.resume = Some(std::time::Instant::now() + clock::REST);
        }
        #[cfg(loom)]
        let _ = ended;
    }

    /// After `fork` in the child: no other thread is there.
    #[cfg(not(loom))]
    pub(crate) fn clear(&mut self) {
        self.spinning = 0;
        self.claimed = 0;
    }
}

impl Pool {
    /// Looks for jobs, or for `done`, until either is there or the time is over.
    pub(crate) fn spin(&self, published: usize, done: &mut dyn FnMut() -> bool) -> Ended {
        let mut ended = Ended::Idle;
        let mut look = || {
            if self.published.load(Ordering::Acquire) != published {
                ended = Ended::Called;
            } else if done() {
                ended = Ended::Done;
            }
            ended != Ended::Idle
        };
        match spin(&mut look) {
            Some(Ended::Preempted) if ended == Ended::Idle => Ended::Preempted,
            _ => ended,
        }
    }
}

impl Shared {
    /// Stays awake for a job or for `done`, for a thread that waits for `done` and helps meanwhile.
    pub(crate) fn spin_for_job(&self, done: &mut dyn FnMut() -> bool) -> Ended {
        let published = {
            let mut state = self.pool.lock();
            if state.has_jobs() {
                return Ended::Called;
            }
            if !state.begin_spin() {
                return Ended::Idle;
            }
            self.pool.begin_looking();
            self.pool.published.load(Ordering::Relaxed)
        };
        let ended = self.pool.spin(published, done);
        let mut state = self.pool.lock();
        state.spins.end(ended);
        state.spins.leave();
        self.pool.end_looking();
        match (ended, state.has_jobs()) {
            // Somebody may have counted on this thread, which goes away.
            (Ended::Done, true) => {
                let Called { woken, hired } = self.pool.call(&mut state, 1);
                drop(state);
                self.pool.notify(woken);
                self.start_workers(hired);
                Ended::Done
            }
            (Ended::Done, false) => Ended::Done,
            (_, true) => Ended::Called,
            (ended, false) => ended,
        }
    }
}

impl Shared {
    /// Helps until nothing is in flight; false if that takes longer than expected.
    pub(crate) fn settle(&self) -> bool {
        let mut rounds = 0;
        loop {
            let mut done = || self.bytes.load(Ordering::Acquire) == 0;
            if done() {
                return true;
            }
            rounds += 1;
            if rounds > MAX_ROUNDS {
                return false;
            }
            let published = self.pool.published.load(Ordering::Acquire);
            match self.help_once() {
                Help::Ran => continue,
                Help::Left => return false,
                Help::Idle => {}
            }
            let ended = match self.spin_for_job(&mut done) {
                // Enough others look for jobs: this thread waits all the same.
                Ended::Idle => self.pool.spin(published, &mut done),
                ended => ended,
            };
            match ended {
                // Somebody may have counted on this thread, also in its last round.
                Ended::Called => {
                    self.help_once();
                }
                Ended::Done => return true,
                Ended::Idle | Ended::Preempted => return false,
            }
        }
    }
}

/// Jobs that a thread helps with, or waits for, before it gives up.
const MAX_ROUNDS: usize = 16;

/// What a worker knows about whether others want its processor.
pub(crate) struct Competition {
    #[cfg(all(target_os = "linux", not(loom)))]
    switches: i64,
}

impl Competition {
    /// Nothing yet: the thread has begun, or slept.
    pub(crate) fn new() -> Competition {
        Competition {
            #[cfg(all(target_os = "linux", not(loom)))]
            switches: clock::switches(),
        }
    }

    /// Whether the system has taken the processor from this thread for another one since the last look. Always false where
    /// the system does not tell.
    pub(crate) fn look(&mut self) -> bool {
        #[cfg(all(target_os = "linux", not(loom)))]
        return std::mem::replace(&mut self.switches, clock::switches()) != self.switches;
        #[cfg(not(all(target_os = "linux", not(loom))))]
        false
    }
}

/// Waits for something that is about to happen; false if it took too long.
pub(crate) fn until(done: &mut dyn FnMut() -> bool) -> bool {
    spin(done).is_none()
}

/// Calls `done` again and again; `None` when it has said yes.
#[cfg(not(loom))]
fn spin(done: &mut dyn FnMut() -> bool) -> Option<Ended> {
    if done() {
        return None;
    }
    let begin = std::time::Instant::now();
    let mut last = begin;
    loop {
        for _ in 0..clock::PAUSES {
            std::hint::spin_loop();
            if done() {
                return None;
            }
        }
        let now = std::time::Instant::now();
        if now - last > clock::GAP {
            return Some(Ended::Preempted);
        }
        if now - begin > clock::LIMIT {
            return Some(Ended::Idle);
        }
        last = now;
    }
}

/// Loom knows no time: one look more, after others had their turn.
#[cfg(loom)]
fn spin(done: &mut dyn FnMut() -> bool) -> Option<Ended> {
    crate::sync::thread::yield_now();
    if done() { None } else { Some(Ended::Idle) }
}

#[cfg(not(loom))]
mod clock {
    use std::time::Duration;

    /// How long a thread stays awake.
    pub(super) const LIMIT: Duration = Duration::from_micros(50);

    /// Looks between two looks at the clock, about a third of a microsecond.
    pub(super) const PAUSES: usize = 8;

    /// Somebody else had the processor if two looks at the clock are farther apart.
    pub(super) const GAP: Duration = Duration::from_micros(50);

    /// How long all threads sleep when idle, after one of them was interrupted.
    pub(super) const REST: Duration = Duration::from_millis(1);

    /// How often the system has taken the processor from this thread for another one.
    #[cfg(target_os = "linux")]
    pub(super) fn switches() -> i64 {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the place is large enough for what the call writes.
        unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
        // SAFETY: all bits zero is a value, and so is what the call has written.
        unsafe { usage.assume_init() }.ru_nivcsw
    }
}
