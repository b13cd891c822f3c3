//! Memory and values shared with the rest of Python: NumPy, buffers, lists, numbers, text, pickles.

use std::ffi::{c_char, c_int, c_long, c_void};
use std::ptr;

use mxnet::ops::{Array, Error};
use mxnet::tensor::{DType, Device, DeviceKind, Layout, Scalar, Storage, Tensor};
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::array::PyArray;
use crate::convert;
use crate::error::raise;

/// Whether memory of a foreign array may be used as it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// Yes, writes go through both ways.
    Allowed,
    /// No: a copy.
    Never,
}

/// Whether the object is an array of another library (or a NumPy scalar).
pub fn is_array_like(object: &Bound<'_, PyAny>) -> bool {
    let py = object.py();
    object
        .hasattr(pyo3::intern!(py, "__array_interface__"))
        .unwrap_or(false)
        || object
            .hasattr(pyo3::intern!(py, "__array__"))
            .unwrap_or(false)
}

/// An array from an array, a NumPy array, a buffer, nested lists, or a number.
pub fn from_object(
    object: &Bound<'_, PyAny>,
    dtype: Option<DType>,
    sharing: Sharing,
) -> PyResult<Array> {
    let py = object.py();
    let convert = |array: Array| -> PyResult<Array> {
        let array = match dtype {
            Some(dtype) => array.astype(dtype).map_err(|error| raise(py, error))?,
            None => array,
        };
        Ok(array)
    };
    if let Ok(array) = object.cast::<PyArray>() {
        let array = array.get().array(py);
        if sharing == Sharing::Never && dtype.is_none_or(|d| d == array.dtype()) {
            return array.copy().map_err(|error| raise(py, error));
        }
        return convert(array);
    }
    if let Some(value) = convert::number(object)? {
        let dtype = dtype.unwrap_or_else(|| mxnet::ops::default_dtype(value.kind()));
        if !value.fits(dtype) && value.kind() <= mxnet::tensor::Kind::Integer && dtype.is_integer()
        {
            return Err(raise(py, mxnet::ops::out_of_bounds("array", value, dtype)));
        }
        return Array::scalar(value, dtype).map_err(|error| raise(py, error));
    }
    let numpy = py.import("numpy")?;
    let listed = object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>();
    if listed {
        let (source, pure) = lists_to_numpy(&numpy, object)?;
        let array = from_numpy(&source, Sharing::Never)?;
        // Python's own floats have the default dtype; those of arrays inside the lists keep theirs.
        let default = match array.dtype() {
            DType::F64 if pure => mxnet::tensor::default_float(),
            DType::C128 if pure => mxnet::tensor::default_float().complex(),
            other if array.is_empty() && pure => {
                if other == DType::F64 {
                    mxnet::tensor::default_float()
                } else {
                    other
                }
            }
            other => other,
        };
        return array
            .astype(dtype.unwrap_or(default))
            .map_err(|error| raise(py, error));
    }
    let source = numpy.call_method1("asarray", (object,))?;
    convert(from_numpy(&source, sharing)?)
}

/// Nested sequences as a NumPy array, and whether they held Python numbers only.
fn lists_to_numpy<'py>(
    numpy: &Bound<'py, PyModule>,
    object: &Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, PyAny>, bool)> {
    let py = object.py();
    fn scan(object: &Bound<'_, PyAny>, pure: &mut bool, ours: &mut bool) -> PyResult<()> {
        for item in object.try_iter()? {
            let item = item?;
            if item.is_instance_of::<PyList>() || item.is_instance_of::<PyTuple>() {
                scan(&item, pure, ours)?;
            } else if item.is_instance_of::<PyArray>() {
                *ours = true;
                *pure = false;
            } else if convert::number(&item).ok().flatten().is_none() {
                *pure = false;
            }
        }
        Ok(())
    }
    let (mut pure, mut ours) = (true, false);
    scan(object, &mut pure, &mut ours)?;
    fn replace<'py>(py: Python<'py>, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(array) = object.cast::<PyArray>() {
            return Ok(to_numpy(array)?.into_bound(py));
        }
        if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
            let items: Vec<Bound<'py, PyAny>> = object
                .try_iter()?
                .map(|item| replace(py, &item?))
                .collect::<PyResult<_>>()?;
            return Ok(PyList::new(py, items)?.into_any());
        }
        Ok(object.clone())
    }
    let source = if ours {
        replace(py, object)?
    } else {
        object.clone()
    };
    let array = numpy.call_method1("asarray", (source,))?;
    let kind: String = array.getattr("dtype")?.getattr("kind")?.extract()?;
    if !"biufc".contains(&kind) {
        return Err(raise(
            py,
            Error::dtype(
                "array",
                format!(
                    "nested sequences of '{}' are no array of numbers",
                    array.getattr("dtype")?
                ),
            ),
        ));
    }
    Ok((array, pure))
}

/// An array from a NumPy array of numbers.
pub fn from_numpy(source: &Bound<'_, PyAny>, sharing: Sharing) -> PyResult<Array> {
    let py = source.py();
    let name: String = source.getattr("dtype")?.getattr("name")?.extract()?;
    let Some(dtype) = DType::from_name(&name) else {
        return Err(raise(
            py,
            Error::dtype(
                "array",
                format!("arrays of numbers cannot have dtype {name}"),
            ),
        ));
    };
    // Bytes in the other order, or elements between addresses, are copied by NumPy first.
    let regular: bool = source.getattr("flags")?.getattr("aligned")?.extract()?;
    let native: bool = source.getattr("dtype")?.getattr("isnative")?.extract()?;
    let source = match regular && native {
        true => source.clone(),
        false => source.call_method1(
            "astype",
            (source
                .getattr("dtype")?
                .call_method1("newbyteorder", ("=",))?,),
        )?,
    };
    let facts = source.getattr("__array_interface__")?;
    let (address, read_only): (usize, bool) = facts.get_item("data")?.extract()?;
    let shape: Vec<usize> = source.getattr("shape")?.extract()?;
    let steps: Vec<isize> = source.getattr("strides")?.extract()?;
    let size = dtype.size() as isize;
    let len: usize = shape.iter().product();
    if steps
        .iter()
        .zip(&shape)
        .any(|(s, &n)| n > 1 && s % size != 0)
    {
        return from_numpy(&source.call_method0("copy")?, sharing);
    }
    let strides: Vec<isize> = steps
        .iter()
        .zip(&shape)
        .map(|(s, &n)| if n > 1 { s / size } else { 0 })
        .collect();
    // Lowest and highest element touched, relative to the first.
    let reach = |down: bool| -> isize {
        strides
            .iter()
            .zip(&shape)
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
    // SAFETY: 1. NumPy's array owns (or keeps alive) the bytes from the lowest to the highest element. 2. `owner` keeps the array.
    let storage = unsafe {
        Storage::from_foreign(
            base as *mut u8,
            bytes,
            Device::cpu(0),
            Box::new(owner),
            read_only,
        )
    };
    let layout = Layout::strided(&shape, &strides, (-low) as usize)
        .map_err(|error| raise(py, error.into()))?;
    let array = Array::from_tensor(
        Tensor::new(storage, layout, dtype).map_err(|error| raise(py, error.into()))?,
    );
    match sharing {
        Sharing::Allowed => {
            array.tensor().storage().mark_shared();
            Ok(array)
        }
        // The copy must be complete before the caller can change the source again.
        Sharing::Never => {
            let copy = array
                .copy()
                .and_then(|copy| copy.wait_to_read().map(|()| copy));
            copy.map_err(|error| raise(py, error))
        }
    }
}

/// What a buffer view of an array keeps.
struct Exported {
    shape: Vec<isize>,
    strides: Vec<isize>,
    _tensor: Tensor,
}

/// PEP 3118 format of a data type.
fn format(dtype: DType) -> &'static std::ffi::CStr {
    match dtype {
        DType::Bool => c"?",
        DType::I8 => c"b",
        DType::I16 => c"h",
        DType::I32 => c"i",
        // NumPy tells `long` from `long long`, and its int64 is the first where both have 8 bytes.
        DType::I64 if size_of::<c_long>() == 8 => c"l",
        DType::U64 if size_of::<c_long>() == 8 => c"L",
        DType::I64 => c"q",
        DType::U8 => c"B",
        DType::U16 | DType::BF16 => c"H",
        DType::U32 => c"I",
        DType::U64 => c"Q",
        DType::F16 => c"e",
        DType::F32 => c"f",
        DType::F64 => c"d",
        DType::C64 => c"Zf",
        DType::C128 => c"Zd",
    }
}

/// A tensor that NumPy looks at for the time of one copy.
#[pyclass(frozen)]
struct Window {
    tensor: Tensor,
}

#[pymethods]
impl Window {
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        _flags: c_int,
    ) -> PyResult<()> {
        // SAFETY: Python passes a buffer to fill.
        unsafe { export(slf.as_any(), &slf.get().tensor, view, true) };
        Ok(())
    }

    unsafe fn __releasebuffer__(&self, view: *mut ffi::Py_buffer) {
        // SAFETY: Python passes a buffer that `__getbuffer__` filled.
        unsafe { release_buffer(view) }
    }
}

/// Fills a buffer view of a complete tensor.
///
/// # Safety
/// `view` may be written.
unsafe fn export(
    owner: &Bound<'_, PyAny>,
    tensor: &Tensor,
    view: *mut ffi::Py_buffer,
    read_only: bool,
) {
    let exported = Box::new(Exported {
        shape: tensor.shape().iter().map(|&n| n as isize).collect(),
        strides: tensor.byte_strides().to_vec(),
        _tensor: tensor.clone(),
    });
    let exported = Box::into_raw(exported);
    // SAFETY: 1. `view` may be written (contract). 2. `exported` lives until `release_buffer` takes it back.
    unsafe {
        (*view).obj = owner.clone().into_ptr();
        (*view).buf = tensor.data_ptr().cast::<c_void>();
        (*view).len = (tensor.len() * tensor.dtype().size()) as isize;
        (*view).readonly = c_int::from(read_only);
        (*view).itemsize = tensor.dtype().size() as isize;
        (*view).format = format(tensor.dtype()).as_ptr().cast_mut().cast::<c_char>();
        (*view).ndim = tensor.shape().len() as c_int;
        (*view).shape = (*exported).shape.as_mut_ptr();
        (*view).strides = (*exported).strides.as_mut_ptr();
        (*view).suboffsets = ptr::null_mut();
        (*view).internal = exported.cast::<c_void>();
    }
}

/// Fills a buffer view of an array: waits, then shows its memory. The storage is synchronous from then on.
///
/// # Safety
/// `view` may be written.
pub unsafe fn fill_buffer(
    slf: &Bound<'_, PyArray>,
    view: *mut ffi::Py_buffer,
    flags: c_int,
) -> PyResult<()> {
    let py = slf.py();
    // SAFETY: `view` may be written (contract); Python asks for a null owner on failure.
    unsafe { (*view).obj = ptr::null_mut() };
    let array = slf.get().array(py);
    let storage = array.tensor().storage().clone();
    if storage.is_read_only() && flags & ffi::PyBUF_WRITABLE == ffi::PyBUF_WRITABLE {
        return Err(PyBufferError::new_err("the array is read-only"));
    }
    if flags & ffi::PyBUF_STRIDES != ffi::PyBUF_STRIDES && !array.layout().is_contiguous() {
        return Err(PyBufferError::new_err(
            "the array is not contiguous and the consumer takes no strides",
        ));
    }
    py.detach(|| array.wait_to_write())
        .map_err(|error| raise(py, error))?;
    storage.mark_shared();
    // SAFETY: `view` may be written (contract).
    unsafe { export(slf.as_any(), array.tensor(), view, storage.is_read_only()) };
    Ok(())
}

/// Takes back what a buffer view kept.
///
/// # Safety
/// `view` was filled by [`export`].
pub unsafe fn release_buffer(view: *mut ffi::Py_buffer) {
    // SAFETY: `internal` is the box that `export` leaked (contract); it is taken back once.
    drop(unsafe { Box::from_raw((*view).internal.cast::<Exported>()) });
}

/// The elements as a NumPy array with memory of its own.
pub fn to_numpy(slf: &Bound<'_, PyArray>) -> PyResult<Py<PyAny>> {
    let py = slf.py();
    let array = slf.get().array(py);
    array_to_numpy(py, &array)
}

/// The elements as a NumPy array with memory of its own.
pub fn array_to_numpy(py: Python<'_>, array: &Array) -> PyResult<Py<PyAny>> {
    if array.is_ready() {
        array.wait_to_read().map_err(|error| raise(py, error))?;
    } else {
        py.detach(|| array.wait_to_read())
            .map_err(|error| raise(py, error))?;
    }
    let numpy = py.import(pyo3::intern!(py, "numpy"))?;
    let window = Bound::new(
        py,
        Window {
            tensor: array.tensor().clone(),
        },
    )?;
    let copied = numpy.call_method1(pyo3::intern!(py, "array"), (window,))?;
    if array.dtype() == DType::BF16 {
        return bf16_from_bits(py, &copied);
    }
    Ok(copied.unbind())
}

/// bfloat16 bits in `ml_dtypes`' type, or widened to float32 if that package is missing.
fn bf16_from_bits(py: Python<'_>, bits: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    if let Ok(ml) = py.import("ml_dtypes") {
        return Ok(bits
            .call_method1("view", (ml.getattr("bfloat16")?,))?
            .unbind());
    }
    let wide = bits.call_method1("astype", ("uint32",))?;
    Ok(wide
        .call_method1("__lshift__", (16,))?
        .call_method1("astype", ("uint32",))?
        .call_method1("view", ("float32",))?
        .unbind())
}

/// A number as Python has it.
pub fn scalar_to_python(py: Python<'_>, value: Scalar) -> PyResult<Py<PyAny>> {
    Ok(match value {
        Scalar::Bool(x) => pyo3::types::PyBool::new(py, x)
            .to_owned()
            .into_any()
            .unbind(),
        Scalar::I64(x) => x.into_pyobject(py)?.into_any().unbind(),
        Scalar::U64(x) => x.into_pyobject(py)?.into_any().unbind(),
        Scalar::F64(x) => x.into_pyobject(py)?.into_any().unbind(),
        Scalar::C128(x) => pyo3::types::PyComplex::from_doubles(py, x.re, x.im)
            .into_any()
            .unbind(),
    })
}

fn value_of(py: Python<'_>, array: &Array) -> PyResult<Scalar> {
    let result = if array.is_ready() {
        array.item()
    } else {
        py.detach(|| array.item())
    };
    result.map_err(|error| raise(py, error))
}

/// The only element as a Python number.
pub fn scalar(slf: &Bound<'_, PyArray>) -> PyResult<Py<PyAny>> {
    let py = slf.py();
    let array = slf.get().array(py);
    scalar_to_python(py, value_of(py, &array)?)
}

/// `x.item(...)`.
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
    let Some(at) = convert::integers(&position)? else {
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

/// Truth of an array of one element.
pub fn truth(slf: &Bound<'_, PyArray>) -> PyResult<bool> {
    let py = slf.py();
    let array = slf.get().array(py);
    if array.len() != 1 {
        return Err(PyValueError::new_err(match array.len() {
            0 => {
                "The truth value of an empty array is ambiguous. Use `array.size > 0` to check that an array is not empty."
            }
            _ => {
                "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()"
            }
        }));
    }
    Ok(value_of(py, &array)?.as_bool())
}

/// Whether any element is true.
pub fn any(array: &Array) -> PyResult<bool> {
    Python::attach(|py| {
        let values = array_to_numpy(py, array)?;
        values.bind(py).call_method0("any")?.is_truthy()
    })
}

/// `int(x)`, `float(x)`, `complex(x)` of an array of one element.
pub fn number(slf: &Bound<'_, PyArray>, class: &str) -> PyResult<Py<PyAny>> {
    let py = slf.py();
    let array = slf.get().array(py);
    if array.len() != 1 {
        return Err(PyTypeError::new_err(
            "only length-1 arrays can be converted to Python scalars",
        ));
    }
    let value = scalar_to_python(py, value_of(py, &array)?)?;
    py.import("builtins")?
        .call_method1(class, (value,))
        .map(Bound::unbind)
}

/// `operator.index(x)`.
pub fn as_index(slf: &Bound<'_, PyArray>) -> PyResult<Py<PyAny>> {
    let py = slf.py();
    let array = slf.get().array(py);
    if array.ndim() != 0 || !array.dtype().is_integer() {
        return Err(PyTypeError::new_err(
            "only integer scalar arrays can be converted to a scalar index",
        ));
    }
    scalar_to_python(py, value_of(py, &array)?)
}

/// The text NumPy prints, but the dtype is left out where it is our default and stands where it is NumPy's.
pub fn repr(slf: &Bound<'_, PyArray>) -> PyResult<String> {
    let py = slf.py();
    let array = slf.get().array(py);
    let text: String = to_numpy(slf)?.bind(py).repr()?.extract()?;
    let body = text.strip_suffix(')').unwrap_or(&text);
    // NumPy puts the dtype on a line of its own where the last one is full.
    let (body, named) = match body.rsplit_once("dtype=") {
        Some((body, name)) => (body.trim_end().trim_end_matches(','), Some(name)),
        None => (body, None),
    };
    let float = mxnet::tensor::default_float();
    let mut text = body.to_owned();
    if array.dtype().is_inexact() {
        if array.dtype() != float && array.dtype() != float.complex() {
            text += &format!(", dtype={}", array.dtype().name());
        }
    } else if let Some(name) = named {
        text += &format!(", dtype={name}");
    }
    if array.device().kind() != DeviceKind::Cpu {
        text += &format!(", device={}", array.device());
    }
    Ok(text + ")")
}

/// Pickles as a NumPy array and a device.
pub fn reduce(slf: &Bound<'_, PyArray>) -> PyResult<Py<PyAny>> {
    let py = slf.py();
    let array = slf.get().array(py);
    let rebuild = py.import("mxnet._core")?.getattr("_unpickle")?;
    let values = match array.dtype() {
        DType::BF16 => {
            let bits = array.contiguous().map_err(|error| raise(py, error))?;
            array_to_numpy(
                py,
                &Array::from_tensor(
                    bits.tensor()
                        .with_dtype_view(DType::U16)
                        .map_err(|error| raise(py, error.into()))?,
                ),
            )?
        }
        _ => to_numpy(slf)?,
    };
    Ok((rebuild, (values, array.dtype().name()))
        .into_pyobject(py)?
        .into_any()
        .unbind())
}

/// The array that [`reduce`] took apart.
#[pyfunction]
pub fn _unpickle(values: &Bound<'_, PyAny>, dtype: &str) -> PyResult<Py<PyArray>> {
    let py = values.py();
    let array = from_numpy(values, Sharing::Never)?;
    let array = match DType::from_name(dtype) {
        Some(DType::BF16) => Array::from_tensor(
            array
                .tensor()
                .with_dtype_view(DType::BF16)
                .map_err(|error| raise(py, error.into()))?,
        ),
        _ => array,
    };
    PyArray::wrap(py, array)
}

/// `numpy.asarray(x)`: NumPy's own array; it shares the memory unless told to copy.
pub fn array_protocol(
    slf: &Bound<'_, PyArray>,
    dtype: Option<&Bound<'_, PyAny>>,
    copy: Option<bool>,
) -> PyResult<Py<PyAny>> {
    let py = slf.py();
    let array = slf.get().array(py);
    let numpy = py.import("numpy")?;
    let same = match dtype {
        Some(dtype) if !dtype.is_none() => convert::dtype(dtype).is_ok_and(|d| d == array.dtype()),
        _ => true,
    };
    if copy == Some(false) && (!same || array.dtype() == DType::BF16) {
        return Err(PyValueError::new_err(
            "cannot change the dtype without a copy",
        ));
    }
    let base = match copy == Some(true) || !same || array.dtype() == DType::BF16 {
        true => to_numpy(slf)?,
        false => numpy
            .call_method1(
                "asarray",
                (py.get_type::<pyo3::types::PyMemoryView>().call1((slf,))?,),
            )?
            .unbind(),
    };
    match dtype {
        Some(dtype) if !same => base
            .bind(py)
            .call_method1("astype", (dtype,))
            .map(Bound::unbind),
        _ => Ok(base),
    }
}

/// `__array_interface__`, version 3.
pub fn interface(slf: &Bound<'_, PyArray>) -> PyResult<Py<PyAny>> {
    let py = slf.py();
    let array = slf.get().array(py);
    py.detach(|| array.wait_to_write())
        .map_err(|error| raise(py, error))?;
    array.tensor().storage().mark_shared();
    let facts = PyDict::new(py);
    facts.set_item("version", 3)?;
    facts.set_item("shape", PyTuple::new(py, array.shape())?)?;
    facts.set_item("strides", PyTuple::new(py, array.tensor().byte_strides())?)?;
    let typestr = match array.dtype() {
        DType::BF16 => "<u2".into_pyobject(py)?.into_any(),
        dtype => convert::numpy_dtype(py, dtype)?.bind(py).getattr("str")?,
    };
    facts.set_item("typestr", typestr)?;
    facts.set_item(
        "data",
        (
            array.tensor().data_ptr() as usize,
            array.tensor().storage().is_read_only(),
        ),
    )?;
    Ok(facts.into_any().unbind())
}

/// Makes an array from an array, nested sequences of numbers, or a number.
///
/// Parameters
/// ----------
/// object : array_like
///     Python floats become the default float (float32, or float64 after ``npx.set_np(dtype=True)``), Python integers int64.
/// dtype : dtype or None
///     Dtype of the result; None takes it from `object`.
/// copy : bool or None
///     True always copies; False and None share memory where that is possible.
/// device, ctx : Device or None
///     Where the array is made; None is the CPU. `ctx` is the older name.
///
/// Raises
/// ------
/// TypeError
///     If `object` does not hold numbers.
#[pyfunction]
#[pyo3(signature = (object, dtype = None, *, copy = true, device = None, ctx = None))]
pub fn array(
    object: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    copy: Option<bool>,
    device: Option<&Bound<'_, PyAny>>,
    ctx: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<PyArray>> {
    make(object, dtype, copy == Some(true), device.or(ctx))
}

/// Returns `a` itself if it is an array of this dtype, else makes one, sharing memory where that is possible.
///
/// Parameters
/// ----------
/// a : array_like
/// dtype : dtype or None
/// copy : bool or None
///     True copies, None and False only if needed.
/// device : Device or None
///     Where the array must be.
#[pyfunction]
#[pyo3(signature = (a, dtype = None, *, copy = None, device = None))]
pub fn asarray(
    a: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    copy: Option<bool>,
    device: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<PyArray>> {
    make(a, dtype, copy == Some(true), device)
}

fn make(
    object: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    copy: bool,
    device: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<PyArray>> {
    let py = object.py();
    let dtype = dtype.map(convert::dtype).transpose()?;
    let device = device.map(crate::device::extract).transpose()?;
    if !copy
        && let Ok(array) = object.cast::<PyArray>()
        && dtype.is_none_or(|dtype| array.get().with(py, |x| x.dtype() == dtype))
        && device.is_none_or(|device| array.get().with(py, |x| x.device() == device))
    {
        return Ok(array.clone().unbind());
    }
    let sharing = if copy {
        Sharing::Never
    } else {
        Sharing::Allowed
    };
    let array = from_object(object, dtype, sharing)?;
    // An array stays where it is; anything else goes where new arrays are made.
    let home = if object.is_instance_of::<PyArray>() {
        array.device()
    } else {
        mxnet::ops::interp::current_device()
    };
    let array = array
        .to_device(device.unwrap_or(home))
        .map_err(|error| raise(py, error))?;
    PyArray::wrap(py, array)
}
