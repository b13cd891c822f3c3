//! Attributes of arrays: `shape`, `dtype`, `T`, ….

use mxnet::core::Array;
use mxnet::core::mode::Flags;
use mxnet::ops::elementwise as e;
use mxnet::tensor::{Layout, TensorError};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyMemoryView, PyTuple};
use smallvec::SmallVec;

use super::PyArray;
use crate::call::warn_of_older;
use crate::device::PyDevice;
use crate::error::raise;
use crate::flat::{self, Flat};
use crate::graph::watch;
use crate::operators::unary;
use crate::typed::{Get, attributes};
use crate::{autograd, memory, numpy_dtype, numpy_export, scalar_protocol};

attributes! {
    PyArray;
    at_once "shape" "Shape, a tuple of int." => shape, memory::set_shape;
    at_once "ndim" "Number of axes." => |x| Ok(int(x, Array::ndim));
    at_once "size" "Number of elements." => size;
    at_once "itemsize" "Bytes of one element." => |x| Ok(int(x, |x| x.dtype().size()));
    at_once "nbytes" "Bytes of all elements." => |x| Ok(int(x, |x| x.len() * x.dtype().size()));
    at_once "strides" "Bytes between neighbours along each axis." => |x| {
            let strides: SmallVec<[isize; 8]> = x.get().with(x.py(), |x| {
                x.tensor().byte_strides().iter().copied().collect()
            });
            tuple(x.py(), strides)
        };
    at_once "dtype" "Data type, a `numpy.dtype`." => |x| numpy_dtype::object(x.py(), x.get().with(x.py(), Array::dtype)), memory::set_dtype;
    at_once "flags" "Memory layout of the elements, and whether they are writable." => |x| memory::ArrayFlags::of(x).into_py_any(x.py());
    attached "base" "The array that this one is a view of; None if it owns its memory. For memory of another library, and for views of recorded arrays\nthat were taken while not recording, a 1-d array of the whole storage." => |x| memory::base(x)?.into_py_any(x.py());
    at_once "flat" "Iterator over the elements in C order, which can also be indexed and assigned to." => |x| Flat::of(x).wrap(x.py()), flat::set;
    attached "data" "The memory as a memoryview." => |x| Ok(PyMemoryView::from(x)?.into_any().unbind());
    at_once "device" "Device the elements are on." => device;
    attached "context" "Device the elements are on; the name that MXNet 1 used." => |x| {
            warn_of_older(x.py(), "ndarray.context", "device")?;
            device(x)
        };
    attached "ctx" "Device the elements are on; the name that MXNet 1 used." => |x| {
            warn_of_older(x.py(), "ndarray.ctx", "device")?;
            device(x)
        };
    at_once "real" "View of the real parts; the array itself if it is not complex." => real, |x, value| memory::set_part(x, &e::parts::REAL, value);
    at_once "imag" "View of the imaginary parts; read-only zeros for real arrays." => imag, |x, value| memory::set_part(x, &e::parts::IMAG, value);
    at_once "T" "View with the axes reversed." => |x| view_of(x, |layout| layout.transpose(None), |x| x.transpose(None));
    at_once "mT" "View with the last two axes swapped.\n\nRaises\n------\nValueError\n    If there are fewer than two axes." => matrix_transposed;
    at_once "grad" "The gradient buffer, or None; a row_sparse_array after `attach_grad(stype='row_sparse')`." => autograd::gradient;
    at_once "is_integer" "For 0-d arrays: method that returns whether the number is an integer." => |x| scalar_protocol::attribute(x, "is_integer");
    at_once "as_integer_ratio" "For 0-d arrays: method that returns the number as a pair of int, numerator and denominator." => |x| scalar_protocol::attribute(x, "as_integer_ratio");
    at_once "bit_count" "For 0-d arrays of an integer: method that returns the number of ones in the binary digits of its absolute value." => |x| scalar_protocol::attribute(x, "bit_count");
    at_once "numerator" "For 0-d arrays of an integer: its value, an int." => |x| scalar_protocol::attribute(x, "numerator");
    at_once "denominator" "For 0-d arrays of an integer: 1." => |x| scalar_protocol::attribute(x, "denominator");
    at_once "hex" "For 0-d arrays of a float: method that returns its hexadecimal form, a str." => |x| scalar_protocol::attribute(x, "hex");
    attached "__array_interface__" "NumPy's description of the memory. From then on, calls that read or write the array are synchronous." => numpy_export::interface;
    attached "__cuda_array_interface__" "Description of memory on a GPU for other libraries, which must order their work after the stream that it names." => numpy_export::cuda_interface;
}

fn int(x: &Bound<'_, PyArray>, ask: fn(&Array) -> usize) -> Py<PyAny> {
    let n = x.get().with(x.py(), ask);
    PyInt::new(x.py(), n).into_any().unbind()
}

fn tuple<T: for<'py> IntoPyObject<'py>>(
    py: Python<'_>,
    sizes: SmallVec<[T; 8]>,
) -> PyResult<Py<PyAny>>
where
    [T; 8]: smallvec::Array<Item = T>,
{
    Ok(PyTuple::new(py, sizes)?.into_any().unbind())
}

fn size(x: &Bound<'_, PyArray>) -> PyResult<Py<PyAny>> {
    if x.get().with(x.py(), Array::is_abstract)
        && let Some(watched) = watch::size(x.py(), &x.get().array(x.py()))?
    {
        return Ok(watched);
    }
    Ok(int(x, Array::len))
}

/// The shape as a tuple. The sizes are copied first: allocating the tuple may run the garbage collector, and thereby code that changes the array.
#[inline]
fn shape(x: &Bound<'_, PyArray>) -> PyResult<Py<PyAny>> {
    const INLINE_LEN: usize = 4;
    let py = x.py();
    let mut sizes = [0; INLINE_LEN];
    let (ndim, is_abstract) = x.get().with(py, |x| {
        let pairs = sizes.iter_mut().zip(x.shape());
        pairs.for_each(|(to, &size)| *to = size);
        (x.ndim(), x.is_abstract())
    });
    if is_abstract && let Some(watched) = watch::shape(py, &x.get().array(py))? {
        return Ok(watched);
    }
    if ndim > INLINE_LEN {
        let sizes: SmallVec<[usize; 8]> = x.get().with(py, |x| SmallVec::from_slice(x.shape()));
        return tuple(py, sizes);
    }
    // SAFETY: a new tuple; every item is set to a new reference before other code sees it.
    unsafe {
        let tuple = Bound::from_owned_ptr_or_err(py, ffi::PyTuple_New(ndim as ffi::Py_ssize_t))?;
        for (i, &size) in sizes[..ndim].iter().enumerate() {
            let size = Bound::from_owned_ptr_or_err(py, ffi::PyLong_FromSize_t(size))?;
            ffi::PyTuple_SetItem(tuple.as_ptr(), i as ffi::Py_ssize_t, size.into_ptr());
        }
        Ok(tuple.unbind())
    }
}

fn device(x: &Bound<'_, PyArray>) -> PyResult<Py<PyAny>> {
    PyDevice(x.get().with(x.py(), Array::device)).into_py_any(x.py())
}

fn real(x: &Bound<'_, PyArray>) -> PyResult<Py<PyAny>> {
    if !x.get().with(x.py(), |x| x.dtype().is_complex()) {
        return Ok(x.clone().into_any().unbind());
    }
    match memory::part(x, 0)? {
        Some(view) => Ok(view),
        None => unary(x, &e::parts::REAL),
    }
}

fn imag(x: &Bound<'_, PyArray>) -> PyResult<Py<PyAny>> {
    match memory::part(x, 1)? {
        Some(view) => Ok(view),
        None => unary(x, &e::parts::IMAG),
    }
}

fn matrix_transposed(x: &Bound<'_, PyArray>) -> PyResult<Py<PyAny>> {
    let ndim = x.get().with(x.py(), Array::ndim) as i64;
    if ndim < 2 {
        return Err(PyValueError::new_err(format!(
            "matrix transpose needs at least 2 axes, found {ndim}"
        )));
    }
    view_of(
        x,
        |layout| layout.swap_axes(-1, -2),
        |x| {
            let axes: Vec<i64> = (0..ndim - 2).chain([ndim - 1, ndim - 2]).collect();
            x.transpose(Some(&axes))
        },
    )
}

/// A view of the array: made from its layout if nothing is recorded, else by an operator.
#[inline]
fn view_of(
    x: &Bound<'_, PyArray>,
    by_layout: impl FnOnce(&Layout) -> Result<Layout, TensorError>,
    by_operator: impl FnOnce(&Array) -> mxnet::core::Result<Array>,
) -> PyResult<Py<PyAny>> {
    let py = x.py();
    if Flags::current().allows_copies() {
        let layout = by_layout(x.get().borrow(py).layout());
        let layout = layout.map_err(|error| raise(py, error.into()))?;
        return PyArray::view_with_layout(py, &layout, x).map(Py::into_any);
    }
    let view = by_operator(&x.get().borrow(py));
    PyArray::wrap_of(py, view.map_err(|error| raise(py, error))?, x).map(Py::into_any)
}
