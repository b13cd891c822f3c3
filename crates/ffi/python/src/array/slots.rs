//! Slots of the class of arrays that are called most, entered without a layer between: what PyO3 puts there counts itself in and out of the
//! interpreter, catches panics and asks for the class at every call, some 5 ns, which is a fifth of what one element costs.
//!
//! The stable ABI can tell what a slot of a class holds, and has no way to change it. But all slots of a class lie within the class object; where
//! exactly one of its words is the function, that word is the slot. If ever there is none, or there are two, PyO3's function stays.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use mxnet::ops::OpDef;
use mxnet::ops::elementwise as e;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;
use pyo3::{PyTypeInfo, intern};

use super::PyArray;
use crate::call::guarded;
use crate::operators::quick_binary;
use crate::{index, values};

/// A word of a class that holds a function.
pub(super) struct Slot {
    place: *mut *mut c_void,
    /// What it holds.
    pub(super) usual: *mut c_void,
}

impl Slot {
    /// The slot with this number (`ffi::Py_nb_add`, ...), if it is found.
    pub(super) fn find(class: &Bound<'_, PyType>, number: c_int) -> PyResult<Option<Slot>> {
        let py = class.py();
        // Bytes of a class: of an object of the class of classes.
        let bytes = PyType::type_object(py).getattr(intern!(py, "__basicsize__"))?;
        let len = bytes.extract::<usize>()? / size_of::<*mut c_void>();
        // SAFETY: this only looks at the class.
        let usual = unsafe { ffi::PyType_GetSlot(class.as_type_ptr(), number) };
        let first = class.as_ptr().cast::<*mut c_void>();
        let words = (0..len).map(|i| first.wrapping_add(i));
        // SAFETY: a class that was made from a specification, of so many words; the lock is held.
        let mut found = words.filter(|&word| unsafe { word.read() } == usual);
        Ok(match (found.next(), found.next()) {
            (Some(place), None) if !usual.is_null() => Some(Slot { place, usual }),
            _ => None,
        })
    }

    /// Puts another function there.
    ///
    /// # Safety
    /// It is one that this slot is called as.
    pub(super) unsafe fn put(&self, function: *mut c_void) {
        // SAFETY: a word of a class, which only changes while the lock is held, as it is.
        unsafe { self.place.write(function) };
    }
}

/// Declares functions that do what a slot usually does for all that they are not made for.
macro_rules! usual {
    ($($name:ident: $type:ty),* $(,)?) => {
        struct Usual {
            $($name: AtomicPtr<c_void>,)*
        }

        static USUAL: Usual = Usual {
            $($name: AtomicPtr::new(std::ptr::null_mut()),)*
        };

        impl Usual {
            $(
                /// What the slot held before.
                #[inline]
                fn $name(&self) -> $type {
                    let function = self.$name.load(Ordering::Relaxed);
                    // SAFETY: it was put there before the slot was taken over, and is what such a slot holds.
                    unsafe { std::mem::transmute::<*mut c_void, $type>(function) }
                }
            )*
        }
    };
}

usual! {
    add: ffi::binaryfunc,
    subtract: ffi::binaryfunc,
    multiply: ffi::binaryfunc,
    divide: ffi::binaryfunc,
    compare: ffi::richcmpfunc,
    item: ffi::binaryfunc,
    float: ffi::unaryfunc,
    int: ffi::unaryfunc,
}

/// Takes over the slots of the class.
pub fn register(class: &Bound<'_, PyType>) -> PyResult<()> {
    let take = |number, own: *mut c_void, usual: Option<&AtomicPtr<c_void>>| {
        if let Some(slot) = Slot::find(class, number)? {
            if let Some(usual) = usual {
                usual.store(slot.usual, Ordering::Relaxed);
            }
            // SAFETY: every function below is named beside the slot whose form it has.
            unsafe { slot.put(own) };
        }
        Ok::<_, PyErr>(())
    };
    take(ffi::Py_sq_length, length as *mut c_void, None)?;
    take(ffi::Py_nb_bool, truth as *mut c_void, None)?;
    take(ffi::Py_nb_float, float as *mut c_void, Some(&USUAL.float))?;
    take(ffi::Py_nb_int, int as *mut c_void, Some(&USUAL.int))?;
    take(ffi::Py_nb_add, add as *mut c_void, Some(&USUAL.add))?;
    take(
        ffi::Py_nb_subtract,
        subtract as *mut c_void,
        Some(&USUAL.subtract),
    )?;
    take(
        ffi::Py_nb_multiply,
        multiply as *mut c_void,
        Some(&USUAL.multiply),
    )?;
    take(
        ffi::Py_nb_true_divide,
        divide as *mut c_void,
        Some(&USUAL.divide),
    )?;
    take(
        ffi::Py_tp_richcompare,
        compare as *mut c_void,
        Some(&USUAL.compare),
    )?;
    take(ffi::Py_mp_subscript, item as *mut c_void, Some(&USUAL.item))
}

/// The array that a slot is called for.
///
/// # Safety
/// `object` is an object of the class or of one derived from it, borrowed for the call.
#[inline]
unsafe fn this<'a, 'py>(py: Python<'py>, object: *mut ffi::PyObject) -> Borrowed<'a, 'py, PyArray> {
    // SAFETY: the caller's.
    unsafe { Borrowed::<PyAny>::from_ptr(py, object).cast_unchecked() }
}

/// An array of exactly this class.
///
/// # Safety
/// `object` is borrowed for the call.
#[inline]
unsafe fn exact<'a, 'py>(
    py: Python<'py>,
    object: *mut ffi::PyObject,
) -> Option<Borrowed<'a, 'py, PyArray>> {
    // SAFETY: the caller's; what it is is asked here.
    unsafe {
        let is_exact = std::ptr::eq(ffi::Py_TYPE(object), PyArray::type_object_raw(py));
        is_exact.then(|| this(py, object))
    }
}

/// `len(x)`.
unsafe extern "C" fn length(slf: *mut ffi::PyObject) -> ffi::Py_ssize_t {
    // SAFETY: Python calls slots with an object of the class, the lock held.
    let (py, x) = unsafe {
        let py = Python::assume_attached();
        (py, this(py, slf))
    };
    match x.get().with(py, |x| x.shape().first().copied()) {
        Some(n) => n as ffi::Py_ssize_t,
        None => {
            PyTypeError::new_err("len() of unsized object").restore(py);
            -1
        }
    }
}

/// `bool(x)`.
unsafe extern "C" fn truth(slf: *mut ffi::PyObject) -> c_int {
    // SAFETY: as above.
    let (py, x) = unsafe {
        let py = Python::assume_attached();
        (py, this(py, slf))
    };
    match values::truth(&x) {
        Ok(is_true) => c_int::from(is_true),
        Err(error) => {
            error.restore(py);
            -1
        }
    }
}

/// `float(x)`.
unsafe extern "C" fn float(slf: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: as above.
    unsafe {
        let py = Python::assume_attached();
        match this(py, slf).get().lone(py).and_then(|x| x.float()) {
            Some(x) => ffi::PyFloat_FromDouble(x),
            None => USUAL.float()(slf),
        }
    }
}

/// `int(x)`.
unsafe extern "C" fn int(slf: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: as above.
    unsafe {
        let py = Python::assume_attached();
        match this(py, slf).get().lone(py).and_then(|x| x.integer()) {
            Some(x) => ffi::PyLong_FromLongLong(x),
            None => USUAL.int()(slf),
        }
    }
}

/// `x[key]`.
unsafe extern "C" fn item(slf: *mut ffi::PyObject, key: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: as above.
    unsafe {
        let py = Python::assume_attached();
        match exact(py, slf) {
            Some(x) => {
                let key = Borrowed::<PyAny>::from_ptr(py, key);
                guarded(py, "index", || index::get(&x, &key).map(Py::into_any))
            }
            None => USUAL.item()(slf, key),
        }
    }
}

/// The short way of `a op b` if `a` is an array; null without an exception: it is not open.
///
/// # Safety
/// Both are borrowed for the call, the lock is held.
#[inline]
unsafe fn short(
    a: *mut ffi::PyObject,
    op: &'static OpDef,
    b: *mut ffi::PyObject,
    general: impl FnOnce() -> *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the caller's.
    let (py, x, y) = unsafe {
        let py = Python::assume_attached();
        let Some(x) = exact(py, a) else {
            return general();
        };
        (py, x, Borrowed::<PyAny>::from_ptr(py, b))
    };
    guarded(py, op.name, || match quick_binary(&x, op, &y, false)? {
        Some(result) => Ok(result),
        // SAFETY: null with an exception set, or a new reference.
        None => unsafe { Bound::from_owned_ptr_or_err(py, general()).map(Bound::unbind) },
    })
}

/// Declares slots of binary operators.
macro_rules! binary {
    ($($name:ident: $op:expr),* $(,)?) => { $(
        unsafe extern "C" fn $name(a: *mut ffi::PyObject, b: *mut ffi::PyObject) -> *mut ffi::PyObject {
            // SAFETY: Python calls slots with the lock held, and one of the two an object of the class.
            unsafe { short(a, &$op, b, || USUAL.$name()(a, b)) }
        }
    )* };
}

binary! {
    add: e::arithmetic::ADD,
    subtract: e::arithmetic::SUBTRACT,
    multiply: e::arithmetic::MULTIPLY,
    divide: e::arithmetic::DIVIDE,
}

/// `a < b` and its kin.
unsafe extern "C" fn compare(
    a: *mut ffi::PyObject,
    b: *mut ffi::PyObject,
    kind: c_int,
) -> *mut ffi::PyObject {
    let op = match kind {
        ffi::Py_LT => &e::comparison::LESS,
        ffi::Py_LE => &e::comparison::LESS_EQUAL,
        ffi::Py_EQ => &e::comparison::EQUAL,
        ffi::Py_NE => &e::comparison::NOT_EQUAL,
        ffi::Py_GT => &e::comparison::GREATER,
        _ => &e::comparison::GREATER_EQUAL,
    };
    // SAFETY: Python calls the slot with an object of the class as `a`, the lock held.
    unsafe { short(a, op, b, || USUAL.compare()(a, b, kind)) }
}
