"""Reading and writing at positions that are given by arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

from mxnet.onnx._exporter.builder import Value
from mxnet.onnx._exporter.call import Call
from mxnet.onnx._exporter.operators.creation import positions

__all__ = ["TRANSLATIONS"]


def _items(call: Call, ndim: int) -> list[Any]:
    """The items of the index expression, one for each axis and each new axis: slices, integers, None, or "array"."""
    key = call.attribute("key")
    given = key["index"] if isinstance(key, dict) and "index" in key else key
    items: list[Any] = []
    for item in given if isinstance(given, list) else [given]:
        if isinstance(item, dict) and "slice" in item:
            items.append(slice(*item["slice"]))
        elif isinstance(item, dict) and "array" in item:
            items.append("array")
        elif item == "newaxis":
            items.append(None)
        elif item == "..." or (isinstance(item, int) and not isinstance(item, bool)):
            items.append(item)
        else:
            call.refuse(f"an index of the form {item!r}", "index in two steps")
    missing = ndim - sum(item is not None and item != "..." for item in items)
    at = items.index("...") if "..." in items else len(items)
    return [*items[:at], *[slice(None)] * missing, *items[at + 1 :]]


class _Selection:
    """What an index expression with arrays selects of an array: a range of each axis, or positions."""

    def __init__(self, call: Call, shape: Sequence[int], first: int) -> None:
        """`first` is the operand from which on the arrays of indices are."""
        b = call.b
        lengths = iter(shape)
        self.shape: list[int] = []
        self.ranges: list[tuple[int, int, int] | None] = []
        self.indices: list[Value] = []
        arrays = iter(range(first, len(call.operands)))
        for item in _items(call, len(shape)):
            n = 1 if item is None else next(lengths)
            self.shape.append(n)
            if item is None:
                self.ranges.append((0, 1, 1))
            elif isinstance(item, slice):
                start, stop, step = item.indices(n)
                self.ranges.append((start, len(range(start, stop, step)), step))
            else:
                # Integers count as arrays without axes, as in NumPy.
                self.ranges.append(None)
                index = (
                    call.value(next(arrays), "int64")
                    if item == "array"
                    else b.scalar(item + (n if item < 0 else 0), "int64")
                )
                self.indices.append(index)
        self.axes = [axis for axis, part in enumerate(self.ranges) if part is None]
        is_together = self.axes == list(range(self.axes[0], self.axes[-1] + 1))
        # Where the axes of the arrays are in the result.
        self.at = self.axes[0] if is_together else 0


def _gather(call: Call) -> Value:
    b = call.b
    chosen = _Selection(call, call.value(0).shape, 1)
    x = b.reshape(call.value(0), chosen.shape)
    ranges, axes, indices = chosen.ranges, chosen.axes, chosen.indices
    x = b.slice(x, [(0, n, 1) if part is None else part for n, part in zip(x.shape, ranges, strict=True)])
    if len(axes) == 1:
        return b.node("Gather", [x, indices[0]], call.shape, x.dtype, axis=axes[0])
    others = [axis for axis in range(x.ndim) if axis not in axes]
    lengths = [x.shape[axis] for axis in axes]
    rest = [x.shape[axis] for axis in others]
    moved = b.reshape(b.transpose(x, [*axes, *others]), [math.prod(lengths), *rest])
    flat = indices[0]
    for index, n in zip(indices[1:], lengths[1:], strict=True):
        flat = b.binary("Add", b.with_number("Mul", flat, n), index)
    found = b.node("Gather", [moved, flat], [*flat.shape, *rest], x.dtype, axis=0)
    num, at = flat.ndim, chosen.at
    return b.transpose(found, [*range(num, num + at), *range(num), *range(num + at, found.ndim)])


def _flat_positions(call: Call, shape: Sequence[int], result: Sequence[int], first: int) -> Value:
    """Positions in a flat array of `shape` of the elements that the key selects, in the shape of `result`."""
    b = call.b
    chosen = _Selection(call, shape, first)
    axes, at = chosen.axes, chosen.at
    num = len(onp.broadcast_shapes(*(index.shape for index in chosen.indices)))
    total: Value | None = None
    sliced = 0
    for axis, part in enumerate(chosen.ranges):
        stride = math.prod(chosen.shape[axis + 1 :])
        if part is None:
            index = chosen.indices[axes.index(axis)]
            index = b.reshape(index, [*index.shape, *[1] * (len(result) - at - num)])
            term = b.with_number("Mul", index, stride)
        else:
            start, count, step = part
            where = sliced if sliced < at else sliced + num
            sliced += 1
            line = positions(call, count)
            if step != 1:
                line = b.with_number("Mul", line, step)
            if start:
                line = b.with_number("Add", line, start)
            line = b.with_number("Mul", line, stride)
            term = b.reshape(line, [count, *[1] * (len(result) - where - 1)])
        total = term if total is None else b.binary("Add", total, term)
    assert total is not None
    return b.expand(total, result)


def _scattered(call: Call, base: Value, updates: Value, where: Value, reduction: str | None) -> Value:
    b = call.b
    flat = b.reshape(base, [base.size])
    inputs = [flat, b.reshape(where, [where.size]), b.reshape(updates, [updates.size])]
    return b.reshape(b.node("ScatterElements", inputs, flat.shape, base.dtype, axis=0, reduction=reduction), base.shape)


def _index_assign(call: Call) -> Value:
    x, value = call.value(0, call.dtype), call.value(1, call.dtype)
    return _scattered(call, x, value, _flat_positions(call, x.shape, value.shape, 2), None)


def _index_accumulate(call: Call) -> Value:
    x, value = call.value(0, call.dtype), call.value(1, call.dtype)
    return _scattered(call, x, value, _flat_positions(call, x.shape, value.shape, 2), "add")


def _scatter_add(call: Call) -> Value:
    y = call.value(0, call.dtype)
    zeros = call.b.full(call.shape, 0, call.dtype)
    return _scattered(call, zeros, y, _flat_positions(call, call.shape, y.shape, 1), "add")


def _at_known_positions(call: Call, where: onp.ndarray) -> Value:
    b = call.b
    zeros = b.full(call.shape, 0, call.dtype)
    return _scattered(
        call, zeros, b.expand(call.value(0, call.dtype), where.shape), b.constant(where.astype(onp.int64)), None
    )


def _numbered(shape: Sequence[int]) -> onp.ndarray:
    return onp.arange(math.prod(shape)).reshape(shape)


def _index_spread(call: Call) -> Value:
    key = tuple(_items(call, len(call.shape)))
    return _at_known_positions(call, onp.asarray(_numbered(call.shape)[key]))


def _window_positions(call: Call, shape: Sequence[int]) -> onp.ndarray:
    where = onp.asarray(call.attribute("offset"))
    for n, stride in zip(shape, call.attribute("strides"), strict=True):
        where = where[..., None] + onp.arange(n) * stride
    return where


def _window_spread(call: Call) -> Value:
    return _at_known_positions(call, _window_positions(call, call.value(0).shape))


def _window_assign(call: Call) -> Value:
    x, value = call.value(0, call.dtype), call.value(1, call.dtype)
    where = _window_positions(call, value.shape)
    return _scattered(call, x, value, call.b.constant(where.astype(onp.int64)), None)


def _unravel_index(call: Call) -> list[Value]:
    b, index = call.b, call.value(0, "int64")
    shape = call.attribute("shape")
    lengths = list(shape) if isinstance(shape, list) else [shape]
    is_fortran = call.attribute("order", "C") == "F"
    found: list[Value] = []
    for n in lengths if is_fortran else reversed(lengths):
        found.append(b.with_number("Mod", index, n))
        index = b.with_number("Div", index, n)
    return found if is_fortran else list(reversed(found))


def _ravel_multi_index(call: Call) -> Value:
    b, dims, count = call.b, call.attribute("dims"), len(call.operands)
    lengths = list(dims) if isinstance(dims, list) else [dims]
    modes = call.attribute("mode", "raise")
    modes = modes.split(",") if isinstance(modes, str) else list(modes)
    modes = modes * count if len(modes) == 1 else modes
    is_fortran = call.attribute("order", "C") == "F"
    total: Value | None = None
    for axis, (n, mode) in enumerate(zip(lengths, modes, strict=True)):
        index = call.value(axis, "int64")
        if mode == "wrap":
            index = b.with_number("Mod", index, n)
        elif mode == "clip":
            index = b.node("Clip", [index, b.scalar(0, "int64"), b.scalar(n - 1, "int64")], index.shape, "int64")
        term = b.with_number("Mul", index, math.prod(lengths[:axis] if is_fortran else lengths[axis + 1 :]))
        total = term if total is None else b.binary("Add", total, term)
    assert total is not None
    return total


def _diagonal_spread(call: Call) -> Value:
    numbers = _numbered(call.shape)
    axes = call.attribute("axis1", 0), call.attribute("axis2", 1)
    return _at_known_positions(call, numbers.diagonal(call.attribute("offset", 0), *axes))


def _resolve_indices(call: Call) -> Value:
    b, x, size = call.b, call.value(0, "int64"), call.attribute("size")
    return b.where(b.compare("Less", x, b.scalar(0, "int64")), b.with_number("Add", x, size), x)


def _wrapped_indices(call: Call) -> Value:
    b, size = call.b, call.attribute("size")
    operand = call.value(0)
    x = b.cast(operand, "int64")
    if call.attribute("mode", "clip") == "wrap":
        return b.with_number("Mod", x, size)
    return b.node("Clip", [x, b.scalar(0, "int64"), b.scalar(size - 1, "int64")], x.shape, "int64")


def _along(call: Call, x: Value, index: Value, axis: int) -> Value:
    """Axes of length 1 of the array are repeated; the indices have the shape of the result."""
    target = [n if i == axis else m for i, (n, m) in enumerate(zip(x.shape, index.shape, strict=True))]
    return call.b.expand(x, target)


def _gather_along(call: Call) -> Value:
    b, x, index = call.b, call.value(0), call.value(1, "int64")
    axis = call.attribute("axis", 0) % x.ndim
    shape = [m if i == axis else n for i, (n, m) in enumerate(zip(call.shape, index.shape, strict=True))]
    index = b.expand(index, shape)
    return b.node("GatherElements", [_along(call, x, index, axis), index], call.shape, x.dtype, axis=axis)


def _scatter_along(call: Call) -> Value:
    b, y, index = call.b, call.value(0, call.dtype), call.value(1, "int64")
    axis = call.attribute("axis", 0) % y.ndim
    zeros = b.full(call.shape, 0, call.dtype)
    index = b.expand(index, y.shape)
    return b.node("ScatterElements", [zeros, index, y], call.shape, call.dtype, axis=axis, reduction="add")


def _chosen(call: Call) -> Value:
    b, number = call.b, call.value(0, "int64")
    found = call.value(1, call.dtype)
    for at in range(2, len(call.operands)):
        is_it = b.compare("Equal", number, b.scalar(at - 1, "int64"))
        found = b.where(is_it, call.value(at, call.dtype), found)
    return b.expand(found, call.shape)


def _one_hot_rows(call: Call) -> Value:
    b, index, depth = call.b, call.value(0, "int64"), call.attribute("depth")
    is_it = b.compare("Equal", b.reshape(index, [*index.shape, 1]), positions(call, depth))
    values = (
        b.scalar(call.attribute(name, default), call.dtype) for name, default in (("on_value", 1), ("off_value", 0))
    )
    return b.where(is_it, *values)


TRANSLATIONS: dict[str, Callable[[Call], Any]] = {
    "chosen": _chosen,
    "diagonal_spread": _diagonal_spread,
    "gather": _gather,
    "gather_along": _gather_along,
    "gather_rows": _gather,
    "index_accumulate": _index_accumulate,
    "index_assign": _index_assign,
    "index_spread": _index_spread,
    "one_hot_rows": _one_hot_rows,
    "ravel_multi_index": _ravel_multi_index,
    "resolve_indices": _resolve_indices,
    "scatter_add": _scatter_add,
    "scatter_along": _scatter_along,
    "unravel_index": _unravel_index,
    "window_assign": _window_assign,
    "window_spread": _window_spread,
    "wrapped_indices": _wrapped_indices,
}
