//! Operations on the calling thread: acquired by compare-and-swap, released by a guard.

use smallvec::SmallVec;

use crate::engine::Shared;
use crate::failure::Failure;
use crate::fork;
use crate::schedule::Ready;
use crate::stats::count;
use crate::var::{Access, Place, Var};

/// Variables held for an operation that runs inline. Dropping it releases them.
///
/// It must be dropped before its thread waits for one of its variables.
pub struct Inline<'v> {
    shared: &'v Shared,
    held: SmallVec<[(&'v Var, Access); 6]>,
    is_poisoned: bool,
}

impl Inline<'_> {
    /// The failure of a variable that is read, the oldest of several. The caller then does not run its kernel but calls
    /// [`Inline::fail`] with it.
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

    /// Releases all variables; those that are written carry `failure` from now on.
    pub fn fail(mut self, failure: Failure) {
        if !self.is_poisoned {
            count(&self.shared.counters.failed);
        }
        self.shared.list(&failure);
        for (var, access) in &self.held {
            if access.is_write() {
                var.settle_write(*access, Some(&failure));
            }
        }
        self.release();
    }

    /// Releases what is held, from the back.
    #[inline]
    fn release(&mut self) {
        while let Some((var, access)) = self.held.pop() {
            if var.release(access) {
                self.shared.dispatch(var);
            }
        }
    }
}

impl Drop for Inline<'_> {
    #[inline]
    fn drop(&mut self) {
        for (var, access) in &self.held {
            if *access == Access::Overwrite {
                var.settle_write(*access, None);
            }
        }
        self.release();
    }
}

impl Shared {
    /// Acquires all or nothing.
    #[inline]
    pub(crate) fn acquire<'v>(
        &'v self,
        reads: &[&'v Var],
        writes: &[(&'v Var, Access)],
        place: Place,
    ) -> Option<Inline<'v>> {
        let mut inline = Inline {
            shared: self,
            held: SmallVec::new(),
            is_poisoned: false,
        };
        for &(var, access) in writes {
            match var.try_acquire(access, place) {
                Some(is_poisoned) => {
                    inline.is_poisoned |= is_poisoned && access.is_read();
                    inline.held.push((var, access));
                }
                None => inline.take_again(var, access)?,
            }
        }
        for &var in reads {
            match var.try_acquire(Access::Read, place) {
                Some(is_poisoned) => {
                    inline.is_poisoned |= is_poisoned;
                    inline.held.push((var, Access::Read));
                }
                None => inline.take_again(var, Access::Read)?,
            }
        }
        Some(inline)
    }

    /// The last inline holder saw that somebody waits.
    #[cold]
    fn dispatch(&self, var: &Var) {
        let _gate = fork::enter();
        let mut ready = Ready::default();
        var.dispatch(&mut ready);
        self.schedule(ready, 0);
    }
}

impl<'v> Inline<'v> {
    /// A variable that is not free may be held by this very guard: an operation that works in place names it twice.
    #[cold]
    fn take_again(&mut self, var: &'v Var, access: Access) -> Option<()> {
        let own = self
            .held
            .iter_mut()
            .find(|(held, held_access)| std::ptr::eq(*held, var) && held_access.is_write());
        if let Some((_, held_access)) = own {
            *held_access = held_access.merge(access);
            self.is_poisoned |= held_access.is_read() && var.is_poisoned();
            return Some(());
        }
        // Rolled back, not done: an overwrite must not clear a failure.
        for (held, access) in std::mem::take(&mut self.held) {
            if held.release(access) {
                self.shared.dispatch(held);
            }
        }
        None
    }
}
