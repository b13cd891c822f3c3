//! Methods that take few words and little time, as C functions of their own: no layer between Python and them takes the arguments apart. They are
//! put on the class when the module is made.

use std::ffi::CString;

use mxnet::ops::order::{partition_in_place, sort_in_place};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyEllipsis, PyInt, PyString, PyTuple, PyType};

use super::PyArray;
use crate::call::{Fast, Named, guarded};
use crate::error::raise;
use crate::sections::sections;
use crate::writing::write_at;
use crate::{index, memory, values};

/// What a method does, given what stands by position and under names.
type Run = fn(&Bound<'_, PyArray>, &[*mut ffi::PyObject], &Named) -> PyResult<Py<PyAny>>;

/// One method: what Python shows of it, and what it does.
struct Direct {
    name: &'static str,
    signature: &'static str,
    sentence: &'static str,
    sections: &'static str,
    entry: Fast,
    run: Run,
}

const METHODS: [Direct; 5] = [
    Direct {
        name: "item",
        signature: "($self, /, *args)",
        sentence: "The only element, or the one at this position, as a Python number.",
        sections: sections!(item),
        entry: entry::<0>,
        run: item,
    },
    Direct {
        name: "sort",
        signature: "($self, /, axis=-1, kind=None, order=None, *, stable=None)",
        sentence: "Sorts the array in place along `axis`; see `mxnet.numpy.sort`.",
        sections: sections!(sort),
        entry: entry::<1>,
        run: sort,
    },
    Direct {
        name: "partition",
        signature: "($self, /, kth, axis=-1, kind='introselect', order=None)",
        sentence: "Partitions the array in place along `axis`; see `mxnet.numpy.partition`.",
        sections: sections!(partition),
        entry: entry::<2>,
        run: partition,
    },
    Direct {
        name: "put",
        signature: "($self, /, indices, values, mode='raise')",
        sentence: "Writes `values` at flat positions; see `mxnet.numpy.put`.",
        sections: sections!(put),
        entry: entry::<3>,
        run: put,
    },
    Direct {
        name: "view",
        signature: "($self, /, dtype=None, type=None)",
        sentence: "The same bytes seen as another dtype or class. If elements change size, the last axis must be contiguous and its length in bytes fit.",
        sections: sections!(view),
        entry: entry::<4>,
        run: view,
    },
];

/// Puts the methods on the class of arrays.
pub fn register(class: &Bound<'_, PyType>) -> PyResult<()> {
    let py = class.py();
    for method in &METHODS {
        let Direct {
            name,
            signature,
            sentence,
            sections,
            ..
        } = method;
        let doc = CString::new(format!("{name}{signature}\n--\n\n{sentence}\n{sections}"))?;
        let def = Box::leak(Box::new(ffi::PyMethodDef {
            ml_name: CString::new(*name)?.into_raw(),
            ml_meth: ffi::PyMethodDefPointer {
                PyCFunctionFastWithKeywords: method.entry,
            },
            ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
            ml_doc: doc.into_raw(),
        }));
        // SAFETY: the definition is leaked; the class is a heap type of ours.
        let object = unsafe {
            Bound::from_owned_ptr_or_err(py, ffi::PyDescr_NewMethod(class.as_type_ptr(), def))?
        };
        class.setattr(*name, object)?;
    }
    Ok(())
}

/// Entry of method number `N`.
unsafe extern "C" fn entry<const N: usize>(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: Python calls a method descriptor of the class with an instance of it, the lock held, so many arguments and one for each name, all
    // borrowed for the call.
    let (py, slf, positional, named) = unsafe {
        let py = Python::assume_attached();
        let positional = match nargs {
            0 => &[][..],
            _ => std::slice::from_raw_parts(args, nargs as usize),
        };
        (
            py,
            Borrowed::<PyAny>::from_ptr(py, slf).cast_unchecked::<PyArray>(),
            positional,
            Named::new(args.wrapping_add(nargs as usize), kwnames),
        )
    };
    guarded(py, METHODS[N].name, || {
        (METHODS[N].run)(&slf, positional, &named)
    })
}

/// Arguments by the names of the parameters, of which `most` may be given by position.
fn bind<'py, const N: usize>(
    py: Python<'py>,
    method: &str,
    names: [&str; N],
    most: usize,
    positional: &[*mut ffi::PyObject],
    named: &Named,
) -> PyResult<[Option<Borrowed<'py, 'py, PyAny>>; N]> {
    // SAFETY: the arguments of a call are live objects while it runs, which nothing here outlives.
    let borrowed = |p: *mut ffi::PyObject| unsafe { Borrowed::<PyAny>::from_ptr(py, p) };
    if positional.len() > most {
        return Err(PyTypeError::new_err(format!(
            "{method}() takes at most {most} positional arguments ({} given)",
            positional.len()
        )));
    }
    let mut values = [None; N];
    for (value, &given) in values.iter_mut().zip(positional) {
        *value = Some(borrowed(given));
    }
    for i in 0..named.len {
        let (name, given) = named.get(i);
        let name = borrowed(name);
        let name = name.cast::<PyString>()?;
        let name = name.to_str()?;
        let Some(at) = names.iter().position(|&known| known == name) else {
            return Err(PyTypeError::new_err(format!(
                "{method}() got an unexpected keyword argument '{name}'"
            )));
        };
        if values[at].replace(borrowed(given)).is_some() {
            return Err(PyTypeError::new_err(format!(
                "{method}() got multiple values for argument '{name}'"
            )));
        }
    }
    Ok(values)
}

/// The argument, unless it is missing or None.
fn some<'a, 'py>(given: Option<Borrowed<'a, 'py, PyAny>>) -> Option<Borrowed<'a, 'py, PyAny>> {
    given.filter(|x| !x.is_none())
}

/// `x.item(...)`.
fn item(
    slf: &Bound<'_, PyArray>,
    positional: &[*mut ffi::PyObject],
    named: &Named,
) -> PyResult<Py<PyAny>> {
    let py = slf.py();
    if named.len > 0 {
        return Err(PyTypeError::new_err("item() takes no keyword arguments"));
    }
    // SAFETY: borrowed arguments of the running call.
    let given = positional
        .iter()
        .map(|&p| unsafe { Borrowed::from_ptr(py, p) });
    if let Some(value) = values::item_at(slf, given.clone()) {
        return values::scalar_to_python(py, value);
    }
    values::item(slf, &PyTuple::new(py, given.map(|x| x.to_owned()))?)
}

/// An axis, by `__index__`: None is no axis here.
fn axis_of(given: Option<Borrowed<'_, '_, PyAny>>) -> PyResult<isize> {
    match given {
        None => Ok(-1),
        Some(axis) => axis.extract(),
    }
}

/// `x.sort()`.
fn sort(
    slf: &Bound<'_, PyArray>,
    positional: &[*mut ffi::PyObject],
    named: &Named,
) -> PyResult<Py<PyAny>> {
    static SORT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = slf.py();
    let names = ["axis", "kind", "order", "stable"];
    let [axis, kind, order, stable] = bind(py, "sort", names, 3, positional, named)?;
    let axis = axis_of(axis)?;
    if some(kind).is_none() && some(order).is_none() && some(stable).is_none() {
        let is_done = sort_in_place(&slf.get().look(py), axis);
        if is_done.map_err(|error| raise(py, error))? {
            return Ok(py.None());
        }
    }
    let given = PyDict::new(py);
    for (name, value) in ["kind", "order", "stable"]
        .iter()
        .zip([kind, order, stable])
    {
        if let Some(value) = value {
            given.set_item(name, value)?;
        }
    }
    let sorted = operator(py, &SORT, "sort")?.call((slf, axis), Some(&given))?;
    put_back(slf, &sorted)
}

/// `x.partition(kth)`.
fn partition(
    slf: &Bound<'_, PyArray>,
    positional: &[*mut ffi::PyObject],
    named: &Named,
) -> PyResult<Py<PyAny>> {
    static PARTITION: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = slf.py();
    let names = ["kth", "axis", "kind", "order"];
    let [kth, axis, kind, order] = bind(py, "partition", names, 4, positional, named)?;
    let Some(kth) = kth else {
        return Err(PyTypeError::new_err(
            "partition() missing required argument: 'kth'",
        ));
    };
    let axis = axis_of(axis)?;
    if kind.is_none()
        && some(order).is_none()
        && kth.is_exact_instance_of::<PyInt>()
        && let Ok(kth) = kth.extract()
        && partition_in_place(&slf.get().look(py), kth, axis)
    {
        return Ok(py.None());
    }
    let given = PyDict::new(py);
    for (name, value) in ["kind", "order"].iter().zip([kind, order]) {
        if let Some(value) = value {
            given.set_item(name, value)?;
        }
    }
    let found = operator(py, &PARTITION, "partition")?.call((slf, kth, axis), Some(&given))?;
    put_back(slf, &found)
}

/// `x.put(indices, values)`.
fn put(
    slf: &Bound<'_, PyArray>,
    positional: &[*mut ffi::PyObject],
    named: &Named,
) -> PyResult<Py<PyAny>> {
    static PUT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = slf.py();
    let names = ["indices", "values", "mode"];
    let [indices, values, mode] = bind(py, "put", names, 3, positional, named)?;
    let missing = |name| PyTypeError::new_err(format!("put() missing required argument: '{name}'"));
    let indices = indices.ok_or_else(|| missing("indices"))?;
    let values = values.ok_or_else(|| missing("values"))?;
    if mode.is_none() && write_at(slf.as_any(), &indices, &values)? {
        return Ok(py.None());
    }
    let function = PUT.get_or_try_init(py, || {
        let module = py.import("mxnet.numpy")?;
        module.getattr("put").map(Bound::unbind)
    })?;
    let function = function.bind(py);
    let done = match mode {
        Some(mode) => function.call1((slf, indices, values, mode)),
        None => function.call1((slf, indices, values)),
    };
    done.map(Bound::unbind)
}

/// `x.view()`, `x.view("int32")`.
fn view(
    slf: &Bound<'_, PyArray>,
    positional: &[*mut ffi::PyObject],
    named: &Named,
) -> PyResult<Py<PyAny>> {
    let py = slf.py();
    let [dtype, class] = bind(py, "view", ["dtype", "type"], 2, positional, named)?;
    let (dtype, class) = (some(dtype), some(class));
    memory::view(slf, dtype.as_deref(), class.as_deref()).map(Py::into_any)
}

/// The function of the registry with this name.
fn operator<'py>(
    py: Python<'py>,
    cell: &'static PyOnceLock<Py<PyAny>>,
    name: &str,
) -> PyResult<&'py Bound<'py, PyAny>> {
    let found = cell.get_or_try_init(py, || {
        let spaces = py.import("mxnet._core")?.getattr("namespaces")?;
        spaces.get_item("op")?.get_item(name).map(Bound::unbind)
    });
    Ok(found?.bind(py))
}

/// `x[...] = value`.
fn put_back(slf: &Bound<'_, PyArray>, value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let py = slf.py();
    index::set(slf, PyEllipsis::get(py).as_any(), value)?;
    Ok(py.None())
}
