//! Python types built from slots instead of PyO3 classes: memory layout of their objects, and C functions for slots, attributes and methods.
//!
//! The layout is known at compile time, and allocation and deallocation are under our control.

mod given;

use std::ffi::{CStr, CString, c_int, c_uint, c_void};
use std::ptr;

use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::{DerefToPyAny, PyType};
use pyo3::{PyTypeInfo, ffi};

use crate::gil_release::with_python;
use crate::keywords::Keywords;
use crate::panic_guard::{guarded, guarded_or};

pub use given::{Given, Signature};

/// An object of such a type in memory. Objects of derived classes begin like this.
#[repr(C)]
pub struct Object<T> {
    head: ffi::PyObject,
    /// List of weak references, maintained by Python, if the type supports them.
    pub weak: *mut ffi::PyObject,
    pub value: T,
}

/// Content of the objects of such a type.
///
/// # Safety
/// Objects of the type, and of classes derived from it, begin with an [`Object`] with this content.
pub unsafe trait Typed: PyTypeInfo + DerefToPyAny {}

/// Access to the content of an object.
pub trait Get<T> {
    /// The content.
    fn get(&self) -> &T;
}

impl<T: Typed> Get<T> for Bound<'_, T> {
    #[inline]
    fn get(&self) -> &T {
        // SAFETY: an object of the type; its content is only changed through `GilCell` and atomics.
        unsafe { &(*self.as_ptr().cast::<Object<T>>()).value }
    }
}

impl<T: Typed> Get<T> for Py<T> {
    #[inline]
    fn get(&self) -> &T {
        // SAFETY: as above.
        unsafe { &(*self.as_ptr().cast::<Object<T>>()).value }
    }
}

/// A slot with its function or table.
pub fn slot(slot: c_int, pfunc: *mut c_void) -> ffi::PyType_Slot {
    ffi::PyType_Slot { slot, pfunc }
}

/// Creates a type.
///
/// # Safety
/// Functions have the signatures of their slots, and tables, which are leaked, have the form that theirs require.
pub unsafe fn make<'py, T: Typed>(
    py: Python<'py>,
    name: &'static CStr,
    flags: u64,
    mut slots: Vec<ffi::PyType_Slot>,
) -> PyResult<Bound<'py, PyType>> {
    slots.push(slot(0, ptr::null_mut()));
    let mut spec = ffi::PyType_Spec {
        name: name.as_ptr(),
        basicsize: size_of::<Object<T>>() as c_int,
        itemsize: 0,
        flags: (ffi::Py_TPFLAGS_DEFAULT | flags) as c_uint,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: the caller's promise.
    let class = unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyType_FromSpec(&raw mut spec))? };
    Ok(class.cast_into()?)
}

/// Runs `body` with PyO3 aware that the GIL is held, so that it drops references immediately.
#[inline]
pub fn attached<R>(body: impl FnOnce() -> R) -> R {
    with_python(|_| body())
}

/// Runs `body` directly.
#[inline]
pub fn at_once<R>(body: impl FnOnce() -> R) -> R {
    body()
}

/// The object that a slot is called with.
///
/// # Safety
/// `object` is of the type or of a class derived from it, and borrowed for the call.
#[inline]
pub unsafe fn this<'a, 'py, T: Typed>(
    py: Python<'py>,
    object: *mut ffi::PyObject,
) -> Borrowed<'a, 'py, T> {
    // SAFETY: the caller's promise.
    unsafe { Borrowed::<PyAny>::from_ptr(py, object).cast_unchecked() }
}

/// Implementation of a unary slot.
///
/// # Safety
/// As [`this`]; the lock is held.
#[inline]
pub unsafe fn one<T: Typed>(
    x: *mut ffi::PyObject,
    name: &'static str,
    body: impl FnOnce(&Bound<'_, T>) -> PyResult<Py<PyAny>>,
) -> *mut ffi::PyObject {
    // SAFETY: the caller's promise.
    let (py, x) = unsafe {
        let py = Python::assume_attached();
        (py, this(py, x))
    };
    guarded(py, name, || body(&x))
}

/// Table of attributes. Each row: `attached` (for getters that may drop references of PyO3) or `at_once`; name, docstring, getter, and a setter if
/// the attribute is writable.
macro_rules! attributes {
    ($class:ty; $($how:ident $name:literal $doc:literal => $read:expr $(, $write:expr)?;)*) => {
        /// The table for the type.
        pub(super) fn table() -> &'static mut [pyo3::ffi::PyGetSetDef] {
            let all = vec![
                $({
                    unsafe extern "C" fn get(x: *mut pyo3::ffi::PyObject, _: *mut std::ffi::c_void) -> *mut pyo3::ffi::PyObject {
                        let read: fn(&pyo3::Bound<'_, $class>) -> pyo3::PyResult<pyo3::Py<pyo3::PyAny>> = $read;
                        // SAFETY: Python calls the getter with an object of the class, the lock held.
                        unsafe { $crate::typed::one(x, $name, |x| $crate::typed::$how(|| read(x))) }
                    }
                    let write: Option<pyo3::ffi::setter> = None;
                    $(
                        unsafe extern "C" fn set(
                            x: *mut pyo3::ffi::PyObject,
                            value: *mut pyo3::ffi::PyObject,
                            _: *mut std::ffi::c_void,
                        ) -> std::ffi::c_int {
                            // SAFETY: as above; Python passes null to delete the attribute.
                            unsafe { $crate::typed::assign::<$class>(x, value, $name, $write) }
                        }
                        let write = write.or(Some(set));
                    )?
                    pyo3::ffi::PyGetSetDef {
                        name: concat!($name, "\0").as_ptr().cast(),
                        get: Some(get),
                        set: write,
                        doc: concat!($doc, "\0").as_ptr().cast(),
                        closure: std::ptr::null_mut(),
                    }
                },)*
                // An entry without a name ends the table.
                pyo3::ffi::PyGetSetDef::default(),
            ];
            all.leak()
        }
    };
}

pub(crate) use attributes;

/// Implementation of attribute assignment.
///
/// # Safety
/// As for [`this`]; the lock is held, and `value` is a borrowed object or null.
pub unsafe fn assign<T: Typed>(
    x: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
    name: &'static str,
    write: fn(&Bound<'_, T>, &Bound<'_, PyAny>) -> PyResult<()>,
) -> c_int {
    // SAFETY: the caller's promise.
    let (py, x, value) = unsafe {
        let py = Python::assume_attached();
        (
            py,
            this(py, x),
            Borrowed::<PyAny>::from_ptr_or_opt(py, value),
        )
    };
    guarded_or(py, name, -1, || match value {
        Some(value) => attached(|| write(&x, &value).map(|()| 0)),
        None => Err(PyAttributeError::new_err("can't delete attribute")),
    })
}

/// Implementation of a method.
pub type Run<T> = for<'a, 'py> fn(&'a Bound<'py, T>, &Given<'a, 'py>) -> PyResult<Py<PyAny>>;

/// A method: its name, signature and docstring, and its C function.
#[derive(Clone, Copy)]
pub struct Method {
    pub name: &'static str,
    pub signature: &'static str,
    pub doc: &'static str,
    pub entry: ffi::PyMethodDefPointer,
    pub flags: c_int,
}

/// A row of the method table.
macro_rules! method {
    ($class:ty, $what:literal; $how:ident $name:literal () $doc:expr => $run:expr) => {{
        unsafe extern "C" fn entry(x: *mut pyo3::ffi::PyObject, _: *mut pyo3::ffi::PyObject) -> *mut pyo3::ffi::PyObject {
            let run: fn(&pyo3::Bound<'_, $class>) -> pyo3::PyResult<pyo3::Py<pyo3::PyAny>> = $run;
            // SAFETY: Python calls a method with an object of the class, the lock held.
            unsafe { $crate::typed::one(x, $name, |x| $crate::typed::$how(|| run(x))) }
        }
        let entry = pyo3::ffi::PyMethodDefPointer { PyCFunction: entry };
        $crate::typed::Method { name: $name, signature: "($self)", doc: $doc, entry, flags: pyo3::ffi::METH_NOARGS }
    }};
    ($class:ty, $what:literal; $how:ident $name:literal $signature:literal $doc:expr => $run:expr) => {{
        unsafe extern "C" fn entry(
            x: *mut pyo3::ffi::PyObject,
            args: *const *mut pyo3::ffi::PyObject,
            nargs: pyo3::ffi::Py_ssize_t,
            kwnames: *mut pyo3::ffi::PyObject,
        ) -> *mut pyo3::ffi::PyObject {
            const SIGNATURE: &$crate::typed::Signature = &$crate::typed::Signature::of(concat!($what, ".", $name), $signature);
            let run: $crate::typed::Run<$class> = $run;
            // SAFETY: Python calls a method with an object of the class, the lock held, `nargs` arguments and one for each keyword name.
            unsafe { $crate::typed::enter(SIGNATURE, x, args, nargs, kwnames, |x, given| $crate::typed::$how(|| run(x, given))) }
        }
        let entry = pyo3::ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: entry };
        let flags = pyo3::ffi::METH_FASTCALL | pyo3::ffi::METH_KEYWORDS;
        $crate::typed::Method { name: $name, signature: $signature, doc: $doc, entry, flags }
    }};
}

/// Table of methods. Each row: `attached` (for methods that may drop references of PyO3) or `at_once` (for short methods); name, signature,
/// docstring, implementation.
macro_rules! methods {
    ($class:ty, $what:literal; $($how:ident $name:literal $signature:tt $doc:expr => $run:expr;)*) => {
        const METHODS: &[$crate::typed::Method] = &[$($crate::typed::method!($class, $what; $how $name $signature $doc => $run)),*];
    };
}

pub(crate) use {method, methods};

/// The table of methods for a type.
pub fn method_table(methods: &[Method]) -> PyResult<&'static mut [ffi::PyMethodDef]> {
    let mut all = Vec::new();
    for method in methods {
        let Method {
            name,
            signature,
            doc,
            entry,
            flags,
        } = *method;
        let text = CString::new(format!("{name}{signature}\n--\n\n{doc}"))?;
        all.push(ffi::PyMethodDef {
            ml_name: CString::new(name)?.into_raw(),
            ml_meth: entry,
            ml_flags: flags,
            ml_doc: text.into_raw(),
        });
    }
    all.push(ffi::PyMethodDef::zeroed());
    Ok(all.leak())
}

/// Calls a method.
///
/// # Safety
/// `x` is an object of the class and the lock is held; `args` has `nargs` arguments and one for each keyword name, all borrowed for the call.
#[inline]
pub unsafe fn enter<T: Typed>(
    signature: &'static Signature,
    x: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
    run: impl for<'a, 'py> FnOnce(&'a Bound<'py, T>, &Given<'a, 'py>) -> PyResult<Py<PyAny>>,
) -> *mut ffi::PyObject {
    // SAFETY: the caller's promise.
    let (py, x, positional, named) = unsafe {
        let py = Python::assume_attached();
        let positional = match nargs {
            0 => &[][..],
            _ => std::slice::from_raw_parts(args, nargs as usize),
        };
        let named = Keywords::new(args.wrapping_add(nargs as usize), kwnames);
        (py, this(py, x), positional, named)
    };
    guarded(py, signature.method, || {
        signature.call(py, positional, &named, |given| run(&x, given))
    })
}
