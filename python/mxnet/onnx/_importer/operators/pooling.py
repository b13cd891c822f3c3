"""Pooling over windows and over whole images."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

import numpy

from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.base import dtype_name
from mxnet.onnx._importer.operators.convolution import geometry, window_pads
from mxnet.onnx._importer.operators.elementwise import is_integer
from mxnet.onnx._importer.operators.shapes import padded
from mxnet.onnx._importer.table import Call, operator


class _Windows:
    """The windows of a pooling: how many there are and how much of the padding they reach."""

    def __init__(self, call: Call, x: Any) -> None:
        self.kernel = list(call["kernel_shape"])
        self.stride, self.dilation = geometry(call, self.kernel)
        self.sizes = [int(n) for n in x.shape[2:]]
        self.pads = window_pads(call, self.sizes, self.kernel, self.stride, self.dilation)
        self.counts, self.reach = [], []
        for n, k, s, d, (before, behind) in zip(
            self.sizes, self.kernel, self.stride, self.dilation, self.pads, strict=True
        ):
            rest = n + before + behind - d * (k - 1) - 1
            count = (math.ceil(rest / s) if call["ceil_mode"] else rest // s) + 1
            if call["ceil_mode"] and (count - 1) * s >= n + before:
                count -= 1  # A window that begins behind the elements and the padding before them is left out.
            self.counts.append(count)
            self.reach.append((count - 1) * s + d * (k - 1) + 1)

    @property
    def is_plain(self) -> bool:
        """Whether `npx.pooling` has these windows."""
        return (
            1 <= len(self.kernel) <= 3
            and all(d == 1 for d in self.dilation)
            and all(before == behind for before, behind in self.pads)
            and all(p[0] < k for p, k in zip(self.pads, self.kernel, strict=True))
            and all(r <= n + 2 * p[0] for r, n, p in zip(self.reach, self.sizes, self.pads, strict=True))
        )

    def options(self) -> dict[str, Any]:
        return {
            "kernel": tuple(self.kernel),
            "stride": tuple(self.stride),
            "pad": tuple(before for before, _ in self.pads),
        }

    def extended(self, call: Call, x: Any, fill: Any) -> Any:
        """The array with all elements that windows reach, and no others behind it."""
        pairs = [(p[0], r - n - p[0]) for p, r, n in zip(self.pads, self.reach, self.sizes, strict=True)]
        return padded(call, x, [(0, 0), (0, 0), *pairs], fill=fill)

    def parts(self, extended: Any) -> Iterator[Any]:
        """For each element of a window, in order, the array of these elements of all windows."""
        for positions in itertools.product(*map(range, self.kernel)):
            key = tuple(
                slice(position * d, position * d + (count - 1) * s + 1, s)
                for position, d, s, count in zip(positions, self.dilation, self.stride, self.counts, strict=True)
            )
            yield extended[(slice(None), slice(None), *key)]

    def num_elements(self, *, with_padding: bool) -> numpy.ndarray:
        """How many elements each window has, of the data or of the data and its padding."""
        total = numpy.ones((), dtype=numpy.float64)
        for n, k, s, d, p, count in zip(
            self.sizes, self.kernel, self.stride, self.dilation, self.pads, self.counts, strict=True
        ):
            position = numpy.arange(count)[:, None] * s + numpy.arange(k) * d - p[0]
            low, high = (-p[0], n + p[1]) if with_padding else (0, n)
            total = numpy.multiply.outer(total, ((position >= low) & (position < high)).sum(axis=1))
        return total


@operator("MaxPool")
def max_pool(call: Call, x: Any) -> Any:
    windows = _Windows(call, x)
    if windows.is_plain and not is_integer(x) and not call.uses(1):
        return npx.pooling(x, pool_type="max", **windows.options())
    lowest = np.iinfo(x.dtype).min if is_integer(x) else -float("inf")
    extended = windows.extended(call, x, lowest)
    if not call.uses(1):
        return reduce(np.maximum, windows.parts(extended))
    parts = np.stack(list(windows.parts(extended)))
    chosen = np.argmax(parts, axis=0)
    largest = np.take_along_axis(parts, np.expand_dims(chosen, 0), axis=0)[0]
    return largest, _flat_index(call, windows, chosen, x.shape[:2])


def _flat_index(call: Call, windows: _Windows, chosen: Any, outer: Sequence[int]) -> Any:
    """The index into the flat data of element number `chosen` of each window."""
    sizes = windows.sizes
    num_axes = len(sizes)
    weights = [1] * num_axes
    order = range(1, num_axes) if call["storage_order"] else reversed(range(num_axes - 1))
    for axis in order:
        neighbour = axis - 1 if call["storage_order"] else axis + 1
        weights[axis] = weights[neighbour] * sizes[neighbour]
    flat, rest = np.zeros_like(chosen), chosen
    for axis in reversed(range(num_axes)):
        position = np.mod(rest, windows.kernel[axis])
        rest = np.floor_divide(rest, windows.kernel[axis])
        shape = [1] * (num_axes + 2)
        shape[axis + 2] = -1
        first = np.arange(windows.counts[axis]).reshape(shape) * windows.stride[axis] - windows.pads[axis][0]
        flat = flat + (first + position * windows.dilation[axis]) * weights[axis]
    image = np.arange(math.prod(outer)).reshape(tuple(outer) + (1,) * num_axes)
    return (flat + image * math.prod(sizes)).astype("int64")


@operator("AveragePool")
def average_pool(call: Call, x: Any) -> Any:
    windows = _Windows(call, x)
    counts_padding = bool(call["count_include_pad"])
    if windows.is_plain:
        return npx.pooling(x, pool_type="avg", count_include_pad=counts_padding, **windows.options())
    total = reduce(np.add, windows.parts(windows.extended(call, x, 0)))
    return total / np.array(windows.num_elements(with_padding=counts_padding), dtype=dtype_name(x.dtype))


@operator("LpPool")
def lp_pool(call: Call, x: Any) -> Any:
    windows = _Windows(call, x)
    p = call["p"] or 2
    parts = windows.parts(np.power(np.absolute(windows.extended(call, x, 0)), p))
    return np.power(reduce(np.add, parts), 1 / p).astype(x.dtype)


@operator("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(call: Call, x: Any) -> Any:
    axes = tuple(range(2, x.ndim))
    if call.op_type == "GlobalMaxPool":
        return np.max(x, axis=axes, keepdims=True)
    if call.op_type == "GlobalAveragePool":
        return np.mean(x, axis=axes, keepdims=True)
    p = call["p"] or 2
    total = np.sum(np.power(np.absolute(x), p), axis=axes, keepdims=True)
    return np.power(total, 1 / p).astype(x.dtype)


@operator("MaxUnpool", host=(2,))
def max_unpool(call: Call, x: Any, indices: Any, sizes: Any = None) -> Any:
    kernel = call["kernel_shape"]
    stride, dilation = geometry(call, kernel)
    pads = window_pads(call, x.shape[2:], kernel, stride, dilation)
    inner = [
        (int(n) - 1) * s - before - behind + k
        for n, s, k, (before, behind) in zip(x.shape[2:], stride, kernel, pads, strict=True)
    ]
    shape = (*x.shape[:2], *inner)
    flat = np.zeros((math.prod(shape),), dtype=x.dtype)
    found = npx.index_update(flat, indices.reshape((1, -1)), x.reshape(-1)).reshape(shape)
    if sizes is None:
        return found
    wanted = [int(n) for n in sizes]
    return padded(call, found, [(0, int(b) - int(a)) for a, b in zip(shape, wanted, strict=True)])
