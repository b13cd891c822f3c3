"""Layers of networks: products, convolutions, pools, normalisations, softmax and attention."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

from mxnet.onnx._exporter.builder import FLOATS, Value
from mxnet.onnx._exporter.call import Call
from mxnet.onnx._exporter.operators.creation import positions
from mxnet.onnx._exporter.operators.linalg import product

__all__ = ["TRANSLATIONS", "convolved", "has_channels_last", "pooled"]


def _fully_connected(call: Call) -> Value:
    b, dtype = call.b, call.dtype
    x, weight, bias = call.value(0, dtype), call.value(1, dtype), call.optional(2, dtype)
    if call.attribute("flatten", True) and x.ndim != 2:
        x = b.reshape(x, [x.shape[0], math.prod(x.shape[1:])])
    if x.ndim == 2 and dtype in FLOATS:
        return b.node("Gemm", [x, weight, bias], call.shape, dtype, transB=1)
    found = product(call, x, b.transpose(weight, [1, 0]), call.shape)
    return found if bias is None else b.binary("Add", found, bias)


# Convolutions and pools. ONNX has channels before the spatial axes.


def has_channels_last(layout: str | None) -> bool:
    return layout is not None and layout.endswith("C")


def _channels_first(call: Call, x: Value) -> Value:
    return call.b.transpose(x, [0, x.ndim - 1, *range(1, x.ndim - 1)])


def _channels_last(call: Call, x: Value) -> Value:
    return call.b.transpose(x, [0, *range(2, x.ndim), 1])


def _sizes(call: Call, name: str, count: int, default: int) -> list[int]:
    given = call.attribute(name)
    if given is None or given == []:
        return [default] * count
    return [given] * count if isinstance(given, int) else list(given)


def convolved(call: Call, op: str, operands: Sequence[Value | None], dtype: str) -> Value:
    """A node `op` that convolves the first operand with the second, with the geometry and the layout of the call."""
    b = call.b
    x, weight, *rest = operands
    assert x is not None
    assert weight is not None
    is_last = has_channels_last(call.attribute("layout"))
    if is_last:
        x, weight = _channels_first(call, x), _channels_first(call, weight)
    spatial = x.ndim - 2
    pads = _sizes(call, "pad", spatial, 0)
    shape = call.shape
    first = (shape[0], shape[-1], *shape[1:-1]) if is_last else shape
    found = b.node(
        op,
        [x, weight, *rest],
        first,
        dtype,
        kernel_shape=list(weight.shape[2:]),
        strides=_sizes(call, "stride", spatial, 1),
        dilations=_sizes(call, "dilate", spatial, 1),
        pads=pads * 2,
        group=int(call.attribute("num_group", 1)),
    )
    return _channels_last(call, found) if is_last else found


def _convolution(call: Call) -> Value:
    dtype = call.dtype
    return convolved(call, "Conv", [call.value(0, dtype), call.value(1, dtype), call.optional(2, dtype)], dtype)


def _transposed_convolution(call: Call) -> Value:
    b, dtype = call.b, call.dtype
    dy, weight, bias = call.value(0, dtype), call.value(1, dtype), call.optional(2, dtype)
    is_last = has_channels_last(call.attribute("layout"))
    if is_last:
        dy, weight = _channels_first(call, dy), _channels_first(call, weight)
    spatial = dy.ndim - 2
    strides, dilations, pads = (
        _sizes(call, name, spatial, default) for name, default in (("stride", 1), ("dilate", 1), ("pad", 0))
    )
    shape = call.shape
    first = (shape[0], shape[-1], *shape[1:-1]) if is_last else shape
    ends, beyond = [], []
    added = None
    for axis in range(spatial):
        reach = (dy.shape[2 + axis] - 1) * strides[axis] + dilations[axis] * (weight.shape[2 + axis] - 1) + 1
        extra = first[2 + axis] - (reach - 2 * pads[axis])
        # Elements that the convolution did not read are cut from the padding at the end, then added.
        cut = min(extra, pads[axis])
        ends.append(pads[axis] - cut)
        beyond.append(extra - cut)
    if any(beyond) and bias is not None:
        # Nothing but the bias reaches some elements.
        added = b.reshape(bias, [bias.size, *[1] * spatial])
        bias = None
    found = b.node(
        "ConvTranspose",
        [dy, weight, bias],
        (*first[:2], *(n - m for n, m in zip(first[2:], beyond, strict=True))),
        dtype,
        kernel_shape=list(weight.shape[2:]),
        strides=strides,
        dilations=dilations,
        pads=[*pads, *ends],
        group=int(call.attribute("num_group", 1)),
    )
    if any(beyond):
        zeros = [0] * (2 + spatial)
        widths = b.ints([*zeros, 0, 0, *beyond])
        found = b.node("Pad", [found, widths, b.scalar(0, dtype)], first, dtype, mode="constant")
    if added is not None:
        found = b.binary("Add", found, added)
    return _channels_last(call, found) if is_last else found


def _windows(call: Call, x: Value) -> tuple[list[int], list[int], list[int], list[int], list[int]]:
    """Kernel, strides, padding at the start and at the end, and the size of the result along the spatial axes."""
    spatial = x.ndim - 2
    shape = call.shape
    sizes = list(shape[1:-1] if has_channels_last(call.attribute("layout")) else shape[2:])
    kernel, strides = _sizes(call, "kernel", spatial, 1), _sizes(call, "stride", spatial, 1)
    pads = _sizes(call, "pad", spatial, 0)
    ends = [(m - 1) * s + k - n - p for m, s, k, n, p in zip(sizes, strides, kernel, x.shape[2:], pads, strict=True)]
    return kernel, strides, pads, ends, sizes


def pooled(call: Call) -> Value:
    """The pooling of a call, of floats or in float32."""
    b = call.b
    kind = call.attribute("pool_type", "max")
    x = call.value(0)
    x = b.cast(x, x.dtype if x.dtype in FLOATS else "float32")
    is_last = has_channels_last(call.attribute("layout"))
    if is_last:
        x = _channels_first(call, x)
    found = _global_pool(call, x, kind) if call.attribute("global_pool", False) else _local_pool(call, x, kind)
    return _channels_last(call, found) if is_last else found


def _global_pool(call: Call, x: Value, kind: str) -> Value:
    b = call.b
    axes = list(range(2, x.ndim))
    shape = (*x.shape[:2], *[1] * len(axes))
    if kind == "lp":
        return b.node("GlobalLpPool", [x], shape, x.dtype, p=int(call.attribute("p_value", 2)))
    if kind == "sum":
        return b.reduce("ReduceSum", x, axes)
    return b.node({"max": "GlobalMaxPool", "avg": "GlobalAveragePool"}[kind], [x], shape, x.dtype)


def _local_pool(call: Call, x: Value, kind: str) -> Value:
    b = call.b
    kernel, strides, pads, ends, sizes = _windows(call, x)
    shape = (*x.shape[:2], *sizes)
    is_regular = call.attribute("pooling_convention", "valid") == "valid"
    # Windows end inside the padded data, so the padding at the end is that of the start.
    after = pads if is_regular else [max(end, 0) for end in ends]
    attributes: dict[str, Any] = {"kernel_shape": kernel, "strides": strides}
    fits = all(max(p, e) < k for p, e, k in zip(pads, after, kernel, strict=True))
    counts_pads = bool(call.attribute("count_include_pad", True))
    if kind == "max" and fits:
        return b.node("MaxPool", [x], shape, x.dtype, pads=[*pads, *after], **attributes)
    if kind == "avg" and fits and (is_regular or not counts_pads):
        attributes["count_include_pad"] = int(counts_pads)
        return b.node("AveragePool", [x], shape, x.dtype, pads=[*pads, *after], **attributes)
    if kind == "lp" and fits:
        return b.node(
            "LpPool", [x], shape, x.dtype, p=int(call.attribute("p_value", 2)), pads=[*pads, *after], **attributes
        )
    padded = _padded(call, x, pads, after, -math.inf if kind == "max" else 0.0)
    if kind == "max":
        return b.node("MaxPool", [padded], shape, x.dtype, **attributes)
    if kind == "lp":
        return b.node("LpPool", [padded], shape, x.dtype, p=int(call.attribute("p_value", 2)), **attributes)
    total = b.with_number("Mul", b.node("AveragePool", [padded], shape, x.dtype, **attributes), math.prod(kernel))
    if kind == "sum":
        return total
    counts = _counts(x.shape[2:], kernel, strides, pads, sizes, counts_pads=counts_pads)
    return b.binary("Div", total, b.constant(counts, x.dtype))


def _padded(call: Call, x: Value, before: Sequence[int], after: Sequence[int], number: float) -> Value:
    if not any(before) and not any(after):
        return x
    shape = (*x.shape[:2], *(n + p + e for n, p, e in zip(x.shape[2:], before, after, strict=True)))
    widths = call.b.ints([0, 0, *before, 0, 0, *after])
    return call.b.node("Pad", [x, widths, call.b.scalar(number, x.dtype)], shape, x.dtype, mode="constant")


def _counts(
    data: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[int],
    sizes: Sequence[int],
    *,
    counts_pads: bool,
) -> onp.ndarray:
    """How many elements each mean counts, shape (1, 1, *sizes)."""
    counts = onp.ones((), onp.float64)
    for n, k, s, p, m in zip(data, kernel, strides, pads, sizes, strict=True):
        starts = onp.arange(m) * s
        if counts_pads:
            line = onp.minimum(starts + k, n + 2 * p) - starts
        else:
            line = onp.clip(starts + k - p, 0, n) - onp.clip(starts - p, 0, n)
        counts = counts[..., None] * onp.maximum(line, 1)
    return counts[None, None]


# Normalisations.


def _batch_norm(call: Call) -> list[Value | None]:
    b, dtype = call.b, call.dtype
    x = call.value(0, dtype)
    axis = call.attribute("axis", 1) % x.ndim
    epsilon = float(call.attribute("eps"))
    n = x.shape[axis]
    gamma = call.optional(1, dtype) or b.full([n], 1, dtype)
    beta = call.optional(2, dtype) or b.full([n], 0, dtype)
    mean, variance = call.value(3, dtype), call.value(4, dtype)
    inverse = None
    if len(call.node.used) > 1 and call.node.used[1]:
        inverse = b.unary("Reciprocal", b.unary("Sqrt", b.with_number("Add", variance, epsilon)))
    return [_normalized(call, x, axis, [gamma, beta, mean, variance]), inverse]


def _normalized(call: Call, x: Value, axis: int, parameters: list[Value]) -> Value:
    """Batch normalisation along an axis with given gamma, beta, mean and variance."""
    b, epsilon = call.b, float(call.attribute("eps"))
    if axis == 1:
        return b.node("BatchNormalization", [x, *parameters], x.shape, x.dtype, epsilon=epsilon)
    gamma, beta, mean, variance = parameters
    shape = [n if i == axis else 1 for i, n in enumerate(x.shape)]
    deviation = b.unary("Sqrt", b.with_number("Add", variance, epsilon))
    factor = b.reshape(b.binary("Div", gamma, deviation), shape)
    centred = b.binary("Sub", x, b.reshape(mean, shape))
    return b.binary("Add", b.binary("Mul", centred, factor), b.reshape(beta, shape))


def _row_norm(call: Call) -> list[Value | None]:
    b, dtype = call.b, call.dtype
    x, gamma, beta = call.value(0, dtype), call.optional(1, dtype), call.optional(2, dtype)
    length, groups, inner = (
        int(call.attribute(name, default)) for name, default in (("len", 1), ("groups", 0), ("inner", 1))
    )
    epsilon = float(call.attribute("eps", 1e-5))
    is_centred = bool(call.attribute("centred", True))
    wants = [len(call.node.used) > i and call.node.used[i] for i in (1, 2)]
    if groups == 0 and is_centred and not any(wants) and x.ndim and x.shape[-1] == length:
        scale = gamma if gamma is not None else b.full([length], 1, dtype)
        return [b.node("LayerNormalization", [x, scale, beta], x.shape, dtype, axis=-1, epsilon=epsilon), None, None]
    wide = "float32" if dtype in ("float16", "bfloat16") else dtype
    num_rows = x.size // length
    rows = b.reshape(b.cast(x, wide), [num_rows, length])
    mean = b.reduce("ReduceMean", rows, [1]) if is_centred else None
    centred = rows if mean is None else b.binary("Sub", rows, mean)
    variance = b.reduce("ReduceMean", b.binary("Mul", centred, centred), [1])
    inverse = b.unary("Reciprocal", b.unary("Sqrt", b.with_number("Add", variance, epsilon)))
    found = b.binary("Mul", centred, inverse)
    if groups:
        num_parameters = groups * length // inner
        found = b.reshape(found, [x.size // (num_parameters * inner), num_parameters, inner])
        gamma, beta = (None if v is None else b.reshape(v, [num_parameters, 1]) for v in (gamma, beta))
    if gamma is not None:
        found = b.binary("Mul", found, b.cast(gamma, wide))
    if beta is not None:
        found = b.binary("Add", found, b.cast(beta, wide))
    means = None
    if wants[0]:
        means = b.full([num_rows], 0, wide) if mean is None else b.reshape(mean, [num_rows])
    return [b.cast(b.reshape(found, x.shape), dtype), means, b.reshape(inverse, [num_rows]) if wants[1] else None]


# Softmax and attention.


def _softmax(is_log: bool) -> Callable[[Call], Value]:
    def translated(call: Call) -> Value:
        b, x = call.b, call.value(0, call.dtype)
        axis = call.attribute("axis", -1) % max(x.ndim, 1)
        temperature = call.attribute("temperature")
        if temperature not in (None, 1.0):
            x = b.with_number("Div", x, temperature)
        length = call.optional(1, "int64") if call.attribute("use_length", False) else None
        inside = None
        if length is not None:
            numbers = b.reshape(positions(call, x.shape[axis]), [x.shape[axis], *[1] * (x.ndim - axis - 1)])
            shape = [*length.shape[:axis], 1, *length.shape[axis:]]
            inside = b.compare("Less", numbers, b.reshape(length, shape))
            x = b.where(inside, x, b.scalar(-math.inf, x.dtype))
        found = b.unary("LogSoftmax" if is_log else "Softmax", x, axis=axis)
        # Elements behind the end are 0, also where a row has no elements at all.
        return found if inside is None else b.where(inside, found, b.scalar(0, x.dtype))

    return translated


def _swapped(call: Call, x: Value) -> Value:
    axes = list(range(x.ndim))
    axes[-2:] = axes[-1], axes[-2]
    return call.b.transpose(x, axes)


def _sees_all_rows(bias: Value) -> bool:
    """Whether it is known that no query has minus infinity for all keys."""
    if bias.constant is None or bias.dtype == "bfloat16":
        return False
    return bool((bias.constant > -math.inf).any(-1).all())


def _attention(call: Call) -> list[Value | None]:
    b, dtype = call.b, call.dtype
    q, k, v = (call.value(at, dtype) for at in range(3))
    num_queries, num_keys = q.shape[-2], k.shape[-2]
    scores_shape = (*q.shape[:-1], num_keys)
    scaled = b.with_number("Mul", q, float(call.attribute("scale", 1.0)))
    scores = product(call, scaled, _swapped(call, k), scores_shape)
    masked = None
    if call.has(3):
        mask = call.value(3)
        if mask.dtype == "bool":
            masked = mask
        else:
            scores = b.binary("Add", scores, b.cast(mask, dtype))
            if not _sees_all_rows(mask):
                masked = b.unary("Not", b.compare("Equal", scores, b.scalar(-math.inf, dtype)))
    if call.attribute("is_causal", False):
        rows = b.reshape(positions(call, num_queries), [num_queries, 1])
        causal = b.compare("GreaterOrEqual", rows, positions(call, num_keys))
        masked = causal if masked is None else b.compare("And", masked, causal)
    if masked is None:
        weights = b.unary("Softmax", scores, axis=-1)
    else:
        scores = b.where(masked, scores, b.scalar(-math.inf, dtype))
        weights = b.unary("Softmax", scores, axis=-1)
        # A query that sees no key has the result 0; its softmax is NaN.
        weights = b.where(masked, weights, b.scalar(0, dtype))
    sums = None
    if call.node.used[1:] and call.node.used[1]:
        sums = b.reduce("ReduceLogSumExp", scores, [-1], keepdims=False)
    return [product(call, weights, v, call.shape), sums]


def _cross_entropy(call: Call) -> list[Value | None]:
    b, dtype = call.b, call.dtype
    x, label = call.value(0, dtype), call.value(1, "int64")
    axis = call.attribute("axis", -1) % x.ndim
    depth = x.shape[axis]
    label = b.reshape(label, [*call.shape[:axis], 1, *call.shape[axis:]])
    logarithms = b.unary("LogSoftmax", x, axis=axis)
    is_valid = b.compare(
        "And",
        b.compare("GreaterOrEqual", label, b.scalar(0, "int64")),
        b.compare("Less", label, b.scalar(depth, "int64")),
    )
    index = b.where(is_valid, label, b.scalar(0, "int64"))
    picked = b.node("GatherElements", [logarithms, index], label.shape, dtype, axis=axis)
    loss = b.where(is_valid, b.unary("Neg", picked), b.scalar(math.nan, dtype))
    ignored = call.attribute("ignore")
    if ignored is not None:
        loss = b.where(b.compare("Equal", label, b.scalar(ignored, "int64")), b.scalar(0, dtype), loss)
    sums = None
    if len(call.node.used) > 1 and call.node.used[1]:
        sums = b.reshape(b.reduce("ReduceLogSumExp", x, [axis]), call.shape)
    return [b.reshape(loss, call.shape), sums]


# Regions of images.


def _roi_align(call: Call) -> Value:
    b, dtype = call.b, call.dtype
    if call.attribute("position_sensitive", False):
        call.refuse("`position_sensitive=True`", "compute it after the exported network")
    data, regions = call.value(0, dtype), call.value(1, dtype)
    count = regions.shape[0]
    images = b.cast(b.reshape(b.part(regions, 1, 0, 1), [count]), "int64")
    corners = b.part(regions, 1, 1, 4)
    height, width = call.attribute("pooled_size")
    # Regions of image -1 fill up a batch: their result is 0.
    is_filler = b.compare("Less", images, b.scalar(0, "int64"))
    images = b.where(is_filler, b.scalar(0, "int64"), images)
    found = b.node(
        "RoiAlign",
        [data, corners, images],
        call.shape,
        dtype,
        mode="avg",
        output_height=height,
        output_width=width,
        sampling_ratio=max(int(call.attribute("sample_ratio", -1)), 0),
        spatial_scale=float(call.attribute("spatial_scale", 1.0)),
        coordinate_transformation_mode="half_pixel" if call.attribute("aligned", False) else "output_half_pixel",
    )
    return b.where(b.reshape(is_filler, [count, 1, 1, 1]), b.scalar(0, dtype), found)


# Operators that passes make of several; files of graphs may have them.


def _then_relu(translated: Callable[[Call], Value]) -> Callable[[Call], Value]:
    def with_relu(call: Call) -> Value:
        return call.b.unary("Relu", translated(call))

    return with_relu


def _convolution_batch_norm(call: Call) -> Value:
    b, dtype = call.b, call.dtype
    found = _convolution(call)
    channels = found.shape[-1] if has_channels_last(call.attribute("layout")) else found.shape[1]
    gamma = call.optional(3, dtype) or b.full([channels], 1, dtype)
    beta, mean, variance = (call.value(at, dtype) for at in (4, 5, 6))
    axis = found.ndim - 1 if has_channels_last(call.attribute("layout")) else 1
    found = _normalized(call, found, axis, [gamma, beta, mean, variance])
    if call.has(7):
        found = b.binary("Add", found, call.value(7, dtype))
    return b.unary("Relu", found) if call.attribute("relu", False) else found


TRANSLATIONS: dict[str, Callable[[Call], Any]] = {
    "attention": _attention,
    "batch_norm_inference": _batch_norm,
    "convolution": _convolution,
    "convolution_batch_norm": _convolution_batch_norm,
    "convolution_relu": _then_relu(_convolution),
    "convolution_data_gradient": _transposed_convolution,
    "cross_entropy": _cross_entropy,
    "fully_connected": _fully_connected,
    "fully_connected_relu": _then_relu(_fully_connected),
    "log_softmax": _softmax(True),
    "pooling": pooled,
    "roi_align": _roi_align,
    "row_norm": _row_norm,
    "softmax": _softmax(False),
}
