"""Shapes: reading, changing and making them. Views where possible."""

from __future__ import annotations

import math
from typing import Any

import numpy

from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.base import dtype_name
from mxnet.onnx._importer.program import Scope
from mxnet.onnx._importer.table import Call, operator
from mxnet.onnx._importer.values import Value, numbers


@operator("Shape", takes_values=True)
def shape(call: Call, outer: Scope, x: Value) -> list[Value]:
    part = slice(call["start"] or 0, call["end"])
    return [
        Value(
            make_array=lambda: npx.shape_array(x.array)[part],
            make_host=lambda: numpy.array(x.shape, dtype=numpy.int64)[part],
            operands=(),
        )
    ]


@operator("Size", takes_values=True)
def size(call: Call, outer: Scope, x: Value) -> list[Value]:
    return [
        Value(
            make_array=lambda: np.full((), x.array.size, dtype="int64"),
            make_host=lambda: numpy.array(math.prod(x.shape), dtype=numpy.int64),
            operands=(),
        )
    ]


@operator("Reshape", host=(1,), folds=True)
def reshape(call: Call, x: Any, sizes: Any = None) -> Any:
    wanted = call["shape"] if sizes is None else numbers(sizes)
    if not call["allowzero"]:
        wanted = [x.shape[axis] if size == 0 else size for axis, size in enumerate(wanted)]
    return x.reshape(tuple(wanted))


@operator("Flatten", folds=True)
def flatten(call: Call, x: Any) -> Any:
    axis = call["axis"]
    axis = axis + x.ndim if axis < 0 else axis
    return x.reshape((math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


@operator("Transpose", folds=True)
def transpose(call: Call, x: Any) -> Any:
    return call.np.transpose(x, call["perm"])


@operator("Squeeze", host=(1,), folds=True)
def squeeze(call: Call, x: Any, axes: Any = None) -> Any:
    listed = call["axes"] if axes is None else numbers(axes)
    return call.np.squeeze(x, axis=None if listed is None else tuple(listed))


@operator("Unsqueeze", host=(1,), folds=True)
def unsqueeze(call: Call, x: Any, axes: Any = None) -> Any:
    return call.np.expand_dims(x, tuple(call["axes"] if axes is None else numbers(axes)))


@operator("Expand", host=(1,), folds=True)
def expand(call: Call, x: Any, sizes: Any) -> Any:
    return call.np.broadcast_to(x, numpy.broadcast_shapes(tuple(map(int, x.shape)), tuple(numbers(sizes))))


@operator("Tile", host=(1, 2), folds=True)
def tile(call: Call, x: Any, repeats: Any, axis: Any = None) -> Any:
    if axis is None:
        return call.np.tile(x, tuple(numbers(repeats)))
    counts = [1] * x.ndim
    counts[numbers(axis)[0]] = numbers(repeats)[0]
    return call.np.tile(x, tuple(counts))


@operator("Range", host=(0, 1, 2), folds=True)
def arange(call: Call, start: Any, limit: Any, delta: Any) -> Any:
    kind = start.dtype
    first, last, step = (x.reshape(()).item() for x in (start, limit, delta))
    if dtype_name(kind) in ("int16", "int32", "int64"):
        return call.np.arange(first, last, step, dtype=kind)
    count = max(math.ceil((last - first) / step), 0)
    return (call.np.arange(count, dtype="float64") * step + first).astype(kind)


@operator("Constant", folds=True)
def constant(call: Call) -> Any:
    for name in ("value", "sparse_value"):
        if call[name] is not None:
            return call[name] if call.is_on_host else np.array(call[name])
    for name, kind in (("int", "int64"), ("ints", "int64"), ("float", "float32"), ("floats", "float32")):
        if f"value_{name}" in call.attributes:
            return call.np.array(call[f"value_{name}"], dtype=kind)
    raise call.unsupported("there are no arrays of strings")


@operator("ConstantOfShape", host=(0,), folds=True)
def constant_of_shape(call: Call, sizes: Any) -> Any:
    value = call["value"]
    if value is None:
        return call.np.zeros(tuple(numbers(sizes)), dtype="float32")
    return call.np.full(tuple(numbers(sizes)), value.reshape(()).item(), dtype=dtype_name(value.dtype))


@operator("EyeLike")
def eye_like(call: Call, x: Any) -> Any:
    kind = dtype_name(x.dtype) if call["dtype"] is None else call.dtype(call["dtype"])
    rows, columns = x.shape
    return np.eye(rows, columns, call["k"], dtype=kind)


@operator("Trilu", host=(1,), folds=True)
def triangle(call: Call, x: Any, k: Any = None) -> Any:
    function = call.np.triu if call["upper"] else call.np.tril
    return function(x, 0 if k is None else numbers(k)[0])


@operator("DepthToSpace")
def depth_to_space(call: Call, x: Any) -> Any:
    b = call["blocksize"]
    n, c, h, w = x.shape
    if call.choice("mode", "DCR", "CRD", default="DCR") == "CRD":
        parts = x.reshape((n, c // (b * b), b, b, h, w)).transpose((0, 1, 4, 2, 5, 3))
    else:
        parts = x.reshape((n, b, b, c // (b * b), h, w)).transpose((0, 3, 4, 1, 5, 2))
    return parts.reshape((n, c // (b * b), h * b, w * b))


@operator("SpaceToDepth")
def space_to_depth(call: Call, x: Any) -> Any:
    b = call["blocksize"]
    n, c, h, w = x.shape
    parts = x.reshape((n, c, h // b, b, w // b, b))
    order = (0, 1, 3, 5, 2, 4) if call.choice("mode", "DCR", "CRD", default="DCR") == "CRD" else (0, 3, 5, 1, 2, 4)
    return parts.transpose(order).reshape((n, c * b * b, h // b, w // b))


@operator("Slice", host=(1, 2, 3, 4), folds=True)
def slice_axes(call: Call, x: Any, starts: Any = None, ends: Any = None, axes: Any = None, steps: Any = None) -> Any:
    if starts is None:
        first, last, listed, step = call["starts"], call["ends"], call["axes"], None
    else:
        first, last = numbers(starts), numbers(ends)
        listed = None if axes is None else numbers(axes)
        step = None if steps is None else numbers(steps)
    listed = range(len(first)) if listed is None else listed
    step = [1] * len(first) if step is None else step
    key = [slice(None)] * x.ndim
    for axis, begin, end, stride in zip(listed, first, last, step, strict=True):
        length = int(x.shape[axis])
        if stride < 0 and end < -length:
            key[axis] = slice(begin, None, stride)
        else:
            key[axis] = slice(*slice(begin, end, stride).indices(length)) if stride > 0 else slice(begin, end, stride)
    return x[tuple(key)]


@operator("Pad", host=(1, 2, 3), folds=True)
def pad(call: Call, x: Any, widths: Any = None, value: Any = None, axes: Any = None) -> Any:
    """Pads of each axis, first those before, then those behind; negative ones cut elements off."""
    amounts = (call["pads"] or call["paddings"]) if widths is None else numbers(widths)
    listed = list(range(x.ndim)) if axes is None else [axis % x.ndim for axis in numbers(axes)]
    pairs = [(0, 0)] * x.ndim
    for index, axis in enumerate(listed):
        pairs[axis] = (amounts[index], amounts[index + len(listed)])
    fill = (call["value"] or 0) if value is None else value.reshape(()).item()
    return padded(call, x, pairs, call.choice("mode", "constant", "reflect", "edge", "wrap"), fill)


def padded(call: Call, x: Any, pairs: list[tuple[int, int]], mode: str = "constant", fill: Any = 0) -> Any:
    """An array with elements before and behind each axis.

    Parameters
    ----------
    call : Call
    x : ndarray
    pairs : list of (int, int)
        One for each axis; negative numbers cut off.
    mode : {"constant", "reflect", "edge", "wrap"}
    fill : number

    Returns
    -------
    ndarray
    """
    if any(before < 0 or behind < 0 for before, behind in pairs):
        key = tuple(
            slice(max(-before, 0), n - max(-behind, 0)) for n, (before, behind) in zip(x.shape, pairs, strict=True)
        )
        x = x[key]
        pairs = [(max(before, 0), max(behind, 0)) for before, behind in pairs]
    if not any(before or behind for before, behind in pairs):
        return x
    options = {"constant_values": fill} if mode == "constant" else {}
    return call.np.pad(x, pairs, mode=mode, **options)


@operator("CenterCropPad", host=(1,))
def center_crop_pad(call: Call, x: Any, sizes: Any) -> Any:
    axes = range(x.ndim) if call["axes"] is None else call["axes"]
    pairs = [(0, 0)] * x.ndim
    for axis, size in zip(axes, numbers(sizes), strict=True):
        rest = size - int(x.shape[axis])
        # An odd rest is longer behind the elements that are added, or before those that are cut off.
        before = rest // 2 if rest >= 0 else -((-rest) // 2)
        pairs[axis] = (before, rest - before)
    return padded(call, x, pairs)
