//! The thread pool. Its workers run ready operations and take part in task sets. They start when first needed, spin for a moment when they find no
//! work (`spin.rs`), then park. They are detached, so that process exit waits for none of them.

use std::any::Any;
use std::cell::Cell;
use std::cmp::Ordering as Order;
use std::collections::{BinaryHeap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use smallvec::SmallVec;

use crate::engine::Shared;
use crate::schedule::Node;
use crate::spin::{self, Ended, PreemptionDetector, Spins};
use crate::stats::InlineCounts;
use crate::sync::{AtomicUsize, Condvar, Mutex, MutexGuard, Ordering, thread, thread_local};

thread_local! {
    /// Number of operations that this thread is inside of.
    #[allow(clippy::missing_const_for_thread_local, reason = "loom's macro has no `const` form")]
    static DEPTH: Cell<usize> = Cell::new(0);
    #[allow(clippy::missing_const_for_thread_local, reason = "loom's macro has no `const` form")]
    static IS_WORKER: Cell<bool> = Cell::new(false);
    /// Whether the operation that this thread is inside of, or helps with, is a long one.
    #[allow(clippy::missing_const_for_thread_local, reason = "loom's macro has no `const` form")]
    static IS_IN_LONG: Cell<bool> = Cell::new(false);
}

/// Estimated cost above which a waiting thread leaves an operation to workers.
pub(crate) const LONG_NS: u64 = 5_000_000;

/// Number of operations that this thread is inside of.
pub(crate) fn depth() -> usize {
    DEPTH.with(Cell::get)
}

#[cfg(not(loom))]
pub(crate) fn is_worker() -> bool {
    IS_WORKER.with(Cell::get)
}

pub(crate) struct Pool {
    state: Mutex<PoolState>,
    /// Workers wait here.
    work: Condvar,
    /// Operations taken from the heap and not finished; incremented under the lock.
    pub(crate) running: AtomicUsize,
    /// Copy of `PoolState::target`, for readers without the lock.
    target: AtomicUsize,
    /// Incremented when jobs become available, under the lock. Spinning threads watch it.
    pub(crate) published: AtomicUsize,
    /// Number of threads that are about to look for a job: workers between two jobs, and spinning threads. Incremented at any time, decremented under
    /// the lock.
    pub(crate) looking: AtomicUsize,
}

#[derive(Default)]
pub(crate) struct PoolState {
    heap: BinaryHeap<Entry>,
    /// Task sets whose caller still distributes tasks.
    sets: VecDeque<Arc<TaskSet>>,
    /// Sequence number of the next operation: operations of equal priority run in this order.
    sequence: u64,
    /// Number of workers wanted.
    target: usize,
    /// Number of workers started.
    workers: usize,
    /// Number of workers that wait on the condition variable, including woken ones that do not have the lock yet.
    sleeping: usize,
    /// Number of notifications that sleeping workers have not taken yet.
    wakes: usize,
    /// The spinning threads.
    pub(crate) spins: Spins,
    pub(crate) inline: InlineCounts,
}

struct Entry {
    node: Arc<Node>,
    sequence: u64,
}

impl Ord for Entry {
    fn cmp(&self, other: &Entry) -> Order {
        self.node
            .priority
            .cmp(&other.node.priority)
            .then(other.sequence.cmp(&self.sequence))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<Order> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.cmp(other) == Order::Equal
    }
}

impl Eq for Entry {}

/// Threads that [`Pool::recruit`] found, and that the caller must wake or start.
pub(crate) struct Recruited {
    pub(crate) woken: usize,
    pub(crate) hired: usize,
}

/// What a thread does after its job.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// It is a worker and looks for the next job.
    Look,
    /// Something else.
    Other,
}

/// Result of a waiting thread's attempt to help.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Help {
    /// It ran a job.
    Ran,
    /// There are no jobs.
    Idle,
    /// All ready jobs are long ones, which are left to workers.
    Left,
}

enum Job {
    Op(Arc<Node>),
    /// A parallel loop, and the range to begin with.
    Tasks(Arc<TaskSet>, usize),
}

impl PoolState {
    /// Reserves notifications for at most `count` sleeping workers without one. Returns their number.
    fn wake(&mut self, count: usize) -> usize {
        let woken = count.min(self.sleeping - self.wakes);
        self.wakes += woken;
        woken
    }

    /// Reserves at most `count` new workers. Returns their number.
    fn hire(&mut self, count: usize) -> usize {
        let hired = count.min(self.target.saturating_sub(self.workers));
        self.workers += hired;
        hired
    }

    /// Counts this thread as spinning, if it may spin.
    pub(crate) fn begin_spin(&mut self) -> bool {
        self.spins.begin(self.target)
    }

    pub(crate) fn num_workers(&self) -> usize {
        self.workers
    }

    pub(crate) fn has_jobs(&self) -> bool {
        !self.heap.is_empty() || self.sets.iter().any(|set| set.wants_help())
    }
}

impl Pool {
    pub(crate) fn new(threads: usize) -> Pool {
        Pool {
            state: Mutex::new(PoolState {
                target: threads,
                ..PoolState::default()
            }),
            work: Condvar::new(),
            running: AtomicUsize::new(0),
            target: AtomicUsize::new(threads),
            published: AtomicUsize::new(0),
            looking: AtomicUsize::new(0),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock()
    }

    pub(crate) fn num_threads(&self) -> usize {
        self.target.load(Ordering::Relaxed)
    }

    /// Sets the number of workers. Superfluous workers end when they look for their next job.
    pub(crate) fn set_num_threads(&self, threads: usize) {
        let mut state = self.lock();
        state.target = threads;
        self.target.store(threads, Ordering::Relaxed);
        let woken = state.wake(usize::MAX);
        drop(state);
        self.notify(woken);
    }

    /// Whether no operation is ready or running; `own` operations that the caller is inside of do not count.
    pub(crate) fn is_quiet(&self, state: &PoolState, own: usize) -> bool {
        state.heap.is_empty() && self.running.load(Ordering::Acquire) == own
    }

    /// Whether there are jobs but no worker that would run them.
    pub(crate) fn needs_helpers(&self) -> bool {
        let state = self.lock();
        state.workers == 0 && state.has_jobs()
    }

    /// Assigns threads to `count` jobs that have become available: first threads that are about to look for one, then sleeping workers, then new
    /// workers.
    pub(crate) fn recruit(&self, state: &mut PoolState, count: usize) -> Recruited {
        if count > 0 {
            self.published.fetch_add(1, Ordering::Release);
        }
        let looking = self.looking.load(Ordering::Acquire);
        let awake = state.spins.claim(count, looking);
        let woken = state.wake(count - awake);
        let hired = state.hire(count - awake - woken);
        Recruited { woken, hired }
    }

    /// Announces that this thread will look for a job as soon as it has the lock.
    pub(crate) fn begin_looking(&self) {
        self.looking.fetch_add(1, Ordering::AcqRel);
    }

    /// Ends the announcement of [`Pool::begin_looking`]. Called under the lock.
    pub(crate) fn end_looking(&self) {
        self.looking.fetch_sub(1, Ordering::AcqRel);
    }

    /// After `fork` in the child, under the lock: only `own` (0 or 1) workers exist, and no thread looks for jobs.
    #[cfg(not(loom))]
    pub(crate) fn forget_threads(&self, state: &mut PoolState, own: usize) {
        state.workers = own;
        state.sleeping = 0;
        state.wakes = 0;
        state.sets.clear();
        state.spins.clear();
        self.looking.store(0, Ordering::Relaxed);
    }

    /// Whether a thread is awake that would take part in a task set at once.
    #[inline]
    pub(crate) fn is_awake(&self) -> bool {
        self.looking.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn notify(&self, woken: usize) {
        for _ in 0..woken {
            self.work.notify_one();
        }
    }

    /// The next job. Without `takes_long`, jobs of long operations are skipped.
    fn next_job(&self, state: &mut PoolState, takes_long: bool) -> Option<Job> {
        // Task sets have begun already, so they come first.
        let open = (state.sets.iter()).find(|set| set.wants_help() && (takes_long || !set.is_long));
        let job = if let Some(set) = open {
            let first = 1 + set.joined.fetch_add(1, Ordering::Relaxed);
            set.active.fetch_add(1, Ordering::AcqRel);
            Some(Job::Tasks(Arc::clone(set), first))
        } else if (state.heap.peek()).is_some_and(|entry| takes_long || !entry.node.is_long()) {
            self.running.fetch_add(1, Ordering::AcqRel);
            state.heap.pop().map(|entry| Job::Op(entry.node))
        } else {
            None
        };
        // If a job was skipped, the thread that published it still expects this thread to take it.
        if job.is_some() || !state.has_jobs() {
            state.spins.end_look(job.is_some());
        }
        job
    }
}

impl Shared {
    /// Makes operations available.
    pub(crate) fn submit(&self, nodes: SmallVec<[Arc<Node>; 4]>) {
        let wanted = nodes.len();
        let mut state = self.pool.lock();
        for node in nodes {
            let sequence = state.sequence;
            state.sequence += 1;
            state.heap.push(Entry { node, sequence });
        }
        let Recruited { woken, hired } = self.pool.recruit(&mut state, wanted);
        let has_workers = state.workers > 0;
        drop(state);
        self.pool.notify(woken);
        if !self.start_workers(hired) || !has_workers {
            self.notify_waiters();
        }
    }

    /// Starts workers that are reserved. Returns false if the system refused one: its reservation is cancelled, and threads that wait do the work.
    pub(crate) fn start_workers(&self, count: usize) -> bool {
        for started in 0..count {
            let Some(shared) = self.me.upgrade() else {
                return false;
            };
            let builder = thread::Builder::new().name("mxnet-worker".to_owned());
            if builder.spawn(move || shared.work()).is_err() {
                self.pool.lock().workers -= count - started;
                return false;
            }
        }
        true
    }

    /// Main loop of a worker.
    fn work(&self) {
        IS_WORKER.with(|is_worker| is_worker.set(true));
        self.pool.begin_looking();
        let mut preemption = PreemptionDetector::new();
        while let Some(job) = self.wait_for_job(&mut preemption) {
            self.run_job(job, Next::Look);
        }
    }

    /// Blocks until there is a job; `None` if there are more workers than wanted. The thread is counted as looking for a job on entry, and is no
    /// longer on return.
    fn wait_for_job(&self, preemption: &mut PreemptionDetector) -> Option<Job> {
        let mut may_spin = true;
        let mut state = self.pool.lock();
        loop {
            if state.workers > state.target {
                state.workers -= 1;
                self.pool.end_looking();
                state.spins.leave();
                // The notification that woke this worker may have been for a job.
                let lost = usize::from(state.has_jobs());
                let woken = self.pool.recruit(&mut state, lost).woken;
                let has_workers = state.workers > 0;
                drop(state);
                self.pool.notify(woken);
                if !has_workers {
                    self.notify_waiters();
                }
                return None;
            }
            if let Some(job) = self.pool.next_job(&mut state, true) {
                self.pool.end_looking();
                return Some(job);
            }
            if may_spin && state.begin_spin() {
                let published = self.pool.published.load(Ordering::Relaxed);
                drop(state);
                let mut ended = self.pool.spin(published, &mut || false);
                if ended == Ended::Idle && preemption.was_preempted() {
                    ended = Ended::Preempted;
                }
                state = self.pool.lock();
                state.spins.end(ended);
                may_spin = ended == Ended::JobsPublished;
                continue;
            }
            may_spin = true;
            self.pool.end_looking();
            state.sleeping += 1;
            while state.wakes == 0 {
                state = self.pool.work.wait(state);
            }
            state.wakes -= 1;
            state.sleeping -= 1;
            self.pool.begin_looking();
            drop(state);
            *preemption = PreemptionDetector::new();
            state = self.pool.lock();
        }
    }

    /// Runs one job if there is one. Long ones are left to workers, so that a waiting thread notices an interrupt.
    pub(crate) fn help_once(&self) -> Help {
        let mut state = self.pool.lock();
        // Inside an operation this thread may be the only worker, so it takes long jobs too.
        let mut job = self.pool.next_job(&mut state, depth() > 0);
        if job.is_none() {
            if !state.has_jobs() {
                return Help::Idle;
            }
            // The publisher of a job may expect this thread to take it, so another thread is recruited.
            let Recruited { woken, hired } = self.pool.recruit(&mut state, 1);
            let has_workers = state.workers > hired;
            drop(state);
            self.pool.notify(woken);
            if self.start_workers(hired) && (has_workers || hired > 0) {
                return Help::Left;
            }
            self.notify_waiters();
            if has_workers {
                return Help::Left;
            }
            job = self.pool.next_job(&mut self.pool.lock(), true);
        } else {
            drop(state);
        }
        match job {
            Some(job) => {
                self.run_job(job, Next::Other);
                Help::Ran
            }
            None => Help::Idle,
        }
    }

    fn run_job(&self, job: Job, next: Next) {
        match job {
            Job::Op(node) => {
                let outer = IS_IN_LONG.with(|is_long| is_long.replace(node.is_long()));
                DEPTH.with(|depth| depth.set(depth.get() + 1));
                self.run_op(&node, next);
                DEPTH.with(|depth| depth.set(depth.get() - 1));
                IS_IN_LONG.with(|is_long| is_long.set(outer));
            }
            Job::Tasks(set, first) => {
                let outer = IS_IN_LONG.with(|is_long| is_long.replace(set.is_long));
                set.run(first);
                IS_IN_LONG.with(|is_long| is_long.set(outer));
                // Before the caller of the loop continues, because it may publish the next tasks at once.
                if next == Next::Look {
                    self.pool.begin_looking();
                }
                set.leave();
            }
        }
    }

    pub(crate) fn run_tasks(&self, n: usize, task: &(dyn Fn(usize) + Sync)) {
        let threads = self.pool.num_threads();
        let helpers = threads.saturating_sub(1).min(n.saturating_sub(1));
        // SAFETY: the set calls the task only between a helper's joining and leaving, and in `run` below. Helpers join under the pool's lock while
        // the set is published; this function returns after it has withdrawn the set under that lock and all helpers have left. Nothing in between
        // unwinds, since tasks run under `catch_unwind`.
        let task = unsafe {
            std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static (dyn Fn(usize) + Sync)>(task)
        };
        let set = Arc::new(TaskSet::new(n, helpers, task));
        if helpers > 0 {
            let mut state = self.pool.lock();
            state.sets.push_back(Arc::clone(&set));
            let Recruited { woken, hired } = self.pool.recruit(&mut state, helpers);
            drop(state);
            self.pool.notify(woken);
            self.start_workers(hired);
        }
        set.run(0);
        if helpers > 0 {
            let mut state = self.pool.lock();
            if let Some(at) = state.sets.iter().position(|other| Arc::ptr_eq(other, &set)) {
                state.sets.remove(at);
            }
            drop(state);
            set.wait();
        }
        if let Some((_, payload)) = set.end.lock().panic.take() {
            resume_unwind(payload);
        }
    }
}

/// A parallel loop. The indices are divided into as many ranges as threads may take part. A thread takes the indices of its own range in order, then
/// indices that the others have left. So in successive loops the same thread gets the same part of an array, which its caches hold, instead of bytes
/// that another core has just written.
struct TaskSet {
    ranges: SmallVec<[TaskRange; 2]>,
    task: &'static (dyn Fn(usize) + Sync),
    /// Whether it belongs to a long operation.
    is_long: bool,
    /// Number of helpers that have joined so far, at most `limit`; also the range that the next helper begins with.
    joined: AtomicUsize,
    limit: usize,
    /// Number of helpers that have joined and not left.
    active: AtomicUsize,
    end: Mutex<End>,
    left: Condvar,
}

/// The indices `next..end` of a loop that nobody has taken. Each range has its own cache line.
#[repr(align(64))]
struct TaskRange {
    next: AtomicUsize,
    end: usize,
}

impl TaskRange {
    fn take(&self) -> Option<usize> {
        // Checks first, so that the counter of a used-up range is no longer written.
        if self.is_empty() {
            return None;
        }
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        (index < self.end).then_some(index)
    }

    fn is_empty(&self) -> bool {
        self.next.load(Ordering::Relaxed) >= self.end
    }
}

#[derive(Default)]
struct End {
    /// The panic of the lowest index, so that the result does not depend on the number of threads.
    panic: Option<(usize, Box<dyn Any + Send>)>,
    /// Whether the caller sleeps until the last helper has left.
    is_awaited: bool,
}

impl TaskSet {
    fn new(n: usize, limit: usize, task: &'static (dyn Fn(usize) + Sync)) -> TaskSet {
        let threads = limit + 1;
        let ranges = (0..threads).map(|i| TaskRange {
            next: AtomicUsize::new(n * i / threads),
            end: n * (i + 1) / threads,
        });
        TaskSet {
            ranges: ranges.collect(),
            task,
            is_long: IS_IN_LONG.with(Cell::get),
            joined: AtomicUsize::new(0),
            limit,
            active: AtomicUsize::new(0),
            end: Mutex::new(End::default()),
            left: Condvar::new(),
        }
    }

    /// Whether another thread may join; called under the pool's lock.
    fn wants_help(&self) -> bool {
        self.joined.load(Ordering::Relaxed) < self.limit
            && self.ranges.iter().any(|range| !range.is_empty())
    }

    /// Takes part, beginning in range number `first`, 0 for the caller.
    fn run(&self, first: usize) {
        let (before, from) = self.ranges.split_at(first);
        for range in from.iter().chain(before) {
            while let Some(index) = range.take() {
                self.run_task(index);
            }
        }
    }

    fn run_task(&self, index: usize) {
        let Err(payload) = catch_unwind(AssertUnwindSafe(|| (self.task)(index))) else {
            return;
        };
        let mut end = self.end.lock();
        let dropped = if end.panic.as_ref().is_none_or(|(first, _)| index < *first) {
            end.panic
                .replace((index, payload))
                .map(|(_, payload)| payload)
        } else {
            Some(payload)
        };
        drop(end);
        // A payload's destructor may run arbitrary code.
        let _ = catch_unwind(AssertUnwindSafe(move || drop(dropped)));
    }

    /// Ends the part of a helper.
    fn leave(&self) {
        if self.active.fetch_sub(1, Ordering::AcqRel) == 1 && self.end.lock().is_awaited {
            self.left.notify_all();
        }
    }

    /// Waits until all helpers have left; no new one can join.
    fn wait(&self) {
        // A helper that is still here runs its last task, which is often shorter than a context switch.
        let mut has_left = || self.active.load(Ordering::Acquire) == 0;
        if spin::until(&mut has_left) {
            return;
        }
        let mut end = self.end.lock();
        end.is_awaited = true;
        while self.active.load(Ordering::Acquire) != 0 {
            end = self.left.wait(end);
        }
    }
}
