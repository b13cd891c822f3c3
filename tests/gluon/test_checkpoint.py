"""Parameter files: what is written can be read, what is wrong is named, nothing is left half done."""

import json
import struct

import numpy as onp
import pytest

import mxnet as mx
from mxnet._atomic_file import write_atomically
from mxnet.error import FileFormatError
from mxnet.gluon import nn
from mxnet.gluon._checkpoint import load_arrays, save_arrays


def network(units=3):
    net = nn.HybridSequential()
    net.add(nn.Dense(4, in_units=2), nn.BatchNorm(in_channels=4), nn.Dense(units, in_units=4))
    return net


@pytest.fixture
def saved(tmp_path):
    net = network()
    net.initialize(mx.init.Normal(1.0))
    file = tmp_path / "net.safetensors"
    net.save_parameters(file)
    return net, file


def test_loaded_network_computes_the_same(saved):
    net, file = saved
    again = network()
    again.load_parameters(file)
    x = mx.np.array([[1.0, 2.0], [3.0, -4.0]])
    assert again(x).asnumpy().tolist() == net(x).asnumpy().tolist()


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int8", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
)
def test_every_dtype_survives(tmp_path, dtype):
    values = mx.np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype)
    save_arrays(tmp_path / "a", {"x": values, "empty": mx.np.zeros((0, 2), dtype=dtype)}, {})
    loaded = load_arrays(tmp_path / "a")
    assert sorted(loaded) == ["empty", "x"]
    assert str(loaded["x"].dtype) == dtype
    assert loaded["x"].astype("float32").asnumpy().tolist() == [[0, 1, 1], [1, 0, 1]]
    assert loaded["empty"].shape == (0, 2)


def test_file_is_laid_out_as_the_format_says(saved):
    net, file = saved
    data = file.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    entry = header["0.weight"]
    assert entry["dtype"] == "F32"
    assert entry["shape"] == [4, 2]
    start, end = entry["data_offsets"]
    stored = onp.frombuffer(data[8 + length + start : 8 + length + end], "<f4").reshape(4, 2)
    assert stored.tolist() == net[0].weight.data().asnumpy().tolist()


def test_every_truncation_is_found(saved):
    _, file = saved
    data = file.read_bytes()
    for size in {0, 1, 7, 8, 20, len(data) // 2, len(data) - 1}:
        file.write_bytes(data[:size])
        with pytest.raises(FileFormatError, match="safetensors"):
            network().load_parameters(file)


@pytest.mark.parametrize(
    "content",
    [
        b"PK\x03\x04" + bytes(100),
        b"\x80\x04\x95" + bytes(50),
        struct.pack("<Q", 2) + b"[]",
        struct.pack("<Q", 4) + b"nope",
        struct.pack("<Q", 2**60) + bytes(10),
    ],
)
def test_foreign_files_are_refused(tmp_path, content):
    file = tmp_path / "foreign"
    file.write_bytes(content)
    with pytest.raises(FileFormatError):
        network().load_parameters(file)


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F99", "shape": [1], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [-1], "data_offsets": [0, -4]},
        {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]},
        {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
        {"dtype": "F32"},
        17,
    ],
)
def test_damaged_headers_are_refused(tmp_path, entry):
    header = json.dumps({"x": entry}).encode()
    file = tmp_path / "damaged"
    file.write_bytes(struct.pack("<Q", len(header)) + header + bytes(4))
    with pytest.raises(FileFormatError, match="damaged"):
        load_arrays(file)


def test_missing_file_stays_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        network().load_parameters(tmp_path / "nothing")


def test_a_file_of_a_part_names_the_part_that_can_load_it(saved, tmp_path):
    net, file = saved
    whole = nn.HybridSequential()
    whole.add(nn.Dense(2, in_units=2), network())
    with pytest.raises(
        ValueError, match=r"lacks '1.0.weight'.*\n  hint: its names are those of the block's `1`, which"
    ):
        whole.load_parameters(file)
    whole[1].load_parameters(file)
    whole[0].initialize()
    whole.save_parameters(tmp_path / "whole")
    part = network()
    with pytest.raises(ValueError, match=r"lacks '1.gamma'.*\n  hint: its names begin with '1\.'; give the arrays wit"):
        part.load_parameters(tmp_path / "whole")
    arrays = mx.npx.load(tmp_path / "whole")
    part.load_dict({name.removeprefix("1."): x for name, x in arrays.items() if name.startswith("1.")})
    x = mx.np.array([[1.0, 2.0], [3.0, -4.0]])
    assert part(x).tolist() == net(x).tolist()


def test_missing_and_extra_parameters_are_named(saved):
    _, file = saved
    larger = network()
    larger.add(nn.Dense(1, in_units=3))
    with pytest.raises(ValueError, match=r"lacks '3.weight', '3.bias'"):
        larger.load_parameters(file)
    larger.initialize()
    larger.load_parameters(file, allow_missing=True)
    smaller = nn.HybridSequential()
    smaller.add(nn.Dense(4, in_units=2))
    with pytest.raises(ValueError, match=r"has '1.gamma'.*HybridSequential has not"):
        smaller.load_parameters(file)
    smaller.load_parameters(file, ignore_extra=True)


def test_another_shape_is_named_and_changes_nothing(saved):
    _, file = saved
    other = network(units=5)
    other.initialize(mx.init.One())
    with pytest.raises(ValueError, match=r"'2.weight': shape \(3, 4\) does not fit .* \(5, 4\)"):
        other.load_parameters(file)
    assert (other[0].weight.data().asnumpy() == 1).all()


def test_another_dtype_needs_permission(saved):
    net, file = saved
    other = network()
    other.initialize()
    other.cast("float64")
    with pytest.raises(TypeError, match="dtype float32 is not the parameter's dtype float64"):
        other.load_parameters(file)
    other.load_parameters(file, cast_dtype=True)
    assert other[0].weight.data().dtype == onp.float64
    other.load_parameters(file, cast_dtype=True, dtype_source="saved")
    assert other[0].weight.data().dtype == onp.float32
    assert other[0].weight.data().asnumpy().tolist() == net[0].weight.data().asnumpy().tolist()


def test_deduplicated_file_loads_into_shared_parameters(tmp_path):
    shared = nn.Dense(2, in_units=2)
    net = nn.HybridSequential()
    net.add(shared, shared)
    net.initialize()
    net.save_parameters(tmp_path / "once", deduplicate=True)
    assert sorted(load_arrays(tmp_path / "once")) == ["0.bias", "0.weight"]
    net.load_parameters(tmp_path / "once")
    net.save_parameters(tmp_path / "twice")
    assert len(load_arrays(tmp_path / "twice")) == 4


def test_uninitialized_network_is_not_saved(tmp_path):
    file = tmp_path / "net"
    file.write_bytes(b"old")
    with pytest.raises(RuntimeError, match="not initialized"):
        network().save_parameters(file)
    assert file.read_bytes() == b"old"


def test_failing_write_leaves_the_old_file_alone(tmp_path):
    file = tmp_path / "net"
    file.write_bytes(b"old")

    def fail(name):
        with open(name, "wb") as opened:
            opened.write(b"half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_atomically(file, fail)
    assert file.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["net"]


def test_load_dict_takes_arrays():
    net = nn.Dense(1, in_units=2)
    net.load_dict({"weight": mx.np.array([[1.0, 2.0]]), "bias": mx.np.array([3.0])})
    assert net(mx.np.array([[1.0, 1.0]])).item() == 6


def test_structure_is_saved_and_compared(saved, tmp_path):
    net, _ = saved
    net.save(tmp_path / "whole")
    again = network()
    again.load(tmp_path / "whole")
    assert again[0].weight.data().asnumpy().tolist() == net[0].weight.data().asnumpy().tolist()
    other = nn.HybridSequential()
    other.add(nn.Dense(4, in_units=2), nn.LayerNorm(in_channels=4), nn.Dense(3, in_units=4))
    with pytest.raises(ValueError, match="class of '1' in the network should be BatchNorm, found LayerNorm"):
        other.load(tmp_path / "whole")
    (tmp_path / "whole-model.json").write_text("[]")
    with pytest.raises(FileFormatError, match="no description"):
        again.load(tmp_path / "whole")
