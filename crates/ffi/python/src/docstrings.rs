//! Sections of the docstrings of `ndarray`'s methods; the summary lines are in the tables of methods.

/// The sections of a method (parameters, results, errors, examples). They start with an empty line, unless they continue a section.
macro_rules! sections {
    (setflags) => {
        "
Parameters
----------
write : bool, optional
    Whether the elements are writable; None leaves the flag unchanged.
align, uic : bool, optional
    NumPy's other flags, which cannot be changed.

Raises
------
ValueError
    If `write` is True but the memory is read-only.

Examples
--------
>>> x = np.zeros(2)
>>> x.setflags(write=False)
>>> x.flags.writeable
False"
    };
    (view) => {
        "
Parameters
----------
dtype : dtype or class of arrays, optional
    Dtype of the view.
type : class of arrays, optional
    Class of the result.

Returns
-------
ndarray
    View of the same memory.

Raises
------
ValueError
    If the bytes of the last axis are not a multiple of the item size of `dtype`.

Examples
--------
>>> x = np.array([1.0, 2.0])
>>> x.view('int32')
array([1065353216, 1073741824], dtype=int32)"
    };
    (put) => {
        "
Parameters
----------
indices : array_like of int
    Positions in the flattened array.
values : array_like
    Values, repeated if there are fewer values than positions.
mode : {'raise', 'wrap', 'clip'}
    Handling of positions out of bounds: an error, modulo the size, or clipping.

Raises
------
IndexError
    If a position is out of bounds and `mode` is 'raise'.

Examples
--------
>>> x = np.zeros(3)
>>> x.put([0, 2], [5, 6])
>>> x
array([5., 0., 6.])"
    };
    (fill) => {
        "
Parameters
----------
value : number
    The new value of every element.

Examples
--------
>>> x = np.zeros(3)
>>> x.fill(7)
>>> x
array([7., 7., 7.])"
    };
    (resize) => {
        "
Parameters
----------
new_shape : int or tuple of int
    Lengths of the axes, as separate arguments or one tuple.
refcheck : bool, default True
    Whether it is an error if there are views of the array.

Raises
------
ValueError
    If the array is a view, or if it has views and `refcheck` is true.

Examples
--------
>>> x = np.array([1, 2, 3])
>>> x.resize(2, 2)
>>> x.tolist()
[[1, 2], [3, 0]]"
    };
    (copyto) => {
        "
Parameters
----------
other : ndarray or Device
    The destination.

Returns
-------
ndarray
    `other`, or the copy on that device.

Examples
--------
>>> x, y = np.array([1, 2]), np.zeros(2)
>>> x.copyto(y)
array([1., 2.])"
    };
    (item) => {
        "
Parameters
----------
args : int or ints, optional
    Position in the flattened array, or one index for each axis.

Returns
-------
bool, int, float or complex

Raises
------
ValueError
    If no position is given and there is not exactly one element.
IndexError
    If the position is out of bounds.

Examples
--------
>>> x = np.array([[1, 2], [3, 4]])
>>> x.item(3), x.item(0, 1)
(4, 2)"
    };
    (tolist) => {
        "
Returns
-------
list, or a number if there are no axes

Examples
--------
>>> np.array([[1, 2], [3, 4]]).tolist()
[[1, 2], [3, 4]]"
    };
    (asnumpy) => {
        "
Returns
-------
numpy.ndarray

Examples
--------
>>> np.ones(2).asnumpy()
array([1., 1.], dtype=float32)"
    };
    (as_np_ndarray) => {
        "
Returns
-------
ndarray
    The array itself.

Examples
--------
>>> x = np.ones(2)
>>> x.as_np_ndarray() is x
True"
    };
    (sort) => {
        "
Parameters
----------
axis : int, default -1
    Axis along which the elements are ordered.
kind, stable : optional
    Accepted for compatibility with NumPy; every kind is stable.
descending : bool
    Sort in descending order; equal elements keep their order.
order : None
    Must be None, because there are no fields.

Raises
------
TypeError
    If `axis` is not an integer.
ValueError
    If the array is read-only.

Examples
--------
>>> x = np.array([3, 1, 2])
>>> x.sort()
>>> x
array([1, 2, 3])"
    };
    (partition) => {
        "
Parameters
----------
kth : int or sequence of int
    Positions whose elements are those of the sorted array. Smaller elements come before them, larger ones after them.
axis : int, default -1
    Axis along which the elements are ordered.
kind : str
    Accepted for compatibility with NumPy.
order : None
    Must be None, because there are no fields.

Raises
------
TypeError
    If `axis` is not an integer.
ValueError
    If a position is out of bounds, or the array is read-only.

Examples
--------
>>> x = np.array([7, 1, 5, 3])
>>> x.partition(1)
>>> x[:2]
array([1, 3])"
    };
    (wait_to_read) => {
        "
Raises
------
MXNetError
    The error of the operation that should have computed the elements.

Examples
--------
>>> x = np.ones((100, 100)) @ np.ones((100, 100))
>>> x.wait_to_read()"
    };
    (wait_to_write) => {
        "
Raises
------
MXNetError
    The error of the operation that should have computed the elements.

Examples
--------
>>> x = np.ones((100, 100))
>>> x.wait_to_write()"
    };
    (to_device) => {
        "
Parameters
----------
device : Device or str
    The device.
stream : None
    Must be None.

Returns
-------
ndarray

Examples
--------
>>> x = np.ones(2)
>>> x.to_device(mx.cpu()) is x
True"
    };
    (conj) => {
        "
Parameters
----------
out : ndarray, optional
    Array for the result.

Returns
-------
ndarray

Examples
--------
>>> np.array([1 + 2j]).conj()
array([1.-2.j])"
    };
    (as_in_context) => {
        "
Parameters
----------
context : Device
    The device.

Returns
-------
ndarray

Examples
--------
>>> import warnings
>>> x = np.ones(2)
>>> with warnings.catch_warnings():
...     warnings.simplefilter('ignore', DeprecationWarning)
...     x.as_in_context(mx.cpu()) is x
True"
    };
    (as_in_ctx) => {
        "
Parameters
----------
ctx : Device
    The device.

Returns
-------
ndarray

Examples
--------
>>> import warnings
>>> x = np.ones(2)
>>> with warnings.catch_warnings():
...     warnings.simplefilter('ignore', DeprecationWarning)
...     x.as_in_ctx(mx.cpu()) is x
True"
    };
    (tobytes) => {
        "
Parameters
----------
order : {'C', 'F', 'A'}, default 'C'
    Order of the elements: C, Fortran, or that of the array.

Returns
-------
bytes

Examples
--------
>>> np.array([1, 2], dtype='int16').tobytes()
b'\\x01\\x00\\x02\\x00'"
    };
    (to_dlpack_for_read) => {
        "
Returns
-------
capsule

Examples
--------
>>> np.from_dlpack(np.array([1, 2]).to_dlpack_for_read())
array([1, 2])"
    };
    (to_dlpack_for_write) => {
        "
Returns
-------
capsule

Raises
------
BufferError
    If the array is read-only.

Examples
--------
>>> x = np.array([1, 2])
>>> y = np.from_dlpack(x.to_dlpack_for_write())
>>> y[0] = 9
>>> x
array([9, 2])"
    };
    (attach_grad) => {
        "stype : {'default', 'row_sparse'}, optional
    How the gradient is stored: all elements, or only the rows that received a gradient, as from functions with `sparse_grad`
    and products of sparse arrays. For 'row_sparse', `grad` is a `row_sparse_array`; a dense cotangent gives all rows.

Raises
------
UnsupportedError
    If `stype` is another word.
ShapeError
    If `stype` is 'row_sparse' and the array is 0-d.

Examples
--------
>>> x = np.array([1.0, 2.0])
>>> x.attach_grad()
>>> with mx.autograd.record():
...     y = (x * x).sum()
>>> y.backward()
>>> x.grad
array([2., 4.])"
    };
    (drop_grad) => {
        "
Examples
--------
>>> x = np.array([1.0, 2.0])
>>> x.attach_grad()
>>> x.drop_grad()
>>> x.grad is None
True"
    };
    (detach) => {
        "
Returns
-------
ndarray
    It shares the elements; no gradient flows through it.

Examples
--------
>>> x = np.array([3.0])
>>> x.attach_grad()
>>> with mx.autograd.record():
...     y = x * x.detach()
>>> y.backward()
>>> x.grad
array([3.])"
    };
    (backward) => {
        "
Parameters
----------
out_grad : ndarray, optional
    Gradient with respect to this array; ones for None.
retain_graph : bool, default False
    Whether the graph is kept for another pass.
train_mode : bool, default True
    Whether operators behave as in training.

Raises
------
AutogradError
    If the array was not recorded, or its graph was freed by an earlier pass.

Examples
--------
>>> x = np.array([1.0, 2.0])
>>> x.attach_grad()
>>> with mx.autograd.record():
...     y = x ** 3
>>> y.backward(np.array([1.0, 10.0]))
>>> x.grad
array([  3., 120.])"
    };
}
pub(crate) use sections;
