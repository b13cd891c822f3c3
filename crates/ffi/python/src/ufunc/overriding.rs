//! Operands of other classes with NumPy's protocol `__array_ufunc__`.
//!
//! Classes derived from our own array are treated as arrays.

use std::ops::Range;

use mxnet::core::OpDef;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};

use super::call::position;
use super::instance;
use super::loops::{num_inputs, num_outputs};
use crate::array::PyArray;
use crate::call::Binding;
use crate::keywords::Keywords;
use crate::once_box::OnceBox;

/// The `__array_ufunc__` of an operand.
pub enum Override<'py> {
    /// It has no `__array_ufunc__`: it is converted to an array if possible.
    None,
    /// `__array_ufunc__ = None`: it refuses ufuncs.
    Disabled,
    /// Its method overrides the call.
    Method(Bound<'py, PyAny>),
}

/// The `__array_ufunc__` of the operand.
pub fn override_of<'py>(operand: &Bound<'py, PyAny>) -> PyResult<Override<'py>> {
    static THEIRS: OnceBox<Py<PyType>> = OnceBox::new();
    static SCALAR: OnceBox<Py<PyType>> = OnceBox::new();
    let py = operand.py();
    if has_no_override(operand) {
        return Ok(Override::None);
    }
    let name = crate::once_box::interned!(py, "__array_ufunc__");
    let Some(method) = operand.get_type().getattr_opt(name)? else {
        return Ok(Override::None);
    };
    if method.is_none() {
        return Ok(Override::Disabled);
    }
    let theirs = THEIRS.import(py, "numpy", "ndarray")?;
    let is_numpys = operand.is_instance(SCALAR.import(py, "numpy", "generic")?)?
        || method.is(&theirs.getattr(name)?);
    Ok(match is_numpys {
        true => Override::None,
        false => Override::Method(method),
    })
}

/// Whether the operand's class is known to have no override. This saves looking up a missing attribute, which raises an exception and takes a
/// microsecond.
fn has_no_override(operand: &Bound<'_, PyAny>) -> bool {
    operand.is_instance_of::<PyArray>()
        || operand.is_exact_instance_of::<PyFloat>()
        || operand.is_exact_instance_of::<PyInt>()
        || operand.is_exact_instance_of::<PyList>()
        || operand.is_exact_instance_of::<PyTuple>()
        || operand.is_exact_instance_of::<PyBool>()
        || operand.is_exact_instance_of::<PyComplex>()
        || operand.is_exact_instance_of::<PyString>()
        || operand.is_none()
}

/// Whether an object without the protocol takes precedence in operators: its class has a higher `__array_priority__` than NumPy's arrays.
pub fn has_higher_priority(operand: &Bound<'_, PyAny>) -> PyResult<bool> {
    if has_no_override(operand) {
        return Ok(false);
    }
    let py = operand.py();
    let class = operand.get_type();
    if class.hasattr(crate::once_box::interned!(py, "__array_ufunc__"))? {
        return Ok(false);
    }
    match class.getattr_opt(crate::once_box::interned!(py, "__array_priority__"))? {
        Some(priority) => Ok(priority.extract::<f64>().is_ok_and(|p| p > 0.0)),
        None => Ok(false),
    }
}

/// The result of an operand that overrides the call; `None` if there is none.
pub fn call(
    py: Python<'_>,
    binding: &'static Binding,
    positional: &[*mut ffi::PyObject],
    named: &Keywords,
) -> PyResult<Option<Py<PyAny>>> {
    // SAFETY: borrowed arguments of the running call.
    let object = |p: *mut ffi::PyObject| unsafe { Bound::from_borrowed_ptr(py, p) };
    let has_override =
        |p: *mut ffi::PyObject| Ok::<_, PyErr>(!matches!(override_of(&object(p))?, Override::None));
    let op = binding.op;
    let (nin, nout) = (num_inputs(op), num_outputs(op));
    let by_name = inputs_by_name(py, op, positional.len()..nin, named)?;
    let mut given = positional.to_vec();
    given.extend(by_name.iter().map(|&at| named.get(at).1));
    let positional = given.as_slice();
    let mut anyone = false;
    for &p in positional {
        anyone |= has_override(p)?;
    }
    let out = (0..named.len)
        .map(|i| named.get(i))
        .find(|&(name, _)| object(name).str().is_ok_and(|name| name == "out"))
        .map(|(_, value)| object(value));
    if let Some(out) = &out {
        match out.cast::<PyTuple>() {
            Ok(outs) => {
                for out in outs {
                    anyone |= has_override(out.as_ptr())?;
                }
            }
            Err(_) => anyone |= has_override(out.as_ptr())?,
        }
    }
    if !anyone {
        return Ok(None);
    }
    if positional.len() < nin || positional.len() > nin + nout {
        return Err(PyTypeError::new_err(format!(
            "{}() takes from {nin} to {} positional arguments but {} were given",
            op.name,
            nin + nout,
            positional.len()
        )));
    }
    let inputs = PyTuple::new(py, positional[..nin].iter().map(|&p| object(p)))?;
    let kwargs = PyDict::new(py);
    for i in (0..named.len).filter(|i| !by_name.contains(i)) {
        let (name, value) = named.get(i);
        match object(name).str()?.to_str()? {
            "out" => {}
            "sig" => kwargs.set_item("signature", object(value))?,
            name => kwargs.set_item(name, object(value))?,
        }
    }
    let outs = outputs(py, op, &positional[nin..], out.as_ref())?;
    if !outs.iter().all(|out| out.is_none()) {
        kwargs.set_item("out", &outs)?;
    }
    let function = instance::find(py, op.name).map(|f| f.into_bound(py));
    let Some(function) = function else {
        return Ok(None);
    };
    call_overrides(&function, "__call__", &inputs, &outs, &kwargs).map(Some)
}

/// The keyword arguments that give the inputs `missing`, in the order of the inputs, up to the first input without one.
fn inputs_by_name(
    py: Python<'_>,
    op: &OpDef,
    missing: Range<usize>,
    named: &Keywords,
) -> PyResult<Vec<usize>> {
    let mut found = Vec::new();
    for input in missing {
        let mut at = None;
        for i in 0..named.len {
            // SAFETY: a borrowed name of the running call.
            let name = unsafe { Bound::from_borrowed_ptr(py, named.get(i).0) };
            if position(op, name.str()?.to_str()?) == Some(input) {
                at = Some(i);
            }
        }
        match at {
            Some(at) => found.push(at),
            None => break,
        }
    }
    Ok(found)
}

/// The entries of `out`, one for each output.
fn outputs<'py>(
    py: Python<'py>,
    op: &OpDef,
    positional: &[*mut ffi::PyObject],
    out: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyTuple>> {
    let nout = num_outputs(op);
    if let Some(out) = out {
        if !positional.is_empty() {
            return Err(PyTypeError::new_err(
                "cannot specify 'out' as both a positional and keyword argument",
            ));
        }
        return match out.cast::<PyTuple>() {
            Ok(outs) if outs.len() == nout => Ok(outs.clone()),
            Ok(outs) => Err(PyValueError::new_err(format!(
                "{}: the 'out' tuple must have exactly one entry per ufunc output: {nout}, found {}",
                op.name,
                outs.len()
            ))),
            Err(_) if nout == 1 => PyTuple::new(py, [out]),
            Err(_) => Err(PyTypeError::new_err(format!(
                "{}: 'out' must be a tuple of {nout} arrays",
                op.name
            ))),
        };
    }
    let none = py.None();
    let filled = (0..nout).map(|i| match positional.get(i) {
        // SAFETY: a borrowed argument of the running call.
        Some(&p) => unsafe { Bound::from_borrowed_ptr(py, p) },
        None => none.bind(py).clone(),
    });
    PyTuple::new(py, filled.collect::<Vec<_>>())
}

/// The result of an operand, or `out`, that overrides a method call (`reduce`, `at`, …); `None` if there is none. `names` are the method's
/// parameters; the first `arrays` of them are operands.
pub fn method_call<'py>(
    function: &Bound<'py, PyAny>,
    method: &str,
    (names, arrays): (&[&str], usize),
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Option<Py<PyAny>>> {
    let py = function.py();
    let has_override =
        |object: &Bound<'py, PyAny>| override_of(object).map(|s| !matches!(s, Override::None));
    let mut anyone = false;
    for (i, object) in args.iter().enumerate() {
        // The second argument of `at` is an index, not an operand.
        if i < arrays && !(method == "at" && i == 1) || names.get(i) == Some(&"out") {
            anyone |= has_override(&object)?;
        }
    }
    let out = kwargs.map(|k| k.get_item("out")).transpose()?.flatten();
    if let Some(out) = &out {
        anyone |= match out.cast::<PyTuple>() {
            Ok(outs) if outs.len() == 1 => has_override(&outs.get_item(0)?)?,
            _ => has_override(out)?,
        };
    }
    if !anyone {
        return Ok(None);
    }
    let inputs = args.get_slice(0, arrays.min(args.len()));
    let named = match kwargs {
        Some(kwargs) => kwargs.copy()?,
        None => PyDict::new(py),
    };
    for (i, object) in args.iter().enumerate().skip(arrays) {
        if let Some(name) = names.get(i) {
            named.set_item(name, object)?;
        }
    }
    let outs = match named.get_item("out")? {
        Some(out) if out.is_none() => {
            named.del_item("out")?;
            PyTuple::empty(py)
        }
        Some(out) => match out.cast::<PyTuple>() {
            Ok(outs) => outs.clone(),
            Err(_) => PyTuple::new(py, [out])?,
        },
        None => PyTuple::empty(py),
    };
    if !outs.is_empty() {
        named.set_item("out", &outs)?;
    }
    call_overrides(function, method, &inputs, &outs, &named).map(Some)
}

/// Calls the methods of the operands, one of each class, derived classes before their bases. Returns the first result that is not `NotImplemented`.
fn call_overrides(
    function: &Bound<'_, PyAny>,
    method: &str,
    inputs: &Bound<'_, PyTuple>,
    outs: &Bound<'_, PyTuple>,
    kwargs: &Bound<'_, PyDict>,
) -> PyResult<Py<PyAny>> {
    let py = function.py();
    let mut asked: Vec<(Bound<'_, PyAny>, Bound<'_, PyAny>)> = Vec::new();
    for operand in inputs.iter().chain(outs.iter()) {
        let class = operand.get_type();
        match override_of(&operand)? {
            Override::None => {}
            Override::Disabled => {
                return Err(PyTypeError::new_err(format!(
                    "operand '{}' does not support ufuncs (__array_ufunc__=None)",
                    class.name()?
                )));
            }
            Override::Method(_) if asked.iter().any(|(other, _)| other.get_type().is(&class)) => {}
            Override::Method(method) => {
                let mut at = asked.len();
                for (i, (other, _)) in asked.iter().enumerate() {
                    if class.is_subclass(&other.get_type())? {
                        at = i;
                        break;
                    }
                }
                asked.insert(at, (operand, method));
            }
        }
    }
    for (operand, own) in &asked {
        let mut arguments = vec![
            operand.clone(),
            function.clone(),
            PyString::new(py, method).into_any(),
        ];
        arguments.extend(inputs.iter());
        let result = own.call(PyTuple::new(py, arguments)?, Some(kwargs))?;
        if !result.is(py.NotImplemented().bind(py)) {
            return Ok(result.unbind());
        }
    }
    let classes: Vec<String> = asked
        .iter()
        .map(|(operand, _)| Ok(format!("'{}'", operand.get_type().name()?)))
        .collect::<PyResult<_>>()?;
    Err(PyTypeError::new_err(format!(
        "operand type(s) all returned NotImplemented from __array_ufunc__({}, '{method}', ...): {}",
        function.repr()?,
        classes.join(", ")
    )))
}
