//! Spinning: threads stay awake for a moment after their last work, because waking a thread takes longer than many operations.
//!
//! A worker without a job, and a thread that waits for a job to be done, look for jobs for at most 50 us before they sleep. They must not take a
//! processor from others: fewer threads spin than there are workers, and when the system preempts a spinning thread, all of them sleep for the next
//! millisecond.

use crate::engine::Shared;
use crate::pool::{Help, Pool, Recruited};
use crate::sync::Ordering;

/// How a spin ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Jobs became available.
    JobsPublished,
    /// The caller's condition became true.
    Done,
    /// The time limit was reached.
    Idle,
    /// The thread was preempted.
    Preempted,
}

/// The spinning threads, and the jobs that threads which look for one are expected to take. Accessed under the pool's lock.
#[derive(Default)]
pub(crate) struct Spins {
    spinning: usize,
    /// Number of available jobs that looking threads will take, so that no other thread was woken for them.
    claimed: usize,
    /// No spin begins before this time.
    #[cfg(not(loom))]
    resume: Option<std::time::Instant>,
}

impl Spins {
    /// Claims threads for at most `count` jobs, out of `looking` threads that look for a job and of which some are claimed already. Returns the number
    /// of jobs that they will take.
    pub(crate) fn claim(&mut self, count: usize, looking: usize) -> usize {
        let claimed = count.min(looking.saturating_sub(self.claimed));
        self.claimed += claimed;
        claimed
    }

    /// A thread has looked for a job: it took one, or there is none.
    pub(crate) fn end_look(&mut self, is_taken: bool) {
        self.claimed = if is_taken {
            self.claimed.saturating_sub(1)
        } else {
            0
        };
    }

    /// A thread that had announced to look for a job stops without having looked.
    pub(crate) fn leave(&mut self) {
        self.claimed = self.claimed.saturating_sub(1);
    }

    /// Counts one more spinning thread, if that is allowed: with `threads` workers one processor is left to the caller of the engine.
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

    /// After `fork` in the child: no other thread exists.
    #[cfg(not(loom))]
    pub(crate) fn clear(&mut self) {
        self.spinning = 0;
        self.claimed = 0;
    }
}

impl Pool {
    /// Spins until jobs are published, `done` returns true, or the time limit is reached.
    pub(crate) fn spin(&self, published: usize, done: &mut dyn FnMut() -> bool) -> Ended {
        let mut ended = Ended::Idle;
        let mut look = || {
            if self.published.load(Ordering::Acquire) != published {
                ended = Ended::JobsPublished;
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
    /// Spins for a job or for `done`. For a thread that waits for `done` and helps meanwhile.
    pub(crate) fn spin_for_job(&self, done: &mut dyn FnMut() -> bool) -> Ended {
        let published = {
            let mut state = self.pool.lock();
            if state.has_jobs() {
                return Ended::JobsPublished;
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
            // A publisher may expect this thread to take a job, but it stops looking.
            (Ended::Done, true) => {
                let Recruited { woken, hired } = self.pool.recruit(&mut state, 1);
                drop(state);
                self.pool.notify(woken);
                self.start_workers(hired);
                Ended::Done
            }
            (Ended::Done, false) => Ended::Done,
            (_, true) => Ended::JobsPublished,
            (ended, false) => ended,
        }
    }
}

impl Shared {
    /// Helps until nothing is in flight. Returns false if that takes longer than expected.
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
                // Enough other threads look for jobs; this thread spins nevertheless.
                Ended::Idle => self.pool.spin(published, &mut done),
                ended => ended,
            };
            match ended {
                // A publisher may expect this thread to take a job, also in its last round.
                Ended::JobsPublished => {
                    self.help_once();
                }
                Ended::Done => return true,
                Ended::Idle | Ended::Preempted => return false,
            }
        }
    }
}

/// Number of jobs that a thread helps with, or waits for, before it gives up.
const MAX_ROUNDS: usize = 16;

/// Detects whether the system preempts this thread.
pub(crate) struct PreemptionDetector {
    #[cfg(all(target_os = "linux", not(loom)))]
    num_preemptions: i64,
}

impl PreemptionDetector {
    /// The initial state, also after a sleep.
    pub(crate) fn new() -> PreemptionDetector {
        PreemptionDetector {
            #[cfg(all(target_os = "linux", not(loom)))]
            num_preemptions: clock::num_preemptions(),
        }
    }

    /// Whether the system has preempted this thread since the last call. Always false on systems that do not report it.
    pub(crate) fn was_preempted(&mut self) -> bool {
        #[cfg(all(target_os = "linux", not(loom)))]
        return std::mem::replace(&mut self.num_preemptions, clock::num_preemptions())
            != self.num_preemptions;
        #[cfg(not(all(target_os = "linux", not(loom))))]
        false
    }
}

/// Spins until `done` returns true. Returns false if the time limit is reached.
pub(crate) fn until(done: &mut dyn FnMut() -> bool) -> bool {
    spin(done).is_none()
}

/// Calls `done` repeatedly; `None` when it has returned true.
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

/// Loom has no time: one more call, after other threads have run.
#[cfg(loom)]
fn spin(done: &mut dyn FnMut() -> bool) -> Option<Ended> {
    crate::sync::thread::yield_now();
    if done() { None } else { Some(Ended::Idle) }
}

#[cfg(not(loom))]
mod clock {
    use std::time::Duration;

    /// Longest time that a thread stays awake.
    pub(super) const LIMIT: Duration = Duration::from_micros(50);

    /// Iterations between two reads of the clock, about a third of a microsecond.
    pub(super) const PAUSES: usize = 8;

    /// If two reads of the clock are farther apart, the thread was preempted.
    pub(super) const GAP: Duration = Duration::from_micros(50);

    /// How long no thread spins after one of them was preempted.
    pub(super) const REST: Duration = Duration::from_millis(1);

    /// How often the system has preempted this thread.
    #[cfg(target_os = "linux")]
    pub(super) fn num_preemptions() -> i64 {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the buffer has the size of what the call writes.
        unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
        // SAFETY: all bits zero is a value, and so is what the call has written.
        unsafe { usage.assume_init() }.ru_nivcsw
    }
}
