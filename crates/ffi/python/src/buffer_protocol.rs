//! Arrays over foreign memory: NumPy arrays and objects with the buffer protocol.

use mxnet::core::{Array, Error};
use mxnet::tensor::{DType, Device, Kind, Layout, Storage, Tensor};
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFloat, PyString, PyTuple, PyType};
use smallvec::SmallVec;

use crate::array::PyArray;
use crate::error::raise;
use crate::once_box::OnceBox;
use crate::sharing::{Sharing, complete_copy};
use crate::{numpy_abi, numpy_dtype};

/// NumPy's class `ndarray`.
static ARRAY: OnceBox<Py<PyType>> = OnceBox::new();

/// The dtype of an array of exactly NumPy's class, if it is one of ours in native byte order.
#[inline]
pub fn numpys_dtype(object: &Bound<'_, PyAny>) -> PyResult<Option<DType>> {
    let py = object.py();
    if let Some(fields) = numpy_abi::fields(object) {
        return numpy_abi::dtype(py, fields);
    }
    let class = ARRAY.import(py, "numpy", "ndarray")?;
    if !object.get_type().is(class) {
        return Ok(None);
    }
    numpy_dtype::known(&object.getattr(crate::once_box::interned!(py, "dtype"))?)
}

/// A new, uninitialised array of NumPy's class.
pub struct NewNumPys<'py> {
    pub object: Bound<'py, PyAny>,
    /// Address of the first element.
    pub address: *mut u8,
    /// Its strides in elements; `None` for C order.
    pub strides: Option<SmallVec<[isize; 4]>>,
}

/// A new NumPy array with the shape, the dtype and the memory order of `like`.
pub fn new_numpys<'py>(py: Python<'py>, like: &Array) -> PyResult<NewNumPys<'py>> {
    let is_dense = like.layout().is_contiguous();
    if is_dense && let Some((object, address)) = numpy_abi::empty(py, like.shape(), like.dtype())? {
        return Ok(NewNumPys {
            object,
            address,
            strides: None,
        });
    }
    let class = ARRAY.import(py, "numpy", "ndarray")?;
    let shape = PyTuple::new(py, like.shape())?;
    let dtype = numpy_dtype::object(py, like.dtype())?.into_bound(py);
    if is_dense {
        let object = class.call1((shape, dtype))?;
        return Ok(NewNumPys {
            address: address_of(&object)?,
            object,
            strides: None,
        });
    }
    // As NumPy's order 'K': axes sorted by descending absolute stride, in their own order where equal.
    let mut axes: SmallVec<[usize; 4]> = (0..like.ndim()).collect();
    axes.sort_by_key(|&axis| std::cmp::Reverse(like.layout().strides()[axis].unsigned_abs()));
    let mut strides: SmallVec<[isize; 4]> = SmallVec::from_elem(0, like.ndim());
    let mut step = 1;
    for &axis in axes.iter().rev() {
        strides[axis] = step;
        step *= like.shape()[axis] as isize;
    }
    let size = like.dtype().size() as isize;
    let steps = PyTuple::new(py, strides.iter().map(|stride| stride * size))?;
    let object = class.call1((shape, dtype, py.None(), 0, steps))?;
    Ok(NewNumPys {
        address: address_of(&object)?,
        object,
        strides: Some(strides),
    })
}

/// The address of the first element of a NumPy array.
fn address_of(source: &Bound<'_, PyAny>) -> PyResult<*mut u8> {
    let seen = Seen::of(source, false)?;
    seen.map(|seen| seen.address as *mut u8)
        .ok_or_else(|| PyBufferError::new_err("a NumPy array does not expose its memory"))
}

/// An array from a NumPy array with a dtype that we have.
pub fn from_numpy(source: &Bound<'_, PyAny>, sharing: Sharing) -> PyResult<Array> {
    let py = source.py();
    if let Some(dtype) = numpys_dtype(source)? {
        if sharing == Sharing::Never
            && let Some(array) = copied(source, dtype)?
        {
            return Ok(array);
        }
        if let Some(array) = share_memory(source, dtype, sharing)? {
            return Ok(array);
        }
    }
    let Some(dtype) = numpy_dtype::of_array(source)? else {
        let name: String = source.getattr("dtype")?.getattr("name")?.extract()?;
        let problem = format!("arrays of numbers cannot have dtype {name}");
        if let Some(object) = no_number(source)? {
            let class = object.get_type().name()?;
            let error = Error::dtype(
                "array",
                format!("{problem}: found an object of class {class}"),
            );
            return Err(raise(
                py,
                match object.hasattr("__iter__")? {
                    true => error.with_hint("make a list of its items"),
                    false => error,
                },
            ));
        }
        let hint = "name the dtype to convert the elements to, such as dtype='float32'";
        return Err(raise(py, Error::dtype("array", problem).with_hint(hint)));
    };
    // NumPy first copies elements of the other byte order, or misaligned ones.
    let kind = source.getattr("dtype")?;
    let is_native: bool = kind.getattr("isnative")?.extract()?;
    // The buffer protocol does not know dtypes of extensions (bfloat16), but their bits can be viewed as integers.
    let shown = match dtype {
        DType::BF16 => source.call_method1("view", ("uint16",))?,
        _ => source.clone(),
    };
    let Some(seen) = Seen::of(&shown, false)? else {
        let problem = format!("an array of dtype {dtype} does not expose its memory");
        return Err(raise(py, Error::dtype("array", problem)));
    };
    if is_native && seen.address % alignment(dtype) == 0 {
        return over(source, dtype, &seen, sharing);
    }
    sharing.copies("the elements are not aligned, or in foreign byte order")?;
    let native = kind.call_method1("newbyteorder", ("=",))?;
    from_numpy(&source.call_method1("astype", (native,))?, sharing)
}

/// The first object in a NumPy array of objects that is neither a number nor text, which could be converted. Memory that NumPy did not allocate is not
/// looked at: an object that describes its own memory may say anything of it.
fn no_number<'py>(source: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let owns = source.getattr("flags")?.getattr("owndata")?;
    if source.getattr("dtype")?.getattr("kind")?.ne("O")? || !owns.is_truthy()? {
        return Ok(None);
    }
    let number = source.py().import("numbers")?.getattr("Number")?;
    for object in source.getattr("flat")?.try_iter()? {
        let object = object?;
        if !object.is_instance(&number)? && !object.is_instance_of::<PyString>() {
            return Ok(Some(object));
        }
    }
    Ok(None)
}

/// A copy of an array of NumPy's own class with this dtype. `None` if it is not contiguous, or too large to be copied while the GIL is held.
fn copied(source: &Bound<'_, PyAny>, dtype: DType) -> PyResult<Option<Array>> {
    const MAX_BYTES: usize = 16 << 10;
    let Some(fields) = numpy_abi::fields(source).filter(|fields| fields.is_dense()) else {
        return Ok(None);
    };
    let shape: SmallVec<[usize; 4]> = fields.shape().iter().map(|&n| n as usize).collect();
    let len_bytes = shape.iter().product::<usize>() * dtype.size();
    if len_bytes > MAX_BYTES {
        return Ok(None);
    }
    let array = Array::uninitialised(&shape, dtype, Device::cpu(0));
    let array = array.map_err(|error| raise(source.py(), error))?;
    // SAFETY: 1. NumPy's array is dense with this many bytes, and no other thread writes them while this one holds the GIL. 2. the new array has as
    // many bytes and is not shared yet.
    unsafe {
        let to = array.tensor().data_ptr();
        std::ptr::copy_nonoverlapping(fields.address(), to, len_bytes);
    }
    Ok(Some(array))
}

/// An array that shares the memory of an array of exactly NumPy's class, whose dtype [`numpys_dtype`] returned. `None` if elements are misaligned.
pub fn share_memory(
    source: &Bound<'_, PyAny>,
    dtype: DType,
    sharing: Sharing,
) -> PyResult<Option<Array>> {
    match Seen::of(source, false)? {
        Some(seen) if seen.address % alignment(dtype) == 0 => {
            over(source, dtype, &seen, sharing).map(Some)
        }
        _ => Ok(None),
    }
}

/// An array over the memory of a NumPy array, as described by `seen`.
fn over(source: &Bound<'_, PyAny>, dtype: DType, seen: &Seen, sharing: Sharing) -> PyResult<Array> {
    let py = source.py();
    let Seen {
        address,
        read_only,
        shape,
        steps,
        ..
    } = seen;
    let size = dtype.size() as isize;
    let len: usize = shape.iter().product();
    if steps
        .iter()
        .zip(shape)
        .any(|(s, &n)| n > 1 && s % size != 0)
    {
        sharing.copies("the strides are not multiples of the element size")?;
        return from_numpy(&source.call_method0("copy")?, sharing);
    }
    let strides: SmallVec<[isize; 4]> = steps
        .iter()
        .zip(shape)
        .map(|(s, &n)| if n > 1 { s / size } else { 0 })
        .collect();
    // The lowest or highest element touched, relative to the first element.
    let reach = |down: bool| -> isize {
        strides
            .iter()
            .zip(shape)
            .filter(|(s, _)| (**s < 0) == down)
            .map(|(s, &n)| s * (n.max(1) as isize - 1))
            .sum()
    };
    let (low, high) = if len == 0 {
        (0, -1)
    } else {
        (reach(true), reach(false))
    };
    let base = address.wrapping_add_signed(low * size);
    let bytes = ((high - low + 1) * size) as usize;
    let owner = source.clone().unbind();
    // SAFETY: 1. NumPy's array owns (or keeps alive) the bytes from the lowest to the highest element. 2. `owner` keeps that array alive.
    let storage = unsafe {
        Storage::from_foreign(
            base as *mut u8,
            bytes,
            Device::cpu(0),
            Box::new(owner),
            *read_only,
        )
    };
    let layout = Layout::strided(shape, &strides, (-low) as usize)
        .map_err(|error| raise(py, error.into()))?;
    let array = Array::from_tensor(
        Tensor::new(storage, layout, dtype).map_err(|error| raise(py, error.into()))?,
    );
    match sharing {
        Sharing::Allowed | Sharing::Required => {
            array.tensor().storage().mark_shared();
            Ok(array)
        }
        Sharing::Never => complete_copy(py, &array),
    }
}

/// A 1-d array over the memory of a buffer, `offset` bytes from its start. `None` if the general path must handle it or report the error.
#[pyfunction]
pub fn of_buffer(
    py: Python<'_>,
    buffer: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    count: isize,
    offset: isize,
) -> PyResult<Option<Py<PyArray>>> {
    let dtype = match dtype {
        Some(dtype) if !dtype.is(py.get_type::<PyFloat>()) => numpy_dtype::read(dtype)?,
        _ => mxnet::tensor::promotion().default_of(Kind::Float),
    };
    // Python never moves `bytes` objects; for other objects, a memoryview keeps the memory in place.
    let owner = match buffer.is_exact_instance_of::<PyBytes>() {
        true => Some(buffer.clone()),
        // SAFETY: a live object; the result is a new one, or null with an exception set.
        false => unsafe {
            let view = ffi::PyMemoryView_FromObject(buffer.as_ptr());
            Bound::from_owned_ptr_or_opt(py, view)
        },
    };
    let Some(owner) = owner else {
        drop(PyErr::take(py));
        return Ok(None);
    };
    let Some(seen) = Seen::of(buffer, true)? else {
        return Ok(None);
    };
    let (size, offset) = (dtype.size(), offset as usize);
    // A negative offset is a very large unsigned one here, so the subtraction fails.
    let Some(rest) = seen.bytes.checked_sub(offset) else {
        return Ok(None);
    };
    let len = match usize::try_from(count) {
        Ok(count) => count,
        Err(_) if rest % size == 0 => rest / size,
        Err(_) => return Ok(None),
    };
    let address = seen.address.wrapping_add(offset);
    if rest == 0
        || len == 0
        || len.checked_mul(size).is_none_or(|bytes| bytes > rest)
        || address % alignment(dtype) != 0
        || dtype == DType::BF16
    {
        return Ok(None);
    }
    // SAFETY: 1. the object exported `rest` bytes from this address on. 2. `owner` keeps them in place.
    let storage = unsafe {
        Storage::from_foreign(
            address as *mut u8,
            len * size,
            Device::cpu(0),
            Box::new(owner.unbind()),
            seen.read_only,
        )
    };
    let tensor = Tensor::new(storage, Layout::contiguous(&[len]), dtype);
    let array = Array::from_tensor(tensor.map_err(|error| raise(py, error.into()))?);
    array.tensor().storage().mark_shared();
    PyArray::wrap(py, array).map(Some)
}

/// The alignment of elements of a dtype.
fn alignment(dtype: DType) -> usize {
    match dtype {
        DType::C64 => align_of::<f32>(),
        DType::C128 => align_of::<f64>(),
        other => other.size(),
    }
}

/// Number of bytes that an object exports through the buffer protocol; `None` if it exports no contiguous memory.
pub fn num_bytes(object: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
    Ok(Seen::of(object, true)?.map(|seen| seen.bytes))
}

/// Description of an object's memory, from the buffer protocol. The buffer is released immediately, so the caller must keep the memory in place.
struct Seen {
    address: usize,
    /// Set for contiguous bytes only.
    bytes: usize,
    read_only: bool,
    shape: SmallVec<[usize; 4]>,
    /// Strides in bytes.
    steps: SmallVec<[isize; 4]>,
}

impl Seen {
    /// `None` if the object does not export such a buffer: with strides, or contiguous bytes if `is_contiguous`.
    fn of(object: &Bound<'_, PyAny>, is_contiguous: bool) -> PyResult<Option<Seen>> {
        let py = object.py();
        if !is_contiguous && let Some(fields) = numpy_abi::fields(object) {
            return Ok(Some(Seen {
                address: fields.address() as usize,
                bytes: 0,
                read_only: fields.is_read_only(),
                shape: fields.shape().iter().map(|&n| n as usize).collect(),
                steps: fields.strides().iter().copied().collect(),
            }));
        }
        let mut view = ffi::Py_buffer::new();
        let flags = if is_contiguous {
            ffi::PyBUF_SIMPLE
        } else {
            ffi::PyBUF_STRIDES
        };
        // SAFETY: a live object and a structure to fill.
        if unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), &raw mut view, flags) } != 0 {
            drop(PyErr::take(py));
            return Ok(None);
        }
        let ndim = if is_contiguous { 0 } else { view.ndim as usize };
        let numbers = |first: *const isize| match ndim {
            0 => &[][..],
            // SAFETY: with strides asked for, there are a length and a stride for each axis.
            _ => unsafe { std::slice::from_raw_parts(first, ndim) },
        };
        let seen = Seen {
            address: view.buf as usize,
            bytes: view.len as usize,
            read_only: view.readonly != 0,
            shape: numbers(view.shape).iter().map(|&n| n as usize).collect(),
            steps: numbers(view.strides).iter().copied().collect(),
        };
        // SAFETY: filled above.
        unsafe { ffi::PyBuffer_Release(&raw mut view) };
        Ok(Some(seen))
    }
}
