//! The C functions that Python calls (one for all functions, one for each method), and the function and method objects around them.

use std::cell::UnsafeCell;
use std::ptr;

use mxnet::core::{OpDef, Surface, registry};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::binding::{Binding, FastCall};
use super::call;
use crate::keywords::Keywords;
use crate::panic_guard::guarded;

/// Entry of functions: `slf` is the module object that holds the binding.
unsafe extern "C" fn function_entry(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the function object was made by `as_function`, with a module whose state points to a leaked binding.
    let binding = unsafe { &**ffi::PyModule_GetState(slf).cast::<*const Binding>() };
    // SAFETY: Python calls with the lock held; there are `nargs` + number of keywords valid pointers.
    unsafe { enter(binding, args, nargs as usize, kwnames) }
}

/// The definition of the module object that each function is bound to. Python pickles a built-in function by its name only if it is bound to a
/// module, so each function has its own module, whose state is a pointer to the binding.
struct StateModule(UnsafeCell<ffi::PyModuleDef>);

// SAFETY: only Python writes to the definition, with the lock held.
unsafe impl Sync for StateModule {}

static STATE_MODULE: StateModule = StateModule(UnsafeCell::new(ffi::PyModuleDef {
    m_base: ffi::PyModuleDef_HEAD_INIT,
    m_name: c"mxnet".as_ptr(),
    m_doc: ptr::null(),
    m_size: size_of::<*const Binding>() as ffi::Py_ssize_t,
    m_methods: ptr::null_mut(),
    m_slots: ptr::null_mut(),
    m_traverse: None,
    m_clear: None,
    m_free: None,
}));

/// The operator behind a function object; `None` for any other object.
pub fn binding_of(function: &Bound<'_, PyAny>) -> Option<&'static Binding> {
    // SAFETY: 1. a live object, whose type is checked first. 2. the state of a module with this definition is a pointer to a leaked binding.
    unsafe {
        if ffi::PyCFunction_CheckExact(function.as_ptr()) == 0 {
            return None;
        }
        let state_module = ffi::PyCFunction_GetSelf(function.as_ptr());
        if state_module.is_null()
            || ffi::PyModule_Check(state_module) == 0
            || !ptr::eq(ffi::PyModule_GetDef(state_module), STATE_MODULE.0.get())
        {
            return None;
        }
        (*ffi::PyModule_GetState(state_module).cast::<*const Binding>()).as_ref()
    }
}

/// Runs a call and turns errors and panics into Python exceptions.
///
/// # Safety
/// The thread is attached to the interpreter; `args` holds `nargs` borrowed objects, followed by one for each name in `kwnames`.
pub unsafe fn enter(
    binding: &'static Binding,
    args: *const *mut ffi::PyObject,
    nargs: usize,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: attached, by the contract.
    let py = unsafe { Python::assume_attached() };
    let run = || {
        // SAFETY: the pointers are valid and borrowed for the whole call, by the contract.
        let positional = if nargs == 0 {
            &[][..]
        } else {
            // SAFETY: the pointers are valid and borrowed for the whole call, by the contract.
            unsafe { std::slice::from_raw_parts(args, nargs) }
        };
        // SAFETY: as above: the keyword values follow the positional ones.
        let named = unsafe { Keywords::new(args.wrapping_add(nargs), kwnames) };
        call(py, binding, positional, &named)
    };
    guarded(py, binding.op.name, run)
}

/// The binding of a function that calls `op`.
pub fn function_binding(
    py: Python<'_>,
    op: &'static OpDef,
    name: &'static str,
) -> PyResult<&'static Binding> {
    Binding::leak(py, op, name, function_entry, false)
}

/// A Python function object that calls `op`, found under its name in `module`.
pub fn function(
    py: Python<'_>,
    op: &'static OpDef,
    name: &'static str,
    module: &str,
) -> PyResult<Py<PyAny>> {
    let binding = function_binding(py, op, name)?;
    as_function(py, binding, module)
}

/// A Python function object around a binding, found under its name in `module`.
pub fn as_function(py: Python<'_>, binding: &'static Binding, module: &str) -> PyResult<Py<PyAny>> {
    let module = PyString::intern(py, module);
    // SAFETY: 1. the module definition and the leaked binding stay valid, and the state of a new module is large enough for a pointer.
    // 2. attached.
    unsafe {
        let state_module =
            Bound::from_owned_ptr_or_err(py, ffi::PyModule_Create(STATE_MODULE.0.get()))?;
        *ffi::PyModule_GetState(state_module.as_ptr()).cast::<*const Binding>() = binding;
        let def = ptr::from_ref(&binding.def).cast_mut();
        Ok(Bound::from_owned_ptr_or_err(
            py,
            ffi::PyCFunction_NewEx(def, state_module.as_ptr(), module.as_ptr()),
        )?
        .unbind())
    }
}

/// Bindings of the methods by number; the C function of each method knows its number.
static METHODS: std::sync::OnceLock<Vec<&'static Binding>> = std::sync::OnceLock::new();

/// Entry of method number `N`: the array itself is the first argument.
unsafe extern "C" fn method_entry<const N: usize>(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: Python calls a method descriptor of `ndarray` with an `ndarray`, the lock held and valid argument pointers.
    unsafe { enter_method(N, slf, args, nargs as usize, kwnames) }
}

/// # Safety
/// As [`enter`]; `slf` is a borrowed object.
unsafe fn enter_method(
    number: usize,
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: usize,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    let Some(binding) = METHODS.get().and_then(|m| m.get(number)) else {
        return ptr::null_mut();
    };
    if nargs == 0 && kwnames.is_null() {
        // SAFETY: one borrowed object.
        return unsafe { enter(binding, &raw const slf, 1, kwnames) };
    }
    // SAFETY: a tuple of names or null.
    let names = if kwnames.is_null() {
        0
    } else {
        // SAFETY: a tuple of names, by the contract.
        unsafe { ffi::PyTuple_Size(kwnames) as usize }
    };
    let given = match nargs + names {
        0 => &[][..],
        // SAFETY: this many valid pointers, by the contract.
        len => unsafe { std::slice::from_raw_parts(args, len) },
    };
    let mut values = [slf; 8];
    if let Some(rest) = values[1..].get_mut(..given.len()) {
        for (to, &from) in rest.iter_mut().zip(given) {
            *to = from;
        }
        // SAFETY: one more positional argument than was given, then the keyword values.
        return unsafe { enter(binding, values.as_ptr(), nargs + 1, kwnames) };
    }
    let all: Vec<*mut ffi::PyObject> = std::iter::once(slf).chain(given.iter().copied()).collect();
    // SAFETY: as above.
    unsafe { enter(binding, all.as_ptr(), nargs + 1, kwnames) }
}

macro_rules! method_table {
    ($($row:literal)*) => { [$(
        method_entry::<{ $row * 8 }>, method_entry::<{ $row * 8 + 1 }>, method_entry::<{ $row * 8 + 2 }>, method_entry::<{ $row * 8 + 3 }>,
        method_entry::<{ $row * 8 + 4 }>, method_entry::<{ $row * 8 + 5 }>, method_entry::<{ $row * 8 + 6 }>, method_entry::<{ $row * 8 + 7 }>,
    )*] };
}

static ENTRIES: [FastCall; 128] = method_table!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);

/// Adds the operators' methods to the array class.
pub fn register_methods(py: Python<'_>, class: &Bound<'_, pyo3::types::PyType>) -> PyResult<()> {
    let mut bindings = Vec::new();
    for op in registry::all() {
        for surface in op.surface {
            let Surface::Method(name) = surface else {
                continue;
            };
            let Some(&entry) = ENTRIES.get(bindings.len()) else {
                return Err(pyo3::exceptions::PySystemError::new_err(
                    "more operator methods than entries: extend `ENTRIES`",
                ));
            };
            let binding = Binding::leak(py, op, name, entry, true)?;
            // SAFETY: the method definition is leaked; the class is a heap type of ours.
            let method = unsafe {
                let def = ptr::from_ref(&binding.def).cast_mut();
                Bound::from_owned_ptr_or_err(py, ffi::PyDescr_NewMethod(class.as_type_ptr(), def))?
            };
            class.setattr(*name, method)?;
            bindings.push(binding);
        }
    }
    let _ = METHODS.set(bindings);
    Ok(())
}
