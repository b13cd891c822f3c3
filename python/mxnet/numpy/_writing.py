"""Writing to arrays: under masks, cyclically, along diagonals. Writes to views reach the memory that they share."""

from __future__ import annotations

from typing import Any

import numpy
from numpy.typing import ArrayLike

from mxnet import _core
from mxnet._core import asarray, ndarray
from mxnet.numpy import _dtypes
from mxnet.numpy._dtypes import spelled
from mxnet.numpy._indexing import put

_op = _core.namespaces["op"]


def _target(name: str, argument: str, x: Any) -> ndarray:
    if not isinstance(x, ndarray):
        raise TypeError(f"{name}: `{argument}` must be an ndarray to be written to, not '{type(x).__name__}'")
    return x


def _written_by_numpy(name: str, target: Any, *arguments: Any) -> bool:
    """Whether the target is a NumPy array; if so, NumPy's function of this name has written to it."""
    if not isinstance(target, numpy.ndarray):
        return False
    getattr(numpy, name)(target, *(x.asnumpy() if isinstance(x, ndarray) else x for x in arguments))
    return True


def _check_cast(name: str, source: Any, to: ndarray, casting: str) -> None:
    if type(source) in (bool, int, float, complex):
        # A Python number promotes by its kind only.
        allowed = casting == "unsafe" or _dtypes.result_type(to, source) == to.dtype
    else:
        allowed = _core.can_cast(asarray(source).dtype, to.dtype, casting)
    if not allowed:
        found = type(source).__name__ if type(source) in (bool, int, float, complex) else asarray(source).dtype
        raise TypeError(f"{name}: cannot cast from {found} to {to.dtype} under casting rule '{casting}'")


def _numbers(name: str, source: Any, to: ndarray, casting: str) -> ndarray:
    try:
        return asarray(source)
    except (TypeError, OverflowError) as error:
        # Text, None and integers beyond 64 bits are objects and have no kind.
        if casting != "unsafe":
            raise TypeError(f"{name}: cannot cast objects to {to.dtype} under casting rule '{casting}'") from error
        return asarray(source, to.dtype)


def copyto(dst: ndarray, src: ArrayLike, casting: str = "same_kind", where: Any = True) -> None:
    """Writes the elements of one array to another.

    Parameters
    ----------
    dst : ndarray
        The array that is changed.
    src : array_like
        Broadcast to the shape of `dst`.
    casting : {'no', 'equiv', 'safe', 'same_kind', 'unsafe'}
        Which conversions are allowed.
    where : array_like of bool
        The elements to write; broadcast to the shape of `dst`.

    Raises
    ------
    TypeError
        If `casting` does not allow the conversion, or `dst` is no ndarray.
    ValueError
        If shapes do not broadcast.
    OverflowError
        If `src` is a Python number that does not fit the dtype of `dst`.

    Examples
    --------
    >>> import mxnet as mx
    >>> x = mx.np.zeros(3)
    >>> mx.np.copyto(x, [1, 2, 3], where=[True, False, True])
    >>> x
    array([1., 0., 3.])
    """
    if casting == "same_kind" and _core.write_over(dst, src, None if where is True else where):
        return
    # NumPy's own function calls this if one of our arrays is the source.
    if _written_by_numpy("copyto", dst, src, casting, where):
        return
    dst = _target("copyto", "dst", dst)
    # A Python number must fit; elements of arrays and lists are converted under the rule `casting`.
    if type(src) not in (bool, int, float, complex):
        src = _numbers("copyto", src, dst, casting)
    _check_cast("copyto", src, dst, casting)
    if where is True:
        dst[...] = src
        return
    mask = asarray(where) if hasattr(where, "dtype") else asarray(where, "bool")
    if spelled(mask.dtype) != "bool":
        raise TypeError(f"copyto: `where` must be bool, found {mask.dtype}")
    mask = _op["broadcast_to"](mask, dst.shape)
    values = _op["broadcast_to"](asarray(src, dst.dtype), dst.shape)
    dst[...] = _op["where"](mask, values, dst)


def place(arr: ndarray, mask: ArrayLike, vals: ArrayLike) -> None:
    """Writes values one after the other to the elements at which a mask is true.

    Parameters
    ----------
    arr : ndarray
        The array that is changed.
    mask : array_like
        As many elements as `arr`.
    vals : array_like
        Taken in turn, again from the start when they are used up.

    Raises
    ------
    TypeError
        If an array of values cannot be converted safely.
    ValueError
        If the mask has another size, or there are no values for its true elements.
    OverflowError
        If a Python number does not fit the dtype of `arr`.

    Examples
    --------
    >>> import mxnet as mx
    >>> x = mx.np.arange(5)
    >>> mx.np.place(x, x > 1, [10, 20])
    >>> x
    array([ 0,  1, 10, 20, 10])
    """
    if _core.write_masked(arr, mask, vals, True):
        return
    if _written_by_numpy("place", arr, mask, vals):
        return
    arr = _target("place", "arr", arr)
    chosen = asarray(mask).reshape(-1)
    if chosen.size != arr.size:
        raise ValueError(f"place: `mask` must have the {arr.size} elements of `arr`, found {chosen.size}")
    if isinstance(vals, ndarray | numpy.ndarray):
        _check_cast("place", vals, arr, "safe")
    values = asarray(vals, arr.dtype)
    at = _op["flatnonzero"](chosen)
    if at.size and not values.size:
        raise ValueError("place: Cannot insert from an empty array!")
    put(arr, at, values)


def putmask(a: ndarray, /, mask: ArrayLike, values: ArrayLike) -> None:
    """Writes to the elements at which a mask is true the values at the same places.

    Parameters
    ----------
    a : ndarray
        The array that is changed.
    mask : array_like
        As many elements as `a`.
    values : array_like
        Repeated to the size of `a`.

    Raises
    ------
    TypeError
        If an array of values cannot be converted safely.
    ValueError
        If the mask has another size.
    OverflowError
        If a Python number does not fit the dtype of `a`.

    Examples
    --------
    >>> import mxnet as mx
    >>> x = mx.np.arange(5)
    >>> mx.np.putmask(x, x > 1, [10, 20])
    >>> x
    array([ 0,  1, 10, 20, 10])
    """
    if _core.write_masked(a, mask, values, False):
        return
    if _written_by_numpy("putmask", a, mask, values):
        return
    a = _target("putmask", "a", a)
    chosen = asarray(mask)
    if chosen.size != a.size:
        raise ValueError(f"putmask: `mask` must have the {a.size} elements of `a`, found {chosen.size}")
    if isinstance(values, ndarray | numpy.ndarray):
        _check_cast("putmask", values, a, "safe")
    new = asarray(values, a.dtype)
    if new.size == 0 or a.size == 0:
        return
    new = new.reshape(-1)
    if new.size != a.size:
        new = _op["tile"](new, -(-a.size // new.size))[: a.size]
    chosen = chosen.astype("bool").reshape(a.shape)
    a[...] = _op["where"](chosen, new.reshape(a.shape), a)


def fill_diagonal(a: ndarray, val: ArrayLike, wrap: bool = False) -> None:
    """Writes to the main diagonal.

    Parameters
    ----------
    a : ndarray
        At least two axes; all of one size if they are more than two. The array that is changed.
    val : array_like
        Taken in turn, again from the start when the values are used up.
    wrap : bool
        In a matrix of more rows than columns, begin again below the diagonal, one row free.

    Raises
    ------
    ValueError
        If `a` has too few axes or they differ.
    OverflowError
        If a Python number does not fit the dtype of `a`.

    Examples
    --------
    >>> import mxnet as mx
    >>> x = mx.np.zeros((2, 3), dtype="int64")
    >>> mx.np.fill_diagonal(x, [5, 7])
    >>> x
    array([[5, 0, 0],
           [0, 7, 0]])
    """
    if wrap is False and _core.write_diagonal(a, val):
        return
    a = _target("fill_diagonal", "a", a)
    if a.ndim < 2:
        raise ValueError(f"fill_diagonal: array must be at least 2-d, found axes: {a.ndim}")
    if a.ndim > 2 and len(set(a.shape)) > 1:
        raise ValueError(f"fill_diagonal: All dimensions of input must be of equal length, found shape {a.shape}")
    values = asarray(val, a.dtype).reshape(-1)
    if a.ndim == 2 and wrap:
        columns = a.shape[1]
        at = _op["arange"](0, a.size, columns + 1, "int64")
        key: tuple[ndarray, ...] = (at // columns, at % columns)
    else:
        at = _op["arange"](min(a.shape), dtype="int64")
        key = (at,) * a.ndim
    if at.size == 0 or values.size == 0:
        return
    if values.size not in (1, at.size):
        values = _op["take"](values, _op["arange"](at.size, dtype="int64"), mode="wrap")
    a[key] = values


def deliver(name: str, result: ndarray, out: ndarray | None, casting: str = "same_kind") -> ndarray:
    """The result of a function, written to `out` if there is one.

    Parameters
    ----------
    name : str
        The function, for messages.
    result : ndarray
    out : ndarray or None
    casting : str
        Casting rule; functions that fold take "unsafe".

    Returns
    -------
    ndarray

    Raises
    ------
    TypeError
        If `out` is no ndarray, or `casting` forbids the conversion.
    ValueError
        If shapes differ.
    """
    if out is None:
        # 0-d results are scalars, even if they are views.
        return result[()] if result.ndim == 0 else result
    out = _target(name, "out", out)
    if out.shape != result.shape:
        raise ValueError(f"{name}: `out` has shape {out.shape}, the result has shape {result.shape}")
    _check_cast(name, result, out, casting)
    out[...] = result
    return out


def _choose(self: ndarray, choices: Any, *more: Any, out: ndarray | None = None, mode: str = "raise") -> ndarray:
    """Elements of several arrays, chosen by number at each place; see `mxnet.numpy.choose`.

    Parameters
    ----------
    choices : sequence of array_like
        The arrays to choose from; they broadcast.
    *more : array_like
        If there are any, `choices` is the first array and these are the others.
    out : ndarray, optional
        Where the result is written.
    mode : {'raise', 'wrap', 'clip'}
        What happens to an index out of bounds.

    Returns
    -------
    ndarray

    Raises
    ------
    ValueError
        If a number names no array and `mode` is 'raise'.

    Examples
    --------
    >>> np.array([0, 1, 0]).choose([[1, 2, 3], [10, 20, 30]])
    array([ 1, 20,  3])
    """
    return _op["choose"](self, (choices, *more) if more else choices, out, mode)  # type: ignore[no-any-return]


_choose.__name__ = "choose"
# Every array is of the extension's class, so methods written in Python must be added to that class.
ndarray.choose = _choose  # type: ignore[method-assign]
