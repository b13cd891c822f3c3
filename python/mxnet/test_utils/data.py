"""Random shapes and arrays, and reductions of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp
from numpy.typing import NDArray

from mxnet import numpy as np
from mxnet._renamed import old_keywords
from mxnet.base import DTypeLike, dtype_name
from mxnet.device import Device
from mxnet.numpy import ndarray
from mxnet.test_utils.defaults import default_device

__all__ = [
    "collapse_sum_like",
    "create_2d_np_tensor",
    "create_2d_tensor",
    "create_vector",
    "np_reduce",
    "rand_coord_2d",
    "rand_ndarray",
    "rand_shape_2d",
    "rand_shape_3d",
    "rand_shape_nd",
    "random_arrays",
    "random_sample",
    "random_uniform_arrays",
]


def _below(limit: int) -> int:
    """A random whole number from 0 to ``limit - 1``."""
    return int(np.random.randint(0, limit, size=(1,)).asnumpy()[0])


def rand_shape_2d(dim0: int = 10, dim1: int = 10, allow_zero_size: bool = False) -> tuple[int, ...]:
    """A random shape of two axes, sizes from 1 (or 0) to the given ones.

    Parameters
    ----------
    dim0, dim1 : int
        Largest lengths.
    allow_zero_size : bool
        Whether lengths may be 0.

    Returns
    -------
    tuple of int

    Examples
    --------
    >>> all(1 <= n <= 4 for n in mx.test_utils.rand_shape_2d(4, 4))
    True
    """
    return _rand_shape((dim0, dim1), allow_zero_size)


def rand_shape_3d(dim0: int = 10, dim1: int = 10, dim2: int = 10, allow_zero_size: bool = False) -> tuple[int, ...]:
    """A random shape of three axes, sizes from 1 (or 0) to the given ones.

    Parameters
    ----------
    dim0, dim1, dim2 : int
        Largest lengths.
    allow_zero_size : bool
        Whether lengths may be 0.

    Returns
    -------
    tuple of int

    Examples
    --------
    >>> len(mx.test_utils.rand_shape_3d(4, 4, 4))
    3
    """
    return _rand_shape((dim0, dim1, dim2), allow_zero_size)


def rand_shape_nd(num_dim: int, dim: int = 10, allow_zero_size: bool = False) -> tuple[int, ...]:
    """A random shape of `num_dim` axes, sizes from 1 (or 0) to `dim`.

    Parameters
    ----------
    num_dim : int
        Number of axes.
    dim : int
        Largest length.
    allow_zero_size : bool
        Whether lengths may be 0.

    Returns
    -------
    tuple of int

    Examples
    --------
    >>> len(mx.test_utils.rand_shape_nd(5))
    5
    """
    return _rand_shape((dim,) * num_dim, allow_zero_size)


def _rand_shape(limits: Sequence[int], allow_zero_size: bool) -> tuple[int, ...]:
    low = 0 if allow_zero_size else 1
    return tuple(low + _below(limit - low + 1) for limit in limits)


@old_keywords(ctx="device")
def rand_ndarray(
    shape: Sequence[int],
    stype: str = "default",
    dtype: DTypeLike | None = None,
    distribution: str | None = None,
    device: Device | None = None,
) -> ndarray:
    """A random array.

    Parameters
    ----------
    shape : sequence of int
    stype : {"default"}
        Storage; only dense storage exists.
    dtype : dtype, optional
        float32 by default.
    distribution : {"uniform", "normal"}, optional
        Uniform in [-1, 1) by default.
    device : Device, optional
        `default_device` by default.

    Returns
    -------
    ndarray, shape `shape`

    Raises
    ------
    ValueError
        If `stype` or `distribution` is unknown.

    Examples
    --------
    >>> mx.test_utils.rand_ndarray((2, 3)).shape
    (2, 3)
    """
    if stype != "default":
        raise ValueError(f"`stype` must be 'default', found {stype!r}")
    name = "float32" if dtype is None else dtype_name(dtype)
    where = default_device() if device is None else device
    drawn = "float64" if name == "float64" else "float32"
    if distribution in (None, "uniform"):
        values = np.random.uniform(-1.0, 1.0, size=tuple(shape), dtype=drawn, device=where)
    elif distribution == "normal":
        values = np.random.normal(0.0, 1.0, size=tuple(shape), dtype=drawn, device=where)
    else:
        raise ValueError(f"`distribution` must be 'uniform' or 'normal', found {distribution!r}")
    return values if name == drawn else values.astype(name)


def random_arrays(*shapes: Sequence[int]) -> Any:
    """NumPy arrays of normal random numbers, float32.

    Parameters
    ----------
    *shapes : sequence of int

    Returns
    -------
    numpy.ndarray or list of numpy.ndarray
        One array for one shape.

    Examples
    --------
    >>> x, y = mx.test_utils.random_arrays((2, 3), ())
    >>> x.shape, y.shape
    ((2, 3), ())
    """
    arrays = [rand_ndarray(shape, distribution="normal").asnumpy() for shape in shapes]
    return arrays[0] if len(arrays) == 1 else arrays


def random_uniform_arrays(*shapes: Sequence[int], low: float = 0.0, high: float = 1.0) -> list[NDArray[Any]]:
    """NumPy arrays of uniform random numbers, float32.

    Parameters
    ----------
    *shapes : sequence of int
    low, high : float
        Range.

    Returns
    -------
    list of numpy.ndarray

    Examples
    --------
    >>> (x,) = mx.test_utils.random_uniform_arrays((2, 3), low=5.0, high=6.0)
    >>> x.shape, bool((x >= 5).all())
    ((2, 3), True)
    """
    return [np.random.uniform(low, high, size=tuple(shape)).asnumpy() for shape in shapes]


def random_sample(population: Sequence[Any], k: int) -> list[Any]:
    """Different entries of a sequence, in their order.

    Parameters
    ----------
    population : sequence
    k : int
        How many.

    Returns
    -------
    list

    Raises
    ------
    ValueError
        If there are less.

    Examples
    --------
    >>> sorted(mx.test_utils.random_sample([3, 1, 2], 3))
    [1, 2, 3]
    """
    if not 0 <= k <= len(population):
        raise ValueError(f"`k` must be from 0 to {len(population)}, found {k}")
    keys = np.random.uniform(0.0, 1.0, size=(len(population),), dtype="float64").asnumpy()
    return [population[i] for i in sorted(keys.argsort(kind="stable")[:k].tolist())]


def np_reduce(
    dat: NDArray[Any],
    axis: int | Sequence[int] | None,
    keepdims: bool,
    numpy_reduce_func: Callable[..., Any],
) -> Any:
    """Reduce a NumPy array axis by axis, with a function that takes one axis only.

    Parameters
    ----------
    dat : numpy.ndarray
    axis : int, sequence of int or None
        None reduces all.
    keepdims : bool
        Keep reduced axes with length 1.
    numpy_reduce_func : callable of an array and ``axis``

    Returns
    -------
    numpy.ndarray

    Examples
    --------
    >>> import numpy
    >>> mx.test_utils.np_reduce(numpy.ones((2, 3)), axis=1, keepdims=False, numpy_reduce_func=numpy.sum)
    array([3., 3.])
    """
    axes = range(dat.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    chosen = sorted({number % dat.ndim for number in axes}, reverse=True)
    result = dat
    for number in chosen:
        result = numpy_reduce_func(result, axis=number)
    if keepdims:
        result = result.reshape([1 if number in chosen else size for number, size in enumerate(dat.shape)])
    return result


def rand_coord_2d(x_low: int, x_high: int, y_low: int, y_high: int) -> tuple[int, int]:
    """A random point, each coordinate from its low (included) to its high bound (excluded).

    Parameters
    ----------
    x_low, x_high : int
        Bounds of the first coordinate.
    y_low, y_high : int
        Bounds of the second coordinate.

    Returns
    -------
    tuple of int

    Examples
    --------
    >>> x, y = mx.test_utils.rand_coord_2d(0, 3, 5, 6)
    >>> 0 <= x < 3, y
    (True, 5)
    """
    return x_low + _below(x_high - x_low), y_low + _below(y_high - y_low)


def create_vector(size: int, dtype: DTypeLike = "int64") -> ndarray:
    """The numbers from 0 to ``size - 1``, shape ``(size,)``.

    Parameters
    ----------
    size : int
        Length of the result.
    dtype : dtype
        Type of the result.

    Returns
    -------
    ndarray, shape (size,)

    Examples
    --------
    >>> mx.test_utils.create_vector(3)
    array([0, 1, 2])
    """
    return np.arange(size).astype(dtype_name(dtype))


def create_2d_np_tensor(rows: int, columns: int, dtype: DTypeLike = "int64") -> ndarray:
    """The number of the row in every column, shape ``(rows, columns)``.

    Parameters
    ----------
    rows, columns : int
        Lengths of the axes.
    dtype : dtype
        Type of the result.

    Returns
    -------
    ndarray, shape (rows, columns)

    Examples
    --------
    >>> mx.test_utils.create_2d_np_tensor(2, 3)
    array([[0, 0, 0],
           [1, 1, 1]])
    """
    return np.broadcast_to(create_vector(rows, dtype).reshape((rows, 1)), (rows, columns))


def create_2d_tensor(rows: int, columns: int, dtype: DTypeLike = "int64") -> ndarray:
    """The number of the row in every column, as `create_2d_np_tensor`.

    Parameters
    ----------
    rows, columns : int
        Lengths of the axes.
    dtype : dtype
        Type of the result.

    Returns
    -------
    ndarray, shape (rows, columns)

    Examples
    --------
    >>> mx.test_utils.create_2d_tensor(2, 1)
    array([[0],
           [1]])
    """
    return create_2d_np_tensor(rows, columns, dtype)


def collapse_sum_like(a: ndarray, shape: Sequence[int]) -> ndarray:
    """Sum an array over the axes along which an array of another shape would be broadcast to it.

    Parameters
    ----------
    a : ndarray
    shape : sequence of int
        Broadcasts to the shape of `a`.

    Returns
    -------
    ndarray, shape `shape`

    Raises
    ------
    ValueError
        If `shape` does not broadcast to the shape of `a`.

    Examples
    --------
    >>> import numpy
    >>> mx.test_utils.collapse_sum_like(numpy.ones((2, 3)), (1, 3))
    array([[2., 2., 2.]])
    """
    target = tuple(shape)
    if onp.broadcast_shapes(target, a.shape) != tuple(a.shape):
        raise ValueError(f"shape {target} does not broadcast to {a.shape}")
    missing = a.ndim - len(target)
    grown = [axis for axis, size in enumerate(a.shape) if axis < missing or target[axis - missing] != size]
    return a.sum(axis=tuple(grown)).reshape(target) if grown else a
