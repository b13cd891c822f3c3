//! Methods of `Generator` that only pass their arguments on to a distribution. They are C functions, because a Python frame costs more than
//! drawing a number.

use std::ffi::CString;
use std::sync::{Arc, OnceLock};

use mxnet::core::ParamKind;
use mxnet::ops::random::{Generator, with_generator};
use pyo3::exceptions::{PyRuntimeError, PySystemError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};

use super::{RandomStream, packed};
use crate::call::{Binding, Fast, Named, binding_of, enter, guarded};

/// Base class of `Generator`. It holds the stream from which the methods draw.
#[pyclass(frozen, subclass, module = "mxnet._core")]
pub struct Drawing(OnceLock<Arc<Generator>>);

#[pymethods]
impl Drawing {
    /// One without a stream; what it takes is the business of the derived class.
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Drawing {
        Drawing(OnceLock::new())
    }

    /// Draws from `stream` from now on, and from no other.
    fn _draw_from(&self, stream: &RandomStream) -> PyResult<()> {
        let is_set = self.0.set(Arc::clone(&stream.0));
        is_set.map_err(|_| {
            PyRuntimeError::new_err("a generator keeps its bit generator: make another generator")
        })
    }
}

/// A method with a shorter way.
struct Shortened {
    name: &'static str,
    /// The distribution's function in the registry.
    drawn: &'static Binding,
    /// The method as it is written in Python, for all that the function does not take as it is.
    general: Py<PyAny>,
    /// So many arguments by position mean the same to both.
    positional: usize,
    /// Interned names that mean the same to both.
    names: Vec<Py<PyString>>,
}

impl Shortened {
    /// Whether the function takes the arguments as they are.
    #[inline]
    fn fits(&self, positional: usize, named: &Named) -> bool {
        let is_known = |i: usize| self.names.iter().any(|x| x.as_ptr() == named.get(i).0);
        positional <= self.positional && (0..named.len).all(is_known)
    }
}

/// Size of the table of methods: at least the number of distributions.
const MOST: usize = 48;

static METHODS: [PyOnceLock<Shortened>; MOST] = [const { PyOnceLock::new() }; MOST];

macro_rules! entries {
    ($($row:literal)*) => { [$(
        entry::<{ $row * 8 }>, entry::<{ $row * 8 + 1 }>, entry::<{ $row * 8 + 2 }>, entry::<{ $row * 8 + 3 }>,
        entry::<{ $row * 8 + 4 }>, entry::<{ $row * 8 + 5 }>, entry::<{ $row * 8 + 6 }>, entry::<{ $row * 8 + 7 }>,
    )*] };
}

static ENTRIES: [Fast; MOST] = entries!(0 1 2 3 4 5);

/// Puts a method on `class`, which is derived from `Drawing`, that goes straight to `drawn`, a function of the registry, where that takes the
/// arguments as `general` does: the leading ones and those by the same names. Everything else is left to `general`, a function of Python that has
/// the method's name, signature and docstring.
#[pyfunction]
pub fn shorten_draw(
    class: &Bound<'_, PyType>,
    general: &Bound<'_, PyAny>,
    drawn: &Bound<'_, PyAny>,
    signature: &str,
) -> PyResult<()> {
    let py = class.py();
    let drawn = binding_of(drawn)
        .ok_or_else(|| PySystemError::new_err("`drawn` is no function of the registry"))?;
    let name: String = general.getattr("__name__")?.extract()?;
    let code = general.getattr("__code__")?;
    let (by_position, by_name): (usize, usize) = (
        code.getattr("co_argcount")?.extract()?,
        code.getattr("co_kwonlyargcount")?.extract()?,
    );
    let own: Vec<String> = code.getattr("co_varnames")?.extract()?;
    // A method takes the result's form from `out`.
    let params = drawn.op.params.iter();
    let theirs: Vec<&str> = params
        .filter(|param| param.kind != ParamKind::Out)
        .map(|param| param.name)
        .collect();
    let own = &own[1..by_position + by_name];
    let names = own.iter().filter(|name| theirs.contains(&name.as_str()));
    let method = Shortened {
        name: drawn.op.name,
        drawn,
        general: general.clone().unbind(),
        positional: (own[..by_position - 1].iter().zip(&theirs))
            .take_while(|(own, theirs)| own == *theirs)
            .count(),
        names: names
            .map(|name| PyString::intern(py, name).unbind())
            .collect(),
    };
    let doc: String = general.getattr("__doc__")?.extract()?;
    let doc = CString::new(format!("{name}{signature}\n--\n\n{doc}"))?;
    let mut method = Some(method);
    let place = METHODS.iter().position(|place| {
        let _ = place.get_or_init(py, || method.take().expect("it is taken once"));
        method.is_none()
    });
    let Some(place) = place else {
        return Err(PySystemError::new_err("more methods than entries"));
    };
    let def = Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: CString::new(name.as_str())?.into_raw(),
        ml_meth: ffi::PyMethodDefPointer {
            PyCFunctionFastWithKeywords: ENTRIES[place],
        },
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: doc.into_raw(),
    }));
    // SAFETY: the definition is leaked; the class is a heap type of ours, of whose objects only those are given to the methods.
    let method = unsafe {
        let base = py.get_type::<Drawing>();
        Bound::from_owned_ptr_or_err(py, ffi::PyDescr_NewMethod(base.as_type_ptr(), def))?
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
        .get(py)
        .expect("entries are given out with their methods");
    let nargs = nargs as usize;
    // SAFETY: the keyword values follow the positional arguments.
    let named = unsafe { Named::new(args.wrapping_add(nargs), kwnames) };
    // SAFETY: the descriptor has made sure that it is one.
    let slf = unsafe { Borrowed::<PyAny>::from_ptr(py, slf).cast_unchecked::<Drawing>() };
    let stream = slf.get().0.get();
    if let Some(stream) = stream
        && method.fits(nargs, &named)
    {
        // SAFETY: the arguments are valid for the whole call.
        return with_generator(stream, || unsafe {
            enter(method.drawn, args, nargs, kwnames)
        });
    }
    guarded(py, method.name, || {
        if stream.is_none() {
            return Err(PyRuntimeError::new_err(
                "the generator has no stream: `Generator.__init__` was not called",
            ));
        }
        let given = match nargs {
            0 => &[][..],
            // SAFETY: there are `nargs` borrowed arguments.
            _ => unsafe { std::slice::from_raw_parts(args, nargs) },
        };
        let (mut positional, keywords) = packed(py, given, &named)?;
        positional.insert(0, slf.to_owned().into_any());
        let positional = PyTuple::new(py, positional)?;
        let general = method.general.bind(py);
        general.call(positional, Some(&keywords)).map(Bound::unbind)
    })
}
