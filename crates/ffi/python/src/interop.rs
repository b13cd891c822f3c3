//! Data exchange with other Python objects: NumPy arrays, buffers, lists, numbers, text, pickles. What other libraries see of our memory is in
//! `exported_buffer.rs`.

use std::ptr;

use mxnet::core::array::count_host_read;
use mxnet::core::fp_errors::checked_cast;
use mxnet::core::mode::Flags;
use mxnet::core::{
    Array, Error, Tuple, Value, check_element, copy_if_ready, dtype_of_number, invoke1,
};
use mxnet::engine::{Access, engine};
use mxnet::ops::elementwise::comparison;
use mxnet::ops::index::with_bytes;
use mxnet::ops::reduce::ANY;
use mxnet::tensor::{DType, Device, DeviceKind, Kind, Layout, Scalar, Storage, Tensor};
use pyo3::exceptions::{PyAttributeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple, PyType};

use crate::array::{Get, PyArray};
use crate::buffer_protocol::numpys_dtype;
use crate::convert;
use crate::error::raise;
use crate::exported_buffer::Window;
use crate::gil_release::without_gil;
use crate::{buffer_protocol, dlpack, nested_sequence, operators};

pub use crate::buffer_protocol::from_numpy;

/// Whether an array may share the memory of another library's array.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// Yes; writes are visible on both sides.
    Allowed,
    /// No: the elements are copied.
    Never,
    /// It must: an error if a copy is needed.
    Required,
}

impl Sharing {
    /// To be called if a copy is needed.
    ///
    /// # Errors
    /// `ValueError` for [`Sharing::Required`].
    pub fn copies(self, why: &str) -> PyResult<()> {
        match self {
            Sharing::Required => Err(PyValueError::new_err(format!(
                "copy=False was asked for, but a copy is needed: {why}"
            ))),
            Sharing::Allowed | Sharing::Never => Ok(()),
        }
    }

    /// The same, but `Allowed` instead of `Never`, for a source that is copied afterwards.
    fn or_allowed(self) -> Sharing {
        match self {
            Sharing::Never => Sharing::Allowed,
            other => other,
        }
    }
}

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
        let listed = convert::is_list(object);
        if let Some(wide) = dtype.and_then(wider)
            && (listed || convert::number(object)?.is_some())
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
                let array = array
                    .astype_in("K", dtype.unwrap_or(array.dtype()))
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
        // `__array__` of an object may return one of our arrays, which NumPy rejects.
        Err(error) if error.is_instance_of::<PyValueError>(py) => {
            let own = object
                .call_method0(crate::once_box::interned!(py, "__array__"))
                .ok()
                .filter(|own| own.is_instance_of::<PyArray>());
            return own.map(Source::Ours).ok_or(error);
        }
        Err(error) => return Err(error),
    };
    if numbers_of(&source)?.is_some() {
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

/// Text, None and other objects, converted by NumPy to `dtype`; to float32 for bfloat16, which NumPy does not have.
pub fn parsed<'py>(object: &Bound<'py, PyAny>, dtype: DType) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    let known = match dtype {
        DType::BF16 => DType::F32,
        other => other,
    };
    let numpy = py.import(crate::once_box::interned!(py, "numpy"))?;
    let known = convert::numpy_dtype(py, known)?;
    numpy.call_method1(crate::once_box::interned!(py, "asarray"), (object, known))
}

/// The dtype of a NumPy array, if it is one of ours.
pub fn numbers_of(source: &Bound<'_, PyAny>) -> PyResult<Option<DType>> {
    let dtype = source.getattr(crate::once_box::interned!(source.py(), "dtype"))?;
    if let Some(known) = convert::known_dtype(&dtype)? {
        return Ok(Some(known));
    }
    let name: String = dtype.getattr("name")?.extract()?;
    Ok(DType::from_name(&name))
}

/// A 0-d array from a number, of `dtype` or the number's own dtype; `None` for other objects.
fn of_number(object: &Bound<'_, PyAny>, dtype: Option<DType>) -> PyResult<Option<Array>> {
    let py = object.py();
    let core = |error| raise(py, error);
    let plain = match convert::number(object)? {
        Some(value) => Some(value),
        None => match convert::numpy_number(object)? {
            Some((value, own)) => {
                let dtype = dtype.unwrap_or(own);
                check_real(py, own, dtype)?;
                return Array::scalar(value, dtype).map(Some).map_err(core);
            }
            None => convert::derived_number(object)?,
        },
    };
    let Some(value) = plain else { return Ok(None) };
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

/// A copy whose elements are complete when this returns, so that the caller may change the source.
pub fn complete_copy(py: Python<'_>, array: &Array) -> PyResult<Array> {
    let copy = array.copy_in("K").map_err(|error| raise(py, error))?;
    without_gil(py, || copy.wait_to_read()).map_err(|error| raise(py, error))?;
    Ok(copy)
}

/// Marks the storage as visible to foreign code, and waits for all writes pushed before.
///
/// The mark is set before the wait: a thread that pushes a write after it sees the mark and waits for its own write.
pub fn complete_for_others(py: Python<'_>, array: &Array) -> PyResult<()> {
    if is_complete_for_others(array) {
        return Ok(());
    }
    without_gil(py, || array.wait_to_write()).map_err(|error| raise(py, error))
}

/// Marks the storage as [`complete_for_others`] does. Returns whether no write is pending.
pub fn is_complete_for_others(array: &Array) -> bool {
    let storage = array.tensor().storage();
    storage.mark_shared();
    let hold = engine().try_hold(storage.var(), Access::Write, 0);
    if hold.is_some() {
        count_host_read();
    }
    hold.is_some()
}

/// A `bytes` object. Unlike `PyBytes::new`, which panics, this returns an error if there is no memory for it.
pub fn bytes_of<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    // SAFETY: `bytes` is valid for its length; the result is a new object, or null with an exception set.
    let made = unsafe {
        let made = ffi::PyBytes_FromStringAndSize(bytes.as_ptr().cast(), bytes.len() as isize);
        Bound::from_owned_ptr_or_err(py, made)?
    };
    Ok(made.cast_into()?)
}

/// The bytes of an array that is contiguous in this order; `None` for other arrays and orders.
pub fn bytes<'py>(slf: &Bound<'py, PyArray>, order: &str) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let py = slf.py();
    let keeps_c_order = matches!(order, "C" | "A" | "K");
    // Creating a bytes object runs no Python code.
    if keeps_c_order
        && let Some(made) = with_bytes(&slf.get().borrow(py), |bytes| bytes_of(py, bytes))
    {
        return made.map(Some);
    }
    let array = slf.get().array(py);
    let dense = keeps_c_order && array.layout().is_contiguous();
    if !dense || array.device().kind() != DeviceKind::Cpu {
        return Ok(None);
    }
    let len = array.len() * array.dtype().size();
    // SAFETY: a new object of `len` bytes, or null with an exception set.
    let made = unsafe {
        let made = ffi::PyBytes_FromStringAndSize(ptr::null(), len as ffi::Py_ssize_t);
        Bound::from_owned_ptr_or_err(py, made)?
    };
    // SAFETY: it is a bytes object, as just made.
    let to = unsafe { ffi::PyBytes_AsString(made.as_ptr()) };
    // SAFETY: nobody else knows the new object, which has room for `len` bytes and is kept longer than the storage.
    let storage =
        unsafe { Storage::from_foreign(to.cast(), len, array.device(), Box::new(()), false) };
    let copied = Tensor::new(storage, Layout::contiguous(array.shape()), array.dtype())
        .map_err(|error| raise(py, error.into()))?;
    let copied = Array::from_tensor(copied);
    without_gil(py, || array.read_to(&copied)).map_err(|error| raise(py, error))?;
    Ok(Some(made.cast_into()?))
}

/// A copy of the elements as a NumPy array.
pub fn to_numpy(slf: &Bound<'_, PyArray>) -> PyResult<Py<PyAny>> {
    let py = slf.py();
    let array = slf.get().array(py);
    array_to_numpy(py, &array)
}

/// A copy of the elements as a NumPy array.
pub fn array_to_numpy(py: Python<'_>, array: &Array) -> PyResult<Py<PyAny>> {
    if array.dtype() == DType::BF16 {
        // NumPy may not have the dtype, so it gets the bits.
        let bits = array.tensor().with_dtype_view(DType::U16);
        let bits = Array::from_tensor(bits.map_err(|error| raise(py, error.into()))?);
        return bf16_from_bits(py, &copied_to_numpy(py, &bits)?);
    }
    copied_to_numpy(py, array).map(Bound::unbind)
}

/// A copy of the elements as a NumPy array with the same memory order.
fn copied_to_numpy<'py>(py: Python<'py>, array: &Array) -> PyResult<Bound<'py, PyAny>> {
    let made = buffer_protocol::new_numpys(py, array)?;
    let to = made.address;
    // Copying bytes runs no Python code.
    let is_copied = match &made.strides {
        None => {
            // SAFETY: the new NumPy array is dense, has this many bytes and is not shared yet.
            let copy = |bytes: &[u8]| unsafe {
                ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
            };
            with_bytes(array, copy).is_some()
        }
        // SAFETY: the new NumPy array has these strides and as many elements, and is not shared yet.
        Some(strides) => unsafe { copy_if_ready(array, to, strides) },
    };
    if !is_copied {
        let Some(target) =
            buffer_protocol::share_memory(&made.object, array.dtype(), Sharing::Allowed)?
        else {
            let problem = "a new array of NumPy is not aligned".to_owned();
            return Err(raise(py, Error::internal("asnumpy", problem)));
        };
        without_gil(py, || array.read_to(&target)).map_err(|error| raise(py, error))?;
    }
    Ok(made.object)
}

/// A read-only NumPy array for printing. If the array is so large that NumPy prints its corners only, the other elements are undefined: copying them
/// would read the whole array.
pub fn printable_copy(slf: &Bound<'_, PyArray>) -> PyResult<Py<PyAny>> {
    let py = slf.py();
    let array = slf.get().array(py);
    let edge = printed_edge(py, array.len())?;
    let copy = || match edge {
        Some(edge) => array.snapshot_of_corners(edge),
        None => array.snapshot(),
    };
    let copy = without_gil(py, copy).map_err(|error| raise(py, error))?;
    let window = Window {
        tensor: copy.tensor().clone(),
    };
    let numpy = py.import(crate::once_box::interned!(py, "numpy"))?;
    let made = numpy.call_method1(
        crate::once_box::interned!(py, "asarray"),
        (Bound::new(py, window)?,),
    )?;
    if array.dtype() == DType::BF16 {
        return bf16_from_bits(py, &made);
    }
    Ok(made.unbind())
}

/// Number of elements that NumPy prints at each end of an axis, for an array of `len` elements; `None` if it prints all.
fn printed_edge(py: Python<'_>, len: usize) -> PyResult<Option<usize>> {
    /// Up to this many elements the whole array is copied.
    const SMALL_LEN: usize = 1000;
    if len <= SMALL_LEN {
        return Ok(None);
    }
    let numpy = py.import(crate::once_box::interned!(py, "numpy"))?;
    let options = numpy.call_method0(crate::once_box::interned!(py, "get_printoptions"))?;
    let options = options.cast::<PyDict>()?;
    let integer = |name: &str| -> Option<usize> {
        let value = options.get_item(name).ok()??;
        value.extract().ok()
    };
    // A print function set by the user may read all elements.
    let is_overridden =
        (options.get_item("override_repr")?).is_some_and(|function| !function.is_none());
    let is_summarised = integer("threshold").is_some_and(|threshold| len > threshold);
    match is_summarised && !is_overridden {
        true => Ok(integer("edgeitems")),
        false => Ok(None),
    }
}

/// bfloat16 bits as `ml_dtypes.bfloat16`, or widened to float32 if that package is missing.
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

/// `value in x`: whether any element equals the value, which broadcasts.
pub fn contains(slf: &Bound<'_, PyArray>, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = slf.py();
    let value = match operators::comparable(value)? {
        Some(value) => value,
        None => {
            return operators::unlike(slf, &comparison::EQUAL, value)?
                .call_method0(py, "any")?
                .is_truthy(py);
        }
    };
    let (array, value) = (slf.get().array(py), value.array());
    let found = without_gil(py, || {
        let equal = array.detach().binary(&comparison::EQUAL, &value)?;
        let attrs = [Value::None, Value::None, Value::Bool(false)];
        invoke1(&ANY, &[&equal], &attrs.into_iter().collect())?.item()
    });
    Ok(found.map_err(|error| raise(py, error))?.as_bool())
}

/// The text that NumPy prints, except that the dtype is omitted if it is our default, and shown if it is NumPy's default but not ours.
pub fn repr(slf: &Bound<'_, PyArray>) -> PyResult<String> {
    let py = slf.py();
    let array = slf.get().array(py);
    if array.is_abstract() {
        return Ok(without_values(&array));
    }
    let text: String = printable_copy(slf)?.bind(py).repr()?.extract()?;
    // A text that was overridden in NumPy's print options is returned unchanged.
    let Some(body) = text
        .strip_prefix("array(")
        .map(|_| text.strip_suffix(')').unwrap_or(&text))
    else {
        return Ok(text);
    };
    let (head, named) = match body.rsplit_once("dtype=") {
        Some((head, name)) => (head.trim_end().trim_end_matches(','), Some(name)),
        None => (body, None),
    };
    let float = mxnet::tensor::default_float();
    let is_default = array.dtype() == float || array.dtype() == float.complex();
    // An empty array shows its dtype, because no element indicates it.
    let text_of = match array.dtype().is_inexact() {
        true => (array.is_empty() || !is_default).then(|| array.dtype().name()),
        false => named,
    };
    let mut text = match text_of {
        // NumPy's text names the dtype already.
        Some(name) if named == Some(name) => body.to_owned(),
        Some(name) => format!("{head},{}dtype={name}", spacer(py, head, name)?),
        None => head.to_owned(),
    };
    if array.device().kind() != DeviceKind::Cpu {
        text += &format!(", device={}", array.device());
    }
    Ok(text + ")")
}

/// The text of an abstract array.
pub fn without_values(array: &Array) -> String {
    let (shape, dtype) = (Tuple(array.shape()), array.dtype().name());
    format!("array(<no values>, shape={shape}, dtype={dtype})")
}

/// Separator before the dtype: a space, or a new line if the last one is full.
fn spacer(py: Python<'_>, head: &str, name: &str) -> PyResult<&'static str> {
    let options = py.import("numpy")?.call_method0("get_printoptions")?;
    let width: usize = options.get_item("linewidth")?.extract()?;
    let last = head.rsplit('\n').next().unwrap_or(head).chars().count();
    let whole = last + ", dtype=)".len() + name.len();
    Ok(if whole > width { "\n      " } else { " " })
}

/// `__reduce__`: the class, and a NumPy array and a dtype name as the state.
pub fn reduce(slf: &Bound<'_, PyArray>) -> PyResult<Py<PyAny>> {
    let py = slf.py();
    let array = slf.get().array(py);
    let rebuild = py.import("copyreg")?.getattr("__newobj__")?;
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
    let state = (values, array.dtype().name());
    // An array that stands for a NumPy scalar is restored as such.
    if slf.get().is_scalar() && slf.is_exact_instance_of::<PyArray>() {
        let element = py.import("mxnet._core")?.getattr("element_of_state")?;
        return Ok((element, state).into_pyobject(py)?.into_any().unbind());
    }
    Ok((rebuild, (slf.get_type(), 0), state)
        .into_pyobject(py)?
        .into_any()
        .unbind())
}

/// The element with this pickled state.
#[pyfunction]
pub fn element_of_state(
    py: Python<'_>,
    values: &Bound<'_, PyAny>,
    dtype: &str,
) -> PyResult<Py<PyArray>> {
    PyArray::wrap_result(py, of_state(values, dtype)?)
}

/// The array with this pickled state.
pub fn of_state(values: &Bound<'_, PyAny>, dtype: &str) -> PyResult<Array> {
    let py = values.py();
    let array = from_numpy(values, Sharing::Never)?;
    Ok(match DType::from_name(dtype) {
        Some(DType::BF16) => Array::from_tensor(
            array
                .tensor()
                .with_dtype_view(DType::BF16)
                .map_err(|error| raise(py, error.into()))?,
        ),
        _ => array,
    })
}

/// `numpy.asarray(x)`: NumPy's own array; it shares the memory unless `copy` is True.
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
    if copy == Some(false) && !array.device().is_host() {
        return Err(PyValueError::new_err(on_device(array.device())));
    }
    if copy == Some(false) && (!same || array.dtype() == DType::BF16) {
        return Err(PyValueError::new_err(
            "cannot change the dtype without a copy",
        ));
    }
    let must_copy = !same || array.dtype() == DType::BF16 || !array.device().is_host();
    let base = match copy == Some(true) || must_copy {
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

/// Error text: NumPy cannot share the memory of a device.
pub fn on_device(device: Device) -> String {
    format!("the array is on {device}, whose memory the CPU cannot access: use asnumpy()")
}

/// `__array_interface__`, version 3.
pub fn interface(slf: &Bound<'_, PyArray>) -> PyResult<Py<PyAny>> {
    let py = slf.py();
    let array = slf.get().array(py);
    if !array.device().is_host() {
        return Err(PyAttributeError::new_err(on_device(array.device())));
    }
    if array.dtype() == DType::BF16 {
        return Err(PyAttributeError::new_err(
            "__array_interface__ has no name for bfloat16: use asnumpy() or DLPack",
        ));
    }
    complete_for_others(py, &array)?;
    Ok(described(py, &array)?.into_any().unbind())
}

/// `__cuda_array_interface__`, version 3. The consumer must order its work after the stream that it names.
pub fn cuda_interface(slf: &Bound<'_, PyArray>) -> PyResult<Py<PyAny>> {
    let py = slf.py();
    let array = slf.get().array(py);
    let device = array.device();
    if device.kind() != DeviceKind::Gpu {
        let problem =
            format!("__cuda_array_interface__ is for arrays on a GPU, this one is on {device}");
        return Err(PyAttributeError::new_err(problem));
    }
    if array.dtype() == DType::BF16 {
        return Err(PyAttributeError::new_err(
            "__cuda_array_interface__ has no name for bfloat16: use DLPack",
        ));
    }
    let stream = dlpack::ordered_on_own_stream(py, &array)?;
    let facts = described(py, &array)?;
    facts.set_item("stream", stream)?;
    Ok(facts.into_any().unbind())
}

/// The entries that both interfaces have in common.
fn described<'py>(py: Python<'py>, array: &Array) -> PyResult<Bound<'py, PyDict>> {
    let facts = PyDict::new(py);
    facts.set_item("version", 3)?;
    facts.set_item("shape", PyTuple::new(py, array.shape())?)?;
    facts.set_item("strides", PyTuple::new(py, array.tensor().byte_strides())?)?;
    let typestr = convert::numpy_dtype(py, array.dtype())?
        .bind(py)
        .getattr("str")?;
    facts.set_item("typestr", typestr)?;
    facts.set_item(
        "data",
        (
            array.tensor().data_ptr() as usize,
            array.tensor().is_read_only(),
        ),
    )?;
    Ok(facts)
}
