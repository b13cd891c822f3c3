"""Copies, conversions, joins, paddings and repetitions. Views have no nodes: `views.py` reads them from memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as onp

from mxnet.onnx._exporter.builder import Value
from mxnet.onnx._exporter.call import Call

__all__ = ["TRANSLATIONS"]


def _copy(call: Call) -> Value:
    return call.value(0, call.dtype)


def _flatten(call: Call) -> Value:
    x = call.value(0)
    if call.attribute("order", "C") == "F":
        x = call.b.transpose(x, list(reversed(range(x.ndim))))
    return call.b.reshape(x, call.shape)


def _concatenate(call: Call) -> Value:
    b, values = call.b, [call.value(at, call.dtype) for at in range(len(call.operands))]
    axis = call.attribute("axis")
    if axis is None:
        return b.concat([b.reshape(x, [x.size]) for x in values], 0)
    return b.concat(values, axis)


def _pairs(call: Call) -> list[tuple[int, int]]:
    widths = call.attribute("pad_width")
    return list(zip(widths[::2], widths[1::2], strict=True))


def _pad_node(
    call: Call, x: Value, pairs: list[tuple[int, int]], shape: Any, *, mode: str, fill: Value | None
) -> Value:
    widths = call.b.ints([low for low, _ in pairs] + [high for _, high in pairs])
    return call.b.node("Pad", [x, widths, fill], shape, x.dtype, mode=mode)


def _pad_constant(call: Call) -> Value:
    fill = call.b.scalar(call.attribute("value", 0), call.dtype)
    return _pad_node(call, call.value(0, call.dtype), _pairs(call), call.shape, mode="constant", fill=fill)


def _pad_border(call: Call) -> Value:
    mode = call.attribute("mode", "edge")
    b, x = call.b, call.value(0)
    pairs = _pairs(call)
    reach = {"reflect": 1, "symmetric": 0, "wrap": 0}
    if mode in reach:
        for (low, high), n in zip(pairs, x.shape, strict=True):
            if max(low, high) > n - reach[mode]:
                call.refuse(f"mode {mode!r} by {max(low, high)} elements along an axis of {n}", "pad several times")
    if mode in ("edge", "reflect"):
        return _pad_node(call, x, pairs, call.shape, mode=mode, fill=None)
    for axis, (low, high) in enumerate(pairs):
        n, pieces = x.shape[axis], [x]
        if mode == "symmetric":
            before = b.part(x, axis, low - 1, low, -1) if low else None
            after = b.part(x, axis, n - 1, high, -1) if high else None
        else:
            before = b.part(x, axis, n - low, low) if low else None
            after = b.part(x, axis, 0, high) if high else None
        pieces = [piece for piece in (before, x, after) if piece is not None]
        x = b.concat(pieces, axis)
    return x


def _unslice(call: Call) -> Value:
    x, axis = call.value(0), call.attribute("axis")
    axis %= x.ndim
    total = call.shape[axis]
    start = call.attribute("begin", 0)
    start = start + total if start < 0 else start
    pairs = [(0, 0)] * x.ndim
    pairs[axis] = (start, total - start - x.shape[axis])
    return _pad_node(call, x, pairs, call.shape, mode="constant", fill=call.b.scalar(0, x.dtype))


def _rotate(call: Call) -> Value:
    b, x = call.b, call.value(0)
    for axis, start in enumerate(call.attribute("starts")):
        n = x.shape[axis]
        if n and start % n:
            x = b.concat([b.part(x, axis, start % n, n - start % n), b.part(x, axis, 0, start % n)], axis)
    return x


def _repeat(call: Call) -> Value:
    b, x = call.b, call.value(0)
    axis, repeats = call.attribute("axis"), call.attribute("repeats")
    if axis is None:
        x, axis = b.reshape(x, [x.size]), 0
    axis %= x.ndim
    if 0 in call.shape:
        return b.full(call.shape, 0, x.dtype)
    if isinstance(repeats, list) and len(repeats) == 1:
        repeats = repeats[0]
    if isinstance(repeats, list):
        positions = b.constant(onp.repeat(onp.arange(x.shape[axis]), repeats))
        return b.node("Gather", [x, positions], call.shape, x.dtype, axis=axis)
    before, n, after = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    wide = b.expand(b.reshape(x, [*before, n, 1, *after]), [*before, n, repeats, *after])
    return b.reshape(wide, call.shape)


def _split_vector(call: Call) -> list[Value]:
    b, x = call.b, call.value(0)
    results, start = [], 0
    for view in call.node.outputs:
        results.append(b.part(x, 0, start, math.prod(view.shape)))
        start += math.prod(view.shape)
    return results


TRANSLATIONS: dict[str, Callable[[Call], Any]] = {
    "astype": _copy,
    "cast": _copy,
    "concatenate": _concatenate,
    "copy": _copy,
    "copy_in_order": _copy,
    "duplicate": _copy,
    "flatten": _flatten,
    "pad_border": _pad_border,
    "pad_constant": _pad_constant,
    "repeat": _repeat,
    "rotate": _rotate,
    "split_vector": _split_vector,
    "transfer": _copy,
    "unslice": _unslice,
}
