//! An entry point for functions that make arrays: calls with one positional argument, such as `asarray(x)` and `array([1, 2])`, skip the reading of
//! arguments.

use std::cell::UnsafeCell;
use std::ffi::CString;
use std::ptr;

use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::panic_guard::guarded;

/// The result of a function called with this one argument. `None`: the function itself is called.
pub type OneArg = fn(&Bound<'_, PyAny>) -> PyResult<Option<Py<PyAny>>>;

/// The state of a function object with such an entry point; never freed.
struct EntryState {
    call: ffi::PyCFunctionFastWithKeywords,
    bound_to: *mut ffi::PyObject,
    one_arg: OneArg,
    def: UnsafeCell<ffi::PyMethodDef>,
}

/// The module that such a function is bound to; its state is a pointer to the [`EntryState`].
struct StateModule(UnsafeCell<ffi::PyModuleDef>);

// SAFETY: only Python writes to the definition, with the lock held.
unsafe impl Sync for StateModule {}

static STATE_MODULE: StateModule = StateModule(UnsafeCell::new(ffi::PyModuleDef {
    m_base: ffi::PyModuleDef_HEAD_INIT,
    m_name: c"mxnet".as_ptr(),
    m_doc: ptr::null(),
    m_size: size_of::<*const EntryState>() as ffi::Py_ssize_t,
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
    // SAFETY: 1. the function object was made by `with_one_arg_entry`, with a module whose state points to a leaked `EntryState`. 2. Python calls with the lock held.
    let (state, py) = unsafe {
        (
            &**ffi::PyModule_GetState(slf).cast::<*const EntryState>(),
            Python::assume_attached(),
        )
    };
    if nargs == 1 && kwnames.is_null() {
        // SAFETY: one borrowed argument.
        let object = unsafe { Borrowed::<PyAny>::from_ptr(py, *args) };
        let mut calls_function = false;
        let result = guarded(py, "array", || {
            let made = (state.one_arg)(&object)?;
            calls_function = made.is_none();
            Ok(made.unwrap_or_else(|| py.None()))
        });
        if !calls_function {
            return result;
        }
        // SAFETY: a reference to None, which is ours.
        unsafe { ffi::Py_DECREF(result) };
    }
    // SAFETY: the C function of `function`, with the object that it is bound to and the arguments that Python has given.
    unsafe { (state.call)(state.bound_to, args, nargs, kwnames) }
}

/// The same function; `one_arg` is called first if there is one positional argument only.
pub fn with_one_arg_entry<'py>(
    function: &Bound<'py, PyAny>,
    one_arg: OneArg,
) -> PyResult<Bound<'py, PyAny>> {
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
    let state = Box::leak(Box::new(EntryState {
        call,
        bound_to,
        one_arg,
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
        let module_state =
            Bound::from_owned_ptr_or_err(py, ffi::PyModule_Create(STATE_MODULE.0.get()))?;
        *ffi::PyModule_GetState(module_state.as_ptr()).cast::<*const EntryState>() = state;
        Bound::from_owned_ptr_or_err(
            py,
            ffi::PyCFunction_NewEx(state.def.get(), module_state.as_ptr(), module.as_ptr()),
        )
    }
}
