"""Loaders of images, and of images with rectangles, of `gluon.contrib.data.vision`, against Pillow and plain loops."""

import io

import numpy as onp
import pytest
from PIL import Image

import mxnet as mx
from mxnet import np, recordio
from mxnet.gluon.contrib.data.vision import (
    ImageBboxDataLoader,
    ImageDataLoader,
    create_bbox_augment,
    create_image_augment,
    dataloader,
)
from mxnet.gluon.data import batchify
from mxnet.gluon.data.vision import transforms

SIZES = [(12, 10), (9, 14), (8, 8), (11, 7), (10, 13)]  # height, width
BOXES = [[2, 5], [3, 6, 77]]  # headings: rows of 5 numbers, and rows of 6 behind one more number


@pytest.fixture(scope="module")
def pictures():
    generator = onp.random.default_rng(3)
    return [generator.integers(0, 256, (*size, 3), dtype="uint8") for size in SIZES]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, pictures):
    path = tmp_path_factory.mktemp("pictures")
    for number, picture in enumerate(pictures):
        Image.fromarray(picture).save(path / f"{number}.png")
    (path / "list.lst").write_text("".join(f"{n}\t{n * 10}\t{n}.png\n" for n in range(len(SIZES))))
    with recordio.MXIndexedRecordIO(str(path / "all.idx"), str(path / "all.rec"), "w") as record:
        for number, picture in enumerate(pictures):
            file = io.BytesIO()
            Image.fromarray(picture).save(file, "PNG")
            record.write_idx(number, recordio.pack(recordio.IRHeader(0, number * 10.0, number, 0), file.getvalue()))
    return path


def middle(picture, height, width):
    top, left = (picture.shape[0] - height) // 2, (picture.shape[1] - width) // 2
    return picture[top : top + height, left : left + width].transpose(2, 0, 1).astype("float32") / 255


@pytest.mark.parametrize("source", ["imglist", "path_imglist", "path_imgrec"])
def test_images_are_cut_out_of_the_middle_and_normalised(folder, pictures, source):
    given = {
        "imglist": [[n * 10, f"{n}.png"] for n in range(len(SIZES))],
        "path_imglist": "list.lst",
        "path_imgrec": str(folder / "all.rec"),
    }[source]
    loader = ImageDataLoader(2, (3, 6, 4), path_root=str(folder), mean=[0.5, 0.25, 0.0], std=2.0, **{source: given})
    batches = list(loader)
    assert len(loader) == len(batches) == 3
    images = onp.concatenate([images.asnumpy() for images, _ in batches])
    expected = (onp.stack([middle(p, 6, 4) for p in pictures]) - onp.array([0.5, 0.25, 0]).reshape(3, 1, 1)) / 2
    onp.testing.assert_allclose(images, expected, atol=1e-6)
    labels = onp.concatenate([labels.asnumpy() for _, labels in batches])
    assert labels.dtype == "float32"
    assert labels.tolist() == [0, 10, 20, 30, 40]


def test_true_means_the_statistics_of_imagenet():
    augment = create_image_augment((3, 2, 2), mean=True, std=True)
    grey = np.full((2, 2, 3), 255, dtype="uint8")
    expected = (1 - onp.array([0.485, 0.456, 0.406])) / onp.array([0.229, 0.224, 0.225])
    onp.testing.assert_allclose(augment(grey).asnumpy()[:, 0, 0], expected, rtol=1e-6)


@pytest.mark.parametrize("workers", [{"num_workers": 2}, {"num_workers": 2, "thread_pool": True}])
def test_workers_give_the_same_batches(folder, workers):
    arguments = {
        "batch_size": 2,
        "data_shape": (3, 6, 4),
        "path_imglist": "list.lst",
        "path_root": str(folder),
        "shuffle": True,
        "rand_crop": True,
        "rand_mirror": True,
        "brightness": 0.3,
    }
    np.random.seed(7)
    here = list(ImageDataLoader(**arguments))
    np.random.seed(7)
    there = list(ImageDataLoader(**arguments, **workers))
    for (image, label), (other, other_label) in zip(here, there, strict=True):
        assert (image == other).all()
        assert (label == other_label).all()


def test_every_change_of_images_gives_the_shape(folder):
    loader = ImageDataLoader(
        5,
        (3, 6, 4),
        path_imglist="list.lst",
        path_root=str(folder),
        resize=8,
        rand_crop=True,
        rand_resize=True,
        rand_mirror=True,
        brightness=0.1,
        contrast=0.1,
        saturation=0.1,
        hue=0.1,
        pca_noise=0.1,
        rand_gray=0.5,
        inter_method=10,
    )
    ((images, _),) = loader
    assert images.shape == (5, 3, 6, 4)
    assert bool(np.isfinite(images).all())
    assert float(images.std()) > 0.05


def test_parts_share_the_images(folder):
    labels = [
        label
        for part in range(2)
        for _, batch in ImageDataLoader(
            2, (3, 4, 4), path_imglist="list.lst", path_root=str(folder), num_parts=2, part_index=part
        )
        for label in batch.tolist()
    ]
    assert sorted(labels) == [0, 10, 20, 30, 40]


def test_labels_get_a_dtype_with_ones_own_batches_too(folder):
    for batchify_fn in (None, batchify.Group(batchify.Stack(), batchify.Stack())):
        loader = ImageDataLoader(
            5, (3, 4, 4), path_imglist="list.lst", path_root=str(folder), dtype="int32", batchify_fn=batchify_fn
        )
        ((_, labels),) = loader
        assert labels.dtype == "int32"
        assert labels.tolist() == [0, 10, 20, 30, 40]


def test_transforms_of_ones_own(folder):
    own = [transforms.Resize((5, 3)), transforms.ToTensor()]
    for given in (own, transforms.Compose(own)):
        loader = ImageDataLoader(5, (3, 1, 1), path_imglist="list.lst", path_root=str(folder), aug_list=given)
        ((images, _),) = loader
        assert images.shape == (5, 3, 3, 5)


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (create_image_augment, {"pca_noise": -1}, r"create_image_augment: `pca_noise` must be at least 0, found -1"),
        (create_image_augment, {"resize": -1}, r"create_image_augment: `resize` must be at least 0, found -1"),
        (create_image_augment, {"rand_gray": -0.5}, r"create_image_augment: `rand_gray` .* from 0 to 1, found -0\.5"),
        (create_bbox_augment, {"rand_gray": 2}, r"create_bbox_augment: `rand_gray` must be from 0 to 1, found 2"),
        (create_bbox_augment, {"rand_crop": -1}, r"create_bbox_augment: `rand_crop` must be from 0 to 1, found -1"),
        (create_bbox_augment, {"rand_pad": -1}, r"create_bbox_augment: `rand_pad` must be from 0 to 1, found -1"),
        (create_bbox_augment, {"pca_noise": -1}, r"create_bbox_augment: `pca_noise` must be at least 0, found -1"),
    ],
)
def test_amounts_out_of_range_are_refused(function, arguments, message):
    with pytest.raises(ValueError, match=message):
        function((3, 4, 4), **arguments)


@pytest.mark.parametrize("loader", [ImageDataLoader, ImageBboxDataLoader])
def test_wrong_parts_and_shapes_of_loaders(folder, loader):
    of_list = {"path_imglist": "list.lst", "path_root": str(folder)}
    name = loader.__name__
    for options, numbers in (
        ({"part_index": 7}, r"\(0\), found 7"),
        ({"num_parts": 2, "part_index": -1}, r".*found -1"),
    ):
        with pytest.raises(ValueError, match=rf"{name}: `part_index` must be from 0 to `num_parts` - 1 {numbers}"):
            loader(2, (3, 4, 4), **of_list, **options)
    with pytest.raises(ValueError, match=rf"{name}: `data_shape` must be \(3, height, width\), found \(4, 4\)"):
        loader(2, (4, 4), aug_list=transforms.ToTensor(), **of_list)


@pytest.mark.parametrize(
    ("function", "found"),
    [
        (lambda samples: (1, 2, 3), r"a pair of images and labels, found 3 parts"),
        (lambda samples: 5, r"a pair of images and labels, found int"),
        (lambda samples: (samples, [1, 2]), r"labels as an array, found list"),
    ],
)
def test_ones_own_batches_must_have_labels(folder, function, found):
    loader = ImageDataLoader(2, (3, 4, 4), path_imglist="list.lst", path_root=str(folder), batchify_fn=function)
    with pytest.raises(TypeError, match=f"ImageDataLoader: `batchify_fn` must return {found}"):
        next(iter(loader))


@pytest.mark.parametrize("start", [(onp.nan, 5), (2.9, 5), (2, 5.5), (onp.inf, 5)])
def test_lengths_in_labels_are_integers(start):
    with pytest.raises(ValueError, match=r"BboxLabelTransform: .*integer"):
        dataloader.BboxLabelTransform()(onp.zeros((10, 20, 3)), onp.array([*start, 7, 0, 0.5, 0.25, 1]))


def test_loader_resumes_in_the_middle(folder):
    loader = ImageDataLoader(2, (3, 4, 4), path_imglist="list.lst", path_root=str(folder), shuffle=True)
    batches = iter(loader)
    next(batches)
    state, rest = loader.state_dict(), [labels.tolist() for _, labels in batches]
    loader.load_state_dict(state)
    assert [labels.tolist() for _, labels in loader] == rest


def entry(number):
    heading = BOXES[number % 2]
    width = heading[1]
    rows = [[c, 0.25, 0.5, 0.75, 1.0, 9][:width] for c in range(number + 1)]
    return [[*heading, *(value for row in rows for value in row)], f"{number}.png"]


def test_rectangles_follow_their_images(folder):
    entries = [entry(number) for number in (0, 2, 4)]
    loader = ImageBboxDataLoader(3, (3, 8, 20), path_root=str(folder), imglist=entries)
    ((images, boxes),) = loader
    assert images.shape == (3, 3, 8, 20)
    expected = onp.full((3, 5, 5), -1, dtype="float32")
    for place, number in enumerate((0, 2, 4)):
        for row in range(number + 1):
            expected[place, row] = [5, 4, 15, 8, row]
    onp.testing.assert_allclose(boxes.asnumpy(), expected, rtol=1e-6)


def test_further_numbers_of_a_rectangle_stay_and_pixels_may_be_given(folder):
    rows = [2, 6, 1, 2.0, 3.0, 4.0, 6.0, 99]
    loader = ImageBboxDataLoader(
        1, (3, 24, 20), path_root=str(folder), imglist=[[rows, "0.png"]], coord_normalized=False, dtype="int32"
    )
    ((_, boxes),) = loader
    assert boxes.dtype == "int32"
    assert boxes.tolist() == [[[4, 6, 8, 12, 1, 99]]]


def test_random_changes_keep_rectangles_inside(folder):
    np.random.seed(5)
    entries = [entry(number) for number in (0, 2, 4)] * 4
    loader = ImageBboxDataLoader(
        4,
        (3, 8, 20),
        path_root=str(folder),
        imglist=entries,
        rand_crop=0.5,
        rand_pad=0.5,
        rand_gray=0.5,
        rand_mirror=True,
        brightness=0.1,
        pca_noise=0.1,
        mean=True,
        std=True,
        inter_method=10,
        num_workers=2,
        thread_pool=True,
    )
    for images, boxes in loader:
        assert images.shape == (4, 3, 8, 20)
        rows = boxes.asnumpy().reshape(-1, 5)
        rows = rows[rows[:, 4] >= 0]
        assert len(rows)
        assert (rows[:, :2] >= 0).all()
        assert (rows[:, 2:4] <= [20, 8]).all()
        assert (rows[:, :2] < rows[:, 2:4]).all()


@pytest.mark.parametrize(
    "label", [[], [2], [1, 5, 0, 0, 0, 1, 1], [2, 4, 0, 0, 0, 1], [2, 5], [2, 5, 0, 0, 0, 1], [9, 5, 0, 0, 0, 1, 1]]
)
def test_labels_of_another_form_are_refused(label):
    with pytest.raises(ValueError, match="BboxLabelTransform"):
        dataloader.BboxLabelTransform()(np.zeros((4, 4, 3)), onp.array(label))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, ValueError, "one of `path_imgrec`"),
        ({"imglist": [], "path_imgrec": "a"}, ValueError, "found 2"),
        ({"imglist": [[0, "0.png"]], "dtype": "uint8"}, ValueError, "`dtype`"),
        ({"imglist": [[0, "0.png"]], "aug_list": 3}, TypeError, "`aug_list`"),
        ({"imglist": [[0, "0.png"]], "aug_list": [], "resize": 3}, ValueError, "`aug_list` excludes"),
        ({"imglist": [[0, "0.png"]], "rand_resize": True}, ValueError, "`rand_resize` needs"),
        ({"imglist": [[0, "0.png"]], "data_shape": (1, 4, 4)}, ValueError, "`data_shape`"),
    ],
)
def test_wrong_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        ImageDataLoader(**{"batch_size": 1, "data_shape": (3, 4, 4), **arguments})


def test_box_augmenter_takes_a_half_precision_dtype():
    image, _ = create_bbox_augment((3, 4, 4), dtype="float16")(
        np.zeros((4, 6, 3), dtype="uint8"), onp.array([[0, 1, 2, 3]])
    )
    assert image.dtype == "float16"
    assert mx.gluon.contrib.data.vision.dataloader.create_bbox_augment is create_bbox_augment
