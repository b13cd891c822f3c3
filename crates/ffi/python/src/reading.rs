//! Arrays read from iterators of numbers and from text. Other items are left to the caller.

use mxnet::core::{Array, Element, memory};
use mxnet::tensor::{DType, default_float};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt, PyIterator, PyList, PyString};

use crate::array::PyArray;
use crate::engine::SIGNALS_EVERY;
use crate::error::raise;
use crate::numpy_dtype;

/// The requested dtype; the default float if none is given, or Python's `float`.
fn dtype_of(dtype: Option<&Bound<'_, PyAny>>) -> PyResult<DType> {
    match dtype {
        Some(dtype) if !dtype.is(dtype.py().get_type::<PyFloat>()) => numpy_dtype::read(dtype),
        _ => Ok(default_float()),
    }
}

/// A Rust type to read numbers as, and its conversion to elements.
trait ReadAs: Copy {
    /// Conversion of a Python number of the exact class.
    fn of(item: &Bound<'_, PyAny>) -> Option<Self>;

    /// Conversion of a word in a text.
    fn parsed(word: &str) -> Option<Self>;

    /// The number as a Python number.
    fn python(self, py: Python<'_>) -> Py<PyAny>;

    /// The array of the numbers, if this Rust type serves `dtype` and all of them fit it.
    fn array(values: &[Self], dtype: DType) -> mxnet::core::Result<Option<Array>>;
}

impl ReadAs for f64 {
    #[inline]
    fn of(item: &Bound<'_, PyAny>) -> Option<f64> {
        // SAFETY: the class is checked first.
        unsafe {
            if item.is_exact_instance_of::<PyFloat>() {
                return Some(ffi::PyFloat_AsDouble(item.as_ptr()));
            }
        }
        i64::of(item).map(|x| x as f64)
    }

    fn parsed(word: &str) -> Option<f64> {
        word.parse().ok()
    }

    fn python(self, py: Python<'_>) -> Py<PyAny> {
        PyFloat::new(py, self).into_any().unbind()
    }

    fn array(values: &[f64], dtype: DType) -> mxnet::core::Result<Option<Array>> {
        match dtype {
            DType::F64 => row(values).map(Some),
            DType::F32 => {
                let narrow = values.iter().map(|&x| x as f32);
                row(&memory::collected("array", values.len(), narrow)?).map(Some)
            }
            _ => Ok(None),
        }
    }
}

impl ReadAs for i64 {
    #[inline]
    fn of(item: &Bound<'_, PyAny>) -> Option<i64> {
        if !item.is_exact_instance_of::<PyInt>() {
            return None;
        }
        let mut overflow = 0;
        // SAFETY: an int.
        let value = unsafe { ffi::PyLong_AsLongLongAndOverflow(item.as_ptr(), &raw mut overflow) };
        (overflow == 0).then_some(value)
    }

    fn parsed(word: &str) -> Option<i64> {
        word.parse().ok()
    }

    fn python(self, py: Python<'_>) -> Py<PyAny> {
        PyInt::new(py, self).into_any().unbind()
    }

    fn array(values: &[i64], dtype: DType) -> mxnet::core::Result<Option<Array>> {
        fn narrow<T: TryFrom<i64> + Element>(values: &[i64]) -> mxnet::core::Result<Option<Array>> {
            let mut narrow = memory::with_capacity("array", values.len())?;
            for &x in values {
                match T::try_from(x) {
                    Ok(x) => narrow.push(x),
                    Err(_) => return Ok(None),
                }
            }
            row(&narrow).map(Some)
        }
        match dtype {
            DType::I64 => row(values).map(Some),
            DType::I32 => narrow::<i32>(values),
            DType::I16 => narrow::<i16>(values),
            DType::I8 => narrow::<i8>(values),
            DType::U64 => narrow::<u64>(values),
            DType::U32 => narrow::<u32>(values),
            DType::U16 => narrow::<u16>(values),
            DType::U8 => narrow::<u8>(values),
            _ => Ok(None),
        }
    }
}

fn row<T: Element>(values: &[T]) -> mxnet::core::Result<Array> {
    Array::from_slice(values, &[values.len()])
}

/// An array of the numbers of an iterator: `count` of them, or all if `count` is negative. If an item is not a float or int that fits the dtype, or
/// there are too few: a list of all items taken.
#[pyfunction]
pub fn of_iterator(
    iterator: &Bound<'_, PyIterator>,
    dtype: &Bound<'_, PyAny>,
    count: isize,
) -> PyResult<Py<PyAny>> {
    let dtype = dtype_of(Some(dtype))?;
    match dtype {
        DType::F64 | DType::F32 => taken::<f64>(iterator, dtype, count),
        _ if dtype.is_integer() => taken::<i64>(iterator, dtype, count),
        _ => Ok(PyList::empty(iterator.py()).into_any().unbind()),
    }
}

fn taken<T: ReadAs>(
    iterator: &Bound<'_, PyIterator>,
    dtype: DType,
    count: isize,
) -> PyResult<Py<PyAny>> {
    let py = iterator.py();
    let most = usize::try_from(count).unwrap_or(usize::MAX);
    let mut values = Vec::<T>::new();
    let mut odd = None;
    let mut is_over = false;
    while values.len() < most {
        let Some(item) = iterator.clone().next() else {
            is_over = true;
            break;
        };
        let item = item?;
        if values.len() % SIGNALS_EVERY == SIGNALS_EVERY - 1 {
            py.check_signals()?;
        }
        match T::of(&item) {
            Some(value) => {
                memory::push("fromiter", &mut values, value).map_err(|error| raise(py, error))?;
            }
            None => {
                odd = Some(item);
                break;
            }
        }
    }
    let lacks_items = is_over && count >= 0;
    if odd.is_none() && !lacks_items {
        let array = T::array(&values, dtype).map_err(|error| raise(py, error))?;
        if let Some(array) = array {
            return Ok(PyArray::wrap(py, array)?.into_any());
        }
    }
    let list = PyList::new(py, values.into_iter().map(|value| value.python(py)))?;
    if let Some(odd) = odd {
        list.append(odd)?;
    }
    Ok(list.into_any().unbind())
}

/// An array of the numbers in a text: `count` of them, or all if `count` is negative. They are separated by whitespace, or by one character followed
/// by whitespace. None if the text does not have this form or holds too few numbers.
#[pyfunction]
pub fn of_text(
    string: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    count: isize,
    sep: &str,
) -> PyResult<Option<Py<PyArray>>> {
    let Ok(text) = string.cast_exact::<PyString>() else {
        return Ok(None);
    };
    let (text, dtype) = (text.to_str()?, dtype_of(dtype)?);
    let found = match dtype {
        DType::F64 | DType::F32 => parsed::<f64>(text, dtype, count, sep),
        _ if dtype.is_integer() => parsed::<i64>(text, dtype, count, sep),
        _ => Ok(None),
    };
    match found.map_err(|error| raise(string.py(), error))? {
        Some(array) => PyArray::wrap(string.py(), array).map(Some),
        None => Ok(None),
    }
}

fn parsed<T: ReadAs>(
    text: &str,
    dtype: DType,
    count: isize,
    sep: &str,
) -> mxnet::core::Result<Option<Array>> {
    let most = usize::try_from(count).unwrap_or(usize::MAX);
    let words = |words: &mut dyn Iterator<Item = &str>| -> mxnet::core::Result<Option<Vec<T>>> {
        let mut values = Vec::new();
        for word in words.take(most) {
            match T::parsed(word) {
                Some(value) => memory::push("fromstring", &mut values, value)?,
                None => return Ok(None),
            }
        }
        Ok(Some(values))
    };
    let mark = sep.trim_matches(' ');
    let values = match mark.as_bytes() {
        [] if !sep.is_empty() => words(&mut text.split_ascii_whitespace())?,
        [mark] if sep.len() == 1 && mark.is_ascii_graphic() => {
            words(&mut text.split(char::from(*mark)).map(str::trim_ascii_start))?
        }
        _ => None,
    };
    match values {
        Some(values) if !values.is_empty() && (count < 0 || values.len() == most) => {
            T::array(&values, dtype)
        }
        _ => Ok(None),
    }
}
