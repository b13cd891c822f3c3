//! Elements as Python objects: `item`, `tolist`, `int(x)` and similar conversions.

use std::mem::MaybeUninit;

use mxnet::core::Array;
use mxnet::ops::index::{ByteBuffer, copy_bytes, read};
use mxnet::tensor::{DType, DeviceKind, Dims, Layout, Scalar};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyFloat, PyInt, PyList, PyTuple};
use smallvec::SmallVec;

use crate::array::{Get, PyArray};
use crate::error::raise;
use crate::gil_release::without_gil;
use crate::interop::discards_imaginary_part;
use crate::numpy_export::to_numpy;
use crate::{engine, numbers};

fn value_of(py: Python<'_>, array: &Array) -> PyResult<Scalar> {
    let result = if array.is_ready() {
        array.item()
    } else {
        without_gil(py, || array.item())
    };
    result.map_err(|error| raise(py, error))
}

/// The only element as a Python number.
pub fn scalar(slf: &Bound<'_, PyArray>) -> PyResult<Py<PyAny>> {
    let py = slf.py();
    match only(slf)? {
        Ok(value) => scalar_to_python(py, value),
        // Raises the error.
        Err(_) => scalar_to_python(py, value_of(py, &slf.get().array(py))?),
    }
}

/// The value of the only element, or the number of elements if there are several.
fn only(slf: &Bound<'_, PyArray>) -> PyResult<Result<Scalar, usize>> {
    let py = slf.py();
    if let Some(element) = slf.get().inline_scalar(py) {
        return Ok(Ok(element.value()));
    }
    let x = slf.get().borrow(py);
    if x.len() != 1 {
        return Ok(Err(x.len()));
    }
    // SAFETY: the first element of an array that has one.
    if let Some(value) = unsafe { read(&x, x.layout().offset()) } {
        return Ok(Ok(value));
    }
    let array = x.clone();
    x.end();
    value_of(py, &array).map(Ok)
}

/// `x.item(...)`, general path after [`item_at`].
pub fn item(slf: &Bound<'_, PyArray>, args: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    let py = slf.py();
    if args.is_empty() {
        return scalar(slf);
    }
    let array = slf.get().array(py);
    let position = if args.len() == 1 {
        args.get_item(0)?
    } else {
        args.clone().into_any()
    };
    let Some(at) = numbers::integers(&position)? else {
        return Err(PyTypeError::new_err(
            "item() takes integers or a tuple of integers",
        ));
    };
    let mut layout = match at.len() {
        1 if array.ndim() != 1 => Layout::contiguous(&[array.len()]),
        n if n == array.ndim() => array.layout().clone(),
        n => {
            return Err(PyValueError::new_err(format!(
                "item() needs {} indices, found {n}",
                array.ndim()
            )));
        }
    };
    let source = if at.len() == 1 && array.ndim() != 1 {
        array.contiguous().map_err(|error| raise(py, error))?
    } else {
        array
    };
    if layout.offset() == 0 && at.len() == 1 && source.ndim() != 1 {
        layout = layout.with_offset(source.layout().offset());
    }
    for &i in &at {
        layout = layout
            .select(0, i as isize)
            .map_err(|error| raise(py, error.into()))?;
    }
    scalar_to_python(
        py,
        value_of(py, &Array::from_tensor(source.tensor().with_layout(layout)))?,
    )
}

/// The element at one index in C order, or at one index for each axis. `None`: take the general path, which also reports errors.
pub fn item_at<'a, 'py: 'a>(
    slf: &Bound<'_, PyArray>,
    args: impl IntoIterator<Item = Borrowed<'a, 'py, PyAny>>,
) -> Option<Scalar> {
    let mut indices = SmallVec::<[isize; 4]>::new();
    for index in args {
        indices.push(index.cast_exact::<PyInt>().ok()?.extract().ok()?);
    }
    let x = slf.get().borrow(slf.py());
    let offset_in_elements = match indices[..] {
        [index] if x.ndim() != 1 => {
            let len = x.len() as isize;
            let position = if index < 0 { index + len } else { index };
            (0..len)
                .contains(&position)
                .then(|| x.layout().offset_at(position as usize))?
        }
        _ => x.layout().offset_of(&indices)?,
    };
    // SAFETY: the address is that of an element.
    unsafe { read(&x, offset_in_elements) }
}

/// Truth of an array of one element.
#[inline]
pub fn truth(slf: &Bound<'_, PyArray>) -> PyResult<bool> {
    if let Some(element) = slf.get().inline_scalar(slf.py()) {
        return Ok(element.truth());
    }
    match only(slf)? {
        Ok(value) => Ok(value.as_bool()),
        Err(0) => Err(PyValueError::new_err(
            "The truth value of an empty array is ambiguous. Use `array.size > 0` to check that an array is not empty.",
        )),
        Err(_) => Err(PyValueError::new_err(
            "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()",
        )),
    }
}

/// One of Python's number classes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Class {
    Int,
    Float,
    Complex,
}

/// `int(x)`, `float(x)`, `complex(x)` of an array of one element.
#[inline]
pub fn number(slf: &Bound<'_, PyArray>, class: Class) -> PyResult<Py<PyAny>> {
    let py = slf.py();
    // An element of the widest type, whose value stays in a register.
    if let Some(element) = slf.get().inline_scalar(py) {
        if let (Class::Float, Some(x)) = (class, element.float()) {
            element.end();
            return Ok(PyFloat::new(py, x).into_any().unbind());
        }
        if let (Class::Int, Some(x)) = (class, element.integer()) {
            element.end();
            return Ok(PyInt::new(py, x).into_any().unbind());
        }
    }
    let Ok(value) = only(slf)? else {
        return Err(PyTypeError::new_err(
            "only length-1 arrays can be converted to Python scalars",
        ));
    };
    // Values that need no rules of Python: importing and calling the Python class takes ten times as long.
    let converted = match (class, value) {
        (Class::Float, Scalar::F64(_)) | (Class::Int, Scalar::I64(_) | Scalar::U64(_)) => {
            Some(value)
        }
        (Class::Float, Scalar::I64(x)) => Some(Scalar::F64(x as f64)),
        (Class::Float, Scalar::U64(x)) => Some(Scalar::F64(x as f64)),
        (Class::Int, Scalar::F64(x)) if x.abs() < 9e18 => Some(Scalar::I64(x as i64)),
        (Class::Int, Scalar::Bool(x)) => Some(Scalar::I64(i64::from(x))),
        _ => None,
    };
    let value = match value {
        Scalar::C128(x) if class != Class::Complex => {
            discards_imaginary_part(py)?;
            Scalar::F64(x.re)
        }
        other => other,
    };
    if let Some(value) = converted {
        return scalar_to_python(py, value);
    }
    let class = match class {
        Class::Int => py.get_type::<PyInt>(),
        Class::Float => py.get_type::<PyFloat>(),
        Class::Complex => py.get_type::<PyComplex>(),
    };
    class
        .call1((scalar_to_python(py, value)?,))
        .map(Bound::unbind)
}

/// `x.tolist()`.
pub fn to_list(slf: &Bound<'_, PyArray>) -> PyResult<Py<PyAny>> {
    let py = slf.py();
    let mut buffer: ByteBuffer = [const { MaybeUninit::uninit() }; _];
    let x = slf.get().borrow(py);
    if x.ndim() > 0 && x.dtype() != DType::BF16 && copy_bytes(&x, &mut buffer) {
        let (dtype, shape) = (x.dtype(), Dims::from_slice(x.shape()));
        x.end();
        return Ok(nested(py, dtype, buffer.as_ptr().cast(), &shape)?
            .into_any()
            .unbind());
    }
    let array = x.clone();
    x.end();
    if array.dtype() == DType::BF16 || array.device().kind() != DeviceKind::Cpu {
        // Python has no number type for these dtypes; NumPy's scalars are used.
        return to_numpy(slf)?
            .bind(py)
            .call_method0("tolist")
            .map(Bound::unbind);
    }
    if array.ndim() == 0 {
        return scalar(slf);
    }
    // Creating Python objects may run any code, so the array must not be locked meanwhile.
    let dense = without_gil(py, || array.snapshot()).map_err(|error| raise(py, error))?;
    let tensor = dense.tensor();
    Ok(
        nested(py, tensor.dtype(), tensor.data_ptr(), tensor.shape())?
            .into_any()
            .unbind(),
    )
}

/// A (nested) list of the numbers of dense elements with this shape, which nobody writes meanwhile.
fn nested<'py>(
    py: Python<'py>,
    dtype: DType,
    data: *const u8,
    shape: &[usize],
) -> PyResult<Bound<'py, PyList>> {
    let (n, inner) = (shape[0], &shape[1..]);
    if inner.is_empty() {
        return row(py, dtype, data, n);
    }
    let inner_len = inner.iter().product::<usize>();
    let step = dtype.size() * inner_len;
    // Signals are checked after a number of elements; with short rows, after the corresponding number of rows.
    let signals_every = (engine::SIGNALS_EVERY / inner_len.max(1)).max(1);
    list_of(py, n, |i| {
        if i % signals_every == signals_every - 1 {
            py.check_signals()?;
        }
        Ok(nested(py, dtype, data.wrapping_add(i * step), inner)?.into_ptr())
    })
}

/// A list of `n` numbers.
fn row<'py>(
    py: Python<'py>,
    dtype: DType,
    data: *const u8,
    n: usize,
) -> PyResult<Bound<'py, PyList>> {
    macro_rules! made {
        ($t:ty, $make:expr) => {{
            let data = data.cast::<$t>();
            // SAFETY: element `i` is within the caller's elements. The thread is attached.
            list_of(py, n, |i| unsafe { Ok($make((*data.add(i)).into())) })
        }};
    }
    match dtype {
        DType::F32 => made!(f32, ffi::PyFloat_FromDouble),
        DType::F64 => made!(f64, ffi::PyFloat_FromDouble),
        DType::I8 => made!(i8, ffi::PyLong_FromLong),
        DType::I16 => made!(i16, ffi::PyLong_FromLong),
        DType::I32 => made!(i32, ffi::PyLong_FromLongLong),
        DType::I64 => made!(i64, ffi::PyLong_FromLongLong),
        DType::U8 => made!(u8, ffi::PyLong_FromLong),
        DType::U16 => made!(u16, ffi::PyLong_FromLongLong),
        DType::U32 => made!(u32, ffi::PyLong_FromLongLong),
        DType::U64 => made!(u64, ffi::PyLong_FromUnsignedLongLong),
        _ => list_of(py, n, |i| {
            // SAFETY: as above.
            let value = unsafe { Scalar::read(dtype, data.add(i * dtype.size())) };
            scalar_to_python(py, value).map(Py::into_ptr)
        }),
    }
}

/// A list of `n` objects, constructed in place. `item` returns null if an exception is set.
#[inline]
fn list_of<'py>(
    py: Python<'py>,
    n: usize,
    make: impl Fn(usize) -> PyResult<*mut ffi::PyObject>,
) -> PyResult<Bound<'py, PyList>> {
    // SAFETY: a new list of null items, or null with an exception set. No other code sees the list before its items are set; a list with null items
    // can be dropped.
    unsafe {
        let list = Bound::from_owned_ptr_or_err(py, ffi::PyList_New(n as ffi::Py_ssize_t))?;
        for i in 0..n {
            if i % engine::SIGNALS_EVERY == engine::SIGNALS_EVERY - 1 {
                py.check_signals()?;
            }
            let item = make(i)?;
            // `PyList_SetItem` takes over the reference.
            if item.is_null() || ffi::PyList_SetItem(list.as_ptr(), i as ffi::Py_ssize_t, item) < 0
            {
                return Err(PyErr::fetch(py));
            }
        }
        Ok(list.cast_into_unchecked::<PyList>())
    }
}

/// The value as a Python number.
pub fn scalar_to_python(py: Python<'_>, value: Scalar) -> PyResult<Py<PyAny>> {
    // PyO3's constructors panic if there is no memory for the object.
    // SAFETY: the thread is attached; each function returns a new reference, or null with an exception set.
    unsafe {
        let object = match value {
            Scalar::Bool(x) => ffi::PyBool_FromLong(x.into()),
            Scalar::I64(x) => ffi::PyLong_FromLongLong(x),
            Scalar::U64(x) => ffi::PyLong_FromUnsignedLongLong(x),
            Scalar::Wide(x) | Scalar::F64(x) => ffi::PyFloat_FromDouble(x),
            Scalar::C128(x) => ffi::PyComplex_FromDoubles(x.re, x.im),
        };
        Bound::from_owned_ptr_or_err(py, object).map(Bound::unbind)
    }
}

/// `operator.index(x)`.
pub fn as_index(slf: &Bound<'_, PyArray>) -> PyResult<Py<PyAny>> {
    let py = slf.py();
    if let Some(element) = slf.get().inline_scalar(py)
        && element.dtype().is_integer()
    {
        return scalar_to_python(py, element.value());
    }
    let array = slf.get().array(py);
    if array.ndim() != 0 || !array.dtype().is_integer() {
        return Err(PyTypeError::new_err(
            "only integer scalar arrays can be converted to a scalar index",
        ));
    }
    scalar_to_python(py, value_of(py, &array)?)
}
