"""Elementwise functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as onp

from mxnet.onnx._exporter.builder import FLOATS, Value
from mxnet.onnx._exporter.call import Call
from mxnet.onnx._exporter.graph import Number

__all__ = ["TRANSLATIONS", "common_dtype", "one_node"]

# For bool operands: the ONNX operator that computes the same.
_OF_BOOLS = {
    "Add": "Or",
    "BitwiseAnd": "And",
    "BitwiseNot": "Not",
    "BitwiseOr": "Or",
    "BitwiseXor": "Xor",
    "Max": "Or",
    "Min": "And",
    "Mul": "And",
}
_COMPARISONS = ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")
_LOGIC = ("And", "Not", "Or", "Xor")
_QUESTIONS = ("IsInf", "IsNaN")
# Functions that leave integers as they are.
_ROUNDINGS = ("Ceil", "Floor", "Round")
_INTEGERS_OF_POW = ("int32", "int64")


def common_dtype(call: Call, operands: list[Any]) -> str:
    """The dtype to which operands are promoted, by the rules that held when the graph was traced."""
    from mxnet.numpy import result_type

    arrays = [x.dtype for x in operands if isinstance(x, Value)]
    given = [x.dtype for x in operands if isinstance(x, Number) and x.dtype is not None]
    weak = [x.value for x in operands if isinstance(x, Number) and x.dtype is None]
    if not weak and len({*arrays, *given}) == 1:
        return [*arrays, *given][0]
    if call.node.promotion == "numpy" and "bfloat16" not in (*arrays, *given):
        return onp.result_type(*map(onp.dtype, (*arrays, *given)), *weak).name
    from mxnet.numpy import dtype

    return str(result_type(*(dtype(name) for name in (*arrays, *given)), *weak))


def one_node(op: str) -> Callable[[Call], Value]:
    """The translation of an operator that is one ONNX node, whose operands get one dtype.

    Parameters
    ----------
    op : str
        Type of the node.

    Returns
    -------
    callable
    """

    def translated(call: Call) -> Value:
        b = call.b
        count = len(call.operands)
        if op == "Where":
            return b.where(call.value(0, "bool"), call.value(1, call.dtype), call.value(2, call.dtype))
        if op in _LOGIC:
            dtype, result = "bool", "bool"
        elif op in _COMPARISONS or op in _QUESTIONS:
            dtype, result = common_dtype(call, call.operands), "bool"
        else:
            dtype, result = call.dtype, call.dtype
        kind = op
        if op in _QUESTIONS and dtype not in FLOATS:
            return b.full(call.shape, False, "bool")
        if dtype == "bool":
            kind = _OF_BOOLS.get(op, op)
            if op in _COMPARISONS and op != "Equal":
                dtype = "uint8"
            elif kind == op and op not in _LOGIC and op != "Equal":
                kind = "Identity"
        elif dtype not in FLOATS:
            if op in _ROUNDINGS or (op in ("Relu", "Abs") and dtype.startswith("u")):
                kind = "Identity"
            elif op == "Neg" and dtype.startswith("u"):
                return b.binary("Sub", b.scalar(0, dtype), call.value(0, dtype))
            elif op == "Reciprocal":
                divisor, is_zero = _divisor(call, call.value(0, dtype))
                return _unless(call, is_zero, b.binary("Div", b.scalar(1, dtype), divisor))
            elif op == "Pow" and dtype not in _INTEGERS_OF_POW:
                dtype = result = "int64"
        operands = [call.value(at, dtype) for at in range(count)]
        shape = onp.broadcast_shapes(*(x.shape for x in operands))
        return b.node(kind, operands, shape, result if kind == op or result == "bool" else dtype)

    return translated


def _floor_divide(call: Call) -> Value:
    return _quotient(call, call.value(0, call.dtype), call.value(1, call.dtype))


def _quotient(call: Call, x: Value, y: Value) -> Value:
    """The quotient rounded down. ONNX's Div of integers rounds toward zero."""
    b = call.b
    if x.dtype in FLOATS:
        # By the remainder, so that rounding of the quotient does not matter; NumPy's rule.
        quotient = b.binary("Div", b.binary("Sub", x, _modulo(call, x, y)), y)
        has_none = b.compare("Equal", y, b.scalar(0, y.dtype))
        return b.where(has_none, b.binary("Div", x, y), b.unary("Round", quotient))
    y, is_zero = _divisor(call, y)
    quotient = _unless(call, is_zero, b.binary("Div", x, y))
    if x.dtype.startswith("u"):
        return quotient
    rest = b.binary("Sub", x, b.binary("Mul", quotient, y))
    zero = b.scalar(0, x.dtype)
    differs = b.compare("Xor", b.compare("Less", rest, zero), b.compare("Less", y, zero))
    is_down = b.compare("And", b.unary("Not", b.compare("Equal", rest, zero)), differs)
    return b.binary("Sub", quotient, b.cast(is_down, x.dtype))


def _divisor(call: Call, y: Value) -> tuple[Value, Value | None]:
    """Integers to divide by, 1 in place of 0, and where they are 0: there our quotients and remainders are 0."""
    b = call.b
    if y.constant is not None and y.constant.all():
        return y, None
    is_zero = b.compare("Equal", y, b.scalar(0, y.dtype))
    return b.where(is_zero, b.scalar(1, y.dtype), y), is_zero


def _unless(call: Call, is_zero: Value | None, x: Value) -> Value:
    return x if is_zero is None else call.b.where(is_zero, call.b.scalar(0, x.dtype), x)


def _modulo(call: Call, x: Value, y: Value) -> Value:
    """The remainder with the sign of the divisor."""
    b = call.b
    if x.dtype not in FLOATS:
        y, is_zero = _divisor(call, y)
        return _unless(call, is_zero, b.binary("Mod", x, y))
    rest = b.binary("Mod", x, y, fmod=1)
    zero = b.scalar(0, x.dtype)
    differs = b.compare("Xor", b.compare("Less", rest, zero), b.compare("Less", y, zero))
    moves = b.compare("And", b.unary("Not", b.compare("Equal", rest, zero)), differs)
    return b.where(moves, b.binary("Add", rest, y), rest)


def _remainder(call: Call) -> Value:
    return _modulo(call, call.value(0, call.dtype), call.value(1, call.dtype))


def _divmod(call: Call) -> list[Value]:
    x, y = call.value(0, call.dtype), call.value(1, call.dtype)
    return [_quotient(call, x, y), _modulo(call, x, y)]


def _fmod(call: Call) -> Value:
    x, y = call.value(0, call.dtype), call.value(1, call.dtype)
    if x.dtype in FLOATS:
        return call.b.binary("Mod", x, y, fmod=1)
    y, is_zero = _divisor(call, y)
    return _unless(call, is_zero, call.b.binary("Mod", x, y, fmod=1))


def _square(call: Call) -> Value:
    x = call.value(0, call.dtype)
    return call.b.binary("Mul", x, x)


def _conjugate(call: Call) -> Value:
    return call.value(0, call.dtype)


def _ignoring_nan(op: str) -> Callable[[Call], Value]:
    """`fmax` and `fmin`: the other operand where one is NaN."""

    def translated(call: Call) -> Value:
        b, x, y = call.b, call.value(0, call.dtype), call.value(1, call.dtype)
        if call.dtype == "bool":
            return b.binary(_OF_BOOLS[op], x, y)
        extreme = b.binary(op, x, y)
        if call.dtype not in FLOATS:
            return extreme
        return b.where(_is_nan(call, x), y, b.where(_is_nan(call, y), x, extreme))

    return translated


def _is_nan(call: Call, x: Value) -> Value:
    return call.b.node("IsNaN", [x], x.shape, "bool")


def _not_equal(call: Call) -> Value:
    return call.b.unary("Not", one_node("Equal")(call))


def _shift(direction: str) -> Callable[[Call], Value]:
    """Shifts. BitShift takes unsigned integers, so others are multiplied or divided by powers of two."""

    def translated(call: Call) -> Value:
        b, x, y = call.b, call.value(0, call.dtype), call.value(1, call.dtype)
        bits = 8 * onp.dtype(call.dtype).itemsize
        # NumPy's result of a shift by all bits, or more, has no bit of the operand.
        is_long = b.compare("GreaterOrEqual", y, b.scalar(bits, y.dtype))
        if call.dtype.startswith("u"):
            shifted = b.binary("BitShift", x, y, direction=direction)
            return b.where(is_long, b.scalar(0, x.dtype), shifted)
        number = b.binary("Min", b.cast(y, "int64"), b.scalar(bits - (1 if direction == "RIGHT" else 0), "int64"))
        wide = b.cast(x, "uint64" if direction == "LEFT" else "int64")
        if direction == "LEFT":
            moved = b.binary("BitShift", wide, b.cast(number, "uint64"), direction="LEFT")
            return b.where(is_long, b.scalar(0, x.dtype), b.cast(b.cast(moved, "int64"), x.dtype))
        # The bits of a negative number are inverted, so that the shift fills with ones.
        negative = b.compare("Less", wide, b.scalar(0, "int64"))
        pattern = b.where(negative, b.unary("BitwiseNot", wide), wide)
        moved = b.binary("BitShift", b.cast(pattern, "uint64"), b.cast(number, "uint64"), direction="RIGHT")
        back = b.cast(moved, "int64")
        return b.cast(b.where(negative, b.unary("BitwiseNot", back), back), x.dtype)

    return translated


def _trunc(call: Call) -> Value:
    b, x = call.b, call.value(0, call.dtype)
    if x.dtype not in FLOATS:
        return x
    return b.binary("Mul", b.unary("Sign", x), b.unary("Floor", b.unary("Abs", x)))


def _round(call: Call) -> Value:
    x = call.value(0, call.dtype)
    return call.b.unary("Round", x) if x.dtype in FLOATS else x


def _sign(call: Call) -> Value:
    return call.b.unary("Sign", call.value(0, call.dtype))


def _round_scaled(call: Call) -> Value:
    b, x = call.b, call.value(0, call.dtype)
    scale = b.scalar(call.attribute("scale"), x.dtype)
    first, then = ("Div", "Mul") if call.attribute("before") else ("Mul", "Div")
    return b.binary(then, b.unary("Round", b.binary(first, x, scale)), scale)


def _power_of(base: float) -> Callable[[Call], Value]:
    def translated(call: Call) -> Value:
        x = call.value(0, call.dtype)
        return call.b.binary("Pow", call.b.scalar(base, x.dtype), x)

    return translated


def _log_to(base: float) -> Callable[[Call], Value]:
    def translated(call: Call) -> Value:
        x = call.value(0, call.dtype)
        return call.b.with_number("Mul", call.b.unary("Log", x), 1 / math.log(base))

    return translated


def _expm1(call: Call) -> Value:
    # tanh(x / 2) * (exp(x) + 1) has no cancellation near 0, where exp(x) - 1 has. Source: DLMF 4.35.
    b, x = call.b, call.value(0, call.dtype)
    near = b.binary("Mul", b.unary("Tanh", b.with_number("Mul", x, 0.5)), b.with_number("Add", b.unary("Exp", x), 1))
    is_near = b.compare("Less", b.unary("Abs", x), b.scalar(1, x.dtype))
    return b.where(is_near, near, b.with_number("Sub", b.unary("Exp", x), 1))


def _log1p(call: Call) -> Value:
    return _log1p_of(call, call.value(0, call.dtype))


def _log1p_of(call: Call, x: Value) -> Value:
    b = call.b
    # With u = 1 + x rounded, log(u) * x / (u - 1) corrects the rounding. Source: Goldberg 1991, theorem 4.
    u = b.with_number("Add", x, 1)
    less = b.with_number("Sub", u, 1)
    is_exact = b.compare("Or", b.compare("Equal", less, b.scalar(0, x.dtype)), b.node("IsInf", [u], u.shape, "bool"))
    divisor = b.where(is_exact, b.scalar(1, x.dtype), less)
    corrected = b.binary("Mul", b.unary("Log", u), b.binary("Div", x, divisor))
    return b.where(is_exact, x, corrected)


def _cbrt(call: Call) -> Value:
    return _cube_root(call, call.value(0, call.dtype))


def _cube_root(call: Call, x: Value) -> Value:
    b = call.b
    return b.binary("Mul", b.unary("Sign", x), b.with_number("Pow", b.unary("Abs", x), 1 / 3))


def _rcbrt(call: Call) -> Value:
    return call.b.unary("Reciprocal", _cube_root(call, call.value(0, call.dtype)))


def _rsqrt(call: Call) -> Value:
    return call.b.unary("Reciprocal", call.b.unary("Sqrt", call.value(0, call.dtype)))


def _logaddexp(scale: float) -> Callable[[Call], Value]:
    """log(exp(x) + exp(y)) by the larger operand, in a base whose logarithm is `scale`."""

    def translated(call: Call) -> Value:
        b, x, y = call.b, call.value(0, call.dtype), call.value(1, call.dtype)
        larger, difference = b.binary("Max", x, y), b.unary("Abs", b.binary("Sub", x, y))
        inner = b.unary("Exp", b.with_number("Mul", difference, -scale))
        rest = b.with_number("Mul", _log1p_of(call, inner), 1 / scale)
        # The difference of equal infinities is NaN.
        return b.where(
            b.compare("Equal", x, y), b.with_number("Add", x, math.log(2) / scale), b.binary("Add", larger, rest)
        )

    return translated


def _float_power(call: Call) -> Value:
    return call.b.binary("Pow", call.value(0, call.dtype), call.value(1, call.dtype))


def _times(factor: float) -> Callable[[Call], Value]:
    def translated(call: Call) -> Value:
        return call.b.with_number("Mul", call.value(0, call.dtype), factor)

    return translated


def _arctan2(call: Call) -> Value:
    b, y, x = call.b, call.value(0, call.dtype), call.value(1, call.dtype)
    zero, pi = b.scalar(0, x.dtype), b.scalar(math.pi, x.dtype)
    half = b.scalar(math.pi / 2, x.dtype)
    is_zero = b.compare("Equal", x, zero)
    angle = b.unary("Atan", b.binary("Div", y, b.where(is_zero, b.scalar(1, x.dtype), x)))
    is_below = b.compare("Less", y, zero)
    turned = b.where(is_below, b.binary("Sub", angle, pi), b.binary("Add", angle, pi))
    found = b.where(b.compare("Less", x, zero), turned, angle)
    vertical = b.where(is_below, b.unary("Neg", half), b.where(b.compare("Greater", y, zero), half, zero))
    return b.where(is_zero, vertical, found)


def _hypot(call: Call) -> Value:
    # Scaled by the larger operand, so that squares do not overflow.
    b, x, y = call.b, call.b.unary("Abs", call.value(0, call.dtype)), call.b.unary("Abs", call.value(1, call.dtype))
    larger, smaller = b.binary("Max", x, y), b.binary("Min", x, y)
    is_zero = b.compare("Equal", larger, b.scalar(0, larger.dtype))
    ratio = b.binary("Div", smaller, b.where(is_zero, b.scalar(1, larger.dtype), larger))
    return b.binary("Mul", larger, b.unary("Sqrt", b.with_number("Add", b.binary("Mul", ratio, ratio), 1)))


def _erfc(call: Call) -> Value:
    b, x = call.b, call.value(0, call.dtype)
    return b.binary("Sub", b.scalar(1, x.dtype), b.unary("Erf", x))


def _sinc(call: Call) -> Value:
    b, x = call.b, call.b.with_number("Mul", call.value(0, call.dtype), math.pi)
    is_zero, one = b.compare("Equal", x, b.scalar(0, x.dtype)), b.scalar(1, x.dtype)
    return b.where(is_zero, one, b.binary("Div", b.unary("Sin", x), b.where(is_zero, one, x)))


def _heaviside(call: Call) -> Value:
    b, x, y = call.b, call.value(0, call.dtype), call.value(1, call.dtype)
    zero = b.scalar(0, x.dtype)
    step = b.cast(b.compare("Greater", x, zero), x.dtype)
    return b.where(_is_nan(call, x), x, b.where(b.compare("Equal", x, zero), y, step))


def _signbit_of(call: Call, x: Value) -> Value:
    """Whether the sign is negative; of a zero, by its reciprocal."""
    b = call.b
    zero = b.scalar(0, x.dtype)
    below = b.compare("Less", b.unary("Reciprocal", x), zero)
    return b.where(b.compare("Equal", x, zero), below, b.compare("Less", x, zero))


def _signbit(call: Call) -> Value:
    operand = call.operands[0]
    x = call.value(0, operand.dtype if isinstance(operand, Value) and operand.dtype in FLOATS else "float32")
    return _signbit_of(call, x)


def _copysign(call: Call) -> Value:
    b, x, y = call.b, call.value(0, call.dtype), call.value(1, call.dtype)
    size = b.unary("Abs", x)
    return b.where(_signbit_of(call, y), b.unary("Neg", size), size)


def _ldexp(call: Call) -> Value:
    b, x, y = call.b, call.value(0, call.dtype), call.value(1)
    exponent = b.cast(y, call.dtype)
    return b.binary("Mul", x, b.binary("Pow", b.scalar(2, call.dtype), exponent))


def _isfinite(call: Call) -> Value:
    b, x = call.b, call.value(0, common_dtype(call, call.operands))
    if x.dtype not in FLOATS:
        return b.full(x.shape, True, "bool")
    is_infinite = b.node("IsInf", [x], x.shape, "bool")
    return b.unary("Not", b.compare("Or", is_infinite, _is_nan(call, x)))


def _modf(call: Call) -> list[Value]:
    b, x = call.b, call.value(0, call.dtype)
    whole = b.binary("Mul", b.unary("Sign", x), b.unary("Floor", b.unary("Abs", x)))
    is_infinite = b.node("IsInf", [x], x.shape, "bool")
    return [b.where(is_infinite, b.scalar(0, x.dtype), b.binary("Sub", x, whole)), whole]


def _log_sigmoid(call: Call) -> Value:
    b = call.b
    return b.unary("Neg", b.unary("Softplus", b.unary("Neg", call.value(0, call.dtype))))


def _gelu_tanh(call: Call) -> Value:
    return call.b.unary("Gelu", call.value(0, call.dtype), approximate="tanh")


def _silu(call: Call) -> Value:
    x = call.value(0, call.dtype)
    return call.b.binary("Mul", x, call.b.unary("Sigmoid", x))


def _with_attributes(op: str, **names: str) -> Callable[[Call], Value]:
    """One node whose attributes, by ONNX's names, are attributes of the operator."""

    def translated(call: Call) -> Value:
        attributes = {name: float(call.attribute(ours)) for name, ours in names.items()}
        return call.b.unary(op, call.value(0, call.dtype), **attributes)

    return translated


def _hard_sigmoid(call: Call) -> Value:
    attributes = {"alpha": float(call.attribute("alpha", 0.2)), "beta": float(call.attribute("beta", 0.5))}
    return call.b.unary("HardSigmoid", call.value(0, call.dtype), **attributes)


def _bound(call: Call) -> Value:
    b, x = call.b, call.value(0, call.dtype)
    if call.dtype == "bool":
        low = b.binary("Or", x, call.value(1, "bool")) if call.has(1) else x
        return b.binary("And", low, call.value(2, "bool")) if call.has(2) else low
    bounds = [call.optional(at, call.dtype) for at in (1, 2)]
    if all(bound is None or bound.ndim == 0 for bound in bounds):
        return b.node("Clip", [x, *bounds], x.shape, x.dtype)
    low = x if bounds[0] is None else b.binary("Max", x, bounds[0])
    return low if bounds[1] is None else b.binary("Min", low, bounds[1])


def _phase(call: Call) -> Value:
    b, x = call.b, call.value(0, call.dtype)
    angle = b.where(b.compare("Less", x, b.scalar(0, x.dtype)), b.scalar(math.pi, x.dtype), b.scalar(0, x.dtype))
    return b.where(_is_nan(call, x), x, angle)


TRANSLATIONS: dict[str, Callable[[Call], Any]] = {
    "arctan2": _arctan2,
    "bound": _bound,
    "cbrt": _cbrt,
    "conjugate": _conjugate,
    "copysign": _copysign,
    "deg2rad": _times(math.pi / 180),
    "divmod": _divmod,
    "elu": _with_attributes("Elu", alpha="alpha"),
    "erfc": _erfc,
    "exp2": _power_of(2.0),
    "expm1": _expm1,
    "fix": _trunc,
    "float_power": _float_power,
    "floor_divide": _floor_divide,
    "fmax": _ignoring_nan("Max"),
    "fmin": _ignoring_nan("Min"),
    "fmod": _fmod,
    "gelu_tanh": _gelu_tanh,
    "hard_sigmoid": _hard_sigmoid,
    "heaviside": _heaviside,
    "hypot": _hypot,
    "isfinite": _isfinite,
    "ldexp": _ldexp,
    "leaky": _with_attributes("LeakyRelu", alpha="slope"),
    "left_shift": _shift("LEFT"),
    "log10": _log_to(10.0),
    "log1p": _log1p,
    "log2": _log_to(2.0),
    "log_sigmoid": _log_sigmoid,
    "logaddexp": _logaddexp(1.0),
    "logaddexp2": _logaddexp(math.log(2)),
    "modf": _modf,
    "not_equal": _not_equal,
    "phase": _phase,
    "rad2deg": _times(180 / math.pi),
    "rcbrt": _rcbrt,
    "real_sinc": _sinc,
    "remainder": _remainder,
    "right_shift": _shift("RIGHT"),
    "round_scaled": _round_scaled,
    "round_ste": _round,
    "rsqrt": _rsqrt,
    "sign_ste": _sign,
    "signbit": _signbit,
    "silu": _silu,
    "square": _square,
    "trunc": _trunc,
}
