"""Blocks that change an image and the rectangles in it alike.

Each takes an image (h, w, c) and rectangles, an array of rows ``(xmin, ymin, xmax, ymax, ...)`` in pixels, and returns
both: the image as an `ndarray`, the rectangles as a NumPy array, since their number depends on the values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as onp

from mxnet import image, npx
from mxnet import numpy as np
from mxnet.gluon.contrib.data.vision.transforms.bbox import utils
from mxnet.gluon.data.vision.transforms._base import Transform
from mxnet.numpy import ndarray
from mxnet.numpy_extension import _image_geometry as _geometry

__all__ = [
    "ImageBboxCrop",
    "ImageBboxRandomCropWithConstraints",
    "ImageBboxRandomExpand",
    "ImageBboxRandomFlipLeftRight",
    "ImageBboxResize",
]

_Both = tuple[ndarray, onp.ndarray]


class _BoxTransform(Transform):
    """Rectangles are arrays of NumPy, and images may be."""

    _takes_numpy = True


def _image(img: Any) -> ndarray:
    return img if isinstance(img, ndarray) else np.array(img)


def _size(img: ndarray) -> tuple[int, int]:
    """Width and height."""
    if img.ndim != 3:
        raise ValueError(f"an image must have shape (height, width, channels), found {img.shape}")
    return img.shape[1], img.shape[0]


def _happens(p: float) -> bool:
    """True with probability `p`."""
    return bool(np.random.uniform() < p)


class ImageBboxRandomFlipLeftRight(_BoxTransform):
    """Flips an image and its bounding boxes left to right with a probability.

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
    >>> flip = mx.gluon.contrib.data.vision.ImageBboxRandomFlipLeftRight(p=1)
    >>> flip(np.ones((4, 6, 3)), np.array([[0, 0, 2, 3]]))[1]
    array([[4, 0, 6, 3]])
    """

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        _geometry.check_probability("ImageBboxRandomFlipLeftRight", p)
        self._p = p

    def forward(self, img: Any, bbox: Any) -> _Both:
        """Mirror an image (h, w, c) and rectangles (n, 4 or more), or neither."""
        img = _image(img)
        flips = _happens(self._p)
        boxes = utils.bbox_flip(bbox, _size(img), flip_x=flips)
        return (npx.image.flip_left_right(img) if flips else img), boxes


class ImageBboxCrop(_BoxTransform):
    """Crops an image, and keeps the bounding boxes in the part.

    Parameters
    ----------
    crop : (int, int, int, int)
        x, y, width and height of the part.
    allow_outside_center : bool
        Keep rectangles whose centre is outside of the part.

    Raises
    ------
    ValueError
        If `crop` has another length; if the part is not within the image, at the call.

    Examples
    --------
    >>> crop = mx.gluon.contrib.data.vision.ImageBboxCrop((1, 1, 4, 2))
    >>> image, boxes = crop(np.ones((4, 6, 3)), np.array([[0, 0, 3, 4]]))
    >>> image.shape, boxes
    ((2, 4, 3), array([[0, 0, 2, 2]]))
    """

    def __init__(self, crop: Sequence[int], allow_outside_center: bool = False) -> None:
        super().__init__()
        if len(crop) != 4:
            raise ValueError(f"ImageBboxCrop: `crop` must be (x, y, width, height), found {tuple(crop)}")
        self._crop = tuple(crop)
        self._allow_outside_center = allow_outside_center

    def forward(self, img: Any, bbox: Any) -> _Both:
        """Cut an image (h, w, c) and rectangles (n, 4 or more)."""
        img = _image(img)
        x, y, width, height = self._crop
        full_width, full_height = _size(img)
        if min(x, y) < 0 or min(width, height) < 1 or x + width > full_width or y + height > full_height:
            raise ValueError(f"ImageBboxCrop: {self._crop} is not within an image of {full_width} x {full_height}")
        boxes = utils.bbox_crop(bbox, self._crop, self._allow_outside_center)
        return img[y : y + height, x : x + width], boxes


class ImageBboxRandomCropWithConstraints(_BoxTransform):
    """Crops, with a probability, a random part of an image whose overlap with the bounding boxes is in a range.

    Parameters
    ----------
    p : float
        From 0 to 1.
    min_scale, max_scale, max_aspect_ratio, constraints, max_trial
        See `utils.bbox_random_crop_with_constraints`.

    Raises
    ------
    ValueError
        If `p` is no probability.

    Examples
    --------
    >>> crop = mx.gluon.contrib.data.vision.ImageBboxRandomCropWithConstraints(p=1)
    >>> image, boxes = crop(np.ones((40, 60, 3)), np.array([[10, 10, 30, 30]]))
    >>> image.shape[2], boxes.shape
    (3, (1, 4))
    """

    def __init__(
        self,
        p: float = 0.5,
        min_scale: float = 0.3,
        max_scale: float = 1,
        max_aspect_ratio: float = 2,
        constraints: Sequence[tuple[float | None, float | None]] | None = None,
        max_trial: int = 50,
    ) -> None:
        super().__init__()
        _geometry.check_probability("ImageBboxRandomCropWithConstraints", p)
        self._p = p
        self._min_scale, self._max_scale = min_scale, max_scale
        self._max_aspect_ratio = max_aspect_ratio
        self._constraints = constraints
        self._max_trial = max_trial

    def forward(self, img: Any, bbox: Any) -> _Both:
        """Cut an image (h, w, c) and rectangles (n, 4 or more), or neither."""
        img = _image(img)
        size = _size(img)
        if not _happens(self._p):
            return img, utils.bbox_crop(bbox)
        boxes, (x, y, width, height) = utils.bbox_random_crop_with_constraints(
            bbox, size, self._min_scale, self._max_scale, self._max_aspect_ratio, self._constraints, self._max_trial
        )
        return img[y : y + height, x : x + width], boxes


class ImageBboxRandomExpand(_BoxTransform):
    """Places the image, with a probability, at a random position of a larger one.

    Parameters
    ----------
    p : float
        From 0 to 1.
    max_ratio : float
        The largest ratio of the sides, at least 1.
    fill : float or sequence of float
        Value of the border, or one for each channel.
    keep_ratio : bool
        Use one ratio for both sides.

    Raises
    ------
    ValueError
        If `p` is no probability or `max_ratio` is below 1.

    Examples
    --------
    >>> expand = mx.gluon.contrib.data.vision.ImageBboxRandomExpand(p=1, max_ratio=2)
    >>> image, boxes = expand(np.ones((4, 6, 3)), np.array([[0, 0, 2, 3]]))
    >>> int(image.sum()), (boxes[:, 2:] - boxes[:, :2]).tolist()
    (72, [[2, 3]])
    """

    def __init__(
        self, p: float = 0.5, max_ratio: float = 4, fill: float | Sequence[float] = 0, keep_ratio: bool = True
    ) -> None:
        super().__init__()
        _geometry.check_probability("ImageBboxRandomExpand", p)
        if max_ratio < 1:
            raise ValueError(f"ImageBboxRandomExpand: `max_ratio` must be at least 1, found {max_ratio}")
        self._p, self._max_ratio = p, max_ratio
        self._fill, self._keep_ratio = fill, keep_ratio

    def forward(self, img: Any, bbox: Any) -> _Both:
        """Put an image (h, w, c) into a larger one and move rectangles (n, 4 or more), or neither."""
        img = _image(img)
        width, height = _size(img)
        if self._max_ratio == 1 or not _happens(self._p):
            return img, utils.bbox_translate(bbox)
        draw = np.random.uniform(size=(4,)).asnumpy().astype("float64")
        ratios = 1 + draw[:2] * (self._max_ratio - 1)
        if self._keep_ratio:
            ratios[1] = ratios[0]
        full_width, full_height = int(width * ratios[0]), int(height * ratios[1])
        x, y = int(draw[2] * (full_width - width + 1)), int(draw[3] * (full_height - height + 1))
        canvas = np.empty((full_height, full_width, img.shape[2]), dtype=img.dtype)
        canvas[...] = np.array(self._fill, dtype=img.dtype)
        canvas[y : y + height, x : x + width] = img
        return canvas, utils.bbox_translate(bbox, x, y)


class ImageBboxResize(_BoxTransform):
    """Resizes an image and its bounding boxes.

    Parameters
    ----------
    width, height : int
        Of the result.
    interp : int
        See `mx.image.imresize`; -1 is 10.

    Raises
    ------
    ValueError
        If `interp` is not known.

    Examples
    --------
    >>> resize = mx.gluon.contrib.data.vision.ImageBboxResize(3, 8)
    >>> image, boxes = resize(np.ones((4, 6, 3), dtype='uint8'), np.array([[0, 0, 2, 3]]))
    >>> image.shape, boxes
    ((8, 3, 3), array([[0, 0, 1, 6]]))
    """

    def __init__(self, width: int, height: int, interp: int = 1) -> None:
        super().__init__()
        self._width, self._height = width, height
        if interp not in (-1, 9, 10):
            _geometry.check_interp("ImageBboxResize", interp)
        self._interp = interp

    def forward(self, img: Any, bbox: Any) -> _Both:
        """Resize an image (h, w, c) and rectangles (n, 4 or more)."""
        img = _image(img)
        interp = 10 if self._interp == -1 else self._interp
        boxes = utils.bbox_resize(bbox, _size(img), (self._width, self._height))
        return image.imresize(img, self._width, self._height, interp), boxes
