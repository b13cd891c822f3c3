"""Exchange of arrays without copying, in the function form that MXNet has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as onp

from mxnet import numpy as np
from mxnet.numpy import ndarray

__all__ = [
    "from_dlpack",
    "from_numpy",
    "ndarray_from_dlpack",
    "ndarray_from_numpy",
    "ndarray_to_dlpack_for_read",
    "ndarray_to_dlpack_for_write",
    "to_dlpack_for_read",
    "to_dlpack_for_write",
]


def from_dlpack(dlpack: Any, *, device: Any = None, copy: bool | None = None) -> ndarray:
    """An array of another library as an array of ours.

    Parameters
    ----------
    dlpack : object
        A DLPack capsule, or an array with ``__dlpack__``.
    device : Device, optional
        Where the result shall be; by default where the array is.
    copy : bool, optional
        True copies, False never; None copies only between devices.

    Returns
    -------
    ndarray
        Of the shape and dtype of the array, sharing its memory if nothing was copied.

    Raises
    ------
    BufferError
        If the array cannot be shared and must not be copied.
    TypeError
        If `dlpack` is neither.

    Examples
    --------
    >>> x = np.array([1.0, 2.0])
    >>> mx.npx.from_dlpack(dlpack=x.to_dlpack_for_read())
    array([1., 2.])
    """
    return np.from_dlpack(dlpack, device=device, copy=copy)


def from_numpy(ndarray: onp.ndarray[Any, Any], zero_copy: bool = True) -> ndarray:
    """A NumPy array as an array of ours.

    Parameters
    ----------
    ndarray : numpy.ndarray
        Any shape and strides; an element type that arrays of numbers can have.
    zero_copy : bool
        True shares the memory, and the result is read-only where `ndarray` is; False copies.

    Returns
    -------
    mxnet.numpy.ndarray
        Of the shape and dtype of `ndarray`.

    Raises
    ------
    TypeError
        If `ndarray` is no NumPy array, or has elements that are no numbers.

    Examples
    --------
    >>> import numpy
    >>> host = numpy.zeros(2)
    >>> shared = mx.npx.from_numpy(host)
    >>> host[0] = 5.0
    >>> shared
    array([5., 0.], dtype=float64)
    """
    if not isinstance(ndarray, onp.ndarray):
        raise TypeError(f"from_numpy: argument `ndarray` must be a NumPy array, not {type(ndarray).__name__!r}")
    return np.from_dlpack(ndarray, copy=None if zero_copy else True)


def to_dlpack_for_read(data: ndarray) -> Any:
    """A DLPack capsule of an array, after the writes that are pending on it.

    Parameters
    ----------
    data : mxnet.numpy.ndarray

    Returns
    -------
    capsule
        Named ``dltensor``; it shares the memory and can be consumed once.

    Raises
    ------
    TypeError
        If `data` is no array of ours.

    Examples
    --------
    >>> mx.npx.from_dlpack(mx.npx.to_dlpack_for_read(mx.np.ones(2)))
    array([1., 1.])
    """
    _check(data, "to_dlpack_for_read").wait_to_read()
    return data.__dlpack__()


def to_dlpack_for_write(data: ndarray) -> Any:
    """A DLPack capsule of an array, after the reads and writes that are pending on it: what holds it may write.

    Parameters
    ----------
    data : mxnet.numpy.ndarray

    Returns
    -------
    capsule
        Named ``dltensor``; it shares the memory and can be consumed once.

    Raises
    ------
    TypeError
        If `data` is no array of ours.
    ValueError
        If `data` is read-only.

    Examples
    --------
    >>> data = mx.np.zeros(2)
    >>> other = mx.npx.from_dlpack(mx.npx.to_dlpack_for_write(data))
    >>> other += 1
    >>> data
    array([1., 1.])
    """
    _check(data, "to_dlpack_for_write").wait_to_write()
    return data.__dlpack__()


def _check(data: Any, function: str) -> ndarray:
    if not isinstance(data, ndarray):
        raise TypeError(f"{function}: argument `data` must be an array, not {type(data).__name__!r}")
    return data


def ndarray_from_dlpack(array_cls: type[ndarray]) -> Callable[[Any], ndarray]:
    """`from_dlpack` for the class of arrays, which must be ours (there is one kind).

    Parameters
    ----------
    array_cls : type
        ``mxnet.numpy.ndarray``.

    Returns
    -------
    callable
        Takes a capsule or an object with `__dlpack__`.

    Raises
    ------
    TypeError
        For another class.

    Examples
    --------
    >>> convert = mx.dlpack.ndarray_from_dlpack(np.ndarray)
    >>> convert(np.ones(2))
    array([1., 1.])
    """
    _check_class(array_cls, "ndarray_from_dlpack")
    return from_dlpack


def ndarray_from_numpy(array_cls: type[ndarray], array_create_fn: Callable[..., ndarray]) -> Callable[..., ndarray]:
    """`from_numpy` for the class of arrays; copies are made by a function of the caller's.

    Parameters
    ----------
    array_cls : type
        ``mxnet.numpy.ndarray``.
    array_create_fn : callable
        Makes an array from a NumPy array; called as ``array_create_fn(ndarray, dtype=ndarray.dtype)`` where
        ``zero_copy=False``.

    Returns
    -------
    callable
        Takes a NumPy array, and `zero_copy`.

    Raises
    ------
    TypeError
        For another class.

    Examples
    --------
    >>> import numpy
    >>> convert = mx.dlpack.ndarray_from_numpy(np.ndarray, np.array)
    >>> convert(numpy.arange(3))
    array([0, 1, 2])
    """
    _check_class(array_cls, "ndarray_from_numpy")

    def convert(ndarray: onp.ndarray[Any, Any], zero_copy: bool = True) -> Any:
        return from_numpy(ndarray) if zero_copy else array_create_fn(ndarray, dtype=ndarray.dtype)

    return convert


def ndarray_to_dlpack_for_read() -> Callable[[ndarray], Any]:
    """The function `to_dlpack_for_read`.

    Returns
    -------
    callable
        Takes an array and gives a capsule.

    Examples
    --------
    >>> capsule = mx.dlpack.ndarray_to_dlpack_for_read()(np.ones(2))
    >>> np.from_dlpack(capsule)
    array([1., 1.])
    """
    return to_dlpack_for_read


def ndarray_to_dlpack_for_write() -> Callable[[ndarray], Any]:
    """The function `to_dlpack_for_write`.

    Returns
    -------
    callable
        Takes an array and gives a capsule.

    Examples
    --------
    >>> x = np.ones(2)
    >>> np.from_dlpack(mx.dlpack.ndarray_to_dlpack_for_write()(x))[0] = 5
    >>> x
    array([5., 1.])
    """
    return to_dlpack_for_write


def _check_class(array_cls: Any, function: str) -> None:
    if array_cls is not ndarray:
        raise TypeError(f"{function}: argument `array_cls` must be mxnet.numpy.ndarray, not {array_cls!r}")
