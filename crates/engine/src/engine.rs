//! The engine's public interface.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};

use crate::config::{Config, Mode};
use crate::failure::{Failure, WaitError};
use crate::inline::{Hold, Inline};
use crate::pool::{Pool, depth};
use crate::read::ReadGuard;
use crate::schedule::Op;
use crate::stats::{Counters, Stats, count_inline};
use crate::sync::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Condvar, Mutex, Ordering};
use crate::var::{Access, Acquirer, Var};
use crate::wait::Outcome;

/// Limit of the list of failures for `wait_all`. If none of so many was reported, later ones are seen only by readers of the variables that carry them.
const MAX_UNREPORTED: usize = 1024;

/// Operations with a higher estimated cost always run asynchronously, on a worker.
const MAX_PARALLEL_NS: u64 = 2_000_000;

/// An operation that divides its work waits for the pending operations up to this estimated cost.
const MAX_SETTLED_NS: u64 = 1_000_000;

/// Orders operations by the variables they access and runs them.
pub struct Engine {
    pub(crate) shared: Arc<Shared>,
}

/// State shared by workers, guards and callers.
pub(crate) struct Shared {
    pub(crate) me: Weak<Shared>,
    /// Number of this engine in the process, from 1.
    id: u64,
    mode: AtomicU8,
    inline_limit_ns: AtomicU64,
    pub(crate) max_bytes: usize,
    pub(crate) pool: Pool,
    pub(crate) progress: Mutex<Progress>,
    /// Waiters park here.
    pub(crate) progress_changed: Condvar,
    /// Unfinished operations, by generation; see `wait_all`.
    pub(crate) outstanding: [AtomicUsize; 2],
    pub(crate) generation: AtomicUsize,
    /// Whether a thread is draining in `wait_all`; only one does at a time.
    pub(crate) is_draining: AtomicBool,
    /// Bytes of unfinished operations.
    pub(crate) bytes: AtomicUsize,
    pub(crate) peak_bytes: std::sync::atomic::AtomicUsize,
    /// Estimated cost of unfinished operations.
    pub(crate) pending_ns: std::sync::atomic::AtomicU64,
    pub(crate) counters: Counters,
    /// Number of read guards that are held or waited for, and the bit [`crate::read::FORKING`].
    pub(crate) readers: AtomicUsize,
    /// Number of read guards that are waited for.
    pub(crate) waiting_readers: AtomicUsize,
}

/// State behind the lock on which waiters park.
#[derive(Default)]
pub(crate) struct Progress {
    pub(crate) waiting: usize,
    unreported: VecDeque<Failure>,
}

impl Shared {
    /// Counts one inline operation of this thread.
    #[inline]
    pub(crate) fn count_inline(&self) {
        count_inline(self.id, || self.pool.lock().inline.add_thread());
    }

    pub(crate) fn mode(&self) -> Mode {
        Mode::from_u8(self.mode.load(Ordering::Relaxed))
    }

    /// Whether operations of this estimated cost run on the calling thread, if their variables are free.
    #[inline]
    fn runs_inline(&self, cost_ns: u64) -> bool {
        match self.mode() {
            Mode::Adaptive => cost_ns <= self.inline_limit_ns.load(Ordering::Relaxed),
            Mode::Async => false,
            Mode::Sync => true,
        }
    }

    /// Whether an operation that divides its work runs on the calling thread with the help of an awake worker, although it costs more than the limit.
    /// Nothing is pending then, so leaving it to a worker would gain nothing. If little is pending, this thread first helps to finish that.
    #[inline]
    fn runs_parallel(&self, cost_ns: u64) -> bool {
        cost_ns <= MAX_PARALLEL_NS
            && self.mode() == Mode::Adaptive
            && self.pool.num_threads() > 1
            && match self.bytes.load(Ordering::Acquire) {
                0 => self.pool.is_awake(),
                _ => self.may_settle() && depth() == 0 && self.settle(),
            }
    }

    /// Whether the estimated pending work is below [`MAX_SETTLED_NS`], so that an operation that divides its work should wait for it.
    fn may_settle(&self) -> bool {
        (1..=MAX_SETTLED_NS).contains(&self.pending_ns.load(Ordering::Relaxed))
            && self.pool.num_threads() > 1
    }

    /// Adds a failure to the list that `wait_all` reports from. A failure is added once, even if several variables carry it.
    pub(crate) fn add_unreported(&self, failure: &Failure) {
        if !failure.mark_listed() {
            return;
        }
        let mut progress = self.progress.lock();
        let mut reported = VecDeque::new();
        if progress.unreported.len() >= MAX_UNREPORTED {
            let (old, left) = std::mem::take(&mut progress.unreported)
                .into_iter()
                .partition(Failure::is_reported);
            (reported, progress.unreported) = (old, left);
        }
        if progress.unreported.len() < MAX_UNREPORTED {
            progress.unreported.push_back(failure.clone());
        }
        // Dropping a failure may run arbitrary code.
        drop(progress);
        drop(reported);
    }

    /// The oldest failure that no wait has returned yet.
    pub(crate) fn take_unreported(&self) -> Option<Failure> {
        loop {
            // A separate statement, so that the lock is released before the failure is dropped, which may run arbitrary code.
            let oldest = self.progress.lock().unreported.pop_front();
            let failure = oldest?;
            if failure.report() {
                return Some(failure);
            }
        }
    }

    /// Whether no operation is ready or running, and whether none is unfinished; `own` operations that the caller is inside of do not count.
    pub(crate) fn idle_state(&self, own: usize) -> (bool, bool) {
        let is_quiet = self.pool.is_quiet(&self.pool.lock(), own);
        let unfinished: usize = self
            .outstanding
            .iter()
            .map(|count| count.load(Ordering::SeqCst))
            .sum();
        (is_quiet, unfinished == own)
    }
}

impl Engine {
    /// An engine with its own pool, for tests. The process's engine is [`engine`].
    pub fn new(config: Config) -> Engine {
        static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
        Engine {
            shared: Arc::new_cyclic(|me| Shared {
                me: Weak::clone(me),
                id: NEXT.fetch_add(1, Relaxed),
                mode: AtomicU8::new(config.mode as u8),
                inline_limit_ns: AtomicU64::new(config.inline_limit_ns),
                max_bytes: config.max_bytes_in_flight,
                pool: Pool::new(config.threads),
                progress: Mutex::new(Progress::default()),
                progress_changed: Condvar::new(),
                outstanding: [AtomicUsize::new(0), AtomicUsize::new(0)],
                generation: AtomicUsize::new(0),
                is_draining: AtomicBool::new(false),
                bytes: AtomicUsize::new(0),
                peak_bytes: std::sync::atomic::AtomicUsize::new(0),
                pending_ns: std::sync::atomic::AtomicU64::new(0),
                counters: Counters::default(),
                readers: AtomicUsize::new(0),
                waiting_readers: AtomicUsize::new(0),
            }),
        }
    }

    /// Fast path: acquires all variables for the calling thread, or none. Never waits, and allocates only for more than five variables.
    ///
    /// `None` means that the operation must be pushed: in mode `Async`, in mode `Adaptive` if `cost_ns` is above the limit, and in every mode if a
    /// variable is not free for its access, has waiters, or has pending device work that the access must follow. The same variable may appear several
    /// times, but not both among those that are read and those that are written.
    #[inline]
    pub fn try_acquire<'v>(
        &'v self,
        reads: &[&'v Var],
        writes: &[(&'v Var, Access)],
        cost_ns: u64,
    ) -> Option<Inline<'v>> {
        let shared = &*self.shared;
        match shared.runs_inline(cost_ns) {
            true => shared.acquire(reads, writes, Acquirer::Host),
            false => None,
        }
    }

    /// [`Engine::try_acquire`] for an operation that divides its work by [`Engine::run_tasks`]. Operations above the limit, up to 2 ms, are granted
    /// too, if nothing is pending and a worker is awake that would take half of the work. If little is pending, up to 1 ms by estimate, the caller
    /// first helps to finish that.
    #[inline]
    pub fn try_acquire_parallel<'v>(
        &'v self,
        reads: &[&'v Var],
        writes: &[(&'v Var, Access)],
        cost_ns: u64,
    ) -> Option<Inline<'v>> {
        let shared = &*self.shared;
        match shared.runs_inline(cost_ns) || shared.runs_parallel(cost_ns) {
            true => shared.acquire(reads, writes, Acquirer::Host),
            false => None,
        }
    }

    /// Holds variables for reading on the calling thread, after the writes pushed before are done. Helps meanwhile. All variables are granted
    /// together. A variable may appear several times, and the thread may hold it already.
    ///
    /// The host reads values this way. Nobody writes the variables while the guard lives; [`ReadGuard`] says what the thread must not do meanwhile.
    /// `check` as for [`Engine::wait_for`], except that a thread which holds another guard is not interrupted.
    ///
    /// # Errors
    /// `Failed` with the oldest failure of the variables; `Interrupted` if `check` returned true.
    ///
    /// # Panics
    /// If the thread holds one of the variables and has pushed a write to it since.
    pub fn read<'v>(
        &'v self,
        vars: &[&'v Var],
        check: &mut dyn FnMut() -> bool,
    ) -> Result<ReadGuard<'v>, WaitError> {
        self.shared.read(vars, check)
    }

    /// [`Engine::try_acquire`] of one variable, for short accesses that are not operations: reading or writing one element. It is not counted, and
    /// costs little more than its two atomic instructions. Also `None` if the variable carries a failure.
    #[inline]
    pub fn try_hold<'v>(&'v self, var: &'v Var, access: Access, cost_ns: u64) -> Option<Hold<'v>> {
        let shared = &*self.shared;
        match shared.runs_inline(cost_ns) {
            true => shared.hold(var, access),
            false => None,
        }
    }

    /// Optimistic (seqlock) read: returns the result of `read`, which copies a few bytes, without locking the variable. `None` if the variable is not
    /// free, carries a failure, or was written meanwhile. Like [`Engine::try_hold`] not counted as an operation.
    ///
    /// `read` may run concurrently with a write and see a mixture of old and new bytes, which is discarded. So it must only copy bits by volatile
    /// reads.
    #[inline]
    pub fn seqlock_read<T>(&self, var: &Var, read: impl FnOnce() -> T) -> Option<T> {
        match self.shared.runs_inline(1) {
            true => var.seqlock_read(read),
            false => None,
        }
    }

    /// As [`Engine::try_acquire`], for launching device work, in every mode. Pending device work does not matter: the caller makes its stream wait
    /// for `Var::events` and stores its own event by `Var::record_event`.
    pub fn try_acquire_launch<'v>(
        &'v self,
        reads: &[&'v Var],
        writes: &[(&'v Var, Access)],
    ) -> Option<Inline<'v>> {
        self.shared.acquire(reads, writes, Acquirer::Launch)
    }

    /// Enqueues an operation on all its variables at once. It runs on the pool when it holds them all.
    ///
    /// Returns at once, with two exceptions: in mode `Sync` it returns when the operation has run; and if the unfinished operations exceed the limit
    /// on bytes, it first helps until they do not. Inside an operation neither applies.
    pub fn push(&self, op: Op) {
        self.shared.push(op, Acquirer::Host, &mut || false);
    }

    /// As [`Engine::push`]; `check` can end its waits, as those of [`Engine::wait_for`].
    ///
    /// # Errors
    /// `Interrupted` if `check` returned true. The operation is pushed and runs nevertheless.
    pub fn push_checked(&self, op: Op, check: &mut dyn FnMut() -> bool) -> Result<(), WaitError> {
        match self.shared.push(op, Acquirer::Host, check) {
            Outcome::Done => Ok(()),
            Outcome::Interrupted => Err(WaitError::Interrupted),
        }
    }

    /// As [`Engine::push`], for an operation that launches device work and orders it by events itself.
    pub fn push_launch(&self, op: Op) {
        self.shared.push(op, Acquirer::Launch, &mut || false);
    }

    /// Waits for the operations pushed before that `access` must follow: all writes for a reader, also the reads for a writer. Helps meanwhile.
    /// `check` is called about every 50 ms; if it returns true the wait ends.
    ///
    /// # Errors
    /// `Failed` with the variable's failure, at every wait until an `Overwrite` clears it; `Interrupted` if `check` returned true.
    ///
    /// # Panics
    /// If a read guard of this thread prevents `access` from ever being granted.
    pub fn wait_for(
        &self,
        var: &Var,
        access: Access,
        check: &mut dyn FnMut() -> bool,
    ) -> Result<(), WaitError> {
        self.shared.wait_for(var, access, check)
    }

    /// Waits for every operation pushed before. Helps meanwhile. `check` is called about every 50 ms; if it returns true the wait ends.
    ///
    /// # Errors
    /// `Failed` with the oldest failure that no wait has returned yet; `Interrupted` if `check` returned true.
    ///
    /// # Panics
    /// Inside an operation, which would wait for itself.
    pub fn wait_all(&self, check: &mut dyn FnMut() -> bool) -> Result<(), WaitError> {
        assert!(
            depth() == 0,
            "wait_all inside an operation would wait for that operation"
        );
        self.shared.wait_all(check)
    }

    /// As [`Engine::wait_all`], but leaves failures to later waits. Called before a `fork`. Inside an operation it returns at once.
    pub fn drain(&self) {
        if depth() == 0 {
            self.shared.drain(&mut || false);
        }
    }

    /// When operations run on the calling thread.
    pub fn mode(&self) -> Mode {
        self.shared.mode()
    }

    /// Changes the mode for operations issued from now on; those pushed before keep their order.
    pub fn set_mode(&self, mode: Mode) {
        self.shared.mode.store(mode as u8, Ordering::Relaxed);
    }

    /// Estimated cost above which an operation is pushed in adaptive mode.
    pub fn inline_limit_ns(&self) -> u64 {
        self.shared.inline_limit_ns.load(Ordering::Relaxed)
    }

    /// Changes [`Engine::inline_limit_ns`].
    pub fn set_inline_limit_ns(&self, limit: u64) {
        self.shared.inline_limit_ns.store(limit, Ordering::Relaxed);
    }

    /// Number of threads that work at the same time: the workers, or a caller of `run_tasks` and all workers but one.
    pub fn num_threads(&self) -> usize {
        self.shared.pool.num_threads()
    }

    /// Changes [`Engine::num_threads`]. Workers start when needed and end when there are too many. 0 counts as 1.
    pub fn set_num_threads(&self, threads: usize) {
        self.shared
            .pool
            .set_num_threads(threads.clamp(1, crate::threads::MAX));
    }

    /// Whether the next operation may wait for others, or help with them, before its call returns: either the pending bytes exceed the limit, or so
    /// little is pending that an operation that divides its work finishes it first.
    #[inline]
    pub fn may_wait(&self) -> bool {
        match self.shared.bytes.load(Relaxed) {
            0 => false,
            bytes => bytes > self.shared.max_bytes || self.shared.may_settle(),
        }
    }

    /// Counters of the engine. They are read one after the other; other threads may change them meanwhile.
    pub fn stats(&self) -> Stats {
        let shared = &*self.shared;
        let (inline, workers) = {
            let state = shared.pool.lock();
            (state.inline.total(), state.num_workers())
        };
        Stats {
            pushed: shared.counters.pushed.load(Relaxed),
            inline,
            queued: shared.counters.queued.load(Relaxed),
            failed: shared.counters.failed.load(Relaxed),
            skipped: shared.counters.skipped.load(Relaxed),
            in_flight: shared
                .outstanding
                .iter()
                .map(|count| count.load(Ordering::SeqCst))
                .sum(),
            bytes_in_flight: shared.bytes.load(Ordering::Acquire),
            peak_bytes_in_flight: shared.peak_bytes.load(Relaxed),
            workers,
        }
    }

    /// Calls `task` with 0 to `n - 1`, on this thread and on idle workers, and returns when all calls have ended.
    ///
    /// May be called anywhere, also inside a task. Which thread runs which index is not determined.
    ///
    /// # Panics
    /// With the panic of the lowest index whose task panicked, after all tasks have ended.
    pub fn run_tasks(&self, n: usize, task: &(dyn Fn(usize) + Sync)) {
        self.shared.run_tasks(n, task);
    }
}

impl Drop for Engine {
    /// Waits for pushed operations and ends the workers.
    fn drop(&mut self) {
        let shared = &*self.shared;
        let mut done = || shared.idle_state(0).1;
        shared.help_until(&mut done, &mut || false);
        shared.pool.set_num_threads(0);
    }
}

/// The process's engine, created at the first call.
#[cfg(not(loom))]
pub fn engine() -> &'static Engine {
    static ENGINE: std::sync::OnceLock<Engine> = std::sync::OnceLock::new();
    ENGINE.get_or_init(|| {
        let engine = Engine::new(Config::default());
        crate::fork::register();
        engine
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn with_threads(threads: usize) -> Engine {
        Engine::new(Config {
            threads,
            ..Config::default()
        })
    }

    #[test]
    fn parallel_work_runs_on_the_caller_if_a_thread_is_awake() {
        let engine = with_threads(2);
        let var = Var::new();
        let writes = [(&var, Access::Write)];
        let limit = engine.inline_limit_ns();
        let is_granted = |cost_ns| engine.try_acquire_parallel(&[], &writes, cost_ns).is_some();
        assert!(is_granted(limit) && !is_granted(limit + 1));
        // Acts as a worker between two jobs. The engine has started no worker, so no other thread looks for a job.
        engine.shared.pool.begin_looking();
        assert!(is_granted(limit + 1) && is_granted(MAX_PARALLEL_NS));
        assert!(!is_granted(MAX_PARALLEL_NS + 1));
        assert!(engine.try_acquire(&[], &writes, limit + 1).is_none());
        engine.set_mode(Mode::Async);
        assert!(!is_granted(limit + 1));
        engine.set_mode(Mode::Adaptive);
        engine.set_num_threads(1);
        assert!(!is_granted(limit + 1), "there is nobody else");
        engine.set_num_threads(2);
        engine.shared.pool.end_looking();
        assert!(!is_granted(limit + 1));
    }
}
