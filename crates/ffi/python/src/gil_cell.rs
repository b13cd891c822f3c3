//! [`GilCell`]: a value inside a Python object, guarded by the interpreter's lock.

use std::cell::UnsafeCell;

use pyo3::Python;

/// Holds what a frozen class may still change. The interpreter's lock is the guard: every access shows a `Python` token. There is no other guard, so
/// that Pythons without that lock are refused where this is compiled (`array/class.rs`).
#[repr(transparent)]
pub struct GilCell<T>(UnsafeCell<T>);

// SAFETY: every access shows a `Python` token, so two threads never touch the value at the same time.
unsafe impl<T: Send> Sync for GilCell<T> {}

impl<T> GilCell<T> {
    /// Guards `value`.
    pub const fn new(value: T) -> GilCell<T> {
        GilCell(UnsafeCell::new(value))
    }

    /// The place of the value in memory that is to become one.
    #[inline]
    pub fn inside(place: *mut GilCell<T>) -> *mut T {
        place.cast()
    }

    /// A part of the value, to look at. While the result lives, no Python code may run and the lock may not be released: either could replace
    /// the value under it.
    #[inline]
    pub fn look_at<'a, P>(&'a self, _py: Python<'a>, part: impl FnOnce(&T) -> &P) -> Ref<'a, P> {
        // SAFETY: the token shows that this thread holds the lock, and until the result is gone nobody else gets it (rule above).
        Ref(part(unsafe { &*self.0.get() }))
    }

    /// A part that the value may have, to look at; as [`GilCell::look_at`].
    #[inline]
    pub fn look_if<'a, P>(
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
        // SAFETY: the token shows that this thread holds the lock, which it keeps until `change` is done, and `change` sees no other way here.
        change(unsafe { &mut *self.0.get() })
    }

    /// Replaces the value.
    pub fn set(&self, _py: Python<'_>, value: T) {
        // SAFETY: as in `with`. The old value is dropped after the new one is in place: its destructor may run Python code.
        let old = unsafe { std::ptr::replace(self.0.get(), value) };
        drop(old);
    }
}

/// A value that stays as it is while this lives.
pub struct Ref<'a, T>(&'a T);

impl<T> Ref<'_, T> {
    /// Ends it before its scope does: Python code may run from here on.
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
