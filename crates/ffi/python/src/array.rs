//! The class `ndarray`: its state, its attributes, its operators. Methods that are operators come from the registry (`call.rs`).

use mxnet::ops::interp::Flags;
use mxnet::ops::{Array, Lone, elementwise as e, linalg};
use mxnet::tensor::{Layout, TensorError};
use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};
use smallvec::SmallVec;

use crate::cell::Guarded;
use crate::convert;
use crate::device::PyDevice;
use crate::error::raise;
use crate::flat::{self, Flat};
use crate::operators::{Target, binary, in_place, plain_power, reflected, unary};
use crate::sections::sections;
use crate::{dlpack, exchange, index, making, memory, number, protocol, values};

mod attributes;
mod direct;
mod handle;
mod place;
mod slots;

pub use attributes::register as register_attributes;
pub use direct::register as register_direct;
pub use handle::as_array;
pub use slots::register as register_slots;

/// N-dimensional array of numbers on one device, computed asynchronously.
///
/// Made by `array`, `zeros` and their kin; the class itself makes an array of undefined elements, or one over the memory of another object.
///
/// Parameters
/// ----------
/// shape : int or tuple of int
///     Lengths of the axes.
/// dtype : dtype or None
///     None is the default float.
/// buffer : object with the buffer protocol, or None
///     Whose memory the array is of.
/// offset : int
///     Bytes of `buffer` before the first element.
/// strides : tuple of int or None
///     Bytes between neighbours along each axis, for arrays over a buffer.
/// order : {'C', 'F'} or None
///     Which axis runs fastest: the last ('C', the default) or the first.
///
/// Examples
/// --------
/// >>> x = np.array([[1, 2, 3], [4, 5, 6]])
/// >>> x.shape, x.ndim, x.size, x.dtype, x.itemsize, x.nbytes
/// ((2, 3), 2, 6, dtype('int64'), 8, 48)
/// >>> x.strides, x.T.shape, x.T.strides
/// ((24, 8), (3, 2), (8, 24))
/// >>> x[1, ::2], x[x > 2]
/// (array([4, 6]), array([3, 4, 5, 6]))
/// >>> [int(element) for element in x.flat]
/// [1, 2, 3, 4, 5, 6]
#[pyclass(
    name = "ndarray",
    module = "mxnet.numpy",
    frozen,
    subclass,
    weakref,
    sequence
)]
pub struct PyArray {
    held: Guarded<Held>,
    /// The array this one is a view of.
    base: Option<Py<PyArray>>,
    /// Whether the view was taken while recording: writes through it or `base` are recorded for both.
    is_linked: bool,
    /// Whether it stands for one of NumPy's scalars, which in-place operators leave as they are: `s = x.sum(); s /= 2` makes another.
    is_scalar: bool,
    /// Whether the object was written to its place by [`place`], which knows how such an object ends.
    is_placed: bool,
}

/// What an array object is around. Its form is fixed, so that arrays can be written to where they stay.
#[repr(u8)]
enum Held {
    Array(Array),
    /// An element, until somebody looks for an array.
    #[expect(dead_code, reason = "it is made where it stays, see `HeldLone`")]
    Lone(Lone),
}

#[pymethods]
impl PyArray {
    #[classattr]
    fn __array_priority__() -> f64 {
        1000.0
    }

    /// An array of undefined elements, or one over the memory of another object.
    #[new]
    #[pyo3(signature = (shape, dtype = None, buffer = None, offset = 0, strides = None, order = None))]
    fn new(
        shape: &Bound<'_, PyAny>,
        dtype: Option<&Bound<'_, PyAny>>,
        buffer: Option<&Bound<'_, PyAny>>,
        offset: usize,
        strides: Option<&Bound<'_, PyAny>>,
        order: Option<&str>,
    ) -> PyResult<PyArray> {
        let array = making::over_memory(shape, dtype, buffer, offset, strides, order)?;
        Ok(PyArray::plain(array))
    }

    // ---- what it is ----

    /// Shape, a tuple of int.
    #[getter]
    fn shape(&self, py: Python<'_>) -> PyResult<Py<PyTuple>> {
        let dims: SmallVec<[usize; 8]> = self.with(py, |x| SmallVec::from_slice(x.shape()));
        Ok(PyTuple::new(py, dims)?.unbind())
    }

    /// The elements get another shape, without a copy.
    #[setter(shape)]
    fn set_shape(slf: &Bound<'_, Self>, shape: &Bound<'_, PyAny>) -> PyResult<()> {
        memory::set_shape(slf, shape)
    }

    /// Number of axes.
    #[getter]
    fn ndim(&self, py: Python<'_>) -> usize {
        self.with(py, Array::ndim)
    }

    /// Number of elements.
    #[getter]
    fn size(&self, py: Python<'_>) -> usize {
        self.with(py, Array::len)
    }

    /// Bytes of one element.
    #[getter]
    fn itemsize(&self, py: Python<'_>) -> usize {
        self.with(py, |x| x.dtype().size())
    }

    /// Bytes of all elements.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> usize {
        self.with(py, |x| x.len() * x.dtype().size())
    }

    /// Bytes between neighbours along each axis.
    #[getter]
    fn strides(&self, py: Python<'_>) -> PyResult<Py<PyTuple>> {
        let strides: SmallVec<[isize; 8]> =
            self.with(py, |x| x.tensor().byte_strides().iter().copied().collect());
        Ok(PyTuple::new(py, strides)?.unbind())
    }

    /// Data type, a `numpy.dtype`.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        convert::numpy_dtype(py, self.with(py, Array::dtype))
    }

    /// The bytes are taken for elements of another type.
    #[setter(dtype)]
    fn set_dtype(slf: &Bound<'_, Self>, dtype: &Bound<'_, PyAny>) -> PyResult<()> {
        memory::set_dtype(slf, dtype)
    }

    /// How the elements lie in memory, and whether they may be written.
    #[getter]
    fn flags(slf: &Bound<'_, Self>) -> memory::ArrayFlags {
        memory::ArrayFlags::of(slf)
    }

    /// Sets the flag `writeable`; memory is always aligned and never written back.
    #[doc = sections!(setflags)]
    #[pyo3(signature = (write = None, align = None, uic = None))]
    fn setflags(
        slf: &Bound<'_, Self>,
        write: Option<&Bound<'_, PyAny>>,
        align: Option<&Bound<'_, PyAny>>,
        uic: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let truth = |flag: Option<&Bound<'_, PyAny>>| flag.map(|x| x.is_truthy()).transpose();
        let (write, align, uic) = (truth(write)?, truth(align)?, truth(uic)?);
        if align == Some(false) || uic == Some(true) {
            return Err(PyValueError::new_err(
                "only `write` can be set: arrays are aligned and never written back",
            ));
        }
        write.map_or(Ok(()), |write| memory::set_writeable(slf, write))
    }

    /// The array that this one is a view of; None if the memory is its own. Of memory of another library, and of views of recorded arrays taken
    /// while nothing is recorded, all that the storage holds, as one row.
    #[getter]
    fn base(slf: &Bound<'_, Self>) -> PyResult<Option<Py<PyArray>>> {
        memory::base(slf)
    }

    /// The elements in C order: to iterate over, to index and to assign to.
    #[getter]
    fn flat(slf: &Bound<'_, Self>) -> Flat {
        Flat::of(slf)
    }

    #[setter(flat)]
    fn set_flat(slf: &Bound<'_, Self>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        flat::set(slf, value)
    }

    /// The memory, by the buffer protocol.
    #[getter]
    fn data<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let view = slf.py().get_type::<pyo3::types::PyMemoryView>();
        view.call1((slf,))
    }

    /// Writes one number everywhere.
    #[doc = sections!(fill)]
    fn fill(slf: &Bound<'_, Self>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        memory::fill(slf, value)
    }

    /// Changes the shape in place; elements that are new are zero. With `refcheck` it is an error if there are views of the array.
    #[doc = sections!(resize)]
    #[pyo3(signature = (*new_shape, refcheck = true))]
    fn resize(
        slf: &Bound<'_, Self>,
        new_shape: &Bound<'_, PyTuple>,
        refcheck: bool,
    ) -> PyResult<()> {
        memory::resize(slf, new_shape, refcheck)
    }

    /// Copies the elements into `other`, an array, and returns it; or onto `other`, a device.
    #[doc = sections!(copyto)]
    fn copyto(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyArray>> {
        memory::copy_to(slf, other)
    }

    /// Device the elements are on.
    #[getter]
    fn device(&self, py: Python<'_>) -> PyDevice {
        PyDevice(self.with(py, Array::device))
    }

    /// Device the elements are on; the name that MXNet 1 used.
    #[getter]
    fn context(&self, py: Python<'_>) -> PyDevice {
        self.device(py)
    }

    /// Device the elements are on; the name that MXNet 1 used.
    #[getter]
    fn ctx(&self, py: Python<'_>) -> PyDevice {
        self.device(py)
    }

    /// View of the real parts; the array itself if it is not complex.
    #[getter]
    fn real(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        if !slf.get().with(slf.py(), |x| x.dtype().is_complex()) {
            return Ok(slf.clone().into_any().unbind());
        }
        match memory::part(slf, 0)? {
            Some(view) => Ok(view),
            None => unary(slf, &e::parts::REAL),
        }
    }

    #[setter(real)]
    fn set_real(slf: &Bound<'_, Self>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        memory::set_part(slf, &e::parts::REAL, value)
    }

    /// View of the imaginary parts; zeros, not to be written to, for real arrays.
    #[getter]
    fn imag(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        match memory::part(slf, 1)? {
            Some(view) => Ok(view),
            None => unary(slf, &e::parts::IMAG),
        }
    }

    #[setter(imag)]
    fn set_imag(slf: &Bound<'_, Self>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        memory::set_part(slf, &e::parts::IMAG, value)
    }

    /// Complex conjugate, written to `out` if that is given; the array itself if it is not complex.
    #[doc = sections!(conj)]
    #[pyo3(signature = (out = None))]
    fn conj(slf: &Bound<'_, Self>, out: Option<&Bound<'_, PyArray>>) -> PyResult<Py<PyAny>> {
        let own = match slf.get().with(slf.py(), |x| x.dtype().is_complex()) {
            true => unary(slf, &e::arithmetic::CONJUGATE)?,
            false => slf.clone().into_any().unbind(),
        };
        let Some(out) = out else { return Ok(own) };
        let all = pyo3::types::PyEllipsis::get(slf.py());
        index::set(out, all.as_any(), own.bind(slf.py()))?;
        Ok(out.clone().into_any().unbind())
    }

    /// Complex conjugate, written to `out` if that is given; the array itself if it is not complex.
    #[doc = sections!(conj)]
    #[pyo3(signature = (out = None))]
    fn conjugate(slf: &Bound<'_, Self>, out: Option<&Bound<'_, PyArray>>) -> PyResult<Py<PyAny>> {
        Self::conj(slf, out)
    }

    /// View with the axes reversed.
    #[getter(T)]
    fn transposed(slf: &Bound<'_, Self>) -> PyResult<Py<PyArray>> {
        seen(slf, |layout| layout.transpose(None), |x| x.transpose(None))
    }

    /// View with the last two axes swapped.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If there are fewer than two axes.
    #[getter(mT)]
    fn matrix_transposed(slf: &Bound<'_, Self>) -> PyResult<Py<PyArray>> {
        let ndim = slf.get().with(slf.py(), Array::ndim) as i64;
        if ndim < 2 {
            return Err(PyValueError::new_err(format!(
                "matrix transpose needs at least 2 axes, found {ndim}"
            )));
        }
        seen(
            slf,
            |layout| layout.swap_axes(-1, -2),
            |x| {
                let axes: Vec<i64> = (0..ndim - 2).chain([ndim - 1, ndim - 2]).collect();
                x.transpose(Some(&axes))
            },
        )
    }

    // ---- what it holds ----

    /// The elements as nested lists of Python numbers.
    #[doc = sections!(tolist)]
    fn tolist(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        values::to_list(slf)
    }

    /// The elements as a NumPy array with memory of its own.
    #[doc = sections!(asnumpy)]
    fn asnumpy(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        exchange::to_numpy(slf)
    }

    /// Returns when the elements are computed; raises what went wrong.
    #[doc = sections!(wait_to_read)]
    fn wait_to_read(&self, py: Python<'_>) -> PyResult<()> {
        let array = self.array(py);
        py.detach(|| array.wait_to_read())
            .map_err(|error| raise(py, error))
    }

    /// Returns when nothing pending reads or writes the elements; raises what went wrong.
    #[doc = sections!(wait_to_write)]
    fn wait_to_write(&self, py: Python<'_>) -> PyResult<()> {
        let array = self.array(py);
        py.detach(|| array.wait_to_write())
            .map_err(|error| raise(py, error))
    }

    /// The same array on another device; itself if it is there. Work is ordered by the arrays themselves, so `stream` must be None.
    #[doc = sections!(to_device)]
    #[pyo3(signature = (device, /, *, stream = None))]
    fn to_device(
        slf: &Bound<'_, Self>,
        device: &Bound<'_, PyAny>,
        stream: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyArray>> {
        let py = slf.py();
        if stream.is_some() {
            return Err(PyValueError::new_err(
                "The stream argument in to_device() is not supported",
            ));
        }
        let device = crate::device::extract(device)?;
        let array = slf.get().array(py);
        if array.device() == device {
            return Ok(slf.clone().unbind());
        }
        PyArray::wrap(
            py,
            array.to_device(device).map_err(|error| raise(py, error))?,
        )
    }

    /// The same array on another device; itself if it is there. The name that MXNet 1 used.
    #[doc = sections!(as_in_context)]
    fn as_in_context(slf: &Bound<'_, Self>, context: &Bound<'_, PyAny>) -> PyResult<Py<PyArray>> {
        Self::to_device(slf, context, None)
    }

    /// The same array on another device; itself if it is there.
    #[doc = sections!(as_in_ctx)]
    fn as_in_ctx(slf: &Bound<'_, Self>, ctx: &Bound<'_, PyAny>) -> PyResult<Py<PyArray>> {
        Self::to_device(slf, ctx, None)
    }

    /// The bytes of the elements in C order, or in Fortran order ('F'), or in that of the array ('A').
    #[doc = sections!(tobytes)]
    #[pyo3(signature = (order = Some("C")))]
    fn tobytes(slf: &Bound<'_, Self>, order: Option<&str>) -> PyResult<Py<PyAny>> {
        let order = order.unwrap_or("C");
        if let Some(bytes) = exchange::bytes(slf, order)? {
            return Ok(bytes.into_any().unbind());
        }
        let values = exchange::to_numpy(slf)?;
        let bytes = values.call_method1(slf.py(), "tobytes", (order,))?;
        Ok(bytes)
    }

    /// A DLPack capsule around the memory, once pending writes are done.
    #[doc = sections!(to_dlpack_for_read)]
    fn to_dlpack_for_read(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        dlpack::export(slf, None, None, None, None)
    }

    /// A DLPack capsule around the memory, once pending reads and writes are done; an error if the array is read-only.
    #[doc = sections!(to_dlpack_for_write)]
    fn to_dlpack_for_write(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        dlpack::export(slf, None, None, None, None)
    }

    // ---- gradients ----

    /// Gives the array a gradient buffer that `backward` fills.
    ///
    /// Parameters
    /// ----------
    /// grad_req : {'write', 'add', 'null'}
    ///     Whether a new gradient replaces the buffer, is added to it, or is not computed.
    #[doc = sections!(attach_grad)]
    #[pyo3(signature = (grad_req = "write", stype = None))]
    fn attach_grad(&self, py: Python<'_>, grad_req: &str, stype: Option<&str>) -> PyResult<()> {
        crate::autograd::attach(py, self, grad_req, stype)
    }

    /// Takes the gradient buffer away.
    #[doc = sections!(drop_grad)]
    fn drop_grad(&self, py: Python<'_>) {
        let mut array = self.array(py);
        mxnet::ops::autograd::drop_grad(&mut array);
        self.adopt(py, array);
    }

    /// The gradient buffer, or None.
    #[getter]
    fn grad(&self, py: Python<'_>) -> PyResult<Option<Py<PyArray>>> {
        let leaf = self.with(py, mxnet::ops::autograd::gradient_of);
        leaf.map(|leaf| PyArray::wrap(py, leaf.gradient()))
            .transpose()
    }

    /// The same elements, outside any recorded graph.
    #[doc = sections!(detach)]
    fn detach(&self, py: Python<'_>) -> PyResult<Py<PyArray>> {
        PyArray::wrap(py, self.with(py, Array::detach))
    }

    /// Computes the gradients of every variable this array was computed from.
    #[doc = sections!(backward)]
    #[pyo3(signature = (out_grad = None, retain_graph = false, train_mode = true))]
    fn backward(
        slf: &Bound<'_, Self>,
        out_grad: Option<&Bound<'_, PyAny>>,
        retain_graph: bool,
        train_mode: bool,
    ) -> PyResult<()> {
        crate::autograd::backward_of(slf, out_grad, retain_graph, train_mode)
    }

    // ---- conversions Python asks for ----

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        match self.with(py, |x| x.shape().first().copied()) {
            Some(n) => Ok(n),
            None => Err(PyTypeError::new_err("len() of unsized object")),
        }
    }

    fn __bool__(slf: &Bound<'_, Self>) -> PyResult<bool> {
        values::truth(slf)
    }

    fn __int__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        values::number(slf, values::Class::Int)
    }

    fn __float__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        values::number(slf, values::Class::Float)
    }

    /// The only element as a Python complex number.
    fn __complex__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        values::number(slf, values::Class::Complex)
    }

    fn __index__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        values::as_index(slf)
    }

    /// Of an array of no axes: whether the number is whole, a method.
    #[getter]
    fn is_integer(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        number::attribute(slf, "is_integer")
    }

    /// Of an array of no axes: the method that gives the number as a quotient of two int.
    #[getter]
    fn as_integer_ratio(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        number::attribute(slf, "as_integer_ratio")
    }

    /// Of an array of no axes that holds an integer: the method that counts the ones among its bits, without the sign.
    #[getter]
    fn bit_count(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        number::attribute(slf, "bit_count")
    }

    /// Of an array of no axes that holds an integer: its value, an int.
    #[getter]
    fn numerator(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        number::attribute(slf, "numerator")
    }

    /// Of an array of no axes that holds an integer: 1.
    #[getter]
    fn denominator(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        number::attribute(slf, "denominator")
    }

    /// Of an array of no axes that holds a float: the method that writes it with hexadecimal digits.
    #[getter]
    fn hex(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        number::attribute(slf, "hex")
    }

    fn __contains__(slf: &Bound<'_, Self>, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        exchange::contains(slf, value)
    }

    fn __iter__(slf: &Bound<'_, Self>) -> PyResult<index::Rows> {
        index::Rows::new(slf)
    }

    fn __reversed__(slf: &Bound<'_, Self>) -> PyResult<index::Rows> {
        let py = slf.py();
        if slf.get().with(py, Array::ndim) == 0 {
            return index::Rows::new(slf);
        }
        let backwards = pyo3::types::PySlice::full(py);
        let backwards = backwards.get_type().call1((py.None(), py.None(), -1))?;
        index::Rows::new(index::get(slf, &backwards)?.bind(py))
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        exchange::repr(slf)
    }

    /// A copy for NumPy to print, read only: of a large array it has the corners only.
    fn _lent(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        exchange::lent(slf)
    }

    fn __str__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        if slf.get().with(py, Array::is_abstract) {
            return Ok(exchange::repr(slf)?.into_pyobject(py)?.into_any().unbind());
        }
        Ok(exchange::lent(slf)?
            .bind(slf.py())
            .str()?
            .into_any()
            .unbind())
    }

    fn __format__(slf: &Bound<'_, Self>, spec: &str) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        if spec.is_empty() {
            return Self::__str__(slf);
        }
        if slf.get().with(py, Array::len) != 1 {
            return Err(PyTypeError::new_err(format!(
                "unsupported format string passed to {}.__format__",
                slf.get_type().name()?
            )));
        }
        values::scalar(slf)?
            .bind(py)
            .call_method1("__format__", (spec,))
            .map(Bound::unbind)
    }

    fn __reduce__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        exchange::reduce(slf)
    }

    /// Takes over what pickling kept.
    fn __setstate__(&self, py: Python<'_>, state: (Bound<'_, PyAny>, String)) -> PyResult<()> {
        self.adopt(py, exchange::of_state(&state.0, &state.1)?);
        Ok(())
    }

    /// The same elements in memory of their own.
    fn __copy__(slf: &Bound<'_, Self>) -> PyResult<Py<PyArray>> {
        let py = slf.py();
        let copy = slf
            .get()
            .with(py, |x| x.copy_in("K"))
            .map_err(|error| raise(py, error))?;
        match slf.get().is_scalar() {
            true => PyArray::wrap_result(py, copy),
            false => PyArray::wrap(py, copy),
        }
    }

    /// The same elements in memory of their own.
    fn __deepcopy__(slf: &Bound<'_, Self>, _memo: &Bound<'_, PyAny>) -> PyResult<Py<PyArray>> {
        Self::__copy__(slf)
    }

    // ---- exchange ----

    /// The elements as a NumPy array: of another dtype if one is asked for, and in memory of its own unless `copy` is False.
    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__(
        slf: &Bound<'_, Self>,
        dtype: Option<&Bound<'_, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Py<PyAny>> {
        exchange::array_protocol(slf, dtype, copy)
    }

    /// A NumPy function of elements, or one of its methods, called with one of these arrays: ours of the same name answers.
    #[pyo3(signature = (ufunc, method, /, *inputs, **kwargs))]
    fn __array_ufunc__(
        slf: &Bound<'_, Self>,
        ufunc: &Bound<'_, PyAny>,
        method: &str,
        inputs: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        protocol::array_ufunc(slf.py(), ufunc, method, inputs, kwargs)
    }

    /// Any other NumPy function called with one of these arrays: ours of the same name and module answers.
    fn __array_function__(
        slf: &Bound<'_, Self>,
        func: &Bound<'_, PyAny>,
        types: &Bound<'_, PyAny>,
        args: &Bound<'_, PyTuple>,
        kwargs: &Bound<'_, PyDict>,
    ) -> PyResult<Py<PyAny>> {
        protocol::array_function(slf.py(), func, types, args, kwargs)
    }

    /// The namespace of the array API: `mxnet.numpy`.
    #[pyo3(signature = (/, *, api_version = None))]
    fn __array_namespace__(
        slf: &Bound<'_, Self>,
        api_version: Option<&str>,
    ) -> PyResult<Py<PyAny>> {
        protocol::array_namespace(slf.py(), api_version)
    }

    /// `ndarray[shape, dtype]` in annotations, as of NumPy's class.
    #[classmethod]
    fn __class_getitem__<'py>(
        cls: &Bound<'py, PyType>,
        item: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = cls.py();
        py.import("types")?
            .call_method1("GenericAlias", (cls, item))
    }

    /// NumPy's description of the memory; the array is synchronous from then on.
    #[getter]
    fn __array_interface__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        exchange::interface(slf)
    }

    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut pyo3::ffi::Py_buffer,
        flags: std::os::raw::c_int,
    ) -> PyResult<()> {
        // SAFETY: Python passes a buffer to fill.
        unsafe { exchange::fill_buffer(&slf, view, flags) }
    }

    unsafe fn __releasebuffer__(&self, view: *mut pyo3::ffi::Py_buffer) {
        // SAFETY: Python passes a buffer that `__getbuffer__` filled.
        unsafe { exchange::release_buffer(view) }
    }

    /// A DLPack capsule around the memory, once pending writes are done; see `from_dlpack`.
    #[pyo3(signature = (*, stream = None, max_version = None, dl_device = None, copy = None))]
    fn __dlpack__(
        slf: &Bound<'_, Self>,
        stream: Option<&Bound<'_, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Py<PyAny>> {
        dlpack::export(slf, stream, max_version, dl_device, copy)
    }

    /// DLPack's numbers of the device: its kind and which one it is.
    fn __dlpack_device__(&self, py: Python<'_>) -> (i32, i32) {
        dlpack::device(self.with(py, Array::device))
    }

    // ---- indexing ----

    fn __getitem__(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<Py<PyArray>> {
        index::get(slf, key)
    }

    fn __setitem__(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        index::set(slf, key, value)
    }

    fn __delitem__(&self, _key: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(PyValueError::new_err("cannot delete array elements"))
    }

    /// Arrays are added by `+`, joined by `np.concatenate`: no sequence of them is meant.
    fn __concat__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        Err(PyTypeError::new_err(format!(
            "unsupported operand type(s) for +: '{}' and '{}' (arrays are joined by np.concatenate)",
            slf.get_type().name()?,
            other.get_type().name()?
        )))
    }

    // ---- operators ----

    fn __add__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, &e::arithmetic::ADD, other)
    }
    fn __radd__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        reflected(slf, &e::arithmetic::ADD, other)
    }
    fn __iadd__(slf: Target<'_, '_>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        in_place(slf, &e::arithmetic::ADD, other)
    }
    fn __sub__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, &e::arithmetic::SUBTRACT, other)
    }
    fn __rsub__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        reflected(slf, &e::arithmetic::SUBTRACT, other)
    }
    fn __isub__(slf: Target<'_, '_>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        in_place(slf, &e::arithmetic::SUBTRACT, other)
    }
    fn __mul__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, &e::arithmetic::MULTIPLY, other)
    }
    fn __rmul__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        reflected(slf, &e::arithmetic::MULTIPLY, other)
    }
    fn __imul__(slf: Target<'_, '_>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        in_place(slf, &e::arithmetic::MULTIPLY, other)
    }
    fn __truediv__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, &e::arithmetic::DIVIDE, other)
    }
    fn __rtruediv__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        reflected(slf, &e::arithmetic::DIVIDE, other)
    }
    fn __itruediv__(slf: Target<'_, '_>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        in_place(slf, &e::arithmetic::DIVIDE, other)
    }
    fn __floordiv__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, &e::arithmetic::FLOOR_DIVIDE, other)
    }
    fn __rfloordiv__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        reflected(slf, &e::arithmetic::FLOOR_DIVIDE, other)
    }
    fn __ifloordiv__(slf: Target<'_, '_>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        in_place(slf, &e::arithmetic::FLOOR_DIVIDE, other)
    }
    fn __mod__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, &e::arithmetic::REMAINDER, other)
    }
    fn __rmod__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        reflected(slf, &e::arithmetic::REMAINDER, other)
    }
    fn __imod__(slf: Target<'_, '_>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        in_place(slf, &e::arithmetic::REMAINDER, other)
    }
    fn __matmul__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, &linalg::MATMUL, other)
    }
    fn __rmatmul__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        reflected(slf, &linalg::MATMUL, other)
    }
    fn __imatmul__(slf: Target<'_, '_>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        in_place(slf, &linalg::MATMUL, other)
    }
    fn __and__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, &e::bitwise::BITWISE_AND, other)
    }
    fn __rand__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        reflected(slf, &e::bitwise::BITWISE_AND, other)
    }
    fn __iand__(slf: Target<'_, '_>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        in_place(slf, &e::bitwise::BITWISE_AND, other)
    }
    fn __or__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, &e::bitwise::BITWISE_OR, other)
    }
    fn __ror__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        reflected(slf, &e::bitwise::BITWISE_OR, other)
    }
    fn __ior__(slf: Target<'_, '_>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        in_place(slf, &e::bitwise::BITWISE_OR, other)
    }
    fn __xor__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, &e::bitwise::BITWISE_XOR, other)
    }
    fn __rxor__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        reflected(slf, &e::bitwise::BITWISE_XOR, other)
    }
    fn __ixor__(slf: Target<'_, '_>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        in_place(slf, &e::bitwise::BITWISE_XOR, other)
    }
    fn __lshift__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, &e::bitwise::LEFT_SHIFT, other)
    }
    fn __rlshift__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        reflected(slf, &e::bitwise::LEFT_SHIFT, other)
    }
    fn __ilshift__(slf: Target<'_, '_>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        in_place(slf, &e::bitwise::LEFT_SHIFT, other)
    }
    fn __rshift__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, &e::bitwise::RIGHT_SHIFT, other)
    }
    fn __rrshift__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        reflected(slf, &e::bitwise::RIGHT_SHIFT, other)
    }
    fn __irshift__(slf: Target<'_, '_>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        in_place(slf, &e::bitwise::RIGHT_SHIFT, other)
    }
    fn __pow__(
        slf: &Bound<'_, Self>,
        other: &Bound<'_, PyAny>,
        modulo: &Bound<'_, PyAny>,
    ) -> PyResult<Py<PyAny>> {
        if !modulo.is_none() {
            return Ok(slf.py().NotImplemented());
        }
        match plain_power(slf, other)? {
            Some(op) => unary(slf, op),
            None => binary(slf, &e::explog::POWER, other),
        }
    }
    fn __rpow__(
        slf: &Bound<'_, Self>,
        other: &Bound<'_, PyAny>,
        modulo: &Bound<'_, PyAny>,
    ) -> PyResult<Py<PyAny>> {
        if !modulo.is_none() {
            return Ok(slf.py().NotImplemented());
        }
        reflected(slf, &e::explog::POWER, other)
    }
    fn __ipow__(
        slf: Target<'_, '_>,
        other: &Bound<'_, PyAny>,
        modulo: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if !modulo.is_none() {
            return Err(PyTypeError::new_err("in-place power takes no modulus"));
        }
        in_place(slf, &e::explog::POWER, other)
    }
    fn __divmod__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, &e::arithmetic::DIVMOD, other)
    }
    fn __rdivmod__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        reflected(slf, &e::arithmetic::DIVMOD, other)
    }
    fn __neg__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        unary(slf, &e::arithmetic::NEGATIVE)
    }
    fn __pos__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        unary(slf, &e::arithmetic::POSITIVE)
    }
    fn __abs__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        unary(slf, &e::arithmetic::ABSOLUTE)
    }
    fn __invert__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        unary(slf, &e::bitwise::INVERT)
    }

    fn __richcmp__(
        slf: &Bound<'_, Self>,
        other: &Bound<'_, PyAny>,
        kind: CompareOp,
    ) -> PyResult<Py<PyAny>> {
        let op = match kind {
            CompareOp::Lt => &e::comparison::LESS,
            CompareOp::Le => &e::comparison::LESS_EQUAL,
            CompareOp::Eq => &e::comparison::EQUAL,
            CompareOp::Ne => &e::comparison::NOT_EQUAL,
            CompareOp::Gt => &e::comparison::GREATER,
            CompareOp::Ge => &e::comparison::GREATER_EQUAL,
        };
        binary(slf, op, other)
    }

    /// That of the number, of an array of no axes. Elements change, and equality is elementwise: other arrays are no keys.
    fn __hash__(slf: &Bound<'_, Self>) -> PyResult<isize> {
        number::hash(slf)
    }

    /// `math.floor(x)`: a Python integer of a number, else the elements rounded down.
    fn __floor__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        number::whole(slf, &e::rounding::FLOOR)
    }

    /// `math.ceil(x)`: a Python integer of a number, else the elements rounded up.
    fn __ceil__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        number::whole(slf, &e::rounding::CEIL)
    }

    /// `math.trunc(x)`: a Python integer of a number, else the elements rounded towards zero.
    fn __trunc__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        number::whole(slf, &e::rounding::TRUNC)
    }

    /// `round(x)`: a Python integer of a number; with `ndigits`, or of other arrays, the elements rounded to so many digits.
    #[pyo3(signature = (ndigits = None))]
    fn __round__(slf: &Bound<'_, Self>, ndigits: Option<isize>) -> PyResult<Py<PyAny>> {
        number::round(slf, ndigits)
    }

    /// Bytes of the object, and of its elements if they are its own.
    fn __sizeof__(&self, py: Python<'_>) -> usize {
        self.with(py, memory::object_bytes)
    }
}

/// A view of the array: by its layout while nothing is recorded, else by an operator.
#[inline]
fn seen(
    slf: &Bound<'_, PyArray>,
    plain: impl FnOnce(&Layout) -> Result<Layout, TensorError>,
    general: impl FnOnce(&Array) -> mxnet::ops::Result<Array>,
) -> PyResult<Py<PyArray>> {
    let py = slf.py();
    if Flags::current().may_move() {
        let layout = plain(slf.get().look(py).layout());
        let layout = layout.map_err(|error| raise(py, error.into()))?;
        return PyArray::shown(py, &layout, slf);
    }
    let view = general(&slf.get().look(py));
    PyArray::wrap_of(py, view.map_err(|error| raise(py, error))?, slf)
}
