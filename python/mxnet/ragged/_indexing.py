"""Reading and writing parts of ragged arrays: consecutive rows are views."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as onp

from mxnet import error
from mxnet import numpy as np
from mxnet._core import ndarray
from mxnet.ragged import _computed
from mxnet.ragged._partition import Partition, _index

if TYPE_CHECKING:
    from mxnet.ragged._array import RaggedArray


def _build(values: ndarray, partitions: tuple[Partition, ...]) -> Any:
    from mxnet.ragged._array import RaggedArray

    return RaggedArray(values, *partitions) if partitions else values


def rows_between(r: RaggedArray, start: int, stop: int) -> RaggedArray:
    """Rows `start` to `stop`, as a view."""
    partitions: list[Partition] = []
    for partition in r._partitions:
        host = partition.host[start : stop + 1]
        start, stop = int(host[0]), int(host[-1])
        partitions.append(Partition(host - start))
    found: RaggedArray = _build(r.values[start:stop], tuple(partitions))
    return found


def rows_at(r: RaggedArray, rows: Any) -> RaggedArray:
    """Rows by index, in any order, as a copy."""
    partitions: list[Partition] = []
    for partition in r._partitions:
        chosen, rows = partition.taken(rows)
        partitions.append(chosen)
    found: RaggedArray = _build(np.take(r.values, np.array(rows, dtype="int64"), axis=0), tuple(partitions))
    return found


def rows_computed(r: RaggedArray, rows: ndarray) -> RaggedArray:
    """Rows by index in a compiled function, where indices or lengths follow from values."""
    partitions: list[Partition] = []
    for partition in r._partitions:
        chosen, rows = _computed.taken(partition, rows)
        partitions.append(chosen)
    found: RaggedArray = _build(np.take(r.values, rows, axis=0), tuple(partitions))
    return found


def _is_integer(key: Any) -> bool:
    return not isinstance(key, bool | onp.bool_) and (
        isinstance(key, int | onp.integer)
        or (isinstance(key, ndarray | onp.ndarray) and not key.ndim and key.dtype.kind in "iu")
    )


def _number(key: Any, size: int, axis: int) -> int:
    i = operator.index(key)
    if not -size <= i < size:
        raise error.IndexError(f"index {i} is out of bounds for axis {axis} with size {size}")
    return i % size


def _is_whole(key: slice) -> bool:
    return (key.start, key.stop, key.step) == (None, None, None)


def _first(r: RaggedArray, key: Any) -> Any:
    """Applies the key of axis 0."""
    if _is_integer(key) and (r._is_computed() or _computed.is_computed(key)):
        number = np.reshape(key, 1) if isinstance(key, ndarray) else np.array([_number(key, len(r), 0)])
        rows = _computed.inside(number.astype("int64"), len(r), "raise")
        chosen = rows_computed(r, rows)
        return _build(chosen.values, chosen._partitions[1:])
    if r._is_computed() or _computed.is_computed(key):
        if isinstance(key, slice) and _is_whole(key):
            return r
        given = key if isinstance(key, slice | ndarray) else np.array(onp.asarray(key))
        return rows_computed(r, _computed.chosen_rows(given, len(r)))
    if _is_integer(key):
        i = _number(key, len(r), 0)
        first, *rest = r._partitions
        start, stop = int(first.host[i]), int(first.host[i + 1])
        if not rest:
            return r.values[start:stop]
        return rows_between(_build(r.values, tuple(rest)), start, stop)
    if isinstance(key, slice):
        if _is_whole(key):
            return r
        start, stop, step = key.indices(len(r))
        if step == 1:
            return rows_between(r, start, max(start, stop))
        return rows_at(r, onp.arange(start, stop, step))
    numbers = onp.asarray(key.asnumpy() if isinstance(key, ndarray) else key)
    if numbers.dtype.kind == "b":
        if numbers.shape != (len(r),):
            raise error.IndexError(f"a mask of shape {numbers.shape} for {len(r)} rows")
        numbers = onp.flatnonzero(numbers)
    if not numbers.size:
        numbers = numbers.astype(onp.int64)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise error.IndexError(
            f"rows of a ragged array are chosen by integers, slices, masks and vectors of integers, found {key!r}"
        )
    bad = onp.flatnonzero((numbers < -len(r)) | (numbers >= len(r)))
    if bad.size:
        raise error.IndexError(f"index {numbers[bad[0]]} is out of bounds for axis 0 with size {len(r)}")
    return rows_at(r, numbers % max(len(r), 1))


def _along(r: RaggedArray, key: Any) -> Any:
    """Applies the key of axis 1, if that is ragged, to all rows."""
    first, *rest = r._partitions
    if _is_integer(key):
        chosen = first.nth(operator.index(key), "getitem")
        if rest and r._is_computed():
            return rows_computed(_build(r.values, tuple(rest)), chosen)
        return rows_at(_build(r.values, tuple(rest)), chosen.asnumpy()) if rest else np.take(r.values, chosen, axis=0)
    if not isinstance(key, slice):
        raise error.IndexError(f"a ragged axis is indexed by an integer or a slice, found {key!r}; use np.take")
    if _is_whole(key):
        return r
    if r._is_computed():
        cut, rows = _computed.sliced(first, key)
        if not rest:
            return _build(np.take(r.values, rows, axis=0), (cut,))
        inner = rows_computed(_build(r.values, tuple(rest)), rows)
        return _build(inner.values, (cut, *inner._partitions))
    step = 1 if key.step is None else operator.index(key.step)
    lengths = first.lengths
    if step == 0:
        raise error.ValueError("slice step cannot be zero")
    bounds = [slice(key.start, key.stop, step).indices(int(n)) for n in lengths]
    counts = onp.array([len(range(*b)) for b in bounds], dtype=onp.int64)
    starts = onp.array([b[0] for b in bounds], dtype=onp.int64)
    partition = Partition.of_lengths(counts)
    chosen = onp.repeat(first.host[:-1] + starts, counts) + step * partition.positions
    if rest:
        inner = rows_at(_build(r.values, tuple(rest)), chosen)
        return _build(inner.values, (partition, *inner._partitions))
    return _build(np.take(r.values, np.array(chosen, dtype="int64"), axis=0), (partition,))


def _masked(r: RaggedArray, mask: RaggedArray) -> Any:
    """The elements of each row where a mask of the same rows is true."""
    if mask.dtype != "bool" or mask.values.ndim != 1:
        raise error.IndexError(
            f"a ragged index is a mask (n, length) of bool, found {mask.dtype} of shape {mask.shape}"
        )
    r._check_same(mask, "getitem")
    partition = r._partitions[-1]
    if _computed.is_computed(mask.values) or partition.is_computed:
        kept, rows = mask._chosen()
        return _build(np.take(r.values, rows, axis=0), (*r._partitions[:-1], kept))
    chosen = onp.flatnonzero(mask.values.asnumpy())
    lengths = onp.bincount(partition.owners[chosen], minlength=partition.count)
    values = np.take(r.values, _index(chosen), axis=0)
    return _build(values, (*r._partitions[:-1], Partition.of_lengths(lengths)))


def get(r: RaggedArray, key: Any) -> Any:
    """``r[key]``."""
    if hasattr(key, "num_ragged"):
        return _masked(r, key)
    keys = list(key) if isinstance(key, tuple) else [key]
    given = sum(k is not None and k is not Ellipsis for k in keys)
    if given > r.ndim:
        raise error.IndexError(f"{given} indices for {r.ndim} axes")
    if sum(k is Ellipsis for k in keys) > 1:
        raise error.IndexError("an index can only have a single ellipsis")
    for i, one in enumerate(keys):
        if one is Ellipsis:
            keys[i : i + 1] = [slice(None)] * (r.ndim - given)
            break
    found: Any = r
    # Axes are indexed from the first on; as long as the result is ragged, its first axis is done.
    done = 0
    for axis in range(1 + r.num_ragged):
        if not keys:
            return found
        if keys[0] is None:
            raise error.IndexError("new axes stand behind the ragged ones")
        one = keys.pop(0)
        if isinstance(found, ndarray):
            # An integer key made the rest dense.
            return found[(slice(None),) * done + (one, *keys)]
        if axis == 0 or not done:
            is_number = _is_integer(one)
            found = _first(found, one)
            done = 0 if is_number else 1
        elif done == 1:
            is_number = _is_integer(one)
            found = _along(found, one)
            done = 1 if is_number else 2
        else:
            # The axes before stay as they are.
            depth = done - 1
            is_number = _is_integer(one)
            inner = _along(_build(found.values, found._partitions[depth:]), one)
            values, rest = (inner, ()) if isinstance(inner, ndarray) else (inner.values, inner._partitions)
            found = _build(values, (*found._partitions[:depth], *rest))
            done += 0 if is_number else 1
    if not keys:
        return found
    if isinstance(found, ndarray):
        return found[(slice(None),) * done + tuple(keys)]
    if found.num_ragged == r.num_ragged or done:
        return found.with_values(found.values[(slice(None), *keys)])
    return found[(slice(None),) * (1 + found.num_ragged) + tuple(keys)]


def put(r: RaggedArray, key: Any, value: Any) -> None:
    """``r[key] = value``, where ``r[key]`` is a view."""
    if isinstance(key, tuple) and len(key) > 1 and _is_integer(key[0]):
        # A number in a row is no view, but its row is one.
        get(r, key[0])[key[1:]] = value
        return
    part = get(r, key)
    target = part if isinstance(part, ndarray) else part.values
    if not (target.size == 0 or np.shares_memory(target, r.values)):
        raise error.IndexError("only rows, slices of rows and parts of rows are written in place")
    if hasattr(value, "num_ragged"):
        if isinstance(part, ndarray):
            raise error.ShapeError("a ragged array cannot be written to a dense part")
        part._check_same(value, "setitem")
        value = value.values
    target[...] = value
