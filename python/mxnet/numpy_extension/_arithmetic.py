"""Sums and norms under MXNet's names, synchronised batch normalisation, and checks of values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from mxnet import _core
from mxnet._core import asarray, ndarray
from mxnet.base import DTypeLike
from mxnet.numpy._overriding import overridable

__all__ = [
    "add_n",
    "batch_norm_with_relu",
    "broadcast_greater",
    "constraint_check",
    "norm",
    "sync_batch_norm",
]

_np = _core.namespaces["numpy"]
_npx = _core.namespaces["npx"]


@overridable
def add_n(*args: ArrayLike) -> ndarray:
    """Sum of arrays of one shape.

    Parameters
    ----------
    *args : array_like
        At least one.

    Returns
    -------
    ndarray
        Of their shape.

    Raises
    ------
    TypeError
        If there is none.
    ValueError
        If the shapes differ.

    Examples
    --------
    >>> npx.add_n(np.array([1, 2]), np.array([10, 20]), np.array([100, 200]))
    array([111, 222])
    """
    if not args:
        raise TypeError("add_n: needs at least one array, found none")
    arrays = [asarray(x) for x in args]
    total = arrays[0]
    for i, x in enumerate(arrays[1:], 1):
        if x.shape != arrays[0].shape:
            raise ValueError(f"add_n: array {i} has shape {x.shape}, the first has {arrays[0].shape}")
        total = total + x
    return total


@overridable
def norm(
    data: ArrayLike,
    ord: int = 2,
    axis: int | Sequence[int] | None = None,
    out_dtype: DTypeLike | None = None,
    keepdims: bool = False,
) -> ndarray:
    """Sum of absolute values, or root of the sum of squares, over axes.

    Parameters
    ----------
    data : array_like
    ord : {1, 2}
    axis : int or sequence of int, optional
        None is all axes.
    out_dtype : dtype, optional
        In which the norm is computed; None is that of `data`.
    keepdims : bool

    Returns
    -------
    ndarray
        Of the shape of `data` without the axes.

    Raises
    ------
    ValueError
        If `ord` is neither.

    Examples
    --------
    >>> npx.norm(np.array([[3.0, 4.0], [6.0, 8.0]]), axis=1)
    array([ 5., 10.])
    >>> npx.norm(np.array([3.0, -4.0]), ord=1)
    array(7.)
    """
    if ord not in (1, 2):
        raise ValueError(f"norm: `ord` must be 1 or 2, found {ord!r}")
    x = asarray(data)
    if out_dtype is not None:
        x = x.astype(out_dtype)
    axes = axis if axis is None or isinstance(axis, int) else tuple(axis)
    if ord == 1:
        total: ndarray = _np["sum"](_np["abs"](x), axis=axes, keepdims=keepdims)
        return total
    size = _np["abs"](x)
    root: ndarray = _np["sqrt"](_np["sum"](size * size, axis=axes, keepdims=keepdims))
    return root


def constraint_check(x: ArrayLike, msg: str = "Constraint violated.") -> ndarray:
    """Raise unless every element is true. The values are read, so the call waits for them.

    Parameters
    ----------
    x : array_like of bool
    msg : str
        Text of the error.

    Returns
    -------
    ndarray, shape ()
        True.

    Raises
    ------
    ValueError
        With `msg`, if an element is false.

    Examples
    --------
    >>> npx.constraint_check(np.array([True, True]), 'all must be true')
    array(True)
    """
    holds: ndarray = _np["all"](asarray(x))
    if not holds.item():
        raise ValueError(msg)
    return holds


def sync_batch_norm(
    data: ArrayLike,
    gamma: ndarray,
    beta: ndarray,
    moving_mean: ndarray,
    moving_var: ndarray,
    eps: float = 1e-3,
    momentum: float = 0.9,
    fix_gamma: bool = True,
    use_global_stats: bool = False,
    output_mean_var: bool = False,
    ndev: int = 1,
    key: str = "",
) -> Any:
    """Batch normalisation with statistics over the batches of several devices.

    Parameters
    ----------
    data, gamma, beta, moving_mean, moving_var, eps, momentum, fix_gamma, use_global_stats, output_mean_var
        As in `batch_norm`, with the channels in axis 1.
    ndev : int
        Devices that take part. The statistics of one device are those of its batch.
    key : str
        Names the layer among the devices; one device has nothing to name.

    Returns
    -------
    ndarray, or tuple of three
        As `batch_norm` gives.

    Raises
    ------
    ValueError
        If `ndev` is not 1: batches of several devices are not joined.

    Examples
    --------
    >>> x = np.array([[1.0, 10.0], [3.0, 30.0]])
    >>> with mx.autograd.train_mode():
    ...     npx.sync_batch_norm(x, np.ones(2), np.zeros(2), np.zeros(2), np.ones(2), eps=0.0, key='norm')
    array([[-1., -1.],
           [ 1.,  1.]])
    """
    if ndev != 1:
        raise ValueError(f"sync_batch_norm: `ndev` must be 1, batches of several devices are not joined, found {ndev}")
    return _core.namespaces["npx"]["batch_norm"](
        data, gamma, beta, moving_mean, moving_var, eps, momentum, fix_gamma, use_global_stats, output_mean_var
    )


def batch_norm_with_relu(data: ArrayLike, gamma: ndarray, beta: ndarray, *args: Any, **kwargs: Any) -> Any:
    """Batch normalisation whose negative results are 0.

    Parameters
    ----------
    data : array_like
    gamma, beta : ndarray
    *args, **kwargs
        The other arguments of `batch_norm`.

    Returns
    -------
    ndarray, or tuple of three
        As `batch_norm`; mean and variance as they are.

    Raises
    ------
    TypeError
        For arguments that `batch_norm` has not.

    Examples
    --------
    >>> x, statistics = np.array([[-1.0, 2.0]]), (np.zeros(2), np.ones(2))
    >>> npx.batch_norm_with_relu(x, np.ones(2), np.zeros(2), *statistics, eps=0.0)
    array([[0., 2.]])
    """
    found = _npx["batch_norm"](data, gamma, beta, *args, **kwargs)
    if isinstance(found, tuple | list):
        return (_npx["relu"](found[0]), *found[1:])
    return _npx["relu"](found)


def broadcast_greater(lhs: ArrayLike, rhs: ArrayLike) -> ndarray:
    """Whether elements are greater than others.

    Parameters
    ----------
    lhs, rhs : array_like
        Shapes that broadcast.

    Returns
    -------
    ndarray of bool

    Examples
    --------
    >>> npx.broadcast_greater(np.array([1, 3]), 2)
    array([False,  True])
    """
    greater: ndarray = _np["greater"](asarray(lhs), rhs)
    return greater
