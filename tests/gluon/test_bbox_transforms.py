"""Transforms of images together with rectangles: pixels that carry their own coordinates say what moved where."""

import numpy as onp
import pytest

import mxnet as mx
from mxnet.gluon.contrib.data import vision
from mxnet.gluon.contrib.data.vision.transforms.bbox import utils

WIDTH, HEIGHT = 24, 16


@pytest.fixture(autouse=True)
def seed():
    mx.random.seed(5)


def coordinates():
    """An image whose channels are x and y of each pixel, counted from 1."""
    x, y = onp.meshgrid(onp.arange(1, WIDTH + 1), onp.arange(1, HEIGHT + 1))
    return mx.np.array(onp.stack([x, y], axis=2), dtype="int32")


BOXES = onp.array([[2, 3, 9, 8, 0], [10, 1, 20, 15, 1]])


def corners(image, boxes):
    """What lies at the first and at the last pixel of each rectangle."""
    pixels = image.asnumpy()
    return [
        (pixels[y0, x0].tolist(), pixels[y1 - 1, x1 - 1].tolist(), number) for x0, y0, x1, y1, number in boxes.tolist()
    ]


def test_flips_mirror_both():
    image, boxes = vision.ImageBboxRandomFlipLeftRight(p=1)(coordinates(), BOXES)
    for (first, last, number), (x0, y0, x1, y1, _) in zip(corners(image, boxes), BOXES.tolist(), strict=True):
        assert first == [x1, y0 + 1]
        assert last == [x0 + 1, y1]
        assert number in (0, 1)
    same, unmoved = vision.ImageBboxRandomFlipLeftRight(p=0)(coordinates(), mx.np.array(BOXES))
    assert (same == coordinates()).all()
    assert unmoved.tolist() == BOXES.tolist()
    assert utils.bbox_flip(BOXES, (WIDTH, HEIGHT), flip_y=True)[0].tolist() == [2, 8, 9, 13, 0]


def test_cuts_keep_rectangles_by_their_centres_if_asked():
    image, boxes = vision.ImageBboxCrop((4, 2, 10, 10), allow_outside_center=True)(coordinates(), BOXES)
    assert image.shape == (10, 10, 2)
    assert boxes.tolist() == [[0, 1, 5, 6, 0], [6, 0, 10, 10, 1]]
    assert corners(image, boxes)[0] == ([5, 4], [9, 8], 0)
    _, boxes = vision.ImageBboxCrop((4, 2, 10, 10))(coordinates(), BOXES)
    assert boxes.tolist() == [[0, 1, 5, 6, 0]]
    assert utils.bbox_crop(BOXES, (None, 2, None, 5)).tolist() == [[2, 1, 9, 5, 0], [10, 0, 20, 5, 1]]
    with pytest.raises(ValueError, match=r"\(20, 2, 10, 10\) is not within an image of 24 x 16"):
        vision.ImageBboxCrop((20, 2, 10, 10))(coordinates(), BOXES)
    with pytest.raises(ValueError, match="must be"):
        vision.ImageBboxCrop((20, 2))


def test_random_cuts_obey_their_constraints():
    num_cut = 0
    for _ in range(40):
        boxes, (x, y, width, height) = utils.bbox_random_crop_with_constraints(
            BOXES, (WIDTH, HEIGHT), min_scale=0.4, max_scale=0.9, constraints=[(0.2, None)]
        )
        assert len(boxes)
        assert 0 <= x <= x + width <= WIDTH
        assert 0 <= y <= y + height <= HEIGHT
        if (x, y, width, height) == (0, 0, WIDTH, HEIGHT):
            continue
        num_cut += 1
        assert 0.4 * WIDTH / 2**0.5 - 1 <= width <= WIDTH
        assert (utils.bbox_iou(BOXES, [[x, y, x + width, y + height]]) >= 0.2).all()
        assert boxes.tolist() == utils.bbox_crop(BOXES, (x, y, width, height), allow_outside_center=False).tolist()
    assert num_cut > 5
    image, boxes = vision.ImageBboxRandomCropWithConstraints(p=1)(coordinates(), BOXES)
    x, y = image[0, 0].tolist()
    assert boxes.tolist() == utils.bbox_crop(BOXES, (x - 1, y - 1, *image.shape[1::-1]), False).tolist()
    assert utils.bbox_random_crop_with_constraints(onp.zeros((0, 4)), (4, 4))[0].shape == (0, 4)


def test_expanded_images_carry_their_rectangles():
    sizes = set()
    for keep_ratio in (True, False):
        for _ in range(5):
            image, boxes = vision.ImageBboxRandomExpand(p=1, max_ratio=3, fill=(-1, -2), keep_ratio=keep_ratio)(
                coordinates(), BOXES
            )
            assert corners(image, boxes) == corners(coordinates(), BOXES)
            pixels = image.asnumpy()
            assert (pixels[..., 0] > 0).sum() == WIDTH * HEIGHT
            assert set(map(tuple, pixels[pixels[..., 0] < 0].tolist())) <= {(-1, -2)}
            sizes.add(image.shape)
            if keep_ratio:
                assert abs(image.shape[1] / WIDTH - image.shape[0] / HEIGHT) <= 1 / HEIGHT
    assert len(sizes) > 5
    with pytest.raises(ValueError, match="at least 1"):
        vision.ImageBboxRandomExpand(max_ratio=0.5)


def test_resized_images_carry_their_rectangles():
    pixels = onp.zeros((HEIGHT, WIDTH, 3), dtype="uint8")
    pixels[4:12, 6:12] = 200
    image, boxes = vision.ImageBboxResize(48, 8, interp=0)(pixels, onp.array([[6.0, 4.0, 12.0, 12.0]]))
    assert boxes.tolist() == [[12.0, 2.0, 24.0, 6.0]]
    bright = onp.argwhere(image.asnumpy()[..., 0] == 200)
    assert bright.min(axis=0).tolist() == [2, 12]
    assert (bright.max(axis=0) + 1).tolist() == [6, 24]
    for interp in (-1, 9):
        assert vision.ImageBboxResize(10, 10, interp)(pixels, BOXES)[0].shape == (10, 10, 3)
    with pytest.raises(ValueError, match="found 7"):
        vision.ImageBboxResize(10, 10, 7)


def test_overlaps_are_those_of_counted_pixels():
    a, b = BOXES[:, :4], onp.array([[0, 0, 24, 16], [5, 5, 12, 10], [0, 0, 0, 0]])

    def mask(box):
        x0, y0, x1, y1 = box
        cells = onp.zeros((HEIGHT, WIDTH), dtype=bool)
        cells[y0:y1, x0:x1] = True
        return cells

    for i, one in enumerate(a):
        for j, other in enumerate(b):
            union = (mask(one) | mask(other)).sum()
            assert utils.bbox_iou(a, b)[i, j] == (mask(one) & mask(other)).sum() / union
    assert utils.bbox_iou(b[2:], b[2:]).tolist() == [[0.0]]
    assert utils.bbox_iou([[0, 0, 1, 1]], [[0, 0, 1, 3]], offset=1).tolist() == [[0.5]]


def test_forms_of_rectangles_are_inverse():
    box = (3, 4, 9, 12)
    assert utils.bbox_xyxy_to_xywh(box) == (3, 4, 7, 9)
    assert utils.bbox_xywh_to_xyxy(utils.bbox_xyxy_to_xywh(box)) == box
    assert utils.bbox_xywh_to_xyxy(utils.bbox_xyxy_to_xywh(BOXES)).tolist() == BOXES.tolist()
    assert utils.bbox_clip_xyxy((-1, 2, 30, 30), WIDTH, HEIGHT) == (0, 2, 23, 15)
    assert utils.bbox_clip_xyxy([[-1, 2, 30, 30, 7]], WIDTH, HEIGHT).tolist() == [[0, 2, 23, 15, 7]]
    for function in (utils.bbox_xyxy_to_xywh, utils.bbox_xywh_to_xyxy, utils.bbox_crop):
        with pytest.raises(ValueError, match=r"must have shape \(n, 4 or more\), found \(3,\)"):
            function(onp.zeros(3))


def test_transforms_work_in_loaders():
    samples = [(coordinates(), BOXES) for _ in range(4)]
    flip = vision.ImageBboxRandomFlipLeftRight(p=1)
    dataset = mx.gluon.data.SimpleDataset(samples).transform(lambda image, boxes: flip(image, boxes))
    images, boxes = next(iter(mx.gluon.data.DataLoader(dataset, 4)))
    assert images.shape == (4, HEIGHT, WIDTH, 2)
    assert boxes.shape == (4, 2, 5)
    assert boxes[0, 0].tolist() == [15, 3, 22, 8, 0]
