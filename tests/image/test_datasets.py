"""Datasets of image files, and batches of them on the engine's threads."""

import numpy as onp
import pytest

import mxnet as mx
from mxnet.gluon.data import DataLoader, vision
from mxnet.image import _imencode

T = vision.transforms


def picture(number, height, width):
    rows, columns = onp.mgrid[:height, :width]
    return onp.stack([rows + number, columns * 2, 100 + rows - columns], -1).clip(0, 255).astype("uint8")


@pytest.fixture
def folder(tmp_path):
    """Two classes of three images of different size, and a file that is none."""
    for label, name in enumerate(["cat", "dog"]):
        (tmp_path / name).mkdir()
        for i in range(3):
            pixels = picture(10 * label + i, 40 + 4 * i, 50 - 3 * i)
            ending, quality = ((".png", 3), (".jpg", 95))[i % 2]
            (tmp_path / name / f"{i}{ending}").write_bytes(_imencode(pixels, quality, ending))
    return tmp_path


def test_folders_are_classes(folder):
    dataset = vision.ImageFolderDataset(folder)
    assert dataset.synsets == ["cat", "dog"]
    assert [label for _, label in dataset] == [0, 0, 0, 1, 1, 1]
    assert (dataset[3][0].asnumpy() == picture(10, 40, 50)).all()
    assert vision.ImageFolderDataset(folder, flag=0)[0][0].shape == (40, 50, 1)


def test_other_files_are_left_out_with_a_warning(folder):
    (folder / "cat" / "notes.txt").write_text("no image")
    with pytest.warns(UserWarning, match=r"'\.txt'"):
        assert len(vision.ImageFolderDataset(folder)) == 6


def test_lists_name_files_and_labels(folder):
    (folder / "list.txt").write_text("0\t1.5\tcat/0.png\n1\t2\t3\tdog/2.png\n")
    dataset = vision.ImageListDataset(folder, "list.txt")
    assert dataset[0][1] == 1.5
    assert dataset[1][1].tolist() == [2, 3]
    same = vision.ImageListDataset(folder, [[1.5, "cat/0.png"], [[2, 3], "dog/2.png"]])
    assert (same[1][0].asnumpy() == dataset[1][0].asnumpy()).all()
    assert same[1][1].tolist() == [2, 3]


def test_bad_lists_are_named(folder):
    with pytest.raises(ValueError, match="entry 1 of `imglist`"):
        vision.ImageListDataset(folder, [[1, "a.png"], ["b.png"]])
    (folder / "list.txt").write_text("0\tone\tcat/0.png\n")
    with pytest.raises(ValueError, match="line 1: labels must be numbers"):
        vision.ImageListDataset(folder, "list.txt")
    with pytest.raises(ValueError, match="found None"):
        vision.ImageListDataset(folder)


CHAINS = {
    "resize": [T.Resize((24, 20)), T.ToTensor()],
    "ratio": [T.Resize(30, keep_ratio=True), T.CenterCrop(24), T.ToTensor(), T.Normalize(0.5, 0.25)],
    "crop": [T.CropResize(3, 2, 30, 31, 16), T.ToTensor(), T.Normalize((0.1, 0.2, 0.3), (0.4, 0.5, 0.6))],
    "flips": [T.CenterCrop(30), T.RandomFlipLeftRight(), T.RandomFlipTopBottom(0.3), T.ToTensor()],
}


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("num_workers", [0, 2])
def test_batches_are_the_samples_stacked(folder, name, num_workers, monkeypatch):
    dataset = vision.ImageFolderDataset(folder).transform_first(T.Compose(CHAINS[name]))
    mx.random.seed(4)
    [(expected, _)] = DataLoader(dataset, 6, try_nopython=False)
    calls = []
    made = mx._core.image_batch
    monkeypatch.setattr(mx._core, "image_batch", lambda *args: calls.append(len(args[0])) or made(*args))
    mx.random.seed(4)
    batches = list(DataLoader(dataset, 6, num_workers=num_workers, thread_pool=True, try_nopython=True))
    assert calls == [6]
    [(images, labels)] = batches
    assert labels.tolist() == [0, 0, 0, 1, 1, 1]
    # One level of 255, divided by the smallest deviation, where images are resized.
    limit = 1.01 / 255 / 0.25 if name != "flips" else 1e-7
    assert onp.abs(images.asnumpy() - expected.asnumpy()).max() <= limit


def test_other_transforms_are_done_one_by_one(folder):
    class Own(T.ToTensor):
        def forward(self, x, *args):
            return super().forward(x, *args) * 0

    dataset = vision.ImageFolderDataset(folder).transform_first(T.Compose([T.CenterCrop(8), Own()]))
    [(images, _)] = list(DataLoader(dataset, 6))
    assert images.shape == (6, 3, 8, 8)
    assert not images.asnumpy().any()


def test_shapes_that_differ_are_named(folder):
    dataset = vision.ImageFolderDataset(folder).transform_first(T.ToTensor())
    with pytest.raises(ValueError, match=r"\[3, 40, 50\] of image 0 and \[3, 44, 47\] of image 1"):
        list(DataLoader(dataset, 6))


def test_damaged_files_are_named(folder):
    path = folder / "cat" / "1.jpg"
    path.write_bytes(path.read_bytes()[:200])
    dataset = vision.ImageFolderDataset(folder).transform_first(T.Compose([T.CenterCrop(8), T.ToTensor()]))
    with pytest.raises(OSError, match=r"image 1: the JPEG image is truncated after 200 bytes") as caught:
        list(DataLoader(dataset, 6))
    assert caught.value.__notes__ == ["while building a batch of the samples [0, 1, 2, 3, 4, 5]"]
