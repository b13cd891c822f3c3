//! Index expressions as Python writes them, read for the core: integers, slices, new axes, index arrays and masks.

use mxnet::core::Array;
use mxnet::tensor::{DType, Dims, IndexItem, Scalar};
use pyo3::exceptions::{PyIndexError, PyOverflowError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyInt, PyList, PySlice, PyTuple, PyType};
use smallvec::SmallVec;

use crate::array::{Get, PyArray};
use crate::error::raise;
use crate::gil_release::without_gil;
use crate::once_box::OnceBox;
use crate::sharing::Sharing;
use crate::{interop, nested_sequence};

/// NumPy's message for an invalid index.
const VALID: &str = "only integers, slices (`:`), ellipsis (`...`), `None` and integer or boolean arrays are valid indices";

/// Comparisons of lengths with bounds, for graphs for many sizes.
const GE: &str = "bound ge";
const GT: &str = "bound gt";

/// An index expression: its entries, and the arrays in it.
pub struct Key {
    /// Entries of the expression.
    pub items: SmallVec<[IndexItem; 4]>,
    /// Index arrays and masks, in order.
    pub arrays: SmallVec<[Array; 2]>,
    /// Whether the expression has a 0-d integer array, so that the result must be a copy.
    pub copies: bool,
}

impl Key {
    /// An empty expression.
    pub fn new() -> Key {
        Key {
            items: SmallVec::new(),
            arrays: SmallVec::new(),
            copies: false,
        }
    }

    /// Reads a key.
    pub fn read(&mut self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let Ok(tuple) = key.cast::<PyTuple>() else {
            return self.push(key);
        };
        let mut entries = tuple.iter_borrowed();
        let first = entries.try_for_each(|entry| self.push(&entry));
        match first {
            // An entry that is not a valid index at all is reported before an error inside a slice.
            Err(error) if error.is_instance_of::<PyTypeError>(key.py()) => {
                let later = entries.find_map(|entry| self.push(&entry).err());
                Err(later
                    .filter(|later| later.is_instance_of::<PyIndexError>(key.py()))
                    .unwrap_or(error))
            }
            done => done,
        }
    }

    /// Notes which bounds lie within the axes of an array of this shape: a graph for many sizes is valid where the same ones do.
    pub fn note_bounds(&self, py: Python<'_>, shape: &[usize]) -> PyResult<()> {
        let taken: usize = self.items.iter().map(IndexItem::num_axes).sum();
        let mut axis = 0;
        for item in &self.items {
            let length = shape.get(axis).copied().unwrap_or(0) as isize;
            let note = |name: &str, left: isize, right: isize| -> PyResult<()> {
                let outcome = if name == GE {
                    left >= right
                } else {
                    left > right
                };
                let sizes = py.import("mxnet._sizes")?;
                sizes.call_method1("note", (name, left, right, outcome))?;
                Ok(())
            };
            match *item {
                IndexItem::Int(at) if at < 0 => note(GE, length, at.saturating_neg())?,
                IndexItem::Int(at) => note(GT, length, at)?,
                IndexItem::Slice { start, stop, step } => {
                    let goes_up = step.is_none_or(|step| step > 0);
                    // `None` is read as the smallest or the largest integer, or as 0.
                    let is_open = |bound: isize| bound.unsigned_abs() >= isize::MAX as usize;
                    let bounds = [start.unwrap_or(0), stop.unwrap_or(isize::MAX)];
                    for bound in bounds {
                        match bound {
                            _ if is_open(bound) || bound == 0 && goes_up => {}
                            ..0 => note(GE, length, -bound)?,
                            _ => note(if goes_up { GE } else { GT }, length, bound)?,
                        }
                    }
                    if bounds
                        .iter()
                        .all(|&bound| is_open(bound) || bound == 0 && goes_up)
                    {
                        axis += 1;
                        continue;
                    }
                    let (lowest, highest) = if goes_up {
                        (0, length)
                    } else {
                        (-1, length - 1)
                    };
                    let [start, stop] = bounds.map(|bound| match bound {
                        ..0 => length.saturating_add(bound).max(lowest),
                        _ => bound.min(highest),
                    });
                    let (least, most) = if goes_up {
                        (start, stop)
                    } else {
                        (stop, start)
                    };
                    note(GE, most, least)?;
                }
                IndexItem::Ellipsis => axis += shape.len().saturating_sub(taken),
                _ => {}
            }
            axis += item.num_axes();
        }
        Ok(())
    }

    fn push(&mut self, entry: &Bound<'_, PyAny>) -> PyResult<()> {
        let item = if entry.is_exact_instance_of::<PyInt>() {
            IndexItem::Int(integer(entry)?)
        } else if let Ok(slice) = entry.cast_exact::<PySlice>() {
            let (start, stop, step) = bounds(slice)?;
            IndexItem::Slice { start, stop, step }
        } else if entry.is_none() {
            IndexItem::NewAxis
        } else if entry.is_exact_instance_of::<PyEllipsis>() {
            IndexItem::Ellipsis
        } else {
            return self.push_other(entry);
        };
        self.items.push(item);
        Ok(())
    }

    /// Reads arrays, objects that convert to arrays, and numbers of other classes.
    fn push_other(&mut self, entry: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = entry.py();
        let array = if let Ok(array) = entry.cast::<PyArray>() {
            array.get().array(py)
        } else if let Ok(truth) = entry.cast::<PyBool>() {
            Array::scalar(Scalar::Bool(truth.is_true()), DType::Bool)
                .map_err(|error| raise(py, error))?
        } else if let Some(index) = of_other_class(entry)? {
            self.items.push(IndexItem::Int(index));
            return Ok(());
        } else {
            from_sequence(entry)?
        };
        match array.dtype() {
            DType::Bool => self.items.push(IndexItem::Mask {
                shape: Dims::from_slice(array.shape()),
            }),
            dtype if dtype.is_integer() && array.ndim() == 0 => {
                let value = without_gil(py, || array.item()).map_err(|error| raise(py, error))?;
                let Some(index) = value.to_i64() else {
                    return Err(PyIndexError::new_err(
                        "cannot fit 'int' into an index-sized integer",
                    ));
                };
                self.items.push(IndexItem::Int(index as isize));
                self.copies = true;
                return Ok(());
            }
            dtype if dtype.is_integer() => self.items.push(IndexItem::Array {
                shape: Dims::from_slice(array.shape()),
            }),
            dtype => {
                return Err(PyIndexError::new_err(format!(
                    "arrays used as indices must be of integer (or boolean) type, found {}",
                    dtype.name()
                )));
            }
        }
        self.arrays.push(array);
        Ok(())
    }
}

/// The integer that an object gives by `__index__`. `None` if it has no such method, or is an array: of NumPy, whose 0-d arrays are index arrays,
/// or of another library, whose `__index__` refuses all but one element.
fn of_other_class(object: &Bound<'_, PyAny>) -> PyResult<Option<isize>> {
    static ARRAY: OnceBox<Py<PyType>> = OnceBox::new();
    let py = object.py();
    // SAFETY: a live object; the function accepts any.
    if unsafe { ffi::PyIndex_Check(object.as_ptr()) } == 0
        || object.is_instance(ARRAY.import(py, "numpy", "ndarray")?)?
    {
        return Ok(None);
    }
    match integer(object) {
        Err(error) if error.is_instance_of::<PyTypeError>(py) && interop::is_array_like(object) => {
            Ok(None)
        }
        index => index.map(Some),
    }
}

/// An integer, read by `__index__`.
#[inline]
pub fn integer(object: &Bound<'_, PyAny>) -> PyResult<isize> {
    object.extract::<isize>().map_err(|error| {
        if error.is_instance_of::<PyOverflowError>(object.py()) {
            PyIndexError::new_err("cannot fit 'int' into an index-sized integer")
        } else {
            error
        }
    })
}

/// An index array from nested sequences or an array of another library.
fn from_sequence(object: &Bound<'_, PyAny>) -> PyResult<Array> {
    let py = object.py();
    if let Ok(list) = object.cast_exact::<PyList>() {
        // A list of integers, the common case, is read directly.
        let numbers: Option<SmallVec<[i64; 16]>> = list
            .iter()
            .map(|item| match item.is_exact_instance_of::<PyInt>() {
                true => item.extract().ok(),
                false => None,
            })
            .collect();
        if let Some(numbers) = numbers {
            return Array::from_slice(&numbers, &[numbers.len()]).map_err(|error| raise(py, error));
        }
    }
    let nested = nested_sequence::is_nested(object);
    if !nested && !interop::is_array_like(object) {
        return Err(PyIndexError::new_err(VALID));
    }
    if nested {
        // Lists of our arrays are converted by the function that knows them.
        let array = match interop::from_object(object, None, Sharing::Never) {
            // The sequence holds objects that are not numbers, or integers beyond 64 bits.
            Err(error)
                if error.is_instance_of::<PyTypeError>(py)
                    || error.is_instance_of::<PyOverflowError>(py) =>
            {
                let wrong = PyIndexError::new_err(VALID);
                wrong.set_cause(py, Some(error));
                return Err(wrong);
            }
            array => array?,
        };
        let is_index = array.dtype().is_integer() || array.dtype() == DType::Bool;
        // Nested empty lists become an empty index array.
        return match array.is_empty() && !is_index {
            true => array.astype(DType::I64).map_err(|error| raise(py, error)),
            false => Ok(array),
        };
    }
    let source = interop::numpy_asarray(object)?;
    let kind: String = source.getattr("dtype")?.getattr("kind")?.extract()?;
    if !"biu".contains(&kind) {
        return Err(PyIndexError::new_err(format!(
            "arrays used as indices must be of integer (or boolean) type, found {}",
            source.getattr("dtype")?
        )));
    }
    // A copy: indices are checked before they are used, and another library could change them in between.
    interop::from_numpy(&source, Sharing::Never)
}

/// Start, stop and step of a slice. Missing bounds are the extreme values, which are clipped later.
#[inline]
pub fn unpacked(slice: &Bound<'_, PySlice>) -> PyResult<(isize, isize, isize)> {
    let (mut start, mut stop, mut step) = (0, 0, 0);
    // SAFETY: a slice object and three variables to write to.
    if unsafe { ffi::PySlice_Unpack(slice.as_ptr(), &mut start, &mut stop, &mut step) } < 0 {
        return Err(PyErr::fetch(slice.py()));
    }
    Ok((start, stop, step))
}

/// Start, stop and step in the form of an index entry.
#[inline]
fn bounds(slice: &Bound<'_, PySlice>) -> PyResult<(Option<isize>, Option<isize>, Option<isize>)> {
    let (start, stop, step) = unpacked(slice)?;
    Ok((Some(start), Some(stop), Some(step)))
}

/// The entries of an index expression as an operator's attribute: arrays are represented by their shapes.
pub fn items(key: &Bound<'_, PyAny>) -> PyResult<Vec<IndexItem>> {
    let mut parts = Key::new();
    parts.read(key)?;
    Ok(parts.items.into_vec())
}
