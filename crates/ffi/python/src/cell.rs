//! A value inside a Python object that the interpreter's lock guards.

use pyo3::Python;

/// Holds what a frozen class may still change. With the global lock the lock itself is the guard; without it, a read-write lock is.
#[cfg_attr(not(Py_GIL_DISABLED), repr(transparent))]
pub struct Guarded<T>(inner::Cell<T>);

#[cfg(not(Py_GIL_DISABLED))]
mod inner {
    /// Guarded by the interpreter's lock.
    #[repr(transparent)]
    pub struct Cell<T>(pub std::cell::UnsafeCell<T>);

    // SAFETY: every access shows a `Python` token, so two threads never touch the value at the same time.
    unsafe impl<T: Send> Sync for Cell<T> {}
}

#[cfg(Py_GIL_DISABLED)]
mod inner {
    /// Guarded by its own lock.
    pub struct Cell<T>(pub parking_lot::RwLock<T>);
}

impl<T> Guarded<T> {
    /// Guards `value`.
    #[cfg(not(Py_GIL_DISABLED))]
    pub const fn new(value: T) -> Guarded<T> {
        Guarded(inner::Cell(std::cell::UnsafeCell::new(value)))
    }

    /// Guards `value`.
    #[cfg(Py_GIL_DISABLED)]
    pub const fn new(value: T) -> Guarded<T> {
        Guarded(inner::Cell(parking_lot::RwLock::new(value)))
    }

    /// Writes one to the place where it shall stay, with the value that `write` writes to its own place, if it does. Answers whether it did.
    ///
    /// # Safety
    /// `to` is valid for writes; `write` has initialised the place that it is given if it answers yes.
    #[cfg(not(Py_GIL_DISABLED))]
    #[inline]
    pub unsafe fn write_by(to: *mut Guarded<T>, write: impl FnOnce(*mut T) -> bool) -> bool {
        write(to.cast())
    }

    /// Writes one to the place where it shall stay, with the value that `write` writes to its own place, if it does. Answers whether it did.
    ///
    /// # Safety
    /// `to` is valid for writes; `write` has initialised the place that it is given if it answers yes.
    #[cfg(Py_GIL_DISABLED)]
    #[inline]
    pub unsafe fn write_by(to: *mut Guarded<T>, write: impl FnOnce(*mut T) -> bool) -> bool {
        let mut value = std::mem::MaybeUninit::uninit();
        let is_written = write(value.as_mut_ptr());
        if is_written {
            // SAFETY: the caller's.
            unsafe { to.write(Guarded::new(value.assume_init())) };
        }
        is_written
    }

    /// A part of the value, to look at. While the result lives, no Python code may run and the lock may not be released: either could replace
    /// the value under it.
    #[cfg(not(Py_GIL_DISABLED))]
    #[inline]
    pub fn look_at<'a, P>(&'a self, _py: Python<'a>, part: impl FnOnce(&T) -> &P) -> Look<'a, P> {
        // SAFETY: the token shows that this thread holds the lock, and until the result is gone nobody else gets it (rule above).
        Look(part(unsafe { &*self.0.0.get() }))
    }

    /// A part of the value, to look at.
    #[cfg(Py_GIL_DISABLED)]
    #[inline]
    pub fn look_at<'a, P>(&'a self, _py: Python<'a>, part: impl FnOnce(&T) -> &P) -> Look<'a, P> {
        Look(parking_lot::RwLockReadGuard::map(self.0.0.read(), part))
    }

    /// A part that the value may have, to look at; as [`Guarded::look_at`].
    #[cfg(not(Py_GIL_DISABLED))]
    #[inline]
    pub fn look_if<'a, P>(
        &'a self,
        _py: Python<'a>,
        part: impl FnOnce(&T) -> Option<&P>,
    ) -> Option<Look<'a, P>> {
        // SAFETY: as above.
        part(unsafe { &*self.0.0.get() }).map(Look)
    }

    /// A part that the value may have, to look at.
    #[cfg(Py_GIL_DISABLED)]
    #[inline]
    pub fn look_if<'a, P>(
        &'a self,
        _py: Python<'a>,
        part: impl FnOnce(&T) -> Option<&P>,
    ) -> Option<Look<'a, P>> {
        let value = self.0.0.read();
        parking_lot::RwLockReadGuard::try_map(value, part)
            .ok()
            .map(Look)
    }

    /// Changes the value in place; no Python code may run in `change`.
    #[cfg(not(Py_GIL_DISABLED))]
    #[inline]
    pub fn change<R>(&self, _py: Python<'_>, change: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: the token shows that this thread holds the lock, which it keeps until `change` is done, and `change` sees no other way here.
        change(unsafe { &mut *self.0.0.get() })
    }

    /// Changes the value in place; no Python code may run in `change`.
    #[cfg(Py_GIL_DISABLED)]
    #[inline]
    pub fn change<R>(&self, _py: Python<'_>, change: impl FnOnce(&mut T) -> R) -> R {
        change(&mut self.0.0.write())
    }

    /// Replaces the value.
    #[cfg(not(Py_GIL_DISABLED))]
    pub fn set(&self, _py: Python<'_>, value: T) {
        // SAFETY: as in `with`. The old value is dropped after the new one is in place: its destructor may run Python code.
        let old = unsafe { std::ptr::replace(self.0.0.get(), value) };
        drop(old);
    }

    /// Replaces the value.
    #[cfg(Py_GIL_DISABLED)]
    pub fn set(&self, _py: Python<'_>, value: T) {
        let old = std::mem::replace(&mut *self.0.0.write(), value);
        drop(old);
    }
}

/// A value that stays as it is while this lives.
#[cfg(not(Py_GIL_DISABLED))]
pub struct Look<'a, T>(&'a T);

/// A value that stays as it is while this lives.
#[cfg(Py_GIL_DISABLED)]
pub struct Look<'a, T>(parking_lot::MappedRwLockReadGuard<'a, T>);

impl<T> Look<'_, T> {
    /// Ends it before its scope does: Python code may run from here on.
    #[inline]
    pub fn end(self) {}
}

impl<T> std::ops::Deref for Look<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.0
    }
}
