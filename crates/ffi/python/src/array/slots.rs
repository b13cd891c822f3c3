//! Slots of the class of arrays that are called most, entered without a layer between: what PyO3 puts there counts itself in and out of the
//! interpreter, catches panics and asks for the class at every call, some 5 ns, which is a fifth of what one element costs.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use mxnet::ops::{OpDef, elementwise as e};
use pyo3::PyTypeInfo;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::PyArray;
use crate::call::{guarded, guarded_or};
use crate::operators::known_binary;
use crate::slot::Slot;
use crate::{index, values};

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
    set_item: ffi::objobjargproc,
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
    take(ffi::Py_mp_subscript, item as *mut c_void, Some(&USUAL.item))?;
    take(
        ffi::Py_mp_ass_subscript,
        set_item as *mut c_void,
        Some(&USUAL.set_item),
    )
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

/// `x[key] = value`; without a value, `del x[key]`.
unsafe extern "C" fn set_item(
    slf: *mut ffi::PyObject,
    key: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        let py = Python::assume_attached();
        match exact(py, slf) {
            Some(x) if !value.is_null() => {
                let key = Borrowed::<PyAny>::from_ptr(py, key);
                let value = Borrowed::<PyAny>::from_ptr(py, value);
                guarded_or(py, "assignment", -1, || {
                    index::set(&x, &key, &value).map(|()| 0)
                })
            }
            _ => USUAL.set_item()(slf, key, value),
        }
    }
}

/// `a op b` if `a` is an array and `b` one or a Python number; `general` answers for anything else.
///
/// # Safety
/// Both are borrowed for the call, the lock is held.
#[inline]
unsafe fn binary(
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
    guarded(py, op.name, || match known_binary(&x, op, &y, false)? {
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
            unsafe { binary(a, &$op, b, || USUAL.$name()(a, b)) }
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
    unsafe { binary(a, op, b, || USUAL.compare()(a, b, kind)) }
}
