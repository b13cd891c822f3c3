//! `x.flat`: the elements of an array in C order.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};

use mxnet::ops::index::{element, put_element};
use mxnet::ops::{Array, Lone, shape};
use mxnet::tensor::DType;
use pyo3::exceptions::{PyDeprecationWarning, PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyFloat, PyInt, PyList, PySlice, PyTuple};
use smallvec::SmallVec;

use crate::array::{Get, PyArray};
use crate::error::raise;
use crate::{convert, exchange, index};

/// The elements of an array in C order, one by one and by position.
#[pyclass(name = "flatiter", module = "mxnet.numpy", frozen)]
pub struct Flat {
    array: Py<PyArray>,
    next: AtomicUsize,
}

impl Flat {
    /// Starts at the first element.
    pub fn of(slf: &Bound<'_, PyArray>) -> Flat {
        Flat {
            array: slf.clone().unbind(),
            next: AtomicUsize::new(0),
        }
    }

    /// The next element, if there is one.
    #[inline]
    fn step(&self, py: Python<'_>) -> PyResult<Option<Py<PyArray>>> {
        let place = self.next.load(Ordering::Relaxed);
        let x = self.array.get().look(py);
        if place >= x.len() {
            return Ok(None);
        }
        self.next.store(place + 1, Ordering::Relaxed);
        x.end();
        let make = |to: &mut MaybeUninit<Lone>| {
            let x = self.array.get().look(py);
            // SAFETY: this is where an element lies, if it still does.
            place < x.len() && unsafe { element(&x, x.layout().place_at(place), to) }
        };
        // SAFETY: where `make` answers yes, it has made the element.
        match unsafe { PyArray::element_by(py, make) }? {
            Some(element) => Ok(Some(element)),
            None => self.__getitem__(PyInt::new(py, place).as_any()).map(Some),
        }
    }

    /// The key as a row takes it; what a row takes and an iterator does not is refused.
    fn key<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = key.py();
        if let Ok(entries) = key.cast::<PyTuple>() {
            return match entries.len() {
                0 => Ok(PyEllipsis::get(py).to_owned().into_any()),
                1 => self.key(&entries.get_item(0)?),
                n => Err(PyIndexError::new_err(format!(
                    "too many indices for flat iterator: flat iterator is 1-dimensional, but {n} were indexed"
                ))),
            };
        }
        if key.is_none() {
            return Err(PyIndexError::new_err(
                "only integers, slices (`:`), ellipsis (`...`) and integer or boolean arrays are valid indices",
            ));
        }
        if key.is_instance_of::<PyBool>() {
            // One position of number 0, or none, as in NumPy, which warns too.
            let category = py.get_type::<PyDeprecationWarning>();
            let text = c"0-dimensional boolean index into a flat iterator is deprecated: index with an integer";
            PyErr::warn(py, category.as_any(), text, 1)?;
            let end = isize::from(key.is_truthy()?);
            return Ok(PySlice::new(py, 0, end, 1).into_any());
        }
        if let Ok(list) = key.cast::<PyList>() {
            let all = |class: fn(&Bound<'py, PyAny>) -> bool| {
                !list.is_empty() && list.iter().all(|item| class(&item))
            };
            if all(|item| item.is_instance_of::<PyBool>()) {
                return Err(PyIndexError::new_err(
                    "boolean indices for iterators are not supported because their length is not checked: use an array",
                ));
            }
            if all(|item| item.is_instance_of::<PyFloat>()) {
                let category = py.get_type::<PyDeprecationWarning>();
                let text = c"Invalid non-array indices for iterator objects are deprecated: index with integers";
                PyErr::warn(py, category.as_any(), text, 1)?;
                let whole = list.iter().map(|item| item.extract::<f64>());
                let whole = whole.map(|item| item.map(|item| item as i64));
                return Ok(PyList::new(py, whole.collect::<PyResult<Vec<i64>>>()?)?.into_any());
            }
        }
        if let Ok(mask) = key.cast::<PyArray>() {
            let found = mask.get().with(py, |mask| {
                (mask.dtype() == DType::Bool && mask.ndim() == 1).then(|| mask.len())
            });
            if let Some(len) = found.filter(|&len| len != self.__len__(py)) {
                return Err(PyIndexError::new_err(format!(
                    "boolean index did not match indexed flat iterator: it has {len} elements, the iterator {}",
                    self.__len__(py)
                )));
            }
        }
        Ok(key.clone())
    }

    /// The elements as one row: a view where the strides allow it.
    fn row<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray>> {
        let slf = self.array.bind(py);
        let array = slf.get().array(py);
        let row = array
            .reshape(&[array.len()])
            .map_err(|error| raise(py, error))?;
        Ok(PyArray::wrap_of(py, row, slf)?.into_bound(py))
    }
}

/// Where the element lies that an integer names, counted in C order; `None` for any other key, and for an integer outside.
fn place_of(x: &Array, key: &Bound<'_, PyAny>) -> Option<usize> {
    let index = key.cast_exact::<PyInt>().ok()?.extract::<isize>().ok()?;
    let len = x.len() as isize;
    let position = if index < 0 { index + len } else { index };
    (0..len)
        .contains(&position)
        .then(|| x.layout().place_at(position as usize))
}

/// `x.flat = value`.
pub fn set(slf: &Bound<'_, PyArray>, value: &Bound<'_, PyAny>) -> PyResult<()> {
    Flat::of(slf).__setitem__(PySlice::full(slf.py()).as_any(), value)
}

#[pymethods]
impl Flat {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyArray>>> {
        self.step(py)
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        self.array.get().with(py, Array::len)
    }

    /// The array the elements are of.
    #[getter]
    fn base(&self, py: Python<'_>) -> Py<PyArray> {
        self.array.clone_ref(py)
    }

    /// Position of the next element.
    #[getter]
    fn index(&self) -> usize {
        self.next.load(Ordering::Relaxed)
    }

    /// The same position as one index an axis.
    #[getter]
    fn coords<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let mut rest = self.index();
        let mut coords: Vec<usize> = self.array.get().with(py, |x| {
            let axes = x.shape().iter().rev();
            axes.map(|&n| {
                let here = rest % n.max(1);
                rest /= n.max(1);
                here
            })
            .collect()
        });
        coords.reverse();
        PyTuple::new(py, coords)
    }

    /// The elements as one row, in memory of their own.
    fn copy(&self, py: Python<'_>) -> PyResult<Py<PyArray>> {
        self.__getitem__(PySlice::full(py).as_any())
    }

    fn __delitem__(&self, _key: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(PyTypeError::new_err("cannot delete elements of an array"))
    }

    fn __getitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<Py<PyArray>> {
        let py = key.py();
        let make = |to: &mut MaybeUninit<Lone>| {
            let x = self.array.get().look(py);
            // SAFETY: this is where an element lies.
            place_of(&x, key).is_some_and(|place| unsafe { element(&x, place, to) })
        };
        // SAFETY: where `make` answers yes, it has made the element.
        if let Some(element) = unsafe { PyArray::element_by(py, make) }? {
            return Ok(element);
        }
        let key = &self.key(key)?;
        let found = index::get(&self.row(py)?, key)?;
        let copy = found.get().array(py).copy();
        PyArray::wrap_result(py, copy.map_err(|error| raise(py, error))?)
    }

    /// Values are taken again from the start when there are fewer than positions.
    fn __setitem__(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = key.py();
        let core = |error| raise(py, error);
        if key.cast::<PyTuple>().is_ok_and(|key| key.is_empty()) {
            return Err(PyIndexError::new_err(
                "Assigning to a flat iterator with a 0-D index is not supported",
            ));
        }
        if let Some(number) = convert::number(value)? {
            let x = self.array.get().look(py);
            let is_done = place_of(&x, key).is_some_and(|place| {
                // SAFETY: the place is where an element lies.
                unsafe { put_element(&x, place, &number) }
            });
            if is_done {
                return Ok(());
            }
        }
        let key = &self.key(key)?;
        let slf = self.array.bind(py);
        let row = self.row(py)?;
        let dtype = slf.get().with(py, Array::dtype);
        let value = convert::value_for(value, dtype)?.array();
        let wanted = index::get(&row, key)?.get().with(py, Array::len);
        if wanted == 0 {
            return Ok(());
        }
        if value.is_empty() {
            return Err(PyValueError::new_err("cannot set positions from no values"));
        }
        let value = if value.ndim() == 0 {
            value
        } else if value.len() == 1 {
            value.reshape(&[]).map_err(core)?
        } else {
            let flat = value.reshape(&[value.len()]).map_err(core)?;
            let times = wanted.div_ceil(flat.len());
            let again: SmallVec<[&Array; 8]> = std::iter::repeat_n(&flat, times).collect();
            let long = shape::concatenate(&again, 0).map_err(core)?;
            let cut = mxnet::tensor::IndexItem::Slice {
                start: None,
                stop: Some(wanted as isize),
                step: None,
            };
            long.index([cut].into()).map_err(core)?
        };
        let value = PyArray::wrap(py, value)?;
        let shared = row.get().with(py, |row| {
            let whole = slf.get().look(py);
            std::sync::Arc::ptr_eq(row.tensor().storage(), whole.tensor().storage())
        });
        if slf.get().with(py, |x| x.tensor().is_read_only()) {
            return Err(PyValueError::new_err("assignment destination is read-only"));
        }
        index::set(&row, key, value.bind(py).as_any())?;
        if shared {
            return Ok(());
        }
        // The row was a copy: what was written there is written back.
        let back = row.get().array(py);
        let back = slf.get().with(py, |x| back.reshape(x.shape()));
        let back = PyArray::wrap(py, back.map_err(core)?)?;
        index::set(slf, PyEllipsis::get(py).as_any(), back.bind(py).as_any())
    }

    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__(
        &self,
        py: Python<'_>,
        dtype: Option<&Bound<'_, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Py<PyAny>> {
        exchange::array_protocol(&self.row(py)?, dtype, copy)
    }
}
