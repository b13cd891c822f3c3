//! Type slots of `ndarray`: operators, indexing, conversions.
//!
//! The most frequent cases are tried first, without registering the thread with PyO3. Everything else runs inside [`attached`]: only there
//! does PyO3 drop references immediately.

use std::ffi::{c_int, c_void};

use mxnet::core::{Array, OpDef};
use mxnet::ops::{elementwise as e, linalg};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyType};

use super::{PyArray, as_array, attributes, class, methods};
use crate::graph::watch;
use crate::operators::{self, in_place, known_binary, reflected, unary, unary_power};
use crate::panic_guard::{guarded, guarded_or};
use crate::typed::{Get, attached, one, slot, this};
use crate::{exported_buffer, index, printing, row_iter, scalar_protocol, values};

/// Defines the slot functions of unary, binary and in-place operators.
macro_rules! operators {
    (unary: $($unary:ident: $unary_op:expr),*; binary: $($binary:ident: $binary_op:expr),*; in_place: $($in_place:ident: $in_place_op:expr),* $(;)?) => {
        fn operators() -> Vec<ffi::PyType_Slot> {
            vec![
                $({
                    unsafe extern "C" fn entry(x: *mut ffi::PyObject) -> *mut ffi::PyObject {
                        // SAFETY: Python calls slots with an object of the class and the lock held.
                        unsafe { one(x, $unary_op.name, |x| unary(x, &$unary_op)) }
                    }
                    slot(ffi::$unary, entry as *mut c_void)
                },)*
                $({
                    unsafe extern "C" fn entry(a: *mut ffi::PyObject, b: *mut ffi::PyObject) -> *mut ffi::PyObject {
                        // SAFETY: as above; one of the two is an object of the class.
                        unsafe { binary(a, &$binary_op, b) }
                    }
                    slot(ffi::$binary, entry as *mut c_void)
                },)*
                $({
                    unsafe extern "C" fn entry(x: *mut ffi::PyObject, y: *mut ffi::PyObject) -> *mut ffi::PyObject {
                        // SAFETY: as above.
                        unsafe { change(x, &$in_place_op, y) }
                    }
                    slot(ffi::$in_place, entry as *mut c_void)
                },)*
            ]
        }
    };
}

operators! {
    unary:
        Py_nb_negative: e::arithmetic::NEGATIVE,
        Py_nb_positive: e::arithmetic::POSITIVE,
        Py_nb_absolute: e::arithmetic::ABSOLUTE,
        Py_nb_invert: e::bitwise::INVERT;
    binary:
        Py_nb_add: e::arithmetic::ADD,
        Py_nb_subtract: e::arithmetic::SUBTRACT,
        Py_nb_multiply: e::arithmetic::MULTIPLY,
        Py_nb_true_divide: e::arithmetic::DIVIDE,
        Py_nb_floor_divide: e::arithmetic::FLOOR_DIVIDE,
        Py_nb_remainder: e::arithmetic::REMAINDER,
        Py_nb_divmod: e::arithmetic::DIVMOD,
        Py_nb_matrix_multiply: linalg::MATMUL,
        Py_nb_and: e::bitwise::BITWISE_AND,
        Py_nb_or: e::bitwise::BITWISE_OR,
        Py_nb_xor: e::bitwise::BITWISE_XOR,
        Py_nb_lshift: e::bitwise::LEFT_SHIFT,
        Py_nb_rshift: e::bitwise::RIGHT_SHIFT;
    in_place:
        Py_nb_inplace_add: e::arithmetic::ADD,
        Py_nb_inplace_subtract: e::arithmetic::SUBTRACT,
        Py_nb_inplace_multiply: e::arithmetic::MULTIPLY,
        Py_nb_inplace_true_divide: e::arithmetic::DIVIDE,
        Py_nb_inplace_floor_divide: e::arithmetic::FLOOR_DIVIDE,
        Py_nb_inplace_remainder: e::arithmetic::REMAINDER,
        Py_nb_inplace_matrix_multiply: linalg::MATMUL,
        Py_nb_inplace_and: e::bitwise::BITWISE_AND,
        Py_nb_inplace_or: e::bitwise::BITWISE_OR,
        Py_nb_inplace_xor: e::bitwise::BITWISE_XOR,
        Py_nb_inplace_lshift: e::bitwise::LEFT_SHIFT,
        Py_nb_inplace_rshift: e::bitwise::RIGHT_SHIFT;
}

/// Makes the type `ndarray`.
pub fn make(py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
    let mut all = table();
    all.extend([
        slot(ffi::Py_tp_getset, attributes::table().as_mut_ptr().cast()),
        slot(ffi::Py_tp_methods, methods::table()?.as_mut_ptr().cast()),
        slot(ffi::Py_tp_doc, methods::DOC.as_ptr().cast_mut().cast()),
        slot(ffi::Py_tp_new, methods::new as *mut c_void),
    ]);
    class::make(py, all)
}

/// All slots except those that describe the type itself.
fn table() -> Vec<ffi::PyType_Slot> {
    let mut all = operators();
    all.extend([
        slot(ffi::Py_nb_power, power as *mut c_void),
        slot(ffi::Py_nb_inplace_power, change_power as *mut c_void),
        slot(ffi::Py_nb_bool, truth as *mut c_void),
        slot(ffi::Py_nb_int, int as *mut c_void),
        slot(ffi::Py_nb_float, float as *mut c_void),
        slot(ffi::Py_nb_index, as_index as *mut c_void),
        slot(ffi::Py_tp_richcompare, compare as *mut c_void),
        slot(ffi::Py_tp_hash, hash as *mut c_void),
        slot(ffi::Py_tp_repr, repr as *mut c_void),
        slot(ffi::Py_tp_str, str as *mut c_void),
        slot(ffi::Py_tp_iter, iter as *mut c_void),
        slot(ffi::Py_mp_subscript, item as *mut c_void),
        slot(ffi::Py_mp_ass_subscript, set_item as *mut c_void),
        slot(ffi::Py_sq_length, length as *mut c_void),
        slot(ffi::Py_sq_item, item_at as *mut c_void),
        slot(ffi::Py_sq_ass_item, set_item_at as *mut c_void),
        slot(ffi::Py_sq_contains, contains as *mut c_void),
        slot(ffi::Py_sq_concat, concat as *mut c_void),
        slot(ffi::Py_bf_getbuffer, buffer as *mut c_void),
        slot(ffi::Py_bf_releasebuffer, release_buffer as *mut c_void),
    ]);
    all
}

/// A unary slot whose body runs inside [`attached`].
///
/// # Safety
/// As [`one`].
#[inline]
unsafe fn one_attached(
    x: *mut ffi::PyObject,
    name: &'static str,
    body: impl FnOnce(&Bound<'_, PyArray>) -> PyResult<Py<PyAny>>,
) -> *mut ffi::PyObject {
    // SAFETY: the caller's promise.
    unsafe { one(x, name, |x| attached(|| body(x))) }
}

/// `a op b`, where one of them is an array.
///
/// # Safety
/// Both are borrowed for the call, the lock is held.
#[inline]
unsafe fn binary(
    a: *mut ffi::PyObject,
    op: &'static OpDef,
    b: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the caller's promise.
    let (py, a, b) = unsafe {
        let py = Python::assume_attached();
        (
            py,
            Borrowed::<PyAny>::from_ptr(py, a),
            Borrowed::<PyAny>::from_ptr(py, b),
        )
    };
    guarded(py, op.name, || {
        let known = if let Ok(x) = a.cast_exact::<PyArray>() {
            known_binary(&x, op, &b, false)?
        } else if let Ok(y) = b.cast_exact::<PyArray>()
            && as_array(&a).is_none()
        {
            known_binary(&y, op, &a, true)?
        } else {
            None
        };
        if let Some(result) = known {
            return Ok(result);
        }
        let general = || either(&a, op, &b, |x| operators::binary(x, op, &b));
        match as_array(&a).is_some() && as_array(&b).is_some() {
            true => general(),
            false => attached(general),
        }
    })
}

/// The result of the left operand's operator, if that is an array and does not return `NotImplemented`; else that of the right one.
fn either(
    a: &Bound<'_, PyAny>,
    op: &'static OpDef,
    b: &Bound<'_, PyAny>,
    of_left: impl FnOnce(&Bound<'_, PyArray>) -> PyResult<Py<PyAny>>,
) -> PyResult<Py<PyAny>> {
    let nothing = a.py().NotImplemented();
    let answer = match a.cast::<PyArray>() {
        Ok(x) => of_left(x)?,
        Err(_) => nothing.clone_ref(a.py()),
    };
    match b.cast::<PyArray>() {
        Ok(y) if answer.is(&nothing) => reflected(y, op, a),
        _ => Ok(answer),
    }
}

/// `a ** b`, `pow(a, b, modulo)`.
unsafe extern "C" fn power(
    a: *mut ffi::PyObject,
    b: *mut ffi::PyObject,
    modulo: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: Python calls slots with the lock held; one of the operands is an object of the class.
    let (py, [a, b, modulo]) = unsafe {
        let py = Python::assume_attached();
        (
            py,
            [a, b, modulo].map(|x| Borrowed::<PyAny>::from_ptr(py, x)),
        )
    };
    let op = &e::explog::POWER;
    let of_left = |x: &Bound<'_, PyArray>| match unary_power(x, &b)? {
        Some(op) => unary(x, op),
        None => operators::binary(x, op, &b),
    };
    guarded(py, op.name, || {
        if !modulo.is_none() {
            return Ok(py.NotImplemented());
        }
        if let Ok(x) = a.cast_exact::<PyArray>() {
            if let Some(op) = unary_power(&x, &b)? {
                return unary(&x, op);
            }
            if let Some(result) = known_binary(&x, op, &b, false)? {
                return Ok(result);
            }
        }
        attached(|| either(&a, op, &b, of_left))
    })
}

/// `x op= y`.
///
/// # Safety
/// Both are borrowed for the call, the lock is held; `x` is an object of the class.
unsafe fn change(
    x: *mut ffi::PyObject,
    op: &'static OpDef,
    y: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the caller's promise.
    unsafe {
        let y = Borrowed::<PyAny>::from_ptr(Python::assume_attached(), y);
        match y.is_exact_instance_of::<PyArray>() {
            true => one(x, op.name, |x| in_place(x, op, &y)),
            false => one_attached(x, op.name, |x| in_place(x, op, &y)),
        }
    }
}

/// `x **= y`.
unsafe extern "C" fn change_power(
    x: *mut ffi::PyObject,
    y: *mut ffi::PyObject,
    _modulo: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: as above; Python never passes a modulus here.
    unsafe { change(x, &e::explog::POWER, y) }
}

/// `a < b` and the other comparisons.
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
    // SAFETY: as above.
    let (py, x, b) = unsafe {
        let py = Python::assume_attached();
        (
            py,
            this::<PyArray>(py, a),
            Borrowed::<PyAny>::from_ptr(py, b),
        )
    };
    guarded(py, op.name, || {
        if x.is_exact_instance_of::<PyArray>()
            && let Some(result) = known_binary(&x, op, &b, false)?
        {
            return Ok(result);
        }
        attached(|| operators::binary(&x, op, &b))
    })
}

/// `len(x)`.
unsafe extern "C" fn length(x: *mut ffi::PyObject) -> ffi::Py_ssize_t {
    // SAFETY: Python calls slots with an object of the class and the lock held.
    let (py, x) = unsafe {
        let py = Python::assume_attached();
        (py, this::<PyArray>(py, x))
    };
    guarded_or(py, "len", -1, || {
        let form = |x: &Array| (x.shape().first().copied(), x.is_abstract());
        match (*x).get().with(py, form) {
            (Some(n), is_abstract) => {
                if is_abstract {
                    watch::note_len(py, n)?;
                }
                Ok(n as ffi::Py_ssize_t)
            }
            (None, _) => Err(PyTypeError::new_err("len() of unsized object")),
        }
    })
}

/// `bool(x)`.
unsafe extern "C" fn truth(x: *mut ffi::PyObject) -> c_int {
    // SAFETY: as above.
    let (py, x) = unsafe {
        let py = Python::assume_attached();
        (py, this::<PyArray>(py, x))
    };
    guarded_or(py, "bool", -1, || values::truth(&x).map(c_int::from))
}

/// `float(x)`.
unsafe extern "C" fn float(x: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: as above.
    unsafe {
        let py = Python::assume_attached();
        match (*this::<PyArray>(py, x))
            .get()
            .inline_scalar(py)
            .and_then(|x| x.float())
        {
            Some(x) => ffi::PyFloat_FromDouble(x),
            None => one_attached(x, "float", |x| values::number(x, values::Class::Float)),
        }
    }
}

/// `int(x)`.
unsafe extern "C" fn int(x: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: as above.
    unsafe {
        let py = Python::assume_attached();
        match (*this::<PyArray>(py, x))
            .get()
            .inline_scalar(py)
            .and_then(|x| x.integer())
        {
            Some(x) => ffi::PyLong_FromLongLong(x),
            None => one_attached(x, "int", |x| values::number(x, values::Class::Int)),
        }
    }
}

/// `operator.index(x)`.
unsafe extern "C" fn as_index(x: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: as above.
    unsafe { one_attached(x, "index", values::as_index) }
}

/// `hash(x)`. Elements are mutable, and equality is elementwise, so only 0-d arrays are hashable.
unsafe extern "C" fn hash(x: *mut ffi::PyObject) -> ffi::Py_hash_t {
    // SAFETY: as above.
    let (py, x) = unsafe {
        let py = Python::assume_attached();
        (py, this::<PyArray>(py, x))
    };
    guarded_or(py, "hash", -1, || scalar_protocol::hash(&x))
}

/// `repr(x)`.
unsafe extern "C" fn repr(x: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: as above.
    unsafe { one_attached(x, "repr", |x| printing::repr(x)?.into_py_any(x.py())) }
}

/// `str(x)`.
unsafe extern "C" fn str(x: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: as above.
    unsafe { one_attached(x, "str", printing::text) }
}

/// `iter(x)`.
unsafe extern "C" fn iter(x: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: as above.
    unsafe {
        one(x, "iter", |x| {
            row_iter::RowIter::new(x)?.into_py_any(x.py())
        })
    }
}

/// `x[key]`.
unsafe extern "C" fn item(x: *mut ffi::PyObject, key: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: as above.
    let (py, x, key) = unsafe {
        let py = Python::assume_attached();
        (py, this(py, x), Borrowed::<PyAny>::from_ptr(py, key))
    };
    guarded(py, "index", || index::get(&x, &key).map(Py::into_any))
}

/// `x[key] = value`; without a value, `del x[key]`.
unsafe extern "C" fn set_item(
    x: *mut ffi::PyObject,
    key: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
) -> c_int {
    // SAFETY: as above; the value may be null.
    let (py, x, key, value) = unsafe {
        let py = Python::assume_attached();
        (
            py,
            this(py, x),
            Borrowed::<PyAny>::from_ptr(py, key),
            Borrowed::<PyAny>::from_ptr_or_opt(py, value),
        )
    };
    guarded_or(py, "assignment", -1, || set(&x, &key, value.as_deref()))
}

fn set(
    x: &Bound<'_, PyArray>,
    key: &Bound<'_, PyAny>,
    value: Option<&Bound<'_, PyAny>>,
) -> PyResult<c_int> {
    match value {
        Some(value) => index::set(x, key, value).map(|()| 0),
        None => Err(PyValueError::new_err("cannot delete array elements")),
    }
}

/// `x[i]` of the sequence protocol.
unsafe extern "C" fn item_at(x: *mut ffi::PyObject, i: ffi::Py_ssize_t) -> *mut ffi::PyObject {
    // SAFETY: as above.
    unsafe {
        one(x, "index", |x| {
            index::get(x, PyInt::new(x.py(), i).as_any()).map(Py::into_any)
        })
    }
}

/// `x[i] = value` of the sequence protocol.
unsafe extern "C" fn set_item_at(
    x: *mut ffi::PyObject,
    i: ffi::Py_ssize_t,
    value: *mut ffi::PyObject,
) -> c_int {
    // SAFETY: as above; the value may be null.
    let (py, x, value) = unsafe {
        let py = Python::assume_attached();
        (
            py,
            this(py, x),
            Borrowed::<PyAny>::from_ptr_or_opt(py, value),
        )
    };
    guarded_or(py, "assignment", -1, || {
        attached(|| set(&x, PyInt::new(py, i).as_any(), value.as_deref()))
    })
}

/// `value in x`.
unsafe extern "C" fn contains(x: *mut ffi::PyObject, value: *mut ffi::PyObject) -> c_int {
    // SAFETY: as above.
    let (py, x, value) = unsafe {
        let py = Python::assume_attached();
        (py, this(py, x), Borrowed::<PyAny>::from_ptr(py, value))
    };
    guarded_or(py, "in", -1, || {
        attached(|| operators::contains(&x, &value).map(c_int::from))
    })
}

/// Sequence concatenation is refused: `+` adds arrays, and `np.concatenate` joins them.
unsafe extern "C" fn concat(
    x: *mut ffi::PyObject,
    other: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: as above.
    unsafe {
        let other = Borrowed::<PyAny>::from_ptr(Python::assume_attached(), other);
        one_attached(x, "concat", |x| {
            Err(PyTypeError::new_err(format!(
                "unsupported operand type(s) for +: '{}' and '{}' (arrays are joined by np.concatenate)",
                x.get_type().name()?,
                other.get_type().name()?
            )))
        })
    }
}

/// The buffer protocol.
unsafe extern "C" fn buffer(
    x: *mut ffi::PyObject,
    view: *mut ffi::Py_buffer,
    flags: c_int,
) -> c_int {
    // SAFETY: as above; Python passes a buffer to fill.
    let (py, x) = unsafe {
        let py = Python::assume_attached();
        (py, this::<PyArray>(py, x))
    };
    // SAFETY: as above.
    let fill = || unsafe { exported_buffer::fill_buffer(&x, view, flags) }.map(|()| 0);
    guarded_or(py, "buffer", -1, || attached(fill))
}

/// Releases what [`buffer`] exported.
unsafe extern "C" fn release_buffer(_x: *mut ffi::PyObject, view: *mut ffi::Py_buffer) {
    // SAFETY: Python passes a view that `buffer` filled, with the lock held.
    attached(|| unsafe { exported_buffer::release_buffer(view) });
}
