"""Arrays from memory, text, files and iterators, and arrays with a required memory order."""

from __future__ import annotations

from builtins import iter as _iterator
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, cast

import numpy
from numpy.typing import ArrayLike, DTypeLike

from mxnet import _core
from mxnet._core import asarray, ndarray
from mxnet.numpy import _dtypes

_op = _core.namespaces["op"]


def _in_order(x: ndarray, order: str | None) -> ndarray:
    """The array itself if it is in this memory order, else a copy."""
    if order not in (None, "K", "A", "C", "F"):
        raise ValueError(f"`order` must be one of 'C', 'F', 'A', 'K', not {order!r}")
    if order == "F":
        transposed = _op["transpose"](x)
        if not _is_c_order(transposed):
            return cast(ndarray, _op["transpose"](transposed.copy()))
        return x
    if order == "C" and not _is_c_order(x):
        return x.copy()
    return x


def _is_c_order(x: ndarray) -> bool:
    step = x.itemsize
    for n, stride in zip(reversed(x.shape), reversed(x.strides), strict=True):
        if n > 1 and stride != step:
            return x.size == 0
        step *= n
    return True


# Names of the requirements, and their letters.
_REQUIREMENTS = {
    **{"C": "C", "C_CONTIGUOUS": "C", "CONTIGUOUS": "C", "F": "F", "F_CONTIGUOUS": "F", "FORTRAN": "F"},
    **{"A": "A", "ALIGNED": "A", "W": "W", "WRITEABLE": "W", "O": "O", "OWNDATA": "O", "E": "E", "ENSUREARRAY": "E"},
}


def require(a: ArrayLike, dtype: DTypeLike | None = None, requirements: str | Sequence[str] | None = None) -> ndarray:
    """An array that meets requirements.

    Parameters
    ----------
    a : array_like
    dtype : dtype, optional
    requirements : str or sequence of str, optional
        'C' or 'F' (order in memory), 'A' (aligned), 'W' (writable), 'O' (owns its memory), 'E' (an ndarray and no
        subclass), or NumPy's longer names.

    Returns
    -------
    ndarray
        The array itself if it meets them, else a copy.

    Raises
    ------
    KeyError
        For another requirement.
    ValueError
        For both orders.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.require([1, 2], "float32", ["C", "W"])
    array([1., 2.])
    """
    if not requirements:
        return asarray(a) if dtype is None else asarray(a, dtype=dtype)
    wanted = set()
    for text in requirements:
        if text.upper() not in _REQUIREMENTS:
            raise KeyError(f"require: `requirements` must be among {', '.join(_REQUIREMENTS)}, found {text!r}")
        wanted.add(_REQUIREMENTS[text.upper()])
    if {"C", "F"} <= wanted:
        raise ValueError("require: an array is in C order or in Fortran order, not in both")
    x = asarray(a, dtype=dtype)
    placed = _in_order(x, "C" if "C" in wanted else "F" if "F" in wanted else None)
    _, _, is_writable, is_own = _core.memory_location(placed)
    if ("W" in wanted and not is_writable) or ("O" in wanted and not is_own):
        transposed = _op["transpose"](placed) if "F" in wanted else placed
        placed = _op["transpose"](transposed.copy()) if "F" in wanted else transposed.copy()
    return placed


def asarray_chkfinite(a: ArrayLike, dtype: DTypeLike | None = None, order: str | None = None) -> ndarray:
    """An array without NaN and infinities.

    Parameters
    ----------
    a : array_like
    dtype : dtype, optional
    order : {'C', 'F', 'A', 'K'}, optional
        Order of the elements in memory.

    Returns
    -------
    ndarray

    Raises
    ------
    ValueError
        If there is a NaN or an infinity; the call waits for the values.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.asarray_chkfinite([1.0, 2.0])
    array([1., 2.])
    """
    x = asarray(a, dtype=dtype)
    if order is not None:
        x = _in_order(x, order)
    if not _dtypes.is_exact(x.dtype) and not _op["all"](_op["isfinite"](x)):
        raise ValueError("asarray_chkfinite: the array must not contain NaN or infinities")
    return x


def _numpy_dtype(dtype: DTypeLike | None) -> Any:
    """NumPy's dtype for parsing; Python's float means the default float."""
    return _core.default_dtype("f") if dtype is None or dtype is float else _core.result_type([dtype])


def frombuffer(buffer: Any, dtype: DTypeLike | None = None, count: int = -1, offset: int = 0) -> ndarray:
    """An array that shares the memory of a buffer.

    Parameters
    ----------
    buffer : object with the buffer protocol
        Such as bytes, whose arrays are read-only.
    dtype : dtype, optional
        The default float by default.
    count : int
        Number of elements; -1 for all.
    offset : int
        Bytes to leave out at the start.

    Returns
    -------
    ndarray, shape (count,)

    Raises
    ------
    ValueError
        If the buffer is too small or no multiple of the elements.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.frombuffer(b"abc", dtype="uint8")
    array([97, 98, 99], dtype=uint8)
    """
    seen: ndarray | None = _core.of_buffer(buffer, dtype, count, offset)
    if seen is not None:
        return seen
    return asarray(numpy.frombuffer(buffer, _numpy_dtype(dtype), count, offset))


def fromiter(iter: Iterable[Any], dtype: DTypeLike, count: int = -1) -> ndarray:
    """An array of the elements of an iterator.

    Parameters
    ----------
    iter : iterable
    dtype : dtype
    count : int
        How many elements to take; -1 for all.

    Returns
    -------
    ndarray, one axis

    Raises
    ------
    ValueError
        If there are fewer elements than `count`.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.fromiter((i * i for i in range(4)), "int64")
    array([0, 1, 4, 9])
    """
    iterator = _iterator(iter)
    taken = _core.of_iterator(iterator, dtype, count)
    if isinstance(taken, ndarray):
        return taken
    # NumPy converts numbers of other classes, and reports errors.
    return asarray(numpy.fromiter(chain(taken, iterator), _numpy_dtype(dtype), count))


def fromstring(string: str, dtype: DTypeLike | None = None, count: int = -1, *, sep: str = "") -> ndarray:
    """An array of the numbers in a text.

    Parameters
    ----------
    string : str
    dtype : dtype, optional
        The default float by default.
    count : int
        How many numbers to read; -1 for all.
    sep : str
        What stands between them.

    Returns
    -------
    ndarray, one axis

    Raises
    ------
    ValueError
        If `sep` is empty: memory is read by `frombuffer`.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.fromstring("1, 2", dtype="int64", sep=",")
    array([1, 2])
    """
    read: ndarray | None = _core.of_text(string, dtype, count, sep)
    if read is not None:
        return read
    return asarray(numpy.fromstring(string, _numpy_dtype(dtype), count, sep=sep))


def fromfile(file: Any, dtype: DTypeLike | None = None, count: int = -1, sep: str = "", offset: int = 0) -> ndarray:
    """An array of the numbers in a file.

    Parameters
    ----------
    file : path or file object
    dtype : dtype, optional
        The default float by default.
    count : int
        How many numbers to read; -1 for all.
    sep : str
        What stands between numbers of a text; empty for bytes as they are in memory.
    offset : int
        Bytes to leave out at the start; without `sep` only.

    Returns
    -------
    ndarray, one axis

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / 'numbers'
    ...     _ = path.write_text('1 2 3')
    ...     np.fromfile(path, dtype='int64', sep=' ')
    array([1, 2, 3])
    """
    return asarray(numpy.fromfile(file, _numpy_dtype(dtype), count, sep, offset))


def loadtxt(fname: Any, dtype: DTypeLike | None = None, **kwargs: Any) -> Any:
    """An array of the numbers in a text file.

    Parameters
    ----------
    fname : path, file object or iterable of lines
    dtype : dtype, optional
        The default float by default.
    **kwargs
        `comments`, `delimiter`, `converters`, `skiprows`, `usecols`, `unpack`, `ndmin`, `encoding`, `max_rows`,
        `quotechar`: as for `numpy.loadtxt`.

    Returns
    -------
    ndarray
        A list of them with ``unpack=True`` and a structured dtype, which arrays cannot have.

    Raises
    ------
    ValueError
        For lines that differ in their number of columns, or hold no numbers.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.loadtxt(["1 2", "3 4"])
    array([[1., 2.],
           [3., 4.]])
    """
    return asarray(numpy.loadtxt(fname, _numpy_dtype(dtype), **kwargs))


def genfromtxt(fname: Any, dtype: DTypeLike | None = float, **kwargs: Any) -> ndarray:
    """An array of the numbers in a text file in which some are missing.

    Parameters
    ----------
    fname : path, file object or iterable of lines
    dtype : dtype
        The default float by default; None finds the one that fits.
    **kwargs
        As for `numpy.genfromtxt`.

    Returns
    -------
    ndarray

    Raises
    ------
    TypeError
        If the columns need different dtypes: arrays have no fields.
    ValueError
        For lines that differ in their number of columns.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.genfromtxt(["1,2", "3,"], delimiter=",", filling_values=0)
    array([[1., 2.],
           [3., 0.]])
    """
    return asarray(numpy.genfromtxt(fname, None if dtype is None else _numpy_dtype(dtype), **kwargs))


def savetxt(fname: Any, X: ArrayLike, *args: Any, **kwargs: Any) -> None:
    r"""Writes an array to a text file.

    Parameters
    ----------
    fname : path or file object
    X : array_like, one or two axes
    *args, **kwargs
        `fmt`, `delimiter`, `newline`, `header`, `footer`, `comments`, `encoding`: as for `numpy.savetxt`.

    Raises
    ------
    ValueError
        For arrays of other numbers of axes.

    Examples
    --------
    >>> import io
    >>> text = io.StringIO()
    >>> np.savetxt(text, [[1, 2], [3, 4]], fmt='%d')
    >>> text.getvalue()
    '1 2\n3 4\n'
    """
    numpy.savetxt(fname, asarray(X).asnumpy(), *args, **kwargs)
