"""Functions on segments of rows, given as values and offsets instead of ragged arrays."""

from __future__ import annotations

from typing import Any

import numpy as onp

from mxnet import _core, error
from mxnet import numpy as np
from mxnet._core import ndarray
from mxnet.ragged._array import RaggedArray

_op = _core.namespaces["op"]


def _offsets(offsets: Any) -> ndarray:
    return offsets if isinstance(offsets, ndarray) else _core.array(offsets, dtype="int64")


def segment_sum(values: ndarray, offsets: Any) -> ndarray:
    """Sum of the rows of each segment.

    Parameters
    ----------
    values : ndarray, shape (total, ...)
    offsets : array_like of int64, shape (n + 1,)
        Where each segment begins, and `total`.

    Returns
    -------
    ndarray, shape (n, ...)
        0 for a segment without rows.

    Raises
    ------
    ValueError
        If the offsets are malformed.

    Examples
    --------
    >>> mx.ragged.segment_sum(np.array([1.0, 2.0, 3.0]), [0, 2, 3])
    array([3., 3.])
    """
    found: ndarray = _op["ragged_sum"](values, _offsets(offsets))
    return found


def segment_mean(values: ndarray, offsets: Any) -> ndarray:
    """Mean of the rows of each segment.

    Parameters
    ----------
    values : ndarray, shape (total, ...)
    offsets : array_like of int64, shape (n + 1,)

    Returns
    -------
    ndarray, shape (n, ...)
        NaN for a segment without rows.

    Raises
    ------
    ValueError
        If the offsets are malformed.

    Examples
    --------
    >>> mx.ragged.segment_mean(np.array([1.0, 2.0, 3.0]), [0, 2, 3])
    array([1.5, 3. ])
    """
    found: ndarray = np.mean(RaggedArray(values, offsets), axis=1)
    return found


def segment_max(values: ndarray, offsets: Any) -> ndarray:
    """Largest row of each column of each segment.

    Parameters
    ----------
    values : ndarray, shape (total, ...)
    offsets : array_like of int64, shape (n + 1,)

    Returns
    -------
    ndarray, shape (n, ...)
        The lowest value of the dtype for a segment without rows.

    Raises
    ------
    ValueError
        If the offsets are malformed.

    Examples
    --------
    >>> mx.ragged.segment_max(np.array([1.0, 2.0, 3.0]), [0, 2, 3])
    array([2., 3.])
    """
    found: ndarray = _op["ragged_max"](values, _offsets(offsets))
    return found


def segment_min(values: ndarray, offsets: Any) -> ndarray:
    """Smallest row of each column of each segment.

    Parameters
    ----------
    values : ndarray, shape (total, ...)
    offsets : array_like of int64, shape (n + 1,)

    Returns
    -------
    ndarray, shape (n, ...)
        The highest value of the dtype for a segment without rows.

    Raises
    ------
    ValueError
        If the offsets are malformed.

    Examples
    --------
    >>> mx.ragged.segment_min(np.array([1.0, 2.0, 3.0]), [0, 2, 3])
    array([1., 3.])
    """
    found: ndarray = _op["ragged_min"](values, _offsets(offsets))
    return found


def segment_softmax(values: ndarray, offsets: Any) -> ndarray:
    """Softmax over the rows of each segment.

    Parameters
    ----------
    values : ndarray, shape (total, ...)
    offsets : array_like of int64, shape (n + 1,)

    Returns
    -------
    ndarray, shape (total, ...)

    Raises
    ------
    ValueError
        If the offsets are malformed.

    Examples
    --------
    >>> mx.ragged.segment_softmax(np.array([0.0, 0.0, 3.0]), [0, 2, 3])
    array([0.5, 0.5, 1. ])
    """
    found: ndarray = _op["ragged_softmax"](values, _offsets(offsets))
    return found


def segment_outer(lhs: RaggedArray, rhs: RaggedArray) -> ndarray:
    """Product of two ragged arrays, summed over the ragged axis.

    Parameters
    ----------
    lhs : RaggedArray, shape (n, length, k)
    rhs : RaggedArray, shape (n, length, m)
        With the lengths of `lhs`.

    Returns
    -------
    ndarray, shape (n, k, m)
        ``lhs[i].T @ rhs[i]``.

    Raises
    ------
    ValueError
        If shapes or lengths do not fit.

    Examples
    --------
    >>> x = mx.ragged.from_lengths(np.ones((3, 2)), [2, 1])
    >>> mx.ragged.segment_outer(x, x)
    array([[[2., 2.],
            [2., 2.]],
    <BLANKLINE>
           [[1., 1.],
            [1., 1.]]])
    """
    lhs._check_same(rhs, "segment_outer")
    found: ndarray = _op["ragged_outer"](lhs.values, rhs.values, lhs._partitions[-1].offsets)
    return found


def pool(x: RaggedArray, mode: str = "mean") -> Any:
    """One row for each row of different length.

    Parameters
    ----------
    x : RaggedArray, shape (n, length, ...)
        The innermost ragged axis is pooled.
    mode : {'mean', 'max', 'min', 'sum', 'first', 'last'}

    Returns
    -------
    ndarray, shape (n, ...), or RaggedArray with one ragged axis less

    Raises
    ------
    ValueError
        If the mode is unknown, or a row without elements has no such thing.

    Examples
    --------
    >>> r = mx.ragged.array([[1.0, 3.0], [5.0]])
    >>> mx.ragged.pool(r, 'last')
    array([3., 5.])
    """
    axis = x.num_ragged
    if mode in ("mean", "max", "min", "sum"):
        return getattr(np, mode)(x, axis=axis)
    if mode not in ("first", "last"):
        raise error.ValueError(f"pool: there is no mode {mode!r}, but mean, max, min, sum, first, last")
    partition = x._partitions[-1]
    if not partition.is_traced and partition.has_empty():
        row = onp.flatnonzero(partition.lengths == 0)[0]
        raise error.ValueError(f"pool: row {row} has no element, so none is the {mode}")
    found = np.take(x.values, partition.nth(0 if mode == "first" else -1, "pool"), axis=0)
    return found if axis == 1 else RaggedArray(found, *x._partitions[:-1])
