//! Data exchange with other Python objects: NumPy arrays, buffers, lists, numbers, text, pickles. What other libraries see of our memory is in
//! `exported_buffer.rs`.

use mxnet::core::fp_errors::checked_cast;
use mxnet::core::mode::Flags;
use mxnet::core::{Array, check_element, dtype_of_number};
use mxnet::tensor::{DType, Kind, Scalar};
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple, PyType};

use crate::array::{Get, PyArray};
use crate::buffer_protocol::numpys_dtype;
use crate::error::raise;
use crate::gil_release::without_gil;
use crate::sharing::{Sharing, complete_copy, of_foreign};
use crate::{nested_sequence, numbers, numpy_dtype};

pub use crate::buffer_protocol::from_numpy;

/// Whether the object is an array of another library, or exposes its memory otherwise. False for text, although NumPy makes arrays of it.
pub fn is_array_like(object: &Bound<'_, PyAny>) -> bool {
    let py = object.py();
    if object.is_instance_of::<PyArray>() {
        return true;
    }
    if object.is_none()
        || object.is_instance_of::<PyString>()
        || object.is_instance_of::<PyBytes>()
        || object.is_instance_of::<PyType>()
    {
        return false;
    }
    let has = |name| object.hasattr(name).unwrap_or(false);
    has(crate::once_box::interned!(py, "__array_interface__"))
        || has(crate::once_box::interned!(py, "__array__"))
        // SAFETY: a live object; the function accepts any.
        || unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) } == 1
        || has(crate::once_box::interned!(py, "__array_struct__"))
        || has(crate::once_box::interned!(py, "__dlpack__"))
}

/// An array from an array, a NumPy array, a buffer, nested sequences, or a number.
pub fn from_object(
    object: &Bound<'_, PyAny>,
    dtype: Option<DType>,
    sharing: Sharing,
) -> PyResult<Array> {
    from_object_of(object, dtype, sharing, 0)
}

/// A wider dtype in which numbers are read first, while floating-point errors are checked: the conversion to `dtype` can then report overflow.
fn wider(dtype: DType) -> Option<DType> {
    let is_watching = Flags::current().is_watching();
    match dtype {
        DType::F16 | DType::BF16 | DType::F32 if is_watching => Some(DType::F64),
        DType::C64 if is_watching => Some(DType::C128),
        _ => None,
    }
}

/// As [`from_object`], with sequences nested at most `most` levels deep unless `most` is 0.
pub fn from_object_of(
    object: &Bound<'_, PyAny>,
    dtype: Option<DType>,
    sharing: Sharing,
    most: usize,
) -> PyResult<Array> {
    let py = object.py();
    let core = |error| raise(py, error);
    let array = if let Ok(array) = object.cast::<PyArray>() {
        array.get().array(py)
    } else {
        // The most common objects are tested first.
        let listed = numbers::is_list(object);
        if let Some(wide) = dtype.and_then(wider)
            && (listed || numbers::number(object)?.is_some())
        {
            let array = from_object_of(object, Some(wide), sharing, most)?;
            let narrow = dtype.map(|dtype| checked_cast(&array, dtype));
            let narrow = narrow.transpose().map_err(core)?.flatten();
            return Ok(narrow.unwrap_or(array));
        }
        let numpys_own = match listed {
            true => None,
            false => numpys_dtype(object)?,
        };
        let is_numpys = numpys_own.is_some();
        // The dtype that the array already has need not be requested.
        let dtype = dtype.filter(|_| numpys_own != dtype);
        if !listed
            && !is_numpys
            && let Some(array) = of_number(object, dtype)?
        {
            sharing.copies("a number holds no memory")?;
            return Ok(array);
        }
        if listed || !is_numpys && nested_sequence::is_nested(object) {
            sharing.copies("a sequence holds no memory of numbers")?;
            return nested_sequence::read(object, dtype, most);
        }
        let source = match is_numpys {
            true => Source::NumPys(object.clone()),
            false => numpys(object, dtype)?,
        };
        let source = match source {
            Source::NumPys(source) => source,
            Source::Ours(own) => return from_object_of(&own, dtype, sharing, most),
        };
        let copied = sharing == Sharing::Never && dtype.is_none();
        return match from_numpy(
            &source,
            if copied {
                sharing
            } else {
                sharing.or_allowed()
            },
        )? {
            array if dtype.is_none_or(|d| d == array.dtype()) => match sharing {
                Sharing::Never if !copied => complete_copy(py, &array),
                _ => Ok(array),
            },
            array => {
                sharing.copies("the dtype changes")?;
                check_real(py, array.dtype(), dtype.unwrap_or(array.dtype()))?;
                let array = of_foreign(|| array.astype_in("K", dtype.unwrap_or(array.dtype())))
                    .map_err(core)?;
                // The caller may change the source as soon as this returns.
                without_gil(py, || array.wait_to_read()).map_err(core)?;
                Ok(array)
            }
        };
    };
    match dtype.filter(|&d| d != array.dtype()) {
        Some(dtype) => {
            sharing.copies("the dtype changes")?;
            check_real(py, array.dtype(), dtype)?;
            array.astype_in("K", dtype).map_err(core)
        }
        None if sharing == Sharing::Never => array.copy_in("K").map_err(core),
        None => Ok(array),
    }
}

/// An array from an array of another library or an object that exposes its memory. Its dtype is kept if it is numeric; else it is read as `dtype`.
pub fn from_foreign(object: &Bound<'_, PyAny>, dtype: Option<DType>) -> PyResult<Array> {
    match numpys(object, dtype)? {
        Source::NumPys(source) => from_numpy(&source, Sharing::Allowed),
        Source::Ours(own) => from_object(&own, None, Sharing::Allowed),
    }
}

/// The result of converting an object that is neither a number nor a sequence.
enum Source<'py> {
    NumPys(Bound<'py, PyAny>),
    Ours(Bound<'py, PyAny>),
}

/// `numpy.asarray(object)`. NumPy trusts the addresses in `__array_interface__`; they are checked here as far as possible.
///
/// # Errors
/// Errors of NumPy; `ValueError` if the elements would lie at impossible addresses, or outside of the buffer that the interface names.
pub fn numpy_asarray<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    let numpy = py.import(crate::once_box::interned!(py, "numpy"))?;
    let source = numpy.call_method1(crate::once_box::interned!(py, "asarray"), (object,))?;
    let name = crate::once_box::interned!(py, "__array_interface__");
    if source.is(object) || source.getattr("size")?.extract::<usize>()? == 0 {
        return Ok(source);
    }
    let Some(described) = object.getattr_opt(name)? else {
        return Ok(source);
    };
    let Ok(described) = described.cast_into::<PyDict>() else {
        return Ok(source);
    };
    let (address, _): (u64, bool) = source.getattr(name)?.get_item("data")?.extract()?;
    let shape: Vec<i128> = source.getattr("shape")?.extract()?;
    let strides: Vec<i128> = source.getattr("strides")?.extract()?;
    let item_bytes: i128 = source.getattr("itemsize")?.extract()?;
    // Range of the elements' bytes, relative to the first element.
    let (mut start, mut end) = (0_i128, item_bytes);
    for (n, stride) in shape.iter().zip(strides) {
        let last = (n - 1) * stride;
        start += last.min(0);
        end += last.max(0);
    }
    let address = i128::from(address);
    if address + start < 0 || address + end > i128::from(i64::MAX) {
        return Err(PyValueError::new_err(format!(
            "array: `__array_interface__` describes elements at addresses {} to {}, where no memory can be",
            address + start,
            address + end
        )));
    }
    let buffer = described
        .get_item("data")?
        .unwrap_or_else(|| object.clone());
    let buffer = if buffer.is_none() {
        object.clone()
    } else {
        buffer
    };
    if !buffer.is_instance_of::<PyTuple>()
        && let Some(bytes) = crate::buffer_protocol::num_bytes(&buffer)?
    {
        let offset = described.get_item("offset")?;
        let offset: i128 = offset.map_or(Ok(0), |offset| offset.extract())?;
        if offset + start < 0 || offset + end > bytes as i128 {
            return Err(PyValueError::new_err(format!(
                "array: `__array_interface__` describes bytes {} to {} of a buffer of {bytes} bytes",
                offset + start,
                offset + end
            )));
        }
    }
    Ok(source)
}

/// The object as a NumPy array. If it does not hold numbers and `dtype` is given, it is parsed: text, None, and objects with a numeric value.
fn numpys<'py>(object: &Bound<'py, PyAny>, dtype: Option<DType>) -> PyResult<Source<'py>> {
    let py = object.py();
    let source = match numpy_asarray(object) {
        Ok(source) => source,
        Err(error) => return without_numpy(object, &error).map(Source::Ours).ok_or(error),
    };
    if numpy_dtype::of_array(&source)?.is_some() {
        return Ok(Source::NumPys(source));
    }
    if object.hasattr(crate::once_box::interned!(py, "__dlpack__"))?
        && !object.hasattr(crate::once_box::interned!(py, "__array__"))?
    {
        let own = crate::dlpack::from_dlpack(object, None, None)?;
        return Ok(Source::Ours(own.into_bound(py).into_any()));
    }
    match dtype {
        Some(dtype) => Ok(Source::NumPys(parsed(&source, dtype)?)),
        None => Ok(Source::NumPys(source)),
    }
}

/// One of our arrays from an object that NumPy cannot read: its `__array__` returns one of ours, or it has a dtype or a device that NumPy does
/// not have and supports DLPack, as a bfloat16 tensor of PyTorch does.
fn without_numpy<'py>(object: &Bound<'py, PyAny>, error: &PyErr) -> Option<Bound<'py, PyAny>> {
    let py = object.py();
    if error.is_instance_of::<PyValueError>(py) {
        let own = object.call_method0(crate::once_box::interned!(py, "__array__"));
        if let Some(own) = own.ok().filter(|own| own.is_instance_of::<PyArray>()) {
            return Some(own);
        }
    }
    if !error.is_instance_of::<PyException>(py)
        || !object
            .hasattr(crate::once_box::interned!(py, "__dlpack__"))
            .unwrap_or(false)
    {
        return None;
    }
    let own = crate::dlpack::from_dlpack(object, None, None).ok()?;
    Some(own.into_bound(py).into_any())
}

/// Text, None and other objects, converted by NumPy to `dtype`; to float32 for bfloat16, which NumPy does not have.
pub fn parsed<'py>(object: &Bound<'py, PyAny>, dtype: DType) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    let known = match dtype {
        DType::BF16 => DType::F32,
        other => other,
    };
    let numpy = py.import(crate::once_box::interned!(py, "numpy"))?;
    let known = numpy_dtype::object(py, known)?;
    numpy.call_method1(crate::once_box::interned!(py, "asarray"), (object, known))
}

/// A 0-d array from a number, of `dtype` or the number's own dtype; `None` for other objects.
fn of_number(object: &Bound<'_, PyAny>, dtype: Option<DType>) -> PyResult<Option<Array>> {
    let py = object.py();
    let core = |error| raise(py, error);
    let number = match numbers::number(object)? {
        Some(value) => Some(value),
        None => match numbers::numpy_number(object)? {
            Some((value, own)) => {
                let dtype = dtype.unwrap_or(own);
                check_real(py, own, dtype)?;
                return Array::scalar(value, dtype).map(Some).map_err(core);
            }
            None => numbers::derived_number(object)?,
        },
    };
    let Some(value) = number else { return Ok(None) };
    let dtype = dtype.unwrap_or_else(|| dtype_of_number(value));
    check_element("array", &value, dtype).map_err(core)?;
    Array::scalar(value, dtype).map(Some).map_err(core)
}

/// Checks that a NumPy scalar may become an element of an array of `dtype`. For signed integers it must fit; unsigned ones take it as C casts it; of
/// a complex number the real part is used, with a warning.
pub fn check_numpy_element(py: Python<'_>, value: Scalar, dtype: DType) -> PyResult<()> {
    if dtype.is_integer() && dtype.is_signed() && value.kind() < Kind::Complex {
        return check_element("array", &value, dtype).map_err(|error| raise(py, error));
    }
    match value.kind() == Kind::Complex {
        true => check_real(py, DType::C128, dtype),
        false => Ok(()),
    }
}

/// Warns if a conversion discards imaginary parts.
pub fn check_real(py: Python<'_>, from: DType, dtype: DType) -> PyResult<()> {
    match from.is_complex() && !dtype.is_complex() && dtype != DType::Bool {
        true => discards_imaginary_part(py),
        false => Ok(()),
    }
}

/// Emits NumPy's `ComplexWarning`.
#[cold]
pub fn discards_imaginary_part(py: Python<'_>) -> PyResult<()> {
    let category = py.import("numpy.exceptions")?.getattr("ComplexWarning")?;
    let text = c"Casting complex values to real discards the imaginary part";
    PyErr::warn(py, &category, text, 1)
}
