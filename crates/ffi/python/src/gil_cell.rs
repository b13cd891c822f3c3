//! [`GilCell`]: a value inside a Python object, guarded by the interpreter's lock.

use std::cell::UnsafeCell;

use pyo3::Python;

/// Mutable content of a frozen class. The GIL is the lock: every access takes a `Python` token. Nothing else guards the value, so builds for
/// Python without the GIL are refused (`typed.rs`).
#[repr(transparent)]
pub struct GilCell<T>(UnsafeCell<T>);

// SAFETY: every access takes a `Python` token, so two threads never access the value at the same time.
unsafe impl<T: Send> Sync for GilCell<T> {}

impl<T> GilCell<T> {
    /// Guards `value`.
    pub const fn new(value: T) -> GilCell<T> {
        GilCell(UnsafeCell::new(value))
    }

    /// The address of the value, given memory that is to become a `GilCell`.
    #[inline]
    pub fn inside(cell: *mut GilCell<T>) -> *mut T {
        cell.cast()
    }

    /// A reference to a part of the value. While the result lives, no Python code may run and the GIL may not be released: both could replace the
    /// value.
    #[inline]
    pub fn borrow_part<'a, P>(
        &'a self,
        _py: Python<'a>,
        part: impl FnOnce(&T) -> &P,
    ) -> Ref<'a, P> {
        // SAFETY: the token shows that this thread holds the GIL, and no other thread gets it while the result lives (rule above).
        Ref(part(unsafe { &*self.0.get() }))
    }

    /// As [`GilCell::borrow_part`], for a part that may be absent.
    #[inline]
    pub fn try_borrow_part<'a, P>(
        &'a self,
        _py: Python<'a>,
        part: impl FnOnce(&T) -> Option<&P>,
    ) -> Option<Ref<'a, P>> {
        // SAFETY: as above.
        part(unsafe { &*self.0.get() }).map(Ref)
    }

    /// Changes the value in place; no Python code may run in `change`.
    #[inline]
    pub fn change<R>(&self, _py: Python<'_>, change: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: the token shows that this thread holds the GIL, which it keeps until `change` returns; `change` cannot access the value otherwise.
        change(unsafe { &mut *self.0.get() })
    }

    /// The value, of which there is no other reference.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }

    /// Replaces the value.
    pub fn set(&self, _py: Python<'_>, value: T) {
        // SAFETY: as in `change`. The old value is dropped after the new one is in place, because its destructor may run Python code.
        let old = unsafe { std::ptr::replace(self.0.get(), value) };
        drop(old);
    }
}

/// A reference to a value that must not be replaced while the reference lives.
pub struct Ref<'a, T>(&'a T);

impl<T> Ref<'_, T> {
    /// Ends the reference explicitly: Python code may run after this.
    #[inline]
    pub fn end(self) {}
}

impl<T> std::ops::Deref for Ref<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.0
    }
}
