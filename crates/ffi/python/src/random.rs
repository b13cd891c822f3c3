//! The class `RandomStream`: an independent random stream.

use std::ptr;
use std::sync::Arc;

use mxnet::core::mode;
use mxnet::ops::random::{self, Generator};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::error::raise;
use crate::keywords::Keywords;
use crate::{call, panic_guard};

mod methods;

pub use methods::{GeneratorBase, add_distribution};

/// A random stream from which functions can draw.
#[pyclass(frozen, module = "mxnet._core")]
pub struct RandomStream(Arc<Generator>);

/// Runs `body`; calls in it on this thread draw from `generator`. A trace records the generator.
#[inline]
fn with_generator<R>(generator: &Arc<Generator>, body: impl FnOnce() -> R) -> R {
    match mode::is_tracing() {
        true => mxnet::graph::random::with_generator(generator, body),
        false => random::with_generator(generator, body),
    }
}

/// An error inside a trace, where the change would happen only once, during tracing.
fn refuse_in_trace(py: Python<'_>, what: &'static str) -> PyResult<()> {
    if !mode::is_tracing() {
        return Ok(());
    }
    let problem = "it is called once while a function is traced, not at each call of the graph";
    let error = mxnet::core::Error::unsupported(what, problem);
    let hint = "call it outside the traced function and use its result there";
    Err(raise(py, error.with_hint(hint)))
}

#[pymethods]
impl RandomStream {
    /// A stream seeded with 32-bit words of entropy.
    #[new]
    fn new(entropy: Vec<u32>) -> RandomStream {
        RandomStream(Arc::new(Generator::from_entropy(&entropy)))
    }

    /// Key, next counter block, and number of spawned streams.
    fn state(&self, py: Python<'_>) -> PyResult<(u64, u64, u64)> {
        refuse_in_trace(py, "state")?;
        Ok(self.0.state())
    }

    /// Restores what `state` returned.
    fn set_state(&self, key: u64, counter: u64, spawned: u64, py: Python<'_>) -> PyResult<()> {
        refuse_in_trace(py, "state")?;
        self.0.set_state((key, counter, spawned));
        Ok(())
    }

    /// A stream with another key, derived from this one.
    fn spawn(&self, py: Python<'_>) -> PyResult<RandomStream> {
        refuse_in_trace(py, "spawn")?;
        Ok(RandomStream(Arc::new(self.0.spawn())))
    }

    /// `call(function, ...)` calls `function` with the other arguments; its draws on this thread come from this stream.
    #[getter]
    fn call(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let def = ptr::from_ref(&CALL.0).cast_mut();
        // SAFETY: 1. the definition is constant and never freed. 2. the stream is a live object, which the function keeps alive.
        unsafe {
            let object = ffi::PyCFunction_NewEx(def, slf.as_ptr(), ptr::null_mut());
            Ok(Bound::from_owned_ptr_or_err(slf.py(), object)?.unbind())
        }
    }
}

/// A method definition that never changes.
struct Definition(ffi::PyMethodDef);

// SAFETY: it is never written, and the text that it points to is constant.
unsafe impl Sync for Definition {}

static CALL: Definition = Definition(ffi::PyMethodDef {
    ml_name: c"call".as_ptr(),
    ml_meth: ffi::PyMethodDefPointer {
        PyCFunctionFastWithKeywords: call_entry,
    },
    ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
    ml_doc: c"call(function, /, *args, **kwargs)\n--\n\nCalls `function`; what it draws on this thread comes from this stream.".as_ptr(),
});

/// Arguments of a fast call as a tuple and a dictionary.
fn packed<'py>(
    py: Python<'py>,
    given: &[*mut ffi::PyObject],
    named: &Keywords,
) -> PyResult<(Vec<Bound<'py, PyAny>>, Bound<'py, PyDict>)> {
    // SAFETY: live objects, borrowed for the whole call.
    let object = |p: *mut ffi::PyObject| unsafe { Bound::from_borrowed_ptr(py, p) };
    let keywords = PyDict::new(py);
    for i in 0..named.len {
        let (name, value) = named.get(i);
        keywords.set_item(object(name), object(value))?;
    }
    Ok((given.iter().map(|&p| object(p)).collect(), keywords))
}

/// C function of `call`; `slf` is the stream. Registered operators are called without going through Python.
unsafe extern "C" fn call_entry(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: Python calls with the lock held.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: the function object was created with a stream as `slf`, which stays alive during the call.
    let slf = unsafe { Borrowed::<PyAny>::from_ptr(py, slf) };
    // SAFETY: there are `nargs` borrowed arguments.
    let function = (nargs > 0).then(|| unsafe { Borrowed::<PyAny>::from_ptr(py, *args) });
    if let (Ok(stream), Some(binding)) = (
        slf.cast_exact::<RandomStream>(),
        function.and_then(|function| call::binding_of(&function)),
    ) {
        // SAFETY: the further arguments, and the keyword values after them, are valid for the whole call.
        return with_generator(&stream.get().0, || unsafe {
            call::enter(binding, args.add(1), nargs as usize - 1, kwnames)
        });
    }
    let body = || {
        let stream = slf.cast::<RandomStream>()?.get();
        let Some(function) = function else {
            return Err(PyTypeError::new_err("call() needs a function to call"));
        };
        // SAFETY: as above; the first argument is the function.
        let given = unsafe { std::slice::from_raw_parts(args.add(1), nargs as usize - 1) };
        // SAFETY: the keyword values follow the positional arguments.
        let named = unsafe { Keywords::new(args.add(nargs as usize), kwnames) };
        let (positional, named) = packed(py, given, &named)?;
        let positional = PyTuple::new(py, positional)?;
        let result = with_generator(&stream.0, || function.call(positional, Some(&named)))?;
        Ok(result.unbind())
    };
    panic_guard::guarded(py, "call", body)
}
