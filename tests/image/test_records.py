"""Images in record files."""

import numpy as onp
import pytest

import mxnet as mx
from mxnet import recordio
from mxnet.gluon.data import DataLoader, vision
from mxnet.image import _imencode


def picture(number):
    return onp.full((6, 8, 3), 10 * number, "uint8")


@pytest.fixture
def path(tmp_path):
    path = str(tmp_path / "a")
    record = recordio.MXIndexedRecordIO(path + ".idx", path + ".rec", "w")
    for number in range(4):
        header = recordio.IRHeader(0, float(number), number, 0)
        record.write_idx(number, recordio.pack(header, _imencode(picture(number), 3, ".png")))
    record.close()
    return path + ".rec"


def test_samples_are_images_and_labels(path):
    dataset = vision.ImageRecordDataset(path)
    assert len(dataset) == 4
    for number, (image, label) in enumerate(dataset):
        assert label == number
        assert (image.asnumpy() == picture(number)).all()
    assert vision.ImageRecordDataset(path, flag=0)[1][0].shape == (6, 8, 1)
    assert vision.ImageRecordDataset(path, transform=lambda image, label: label + 1)[1] == 2


def test_batches_are_the_samples_stacked(path):
    dataset = vision.ImageRecordDataset(path).transform_first(vision.transforms.ToTensor())
    [(images, labels)] = list(DataLoader(dataset, 4))
    assert labels.tolist() == [0, 1, 2, 3]
    expected = onp.stack([picture(number).transpose(2, 0, 1) / 255 for number in range(4)])
    onp.testing.assert_allclose(images.asnumpy(), expected, rtol=1e-6)


def test_packed_images_come_back(path):
    # Records hold red first; `pack_img` and `unpack_img` have blue first.
    pixels = onp.random.RandomState(0).randint(0, 256, (5, 7, 3)).astype("uint8")
    packed = recordio.pack_img(recordio.IRHeader(0, 1.0, 0, 0), pixels, 3, ".png")
    header, found = recordio.unpack_img(packed)
    assert header.label == 1.0
    assert (onp.asarray(found) == pixels).all()
    _, data = recordio.unpack(packed)
    assert (mx.image.imdecode(data).asnumpy() == pixels[..., ::-1]).all()
