"""Anchors, targets and detections of objects against loops over boxes; regions of images against loops over pixels."""

import math

import numpy as onp
import pytest

from mxnet import autograd, np, npx
from mxnet.test_utils import check_numeric_gradient

GENERATOR = onp.random.default_rng(5)
VARIANCES = (0.1, 0.1, 0.2, 0.2)


def iou(a, b):
    width = max(0.0, min(a[2], b[2]) - max(a[0], b[0]))
    height = max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
    union = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - width * height
    return width * height / union if union > 0 else 0.0


def boxes(*shape):
    near = GENERATOR.uniform(0, 0.7, (*shape, 2))
    return onp.concatenate([near, near + GENERATOR.uniform(0.1, 0.4, (*shape, 2))], axis=-1)


def encoded(anchor, box, stds=VARIANCES):
    """Moves of the middle and logarithms of quotients."""
    size, goal = anchor[2:] - anchor[:2], box[2:] - box[:2]
    moved = ((box[:2] + box[2:]) - (anchor[:2] + anchor[2:])) / 2 / size
    return onp.concatenate([moved, onp.log(goal / size)]) / stds


@pytest.mark.parametrize(
    ("sizes", "ratios", "more"),
    [
        ((0.5, 0.25), (1, 2, 0.5), {}),
        (0.9, 2, {"clip": True}),
        ((0.3, 0.2), (4,), {"steps": (0.2, 0.1), "offsets": (0.3, 0.6)}),
    ],
)
def test_anchors_surround_pixels(sizes, ratios, more):
    height, width = 3, 4
    found = npx.multibox_prior(np.zeros((2, 1, height, width), dtype="float64"), sizes, ratios, **more).asnumpy()
    sizes, ratios = onp.atleast_1d(sizes), onp.atleast_1d(ratios)
    steps, offsets = more.get("steps", (1 / height, 1 / width)), more.get("offsets", (0.5, 0.5))
    expected = []
    for row in range(height):
        for column in range(width):
            y, x = (row + offsets[0]) * steps[0], (column + offsets[1]) * steps[1]
            for size, ratio in [(s, ratios[0]) for s in sizes] + [(sizes[0], r) for r in ratios[1:]]:
                half_h, half_w = size / ratio**0.5 / 2, size * ratio**0.5 * height / width / 2
                expected.append([x - half_w, y - half_h, x + half_w, y + half_h])
    expected = onp.clip(expected, 0, 1) if more.get("clip") else onp.array(expected)
    onp.testing.assert_allclose(found[0], expected, rtol=1e-12, atol=1e-15)


def targets(anchors, labels, scores, threshold=0.5, ignore=-1.0, ratio=-1.0, limit=0.5, least=0):
    """Slow reference for one image."""
    objects = []
    for row in labels:
        if row[0] == -1:
            break
        objects.append(row)
    n = len(anchors)
    if not objects:
        return onp.zeros((n, 4)), onp.zeros((n, 4)), onp.full(n, ignore)
    overlaps = onp.array([[iou(a, o[1:]) for o in objects] for a in anchors])
    match = onp.full(n, -1)
    left = overlaps.copy()
    for _ in objects:
        i, j = onp.unravel_index(left.argmax(), left.shape)
        if left[i, j] > 1e-6:
            match[i] = j
            left[i, :] = left[:, j] = -1
    for i in range(n):
        if match[i] < 0 and threshold > 0 and overlaps[i].max() > threshold:
            match[i] = overlaps[i].argmax()
    is_negative = match < 0
    if ratio > 0:
        exps = onp.exp(scores - scores.max(axis=0))
        background = exps[0] / exps.sum(axis=0)
        candidates = [i for i in range(n) if match[i] < 0 and overlaps[i].max() < limit]
        candidates.sort(key=lambda i: background[i])
        chosen = candidates[: max(int((match >= 0).sum() * ratio), least)]
        is_negative = onp.isin(onp.arange(n), chosen)
    classes = onp.array(
        [objects[m][0] + 1 if m >= 0 else 0.0 if free else ignore for m, free in zip(match, is_negative, strict=True)]
    )
    move = onp.array(
        [encoded(a, objects[m][1:]) if m >= 0 else onp.zeros(4) for a, m in zip(anchors, match, strict=True)]
    )
    return move, onp.repeat((match >= 0)[:, None], 4, axis=1).astype(float), classes


@pytest.mark.parametrize(
    ("names", "of_loop"),
    [
        ({}, {}),
        ({"overlap_threshold": 0.2}, {"threshold": 0.2}),
        ({"negative_mining_ratio": 3.0, "ignore_label": -2.0}, {"ratio": 3.0, "ignore": -2.0}),
        ({"negative_mining_ratio": 2.0, "negative_mining_thresh": 0.1}, {"ratio": 2.0, "limit": 0.1}),
        ({"negative_mining_ratio": 0.5, "minimum_negative_samples": 6}, {"ratio": 0.5, "least": 6}),
    ],
)
def test_targets_are_those_of_the_loop(names, of_loop):
    anchors, labels = boxes(20), onp.full((3, 4, 5), -1.0)
    for image, count in ((0, 3), (2, 4)):
        labels[image, :count, 0] = GENERATOR.integers(0, 3, count)
        labels[image, :count, 1:] = boxes(count)
    scores = GENERATOR.normal(size=(3, 4, 20))
    given = [np.array(x, dtype="float64") for x in (anchors[None], labels, scores)]
    found = npx.multibox_target(*given, **names)
    for image in range(3):
        for mine, theirs in zip(found, targets(anchors, labels[image], scores[image], **of_loop), strict=True):
            onp.testing.assert_allclose(mine[image].asnumpy(), theirs.ravel(), rtol=1e-10, atol=1e-12)


def detections(scores, moves, anchors, threshold=0.01, overlap=0.5, force=False, topk=-1):
    """Slow reference for one image: classes, probabilities, corners by descending probability."""
    rows = []
    for k, anchor in enumerate(anchors):
        best = int(scores[1:, k].argmax())
        if scores[1 + best, k] < threshold:
            continue
        size, middle = anchor[2:] - anchor[:2], (anchor[:2] + anchor[2:]) / 2
        move = moves[4 * k : 4 * k + 4] * VARIANCES
        centre, half = middle + move[:2] * size, onp.exp(move[2:]) * size / 2
        corners = onp.clip(onp.concatenate([centre - half, centre + half]), 0, 1)
        rows.append([best, scores[1 + best, k], *corners])
    rows.sort(key=lambda row: -row[1])
    for j, row in enumerate(rows):
        if topk > 0 and j >= topk:
            row[0] = -1
        for better in rows[:j]:
            if better[0] >= 0 and (force or better[0] == row[0]) and iou(better[2:], row[2:]) >= overlap:
                row[0] = -1
                break
    return onp.array(rows + [[-1.0] * 6] * (len(anchors) - len(rows)))


@pytest.mark.parametrize(
    ("names", "of_loop"),
    [
        ({}, {}),
        ({"threshold": 0.4}, {"threshold": 0.4}),
        ({"nms_threshold": 0.2, "force_suppress": True}, {"overlap": 0.2, "force": True}),
        ({"nms_topk": 5, "nms_threshold": 0.3}, {"topk": 5, "overlap": 0.3}),
    ],
)
def test_detections_are_those_of_the_loop(names, of_loop):
    anchors, scores, moves = boxes(15), GENERATOR.uniform(size=(2, 4, 15)), GENERATOR.normal(size=(2, 60)) * 0.5
    scores /= scores.sum(axis=1, keepdims=True)
    given = [np.array(x, dtype="float64") for x in (scores, moves, anchors[None])]
    found = npx.multibox_detection(*given, **names).asnumpy()
    for image in range(2):
        expected = detections(scores[image], moves[image], anchors, **of_loop)
        onp.testing.assert_allclose(found[image], expected, rtol=1e-12, atol=1e-14)


def test_the_background_may_be_any_class_and_nothing_may_be_suppressed():
    anchors = np.array([[[0.0, 0.0, 0.5, 0.5], [0.0, 0.0, 0.5, 0.4]]])
    scores = np.array([[[0.2, 0.7], [0.7, 0.1], [0.1, 0.2]]])
    found = npx.multibox_detection(scores, np.zeros((1, 8)), anchors, background_id=1, nms_threshold=-1)
    onp.testing.assert_allclose(found[0, :, :2].asnumpy(), onp.array([[0, 0.2], [0, 0.7]]), rtol=1e-6)
    with pytest.raises(ValueError, match="`background_id` one of them, found 3 and 3"):
        npx.multibox_detection(scores, np.zeros((1, 8)), anchors, background_id=3)
    with pytest.raises(ValueError, match=r"`loc_pred` must be \(1, 8\), found \(1, 4\)"):
        npx.multibox_detection(scores, np.zeros((1, 4)), anchors)


def test_matching_takes_the_best_pair_first():
    scores = GENERATOR.uniform(size=(2, 5, 3))
    for is_ascend, threshold, topk in ((False, 0.2, -1), (True, 0.7, -1), (False, 0.0, 2)):
        columns, rows = npx.bipartite_matching(np.array(scores), is_ascend=is_ascend, threshold=threshold, topk=topk)
        for b in range(2):
            mine, theirs = onp.full(5, -1.0), onp.full(3, -1.0)
            order = sorted(onp.ndindex(5, 3), key=lambda at: scores[b][at] * (1 if is_ascend else -1))
            for i, j in order:
                good = scores[b, i, j] < threshold if is_ascend else scores[b, i, j] > threshold
                if good and mine[i] < 0 and theirs[j] < 0 and (topk < 0 or (mine >= 0).sum() < topk):
                    mine[i], theirs[j] = j, i
            onp.testing.assert_array_equal(columns[b].asnumpy(), mine)
            onp.testing.assert_array_equal(rows[b].asnumpy(), theirs)


def test_encoding_and_decoding_are_inverse():
    anchors, refs = boxes(1, 6), boxes(1, 3)
    samples, matches = onp.array([[1, 1, -1, 0, 1, 1.0]]), onp.array([[0, 2, 1, 1, 1, 2.0]])
    given = [np.array(x, dtype="float64") for x in (samples, matches, anchors, refs)]
    moves, masks = npx.box_encode(*given, np.zeros(4), np.array(VARIANCES, dtype="float64"))
    for k in range(6):
        counts = samples[0, k] > 0.5
        expected = encoded(anchors[0, k], refs[0, int(matches[0, k])]) if counts else onp.zeros(4)
        onp.testing.assert_allclose(moves[0, k].asnumpy(), expected, rtol=1e-10, atol=1e-12)
        assert masks[0, k].tolist() == [float(counts)] * 4
    back = npx.box_decode(moves, given[2], *VARIANCES, format="corner").asnumpy()[0]
    for k in range(6):
        expected = refs[0, int(matches[0, k])] if samples[0, k] > 0.5 else anchors[0, k]
        onp.testing.assert_allclose(back[k], expected, rtol=1e-12)
    clipped = npx.box_decode(np.full((1, 1, 4), 9.0), np.array([[[0.0, 0.0, 1.0, 1.0]]]), clip=0.5)
    onp.testing.assert_allclose((clipped[0, 0, 2] - clipped[0, 0, 0]).item(), math.exp(0.5), rtol=1e-6)
    check_numeric_gradient(lambda x: npx.box_decode(x, given[2], *VARIANCES, format="corner"), [moves.asnumpy()])


# ---- regions ----

ROIS = onp.array([[0, 0, 0, 4, 4], [1, 3.2, 1.7, 9.1, 6.3], [0, -2, -2, 20, 3], [1, 7, 7, 9, 9], [-1, 0, 0, 2, 2]])


def pooled(image, roi, size, scale):
    """Largest elements of the bins of one region of an image (c, h, w)."""
    left, top, right, bottom = (math.floor(x * scale + 0.5) for x in roi[1:])
    high, wide = max(bottom - top + 1, 1), max(right - left + 1, 1)
    out = onp.zeros((image.shape[0], *size))
    for i, j in onp.ndindex(*size):
        rows = range(max(top + i * high // size[0], 0), min(top - (-(i + 1) * high // size[0]), image.shape[1]))
        columns = range(max(left + j * wide // size[1], 0), min(left - (-(j + 1) * wide // size[1]), image.shape[2]))
        if rows and columns:
            out[:, i, j] = image[:, rows][:, :, columns].max(axis=(1, 2))
    return out


@pytest.mark.parametrize(("size", "scale"), [((2, 3), 1.0), ((3, 3), 0.5)])
def test_pooled_regions_are_those_of_the_loop(size, scale):
    data = GENERATOR.normal(size=(2, 3, 8, 9))
    found = npx.roi_pooling(np.array(data), np.array(ROIS), size, scale).asnumpy()
    for r, roi in enumerate(ROIS):
        expected = pooled(data[int(roi[0])], roi, size, scale) if roi[0] >= 0 else onp.zeros((3, *size))
        onp.testing.assert_array_equal(found[r], expected)
    check_numeric_gradient(lambda x: npx.roi_pooling(x, np.array(ROIS), size, scale), [data[:, :1]])


def value(plane, y, x):
    """The value between pixels of a plane (h, w), whose outermost pixels go on for one pixel."""
    height, width = plane.shape
    if not (-1 <= y <= height and -1 <= x <= width):
        return 0.0
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    rows, columns = onp.arange(height), onp.arange(width)
    return onp.maximum(0, 1 - abs(rows - y)) @ plane @ onp.maximum(0, 1 - abs(columns - x))


def aligned_means(data, roi, size, scale, ratio, by_position, is_aligned):
    left, top, right, bottom = roi[1:] * scale - (0.5 if is_aligned else 0)
    high, wide = bottom - top, right - left
    if not is_aligned:
        high, wide = max(high, 1), max(wide, 1)
    high, wide = high / size[0], wide / size[1]
    down = ratio if ratio > 0 else math.ceil(high)
    across = ratio if ratio > 0 else math.ceil(wide)
    bins = size[0] * size[1]
    out = onp.zeros((data.shape[0] // (bins if by_position else 1), *size))
    for c, i, j in onp.ndindex(*out.shape):
        plane = data[c * bins + i * size[1] + j if by_position else c]
        samples = [
            value(plane, top + (i + (a + 0.5) / down) * high, left + (j + (b + 0.5) / across) * wide)
            for a in range(down)
            for b in range(across)
        ]
        out[c, i, j] = onp.mean(samples)
    return out


@pytest.mark.parametrize(
    ("size", "scale", "ratio", "by_position", "is_aligned"),
    [
        ((2, 3), 1.0, -1, False, False),
        ((3, 3), 0.5, 2, False, False),
        ((2, 2), 0.7, -1, False, True),
        ((2, 2), 0.7, 3, True, True),
    ],
)
def test_aligned_regions_are_those_of_the_loop(size, scale, ratio, by_position, is_aligned):
    data = GENERATOR.normal(size=(2, 4, 8, 9))
    options = (size, scale, ratio, by_position, is_aligned)
    found = npx.roi_align(np.array(data), np.array(ROIS), *options)
    for r, roi in enumerate(ROIS):
        expected = aligned_means(data[int(roi[0])], roi, *options) if roi[0] >= 0 else 0
        onp.testing.assert_allclose(
            found[r].asnumpy(), onp.broadcast_to(expected, found[r].shape), rtol=1e-11, atol=1e-13
        )
    narrow = data if by_position else data[:, :1]
    check_numeric_gradient(lambda x: npx.roi_align(x, np.array(ROIS), *options), [narrow], rtol=1e-6, atol=1e-8)


def test_aligned_regions_are_linear_in_the_image():
    # The gradient of the gradient goes back through the same map: it is the map of the cotangent's cotangent.
    x, weights = np.array(GENERATOR.normal(size=(1, 1, 4, 4))), np.array(GENERATOR.normal(size=(1, 1, 2, 2)))
    rois = np.array([[0.0, 0.5, 0.5, 3.0, 3.5]])
    weights.attach_grad()
    x.attach_grad()
    with autograd.record():
        loss = (npx.roi_align(x, rois, (2, 2), 1.0) * weights).sum()
        dx = autograd.grad(loss, [x], create_graph=True)[0]
        other = (dx * x).sum()
    other.backward()
    onp.testing.assert_allclose(weights.grad.asnumpy(), npx.roi_align(x, rois, (2, 2), 1.0).asnumpy(), rtol=1e-12)


def test_regions_that_do_not_fit_are_refused():
    data = np.zeros((2, 4, 8, 9))
    for call in (npx.roi_pooling, npx.roi_align):
        with pytest.raises(ValueError, match=r"`rois` must be \(r, 5\)"):
            call(data, np.zeros((3, 4)), (2, 2), 1.0)
        with pytest.raises(ValueError, match="two positive numbers"):
            call(data, np.zeros((3, 5)), (2, 0), 1.0)
        with pytest.raises(IndexError, match="region 1 is of image 2, but there are 2 images"):
            call(data, np.array([[0, 0, 0, 1, 1], [2, 0, 0, 1, 1.0]]), (2, 2), 1.0).asnumpy()
    with pytest.raises(ValueError, match="4 channels are not a multiple of the 9 bins"):
        npx.roi_align(data, np.zeros((1, 5)), (3, 3), 1.0, position_sensitive=True)
    assert npx.roi_pooling(data, np.zeros((0, 5)), (2, 2), 1.0).shape == (0, 4, 2, 2)
