"""Views as nodes: which slices, transposes and reshapes give elements at certain offsets and strides."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as onp

from mxnet.onnx._exporter.builder import Builder, Value
from mxnet.onnx._exporter.graph import View

__all__ = ["assign", "read", "upright"]

# Positions of elements, written as a constant, for views that no slice gives.
_MAX_POSITIONS = 1 << 22


def upright(b: Builder, value: Value, definition: View) -> tuple[Value, View]:
    """A buffer that a node writes backwards, with strides that are not negative.

    Parameters
    ----------
    b : Builder
    value : Value
    definition : View

    Returns
    -------
    (Value, View)
    """
    strides, offset = list(definition.strides), definition.offset
    for axis, (n, stride) in enumerate(zip(definition.shape, definition.strides, strict=True)):
        if stride < 0:
            value = b.part(value, axis, n - 1, n, -1)
            offset += (n - 1) * stride
            strides[axis] = -stride
    return value, definition._replace(strides=tuple(strides), offset=offset)


def _in_memory_order(b: Builder, value: Value, definition: View) -> Value | None:
    """A buffer's elements in the order of its memory; None if its definition leaves gaps."""
    if definition.is_dense():
        return value
    axes = sorted(range(value.ndim), key=lambda axis: (-definition.strides[axis], axis))
    shape = tuple(definition.shape[axis] for axis in axes)
    strides = tuple(definition.strides[axis] for axis in axes)
    if not definition._replace(shape=shape, strides=strides).is_dense():
        return None
    return b.transpose(value, axes)


def _chains(shape: Sequence[int], axes: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Ways to divide memory into axes, each as strides that divide one another, the last of which is 1.

    `axes` has the length and the stride of each axis of the view.
    """
    total = math.prod(shape)
    defined = [math.prod(shape[axis + 1 :]) for axis in range(len(shape)) if shape[axis] != 1] or [1]
    viewed = sorted({stride for _, stride in axes} | {1}, reverse=True)
    crossed = {cut for cut in defined for n, stride in axes if stride < cut < stride * n}
    merged = sorted({cut for cut in defined if cut not in crossed} | {1}, reverse=True)
    split = sorted(set(merged) | {stride for _, stride in axes}, reverse=True)
    found = []
    for chain in (defined, viewed, merged, split):
        bounds = [total, *chain]
        if all(low and high % low == 0 for high, low in itertools.pairwise(bounds)) and chain not in found:
            found.append(chain)
    return found


def _fitted(chain: Sequence[int], total: int, axes: Sequence[tuple[int, int]], offset: int) -> list[int] | None:
    """For each axis of the view the axis of the chain on which it moves; None if they do not fit."""
    lengths = [high // low for high, low in itertools.pairwise([total, *chain])]
    found: list[int] = []
    for n, stride in axes:
        at = next((i for i, cut in enumerate(chain) if cut <= stride and stride % cut == 0), None)
        if at is None or at in found:
            return None
        start = offset // chain[at] % lengths[at]
        if start + (n - 1) * (stride // chain[at]) >= lengths[at]:
            return None
        found.append(at)
    return found


def read(b: Builder, value: Value, definition: View, view: View) -> Value | None:
    """The elements of a view as a value.

    Parameters
    ----------
    b : Builder
    value : Value
        The buffer's elements, in the shape of its definition.
    definition, view : View
        Of one buffer and one dtype.

    Returns
    -------
    Value or None
        None if no nodes give the view.
    """
    offset = view.offset - definition.offset
    if (view.shape, view.strides, offset) == (definition.shape, definition.strides, 0):
        return value
    if value.constant is not None and b.is_foldable(value) and definition.is_dense():
        if any(n > 1 and stride == 0 for n, stride in zip(view.shape, view.strides, strict=True)):
            # Elements that are repeated are not written several times.
            shape = tuple(1 if stride == 0 else n for n, stride in zip(view.shape, view.strides, strict=True))
            once = read(b, value, definition, view._replace(shape=shape))
            return once if once is None else b.expand(once, view.shape)
        flat = onp.ascontiguousarray(value.constant).reshape(-1)
        strides = [stride * flat.itemsize for stride in view.strides]
        start = flat[offset:]
        return b.constant(onp.lib.stride_tricks.as_strided(start, view.shape, strides).copy(), value.dtype)
    if 0 in view.shape:
        return b.full(view.shape, 0, value.dtype)
    memory = _in_memory_order(b, value, definition)
    if memory is None:
        return None
    if view.is_dense() and offset == 0 and view.size == memory.size:
        return b.reshape(memory, view.shape)
    moving = [axis for axis, n in enumerate(view.shape) if n != 1 and view.strides[axis] != 0]
    axes = []
    for axis in moving:
        n, stride = view.shape[axis], view.strides[axis]
        if stride < 0:
            offset += (n - 1) * stride
        axes.append((n, abs(stride)))
    for chain in _chains(memory.shape, axes):
        found = _fitted(chain, memory.size, axes, offset)
        if found is not None:
            return _sliced(b, memory, chain, found, view, moving, axes, offset)
    return _gathered(b, memory, view, view.offset - definition.offset)


def _sliced(
    b: Builder,
    memory: Value,
    chain: Sequence[int],
    found: Sequence[int],
    view: View,
    moving: Sequence[int],
    axes: Sequence[tuple[int, int]],
    offset: int,
) -> Value:
    """The view by slices along the axes of a chain, a transpose and a broadcast."""
    lengths = [high // low for high, low in itertools.pairwise([memory.size, *chain])]
    parts = []
    for at, (cut, length) in enumerate(zip(chain, lengths, strict=True)):
        start = offset // cut % length
        number, step = 1, 1
        if at in found:
            number, stride = axes[found.index(at)]
            step = stride // cut
            if view.strides[moving[found.index(at)]] < 0:
                start, step = start + (number - 1) * step, -step
        parts.append((start, number, step))
    x = b.slice(b.reshape(memory, lengths), parts)
    kept = sorted(found)
    x = b.reshape(x, [x.shape[at] for at in kept])
    x = b.transpose(x, [kept.index(at) for at in found])
    shape = [n if axis in moving else 1 for axis, n in enumerate(view.shape)]
    return b.expand(b.reshape(x, shape), view.shape)


def _positions(view: View, offset: int) -> onp.ndarray:
    """Positions of a view's elements in memory, in the view's shape."""
    positions = onp.full((), offset, onp.int64)
    for n, stride in zip(view.shape, view.strides, strict=True):
        positions = positions[..., None] + onp.arange(n) * stride
    return positions


def _gathered(b: Builder, memory: Value, view: View, offset: int) -> Value | None:
    """The view by the positions of its elements."""
    if view.size > _MAX_POSITIONS:
        return None
    flat = b.reshape(memory, [memory.size])
    return b.node("Gather", [flat, b.constant(_positions(view, offset))], view.shape, memory.dtype, axis=0)


def assign(b: Builder, value: Value, definition: View, part: Value, view: View) -> Value | None:
    """A buffer's elements in the shape of its definition, those of a view replaced.

    Parameters
    ----------
    b : Builder
    value : Value
        The elements before.
    definition, view : View
    part : Value
        The new elements, in the shape of the view.

    Returns
    -------
    Value or None
        None if no nodes give it.
    """
    offset = view.offset - definition.offset
    if (view.shape, view.strides, offset) == (definition.shape, definition.strides, 0):
        return part
    memory = _in_memory_order(b, value, definition)
    if memory is None or memory is not value or view.size > _MAX_POSITIONS:
        return None
    joined = _joined(b, value, definition, part, view, offset)
    if joined is not None:
        return joined
    flat, updates = b.reshape(value, [value.size]), b.reshape(part, [part.size])
    positions = b.constant(_positions(view, offset).reshape(-1))
    written = b.node("ScatterElements", [flat, positions, updates], flat.shape, flat.dtype, axis=0)
    return b.reshape(written, value.shape)


def _joined(b: Builder, value: Value, definition: View, part: Value, view: View, offset: int) -> Value | None:
    """The assignment to a range of each axis, by joining what is before, in and after the ranges."""
    axes = [(n, stride) for n, stride in zip(view.shape, view.strides, strict=True) if n != 1]
    chain = [math.prod(definition.shape[axis + 1 :]) for axis in range(value.ndim)]
    if any(n == 1 for n in definition.shape) or not chain:
        return None
    found = _fitted(chain, value.size, axes, offset)
    if found is None or found != sorted(found) or any(axes[i][1] != chain[at] for i, at in enumerate(found)):
        return None
    ranges = [(offset // cut % n, 1) for cut, n in zip(chain, value.shape, strict=True)]
    for i, at in enumerate(found):
        ranges[at] = (ranges[at][0], axes[i][0])
    return _with_range(b, value, ranges, b.reshape(part, [number for _, number in ranges]), 0)


def _with_range(b: Builder, value: Value, ranges: Sequence[tuple[int, int]], part: Value, axis: int) -> Value:
    """`value` with `part` in the ranges (start, number) of the axes from `axis` on."""
    if axis == value.ndim:
        return part
    start, number = ranges[axis]
    after = value.shape[axis] - start - number
    inner = _with_range(b, b.part(value, axis, start, number), ranges, part, axis + 1)
    pieces = [b.part(value, axis, 0, start)] if start else []
    pieces.append(inner)
    if after:
        pieces.append(b.part(value, axis, start + number, after))
    return b.concat(pieces, axis)
