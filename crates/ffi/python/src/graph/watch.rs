//! Lengths that a traced function reads: objects that record the decisions made with them.

use std::cell::RefCell;

use mxnet::core::Array;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt, PyTuple, PyType};

use crate::once_box::{OnceBox, interned};

/// The classes of lengths: integers, and real numbers computed from them.
static CLASSES: OnceBox<(Py<PyType>, Py<PyType>)> = OnceBox::new();

thread_local! {
    /// Called with lengths that the function gets as plain integers, while a trace watches lengths.
    static SEEN: RefCell<Option<Py<PyAny>>> = const { RefCell::new(None) };
}

/// Sets the classes of lengths: one derived from `int`, one from `float`. Only the first call has an effect.
#[pyfunction]
pub fn classes_of_lengths(whole: Py<PyType>, real: Py<PyType>) {
    CLASSES.set((whole, real));
}

/// Whether an object is a length, or a real number computed from lengths.
#[inline]
pub fn is_length(object: &Bound<'_, PyAny>) -> bool {
    CLASSES.get().is_some_and(|(whole, real)| {
        let class = object.get_type();
        class.is(whole) || class.is(real)
    })
}

/// A length as an `int` or a `float`; `None` for other objects.
pub fn python_number<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    if !is_length(object) {
        return Ok(None);
    }
    let py = object.py();
    let number = match object.is_instance_of::<PyInt>() {
        true => object.call_method0(interned!(py, "__int__"))?,
        false => object.call_method0(interned!(py, "__float__"))?,
    };
    debug_assert!(
        number.is_exact_instance_of::<PyInt>() || number.is_exact_instance_of::<PyFloat>()
    );
    Ok(Some(number))
}

/// Runs `body`. Meanwhile shapes of abstract arrays consist of length objects, and `seen` is called with those that are read as plain integers.
pub fn watched<R>(seen: Py<PyAny>, body: impl FnOnce() -> R) -> R {
    /// Restores the previous value, also if `body` panics.
    struct Restore(Option<Py<PyAny>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            SEEN.set(self.0.take());
        }
    }
    let _restore = Restore(SEEN.replace(Some(seen)));
    body()
}

/// The class of lengths, if a trace of this thread watches them.
fn class(py: Python<'_>) -> Option<&Bound<'_, PyType>> {
    let is_watched = SEEN.with_borrow(Option::is_some);
    let classes = CLASSES.get().filter(|_| is_watched);
    classes.map(|(whole, _)| whole.bind(py))
}

/// The shape of an abstract array, as length objects if a trace watches lengths.
#[cold]
pub fn shape(py: Python<'_>, x: &Array) -> PyResult<Option<Py<PyAny>>> {
    let Some(class) = class(py) else {
        return Ok(None);
    };
    let sizes = x.shape().iter().map(|&n| class.call1((n,)));
    let sizes = sizes.collect::<PyResult<Vec<_>>>()?;
    Ok(Some(PyTuple::new(py, sizes)?.into_any().unbind()))
}

/// The number of elements of an abstract array, as a length object if a trace watches lengths.
#[cold]
pub fn size(py: Python<'_>, x: &Array) -> PyResult<Option<Py<PyAny>>> {
    let made = class(py).map(|class| class.call1((x.len(),)));
    Ok(made.transpose()?.map(Bound::unbind))
}

/// Reports that a length was read as a plain integer.
#[cold]
pub fn note_len(py: Python<'_>, n: usize) -> PyResult<()> {
    let seen = SEEN.with_borrow(|seen| seen.as_ref().map(|seen| seen.clone_ref(py)));
    seen.map_or(Ok(()), |seen| seen.call1(py, (n,)).map(drop))
}
