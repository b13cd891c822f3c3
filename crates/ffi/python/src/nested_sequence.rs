//! Conversion of nested lists and tuples of numbers and arrays.
//!
//! Python numbers are read in two passes: the first one finds the shape and the widest kind, the second one reads the elements. As soon as another
//! object occurs, a general path collects all items in order and concatenates them.

use std::cell::Cell;

use mxnet::core::{
    Array, Element, Error, Tuple, check_element, default_dtype, dtype_of_number, memory,
};
use mxnet::ops::shape;
use mxnet::tensor::{DType, Kind, MAX_NDIM, Scalar, promote, promotion};
use num_complex::Complex;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyComplex, PyFloat, PyInt, PyList, PyString, PyTuple};
use smallvec::SmallVec;

use crate::array::PyArray;
use crate::engine::SIGNALS_EVERY;
use crate::error::raise;
use crate::graph::watch;
use crate::sharing::Sharing;
use crate::{interop, numbers, numpy_dtype};

/// Whether the object is a list, a tuple, or another sequence (a range, a deque) that is neither text nor exposes its memory.
pub fn is_nested(object: &Bound<'_, PyAny>) -> bool {
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        return true;
    }
    // SAFETY: a live object; the function accepts any.
    let sequence = unsafe { ffi::PySequence_Check(object.as_ptr()) } == 1;
    // To NumPy, a class with items but without a length is not a sequence.
    sequence
        && !object.is_instance_of::<PyArray>()
        && !object.is_instance_of::<PyString>()
        && !object.is_instance_of::<PyBytes>()
        && !interop::is_array_like(object)
        && object.len().is_ok()
}

/// An array of the numbers in nested sequences, on the CPU. At most `most` levels are allowed, unless that is 0.
pub fn read(object: &Bound<'_, PyAny>, dtype: Option<DType>, most: usize) -> PyResult<Array> {
    let mut shape = Shape::new(most);
    let mut kind = None;
    if scan(object, 0, &mut shape, &mut kind)? {
        numbers(object, &shape.sizes, kind, dtype)
    } else {
        joined(object, dtype, most)
    }
}

/// The shape of nested sequences, as far as it has been read.
struct Shape {
    sizes: SmallVec<[usize; 4]>,
    /// Whether an element has been found, so that there are no deeper levels.
    is_closed: bool,
    most: usize,
}

impl Shape {
    fn new(most: usize) -> Shape {
        Shape {
            sizes: SmallVec::new(),
            is_closed: false,
            most: if most == 0 { MAX_NDIM } else { most },
        }
    }

    /// Notes an axis of length `len` at this depth.
    #[inline]
    fn level(&mut self, depth: usize, len: usize) -> PyResult<()> {
        if depth < self.sizes.len() {
            return match self.sizes[depth] == len {
                true => Ok(()),
                false => Err(self.ragged(depth)),
            };
        }
        if self.is_closed {
            return Err(self.ragged(depth));
        }
        if depth == self.most {
            return Err(PyValueError::new_err(format!(
                "setting an array element with a sequence. The requested array would exceed the maximum number of dimension of {}.",
                self.most
            )));
        }
        self.sizes.push(len);
        Ok(())
    }

    /// Notes a sequence of length `len` at this depth. An empty one closes the shape: there are no items that could be sequences.
    #[inline]
    fn sequence(&mut self, depth: usize, len: usize) -> PyResult<()> {
        self.level(depth, len)?;
        self.is_closed |= len == 0;
        Ok(())
    }

    /// Notes an element at this depth.
    #[inline]
    fn element(&mut self, depth: usize) -> PyResult<()> {
        self.is_closed = true;
        match depth == self.sizes.len() {
            true => Ok(()),
            false => Err(self.ragged(depth)),
        }
    }

    #[cold]
    fn ragged(&self, depth: usize) -> PyErr {
        PyValueError::new_err(format!(
            "setting an array element with a sequence: the nested sequences have an inhomogeneous shape after {depth} dimensions, {} and \
             something else below",
            Tuple(&self.sizes[..depth.min(self.sizes.len())])
        ))
    }
}

thread_local! {
    /// Number of items until the next check for signals, over all sequences that this thread reads.
    static UNTIL_SIGNALS: Cell<usize> = const { Cell::new(SIGNALS_EVERY) };
}

/// Calls `each` with the items of a sequence.
#[inline]
fn for_each(
    object: &Bound<'_, PyAny>,
    mut each: impl FnMut(&Bound<'_, PyAny>) -> PyResult<bool>,
) -> PyResult<bool> {
    let mut each = |item: &Bound<'_, PyAny>| {
        match UNTIL_SIGNALS.get() {
            0 => {
                UNTIL_SIGNALS.set(SIGNALS_EVERY);
                item.py().check_signals()?;
            }
            left => UNTIL_SIGNALS.set(left - 1),
        }
        each(item)
    };
    if let Ok(list) = object.cast::<PyList>() {
        for item in list.iter() {
            if !each(&item)? {
                return Ok(false);
            }
        }
    } else if let Ok(tuple) = object.cast::<PyTuple>() {
        for item in tuple.iter_borrowed() {
            if !each(&item)? {
                return Ok(false);
            }
        }
    } else {
        for item in object.try_iter()? {
            if !each(&item?)? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// The kind of a Python number of exactly a built-in class.
#[inline]
fn kind_of(item: &Bound<'_, PyAny>) -> Option<Kind> {
    if item.is_exact_instance_of::<PyFloat>() {
        Some(Kind::Float)
    } else if item.is_exact_instance_of::<PyInt>() {
        Some(Kind::Integer)
    } else if item.is_exact_instance_of::<PyBool>() {
        Some(Kind::Bool)
    } else if item.is_exact_instance_of::<PyComplex>() {
        Some(Kind::Complex)
    } else if watch::is_length(item) {
        Some(match item.is_instance_of::<PyInt>() {
            true => Kind::Integer,
            false => Kind::Float,
        })
    } else {
        None
    }
}

/// The first pass: finds shape and widest kind. Returns false if there are objects other than lists, tuples and Python numbers.
fn scan(
    object: &Bound<'_, PyAny>,
    depth: usize,
    shape: &mut Shape,
    kind: &mut Option<Kind>,
) -> PyResult<bool> {
    let len = match (object.cast::<PyList>(), object.cast::<PyTuple>()) {
        (Ok(list), _) => list.len(),
        (_, Ok(tuple)) => tuple.len(),
        _ => return Ok(false),
    };
    shape.sequence(depth, len)?;
    for_each(object, |item| match kind_of(item) {
        Some(found) => {
            shape.element(depth + 1)?;
            if kind.is_none_or(|kind| found > kind) {
                *kind = Some(found);
            }
            Ok(true)
        }
        None => scan(item, depth + 1, shape, kind),
    })
}

/// Rust types that Python numbers are converted to.
trait Read: Sized {
    fn read(item: &Bound<'_, PyAny>) -> PyResult<Self>;
}

impl Read for f64 {
    #[inline]
    fn read(item: &Bound<'_, PyAny>) -> PyResult<f64> {
        if item.is_exact_instance_of::<PyInt>() {
            let mut overflow = 0;
            // SAFETY: an int. The general conversion of Python takes longer.
            let value =
                unsafe { ffi::PyLong_AsLongLongAndOverflow(item.as_ptr(), &raw mut overflow) };
            if overflow == 0 {
                return Ok(value as f64);
            }
        }
        // SAFETY: a live object; the function accepts any.
        let value = unsafe { ffi::PyFloat_AsDouble(item.as_ptr()) };
        if value == -1.0
            && let Some(error) = PyErr::take(item.py())
        {
            return Err(error);
        }
        Ok(value)
    }
}

impl Read for f32 {
    #[inline]
    fn read(item: &Bound<'_, PyAny>) -> PyResult<f32> {
        f64::read(item).map(|value| value as f32)
    }
}

impl Read for i64 {
    #[inline]
    fn read(item: &Bound<'_, PyAny>) -> PyResult<i64> {
        // SAFETY: a live object; the function accepts any.
        let value = unsafe { ffi::PyLong_AsLongLong(item.as_ptr()) };
        if value == -1
            && let Some(error) = PyErr::take(item.py())
        {
            return Err(error);
        }
        Ok(value)
    }
}

impl Read for bool {
    #[inline]
    fn read(item: &Bound<'_, PyAny>) -> PyResult<bool> {
        item.is_truthy()
    }
}

impl Read for Complex<f64> {
    fn read(item: &Bound<'_, PyAny>) -> PyResult<Complex<f64>> {
        // SAFETY: a live object; the function accepts any.
        let (re, im) = unsafe {
            (
                ffi::PyComplex_RealAsDouble(item.as_ptr()),
                ffi::PyComplex_ImagAsDouble(item.as_ptr()),
            )
        };
        match PyErr::take(item.py()) {
            Some(error) => Err(error),
            None => Ok(Complex::new(re, im)),
        }
    }
}

impl Read for Scalar {
    fn read(item: &Bound<'_, PyAny>) -> PyResult<Scalar> {
        numbers::number(item)?.ok_or_else(|| PyTypeError::new_err("array: not a number"))
    }
}

/// The second pass: reads the elements.
fn elements<T: Read>(object: &Bound<'_, PyAny>, depth: usize, out: &mut Vec<T>) -> PyResult<()> {
    for_each(object, |item| {
        if depth == 1 {
            out.push(T::read(item)?);
        } else {
            elements(item, depth - 1, out)?;
        }
        Ok(true)
    })
    .map(drop)
}

/// A vector with capacity for an array of this shape. It may not fit in memory: a list that holds one list many times can describe a huge array.
fn with_capacity_for<T>(py: Python<'_>, shape: &[usize]) -> PyResult<Vec<T>> {
    let len = shape.iter().fold(1_usize, |len, &n| len.saturating_mul(n));
    memory::with_capacity("array", len).map_err(|error| raise(py, error))
}

fn as_array<T: Read + Element>(object: &Bound<'_, PyAny>, shape: &[usize]) -> PyResult<Array> {
    let mut values = with_capacity_for::<T>(object.py(), shape)?;
    elements(object, shape.len(), &mut values)?;
    Array::from_slice(&values, shape).map_err(|error| raise(object.py(), error))
}

/// An array of Python numbers whose widest kind is `kind`.
fn numbers(
    object: &Bound<'_, PyAny>,
    shape: &[usize],
    kind: Option<Kind>,
    dtype: Option<DType>,
) -> PyResult<Array> {
    let py = object.py();
    let kind = kind.unwrap_or(Kind::Float);
    let target = dtype.unwrap_or_else(|| default_dtype(kind));
    let array = match kind {
        Kind::Bool => as_array::<bool>(object, shape)?,
        _ if target == DType::Bool => as_array::<bool>(object, shape)?,
        // Integers beyond 64 bits may become floats.
        Kind::Integer | Kind::Float if target == DType::F32 => as_array::<f32>(object, shape)?,
        Kind::Integer | Kind::Float if target.is_float() => as_array::<f64>(object, shape)?,
        Kind::Integer if !target.is_complex() => match as_array::<i64>(object, shape) {
            Err(error) if error.is_instance_of::<PyOverflowError>(py) => {
                return one_by_one(object, shape, dtype);
            }
            array => within(py, array?, target)?,
        },
        Kind::Float if target.is_integer() => return one_by_one(object, shape, dtype),
        _ if target.is_complex() => as_array::<Complex<f64>>(object, shape)?,
        _ => return one_by_one(object, shape, dtype),
    };
    if array.dtype() == target {
        return Ok(array);
    }
    array.astype(target).map_err(|error| raise(py, error))
}

/// An array of Python numbers that are checked one by one: floats for an integer dtype, integers beyond int64.
#[cold]
fn one_by_one(object: &Bound<'_, PyAny>, shape: &[usize], dtype: Option<DType>) -> PyResult<Array> {
    let py = object.py();
    let mut values = with_capacity_for::<Scalar>(py, shape)?;
    elements(object, shape.len(), &mut values)?;
    let natural = || {
        // To NumPy an integer beyond 64 bits is an object: it becomes a float only if a float dtype is requested.
        let beyond = values.iter().any(|value| matches!(value, Scalar::Wide(_)));
        let all = values.iter().map(|&value| dtype_of_number(value));
        match beyond {
            true => default_dtype(Kind::Integer),
            false => all.fold(DType::Bool, |a, b| promote(a, b, promotion())),
        }
    };
    let target = dtype.unwrap_or_else(natural);
    for &value in &values {
        check_element("array", &value, target).map_err(|error| raise(py, error))?;
    }
    let flat = of_scalars(py, &values, target)?;
    flat.reshape(shape).map_err(|error| raise(py, error))
}

/// The array, if `dtype` holds all its integers; else an error.
fn within(py: Python<'_>, array: Array, dtype: DType) -> PyResult<Array> {
    if dtype == array.dtype() {
        return Ok(array);
    }
    for value in array.to_vec::<i64>().map_err(|error| raise(py, error))? {
        check_element("array", &Scalar::I64(value), dtype).map_err(|error| raise(py, error))?;
    }
    Ok(array)
}

/// An item of nested sequences.
enum Leaf {
    /// A Python number, or a NumPy scalar with its dtype.
    Number(Scalar, Option<DType>),
    /// An array.
    Block(Array),
}

/// An array of nested sequences that hold any supported objects.
fn joined(object: &Bound<'_, PyAny>, dtype: Option<DType>, most: usize) -> PyResult<Array> {
    let py = object.py();
    let (mut shape, mut leaves) = (Shape::new(most), Vec::new());
    let mut reader = Reader { dtype, last: None };
    collect(object, 0, &mut shape, &mut leaves, &mut reader)?;
    let common = leaves
        .iter()
        .map(|leaf| match leaf {
            Leaf::Number(_, Some(dtype)) => *dtype,
            Leaf::Number(value, None) => dtype_of_number(*value),
            Leaf::Block(array) => array.dtype(),
        })
        .reduce(|a, b| promote(a, b, promotion()));
    let target = dtype.or(common).unwrap_or(default_dtype(Kind::Float));
    let core = |error: Error| raise(py, error);
    // One 1-d array for every run of numbers, and one for each array between them.
    let mut parts: Vec<Array> = Vec::new();
    let mut run: Vec<Scalar> = Vec::new();
    let flush = |run: &mut Vec<Scalar>, parts: &mut Vec<Array>| -> PyResult<()> {
        if !run.is_empty() {
            memory::push("array", parts, of_scalars(py, run, target)?).map_err(core)?;
            run.clear();
        }
        Ok(())
    };
    for leaf in leaves {
        match leaf {
            Leaf::Number(value, own) => {
                let value = as_element(py, value, own, target)?;
                memory::push("array", &mut run, value).map_err(core)?;
            }
            Leaf::Block(array) => {
                flush(&mut run, &mut parts)?;
                let flat = array.astype(target).and_then(|x| x.reshape(&[x.len()]));
                memory::push("array", &mut parts, flat.map_err(core)?).map_err(core)?;
            }
        }
    }
    flush(&mut run, &mut parts)?;
    let whole = match &parts[..] {
        [] => Array::from_slice::<f64>(&[], &[0]).and_then(|x| x.astype(target)),
        // A single array is copied, because it is the caller's.
        [only] => only.copy(),
        several => {
            let parts: SmallVec<[&Array; 8]> = several.iter().collect();
            shape::concatenate(&parts, 0)
        }
    };
    whole
        .and_then(|whole| whole.reshape(&shape.sizes))
        .map_err(core)
}

/// Reads items that are not sequences.
struct Reader {
    /// The dtype that text and other objects are converted to.
    dtype: Option<DType>,
    /// The class of the last NumPy scalar, a cache: the next one probably has the same class.
    last: Option<(*mut ffi::PyTypeObject, DType)>,
}

impl Reader {
    /// A Python number or NumPy scalar; `None` for other objects.
    #[inline]
    fn number(&mut self, item: &Bound<'_, PyAny>) -> PyResult<Option<Leaf>> {
        if let Some(value) = numbers::number(item)? {
            return Ok(Some(Leaf::Number(value, None)));
        }
        let class = item.get_type_ptr();
        let dtype = match self.last {
            Some((known, dtype)) if known == class => dtype,
            _ => match numpy_dtype::known(item.get_type().as_any())? {
                Some(dtype) => {
                    self.last = Some((class, dtype));
                    dtype
                }
                None => {
                    let derived = numbers::derived_number(item)?;
                    return Ok(derived.map(|value| Leaf::Number(value, None)));
                }
            },
        };
        let value = numbers::numpy_value(item, dtype)?;
        Ok(Some(Leaf::Number(value, Some(dtype))))
    }

    /// An item that is neither a number nor a sequence: an array, or something that NumPy reads as a number.
    fn other(&self, item: &Bound<'_, PyAny>) -> PyResult<Leaf> {
        if item.is_instance_of::<PyArray>() {
            return interop::from_object(item, None, Sharing::Allowed).map(Leaf::Block);
        }
        match self.dtype {
            Some(dtype) if !interop::is_array_like(item) => {
                let value = interop::parsed(item, dtype)?.call_method0("item")?;
                match numbers::number(&value)? {
                    Some(value) => Ok(Leaf::Number(value, Some(dtype))),
                    None => interop::from_foreign(item, Some(dtype)).map(Leaf::Block),
                }
            }
            dtype => interop::from_foreign(item, dtype).map(Leaf::Block),
        }
    }
}

fn collect(
    object: &Bound<'_, PyAny>,
    depth: usize,
    shape: &mut Shape,
    leaves: &mut Vec<Leaf>,
    reader: &mut Reader,
) -> PyResult<()> {
    let core = |error| raise(object.py(), error);
    let len = object.len()?;
    numbers::check_len(object)?;
    shape.sequence(depth, len)?;
    let start = leaves.len();
    for_each(object, |item| {
        let is_array = item.is_instance_of::<PyArray>();
        let number = match is_array {
            true => None,
            false => reader.number(item)?,
        };
        if let Some(number) = number {
            shape.element(depth + 1)?;
            memory::push("array", leaves, number).map_err(core)?;
        } else if !is_array && is_nested(item) {
            collect(item, depth + 1, shape, leaves, reader)?;
        } else {
            let leaf = reader.other(item)?;
            let mut inner = 0;
            if let Leaf::Block(array) = &leaf {
                inner = array.ndim();
                for (i, &size) in array.shape().iter().enumerate() {
                    shape.level(depth + 1 + i, size)?;
                }
            }
            shape.element(depth + 1 + inner)?;
            memory::push("array", leaves, leaf).map_err(core)?;
        }
        Ok(true)
    })?;
    // A sequence whose length differs from its number of items would give a wrong shape.
    let whole = shape.sizes.len() > depth + 1 || leaves.len() - start == len;
    match whole {
        true => Ok(()),
        false => Err(shape.ragged(depth)),
    }
}

/// A number as an element of `dtype`. A Python number must fit; a NumPy scalar is cast as in C.
fn as_element(py: Python<'_>, value: Scalar, own: Option<DType>, dtype: DType) -> PyResult<Scalar> {
    let core = |error| raise(py, error);
    if own.is_none() {
        return check_element("array", &value, dtype)
            .map(|()| value)
            .map_err(core);
    }
    interop::check_numpy_element(py, value, dtype)?;
    let narrows = dtype.is_integer() || value.kind() > dtype.kind();
    match narrows && dtype != DType::Bool {
        true => Array::scalar(value, dtype)
            .and_then(|x| x.item())
            .map_err(core),
        false => Ok(value),
    }
}

/// A 1-d array of numbers that fit `dtype`.
fn of_scalars(py: Python<'_>, values: &[Scalar], dtype: DType) -> PyResult<Array> {
    fn filled<T: Element>(values: &[Scalar], read: fn(&Scalar) -> T) -> Result<Array, Error> {
        let elements = memory::collected("array", values.len(), values.iter().map(read))?;
        Array::from_slice(&elements, &[elements.len()])
    }
    let is_i64_or_bool = |value: &Scalar| matches!(value, Scalar::I64(_) | Scalar::Bool(_));
    let array = match dtype.kind() {
        Kind::Bool => filled(values, |x| x.as_bool()),
        Kind::Integer if dtype == DType::U64 => filled(values, |x| x.as_u64()),
        Kind::Integer => filled(values, |x| x.as_i64()),
        Kind::Complex => filled(values, |x| x.as_c128()),
        // Converted from integers, so that they are rounded only once.
        Kind::Float if values.iter().all(is_i64_or_bool) => filled(values, |x| x.as_i64()),
        Kind::Float => filled(values, |x| x.as_f64()),
    };
    array
        .and_then(|array| array.astype(dtype))
        .map_err(|error| raise(py, error))
}
