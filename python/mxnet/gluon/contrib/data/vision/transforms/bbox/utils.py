"""Rectangles on the host, as NumPy arrays: one row ``(xmin, ymin, xmax, ymax, ...)`` each, in pixels.

Columns from the fifth on, such as classes, are handed through. Arguments stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as onp

from mxnet import numpy as np

__all__ = [
    "bbox_clip_xyxy",
    "bbox_crop",
    "bbox_flip",
    "bbox_iou",
    "bbox_random_crop_with_constraints",
    "bbox_resize",
    "bbox_translate",
    "bbox_xywh_to_xyxy",
    "bbox_xyxy_to_xywh",
]

# Ranges of the overlap of a cut with a rectangle. Source: W. Liu et al., "SSD: Single Shot MultiBox Detector", 2016,
# section 2.2.
_CONSTRAINTS = ((0.1, None), (0.3, None), (0.5, None), (0.7, None), (0.9, None), (None, 1))


def _rows(name: str, bbox: Any) -> onp.ndarray:
    """A copy of the rectangles."""
    rows = onp.array(bbox)
    if rows.ndim != 2 or rows.shape[1] < 4:
        raise ValueError(f"{name}: rectangles must have shape (n, 4 or more), found {rows.shape}")
    return rows


def _pair(name: str, what: str, size: Sequence[float]) -> tuple[float, float]:
    if len(size) != 2:
        raise ValueError(f"{name}: `{what}` must be (width, height), found {tuple(size)}")
    return size[0], size[1]


def _is_single(box: Any) -> bool:
    """Whether it is one rectangle, a tuple or list of 4 numbers."""
    return isinstance(box, tuple | list) and len(box) == 4 and not isinstance(box[0], tuple | list)


def bbox_crop(
    bbox: Any, crop_box: Sequence[float | None] | None = None, allow_outside_center: bool = True
) -> onp.ndarray:
    """Rectangles as seen in a part of the image.

    Parameters
    ----------
    bbox : array_like, shape (n, 4 or more)
    crop_box : (x, y, width, height), optional
        The part; None for a number reaches to the border, None for all is the whole image.
    allow_outside_center : bool
        Keep rectangles whose centre is outside of the part.

    Returns
    -------
    numpy.ndarray, shape (m, 4 or more)
        Those that overlap with the part, clipped to it and relative to its corner.

    Raises
    ------
    ValueError
        If a shape or `crop_box` is none of these.

    Examples
    --------
    >>> utils = mx.gluon.contrib.data.vision.transforms.bbox.utils
    >>> utils.bbox_crop([[10, 10, 30, 30], [60, 0, 70, 9]], (20, 5, 20, 20))
    array([[ 0,  5, 10, 20]])
    """
    rows = _rows("bbox_crop", bbox)
    if crop_box is None:
        return rows
    if len(crop_box) != 4:
        raise ValueError(f"bbox_crop: `crop_box` must be (x, y, width, height), found {tuple(crop_box)}")
    x, y, width, height = crop_box
    low = onp.array([x or 0, y or 0])
    high = low + onp.array([onp.inf if size is None else size for size in (width, height)])
    kept = onp.ones(len(rows), dtype=bool)
    if not allow_outside_center:
        centers = (rows[:, :2] + rows[:, 2:4]) / 2
        kept = ((low <= centers) & (centers < high)).all(axis=1)
    corners = onp.concatenate([onp.maximum(rows[:, :2], low), onp.minimum(rows[:, 2:4], high)], axis=1)
    rows[:, :4] = corners - onp.tile(low, 2)
    kept &= (rows[:, :2] < rows[:, 2:4]).all(axis=1)
    return rows[kept]


def bbox_flip(bbox: Any, size: Sequence[float], flip_x: bool = False, flip_y: bool = False) -> onp.ndarray:
    """Rectangles of a mirrored image.

    Parameters
    ----------
    bbox : array_like, shape (n, 4 or more)
    size : (width, height)
        Of the image.
    flip_x, flip_y : bool
        Whether left and right, and top and bottom, are exchanged.

    Returns
    -------
    numpy.ndarray, shape (n, 4 or more)

    Raises
    ------
    ValueError
        If a shape or `size` is none of these.

    Examples
    --------
    >>> utils = mx.gluon.contrib.data.vision.transforms.bbox.utils
    >>> utils.bbox_flip([[10, 5, 30, 8]], (100, 50), flip_x=True)
    array([[70,  5, 90,  8]])
    """
    rows = _rows("bbox_flip", bbox)
    for axis, (length, flips) in enumerate(zip(_pair("bbox_flip", "size", size), (flip_x, flip_y), strict=True)):
        if flips:
            rows[:, [axis, axis + 2]] = length - rows[:, [axis + 2, axis]]
    return rows


def bbox_resize(bbox: Any, in_size: Sequence[float], out_size: Sequence[float]) -> onp.ndarray:
    """Rectangles of a resized image.

    Parameters
    ----------
    bbox : array_like, shape (n, 4 or more)
        Fractions are cut off if it holds integers.
    in_size, out_size : (width, height)
        Of the image before and after.

    Returns
    -------
    numpy.ndarray, shape (n, 4 or more)

    Raises
    ------
    ValueError
        If a shape or a size is none of these.

    Examples
    --------
    >>> utils = mx.gluon.contrib.data.vision.transforms.bbox.utils
    >>> utils.bbox_resize([[10., 10., 30., 20.]], (100, 50), (50, 100))
    array([[ 5., 20., 15., 40.]])
    """
    rows = _rows("bbox_resize", bbox)
    before, after = _pair("bbox_resize", "in_size", in_size), _pair("bbox_resize", "out_size", out_size)
    rows[:, :4] = rows[:, :4] * onp.tile(onp.divide(after, before), 2)
    return rows


def bbox_translate(bbox: Any, x_offset: float = 0, y_offset: float = 0) -> onp.ndarray:
    """Rectangles that are moved.

    Parameters
    ----------
    bbox : array_like, shape (n, 4 or more)
    x_offset, y_offset : float

    Returns
    -------
    numpy.ndarray, shape (n, 4 or more)

    Raises
    ------
    ValueError
        If the shape is another.

    Examples
    --------
    >>> utils = mx.gluon.contrib.data.vision.transforms.bbox.utils
    >>> utils.bbox_translate([[10, 10, 30, 20]], x_offset=5)
    array([[15, 10, 35, 20]])
    """
    rows = _rows("bbox_translate", bbox)
    rows[:, :4] = rows[:, :4] + onp.array([x_offset, y_offset, x_offset, y_offset])
    return rows


def bbox_iou(bbox_a: Any, bbox_b: Any, offset: float = 0) -> onp.ndarray:
    """Intersection over union of each rectangle of one list with each of another.

    Parameters
    ----------
    bbox_a : array_like, shape (n, 4 or more)
    bbox_b : array_like, shape (m, 4 or more)
    offset : float
        Added to widths and heights; 1 if the last pixel belongs to a rectangle.

    Returns
    -------
    numpy.ndarray, shape (n, m), float64
        0 for two rectangles without area.

    Raises
    ------
    ValueError
        If a shape is another.

    Examples
    --------
    >>> utils = mx.gluon.contrib.data.vision.transforms.bbox.utils
    >>> utils.bbox_iou([[0, 0, 2, 2]], [[0, 0, 2, 4], [2, 2, 3, 3]])
    array([[0.5, 0. ]])
    """
    a, b = (_rows("bbox_iou", bbox)[:, :4].astype("float64") for bbox in (bbox_a, bbox_b))
    low, high = onp.maximum(a[:, None, :2], b[:, :2]), onp.minimum(a[:, None, 2:], b[:, 2:])
    common = onp.maximum(high - low + offset, 0).prod(axis=2)
    areas = [(rows[:, 2:] - rows[:, :2] + offset).prod(axis=1) for rows in (a, b)]
    union = areas[0][:, None] + areas[1] - common
    overlap: onp.ndarray = onp.divide(common, union, out=onp.zeros_like(common), where=union > 0)
    return overlap


def bbox_xywh_to_xyxy(xywh: Any) -> Any:
    """Corners of rectangles that are given by a corner, a width and a height in pixels.

    Parameters
    ----------
    xywh : tuple or list of 4 numbers, or array_like, shape (n, 4 or more)

    Returns
    -------
    tuple or numpy.ndarray
        A tuple for a tuple or list. The last pixel belongs to a rectangle: ``xmax = x + max(width - 1, 0)``.

    Raises
    ------
    ValueError
        If the shape is another.

    Examples
    --------
    >>> mx.gluon.contrib.data.vision.transforms.bbox.utils.bbox_xywh_to_xyxy((10, 20, 5, 1))
    (10, 20, 14, 20)
    """
    if _is_single(xywh):
        x, y, width, height = xywh
        return x, y, x + max(width - 1, 0), y + max(height - 1, 0)
    rows = _rows("bbox_xywh_to_xyxy", xywh)
    rows[:, 2:4] = rows[:, :2] + onp.maximum(rows[:, 2:4] - 1, 0)
    return rows


def bbox_xyxy_to_xywh(xyxy: Any) -> Any:
    """A corner, the width and the height in pixels of rectangles that are given by corners.

    Parameters
    ----------
    xyxy : tuple or list of 4 numbers, or array_like, shape (n, 4 or more)

    Returns
    -------
    tuple or numpy.ndarray
        A tuple for a tuple or list. The last pixel belongs to a rectangle: ``width = xmax - xmin + 1``.

    Raises
    ------
    ValueError
        If the shape is another.

    Examples
    --------
    >>> mx.gluon.contrib.data.vision.transforms.bbox.utils.bbox_xyxy_to_xywh((10, 20, 14, 20))
    (10, 20, 5, 1)
    """
    if _is_single(xyxy):
        xmin, ymin, xmax, ymax = xyxy
        return xmin, ymin, xmax - xmin + 1, ymax - ymin + 1
    rows = _rows("bbox_xyxy_to_xywh", xyxy)
    rows[:, 2:4] = rows[:, 2:4] - rows[:, :2] + 1
    return rows


def bbox_clip_xyxy(xyxy: Any, width: float, height: float) -> Any:
    """Rectangles that end at the last pixel of the image.

    Parameters
    ----------
    xyxy : tuple or list of 4 numbers, or array_like, shape (n, 4 or more)
    width, height : float
        Of the image.

    Returns
    -------
    tuple or numpy.ndarray
        A tuple for a tuple or list; corners are between 0 and ``width - 1`` or ``height - 1``.

    Raises
    ------
    ValueError
        If the shape is another.

    Examples
    --------
    >>> mx.gluon.contrib.data.vision.transforms.bbox.utils.bbox_clip_xyxy((-2, 3, 14, 20), 10, 40)
    (0, 3, 9, 20)
    """
    if _is_single(xyxy):
        return tuple(min(max(c, 0), max(size - 1, 0)) for c, size in zip(xyxy, 2 * (width, height), strict=True))
    rows = _rows("bbox_clip_xyxy", xyxy)
    last = onp.array([max(size - 1, 0) for size in 2 * (width, height)])
    rows[:, :4] = onp.minimum(onp.maximum(rows[:, :4], 0), last)
    return rows


def bbox_random_crop_with_constraints(
    bbox: Any,
    size: Sequence[int],
    min_scale: float = 0.3,
    max_scale: float = 1,
    max_aspect_ratio: float = 2,
    constraints: Sequence[tuple[float | None, float | None]] | None = None,
    max_trial: int = 50,
) -> tuple[onp.ndarray, tuple[int, int, int, int]]:
    """A random part of an image whose overlap with the rectangles is in a range.

    For each range one part is looked for that overlaps with all rectangles so; one of these and the whole image is
    chosen, such that the centre of a rectangle lies in it.

    Parameters
    ----------
    bbox : array_like, shape (n, 4 or more)
    size : (int, int)
        Width and height of the image.
    min_scale, max_scale : float
        Range of the sides of the part, as shares of those of the image.
    max_aspect_ratio : float
        The largest ratio of the part's sides.
    constraints : sequence of (float or None, float or None), optional
        Ranges of the intersection over union; None is no bound. By default those of SSD.
    max_trial : int
        Number of parts that are tried for each range.

    Returns
    -------
    bbox : numpy.ndarray, shape (m, 4 or more)
        The rectangles whose centre is in the part, as `bbox_crop` gives them.
    crop : (x, y, width, height)
        The part.

    Raises
    ------
    ValueError
        If a shape or `size` is none of these.

    Notes
    -----
    Numbers are drawn from `mx.np.random`. Source: W. Liu et al., "SSD: Single Shot MultiBox Detector", 2016.

    Examples
    --------
    >>> utils = mx.gluon.contrib.data.vision.transforms.bbox.utils
    >>> boxes, (x, y, width, height) = utils.bbox_random_crop_with_constraints([[10, 10, 30, 30]], (64, 48))
    >>> boxes.shape, width <= 64
    ((1, 4), True)
    """
    name = "bbox_random_crop_with_constraints"
    rows, (width, height) = _rows(name, bbox), _pair(name, "size", size)
    whole = (0, 0, int(width), int(height))
    candidates = [whole]
    for low, high in _CONSTRAINTS if constraints is None else constraints:
        least, most = -onp.inf if low is None else low, onp.inf if high is None else high
        for draw in np.random.uniform(size=(max_trial, 4)).asnumpy().astype("float64"):
            part = _part(draw, whole, (min_scale, max_scale), max_aspect_ratio)
            x, y, w, h = part
            overlaps = bbox_iou(rows, [[x, y, x + w, y + h]]) if len(rows) else onp.zeros((0, 1))
            if ((least <= overlaps) & (overlaps <= most)).all():
                candidates.append(part)
                break
    for i in onp.argsort(np.random.uniform(size=(len(candidates),)).asnumpy()):
        seen = bbox_crop(rows, candidates[i], allow_outside_center=False)
        if len(seen) or not len(rows):
            return seen, candidates[i]
    return rows, whole


def _part(
    draw: onp.ndarray, whole: tuple[int, int, int, int], scales: tuple[float, float], max_aspect_ratio: float
) -> tuple[int, int, int, int]:
    """Part of an image by four numbers from 0 to 1: its scale, its shape and its place."""
    _, _, width, height = whole
    scale = scales[0] + draw[0] * (scales[1] - scales[0])
    # Both sides stay within the image: at a scale of 1 the only shape is the image's.
    limit = min(max_aspect_ratio, 1 / (scale * scale))
    ratio = limit ** (2 * draw[1] - 1)
    w = max(min(int(width * scale * ratio**0.5), width), 1)
    h = max(min(int(height * scale / ratio**0.5), height), 1)
    return int(draw[2] * (width - w + 1)), int(draw[3] * (height - h + 1)), w, h
