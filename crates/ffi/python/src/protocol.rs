//! NumPy's functions called with our arrays: they are answered by ours of the same name.

use mxnet::ops::elementwise::comparison;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::array::PyArray;
use crate::{convert, exchange, operators, ufunc};

/// Versions of the array API that `__array_namespace__` is asked for.
const API_VERSIONS: [&str; 4] = ["2021.12", "2022.12", "2023.12", "2024.12"];

/// `ufunc.method(*inputs, **kwargs)` by our function of the same name; `NotImplemented` if an input is nothing we know.
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
    // Matrix products are functions of NumPy's kind, too, but not of single elements.
    let ours = match ufunc::find(py, &name).filter(|_| known) {
        _ if ufunc::is_ufunc(theirs) => Some(theirs.clone()),
        Some(ours) => Some(ours.into_bound(py)),
        // NumPy's own `clip` is a function around this one of single elements.
        None if name == "clip" && method == "__call__" => return clip(py, inputs, kwargs),
        None if known && method == "__call__" => {
            py.import("mxnet.numpy")?.getattr_opt(name.as_str())?
        }
        None => None,
    };
    let Some(ours) = ours else {
        return Err(PyTypeError::new_err(format!(
            "the function '{name}' has no counterpart for mxnet arrays: convert them with `x.asnumpy()`"
        )));
    };
    if let ("equal" | "not_equal", "__call__", None) = (name.as_str(), method, kwargs)
        && let Some(answer) = unlike(&name, inputs)?
    {
        return Ok(answer);
    }
    // Indices and the like stand behind the first input.
    let arrays = match method {
        "at" | "reduceat" => 1,
        _ => inputs.len(),
    };
    for input in inputs.iter().take(arrays) {
        // Who answers in our place is asked by the function, not from here.
        if !matches!(ufunc::stance(&input)?, ufunc::Stance::None) {
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

/// NumPy's `clip` of single elements, which `numpy.ndarray.clip` calls.
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

/// Equality with NumPy's arrays and numbers of other dtypes than ours: text, objects, dates.
fn unlike(name: &str, inputs: &Bound<'_, PyTuple>) -> PyResult<Option<Py<PyAny>>> {
    let (a, b) = (inputs.get_item(0)?, inputs.get_item(1)?);
    let (own, other) = match a.is_instance_of::<PyArray>() {
        true => (a, b),
        false => (b, a),
    };
    let foreign = exchange::is_array_like(&other) && operators::comparable(&other)?.is_none();
    let op = match name {
        "equal" => &comparison::EQUAL,
        _ => &comparison::NOT_EQUAL,
    };
    foreign
        .then(|| operators::unlike(&own, op, &other))
        .transpose()
}

/// `func(*args, **kwargs)` by our function of the same module and name; `NotImplemented` if arrays of other libraries take part.
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
        // NumPy's own function, shown by our module, would come back here.
        .filter(|ours| ours.is_callable() && !ours.is(func));
    let Some(ours) = found else {
        return Err(PyTypeError::new_err(format!(
            "{module}.{name} has no counterpart in mxnet.numpy: convert the arrays with `x.asnumpy()`"
        )));
    };
    ours.call(args, Some(kwargs)).map(Bound::unbind)
}

/// The module that has the functions of the array API.
pub fn array_namespace(py: Python<'_>, api_version: Option<&str>) -> PyResult<Py<PyAny>> {
    if let Some(version) = api_version.filter(|v| !API_VERSIONS.contains(v)) {
        return Err(PyValueError::new_err(format!(
            "version {version} of the array API is not supported; supported are {}",
            API_VERSIONS.join(", ")
        )));
    }
    Ok(py.import("mxnet.numpy")?.into_any().unbind())
}
