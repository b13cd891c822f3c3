//! Attributes that are read most, as C functions of their own: no layer between Python and them. What is assigned to them goes to what PyO3 made.

use std::ffi::{CString, c_int, c_void};

use mxnet::ops::Array;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyType};

use super::PyArray;
use crate::call::guarded;
use crate::convert;

/// One attribute: its name, and what it is of an array.
struct Attribute {
    name: &'static str,
    get: ffi::getter,
    read: fn(&Bound<'_, PyArray>) -> PyResult<Py<PyAny>>,
}

const ATTRIBUTES: [Attribute; 8] = [
    Attribute {
        name: "shape",
        get: entry::<0>,
        read: shape,
    },
    Attribute {
        name: "dtype",
        get: entry::<1>,
        read: |x| convert::numpy_dtype(x.py(), x.get().with(x.py(), Array::dtype)),
    },
    Attribute {
        name: "ndim",
        get: entry::<2>,
        read: |x| Ok(int(x.py(), x.get().with(x.py(), Array::ndim))),
    },
    Attribute {
        name: "size",
        get: entry::<3>,
        read: |x| Ok(int(x.py(), x.get().with(x.py(), Array::len))),
    },
    Attribute {
        name: "T",
        get: entry::<4>,
        read: |x| PyArray::transposed(x).map(Py::into_any),
    },
    Attribute {
        name: "real",
        get: entry::<5>,
        read: PyArray::real,
    },
    Attribute {
        name: "imag",
        get: entry::<6>,
        read: PyArray::imag,
    },
    Attribute {
        name: "flat",
        get: entry::<7>,
        read: |x| Ok(Py::new(x.py(), PyArray::flat(x))?.into_any()),
    },
];

/// The shape, of which few sizes are copied first: a tuple is allocated, which may collect garbage, whose code may give the array another one.
#[inline]
fn shape(x: &Bound<'_, PyArray>) -> PyResult<Py<PyAny>> {
    const FEW: usize = 4;
    let py = x.py();
    let mut sizes = [0; FEW];
    let ndim = x.get().with(py, |x| {
        let few = sizes.iter_mut().zip(x.shape());
        few.for_each(|(to, &size)| *to = size);
        x.ndim()
    });
    if ndim > FEW {
        return PyArray::shape(x.get(), py).map(Py::into_any);
    }
    // SAFETY: a new tuple, of which every place is given a new reference before anybody sees it.
    unsafe {
        let tuple = Bound::from_owned_ptr_or_err(py, ffi::PyTuple_New(ndim as ffi::Py_ssize_t))?;
        for (i, &size) in sizes[..ndim].iter().enumerate() {
            let size = Bound::from_owned_ptr_or_err(py, ffi::PyLong_FromSize_t(size))?;
            ffi::PyTuple_SetItem(tuple.as_ptr(), i as ffi::Py_ssize_t, size.into_ptr());
        }
        Ok(tuple.unbind())
    }
}

fn int(py: Python<'_>, n: usize) -> Py<PyAny> {
    PyInt::new(py, n).into_any().unbind()
}

/// Puts the attributes on the class of arrays, in the places of those that PyO3 made.
pub fn register(class: &Bound<'_, PyType>) -> PyResult<()> {
    let py = class.py();
    for attribute in &ATTRIBUTES {
        let usual = class.getattr(attribute.name)?;
        let doc: String = usual.getattr(intern!(py, "__doc__"))?.extract()?;
        // Those that nothing is assigned to have `__set__` too, which says so.
        let def = Box::leak(Box::new(ffi::PyGetSetDef {
            name: CString::new(attribute.name)?.into_raw(),
            get: Some(attribute.get),
            set: Some(assign),
            doc: CString::new(doc)?.into_raw(),
            closure: usual.into_ptr().cast(),
        }));
        // SAFETY: the definition is leaked, and holds its reference; the class is a heap type of ours.
        let object = unsafe {
            Bound::from_owned_ptr_or_err(py, ffi::PyDescr_NewGetSet(class.as_type_ptr(), def))?
        };
        class.setattr(attribute.name, object)?;
    }
    Ok(())
}

/// Reads attribute number `N`.
unsafe extern "C" fn entry<const N: usize>(
    slf: *mut ffi::PyObject,
    _usual: *mut c_void,
) -> *mut ffi::PyObject {
    // SAFETY: Python calls the getter with an instance of the class, the lock held.
    let (py, slf) = unsafe {
        let py = Python::assume_attached();
        (
            py,
            Borrowed::<PyAny>::from_ptr(py, slf).cast_unchecked::<PyArray>(),
        )
    };
    guarded(py, ATTRIBUTES[N].name, || (ATTRIBUTES[N].read)(&slf))
}

/// Assigns to an attribute, or deletes it: what PyO3 made is the closure.
unsafe extern "C" fn assign(
    slf: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
    usual: *mut c_void,
) -> c_int {
    // SAFETY: the lock is held; all are live objects for the call, but that the value is null if the attribute is deleted.
    let (py, slf, value, usual) = unsafe {
        let py = Python::assume_attached();
        (
            py,
            Borrowed::<PyAny>::from_ptr(py, slf),
            Borrowed::<PyAny>::from_ptr_or_opt(py, value),
            Borrowed::<PyAny>::from_ptr(py, usual.cast()),
        )
    };
    let done = match value {
        Some(value) => usual.call_method1(intern!(py, "__set__"), (slf, value)),
        None => usual.call_method1(intern!(py, "__delete__"), (slf,)),
    };
    match done {
        Ok(_) => 0,
        Err(error) => {
            error.restore(py);
            -1
        }
    }
}
