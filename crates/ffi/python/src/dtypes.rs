//! Rules of dtypes, and the memory of arrays: queries of `mxnet.numpy` that need no elements.

use std::str::FromStr;

use mxnet::core::Array;
use mxnet::tensor::{Casting, DType, Kind, Operand, promotion};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::array::{Get, PyArray};
use crate::numpy_dtype;

/// Whether `casting` allows a conversion from one dtype to another.
#[pyfunction]
pub fn can_cast(from: &Bound<'_, PyAny>, to: &Bound<'_, PyAny>, casting: &str) -> PyResult<bool> {
    let casting = Casting::from_str(casting)
        .map_err(|error| PyValueError::new_err(format!("can_cast: {error}, not '{casting}'")))?;
    Ok(mxnet::tensor::can_cast(
        numpy_dtype::read(from)?,
        numpy_dtype::read(to)?,
        casting,
    ))
}

/// The dtype that arrays of these dtypes and a Python number of kind `weak` ('b', 'i', 'f' or 'c') promote to.
#[pyfunction]
#[pyo3(signature = (dtypes, weak=None))]
pub fn result_type(
    py: Python<'_>,
    dtypes: Vec<Bound<'_, PyAny>>,
    weak: Option<char>,
) -> PyResult<Py<PyAny>> {
    let mut operands = dtypes
        .iter()
        .map(|d| numpy_dtype::read(d).map(Operand::Array))
        .collect::<PyResult<Vec<_>>>()?;
    operands.extend(weak.map(|kind| {
        Operand::Weak(match kind {
            'b' => Kind::Bool,
            'i' => Kind::Integer,
            'f' => Kind::Float,
            _ => Kind::Complex,
        })
    }));
    numpy_dtype::object(py, mxnet::tensor::result_type(&operands, promotion()))
}

/// Result type of arrays of two dtypes.
#[pyfunction]
pub fn promote_types(
    py: Python<'_>,
    first: &Bound<'_, PyAny>,
    second: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    let operands = [
        Operand::Array(numpy_dtype::read(first)?),
        Operand::Array(numpy_dtype::read(second)?),
    ];
    numpy_dtype::object(py, mxnet::tensor::result_type(&operands, promotion()))
}

/// Whether an array is in Fortran order and not in C order.
#[pyfunction]
pub fn is_fortran(array: &Bound<'_, PyAny>) -> PyResult<bool> {
    match array.cast::<PyArray>() {
        Ok(x) => Ok(x.get().with(array.py(), |x| {
            !x.layout().is_contiguous() && x.layout().is_fortran()
        })),
        Err(_) => array.getattr("flags")?.getattr("fnc")?.extract(),
    }
}

/// The dtype of Python numbers of a kind ('b', 'i', 'f' or 'c').
#[pyfunction]
pub fn default_dtype(py: Python<'_>, kind: char) -> PyResult<Py<PyAny>> {
    let mode = promotion();
    let found = match kind {
        'b' => DType::Bool,
        'i' => mode.default_of(Kind::Integer),
        'f' => mode.default_of(Kind::Float),
        _ => mode.default_of(Kind::Complex),
    };
    numpy_dtype::object(py, found)
}

/// The memory of an array: address of its storage, byte offset of its first element, whether it is writable, and whether this library allocated it.
#[pyfunction]
pub fn memory_location(array: &Bound<'_, PyArray>) -> (usize, usize, bool, bool) {
    array.get().with(array.py(), |x| {
        let storage = x.tensor().storage();
        let start = storage.ptr() as usize;
        (
            start,
            x.tensor().data_ptr() as usize - start,
            x.check_writable("", "").is_ok(),
            !storage.is_foreign(),
        )
    })
}

/// Whether the byte ranges that two arrays span overlap.
#[pyfunction]
pub fn may_overlap(x: &Bound<'_, PyArray>, y: &Bound<'_, PyArray>) -> bool {
    let py = x.py();
    let (x, y) = (x.get().borrow(py), y.get().borrow(py));
    let (of_x, of_y) = (x.tensor().storage(), y.tensor().storage());
    if x.is_empty() || y.is_empty() || of_x.ptr() != of_y.ptr() {
        return false;
    }
    let ((low_x, high_x), (low_y, high_y)) = (reach(&x), reach(&y));
    low_x <= high_y && low_y <= high_x
}

/// The range of bytes that a non-empty array spans, relative to its storage.
fn reach(x: &Array) -> (isize, isize) {
    let size = x.dtype().size() as isize;
    let start = x.layout().offset() as isize;
    let (mut low, mut high) = (start, start);
    for (&step, &n) in x.layout().strides().iter().zip(x.shape()) {
        let way = step * (n as isize - 1);
        *(if way < 0 { &mut low } else { &mut high }) += way;
    }
    (low * size, (high + 1) * size - 1)
}
