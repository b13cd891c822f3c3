"""Reading and writing elements by arrays of indices."""

from __future__ import annotations

from typing import Any

from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.onnx._importer.table import Call, operator
from mxnet.onnx._importer.values import numbers


@operator("Gather", folds=True)
def gather(call: Call, x: Any, indices: Any) -> Any:
    return call.np.take(x, indices, axis=call["axis"])


def _corner(x: Any, shape: tuple[int, ...], axis: int) -> Any:
    """The part of an array that has the sizes of `shape` except along `axis`."""
    key = tuple(slice(None) if number == axis else slice(0, size) for number, size in enumerate(shape))
    return x[key]


@operator("GatherElements", folds=True)
def gather_elements(call: Call, x: Any, indices: Any) -> Any:
    axis = call["axis"] % x.ndim
    return call.np.take_along_axis(_corner(x, indices.shape, axis), indices, axis=axis)


@operator("GatherND", folds=True)
def gather_nd(call: Call, x: Any, indices: Any) -> Any:
    xp, batch = call.np, call["batch_dims"] or 0
    depth = indices.shape[-1]
    columns = [indices[..., number] for number in range(depth)]
    for axis in reversed(range(batch)):
        shape = [1] * columns[0].ndim
        shape[axis] = -1
        columns.insert(0, xp.arange(x.shape[axis]).reshape(shape))
    return x[tuple(columns)]


@operator("OneHot", host=(1,))
def one_hot(call: Call, indices: Any, depth: Any, values: Any) -> Any:
    (count,) = numbers(depth)
    axis = call["axis"] % (indices.ndim + 1)
    positions = indices.astype("int64")
    positions = np.expand_dims(np.where(positions < 0, positions + count, positions), axis)
    shape = [1] * (indices.ndim + 1)
    shape[axis] = count
    return np.where(positions == np.arange(count).reshape(shape), values[1], values[0])


@operator("Compress")
def compress(call: Call, x: Any, condition: Any) -> Any:
    axis = call["axis"]
    length = condition.shape[0]
    if axis is None:
        return x.reshape(-1)[:length][condition]
    moved = np.moveaxis(x, axis, 0)[:length]
    return np.moveaxis(moved[condition], 0, axis)


@operator("NonZero")
def nonzero(call: Call, x: Any) -> Any:
    return np.stack(np.nonzero(np.atleast_1d(x)))


# ---- writing ----

_REDUCTIONS = ("none", "add", "mul", "max", "min")
_AT = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def _scattered(x: Any, columns: Any, updates: Any, reduction: str) -> Any:
    """A copy of `x` with the elements at `columns`, (axes, n), replaced by or combined with `updates`.

    The gradients of "none" and "add" are known; the other ways write into the copy, which has none.
    """
    if reduction == "none":
        return npx.index_update(x, columns, updates)
    if reduction == "add":
        return npx.index_add(x, columns, updates)
    changed = x.copy()
    _AT[reduction].at(changed, tuple(columns[axis] for axis in range(columns.shape[0])), updates)
    return changed


def _from_start(index: Any, length: int) -> Any:
    """Indices that count from the start, for those that count from the end."""
    index = index.astype("int64")
    return np.where(index < 0, index + length, index)


@operator("ScatterElements", "Scatter")
def scatter_elements(call: Call, x: Any, indices: Any, updates: Any) -> Any:
    axis = call["axis"] % x.ndim
    columns = []
    for number in range(x.ndim):
        if number == axis:
            column = _from_start(indices, x.shape[axis])
        else:
            shape = [1] * x.ndim
            shape[number] = -1
            column = np.broadcast_to(np.arange(indices.shape[number]).reshape(shape), indices.shape)
        columns.append(column.reshape(-1))
    return _scattered(x, np.stack(columns), updates.reshape(-1), call.choice("reduction", *_REDUCTIONS, default="none"))


@operator("ScatterND")
def scatter_nd(call: Call, x: Any, indices: Any, updates: Any) -> Any:
    depth = indices.shape[-1]
    columns = np.stack([_from_start(indices[..., axis], x.shape[axis]).reshape(-1) for axis in range(depth)])
    rows = updates.reshape((columns.shape[1], *x.shape[depth:]))
    return _scattered(x, columns, rows, call.choice("reduction", *_REDUCTIONS, default="none"))


@operator("TensorScatter")
def tensor_scatter(call: Call, past: Any, update: Any, start: Any = None) -> Any:
    axis = call["axis"] % past.ndim
    length, count = past.shape[axis], update.shape[axis]
    first = np.zeros((past.shape[0],), dtype="int64") if start is None else start.astype("int64")
    steps = first.reshape((-1, 1)) + np.arange(count)
    if call.choice("mode", "linear", "circular") == "circular":
        steps = np.mod(steps, length)
    rows = np.broadcast_to(np.arange(past.shape[0]).reshape((-1, 1)), steps.shape)
    columns = np.stack([rows.reshape(-1), steps.reshape(-1)])
    moved, values = np.moveaxis(past, axis, 1), np.moveaxis(update, axis, 1)
    values = values.reshape((columns.shape[1], *moved.shape[2:]))
    return np.moveaxis(npx.index_update(moved, columns, values), 1, axis)


@operator("ReverseSequence")
def reverse_sequence(call: Call, x: Any, lengths: Any) -> Any:
    batch, time = call["batch_axis"], call["time_axis"]
    moved = x if (time, batch) == (0, 1) else np.swapaxes(x, 0, 1)
    found = npx.sequence_reverse(moved, lengths, use_sequence_length=True)
    return found if (time, batch) == (0, 1) else np.swapaxes(found, 0, 1)


@operator("ArrayFeatureExtractor", domain="ai.onnx.ml")
def array_feature_extractor(call: Call, x: Any, indices: Any) -> Any:
    found = np.take(x, indices.reshape(-1), axis=-1)
    return found.reshape((1, -1)) if x.ndim == 1 else found
