//! Pushed operations: they are enqueued on all their variables at once, run when the last one is granted, and pass their outcome to the variables.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use smallvec::SmallVec;

use crate::config::Mode;
use crate::engine::Shared;
use crate::failure::Failure;
use crate::fork;
use crate::pool::{LONG_NS, Next, depth};
use crate::read;
use crate::stats::count;
use crate::sync::{AtomicBool, AtomicUsize, Mutex, Ordering};
use crate::var::{Access, Acquirer, Resource, SideLock, Var};
use crate::wait::{Outcome, Waiter};

/// An operation to be pushed.
pub struct Op {
    /// Name in messages.
    pub name: &'static str,
    /// The work. It must not wait for variables.
    pub run: Box<dyn FnOnce() -> Result<(), Failure> + Send>,
    /// The resources it accesses. A resource may appear several times.
    pub uses: SmallVec<[(Arc<dyn Resource>, Access); 4]>,
    /// Among ready operations the one with the highest priority runs first.
    pub priority: i32,
    /// Estimated time.
    pub cost_ns: u64,
    /// Its share of the bytes in flight: the bytes that it writes and those that it keeps from being freed until it has run.
    pub bytes: usize,
    /// Where it was issued; added to the failure of a panic.
    pub origin: Option<Arc<str>>,
}

impl Node {
    /// Whether waiting threads leave it to workers.
    pub(crate) fn is_long(&self) -> bool {
        self.cost_ns > LONG_NS
    }
}

type Uses = SmallVec<[(Arc<dyn Resource>, Access); 4]>;

/// A pushed operation, shared by the queues and the pool.
pub(crate) struct Node {
    /// Number of variables not granted yet, plus one while it is being enqueued.
    waiting: AtomicUsize,
    body: Mutex<Option<Body>>,
    pub(crate) priority: i32,
    bytes: usize,
    cost_ns: u64,
    generation: usize,
    acquirer: Acquirer,
    name: &'static str,
    origin: Option<Arc<str>>,
    /// Whether a thread waits for `is_done`.
    is_awaited: bool,
    is_done: AtomicBool,
}

struct Body {
    run: Box<dyn FnOnce() -> Result<(), Failure> + Send>,
    uses: Uses,
}

/// Operations that became ready while locks of variables were held. They are scheduled after the locks are released.
#[derive(Default)]
pub(crate) struct Ready {
    pub(crate) nodes: SmallVec<[Arc<Node>; 4]>,
    pub(crate) waiters: SmallVec<[Arc<Waiter>; 1]>,
}

impl Ready {
    /// Counts `count` grants of `node`.
    pub(crate) fn granted(&mut self, node: Arc<Node>, count: usize) {
        if node.waiting.fetch_sub(count, Ordering::AcqRel) == count {
            self.nodes.push(node);
        }
    }
}

/// One use per variable, sorted by address: the order in which locks are taken.
fn merged_by_variable(mut uses: Uses) -> Uses {
    let address = |resource: &Arc<dyn Resource>| std::ptr::from_ref::<Var>(resource.var()).addr();
    uses.sort_by_key(|(resource, _)| address(resource));
    uses.dedup_by(|next, kept| {
        let is_same = address(&next.0) == address(&kept.0);
        if is_same {
            kept.1 = kept.1.merge(next.1);
        }
        is_same
    });
    uses
}

impl Shared {
    /// Enqueues an operation, and waits where [`crate::Engine::push`] says so. `Interrupted` if `check` ended that wait; the operation runs
    /// nevertheless.
    pub(crate) fn push(
        &self,
        op: Op,
        acquirer: Acquirer,
        check: &mut dyn FnMut() -> bool,
    ) -> Outcome {
        let Op {
            name,
            run,
            uses,
            priority,
            cost_ns,
            bytes,
            origin,
        } = op;
        let uses = merged_by_variable(uses);
        let is_sync = self.mode() == Mode::Sync && depth() == 0;
        for (resource, access) in &uses {
            if access.is_write() && read::is_held(resource.var()) {
                assert!(
                    !is_sync,
                    "operation `{name}`, pushed in mode `Sync`, writes a variable that its thread's own read guard holds"
                );
                read::note_write(resource.var());
            }
        }
        let node = {
            let _gate = fork::enter();
            let generation = self.generation.load(Ordering::SeqCst);
            self.outstanding[generation].fetch_add(1, Ordering::SeqCst);
            self.pending_ns.fetch_add(cost_ns, Relaxed);
            let held = self.bytes.fetch_add(bytes, Ordering::AcqRel) + bytes;
            self.peak_bytes.fetch_max(held, Relaxed);
            count(&self.counters.pushed);
            let node = Arc::new(Node {
                waiting: AtomicUsize::new(uses.len() + 1),
                body: Mutex::new(None),
                priority,
                bytes,
                cost_ns,
                generation,
                acquirer,
                name,
                origin,
                is_awaited: is_sync,
                is_done: AtomicBool::new(false),
            });
            let mut sides: SmallVec<[SideLock<'_>; 4]> = uses
                .iter()
                .map(|(resource, _)| resource.var().lock_side())
                .collect();
            let mut granted = 0;
            for ((resource, access), side) in uses.iter().zip(&mut sides) {
                let var = resource.var();
                let is_held = !access.is_write() && read::may_read_again(var);
                granted += usize::from(var.enqueue_op(side, &node, *access, is_held));
            }
            drop(sides);
            if granted < uses.len() {
                count(&self.counters.queued);
            }
            *node.body.lock() = Some(Body { run, uses });
            let mut ready = Ready::default();
            ready.granted(Arc::clone(&node), granted + 1);
            self.schedule(ready, Next::Other);
            node
        };
        // Inside an operation there must be no wait: it could be for that operation.
        if is_sync {
            let mut done = || node.is_done.load(Ordering::Acquire);
            return self.help_until(&mut done, check);
        }
        // The operation's own bytes do not count: even the largest operation runs asynchronously when it is alone.
        let bound = self.max_bytes.saturating_add(bytes);
        if self.bytes.load(Ordering::Relaxed) > bound && depth() == 0 {
            // If nothing is ready, running or read, the pending operations wait for an inline operation, perhaps of this thread: the wait would not
            // end.
            let mut done = || {
                self.bytes.load(Ordering::Acquire) <= bound
                    || (self.idle_state(0).0 && !self.is_read_elsewhere())
            };
            return self.help_until(&mut done, check);
        }
        Outcome::Done
    }

    /// Schedules operations that have become ready. A thread that looks for a job next announces that first: it will take one of the operations, so one
    /// thread less needs to be woken.
    pub(crate) fn schedule(&self, ready: Ready, next: Next) {
        if next == Next::Look {
            self.pool.begin_looking();
        }
        if !ready.nodes.is_empty() {
            self.submit(ready.nodes);
        }
        if !ready.waiters.is_empty() {
            ready
                .waiters
                .iter()
                .for_each(|waiter| self.grant(waiter, 1));
            self.notify_waiters();
        }
    }

    /// Runs an operation whose variables are all granted. `next` as in [`Shared::schedule`].
    pub(crate) fn run_op(&self, node: &Node, next: Next) {
        let Some(Body { run, uses }) = node.body.lock().take() else {
            debug_assert!(false, "operation `{}` was scheduled twice", node.name);
            return self.schedule(Ready::default(), next);
        };
        let failure = self.run_body(node, run, &uses);
        let mut ready = Ready::default();
        for (resource, access) in &uses {
            if access.is_write() {
                resource.var().settle_write(*access, failure.as_ref());
            }
        }
        for (resource, access) in &uses {
            if resource.var().release(*access) {
                resource.var().dispatch(&mut ready);
            }
        }
        self.schedule(ready, next);
        // This operation may be the last owner of a resource, whose destructor may run arbitrary code.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(move || drop(uses))) {
            self.add_unreported(&Failure::from_panic(payload, node.name));
        }
        self.finish(node);
    }

    /// Runs the operation and returns its outcome; a panic becomes a failure.
    fn run_body(
        &self,
        node: &Node,
        run: Box<dyn FnOnce() -> Result<(), Failure> + Send>,
        uses: &Uses,
    ) -> Option<Failure> {
        if node.acquirer == Acquirer::Host {
            for (resource, access) in uses {
                resource.var().wait_events(*access, &mut || false);
            }
        }
        let read = uses.iter().filter(|(_, access)| access.is_read());
        let poison = read
            .filter_map(|(resource, _)| resource.var().poison())
            .reduce(Failure::older);
        let is_skipped = poison.is_some();
        let ended = catch_unwind(AssertUnwindSafe(move || match poison {
            Some(failure) => {
                drop(run);
                Err(failure)
            }
            None => {
                Var::written_from_here();
                run()
            }
        }));
        let failure = match ended {
            Ok(result) => result.err(),
            Err(payload) => Some(Failure::from_panic(
                payload,
                node.origin.as_deref().unwrap_or(node.name),
            )),
        };
        if let Some(failure) = &failure {
            if is_skipped {
                count(&self.counters.skipped);
            } else {
                count(&self.counters.failed);
            }
            self.add_unreported(failure);
        }
        failure
    }

    /// Last step of an operation: nothing refers to it afterwards.
    fn finish(&self, node: &Node) {
        let mut is_news = false;
        self.pending_ns.fetch_sub(node.cost_ns, Relaxed);
        if node.bytes > 0 {
            let before = self.bytes.fetch_sub(node.bytes, Ordering::AcqRel);
            // Waiting pushers have different limits, none below this one.
            is_news |= before > self.max_bytes;
        }
        if node.is_awaited {
            node.is_done.store(true, Ordering::Release);
            is_news = true;
        }
        self.pool.running.fetch_sub(1, Ordering::AcqRel);
        is_news |= self.outstanding[node.generation].fetch_sub(1, Ordering::SeqCst) == 1;
        if is_news {
            self.notify_waiters();
        }
    }
}
