"""Convolutions, and how windows of convolutions and poolings are padded."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.onnx._importer.operators.shapes import padded
from mxnet.onnx._importer.table import Call, operator


def window_pads(
    call: Call, sizes: Sequence[int], kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> list[tuple[int, int]]:
    """How many elements are added before and behind each spatial axis.

    Parameters
    ----------
    call : Call
        Its attributes `auto_pad` and `pads` decide.
    sizes, kernel, stride, dilation : sequence of int
        One for each axis.

    Returns
    -------
    list of (int, int)
    """
    num_axes = len(kernel)
    mode = call.choice("auto_pad", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER", default="NOTSET")
    if mode == "VALID":
        return [(0, 0)] * num_axes
    if mode == "NOTSET":
        pads = call["pads"] or [0] * (2 * num_axes)
        return list(zip(pads[:num_axes], pads[num_axes:], strict=True))
    found = []
    for size, k, s, d in zip(sizes, kernel, stride, dilation, strict=True):
        needed = max((math.ceil(int(size) / s) - 1) * s + d * (k - 1) + 1 - int(size), 0)
        half = needed // 2
        found.append((half, needed - half) if mode == "SAME_UPPER" else (needed - half, half))
    return found


def geometry(call: Call, kernel: Sequence[int]) -> tuple[list[int], list[int]]:
    """Strides and dilations of a node, 1 by default."""
    ones = [1] * len(kernel)
    return call["strides"] or ones, call["dilations"] or ones


def convolved(call: Call, x: Any, weight: Any, bias: Any = None) -> Any:
    """A convolution with a node's attributes."""
    kernel = list(weight.shape[2:])
    if not 1 <= len(kernel) <= 3:
        raise call.unsupported(f"convolutions have one to three spatial axes, found {len(kernel)}")
    stride, dilation = geometry(call, kernel)
    pads = window_pads(call, x.shape[2:], kernel, stride, dilation)
    if any(before != behind for before, behind in pads):
        x = padded(call, x, [(0, 0), (0, 0), *pads])
        pads = [(0, 0)] * len(kernel)
    return npx.convolution(
        x,
        weight,
        bias,
        kernel=tuple(kernel),
        stride=tuple(stride),
        dilate=tuple(dilation),
        pad=tuple(before for before, _ in pads),
        num_filter=weight.shape[0],
        num_group=call["group"] or 1,
        no_bias=bias is None,
    )


@operator("Conv")
def conv(call: Call, x: Any, weight: Any, bias: Any = None) -> Any:
    return convolved(call, x, weight, bias)


@operator("ConvTranspose")
def conv_transpose(call: Call, x: Any, weight: Any, bias: Any = None) -> Any:
    kernel = list(weight.shape[2:])
    if not 1 <= len(kernel) <= 3:
        raise call.unsupported(f"transposed convolutions have one to three spatial axes, found {len(kernel)}")
    stride, dilation = geometry(call, kernel)
    extra = call["output_padding"] or [0] * len(kernel)
    pads = window_pads(call, x.shape[2:], kernel, stride, dilation) if _has_pads(call) else None
    whole = [
        (int(n) - 1) * s + d * (k - 1) + 1 + a
        for n, s, d, k, a in zip(x.shape[2:], stride, dilation, kernel, extra, strict=True)
    ]
    sizes = call["output_shape"]
    if pads is None:
        sizes = sizes or [int(n) * s for n, s in zip(x.shape[2:], stride, strict=True)]
        totals = [full - size for full, size in zip(whole, sizes, strict=True)]
        is_upper = call["auto_pad"] == "SAME_UPPER"
        # The half that is rounded down is before the elements with SAME_UPPER, else behind them.
        pads = [(t // 2, t - t // 2) if is_upper else (t - t // 2, t // 2) for t in totals]
    is_even = all(before == behind and before >= 0 for before, behind in pads)
    y = npx.deconvolution(
        x,
        weight,
        kernel=tuple(kernel),
        stride=tuple(stride),
        dilate=tuple(dilation),
        pad=tuple(before if is_even else 0 for before, _ in pads),
        adj=tuple(extra),
        num_filter=weight.shape[1] * (call["group"] or 1),
        num_group=call["group"] or 1,
        no_bias=True,
    )
    if not is_even:
        y = padded(call, y, [(0, 0), (0, 0), *((-before, -behind) for before, behind in pads)])
    return y if bias is None else y + bias.reshape((1, -1) + (1,) * len(kernel))


def _has_pads(call: Call) -> bool:
    """Whether the pads of a transposed convolution are given, not the sizes of its result."""
    return not call["output_shape"] and (call["auto_pad"] or "NOTSET") in ("NOTSET", "VALID")


@operator("DeformConv")
def deform_conv(call: Call, x: Any, weight: Any, offset: Any, bias: Any = None, mask: Any = None) -> Any:
    kernel = list(weight.shape[2:])
    if len(kernel) != 2:
        raise call.unsupported(f"deformable convolutions have two spatial axes, found {len(kernel)}")
    stride, dilation = geometry(call, kernel)
    pads = window_pads(call, x.shape[2:], kernel, stride, dilation)
    if any(before != behind for before, behind in pads):
        raise call.unsupported(f"deformable convolutions have the same pads on both sides, found {pads}")
    options = {
        "kernel": tuple(kernel),
        "stride": tuple(stride),
        "dilate": tuple(dilation),
        "pad": tuple(before for before, _ in pads),
        "num_filter": weight.shape[0],
        "num_group": call["group"],
        "num_deformable_group": call["offset_group"],
        "no_bias": bias is None,
    }
    if mask is None:
        return npx.deformable_convolution(x, offset, weight, bias, **options)
    return npx.modulated_deformable_convolution(x, offset, mask, weight, bias, **options)


@operator("Col2Im", host=(1, 2))
def col_to_image(call: Call, x: Any, sizes: Any, block: Any) -> Any:
    """The columns of windows, (n, c * elements of a window, windows), are added up to an image."""
    image, kernel = [int(n) for n in sizes], [int(n) for n in block]
    stride, dilation = geometry(call, kernel)
    pads = call["pads"] or [0] * (2 * len(kernel))
    before, behind = pads[: len(kernel)], pads[len(kernel) :]
    whole = [n + p + q for n, p, q in zip(image, before, behind, strict=True)]
    counts = [(n - d * (k - 1) - 1) // s + 1 for n, d, k, s in zip(whole, dilation, kernel, stride, strict=True)]
    volume = math.prod(kernel)
    columns = x.reshape((x.shape[0], x.shape[1] // volume, volume, *counts))
    total = np.zeros((*columns.shape[:2], *whole), dtype=x.dtype)
    for number in range(volume):
        rest, key = number, []
        for k, d, s, c in zip(kernel[::-1], dilation[::-1], stride[::-1], counts[::-1], strict=True):
            rest, position = divmod(rest, k)
            key.append(slice(position * d, position * d + (c - 1) * s + 1, s))
        total[(slice(None), slice(None), *key[::-1])] += columns[:, :, number]
    return total[(slice(None), slice(None), *(slice(p, p + n) for p, n in zip(before, image, strict=True)))]


@operator("CausalConvWithState")
def causal_conv_with_state(call: Call, x: Any, weight: Any, bias: Any = None, past: Any = None) -> Any:
    """A convolution of each channel with itself over time, (n, c, time), that begins with the last inputs before."""
    length = weight.shape[-1] - 1
    if past is None:
        past = np.zeros((*x.shape[:2], length), dtype=x.dtype)
    joined = np.concatenate([past, x], axis=2)
    y = npx.convolution(
        joined,
        weight,
        bias,
        kernel=(length + 1,),
        num_filter=weight.shape[0],
        num_group=x.shape[1],
        no_bias=bias is None,
    )
    if call.choice("activation", "none", "", "silu", "swish", default="none") in ("silu", "swish"):
        y = y * npx.sigmoid(y)
    return y, joined[:, :, joined.shape[2] - length :]
