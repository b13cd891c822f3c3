"""Products, determinants, and functions of sequences that are products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as onp

from mxnet.onnx._exporter.builder import FLOATS, Value
from mxnet.onnx._exporter.call import Call

__all__ = ["TRANSLATIONS", "product"]

# MatMul takes floats and integers of 32 and 64 bits.
_MULTIPLIED = (*FLOATS, "int32", "int64", "uint32", "uint64")


def product(call: Call, x: Value, y: Value, shape: tuple[int, ...]) -> Value:
    """The matrix product of two values of one dtype."""
    b, dtype = call.b, x.dtype
    if dtype not in _MULTIPLIED:
        found = b.node("MatMul", [b.cast(x, "int32"), b.cast(y, "int32")], shape, "int32")
        return b.cast(found, dtype)
    return b.node("MatMul", [x, y], shape, dtype)


def _matmul(call: Call) -> Value:
    for name in ("axes", "axis", "signature"):
        if call.attribute(name) is not None:
            call.refuse(f"the argument `{name}`", "transpose the operands")
    return product(call, call.value(0, call.dtype), call.value(1, call.dtype), call.shape)


def _conjugated_dot(call: Call) -> Value:
    return product(call, call.value(0, call.dtype), call.value(1, call.dtype), ())


def _determinant(call: Call) -> Value:
    return call.b.node("Det", [call.value(0, call.dtype)], call.shape, call.dtype)


def _slogdet(call: Call) -> list[Value]:
    b, x = call.b, call.value(0, call.dtype)
    found = b.node("Det", [x], call.shape, x.dtype)
    return [b.unary("Sign", found), b.unary("Log", b.unary("Abs", found))]


def _windowed(call: Call, x: Value, w: Value, before: int, count: int, *, reverses: bool) -> Value:
    """`sum of x[k + j - before] * w[j]` for k below `count`: a convolution, or a product with windows."""
    b, dtype = call.b, call.dtype
    n, m = x.shape[0], w.shape[0]
    if reverses:
        w = b.part(w, 0, m - 1, m, -1)
    start = max(-before, 0)
    after = count + m - 1 - before - n
    x = b.part(x, 0, start, n - start + min(after, 0))
    pads = [max(before, 0), max(after, 0)]
    if dtype == "float32":
        data = b.reshape(b.cast(x, dtype), [1, 1, x.shape[0]])
        kernel = b.reshape(b.cast(w, dtype), [1, 1, m])
        found = b.node("Conv", [data, kernel], [1, 1, count], dtype, kernel_shape=[m], pads=pads)
        return b.reshape(found, [count])
    wide = dtype if dtype in _MULTIPLIED else "int64"
    padded = b.node("Pad", [b.cast(x, wide), b.ints(pads), b.scalar(0, wide)], [count + m - 1], wide, mode="constant")
    where = onp.arange(count)[:, None] + onp.arange(m)
    windows = b.node("Gather", [padded, b.constant(where)], [count, m], wide, axis=0)
    return b.cast(product(call, windows, b.cast(w, wide), (count,)), dtype)


def _sliding_dot(call: Call) -> Value:
    before, count = call.attribute("before"), call.attribute("count")
    reverses = bool(call.attribute("reversed", False))
    return _windowed(call, call.value(0), call.value(1), before, count, reverses=reverses)


def _vectors(call: Call) -> list[Value]:
    return [call.b.reshape(x, [x.size]) for x in (call.value(0), call.value(1))]


def _convolve(call: Call) -> Value:
    a, v = _vectors(call)
    if v.shape[0] > a.shape[0]:
        a, v = v, a
    before = {"full": v.shape[0] - 1, "same": v.shape[0] // 2, "valid": 0}[call.attribute("mode", "full")]
    return _windowed(call, a, v, before, call.shape[0], reverses=True)


def _correlate(call: Call) -> Value:
    b, (a, v) = call.b, _vectors(call)
    is_swapped = v.shape[0] > a.shape[0]
    if is_swapped:
        a, v = v, a
    before = {"full": v.shape[0] - 1, "same": v.shape[0] // 2, "valid": 0}[call.attribute("mode", "valid")]
    found = _windowed(call, a, v, before, call.shape[0], reverses=False)
    return b.part(found, 0, call.shape[0] - 1, call.shape[0], -1) if is_swapped else found


def _interpolated(call: Call) -> Value:
    b, dtype = call.b, call.dtype
    x, points, values = (call.value(at, dtype) for at in range(3))
    n = points.shape[0]
    if n == 1:
        return b.expand(b.reshape(values, ()), x.shape)
    ends = [b.reshape(b.part(points, 0, at, 1), ()) for at in (0, n - 1)]
    inside = b.binary("Min", b.binary("Max", x, ends[0]), ends[1])
    is_before = b.compare("LessOrEqual", points, b.reshape(inside, [*x.shape, 1]))
    number = b.reduce("ReduceSum", b.cast(is_before, "int64"), [-1], keepdims=False)
    left = b.node(
        "Clip", [b.with_number("Sub", number, 1), b.scalar(0, "int64"), b.scalar(n - 2, "int64")], x.shape, "int64"
    )
    right = b.with_number("Add", left, 1)
    x0, x1, y0, y1 = (
        b.node("Gather", [line, where], x.shape, dtype, axis=0) for line in (points, values) for where in (left, right)
    )
    slope = b.binary("Div", b.binary("Sub", y1, y0), b.binary("Sub", x1, x0))
    return b.binary("Add", y0, b.binary("Mul", slope, b.binary("Sub", inside, x0)))


TRANSLATIONS: dict[str, Callable[[Call], Any]] = {
    "det": _determinant,
    "conjugated_dot": _conjugated_dot,
    "convolve": _convolve,
    "correlate": _correlate,
    "interpolated": _interpolated,
    "matmul": _matmul,
    "sliding_dot": _sliding_dot,
    "slogdet": _slogdet,
}
