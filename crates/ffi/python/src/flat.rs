//! `x.flat`: the elements of an array in C order.

use std::ffi::{CStr, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use mxnet::core::Array;
use mxnet::ops::index::{element, put_element};
use mxnet::ops::{InlineScalar, shape};
use mxnet::tensor::DType;
use pyo3::exceptions::{PyDeprecationWarning, PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{
    DerefToPyAny, PyBool, PyEllipsis, PyFloat, PyInt, PyList, PySlice, PyTuple, PyType,
};
use pyo3::{IntoPyObjectExt, PyTypeInfo, ffi};
use smallvec::SmallVec;

use crate::array::PyArray;
use crate::error::raise;
use crate::panic_guard::guarded_or;
use crate::typed::{self, Get, Object, Typed, attributes, method_table, methods, one, slot, this};
use crate::{convert, index, numbers, numpy_export, row_iter};

/// Iterator over the elements of an array in C order, which can also be indexed.
pub struct Flat {
    array: Py<PyArray>,
    next: AtomicUsize,
}

impl Flat {
    /// An iterator at the first element.
    pub fn of(slf: &Bound<'_, PyArray>) -> Flat {
        Flat {
            array: slf.clone().unbind(),
            next: AtomicUsize::new(0),
        }
    }

    /// A Python object that contains the iterator.
    pub fn wrap(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        // SAFETY: the class allocates its objects with a head and space for the content, which is written here.
        unsafe {
            let object = ffi::PyType_GenericAlloc(Flat::type_object_raw(py), 0);
            let object = Bound::from_owned_ptr_or_err(py, object)?;
            (&raw mut (*object.as_ptr().cast::<Object<Flat>>()).value).write(self);
            Ok(object.unbind())
        }
    }

    /// The next element, if there is one.
    #[inline]
    fn step(&self, py: Python<'_>) -> PyResult<Option<Py<PyArray>>> {
        let position = self.next.load(Ordering::Relaxed);
        let x = self.array.get().borrow(py);
        if position >= x.len() {
            return Ok(None);
        }
        self.next.store(position + 1, Ordering::Relaxed);
        x.end();
        row_iter::check_signals_after(py, position + 1)?;
        let make = |to: &mut MaybeUninit<InlineScalar>| {
            let x = self.array.get().borrow(py);
            // SAFETY: the address is that of an element, if the array still has that many.
            position < x.len() && unsafe { element(&x, x.layout().offset_at(position), to) }
        };
        // SAFETY: if `make` returns true, it has initialised the element.
        match unsafe { PyArray::element_by(py, make) }? {
            Some(element) => Ok(Some(element)),
            None => self.item(PyInt::new(py, position).as_any()).map(Some),
        }
    }

    /// The key as a 1-d array takes it. An error for keys that are valid for a 1-d array but not for an iterator.
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
            // True is the slice 0:1, False the empty slice; NumPy warns, too.
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
            if let Some(len) = found.filter(|&len| len != self.array.get().with(py, Array::len)) {
                return Err(PyIndexError::new_err(format!(
                    "boolean index did not match indexed flat iterator: it has {len} elements, the iterator {}",
                    self.array.get().with(py, Array::len)
                )));
            }
        }
        Ok(key.clone())
    }

    /// The elements as a 1-d array: a view if the strides allow it.
    fn row<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray>> {
        let slf = self.array.bind(py);
        let array = slf.get().array(py);
        let row = array
            .reshape(&[array.len()])
            .map_err(|error| raise(py, error))?;
        Ok(PyArray::wrap_of(py, row, slf)?.into_bound(py))
    }
}

/// The position in the storage of the element with this index in C order; `None` for other keys, and for an index out of bounds.
fn offset_of(x: &Array, key: &Bound<'_, PyAny>) -> Option<usize> {
    let index = key.cast_exact::<PyInt>().ok()?.extract::<isize>().ok()?;
    let len = x.len() as isize;
    let position = if index < 0 { index + len } else { index };
    (0..len)
        .contains(&position)
        .then(|| x.layout().offset_at(position as usize))
}

/// `x.flat = value`.
pub fn set(slf: &Bound<'_, PyArray>, value: &Bound<'_, PyAny>) -> PyResult<()> {
    Flat::of(slf).set_item(PySlice::full(slf.py()).as_any(), value)
}

static CLASS: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(ptr::null_mut());

// SAFETY: there is one such type; each of its objects is an `Object<Flat>`, and no class can be derived from it.
unsafe impl PyTypeInfo for Flat {
    #[inline]
    fn type_object_raw(_py: Python<'_>) -> *mut ffi::PyTypeObject {
        let class = CLASS.load(Ordering::Relaxed);
        assert!(!class.is_null(), "the type is created first");
        class
    }
}

impl DerefToPyAny for Flat {}

// SAFETY: as above.
unsafe impl Typed for Flat {}

attributes! {
    Flat;
    at_once "base" "The array that it iterates over." => |x| Ok(x.get().array.clone_ref(x.py()).into_any());
    at_once "index" "Position of the next element." => |x| x.get().next.load(Ordering::Relaxed).into_py_any(x.py());
    at_once "coords" "Position of the next element as a tuple with one index per axis." => |x| Ok(x.get().coords(x.py())?.into_any().unbind());
}

methods! {
    Flat, "flatiter";
    attached "copy" () "A 1-d copy of the elements." =>
        |x| x.get().item(PySlice::full(x.py()).as_any()).map(Py::into_any);
    attached "__array__" "($self, dtype=None, copy=None)" "" =>
        |x, given| numpy_export::array_protocol(&x.get().row(x.py())?, given.some(0).as_deref(), given.to(1)?);
}

/// Creates the type.
pub fn make(py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
    let slots = vec![
        slot(ffi::Py_tp_getset, table().as_mut_ptr().cast()),
        slot(
            ffi::Py_tp_methods,
            method_table(METHODS)?.as_mut_ptr().cast(),
        ),
        slot(ffi::Py_tp_doc, DOC.as_ptr().cast_mut().cast()),
        slot(ffi::Py_tp_dealloc, dealloc as *mut c_void),
        slot(ffi::Py_tp_iter, itself as *mut c_void),
        slot(ffi::Py_tp_iternext, next as *mut c_void),
        slot(ffi::Py_mp_length, length as *mut c_void),
        slot(ffi::Py_mp_subscript, item as *mut c_void),
        slot(ffi::Py_mp_ass_subscript, set_item as *mut c_void),
    ];
    let (name, flags) = (
        c"mxnet.numpy.flatiter",
        ffi::Py_TPFLAGS_DISALLOW_INSTANTIATION,
    );
    // SAFETY: the tables are leaked; every function has the signature of its slot.
    let class = unsafe { typed::make::<Flat>(py, name, flags, slots) }?;
    // Never freed.
    CLASS.store(class.clone().into_ptr().cast(), Ordering::Relaxed);
    Ok(class)
}

const DOC: &CStr = c"Iterator over the elements of an array in C order, which can also be indexed by flat position.";

/// The deallocator of the type.
unsafe extern "C" fn dealloc(object: *mut ffi::PyObject) {
    // SAFETY: Python calls it with the lock held, when no reference is left; every object refers to its class.
    unsafe {
        let array = (&raw const (*object.cast::<Object<Flat>>()).value.array).read();
        ffi::Py_DECREF(array.into_ptr());
        let class = ffi::Py_TYPE(object);
        ffi::PyObject_Free(object.cast());
        ffi::Py_DECREF(class.cast());
    }
}

/// `next(flat)`: null without an exception ends the iteration.
unsafe extern "C" fn next(flat: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: Python calls slots with an object of the class and the lock held.
    let (py, flat) = unsafe {
        let py = Python::assume_attached();
        (py, this::<Flat>(py, flat))
    };
    guarded_or(py, "flat", ptr::null_mut(), || {
        let element = (*flat).get().step(py)?;
        Ok(element.map_or(ptr::null_mut(), Py::into_ptr))
    })
}

/// `iter(flat)`: itself.
unsafe extern "C" fn itself(flat: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: a live object.
    unsafe { ffi::Py_INCREF(flat) };
    flat
}

/// `len(flat)`.
unsafe extern "C" fn length(flat: *mut ffi::PyObject) -> ffi::Py_ssize_t {
    // SAFETY: as above.
    let (py, flat) = unsafe {
        let py = Python::assume_attached();
        (py, this::<Flat>(py, flat))
    };
    let len = || (*flat).get().array.get().with(py, Array::len);
    guarded_or(py, "flat", -1, || Ok(len() as ffi::Py_ssize_t))
}

/// `flat[key]`.
unsafe extern "C" fn item(flat: *mut ffi::PyObject, key: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: as above.
    unsafe {
        let key = Borrowed::<PyAny>::from_ptr(Python::assume_attached(), key);
        one::<Flat>(flat, "flat", |flat| flat.get().item(&key).map(Py::into_any))
    }
}

/// `flat[key] = value`; without a value, `del flat[key]`.
unsafe extern "C" fn set_item(
    flat: *mut ffi::PyObject,
    key: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
) -> c_int {
    // SAFETY: as above.
    let (py, flat, key, value) = unsafe {
        let py = Python::assume_attached();
        (
            py,
            this::<Flat>(py, flat),
            Borrowed::<PyAny>::from_ptr(py, key),
            Borrowed::<PyAny>::from_ptr_or_opt(py, value),
        )
    };
    guarded_or(py, "flat", -1, || match value {
        Some(value) => (*flat).get().set_item(&key, &value).map(|()| 0),
        None => Err(PyTypeError::new_err("cannot delete elements of an array")),
    })
}

impl Flat {
    /// The position as one index for each axis.
    fn coords<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let mut rest = self.next.load(Ordering::Relaxed);
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

    fn item(&self, key: &Bound<'_, PyAny>) -> PyResult<Py<PyArray>> {
        let py = key.py();
        let make = |to: &mut MaybeUninit<InlineScalar>| {
            let x = self.array.get().borrow(py);
            // SAFETY: the address is that of an element.
            offset_of(&x, key).is_some_and(|position| unsafe { element(&x, position, to) })
        };
        // SAFETY: if `make` returns true, it has initialised the element.
        if let Some(element) = unsafe { PyArray::element_by(py, make) }? {
            return Ok(element);
        }
        let key = &self.key(key)?;
        let found = index::get(&self.row(py)?, key)?.into_bound(py);
        let copy = found.get().array(py).copy();
        PyArray::wrap_result(py, copy.map_err(|error| raise(py, error))?)
    }

    /// Values are repeated if there are fewer values than positions.
    fn set_item(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = key.py();
        let core = |error| raise(py, error);
        if key.cast::<PyTuple>().is_ok_and(|key| key.is_empty()) {
            return Err(PyIndexError::new_err(
                "Assigning to a flat iterator with a 0-D index is not supported",
            ));
        }
        if let Some(number) = numbers::number(value)? {
            let x = self.array.get().borrow(py);
            let is_done = offset_of(&x, key).is_some_and(|position| {
                // SAFETY: the address is that of an element.
                unsafe { put_element(&x, position, &number) }
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
        let wanted = index::get(&row, key)?.into_bound(py);
        let wanted = wanted.get().with(py, Array::len);
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
        let value = PyArray::wrap(py, value)?.into_bound(py);
        let shared = row.get().with(py, |row| {
            let whole = slf.get().borrow(py);
            std::sync::Arc::ptr_eq(row.tensor().storage(), whole.tensor().storage())
        });
        if slf.get().with(py, |x| x.tensor().is_read_only()) {
            return Err(PyValueError::new_err("assignment destination is read-only"));
        }
        index::set(&row, key, value.as_any())?;
        if shared {
            return Ok(());
        }
        // The 1-d array was a copy: its elements are copied back.
        let back = row.get().array(py);
        let back = slf.get().with(py, |x| back.reshape(x.shape()));
        let back = PyArray::wrap(py, back.map_err(core)?)?.into_bound(py);
        index::set(slf, PyEllipsis::get(py).as_any(), back.as_any())
    }
}
