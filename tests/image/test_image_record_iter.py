"""Batches of image records: order, runs, labels, changes of images, their oracles and errors."""

import colorsys
import itertools
import logging

import numpy as onp
import pytest

import mxnet as mx
from mxnet import io, recordio
from mxnet.error import FileFormatError
from mxnet.io._image_augmentation import hls_to_rgb, rgb_to_hls, warp

NUM, H, W = 10, 12, 16


def pictures(channels=3):
    return onp.random.RandomState(5).randint(0, 256, (NUM, H, W, channels)).astype("uint8")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A record file whose labels are the numbers of the images, with an index."""
    path = str(tmp_path_factory.mktemp("records") / "images")
    with recordio.MXIndexedRecordIO(path + ".idx", path + ".rec", "w") as record:
        for i, picture in enumerate(pictures()):
            header = recordio.IRHeader(0, float(i), i, 0)
            record.write_idx(i, recordio.pack_img(header, picture[..., ::-1], 1, ".png"))
    return path


def iterator(path, batch_size=4, shape=(3, H, W), **kwargs):
    return io.ImageRecordIter(shape, batch_size, path_imgrec=path + ".rec", verbose=False, **kwargs)


def labels_of(batches):
    return [y.astype(int).tolist() for _, y in batches]


def run_of(batches):
    return [label for batch in labels_of(batches) for label in batch]


def test_images_and_labels_are_those_of_the_records(path):
    batches = iterator(path, round_batch=False)
    assert [d.shape for d in batches.provide_data + batches.provide_label] == [(4, 3, H, W), (4,)]
    assert len(batches) == 3
    expected = pictures().transpose(0, 3, 1, 2).astype("float32")
    for _ in range(2):
        pads, data = [], []
        for x, _ in batches:
            pads.append(batches.getpad())
            data.append(x.asnumpy())
        assert pads == [0, 0, 2]
        onp.testing.assert_array_equal(onp.concatenate(data)[:NUM], expected)
        assert not data[-1][2:].any()


@pytest.mark.parametrize("index", [True, False])
def test_round_batches_begin_the_next_run_behind_what_they_took(path, index):
    batches = iterator(path, path_imgidx=path + ".idx" if index else "")
    found = [(batches.getpad(), y.astype(int).tolist()) for _, y in batches]
    assert found == [(0, [0, 1, 2, 3]), (0, [4, 5, 6, 7]), (2, [8, 9, 0, 1])]
    assert len(batches) == 2
    assert labels_of(batches) == [[2, 3, 4, 5], [6, 7, 8, 9]]
    assert labels_of(batches)[0] == [0, 1, 2, 3]
    # Going back in the middle begins at the first sample.
    next(batches)
    batches.reset()
    assert labels_of(batches)[0] == [0, 1, 2, 3]
    assert labels_of(iterator(path, 23))[0] == [i % NUM for i in range(23)]


def test_orders_are_random_and_follow_from_the_seed(path):
    def runs(**kwargs):
        batches = iterator(path, 5, **kwargs)
        return [run_of(batches) for _ in range(3)]

    found = runs(shuffle=True, seed=3)
    assert all(sorted(run) == list(range(NUM)) for run in found)
    assert len({tuple(run) for run in found}) == 3
    assert found == runs(shuffle=True, seed=3)
    assert found != runs(shuffle=True, seed=4)


def test_groups_of_neighbours_stay_together(tmp_path):
    name = str(tmp_path / "large.rec")
    noise = onp.random.RandomState(6).randint(0, 256, (9, 300, 500, 3)).astype("uint8")
    with recordio.MXRecordIO(name, "w") as record:
        for i, picture in enumerate(noise):
            record.write(recordio.pack_img(recordio.IRHeader(0, i, i, 0), picture, 0, ".png"))

    def run(**kwargs):
        shape = (3, 8, 8)
        batches = io.ImageRecordIter(shape, 9, path_imgrec=name, shuffle_chunk_size=1, verbose=False, **kwargs)
        return labels_of(batches)[0]

    # An image takes 0.43 MiB: records 0 to 2, 3 and 4, 5 and 6, 7 and 8 begin in one MiB each.
    groups = [[0, 1, 2], [3, 4], [5, 6], [7, 8]]
    orders = [run(shuffle_chunk_seed=seed) for seed in range(6)]
    assert len({tuple(order) for order in orders}) > 1
    for order in [*orders, run(shuffle=True)]:
        taken = [next(i for i, group in enumerate(groups) if n in group) for n in order]
        assert sorted(order) == list(range(9))
        assert sum(a != b for a, b in zip(taken, taken[1:], strict=False)) == 3
    assert all([n for n in order if n in group] == group for order in orders for group in groups)


def test_parts_are_disjoint(path):
    parts = [iterator(path, 1, num_parts=3, part_index=i) for i in range(3)]
    assert [run_of(part) for part in parts] == [[0, 1, 2, 3], [4, 5, 6], [7, 8, 9]]


def test_labels_of_a_list_and_several_labels(path, tmp_path):
    name = tmp_path / "images.lst"
    name.write_text("".join(f"{i}\t{i + 0.5}\t{-i}\tany name.png\n" for i in range(NUM)))
    batches = iterator(path, 5, path_imglist=name, label_width=2)
    assert batches.provide_label[0].shape == (5, 2)
    assert next(batches)[1].tolist() == [[i + 0.5, -i] for i in range(5)]
    name.write_text("0\t1\tx\n")
    with pytest.raises(FileFormatError, match=r"record 1 \(id 1\) is not in the list"):
        next(iterator(path, path_imglist=name))
    name.write_text("0\t1\tx\none\t1\ty\n")
    with pytest.raises(FileFormatError, match=r"images\.lst: line 2 must be"):
        iterator(path, path_imglist=name)
    with pytest.raises(FileFormatError, match=r"record 0 \(id 0\) has 1 labels, but `label_width` is 3"):
        next(iterator(path, label_width=3))


def test_normalisation_is_its_formula(path):
    means, deviations = {"mean_r": 10, "mean_g": 20, "mean_b": 30}, {"std_r": 2, "std_g": 3, "std_b": 4}
    x, _ = next(iterator(path, **means, **deviations, scale=0.5, mirror=True))
    expected = pictures()[:4, :, ::-1].transpose(0, 3, 1, 2).astype("float64")
    column = onp.array([10, 20, 30]).reshape(3, 1, 1)
    expected = (expected - column) * 0.5 / onp.array([2, 3, 4]).reshape(3, 1, 1)
    onp.testing.assert_allclose(x, expected, rtol=1e-6)
    x, _ = next(iterator(path, max_random_contrast=0.2, max_random_illumination=10, seed_aug=1))
    for found, original in zip(x.asnumpy(), pictures(), strict=False):
        factor, offset = onp.polyfit(original.transpose(2, 0, 1).ravel(), found.ravel(), 1)
        assert 0.8 <= factor <= 1.2
        assert abs(offset) <= 10
        assert (factor, offset) != pytest.approx((1, 0))


def test_mean_images_are_made_once(path, tmp_path):
    name = tmp_path / "mean.safetensors"
    expected = pictures().transpose(0, 3, 1, 2).mean(0, keepdims=True)
    for _ in range(2):
        x, _ = next(iterator(path, NUM, mean_img=name))
        # The mean of NUM levels and the difference round, in float32.
        wanted = pictures().transpose(0, 3, 1, 2) - expected
        onp.testing.assert_allclose(x.asnumpy(), wanted, rtol=0, atol=(NUM + 1) * 2.0**-24 * 255)
        # The second time it is read.
        mx.npx.save(name, {"mean_img": mx.npx.load(name)["mean_img"]})
    with pytest.raises(FileFormatError, match=r"`mean_img` of shape \(3, 4, 4\)"):
        iterator(path, shape=(3, 4, 4), mean_img=name)


@pytest.mark.parametrize(("dtype", "name"), [("uint8", "uint8"), ("float16", "float16"), ("bfloat16", "bfloat16")])
def test_dtypes_are_those_of_the_images(path, dtype, name):
    x, y = next(iterator(path, dtype=dtype))
    assert (str(x.dtype), str(y.dtype)) == (name, "float32")
    expected = pictures()[:4].transpose(0, 3, 1, 2)
    tolerance = 1 if dtype == "bfloat16" else 0
    onp.testing.assert_allclose(x.astype("float32"), expected, atol=tolerance)


def test_grey_images(path):
    x, _ = next(iterator(path, shape=(1, H, W)))
    grey = mx.image.imdecode(recordio.unpack(recordio.MXRecordIO(path + ".rec", "r").read())[1], flag=0)
    onp.testing.assert_array_equal(x[0], grey.asnumpy().transpose(2, 0, 1))


def test_cuts_are_parts_of_the_image(path):
    x, _ = next(iterator(path, shape=(3, 6, 8)))
    onp.testing.assert_array_equal(x[1], pictures()[1, 3:9, 4:12].transpose(2, 0, 1))
    places = set()
    batches = iterator(path, NUM, shape=(3, 6, 8), rand_crop=True)
    for x, _ in itertools.chain(batches, batches, batches):
        for found, original in zip(x.asnumpy(), pictures(), strict=True):
            views = onp.lib.stride_tricks.sliding_window_view(original, (6, 8), (0, 1))
            hits = onp.argwhere((views == found).all((2, 3, 4)))
            assert len(hits) == 1
            places.add(tuple(hits[0]))
    assert len(places) > 10


def test_sizes_and_padding(path):
    # 12 x 16 is resized to 24 x 32, and its middle is taken.
    x, _ = next(iterator(path, shape=(3, 24, 24), resize=24))
    large = mx.image.imresize(mx.np.array(pictures()[0]), 32, 24).asnumpy()
    onp.testing.assert_array_equal(x[0], large[:, 4:28].transpose(2, 0, 1))
    # Too small images are enlarged.
    assert next(iterator(path, shape=(3, 20, 10)))[0].shape == (4, 3, 20, 10)
    x, _ = next(iterator(path, shape=(3, H + 4, W + 4), pad=2, fill_value=7))
    assert (x[0, :, 2:-2, 2:-2].asnumpy() == pictures()[0].transpose(2, 0, 1)).all()
    assert (x[0, :, :2] == 7).all()
    for kwargs in (
        {"random_resized_crop": True, "min_random_area": 0.3, "max_aspect_ratio": 0.3},
        {"max_crop_size": 8, "min_crop_size": 5},
    ):
        batches = iterator(path, NUM, shape=(3, 7, 9), **kwargs)
        assert len({x.asnumpy().tobytes() for x, _ in itertools.chain(batches, batches, batches)}) == 3


@pytest.mark.parametrize("threads", [1, 3])
def test_changes_follow_from_the_seed_whatever_the_threads(path, threads):
    kwargs = {
        "rand_crop": True, "rand_mirror": True, "max_rotate_angle": 20, "max_shear_ratio": 0.1, "max_aspect_ratio": 0.2,
        "min_random_scale": 0.9, "max_random_scale": 1.4, "brightness": 0.2, "contrast": 0.2, "saturation": 0.2,
        "pca_noise": 0.1, "random_h": 10, "random_s": 20, "random_l": 20, "inter_method": 10, "resize": 20,
    }  # fmt: skip
    first, again, other = (
        [x.asnumpy() for x, _ in iterator(path, shape=(3, 8, 8), preprocess_threads=n, seed_aug=seed, **kwargs)]
        for n, seed in ((2, 1), (threads, 1), (2, 2))
    )
    onp.testing.assert_array_equal(first, again)
    assert not onp.array_equal(first, other)
    assert onp.isfinite(first).all()
    assert onp.min(first) >= 0
    assert onp.max(first) <= 255


def test_turning_a_quarter_is_exact(path):
    for interp in (0, 1):
        x, _ = next(iterator(path, shape=(3, 8, 8), rotate=90, inter_method=interp))
        # The frame stays; its middle square is that of the image, turned.
        turned = onp.rot90(pictures()[0][2:10, 4:12], 1)
        onp.testing.assert_array_equal(x[0], turned.transpose(2, 0, 1))


def test_warps_are_their_formula():
    rng = onp.random.RandomState(8)
    pixels, matrix = rng.rand(5, 6, 2).astype("float32"), onp.array([[1.2, 0.3], [-0.4, 0.9]])
    found = warp(pixels, matrix, 7, 4, 0.25, is_nearest=False)
    back = onp.linalg.inv(matrix)

    def at(row, column):
        inside = 0 <= row < 5 and 0 <= column < 6
        return pixels[int(row), int(column)] if inside else onp.float32(0.25)

    for i in range(7):
        for j in range(4):
            column, row = back @ (j - 1.5, i - 3) + (2.5, 2)
            # A value far outside is that of the frame.
            expected = 0.0
            for near_row in (onp.floor(row), onp.floor(row) + 1):
                for near_column in (onp.floor(column), onp.floor(column) + 1):
                    weight = (1 - abs(row - near_row)) * (1 - abs(column - near_column))
                    expected = expected + weight * at(near_row, near_column)
            onp.testing.assert_allclose(found[i, j], expected * onp.ones(2), atol=1e-6)


def test_hues_are_those_of_the_standard_library():
    colours = onp.concatenate([onp.random.RandomState(9).rand(50, 3), onp.eye(3), onp.zeros((1, 3)), onp.ones((1, 3))])
    found = rgb_to_hls(colours)
    expected = onp.array([colorsys.rgb_to_hls(*colour) for colour in colours]) * (360, 1, 1)
    onp.testing.assert_allclose(found, expected, atol=1e-9)
    onp.testing.assert_allclose(hls_to_rgb(found), colours, atol=1e-12)


# Roundings of a few float32 operations on numbers up to 510.
ROUNDINGS = 4 * 510 * 2**-24


def brightness_changes_by_a_factor(old, new):
    factor = new[new < 255].sum() / old[new < 255].sum()
    return onp.allclose(onp.minimum(old * factor, 255), new, rtol=0, atol=ROUNDINGS)


def luminance_stays(old, new):
    inside = ((new > 0) & (new < 255)).all(-1)  # elsewhere a channel was clipped
    return inside.any() and abs((new - old)[inside] @ [0.299, 0.587, 0.114]).max() < ROUNDINGS


@pytest.mark.parametrize(
    ("kwargs", "check"),
    [
        ({"brightness": 0.3}, brightness_changes_by_a_factor),
        ({"saturation": 0.5}, luminance_stays),
        (
            {"random_h": 30},
            lambda a, b: onp.allclose(a.max(-1) + a.min(-1), b.max(-1) + b.min(-1), rtol=0, atol=ROUNDINGS),
        ),
        (
            {"pca_noise": 0.5},
            lambda a, b: len(onp.unique(onp.round((b - a)[(b > 0).all(-1) & (b < 255).all(-1)], 2), axis=0)) < 6,
        ),
    ],
    ids=["brightness", "saturation", "hue", "noise"],
)
def test_colours_change_as_named(path, kwargs, check):
    x, _ = next(iterator(path, **kwargs))
    for found, original in zip(x.asnumpy().transpose(0, 2, 3, 1), pictures().astype("float64"), strict=False):
        assert not onp.array_equal(found, original)
        assert check(original, found)


def test_images_are_counted_in_the_log(path, caplog):
    with caplog.at_level(logging.INFO):
        io.ImageRecordIter((3, 4, 4), 2, path_imgrec=path + ".rec")
    assert "10 images" in caplog.text


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"shape": (2, 4, 4)}, r"`data_shape` must be .* found \(2, 4, 4\)"),
        ({"shape": (3, 4)}, r"`data_shape` must be .* found \(3, 4\)"),
        ({"batch_size": 0}, r"`batch_size` must be at least 1, found 0"),
        ({"aug_seq": "aug_other"}, r"`aug_seq` must be 'aug_default', found 'aug_other'"),
        ({"label_width": 0}, r"`label_width` must be at least 1, found 0"),
        ({"preprocess_threads": 0}, r"`preprocess_threads` must be at least 1, found 0"),
        ({"pad": -1}, r"`pad` must be at least 0, found -1"),
        ({"part_index": 2, "num_parts": 2}, r"`part_index` .* found 2"),
        ({"num_parts": 12, "part_index": 11}, r"`num_parts` must be at most .* \(10\), found 12"),
        ({"std_g": 0}, r"deviations must not be 0"),
        ({"max_aspect_ratio": 1.5}, r"aspect ratios must be positive .* 1\.5"),
        ({"min_random_scale": 2}, r"`min_random_scale` and `max_random_scale` .* found 2 and 1"),
        ({"max_random_area": 2}, r"`min_random_area` and `max_random_area` .* found 1 and 2"),
        ({"max_crop_size": 3}, r"`min_crop_size` and `max_crop_size` .* found -1 and 3"),
        ({"inter_method": 7}, r"`inter_method` .* found 7"),
        ({"ctx": "tpu"}, r"`ctx` must be one of .* 'tpu'"),
    ],
)
def test_bad_arguments_are_named(path, kwargs, message):
    with pytest.raises(ValueError, match=f"ImageRecordIter: .*{message}"):
        iterator(path, **kwargs)


def test_bad_files_are_named(path, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.rec"):
        io.ImageRecordIter((3, 4, 4), 2, path_imgrec=str(tmp_path / "none.rec"))
    (tmp_path / "empty.rec").write_bytes(b"")
    with pytest.raises(FileFormatError, match=r"empty\.rec: there are no records"):
        io.ImageRecordIter((3, 4, 4), 2, path_imgrec=str(tmp_path / "empty.rec"))
    with recordio.MXRecordIO(str(tmp_path / "text.rec"), "w") as record:
        record.write(recordio.pack(recordio.IRHeader(0, 1.0, 5, 0), b"no image"))
    with pytest.raises(OSError, match="neither a JPEG nor a PNG") as caught:
        next(io.ImageRecordIter((3, 4, 4), 1, path_imgrec=str(tmp_path / "text.rec"), verbose=False))
    assert "record 0 (id 5)" in str(caught.value.__notes__)
    with pytest.raises(ValueError, match=r"a square of side 14 .* 12 x 16"):
        next(iterator(path, max_crop_size=14, min_crop_size=14))
    with pytest.raises(FileFormatError, match="has 3 channels, but `data_shape` asks for 4"):
        next(iterator(path, shape=(4, 4, 4)))
