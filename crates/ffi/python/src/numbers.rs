//! Numbers and sequences of integers, read from Python objects.

use mxnet::core::{Value, memory};
use mxnet::tensor::{DType, Kind, Promotion, Scalar, promotion};
use num_complex::Complex;
use pyo3::exceptions::{PyMemoryError, PyOverflowError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyList, PyString, PyTuple};
use smallvec::SmallVec;

use crate::array::{Get, PyArray};
use crate::engine::SIGNALS_EVERY;
use crate::error::raise;
use crate::gil_release::without_gil;
use crate::graph::watch;
use crate::numpy_dtype;

/// The value of an object whose class is exactly one of Python's number types, or of a traced length. NumPy scalars have dtypes: they are arrays
/// here.
pub fn number(object: &Bound<'_, PyAny>) -> PyResult<Option<Scalar>> {
    if object.is_exact_instance_of::<PyFloat>() {
        return Ok(Some(Scalar::F64(object.extract()?)));
    }
    if object.is_exact_instance_of::<PyInt>() {
        if let Ok(value) = object.extract::<i64>() {
            return Ok(Some(Scalar::I64(value)));
        }
        return match object.extract::<u64>() {
            Ok(value) => Ok(Some(Scalar::U64(value))),
            Err(_) => wide(object).map(Some),
        };
    }
    if object.is_exact_instance_of::<PyBool>() {
        return Ok(Some(Scalar::Bool(object.extract()?)));
    }
    if object.is_exact_instance_of::<PyComplex>() {
        let re: f64 = object.getattr("real")?.extract()?;
        let im: f64 = object.getattr("imag")?.extract()?;
        return Ok(Some(Scalar::C128(Complex::new(re, im))));
    }
    match watch::python_number(object)? {
        Some(builtin) => number(&builtin),
        None => Ok(None),
    }
}

/// A Python integer beyond 64 bits, as a float.
#[cold]
fn wide(object: &Bound<'_, PyAny>) -> PyResult<Scalar> {
    match object.extract::<f64>() {
        Ok(value) => Ok(Scalar::Wide(value)),
        Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => {
            let sign = if object.lt(0)? { -1.0 } else { 1.0 };
            Ok(Scalar::Wide(sign * f64::INFINITY))
        }
        Err(error) => Err(error),
    }
}

/// A number of a class derived from one of Python's (a member of an `IntEnum`). As in NumPy, it is treated like an array of it.
pub fn derived_number(object: &Bound<'_, PyAny>) -> PyResult<Option<Scalar>> {
    let py = object.py();
    let class = if object.is_instance_of::<PyInt>() {
        py.get_type::<PyInt>()
    } else if object.is_instance_of::<PyFloat>() {
        py.get_type::<PyFloat>()
    } else if object.is_instance_of::<PyComplex>() {
        py.get_type::<PyComplex>()
    } else {
        return Ok(None);
    };
    // The built-in class reads the value, so that overridden methods of the derived class are not called.
    let builtin =
        class.call_method1(crate::once_box::interned!(py, "__new__"), (&class, object))?;
    number(&builtin)
}

/// A number of a class derived from Python's `float` or `complex`, such as NumPy's float64, that is to be treated as a Python number: as an operand,
/// unless the rules are NumPy's. Without this, a factor `numpy.sqrt(2)` would make float64 of smaller floats.
pub fn derived_float(object: &Bound<'_, PyAny>) -> PyResult<Option<Scalar>> {
    let is_float = object.is_instance_of::<PyFloat>() || object.is_instance_of::<PyComplex>();
    match is_float && promotion() == Promotion::Mx {
        true => derived_number(object),
        false => Ok(None),
    }
}

/// A NumPy scalar: its value and dtype.
pub fn numpy_number(object: &Bound<'_, PyAny>) -> PyResult<Option<(Scalar, DType)>> {
    match numpy_dtype::known(object.get_type().as_any())? {
        Some(dtype) => Ok(Some((numpy_value(object, dtype)?, dtype))),
        None => Ok(None),
    }
}

/// The value of a NumPy scalar, given its dtype.
pub fn numpy_value(object: &Bound<'_, PyAny>, dtype: DType) -> PyResult<Scalar> {
    let py = object.py();
    Ok(match dtype.kind() {
        Kind::Bool => Scalar::Bool(object.is_truthy()?),
        Kind::Integer if dtype == DType::U64 => Scalar::U64(object.extract()?),
        Kind::Integer => Scalar::I64(object.extract()?),
        Kind::Float => {
            // SAFETY: a live object; the function accepts any.
            let value = unsafe { ffi::PyFloat_AsDouble(object.as_ptr()) };
            match PyErr::take(py) {
                Some(error) => return Err(error),
                None => Scalar::F64(value),
            }
        }
        Kind::Complex => {
            let re: f64 = object
                .getattr(crate::once_box::interned!(py, "real"))?
                .extract()?;
            let im: f64 = object
                .getattr(crate::once_box::interned!(py, "imag"))?
                .extract()?;
            Scalar::C128(Complex::new(re, im))
        }
    })
}

/// Whether the object is exactly a list or a tuple.
#[inline]
pub fn is_list(object: &Bound<'_, PyAny>) -> bool {
    object.is_exact_instance_of::<PyList>() || object.is_exact_instance_of::<PyTuple>()
}

/// An integer, read by `__index__`.
#[inline]
pub fn integer(object: &Bound<'_, PyAny>) -> PyResult<i64> {
    // SAFETY: a live object.
    if unsafe { ffi::PyLong_CheckExact(object.as_ptr()) } == 0 {
        return object.extract::<i64>();
    }
    // SAFETY: an int; the thread is attached, as the object shows.
    let value = unsafe { ffi::PyLong_AsLongLong(object.as_ptr()) };
    match value {
        -1 => PyErr::take(object.py()).map_or(Ok(-1), Err),
        value => Ok(value),
    }
}

/// Whether the object is a sequence but not a tuple; such objects are not valid as `axis`.
pub fn is_sequence(object: &Bound<'_, PyAny>) -> bool {
    !object.is_instance_of::<PyTuple>()
        && !object.is_exact_instance_of::<PyInt>()
        && object.len().is_ok()
}

/// An integer or a sequence of integers; `None` if it is neither.
pub fn integers(object: &Bound<'_, PyAny>) -> PyResult<Option<SmallVec<[i64; 4]>>> {
    // Shapes are nearly always tuples; a failed conversion would cost an exception object.
    if let Ok(tuple) = object.cast_exact::<PyTuple>() {
        let mut values = SmallVec::new();
        for item in tuple.iter_borrowed() {
            if item.is_exact_instance_of::<PyBool>() {
                return Ok(None);
            }
            match integer(&item) {
                Ok(value) => values.push(value),
                Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => {
                    return Err(error);
                }
                Err(_) => return Ok(None),
            }
        }
        return Ok(Some(values));
    }
    // Booleans are not valid as sizes or axes, although Python counts them among the integers.
    if object.is_instance_of::<PyString>() || object.is_exact_instance_of::<PyBool>() {
        return Ok(None);
    }
    if object.hasattr(crate::once_box::interned!(object.py(), "__index__"))?
        && let Ok(value) = object.extract::<i64>()
    {
        return Ok(Some(SmallVec::from_slice(&[value])));
    }
    if let Some(values) = integers_of_array(object)? {
        return Ok(Some(values));
    }
    // An iterable without a length could be infinite.
    let (Ok(len), Ok(items)) = (object.len(), object.try_iter()) else {
        return Ok(None);
    };
    let mut values = SmallVec::new();
    // `push` would end the process, and a sequence that says it has 2**62 items would never end.
    if values.try_reserve(len).is_err() {
        return Err(PyMemoryError::new_err(format!(
            "no memory for a list of {len} integers"
        )));
    }
    for (i, item) in items.take(len).enumerate() {
        if i % SIGNALS_EVERY == SIGNALS_EVERY - 1 {
            object.py().check_signals()?;
        }
        let item = item?;
        match item.extract::<i64>() {
            Ok(value) if !item.is_exact_instance_of::<PyBool>() => values.push(value),
            _ => return Ok(None),
        }
    }
    Ok(Some(values))
}

/// Checks that there is memory for references to as many items as a sequence says it has. One that says 2**62 would be read until memory ends.
///
/// # Errors
/// MemoryError if there is not.
pub fn check_len(object: &Bound<'_, PyAny>) -> PyResult<()> {
    if is_list(object) {
        return Ok(());
    }
    let bytes = object
        .len()
        .map_or(0, |len| len.saturating_mul(size_of::<Py<PyAny>>()));
    memory::check_available("sequence", bytes).map_err(|error| raise(object.py(), error))
}

/// The elements of an array of integers that has one axis; `None` if it is something else.
fn integers_of_array(object: &Bound<'_, PyAny>) -> PyResult<Option<SmallVec<[i64; 4]>>> {
    let py = object.py();
    let Ok(array) = object.cast::<PyArray>() else {
        return Ok(None);
    };
    let array = array.get().array(py);
    // Elements of uint64 may exceed int64, so they are converted one by one.
    if array.ndim() != 1 || !array.dtype().is_integer() || array.dtype() == DType::U64 {
        return Ok(None);
    }
    let read = || array.astype(DType::I64)?.to_vec::<i64>();
    let values = without_gil(py, read).map_err(|error| raise(py, error))?;
    if values.len() >= SIGNALS_EVERY {
        py.check_signals()?;
    }
    Ok(Some(SmallVec::from_vec(values)))
}

/// A float or floats, truncated to integers; `None` for other objects.
#[cold]
pub fn truncated(object: &Bound<'_, PyAny>) -> PyResult<Option<Value>> {
    let whole = |item: &Bound<'_, PyAny>| -> PyResult<Option<i64>> {
        match item.is_instance_of::<PyString>() || !item.hasattr("__float__")? {
            true => Ok(None),
            false => item.call_method0("__int__")?.extract().map(Some),
        }
    };
    check_len(object)?;
    match object.try_iter() {
        Ok(items) => {
            let values: Option<SmallVec<[i64; 4]>> =
                items.map(|item| whole(&item?)).collect::<PyResult<_>>()?;
            Ok(values.map(Value::Ints))
        }
        Err(_) => Ok(whole(object)?.map(Value::Int)),
    }
}
