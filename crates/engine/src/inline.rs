//! Inline operations: acquired on the calling thread by compare-and-swap, released by a guard.

use crate::engine::Shared;
use crate::failure::Failure;
use crate::fork;
use crate::pool::Next;
use crate::schedule::Ready;
use crate::stats::count;
use crate::var::{Access, Acquirer, Var};

/// Variables held for an operation that runs inline. Dropping it releases them.
///
/// It must be dropped before its thread waits for one of its variables.
pub struct Inline<'v> {
    shared: &'v Shared,
    held: HeldVars<'v>,
    is_poisoned: bool,
}

/// Number of variables stored in the guard. With this many it fits into one cache line; it is constructed and moved on every call.
const INLINE_VARS: usize = 5;

/// A list of variables and accesses that allocates only if it is long.
struct HeldVars<'v> {
    vars: [Option<&'v Var>; INLINE_VARS],
    accesses: [Access; INLINE_VARS],
    len: u8,
    #[expect(
        clippy::box_collection,
        reason = "a vector by value would not fit into the cache line"
    )]
    more: Option<Box<Vec<(&'v Var, Access)>>>,
}

impl<'v> HeldVars<'v> {
    #[inline]
    fn new() -> HeldVars<'v> {
        HeldVars {
            vars: [None; INLINE_VARS],
            accesses: [Access::Read; INLINE_VARS],
            len: 0,
            more: None,
        }
    }

    #[inline]
    fn push(&mut self, var: &'v Var, access: Access) {
        let at = usize::from(self.len);
        if at < INLINE_VARS {
            self.vars[at] = Some(var);
            self.accesses[at] = access;
            self.len += 1;
        } else {
            self.push_more(var, access);
        }
    }

    #[cold]
    fn push_more(&mut self, var: &'v Var, access: Access) {
        self.more.get_or_insert_default().push((var, access));
    }

    fn iter(&self) -> impl Iterator<Item = (&'v Var, Access)> + '_ {
        let inline_vars = self
            .vars
            .iter()
            .zip(&self.accesses)
            .filter_map(|(var, access)| Some(((*var)?, *access)));
        inline_vars.chain(self.more.iter().flat_map(|more| more.iter().copied()))
    }

    /// The access of a held variable, if it is a write.
    fn write_access(&mut self, var: &Var) -> Option<&mut Access> {
        let inline_vars = self
            .vars
            .iter()
            .zip(&mut self.accesses)
            .filter_map(|(var, access)| Some(((*var)?, access)));
        let more = self
            .more
            .iter_mut()
            .flat_map(|more| more.iter_mut().map(|(var, access)| (*var, access)));
        inline_vars
            .chain(more)
            .find(|(held, access)| std::ptr::eq(*held, var) && access.is_write())
            .map(|(_, access)| access)
    }

    /// Removes all entries and passes them to `each`.
    #[inline]
    fn drain(&mut self, mut each: impl FnMut(&Var, Access)) {
        for (var, access) in self.vars.iter_mut().zip(&self.accesses) {
            let Some(var) = var.take() else { break };
            each(var, *access);
        }
        self.len = 0;
        if let Some(more) = self.more.take() {
            more.into_iter().for_each(|(var, access)| each(var, access));
        }
    }
}

impl Inline<'_> {
    /// The failure of a variable that is read; the oldest of several. The caller must then call [`Inline::fail`] with it instead of running its
    /// kernel.
    #[inline]
    pub fn poison(&self) -> Option<Failure> {
        if self.is_poisoned {
            self.oldest_poison()
        } else {
            None
        }
    }

    #[cold]
    fn oldest_poison(&self) -> Option<Failure> {
        let _gate = fork::enter();
        let read = self.held.iter().filter(|(_, access)| access.is_read());
        read.filter_map(|(var, _)| var.poison())
            .reduce(Failure::older)
    }

    /// Releases all variables. Those that are written carry `failure` from now on.
    pub fn fail(mut self, failure: Failure) {
        if !self.is_poisoned {
            count(&self.shared.counters.failed);
        }
        self.shared.add_unreported(&failure);
        for (var, access) in self.held.iter().filter(|(_, access)| access.is_write()) {
            var.settle_write(access, Some(&failure));
        }
        self.roll_back();
    }

    /// Releases the variables without changing their failures.
    #[cold]
    fn roll_back(&mut self) {
        let shared = self.shared;
        self.held.drain(|var, access| shared.release(var, access));
    }
}

impl Drop for Inline<'_> {
    #[inline]
    fn drop(&mut self) {
        let shared = self.shared;
        self.held.drain(|var, access| {
            var.settle_write(access, None);
            shared.release(var, access);
        });
    }
}

impl Shared {
    /// Acquires all or nothing.
    #[inline]
    pub(crate) fn acquire<'v>(
        &'v self,
        reads: &[&'v Var],
        writes: &[(&'v Var, Access)],
        acquirer: Acquirer,
    ) -> Option<Inline<'v>> {
        // Constructed in the return slot: copying the guard right after the atomic operations would stall on them.
        let mut inline = Some(Inline {
            shared: self,
            held: HeldVars::new(),
            is_poisoned: false,
        });
        if let Some(guard) = &mut inline {
            if guard.fill(reads, writes, acquirer) {
                self.count_inline();
            } else {
                inline = None;
            }
        }
        inline
    }

    /// Acquires one variable; `None` if it is not free or carries a failure.
    #[inline]
    pub(crate) fn hold<'v>(&'v self, var: &'v Var, access: Access) -> Option<Hold<'v>> {
        debug_assert_ne!(access, Access::Overwrite, "a hold clears no failure");
        let is_poisoned = var.try_acquire(access, Acquirer::Host)?;
        let hold = Hold {
            shared: self,
            var,
            access,
        };
        (!is_poisoned).then_some(hold)
    }

    #[inline]
    pub(crate) fn release(&self, var: &Var, access: Access) {
        if var.release(access) {
            self.dispatch(var);
        }
    }

    /// Dispatches the queue: the last inline holder saw that it is not empty.
    #[cold]
    fn dispatch(&self, var: &Var) {
        let _gate = fork::enter();
        let mut ready = Ready::default();
        var.dispatch(&mut ready);
        self.schedule(ready, Next::Other);
    }
}

/// One variable held for a short time. Dropping it releases the variable.
///
/// It must be dropped before its thread waits for this variable.
pub struct Hold<'v> {
    shared: &'v Shared,
    var: &'v Var,
    access: Access,
}

impl Drop for Hold<'_> {
    #[inline]
    fn drop(&mut self) {
        self.shared.release(self.var, self.access);
    }
}

impl<'v> Inline<'v> {
    #[inline]
    fn fill(
        &mut self,
        reads: &[&'v Var],
        writes: &[(&'v Var, Access)],
        acquirer: Acquirer,
    ) -> bool {
        for &(var, access) in writes {
            match var.try_acquire(access, acquirer) {
                Some(is_poisoned) => {
                    self.is_poisoned |= is_poisoned && access.is_read();
                    self.held.push(var, access);
                }
                None if self.take_again(var, access) => {}
                None => return false,
            }
        }
        for &var in reads {
            match var.try_acquire(Access::Read, acquirer) {
                Some(is_poisoned) => {
                    self.is_poisoned |= is_poisoned;
                    self.held.push(var, Access::Read);
                }
                None if self.take_again(var, Access::Read) => {}
                None => return false,
            }
        }
        true
    }

    /// Handles a variable that this guard holds already: an operation that works in place lists it twice.
    #[cold]
    fn take_again(&mut self, var: &'v Var, access: Access) -> bool {
        if let Some(own) = self.held.write_access(var) {
            *own = own.merge(access);
            self.is_poisoned |= own.is_read() && var.is_poisoned();
            return true;
        }
        // The access did not happen: an overwrite must not clear a failure.
        self.roll_back();
        false
    }
}
