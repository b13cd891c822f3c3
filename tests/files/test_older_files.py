"""Parameter files of MXNet 1.x and 2.x, written out byte by byte, and the names of files that are written."""

import struct

import ml_dtypes
import numpy as onp
import pytest

import mxnet as mx
from mxnet import gluon, np, npx

FLAGS = {"float32": 0, "float64": 1, "float16": 2, "uint8": 3, "int32": 4, "int8": 5, "int64": 6, "bool": 7}


def array_bytes(x, version, storage=0):
    flag = 12 if x.dtype == ml_dtypes.bfloat16 else FLAGS[x.dtype.name]
    if version >= 2:
        head = struct.pack("<Ii", {2: 0xF993FAC9, 3: 0xF993FACA}[version], storage)
        head += struct.pack("<i", x.ndim) + struct.pack(f"<{x.ndim}q", *x.shape)
    elif version == 1:
        head = struct.pack("<II", 0xF993FAC8, x.ndim) + struct.pack(f"<{x.ndim}q", *x.shape)
    else:
        head = struct.pack("<I", x.ndim) + struct.pack(f"<{x.ndim}I", *x.shape)
    return head + struct.pack("<iii", 1, 0, flag) + x.tobytes()


def list_bytes(arrays, names, version=2):
    out = struct.pack("<QQQ", 0x112, 0, len(arrays)) + b"".join(array_bytes(x, version) for x in arrays)
    out += struct.pack("<Q", len(names))
    return out + b"".join(struct.pack("<Q", len(name)) + name.encode() for name in names)


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_lists_of_every_version_are_read(tmp_path, version):
    arrays = [onp.arange(6).astype(name).reshape(2, 3) for name in FLAGS] + [onp.array([1.5], ml_dtypes.bfloat16)]
    names = [*FLAGS, "bfloat16"]
    (tmp_path / "a.params").write_bytes(list_bytes(arrays, names, version))
    found = npx.load(tmp_path / "a.params")
    assert list(found) == names
    for (name, mine), theirs in zip(found.items(), arrays, strict=True):
        assert str(mine.dtype) in (name, f"dtype({name})")
        assert mine.astype("float32").tolist() == theirs.astype("float32").tolist()
    (tmp_path / "b.params").write_bytes(list_bytes(arrays[:2], [], version))
    assert [x.shape for x in npx.load(tmp_path / "b.params")] == [(2, 3), (2, 3)]


@pytest.mark.parametrize("prefix", ["", "arg:"])
def test_networks_read_them(tmp_path, prefix):
    weight, bias = onp.arange(6, dtype="float32").reshape(2, 3), onp.array([7, 8], "float32")
    path = tmp_path / "net-0001.params"
    path.write_bytes(list_bytes([weight, bias], [prefix + "weight", prefix.replace("arg", "aux") + "bias"]))
    net = gluon.nn.Dense(2, in_units=3)
    net.load_parameters(path)
    assert net.weight.data().tolist() == weight.tolist()
    assert net.bias.data().tolist() == [7, 8]


def test_networks_read_npz_archives(tmp_path):
    weight, bias = onp.arange(6, dtype="float32").reshape(2, 3), onp.array([7, 8], "float32")
    with (tmp_path / "net.params").open("wb") as file:
        onp.savez(file, weight=weight, bias=bias)
    net = gluon.nn.Dense(2, in_units=3)
    net.load_parameters(tmp_path / "net.params")
    assert net.weight.data().tolist() == weight.tolist()


def test_damaged_files_are_refused(tmp_path):
    whole = list_bytes([onp.ones((2, 3), "float32")], ["weight"])
    path = tmp_path / "x.params"
    net = gluon.nn.Dense(2, in_units=3, use_bias=False)
    for length in range(8, len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(mx.error.FileFormatError, match="truncated"):
            net.load_parameters(path)
    sparse = struct.pack("<QQQ", 0x112, 0, 1) + array_bytes(onp.ones(2, "float32"), 2, storage=1)
    path.write_bytes(sparse)
    with pytest.raises(mx.error.FileFormatError, match="storage 1"):
        npx.load(path)
    path.write_bytes(list_bytes([onp.ones(2, "float32")], []))
    with pytest.raises(mx.error.FileFormatError, match="its arrays have no names"):
        net.load_parameters(path)
    path.write_bytes(list_bytes([onp.ones(2, "float32")], ["a", "b"]))
    with pytest.raises(mx.error.FileFormatError, match="1 arrays and 2 names"):
        npx.load(path)


def test_saved_files_keep_their_names(tmp_path):
    npx.save(tmp_path / "a", np.ones(2))
    npx.savez(tmp_path / "b", x=np.ones(3))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
    assert npx.load(tmp_path / "a").tolist() == [1, 1]
    assert npx.load(tmp_path / "b")["x"].tolist() == [1, 1, 1]
