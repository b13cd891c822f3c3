//! Conversions between Python objects and the core's types.

use std::str::FromStr;

use mxnet::core::{Array, Cpu, Error, OpDef, Param, Types, check_element, dtype_of_number};
use mxnet::tensor::{Casting, DType, Kind, Promotion, Scalar, promotion};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use smallvec::SmallVec;

use crate::array::{Get, PyArray};
use crate::error::raise;
use crate::gil_cell::Ref;
use crate::gil_release::without_gil;
use crate::numbers::{derived_float, derived_number, is_list, number, numpy_number};
use crate::{interop, nested_sequence, sharing};

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
        let array = interop::from_object(object, None, sharing::Sharing::Allowed)?;
        return Ok(Some(Operand::converted(array)));
    }
    if let Some(value) = derived_float(object)? {
        return made(py, Array::weak_scalar(value)).map(Some);
    }
    // NumPy's scalars have a dtype but no device.
    if let Some((value, dtype)) = numpy_number(object)? {
        return made(py, Array::constant(value, dtype)).map(Some);
    }
    if let Some(value) = derived_number(object)? {
        let dtype = dtype_of_number(value);
        check_element("array", &value, dtype).map_err(|error| raise(py, error))?;
        return made(py, Array::constant(value, dtype)).map(Some);
    }
    if interop::is_array_like(object) || nested_sequence::is_nested(object) {
        let array = interop::from_object(object, None, sharing::Sharing::Allowed)?;
        // Indices and masks are checked before they are used, so a shared buffer, which its owner may change in between, is copied.
        let array = match array.dtype().kind() {
            Kind::Bool | Kind::Integer if array.tensor().storage().is_foreign() => {
                sharing::complete_copy(py, &array)?
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
        let array = interop::from_object(object, Some(dtype), sharing::Sharing::Allowed)?;
        return Ok(Operand::converted(array));
    }
    if let Some((value, own)) = numpy_number(object)? {
        return made(py, Array::constant(value, own));
    }
    // Arrays of other libraries are cast as our arrays are.
    let array = match interop::is_array_like(object) {
        true => interop::from_foreign(object, Some(dtype))?,
        false => interop::from_object(object, Some(dtype), sharing::Sharing::Allowed)?,
    };
    Ok(Operand::converted(array))
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
