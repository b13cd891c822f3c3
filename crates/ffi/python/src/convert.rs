//! Conversions between Python objects and the core's types.

use std::str::FromStr;

use mxnet::core::{Array, Cpu, Error, OpDef, Param, Types, Value, check_element, dtype_of_number};
use mxnet::tensor::{Casting, DType, Kind, Promotion, Scalar, promotion};
use num_complex::Complex;
use pyo3::exceptions::{PyImportError, PyMemoryError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyList, PyString, PyTuple};
use smallvec::SmallVec;

use crate::array::{Get, PyArray};
use crate::engine::SIGNALS_EVERY;
use crate::error::raise;
use crate::gil_cell::Ref;
use crate::gil_release::without_gil;
use crate::graph::watch;
use crate::once_box::OnceBox;
use crate::{interop, nested_sequence};

/// An array argument: the caller's array object, or an array converted from another object.
pub enum Operand<'py> {
    /// The caller's object.
    Object(Bound<'py, PyArray>),
    /// An array made for this call. It is boxed, so that moving an argument moves two words only.
    Converted(Box<Array>),
}

impl<'py> Operand<'py> {
    /// An operand from an array made for this call.
    #[inline]
    pub fn converted(array: Array) -> Operand<'py> {
        Operand::Converted(Box::new(array))
    }

    /// The caller's object, if the argument is one.
    pub fn held(&self) -> Option<&Bound<'py, PyArray>> {
        match self {
            Operand::Object(object) => Some(object),
            Operand::Converted(_) => None,
        }
    }

    /// The dtype of the array.
    pub fn dtype(&self) -> DType {
        match self {
            Operand::Object(object) => object.get().with(object.py(), Array::dtype),
            Operand::Converted(array) => array.dtype(),
        }
    }

    /// The array; a cheap copy that shares the elements.
    pub fn array(&self) -> Array {
        match self {
            Operand::Object(object) => object.get().array(object.py()),
            Operand::Converted(array) => Array::clone(array),
        }
    }
}

/// Calls `read` with references to the arrays of the arguments. No Python code may run in `read`.
#[inline]
pub fn with_arrays<R>(inputs: &[Option<Operand>], read: impl FnOnce(&[Option<&Array>]) -> R) -> R {
    let mut held = SmallVec::<[Option<Ref<Array>>; 4]>::new();
    for x in inputs {
        held.push(match x {
            Some(Operand::Object(object)) => Some(object.get().borrow(object.py())),
            _ => None,
        });
    }
    let mut refs = SmallVec::<[Option<&Array>; 4]>::new();
    for (i, x) in inputs.iter().enumerate() {
        refs.push(match x {
            Some(Operand::Converted(array)) => Some(&**array),
            _ => held[i].as_deref(),
        });
    }
    read(&refs)
}

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
    match watch::plain(object)? {
        Some(plain) => number(&plain),
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
    let plain = class.call_method1(crate::once_box::interned!(py, "__new__"), (&class, object))?;
    number(&plain)
}

/// A NumPy scalar: its value and dtype.
pub fn numpy_number(object: &Bound<'_, PyAny>) -> PyResult<Option<(Scalar, DType)>> {
    match known_dtype(object.get_type().as_any())? {
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

/// An operand, from any object of which NumPy would make an array of numbers; `None` for other objects.
pub fn operand<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Operand<'py>>> {
    let py = object.py();
    if let Ok(array) = object.cast::<PyArray>() {
        return Ok(Some(Operand::Object(array.clone())));
    }
    if let Some(value) = number(object)? {
        return made(py, Array::weak_scalar(value)).map(Some);
    }
    if is_list(object) {
        let array = interop::from_object(object, None, interop::Sharing::Allowed)?;
        return Ok(Some(Operand::converted(array)));
    }
    if let Some((value, dtype)) = numpy_number(object)? {
        return made(py, Array::scalar(value, dtype)).map(Some);
    }
    if let Some(value) = derived_number(object)? {
        let dtype = dtype_of_number(value);
        check_element("array", &value, dtype).map_err(|error| raise(py, error))?;
        return made(py, Array::scalar(value, dtype)).map(Some);
    }
    if interop::is_array_like(object) || nested_sequence::is_nested(object) {
        let array = interop::from_object(object, None, interop::Sharing::Allowed)?;
        // Indices and masks are checked before they are used, so a shared buffer, which its owner may change in between, is copied.
        let array = match array.dtype().kind() {
            Kind::Bool | Kind::Integer if array.tensor().storage().is_foreign() => {
                interop::complete_copy(py, &array)?
            }
            _ => array,
        };
        return Ok(Some(Operand::converted(array)));
    }
    Ok(None)
}

/// A value to be assigned to elements of `dtype`. Arrays and NumPy scalars keep their dtype; other objects are read as NumPy reads elements: text is
/// parsed, None is NaN, and numbers must fit.
pub fn value_for<'py>(object: &Bound<'py, PyAny>, dtype: DType) -> PyResult<Operand<'py>> {
    let py = object.py();
    if let Ok(array) = object.cast::<PyArray>() {
        return Ok(Operand::Object(array.clone()));
    }
    if let Some(value) = number(object)? {
        return made(py, Array::weak_scalar(value));
    }
    if is_list(object) {
        let array = interop::from_object(object, Some(dtype), interop::Sharing::Allowed)?;
        return Ok(Operand::converted(array));
    }
    if let Some((value, own)) = numpy_number(object)? {
        return made(py, Array::scalar(value, own));
    }
    // Arrays of other libraries are cast as our arrays are.
    let array = match interop::is_array_like(object) {
        true => interop::from_foreign(object, Some(dtype))?,
        false => interop::from_object(object, Some(dtype), interop::Sharing::Allowed)?,
    };
    Ok(Operand::converted(array))
}

/// Whether the object is exactly a list or a tuple.
#[inline]
pub fn is_list(object: &Bound<'_, PyAny>) -> bool {
    object.is_exact_instance_of::<PyList>() || object.is_exact_instance_of::<PyTuple>()
}

fn made(py: Python<'_>, array: mxnet::core::Result<Array>) -> PyResult<Operand<'_>> {
    array
        .map(Operand::converted)
        .map_err(|error| raise(py, error))
}

/// An argument for an array parameter.
pub fn array_argument<'py>(
    py: Python<'py>,
    op: &'static OpDef,
    param: &Param,
    object: *mut ffi::PyObject,
) -> PyResult<Option<Operand<'py>>> {
    // SAFETY: a borrowed argument of the running call.
    let object = unsafe { Bound::from_borrowed_ptr(py, object) };
    if let Ok(array) = object.cast::<PyArray>() {
        return Ok(Some(Operand::Object(array.clone())));
    }
    if object.is_none() && (param.nullable || param.default == mxnet::core::Default::None) {
        return Ok(None);
    }
    match operand(&object)? {
        Some(Operand::Converted(array)) => {
            check_wide(py, op, &array)?;
            if param.strong && promotion() == Promotion::NumPy {
                return Ok(Some(Operand::converted(mxnet::core::bind::strong(*array))));
            }
            Ok(Some(Operand::Converted(array)))
        }
        Some(x) => Ok(Some(x)),
        None => {
            let problem = format!(
                "argument `{}` must be an array or a number, not '{}'",
                param.name,
                object.get_type().name()?
            );
            Err(raise(py, Error::dtype(op.name, problem)))
        }
    }
}

/// An error for a Python integer beyond 64 bits, unless the operator is elementwise or composite: other operators would silently use a float.
fn check_wide(py: Python<'_>, op: &'static OpDef, array: &Array) -> PyResult<()> {
    match array.number() {
        Some(value @ Scalar::Wide(_))
            if matches!(op.types, Types::First | Types::Infer)
                && !matches!(op.cpu, Cpu::Composite(_)) =>
        {
            let error = mxnet::core::out_of_bounds(op.name, value, mxnet::tensor::default_int());
            Err(raise(py, error))
        }
        _ => Ok(()),
    }
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
    for (i, item) in items.take(len).enumerate() {
        if i % SIGNALS_EVERY == SIGNALS_EVERY - 1 {
            object.py().check_signals()?;
        }
        let item = item?;
        match item.extract::<i64>() {
            Ok(value) if !item.is_exact_instance_of::<PyBool>() => {
                // `push` would end the process.
                if values.try_reserve(1).is_err() {
                    return Err(PyMemoryError::new_err(format!(
                        "no memory for a list of {len} integers"
                    )));
                }
                values.push(value);
            }
            _ => return Ok(None),
        }
    }
    Ok(Some(values))
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
    match object.try_iter() {
        Ok(items) => {
            let values: Option<SmallVec<[i64; 4]>> =
                items.map(|item| whole(&item?)).collect::<PyResult<_>>()?;
            Ok(values.map(Value::Ints))
        }
        Err(_) => Ok(whole(object)?.map(Value::Int)),
    }
}

/// A number of any kind: Python's, NumPy's, or an array of one element.
pub fn scalar_like(object: &Bound<'_, PyAny>) -> PyResult<Option<Scalar>> {
    if let Some(value) = number(object)? {
        return Ok(Some(value));
    }
    if let Ok(array) = object.cast::<PyArray>() {
        let py = object.py();
        let array = array.get().array(py);
        return without_gil(py, || array.item())
            .map(Some)
            .map_err(|error| raise(py, error));
    }
    if let Some(value) = derived_number(object)? {
        return Ok(Some(value));
    }
    if interop::is_array_like(object) {
        return number(&object.call_method0("item")?);
    }
    Ok(None)
}

/// `out=`: one array, or a tuple of arrays and `None`.
pub fn outs_argument<'py>(
    op: &'static OpDef,
    object: &Bound<'py, PyAny>,
) -> PyResult<SmallVec<[Option<Bound<'py, PyArray>>; 1]>> {
    let one = |item: &Bound<'py, PyAny>| -> PyResult<Option<Bound<'py, PyArray>>> {
        if item.is_none() {
            return Ok(None);
        }
        match item.cast::<PyArray>() {
            Ok(array) => Ok(Some(array.clone())),
            Err(_) => Err(PyTypeError::new_err(format!(
                "{}: `out` must be an ndarray, not '{}'",
                op.name,
                item.get_type().name()?
            ))),
        }
    };
    match object.cast::<PyTuple>() {
        Ok(tuple) => tuple.iter().map(|item| one(&item)).collect(),
        Err(_) => Ok(SmallVec::from_iter([one(object)?])),
    }
}

/// `casting=`.
pub fn casting_argument(op: &'static OpDef, object: &Bound<'_, PyAny>) -> PyResult<Casting> {
    let text: String = object.extract()?;
    Casting::from_str(&text)
        .map_err(|error| PyValueError::new_err(format!("{}: {error}, not '{text}'", op.name)))
}

/// `order=`.
pub fn order_argument(op: &'static OpDef, object: &Bound<'_, PyAny>) -> PyResult<u8> {
    let text: String = object.extract()?;
    match text.to_ascii_uppercase().as_bytes() {
        [c @ (b'K' | b'A' | b'C' | b'F')] => Ok(*c),
        _ => Err(PyValueError::new_err(format!(
            "{}: order must be one of 'C', 'F', 'A', 'K', not '{text}'",
            op.name
        ))),
    }
}

/// The array in this memory order.
pub fn in_order(array: &Array, order: u8) -> mxnet::core::Result<Array> {
    match order {
        b'C' => array.contiguous(),
        b'F' => array.transpose(None)?.contiguous()?.transpose(None),
        _ => Ok(array.clone()),
    }
}

static NUMPY_DTYPES: OnceBox<Vec<Py<PyAny>>> = OnceBox::new();

/// NumPy's dtype object of a dtype. For bfloat16 that of `ml_dtypes` if it is installed, else its name.
pub fn numpy_dtype(py: Python<'_>, dtype: DType) -> PyResult<Py<PyAny>> {
    let all = NUMPY_DTYPES.get_or_try_init(|| -> PyResult<Vec<Py<PyAny>>> {
        let numpy = py.import("numpy")?;
        DType::ALL
            .iter()
            .map(|dtype| {
                if *dtype != DType::BF16 {
                    return Ok(numpy.call_method1("dtype", (dtype.name(),))?.unbind());
                }
                match py.import("ml_dtypes") {
                    Ok(ml) => Ok(numpy
                        .call_method1("dtype", (ml.getattr("bfloat16")?,))?
                        .unbind()),
                    // `ml_dtypes` is not installed, or not for this Python. Other errors (Ctrl-C, for example) are the caller's.
                    Err(error) if error.is_instance_of::<PyImportError>(py) => {
                        Ok(PyString::new(py, "bfloat16").into_any().unbind())
                    }
                    Err(error) => Err(error),
                }
            })
            .collect()
    })?;
    Ok(all[dtype as usize].clone_ref(py))
}

/// Builds the tables of dtypes when the package is imported: a process that is forked while another thread imports `ml_dtypes` could not import
/// it any more.
pub fn init(py: Python<'_>) -> PyResult<()> {
    known_dtype(py.None().bind(py)).map(drop)
}

/// NumPy's dtype objects and scalar types of our dtypes.
static KNOWN_DTYPES: OnceBox<Vec<(Py<PyAny>, DType)>> = OnceBox::new();

/// The dtype of one of NumPy's own dtype objects or scalar types, which are unique objects. Most callers pass these.
pub fn known_dtype(object: &Bound<'_, PyAny>) -> PyResult<Option<DType>> {
    let py = object.py();
    let known = KNOWN_DTYPES.get_or_try_init(|| -> PyResult<Vec<(Py<PyAny>, DType)>> {
        let mut known = Vec::new();
        for dtype in DType::ALL {
            let object = numpy_dtype(py, dtype)?.into_bound(py);
            if object.is_instance_of::<PyString>() {
                continue;
            }
            known.push((object.getattr("type")?.unbind(), dtype));
            known.push((object.unbind(), dtype));
        }
        Ok(known)
    })?;
    Ok(known
        .iter()
        .find(|(known, _)| known.is(object))
        .map(|(_, dtype)| *dtype))
}

/// The dtype named by a NumPy dtype, a scalar type, a Python type or a string.
pub fn dtype(object: &Bound<'_, PyAny>) -> PyResult<DType> {
    let py = object.py();
    if object.is_exact_instance_of::<PyString>() {
        // Most callers pass a string, which is not among the known objects.
    } else if let Some(dtype) = known_dtype(object)? {
        return Ok(dtype);
    }
    if let Ok(text) = object.cast::<PyString>()
        && let Ok(text) = text.to_str()
        && let Some(dtype) = DType::from_name(text)
    {
        return Ok(dtype);
    }
    if object.is(py.get_type::<PyFloat>()) {
        return Ok(match promotion() {
            Promotion::Mx => mxnet::tensor::default_float(),
            Promotion::NumPy => DType::F64,
        });
    }
    if object.is_instance_of::<PyArray>() {
        return Err(PyTypeError::new_err(
            "Cannot construct a dtype from an array",
        ));
    }
    if object.is(py.get_type::<PyInt>()) {
        return Ok(DType::I64);
    }
    if object.is(py.get_type::<PyBool>()) {
        return Ok(DType::Bool);
    }
    let numpy = py.import("numpy")?;
    let found = numpy.call_method1("dtype", (object,)).map_err(|_| {
        PyTypeError::new_err(format!("data type {} not understood", display(object)))
    })?;
    let name: String = found.getattr("name")?.extract()?;
    DType::from_name(&name).ok_or_else(|| {
        raise(
            py,
            Error::dtype(
                "dtype",
                format!("arrays of numbers cannot have dtype {name}"),
            ),
        )
    })
}

fn display(object: &Bound<'_, PyAny>) -> String {
    object
        .repr()
        .map(|text| text.to_string())
        .unwrap_or_else(|_| "?".to_owned())
}
