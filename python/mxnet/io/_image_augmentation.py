"""Random changes of one image, and its normalisation, as in `ImageRecordIter`."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as onp

from mxnet import image as mx_image
from mxnet import numpy as np
from mxnet.numpy_extension._image_color import _LUMA, _PCA_COLORS, _PCA_SCALES

__all__ = ["Augmentation", "Normalization", "hls_to_rgb", "rgb_to_hls", "warp"]

Pixels = onp.ndarray[Any, Any]
_NO_LIMIT = 1e10


@dataclasses.dataclass(frozen=True)
class Augmentation:
    """Changes of an image before it is normalised; names and meanings are those of `ImageRecordIter`."""

    data_shape: tuple[int, int, int]
    resize: int
    rand_crop: bool
    random_resized_crop: bool
    max_rotate_angle: int
    max_aspect_ratio: float
    min_aspect_ratio: float | None
    max_shear_ratio: float
    max_crop_size: int
    min_crop_size: int
    max_random_scale: float
    min_random_scale: float
    max_random_area: float
    min_random_area: float
    max_img_size: float
    min_img_size: float
    brightness: float
    contrast: float
    saturation: float
    pca_noise: float
    random_h: int
    random_s: int
    random_l: int
    rotate: int
    fill_value: int
    inter_method: int
    pad: int

    def __post_init__(self) -> None:
        low, high = self._ratios()
        if not 0 < low <= high:
            raise ValueError(
                f"ImageRecordIter: aspect ratios must be positive and in order, found `min_aspect_ratio` "
                f"{self.min_aspect_ratio} and `max_aspect_ratio` {self.max_aspect_ratio}: {low} to {high}"
            )
        for name, limit in (("scale", math.inf), ("area", 1.0)):
            low, high = getattr(self, f"min_random_{name}"), getattr(self, f"max_random_{name}")
            if not 0 < low <= high <= limit:
                raise ValueError(
                    f"ImageRecordIter: `min_random_{name}` and `max_random_{name}` must be positive, in order and at "
                    f"most {limit}, found {low} and {high}"
                )
        if (self.max_crop_size == -1) != (self.min_crop_size == -1) or self.min_crop_size > self.max_crop_size:
            raise ValueError(
                f"ImageRecordIter: `min_crop_size` and `max_crop_size` must both be -1 or in order, found "
                f"{self.min_crop_size} and {self.max_crop_size}"
            )
        if self.inter_method not in (0, 1, 2, 3, 4, 9, 10):
            raise ValueError(f"ImageRecordIter: `inter_method` must be from 0 to 4, 9 or 10, found {self.inter_method}")

    def __call__(self, pixels: Pixels, rng: onp.random.Generator) -> Pixels:
        """Change an image, uint8 of shape (h, w, c), to float32 of shape (data_shape[1], data_shape[2], c)."""
        if self.resize > 0:
            h, w = pixels.shape[:2]
            scale = self.resize / min(h, w)
            pixels = self._resized(pixels, max(round(w * scale), 1), max(round(h * scale), 1), rng)
        if self._is_affine():
            pixels = self._turned(pixels, rng)
        if self.pad > 0:
            widths = ((self.pad, self.pad), (self.pad, self.pad), (0, 0))
            pixels = onp.pad(pixels, widths, constant_values=self.fill_value)
        pixels = self._cut(pixels, rng)
        return self._coloured(pixels.astype("float32"), rng)

    def _ratios(self) -> tuple[float, float]:
        """Minimum and maximum ratio of width to height."""
        if self.min_aspect_ratio is not None:
            return self.min_aspect_ratio, self.max_aspect_ratio
        return 1 - self.max_aspect_ratio, 1 + self.max_aspect_ratio

    def _resized(self, pixels: Pixels, width: int, height: int, rng: onp.random.Generator) -> Pixels:
        if pixels.shape[:2] == (height, width):
            return pixels
        interp = int(rng.integers(5)) if self.inter_method == 10 else self.inter_method
        resized: Pixels = mx_image.imresize(np.array(pixels), width, height, interp).asnumpy()
        return resized

    def _is_affine(self) -> bool:
        """Whether images are rotated, sheared or scaled."""
        has_ratio = not self.random_resized_crop and self._ratios() != (1, 1)
        scales = (self.min_random_scale, self.max_random_scale) != (1, 1)
        limits = (self.min_img_size, self.max_img_size) != (0, _NO_LIMIT)
        return has_ratio or scales or limits or self.max_rotate_angle > 0 or self.max_shear_ratio > 0 or self.rotate > 0

    def _turned(self, pixels: Pixels, rng: onp.random.Generator) -> Pixels:
        """The image rotated, sheared and scaled."""
        h, w = pixels.shape[:2]
        shear = rng.uniform(-self.max_shear_ratio, self.max_shear_ratio)
        angle = self.rotate if self.rotate > 0 else rng.uniform(-self.max_rotate_angle, self.max_rotate_angle)
        cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
        scale = rng.uniform(self.min_random_scale, self.max_random_scale)
        ratio = 1.0 if self.random_resized_crop else rng.uniform(*self._ratios())
        along_x = 2 * scale / (1 + ratio)
        along_y = ratio * along_x
        matrix = onp.array([[along_x, shear * along_y], [0, along_y]]) @ onp.array([[cos, sin], [-sin, cos]])
        height, width = (round(max(self.min_img_size, min(self.max_img_size, scale * n))) for n in (h, w))
        return warp(pixels, matrix, max(height, 1), max(width, 1), self.fill_value, is_nearest=self.inter_method == 0)

    def _cut(self, pixels: Pixels, rng: onp.random.Generator) -> Pixels:
        """A crop of the image with the height and width of `data_shape`."""
        _, height, width = self.data_shape
        if self.random_resized_crop:
            return self._resized(self._any_part(pixels, rng), width, height, rng)
        if self.max_crop_size != -1:
            side = int(rng.integers(self.min_crop_size, self.max_crop_size + 1))
            if side > min(pixels.shape[:2]):
                raise ValueError(
                    f"ImageRecordIter: a square of side {side} (`max_crop_size` is {self.max_crop_size}) does not fit "
                    f"into an image of {pixels.shape[0]} x {pixels.shape[1]}"
                )
            return self._resized(self._part(pixels, side, side, rng), width, height, rng)
        h, w = pixels.shape[:2]
        scale = max(1.0, height / h, width / w)
        if scale > 1:
            pixels = self._resized(pixels, max(round(w * scale), width), max(round(h * scale), height), rng)
        return self._part(pixels, height, width, rng)

    def _part(self, pixels: Pixels, height: int, width: int, rng: onp.random.Generator) -> Pixels:
        """A rectangle of the image: in the middle, or at a random position with `rand_crop`."""
        free = pixels.shape[0] - height, pixels.shape[1] - width
        y, x = (int(rng.integers(n + 1)) if self.rand_crop else n // 2 for n in free)
        return pixels[y : y + height, x : x + width]

    def _any_part(self, pixels: Pixels, rng: onp.random.Generator) -> Pixels:
        """A rectangle of random area and aspect ratio; the largest square in the middle if ten attempts do not fit."""
        h, w = pixels.shape[:2]
        for _ in range(10):
            area = h * w * rng.uniform(self.min_random_area, self.max_random_area)
            ratio = rng.uniform(*self._ratios())
            width, height = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < width <= w and 0 < height <= h:
                y, x = int(rng.integers(h - height + 1)), int(rng.integers(w - width + 1))
                return pixels[y : y + height, x : x + width]
        side = min(h, w)
        y, x = (h - side) // 2, (w - side) // 2
        return pixels[y : y + side, x : x + side]

    def _coloured(self, x: Pixels, rng: onp.random.Generator) -> Pixels:
        """The image with changed colours, clipped to 0 to 255. The alpha channel is unchanged."""
        if x.shape[2] < 3:
            return self._brightened(x, rng)
        colours, rest = x[..., :3], x[..., 3:]
        colours = self._brightened(colours, rng)
        spans = onp.array([self.random_h, self.random_l, self.random_s], "float32")
        if spans.any():
            # Hue in steps of 2 degrees, the others in levels.
            hls = rgb_to_hls(colours / 255) + rng.uniform(-spans, spans) * (2, 1 / 255, 1 / 255)
            colours = hls_to_rgb(hls % 360 * (1, 0, 0) + hls.clip(0, 1) * (0, 1, 1)) * 255
        if self.pca_noise > 0:
            strength = rng.normal(0, self.pca_noise, 3) * _PCA_SCALES
            colours = (colours + onp.array(_PCA_COLORS) @ strength).clip(0, 255)
        return onp.concatenate([colours.astype("float32"), rest], axis=2)

    def _brightened(self, x: Pixels, rng: onp.random.Generator) -> Pixels:
        """Brightness, contrast and saturation changed, in a random order."""
        kinds = [(name, getattr(self, name)) for name in ("brightness", "contrast", "saturation")]
        kinds = [kind for kind in kinds if kind[1] > 0]
        for i in rng.permutation(len(kinds)):
            name, most = kinds[i]
            factor = 1 + rng.uniform(-most, most)
            grey = (x @ onp.array(_LUMA, "float32"))[..., None] if x.shape[2] == 3 else x
            towards = {"brightness": 0.0, "contrast": grey.mean(), "saturation": grey}[name]
            x = (x * factor + towards * (1 - factor)).clip(0, 255).astype("float32")
        return x


@dataclasses.dataclass(frozen=True)
class Normalization:
    """``((x - mean) * contrast + illumination) * scale / std`` of an image, which may be mirrored first."""

    mirror: bool
    rand_mirror: bool
    mean: Pixels  # broadcast to (h, w, c)
    std: Pixels
    scale: float
    max_random_contrast: float
    max_random_illumination: float

    def __call__(self, x: Pixels, rng: onp.random.Generator) -> Pixels:
        """Normalise an image of shape (h, w, c) to float32 of shape (c, h, w)."""
        if self.mirror or (self.rand_mirror and rng.random() < 0.5):
            x = x[:, ::-1]
        contrast = 1 + rng.uniform(-self.max_random_contrast, self.max_random_contrast)
        illumination = rng.uniform(-self.max_random_illumination, self.max_random_illumination)
        x = ((x - self.mean) * contrast + illumination) * self.scale / self.std
        return x.transpose(2, 0, 1).astype("float32")


def warp(pixels: Pixels, matrix: Pixels, height: int, width: int, fill_value: float, is_nearest: bool) -> Pixels:
    """The image moved by ``to - middle = matrix @ (from - middle)`` for points (x, y).

    Parameters
    ----------
    pixels : numpy.ndarray, shape (h, w, c)
    matrix : numpy.ndarray, shape (2, 2)
    height, width : int
        Size of the result.
    fill_value : float
        What is seen outside the image.
    is_nearest : bool
        Take the nearest pixel; else interpolate between four.

    Returns
    -------
    numpy.ndarray, shape (height, width, c), dtype of `pixels`
    """
    h, w = pixels.shape[:2]
    back = onp.linalg.inv(matrix)
    right = onp.arange(width) - (width - 1) / 2
    down = (onp.arange(height) - (height - 1) / 2)[:, None]
    x = back[0, 0] * right + back[0, 1] * down + (w - 1) / 2
    y = back[1, 0] * right + back[1, 1] * down + (h - 1) / 2
    if is_nearest:
        x, y = onp.rint(x), onp.rint(y)
    # A border of one pixel represents everything outside of the image.
    framed = onp.pad(pixels.astype("float32"), ((1, 1), (1, 1), (0, 0)), constant_values=fill_value)
    x, y = x.clip(-1, w) + 1, y.clip(-1, h) + 1
    left, top = onp.minimum(onp.floor(x), w).astype(int), onp.minimum(onp.floor(y), h).astype(int)
    along_x, along_y = (x - left)[..., None], (y - top)[..., None]
    upper = framed[top, left] * (1 - along_x) + framed[top, left + 1] * along_x
    lower = framed[top + 1, left] * (1 - along_x) + framed[top + 1, left + 1] * along_x
    moved: Pixels = upper * (1 - along_y) + lower * along_y
    return (moved.round() if pixels.dtype.kind in "iu" else moved).astype(pixels.dtype)


def rgb_to_hls(x: Pixels) -> Pixels:
    """Hue in degrees, lightness and saturation of colours in [0, 1].

    Parameters
    ----------
    x : numpy.ndarray, shape (..., 3)
        Red, green, blue.

    Returns
    -------
    numpy.ndarray, shape (..., 3)
    """
    highest, lowest = x.max(-1), x.min(-1)
    span, lightness = highest - lowest, (highest + lowest) / 2
    some = onp.where(span > 0, span, 1)
    r, g, b = x[..., 0], x[..., 1], x[..., 2]
    hue = onp.select([highest == r, highest == g], [(g - b) / some % 6, (b - r) / some + 2], (r - g) / some + 4)
    largest_span = 1 - abs(2 * lightness - 1)
    saturation = onp.where(span > 0, span / onp.where(largest_span > 0, largest_span, 1), 0)
    return onp.stack([onp.where(span > 0, hue * 60, 0), lightness, saturation], -1)


def hls_to_rgb(x: Pixels) -> Pixels:
    """The inverse of `rgb_to_hls`.

    Parameters
    ----------
    x : numpy.ndarray, shape (..., 3)

    Returns
    -------
    numpy.ndarray, shape (..., 3)
    """
    hue, lightness, saturation = x[..., 0], x[..., 1], x[..., 2]
    amount = saturation * onp.minimum(lightness, 1 - lightness)
    channels = []
    for n in (0, 8, 4):
        k = (n + hue / 30) % 12
        channels.append(lightness - amount * onp.minimum(k - 3, 9 - k).clip(-1, 1))
    return onp.stack(channels, -1)
