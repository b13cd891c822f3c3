//! Memory of arrays: flags, views with another dtype, `base`; and in-place changes of the array object.

use std::mem::MaybeUninit;

use mxnet::core::mode::Flags;
use mxnet::core::{Array, Error, OpDef};
use mxnet::ops::elementwise::parts::no_parts;
use mxnet::ops::shape;
use mxnet::tensor::{Layout, Tensor};
use pyo3::exceptions::{PyAttributeError, PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyEllipsis, PyTuple, PyType};
use smallvec::SmallVec;

use crate::array::{Get, PyArray};
use crate::error::raise;
use crate::gil_release::without_gil;
use crate::operators::unary;
use crate::{construct, convert, index, numbers, numpy_dtype};

/// Memory layout of an array, and whether it is writable.
#[pyclass(name = "flagsobj", module = "mxnet.numpy", frozen)]
pub struct ArrayFlags {
    array: Py<PyArray>,
}

impl ArrayFlags {
    /// The flags of an array, which reflect later changes of it.
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
    /// Whether the elements are contiguous in C order (last axis fastest).
    #[getter]
    fn c_contiguous(&self, py: Python<'_>) -> bool {
        self.ask(py, |x| x.layout().is_contiguous())
    }

    /// Whether the elements are contiguous in Fortran order (first axis fastest).
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

    /// Whether the elements are in Fortran order and not in C order.
    #[getter]
    fn fnc(&self, py: Python<'_>) -> bool {
        self.f_contiguous(py) && !self.c_contiguous(py)
    }

    /// Whether the elements are in Fortran or in C order.
    #[getter]
    fn forc(&self, py: Python<'_>) -> bool {
        self.f_contiguous(py) || self.c_contiguous(py)
    }

    /// Whether the array owns its memory: it is neither a view nor over the memory of another library.
    #[getter]
    fn owndata(&self, py: Python<'_>) -> bool {
        self.ask(py, owns)
    }

    /// Whether the array is writable. Setting it to False locks this array and views made afterwards.
    #[getter]
    fn writeable(&self, py: Python<'_>) -> bool {
        self.ask(py, |x| !x.tensor().is_read_only())
    }

    #[setter]
    fn set_writeable(&self, py: Python<'_>, writeable: bool) -> PyResult<()> {
        set_writeable(self.array.bind(py), writeable)
    }

    /// Whether elements are aligned; always true.
    #[getter]
    fn aligned(&self) -> bool {
        true
    }

    /// Whether writes go to a copy first; always false.
    #[getter]
    fn writebackifcopy(&self) -> bool {
        false
    }

    /// Whether the array is writable and aligned.
    #[getter]
    fn behaved(&self, py: Python<'_>) -> bool {
        self.writeable(py)
    }

    /// The flags as NumPy's number: 1 for C order, 2 for Fortran order, 4 if the array owns its memory, 0x100 for aligned, 0x400 for writable.
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

    /// Whether the array is behaved and in C order.
    #[getter]
    fn carray(&self, py: Python<'_>) -> bool {
        self.behaved(py) && self.c_contiguous(py)
    }

    /// Whether the array is behaved, in Fortran order and not in C order.
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

/// Bytes of the object: its head, a size and a stride for each axis, and the elements if the array owns them.
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

/// The array of which this is a view. If that array object is not known, the whole storage as a 1-d array; `None` if the array owns its memory.
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

/// An error if the array is recorded: its shape, dtype or memory must not change then.
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
    let Some(sizes) = numbers::integers(sizes)? else {
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
    // If the array was not a view, it must not become one.
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
    let seen = seen_as(py, &array, numpy_dtype::read(dtype)?)?;
    slf.get().adopt(py, seen);
    Ok(())
}

fn seen_as(py: Python<'_>, array: &Array, dtype: mxnet::tensor::DType) -> PyResult<Array> {
    let seen = array.tensor().with_dtype_view(dtype);
    // NumPy raises `ValueError` for incompatible sizes.
    seen.map(Array::from_tensor)
        .map_err(|e| raise(py, Error::value("view", e.to_string())))
}

/// The object, if it is a subclass of `ndarray`.
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
        && Flags::current().allows_copies()
    {
        let layout = slf.get().with(py, |x| x.layout().clone());
        return PyArray::view_with_layout(py, &layout, slf);
    }
    // `dtype` may also be a class of arrays.
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
    let dtype = dtype.map(numpy_dtype::read).transpose()?;
    let array = slf.get().array(py);
    if let Some(dtype) = dtype.filter(|&d| d != array.dtype()) {
        let seen = seen_as(py, &array.detach(), dtype)?;
        return construct::wrap_view(&class, seen, slf);
    }
    let all = index::get(slf, PyEllipsis::get(py).as_any())?;
    if class.is(py.get_type::<PyArray>()) {
        return Ok(all);
    }
    let all = all.into_bound(py);
    construct::wrap_view(&class, all.get().array(py), slf)
}

/// A view of the real or imaginary parts of complex elements; zeros for imaginary parts of real elements. `None`: take the general path.
#[inline]
pub fn part(slf: &Bound<'_, PyArray>, part: usize) -> PyResult<Option<Py<PyAny>>> {
    let py = slf.py();
    if slf.get().is_scalar() || !Flags::current().allows_copies() {
        return Ok(None);
    }
    let x = slf.get().borrow(py);
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
    let dtype = x.dtype().real();
    x.end();
    let layout = |x: &Layout, to: &mut MaybeUninit<Layout>| {
        x.write_component(part, to);
        true
    };
    // SAFETY: the parts lie within the complex elements.
    let view = unsafe { PyArray::view_by(slf, Some(dtype), layout) }?;
    Ok(view.map(Py::into_any))
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

/// `x.resize(new_shape)` in place; new elements are zero. With `refcheck`, the memory must not be shared.
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
    let Some(sizes) = numbers::integers(&given)? else {
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
        // The memory does not change, so it may be shared.
        return set_shape(slf, &PyTuple::new(py, &sizes)?.into_any());
    }
    if !owns(&array) {
        return Err(PyValueError::new_err(
            "cannot resize this array: it does not own its data",
        ));
    }
    without_gil(py, || array.wait_to_write()).map_err(core)?;
    // One reference is the array object's, one is this function's.
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

/// `x.copyto(other)`: copies to an array, which is returned, or to a device.
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
