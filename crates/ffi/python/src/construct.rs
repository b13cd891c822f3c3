//! Construction of arrays: `array`, `asarray` and relatives.

mod one_arg;

use mxnet::core::{Array, mode};
use mxnet::tensor::{DType, Device, MAX_NDIM, default_float};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

use crate::array::{Get, PyArray, wrap_as};
use crate::error::raise;
use crate::sharing::Sharing;
use crate::{buffer_protocol, call, interop, numbers, numpy_dtype};
pub use one_arg::add_one_arg_entries;

/// Makes an array from an array, nested sequences of numbers, or a number.
///
/// Parameters
/// ----------
/// object : array_like
///     Python floats become the default float (float32, or float64 after ``npx.set_np(dtype=True)``), Python integers int64.
/// dtype : dtype or None
///     Dtype of the result; None takes it from `object`.
/// copy : bool or None
///     True always copies, None where it is needed, False never.
/// order : {'K', 'A', 'C', 'F'}
///     Memory order: C order (last axis fastest), Fortran order (first axis fastest), Fortran order if `object` has it, else C order ('A'),
///     or that of `object` ('K').
/// subok : bool
///     Whether the result has the class of `object` if that is derived from ndarray.
/// ndmin : int
///     Minimum number of axes: axes of length 1 are prepended.
/// ndmax : int
///     Maximum depth of nested sequences, because there are no arrays of objects; 0 means no limit.
/// like : ndarray or None
///     The array is created on the device of `like`.
/// device, ctx : Device or None
///     Device of the result; None is the current device. `ctx` is the name in MXNet 1.
///
/// Returns
/// -------
/// ndarray
///
/// Raises
/// ------
/// TypeError
///     If `object` does not hold numbers, or `like` is not an array of this package.
/// ValueError
///     If nested sequences have differing lengths, or a copy is needed with ``copy=False``.
///
/// Examples
/// --------
/// >>> np.array([[1, 2], [3, 4]])
/// array([[1, 2],
///        [3, 4]])
/// >>> np.array([1, 2], dtype='float32')
/// array([1., 2.])
#[pyfunction]
#[pyo3(signature = (object, dtype = None, *, copy = Copying(Some(true)), order = Some("K"), subok = false, ndmin = 0, ndmax = 0, like = None, device = None, ctx = None), text_signature = "(object, dtype=None, *, copy=True, order='K', subok=False, ndmin=0, ndmax=0, like=None, device=None, ctx=None)")]
#[expect(
    clippy::too_many_arguments,
    reason = "the parameters of NumPy's function"
)]
pub fn array(
    object: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    copy: Copying,
    order: Option<&str>,
    subok: bool,
    ndmin: isize,
    ndmax: isize,
    like: Option<&Bound<'_, PyAny>>,
    device: Option<&Bound<'_, PyAny>>,
    ctx: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<PyArray>> {
    if let (Some(x), None, Some(true), Some("K"), None, None, None) =
        (exact_array(object), dtype, copy.0, order, like, device, ctx)
        && (ndmin, ndmax) == (0, 0)
        && let Some(copy) = copied(x)?
    {
        return Ok(copy);
    }
    let most = MAX_NDIM as isize;
    if !(0..=most).contains(&ndmax) {
        return Err(PyValueError::new_err(format!(
            "ndmax must be in the range [0, {most}], found {ndmax}"
        )));
    }
    if ndmin > most || ndmax > 0 && ndmin > ndmax {
        let bound = if ndmax > 0 { ndmax } else { most };
        return Err(PyValueError::new_err(format!(
            "ndmin must be <= ndmax ({bound}), found {ndmin}"
        )));
    }
    let (ndmin, ndmax) = (ndmin.max(0) as usize, ndmax as usize);
    if ctx.is_some() {
        call::warn_of_ctx(object.py(), "array")?;
    }
    let wanted = Wanted::of(dtype, copy, order, like, device.or(ctx))?;
    make(
        object,
        &Wanted {
            subok,
            ndmin,
            ndmax,
            ..wanted
        },
    )
}

/// Converts to an array. Returns `a` itself if it is an array of this dtype, order and device; shares its memory if possible.
///
/// Parameters
/// ----------
/// a : array_like
/// dtype : dtype or None
///     Dtype of the result; None takes it from `a`.
/// order : {'K', 'A', 'C', 'F'} or None
///     Memory order as in `array`; None is 'K', that of `a`.
/// device : Device or None
///     Device of the result; None is that of `a`, or the current device if `a` is not an array.
/// copy : bool or None
///     True copies, None only if needed, False never.
/// like : ndarray or None
///     New arrays are created on the device of `like`.
///
/// Returns
/// -------
/// ndarray
///     `a` itself if it is an array that meets the requirements.
///
/// Raises
/// ------
/// ValueError
///     If nested sequences have differing lengths, or a copy is needed with ``copy=False``.
///
/// Examples
/// --------
/// >>> x = np.array([1, 2])
/// >>> np.asarray(x) is x
/// True
/// >>> np.asarray([1, 2], dtype='float32')
/// array([1., 2.])
#[pyfunction]
#[pyo3(signature = (a, dtype = None, order = None, *, device = None, copy = Copying(None), like = None), text_signature = "(a, dtype=None, order=None, *, device=None, copy=None, like=None)")]
pub fn asarray(
    a: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    order: Option<&str>,
    device: Option<&Bound<'_, PyAny>>,
    copy: Copying,
    like: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<PyArray>> {
    if let (Some(x), None, None, None, None, None) =
        (exact_array(a), dtype, order, device, like, copy.0)
    {
        return as_array(x);
    }
    make(a, &Wanted::of(dtype, copy, order, like, device)?)
}

/// The array itself; a copy as a writable array if it stands for a scalar.
fn as_array(x: &Bound<'_, PyArray>) -> PyResult<Py<PyArray>> {
    let py = x.py();
    if x.get().is_written_in_place(py) {
        return Ok(x.clone().unbind());
    }
    let copy = x.get().borrow(py).copy();
    PyArray::wrap(py, copy.map_err(|error| raise(py, error))?)
}

/// A copy of an array with this memory order; `None` if the call might wait, or is recorded or intercepted.
#[inline]
fn copied_in(x: &Array, order: &str) -> mxnet::core::Result<Option<Array>> {
    if x.is_weak() || !mode::Flags::current().allows_copies() || crate::engine::may_wait() {
        return Ok(None);
    }
    x.copy_in(order).map(Some)
}

/// A copy of a contiguous array; `None` for others.
#[inline]
fn copied(x: &Bound<'_, PyArray>) -> PyResult<Option<Py<PyArray>>> {
    let py = x.py();
    let copy = {
        let x = x.get().borrow(py);
        match x.layout().is_contiguous() {
            true => copied_in(&x, "C").map_err(|error| raise(py, error))?,
            false => None,
        }
    };
    copy.map(|copy| PyArray::wrap(py, copy)).transpose()
}

/// The object as an array of exactly the class `ndarray`.
#[inline]
fn exact_array<'a, 'py>(object: &'a Bound<'py, PyAny>) -> Option<&'a Bound<'py, PyArray>> {
    object.cast_exact::<PyArray>().ok()
}

/// As `asarray`, but arrays of derived classes are returned unchanged.
///
/// Parameters
/// ----------
/// a : array_like
/// dtype : dtype or None
///     Dtype of the result; None takes it from `a`.
/// order : {'K', 'A', 'C', 'F'} or None
///     Memory order as in `array`; None is 'K', that of `a`.
/// device : Device or None
///     Device of the result; None is that of `a`, or the current device if `a` is not an array.
/// copy : bool or None
///     True copies, None only if needed, False never.
/// like : ndarray or None
///     New arrays are created on the device of `like`.
///
/// Returns
/// -------
/// ndarray
///
/// Raises
/// ------
/// ValueError
///     If nested sequences have differing lengths, or a copy is needed with ``copy=False``.
///
/// Examples
/// --------
/// >>> np.asanyarray([1, 2])
/// array([1, 2])
#[pyfunction]
#[pyo3(signature = (a, dtype = None, order = None, *, device = None, copy = Copying(None), like = None), text_signature = "(a, dtype=None, order=None, *, device=None, copy=None, like=None)")]
pub fn asanyarray(
    a: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    order: Option<&str>,
    device: Option<&Bound<'_, PyAny>>,
    copy: Copying,
    like: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<PyArray>> {
    if let (Some(x), None, None, None, None, None) =
        (exact_array(a), dtype, order, device, like, copy.0)
    {
        return as_array(x);
    }
    let wanted = Wanted::of(dtype, copy, order, like, device)?;
    make(
        a,
        &Wanted {
            subok: true,
            ..wanted
        },
    )
}

/// Converts to an array of at least one axis in C order. Returns `a` itself if it is one.
///
/// Parameters
/// ----------
/// a : array_like
/// dtype : dtype or None
///     Dtype of the result; None takes it from `a`.
/// like : ndarray or None
///     New arrays are created on the device of `like`.
///
/// Returns
/// -------
/// ndarray
///
/// Examples
/// --------
/// >>> x = np.array([[1, 2], [3, 4]]).T
/// >>> x.flags.c_contiguous, np.ascontiguousarray(x).flags.c_contiguous
/// (False, True)
#[pyfunction]
#[pyo3(signature = (a, dtype = None, *, like = None))]
pub fn ascontiguousarray(
    a: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    like: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<PyArray>> {
    if let (Some(x), None, None) = (exact_array(a), dtype, like)
        && x.get()
            .with(a.py(), |x| x.ndim() > 0 && x.layout().is_contiguous())
    {
        return Ok(x.clone().unbind());
    }
    let wanted = Wanted::of(dtype, Copying(None), Some("C"), like, None)?;
    make(a, &Wanted { ndmin: 1, ..wanted })
}

/// Converts to an array of at least one axis in Fortran order (first axis fastest). Returns `a` itself if it is one.
///
/// Parameters
/// ----------
/// a : array_like
/// dtype : dtype or None
///     Dtype of the result; None takes it from `a`.
/// like : ndarray or None
///     New arrays are created on the device of `like`.
///
/// Returns
/// -------
/// ndarray
///
/// Examples
/// --------
/// >>> np.asfortranarray([[1, 2], [3, 4]]).flags.f_contiguous
/// True
#[pyfunction]
#[pyo3(signature = (a, dtype = None, *, like = None))]
pub fn asfortranarray(
    a: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    like: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<PyArray>> {
    if let (Some(x), None, None) = (exact_array(a), dtype, like)
        && let Some(result) = fortran(x)?
    {
        return Ok(result);
    }
    let wanted = Wanted::of(dtype, Copying(None), Some("F"), like, None)?;
    make(a, &Wanted { ndmin: 1, ..wanted })
}

/// The array itself, or a copy, in Fortran order; `None`: take the general path.
fn fortran(x: &Bound<'_, PyArray>) -> PyResult<Option<Py<PyArray>>> {
    let py = x.py();
    let copy = {
        let x_ref = x.get().borrow(py);
        match x_ref.ndim() {
            0 => return Ok(None),
            _ if x_ref.layout().is_fortran() => return Ok(Some(x.clone().unbind())),
            _ => copied_in(&x_ref, "F").map_err(|error| raise(py, error))?,
        }
    };
    copy.map(|copy| PyArray::wrap(py, copy)).transpose()
}

/// The argument `copy`: True, False, None, or an object with a truth value.
pub struct Copying(Option<bool>);

impl<'a, 'py> FromPyObject<'a, 'py> for Copying {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Copying> {
        if object.is_none() {
            return Ok(Copying(None));
        }
        if object.is_instance_of::<PyString>() {
            return Err(PyValueError::new_err(
                "strings are not allowed for 'copy' keyword. Use True/False/None instead.",
            ));
        }
        // NumPy's `_CopyMode`, whose value 2 means "only if needed".
        if object.get_type().name()? == "_CopyMode" {
            return match object.getattr("value")?.extract::<i64>()? {
                2 => Ok(Copying(None)),
                always => Ok(Copying(Some(always != 0))),
            };
        }
        Ok(Copying(Some(object.is_truthy()?)))
    }
}

/// Requirements on the result of a construction.
struct Wanted {
    dtype: Option<DType>,
    sharing: Sharing,
    order: &'static str,
    subok: bool,
    ndmin: usize,
    ndmax: usize,
    device: Option<Device>,
    /// Device for objects that are not arrays yet.
    home: Device,
}

impl Wanted {
    fn of(
        dtype: Option<&Bound<'_, PyAny>>,
        copy: Copying,
        order: Option<&str>,
        like: Option<&Bound<'_, PyAny>>,
        device: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Wanted> {
        let home = match like {
            None => mode::current_device(),
            Some(like) => match like.cast::<PyArray>() {
                Ok(like) => like.get().with(like.py(), Array::device),
                Err(_) => {
                    return Err(PyTypeError::new_err(format!(
                        "`like` must be an mxnet.numpy.ndarray, not '{}'",
                        like.get_type().name()?
                    )));
                }
            },
        };
        Ok(Wanted {
            dtype: dtype.map(numpy_dtype::read).transpose()?,
            sharing: match copy.0 {
                Some(true) => Sharing::Never,
                Some(false) => Sharing::Required,
                None => Sharing::Allowed,
            },
            order: order_of(order)?,
            subok: false,
            ndmin: 0,
            ndmax: 0,
            device: device.map(crate::device::extract).transpose()?,
            home,
        })
    }
}

/// The argument `order`; `None` means 'K'.
fn order_of(order: Option<&str>) -> PyResult<&'static str> {
    match order {
        None | Some("K" | "k") => Ok("K"),
        Some("A" | "a") => Ok("A"),
        Some("C" | "c") => Ok("C"),
        Some("F" | "f") => Ok("F"),
        Some(other) => Err(PyValueError::new_err(format!(
            "order must be one of 'C', 'F', 'A', 'K', not '{other}'"
        ))),
    }
}

/// The constructor `ndarray(...)`.
pub fn over_memory(
    shape: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    buffer: Option<&Bound<'_, PyAny>>,
    offset: usize,
    strides: Option<&Bound<'_, PyAny>>,
    order: Option<&str>,
) -> PyResult<Array> {
    let py = shape.py();
    let core = |error| raise(py, error);
    let kind = dtype.map(numpy_dtype::read).transpose()?;
    let kind = kind.unwrap_or_else(default_float);
    let order = match order {
        None | Some("C") => "C",
        Some("F") => "F",
        Some(other) => {
            return Err(PyValueError::new_err(format!(
                "order must be 'C' or 'F', not '{other}'"
            )));
        }
    };
    if let Some(buffer) = buffer {
        if let Some(bytes) = buffer_protocol::num_bytes(buffer)?
            && offset > bytes
        {
            return Err(PyValueError::new_err(format!(
                "ndarray: offset must be at most {bytes}, the size of `buffer` in bytes, not {offset}"
            )));
        }
        // NumPy checks that shape, offset and strides stay within the buffer.
        let numpy = py.import("numpy")?;
        let kind = numpy_dtype::object(py, kind)?;
        let seen = (shape, kind, buffer, offset, strides, order);
        return interop::from_numpy(&numpy.getattr("ndarray")?.call1(seen)?, Sharing::Allowed);
    }
    if offset != 0 || strides.is_some() {
        return Err(PyValueError::new_err(
            "offset and strides say where the elements lie in `buffer`, which is missing",
        ));
    }
    let Some(sizes) = numbers::integers(shape)? else {
        return Err(PyTypeError::new_err(format!(
            "shape must be an integer or a tuple of integers, not '{}'",
            shape.get_type().name()?
        )));
    };
    let mut sizes = sizes
        .iter()
        .map(|&size| {
            usize::try_from(size)
                .map_err(|_| PyValueError::new_err(format!("negative dimension {size} in shape")))
        })
        .collect::<PyResult<Vec<usize>>>()?;
    if order == "F" {
        sizes.reverse();
    }
    let array = Array::uninitialised(&sizes, kind, mode::current_device()).map_err(core)?;
    match order {
        "F" => Ok(array.transpose(None).map_err(core)?.as_owner()),
        _ => Ok(array),
    }
}

/// As [`wrap_as`], for an array that may be a view of `source`.
pub fn wrap_view(
    class: &Bound<'_, PyType>,
    array: Array,
    source: &Bound<'_, PyArray>,
) -> PyResult<Py<PyArray>> {
    let py = class.py();
    if class.is(py.get_type::<PyArray>()) {
        return PyArray::wrap_of(py, array, source);
    }
    wrap_as(class, array)
}

fn make(object: &Bound<'_, PyAny>, wanted: &Wanted) -> PyResult<Py<PyArray>> {
    let py = object.py();
    let core = |error| raise(py, error);
    let given = object.cast::<PyArray>().ok();
    let base = py.get_type::<PyArray>();
    let class = match given {
        Some(_) if wanted.subok => object.get_type(),
        _ => base,
    };
    let array = interop::from_object_of(object, wanted.dtype, wanted.sharing, wanted.ndmax)?;
    // An array stays on its device; a new one is made on the default device.
    let home = match given {
        Some(_) => array.device(),
        None => wanted.home,
    };
    let device = wanted.device.unwrap_or(home);
    // These checks cost little for an array that was just made from a list.
    let array = if device == array.device() {
        array
    } else {
        wanted.sharing.copies("the device changes")?;
        array.to_device(device).map_err(core)?
    };
    // "A" only matters for copies: an array that is in neither C nor Fortran order may stay as it is.
    let order = match wanted.order {
        "A" if wanted.sharing != Sharing::Never => "K",
        order => order,
    };
    let array = if array.has_order(order) {
        array
    } else {
        wanted
            .sharing
            .copies("the order of the axes in memory changes")?;
        array.copy_in(order).map_err(core)?
    };
    let array = if array.ndim() < wanted.ndmin {
        let mut shape = vec![1; wanted.ndmin - array.ndim()];
        shape.extend_from_slice(array.shape());
        array.reshape(&shape).map_err(core)?
    } else {
        array
    };
    if let Some(given) = given
        && wanted.sharing != Sharing::Never
        && given.get_type().is(&class)
        && given.get().with(py, |x| x.is_same_view(&array))
    {
        return Ok(given.clone().unbind());
    }
    match given {
        Some(given) => wrap_view(&class, array, given),
        None => wrap_as(&class, array),
    }
}
