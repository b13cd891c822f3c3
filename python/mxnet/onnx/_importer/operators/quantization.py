"""Quantized numbers: integers with a scale and a zero point. Sums of products are exact."""

from __future__ import annotations

from typing import Any

from mxnet import numpy as np
from mxnet.base import dtype_name
from mxnet.onnx._importer.operators.convolution import convolved
from mxnet.onnx._importer.table import Call, operator

_BOUNDS = {
    "int8": (-128, 127),
    "uint8": (0, 255),
    "int16": (-32768, 32767),
    "uint16": (0, 65535),
    "int32": (-(2**31), 2**31 - 1),
}


def _spread(call: Call, x: Any, parameter: Any) -> Any:
    """Scales or zero points in a shape that broadcasts with `x`: one, one along an axis, or one for each block."""
    if parameter.size == 1:
        return parameter.reshape(())
    axis = 1 if call["axis"] is None else call["axis"]
    block = call["block_size"]
    if (parameter.ndim == x.ndim and parameter.ndim > 1) or block:
        length = x.shape[axis]
        block = block or -(-length // parameter.shape[axis])
        key = [slice(None)] * x.ndim
        key[axis] = slice(0, length)
        return np.repeat(parameter, block, axis=axis)[tuple(key)]
    shape = [1] * x.ndim
    shape[axis] = -1
    return parameter.reshape(shape)


def _rounded(call: Call, scaled: Any, zero: Any, dtype: str) -> Any:
    """Numbers in units of their scale, rounded to even and bounded, as integers of a dtype."""
    if dtype not in _BOUNDS:
        raise call.unsupported(f"numbers are quantized to {', '.join(_BOUNDS)}, found {dtype}")
    low, high = _BOUNDS[dtype]
    levels = np.rint(scaled)
    if zero is not None:
        levels = levels + zero.astype(levels.dtype)
    return np.clip(levels, low, high).astype(dtype)


@operator("QuantizeLinear", fixed=(1, 2))
def quantize_linear(call: Call, x: Any, scale: Any, zero: Any = None) -> Any:
    dtype = "uint8" if zero is None else dtype_name(zero.dtype)
    if zero is None and call["output_dtype"]:
        dtype = call.dtype(call["output_dtype"])
    wide = np.float64 if dtype_name(x.dtype) in ("int32", "float64") else np.float32
    scaled = x.astype(wide) / _spread(call, x, scale).astype(wide)
    return _rounded(call, scaled, None if zero is None else _spread(call, x, zero), dtype)


@operator("DequantizeLinear", fixed=(1, 2))
def dequantize_linear(call: Call, x: Any, scale: Any, zero: Any = None) -> Any:
    levels = x.astype("int32")
    if zero is not None:
        levels = levels - _spread(call, x, zero).astype("int32")
    dtype = call.dtype(call["output_dtype"]) if call["output_dtype"] else dtype_name(scale.dtype)
    return (levels.astype("float32") * _spread(call, x, scale).astype("float32")).astype(dtype)


@operator("DynamicQuantizeLinear")
def dynamic_quantize_linear(call: Call, x: Any) -> Any:
    low, high = np.minimum(np.min(x), 0), np.maximum(np.max(x), 0)
    scale = ((high - low) / 255).astype(x.dtype)
    safe = np.where(scale == 0, np.ones_like(scale), scale)
    zero = np.clip(np.rint(-low / safe), 0, 255).astype("uint8")
    return _rounded(call, x / safe, zero, "uint8"), scale, zero


def _centred(x: Any, zero: Any, axis: int | None = None) -> Any:
    """Integers without their zero point, in int32. One zero point for each index along `axis`, or one for all."""
    wide = x.astype("int32")
    if zero is None:
        return wide
    if axis is not None and zero.ndim == 1 and zero.size > 1:
        shape = [1] * x.ndim
        shape[axis] = -1
        zero = zero.reshape(shape)
    return wide - (zero.reshape(()) if zero.size == 1 else zero).astype("int32")


@operator("MatMulInteger", fixed=(2, 3))
def matmul_integer(call: Call, lhs: Any, rhs: Any, lhs_zero: Any = None, rhs_zero: Any = None) -> Any:
    return np.matmul(_centred(lhs, lhs_zero, -2), _centred(rhs, rhs_zero, -1))


@operator("QLinearMatMul", fixed=(1, 2, 4, 5, 6, 7))
def quantized_matmul(
    call: Call, lhs: Any, lhs_scale: Any, lhs_zero: Any, rhs: Any, rhs_scale: Any, rhs_zero: Any, scale: Any, zero: Any
) -> Any:
    total = np.matmul(_centred(lhs, lhs_zero, -2), _centred(rhs, rhs_zero, -1))
    lhs_scale = lhs_scale.reshape((-1, 1)) if lhs_scale.ndim == 1 and lhs_scale.size > 1 else lhs_scale
    factor = (lhs_scale.astype("float32") * rhs_scale.astype("float32")) / scale.astype("float32")
    return _rounded(call, total.astype("float32") * factor, zero, dtype_name(zero.dtype))


def _convolved_exactly(call: Call, x: Any, weight: Any) -> Any:
    """A convolution of int32 arrays by one of float64, which has all their sums below 2**53."""
    return np.rint(convolved(call, x.astype("float64"), weight.astype("float64"))).astype("int32")


@operator("ConvInteger", fixed=(2, 3))
def conv_integer(call: Call, x: Any, weight: Any, x_zero: Any = None, weight_zero: Any = None) -> Any:
    return _convolved_exactly(call, _centred(x, x_zero), _centred(weight, weight_zero, 0))


@operator("QLinearConv", fixed=(1, 2, 4, 5, 6, 7))
def quantized_conv(
    call: Call,
    x: Any,
    x_scale: Any,
    x_zero: Any,
    weight: Any,
    weight_scale: Any,
    weight_zero: Any,
    scale: Any,
    zero: Any,
    bias: Any = None,
) -> Any:
    total = _convolved_exactly(call, _centred(x, x_zero), _centred(weight, weight_zero, 0))
    channels = (1, -1) + (1,) * (x.ndim - 2)
    if bias is not None:
        total = total + bias.reshape(channels)
    factor = x_scale * weight_scale / scale
    factor = factor.reshape(channels) if factor.size > 1 else factor.reshape(())
    return _rounded(call, total.astype("float32") * factor, zero, dtype_name(zero.dtype))
