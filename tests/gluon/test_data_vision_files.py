"""MNIST and CIFAR from small files in the original formats."""

import gzip
import io
import tarfile

import numpy as onp
import pytest

import mxnet as mx
from mxnet._idx_file import read_idx
from mxnet.error import FileFormatError
from mxnet.gluon.data import DataLoader
from mxnet.gluon.data.vision import CIFAR10, CIFAR100, MNIST, FashionMNIST, transforms
from mxnet.gluon.model_zoo.text import bert_base
from mxnet.gluon.model_zoo.vision import get_model

RANDOM = onp.random.default_rng(3)
IMAGES = RANDOM.integers(0, 256, (7, 28, 28)).astype("uint8")
LABELS = RANDOM.integers(0, 10, 7).astype("uint8")


def idx_bytes(array, code=8):
    lengths = b"".join(length.to_bytes(4, "big") for length in array.shape)
    return bytes([0, 0, code, array.ndim]) + lengths + array.astype(array.dtype.newbyteorder(">")).tobytes()


def write_mnist(folder, part="train", compress=gzip.compress, images=IMAGES, labels=LABELS):
    ending = ".gz" if compress else ""
    for name, array in (("images-idx3", images), ("labels-idx1", labels)):
        content = idx_bytes(array)
        (folder / f"{part}-{name}-ubyte{ending}").write_bytes(compress(content) if compress else content)


@pytest.mark.parametrize(("code", "dtype"), [(8, "u1"), (9, "i1"), (11, "i2"), (12, "i4"), (13, "f4"), (14, "f8")])
def test_idx_types(tmp_path, code, dtype):
    array = onp.arange(-3, 3).reshape(2, 3).astype(dtype)
    path = tmp_path / "x"
    path.write_bytes(idx_bytes(array, code))
    found = read_idx(path)
    assert found.dtype == onp.dtype(dtype)
    assert (found == array).all()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "begins with nothing"),
        (b"\x00\x00\x07\x01" + bytes(4), "begins with 00 00 07 01"),
        (b"\x00\x00\x08\x02\x00\x00", "cut off in the lengths of its 2 axes"),
        (idx_bytes(LABELS)[:-1], r"shape \(7,\) needs 7 bytes, but 6 are there"),
        (idx_bytes(LABELS) + b"x", r"shape \(7,\) needs 7 bytes, but 8 are there"),
        (gzip.compress(idx_bytes(LABELS), mtime=0)[:-12], "damaged gzip file"),
    ],
)
def test_damaged_idx_files(tmp_path, content, message):
    path = tmp_path / "x"
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=message):
        read_idx(path)


@pytest.mark.parametrize("kind", [MNIST, FashionMNIST])
@pytest.mark.parametrize(("train", "part"), [(True, "train"), (False, "t10k")])
@pytest.mark.parametrize("compress", [gzip.compress, None])
def test_mnist(tmp_path, kind, train, part, compress):
    write_mnist(tmp_path, part, compress)
    dataset = kind(tmp_path, train)
    assert len(dataset) == 7
    image, label = dataset[3]
    assert isinstance(image, mx.np.ndarray)
    assert (image.shape, image.dtype, label.dtype, label) == ((28, 28, 1), onp.uint8, onp.int32, LABELS[3])
    assert (image.asnumpy()[..., 0] == IMAGES[3]).all()
    with pytest.raises(
        FileNotFoundError, match=f"no {'t10k' if train else 'train'}-images-idx3-ubyte.gz or .* in {tmp_path}"
    ):
        kind(tmp_path, not train)


def test_mnist_with_transforms(tmp_path):
    write_mnist(tmp_path)
    dataset = MNIST(str(tmp_path), transform=lambda image, label: (image.astype("float32"), label + 1))
    assert (dataset[2][0].dtype, dataset[2][1]) == (onp.float32, LABELS[2] + 1)
    batches = DataLoader(MNIST(tmp_path).transform_first(transforms.ToTensor()), 4, try_nopython=True)
    x, y = next(iter(batches))
    assert (x.asnumpy()[:, 0] == (IMAGES[:4].astype("float32") / onp.float32(255))).all()
    assert y.asnumpy().tolist() == LABELS[:4].tolist()


def test_mxnet_home_is_looked_in_by_default(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "nowhere")
    monkeypatch.setenv("MXNET_HOME", str(tmp_path))
    folder = tmp_path / "datasets" / "fashion-mnist"
    folder.mkdir(parents=True)
    write_mnist(folder)
    assert len(FashionMNIST()) == 7
    for dataset in (MNIST, CIFAR10, CIFAR100):
        with pytest.raises(FileNotFoundError, match=f"{tmp_path}/datasets/{dataset.__name__.lower()}: nothing is"):
            dataset()
    with pytest.raises(FileNotFoundError, match=f"alexnet.params .* in '{tmp_path}/models'"):
        get_model("alexnet", pretrained=True)
    with pytest.raises(FileNotFoundError, match=f"'{tmp_path}/models/bert-base.safetensors'"):
        bert_base(pretrained=True)


def test_home_folder_is_the_default(tmp_path, monkeypatch):
    monkeypatch.delenv("MXNET_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / ".mxnet" / "datasets" / "mnist"
    folder.mkdir(parents=True)
    write_mnist(folder)
    assert len(MNIST()) == 7
    with pytest.raises(FileNotFoundError, match=r"\.mxnet/datasets/fashion-mnist: nothing is downloaded"):
        FashionMNIST()
    with pytest.raises(FileNotFoundError, match=r"no data_batch_1\.bin or .*\.mxnet/datasets/cifar10: nothing"):
        CIFAR10()
    with pytest.raises(FileNotFoundError, match=r"no test\.bin or .*\.mxnet/datasets/cifar100: nothing"):
        CIFAR100(train=False)


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (IMAGES[:6], LABELS, "one for each of 6 images, found uint8, \\(7,\\)"),
        (IMAGES[0], LABELS, "uint8 with 3 axes, found uint8, \\(28, 28\\)"),
        (IMAGES, LABELS + 10, "labels must be from 0 to 9, found 1"),
    ],
)
def test_mnist_files_that_do_not_fit(tmp_path, images, labels, message):
    write_mnist(tmp_path, images=images, labels=labels)
    with pytest.raises(FileFormatError, match=message):
        MNIST(tmp_path)


def cifar_files(num_labels, names, num_classes):
    """Contents by name, and what the images and labels of all are."""
    files, images, labels = {}, [], []
    for name in names:
        image = RANDOM.integers(0, 256, (3, 32, 32, 3)).astype("uint8")
        label = onp.stack([RANDOM.integers(0, limit, 3) for limit in num_classes], axis=1).astype("uint8")
        assert label.shape == (3, num_labels)
        planes = [bytes([*label[n]]) + b"".join(image[n, :, :, c].tobytes() for c in range(3)) for n in range(3)]
        files[name] = b"".join(planes)
        images.append(image)
        labels.append(label)
    return files, onp.concatenate(images), onp.concatenate(labels)


def put(folder, files, way, archive, inner):
    if way == "archive":
        with tarfile.open(folder / archive, "w:gz") as opened:
            for name, content in files.items():
                member = tarfile.TarInfo(f"{inner}/{name}")
                member.size = len(content)
                opened.addfile(member, io.BytesIO(content))
        return
    target = folder / inner if way == "folder" else folder
    target.mkdir(exist_ok=True)
    for name, content in files.items():
        (target / name).write_bytes(content)


@pytest.mark.parametrize("way", ["archive", "folder", "flat"])
@pytest.mark.parametrize("train", [True, False])
def test_cifar10(tmp_path, way, train):
    names = [f"data_batch_{i}.bin" for i in range(1, 6)] if train else ["test_batch.bin"]
    files, images, labels = cifar_files(1, names, [10])
    put(tmp_path, files, way, "cifar-10-binary.tar.gz", "cifar-10-batches-bin")
    dataset = CIFAR10(tmp_path, train)
    assert len(dataset) == len(labels) == 3 * len(names)
    for n in (0, len(labels) - 1):
        image, label = dataset[n]
        assert (image.asnumpy() == images[n]).all()
        assert (label, label.dtype) == (labels[n, 0], onp.int32)


@pytest.mark.parametrize("way", ["archive", "folder", "flat"])
@pytest.mark.parametrize("fine_label", [True, False])
def test_cifar100(tmp_path, way, fine_label):
    files, images, labels = cifar_files(2, ["train.bin", "test.bin"], [20, 100])
    put(tmp_path, files, way, "cifar-100-binary.tar.gz", "cifar-100-binary")
    for train, part in ((True, slice(0, 3)), (False, slice(3, 6))):
        dataset = CIFAR100(tmp_path, fine_label, train)
        assert [int(label) for _, label in dataset] == labels[part, int(fine_label)].tolist()
        assert all((found.asnumpy() == image).all() for (found, _), image in zip(dataset, images[part], strict=True))


def test_damaged_cifar_files(tmp_path):
    (tmp_path / "train.bin").write_bytes(bytes(3074 + 5))
    with pytest.raises(FileFormatError, match=r"train\.bin: records have 3074 bytes, but the file has 3079"):
        CIFAR100(tmp_path)
    (tmp_path / "train.bin").write_bytes(b"\x14" + bytes(3073))
    with pytest.raises(FileFormatError, match="labels must be from 0 to 19, found 20"):
        CIFAR100(tmp_path)
    files, _, _ = cifar_files(1, ["data_batch_1.bin", "data_batch_3.bin"], [10])
    put(tmp_path, files, "archive", "cifar-10-binary.tar.gz", "cifar-10-batches-bin")
    with pytest.raises(
        FileFormatError, match=r"no data_batch_2\.bin, data_batch_4\.bin, data_batch_5\.bin in the archive"
    ):
        CIFAR10(tmp_path)
    archive = tmp_path / "cifar-10-binary.tar.gz"
    archive.write_bytes(archive.read_bytes()[:100])
    with pytest.raises(FileFormatError, match=r"cifar-10-binary\.tar\.gz: damaged archive"):
        CIFAR10(tmp_path)
    (tmp_path / "data_batch_1.bin").write_bytes(files["data_batch_1.bin"])
    with pytest.raises(FileNotFoundError, match=r"no data_batch_2\.bin in"):
        CIFAR10(tmp_path)
