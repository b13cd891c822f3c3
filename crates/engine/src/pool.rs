//! The one pool: its workers run ready operations and take part in task sets. They start when first needed, look for more
//! work for a moment (`spin.rs`), then park, and are detached, so that process exit waits for none of them.

use std::any::Any;
use std::cell::Cell;
use std::cmp::Ordering as Order;
use std::collections::{BinaryHeap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use smallvec::SmallVec;

use crate::engine::Shared;
use crate::schedule::Node;
use crate::spin::{self, Competition, Ended, Spins};
use crate::stats::InlineCounts;
use crate::sync::{AtomicUsize, Condvar, Mutex, MutexGuard, Ordering, thread, thread_local};

thread_local! {
    /// Operations that this thread is inside of.
    #[allow(clippy::missing_const_for_thread_local, reason = "loom's macro has no `const` form")]
    static DEPTH: Cell<usize> = Cell::new(0);
    #[allow(clippy::missing_const_for_thread_local, reason = "loom's macro has no `const` form")]
    static IS_WORKER: Cell<bool> = Cell::new(false);
    /// Whether the operation that this thread is inside of, or takes part in, is a long one.
    #[allow(clippy::missing_const_for_thread_local, reason = "loom's macro has no `const` form")]
    static IS_IN_LONG: Cell<bool> = Cell::new(false);
}

/// Estimated cost above which a waiting thread leaves an operation to workers.
pub(crate) const LONG_NS: u64 = 5_000_000;

/// How many operations this thread is inside of.
pub(crate) fn depth() -> usize {
    DEPTH.with(Cell::get)
}

#[cfg(not(loom))]
pub(crate) fn is_worker() -> bool {
    IS_WORKER.with(Cell::get)
}

pub(crate) struct Pool {
    state: Mutex<PoolState>,
    /// Workers sleep here.
    work: Condvar,
    /// Operations taken from the heap and not finished; incremented under the lock.
    pub(crate) running: AtomicUsize,
    /// `PoolState::target`, for readers without the lock.
    target: AtomicUsize,
    /// Counts the times that jobs became available; spinning threads look at it. Changed under the lock.
    pub(crate) published: AtomicUsize,
    /// Threads that are about to look for a job: workers between two jobs, and threads that spin. Incremented at any time,
    /// decremented under the lock.
    pub(crate) looking: AtomicUsize,
}

#[derive(Default)]
pub(crate) struct PoolState {
    heap: BinaryHeap<Entry>,
    /// Task sets whose caller still hands out tasks.
    sets: VecDeque<Arc<TaskSet>>,
    /// Number of the next operation, so that equal priorities keep their order.
    sequence: u64,
    /// Workers wanted.
    target: usize,
    /// Workers started.
    workers: usize,
    /// Workers on the condition variable, woken ones included until they have the lock.
    sleeping: usize,
    /// Wake-ups given to sleeping workers that have not taken them yet.
    wakes: usize,
    /// Threads that look for jobs without sleeping.
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

/// Threads that [`Pool::call`] found and that the caller has to wake or start.
pub(crate) struct Called {
    pub(crate) woken: usize,
    pub(crate) hired: usize,
}

/// What a thread does after a job.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// It is a worker and looks for the next job.
    Look,
    /// Something else.
    Other,
}

/// What a thread that waits has done about the jobs that are ready.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Help {
    /// It ran one.
    Ran,
    /// There are none.
    Idle,
    /// Those that are ready are long ones, which workers run.
    Left,
}

enum Job {
    Op(Arc<Node>),
    /// A loop, and the range to begin with.
    Tasks(Arc<TaskSet>, usize),
}

impl PoolState {
    /// Gives wake-ups to at most `count` sleeping workers that have none; returns to how many.
    fn wake(&mut self, count: usize) -> usize {
        let woken = count.min(self.sleeping - self.wakes);
        self.wakes += woken;
        woken
    }

    /// Reserves places for at most `count` new workers; returns for how many.
    fn hire(&mut self, count: usize) -> usize {
        let hired = count.min(self.target.saturating_sub(self.workers));
        self.workers += hired;
        hired
    }

    /// Counts this thread among those that spin, if it may.
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

    /// Sets how many workers there should be; superfluous ones end when they look for their next job.
    pub(crate) fn set_num_threads(&self, threads: usize) {
        let mut state = self.lock();
        state.target = threads;
        self.target.store(threads, Ordering::Relaxed);
        let woken = state.wake(usize::MAX);
        drop(state);
        self.notify(woken);
    }

    /// Whether no operation is ready or running, apart from `own` that the caller is inside of.
    pub(crate) fn is_quiet(&self, state: &PoolState, own: usize) -> bool {
        state.heap.is_empty() && self.running.load(Ordering::Acquire) == own
    }

    /// Whether there are jobs and no worker that would run them.
    pub(crate) fn needs_helpers(&self) -> bool {
        let state = self.lock();
        state.workers == 0 && state.has_jobs()
    }

    /// Finds threads for `count` jobs that have become available: first those that are about to look for one, then sleeping
    /// workers, then places for new workers.
    pub(crate) fn call(&self, state: &mut PoolState, count: usize) -> Called {
        if count > 0 {
            self.published.fetch_add(1, Ordering::Release);
        }
        let looking = self.looking.load(Ordering::Acquire);
        let awake = state.spins.claim(count, looking);
        let woken = state.wake(count - awake);
        let hired = state.hire(count - awake - woken);
        Called { woken, hired }
    }

    /// This thread looks for a job as soon as it has the lock.
    pub(crate) fn begin_looking(&self) {
        self.looking.fetch_add(1, Ordering::AcqRel);
    }

    /// This thread, which has looked for a job, looks for no other before it says so; under the lock.
    pub(crate) fn end_looking(&self) {
        self.looking.fetch_sub(1, Ordering::AcqRel);
    }

    /// After `fork` in the child, under the lock: of the workers only `own` (0 or 1) are left, and no thread looks for jobs.
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

    /// The next job; without `takes_long` none that is, or belongs to, a long operation.
    fn next_job(&self, state: &mut PoolState, takes_long: bool) -> Option<Job> {
        // What has begun comes first.
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
        // A job that is left is still counted on by whoever was called for it.
        if job.is_some() || !state.has_jobs() {
            state.spins.look(job.is_some());
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
        let Called { woken, hired } = self.pool.call(&mut state, wanted);
        let has_workers = state.workers > 0;
        drop(state);
        self.pool.notify(woken);
        if !self.start_workers(hired) || !has_workers {
            self.notify_waiters();
        }
    }

    /// Starts workers whose places are reserved. False if the system refused one: its place is given back, and
    /// whoever waits does the work.
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

    /// The life of a worker.
    fn work(&self) {
        IS_WORKER.with(|is_worker| is_worker.set(true));
        self.pool.begin_looking();
        let mut competition = Competition::new();
        while let Some(job) = self.wait_for_job(&mut competition) {
            self.run_job(job, Next::Look);
        }
    }

    /// Blocks until there is a job; `None` when there are more workers than wanted. The thread has said that it looks for
    /// one, and looks no longer when this returns.
    fn wait_for_job(&self, competition: &mut Competition) -> Option<Job> {
        let mut may_spin = true;
        let mut state = self.pool.lock();
        loop {
            if state.workers > state.target {
                state.workers -= 1;
                self.pool.end_looking();
                state.spins.leave();
                // The wake-up that brought this worker here may have been for a job.
                let lost = usize::from(state.has_jobs());
                let woken = self.pool.call(&mut state, lost).woken;
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
                if ended == Ended::Idle && competition.look() {
                    ended = Ended::Preempted;
                }
                state = self.pool.lock();
                state.spins.end(ended);
                may_spin = ended == Ended::Called;
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
            *competition = Competition::new();
            state = self.pool.lock();
        }
    }

    /// Runs one job if there is one. Long ones are left to workers, so that a thread which waits notices an interruption.
    pub(crate) fn help_once(&self) -> Help {
        let mut state = self.pool.lock();
        // Inside an operation this thread may be the only worker.
        let mut job = self.pool.next_job(&mut state, depth() > 0);
        if job.is_none() {
            if !state.has_jobs() {
                return Help::Idle;
            }
            // This thread may have been counted on.
            let Called { woken, hired } = self.pool.call(&mut state, 1);
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
                // Before its caller goes on, who may have the next tasks at once.
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
        // SAFETY: the set calls the task only between a helper's joining and leaving and in `run` below. Helpers join
        // under the pool's lock while the set is published; this function returns after it has withdrawn the set under
        // that lock and all that joined have left. Nothing in between unwinds, since tasks are run under `catch_unwind`.
        let task = unsafe {
            std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static (dyn Fn(usize) + Sync)>(task)
        };
        let set = Arc::new(TaskSet::new(n, helpers, task));
        if helpers > 0 {
            let mut state = self.pool.lock();
            state.sets.push_back(Arc::clone(&set));
            let Called { woken, hired } = self.pool.call(&mut state, helpers);
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

/// A parallel loop. The indices are divided into as many ranges as threads may take part; a thread takes the indices of its own range in order, then
/// what the others have left. So the same thread gets the same part of an array in one loop after the other, whose bytes its caches have, instead of
/// bytes that another processor has just written.
struct TaskSet {
    ranges: SmallVec<[TaskRange; 2]>,
    task: &'static (dyn Fn(usize) + Sync),
    /// Whether it belongs to a long operation.
    is_long: bool,
    /// Helpers that ever joined, at most `limit`; their number is also the range that the next one begins with.
    joined: AtomicUsize,
    limit: usize,
    /// Helpers that are in it.
    active: AtomicUsize,
    end: Mutex<End>,
    left: Condvar,
}

/// The indices `next..end` of a loop that nobody has taken. Each has a cache line of its own.
#[repr(align(64))]
struct TaskRange {
    next: AtomicUsize,
    end: usize,
}

impl TaskRange {
    fn take(&self) -> Option<usize> {
        // A look first: the counter of a range that is used up is no longer written.
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
    /// Of the lowest index that panicked, so that it does not depend on the number of threads.
    panic: Option<(usize, Box<dyn Any + Send>)>,
    /// The caller sleeps until the last helper has left.
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

    /// Whether another thread may join; under the pool's lock.
    fn wants_help(&self) -> bool {
        self.joined.load(Ordering::Relaxed) < self.limit
            && self.ranges.iter().any(|range| !range.is_empty())
    }

    /// Takes part: first in range number `first`, 0 for the caller.
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
        // A payload's own `drop` is foreign code.
        let _ = catch_unwind(AssertUnwindSafe(move || drop(dropped)));
    }

    /// A helper leaves.
    fn leave(&self) {
        if self.active.fetch_sub(1, Ordering::AcqRel) == 1 && self.end.lock().is_awaited {
            self.left.notify_all();
        }
    }

    /// Waits until all helpers have left; no new one can join.
    fn wait(&self) {
        // A helper that is still here is within its last task, which is often shorter than a trip to the scheduler.
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
