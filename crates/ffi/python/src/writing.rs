//! Fast paths of functions that write into arrays; `mxnet.numpy` tries them first. Each returns whether it wrote: if not, nothing has
//! changed, and the general path in Python does the work and reports errors.

use mxnet::core::Array;
use mxnet::ops::Operand;
use mxnet::ops::index::{
    Taken, is_same_kind, put_along, put_array, put_at, put_element, put_number, put_where,
};
use mxnet::tensor::{Casting, DType, Layout, Scalar, can_cast};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyInt;

use crate::array::{Get, PyArray};
use crate::error::raise;
use crate::gil_cell::Ref;
use crate::sharing::Sharing;
use crate::{interop, numbers};

/// Values to write, converted to the target's dtype if possible.
enum Values<'a, 'py> {
    Borrowed(&'a Bound<'py, PyArray>),
    Made(Array),
    Number(Scalar),
}

impl<'a, 'py> Values<'a, 'py> {
    /// Values from an array, a number or a list of numbers. `None`: another object, or one that cannot be read.
    fn of(object: &'a Bound<'py, PyAny>, dtype: DType) -> PyResult<Option<Values<'a, 'py>>> {
        if let Ok(x) = object.cast_exact::<PyArray>() {
            return Ok(Some(Values::Borrowed(x)));
        }
        if let Some(number) = numbers::number(object)? {
            return Ok(Some(Values::Number(number)));
        }
        if !numbers::is_list(object) {
            return Ok(None);
        }
        // If it cannot be read, the general path reads it again and reports the error.
        let read = interop::from_object(object, Some(dtype), Sharing::Allowed);
        Ok(read.ok().map(Values::Made))
    }

    /// Calls `write` with them.
    fn with<R>(&self, py: Python<'_>, write: impl FnOnce(Operand) -> R) -> R {
        match self {
            Values::Borrowed(x) => write(Operand::Array(&x.get().borrow(py))),
            Values::Made(x) => write(Operand::Array(x)),
            Values::Number(number) => write(Operand::Number(number)),
        }
    }
}

/// An error for an array that stands for a NumPy scalar: it cannot be written.
fn check_target(a: &Bound<'_, PyArray>, function: &str) -> PyResult<()> {
    match a.get().is_written_in_place(a.py()) {
        true => Ok(()),
        false => Err(PyTypeError::new_err(format!(
            "{function}: the first argument must be an array to write to, not an element or a result without axes"
        ))),
    }
}

/// Writes `values` to the elements of `a` where `mask` is true: the value at the same position, or one value after the other.
#[pyfunction]
pub fn write_masked(
    a: &Bound<'_, PyAny>,
    mask: &Bound<'_, PyAny>,
    values: &Bound<'_, PyAny>,
    in_turn: bool,
) -> PyResult<bool> {
    let py = a.py();
    let (Ok(a), Ok(mask)) = (a.cast_exact::<PyArray>(), mask.cast_exact::<PyArray>()) else {
        return Ok(false);
    };
    check_target(a, if in_turn { "place" } else { "putmask" })?;
    let taken = if in_turn {
        Taken::InTurn
    } else {
        Taken::ByPosition
    };
    let dtype = a.get().with(py, Array::dtype);
    let Some(values) = Values::of(values, dtype)? else {
        return Ok(false);
    };
    let (a, mask) = (a.get().borrow(py), mask.get().borrow(py));
    Ok(values.with(py, |values| put_where(&a, &mask, values, taken)))
}

/// Writes an array or a number to all elements of `dst`, or to those where a mask of its shape is true. Casts to a lower kind are refused.
#[pyfunction]
#[pyo3(signature = (dst, src, mask=None))]
pub fn write_over(
    dst: &Bound<'_, PyAny>,
    src: &Bound<'_, PyAny>,
    mask: Option<&Bound<'_, PyAny>>,
) -> PyResult<bool> {
    let py = dst.py();
    let Ok(dst) = dst.cast_exact::<PyArray>() else {
        return Ok(false);
    };
    check_target(dst, "copyto")?;
    let source = src.cast_exact::<PyArray>().ok();
    let number = match source {
        Some(_) => None,
        None => numbers::number(src)?,
    };
    let dst = dst.get().borrow(py);
    let source: Option<Ref<'_, Array>> = source.map(|source| source.get().borrow(py));
    if number.is_some_and(|number| !is_same_kind(number, dst.dtype())) {
        return Ok(false);
    }
    let is_refused = |source: &Array| !can_cast(source.dtype(), dst.dtype(), Casting::SameKind);
    if source.as_deref().is_some_and(is_refused) {
        return Ok(false);
    }
    let Some(mask) = mask else {
        return match (&source, number) {
            (Some(source), _) => {
                put_array(&dst, dst.layout(), source).map_err(|error| raise(py, error))
            }
            (None, Some(number)) => Ok(put_number(&dst, dst.layout().clone(), &number)),
            (None, None) => Ok(false),
        };
    };
    let Ok(mask) = mask.cast_exact::<PyArray>() else {
        return Ok(false);
    };
    let mask = mask.get().borrow(py);
    let values = match (&source, &number) {
        (Some(source), _) if source.ndim() == 0 || source.shape() == dst.shape() => {
            Operand::Array(source)
        }
        (None, Some(number)) => Operand::Number(number),
        _ => return Ok(false),
    };
    Ok(mask.shape() == dst.shape() && put_where(&dst, &mask, values, Taken::ByPosition))
}

/// Writes `values`, repeated as needed, at positions of the flattened array `a`.
#[pyfunction]
pub fn write_at(
    a: &Bound<'_, PyAny>,
    positions: &Bound<'_, PyAny>,
    values: &Bound<'_, PyAny>,
) -> PyResult<bool> {
    let py = a.py();
    let Ok(a) = a.cast_exact::<PyArray>() else {
        return Ok(false);
    };
    let dtype = a.get().with(py, Array::dtype);
    let Some(values) = Values::of(values, dtype)? else {
        return Ok(false);
    };
    if positions.is_exact_instance_of::<PyInt>() {
        return Ok(match (&values, positions.extract()) {
            (Values::Number(number), Ok(at)) => put_one(&a.get().borrow(py), at, number),
            _ => false,
        });
    }
    if let Ok(positions) = positions.cast_exact::<PyArray>() {
        let (a, positions) = (a.get().borrow(py), positions.get().borrow(py));
        return Ok(values.with(py, |values| put_at(&a, &positions, values)));
    }
    if !numbers::is_list(positions) {
        return Ok(false);
    }
    // If they cannot be read, the general path reads them again and reports the error.
    let Ok(positions) = interop::from_object(positions, None, Sharing::Allowed) else {
        return Ok(false);
    };
    let a = a.get().borrow(py);
    Ok(values.with(py, |values| put_at(&a, &positions, values)))
}

/// Writes a number at one position of a flattened array in C order.
fn put_one(a: &Array, at: isize, number: &Scalar) -> bool {
    let len = a.len() as isize;
    let at = if at < 0 { at + len } else { at };
    if a.ndim() == 0 || !(0..len).contains(&at) || !a.layout().is_contiguous() {
        return false;
    }
    // SAFETY: the elements are contiguous, and `at` is less than their number.
    unsafe { put_element(a, a.layout().offset() + at as usize, number) }
}

/// Writes a number, or an array with the shape of `positions`, at these positions along an axis.
#[pyfunction]
pub fn write_along(
    a: &Bound<'_, PyAny>,
    positions: &Bound<'_, PyAny>,
    values: &Bound<'_, PyAny>,
    axis: &Bound<'_, PyAny>,
) -> PyResult<bool> {
    let py = a.py();
    let (Ok(a), Ok(positions), Ok(axis)) = (
        a.cast_exact::<PyArray>(),
        positions.cast_exact::<PyArray>(),
        axis.extract::<isize>(),
    ) else {
        return Ok(false);
    };
    let dtype = a.get().with(py, Array::dtype);
    let Some(values @ (Values::Borrowed(_) | Values::Number(_))) = Values::of(values, dtype)?
    else {
        return Ok(false);
    };
    let (a, positions) = (a.get().borrow(py), positions.get().borrow(py));
    Ok(values.with(py, |values| put_along(&a, &positions, axis, values)))
}

/// Writes a number to the main diagonal of a matrix, or of an array whose axes have equal lengths.
#[pyfunction]
pub fn write_diagonal(a: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let Ok(a) = a.cast_exact::<PyArray>() else {
        return Ok(false);
    };
    let Some(number) = numbers::number(value)? else {
        return Ok(false);
    };
    let a = a.get().borrow(a.py());
    let (shape, layout) = (a.shape(), a.layout());
    let Some(&n) = shape.iter().min() else {
        return Ok(false);
    };
    if shape.len() < 2 || shape.len() > 2 && shape.iter().any(|&other| other != n) {
        return Ok(false);
    }
    let step = layout.strides().iter().sum();
    let Ok(diagonal) = Layout::strided(&[n], &[step], layout.offset()) else {
        return Ok(false);
    };
    Ok(put_number(&a, diagonal, &number))
}
