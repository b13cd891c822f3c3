//! Variables. A variable has a state word, which inline operations acquire by compare-and-swap. A side part behind a lock, used only under
//! contention, holds the queue of waiting operations, the failure and the device events.
//!
//! ```text
//! state:  | writes (32 bits) | readers (28 bits) | EVENTS | POISONED | QUEUED | WRITER |
//! ```
//!
//! `writes` counts the write accesses granted so far and wraps around; [`Var::seqlock_read`] uses it to detect writes. `readers` and `WRITER` are the
//! current holders, inline or granted from the queue. `QUEUED` is set exactly while the queue is not empty. It changes only under the lock. While it
//! is set, only [`Var::dispatch`] grants accesses, so that inline operations never overtake. The last holder to release that sees `QUEUED` must
//! dispatch.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::failure::Failure;
use crate::fork;
use crate::schedule::{Node, Ready};
use crate::stream::{Event, EventLog, Failed};
use crate::sync::{AtomicU64, Mutex, Ordering, fence};
use crate::wait::Waiter;

const WRITER: u64 = 1;
const QUEUED: u64 = 2;
const POISONED: u64 = 4;
const EVENTS: u64 = 8;
const READER: u64 = 16;
/// Increment of `writes`.
const WRITE: u64 = 1 << 32;
/// Mask of the number of readers.
const READERS: u64 = WRITE - READER;
/// Mask of everything except `writes`: holders, queue, failure, events.
const OCCUPIED: u64 = WRITE - 1;

/// Kind of access of an operation to a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reads it.
    Read,
    /// Changes a part of it or computes it from its old content.
    Write,
    /// Writes all of it without reading it. Clears a failure.
    Overwrite,
}

impl Access {
    /// Whether it excludes every other access.
    pub fn is_write(self) -> bool {
        self != Access::Read
    }

    /// Whether the access needs the previous content.
    pub fn is_read(self) -> bool {
        self != Access::Overwrite
    }

    /// The increment of the state word for a grant.
    #[inline]
    fn step(self) -> u64 {
        match self {
            Access::Read => READER,
            Access::Write | Access::Overwrite => WRITER + WRITE,
        }
    }

    /// One access that covers both, for an operation that lists a variable twice.
    pub(crate) fn merge(self, other: Access) -> Access {
        if self == other { self } else { Access::Write }
    }
}

/// Something that owns a variable. An operation holds `Arc<dyn Resource>`, so the variable lives until the operation is done.
pub trait Resource: Send + Sync + 'static {
    /// The variable; the same one at every call.
    fn var(&self) -> &Var;
}

/// Orders accesses to the object that owns it. Stored by value in its owner; creating it costs nothing.
pub struct Var {
    state: AtomicU64,
    side: Mutex<Option<Box<Side>>>,
}

/// State that is needed only under contention.
#[derive(Default)]
pub(crate) struct Side {
    queue: VecDeque<Queued>,
    failure: Option<Failure>,
    events: EventLog,
}

/// The lock of a variable's side part.
pub(crate) type SideLock<'v> = crate::sync::MutexGuard<'v, Option<Box<Side>>>;

struct Queued {
    access: Access,
    requester: Requester,
}

enum Requester {
    Op(Arc<Node>),
    /// A thread that waits until the accesses before its own have ended. It then holds nothing.
    Waiter(Arc<Waiter>),
    /// A thread that will hold the variable for reading.
    Reader(Arc<Waiter>),
}

/// Whether an acquisition is for host work, which must wait for device events, or for a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Acquirer {
    Host,
    Launch,
}

impl Default for Var {
    fn default() -> Var {
        Var::new()
    }
}

/// `state` after granting `access`; `None` if the holders do not allow that. Ignores the queue.
fn granted(state: u64, access: Access) -> Option<u64> {
    let is_free = state & WRITER == 0 && !(access.is_write() && state & READERS != 0);
    is_free.then(|| state.wrapping_add(access.step()))
}

impl Var {
    /// A free variable. Does not allocate.
    #[cfg(not(loom))]
    pub const fn new() -> Var {
        Var {
            state: AtomicU64::new(0),
            side: Mutex::new(None),
        }
    }

    /// A free variable.
    #[cfg(loom)]
    pub fn new() -> Var {
        Var {
            state: AtomicU64::new(0),
            side: Mutex::new(None),
        }
    }

    /// A variable with a failure, for an object that could not be computed: reads fail with `failure`.
    pub fn failed(failure: Failure) -> Var {
        let var = Var::new();
        var.set_poison(Some(failure));
        var
    }

    /// Whether no operation holds it or waits for it, and no device work on it is pending.
    pub fn is_free(&self) -> bool {
        let state = self.state.load(Ordering::Acquire);
        if state & EVENTS != 0 {
            let _gate = fork::enter();
            self.settle_events();
        }
        self.state.load(Ordering::Acquire) & OCCUPIED & !POISONED == 0
    }

    /// Optimistic (seqlock) read: returns the result of `read` without locking the variable. `None` if a writer interfered, or if the variable
    /// carries a failure.
    ///
    /// `read` may run concurrently with a write and see a mixture of old and new bytes, which is discarded. So it must only copy bits by volatile
    /// reads.
    #[inline]
    pub(crate) fn seqlock_read<T>(&self, read: impl FnOnce() -> T) -> Option<T> {
        let before = self.state.load(Ordering::Acquire);
        if before & OCCUPIED & !READERS != 0 {
            return None;
        }
        let copy = read();
        // A reader that sees a byte of a writer also sees the writer's grant, because of the fence in `written_from_here`.
        fence(Ordering::Acquire);
        let changes = before ^ self.state.load(Ordering::Relaxed);
        (changes & !READERS == 0).then_some(copy)
    }

    /// Must be called after a write access is granted, before the first write.
    #[inline]
    pub(crate) fn written_from_here() {
        fence(Ordering::Release);
    }

    /// The number of write accesses granted so far, modulo 2^32, if the variable is held for reading: as long as it is the same, so are the elements.
    /// `None` if nobody holds the variable, or if it is held for writing.
    pub fn writes_if_read(&self) -> Option<u32> {
        let state = self.state.load(Ordering::Acquire);
        let is_read = state & READERS != 0 && state & WRITER == 0;
        is_read.then_some((state / WRITE) as u32)
    }

    /// The failure of the operation that should have written it.
    pub fn failure(&self) -> Option<Failure> {
        if self.state.load(Ordering::Acquire) & (POISONED | EVENTS) == 0 {
            return None;
        }
        let _gate = fork::enter();
        self.settle_events();
        self.poison()
    }

    /// Stores the event of device work that accesses the variable. The caller must hold the variable for that access.
    pub fn record_event(&self, event: Arc<dyn Event>, access: Access) {
        let _gate = fork::enter();
        let mut side = self.side.lock();
        let superfluous = side.get_or_insert_default().events.record(event, access);
        self.state.fetch_or(EVENTS, Ordering::AcqRel);
        drop(side);
        drop(superfluous);
    }

    /// The events of device work that `access` must follow: the last write for a reader, also the reads since then for a writer. The flag says whether
    /// the access reads what the work before the event wrote.
    ///
    /// Work that has failed is among them, also if that was found after the access was granted: the caller has not seen it in the variable.
    pub fn events(&self, access: Access) -> Vec<(Arc<dyn Event>, bool)> {
        if self.state.load(Ordering::Acquire) & (EVENTS | POISONED) == 0 {
            return Vec::new();
        }
        let _gate = fork::enter();
        let side = self.side.lock();
        let Some(side) = side.as_ref() else {
            return Vec::new();
        };
        let mut found = side.events.before(access);
        if access.is_read()
            && self.state.load(Ordering::Acquire) & POISONED != 0
            && let Some(failure) = &side.failure
        {
            found.push((Arc::new(Failed(failure.clone())), true));
        }
        found
    }

    /// Blocks until the device work that `access` must follow has ended, or until `check` returns true. Returns whether the work has ended. A failure
    /// of that work becomes the variable's.
    pub(crate) fn wait_events(&self, access: Access, check: &mut dyn FnMut() -> bool) -> bool {
        for (event, _) in self.events(access) {
            if !event.query() {
                if check() {
                    return false;
                }
                // `settle_events` stores the failure in the variable.
                let _ = event.wait();
            }
        }
        if self.state.load(Ordering::Acquire) & EVENTS != 0 {
            let _gate = fork::enter();
            self.settle_events();
        }
        true
    }

    /// Waits until no device works on the owner's data. For the owner, before it frees the data.
    #[inline]
    pub fn wait_for_devices(&self) {
        if self.state.load(Ordering::Acquire) & EVENTS != 0 {
            self.wait_events(Access::Write, &mut || false);
        }
    }

    /// Removes completed events.
    fn settle_events(&self) {
        let mut side = self.side.lock();
        let Some(inner) = side.as_mut() else { return };
        let (complete, failure) = inner.events.take_complete();
        let replaced = failure.and_then(|failure| {
            self.state.fetch_or(POISONED, Ordering::AcqRel);
            inner.failure.replace(failure)
        });
        if inner.events.is_empty() {
            self.state.fetch_and(!EVENTS, Ordering::AcqRel);
        }
        drop(side);
        drop((complete, replaced));
    }

    /// Acquires by compare-and-swap without ever waiting. Returns whether the variable is poisoned, or `None` if it is not free.
    #[inline]
    pub(crate) fn try_acquire(&self, access: Access, acquirer: Acquirer) -> Option<bool> {
        let blocking = if access.is_write() {
            OCCUPIED & !POISONED
        } else {
            WRITER | QUEUED | EVENTS
        };
        let mut state = self.state.load(Ordering::Relaxed);
        while state & blocking == 0 {
            match self.state.compare_exchange_weak(
                state,
                state.wrapping_add(access.step()),
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => {
                    if access.is_write() {
                        Var::written_from_here();
                    }
                    return Some(state & POISONED != 0);
                }
                Err(now) => state = now,
            }
        }
        if state & EVENTS == 0 {
            None
        } else {
            self.try_acquire_past_events(access, acquirer)
        }
    }

    #[cold]
    fn try_acquire_past_events(&self, access: Access, acquirer: Acquirer) -> Option<bool> {
        let _gate = fork::enter();
        self.settle_events();
        // Events can be recorded only by holders of the variable, so none is added once this access is granted; the lock keeps that true until then.
        let side = self.side.lock();
        if acquirer == Acquirer::Host
            && side.as_ref().is_some_and(|side| side.events.blocks(access))
        {
            return None;
        }
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            if state & QUEUED != 0 {
                return None;
            }
            let next = granted(state, access)?;
            match self.state.compare_exchange_weak(
                state,
                next,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => break,
                Err(now) => state = now,
            }
        }
        if access.is_write() {
            Var::written_from_here();
        }
        Some(state & POISONED != 0)
    }

    /// Releases a grant or what [`Var::try_acquire`] acquired. If it returns true, the caller must call [`Var::dispatch`].
    #[inline]
    #[must_use]
    pub(crate) fn release(&self, access: Access) -> bool {
        let step = if access.is_write() { WRITER } else { READER };
        let before = self.state.fetch_sub(step, Ordering::AcqRel);
        // Only the last holder can make the head of the queue grantable.
        before & QUEUED != 0 && (before - step) & READERS == 0
    }

    /// Sets the failure (`Some`), or clears it after an overwrite. The holder of a write access calls it before the release.
    #[inline]
    pub(crate) fn settle_write(&self, access: Access, failure: Option<&Failure>) {
        let clears =
            access == Access::Overwrite && self.state.load(Ordering::Relaxed) & POISONED != 0;
        if failure.is_some() || clears {
            self.set_poison(failure.cloned());
        }
    }

    #[cold]
    fn set_poison(&self, failure: Option<Failure>) {
        let _gate = fork::enter();
        let mut side = self.side.lock();
        let is_failed = failure.is_some();
        let replaced = std::mem::replace(&mut side.get_or_insert_default().failure, failure);
        if is_failed {
            self.state.fetch_or(POISONED, Ordering::AcqRel);
        } else {
            self.state.fetch_and(!POISONED, Ordering::AcqRel);
        }
        drop(side);
        // The error's destructor may run arbitrary code and must not run under the lock.
        drop(replaced);
    }

    pub(crate) fn is_poisoned(&self) -> bool {
        self.state.load(Ordering::Acquire) & POISONED != 0
    }

    /// The failure; for holders.
    pub(crate) fn poison(&self) -> Option<Failure> {
        if self.state.load(Ordering::Acquire) & POISONED == 0 {
            return None;
        }
        self.side
            .lock()
            .as_ref()
            .and_then(|side| side.failure.clone())
    }

    /// Whether an access pushed now would be granted at once.
    pub(crate) fn is_grantable(&self, access: Access) -> bool {
        let state = self.state.load(Ordering::Acquire);
        state & QUEUED == 0 && granted(state & !EVENTS, access).is_some()
    }

    pub(crate) fn lock_side(&self) -> SideLock<'_> {
        self.side.lock()
    }

    /// Acquires a read by compare-and-swap without waiting. Returns whether it succeeded.
    pub(crate) fn try_read(&self) -> bool {
        let mut state = self.state.load(Ordering::Relaxed);
        while state & (WRITER | QUEUED | EVENTS) == 0 {
            match self.state.compare_exchange_weak(
                state,
                state + READER,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(now) => state = now,
            }
        }
        false
    }

    /// Second phase of a push, under the variable's lock: grants at once (true) or queues. `is_held`: the calling thread holds the variable for
    /// reading.
    pub(crate) fn enqueue_op(
        &self,
        side: &mut SideLock<'_>,
        node: &Arc<Node>,
        access: Access,
        is_held: bool,
    ) -> bool {
        self.enqueue(side, access, is_held, || Requester::Op(Arc::clone(node)))
    }

    /// As [`Var::enqueue_op`], for a thread that reads.
    pub(crate) fn enqueue_reader(
        &self,
        side: &mut SideLock<'_>,
        waiter: &Arc<Waiter>,
        is_held: bool,
    ) -> bool {
        self.enqueue(side, Access::Read, is_held, || {
            Requester::Reader(Arc::clone(waiter))
        })
    }

    fn enqueue(
        &self,
        side: &mut SideLock<'_>,
        access: Access,
        is_held: bool,
        requester: impl FnOnce() -> Requester,
    ) -> bool {
        if is_held && access == Access::Read {
            // There is a reader already, so no writer can be granted: one more reader delays nobody.
            self.state.fetch_add(READER, Ordering::Acquire);
            return true;
        }
        if side.as_ref().is_none_or(|side| side.queue.is_empty()) {
            let mut state = self.state.load(Ordering::Relaxed);
            loop {
                let next = granted(state, access);
                // Setting QUEUED by compare-and-swap makes sure that the holder seen in `state` sees it at its release.
                let target = next.unwrap_or(state | QUEUED);
                match self.state.compare_exchange_weak(
                    state,
                    target,
                    Ordering::AcqRel,
                    Ordering::Relaxed,
                ) {
                    Ok(_) if next.is_some() => return true,
                    Ok(_) => break,
                    Err(now) => state = now,
                }
            }
        }
        let queued = Queued {
            access,
            requester: requester(),
        };
        side.get_or_insert_default().queue.push_back(queued);
        false
    }

    /// Queues a waiter, unless everything that it must follow is done already (true).
    pub(crate) fn enqueue_waiter(&self, waiter: &Arc<Waiter>, access: Access) -> bool {
        let mut side = self.side.lock();
        if side.as_ref().is_none_or(|side| side.queue.is_empty()) {
            let mut state = self.state.load(Ordering::Acquire);
            loop {
                if granted(state, access).is_some() {
                    return true;
                }
                match self.state.compare_exchange_weak(
                    state,
                    state | QUEUED,
                    Ordering::AcqRel,
                    Ordering::Acquire,
                ) {
                    Ok(_) => break,
                    Err(now) => state = now,
                }
            }
        }
        let queued = Queued {
            access,
            requester: Requester::Waiter(Arc::clone(waiter)),
        };
        side.get_or_insert_default().queue.push_back(queued);
        false
    }

    /// Removes a waiter that gives up. Others may have waited behind it.
    pub(crate) fn remove_waiter(&self, waiter: &Arc<Waiter>, ready: &mut Ready) {
        let mut side = self.side.lock();
        if let Some(inner) = side.as_mut() {
            let is_same = |queued: &Queued| matches!(&queued.requester, Requester::Waiter(w) if Arc::ptr_eq(w, waiter));
            if let Some(at) = inner.queue.iter().position(is_same) {
                inner.queue.remove(at);
                if inner.queue.is_empty() {
                    self.state.fetch_and(!QUEUED, Ordering::AcqRel);
                }
            }
        }
        drop(side);
        self.dispatch(ready);
    }

    /// Removes a queued reader (true), or releases what it was granted. The caller's claim keeps the variable alive.
    pub(crate) fn withdraw_reader(&self, waiter: &Arc<Waiter>, ready: &mut Ready) -> bool {
        let is_same = |queued: &Queued| matches!(&queued.requester, Requester::Reader(w) if Arc::ptr_eq(w, waiter));
        let mut side = self.side.lock();
        let queue = side.as_mut().map(|side| &mut side.queue);
        let was_queued = queue.is_some_and(|queue| {
            let at = queue.iter().position(is_same);
            at.is_some_and(|at| {
                queue.remove(at);
                if queue.is_empty() {
                    self.state.fetch_and(!QUEUED, Ordering::AcqRel);
                }
                true
            })
        });
        drop(side);
        if was_queued || self.release(Access::Read) {
            self.dispatch(ready);
        }
        was_queued
    }

    /// Grants accesses from the head of the queue while that is possible. The caller's claim keeps the variable alive.
    pub(crate) fn dispatch(&self, ready: &mut Ready) {
        let mut side = self.side.lock();
        let Some(side) = side.as_mut() else { return };
        while let Some(head) = side.queue.front() {
            let is_last = side.queue.len() == 1;
            let is_waiter = matches!(head.requester, Requester::Waiter(_));
            let mut state = self.state.load(Ordering::Acquire);
            loop {
                let Some(mut next) = granted(state, head.access) else {
                    return;
                };
                if is_waiter {
                    // A waiter follows the accesses before it and holds nothing, so the state does not change.
                    next = state;
                }
                if is_last {
                    next &= !QUEUED;
                }
                match self.state.compare_exchange_weak(
                    state,
                    next,
                    Ordering::AcqRel,
                    Ordering::Acquire,
                ) {
                    Ok(_) => break,
                    Err(now) => state = now,
                }
            }
            match side.queue.pop_front().map(|queued| queued.requester) {
                Some(Requester::Op(node)) => ready.granted(node, 1),
                Some(Requester::Waiter(waiter) | Requester::Reader(waiter)) => {
                    ready.waiters.push(waiter)
                }
                None => return,
            }
        }
    }
}
