"""Joining and splitting arrays."""

from __future__ import annotations

from typing import Any

from mxnet.onnx._importer.table import Call, operator
from mxnet.onnx._importer.values import numbers


@operator("Concat", folds=True)
def concat(call: Call, *arrays: Any) -> Any:
    axis = call["axis"]
    return call.np.concatenate(arrays, axis=1 if axis is None else axis)  # opset 1 has this default


@operator("Split", host=(1,), folds=True)
def split(call: Call, x: Any, sizes: Any = None) -> Any:
    axis = call["axis"] or 0
    lengths = call["split"] if sizes is None else numbers(sizes)
    if lengths is None:
        count = call["num_outputs"] or call.num_outputs
        each = -(-int(x.shape[axis]) // count)
        lengths = [each] * (count - 1)
        lengths.append(int(x.shape[axis]) - sum(lengths))
    parts = []
    start = 0
    for length in lengths:
        key = [slice(None)] * x.ndim
        key[axis] = slice(start, start + length)
        parts.append(x[tuple(key)])
        start += length
    return tuple(parts)
