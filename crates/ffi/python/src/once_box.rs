//! [`OnceBox`]: a static value that is made at its first use, without a lock.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

/// A static value that is made at its first use and never changes afterwards.
///
/// Initialisation takes no lock. Threads that initialise a cell with a lock run Python code, or wait for the GIL, meanwhile; a process
/// that is forked then would find the cell locked for ever. Two threads may therefore make the value at the same time; the first value
/// is kept.
pub struct OnceBox<T>(AtomicPtr<T>);

impl<T: Send + Sync> OnceBox<T> {
    /// A cell without a value.
    pub const fn new() -> OnceBox<T> {
        OnceBox(AtomicPtr::new(ptr::null_mut()))
    }

    /// The value, if there is one.
    #[inline]
    pub fn get(&'static self) -> Option<&'static T> {
        // SAFETY: null, or a leaked box that is never written.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    /// The value, made by `init` if there is none yet.
    ///
    /// # Errors
    /// Those of `init`; the cell stays empty then.
    #[inline]
    pub fn get_or_try_init(
        &'static self,
        init: impl FnOnce() -> PyResult<T>,
    ) -> PyResult<&'static T> {
        match self.get() {
            Some(value) => Ok(value),
            None => Ok(self.set(init()?)),
        }
    }

    /// Stores the value unless there is one already, and returns the stored one.
    #[cold]
    pub fn set(&'static self, value: T) -> &'static T {
        let new = Box::into_raw(Box::new(value));
        let stored =
            self.0
                .compare_exchange(ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire);
        match stored {
            // SAFETY: a leaked box.
            Ok(_) => unsafe { &*new },
            Err(first) => {
                // SAFETY: 1. the box was allocated above and is not shared. 2. as in `get`.
                unsafe {
                    drop(Box::from_raw(new));
                    &*first
                }
            }
        }
    }
}

impl OnceBox<Py<PyType>> {
    /// The class called `name` in a module, which is imported at the first use.
    #[inline]
    pub fn import<'py>(
        &'static self,
        py: Python<'py>,
        module: &str,
        name: &str,
    ) -> PyResult<&'py Bound<'py, PyType>> {
        let class = self.get_or_try_init(|| {
            let class = py.import(module)?.getattr(name)?;
            Ok(class.cast_into::<PyType>()?.unbind())
        });
        Ok(class?.bind(py))
    }
}

impl OnceBox<Py<PyString>> {
    /// The interned string.
    #[inline]
    pub fn text<'py>(&'static self, py: Python<'py>, text: &str) -> &'py Bound<'py, PyString> {
        let found = self.get();
        found
            .unwrap_or_else(|| self.set(PyString::intern(py, text).unbind()))
            .bind(py)
    }
}

/// An interned string, created once.
macro_rules! interned {
    ($py:expr, $text:literal) => {{
        static TEXT: $crate::once_box::OnceBox<pyo3::Py<pyo3::types::PyString>> =
            $crate::once_box::OnceBox::new();
        TEXT.text($py, $text)
    }};
}

pub(crate) use interned;
