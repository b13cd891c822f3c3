//! The type `ufunc`: an object for every elementwise operator and for the matrix and vector products. It is called without a Python frame.
//!
//! The type is built from slots, because a PyO3 class cannot support the vectorcall protocol.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::offset_of;
use std::ptr;

use mxnet::tensor::Scalar;
use pyo3::IntoPyObjectExt;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

use super::instance::{OBJECTS, Object, TYPE};
use super::loops;
use super::methods;
use crate::call::{Binding, enter};
use crate::panic_guard::guarded;
use crate::values;

/// The type flag of the vectorcall protocol; the limited API of Python 3.11 does not define it.
const HAVE_VECTORCALL: u64 = 1 << 11;
/// Flag in the number of arguments that is reserved for Python.
const ARGUMENTS_OFFSET: usize = 1 << (usize::BITS - 1);

unsafe extern "C" fn vectorcall(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargsf: usize,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: Python calls this with an instance of the type, the lock held and `nargs` valid pointers.
    unsafe {
        let binding = (*slf.cast::<Object>()).binding;
        enter(binding, args, nargsf & !ARGUMENTS_OFFSET, kwnames)
    }
}

/// `tp_call`: a call with a tuple and a dictionary, for callers without vectorcall.
unsafe extern "C" fn call(
    slf: *mut ffi::PyObject,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: Python calls this with the lock held.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: a tuple, and a dictionary or null, borrowed for the call.
    let (args, kwargs) = unsafe {
        (
            Bound::from_borrowed_ptr(py, args),
            Bound::from_borrowed_ptr_or_opt(py, kwargs),
        )
    };
    guarded(py, "ufunc", || {
        let args = args.cast::<PyTuple>()?;
        let mut values: Vec<*mut ffi::PyObject> =
            args.iter_borrowed().map(|x| x.as_ptr()).collect();
        let mut names = Vec::new();
        // The dictionary keeps the values alive; other code cannot reach it.
        let kwargs = match &kwargs {
            Some(kwargs) => kwargs.cast::<PyDict>()?.copy()?,
            None => PyDict::new(py),
        };
        for (name, value) in &kwargs {
            names.push(name);
            values.push(value.as_ptr());
        }
        let names = PyTuple::new(py, names)?;
        let given = if names.is_empty() {
            ptr::null_mut()
        } else {
            names.as_ptr()
        };
        // SAFETY: `values` holds the positional arguments, then one value for each name; `args` and `kwargs` keep all alive.
        unsafe {
            let result = vectorcall(slf, values.as_ptr(), args.len(), given);
            Bound::from_owned_ptr_or_err(py, result).map(Bound::unbind)
        }
    })
}

unsafe extern "C" fn repr(slf: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: Python calls this with the lock held and an instance of the type.
    let (py, binding): (_, &'static Binding) =
        unsafe { (Python::assume_attached(), (*slf.cast::<Object>()).binding) };
    let name = binding.name;
    guarded(py, "ufunc", || {
        Ok(format!("<ufunc '{name}'>")
            .into_pyobject(py)?
            .into_any()
            .unbind())
    })
}

/// Implementation of an attribute, computed from the operator.
type Getter = fn(Python<'_>, &'static Binding) -> PyResult<Py<PyAny>>;

/// Attributes: name, docstring, getter.
const ATTRIBUTES: &[(&CStr, &CStr, Getter)] = &[
    (c"__name__", c"Name of the function.", |py, b| object(py, b.name)),
    (c"__qualname__", c"Name of the function.", |py, b| object(py, b.name)),
    (c"nin", c"Number of inputs.", |py, b| object(py, loops::num_inputs(b.op))),
    (c"nout", c"Number of outputs.", |py, b| object(py, loops::num_outputs(b.op))),
    (c"nargs", c"Number of inputs and outputs.", |py, b| {
        object(py, loops::num_inputs(b.op) + loops::num_outputs(b.op))
    }),
    (c"ntypes", c"Number of dtypes it computes in.", |py, b| {
        object(py, mxnet::ops::ufunc::loops(b.op).len())
    }),
    (
        c"types",
        c"Loops, as type characters of operands and results: 'dd->d'. 'E' is bfloat16.",
        |py, b| object(py, loops::types(b.op)),
    ),
    (
        c"identity",
        c"Identity element of the function, or None.",
        |py, b| match b.op.fold.identity {
            // NumPy shows an integral identity as an integer.
            Some(Scalar::F64(x)) => object(py, x),
            Some(value) => values::scalar_to_python(py, value),
            None => Ok(py.None()),
        },
    ),
    (
        c"signature",
        c"Core dimensions of a generalised ufunc, such as '(n),(n)->()'; None for an elementwise function.",
        |py, b| match b.op.core_signature {
            "" => Ok(py.None()),
            core => object(py, core),
        },
    ),
    (c"__text_signature__", c"The signature as text.", |py, b| {
        object(py, crate::call::signature(b.public, false))
    }),
];

fn object<'py, T: IntoPyObjectExt<'py>>(py: Python<'py>, value: T) -> PyResult<Py<PyAny>> {
    value.into_py_any(py)
}

/// Getter of attribute number `closure`.
unsafe extern "C" fn get(slf: *mut ffi::PyObject, closure: *mut c_void) -> *mut ffi::PyObject {
    // SAFETY: Python calls this with the lock held and an instance of the type.
    let (py, binding) = unsafe { (Python::assume_attached(), (*slf.cast::<Object>()).binding) };
    guarded(py, binding.op.name, || {
        (ATTRIBUTES[closure as usize].2)(py, binding)
    })
}

/// Attribute access: `__doc__` and `__signature__` are those of the operator, while the type's own describe `ufunc`; others are looked up as usual.
unsafe extern "C" fn attribute(
    slf: *mut ffi::PyObject,
    name: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: Python calls this with the lock held, an instance of the type and a string; comparing strings runs no foreign code.
    unsafe {
        let is = |text: &CStr| ffi::PyUnicode_CompareWithASCIIString(name, text.as_ptr()) == 0;
        let (doc, signature) = (is(c"__doc__"), is(c"__signature__"));
        if !doc && !signature {
            return ffi::PyObject_GenericGetAttr(slf, name);
        }
        let (py, binding) = (Python::assume_attached(), (*slf.cast::<Object>()).binding);
        guarded(py, binding.op.name, || {
            if doc {
                return object(py, crate::call::documentation(binding));
            }
            // The signature of a built-in function with the same text.
            let function = crate::call::as_function(py, binding, "mxnet.numpy")?;
            py.import("inspect")?
                .call_method1("signature", (function,))
                .map(Bound::unbind)
        })
    }
}

const DOC: &CStr = c"Elementwise function of arrays, which broadcast.\n\nCalled as `f(*inputs, out=None, where=True, casting='same_kind', order='K', dtype=None, subok=True, signature=None)`; functions\nof two arrays also have the methods `reduce`, `accumulate`, `reduceat` and `outer`; `at` works in place.\n\nParameters\n----------\ninputs : array_like\n    The operands, which broadcast.\nout : ndarray or tuple of ndarray, optional\n    Arrays for the results.\nwhere : array_like of bool\n    Elements where this is false are not computed.\ncasting : str\n    Casting rule, as in `can_cast`.\norder : {'K', 'C', 'F', 'A'}\n    Memory order of new results.\ndtype : dtype, optional\n    Dtype of the computation.\nsubok : bool\n    Whether the result has the class of the first operand.\nsignature : str or tuple, optional\n    Dtypes of operands and results, in the form of the entries of `types`.\n\nExamples\n--------\n>>> np.add([1, 2], 10, out=np.zeros(2))\narray([11., 12.])\n>>> np.add.nin, np.add.identity, np.sqrt.types\n(2, 0, ['e->e', 'E->E', 'f->f', 'd->d', 'F->F', 'D->D'])";

fn class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    let class = TYPE.get_or_try_init(|| -> PyResult<Py<PyType>> {
        // Python keeps pointers into the tables of members, attributes and methods.
        let members: &'static mut [ffi::PyMemberDef] = Box::leak(Box::new([
            ffi::PyMemberDef {
                name: c"__vectorcalloffset__".as_ptr(),
                type_code: ffi::Py_T_PYSSIZET,
                offset: offset_of!(Object, call) as ffi::Py_ssize_t,
                flags: ffi::Py_READONLY,
                doc: ptr::null(),
            },
            // SAFETY: an entry of zeros ends the table.
            unsafe { std::mem::zeroed() },
        ]));
        let mut attributes: Vec<ffi::PyGetSetDef> = ATTRIBUTES
            .iter()
            .enumerate()
            .map(|(i, (name, doc, _))| ffi::PyGetSetDef {
                name: name.as_ptr(),
                get: Some(get),
                set: None,
                doc: doc.as_ptr(),
                closure: i as *mut c_void,
            })
            .collect();
        // SAFETY: an entry of zeros ends the table.
        attributes.push(unsafe { std::mem::zeroed() });
        let attributes = attributes.leak();
        let methods = methods::table().leak();
        let slot = |slot: c_int, pfunc: *mut c_void| ffi::PyType_Slot { slot, pfunc };
        let mut slots = [
            slot(ffi::Py_tp_members, members.as_mut_ptr().cast()),
            slot(ffi::Py_tp_getset, attributes.as_mut_ptr().cast()),
            slot(ffi::Py_tp_methods, methods.as_mut_ptr().cast()),
            slot(ffi::Py_tp_call, call as *mut c_void),
            slot(ffi::Py_tp_repr, repr as *mut c_void),
            slot(ffi::Py_tp_getattro, attribute as *mut c_void),
            slot(ffi::Py_tp_doc, DOC.as_ptr().cast_mut().cast()),
            slot(0, ptr::null_mut()),
        ];
        let flags = ffi::Py_TPFLAGS_DEFAULT
            | HAVE_VECTORCALL
            | ffi::Py_TPFLAGS_DISALLOW_INSTANTIATION
            | ffi::Py_TPFLAGS_IMMUTABLETYPE;
        let mut spec = ffi::PyType_Spec {
            name: c"mxnet.numpy.ufunc".as_ptr().cast::<c_char>(),
            basicsize: size_of::<Object>() as c_int,
            itemsize: 0,
            flags: flags as std::ffi::c_uint,
            slots: slots.as_mut_ptr(),
        };
        // SAFETY: 1. the tables that Python keeps are leaked, the others are copied. 2. attached.
        let class =
            unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyType_FromSpec(&raw mut spec))? };
        Ok(class.cast_into::<PyType>()?.unbind())
    })?;
    Ok(class.bind(py))
}

/// A new object of an operator; called once for each operator.
pub fn make(py: Python<'_>, binding: &'static Binding) -> PyResult<Py<PyAny>> {
    let class = class(py)?;
    // SAFETY: 1. the type's instances are large enough for an `Object`; allocation fills the head. 2. `binding` is leaked.
    unsafe {
        let object = ffi::PyType_GenericAlloc(class.as_type_ptr(), 0);
        let object = Bound::from_owned_ptr_or_err(py, object)?;
        let fields = object.as_ptr().cast::<Object>();
        (&raw mut (*fields).call).write(Some(vectorcall));
        (&raw mut (*fields).binding).write(binding);
        Ok(object.unbind())
    }
}

/// Stores the objects for pickles and protocols, and adds the type to the module.
pub fn register(
    module: &Bound<'_, PyModule>,
    objects: HashMap<&'static str, Py<PyAny>>,
) -> PyResult<()> {
    let _ = OBJECTS.set(objects);
    module.add("ufunc", class(module.py())?)
}
