"""Overlaps of boxes and non-maximum suppression."""

import numpy as onp
import pytest

from mxnet import autograd, np, npx


def iou(a, b):
    """Slow reference for two boxes by corners."""
    width = max(0.0, min(a[2], b[2]) - max(a[0], b[0]))
    height = max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
    union = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - width * height
    return width * height / union if union > 0 else 0.0


def boxes(*shape, seed=0):
    rng = onp.random.default_rng(seed)
    near = rng.uniform(0, 1, (*shape, 2))
    return onp.concatenate([near, near + rng.uniform(0.1, 0.8, (*shape, 2))], axis=-1)


def centred(corners):
    return onp.concatenate([(corners[..., :2] + corners[..., 2:]) / 2, corners[..., 2:] - corners[..., :2]], axis=-1)


def test_overlaps_of_all_pairs():
    a, b = boxes(3, 2), boxes(4, seed=1)
    found = npx.box_iou(np.array(a, dtype="float64"), np.array(b, dtype="float64"))
    assert found.shape == (3, 2, 4)
    want = [[[iou(x, y) for y in b] for x in row] for row in a]
    assert onp.allclose(found.asnumpy(), want, rtol=1e-12)
    by_centres = npx.box_iou(
        np.array(centred(a), dtype="float64"), np.array(centred(b), dtype="float64"), format="center"
    )
    assert onp.allclose(by_centres.asnumpy(), want, rtol=1e-9)


def test_boxes_without_area_overlap_nothing_and_have_gradients():
    x = np.array([[0.5, 0.5, 0.5, 0.5], [0.0, 0.0, 1.0, 1.0]])
    x.attach_grad()
    with autograd.record():
        y = npx.box_iou(x, x)
    y.backward()
    assert y.tolist() == [[0, 0], [0, 1]]
    assert onp.isfinite(x.grad.asnumpy()).all()
    with pytest.raises(ValueError, match=r"(?s)`rhs` .*rhs: shape \(3, 5\)"):
        npx.box_iou(x, np.zeros((3, 5)))
    with pytest.raises(ValueError, match="'corners'"):
        npx.box_iou(x, x, format="corners")


def suppressed(rows, overlap=0.5, valid=0.0, topk=-1, ids=False, background=-1, force=False):
    """Slow reference: rows of (id, score, four corners)."""
    order = sorted((i for i in range(len(rows)) if rows[i][1] > valid), key=lambda i: -rows[i][1])
    if ids and background >= 0:
        order = [i for i in order if rows[i][0] != background]
    order = order[:topk] if topk > 0 else order
    kept = []
    for i in order:
        rivals = (j for j in kept if force or not ids or rows[j][0] == rows[i][0])
        if all(iou(rows[j][2:], rows[i][2:]) <= overlap for j in rivals):
            kept.append(i)
    return [rows[i].tolist() for i in kept] + [[-1.0] * 6] * (len(rows) - len(kept))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"overlap": 0.2},
        {"valid": 0.4},
        {"topk": 5},
        {"ids": True},
        {"ids": True, "background": 1, "overlap": 0.1},
        {"ids": True, "force": True, "overlap": 0.1},
    ],
)
def test_suppression_is_that_of_the_loop(options):
    rng = onp.random.default_rng(3)
    data = onp.concatenate([rng.integers(0, 3, (2, 12, 1)), rng.uniform(0, 1, (2, 12, 1)), boxes(2, 12)], axis=-1)
    want = [suppressed(rows, **options) for rows in data]
    found = npx.box_nms(
        np.array(data, dtype="float64"),
        overlap_thresh=options.get("overlap", 0.5),
        valid_thresh=options.get("valid", 0),
        topk=options.get("topk", -1),
        id_index=0 if options.get("ids") else -1,
        background_id=options.get("background", -1),
        force_suppress=options.get("force", False),
    )
    assert found.tolist() == want


def test_suppression_converts_formats_and_keeps_leading_axes():
    corners = boxes(2, 3, 5)
    scores = onp.random.default_rng(1).uniform(0.1, 1, (2, 3, 5, 1))
    by_corners = onp.concatenate([scores, corners], axis=-1)
    by_centres = onp.concatenate([scores, centred(corners)], axis=-1)
    places = {"coord_start": 1, "score_index": 0}
    want = npx.box_nms(np.array(by_corners, dtype="float64"), **places).asnumpy()
    found = npx.box_nms(np.array(by_centres, dtype="float64"), in_format="center", **places)
    assert found.shape == (2, 3, 5, 5)
    assert onp.allclose(found.asnumpy(), want, atol=1e-12)
    back = npx.box_nms(np.array(by_corners, dtype="float64"), out_format="center", **places).asnumpy()
    kept = want[..., 0] >= 0
    assert onp.allclose(back[kept][:, 1:], centred(want[kept][:, 1:]))
    assert (back[~kept] == -1).all()


def test_suppression_of_one_row_of_no_boxes_and_gradients():
    assert npx.box_nms(np.zeros((0, 6))).shape == (0, 6)
    x = np.array([[0, 0.6, 0, 0, 1, 1], [0, 0.9, 0, 0, 1, 1], [0, 0.3, 5, 5, 6, 6]], dtype="float64")
    x.attach_grad()
    with autograd.record():
        y = npx.box_nms(x)
        total = (y * np.array([[1.0], [10.0], [100.0]])).sum()
    total.backward()
    assert y[:, 1].tolist() == [0.9, 0.3, -1]
    assert x.grad[:, 0].tolist() == [0, 1, 10]
    with pytest.raises(ValueError, match="`coord_start` is 3, but 4 elements from there on exceed the 6 elements"):
        npx.box_nms(x, coord_start=3)
    with pytest.raises(ValueError, match="two axes"):
        npx.box_nms(np.zeros((6,)))
    with pytest.raises(ValueError, match="'corners'"):
        npx.box_nms(x, out_format="corners")
