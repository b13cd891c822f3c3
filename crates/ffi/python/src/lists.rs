//! Nested lists and tuples of numbers and arrays, read without a detour.
//!
//! Python's own numbers are read in two passes: the first finds the shape and the widest kind, the second the elements. As soon as something
//! else turns up, everything is collected once, in order, and joined.

use mxnet::ops::{Array, Element, Error, Tuple, default_dtype, out_of_bounds, shape};
use mxnet::tensor::{DType, Kind, MAX_NDIM, Scalar, promote, promotion};
use num_complex::Complex;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyComplex, PyFloat, PyInt, PyList, PyString, PyTuple};
use smallvec::SmallVec;

use crate::array::PyArray;
use crate::convert;
use crate::error::raise;
use crate::exchange::{self, Sharing};

/// Whether the object is a list or a tuple, or another sequence that is no text and shows no memory: a range, a deque.
pub fn is_nested(object: &Bound<'_, PyAny>) -> bool {
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        return true;
    }
    // SAFETY: any object may be asked.
    let sequence = unsafe { ffi::PySequence_Check(object.as_ptr()) } == 1;
    sequence
        && !object.is_instance_of::<PyArray>()
        && !object.is_instance_of::<PyString>()
        && !object.is_instance_of::<PyBytes>()
        // SAFETY: as above.
        && unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) } == 0
        && !exchange::is_array_like(object)
}

/// An array of the numbers in nested sequences, on the CPU. No more than `most` levels are allowed, if that is not 0.
pub fn read(object: &Bound<'_, PyAny>, dtype: Option<DType>, most: usize) -> PyResult<Array> {
    let mut shape = Shape::new(most);
    let mut kind = None;
    if scan(object, 0, &mut shape, &mut kind)? {
        numbers(object, &shape.sizes, kind, dtype)
    } else {
        joined(object, dtype, most)
    }
}

/// The shape of nested sequences, as far as it is known.
struct Shape {
    sizes: SmallVec<[usize; 4]>,
    /// Whether an element has been met: there are no deeper levels.
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

    /// An axis of `len` at this depth.
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

    /// A sequence as [`Shape::level`] takes it. What would be in an empty one is not known to be a sequence.
    #[inline]
    fn sequence(&mut self, depth: usize, len: usize) -> PyResult<()> {
        self.level(depth, len)?;
        self.is_closed |= len == 0;
        Ok(())
    }

    /// An element at this depth.
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

/// Calls `each` with the items of a sequence.
#[inline]
fn for_each(
    object: &Bound<'_, PyAny>,
    mut each: impl FnMut(&Bound<'_, PyAny>) -> PyResult<bool>,
) -> PyResult<bool> {
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

/// The kind of a Python number of a built-in class.
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
    } else {
        None
    }
}

/// The first pass: shape and widest kind. Answers false where something else than lists, tuples and Python's numbers is.
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

/// An element type that Python numbers are read as.
trait Read: Element {
    fn read(item: &Bound<'_, PyAny>) -> PyResult<Self>;
}

impl Read for f64 {
    #[inline]
    fn read(item: &Bound<'_, PyAny>) -> PyResult<f64> {
        // SAFETY: any object may be asked.
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
        // SAFETY: any object may be asked.
        let value = unsafe { ffi::PyLong_AsLongLong(item.as_ptr()) };
        if value == -1
            && let Some(error) = PyErr::take(item.py())
        {
            return Err(error);
        }
        Ok(value)
    }
}

impl Read for u64 {
    fn read(item: &Bound<'_, PyAny>) -> PyResult<u64> {
        item.extract()
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
        // SAFETY: any object may be asked.
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

/// The second pass.
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

fn as_array<T: Read>(object: &Bound<'_, PyAny>, shape: &[usize]) -> PyResult<Array> {
    let mut values = Vec::<T>::with_capacity(shape.iter().product());
    elements(object, shape.len(), &mut values)?;
    Array::from_slice(&values, shape).map_err(|error| raise(object.py(), error))
}

/// An array of Python numbers of one widest kind.
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
        // Wide integers may become floats although 64 bits do not hold them.
        Kind::Integer | Kind::Float if target == DType::F32 => as_array::<f32>(object, shape)?,
        Kind::Integer if target.is_inexact() => as_array::<f64>(object, shape)?,
        Kind::Integer => integers(object, shape, dtype)?,
        Kind::Float => {
            let array = as_array::<f64>(object, shape)?;
            if target.is_integer() {
                check_whole(py, &array, target)?;
            }
            array
        }
        Kind::Complex if !target.is_complex() && target != DType::Bool => {
            return Err(PyTypeError::new_err(format!(
                "array: complex numbers cannot become {}",
                target.name()
            )));
        }
        Kind::Complex => as_array::<Complex<f64>>(object, shape)?,
    };
    let target = match (dtype, array.dtype()) {
        // Integers beyond the signed range.
        (None, DType::U64) => DType::U64,
        _ => target,
    };
    if array.dtype() == target {
        return Ok(array);
    }
    array.astype(target).map_err(|error| raise(py, error))
}

/// Python integers as int64, or as uint64 where one needs it.
fn integers(object: &Bound<'_, PyAny>, shape: &[usize], dtype: Option<DType>) -> PyResult<Array> {
    let py = object.py();
    let array = match as_array::<i64>(object, shape) {
        Err(error) if error.is_instance_of::<PyOverflowError>(py) => as_array::<u64>(object, shape)
            .map_err(|_| {
                PyOverflowError::new_err("array: a Python integer does not fit 64 bits")
            })?,
        result => result?,
    };
    let Some(dtype) = dtype.filter(|d| d.is_integer() && *d != array.dtype()) else {
        return Ok(array);
    };
    let fits = |value: Scalar| match value.fits(dtype) {
        true => Ok(()),
        false => Err(raise(py, out_of_bounds("array", value, dtype))),
    };
    let values = |error| raise(py, error);
    if array.dtype() == DType::U64 {
        for value in array.to_vec::<u64>().map_err(values)? {
            fits(Scalar::U64(value))?;
        }
    } else {
        for value in array.to_vec::<i64>().map_err(values)? {
            fits(Scalar::I64(value))?;
        }
    }
    Ok(array)
}

/// Python floats that are to become integers: NaN and infinity cannot, nor can what is out of range.
fn check_whole(py: Python<'_>, array: &Array, dtype: DType) -> PyResult<()> {
    for value in array.to_vec::<f64>().map_err(|error| raise(py, error))? {
        if value.is_nan() {
            return Err(PyValueError::new_err("array: NaN is no integer"));
        }
        // 2^64 and -2^63 are floats, so the bounds are exact.
        let held = match value.trunc() {
            x if (-9_223_372_036_854_775_808.0..0.0).contains(&x) => Scalar::I64(x as i64),
            x if (0.0..18_446_744_073_709_551_616.0).contains(&x) => Scalar::U64(x as u64),
            _ => {
                return Err(PyOverflowError::new_err(format!(
                    "array: {value} does not fit {}",
                    dtype.name()
                )));
            }
        };
        if !held.fits(dtype) {
            return Err(raise(py, out_of_bounds("array", held, dtype)));
        }
    }
    Ok(())
}

/// What stands in nested sequences.
enum Leaf {
    /// A number; of Python, or of NumPy with this dtype.
    Number(Scalar, Option<DType>),
    /// An array.
    Block(Array),
}

/// An array of everything that may stand in nested sequences.
fn joined(object: &Bound<'_, PyAny>, dtype: Option<DType>, most: usize) -> PyResult<Array> {
    let py = object.py();
    let (mut shape, mut leaves) = (Shape::new(most), Vec::new());
    collect(object, 0, &mut shape, &mut leaves, &mut Scalars(None))?;
    let common = leaves
        .iter()
        .map(|leaf| match leaf {
            Leaf::Number(_, Some(dtype)) => *dtype,
            Leaf::Number(value, None) => default_dtype(value.kind()),
            Leaf::Block(array) => array.dtype(),
        })
        .reduce(|a, b| promote(a, b, promotion()));
    let target = dtype.or(common).unwrap_or(default_dtype(Kind::Float));
    // One dense array for every run of numbers, one for each array between them.
    let mut parts: Vec<Array> = Vec::new();
    let mut run: Vec<Scalar> = Vec::new();
    let flush = |run: &mut Vec<Scalar>, parts: &mut Vec<Array>| -> PyResult<()> {
        if !run.is_empty() {
            parts.push(of_scalars(py, run, target)?);
            run.clear();
        }
        Ok(())
    };
    let core = |error: Error| raise(py, error);
    for leaf in leaves {
        match leaf {
            Leaf::Number(value, _) => run.push(value),
            Leaf::Block(array) => {
                flush(&mut run, &mut parts)?;
                let flat = array.astype(target).and_then(|x| x.reshape(&[x.len()]));
                parts.push(flat.map_err(core)?);
            }
        }
    }
    flush(&mut run, &mut parts)?;
    let whole = match &parts[..] {
        [] => Array::from_slice::<f64>(&[], &[0]).and_then(|x| x.astype(target)),
        // A single array must not be handed out as it is: it is the caller's.
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

/// Reads NumPy's scalars; remembers the class of the last one, for the next is likely to have it too.
struct Scalars(Option<(*mut ffi::PyTypeObject, DType)>);

impl Scalars {
    #[inline]
    fn read(&mut self, item: &Bound<'_, PyAny>) -> PyResult<Option<(Scalar, DType)>> {
        let class = item.get_type_ptr();
        let dtype = match self.0 {
            Some((known, dtype)) if known == class => dtype,
            _ => match convert::known_dtype(item.get_type().as_any())? {
                Some(dtype) => {
                    self.0 = Some((class, dtype));
                    dtype
                }
                None => return Ok(None),
            },
        };
        Ok(Some((convert::numpy_value(item, dtype)?, dtype)))
    }
}

fn collect(
    object: &Bound<'_, PyAny>,
    depth: usize,
    shape: &mut Shape,
    leaves: &mut Vec<Leaf>,
    scalars: &mut Scalars,
) -> PyResult<()> {
    let len = object.len()?;
    shape.sequence(depth, len)?;
    let start = leaves.len();
    for_each(object, |item| {
        if let Some(value) = convert::number(item)? {
            shape.element(depth + 1)?;
            leaves.push(Leaf::Number(value, None));
        } else if let Some((value, dtype)) = scalars.read(item)? {
            shape.element(depth + 1)?;
            leaves.push(Leaf::Number(value, Some(dtype)));
        } else if is_nested(item) {
            collect(item, depth + 1, shape, leaves, scalars)?;
        } else {
            let array = exchange::from_object(item, None, Sharing::Allowed)?;
            for (i, &size) in array.shape().iter().enumerate() {
                shape.level(depth + 1 + i, size)?;
            }
            shape.element(depth + 1 + array.ndim())?;
            leaves.push(Leaf::Block(array));
        }
        Ok(true)
    })?;
    // A sequence that says one length and yields another would leave the shape wrong.
    let whole = shape.sizes.len() > depth + 1 || leaves.len() - start == len;
    match whole {
        true => Ok(()),
        false => Err(shape.ragged(depth)),
    }
}

/// Numbers in this dtype, one axis.
fn of_scalars(py: Python<'_>, values: &[Scalar], dtype: DType) -> PyResult<Array> {
    let core = |error| raise(py, error);
    let shape = [values.len()];
    let widest = values.iter().map(|v| v.kind()).max();
    let array = match widest.unwrap_or(Kind::Float) {
        Kind::Complex if !dtype.is_complex() && dtype != DType::Bool => {
            return Err(PyTypeError::new_err(format!(
                "array: complex numbers cannot become {}",
                dtype.name()
            )));
        }
        Kind::Complex => {
            let values: Vec<Complex<f64>> = values.iter().map(|v| v.as_c128()).collect();
            Array::from_slice(&values, &shape).map_err(core)?
        }
        Kind::Float => {
            let values: Vec<f64> = values.iter().map(|v| v.as_f64()).collect();
            let array = Array::from_slice(&values, &shape).map_err(core)?;
            if dtype.is_integer() {
                check_whole(py, &array, dtype)?;
            }
            array
        }
        Kind::Bool | Kind::Integer => {
            if let Some(&value) = values.iter().find(|v| dtype.is_integer() && !v.fits(dtype)) {
                return Err(raise(py, out_of_bounds("array", value, dtype)));
            }
            if dtype == DType::U64 || values.iter().any(|v| matches!(v, Scalar::U64(_))) {
                let values: Vec<u64> = values.iter().map(|v| v.as_u64()).collect();
                Array::from_slice(&values, &shape).map_err(core)?
            } else {
                let values: Vec<i64> = values.iter().map(|v| v.as_i64()).collect();
                Array::from_slice(&values, &shape).map_err(core)?
            }
        }
    };
    array.astype(dtype).map_err(core)
}
