//! Sections of the docstrings of `ndarray`'s methods; the summary lines are in the tables of methods.

/// The sections of a method (parameters, results, errors, examples). They start with an empty line, unless they continue a section.
macro_rules! sections {
    (setflags) => {
        "
Parameters
----------
write : bool, optional
    Whether the elements may be written; None leaves the flag as it is.
align, uic : bool, optional
    NumPy's other flags, which can only be what they are.

Raises
------
ValueError
    If memory that is not the array's to write shall be writable.

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
    What the bytes are taken for.
type : class of arrays, optional
    Class of the result.

Returns
-------
ndarray
    View of the same memory.

Raises
------
ValueError
    If the last axis does not hold whole elements of `dtype`.

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
    Values, repeated if they are fewer than the positions.
mode : {'raise', 'wrap', 'clip'}
    What happens to a position out of bounds.

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
    What every element becomes.

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
    Whether views of the array are looked for.

Raises
------
ValueError
    If there are views of the array, or it is one.

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
    Where the elements go.

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
    The axis.
kind, stable : optional
    Accepted as NumPy's; every kind is stable.
descending : bool
    Largest elements first; equal ones keep their order.
order : None
    There are no fields.

Raises
------
TypeError
    If `axis` is no integer.
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
    Positions at which elements stand as after sorting.
axis : int, default -1
    The axis.
kind : str
    Accepted as NumPy's.
order : None
    There are no fields.

Raises
------
TypeError
    If `axis` is no integer.
ValueError
    If a position is none of the axis, or the array is read-only.

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
    What went wrong on the way to the elements.

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
    What went wrong on the way to the elements.

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
    Where the elements shall be.
stream : None
    There are none to choose.

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
    Where the result is written.

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
    Where the elements shall be.

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
    Where the elements shall be.

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
    In which order the elements are taken.

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
    How the gradient is stored: all elements, or the rows that a gradient flowed into, as functions with `sparse_grad` and
    products of sparse arrays give them. `grad` is a `row_sparse_array` then; a dense gradient that flows in has all rows.

Raises
------
UnsupportedError
    If there is no such way to store it.
ShapeError
    If an array without axes is to have a row-sparse gradient.

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
    If the array was not recorded, or its graph is gone.

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
