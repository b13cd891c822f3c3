//! Conversion of errors: every kind becomes one Python class, which also subclasses the class that NumPy raises.

use mxnet::core::Error;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

use crate::once_box::OnceBox;

/// The classes: name, the built-in (or NumPy) base class, docstring.
const KINDS: &[(&str, &str, &str)] = &[
    (
        "ShapeError",
        "builtins.ValueError",
        "Shapes do not fit the operator or one another.",
    ),
    (
        "DTypeError",
        "builtins.TypeError",
        "A data type that the operator does not accept.",
    ),
    (
        "AxisError",
        "numpy.exceptions.AxisError",
        "An axis out of range or repeated.",
    ),
    (
        "IndexError",
        "builtins.IndexError",
        "An index out of range.",
    ),
    (
        "ValueError",
        "builtins.ValueError",
        "An invalid value of an argument.",
    ),
    (
        "OverflowError",
        "builtins.OverflowError",
        "A Python number out of range of the data type.",
    ),
    (
        "DeviceError",
        "builtins.RuntimeError",
        "Operands on different devices, or a device that does not exist.",
    ),
    ("MemoryError", "builtins.MemoryError", "No memory."),
    (
        "UnsupportedError",
        "builtins.RuntimeError",
        "Not supported for these arguments; the message names the alternative.",
    ),
    (
        "IOError",
        "builtins.OSError",
        "An error while reading or writing a file.",
    ),
    (
        "AutogradError",
        "builtins.RuntimeError",
        "The requested gradient does not exist.",
    ),
    (
        "InternalError",
        "builtins.RuntimeError",
        "A broken invariant: please report it.",
    ),
    (
        "FloatingPointError",
        "builtins.FloatingPointError",
        "A floating-point error, if `errstate` is set to raise for it.",
    ),
    (
        "LinAlgError",
        "numpy.linalg.LinAlgError",
        "A matrix that does not have the requested factorisation.",
    ),
    (
        "ZeroDivisionError",
        "builtins.ZeroDivisionError",
        "A step of zero, or a division into zero parts.",
    ),
    (
        "AbstractArrayError",
        "builtins.TypeError",
        "The values of an abstract array were requested: it has a shape and a dtype, but no values.",
    ),
];

/// `DTypeError` of an elementwise function: also derived from the class that NumPy's ufuncs raise for dtypes and casts.
const UFUNC: (&str, &str) = (
    "UFuncTypeError",
    "No loop of an elementwise function takes or gives these data types.",
);

struct Classes {
    root: Py<PyType>,
    kinds: Vec<Py<PyType>>,
    ufunc: Py<PyType>,
}

static CLASSES: OnceBox<Classes> = OnceBox::new();

/// Creates the classes and adds them to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let make = |name: &str, bases: Bound<'_, PyTuple>, doc: &str| -> PyResult<Py<PyType>> {
        let body = PyDict::new(py);
        body.set_item("__module__", "mxnet.error")?;
        body.set_item("__doc__", doc)?;
        let class = py
            .get_type::<PyType>()
            .call1((name, bases, body))?
            .cast_into::<PyType>()?;
        module.add(name, &class)?;
        Ok(class.unbind())
    };
    let exception = py.get_type::<pyo3::exceptions::PyException>();
    let root = make(
        "MXNetError",
        PyTuple::new(py, [exception])?,
        "Base class of all errors that this package defines.",
    )?;
    let mut kinds = Vec::new();
    for (name, base, doc) in KINDS {
        let (module_name, class_name) = base.rsplit_once('.').unwrap_or(("builtins", base));
        let base = py
            .import(module_name)?
            .getattr(class_name)?
            .cast_into::<PyType>()?;
        kinds.push(make(name, PyTuple::new(py, [root.bind(py), &base])?, doc)?);
    }
    // NumPy has this class in a private module only.
    let theirs = py
        .import("numpy._core._exceptions")
        .and_then(|module| module.getattr(UFUNC.0))
        .unwrap_or_else(|_| py.get_type::<pyo3::exceptions::PyTypeError>().into_any());
    let bases = PyTuple::new(py, [kinds[1].bind(py).as_any(), &theirs])?;
    let ufunc = make(UFUNC.0, bases, UFUNC.1)?;
    CLASSES.set(Classes { root, kinds, ufunc });
    Ok(())
}

fn class_of(error: &Error) -> Option<usize> {
    Some(match error {
        Error::Shape(_) => 0,
        Error::DType(_) => 1,
        Error::Axis(_) => 2,
        Error::Index(_) => 3,
        Error::Value(_) => 4,
        Error::Overflow(_) => 5,
        Error::Device(_) => 6,
        Error::Memory(_) => 7,
        Error::Unsupported(_) => 8,
        Error::Io(_) => 9,
        Error::Autograd(_) => 10,
        Error::FloatingPoint(_) => 12,
        Error::LinAlg(_) => 13,
        Error::ZeroDivision(_) => 14,
        Error::Abstract(_) => 15,
        Error::Failed(failure) => {
            return failure.error().downcast_ref::<Error>().and_then(class_of);
        }
        _ => 11,
    })
}

/// Whether an operator is a `ufunc`, or a ufunc's form with the full signature.
fn is_ufunc(op: &str) -> bool {
    mxnet::core::registry::all().any(|known| {
        let full_signature = known.full_signature.is_some_and(|form| form.name == op);
        known.is_ufunc() && (known.name == op || full_signature)
    })
}

/// The Python exception for an error.
#[cold]
pub fn raise(py: Python<'_>, error: Error) -> PyErr {
    if matches!(error, Error::Interrupted) {
        // The signal handler that interrupted the wait has set its own exception.
        return PyErr::take(py).unwrap_or_else(|| PyKeyboardInterrupt::new_err(()));
    }
    if let Error::Failed(failure) = &error
        && let Some(own) = failure.error().downcast_ref::<PythonFailure>()
    {
        return own.restore(py);
    }
    let Some(classes) = CLASSES.get() else {
        return pyo3::exceptions::PyRuntimeError::new_err(error.to_string());
    };
    let class = match &error {
        Error::DType(fault) if is_ufunc(fault.op) => &classes.ufunc,
        _ => class_of(&error).map_or(&classes.root, |i| &classes.kinds[i]),
    };
    PyErr::from_type(class.bind(py).clone(), error.to_string())
}

/// A Python exception raised during a backward pass.
#[derive(Debug)]
pub struct PythonFailure(pub PyErr);

impl std::fmt::Display for PythonFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for PythonFailure {}

impl PythonFailure {
    /// Stores an exception.
    pub fn new(error: PyErr) -> PythonFailure {
        PythonFailure(error)
    }

    /// The exception, as it was raised.
    pub fn restore(&self, py: Python<'_>) -> PyErr {
        self.0.clone_ref(py)
    }
}
