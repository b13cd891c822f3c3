"""Reductions and running sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mxnet.onnx._exporter.builder import FLOATS, Value
from mxnet.onnx._exporter.call import Call

__all__ = ["TRANSLATIONS"]

# Dtypes in which runtimes compute extremes of others.
_WIDER = {"int16": "int32", "uint16": "int32", "uint32": "int64", "bool": "int32"}


def _axes(call: Call, x: Value) -> list[int]:
    axis = call.attribute("axis")
    if axis is None:
        return list(range(x.ndim))
    return [axis] if isinstance(axis, int) else list(axis)


def _reduced(call: Call, op: str, x: Value) -> Value:
    return call.b.reduce(op, x, _axes(call, x), bool(call.attribute("keepdims", False)))


def _check_operands(call: Call) -> None:
    if len(call.operands) > 1 and any(x is not None for x in call.operands[1:]):
        call.refuse("a reduction with further arrays", "select the elements before reducing them")


def _fold(op: str) -> Callable[[Call], Value]:
    def translated(call: Call) -> Value:
        _check_operands(call)
        return _reduced(call, op, call.value(0, call.dtype))

    return translated


def _extreme(op: str) -> Callable[[Call], Value]:
    def translated(call: Call) -> Value:
        _check_operands(call)
        x = call.value(0)
        return call.b.cast(_reduced(call, op, call.b.cast(x, _WIDER.get(x.dtype, x.dtype))), call.dtype)

    return translated


def _nan_extreme(op: str, number: float) -> Callable[[Call], Value]:
    """An extreme of the elements that are numbers; NaN where there are none."""

    def translated(call: Call) -> Value:
        b, x = call.b, call.value(0)
        if x.dtype not in FLOATS:
            return _extreme(op)(call)
        is_nan = b.node("IsNaN", [x], x.shape, "bool")
        found = _reduced(call, op, b.where(is_nan, b.scalar(number, x.dtype), x))
        are_all = b.cast(_reduced(call, "ReduceMin", b.cast(is_nan, "int32")), "bool")
        return b.where(are_all, b.scalar(float("nan"), x.dtype), found)

    return translated


def _nansum(call: Call) -> Value:
    b, x = call.b, call.value(0, call.dtype)
    if x.dtype in FLOATS:
        x = b.where(b.node("IsNaN", [x], x.shape, "bool"), b.scalar(0, x.dtype), x)
    return _reduced(call, "ReduceSum", x)


def _count(call: Call, x: Value) -> Value:
    return _reduced(call, "ReduceSum", call.b.cast(x, "int64"))


def _any(call: Call) -> Value:
    _check_operands(call)
    return call.b.compare("Greater", _count(call, call.value(0, "bool")), call.b.scalar(0, "int64"))


def _all(call: Call) -> Value:
    _check_operands(call)
    b = call.b
    return b.compare("Equal", _count(call, b.unary("Not", call.value(0, "bool"))), b.scalar(0, "int64"))


def _count_nonzero(call: Call) -> Value:
    return _count(call, call.value(0, "bool"))


def _variance(call: Call) -> Value:
    _check_operands(call)
    b, x = call.b, call.value(0, call.dtype)
    axes = _axes(call, x)
    keepdims = bool(call.attribute("keepdims", False))
    centred = b.binary("Sub", x, b.reduce("ReduceMean", x, axes))
    ddof = float(call.attribute("correction", call.attribute("ddof", 0)))
    if ddof == 0:
        return b.reduce("ReduceMean", b.binary("Mul", centred, centred), axes, keepdims)
    count = 1
    for axis in axes:
        count *= x.shape[axis]
    return b.with_number("Div", b.reduce("ReduceSumSquare", centred, axes, keepdims), count - ddof)


def _deviation(call: Call) -> Value:
    return call.b.unary("Sqrt", _variance(call))


def _cumsum(call: Call) -> Value:
    b, x = call.b, call.value(0, call.dtype)
    axis = call.attribute("axis")
    if axis is None:
        x, axis = b.reshape(x, [x.size]), 0
    narrow = x.dtype in ("int8", "int16", "uint8", "uint16", "bool")
    wide = b.cast(x, "int32") if narrow else x
    reverse = 1 if call.attribute("reverse") else None
    return b.node("CumSum", [wide, b.scalar(axis % x.ndim, "int64")], x.shape, wide.dtype, reverse=reverse)


def _running(op: str) -> Callable[[Call], Value]:
    """Running products and extremes, by combining with the elements 1, 2, 4, ... positions before."""

    def translated(call: Call) -> Value:
        b, x = call.b, call.value(0, call.dtype)
        axis = call.attribute("axis")
        if axis is None:
            x, axis = b.reshape(x, [x.size]), 0
        axis %= x.ndim
        reverse = bool(call.attribute("reverse"))
        wide = b.cast(x, "int32") if x.dtype in ("bool", "int8", "int16", "uint8", "uint16") else x
        n, shift = wide.shape[axis], 1
        while shift < n:
            rest = n - shift
            both = b.binary(op, b.part(wide, axis, shift, rest), b.part(wide, axis, 0, rest))
            pieces = [both, b.part(wide, axis, rest, shift)] if reverse else [b.part(wide, axis, 0, shift), both]
            wide = b.concat(pieces, axis)
            shift *= 2
        return b.cast(wide, call.dtype)

    return translated


TRANSLATIONS: dict[str, Callable[[Call], Any]] = {
    "all": _all,
    "any": _any,
    "count_nonzero": _count_nonzero,
    "cummax": _running("Max"),
    "cummin": _running("Min"),
    "cumprod": _running("Mul"),
    "cumsum": _cumsum,
    "max": _extreme("ReduceMax"),
    "mean": _fold("ReduceMean"),
    "min": _extreme("ReduceMin"),
    "nanmax": _nan_extreme("ReduceMax", float("-inf")),
    "nanmin": _nan_extreme("ReduceMin", float("inf")),
    "nansum": _nansum,
    "prod": _fold("ReduceProd"),
    "std": _deviation,
    "sum": _fold("ReduceSum"),
    "sum_squares": _fold("ReduceSumSquare"),
    "var": _variance,
}
