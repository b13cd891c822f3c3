//! The one pool: its workers run ready operations and take part in task sets. They start when first needed, park when
//! idle and are detached, so that process exit waits for none of them.

use std::any::Any;
use std::cell::Cell;
use std::cmp::Ordering as Order;
use std::collections::{BinaryHeap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use smallvec::SmallVec;

use crate::engine::Shared;
use crate::schedule::Node;
use crate::stats::InlineCounts;
use crate::sync::{AtomicUsize, Condvar, Mutex, MutexGuard, Ordering, thread, thread_local};

thread_local! {
    /// Operations that this thread is inside of.
    #[allow(clippy::missing_const_for_thread_local, reason = "loom's macro has no `const` form")]
    static DEPTH: Cell<usize> = Cell::new(0);
    #[allow(clippy::missing_const_for_thread_local, reason = "loom's macro has no `const` form")]
    static IS_WORKER: Cell<bool> = Cell::new(false);
}

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

enum Job {
    Op(Arc<Node>),
    Tasks(Arc<TaskSet>),
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

    pub(crate) fn num_workers(&self) -> usize {
        self.workers
    }

    fn has_jobs(&self) -> bool {
        !self.heap.is_empty() || self.sets.iter().any(|set| set.wants_help())
    }

    /// After `fork` in the child: of the workers only `own` (0 or 1) are left.
    #[cfg(not(loom))]
    pub(crate) fn forget_threads(&mut self, own: usize) {
        self.workers = own;
        self.sleeping = 0;
        self.wakes = 0;
        self.sets.clear();
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

    fn notify(&self, woken: usize) {
        for _ in 0..woken {
            self.work.notify_one();
        }
    }

    fn next_job(&self, state: &mut PoolState) -> Option<Job> {
        // What has begun comes first.
        let open = state.sets.iter().find(|set| set.wants_help());
        if let Some(set) = open {
            set.joined.fetch_add(1, Ordering::Relaxed);
            set.active.fetch_add(1, Ordering::AcqRel);
            return Some(Job::Tasks(Arc::clone(set)));
        }
        let entry = state.heap.pop()?;
        self.running.fetch_add(1, Ordering::AcqRel);
        Some(Job::Op(entry.node))
    }
}

impl Shared {
    /// Makes operations available, of which this thread will take `kept` itself.
    pub(crate) fn submit(&self, nodes: SmallVec<[Arc<Node>; 4]>, kept: usize) {
        let wanted = nodes.len().saturating_sub(kept);
        let mut state = self.pool.lock();
        for node in nodes {
            let sequence = state.sequence;
            state.sequence += 1;
            state.heap.push(Entry { node, sequence });
        }
        let woken = state.wake(wanted);
        let hired = state.hire(wanted - woken);
        let has_workers = state.workers > 0;
        drop(state);
        self.pool.notify(woken);
        if !self.start_workers(hired) || !has_workers {
            self.notify_waiters();
        }
    }

    /// Starts workers whose places are reserved. False if the system refused one: its place is given back, and
    /// whoever waits does the work.
    fn start_workers(&self, count: usize) -> bool {
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
        while let Some(job) = self.wait_for_job() {
            self.run_job(job, 1);
        }
    }

    /// Blocks until there is a job; `None` when there are more workers than wanted.
    fn wait_for_job(&self) -> Option<Job> {
        let mut state = self.pool.lock();
        loop {
            if state.workers > state.target {
                state.workers -= 1;
                // The wake-up that brought this worker here may have been for a job.
                let woken = if state.has_jobs() { state.wake(1) } else { 0 };
                let has_workers = state.workers > 0;
                drop(state);
                self.pool.notify(woken);
                if !has_workers {
                    self.notify_waiters();
                }
                return None;
            }
            if let Some(job) = self.pool.next_job(&mut state) {
                return Some(job);
            }
            state.sleeping += 1;
            while state.wakes == 0 {
                state = self.pool.work.wait(state);
            }
            state.wakes -= 1;
            state.sleeping -= 1;
        }
    }

    /// Runs one job if there is one.
    pub(crate) fn help_once(&self) -> bool {
        let job = self.pool.next_job(&mut self.pool.lock());
        match job {
            Some(job) => {
                self.run_job(job, 0);
                true
            }
            None => false,
        }
    }

    fn run_job(&self, job: Job, kept: usize) {
        match job {
            Job::Op(node) => {
                DEPTH.with(|depth| depth.set(depth.get() + 1));
                self.run_op(&node, kept);
                DEPTH.with(|depth| depth.set(depth.get() - 1));
            }
            Job::Tasks(set) => set.help(),
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
            let woken = state.wake(helpers);
            let hired = state.hire(helpers - woken);
            drop(state);
            self.pool.notify(woken);
            self.start_workers(hired);
        }
        set.run();
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

/// A parallel loop: whoever is in it takes the next index until there is none.
struct TaskSet {
    next: AtomicUsize,
    n: usize,
    task: &'static (dyn Fn(usize) + Sync),
    /// Helpers that ever joined, at most `limit`.
    joined: AtomicUsize,
    limit: usize,
    /// Helpers that are in it.
    active: AtomicUsize,
    end: Mutex<End>,
    left: Condvar,
}

#[derive(Default)]
struct End {
    /// Of the lowest index that panicked, so that it does not depend on the number of threads.
    panic: Option<(usize, Box<dyn Any + Send>)>,
}

impl TaskSet {
    fn new(n: usize, limit: usize, task: &'static (dyn Fn(usize) + Sync)) -> TaskSet {
        TaskSet {
            next: AtomicUsize::new(0),
            n,
            task,
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
            && self.next.load(Ordering::Relaxed) < self.n
    }

    fn run(&self) {
        loop {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            if index >= self.n {
                return;
            }
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| (self.task)(index))) {
                let mut end = self.end.lock();
                if end.panic.as_ref().is_none_or(|(first, _)| index < *first) {
                    let replaced = end.panic.replace((index, payload));
                    drop(end);
                    // A payload's own `drop` is foreign code.
                    let _ = catch_unwind(AssertUnwindSafe(move || drop(replaced)));
                } else {
                    drop(end);
                    let _ = catch_unwind(AssertUnwindSafe(move || drop(payload)));
                }
            }
        }
    }

    fn help(&self) {
        self.run();
        if self.active.fetch_sub(1, Ordering::AcqRel) == 1 {
            drop(self.end.lock());
            self.left.notify_all();
        }
    }

    /// Waits until all helpers have left; no new one can join.
    fn wait(&self) {
        // A helper that is still here is within its last task, which is often shorter than a trip to the scheduler.
        for _ in 0..SPINS {
            if self.active.load(Ordering::Acquire) == 0 {
                return;
            }
            std::hint::spin_loop();
        }
        let mut end = self.end.lock();
        while self.active.load(Ordering::Acquire) != 0 {
            end = self.left.wait(end);
        }
    }
}

/// About a microsecond.
const SPINS: usize = if cfg!(loom) { 0 } else { 32 };
