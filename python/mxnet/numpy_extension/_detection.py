"""Object detection: anchors, training targets, and decoding of predictions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from numpy.typing import ArrayLike

from mxnet import _core
from mxnet._core import asarray, ndarray

__all__ = [
    "bipartite_matching",
    "box_decode",
    "box_encode",
    "multibox_detection",
    "multibox_prior",
    "multibox_target",
]

_np = _core.namespaces["numpy"]
_npx = _core.namespaces["npx"]
_op = _core.namespaces["op"]
Floats = float | Sequence[float]
_FORMATS = ("corner", "center")


def _check(name: str, argument: str, value: str) -> None:
    if value not in _FORMATS:
        raise ValueError(f"{name}: `{argument}` must be 'corner' or 'center', found {value!r}")


def _to_corners(boxes: ndarray) -> ndarray:
    """(x, y, width, height) -> (left, top, right, bottom)."""
    centre, half = boxes[..., :2], boxes[..., 2:] / 2
    result: ndarray = _np["concatenate"]([centre - half, centre + half], axis=-1)
    return result


def _to_centres(boxes: ndarray) -> ndarray:
    """(left, top, right, bottom) -> (x, y, width, height)."""
    near, far = boxes[..., :2], boxes[..., 2:]
    result: ndarray = _np["concatenate"]([(near + far) / 2, far - near], axis=-1)
    return result


def _floats(name: str, argument: str, value: Floats, count: int | None = None) -> list[float]:
    found = [float(value)] if isinstance(value, int | float) else [float(x) for x in value]
    if not found or count not in (None, len(found)):
        wanted = "at least one number" if count is None else f"{count} numbers"
        raise ValueError(f"{name}: `{argument}` must be {wanted}, found {value}")
    return found


def bipartite_matching(
    data: ArrayLike, is_ascend: bool = False, threshold: float = 1e-12, topk: int = -1
) -> tuple[ndarray, ndarray]:
    """Match rows and columns of scores, the best score first, each at most once.

    Parameters
    ----------
    data : array_like, shape (..., n, m)
        Scores.
    is_ascend : bool
        Whether small scores are good.
    threshold : float
        Only scores above it match; below it if `is_ascend`.
    topk : int
        At most so many pairs; no limit if it is not above 0.

    Returns
    -------
    columns : ndarray, shape (..., n)
        The column of each row, -1 for none, in the dtype of `data`.
    rows : ndarray, shape (..., m)
        The row of each column.

    Raises
    ------
    ValueError
        If there are fewer than two axes.

    Notes
    -----
    Results are constants for gradients.

    Examples
    --------
    >>> columns, rows = npx.bipartite_matching(np.array([[0.5, 0.6], [0.1, 0.2], [0.3, 0.4]]), threshold=1e-12)
    >>> columns, rows
    (array([ 1., -1.,  0.]), array([2., 0.]))
    """
    x = asarray(data)
    if x.ndim < 2:
        raise ValueError(f"bipartite_matching: `data` must have at least two axes, found shape {x.shape}")
    lead, (n, m) = x.shape[:-2], x.shape[-2:]
    columns, rows = _op["match_pairs"](x.detach().reshape(math.prod(lead), n, m), threshold, is_ascend, topk)
    return columns.reshape(*lead, n).astype(x.dtype), rows.reshape(*lead, m).astype(x.dtype)


def box_encode(
    samples: ArrayLike,
    matches: ArrayLike,
    anchors: ArrayLike,
    refs: ArrayLike,
    means: ArrayLike = (0.0, 0.0, 0.0, 0.0),
    stds: ArrayLike = (0.1, 0.1, 0.2, 0.2),
) -> tuple[ndarray, ndarray]:
    """Offsets from anchors to the boxes that they are matched with.

    Parameters
    ----------
    samples : array_like, shape (b, n)
        Anchors count where this is above 0.5.
    matches : array_like, shape (b, n)
        Which of the boxes each anchor is matched with.
    anchors : array_like, shape (b, n, 4)
        Left, top, right, bottom.
    refs : array_like, shape (b, m, 4)
        The boxes.
    means, stds : array_like, shape (4,)
        Subtracted from the targets, which are then divided.

    Returns
    -------
    targets : ndarray, shape (b, n, 4)
        Moves of the middle in sizes of the anchor, and logarithms of the quotients of the sizes; 0 for anchors that do
        not count.
    masks : ndarray, shape (b, n, 4)
        1 where an anchor counts, else 0.

    Raises
    ------
    ValueError
        If shapes do not fit.

    Examples
    --------
    >>> anchors, refs = np.array([[[0.0, 0.0, 2.0, 2.0]]]), np.array([[[1.0, 0.0, 3.0, 2.0]]])
    >>> targets, masks = npx.box_encode(np.ones((1, 1)), np.zeros((1, 1)), anchors, refs, stds=np.ones(4))
    >>> targets
    array([[[0.5, 0. , 0. , 0. ]]])
    """
    counts, chosen, boxes, goals = asarray(samples), asarray(matches), asarray(anchors), asarray(refs)
    if boxes.ndim != 3 or boxes.shape[2] != 4 or goals.ndim != 3 or goals.shape[2] != 4:
        raise ValueError(
            f"box_encode: `anchors` must be (b, n, 4) and `refs` (b, m, 4), found {boxes.shape} and {goals.shape}"
        )
    if counts.shape != chosen.shape or counts.ndim != 2:
        raise ValueError(f"box_encode: `samples` and `matches` must be (b, n), found {counts.shape} and {chosen.shape}")
    batch, num = counts.shape
    at = _np["broadcast_to"](chosen.astype("int64").reshape(batch, num, 1), (batch, num, 4))
    goals = _to_centres(_np["take_along_axis"](goals, at, 1))
    boxes = _to_centres(boxes)
    moved = (goals[..., :2] - boxes[..., :2]) / boxes[..., 2:]
    scaled = _np["log"](goals[..., 2:] / boxes[..., 2:])
    targets = _np["concatenate"]([moved, scaled], axis=-1)
    targets = (targets - asarray(means, dtype=targets.dtype)) / asarray(stds, dtype=targets.dtype)
    mask = _np["broadcast_to"](counts.reshape(batch, num, 1) > 0.5, targets.shape)
    return _np["where"](mask, targets, 0), mask.astype(targets.dtype)


def box_decode(
    data: ArrayLike,
    anchors: ArrayLike,
    std0: float = 1.0,
    std1: float = 1.0,
    std2: float = 1.0,
    std3: float = 1.0,
    clip: float = -1.0,
    format: str = "center",
) -> ndarray:
    """Boxes from anchors and their offsets: the inverse of `box_encode` with means of 0.

    Parameters
    ----------
    data : array_like, shape (b, n, 4)
    anchors : array_like, shape (1, n, 4)
    std0, std1, std2, std3 : float
        What the targets were divided by.
    clip : float
        If it is above 0, the largest logarithm of a quotient of sizes.
    format : {'corner', 'center'}
        Format of `anchors`, see `box_iou`.

    Returns
    -------
    ndarray, shape (b, n, 4)
        Left, top, right, bottom.

    Raises
    ------
    ValueError
        If `format` is unknown.

    Examples
    --------
    >>> npx.box_decode(np.array([[[0.5, 0.0, 0.0, 0.0]]]), np.array([[[1.0, 1.0, 2.0, 2.0]]]))
    array([[[1., 0., 3., 2.]]])
    """
    _check("box_decode", "format", format)
    moves, boxes = asarray(data), asarray(anchors)
    if format == "corner":
        boxes = _to_centres(boxes)
    return _decoded(moves, boxes, [std0, std1, std2, std3], clip)


def _decoded(moves: ndarray, centres: ndarray, stds: Sequence[float], clip: float) -> ndarray:
    middles = [moves[..., i] * stds[i] * centres[..., 2 + i] + centres[..., i] for i in (0, 1)]
    logs = [moves[..., i] * stds[i] for i in (2, 3)]
    if clip > 0:
        logs = [_np["minimum"](x, clip) for x in logs]
    sizes = [_np["exp"](x) * centres[..., i] for i, x in zip((2, 3), logs, strict=True)]
    return _to_corners(_np["stack"]([*middles, *sizes], axis=-1))


def multibox_prior(
    data: ArrayLike,
    sizes: Floats = 1.0,
    ratios: Floats = 1.0,
    clip: bool = False,
    steps: Sequence[float] = (-1.0, -1.0),
    offsets: Sequence[float] = (0.5, 0.5),
) -> ndarray:
    """Anchors around each pixel of images: boxes of several sizes and shapes.

    Parameters
    ----------
    data : array_like, shape (n, c, h, w)
        Only its size counts.
    sizes : float or tuple of float
        Heights of square boxes, in parts of the image's height.
    ratios : float or tuple of float
        Widths over heights. Boxes of all sizes have the first ratio, boxes of the first size all ratios.
    clip : bool
        Whether boxes end at the image's edges.
    steps : tuple of 2 float
        Distance of neighbours down and to the right, in parts of the image; -1 for pixels of `data`.
    offsets : tuple of 2 float
        Where within a step a box has its middle, down and to the right.

    Returns
    -------
    ndarray, shape (1, h * w * (len(sizes) + len(ratios) - 1), 4)
        Left, top, right, bottom, in parts of the image.

    Raises
    ------
    ValueError
        If `data` has not four axes, or a number of arguments is wrong.

    Notes
    -----
    Source: W. Liu et al., "SSD: Single Shot MultiBox Detector", 2016, section 2.2.

    Examples
    --------
    >>> npx.multibox_prior(np.zeros((1, 3, 1, 2)), sizes=0.5)
    array([[[0.125, 0.25 , 0.375, 0.75 ],
            [0.625, 0.25 , 0.875, 0.75 ]]])
    """
    name = "multibox_prior"
    x = asarray(data)
    if x.ndim != 4:
        raise ValueError(f"{name}: `data` must be (n, c, h, w), found {x.shape}")
    heights, shapes = _floats(name, "sizes", sizes), _floats(name, "ratios", ratios)
    height, width = x.shape[2:]
    down, right = _floats(name, "steps", steps, 2)
    down, right = down if down > 0 else 1 / height, right if right > 0 else 1 / width
    offset_down, offset_right = _floats(name, "offsets", offsets, 2)
    kinds = [(size, shapes[0]) for size in heights] + [(heights[0], ratio) for ratio in shapes[1:]]
    # Converts fractions of the height to fractions of the width, so that a square box covers a square of pixels.
    half = [(size * height / width * math.sqrt(ratio) / 2, size / math.sqrt(ratio) / 2) for size, ratio in kinds]
    dtype = "float64" if x.dtype == "float64" else "float32"
    arange, device = _np["arange"], x.device
    rows = (arange(height, dtype=dtype, device=device) + offset_down) * down
    columns = (arange(width, dtype=dtype, device=device) + offset_right) * right
    whole = (height, width, len(half))
    parts = [
        sign * asarray([h[axis] for h in half], dtype=dtype, device=device) + middle
        for sign in (-1, 1)
        for axis, middle in ((0, columns.reshape(1, -1, 1)), (1, rows.reshape(-1, 1, 1)))
    ]
    boxes: ndarray = _np["stack"]([_np["broadcast_to"](part, whole) for part in parts], axis=-1).reshape(1, -1, 4)
    return _np["clip"](boxes, 0, 1) if clip else boxes


def multibox_target(
    anchor: ArrayLike,
    label: ArrayLike,
    cls_pred: ArrayLike,
    overlap_threshold: float = 0.5,
    ignore_label: float = -1.0,
    negative_mining_ratio: float = -1.0,
    negative_mining_thresh: float = 0.5,
    minimum_negative_samples: int = 0,
    variances: Sequence[float] = (0.1, 0.1, 0.2, 0.2),
) -> tuple[ndarray, ndarray, ndarray]:
    """Training targets for anchors: offsets to the objects, and their classes.

    Parameters
    ----------
    anchor : array_like, shape (1, n, 4)
        Left, top, right, bottom.
    label : array_like, shape (b, m, 5) or wider
        Class, left, top, right, bottom of each object. Rows from the first class -1 on do not count.
    cls_pred : array_like, shape (b, num_classes + 1, n)
        The network's scores of classes, the background first.
    overlap_threshold : float
        Besides the best anchor of each object, anchors count as objects that overlap one more than this.
    ignore_label : float
        Class of anchors that do not count.
    negative_mining_ratio : float
        If it is above 0, only so many anchors for each anchor of an object count as background, those with the lowest
        probability of it; the others are ignored. Otherwise all count.
    negative_mining_thresh : float
        Anchors that overlap an object as much as this never count as background with `negative_mining_ratio`.
    minimum_negative_samples : int
        At least so many count as background with `negative_mining_ratio`, if there are as many.
    variances : tuple of 4 float
        What the targets are divided by.

    Returns
    -------
    loc_target : ndarray, shape (b, n * 4)
        See `box_encode`.
    loc_mask : ndarray, shape (b, n * 4)
        1 for anchors of objects, else 0.
    cls_target : ndarray, shape (b, n)
        The object's class plus 1, 0 for background, or `ignore_label`. All are ignored where there is no object.

    Raises
    ------
    ValueError
        If shapes do not fit.

    Notes
    -----
    Results are constants for gradients. Source: W. Liu et al., "SSD: Single Shot MultiBox Detector", 2016, section 2.2.

    Examples
    --------
    >>> anchors = np.array([[[0.0, 0.0, 0.5, 0.5], [0.5, 0.5, 1.0, 1.0]]])
    >>> label = np.array([[[3.0, 0.0, 0.0, 0.5, 0.5]]])
    >>> npx.multibox_target(anchors, label, np.zeros((1, 5, 2)))[2]
    array([[4., 0.]])
    """
    name = "multibox_target"
    boxes, objects, scores = asarray(anchor).detach(), asarray(label).detach(), asarray(cls_pred).detach()
    stds = _floats(name, "variances", variances, 4)
    num = boxes.shape[1] if boxes.ndim == 3 else -1
    if boxes.ndim != 3 or boxes.shape[0] != 1 or boxes.shape[2] != 4:
        raise ValueError(f"{name}: `anchor` must be (1, n, 4), found {boxes.shape}")
    if objects.ndim != 3 or objects.shape[2] < 5:
        raise ValueError(f"{name}: `label` must be (b, m, 5), found {objects.shape}")
    if scores.ndim != 3 or scores.shape[0] != objects.shape[0] or scores.shape[2] != num:
        raise ValueError(f"{name}: `cls_pred` must be ({objects.shape[0]}, classes, {num}), found {scores.shape}")
    where, dtype = _np["where"], scores.dtype
    batch, count = objects.shape[:2]
    is_object = _np["cumsum"](objects[..., 0] == -1, axis=1) == 0
    overlaps = _npx["box_iou"](boxes[0], objects[..., 1:5]).transpose(1, 0, 2)  # (b, n, m)
    overlaps = where(is_object.reshape(batch, 1, count), overlaps, -1)
    # Overlaps as small as this count as none.
    columns, _ = _op["match_pairs"](overlaps, 1e-6)
    largest, nearest = overlaps.max(axis=2), overlaps.argmax(axis=2)
    is_near = (largest > overlap_threshold) & (overlap_threshold > 0)
    matches = where(columns >= 0, columns, where(is_near, nearest, -1))
    is_positive = matches >= 0
    at = _np["maximum"](matches, 0)
    spread = _np["broadcast_to"](boxes, (batch, num, 4))
    target, mask = box_encode(is_positive, at, spread, objects[..., 1:5], stds=stds)
    classes = _np["take_along_axis"](objects[..., 0], at, 1) + 1
    is_negative = ~is_positive
    if negative_mining_ratio > 0:
        background = _npx["softmax"](scores, axis=1)[:, 0]
        is_candidate = is_negative & (largest < negative_mining_thresh)
        order = _np["argsort"](where(is_candidate, background, math.inf), axis=1, kind="stable")
        rank = _np["argsort"](order, axis=1)
        wanted = _np["floor"](is_positive.sum(axis=1, keepdims=True) * negative_mining_ratio)
        is_negative = is_candidate & (rank < _np["maximum"](wanted, minimum_negative_samples))
    found = where(is_positive, classes, where(is_negative, 0, ignore_label))
    found = where(is_object.any(axis=1, keepdims=True), found, ignore_label)
    return (
        target.reshape(batch, num * 4).astype(dtype),
        mask.reshape(batch, num * 4).astype(dtype),
        found.astype(dtype),
    )


def multibox_detection(
    cls_prob: ArrayLike,
    loc_pred: ArrayLike,
    anchor: ArrayLike,
    clip: bool = True,
    threshold: float = 0.01,
    background_id: int = 0,
    nms_threshold: float = 0.5,
    force_suppress: bool = False,
    variances: Sequence[float] = (0.1, 0.1, 0.2, 0.2),
    nms_topk: int = -1,
) -> ndarray:
    """Detected objects: boxes decoded from a network's predictions for anchors, after non-maximum suppression.

    Parameters
    ----------
    cls_prob : array_like, shape (b, num_classes + 1, n)
        Probabilities of classes, the background among them.
    loc_pred : array_like, shape (b, n * 4)
        See `multibox_target`.
    anchor : array_like, shape (1, n, 4)
        Left, top, right, bottom.
    clip : bool
        Whether boxes end at 0 and 1.
    threshold : float
        The least probability of an object.
    background_id : int
        Which class is the background. Classes behind it are counted without it.
    nms_threshold : float
        Intersection over union from which on the less probable of two boxes of one class is removed. Outside of 0 to
        1 none is removed, and boxes keep their order.
    force_suppress : bool
        Whether boxes of different classes suppress each other too.
    variances : tuple of 4 float
        See `multibox_target`.
    nms_topk : int
        Only so many of the most probable are considered; all if it is not above 0.

    Returns
    -------
    ndarray, shape (b, n, 6)
        Class, probability, left, top, right, bottom, the most probable first. Removed boxes have class -1; rows
        without an object are -1.

    Raises
    ------
    ValueError
        If shapes do not fit.

    Examples
    --------
    >>> anchors = np.array([[[0.0, 0.0, 0.5, 0.5], [0.0, 0.0, 0.5, 0.4]]])
    >>> npx.multibox_detection(np.array([[[0.1, 0.2], [0.9, 0.8]]]), np.zeros((1, 8)), anchors)[0, :, :2]
    array([[ 0. ,  0.9],
           [-1. ,  0.8]])
    """
    name = "multibox_detection"
    scores, moves, boxes = asarray(cls_prob), asarray(loc_pred), asarray(anchor)
    stds = _floats(name, "variances", variances, 4)
    if scores.ndim != 3 or boxes.shape != (1, scores.shape[2], 4):
        raise ValueError(
            f"{name}: `cls_prob` must be (b, classes, n) and `anchor` (1, n, 4), found {scores.shape} and {boxes.shape}"
        )
    batch, classes, num = scores.shape
    if moves.shape != (batch, num * 4):
        raise ValueError(f"{name}: `loc_pred` must be {(batch, num * 4)}, found {moves.shape}")
    if classes < 2 or not 0 <= background_id < classes:
        raise ValueError(
            f"{name}: there must be at least two classes and `background_id` one of them, found {classes} and "
            f"{background_id}"
        )
    where, take = _np["where"], _np["take_along_axis"]
    objects = _np["concatenate"]([scores[:, :background_id], scores[:, background_id + 1 :]], axis=1)
    best, kind = objects.max(axis=1), objects.argmax(axis=1)
    is_object = best >= threshold
    found = _decoded(moves.reshape(batch, num, 4), _to_centres(boxes), stds, -1)
    if clip:
        found = _np["clip"](found, 0, 1)
    suppresses = 0 < nms_threshold <= 1
    key = where(is_object, -best if suppresses else 0, math.inf)
    order = _np["argsort"](key.detach(), axis=1, kind="stable")
    is_object, kind, best = take(is_object, order, 1), take(kind, order, 1), take(best, order, 1)
    found = take(found, _np["broadcast_to"](order.reshape(batch, num, 1), found.shape), 1)
    identity = where(is_object, kind, -1).astype(found.dtype)
    objects = _np["concatenate"]([_np["stack"]([identity, best], axis=-1), found], axis=-1)
    rows: ndarray = where(is_object.reshape(batch, num, 1), objects, -1)
    if not suppresses:
        return rows
    # Boxes with at least this overlap are removed; the operator removes those above its threshold.
    kept = _op["box_nms_order"](
        rows.detach(), math.nextafter(nms_threshold, 0), -0.5, nms_topk, 2, 1, 0, -1, force_suppress
    )
    box_numbers = where(kept < 0, num, kept)
    batches = _np["broadcast_to"](_np["arange"](batch, device=box_numbers.device).reshape(batch, 1), box_numbers.shape)
    at = _np["stack"]([batches, box_numbers])
    stays = _npx["scatter_nd"](_np["ones_like"](box_numbers), at, (batch, num + 1))[:, :num] > 0
    head = where(stays, rows[..., 0], -1)
    result: ndarray = _np["concatenate"]([head.reshape(batch, num, 1), rows[..., 1:]], axis=-1)
    return result
