"""Making ragged arrays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import numpy as onp

from mxnet import _core, error
from mxnet import numpy as np
from mxnet._core import ndarray
from mxnet.ragged._array import RaggedArray
from mxnet.ragged._computed import is_computed, partition_of, ranges
from mxnet.ragged._partition import Partition
from mxnet.ragged._rows import stack


def _row(x: Any, dtype: Any) -> Any:
    if isinstance(x, ndarray | RaggedArray):
        return x if dtype is None else x.astype(dtype, copy=False)
    if isinstance(x, list | tuple) and any(isinstance(item, list | tuple | ndarray | onp.ndarray) for item in x):
        parts = [_row(item, dtype) for item in x]
        shapes = {None if part is None else part.shape for part in parts}
        if len(shapes) > 1 or any(isinstance(part, RaggedArray) for part in parts):
            return array(x, dtype)
    if isinstance(x, onp.ndarray) and x.dtype == object:
        return array(list(x), dtype)
    # An empty row says nothing about the dtype: the other rows do.
    if isinstance(x, list | tuple) and not x:
        return None
    return _core.array(x, dtype=dtype) if dtype is not None else _core.array(x)


def _of_lists(rows: list[Any], dtype: Any) -> RaggedArray | None:
    """The array of nested lists of numbers: axes behind the last one whose lengths differ are uniform."""
    level, lengths = rows, []
    while level and all(isinstance(x, list | tuple) for x in level):
        lengths.append([len(x) for x in level])
        level = [item for x in level for item in x]
    if not lengths or not level or any(isinstance(x, list | tuple) or getattr(x, "ndim", 0) for x in level):
        return None
    last = max((i for i, found in enumerate(lengths) if len(set(found)) > 1), default=0)
    values = _core.array(level) if dtype is None else _core.array(level, dtype=dtype)
    values = values.reshape((sum(lengths[last]), *(found[0] for found in lengths[last + 1 :])))
    return RaggedArray(values, *(Partition.of_lengths(found) for found in lengths[: last + 1]))


def array(rows: Iterable[Any], dtype: Any = None) -> RaggedArray:
    """A ragged array of rows.

    Parameters
    ----------
    rows : iterable of array_like, ndarray or RaggedArray
        Row i has shape (length_i, ...), the axes behind the first being equal; rows that are ragged themselves, such as
        nested lists or arrays of objects, give more ragged axes.
    dtype : dtype, optional
        That of the rows by default.

    Returns
    -------
    RaggedArray, shape (n, None, ...)

    Raises
    ------
    ValueError
        If there are no rows, a row is a number, or the uniform axes differ.

    Examples
    --------
    >>> mx.ragged.array([[1.0, 2.0], [], [3.0]])
    ragged.array([[1., 2.],
                  [],
                  [3.]])
    >>> mx.ragged.array([np.ones((2, 3)), np.ones((1, 3))]).shape
    (2, None, 3)
    >>> mx.ragged.array([[[1, 2], [3]], [[4]]]).shape
    (2, None, None)
    """
    given = list(rows)
    nested = _of_lists(given, dtype)
    if nested is not None:
        return nested
    made = [_row(x, dtype) for x in given]
    some = [x for x in made if x is not None]
    if not made:
        raise error.ValueError("ragged.array: there are no rows; RaggedArray(values, [0]) has none")
    if any(isinstance(x, RaggedArray) for x in some):
        most = max(x.num_ragged for x in some if isinstance(x, RaggedArray))
        return cast("RaggedArray", stack([_ragged(x, most, some) for x in made]))
    for i, x in enumerate(made):
        if x is not None and not x.ndim:
            raise error.ShapeError(f"ragged.array: row {i} is a number; a row has at least one axis")
    tails = {x.shape[1:] for x in some if x.size or x.ndim > 1}
    if len(tails) > 1:
        first = next(x.shape[1:] for x in some if x.size or x.ndim > 1)
        at = next(i for i, x in enumerate(made) if x is not None and (x.size or x.ndim > 1) and x.shape[1:] != first)
        raise error.ShapeError(
            f"ragged.array: rows have uniform axes behind the first, found {first} and {made[at].shape[1:]} in row {at}"
        )
    tail = tails.pop() if tails else ()
    lengths = [0 if x is None else x.shape[0] for x in made]
    parts = [x for x in some if x.shape[0]]
    if parts:
        values = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=0)
    else:
        kept = dtype if dtype is not None else (some[0].dtype if some else None)
        values = np.zeros((0, *tail), **({} if kept is None else {"dtype": kept}))
    return RaggedArray(values, Partition.of_lengths(lengths))


def _ragged(x: Any, axes: int, others: list[Any]) -> RaggedArray:
    """A row as a ragged array with `num_ragged` ragged axes."""
    if x is None:
        like = next(other for other in others if isinstance(other, RaggedArray) and other.num_ragged == axes)
        return cast("RaggedArray", like[0:0])
    while not isinstance(x, RaggedArray) or x.num_ragged < axes:
        if isinstance(x, RaggedArray):
            raise error.ShapeError(f"ragged.array: rows with {x.num_ragged} and {axes} ragged axes")
        x = from_dense(x)
    return x


def from_dense(x: Any, lengths: Any = None, mask: Any = None) -> RaggedArray:
    """The elements of a dense array that are no padding.

    Parameters
    ----------
    x : array_like, shape (n, length, ...)
    lengths : array_like of int, shape (n,), optional
        How many elements of each row count.
    mask : array_like of bool, shape (n, length), optional
        Which elements count. Without both all do, and the values are a view.

    Returns
    -------
    RaggedArray, shape (n, None, ...)

    Raises
    ------
    ValueError
        If `x` has fewer than two axes, both `lengths` and `mask` are given, their shapes do not fit, or a length is out
        of range.

    Examples
    --------
    >>> x = np.array([[1, 2, 0], [3, 0, 0]])
    >>> mx.ragged.from_dense(x, lengths=[2, 1])
    ragged.array([[1, 2],
                  [3]])
    >>> mx.ragged.from_dense(x, mask=x > 0)
    ragged.array([[1, 2],
                  [3]])
    """
    x = x if isinstance(x, ndarray) else _core.asarray(x)
    if x.ndim < 2:
        raise error.ShapeError(f"from_dense: an array of shape {x.shape} has no rows; 2 axes are needed")
    count, size = x.shape[:2]
    if lengths is not None and mask is not None:
        raise error.ValueError("from_dense: give `lengths` or `mask`, not both")
    flat = x.reshape((count * size, *x.shape[2:]))
    if is_computed(mask) or is_computed(lengths):
        return _from_computed(flat, (count, size), lengths, mask)
    if mask is not None:
        host = onp.asarray(mask.asnumpy() if isinstance(mask, ndarray) else mask)
        if host.dtype != bool or host.shape != (count, size):
            raise error.ShapeError(
                f"from_dense: `mask` must be bool of shape {(count, size)}, found {host.dtype} {host.shape}"
            )
        chosen = _core.array(onp.flatnonzero(host), dtype="int64")
        return RaggedArray(np.take(flat, chosen, axis=0), Partition.of_lengths(host.sum(axis=1)))
    if lengths is None:
        return RaggedArray(flat, Partition.even(count, size))
    given = onp.asarray(lengths.asnumpy() if isinstance(lengths, ndarray) else lengths)
    if given.shape != (count,) or (given.size and given.dtype.kind not in "iu"):
        raise error.ShapeError(
            f"from_dense: `lengths` must be {count} integers, found {given.dtype} of shape {given.shape}"
        )
    bad = onp.flatnonzero((given < 0) | (given > size))
    if bad.size:
        raise error.ValueError(f"from_dense: length {given[bad[0]]} of row {bad[0]} is not in 0..{size}")
    partition = Partition.of_lengths(given)
    values = _core.namespaces["op"]["ragged_unpad"](x, partition.offsets, partition.total)
    return RaggedArray(values, partition)


def _from_computed(flat: ndarray, shape: tuple[int, int], lengths: Any, mask: Any) -> RaggedArray:
    """`from_dense` in a compiled function, with lengths or a mask that have no values yet."""
    count, size = shape
    if mask is not None:
        if mask.dtype != "bool" or mask.shape != shape:
            raise error.ShapeError(f"from_dense: `mask` must be bool of shape {shape}, found {mask.dtype} {mask.shape}")
        rows = np.flatnonzero(mask)
        return RaggedArray(
            np.take(flat, rows, axis=0), partition_of(np.sum(mask, axis=1, dtype="int64"), rows.shape[0])
        )
    if lengths.shape != (count,) or lengths.dtype.kind not in "iu":
        raise error.ShapeError(
            f"from_dense: `lengths` must be {count} integers, found {lengths.dtype} of shape {lengths.shape}"
        )
    sizes = lengths.astype("int64", copy=False)
    # The graph's `take` raises for a row that is too long.
    starts = np.where(sizes <= size, np.arange(count, dtype="int64") * size, 2**62)
    partition, rows = ranges(starts, sizes)
    return RaggedArray(np.take(flat, rows, axis=0), partition)


def from_lengths(values: Any, lengths: Any) -> RaggedArray:
    """Values cut into rows.

    Parameters
    ----------
    values : array_like, shape (total, ...)
    lengths : array_like of int, shape (n,)
        Their sum is `total`.

    Returns
    -------
    RaggedArray, shape (n, None, ...)

    Raises
    ------
    ValueError
        If a length is negative, or the sum is another.

    Examples
    --------
    >>> mx.ragged.from_lengths(np.array([1, 2, 3]), [2, 1])
    ragged.array([[1, 2],
                  [3]])
    """
    x = values if isinstance(values, ndarray) else _core.asarray(values)
    if is_computed(lengths):
        return RaggedArray(x, partition_of(lengths, x.shape[0]))
    return RaggedArray(x, Partition.of_lengths(lengths.asnumpy() if isinstance(lengths, ndarray) else lengths))
