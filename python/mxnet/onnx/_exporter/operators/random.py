"""Random numbers. ONNX's streams are other ones, so only the distributions are the same."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from mxnet.onnx._exporter.builder import FLOATS, Value
from mxnet.onnx._exporter.call import Call

__all__ = ["TRANSLATIONS"]


def _like(call: Call, op: str, **attributes: float) -> Value:
    dtype = "float64" if call.dtype == "float64" else "float32"
    zeros = call.b.full(call.shape, 0, dtype)
    return _sampled(call, op, zeros, **attributes)


def _sampled(call: Call, op: str, like: Value, **attributes: float) -> Value:
    """Samples in the shape and the dtype of a value."""
    return call.b.nodes_of(op, [like], [(like.shape, like.dtype)], dtype=like.dtype, **attributes)[0]


def _uniform(call: Call, low: float = 0.0, high: float = 1.0) -> Value:
    return _like(call, "RandomUniformLike", low=float(low), high=float(high))


def _open(call: Call) -> Value:
    """Uniform numbers in (0, 1), whose logarithms are finite."""
    x = _uniform(call)
    return call.b.with_number("Max", x, 2.0**-53 if x.dtype == "float64" else 2.0**-24)


def _fill(call: Call) -> Value:
    b = call.b
    first, second, peak = (float(call.attribute(name, default)) for name, default in (("a", 0), ("b", 1), ("c", 0.5)))
    kind = call.attribute("distribution", "uniform")
    if kind == "uniform":
        return _uniform(call, first, second)
    if kind == "normal":
        return _like(call, "RandomNormalLike", mean=first, scale=second)
    x = _open(call)
    if kind == "bernoulli":
        return b.cast(b.compare("Less", x, b.scalar(first, x.dtype)), x.dtype)
    if kind == "triangular":
        return _triangular(call, x, first, second, peak)
    logarithm = b.unary("Log", x)
    if kind == "exponential":
        return b.with_number("Mul", logarithm, -second)
    if kind == "gumbel":
        return b.with_number("Mul", b.unary("Log", b.unary("Neg", logarithm)), -second)
    if kind == "logistic":
        rest = b.binary("Sub", b.scalar(1, x.dtype), x)
        rest = b.with_number("Max", rest, 2.0**-24)
        return b.with_number("Mul", b.binary("Sub", logarithm, b.unary("Log", rest)), second)
    sign = b.unary("Sign", _uniform(call, -1.0, 1.0))
    return b.with_number("Mul", b.binary("Mul", sign, logarithm), second)


def _triangular(call: Call, u: Value, low: float, high: float, peak: float) -> Value:
    # By inversion of the distribution function.
    b = call.b
    width = high - low
    rising = b.with_number("Add", b.unary("Sqrt", b.with_number("Mul", u, width * (peak - low))), low)
    rest = b.binary("Sub", b.scalar(1, u.dtype), u)
    falling = b.binary(
        "Sub", b.scalar(high, u.dtype), b.unary("Sqrt", b.with_number("Mul", rest, width * (high - peak)))
    )
    at_peak = (peak - low) / width if width else 0.0
    return b.where(b.compare("Less", u, b.scalar(at_peak, u.dtype)), rising, falling)


def _normal(call: Call) -> Value:
    return _like(call, "RandomNormalLike", mean=0.0, scale=1.0)


def _exponential(call: Call) -> Value:
    return call.b.unary("Neg", call.b.unary("Log", _open(call)))


def _integers(call: Call) -> Value:
    b = call.b
    low, last = int(call.attribute("low", 0)), int(call.attribute("last"))
    dtype = "float64" if max(abs(low), abs(last)) >= 1 << 24 or call.dtype == "float64" else "float32"
    zeros = b.full(call.shape, 0, dtype)
    x = _sampled(call, "RandomUniformLike", zeros, low=float(low), high=float(last + 1))
    whole = b.with_number("Min", b.unary("Floor", x), last)
    return b.cast(b.cast(whole, "int64"), call.dtype)


def _mask(call: Call) -> Value:
    b, probability = call.b, float(call.attribute("p", 0.5))
    if math.isclose(probability, 1.0):
        return b.full(call.shape, 0, call.dtype)
    x = _uniform(call)
    kept = b.compare("GreaterOrEqual", x, b.scalar(probability, x.dtype))
    dtype = call.dtype if call.dtype in FLOATS else "float32"
    return b.with_number("Mul", b.cast(kept, dtype), 1 / (1 - probability))


def _checked(call: Call) -> Value:
    # The values of parameters are not checked in a model.
    return call.value(0, call.dtype)


def _categorical(call: Call) -> Value:
    b = call.b
    # Weights of 0 have the logarithm minus infinity.
    logarithms = b.unary("Log", call.value(0, "float32"))
    draws = int(call.attribute("draws", 1))
    return b.nodes_of("Multinomial", [logarithms], [(call.shape, "int64")], dtype="int64", sample_size=draws)[0]


def _integers_between(call: Call) -> Value:
    b = call.b
    low, high = call.value(0, "float64"), call.value(1, "float64")
    if call.attribute("endpoint", False):
        high = b.with_number("Add", high, 1)
    zeros = b.full(call.shape, 0, "float64")
    u = _sampled(call, "RandomUniformLike", zeros, low=0.0, high=1.0)
    found = b.unary("Floor", b.binary("Add", low, b.binary("Mul", u, b.binary("Sub", high, low))))
    return b.cast(b.binary("Min", found, b.with_number("Sub", high, 1)), call.dtype)


TRANSLATIONS: dict[str, Callable[[Call], Any]] = {
    "dropout_mask": _mask,
    "checked_parameter": _checked,
    "random_categorical": _categorical,
    "rand": _uniform,
    "randn": _normal,
    "random": _uniform,
    "random_fill": _fill,
    "random_integers": _integers,
    "random_integers_between": _integers_between,
    "random_sample": _uniform,
    "standard_exponential": _exponential,
    "standard_normal": _normal,
}
