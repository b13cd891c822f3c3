"""Files from elsewhere."""

import hashlib

import pytest

import mxnet as mx
from mxnet.error import FileFormatError
from mxnet.gluon import utils


def source(folder, content=b"content"):
    file = folder / "weights.bin"
    file.write_bytes(content)
    return file.as_uri(), hashlib.sha1(content).hexdigest()


def test_files_are_fetched_once(tmp_path, monkeypatch):
    (tmp_path / "there").mkdir()
    url, digest = source(tmp_path / "there")
    monkeypatch.chdir(tmp_path)
    assert utils.download(url, sha1_hash=digest) == "weights.bin"
    assert (tmp_path / "weights.bin").read_bytes() == b"content"
    (tmp_path / "weights.bin").write_bytes(b"changed")
    utils.download(url)
    assert (tmp_path / "weights.bin").read_bytes() == b"changed"
    utils.download(url, sha1_hash=digest)
    assert (tmp_path / "weights.bin").read_bytes() == b"content"
    assert utils.download(url, tmp_path / "new" / "name") == str(tmp_path / "new" / "name")
    assert utils.download(url, tmp_path / "new") == str(tmp_path / "new" / "weights.bin")
    (tmp_path / "weights.bin").write_bytes(b"changed")
    utils.download(url, overwrite=True)
    assert utils.check_sha1(tmp_path / "weights.bin", digest.upper())


def test_failures_leave_what_was_there(tmp_path):
    (tmp_path / "there").mkdir()
    url, _ = source(tmp_path / "there")
    target = tmp_path / "weights.bin"
    target.write_bytes(b"before")
    with pytest.raises(FileFormatError, match="has not the checksum 00"):
        utils.download(url, target, sha1_hash="00", retries=1)
    with pytest.raises(OSError, match="missing"):
        utils.download((tmp_path / "missing").as_uri(), target, overwrite=True, retries=0)
    assert target.read_bytes() == b"before" and len(list(tmp_path.iterdir())) == 2
    with pytest.raises(ValueError, match="names no file"):
        utils.download("file:///")
    with pytest.raises(ValueError, match="`retries` must not be negative, found -1"):
        utils.download(url, target, retries=-1)


def test_files_are_renamed(tmp_path):
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_text("a")
    second.write_text("b")
    utils.replace_file(first, second)
    assert second.read_text() == "a" and not first.exists()


def test_shapes_are_known():
    assert [utils.shape_is_known(shape) for shape in (None, (), (2, 3), (2, -1))] == [False, True, True, False]


def test_helpers_of_metrics():
    metric = mx.gluon.metric
    labels, preds = metric.check_label_shapes(mx.np.ones(2), mx.np.ones(2), wrap=True)
    assert isinstance(labels, list) and isinstance(preds, list)
    with pytest.raises(ValueError, match="2 labels for 1 predictions"):
        metric.check_label_shapes([mx.np.ones(2)] * 2, [mx.np.ones(2)])
    with pytest.raises(ValueError, match=r"\(2,\) do not fit predictions of shape \(3,\)"):
        metric.check_label_shapes(mx.np.ones(2), mx.np.ones(3), shape=True)
    assert metric.one_hot(mx.np.array([0, 2]), 3).tolist() == [[1, 0, 0], [0, 0, 1]]
    assert metric.predict_with_threshold(mx.np.array([0.2, 0.7])).tolist() == [0, 1]
    by_category = metric.predict_with_threshold(mx.np.array([[0.2, 0.7]]), mx.np.array([0.1, 0.8]))
    assert by_category.tolist() == [[1, 0]]
