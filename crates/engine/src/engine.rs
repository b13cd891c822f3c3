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
use crate::var::{Access, Place, Var};
use crate::wait::Outcome;

/// Failures that wait to be reported by `wait_all`; later ones are only seen by readers of what they poisoned.
const MAX_UNREPORTED: usize = 1024;

/// Operations that cost more than this always run asynchronously, on a worker.
const MAX_PARALLEL_NS: u64 = 2_000_000;

/// Estimated cost of what is in flight up to which an operation that divides its work waits for it.
const MAX_SETTLED_NS: u64 = 1_000_000;

/// Orders operations by the variables they access and runs them.
pub struct Engine {
    pub(crate) shared: Arc<Shared>,
}

/// State that workers, guards and callers share.
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
    /// Some thread is in its turn of `wait_all`.
    pub(crate) is_draining: AtomicBool,
    /// Bytes of unfinished operations.
    pub(crate) bytes: AtomicUsize,
    pub(crate) peak_bytes: std::sync::atomic::AtomicUsize,
    /// Estimated cost of unfinished operations.
    pub(crate) pending_ns: std::sync::atomic::AtomicU64,
    pub(crate) counters: Counters,
    /// Read guards that are held or waited for, and [`crate::read::FORKING`].
    pub(crate) readers: AtomicUsize,
    /// Those of them that are waited for.
    pub(crate) waiting_readers: AtomicUsize,
}

/// State guarded by the lock on which waiters park.
#[derive(Default)]
pub(crate) struct Progress {
    pub(crate) waiting: usize,
    unreported: VecDeque<Failure>,
}

impl Shared {
    /// Counts an inline operation of this thread.
    #[inline]
    pub(crate) fn count_inline(&self) {
        count_inline(self.id, || self.pool.lock().inline.add_thread());
    }

    pub(crate) fn mode(&self) -> Mode {
        Mode::from_u8(self.mode.load(Ordering::Relaxed))
    }

    /// Whether operations of this estimated cost run on the calling thread if their variables are free.
    #[inline]
    fn runs_inline(&self, cost_ns: u64) -> bool {
        match self.mode() {
            Mode::Adaptive => cost_ns <= self.inline_limit_ns.load(Ordering::Relaxed),
            Mode::Async => false,
            Mode::Sync => true,
        }
    }

    /// Whether an operation that divides its work runs on the calling thread and on one that is awake, though it costs more
    /// than the limit. Nothing is in flight then, so nothing is gained by another thread taking all of it; little that is in
    /// flight is finished first, with the help of this thread.
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

    /// Whether so little is in flight that an operation that divides its work waits for it.
    fn may_settle(&self) -> bool {
        (1..=MAX_SETTLED_NS).contains(&self.pending_ns.load(Ordering::Relaxed))
            && self.pool.num_threads() > 1
    }

    /// Remembers a failure for `wait_all`, once however far it spreads.
    pub(crate) fn list(&self, failure: &Failure) {
        if failure.list() {
            let mut progress = self.progress.lock();
            if progress.unreported.len() < MAX_UNREPORTED {
                progress.unreported.push_back(failure.clone());
            }
        }
    }

    /// The oldest failure that no wait has returned yet.
    pub(crate) fn take_unreported(&self) -> Option<Failure> {
        loop {
            // In a statement of its own: dropping a failure is foreign code and must not run under the lock.
            let oldest = self.progress.lock().unreported.pop_front();
            let failure = oldest?;
            if failure.report() {
                return Some(failure);
            }
        }
    }

    /// Whether nothing is ready or running, and whether nothing is unfinished; `own` operations of the caller excepted.
    pub(crate) fn quiet(&self, own: usize) -> (bool, bool) {
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
    /// An engine with its own pool, for tests; the process's engine is [`engine`].
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

    /// Fast path: grants all variables to the calling thread, or nothing. Never waits, and allocates only above five variables.
    ///
    /// `None` means: push it. That is the answer in mode `Async`, in mode `Adaptive` if `cost_ns` is above the limit, and
    /// always if a variable is not free for its access, is waited for by somebody or has device work in flight that the
    /// access has to come after. The same variable may appear several times; one that is written is not also read then.
    #[inline]
    pub fn try_acquire<'v>(
        &'v self,
        reads: &[&'v Var],
        writes: &[(&'v Var, Access)],
        cost_ns: u64,
    ) -> Option<Inline<'v>> {
        let shared = &*self.shared;
        match shared.runs_inline(cost_ns) {
            true => shared.acquire(reads, writes, Place::Host),
            false => None,
        }
    }

    /// [`Engine::try_acquire`] for an operation that divides its work by [`Engine::run_tasks`]: also one above the limit, up to
    /// 2 ms, is granted if nothing is in flight and a worker is awake that would take half of it. If little is in flight, up to
    /// 1 ms by estimate, the caller helps with that first.
    #[inline]
    pub fn try_acquire_parallel<'v>(
        &'v self,
        reads: &[&'v Var],
        writes: &[(&'v Var, Access)],
        cost_ns: u64,
    ) -> Option<Inline<'v>> {
        let shared = &*self.shared;
        match shared.runs_inline(cost_ns) || shared.runs_parallel(cost_ns) {
            true => shared.acquire(reads, writes, Place::Host),
            false => None,
        }
    }

    /// Holds variables for reading on the calling thread, once the writes pushed before are done; helps meanwhile. All
    /// variables are granted together. A variable may appear several times, and may be held by the thread already.
    ///
    /// This is how the host looks at values. While the guard lives nobody writes the variables; what the thread must not do
    /// meanwhile is said at [`ReadGuard`]. `check` as for [`Engine::wait_for`], except that a thread which holds another
    /// guard is not interrupted.
    ///
    /// # Errors
    /// `Failed` with the oldest failure of the variables; `Interrupted` if `check` said so.
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

    /// [`Engine::try_acquire`] of one variable for what is no operation of its own: a look at an element, or a write of one. It is not counted,
    /// and costs little more than the two atomic instructions. `None` also if the variable carries a failure.
    #[inline]
    pub fn try_hold<'v>(&'v self, var: &'v Var, access: Access, cost_ns: u64) -> Option<Hold<'v>> {
        let shared = &*self.shared;
        match shared.runs_inline(cost_ns) {
            true => shared.hold(var, access),
            false => None,
        }
    }

    /// Optimistic (seqlock) read: the result of `read`, which copies a few bytes, without locking the variable. `None` if the variable
    /// is not free, carries a failure, or was written meanwhile. For what is no operation of its own, as [`Engine::try_hold`].
    ///
    /// `read` may run beside a write, and then see a mixture of old and new, which is thrown away: it does nothing but copy bits by volatile reads.
    #[inline]
    pub fn seqlock_read<T>(&self, var: &Var, read: impl FnOnce() -> T) -> Option<T> {
        match self.shared.runs_inline(1) {
            true => var.seqlock_read(read),
            false => None,
        }
    }

    /// Like [`Engine::try_acquire`] for launching device work, in every mode: device work in flight does not matter, since
    /// the caller orders its stream behind `Var::events` and leaves its own event by `Var::record_event`.
    pub fn try_acquire_launch<'v>(
        &'v self,
        reads: &[&'v Var],
        writes: &[(&'v Var, Access)],
    ) -> Option<Inline<'v>> {
        self.shared.acquire(reads, writes, Place::Launch)
    }

    /// Enqueues an operation on all its variables at once; it runs on the pool when it holds them all.
    ///
    /// Returns at once, except that in mode `Sync` it returns when the operation has run, and that over the bound on bytes
    /// in flight before it, it helps until they are under it. Neither holds inside an operation.
    pub fn push(&self, op: Op) {
        self.shared.push(op, Place::Host, &mut || false);
    }

    /// [`Engine::push`] whose waits `check` can end, as those of [`Engine::wait_for`].
    ///
    /// # Errors
    /// `Interrupted` if `check` said so. The operation is pushed and runs nevertheless.
    pub fn push_checked(&self, op: Op, check: &mut dyn FnMut() -> bool) -> Result<(), WaitError> {
        match self.shared.push(op, Place::Host, check) {
            Outcome::Done => Ok(()),
            Outcome::Interrupted => Err(WaitError::Interrupted),
        }
    }

    /// Like [`Engine::push`] for an operation that launches device work and orders it by events itself.
    pub fn push_launch(&self, op: Op) {
        self.shared.push(op, Place::Launch, &mut || false);
    }

    /// Waits until what was pushed before is done as far as `access` has to come after it: all writes for a reader, the
    /// readers too for a writer. Helps meanwhile. `check` is called about every 50 ms; true ends the wait.
    ///
    /// # Errors
    /// `Failed` with the variable's failure, at every wait until an `Overwrite` clears it; `Interrupted` if `check` said so.
    ///
    /// # Panics
    /// If a read guard of the thread itself keeps `access` from ever being granted.
    pub fn wait_for(
        &self,
        var: &Var,
        access: Access,
        check: &mut dyn FnMut() -> bool,
    ) -> Result<(), WaitError> {
        self.shared.wait_for(var, access, check)
    }

    /// Waits for every operation pushed before. Helps meanwhile. `check` is called about every 50 ms; true ends the wait.
    ///
    /// # Errors
    /// `Failed` with the oldest failure that no wait has returned yet; `Interrupted` if `check` said so.
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

    /// Waits like [`Engine::wait_all`] but leaves the failures to whoever asks for them: what comes before a `fork`. Inside an
    /// operation it returns at once.
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

    /// Threads that work at the same time: the pool's workers, or a caller of `run_tasks` and all but one of them.
    pub fn num_threads(&self) -> usize {
        self.shared.pool.num_threads()
    }

    /// Changes [`Engine::num_threads`]. Workers start when needed and end when superfluous. 0 is taken as 1.
    pub fn set_num_threads(&self, threads: usize) {
        self.shared
            .pool
            .set_num_threads(threads.clamp(1, crate::threads::MAX));
    }

    /// Whether the next operation might wait for others, or help with them, before its call returns: more bytes are in flight
    /// than the bound allows, or so little that an operation which divides its work finishes it first.
    #[inline]
    pub fn may_wait(&self) -> bool {
        match self.shared.bytes.load(Relaxed) {
            0 => false,
            bytes => bytes > self.shared.max_bytes || self.shared.may_settle(),
        }
    }

    /// Counters of the engine. They are read one after the other while other threads go on counting.
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
    /// Waits for what was pushed and ends the workers.
    fn drop(&mut self) {
        let shared = &*self.shared;
        let mut done = || shared.quiet(0).1;
        shared.help_until(&mut done, &mut || false);
        shared.pool.set_num_threads(0);
    }
}

/// The process's engine, made at the first call.
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
        // As a worker does between two jobs; the engine has started none, so nobody else looks for one.
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
