//! Methods of `Generator` that draw from a distribution of the registry. They are C functions, because a Python frame costs more than drawing a
//! number.

use std::ffi::CString;
use std::sync::{Arc, OnceLock};

use mxnet::ops::random::Generator;
use pyo3::exceptions::{PyRuntimeError, PySystemError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use super::{RandomStream, packed, with_generator};
use crate::call::{Binding, FastCall, binding_of, enter};
use crate::keywords::Keywords;
use crate::once_box::{OnceBox, interned};
use crate::panic_guard::guarded;

/// Base class of `Generator`. It holds the random stream of the methods.
#[pyclass(frozen, subclass, module = "mxnet._core")]
pub struct GeneratorBase(OnceLock<Arc<Generator>>);

#[pymethods]
impl GeneratorBase {
    /// An object without a stream. The derived class checks the arguments.
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> GeneratorBase {
        GeneratorBase(OnceLock::new())
    }

    /// Sets the stream, once.
    fn _set_stream(&self, stream: &RandomStream) -> PyResult<()> {
        let is_set = self.0.set(Arc::clone(&stream.0));
        is_set.map_err(|_| {
            PyRuntimeError::new_err(
                "the bit generator of a generator cannot be changed: create another generator",
            )
        })
    }
}

/// A method that draws from one distribution.
struct Method {
    name: String,
    /// The registered function of the distribution.
    function: Py<PyAny>,
    binding: &'static Binding,
    /// Parameters that may be given by position, in order.
    positional: Vec<Py<PyString>>,
    /// Number of leading parameters that have the same position in the function's signature.
    shared: usize,
}

impl Method {
    /// Calls the function by keywords: used if its signature differs from the method's, or if `out` gives the shape and dtype.
    fn call_by_name(
        &self,
        py: Python<'_>,
        given: &[*mut ffi::PyObject],
        named: &Keywords,
    ) -> PyResult<Py<PyAny>> {
        let (mut positional, keywords) = packed(py, given, named)?;
        if given.len() > self.positional.len() {
            return Err(PyTypeError::new_err(format!(
                "{}() takes at most {} positional arguments, found {}",
                self.name,
                self.positional.len(),
                given.len()
            )));
        }
        let rest = positional.split_off(self.shared.min(given.len()));
        for (name, value) in self.positional[positional.len()..].iter().zip(rest) {
            let name = name.bind(py);
            if keywords.contains(name)? {
                return Err(PyTypeError::new_err(format!(
                    "{}() got multiple values for argument '{name}'",
                    self.name
                )));
            }
            keywords.set_item(name, value)?;
        }
        if let Some(out) = keywords
            .get_item(interned!(py, "out"))?
            .filter(|out| !out.is_none())
        {
            for (name, attribute) in [("size", "shape"), ("dtype", "dtype")] {
                let is_positional = |name: &str| {
                    let names = &self.positional[..positional.len()];
                    names.iter().any(|known| known.bind(py) == name)
                };
                if !is_positional(name) && !keywords.contains(name)? {
                    keywords.set_item(name, out.getattr(attribute)?)?;
                }
            }
        }
        let positional = PyTuple::new(py, positional)?;
        self.function.call(py, positional, Some(&keywords))
    }
}

/// Size of the table of methods: at least the number of distributions.
const MAX_METHODS: usize = 48;

static METHODS: [OnceBox<Method>; MAX_METHODS] = [const { OnceBox::new() }; MAX_METHODS];

macro_rules! entries {
    ($($row:literal)*) => { [$(
        entry::<{ $row * 8 }>, entry::<{ $row * 8 + 1 }>, entry::<{ $row * 8 + 2 }>, entry::<{ $row * 8 + 3 }>,
        entry::<{ $row * 8 + 4 }>, entry::<{ $row * 8 + 5 }>, entry::<{ $row * 8 + 6 }>, entry::<{ $row * 8 + 7 }>,
    )*] };
}

static ENTRIES: [FastCall; MAX_METHODS] = entries!(0 1 2 3 4 5);

/// Gives `GeneratorBase` the method `name`, which calls `function` of the registry with the generator's stream. `positional` names the
/// parameters that may be given by position; the others are given by name. `doc` is the docstring, headed by the signature. A second call for
/// the same name does nothing.
#[pyfunction]
pub fn add_distribution(
    name: String,
    function: &Bound<'_, PyAny>,
    positional: Vec<Bound<'_, PyString>>,
    doc: String,
) -> PyResult<()> {
    let py = function.py();
    let is_known = |slot: &'static OnceBox<Method>| slot.get().is_some_and(|x| x.name == name);
    if METHODS.iter().any(is_known) {
        return Ok(());
    }
    let binding = binding_of(function)
        .ok_or_else(|| PySystemError::new_err("`function` is not of the registry"))?;
    let shared = (positional.iter().zip(binding.op.params))
        .take_while(|(own, param)| *own == param.name)
        .count();
    let method = Method {
        name: name.clone(),
        function: function.clone().unbind(),
        binding,
        positional: positional.into_iter().map(Bound::unbind).collect(),
        shared,
    };
    let Some(slot) = METHODS.iter().position(|slot| slot.get().is_none()) else {
        return Err(PySystemError::new_err("more methods than entries"));
    };
    METHODS[slot].set(method);
    let def = Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: CString::new(name.as_str())?.into_raw(),
        ml_meth: ffi::PyMethodDefPointer {
            PyCFunctionFastWithKeywords: ENTRIES[slot],
        },
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: CString::new(doc)?.into_raw(),
    }));
    let class = py.get_type::<GeneratorBase>();
    // SAFETY: the definition is leaked; the class is our heap type, and Python passes only its objects to the methods.
    let method = unsafe {
        Bound::from_owned_ptr_or_err(py, ffi::PyDescr_NewMethod(class.as_type_ptr(), def))?
    };
    class.setattr(name, method)
}

/// Entry of method number `N`.
unsafe extern "C" fn entry<const N: usize>(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: Python calls with the lock held.
    let py = unsafe { Python::assume_attached() };
    let method = METHODS[N]
        .get()
        .expect("entries are given out with their methods");
    let nargs = nargs as usize;
    // SAFETY: the keyword values follow the positional arguments.
    let named = unsafe { Keywords::new(args.wrapping_add(nargs), kwnames) };
    // SAFETY: the method descriptor has checked the class.
    let slf = unsafe { Borrowed::<PyAny>::from_ptr(py, slf).cast_unchecked::<GeneratorBase>() };
    let stream = slf.get().0.get();
    let out = interned!(py, "out").as_ptr();
    let takes_out = (0..named.len).any(|i| named.get(i).0 == out);
    if let Some(stream) = stream
        && nargs <= method.shared
        && !takes_out
    {
        // SAFETY: the arguments are valid for the whole call.
        return with_generator(stream, || unsafe {
            enter(method.binding, args, nargs, kwnames)
        });
    }
    guarded(py, method.binding.op.name, || {
        let Some(stream) = stream else {
            return Err(PyRuntimeError::new_err(
                "the generator has no stream: `Generator.__init__` was not called",
            ));
        };
        let given = match nargs {
            0 => &[][..],
            // SAFETY: there are `nargs` borrowed arguments.
            _ => unsafe { std::slice::from_raw_parts(args, nargs) },
        };
        with_generator(stream, || method.call_by_name(py, given, &named))
    })
}
