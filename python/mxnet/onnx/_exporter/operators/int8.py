"""Layers of 8-bit integers: ONNX's integer convolutions and products, then the factors and the rounding as nodes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from mxnet.onnx._exporter.builder import Builder, Value
from mxnet.onnx._exporter.call import Call
from mxnet.onnx._exporter.operators.network import convolved, has_channels_last, pooled

__all__ = ["TRANSLATIONS"]

# The lowest and the highest result of rounding.
_LEVELS = {"int8": (-127, 127), "uint8": (0, 255)}


def _rounded(b: Builder, x: Value, dtype: str) -> Value:
    """To the nearest integer, ties to even; NaN becomes the lowest."""
    low, high = (b.scalar(level, x.dtype) for level in _LEVELS[dtype])
    x = b.unary("Round", x)
    return b.cast(b.where(b.compare("Greater", x, low), b.binary("Min", x, high), low), dtype)


def _quantized(dtype: str) -> Callable[[Call], Value]:
    def translated(call: Call) -> Value:
        wide = "float64" if "float64" in (call.value(0).dtype, call.value(1).dtype) else "float32"
        return _rounded(call.b, call.b.binary("Mul", call.value(0, wide), call.value(1, wide)), dtype)

    return translated


def _scaled(call: Call, sums: Value, channels: int) -> Value:
    """``sums * scale * data_scale + bias + addend * addend_scale``, in the dtype of the call; `channels` is an axis."""
    b = call.b
    if not call.has(2):
        return sums
    found = b.cast(sums, "float32")

    def of_channels(x: Value) -> Value:
        return b.reshape(x, [x.size, *[1] * (found.ndim - 1 - channels)])

    found = b.binary("Mul", found, of_channels(call.value(2)))
    if call.has(5):
        found = b.binary("Mul", found, b.reshape(call.value(5), []))
    if call.has(3):
        found = b.binary("Add", found, of_channels(call.value(3)))
    if call.has(4):
        addend = b.with_number("Mul", call.value(4, "float32"), call.attribute("addend_scale", 1.0))
        found = b.binary("Add", found, addend)
    if call.attribute("relu", False):
        found = b.unary("Relu", found)
    return found if call.dtype == "float32" else _rounded(b, found, call.dtype)


def _convolution(call: Call) -> Value:
    sums = convolved(call, "ConvInteger", [call.value(0), call.value(1)], "int32")
    return _scaled(call, sums, sums.ndim - 1 if has_channels_last(call.attribute("layout")) else 1)


def _fully_connected(call: Call) -> Value:
    b = call.b
    x, weight = call.value(0), call.value(1)
    if call.attribute("flatten", True) and x.ndim != 2:
        x = b.reshape(x, [x.shape[0], math.prod(x.shape[1:])])
    sums = b.node("MatMulInteger", [x, b.transpose(weight, [1, 0])], call.shape, "int32")
    return _scaled(call, sums, sums.ndim - 1)


def _pooling(call: Call) -> Value:
    return _rounded(call.b, pooled(call), call.dtype)


def _scale(call: Call) -> list[Value]:
    """How many levels are in 1, and the size of a level."""
    b = call.b
    zero = b.scalar(0, "float32")
    x = b.unary("Abs", call.value(0, "float32"))
    x = b.where(b.compare("Greater", x, zero), x, zero)  # NaN does not count
    most = b.reshape(b.reduce("ReduceMax", x, list(range(x.ndim))), [1])
    levels = b.scalar(_LEVELS[call.attribute("dtype")][1], "float32")
    return [
        b.where(b.compare("Greater", most, zero), b.binary("Div", levels, most), zero),
        b.binary("Div", most, levels),
    ]


TRANSLATIONS: dict[str, Callable[[Call], Any]] = {
    "int8_convolution": _convolution,
    "int8_fully_connected": _fully_connected,
    "int8_pooling": _pooling,
    "quantization_scale": _scale,
    "quantize_int8": _quantized("int8"),
    "quantize_uint8": _quantized("uint8"),
}
