//! `__array_function__` and `__array_ufunc__`: NumPy's functions, called with our arrays, call our functions of the same name.

use mxnet::core::mode::Flags;
use mxnet::ops::elementwise::comparison;
use mxnet::tensor::DType;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

use crate::array::{Get, PyArray};
use crate::{
    convert, equality, index, interop, numpy_dtype, numpy_export, operators, sharing, ufunc,
};

/// Versions of the array API that `__array_namespace__` accepts.
const API_VERSIONS: [&str; 5] = ["2021.12", "2022.12", "2023.12", "2024.12", "2025.12"];

/// `ufunc.method(*inputs, **kwargs)` with our function of the same name; `NotImplemented` if an input cannot be converted to an array.
pub fn array_ufunc(
    py: Python<'_>,
    theirs: &Bound<'_, PyAny>,
    method: &str,
    inputs: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyAny>> {
    let name: String = theirs.getattr("__name__")?.extract()?;
    let numpy = py.import("numpy")?;
    let known = numpy
        .getattr_opt(name.as_str())?
        .is_some_and(|found| found.is(theirs));
    // Matrix products are ufuncs in NumPy, too, but generalised ones.
    let ours = match ufunc::find(py, &name).filter(|_| known) {
        _ if ufunc::is_ufunc(theirs) => Some(theirs.clone()),
        Some(ours) => Some(ours.into_bound(py)),
        // NumPy's `np.clip` calls the ufunc `clip`; ours is not a ufunc.
        None if name == "clip" && method == "__call__" => return clip(py, inputs, kwargs),
        None if known && method == "__call__" => {
            py.import("mxnet.numpy")?.getattr_opt(name.as_str())?
        }
        None => None,
    };
    let Some(ours) = ours else {
        if known {
            return Err(PyTypeError::new_err(format!(
                "the function '{name}' has no counterpart for mxnet arrays: convert them with `x.asnumpy()`"
            )));
        }
        return call_foreign(theirs, method, inputs, kwargs);
    };
    if let ("equal" | "not_equal", "__call__", None) = (name.as_str(), method, kwargs)
        && let Some(answer) = unlike(&name, inputs)?
    {
        return Ok(answer);
    }
    // The further arguments of these methods are indices and values.
    let arrays = match method {
        "at" | "reduceat" => 1,
        _ => inputs.len(),
    };
    for input in inputs.iter().take(arrays) {
        // The function itself asks operands with their own `__array_ufunc__`.
        if !matches!(ufunc::override_of(&input)?, ufunc::Override::None) {
            return Ok(py.NotImplemented());
        }
        if !input.is_none() && convert::operand(&input)?.is_none() {
            return Ok(py.NotImplemented());
        }
    }
    match method {
        "__call__" => ours.call(inputs, kwargs),
        _ => ours.getattr(method)?.call(inputs, kwargs),
    }
    .map(Bound::unbind)
}

/// A ufunc of another library (`scipy.special.erf`), which computes on NumPy arrays: it gets copies, and its results become our arrays.
fn call_foreign(
    theirs: &Bound<'_, PyAny>,
    method: &str,
    inputs: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyAny>> {
    let py = theirs.py();
    let is_recorded = |x: &Bound<'_, PyAny>| {
        x.cast::<PyArray>()
            .is_ok_and(|x| x.get().with(py, |x| x.entry().is_some()))
    };
    if Flags::current().is_recording() && inputs.iter().any(|x| is_recorded(&x)) {
        return Err(PyTypeError::new_err(format!(
            "{theirs} is a function of another library, which has no gradient here: call it under `autograd.pause()`, or on `x.detach()`"
        )));
    }
    if method == "at" {
        return Err(PyTypeError::new_err(format!(
            "{theirs}.at writes to arrays of NumPy only: convert them with `x.asnumpy()`"
        )));
    }
    let seen = |object: &Bound<'_, PyAny>| -> PyResult<Py<PyAny>> {
        match object.cast::<PyArray>() {
            Ok(x) => numpy_export::to_numpy(x),
            Err(_) => Ok(object.clone().unbind()),
        }
    };
    let copies: Vec<Py<PyAny>> = inputs.iter().map(|x| seen(&x)).collect::<PyResult<_>>()?;
    let named = match kwargs {
        Some(kwargs) => kwargs.copy()?,
        None => PyDict::new(py),
    };
    // The results are written to NumPy arrays and copied to ours afterwards.
    let outs = match named.get_item("out")? {
        Some(outs) => outs.cast_into::<PyTuple>()?,
        None => PyTuple::empty(py),
    };
    let mut written: Vec<Py<PyAny>> = Vec::with_capacity(outs.len());
    for out in outs.iter() {
        written.push(match out.cast::<PyArray>() {
            Ok(x) => numpy_export::to_numpy(x)?,
            Err(_) => out.clone().unbind(),
        });
    }
    if !outs.is_empty() {
        named.set_item("out", PyTuple::new(py, &written)?)?;
    }
    if let Some(mask) = named.get_item("where")? {
        named.set_item("where", seen(&mask)?)?;
    }
    let target = match method {
        "__call__" => theirs.clone(),
        _ => theirs.getattr(method)?,
    };
    let results = target.call(PyTuple::new(py, copies)?, Some(&named))?;
    for (out, written) in outs.iter().zip(&written) {
        if let Ok(x) = out.cast::<PyArray>() {
            let all = pyo3::types::PyEllipsis::get(py);
            index::set(x, all.as_any(), written.bind(py))?;
        }
    }
    let ours = |i: usize, result: &Bound<'_, PyAny>| -> PyResult<Py<PyAny>> {
        match outs.get_item(i) {
            Ok(out) if !out.is_none() => Ok(out.unbind()),
            _ => to_own_array(result),
        }
    };
    match results.cast::<PyTuple>() {
        Ok(several) => {
            let several: Vec<Py<PyAny>> = several
                .iter()
                .enumerate()
                .map(|(i, result)| ours(i, &result))
                .collect::<PyResult<_>>()?;
            Ok(PyTuple::new(py, several)?.into_any().unbind())
        }
        Err(_) => ours(0, &results),
    }
}

/// A result of another library as one of our arrays; an object that is not an array or a number is returned as it is.
fn to_own_array(result: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    if result.is_none() || !interop::is_array_like(result) {
        return Ok(result.clone().unbind());
    }
    // NumPy arrays of objects stay NumPy arrays.
    match interop::from_object(result, None, sharing::Sharing::Allowed) {
        Ok(array) => Ok(PyArray::wrap_result(result.py(), array)?.into_any()),
        Err(_) => Ok(result.clone().unbind()),
    }
}

/// The ufunc `clip`, which `numpy.ndarray.clip` calls.
fn clip(
    py: Python<'_>,
    inputs: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyAny>> {
    let named = match kwargs {
        Some(kwargs) => kwargs.copy()?,
        None => PyDict::new(py),
    };
    if let Some(out) = named.get_item("out")? {
        named.set_item("out", out.get_item(0)?)?;
    }
    let ours = py.import("mxnet.numpy")?.getattr("clip")?;
    ours.call(inputs, Some(&named)).map(Bound::unbind)
}

/// Equality with arrays or numbers of dtypes that we do not have: text, objects, dates.
fn unlike(name: &str, inputs: &Bound<'_, PyTuple>) -> PyResult<Option<Py<PyAny>>> {
    let (a, b) = (inputs.get_item(0)?, inputs.get_item(1)?);
    let (own, other) = match a.is_instance_of::<PyArray>() {
        true => (a, b),
        false => (b, a),
    };
    let foreign = interop::is_array_like(&other) && operators::comparable(&other)?.is_none();
    let op = match name {
        "equal" => &comparison::EQUAL,
        _ => &comparison::NOT_EQUAL,
    };
    foreign
        .then(|| equality::unlike(&own, op, &other))
        .transpose()
}

/// `func(*args, **kwargs)` with our function of the same module and name; `NotImplemented` if arrays of other libraries take part. Calls that
/// also have values of dtypes that we do not have are answered by NumPy, as is `numpy.where(mask, "yes", "no")`.
pub fn array_function(
    py: Python<'_>,
    func: &Bound<'_, PyAny>,
    types: &Bound<'_, PyAny>,
    args: &Bound<'_, PyTuple>,
    kwargs: &Bound<'_, PyDict>,
) -> PyResult<Py<PyAny>> {
    let (own, numpy) = (py.get_type::<PyArray>(), py.import("numpy")?);
    for class in types.try_iter()? {
        let class = class?.cast_into::<pyo3::types::PyType>()?;
        if !class.is_subclass(&own)? && !class.is(numpy.getattr("ndarray")?) {
            return Ok(py.NotImplemented());
        }
    }
    let name: String = func.getattr("__name__")?.extract()?;
    let module: String = func.getattr("__module__")?.extract()?;
    let rest = module.strip_prefix("numpy").unwrap_or("");
    let found = py
        .import(format!("mxnet.numpy{rest}"))
        .ok()
        .and_then(|home| home.getattr(name.as_str()).ok())
        // If our module re-exports NumPy's own function, calling it would recurse.
        .filter(|ours| ours.is_callable() && !ours.is(func));
    let Some(ours) = found else {
        return Err(PyTypeError::new_err(format!(
            "{module}.{name} has no counterpart in mxnet.numpy: convert the arrays with `x.asnumpy()`"
        )));
    };
    match ours.call(args, Some(kwargs)) {
        Ok(result) => Ok(result.unbind()),
        Err(error) => {
            let of_dtypes = py.import("mxnet.error")?.getattr("DTypeError")?;
            let answer = match error.is_instance(py, &of_dtypes) {
                true => with_numpys_arrays(func, args, kwargs)?,
                false => None,
            };
            answer.ok_or(error)
        }
    }
}

/// How deep lists and tuples among the arguments of a function are looked at.
const DEPTH: usize = 2;

/// Calls NumPy's function with our arrays as NumPy arrays over the same memory, if values take part that only NumPy has arrays of: text, None,
/// and arrays of objects, text, dates or records. `None` if there are no such values, if an array has no NumPy array over its memory or is
/// recorded for a gradient, or if NumPy refuses the call, too.
fn with_numpys_arrays(
    func: &Bound<'_, PyAny>,
    args: &Bound<'_, PyTuple>,
    kwargs: &Bound<'_, PyDict>,
) -> PyResult<Option<Py<PyAny>>> {
    let py = func.py();
    let numpy = py.import("numpy")?;
    let (array, scalar) = (numpy.getattr("ndarray")?, numpy.getattr("generic")?);
    let only_numpys = |x: &Bound<'_, PyAny>| -> PyResult<bool> {
        if x.is_none() || x.is_instance_of::<PyString>() || x.is_instance_of::<PyBytes>() {
            return Ok(true);
        }
        let is_numpys = x.is_instance(&array)? || x.is_instance(&scalar)?;
        Ok(is_numpys && numpy_dtype::of_array(x)?.is_none())
    };
    let mut found = false;
    for x in args.iter() {
        found = found || any_of(&x, DEPTH, &only_numpys)?;
    }
    if !found {
        return Ok(None);
    }
    let Some(args) = shared(args.as_any(), DEPTH + 1)? else {
        return Ok(None);
    };
    let named = PyDict::new(py);
    for (name, value) in kwargs.iter() {
        let Some(value) = shared(&value, DEPTH)? else {
            return Ok(None);
        };
        named.set_item(name, value)?;
    }
    let result = func.call(args.cast_into::<PyTuple>()?, Some(&named));
    Ok(result.map(Bound::unbind).ok())
}

/// Whether a value, or an item of a list or tuple at most `depth` levels deep, satisfies a condition.
fn any_of(
    x: &Bound<'_, PyAny>,
    depth: usize,
    condition: &dyn Fn(&Bound<'_, PyAny>) -> PyResult<bool>,
) -> PyResult<bool> {
    let nested = x.is_instance_of::<PyList>() || x.is_instance_of::<PyTuple>();
    if !nested || depth == 0 {
        return condition(x);
    }
    for item in x.try_iter()? {
        if any_of(&item?, depth - 1, condition)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A value with our arrays, also those in lists and tuples, replaced by NumPy arrays over their memory; `None` if that is not possible.
fn shared<'py>(x: &Bound<'py, PyAny>, depth: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = x.py();
    if let Ok(own) = x.cast::<PyArray>() {
        let is_recorded = Flags::current().is_recording();
        let possible = own.get().with(py, |x| {
            x.device().is_host()
                && x.dtype() != DType::BF16
                && !(is_recorded && x.entry().is_some())
        });
        return match possible {
            true => interop::numpy_asarray(x).map(Some),
            false => Ok(None),
        };
    }
    let is_list = x.is_instance_of::<PyList>();
    if !(is_list || x.is_instance_of::<PyTuple>()) || depth == 0 {
        return Ok(Some(x.clone()));
    }
    let mut items = Vec::new();
    for item in x.try_iter()? {
        match shared(&item?, depth - 1)? {
            Some(item) => items.push(item),
            None => return Ok(None),
        }
    }
    Ok(Some(match is_list {
        true => PyList::new(py, items)?.into_any(),
        false => PyTuple::new(py, items)?.into_any(),
    }))
}

/// The namespace of the array API.
pub fn array_namespace(py: Python<'_>, api_version: Option<&str>) -> PyResult<Py<PyAny>> {
    if let Some(version) = api_version.filter(|v| !API_VERSIONS.contains(v)) {
        return Err(PyValueError::new_err(format!(
            "version {version} of the array API is not supported; supported are {}",
            API_VERSIONS.join(", ")
        )));
    }
    Ok(py.import("mxnet.numpy")?.into_any().unbind())
}
