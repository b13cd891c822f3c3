"""Resizing by weights along each axis, and reading between pixels at given positions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy

from mxnet import numpy as np
from mxnet.base import dtype_name
from mxnet.onnx._importer.table import Call, operator

_MODES = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)
# Axes with more taps than this are resized by a product with a matrix of weights.
_MAX_TAPS = 4


@operator("Upsample", host=(1,))
def upsample(call: Call, x: Any, scales: Any = None) -> Any:
    given = call["scales"] if scales is None else scales
    if given is None:  # opset 1
        given = [1, 1, call["height_scale"], call["width_scale"]]
    return _resized(call, x, None, numpy.asarray(given, dtype=numpy.float32), None)


@operator("Resize", host=(1, 2, 3))
def resize(call: Call, x: Any, *inputs: Any) -> Any:
    # Opset 10 has the scales only; later ones a region, scales and sizes.
    roi, scales, sizes = (None, inputs[0], None) if call.opset < 11 else (*inputs, None, None, None)[:3]
    return _resized(call, x, roi, scales, sizes)


def _resized(call: Call, x: Any, roi: Any, scales: Any, sizes: Any) -> Any:
    axes = list(range(x.ndim)) if call["axes"] is None else [axis % x.ndim for axis in call["axes"]]
    lengths = [int(x.shape[axis]) for axis in axes]
    if sizes is not None and sizes.size:
        targets = [int(size) for size in sizes]
        factors = [target / length for target, length in zip(targets, lengths, strict=True)]
        policies = ("stretch", "not_larger", "not_smaller")
        policy = call.choice("keep_aspect_ratio_policy", *policies, default="stretch")
        if policy != "stretch":
            factor = min(factors) if policy == "not_larger" else max(factors)
            targets = [math.floor(factor * length + 0.5) for length in lengths]
            factors = [factor] * len(axes)
    else:
        factors = [float(scale) for scale in scales]
        targets = [math.floor(length * factor) for length, factor in zip(lengths, factors, strict=True)]
    mode = call.choice("coordinate_transformation_mode", *_MODES, default="asymmetric")
    outside = []
    for index, axis in enumerate(axes):
        bounds = (float(roi[index]), float(roi[index + len(axes)])) if mode == "tf_crop_and_resize" else (0.0, 1.0)
        positions = _positions(mode, targets[index], lengths[index], factors[index], bounds)
        if mode == "tf_crop_and_resize":
            outside.append((axis, (positions < 0) | (positions > lengths[index] - 1)))
        if targets[index] != lengths[index] or not numpy.array_equal(positions, numpy.arange(lengths[index])):
            x = _along_axis(call, x, axis, positions, factors[index])
    for axis, mask in outside:
        if mask.any():
            shape = [1] * x.ndim
            shape[axis] = -1
            fill = np.full((), call["extrapolation_value"], dtype=dtype_name(x.dtype))
            x = np.where(np.array(mask.reshape(shape)), fill, x)
    return x


def _positions(mode: str, target: int, length: int, factor: float, bounds: tuple[float, float]) -> numpy.ndarray:
    """The coordinate in the data of each element of the result, along one axis."""
    i = numpy.arange(target, dtype=numpy.float64)
    if mode == "asymmetric":
        return i / factor
    if mode == "half_pixel" or (mode == "pytorch_half_pixel" and target > 1):
        return (i + 0.5) / factor - 0.5
    if mode == "half_pixel_symmetric":
        whole = length * factor
        return length / 2 * (1 - target / whole) + (i + 0.5) / factor - 0.5
    if mode == "tf_half_pixel_for_nn":
        return (i + 0.5) / factor
    if mode == "align_corners" and target > 1:
        return i * (length - 1) / (target - 1)
    if mode == "tf_crop_and_resize":
        start, end = bounds
        if target > 1:
            return start * (length - 1) + i * (end - start) * (length - 1) / (target - 1)
        return numpy.full(target, 0.5 * (start + end) * (length - 1))
    return numpy.zeros(target)


_ROUNDED: dict[str, Callable[[Any], Any]] = {
    "round_prefer_floor": lambda x: numpy.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: numpy.floor(x + 0.5),
    "floor": numpy.floor,
    "ceil": numpy.ceil,
}


def _along_axis(call: Call, x: Any, axis: int, positions: numpy.ndarray, factor: float) -> Any:
    """Elements between those of `x`, at positions along an axis."""
    length = int(x.shape[axis])
    mode = call.choice("mode", "nearest", "linear", "cubic")
    if mode == "nearest":
        index = _ROUNDED[call.choice("nearest_mode", *_ROUNDED, default="floor")](positions)
        return np.take(x, np.array(numpy.clip(index, 0, length - 1).astype(numpy.int64)), axis=axis)
    scale = min(factor, 1.0) if call["antialias"] else 1.0
    radius = 2 if mode == "cubic" else 1
    first = math.floor(-radius / scale) + 1
    offsets = numpy.arange(first, 2 - first)
    base = numpy.floor(positions)
    distance = (offsets - (positions - base)[:, None]) * scale
    weights = _cubic(distance, call["cubic_coeff_a"]) if radius == 2 else numpy.clip(1 - numpy.abs(distance), 0, 1)
    index = base[:, None].astype(numpy.int64) + offsets
    if call["exclude_outside"]:
        weights = numpy.where((index >= 0) & (index < length), weights, 0)
    if call["exclude_outside"] or call["antialias"]:
        weights = weights / weights.sum(axis=1, keepdims=True)
    index = numpy.clip(index, 0, length - 1)
    dtype = dtype_name(x.dtype)
    wide = x.astype("float32") if "float" not in dtype else x
    if len(offsets) > _MAX_TAPS:
        matrix = numpy.zeros((len(positions), length))
        numpy.add.at(matrix, (numpy.arange(len(positions))[:, None], index), weights)
        moved = np.matmul(np.moveaxis(wide, axis, -1), np.array(matrix.T, dtype=dtype_name(wide.dtype)))
        return np.moveaxis(moved, -1, axis).astype(dtype)
    shape = [1] * x.ndim
    shape[axis] = -1
    total = None
    for tap in range(len(offsets)):
        weight = np.array(weights[:, tap].reshape(shape), dtype=dtype_name(wide.dtype))
        part = np.take(wide, np.array(index[:, tap]), axis=axis) * weight
        total = part if total is None else total + part
    assert total is not None, "there are two taps at least"
    return total.astype(dtype)


def _cubic(distance: Any, a: float) -> Any:
    """Keys' cubic convolution kernel. Source: R. Keys, IEEE Trans. ASSP 29 (1981), 1153."""
    xp = numpy if isinstance(distance, numpy.ndarray) else np
    t = xp.absolute(distance)
    near = (a + 2) * t**3 - (a + 3) * t**2 + 1
    far = a * t**3 - 5 * a * t**2 + 8 * a * t - 4 * a
    return xp.where(t <= 1, near, xp.where(t < 2, far, 0 * t))


@operator("GridSample")
def grid_sample(call: Call, x: Any, grid: Any) -> Any:
    """Reads images, (n, c, *sizes), at positions from -1 to 1, (n, *positions, axes), the last axis of images first."""
    num_axes = x.ndim - 2
    words = ("linear", "bilinear", "nearest", "cubic", "bicubic")  # those with "bi" are of opset 16
    mode = call.choice("mode", *words).removeprefix("bi")
    padding = call.choice("padding_mode", "zeros", "border", "reflection")
    is_aligned = bool(call["align_corners"])
    sizes = [int(n) for n in x.shape[2:]]
    flat = x.reshape((*x.shape[:2], -1))
    positions = []
    for axis in range(num_axes):
        n = sizes[axis]
        g = grid[..., num_axes - 1 - axis].reshape((grid.shape[0], -1))
        position = (g + 1) / 2 * (n - 1) if is_aligned else ((g + 1) * n - 1) / 2
        position = np.rint(position) if mode == "nearest" else position
        # Cubic weights belong to the position as it is; only the pixels around it are moved into the image.
        positions.append(position if mode == "cubic" else _padded_position(position, n, padding, is_aligned))
    radius = {"nearest": 0, "linear": 1, "cubic": 2}[mode]
    offsets = range(1 - radius, 1 + radius) if radius else range(1)
    total = None
    for taps in itertools.product(offsets, repeat=num_axes):
        weight, inside, index = None, None, None
        for axis, tap in enumerate(taps):
            base = np.floor(positions[axis])
            distance = positions[axis] - base - tap
            if radius:
                factor = _cubic(distance, -0.75) if radius == 2 else 1 - np.absolute(distance)
                weight = factor if weight is None else weight * factor
            pixel = base + tap
            if padding == "zeros":
                is_in = (pixel >= 0) & (pixel <= sizes[axis] - 1)
                inside = is_in if inside is None else inside & is_in
            else:
                pixel = _padded_position(pixel, sizes[axis], padding, is_aligned)
            pixel = np.clip(pixel, 0, sizes[axis] - 1).astype("int64")
            index = pixel if index is None else index * sizes[axis] + pixel
        assert index is not None, "images have an axis"
        spread = np.broadcast_to(np.expand_dims(index, 1), (*x.shape[:2], index.shape[1]))
        part = np.take_along_axis(flat, spread, axis=2)
        if inside is not None:
            part = np.where(np.expand_dims(inside, 1), part, np.zeros_like(part))
        if weight is not None:
            part = part * np.expand_dims(weight, 1).astype(part.dtype)
        total = part if total is None else total + part
    assert total is not None, "there is one tap at least"
    return total.reshape((*x.shape[:2], *grid.shape[1:-1]))


def _padded_position(position: Any, n: int, padding: str, is_aligned: bool) -> Any:
    """Positions outside of an axis moved into it, by clipping or by reflection at its ends."""
    if padding == "border":
        return np.clip(position, 0, n - 1)
    if padding == "reflection":
        low, high = (0.0, n - 1.0) if is_aligned else (-0.5, n - 0.5)
        span = high - low
        if span == 0:
            return np.zeros_like(position)
        along = np.mod(np.absolute(position - low), 2 * span)
        return np.where(along > span, 2 * span - along, along) + low
    return position
