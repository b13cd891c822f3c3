"""Distinct elements, several sort keys, sorting in place."""

from __future__ import annotations

from typing import Any, NamedTuple

from mxnet import _core
from mxnet._core import asarray, ndarray

_op = _core.namespaces["op"]


class UniqueAllResult(NamedTuple):
    """What `unique_all` returns."""

    values: ndarray
    indices: ndarray
    inverse_indices: ndarray
    counts: ndarray


class UniqueCountsResult(NamedTuple):
    """What `unique_counts` returns."""

    values: ndarray
    counts: ndarray


class UniqueInverseResult(NamedTuple):
    """What `unique_inverse` returns."""

    values: ndarray
    inverse_indices: ndarray


def _row_numbers(rows: ndarray) -> ndarray:
    """For each row of a matrix its number among the distinct rows, in lexicographic order."""
    n, columns = rows.shape
    number = _core.array([0] * n, dtype="int64")
    for j in range(columns):
        # Both factors are below the number of rows, so the product stays far from overflow.
        _, inverse, _ = _op["unique_parts"](rows[:, j])
        _, number, _ = _op["unique_parts"](number * max(n, 1) + inverse)
    return number


def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    """The distinct elements of an array, in ascending order.

    Parameters
    ----------
    ar : array_like
        The elements; flattened without `axis`.
    return_index : bool
        Also return where each distinct element stands first.
    return_inverse : bool
        Also return which distinct element stands at each position.
    return_counts : bool
        Also return how often each stands in the array.
    axis : int, optional
        Find distinct slices along this axis, in lexicographic order.
    equal_nan : bool
        Whether NaNs are one element.
    sorted : bool
        The elements are in ascending order whatever is asked.

    Returns
    -------
    ndarray or tuple of ndarray
        The distinct elements, then what was asked for. The gradient of an element goes to its first position.

    Raises
    ------
    numpy.exceptions.AxisError
        If there is no such axis.
    """
    ar = asarray(ar)
    if axis is None:
        slices = _op["reshape"](ar, (-1,))
        parts = _op["unique_parts"](slices, equal_nan)
        inverse_shape, at = ar.shape, 0
    else:
        slices = ar if axis in (0, -ar.ndim) and ar.ndim else _op["moveaxis"](ar, axis, 0)
        width = 1
        for n in slices.shape[1:]:
            width *= n
        parts = _op["unique_parts"](_row_numbers(_op["reshape"](slices, (slices.shape[0], width))))
        inverse_shape, at = (slices.shape[0],), axis
    index, inverse, counts = parts
    values = _op["take"](slices, index, 0)
    if at not in (0, -ar.ndim):
        values = _op["moveaxis"](values, 0, at)
    results = [values]
    if return_index:
        results.append(index)
    if return_inverse:
        results.append(_op["reshape"](inverse, inverse_shape))
    if return_counts:
        results.append(counts)
    return results[0] if len(results) == 1 else tuple(results)


def unique_all(x: Any) -> UniqueAllResult:
    """The distinct elements of the flattened `x`, first positions, each element's number, and counts. NaNs differ.

    Parameters
    ----------
    x : array_like
        The elements.

    Returns
    -------
    UniqueAllResult
        values, indices, inverse_indices, counts
    """
    return UniqueAllResult(*unique(x, True, True, True, equal_nan=False))


def unique_counts(x: Any) -> UniqueCountsResult:
    """The distinct elements of the flattened `x` and how often each stands there. NaNs are distinct.

    Parameters
    ----------
    x : array_like
        The elements.

    Returns
    -------
    UniqueCountsResult
        values, counts
    """
    return UniqueCountsResult(*unique(x, return_counts=True, equal_nan=False))


def unique_inverse(x: Any) -> UniqueInverseResult:
    """The distinct elements of the flattened `x` and the number of each element among them. NaNs are distinct.

    Parameters
    ----------
    x : array_like
        The elements.

    Returns
    -------
    UniqueInverseResult
        values, inverse_indices
    """
    return UniqueInverseResult(*unique(x, return_inverse=True, equal_nan=False))


def unique_values(x: Any) -> ndarray:
    """The distinct elements of the flattened `x`. NaNs are distinct.

    Parameters
    ----------
    x : array_like
        The elements.

    Returns
    -------
    ndarray
        In ascending order.
    """
    values: ndarray = unique(x, equal_nan=False)
    return values


def lexsort(keys: Any, axis: int = -1) -> ndarray:
    """The positions that sort by several keys, the last one first.

    Parameters
    ----------
    keys : sequence of array_like, or array_like
        Keys of one shape; the last is the primary one.
    axis : int
        Axis of the keys to sort along.

    Returns
    -------
    ndarray
        int64, of the shape of a key.

    Raises
    ------
    TypeError
        Without keys.
    """
    keys = [asarray(key) for key in keys]
    if not keys:
        raise TypeError("lexsort: need at least one key")
    order: ndarray = _op["argsort"](keys[0], axis)
    for key in keys[1:]:
        again = _op["argsort"](_op["take_along_axis"](key, order, axis), axis)
        order = _op["take_along_axis"](order, again, axis)
    return order


def _sort(
    self: ndarray, axis: int = -1, kind: str | None = None, order: str | None = None, *, stable: bool | None = None
) -> None:
    """Sorts the array in place along `axis`; see `mxnet.numpy.sort`."""
    self[...] = _op["sort"](self, axis, kind, order, stable=stable)


def _partition(self: ndarray, kth: Any, axis: int = -1, kind: str = "introselect", order: str | None = None) -> None:
    """Partitions the array in place along `axis`; see `mxnet.numpy.partition`."""
    self[...] = _op["partition"](self, kth, axis, kind, order)


_sort.__name__ = "sort"
_partition.__name__ = "partition"
# Every array is of the extension's own class, so methods that are written in Python must be put on that class.
ndarray.sort = _sort  # type: ignore[method-assign]
ndarray.partition = _partition  # type: ignore[method-assign]
