"""Arithmetic, comparisons, logic, activations and casts, element by element."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy

from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.base import dtype_name
from mxnet.onnx._importer.program import Scope
from mxnet.onnx._importer.table import Call, operator
from mxnet.onnx._importer.values import Value

# ---- one operand ----

# Names of ONNX and the functions of `mx.np` with the same meaning, which NumPy has too.
_UNARY = {
    "Abs": "absolute",
    "Acos": "arccos",
    "Acosh": "arccosh",
    "Asin": "arcsin",
    "Asinh": "arcsinh",
    "Atan": "arctan",
    "Atanh": "arctanh",
    "BitwiseNot": "invert",
    "Ceil": "ceil",
    "Cos": "cos",
    "Cosh": "cosh",
    "Exp": "exp",
    "Floor": "floor",
    "IsNaN": "isnan",
    "Log": "log",
    "Neg": "negative",
    "Not": "logical_not",
    "Reciprocal": "reciprocal",
    "Round": "rint",
    "Sign": "sign",
    "Sin": "sin",
    "Sinh": "sinh",
    "Sqrt": "sqrt",
    "Tan": "tan",
    "Tanh": "tanh",
}


@operator(*_UNARY, folds=True)
def unary(call: Call, x: Any) -> Any:
    return getattr(call.np, _UNARY[call.op_type])(x)


@operator("Identity", folds=True)
def identity(call: Call, x: Any) -> Any:
    return x


@operator("IsInf")
def is_inf(call: Call, x: Any) -> Any:
    if not call["detect_negative"]:
        return np.isposinf(x) if call["detect_positive"] else np.zeros_like(x, dtype="bool")
    return np.isinf(x) if call["detect_positive"] else np.isneginf(x)


@operator("Erf")
def erf(call: Call, x: Any) -> Any:
    return npx.erf(x)


# ---- two operands and more ----


def is_integer(x: Any) -> bool:
    """Whether an array of either kind has integers; booleans are none."""
    return "int" in dtype_name(x.dtype)


def _aligned(call: Call, lhs: Any, rhs: Any) -> Any:
    """The second operand, with axes appended where a model before opset 7 says which axis it begins at."""
    axis = call["axis"]
    if call.opset >= 7 or axis is None or not call["broadcast"]:
        return rhs
    return rhs.reshape(tuple(rhs.shape) + (1,) * (lhs.ndim - axis % lhs.ndim - rhs.ndim))


_BINARY = {
    "Add": "add",
    "And": "logical_and",
    "BitwiseAnd": "bitwise_and",
    "BitwiseOr": "bitwise_or",
    "BitwiseXor": "bitwise_xor",
    "Equal": "equal",
    "Greater": "greater",
    "GreaterOrEqual": "greater_equal",
    "Less": "less",
    "LessOrEqual": "less_equal",
    "Mul": "multiply",
    "Or": "logical_or",
    "Sub": "subtract",
    "Xor": "logical_xor",
}


@operator(*_BINARY, folds=True)
def binary(call: Call, lhs: Any, rhs: Any) -> Any:
    return getattr(call.np, _BINARY[call.op_type])(lhs, _aligned(call, lhs, rhs))


@operator("Div", folds=True)
def divide(call: Call, lhs: Any, rhs: Any) -> Any:
    rhs = _aligned(call, lhs, rhs)
    if not is_integer(lhs):
        return call.np.divide(lhs, rhs)
    # Quotients of integers are rounded towards zero, those of `floor_divide` down.
    quotient = call.np.floor_divide(lhs, rhs)
    if dtype_name(lhs.dtype).startswith("u"):
        return quotient
    is_rounded_down = (quotient < 0) & (quotient * rhs != lhs)
    return quotient + is_rounded_down.astype(lhs.dtype)


@operator("Mod", folds=True)
def mod(call: Call, lhs: Any, rhs: Any) -> Any:
    return call.np.fmod(lhs, rhs) if call["fmod"] else call.np.mod(lhs, rhs)


@operator("Pow", folds=True)
def power(call: Call, lhs: Any, rhs: Any) -> Any:
    rhs = _aligned(call, lhs, rhs)
    if is_integer(lhs) and is_integer(rhs) and dtype_name(rhs.dtype).startswith("u"):
        return call.np.power(lhs, rhs.astype(lhs.dtype))
    if is_integer(lhs):
        # Powers below zero and fractional ones are truncated; float64 has all integers up to 2**53.
        return call.np.power(lhs.astype("float64"), rhs.astype("float64")).astype(lhs.dtype)
    return call.np.power(lhs, rhs.astype(lhs.dtype))


@operator("BitShift", folds=True)
def bit_shift(call: Call, lhs: Any, rhs: Any) -> Any:
    return (
        call.np.left_shift(lhs, rhs)
        if call.choice("direction", "LEFT", "RIGHT") == "LEFT"
        else call.np.right_shift(lhs, rhs)
    )


@operator("Max", "Min", "Sum", folds=True)
def of_several(call: Call, first: Any, *others: Any) -> Any:
    function = getattr(call.np, {"Max": "maximum", "Min": "minimum", "Sum": "add"}[call.op_type])
    return reduce(function, others, first)


@operator("Mean")
def mean(call: Call, first: Any, *others: Any) -> Any:
    return reduce(np.add, others, first) / (1 + len(others))


@operator("Where", folds=True)
def where(call: Call, condition: Any, x: Any, y: Any) -> Any:
    return call.np.where(condition, x, y)


@operator("Clip", folds=True)
def clip(call: Call, x: Any, low: Any = None, high: Any = None) -> Any:
    if call.opset < 11:
        # The defaults are the largest numbers of float32, and so no bounds of infinite elements.
        low, high = call["min"], call["max"]
        return call.np.clip(x, low, high).astype(x.dtype)
    if low is not None:
        x = call.np.maximum(x, low)
    return x if high is None else call.np.minimum(x, high)


# ---- activations ----


@operator("Relu", folds=True)
def relu(call: Call, x: Any) -> Any:
    return call.np.maximum(x, 0) if call.is_on_host or is_integer(x) else npx.relu(x)


@operator("Sigmoid")
def sigmoid(call: Call, x: Any) -> Any:
    return npx.sigmoid(x)


@operator("HardSigmoid")
def hard_sigmoid(call: Call, x: Any) -> Any:
    return npx.hard_sigmoid(x, alpha=call["alpha"], beta=call["beta"])


@operator("HardSwish")
def hard_swish(call: Call, x: Any) -> Any:
    return x * npx.hard_sigmoid(x, alpha=1 / 6, beta=0.5)


@operator("Softplus")
def softplus(call: Call, x: Any) -> Any:
    return npx.activation(x, act_type="softrelu")


@operator("Softsign")
def softsign(call: Call, x: Any) -> Any:
    return npx.softsign(x)


@operator("LeakyRelu")
def leaky_relu(call: Call, x: Any) -> Any:
    return npx.leaky_relu(x, act_type="leaky", slope=call["alpha"])


@operator("PRelu")
def prelu(call: Call, x: Any, slope: Any) -> Any:
    if call.opset < 7 and slope.ndim == 1 and slope.size > 1:
        slope = slope.reshape((-1,) + (1,) * (x.ndim - 2))
    return np.where(x < 0, x * slope, x)


@operator("Elu")
def elu(call: Call, x: Any) -> Any:
    return npx.leaky_relu(x, act_type="elu", slope=call["alpha"])


@operator("Celu")
def celu(call: Call, x: Any) -> Any:
    alpha = call["alpha"]
    return np.maximum(x, 0) + np.minimum(alpha * np.expm1(np.minimum(x, 0) / alpha), 0)


@operator("Selu")
def selu(call: Call, x: Any) -> Any:
    alpha, gamma = call["alpha"], call["gamma"]
    return gamma * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


@operator("Gelu")
def gelu(call: Call, x: Any) -> Any:
    return npx.gelu(x, approximate=call.choice("approximate", "none", "tanh") == "tanh")


@operator("Mish")
def mish(call: Call, x: Any) -> Any:
    return x * np.tanh(softplus(call, x))


@operator("Swish")
def swish(call: Call, x: Any) -> Any:
    return x * npx.sigmoid(call["alpha"] * x)


@operator("ThresholdedRelu")
def thresholded_relu(call: Call, x: Any) -> Any:
    return np.where(x > call["alpha"], x, np.zeros_like(x))


@operator("Shrink")
def shrink(call: Call, x: Any) -> Any:
    bias, bound = call["bias"], call["lambd"]
    zero = np.zeros_like(x)
    return np.where(x < -bound, x + bias, np.where(x > bound, x - bias, zero)).astype(x.dtype)


@operator("Softmax", "LogSoftmax", "Hardmax")
def softmax(call: Call, x: Any) -> Any:
    functions: dict[str, Callable[..., Any]] = {
        "Softmax": npx.softmax,
        "LogSoftmax": npx.log_softmax,
        "Hardmax": _hardmax,
    }
    function = functions[call.op_type]
    axis = call["axis"]
    if call.opset >= 13:
        return function(x, axis=axis)
    # Before opset 13 all axes from this one on count as one.
    axis = axis % x.ndim if x.ndim else 0
    rows = x.reshape((math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))
    return function(rows, axis=-1).reshape(x.shape)


def _hardmax(x: Any, axis: int) -> Any:
    largest = np.expand_dims(np.argmax(x, axis=axis), axis)
    shape = [1] * x.ndim
    shape[axis] = -1
    return (np.arange(x.shape[axis]).reshape(shape) == largest).astype(x.dtype)


# ---- casts ----


@operator("Cast", folds=True)
def cast(call: Call, x: Any) -> Any:
    to = call["to"]
    if isinstance(to, str):  # opset 1 names the type
        names = {"FLOAT": "float32", "DOUBLE": "float64"}
        return x.astype(names.get(to.upper(), to.lower()))
    return _as_type(x, call.dtype(to))


@operator("CastLike", takes_values=True)
def cast_like(call: Call, outer: Scope, x: Value, like: Value) -> list[Value]:
    # Only the dtype of the second operand counts: numbers that are known on the host remain so.
    def host() -> Any:
        return _as_type(x.host, dtype_name(like.array.dtype))

    return [
        Value(
            make_array=lambda: x.array.astype(like.array.dtype),
            make_host=host if x.is_static else None,
            operands=(x,) if x.is_static else None,
        )
    ]


def _as_type(x: Any, dtype: str) -> Any:
    # NumPy knows bfloat16 by `ml_dtypes`, which the package `onnx` imports.
    with numpy.errstate(all="ignore"):
        return x.astype(dtype)


@operator("BitCast", host=())
def bit_cast(call: Call, x: Any) -> Any:
    return x.view(call.dtype(call["to"]))
