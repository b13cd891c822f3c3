"""Normalisation of batches, layers, groups and channels; dropout."""

from __future__ import annotations

from typing import Any

from mxnet import autograd
from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.onnx._importer.program import Scope
from mxnet.onnx._importer.table import Call, operator
from mxnet.onnx._importer.values import Value


def _per_channel(x: Any, ndim: int) -> Any:
    return x.reshape((1, -1) + (1,) * (ndim - 2))


@operator("BatchNormalization", fixed=(3, 4))
def batch_norm(call: Call, x: Any, scale: Any, bias: Any, mean: Any, variance: Any) -> Any:
    momentum, epsilon = call["momentum"], call["epsilon"]
    if not call["training_mode"] and any(call.uses(index) for index in range(1, 5)):
        raise call.unsupported("statistics of the batch are returned by nodes with `training_mode` (opset 14) only")
    if call["spatial"] == 0:
        # Before opset 9: one mean and variance for each element of a sample.
        return (x - mean) / np.sqrt(variance + epsilon) * scale + bias
    if not call["training_mode"]:
        return npx.batch_norm(
            x, scale, bias, mean, variance, eps=epsilon, momentum=momentum, fix_gamma=False, axis=1 if x.ndim > 1 else 0
        )
    axes = (0, *range(2, x.ndim))
    batch_mean = np.mean(x, axis=axes)
    batch_variance = np.var(x, axis=axes)
    centred = x - _per_channel(batch_mean, x.ndim)
    y = centred / np.sqrt(_per_channel(batch_variance, x.ndim) + epsilon)
    y = y * _per_channel(scale, x.ndim) + _per_channel(bias, x.ndim)
    running = [
        (old * momentum + new * (1 - momentum)).astype(old.dtype)
        for old, new in ((mean, batch_mean), (variance, batch_variance))
    ]
    return y.astype(x.dtype), *running


@operator("InstanceNormalization")
def instance_norm(call: Call, x: Any, scale: Any, bias: Any) -> Any:
    return npx.instance_norm(x, scale, bias, eps=call["epsilon"])


def _computing_dtype(call: Call, x: Any) -> Any:
    """The dtype in which statistics are computed, at least float32."""
    stash = call["stash_type"]
    return x if stash is None or not stash else x.astype(np.result_type(x.dtype, call.dtype(stash)))


@operator("LayerNormalization")
def layer_norm(call: Call, x: Any, scale: Any, bias: Any = None) -> Any:
    axis = call["axis"] % x.ndim
    is_last = axis == x.ndim - 1 and scale.shape == (x.shape[-1],)
    if is_last and bias is not None and bias.shape == scale.shape and not call.uses(1) and not call.uses(2):
        return npx.layer_norm(x, scale, bias, axis=-1, eps=call["epsilon"])
    axes = tuple(range(axis, x.ndim))
    wide = _computing_dtype(call, x)
    mean = np.mean(wide, axis=axes, keepdims=True)
    centred = wide - mean
    inverse = 1 / np.sqrt(np.mean(np.square(centred), axis=axes, keepdims=True) + call["epsilon"])
    y = (centred * inverse).astype(x.dtype) * scale
    return y if bias is None else y + bias, mean, inverse


@operator("RMSNormalization")
def rms_norm(call: Call, x: Any, scale: Any) -> Any:
    axis = call["axis"] % x.ndim
    if axis == x.ndim - 1 and scale.shape == (x.shape[-1],):
        return npx.rms_norm(x, scale, axis=-1, eps=call["epsilon"])
    wide = _computing_dtype(call, x)
    mean = np.mean(np.square(wide), axis=tuple(range(axis, x.ndim)), keepdims=True)
    return (wide / np.sqrt(mean + call["epsilon"])).astype(x.dtype) * scale


@operator("GroupNormalization")
def group_norm(call: Call, x: Any, scale: Any, bias: Any) -> Any:
    groups, channels = call["num_groups"], x.shape[1]
    if scale.shape[0] != channels:
        # Before opset 21: one number for each group.
        scale, bias = np.repeat(scale, channels // groups), np.repeat(bias, channels // groups)
    return npx.group_norm(x, scale, bias, num_groups=groups, eps=call["epsilon"])


@operator("MeanVarianceNormalization")
def mean_variance_norm(call: Call, x: Any) -> Any:
    axes = tuple(call["axes"] or (0, 2, 3))
    centred = x - np.mean(x, axis=axes, keepdims=True)
    return centred / np.sqrt(np.mean(np.square(centred), axis=axes, keepdims=True) + 1e-9)  # the constant of ONNX


@operator("LpNormalization")
def lp_norm(call: Call, x: Any) -> Any:
    axis = call["axis"]
    if call["p"] not in (1, 2):
        raise ValueError(f"{call.label}: attribute `p` must be 1 or 2, found {call['p']}")
    if call["p"] == 1:
        length = np.sum(np.absolute(x), axis=axis, keepdims=True)
    else:
        length = np.sqrt(np.sum(np.square(x), axis=axis, keepdims=True))
    return np.where(length == 0, np.zeros_like(x), x / np.where(length == 0, np.ones_like(length), length))


@operator("LRN")
def local_response_norm(call: Call, x: Any) -> Any:
    size = call["size"]
    before = (size - 1) // 2
    squares = np.pad(np.square(x), [(0, 0), (before, size - 1 - before), *[(0, 0)] * (x.ndim - 2)])
    total = squares[:, : x.shape[1]]
    for start in range(1, size):
        total = total + squares[:, start : start + x.shape[1]]
    return x / np.power(call["bias"] + call["alpha"] / size * total, call["beta"])


@operator("Dropout", takes_values=True)
def dropout(
    call: Call,
    outer: Scope,
    x: Value,
    ratio: Value | None = None,
    training: Value | None = None,
) -> list[Value]:
    """Drops elements in training mode, and always if the node itself asks for it."""
    data = x.array
    if call.opset >= 12:
        share = 0.5 if ratio is None else float(ratio.host)
        always = training is not None and bool(training.host)
    else:
        share, always = call["ratio"], call.opset < 7 and call["is_test"] == 0
    kind = "bool" if call.opset >= 10 else data.dtype
    if share == 0 or not (always or autograd.is_training()):
        return [Value(data), Value(make_array=lambda: np.ones(data.shape, dtype=kind))]
    mask = npx.dropout(np.ones_like(data), p=share, mode="always")
    return [Value(data * mask), Value(make_array=lambda: (mask != 0).astype(kind))]
