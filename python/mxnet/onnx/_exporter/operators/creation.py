"""Creation of arrays: constants, ranges, patterns. Where sizes are known at export, the model has the elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as onp

from mxnet.onnx._exporter.builder import FLOATS, Value
from mxnet.onnx._exporter.call import Call

__all__ = ["TRANSLATIONS", "positions"]


def positions(call: Call, count: int) -> Value:
    """The int64 numbers 0 to `count - 1`."""
    # A constant: where the count depends on sizes, it becomes a Range.
    return call.b.constant(onp.arange(count, dtype=onp.int64))


def _filled(number: int | None) -> Callable[[Call], Value]:
    def translated(call: Call) -> Value:
        fill = call.attribute("value", 0) if number is None else number
        return call.b.full(call.shape, fill, call.dtype)

    return translated


def _arange(call: Call) -> Value:
    b = call.b
    start, stop, step = (call.attribute(name) for name in ("start", "stop", "step"))
    if stop is None:
        start = 0
    first, stride = start or 0, 1 if step is None else step
    numbers = positions(call, call.shape[0])
    is_whole = all(float(x).is_integer() for x in (first, stride))
    exact = numbers if is_whole else b.cast(numbers, "float64")
    if stride != 1:
        exact = b.with_number("Mul", exact, stride)
    if first != 0:
        exact = b.with_number("Add", exact, first)
    return b.cast(exact, call.dtype)


def _ramp(call: Call) -> Value:
    b, num = call.b, call.shape[0]
    start, stop = float(call.attribute("start", 0.0)), float(call.attribute("stop", 1.0))
    ends = bool(call.attribute("endpoint", True))
    intervals = num - 1 if ends else num
    numbers = b.cast(positions(call, num), "float64")
    if intervals < 1:
        return b.full(call.shape, start, call.dtype)
    step = b.binary("Div", b.scalar(stop - start, "float64"), b.cast(b.scalar(intervals, "int64"), "float64"))
    found = b.with_number("Add", b.binary("Mul", numbers, step), start)
    return b.cast(found, call.dtype)


def _ramps(call: Call) -> Value:
    b, num = call.b, call.shape[0]
    start, stop = call.value(0, "float64"), call.value(1, "float64")
    ends = bool(call.attribute("endpoint", True))
    intervals = num - 1 if ends else num
    numbers = b.reshape(positions(call, num), [num, *[1] * (len(call.shape) - 1)])
    if intervals < 1:
        return b.cast(b.expand(start, call.shape), call.dtype)
    step = b.binary("Div", b.binary("Sub", stop, start), b.cast(b.scalar(intervals, "int64"), "float64"))
    found = b.binary("Add", start, b.binary("Mul", b.cast(numbers, "float64"), step))
    if ends:
        # The last number is exact.
        is_last = b.compare("Equal", numbers, b.scalar(intervals, "int64"))
        found = b.where(is_last, stop, found)
    if call.dtype not in FLOATS:
        found = b.unary("Floor", found)
    return b.cast(found, call.dtype)


def _columns_minus_rows(call: Call) -> Value:
    b, (n, m) = call.b, call.shape
    rows = b.reshape(positions(call, n), [n, 1])
    return b.binary("Sub", positions(call, m), rows)


def _eye(call: Call) -> Value:
    b = call.b
    found = b.compare("Equal", _columns_minus_rows(call), b.scalar(call.attribute("k", 0), "int64"))
    return b.cast(found, call.dtype)


def _tri(call: Call) -> Value:
    b = call.b
    found = b.compare("LessOrEqual", _columns_minus_rows(call), b.scalar(call.attribute("k", 0), "int64"))
    return b.cast(found, call.dtype)


def _grid_positions(call: Call) -> Value:
    b, shape = call.b, call.shape[1:]
    parts = []
    for axis, n in enumerate(shape):
        line = b.reshape(positions(call, n), [n if i == axis else 1 for i in range(len(shape))])
        parts.append(b.reshape(b.expand(line, shape), [1, *shape]))
    return b.cast(b.concat(parts, 0), call.dtype)


def _triangle_positions(call: Call) -> Value:
    n = call.attribute("n")
    m, k = call.attribute("m", n), call.attribute("k", 0)
    upper = call.attribute("upper", False)
    found = onp.triu_indices(n, k, m) if upper else onp.tril_indices(n, k, m)
    return call.b.constant(onp.stack(found).astype(onp.int64))


def _frequencies(call: Call) -> Value:
    n, spacing = call.attribute("n"), call.attribute("d", 1.0)
    make = onp.fft.fftfreq if call.op == "fftfreq" else onp.fft.rfftfreq
    return call.b.constant(make(n, spacing), call.dtype)


TRANSLATIONS: dict[str, Callable[[Call], Any]] = {
    "arange": _arange,
    "empty": _filled(0),
    "eye": _eye,
    "fftfreq": _frequencies,
    "filled": _filled(None),
    "grid_positions": _grid_positions,
    "identity": _eye,
    "ones": _filled(1),
    "ramp": _ramp,
    "ramps": _ramps,
    "rfftfreq": _frequencies,
    "tri": _tri,
    "triangle_positions": _triangle_positions,
    "zeroed": _filled(0),
    "zeros": _filled(0),
}
