"""Transforms of sizes and places of pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mxnet import image as _image
from mxnet import numpy as np
from mxnet.gluon.data.vision.transforms._base import HybridTransform
from mxnet.numpy import ndarray
from mxnet.numpy_extension import _image_geometry as _geometry

__all__ = [
    "CenterCrop",
    "CropResize",
    "RandomCrop",
    "RandomFlipLeftRight",
    "RandomFlipTopBottom",
    "RandomResizedCrop",
    "RandomRotation",
    "Resize",
    "Rotate",
]


def _with(first: Any, rest: tuple[Any, ...]) -> Any:
    """The transformed image, and what came with it if something did."""
    return (first, *rest) if rest else first


def _pair(size: int | Sequence[int]) -> tuple[int, int]:
    """Width and height."""
    pair = (size, size) if isinstance(size, int) else tuple(size)
    if len(pair) != 2 or min(pair) < 1:
        raise ValueError(f"`size` must be one or two numbers of at least 1, found {size}")
    return pair


class Resize(HybridTransform):
    """Resizes images.

    Parameters
    ----------
    size : int or (int, int)
        Width and height; one number is both.
    keep_ratio : bool
        With one number: the short side gets this length, the other is in proportion.
    interpolation : int
        See `npx.image.resize`.

    Raises
    ------
    ValueError
        If the size or `interpolation` is not possible.

    Examples
    --------
    >>> transforms = mx.gluon.data.vision.transforms
    >>> transforms.Resize((3, 2))(np.ones((4, 6, 3))).shape
    (2, 3, 3)
    """

    def __init__(self, size: int | Sequence[int], keep_ratio: bool = False, interpolation: int = 1) -> None:
        super().__init__()
        width, height = _pair(size)
        # A given pair is a size, whether or not ratios shall be kept.
        self._keep_ratio = keep_ratio and isinstance(size, int)
        self._size = width if self._keep_ratio else (width, height)
        self._interpolation = interpolation
        _geometry.check_interp("Resize", interpolation)

    def forward(self, x: Any, *args: Any) -> Any:
        """Resize an image (h, w, c) or a batch (n, h, w, c); other arguments are handed on."""
        return _with(_geometry.resize(x, self._size, self._keep_ratio, self._interpolation), args)


class CenterCrop(HybridTransform):
    """Crops the rectangle in the middle of images; an image that is too small is enlarged first.

    Parameters
    ----------
    size : int or (int, int)
        Width and height; one number is both.
    interpolation : int
        See `npx.image.resize`.

    Raises
    ------
    ValueError
        If the size or `interpolation` is not possible.

    Examples
    --------
    >>> mx.gluon.data.vision.transforms.CenterCrop((3, 2))(np.ones((4, 6, 3))).shape
    (2, 3, 3)
    """

    def __init__(self, size: int | Sequence[int], interpolation: int = 1) -> None:
        super().__init__()
        self._size = _pair(size)
        self._interpolation = interpolation
        _geometry.check_interp("CenterCrop", interpolation)

    def forward(self, x: Any, *args: Any) -> Any:
        """Cut an image (h, w, c) or a batch (n, h, w, c); other arguments are handed on."""
        width, height = self._size
        image = _geometry.image_of("CenterCrop", x)
        rows, columns = image.shape[-3:-1]
        if rows < height or columns < width:
            rows, columns = max(rows, height), max(columns, width)
            image = _geometry.resize(image, (columns, rows), interp=self._interpolation)
        part = _geometry.crop(image, (columns - width) // 2, (rows - height) // 2, width, height)
        return _with(part, args)


class CropResize(HybridTransform):
    """Crops a rectangle of images, and resizes it if a size is given.

    Parameters
    ----------
    x, y, width, height : int
        First column and row, columns and rows.
    size : int or (int, int), optional
        Width and height of the result.
    interpolation : int, optional
        See `npx.image.resize`; 1 by default.

    Raises
    ------
    ValueError
        If the size or `interpolation` is not possible; at the call, if the rectangle leaves the image.

    Examples
    --------
    >>> mx.gluon.data.vision.transforms.CropResize(1, 0, 2, 2, size=8)(np.ones((4, 6, 3))).shape
    (8, 8, 3)
    """

    def __init__(
        self,
        x: int,
        y: int,
        width: int,
        height: int,
        size: int | Sequence[int] | None = None,
        interpolation: int | None = None,
    ) -> None:
        super().__init__()
        self._x, self._y, self._width, self._height = self._rectangle = (x, y, width, height)
        self._size = None if size is None else _pair(size)
        self._interpolation = 1 if interpolation is None else interpolation
        _geometry.check_interp("CropResize", self._interpolation)

    def forward(self, x: Any, *args: Any) -> Any:
        """Cut an image (h, w, c) or a batch (n, h, w, c); other arguments are handed on."""
        part = _geometry.crop(x, *self._rectangle)
        if self._size is not None:
            part = _geometry.resize(part, self._size, interp=self._interpolation)
        return _with(part, args)


class RandomCrop(HybridTransform):
    """Crops a rectangle at a random position; an axis that is too short is enlarged first.

    Parameters
    ----------
    size : int or (int, int)
        Width and height; one number is both.
    pad : int or sequence of pairs of int, optional
        Border added before: one width, or widths before and behind for each of the axes (h, w, c).
    pad_value : float
        Of the border.
    interpolation : int
        See `npx.image.resize`.

    Raises
    ------
    ValueError
        If an argument is not possible.

    Examples
    --------
    >>> mx.gluon.data.vision.transforms.RandomCrop(4, pad=1)(np.ones((4, 4, 3))).shape
    (4, 4, 3)
    """

    def __init__(
        self,
        size: int | Sequence[int],
        pad: int | Sequence[Sequence[int]] | None = None,
        pad_value: float = 0,
        interpolation: int = 1,
    ) -> None:
        super().__init__()
        self._size = _pair(size)
        widths = ((pad, pad), (pad, pad), (0, 0)) if isinstance(pad, int) else pad and tuple(map(tuple, pad))
        if widths and (len(widths) != 3 or any(len(pair) != 2 or min(pair) < 0 for pair in widths)):
            raise ValueError(f"`pad` must be a width or three pairs of widths of at least 0, found {pad}")
        self._pad = pad
        self._widths: Any = widths
        self._pad_value = pad_value
        self._interpolation = interpolation
        _geometry.check_interp("RandomCrop", interpolation)

    def forward(self, x: Any, *args: Any) -> Any:
        """Cut an image (h, w, c) or a batch (n, h, w, c); other arguments are handed on."""
        image = _geometry.image_of("RandomCrop", x)
        if self._widths:
            lead = ((0, 0),) * (image.ndim - 3)
            image = np.pad(image, lead + self._widths, "constant", constant_values=self._pad_value)
        width, height = self._size
        return _with(_geometry.random_crop(image, (0, 1), (0, 1), width, height, self._interpolation), args)


class RandomResizedCrop(HybridTransform):
    """Crops a rectangle of random size, aspect ratio and position, and resizes it.

    Parameters
    ----------
    size : int or (int, int)
        Width and height of the result; one number is both.
    scale : (float, float)
        Range of the rectangle's share of the image.
    ratio : (float, float)
        Range of width by height; its logarithm is uniform.
    interpolation : int
        See `npx.image.resize`.

    Raises
    ------
    ValueError
        If an argument is not possible; ranges are checked at the call.

    Examples
    --------
    >>> mx.gluon.data.vision.transforms.RandomResizedCrop((3, 2))(np.ones((4, 6, 3))).shape
    (2, 3, 3)
    """

    def __init__(
        self,
        size: int | Sequence[int],
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: int = 1,
    ) -> None:
        super().__init__()
        self._size = _pair(size)
        self._scale, self._ratio = scale, ratio
        self._interpolation = interpolation
        _geometry.check_interp("RandomResizedCrop", interpolation)

    def forward(self, x: Any, *args: Any) -> Any:
        """Cut an image (h, w, c) or a batch (n, h, w, c); other arguments are handed on."""
        width, height = self._size
        part = _geometry.random_resized_crop(
            x, (0, 1), (0, 1), width, height, self._interpolation, area=self._scale, ratio=self._ratio
        )
        return _with(part, args)


class RandomFlipLeftRight(HybridTransform):
    """Flips images left to right with a probability.

    Parameters
    ----------
    p : float
        From 0 to 1.

    Raises
    ------
    ValueError
        If `p` is no probability.

    Examples
    --------
    >>> transforms = mx.gluon.data.vision.transforms
    >>> transforms.RandomFlipLeftRight()(np.ones((4, 6, 3))).shape
    (4, 6, 3)
    """

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        _geometry.check_probability("RandomFlipLeftRight", p)
        self._p = p

    def forward(self, x: Any, *args: Any) -> Any:
        """Mirror an image (h, w, c) or a batch (n, h, w, c), or not; other arguments are handed on."""
        return _with(_geometry.random_flip_left_right(x, self._p), args)


class RandomFlipTopBottom(HybridTransform):
    """Flips images top to bottom with a probability.

    Parameters
    ----------
    p : float
        From 0 to 1.

    Raises
    ------
    ValueError
        If `p` is no probability.

    Examples
    --------
    >>> transforms = mx.gluon.data.vision.transforms
    >>> transforms.RandomFlipTopBottom()(np.ones((4, 6, 3))).shape
    (4, 6, 3)
    """

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        _geometry.check_probability("RandomFlipTopBottom", p)
        self._p = p

    def forward(self, x: Any, *args: Any) -> Any:
        """Mirror an image (h, w, c) or a batch (n, h, w, c), or not; other arguments are handed on."""
        return _with(_geometry.random_flip_top_bottom(x, self._p), args)


class Rotate(HybridTransform):
    """Rotates images about their centre.

    Parameters
    ----------
    rotation_degrees : float
        Counter-clockwise.
    zoom_in : bool
        Enlarge until nothing outside is seen.
    zoom_out : bool
        Shrink until all of the image is seen.

    Raises
    ------
    ValueError
        If both zooms are asked for.

    Examples
    --------
    >>> mx.gluon.data.vision.transforms.Rotate(30)(np.ones((3, 4, 6))).shape
    (3, 4, 6)
    """

    def __init__(self, rotation_degrees: float, zoom_in: bool = False, zoom_out: bool = False) -> None:
        super().__init__()
        self._rotation_degrees = rotation_degrees
        self._zoom_in, self._zoom_out = self._zooms = _zooms(zoom_in, zoom_out)

    def forward(self, x: Any, *args: Any) -> Any:
        """Turn float images (c, h, w) or (n, c, h, w); a TypeError for others. Other arguments are handed on."""
        return _with(_image.imrotate(x, self._rotation_degrees, *self._zooms), args)


def _zooms(zoom_in: bool, zoom_out: bool) -> tuple[bool, bool]:
    if zoom_in and zoom_out:
        raise ValueError("`zoom_in` and `zoom_out` exclude each other")
    return zoom_in, zoom_out


class RandomRotation(HybridTransform):
    """Rotates images about their centre by a random angle.

    Parameters
    ----------
    angle_limits : (float, float)
        Range of the angle in degrees, counter-clockwise.
    zoom_in, zoom_out : bool
        See `Rotate`.
    rotate_with_proba : float
        Probability to turn the images at all.

    Raises
    ------
    ValueError
        If both zooms are asked for, the range is empty or the probability is none.

    Examples
    --------
    >>> mx.gluon.data.vision.transforms.RandomRotation((-10, 10))(np.ones((3, 4, 6))).shape
    (3, 4, 6)
    """

    def __init__(
        self,
        angle_limits: tuple[float, float],
        zoom_in: bool = False,
        zoom_out: bool = False,
        rotate_with_proba: float = 1.0,
    ) -> None:
        super().__init__()
        low, high = angle_limits
        if not low <= high:
            raise ValueError(f"`angle_limits` must grow, found {angle_limits}")
        if not 0 <= rotate_with_proba <= 1:
            raise ValueError(f"`rotate_with_proba` must be from 0 to 1, found {rotate_with_proba}")
        self._angle_limits = (low, high)
        self._zoom_in, self._zoom_out = self._zooms = _zooms(zoom_in, zoom_out)
        self._rotate_with_proba = rotate_with_proba

    def forward(self, x: ndarray, *args: Any) -> Any:
        """Turn float images (c, h, w) or (n, c, h, w); a TypeError for others. Other arguments are handed on."""
        turned = _image.random_rotate(x, self._angle_limits, *self._zooms)
        if self._rotate_with_proba < 1:
            turned = np.where(np.random.uniform(size=(), device=x.device) < self._rotate_with_proba, turned, x)
        return _with(turned, args)
