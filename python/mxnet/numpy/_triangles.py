"""Index arrays of diagonals and triangles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import ArrayLike

from mxnet import _core
from mxnet._core import asarray, ndarray

_op = _core.namespaces["op"]


def diag_indices(n: int, ndim: int = 2) -> tuple[ndarray, ...]:
    """Indices of the main diagonal.

    Parameters
    ----------
    n : int
        Size of the axes.
    ndim : int
        Number of axes.

    Returns
    -------
    tuple of ndarray
        `ndim` int64 arrays of `n` elements.

    Examples
    --------
    >>> import mxnet as mx
    >>> x = mx.np.zeros((2, 2))
    >>> x[mx.np.diag_indices(2)] = 1
    >>> x
    array([[1., 0.],
           [0., 1.]])
    """
    # A Python integer gives int64 without further conversion.
    return (_op["arange"](n) if type(n) is int else _op["arange"](n, dtype="int64"),) * ndim


def diag_indices_from(arr: ArrayLike) -> tuple[ndarray, ...]:
    """Indices of the main diagonal of an array.

    Parameters
    ----------
    arr : array_like
        At least two axes, all of one size.

    Returns
    -------
    tuple of ndarray

    Raises
    ------
    ValueError
        If there are too few axes or they differ.

    Examples
    --------
    >>> x = np.array([[1, 2], [3, 4]])
    >>> x[np.diag_indices_from(x)]
    array([1, 4])
    """
    x = asarray(arr)
    if x.ndim < 2:
        raise ValueError(f"diag_indices_from: input array must be at least 2-d, found axes: {x.ndim}")
    if len(set(x.shape)) > 1:
        raise ValueError(f"diag_indices_from: All dimensions of input must be of equal length, found shape {x.shape}")
    return diag_indices(x.shape[0], x.ndim)


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[ndarray, ...]:
    """Indices of the lower triangle of a matrix.

    Parameters
    ----------
    n : int
        Rows.
    k : int
        The last diagonal that belongs to it.
    m : int, optional
        Columns; as many as rows by default.

    Returns
    -------
    tuple of ndarray
        Row numbers, column numbers.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.tril_indices(2)
    (array([0, 1, 1]), array([0, 0, 1]))
    """
    found = _op["triangle_positions"](n, m, k, False)
    return found[0], found[1]


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[ndarray, ...]:
    """Indices of the upper triangle of a matrix.

    Parameters
    ----------
    n : int
        Rows.
    k : int
        The first diagonal that belongs to it.
    m : int, optional
        Columns; as many as rows by default.

    Returns
    -------
    tuple of ndarray
        Row numbers, column numbers.

    Examples
    --------
    >>> x = np.array([[1, 2], [3, 4]])
    >>> x[np.triu_indices(2)]
    array([1, 2, 4])
    """
    found = _op["triangle_positions"](n, m, k, True)
    return found[0], found[1]


def _matrix(name: str, arr: ArrayLike) -> tuple[int, int]:
    shape = asarray(arr).shape
    if len(shape) != 2:
        raise ValueError(f"{name}: the array must have 2 axes, found {len(shape)}")
    return shape[0], shape[1]


def tril_indices_from(arr: ArrayLike, k: int = 0) -> tuple[ndarray, ...]:
    """Indices of the lower triangle of a matrix that is there; see `tril_indices`.

    Parameters
    ----------
    arr : array_like, two axes
        The matrix; only its shape counts.
    k : int
        Diagonal up to which the triangle goes.

    Returns
    -------
    tuple of ndarray of int64
        Rows and columns.

    Raises
    ------
    ValueError
        If `arr` has not two axes.

    Examples
    --------
    >>> x = np.array([[1, 2], [3, 4]])
    >>> x[np.tril_indices_from(x)]
    array([1, 3, 4])
    """
    rows, columns = _matrix("tril_indices_from", arr)
    return tril_indices(rows, k, columns)


def triu_indices_from(arr: ArrayLike, k: int = 0) -> tuple[ndarray, ...]:
    """Indices of the upper triangle of a matrix that is there; see `triu_indices`.

    Parameters
    ----------
    arr : array_like, two axes
        The matrix; only its shape counts.
    k : int
        Diagonal from which the triangle goes.

    Returns
    -------
    tuple of ndarray of int64
        Rows and columns.

    Raises
    ------
    ValueError
        If `arr` has not two axes.

    Examples
    --------
    >>> x = np.array([[1, 2], [3, 4]])
    >>> x[np.triu_indices_from(x, k=1)]
    array([2])
    """
    rows, columns = _matrix("triu_indices_from", arr)
    return triu_indices(rows, k, columns)


def mask_indices(n: int, mask_func: Callable[..., Any], k: Any = 0) -> tuple[ndarray, ...]:
    """Indices of the elements that a masking function leaves.

    Parameters
    ----------
    n : int
        Rows and columns.
    mask_func : callable
        Called with a matrix of ones and `k`, such as `tril`.
    k : object
        Its second argument.

    Returns
    -------
    tuple of ndarray

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.mask_indices(2, mx.np.triu, 1)
    (array([0]), array([1]))
    """
    found: tuple[ndarray, ...] = _op["nonzero"](mask_func(_op["ones"]((n, n), "int64"), k) != 0)
    return found
