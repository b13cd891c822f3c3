//! A front for functions that make arrays: `asarray(x)`, `array([1, 2])` read no arguments where there is nothing to read.

use std::cell::UnsafeCell;
use std::ffi::CString;
use std::ptr;

use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::entry::guarded;

/// What a function answers if this is its only argument. `None`: the function itself is called.
pub type Alone = fn(&Bound<'_, PyAny>) -> PyResult<Option<Py<PyAny>>>;

/// What stands behind a function object with a front; never freed.
struct Front {
    call: ffi::PyCFunctionFastWithKeywords,
    bound_to: *mut ffi::PyObject,
    alone: Alone,
    def: UnsafeCell<ffi::PyMethodDef>,
}

/// The module that such a function is bound to; its state is a pointer to the [`Front`].
struct Home(UnsafeCell<ffi::PyModuleDef>);

// SAFETY: only Python writes to the definition, with the lock held.
unsafe impl Sync for Home {}

static HOME: Home = Home(UnsafeCell::new(ffi::PyModuleDef {
    m_base: ffi::PyModuleDef_HEAD_INIT,
    m_name: c"mxnet".as_ptr(),
    m_doc: ptr::null(),
    m_size: size_of::<*const Front>() as ffi::Py_ssize_t,
    m_methods: ptr::null_mut(),
    m_slots: ptr::null_mut(),
    m_traverse: None,
    m_clear: None,
    m_free: None,
}));

unsafe extern "C" fn entry(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: 1. the function object was made by `before`, with a module whose state points to a leaked front. 2. Python calls with the lock held.
    let (front, py) = unsafe {
        (
            &**ffi::PyModule_GetState(slf).cast::<*const Front>(),
            Python::assume_attached(),
        )
    };
    if nargs == 1 && kwnames.is_null() {
        // SAFETY: one borrowed argument.
        let object = unsafe { Borrowed::<PyAny>::from_ptr(py, *args) };
        let mut is_open = true;
        let answer = guarded(py, "array", || {
            let made = (front.alone)(&object)?;
            is_open = made.is_some();
            Ok(made.unwrap_or_else(|| py.None()))
        });
        if is_open {
            return answer;
        }
        // SAFETY: a reference to None, which is ours.
        unsafe { ffi::Py_DECREF(answer) };
    }
    // SAFETY: the C function of `function`, with the object that it is bound to and the arguments that Python has given.
    unsafe { (front.call)(front.bound_to, args, nargs, kwnames) }
}

/// The same function, which `alone` answers for where there is one argument only.
pub fn before<'py>(function: &Bound<'py, PyAny>, alone: Alone) -> PyResult<Bound<'py, PyAny>> {
    let py = function.py();
    let text = |name: &str| -> PyResult<String> { function.getattr(name)?.extract() };
    let c_string =
        |text: String| CString::new(text).map_err(|e| PyValueError::new_err(e.to_string()));
    let name = text("__name__")?;
    let doc = format!(
        "{name}{}\n--\n\n{}",
        text("__text_signature__")?,
        text("__doc__")?
    );
    let module = function.getattr("__module__")?.cast_into::<PyString>()?;
    // SAFETY: 1. a function object, as its flags are asked first. 2. with these flags its C function is of this type. 3. the object that it is bound
    // to lives as long as the function object, which is kept for ever.
    let (call, bound_to) = unsafe {
        let flags = ffi::PyCFunction_GetFlags(function.as_ptr());
        if flags != ffi::METH_FASTCALL | ffi::METH_KEYWORDS {
            return Err(PyValueError::new_err(format!(
                "{name} takes its arguments in another way"
            )));
        }
        let kept = function.clone().into_ptr();
        let Some(call) = ffi::PyCFunction_GetFunction(kept) else {
            return Err(PyErr::fetch(py));
        };
        (
            std::mem::transmute::<ffi::PyCFunction, ffi::PyCFunctionFastWithKeywords>(call),
            ffi::PyCFunction_GetSelf(kept),
        )
    };
    let front = Box::leak(Box::new(Front {
        call,
        bound_to,
        alone,
        def: UnsafeCell::new(ffi::PyMethodDef {
            ml_name: c_string(name)?.into_raw(),
            ml_meth: ffi::PyMethodDefPointer {
                PyCFunctionFastWithKeywords: entry,
            },
            ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
            ml_doc: c_string(doc)?.into_raw(),
        }),
    }));
    // SAFETY: 1. the definitions are static or leaked, and the state of a new module has room for the pointer. 2. attached.
    unsafe {
        let home = Bound::from_owned_ptr_or_err(py, ffi::PyModule_Create(HOME.0.get()))?;
        *ffi::PyModule_GetState(home.as_ptr()).cast::<*const Front>() = front;
        Bound::from_owned_ptr_or_err(
            py,
            ffi::PyCFunction_NewEx(front.def.get(), home.as_ptr(), module.as_ptr()),
        )
    }
}
