//! Slots of the class of arrays that are called most, entered without a layer between: what PyO3 puts there counts itself in and out of the
//! interpreter, catches panics and asks for the class at every call, some 5 ns, which is a fifth of what one element costs.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicPtr, Ordering};

use mxnet::ops::interp::Flags;
use mxnet::ops::{Lone, OpDef, elementwise as e};
use mxnet::tensor::Device;
use pyo3::PyTypeInfo;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt, PyType};

use super::PyArray;
use crate::call::guarded;
use crate::operators::quick_binary;
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
        if let Some(element) = this(py, slf).get().lone(py)
            && let Some(x) = element.float()
        {
            element.shown();
            return ffi::PyFloat_FromDouble(x);
        }
        USUAL.float()(slf)
    }
}

/// `int(x)`.
unsafe extern "C" fn int(slf: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: as above.
    unsafe {
        let py = Python::assume_attached();
        if let Some(element) = this(py, slf).get().lone(py)
            && let Some(x) = element.integer()
        {
            element.shown();
            return ffi::PyLong_FromLongLong(x);
        }
        USUAL.int()(slf)
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

/// Two elements of the widest types, or one and a Python number of its kind: most of what loops over elements compute.
enum Pair {
    Floats(f64, f64),
    Integers(i64, i64),
}

/// What an operator makes of two elements.
enum Made {
    Float(f64),
    Integer(i64),
    Truth(bool),
}

/// The operands, and where the element on the left is; `None` if they are no such pair.
#[inline]
fn pair(x: &Bound<'_, PyArray>, y: &Bound<'_, PyAny>) -> Option<(Pair, Device)> {
    let py = x.py();
    let element = x.get().lone(py)?;
    let (float, integer, device) = (element.float(), element.integer(), element.device());
    element.end();
    if let Some(a) = float {
        let b = if y.is_exact_instance_of::<PyFloat>() {
            // SAFETY: a float.
            unsafe { ffi::PyFloat_AsDouble(y.as_ptr()) }
        } else if y.is_exact_instance_of::<PyInt>() {
            small(y)? as f64
        } else {
            let other = y.cast_exact::<PyArray>().ok()?.get().lone(py)?;
            other.float().filter(|_| other.device() == device)?
        };
        return Some((Pair::Floats(a, b), device));
    }
    let a = integer?;
    let b = if y.is_exact_instance_of::<PyInt>() {
        small(y)?
    } else {
        let other = y.cast_exact::<PyArray>().ok()?.get().lone(py)?;
        other.integer().filter(|_| other.device() == device)?
    };
    Some((Pair::Integers(a, b), device))
}

/// The value of an `int` that a float64 holds, too.
#[inline]
fn small(y: &Bound<'_, PyAny>) -> Option<i64> {
    const MOST: i64 = 1 << f64::MANTISSA_DIGITS;
    let mut overflow = 0;
    // SAFETY: an int.
    let value = unsafe { ffi::PyLong_AsLongLongAndOverflow(y.as_ptr(), &raw mut overflow) };
    (overflow == 0 && (-MOST..=MOST).contains(&value)).then_some(value)
}

/// `a op b`, by the shortest way that is open, where `of_pair` says what it is of two elements.
///
/// # Safety
/// Both are borrowed for the call, the lock is held.
#[inline]
unsafe fn short(
    a: *mut ffi::PyObject,
    op: &'static OpDef,
    b: *mut ffi::PyObject,
    of_pair: impl FnOnce(Pair) -> Option<Made>,
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
    guarded(py, op.name, || {
        if Flags::current().is_plain()
            && let Some((pair, device)) = pair(&x, &y)
            && let Some(made) = of_pair(pair)
        {
            let make = |to: &mut MaybeUninit<Lone>| {
                match made {
                    Made::Float(z) => Lone::of_float(to, z, device),
                    Made::Integer(z) => Lone::of_integer(to, z, device),
                    Made::Truth(z) => Lone::of_truth(to, z, device),
                }
                true
            };
            // SAFETY: `make` makes the element.
            if let Some(made) = unsafe { PyArray::element_by(py, make) }? {
                return Ok(made.into_any());
            }
        }
        if let Some(result) = quick_binary(&x, op, &y, false)? {
            return Ok(result);
        }
        // SAFETY: null with an exception set, or a new reference.
        unsafe { Bound::from_owned_ptr_or_err(py, general()).map(Bound::unbind) }
    })
}

/// Declares slots of binary operators.
macro_rules! binary {
    ($($name:ident: $op:expr, $of_pair:expr);* $(;)?) => { $(
        unsafe extern "C" fn $name(a: *mut ffi::PyObject, b: *mut ffi::PyObject) -> *mut ffi::PyObject {
            // SAFETY: Python calls slots with the lock held, and one of the two an object of the class.
            unsafe { short(a, &$op, b, $of_pair, || USUAL.$name()(a, b)) }
        }
    )* };
}

binary! {
    add: e::arithmetic::ADD, |pair| Some(match pair {
        Pair::Floats(a, b) => Made::Float(a + b),
        Pair::Integers(a, b) => Made::Integer(a.wrapping_add(b)),
    });
    subtract: e::arithmetic::SUBTRACT, |pair| Some(match pair {
        Pair::Floats(a, b) => Made::Float(a - b),
        Pair::Integers(a, b) => Made::Integer(a.wrapping_sub(b)),
    });
    multiply: e::arithmetic::MULTIPLY, |pair| Some(match pair {
        Pair::Floats(a, b) => Made::Float(a * b),
        Pair::Integers(a, b) => Made::Integer(a.wrapping_mul(b)),
    });
    divide: e::arithmetic::DIVIDE, |pair| match pair {
        Pair::Floats(a, b) => Some(Made::Float(a / b)),
        // The quotient's type depends on the mode.
        Pair::Integers(..) => None,
    };
}

/// Whether two numbers are in a relation.
#[inline]
fn holds<T: PartialOrd>(a: T, b: T, kind: c_int) -> bool {
    match kind {
        ffi::Py_LT => a < b,
        ffi::Py_LE => a <= b,
        ffi::Py_EQ => a == b,
        ffi::Py_NE => a != b,
        ffi::Py_GT => a > b,
        _ => a >= b,
    }
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
    unsafe {
        let of_pair = |pair| {
            Some(Made::Truth(match pair {
                Pair::Floats(a, b) => holds(a, b, kind),
                Pair::Integers(a, b) => holds(a, b, kind),
            }))
        };
        short(a, op, b, of_pair, || USUAL.compare()(a, b, kind))
    }
}
