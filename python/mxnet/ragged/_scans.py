"""Functions of neighbouring elements along an axis: running sums, differences, shifts, repetitions."""

from __future__ import annotations

import operator
from typing import Any

import numpy as onp

from mxnet import _core, error
from mxnet import numpy as np
from mxnet._core import ndarray
from mxnet.ragged._array import RaggedArray
from mxnet.ragged._indexing import rows_at
from mxnet.ragged._outer import OuterAxisSegments
from mxnet.ragged._partition import Partition

_op = _core.namespaces["op"]


def cumsum(a: RaggedArray, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Sums of the elements so far, along an axis; of all elements in a row, which is dense, without one."""
    return _running("cumsum", a, axis, dtype, out)


def _running(name: str, a: RaggedArray, axis: Any, dtype: Any, out: Any) -> Any:
    if out is not None:
        raise error.UnsupportedError(f"{name}: ragged arrays take no `out`")
    if axis is None:
        return np.cumsum(a.values, dtype=dtype)
    at = a._axis(axis, name)
    if at > a.num_ragged:
        return a.with_values(np.cumsum(a.values, axis=at - a.num_ragged, dtype=dtype))
    x = a.values if dtype is None else a.values.astype(dtype)
    if at == a.num_ragged:
        y = _op["ragged_cumsum"](x, a._partitions[-1].offsets)
    else:
        across = OuterAxisSegments(a, at)
        y = across.back(_op["ragged_cumsum"](across.together(x), across.offsets))
    # Sums of integers are 64 bits wide.
    return a.with_values(y if dtype is None else y.astype(dtype, copy=False))


def cumulative_sum(
    x: RaggedArray, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> Any:
    """Sums of the elements so far, along an axis."""
    if include_initial:
        raise error.UnsupportedError("cumulative_sum: ragged arrays take no `include_initial`")
    if axis is None:
        raise error.ValueError(f"cumulative_sum: `axis` must be given for arrays of {x.ndim} axes")
    return _running("cumulative_sum", x, axis, dtype, out)


def nancumsum(a: RaggedArray, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Sums of the elements so far that are not NaN, along an axis."""
    return _running("nancumsum", np.where(np.isnan(a), 0, a), axis, dtype, out)


def diff(a: RaggedArray, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Differences of neighbours, of which a row has one less than elements."""
    if prepend is not None or append is not None:
        raise error.UnsupportedError("diff: ragged arrays take no `prepend` and no `append`")
    at = a._axis(axis, "diff")
    if at > a.num_ragged:
        return a.with_values(np.diff(a.values, n=n, axis=at - a.num_ragged))
    if not at:
        raise error.UnsupportedError(f"diff: axis 0 of shape {a.shape} joins rows of different lengths")
    if n < 0:
        raise error.ValueError(f"diff: order must be non-negative but got {n}")
    every = (slice(None),) * at
    for _ in range(n):
        later, before = a[(*every, slice(1, None))], a[(*every, slice(None, -1))]
        a = later != before if a.dtype == "bool" else later - before
    return a


def roll(a: RaggedArray, shift: Any, axis: Any = None) -> Any:
    """Elements moved along an axis; those that leave a row at its end enter it at its start."""
    if axis is None or isinstance(axis, tuple):
        raise error.UnsupportedError("roll: a ragged array is rolled along one axis at a time")
    at, by = a._axis(axis, "roll"), operator.index(shift)
    if at > a.num_ragged:
        return a.with_values(np.roll(a.values, by, axis=at - a.num_ragged))
    if not at:
        return rows_at(a, onp.roll(onp.arange(len(a)), by))
    if at != a.num_ragged:
        inner = _depth(a, at)
        partition = inner._partitions[0]
        rows = partition.host[:-1][partition.owners] + (partition.positions - by) % partition.lengths[partition.owners]
        moved = rows_at(RaggedArray(inner.values, *inner._partitions[1:]), rows)
        return RaggedArray(moved.values, *a._partitions[:at], *moved._partitions)
    partition = a._partitions[-1]
    sizes = partition.expand(partition.sizes)
    rows = partition.row_starts + np.remainder(partition.row_positions - by, sizes)
    return a.with_values(np.take(a.values, rows, axis=0))


def _depth(a: RaggedArray, axis: int) -> RaggedArray:
    """The rows of ragged axis `axis`, without the axes before."""
    return RaggedArray(a.values, *a._partitions[axis - 1 :])


def repeat(a: RaggedArray, repeats: Any, axis: Any = None) -> Any:
    """Each element, or each row, several times in succession."""
    if axis is None or isinstance(repeats, list | tuple | ndarray | onp.ndarray):
        raise error.UnsupportedError("repeat: ragged arrays take an `axis` and one number of repeats")
    at, count = a._axis(axis, "repeat"), operator.index(repeats)
    if count < 0:
        raise error.ValueError(f"repeat: repeats may not contain negative values, found {count}")
    if at > a.num_ragged:
        return a.with_values(np.repeat(a.values, count, axis=at - a.num_ragged))
    if not at:
        return rows_at(a, onp.repeat(onp.arange(len(a)), count))
    if at != a.num_ragged:
        raise error.UnsupportedError(f"repeat: axis {axis} of shape {a.shape} is before another ragged one")
    made = Partition.of_lengths(a._partitions[-1].lengths * count)
    return RaggedArray(np.repeat(a.values, count, axis=0), *a._partitions[:-1], made)
