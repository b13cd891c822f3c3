//! Read guards, by which the host reads values. A guard holds read access to variables for its thread.
//!
//! A thread that holds a variable for reading may read it again: its reads pass writers that have queued up since, which wait for the guard anyway.
//! Otherwise an operation that the holder pushes would wait behind a writer that waits for the holder.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::engine::Shared;
use crate::failure::{Failure, WaitError};
use crate::fork;
use crate::pool::Next;
use crate::schedule::Ready;
use crate::sync::{Ordering, thread_local};
use crate::var::{Access, SideLock, Var};
use crate::wait::{Outcome, Waiter};

/// A bit of `Shared::readers`: a fork is in preparation, and new readers wait until it ends.
pub(crate) const FORKING: usize = 1 << (usize::BITS - 1);

type Vars<'v> = SmallVec<[&'v Var; 4]>;

/// One variable that this thread holds for reading.
struct ReadHold {
    /// Address of the variable, only compared.
    var: usize,
    /// Whether this thread has pushed a write since. Its later reads come after that write.
    is_written: bool,
}

thread_local! {
    /// Entries of all guards of this thread, one for each guard and variable.
    #[allow(clippy::missing_const_for_thread_local, reason = "loom's macro has no `const` form")]
    static HELD: RefCell<Vec<ReadHold>> = RefCell::new(Vec::new());
    /// Number of guards of this thread.
    #[allow(clippy::missing_const_for_thread_local, reason = "loom's macro has no `const` form")]
    static NUM_GUARDS: Cell<usize> = Cell::new(0);
}

/// Whether this thread holds a read guard. If so, it must not wait for a lock whose holder may be waiting for a variable.
pub fn holds_read_guard() -> bool {
    num_guards() > 0
}

/// Number of guards that this thread holds.
pub(crate) fn num_guards() -> usize {
    NUM_GUARDS.with(Cell::get)
}

fn address(var: &Var) -> usize {
    std::ptr::from_ref(var).addr()
}

fn find<R>(var: &Var, found: impl FnOnce(&[ReadHold], usize) -> R) -> Option<R> {
    if num_guards() == 0 {
        return None;
    }
    HELD.with(|held| {
        let held = held.borrow();
        let at = held.iter().position(|entry| entry.var == address(var))?;
        Some(found(&held, at))
    })
}

/// Whether this thread holds the variable for reading.
pub(crate) fn is_held(var: &Var) -> bool {
    find(var, |_, _| ()).is_some()
}

/// Whether this thread may read the variable again at once: it holds the variable and has pushed no write to it since.
pub(crate) fn may_read_again(var: &Var) -> bool {
    find(var, |held, at| !held[at].is_written) == Some(true)
}

/// Must be called when this thread has pushed a write to a variable: its later reads come after that write.
pub(crate) fn note_write(var: &Var) {
    if is_held(var) {
        HELD.with(|held| {
            let mut held = held.borrow_mut();
            let same = held.iter_mut().filter(|entry| entry.var == address(var));
            same.for_each(|entry| entry.is_written = true);
        });
    }
}

/// Variables held for reading by the calling thread. Dropping it releases them.
///
/// Nobody writes them meanwhile: pushed writes wait for the guard. Operations that this thread pushes may read them, also ahead of such writes. This
/// thread may push writes to them as well, but while it holds the guard it must neither wait for those nor read after them, and it must not wait for
/// a variable that others hold or wait for.
pub struct ReadGuard<'v> {
    shared: &'v Shared,
    vars: Vars<'v>,
    /// Not `Send`: the entries belong to one thread.
    _thread: PhantomData<*const ()>,
}

impl<'v> ReadGuard<'v> {
    /// Registers variables that this thread has acquired.
    fn new(shared: &'v Shared, vars: Vars<'v>) -> ReadGuard<'v> {
        HELD.with(|held| {
            let entries = vars.iter().map(|var| ReadHold {
                var: address(var),
                is_written: false,
            });
            held.borrow_mut().extend(entries);
        });
        NUM_GUARDS.with(|count| count.set(count.get() + 1));
        ReadGuard {
            shared,
            vars,
            _thread: PhantomData,
        }
    }

    /// The oldest failure of the variables.
    fn failure(&self) -> Option<Failure> {
        (self.vars.iter())
            .filter_map(|var| var.failure())
            .reduce(Failure::older)
    }
}

impl Drop for ReadGuard<'_> {
    fn drop(&mut self) {
        HELD.with(|held| {
            let mut held = held.borrow_mut();
            for var in &self.vars {
                if let Some(at) = held.iter().rposition(|entry| entry.var == address(var)) {
                    held.remove(at);
                }
            }
        });
        NUM_GUARDS.with(|count| count.set(count.get() - 1));
        for var in &self.vars {
            self.shared.release(var, Access::Read);
        }
        self.shared.leave_readers();
    }
}

/// Queue entries or grants of variables. They are given back on drop unless they become a guard.
struct Claim<'v> {
    shared: &'v Shared,
    vars: Vars<'v>,
    waiter: Arc<Waiter>,
}

impl<'v> Claim<'v> {
    /// Enqueues on all variables at once, as a push does. One by one, two threads could wait for each other.
    fn new(shared: &'v Shared, vars: Vars<'v>) -> Claim<'v> {
        let waiter = Arc::new(Waiter::reader(vars.len() + 1));
        shared.waiting_readers.fetch_add(1, Ordering::SeqCst);
        let _gate = fork::enter();
        let mut sides: SmallVec<[SideLock<'_>; 4]> =
            vars.iter().map(|var| var.lock_side()).collect();
        let mut granted = 0;
        for (var, side) in vars.iter().zip(&mut sides) {
            granted += usize::from(var.enqueue_reader(side, &waiter, may_read_again(var)));
        }
        drop(sides);
        shared.grant(&waiter, granted + 1);
        Claim {
            shared,
            vars,
            waiter,
        }
    }

    fn is_granted(&self) -> bool {
        self.waiter.is_granted()
    }

    /// Converts a granted claim to a guard.
    fn into_guard(mut self) -> ReadGuard<'v> {
        debug_assert!(self.is_granted());
        // Leaves nothing for `drop` to give back.
        ReadGuard::new(self.shared, std::mem::take(&mut self.vars))
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if self.vars.is_empty() {
            return;
        }
        let _gate = fork::enter();
        let mut ready = Ready::default();
        let mut was_waiting = false;
        for var in &self.vars {
            was_waiting |= var.withdraw_reader(&self.waiter, &mut ready);
        }
        self.shared.schedule(ready, Next::Other);
        // If not waiting, the last grant has arrived meanwhile, and the thread that gave it removes the reader from the count.
        if was_waiting {
            self.shared.waiting_readers.fetch_sub(1, Ordering::SeqCst);
        }
        self.shared.leave_readers();
    }
}

impl Shared {
    /// See [`crate::Engine::read`].
    pub(crate) fn read<'v>(
        &'v self,
        vars: &[&'v Var],
        check: &mut dyn FnMut() -> bool,
    ) -> Result<ReadGuard<'v>, WaitError> {
        let mut vars = Vars::from_slice(vars);
        if vars.len() > 1 {
            vars.sort_by_key(|var| address(var));
            vars.dedup_by_key(|var| address(var));
        }
        for var in &vars {
            assert!(
                !is_held(var) || may_read_again(var),
                "a thread reads a variable behind its own write, which waits for its own read guard"
            );
        }
        self.enter_readers();
        let guard = match self.try_read(&vars) {
            true => ReadGuard::new(self, vars),
            false => {
                let claim = Claim::new(self, vars);
                let mut done = || claim.is_granted();
                match self.help_until(&mut done, check) {
                    Outcome::Done => claim.into_guard(),
                    Outcome::Interrupted => return Err(WaitError::Interrupted),
                }
            }
        };
        for var in &guard.vars {
            if !var.wait_events(Access::Read, check) {
                return Err(WaitError::Interrupted);
            }
        }
        match guard.failure() {
            None => Ok(guard),
            Some(failure) => {
                drop(guard);
                failure.mark_reported();
                Err(WaitError::Failed(failure))
            }
        }
    }

    /// Acquires all or nothing by compare-and-swap.
    fn try_read(&self, vars: &[&Var]) -> bool {
        let missing = vars.iter().position(|var| !var.try_read());
        if let Some(missing) = missing {
            for var in &vars[..missing] {
                self.release(var, Access::Read);
            }
        }
        missing.is_none()
    }

    /// Whether other threads hold read guards. If this thread holds none, these end without it.
    pub(crate) fn is_read_elsewhere(&self) -> bool {
        // The two counters change one after the other, so the answer may be off by one reader that comes or goes. Callers ask again.
        let readers = self.readers.load(Ordering::SeqCst) & !FORKING;
        num_guards() == 0 && readers > self.waiting_readers.load(Ordering::SeqCst)
    }

    /// Counts a reader, so that a fork does not leave its variables held in the child.
    fn enter_readers(&self) {
        while self.readers.fetch_add(1, Ordering::SeqCst) & FORKING != 0 && num_guards() == 0 {
            self.leave_readers();
            drop(fork::enter());
        }
    }

    fn leave_readers(&self) {
        self.readers.fetch_sub(1, Ordering::SeqCst);
    }
}
