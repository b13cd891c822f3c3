"""Boxes of object detection."""

from __future__ import annotations

from numpy.typing import ArrayLike

from mxnet import _core
from mxnet._core import asarray, ndarray

__all__ = ["box_iou", "box_nms"]

_np = _core.namespaces["numpy"]
_FORMATS = ("corner", "center")


def _check(name: str, argument: str, value: str) -> None:
    if value not in _FORMATS:
        raise ValueError(f"{name}: `{argument}` must be 'corner' or 'center', found {value!r}")


def _to_corners(boxes: ndarray) -> ndarray:
    """(x, y, width, height) to (left, top, right, bottom)."""
    centre, half = boxes[..., :2], boxes[..., 2:] / 2
    result: ndarray = _np["concatenate"]([centre - half, centre + half], axis=-1)
    return result


def _to_centres(boxes: ndarray) -> ndarray:
    """(left, top, right, bottom) to (x, y, width, height)."""
    near, far = boxes[..., :2], boxes[..., 2:]
    result: ndarray = _np["concatenate"]([(near + far) / 2, far - near], axis=-1)
    return result


def box_iou(lhs: ArrayLike, rhs: ArrayLike, format: str = "corner") -> ndarray:
    """Intersection over union of every box of one set with every box of another.

    Parameters
    ----------
    lhs, rhs : array_like, shapes (..., 4)
    format : {'corner', 'center'}
        Boxes are (left, top, right, bottom) or (x, y, width, height) with x and y in the middle.

    Returns
    -------
    ndarray, shape ``lhs.shape[:-1] + rhs.shape[:-1]``
        0 where neither box has an area.

    Raises
    ------
    ValueError
        If a last axis is not 4 long or `format` is unknown.

    Examples
    --------
    >>> mx.npx.box_iou([[0.0, 0.0, 2.0, 2.0], [1.0, 0.0, 2.0, 1.0]], [[0.0, 0.0, 2.0, 1.0]]).tolist()
    [[0.5], [0.5]]
    """
    _check("box_iou", "format", format)
    a, b = asarray(lhs), asarray(rhs)
    for name, boxes in (("lhs", a), ("rhs", b)):
        if boxes.ndim == 0 or boxes.shape[-1] != 4:
            raise ValueError(f"box_iou: the last axis of `{name}` must have length 4, found shape {boxes.shape}")
    if format == "center":
        a, b = _to_corners(a), _to_corners(b)
    shape = (*a.shape[:-1], *b.shape[:-1])
    a, b = a.reshape(-1, 1, 4), b.reshape(1, -1, 4)

    def area(near: ndarray, far: ndarray) -> ndarray:
        size = _np["maximum"](far - near, 0)
        product: ndarray = size[..., 0] * size[..., 1]
        return product

    shared = area(_np["maximum"](a[..., :2], b[..., :2]), _np["minimum"](a[..., 2:], b[..., 2:]))
    union = area(a[..., :2], a[..., 2:]) + area(b[..., :2], b[..., 2:]) - shared
    # A union of 0 is replaced before the division, so that its gradient is no NaN.
    result: ndarray = _np["where"](union > 0, shared / _np["where"](union > 0, union, 1), 0).reshape(shape)
    return result


def box_nms(
    data: ArrayLike,
    overlap_thresh: float = 0.5,
    valid_thresh: float = 0,
    topk: int = -1,
    coord_start: int = 2,
    score_index: int = 1,
    id_index: int = -1,
    background_id: int = -1,
    force_suppress: bool = False,
    in_format: str = "corner",
    out_format: str = "corner",
) -> ndarray:
    """Non-maximum suppression: keep the boxes that no better one overlaps too much.

    Parameters
    ----------
    data : array_like, shape (..., n, k), float
        Boxes of k numbers, coordinates and a score among them.
    overlap_thresh : float
        Intersection over union above which the worse of two boxes goes.
    valid_thresh : float
        Boxes with scores up to it go.
    topk : int
        Only so many of the best are considered; all if it is not above 0.
    coord_start, score_index : int
        Where the four coordinates and the score stand.
    id_index : int
        Where the class stands; -1 is one class for all.
    background_id : int
        Boxes of this class go; -1 for none.
    force_suppress : bool
        Boxes of different classes suppress each other too.
    in_format, out_format : {'corner', 'center'}
        Formats of the coordinates, see `box_iou`.

    Returns
    -------
    ndarray
        Shape and dtype of `data`: the boxes that stay by descending score, then -1. Their gradient goes to where they
        were.

    Raises
    ------
    ValueError
        If an index or a format does not fit.

    Examples
    --------
    >>> boxes = np.array([[0, 0.9, 0, 0, 2, 2], [0, 0.8, 0, 0, 2, 2], [0, 0.7, 5, 5, 6, 6]])
    >>> npx.box_nms(boxes, overlap_thresh=0.5, id_index=0)[:, 1]  # the second overlaps the first
    array([ 0.9,  0.7, -1. ])
    """
    _check("box_nms", "in_format", in_format)
    _check("box_nms", "out_format", out_format)
    x = asarray(data)
    if x.ndim < 2:
        raise ValueError(f"box_nms: `data` must have at least two axes, found shape {x.shape}")
    rows = x.reshape(-1 if x.size else 0, *x.shape[-2:]) if x.ndim != 3 else x
    order = _core.namespaces["op"]["box_nms_order"](
        rows.detach(),
        overlap_thresh,
        valid_thresh,
        topk,
        coord_start,
        score_index,
        id_index,
        background_id,
        force_suppress,
        in_format,
    )
    order = order.reshape(*order.shape, 1)
    at = _np["broadcast_to"](_np["maximum"](order, 0), rows.shape)
    kept = _np["take_along_axis"](rows, at, 1) if rows.shape[1] else rows
    if in_format != out_format:
        convert = _to_centres if out_format == "center" else _to_corners
        boxes = convert(kept[..., coord_start : coord_start + 4])
        kept = _np["concatenate"]([kept[..., :coord_start], boxes, kept[..., coord_start + 4 :]], axis=-1)
    result: ndarray = _np["where"](order < 0, -1, kept).reshape(x.shape)
    return result
