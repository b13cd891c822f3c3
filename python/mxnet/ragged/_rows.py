"""Functions that join, split, select and order rows."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

from mxnet import _core, error
from mxnet import numpy as np
from mxnet._core import ndarray
from mxnet.ragged._array import RaggedArray
from mxnet.ragged._computed import inside, is_computed
from mxnet.ragged._indexing import rows_at, rows_between, rows_computed
from mxnet.ragged._partition import Partition, _index
from mxnet.ragged._traced import TracedPartition

_op = _core.namespaces["op"]


def _all_ragged(arrays: Sequence[Any], name: str) -> list[RaggedArray]:
    found = list(arrays)
    if not all(isinstance(x, RaggedArray) for x in found):
        kinds = ", ".join("ragged" if isinstance(x, RaggedArray) else "dense" for x in found)
        raise error.UnsupportedError(
            f"{name}: no operator for operands ({kinds}); ragged.from_dense makes ragged arrays of dense ones"
        )
    return found


def concatenate(arrays: Sequence[Any], axis: Any = 0, out: Any = None, **other: Any) -> Any:
    """Joins arrays along an axis."""
    return _joined("concatenate", arrays, axis, out, **other)


def concat(arrays: Sequence[Any], axis: Any = 0, out: Any = None, **other: Any) -> Any:
    """Joins arrays along an axis."""
    return _joined("concat", arrays, axis, out, **other)


def _joined(name: str, arrays: Sequence[Any], axis: Any, out: Any = None, **other: Any) -> Any:
    found = _all_ragged(arrays, name)
    if out is not None or other.get("dtype") is not None:
        raise error.UnsupportedError(f"{name}: ragged arrays take no `out` and no `dtype`")
    if axis is None:
        raise error.UnsupportedError(f"{name}: ragged arrays are joined along an axis; use `values` for all elements")
    first = found[0]
    at = first._axis(axis, name)
    for x in found[1:]:
        if x.num_ragged != first.num_ragged or x.ndim != first.ndim:
            raise error.ShapeError(f"{name}: arrays of shapes {first.shape} and {x.shape}")
    if at > first.num_ragged:
        for x in found[1:]:
            first._check_same(x, name)
        return first.with_values(np.concatenate([x.values for x in found], axis=at - first.num_ragged))
    if at == 0:
        partitions = []
        for i in range(first.num_ragged):
            parts = [x._partitions[i] for x in found]
            kind = next((type(part) for part in parts if part.is_traced), Partition)
            partitions.append(kind.joined(parts))
        return RaggedArray(np.concatenate([x.values for x in found], axis=0), *partitions)
    if at > 1:
        return _within_rows(found, name, lambda inner: _joined(name, inner, at - 1))
    for x in found[1:]:
        if len(x) != len(first):
            raise error.ShapeError(f"{name}: arrays of {len(first)} and {len(x)} rows")
    parts = [x._partitions[0] for x in found]
    if first.num_ragged == 1 and any(part.is_traced for part in parts):
        kind = next(type(part) for part in parts if isinstance(part, TracedPartition))
        beside, order = kind.beside(parts)
        return RaggedArray(np.take(np.concatenate([x.values for x in found], axis=0), order, axis=0), beside)
    # Row i of the result consists of row i of each array.
    rows = onp.arange(len(first) * len(found)).reshape(len(found), len(first)).T.ravel()
    together = rows_at(_joined(name, found, 0), rows)
    lengths = onp.sum([part.lengths for part in parts], axis=0)
    return RaggedArray(together.values, Partition.of_lengths(lengths), *together._partitions[1:])


def _within_rows(arrays: list[RaggedArray], name: str, function: Callable[[list[RaggedArray]], Any]) -> Any:
    """A function of the arrays without their first ragged axis, which all must have in common and the result has."""
    first = arrays[0]._partitions[0]
    for x in arrays[1:]:
        if x.num_ragged != arrays[0].num_ragged:
            raise error.ShapeError(f"{name}: arrays of shapes {arrays[0].shape} and {x.shape}")
        first.check_same(x._partitions[0], name)
    inner = function([RaggedArray(x.values, *x._partitions[1:]) for x in arrays])
    return RaggedArray(inner.values, first, *inner._partitions)


def stack(arrays: Sequence[Any], axis: int = 0, out: Any = None, **other: Any) -> Any:
    """Joins arrays along a new axis, which is ragged if it comes before a ragged axis."""
    found = _all_ragged(arrays, "stack")
    if out is not None or any(value is not None for key, value in other.items() if key == "dtype"):
        raise error.UnsupportedError("stack: ragged arrays take no `out` and no `dtype`")
    first = found[0]
    ndim = first.ndim + 1
    at = operator.index(axis)
    if not -ndim <= at < ndim:
        raise error.AxisError(f"stack: axis {axis} is out of bounds for {ndim} axes")
    at %= ndim
    if at > first.num_ragged:
        for x in found[1:]:
            first._check_same(x, "stack")
        return first.with_values(np.stack([x.values for x in found], axis=at - first.num_ragged))
    if at > 1:
        return _within_rows(found, "stack", lambda inner: stack(inner, at - 1))
    if at == 1 and any(len(x) != len(first) for x in found):
        raise error.ShapeError(f"stack: arrays of {[len(x) for x in found]} rows")
    together = _joined("stack", found, 0)
    if at == 0:
        return RaggedArray(together.values, Partition.of_lengths([len(x) for x in found]), *together._partitions)
    rows = onp.arange(len(first) * len(found)).reshape(len(found), len(first)).T.ravel()
    ordered = rows_at(together, rows)
    return RaggedArray(ordered.values, Partition.even(len(first), len(found)), *ordered._partitions)


def split(ary: RaggedArray, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Consecutive parts along an axis."""
    return _parts("split", ary, indices_or_sections, axis)


def array_split(ary: RaggedArray, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Consecutive parts along an axis, of which the first ones may be longer by one."""
    if isinstance(indices_or_sections, int) and not ary._axis(axis, "array_split"):
        sizes = [len(part) for part in onp.array_split(onp.empty(len(ary)), indices_or_sections)]
        indices_or_sections = list(onp.cumsum(sizes[:-1]))
    return _parts("array_split", ary, indices_or_sections, axis)


def _split_along(name: str, axis: int) -> Callable[..., Any]:
    def function(ary: RaggedArray, indices_or_sections: Any) -> Any:
        return _parts(name, ary, indices_or_sections, axis)

    return function


hsplit, vsplit, dsplit = _split_along("hsplit", 1), _split_along("vsplit", 0), _split_along("dsplit", 2)


def _parts(name: str, ary: RaggedArray, indices_or_sections: Any, axis: int) -> list[Any]:
    at = ary._axis(axis, name)
    if at > ary.num_ragged:
        cut = np.array_split if name == "array_split" else np.split
        parts = cut(ary.values, indices_or_sections, axis=at - ary.num_ragged)
        return [ary.with_values(part) for part in parts]
    if at > 1:
        inner = _parts(name, RaggedArray(ary.values, *ary._partitions[1:]), indices_or_sections, at - 1)
        return [RaggedArray(part.values, ary._partitions[0], *part._partitions) for part in inner]
    if at == 1:
        if isinstance(indices_or_sections, int):
            raise error.UnsupportedError(f"{name}: a ragged axis is cut at positions, not into a number of parts")
        cuts = [None, *(operator.index(i) for i in indices_or_sections), None]
        return [ary[:, start:stop] for start, stop in zip(cuts[:-1], cuts[1:], strict=True)]
    if isinstance(indices_or_sections, int):
        if indices_or_sections < 1 or len(ary) % indices_or_sections:
            raise error.ValueError(f"{name}: {len(ary)} rows cannot be cut into {indices_or_sections} equal parts")
        size = len(ary) // indices_or_sections
        indices_or_sections = range(size, len(ary), size) if size else [0] * (indices_or_sections - 1)
    cuts_at = [0, *(slice(None, operator.index(i)).indices(len(ary))[1] for i in indices_or_sections), len(ary)]
    return [rows_between(ary, start, max(start, stop)) for start, stop in zip(cuts_at[:-1], cuts_at[1:], strict=True)]


def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    """Slices by index: rows of a ragged array, elements within rows, or rows of a dense table."""
    if out is not None:
        raise error.UnsupportedError("take: ragged arrays take no `out`")
    if not isinstance(a, RaggedArray):
        if axis not in (None, 0) or (axis is None and a.ndim != 1):
            raise error.UnsupportedError("take: ragged indices choose along axis 0 of a dense array")
        return indices.with_values(np.take(a, indices.values, axis=0, mode=mode))
    if axis is None:
        raise error.UnsupportedError("take: a ragged array is indexed along an axis; use `values` for all elements")
    at = a._axis(axis, "take")
    if not isinstance(indices, RaggedArray):
        if at > a.num_ragged:
            return a.with_values(np.take(a.values, indices, axis=at - a.num_ragged, mode=mode))
        if at == 0 and (is_computed(indices) or a._is_computed()):
            rows = _core.asarray(indices).astype("int64")
            return rows_computed(a, inside(rows, len(a), mode))
        if at == 0:
            numbers = onp.asarray(indices.asnumpy() if isinstance(indices, ndarray) else indices, dtype=onp.int64)
            return a[_within(numbers, onp.full(numbers.shape, len(a)), mode, "take", None)]
        raise error.UnsupportedError("take: no operator for operands (ragged, dense) along a ragged axis")
    if at != 1 or a.num_ragged != 1 or indices.num_ragged != 1 or indices.values.ndim != 1:
        raise error.UnsupportedError(
            "take: ragged indices (n, count) choose along axis 1 of a ragged array (n, length, ...)"
        )
    if len(indices) != len(a):
        raise error.ShapeError(f"take: indices of {len(indices)} rows for {len(a)} rows")
    own, its = a._partitions[0], indices._partitions[0]
    if is_computed(indices.values) or own.is_computed or its.is_computed:
        at_rows = inside(indices.values.astype("int64"), its.expand(own.sizes), mode) + its.expand(own.offsets[:-1])
        return indices.with_values(np.take(a.values, at_rows, axis=0))
    numbers = indices.values.asnumpy().astype(onp.int64)
    sizes = onp.repeat(own.lengths, its.lengths)
    numbers = _within(numbers, sizes, mode, "take", its)
    chosen = numbers + onp.repeat(own.host[:-1], its.lengths)
    return indices.with_values(np.take(a.values, _index(chosen), axis=0))


def _within(numbers: Any, sizes: Any, mode: str, name: str, partition: Partition | None) -> Any:
    """Indices within rows of these lengths, as non-negative numbers."""
    if mode == "clip":
        return onp.clip(numbers, 0, onp.maximum(sizes - 1, 0))
    if mode == "wrap":
        return numbers % onp.maximum(sizes, 1)
    bad = onp.flatnonzero((numbers < -sizes) | (numbers >= sizes))
    if bad.size:
        at = int(bad[0])
        row = "" if partition is None else f" of row {partition.owners[at]}"
        raise error.IndexError(
            f"{name}: index {numbers.ravel()[at]} is out of bounds for size {sizes.ravel()[at]}{row}"
        )
    return onp.where(numbers < 0, numbers + sizes, numbers)


def _uniform(r: RaggedArray, axis: int, name: str) -> int:
    at = r._axis(axis, name)
    if at <= r.num_ragged:
        raise error.UnsupportedError(f"{name}: axis {axis} of shape {r.shape} is not uniform")
    return at - r.num_ragged


def swapaxes(a: RaggedArray, axis1: int, axis2: int) -> Any:
    """Two uniform axes exchanged."""
    return a.with_values(np.swapaxes(a.values, _uniform(a, axis1, "swapaxes"), _uniform(a, axis2, "swapaxes")))


def expand_dims(a: RaggedArray, axis: int) -> Any:
    """A new axis of length 1 among the uniform ones."""
    at = operator.index(axis)
    ndim = a.ndim + 1
    if not -ndim <= at < ndim:
        raise error.AxisError(f"expand_dims: axis {axis} is out of bounds for {ndim} axes")
    at %= ndim
    if at <= a.num_ragged:
        raise error.UnsupportedError(f"expand_dims: axis {axis} would stand before a ragged one of shape {a.shape}")
    return a.with_values(np.expand_dims(a.values, at - a.num_ragged))


def squeeze(a: RaggedArray, axis: Any = None) -> Any:
    """Uniform axes of length 1 dropped."""
    if axis is None:
        axes = tuple(i for i, n in enumerate(a.values.shape) if i and n == 1)
    else:
        given = axis if isinstance(axis, tuple) else (axis,)
        axes = tuple(_uniform(a, one, "squeeze") for one in given)
    return a.with_values(np.squeeze(a.values, axis=axes) if axes else a.values)


def flip(m: RaggedArray, axis: Any = None) -> Any:
    """Elements in reverse order along one axis."""
    if axis is None or isinstance(axis, tuple):
        # Outer axes last: they change which rows are where.
        axes = [m._axis(one, "flip") for one in (range(m.ndim) if axis is None else axis)]
        if len(set(axes)) < len(axes):
            raise error.AxisError(f"flip: an axis is named twice in {axis}")
        for one in sorted(axes, reverse=True):
            m = flip(m, one)
        return m
    at = m._axis(axis, "flip")
    if at > m.num_ragged:
        return m.with_values(np.flip(m.values, axis=at - m.num_ragged))
    if at == 0:
        return m[::-1]
    if at > 1:
        return _within_rows([m], "flip", lambda inner: flip(inner[0], at - 1))
    if m.num_ragged > 1:
        return _within_rows([m], "flip", lambda inner: rows_at(inner[0], m._partitions[0].mirrored))
    return m.with_values(np.take(m.values, m._partitions[-1].row_mirrored, axis=0))


def transpose(a: RaggedArray, axes: Any = None) -> Any:
    """Uniform axes in another order; the others must stay in front."""
    lead = 1 + a.num_ragged
    found = [a._axis(axis, "transpose") for axis in (range(a.ndim)[::-1] if axes is None else axes)]
    if found[:lead] != list(range(lead)):
        raise error.UnsupportedError(f"transpose: the axes 0 to {lead - 1} of shape {a.shape} stay, found {axes}")
    return a.with_values(np.transpose(a.values, (0, *(axis - a.num_ragged for axis in found[lead:]))))


def moveaxis(a: RaggedArray, source: Any, destination: Any) -> Any:
    """Uniform axes moved to other places among them."""
    axes_pair = [
        [_uniform(a, axis, "moveaxis") for axis in (given if isinstance(given, tuple | list) else (given,))]
        for given in (source, destination)
    ]
    return a.with_values(np.moveaxis(a.values, *axes_pair))


def vstack(tup: Sequence[Any], **other: Any) -> Any:
    """Joins arrays along axis 0."""
    return _joined("vstack", tup, 0, **other)


def hstack(tup: Sequence[Any], **other: Any) -> Any:
    """Joins the rows of arrays."""
    return _joined("hstack", tup, 1, **other)


def dstack(tup: Sequence[Any]) -> Any:
    """Joins arrays along axis 2."""
    return _joined("dstack", tup, 2)


def append(arr: Any, values: Any, axis: Any = None) -> Any:
    """Joins two arrays along an axis."""
    return _joined("append", (arr, values), axis)


def ravel(a: RaggedArray, order: str = "C") -> Any:
    """All elements in one dense row."""
    if order != "C":
        raise error.UnsupportedError(f"ravel: ragged arrays are taken in C order, found {order!r}")
    return a.values.reshape(-1)


def at_least(ndim: int) -> Callable[[RaggedArray], Any]:
    """A function that returns arrays of as many axes as they are."""

    def function(a: RaggedArray) -> Any:
        if a.ndim < ndim:
            raise error.UnsupportedError(
                f"atleast_{ndim}d: a ragged array of shape {a.shape} gets axes behind the last one only"
                "; use np.expand_dims"
            )
        return a

    return function


def slice_axis(data: RaggedArray, axis: Any, begin: int, end: Any) -> Any:
    """Elements `begin` to `end` along an axis."""
    return data[(*(slice(None),) * data._axis(axis, "slice_axis"), slice(begin, end))]


def pick(data: RaggedArray, index: Any, axis: Any = -1, keepdims: bool = False, mode: str = "clip") -> Any:
    """The element with a ragged index of each row of a uniform axis."""
    at = _uniform(data, axis, "pick")
    data._check_same(index, "pick")
    found = _core.namespaces["npx"]["pick"](data.values, index.values, axis=at, keepdims=keepdims, mode=mode)
    return data.with_values(found)


def reshape(a: RaggedArray, shape: Any = None, order: str = "C", **other: Any) -> Any:
    """Other uniform axes."""
    if order != "C":
        raise error.UnsupportedError("reshape: ragged arrays are taken in C order")
    return a.reshape(shape)
