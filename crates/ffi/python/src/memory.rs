//! What an array shows of its memory: flags, views of another dtype, its elements in a row, its base; and changes of the array in place.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};

use mxnet::ops::elementwise::parts::no_parts;
use mxnet::ops::index::{element, put_element};
use mxnet::ops::interp::Flags;
use mxnet::ops::{Array, Error, Lone, OpDef, shape};
use mxnet::tensor::{DType, Layout, Tensor};
use pyo3::exceptions::{
    PyAttributeError, PyDeprecationWarning, PyIndexError, PyKeyError, PyTypeError, PyValueError,
};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyFloat, PyInt, PyList, PySlice, PyTuple, PyType};
use smallvec::SmallVec;

use crate::array::PyArray;
use crate::call::guarded;
use crate::error::raise;
use crate::making;
use crate::operators::unary;
use crate::slot::Slot;
use crate::{convert, exchange, index};

/// How the elements of an array lie in memory, and whether they may be written.
#[pyclass(name = "flagsobj", module = "mxnet.numpy", frozen)]
pub struct ArrayFlags {
    array: Py<PyArray>,
}

impl ArrayFlags {
    /// The flags of an array; they follow it.
    pub fn of(slf: &Bound<'_, PyArray>) -> ArrayFlags {
        ArrayFlags {
            array: slf.clone().unbind(),
        }
    }

    fn ask<R>(&self, py: Python<'_>, question: impl FnOnce(&Array) -> R) -> R {
        self.array.get().with(py, question)
    }
}

#[pymethods]
impl ArrayFlags {
    /// Whether the elements lie one after another with the last axis fastest.
    #[getter]
    fn c_contiguous(&self, py: Python<'_>) -> bool {
        self.ask(py, |x| x.layout().is_contiguous())
    }

    /// Whether the elements lie one after another with the first axis fastest.
    #[getter]
    fn f_contiguous(&self, py: Python<'_>) -> bool {
        self.ask(py, |x| x.layout().is_fortran())
    }

    /// The same as `c_contiguous`.
    #[getter]
    fn contiguous(&self, py: Python<'_>) -> bool {
        self.c_contiguous(py)
    }

    /// The same as `f_contiguous`.
    #[getter]
    fn fortran(&self, py: Python<'_>) -> bool {
        self.f_contiguous(py)
    }

    /// Whether the elements lie in Fortran order and not in C order.
    #[getter]
    fn fnc(&self, py: Python<'_>) -> bool {
        self.f_contiguous(py) && !self.c_contiguous(py)
    }

    /// Whether the elements lie in Fortran or in C order.
    #[getter]
    fn forc(&self, py: Python<'_>) -> bool {
        self.f_contiguous(py) || self.c_contiguous(py)
    }

    /// Whether the memory is the array's own: it is no view and no memory of another library.
    #[getter]
    fn owndata(&self, py: Python<'_>) -> bool {
        self.ask(py, owns)
    }

    /// Whether the elements may be written. Setting it to False locks this array and the views taken from then on.
    #[getter]
    fn writeable(&self, py: Python<'_>) -> bool {
        self.ask(py, |x| !x.tensor().is_read_only())
    }

    #[setter]
    fn set_writeable(&self, py: Python<'_>, writeable: bool) -> PyResult<()> {
        set_writeable(self.array.bind(py), writeable)
    }

    /// Whether every element has an address its type allows: always.
    #[getter]
    fn aligned(&self) -> bool {
        true
    }

    /// Whether writes go to a copy first: never.
    #[getter]
    fn writebackifcopy(&self) -> bool {
        false
    }

    /// Whether the elements may be written and are aligned.
    #[getter]
    fn behaved(&self, py: Python<'_>) -> bool {
        self.writeable(py)
    }

    /// The flags as NumPy's number: 1 for C order, 2 for Fortran order, 4 for memory of its own, 0x100 for aligned, 0x400 for writeable.
    #[getter]
    fn num(&self, py: Python<'_>) -> u32 {
        let flags = [
            (self.c_contiguous(py), 0x1),
            (self.f_contiguous(py), 0x2),
            (self.owndata(py), 0x4),
            (self.aligned(), 0x100),
            (self.writeable(py), 0x400),
        ];
        let set = flags.into_iter().filter(|(holds, _)| *holds);
        set.map(|(_, bit)| bit).sum()
    }

    /// Whether the array is behaved and lies in C order.
    #[getter]
    fn carray(&self, py: Python<'_>) -> bool {
        self.behaved(py) && self.c_contiguous(py)
    }

    /// Whether the array is behaved and lies in Fortran order and not in C order.
    #[getter]
    fn farray(&self, py: Python<'_>) -> bool {
        self.behaved(py) && self.fnc(py)
    }

    fn __getitem__(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        Ok(match name {
            "C" | "C_CONTIGUOUS" | "CONTIGUOUS" => self.c_contiguous(py),
            "F" | "F_CONTIGUOUS" | "FORTRAN" => self.f_contiguous(py),
            "O" | "OWNDATA" => self.owndata(py),
            "W" | "WRITEABLE" => self.writeable(py),
            "A" | "ALIGNED" => true,
            "X" | "WRITEBACKIFCOPY" => false,
            "B" | "BEHAVED" => self.behaved(py),
            "CA" | "CARRAY" => self.carray(py),
            "FA" | "FARRAY" => self.farray(py),
            "FNC" => self.fnc(py),
            "FORC" => self.forc(py),
            _ => return Err(PyKeyError::new_err(format!("unknown flag '{name}'"))),
        })
    }

    fn __setitem__(&self, py: Python<'_>, name: &str, value: bool) -> PyResult<()> {
        match name {
            "W" | "WRITEABLE" => self.set_writeable(py, value),
            _ => Err(PyKeyError::new_err(format!("flag '{name}' cannot be set"))),
        }
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> bool {
        let all = |flags: &ArrayFlags| {
            [
                flags.c_contiguous(py),
                flags.f_contiguous(py),
                flags.owndata(py),
                flags.writeable(py),
            ]
        };
        other
            .cast::<ArrayFlags>()
            .is_ok_and(|other| all(self) == all(other.get()))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let facts = [
            ("C_CONTIGUOUS", self.c_contiguous(py)),
            ("F_CONTIGUOUS", self.f_contiguous(py)),
            ("OWNDATA", self.owndata(py)),
            ("WRITEABLE", self.writeable(py)),
            ("ALIGNED", true),
            ("WRITEBACKIFCOPY", false),
        ];
        let line = |(name, holds): (&str, bool)| {
            format!("  {name} : {}\n", if holds { "True" } else { "False" })
        };
        facts.map(line).concat()
    }
}

fn owns(x: &Array) -> bool {
    !x.tensor().is_view() && !x.tensor().storage().is_foreign()
}

/// Bytes of the object: its head, a size and a stride for each axis, and the elements if they are its own.
pub fn object_bytes(x: &Array) -> usize {
    const HEAD: usize = 96;
    let elements = if owns(x) {
        x.len() * x.dtype().size()
    } else {
        0
    };
    HEAD + 2 * size_of::<isize>() * x.ndim() + elements
}

/// `x.real = value`, `x.imag = value`.
pub fn set_part(
    slf: &Bound<'_, PyArray>,
    part: &'static OpDef,
    value: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let py = slf.py();
    let all = PyEllipsis::get(py);
    if slf.get().with(py, |x| x.dtype().is_complex()) {
        let seen = unary(slf, part)?;
        return index::set(seen.bind(py).cast::<PyArray>()?, all.as_any(), value);
    }
    if part.name == "imag" {
        return Err(PyTypeError::new_err(
            "array does not have imaginary part to set",
        ));
    }
    index::set(slf, all.as_any(), value)
}

/// `x.flags.writeable = ...`.
pub fn set_writeable(slf: &Bound<'_, PyArray>, writeable: bool) -> PyResult<()> {
    let py = slf.py();
    let array = slf.get().array(py);
    if writeable && array.tensor().storage().is_read_only() {
        return Err(PyValueError::new_err(
            "cannot set WRITEABLE flag to True of this array",
        ));
    }
    slf.get().adopt(py, array.locked(!writeable));
    Ok(())
}

/// What the array is a view of; where no array object is known, all that its storage holds, as one row. `None` if the memory is its own.
pub fn base(slf: &Bound<'_, PyArray>) -> PyResult<Option<Py<PyArray>>> {
    let py = slf.py();
    if let Some(base) = slf.get().viewed(py) {
        return Ok(Some(base));
    }
    let whole = slf.get().with(py, |x| {
        let len = x.tensor().storage().len_bytes() / x.dtype().size();
        (!owns(x)).then(|| {
            let layout = Layout::contiguous(&[len]);
            Tensor::new(x.tensor().storage().clone(), layout, x.dtype())
        })
    });
    let whole = whole.transpose().map_err(|e| raise(py, e.into()))?;
    whole
        .map(|whole| PyArray::wrap(py, Array::from_tensor(whole)))
        .transpose()
}

/// Refuses to change what an array is while the tape knows it.
fn check_unrecorded(array: &Array, what: &str) -> PyResult<()> {
    if array.entry().is_some() {
        return Err(PyValueError::new_err(format!(
            "cannot set the {what} of a variable or a recorded array"
        )));
    }
    Ok(())
}

/// `x.shape = ...`.
pub fn set_shape(slf: &Bound<'_, PyArray>, sizes: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = slf.py();
    let array = slf.get().array(py);
    check_unrecorded(&array, "shape")?;
    let Some(sizes) = convert::integers(sizes)? else {
        return Err(PyTypeError::new_err(
            "shape must be an integer or a tuple of integers",
        ));
    };
    let sizes: SmallVec<[isize; 4]> = sizes.iter().map(|&size| size as isize).collect();
    let layout = array.layout().reshape(&sizes);
    let Some(layout) = layout.map_err(|e| raise(py, Error::from(e)))? else {
        return Err(PyAttributeError::new_err(
            "only a copy of this array can have that shape: use `.reshape()`",
        ));
    };
    let seen = array.tensor().with_layout(layout);
    // The array is what it was: a view only if it was one.
    let seen = match owns(&array) {
        true => Tensor::new(seen.storage().clone(), seen.layout().clone(), seen.dtype())
            .map_err(|e| raise(py, e.into()))?
            .locked(array.tensor().is_read_only()),
        false => seen,
    };
    slf.get().adopt(py, Array::from_tensor(seen));
    Ok(())
}

/// `x.dtype = ...`: the same bytes as another type.
pub fn set_dtype(slf: &Bound<'_, PyArray>, dtype: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = slf.py();
    let array = slf.get().array(py);
    check_unrecorded(&array, "dtype")?;
    let seen = seen_as(py, &array, convert::dtype(dtype)?)?;
    slf.get().adopt(py, seen);
    Ok(())
}

fn seen_as(py: Python<'_>, array: &Array, dtype: mxnet::tensor::DType) -> PyResult<Array> {
    let seen = array.tensor().with_dtype_view(dtype);
    // NumPy calls a misfit of sizes a `ValueError`.
    seen.map(Array::from_tensor)
        .map_err(|e| raise(py, Error::value("view", e.to_string())))
}

/// The object as a class of arrays, if it is one.
fn array_class<'py>(object: &Bound<'py, PyAny>) -> Option<Bound<'py, PyType>> {
    let class = object.cast::<PyType>().ok()?;
    class
        .is_subclass_of::<PyArray>()
        .is_ok_and(|ours| ours)
        .then(|| class.clone())
}

/// `x.view(dtype)`, `x.view(type)`.
pub fn view(
    slf: &Bound<'_, PyArray>,
    dtype: Option<&Bound<'_, PyAny>>,
    class: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<PyArray>> {
    let py = slf.py();
    if dtype.is_none()
        && class.is_none()
        && slf.is_exact_instance_of::<PyArray>()
        && Flags::current().may_move()
    {
        let layout = slf.get().with(py, |x| x.layout().clone());
        return PyArray::shown(py, &layout, slf);
    }
    // A class of arrays may stand in the place of the dtype.
    let (dtype, class) = match (dtype, class) {
        (Some(first), None) if array_class(first).is_some() => (None, Some(first)),
        other => other,
    };
    let class = match class {
        None => slf.get_type(),
        Some(class) => array_class(class).ok_or_else(|| {
            PyTypeError::new_err("type must be mxnet.numpy.ndarray or a class derived from it")
        })?,
    };
    let dtype = dtype.map(convert::dtype).transpose()?;
    let array = slf.get().array(py);
    if let Some(dtype) = dtype.filter(|&d| d != array.dtype()) {
        let seen = seen_as(py, &array.detach(), dtype)?;
        return making::wrap_view(&class, seen, slf);
    }
    let all = index::get(slf, PyEllipsis::get(py).as_any())?;
    if class.is(py.get_type::<PyArray>()) {
        return Ok(all);
    }
    making::wrap_view(&class, all.get().array(py), slf)
}

/// A view of the parts of complex numbers; for imaginary parts of real ones, zeros. `None`: take the general way.
#[inline]
pub fn part(slf: &Bound<'_, PyArray>, part: usize) -> PyResult<Option<Py<PyAny>>> {
    let py = slf.py();
    if slf.get().is_scalar() || !Flags::current().may_move() {
        return Ok(None);
    }
    let x = slf.get().look(py);
    if x.is_weak() {
        return Ok(None);
    }
    if !x.dtype().is_complex() {
        let zeros = no_parts(&x);
        x.end();
        return match zeros.map_err(|error| raise(py, error))? {
            Some((zeros, layout)) => Ok(Some(PyArray::of_source(py, zeros, &layout)?.into_any())),
            None => Ok(None),
        };
    }
    let (layout, dtype) = (x.layout().component(part), x.dtype().real());
    x.end();
    let view = PyArray::shown_of(py, &layout, Some(dtype), false, slf)?;
    Ok(Some(view.into_any()))
}

/// `x.fill(value)`.
pub fn fill(slf: &Bound<'_, PyArray>, value: &Bound<'_, PyAny>) -> PyResult<()> {
    if index::fill(slf, value)? {
        return Ok(());
    }
    let dtype = slf.get().with(slf.py(), Array::dtype);
    if convert::value_for(value, dtype)?.array().len() != 1 {
        return Err(PyValueError::new_err(
            "fill takes a number or an array of one element",
        ));
    }
    index::set(slf, PyEllipsis::get(slf.py()).as_any(), value)
}

/// `x.resize(new_shape)`: in place; what is new is zero. With `refcheck` nobody else may hold the memory.
pub fn resize(
    slf: &Bound<'_, PyArray>,
    new_shape: &Bound<'_, PyTuple>,
    refcheck: bool,
) -> PyResult<()> {
    let py = slf.py();
    let core = |error| raise(py, error);
    let given = match new_shape.len() {
        0 => return Ok(()),
        1 => new_shape.get_item(0)?,
        _ => new_shape.clone().into_any(),
    };
    if given.is_none() {
        return Ok(());
    }
    slf.get().with(py, |x| check_unrecorded(x, "shape"))?;
    let Some(sizes) = convert::integers(&given)? else {
        return Err(PyTypeError::new_err(format!(
            "the new shape must be an integer or a tuple of integers, not '{}'",
            given.get_type().name()?
        )));
    };
    let sizes = sizes.iter().map(|&n| usize::try_from(n).ok());
    let Some(sizes) = sizes.collect::<Option<SmallVec<[usize; 4]>>>() else {
        return Err(PyValueError::new_err(
            "all sizes of the new shape must be non-negative",
        ));
    };
    if slf.get().with(py, |x| x.shape() == &sizes[..]) {
        return Ok(());
    }
    let array = slf.get().array(py);
    let len = mxnet::tensor::checked_len(&sizes).map_err(|e| raise(py, e.into()))?;
    if len == array.len() {
        // No memory is taken or given back, so whose it is does not matter.
        return set_shape(slf, &PyTuple::new(py, &sizes)?.into_any());
    }
    if !owns(&array) {
        return Err(PyValueError::new_err(
            "cannot resize this array: it does not own its data",
        ));
    }
    py.detach(|| array.wait_to_write()).map_err(core)?;
    // One reference is the object's, one is this function's.
    if refcheck && std::sync::Arc::strong_count(array.tensor().storage()) > 2 {
        return Err(PyValueError::new_err(
            "cannot resize an array that has views; with refcheck=False they keep the memory as it was",
        ));
    }
    let fresh = mxnet::ops::creation::zeros(&[len], array.dtype(), array.device()).map_err(core)?;
    let kept = len.min(array.len());
    let row = |x: &Array| {
        let layout = x.layout().slice(0, None, Some(kept as isize), None)?;
        Ok(Array::from_tensor(x.tensor().with_layout(layout)))
    };
    let flat = array.reshape(&[array.len()]).map_err(core)?;
    let moved = row(&flat).and_then(|from| shape::assign(&row(&fresh)?, &from));
    moved.map_err(core)?;
    let layout = Layout::contiguous(&sizes);
    let whole = Tensor::new(fresh.tensor().storage().clone(), layout, array.dtype());
    let whole = whole.map_err(|e| raise(py, e.into()))?;
    slf.get().adopt(py, Array::from_tensor(whole));
    Ok(())
}

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
pub fn set_flat(slf: &Bound<'_, PyArray>, value: &Bound<'_, PyAny>) -> PyResult<()> {
    Flat::of(slf).__setitem__(PySlice::full(slf.py()).as_any(), value)
}

/// Takes over the slots of iterators that loops call.
pub fn register(py: Python<'_>) -> PyResult<()> {
    /// `next(flat)`: null without an exception ends a loop.
    unsafe extern "C" fn next(slf: *mut ffi::PyObject) -> *mut ffi::PyObject {
        // SAFETY: Python calls the slot with an object of the class, which has no derived ones, the lock held.
        let (py, slf) = unsafe {
            let py = Python::assume_attached();
            (
                py,
                Borrowed::<PyAny>::from_ptr(py, slf).cast_unchecked::<Flat>(),
            )
        };
        let mut is_over = false;
        let object = guarded(py, "flat", || match slf.get().step(py)? {
            Some(element) => Ok(element.into_any()),
            None => {
                is_over = true;
                Ok(py.None())
            }
        });
        if is_over {
            // SAFETY: the reference to None is ours.
            unsafe { ffi::Py_DECREF(object) };
            return std::ptr::null_mut();
        }
        object
    }
    /// `iter(flat)`: itself.
    unsafe extern "C" fn itself(slf: *mut ffi::PyObject) -> *mut ffi::PyObject {
        // SAFETY: a live object.
        unsafe { ffi::Py_INCREF(slf) };
        slf
    }
    /// `len(flat)`.
    unsafe extern "C" fn length(slf: *mut ffi::PyObject) -> ffi::Py_ssize_t {
        // SAFETY: as above.
        let (py, slf) = unsafe {
            let py = Python::assume_attached();
            (
                py,
                Borrowed::<PyAny>::from_ptr(py, slf).cast_unchecked::<Flat>(),
            )
        };
        slf.get().array.get().with(py, Array::len) as ffi::Py_ssize_t
    }
    let class = py.get_type::<Flat>();
    for (number, function) in [
        (ffi::Py_tp_iternext, next as *mut c_void),
        (ffi::Py_tp_iter, itself as *mut c_void),
        (ffi::Py_mp_length, length as *mut c_void),
    ] {
        if let Some(slot) = Slot::find(&class, number)? {
            // SAFETY: each function stands beside the slot whose form it has.
            unsafe { slot.put(function) };
        }
    }
    Ok(())
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

/// `x.copyto(other)`: into an array, which is returned, or onto a device.
pub fn copy_to(slf: &Bound<'_, PyArray>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyArray>> {
    let py = slf.py();
    if let Ok(target) = other.cast::<PyArray>() {
        if target.is(slf) {
            return Ok(target.clone().unbind());
        }
        index::set(target, PyEllipsis::get(py).as_any(), slf.as_any())?;
        return Ok(target.clone().unbind());
    }
    let device = crate::device::extract(other)?;
    let array = slf.get().array(py);
    let moved = if array.device() == device {
        array.copy()
    } else {
        array.to_device(device)
    };
    PyArray::wrap(py, moved.map_err(|error| raise(py, error))?)
}
