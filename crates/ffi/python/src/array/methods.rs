//! Methods of arrays that are not operators, and the constructor of the class.

use std::ffi::CStr;

use mxnet::core::{Array, Value};
use mxnet::ops::elementwise as e;
use mxnet::ops::order::{PARTITION_ROWS, SORT_ROWS, try_sort_in_place};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyEllipsis, PyInt, PySlice, PyTuple, PyType};

use super::PyArray;
use super::class::wrap_as;
use crate::call::warn_of_older;
use crate::docstrings::sections;
use crate::error::raise;
use crate::gil_release::without_gil;
use crate::keywords::Keywords;
use crate::once_box::OnceBox;
use crate::operators::{rearrange, unary};
use crate::panic_guard::guarded;
use crate::typed::{Get, Given, Method, Signature, attached, method_table, methods};
use crate::writing::write_at;
use crate::{
    array_function, autograd, construct, device, dlpack, index, memory, numpy_export, pickle,
    printing, row_iter, scalar_protocol, values,
};

/// Class attributes.
pub(super) const DOC: &CStr = c"ndarray(shape, dtype=None, buffer=None, offset=0, strides=None, order=None)\n--\n
N-dimensional array of numbers on one device, computed asynchronously.

Made by `array`, `zeros` and their kin; the class itself makes an array of undefined elements, or one over the memory of another object.

Parameters
----------
shape : int or tuple of int
    Lengths of the axes.
dtype : dtype or None
    None is the default float.
buffer : object with the buffer protocol, or None
    Whose memory the array is of.
offset : int
    Bytes of `buffer` before the first element.
strides : tuple of int or None
    Bytes between neighbours along each axis, for arrays over a buffer.
order : {'C', 'F'} or None
    Which axis runs fastest: the last ('C', the default) or the first.

Examples
--------
>>> x = np.array([[1, 2, 3], [4, 5, 6]])
>>> x.shape, x.ndim, x.size, x.dtype, x.itemsize, x.nbytes
((2, 3), 2, 6, dtype('int64'), 8, 48)
>>> x.strides, x.T.shape, x.T.strides
((24, 8), (3, 2), (8, 24))
>>> x[1, ::2], x[x > 2]
(array([4, 6]), array([3, 4, 5, 6]))
>>> [int(element) for element in x.flat]
[1, 2, 3, 4, 5, 6]";

methods! {
    PyArray, "ndarray";
    attached "setflags" "($self, write=None, align=None, uic=None)"
        concat!("Sets the flag `writeable`; memory is always aligned and never written back.\n", sections!(setflags)) => set_flags;
    at_once "fill" "($self, value)"
        concat!("Sets all elements to one number.\n", sections!(fill)) =>
        |x, given| done(x, memory::fill(x, &given.need(0)));
    attached "resize" "($self, *new_shape, refcheck=True)"
        concat!("Changes the shape in place; new elements are zero. With `refcheck` it is an error if there are views of the array.\n", sections!(resize)) =>
        |x, given| done(x, memory::resize(x, &given.rest_tuple()?, given.or(0, true)?));
    attached "copyto" "($self, other)"
        concat!("Copies the elements to `other`: writes to it and returns it if it is an array, returns a new array if it is a device.\n", sections!(copyto)) =>
        |x, given| memory::copy_to(x, &given.need(0)).map(Py::into_any);
    attached "conj" "($self, out=None)"
        concat!("Complex conjugate, written to `out` if that is given; the array itself if it is not complex.\n", sections!(conj)) => conj;
    attached "conjugate" "($self, out=None)"
        concat!("Complex conjugate, written to `out` if that is given; the array itself if it is not complex.\n", sections!(conj)) => conj;
    at_once "tolist" ()
        concat!("The elements as nested lists of Python numbers.\n", sections!(tolist)) =>
        values::to_list;
    at_once "asnumpy" ()
        concat!("A copy of the elements as a NumPy array.\n", sections!(asnumpy)) =>
        numpy_export::to_numpy;
    at_once "to_numpy" ()
        concat!("A copy of the elements as a NumPy array. The name of `asnumpy` that plotting and data-frame libraries look for.\n", sections!(asnumpy)) =>
        numpy_export::to_numpy;
    at_once "wait_to_read" ()
        concat!("Waits until the elements are computed; raises the error of a failed computation.\n", sections!(wait_to_read)) =>
        |x| wait(x, Array::wait_to_read);
    at_once "wait_to_write" ()
        concat!("Waits until no pending operation reads or writes the elements; raises the error of a failed computation.\n", sections!(wait_to_write)) =>
        |x| wait(x, Array::wait_to_write);
    attached "to_device" "($self, device, /, *, stream=None)"
        concat!("A copy on another device; the array itself if it is there. The engine orders the work, so `stream` must be None.\n", sections!(to_device)) =>
        |x, given| match given.some(1) {
            None => to_device(x, &given.need(0)),
            Some(_) => Err(PyValueError::new_err("The stream argument in to_device() is not supported")),
        };
    attached "as_in_context" "($self, context)"
        concat!("A copy on another device; the array itself if it is there. The name that MXNet 1 used.\n", sections!(as_in_context)) =>
        |x, given| {
            warn_of_older(x.py(), "ndarray.as_in_context", "to_device")?;
            to_device(x, &given.need(0))
        };
    attached "as_in_ctx" "($self, ctx)"
        concat!("A copy on another device; the array itself if it is there. An older name of `to_device`.\n", sections!(as_in_ctx)) =>
        |x, given| {
            warn_of_older(x.py(), "ndarray.as_in_ctx", "to_device")?;
            to_device(x, &given.need(0))
        };
    at_once "as_np_ndarray" ()
        concat!("The array itself: all arrays of this package are NumPy-style arrays.\n", sections!(as_np_ndarray)) =>
        |x| Ok(x.clone().unbind().into_any());
    attached "tobytes" "($self, order=...)"
        concat!("The bytes of the elements in C order, or in Fortran order ('F'), or in that of the array ('A').\n", sections!(tobytes)) => to_bytes;
    attached "to_dlpack_for_read" ()
        concat!("A DLPack capsule around the memory, once pending writes are done.\n", sections!(to_dlpack_for_read)) =>
        |x| dlpack::export(x, None, None, None, None);
    attached "to_dlpack_for_write" ()
        concat!("A DLPack capsule around the memory, once pending reads and writes are done; an error if the array is read-only.\n", sections!(to_dlpack_for_write)) =>
        |x| dlpack::export(x, None, None, None, None);
    attached "attach_grad" "($self, grad_req=\"write\", stype=None)"
        concat!("Gives the array a gradient buffer that `backward` fills.

Parameters
----------
grad_req : {'write', 'add', 'null'}
    Whether a new gradient replaces the buffer, is added to it, or is not computed.
", sections!(attach_grad)) =>
        |x, given| done(x, autograd::attach(x.py(), x.get(), given.or(0, "write")?, given.to(1)?));
    attached "drop_grad" ()
        concat!("Removes the gradient buffer.\n", sections!(drop_grad)) => |x| {
            let mut array = x.get().array(x.py());
            mxnet::core::autograd::drop_grad(&mut array);
            x.get().adopt(x.py(), array);
            Ok(x.py().None())
        };
    at_once "detach" ()
        concat!("The same elements, outside any recorded graph.\n", sections!(detach)) =>
        |x| PyArray::wrap(x.py(), x.get().with(x.py(), Array::detach)).map(Py::into_any);
    attached "backward" "($self, out_grad=None, retain_graph=False, train_mode=True)"
        concat!("Computes the gradients of every variable this array was computed from.\n", sections!(backward)) =>
        |x, given| done(x, autograd::backward_of(x, given.some(0).as_deref(), given.or(1, false)?, given.or(2, true)?));
    at_once "item" "($self, /, *args)"
        concat!("The only element, or the one at this position, as a Python number.\n", sections!(item)) => item;
    at_once "sort" "($self, /, axis=-1, kind=None, order=None, *, stable=None, descending=False)"
        concat!("Sorts the array in place along `axis`; see `mxnet.numpy.sort`.\n", sections!(sort)) => sort;
    at_once "partition" "($self, /, kth, axis=-1, kind='introselect', order=None)"
        concat!("Partitions the array in place along `axis`; see `mxnet.numpy.partition`.\n", sections!(partition)) => partition;
    at_once "put" "($self, /, indices, values, mode='raise')"
        concat!("Writes `values` at flat positions; see `mxnet.numpy.put`.\n", sections!(put)) => put;
    at_once "view" "($self, /, dtype=None, type=None)"
        concat!("View of the same bytes as another dtype or class. If the item size changes, the last axis must be contiguous, and its length in bytes a multiple of the new size.\n", sections!(view)) =>
        |x, given| memory::view(x, given.some(0).as_deref(), given.some(1).as_deref()).map(Py::into_any);
    attached "_printable_copy" () "A read-only copy for NumPy to print; of a large array only the corners are copied." =>
        printing::printable_copy;

    // ---- special methods ----
    attached "__complex__" () "The only element as a Python complex number." =>
        |x| values::number(x, values::Class::Complex);
    attached "__reversed__" () "" => reversed;
    attached "__format__" "($self, spec)" "" => format;
    attached "__reduce__" () "" => pickle::reduce;
    attached "__setstate__" "($self, state)" "Restores a pickled state." => |x, given| {
        let (values, dtype): (Bound<'_, PyAny>, String) = given.need(0).extract()?;
        x.get().adopt(x.py(), pickle::of_state(&values, &dtype)?);
        Ok(x.py().None())
    };
    attached "__copy__" () "A copy of the array." => copy;
    attached "__deepcopy__" "($self, _memo)" "A copy of the array." => |x, _| copy(x);
    attached "__floor__" () "`math.floor(x)`: a Python integer for a 0-d array, else the elements rounded down." =>
        |x| scalar_protocol::whole(x, &e::rounding::FLOOR);
    attached "__ceil__" () "`math.ceil(x)`: a Python integer for a 0-d array, else the elements rounded up." =>
        |x| scalar_protocol::whole(x, &e::rounding::CEIL);
    attached "__trunc__" () "`math.trunc(x)`: a Python integer for a 0-d array, else the elements rounded towards zero." =>
        |x| scalar_protocol::whole(x, &e::rounding::TRUNC);
    attached "__round__" "($self, ndigits=None)"
        "`round(x)`: a Python integer for a 0-d array; with `ndigits`, or for other arrays, the elements rounded to `ndigits` decimals." =>
        |x, given| scalar_protocol::round(x, given.to(0)?);
    attached "__dir__" () "Names of the attributes and methods, without older names, which only warn." => names;
    attached "__sizeof__" () "Bytes of the object, and of its elements if it owns their memory." =>
        |x| x.get().with(x.py(), memory::object_bytes).into_py_any(x.py());

    // ---- data exchange ----
    attached "__array__" "($self, dtype=None, copy=None)"
        "The elements as a NumPy array, converted to `dtype` if that is given. It has its own memory unless `copy` is False." =>
        |x, given| numpy_export::array_protocol(x, given.some(0).as_deref(), given.to(1)?);
    attached "__array_ufunc__" "($self, ufunc, method, /, *inputs, **kwargs)"
        "Implements NumPy's ufuncs and their methods for this class by the functions of `mxnet.numpy` with the same names." =>
        |x, given| {
            let inputs = given.rest_tuple()?;
            array_function::array_ufunc(x.py(), &given.need(0), given.or(1, "")?, &inputs, given.others.as_ref())
        };
    attached "__array_function__" "($self, func, types, args, kwargs)"
        "Implements NumPy's other functions for this class by the functions of `mxnet.numpy` with the same names." =>
        |x, given| {
            let (args, kwargs) = (given.need(2).cast()?, given.need(3).cast()?);
            array_function::array_function(x.py(), &given.need(0), &given.need(1), &args, &kwargs)
        };
    attached "__array_namespace__" "($self, *, api_version=None)" "The namespace of the array API: `mxnet.numpy`." =>
        |x, given| array_function::array_namespace(x.py(), given.to(0)?);
    attached "__dlpack__" "($self, *, stream=None, max_version=None, dl_device=None, copy=None)"
        "A DLPack capsule around the memory, once pending writes are done; see `from_dlpack`." =>
        |x, given| dlpack::export(x, given.some(0).as_deref(), given.to(1)?, given.to(2)?, given.to(3)?);
    attached "__arrow_c_array__" "($self, requested_schema=None)"
        "PyCapsules of a copy of the elements in Arrow's C data interface; further axes become lists of fixed size. The consumer converts them to `requested_schema`." =>
        |x, _| {
            let made = x.py().import("mxnet._arrow")?.call_method1("of_array", (x,))?;
            Ok(made.unbind())
        };
    attached "__arrow_array__" "($self, type=None)"
        "A `pyarrow.Array` of a copy of the elements; `pyarrow.array` calls it." =>
        |x, given| {
            let asked = given.some(0);
            let made = x.py().import("mxnet._arrow")?.call_method1("of_pyarrow", (x, asked.as_deref()))?;
            Ok(made.unbind())
        };
    attached "__dlpack_device__" () "The device as DLPack describes it: the number of its type, and its id." =>
        |x| dlpack::device(x.get().with(x.py(), Array::device)).into_py_any(x.py());
}

/// The table for the type.
pub(super) fn table() -> PyResult<&'static mut [ffi::PyMethodDef]> {
    let of_class = Method {
        name: "__class_getitem__",
        signature: "($cls, item)",
        doc: "`ndarray[shape, dtype]` in type annotations, as for NumPy's class.",
        entry: ffi::PyMethodDefPointer {
            PyCFunction: of_class,
        },
        flags: ffi::METH_CLASS | ffi::METH_O,
    };
    method_table(&[METHODS, &[of_class]].concat())
}

/// An uninitialised array, or one over the memory of another object.
pub(super) unsafe extern "C" fn new(
    class: *mut ffi::PyTypeObject,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    const SIGNATURE: &Signature = &Signature::of(
        "ndarray.__new__",
        "(shape, dtype=None, buffer=None, offset=0, strides=None, order=None)",
    );
    // SAFETY: Python calls this with a class derived from the type, a tuple, and a dictionary or null, with the lock held.
    let (py, class, args, kwargs) = unsafe {
        let py = Python::assume_attached();
        (
            py,
            Borrowed::from_ptr(py, class.cast()),
            Borrowed::from_ptr(py, args),
            Borrowed::from_ptr_or_opt(py, kwargs),
        )
    };
    let make = || {
        let positional = args.cast::<PyTuple>()?;
        let positional: Vec<_> = positional.iter_borrowed().map(|x| x.as_ptr()).collect();
        let (mut names, mut values) = (Vec::new(), Vec::new());
        if let Some(kwargs) = kwargs {
            for (name, value) in kwargs.cast::<PyDict>()?.iter() {
                names.push(name);
                values.push(value);
            }
        }
        let names = PyTuple::new(py, names)?;
        let values: Vec<_> = values.iter().map(Bound::as_ptr).collect();
        // SAFETY: one value for each name; the dictionary keeps all alive, and other code cannot reach it.
        let named = unsafe { Keywords::new(values.as_ptr(), names.as_ptr()) };
        let array = SIGNATURE.call(py, &positional, &named, |given| {
            construct::over_memory(
                &given.need(0),
                given.some(1).as_deref(),
                given.some(2).as_deref(),
                given.or(3, 0)?,
                given.some(4).as_deref(),
                given.to(5)?,
            )
        })?;
        wrap_as(&*class.cast::<PyType>()?, array).map(Py::into_any)
    };
    guarded(py, "ndarray", || attached(make))
}

/// `ndarray[shape, dtype]`.
unsafe extern "C" fn of_class(
    class: *mut ffi::PyObject,
    item: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: Python calls this with a class and an argument, with the lock held.
    let (py, class, item) = unsafe {
        let py = Python::assume_attached();
        (
            py,
            Borrowed::<PyAny>::from_ptr(py, class),
            Borrowed::<PyAny>::from_ptr(py, item),
        )
    };
    guarded(py, "ndarray", || {
        let types = py.import("types")?;
        let alias = types.call_method1("GenericAlias", (class, item))?;
        Ok(alias.unbind())
    })
}

/// Older names of attributes and methods. They work, with a warning.
const OLDER_NAMES: [&str; 4] = ["as_in_context", "as_in_ctx", "context", "ctx"];

/// `dir(x)`.
fn names(x: &Bound<'_, PyArray>) -> PyResult<Py<PyAny>> {
    let py = x.py();
    let object = py.import("builtins")?.getattr("object")?;
    let mut all: Vec<String> = object.call_method1("__dir__", (x,))?.extract()?;
    all.retain(|name| !OLDER_NAMES.contains(&name.as_str()));
    all.into_py_any(py)
}

/// None, or the error of `result`.
fn done(x: &Bound<'_, PyArray>, result: PyResult<()>) -> PyResult<Py<PyAny>> {
    result.map(|()| x.py().None())
}

fn set_flags<'a, 'py>(x: &'a Bound<'py, PyArray>, given: &Given<'a, 'py>) -> PyResult<Py<PyAny>> {
    let truth = |i| given.some(i).map(|x| x.is_truthy()).transpose();
    let (write, align, uic) = (truth(0)?, truth(1)?, truth(2)?);
    if align == Some(false) || uic == Some(true) {
        return Err(PyValueError::new_err(
            "only `write` can be set: arrays are aligned and never written back",
        ));
    }
    if let Some(write) = write {
        memory::set_writeable(x, write)?;
    }
    Ok(x.py().None())
}

fn conj<'a, 'py>(x: &'a Bound<'py, PyArray>, given: &Given<'a, 'py>) -> PyResult<Py<PyAny>> {
    let py = x.py();
    let own = match x.get().with(py, |x| x.dtype().is_complex()) {
        true => unary(x, &e::arithmetic::CONJUGATE)?,
        false => x.clone().into_any().unbind(),
    };
    let Some(out) = given.to::<Bound<'_, PyArray>>(0)? else {
        return Ok(own);
    };
    index::set(&out, PyEllipsis::get(py).as_any(), own.bind(py))?;
    Ok(out.into_any().unbind())
}

/// Waits without holding the GIL.
fn wait(
    x: &Bound<'_, PyArray>,
    until: fn(&Array) -> mxnet::core::Result<()>,
) -> PyResult<Py<PyAny>> {
    let py = x.py();
    let array = x.get().array(py);
    without_gil(py, || until(&array)).map_err(|error| raise(py, error))?;
    Ok(py.None())
}

fn to_device(x: &Bound<'_, PyArray>, to: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let py = x.py();
    let device = device::extract(to)?;
    let array = x.get().array(py);
    if array.device() == device {
        return Ok(x.clone().into_any().unbind());
    }
    let moved = array.to_device(device).map_err(|error| raise(py, error))?;
    PyArray::wrap(py, moved).map(Py::into_any)
}

fn to_bytes<'a, 'py>(x: &'a Bound<'py, PyArray>, given: &Given<'a, 'py>) -> PyResult<Py<PyAny>> {
    let order = given.to(0)?.unwrap_or("C");
    let py = x.py();
    let made = match numpy_export::bytes(x, order)? {
        // The copy can be interrupted, that of NumPy's cannot.
        None if order == "C" && x.get().with(py, |x| x.device().is_host()) => {
            let array = x.get().array(py);
            let dense = without_gil(py, || array.snapshot()).map_err(|error| raise(py, error))?;
            numpy_export::bytes(PyArray::wrap(py, dense)?.bind(py), order)?
        }
        made => made,
    };
    match made {
        Some(bytes) => Ok(bytes.into_any().unbind()),
        None => numpy_export::to_numpy(x)?.call_method1(x.py(), "tobytes", (order,)),
    }
}

fn reversed(x: &Bound<'_, PyArray>) -> PyResult<Py<PyAny>> {
    let py = x.py();
    let rows = match x.get().with(py, Array::ndim) {
        0 => row_iter::RowIter::new(x)?,
        _ => {
            let backwards = PySlice::full(py).get_type();
            let backwards = backwards.call1((py.None(), py.None(), -1))?;
            row_iter::RowIter::new(index::get(x, &backwards)?.bind(py))?
        }
    };
    rows.into_py_any(py)
}

fn format<'a, 'py>(x: &'a Bound<'py, PyArray>, given: &Given<'a, 'py>) -> PyResult<Py<PyAny>> {
    let spec: &str = given.or(0, "")?;
    if spec.is_empty() {
        return printing::text(x);
    }
    if x.get().with(x.py(), Array::len) != 1 {
        return Err(PyTypeError::new_err(format!(
            "unsupported format string passed to {}.__format__",
            x.get_type().name()?
        )));
    }
    values::scalar(x)?.call_method1(x.py(), "__format__", (spec,))
}

/// A copy of the array.
fn copy(x: &Bound<'_, PyArray>) -> PyResult<Py<PyAny>> {
    let py = x.py();
    let copy = x.get().with(py, |x| x.copy_in("K"));
    let copy = copy.map_err(|error| raise(py, error))?;
    match x.get().is_scalar() {
        true => PyArray::wrap_result(py, copy),
        false => PyArray::wrap(py, copy),
    }
    .map(Py::into_any)
}

fn item<'a, 'py>(x: &'a Bound<'py, PyArray>, given: &Given<'a, 'py>) -> PyResult<Py<PyAny>> {
    let py = x.py();
    match values::item_at(x, given.rest()) {
        Some(value) => values::scalar_to_python(py, value),
        None => values::item(x, &given.rest_tuple()?),
    }
}

fn sort<'a, 'py>(x: &'a Bound<'py, PyArray>, given: &Given<'a, 'py>) -> PyResult<Py<PyAny>> {
    static SORT: OnceBox<Py<PyAny>> = OnceBox::new();
    let axis: isize = given.or(0, -1)?;
    if (1..5).all(|i| given.some(i).is_none()) && is_last_axis(x, axis) {
        if try_sort_in_place(&x.get().borrow(x.py())) {
            return Ok(x.py().None());
        }
        let ascending = [Value::Bool(false)].into_iter().collect();
        return done(x, rearrange(x, &SORT_ROWS, &ascending));
    }
    let sort = operator(x.py(), &SORT, "sort")?;
    let keywords = given.by_name(1)?;
    put_back(x, &sort.call((x, axis), Some(&keywords))?)
}

/// Whether `axis` is the last axis of a writable array.
fn is_last_axis(x: &Bound<'_, PyArray>, axis: isize) -> bool {
    let ndim = x.get().with(x.py(), Array::ndim) as isize;
    ndim > 0 && (axis == -1 || axis == ndim - 1) && x.get().is_written_in_place(x.py())
}

fn partition<'a, 'py>(x: &'a Bound<'py, PyArray>, given: &Given<'a, 'py>) -> PyResult<Py<PyAny>> {
    static PARTITION: OnceBox<Py<PyAny>> = OnceBox::new();
    let (kth, axis) = (given.need(0), given.or(1, -1)?);
    if given.get(2).is_none()
        && given.some(3).is_none()
        && kth.is_exact_instance_of::<PyInt>()
        && let Ok(kth) = kth.extract::<i64>()
        && is_last_axis(x, axis)
        && let n = x
            .get()
            .with(x.py(), |x| x.shape().last().map_or(0, |&n| n as i64))
        && (-n..n).contains(&kth)
    {
        let kth = [Value::Int(kth.rem_euclid(n))].into_iter().collect();
        return done(x, rearrange(x, &PARTITION_ROWS, &kth));
    }
    let partition = operator(x.py(), &PARTITION, "partition")?;
    let keywords = given.by_name(2)?;
    put_back(x, &partition.call((x, kth, axis), Some(&keywords))?)
}

fn put<'a, 'py>(x: &'a Bound<'py, PyArray>, given: &Given<'a, 'py>) -> PyResult<Py<PyAny>> {
    let (indices, values) = (given.need(0), given.need(1));
    if given.get(2).is_none() && write_at(x.as_any(), &indices, &values)? {
        return Ok(x.py().None());
    }
    let put = x.py().import("mxnet.numpy")?.getattr("put")?;
    let keywords = given.by_name(2)?;
    put.call((x, indices, values), Some(&keywords))
        .map(Bound::unbind)
}

/// The registered function of this name.
fn operator<'py>(
    py: Python<'py>,
    cell: &'static OnceBox<Py<PyAny>>,
    name: &str,
) -> PyResult<&'py Bound<'py, PyAny>> {
    let found = cell.get_or_try_init(|| {
        let spaces = py.import("mxnet._core")?.getattr("namespaces")?;
        spaces.get_item("op")?.get_item(name).map(Bound::unbind)
    });
    Ok(found?.bind(py))
}

/// `x[...] = value`.
fn put_back(x: &Bound<'_, PyArray>, value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let all = PyEllipsis::get(x.py());
    done(x, index::set(x, all.as_any(), value))
}
