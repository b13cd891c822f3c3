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
    unknown = struct.pack("<QQQ", 0x112, 0, 1) + array_bytes(onp.ones(2, "float32"), 2, storage=3)
    path.write_bytes(unknown)
    with pytest.raises(mx.error.FileFormatError, match="storage 3"):
        npx.load(path)
    path.write_bytes(list_bytes([onp.ones(2, "float32")], []))
    with pytest.raises(mx.error.FileFormatError, match="its arrays have no names"):
        net.load_parameters(path)
    path.write_bytes(list_bytes([onp.ones(2, "float32")], ["a", "b"]))
    with pytest.raises(mx.error.FileFormatError, match="1 arrays and 2 names"):
        npx.load(path)


# What `mx.nd.save` of MXNet 2.0.0b1 wrote, after the head of the list and without the names: rows 1 and 3 of five, and
# elements (0, 0), (2, 2), (2, 1) of three rows and four columns.
ROWS = bytes.fromhex(
    "c9fa93f901000000020000000200000000000000020000000000000002000000050000000000000002000000000000000100000000000000"
    "000000000600000001000000020000000000000000"
    "00803f0000004000004040000080400100000000000000"
    "0300000000000000"
)
CSR = bytes.fromhex(
    "c9fa93f902000000010000000300000000000000020000000300000000000000040000000000000001000000000000000000000006000000"
    "010000000400000000000000060000000100000003000000000000000000803f000000400000404000000000000000000100000000000000"
    "01000000000000000300000000000000000000000000000002000000000000000100000000000000"
)


def sparse_file(*arrays, names=()):
    out = struct.pack("<QQQ", 0x112, 0, len(arrays)) + b"".join(arrays) + struct.pack("<Q", len(names))
    return out + b"".join(struct.pack("<Q", len(name)) + name.encode() for name in names)


def test_sparse_arrays_are_read(tmp_path):
    path = tmp_path / "sparse.params"
    path.write_bytes(sparse_file(ROWS, CSR))
    rows, csr = npx.load(path)
    assert (rows.format, csr.format) == ("row_sparse", "csr")
    assert rows.todense().tolist() == [[0, 0], [1, 2], [0, 0], [3, 4], [0, 0]]
    assert csr.todense().tolist() == [[1, 0, 0, 0], [0, 0, 0, 0], [0, 3, 2, 0]]


def test_networks_take_sparse_arrays_as_dense_ones(tmp_path):
    path = tmp_path / "sparse.params"
    path.write_bytes(sparse_file(ROWS, names=["arg:weight"]))
    net = gluon.nn.Embedding(5, 2)
    net.load_parameters(path)
    assert net.weight.data().tolist() == [[0, 0], [1, 2], [0, 0], [3, 4], [0, 0]]


def test_damaged_sparse_arrays_are_refused(tmp_path):
    path = tmp_path / "sparse.params"
    for whole in (ROWS, CSR):
        for length in range(len(whole)):
            path.write_bytes(sparse_file(whole)[: 24 + length])
            with pytest.raises(mx.error.FileFormatError):
                npx.load(path)
    # A row behind the last one, a size below 0.
    for old, new in ((struct.pack("<q", 3), struct.pack("<q", 5)), (struct.pack("<q", 5), struct.pack("<q", -5))):
        place = ROWS.rindex(old)
        path.write_bytes(sparse_file(ROWS[:place] + new + ROWS[place + 8 :]))
        with pytest.raises(mx.error.FileFormatError):
            npx.load(path)


@pytest.mark.parametrize(
    ("mode", "make"),
    [
        ("lstm", lambda **kw: gluon.rnn.LSTM(4, **kw)),
        ("gru", lambda **kw: gluon.rnn.GRU(4, **kw)),
        ("rnn_tanh", lambda **kw: gluon.rnn.RNN(4, activation="tanh", **kw)),
    ],
)
@pytest.mark.parametrize("directions", [1, 2])
def test_packed_vectors_of_recurrent_layers_are_cut(tmp_path, mode, make, directions):
    layer = make(num_layers=2, bidirectional=directions == 2)
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Identity(), layer)
    size = sum(
        gates * 4 * (sizes + 4 + 2) * directions
        for gates in ({"lstm": 4, "gru": 3, "rnn_tanh": 1}[mode],)
        for sizes in (3, 4 * directions)
    )
    vector = onp.random.default_rng(2).normal(size=size).astype("float32")
    path = tmp_path / "net.params"
    path.write_bytes(list_bytes([vector], ["1.rnn_param"]))
    net.load_parameters(path)
    x = np.random.normal(size=(5, 2, 3))
    states = [np.zeros((2 * directions, 2, 4))] * (2 if mode == "lstm" else 1)
    expected = npx.rnn(
        x, np.array(vector), *states, mode=mode, state_size=4, num_layers=2, bidirectional=directions == 2
    )
    assert (net(x) == expected).all()
    twin = make(num_layers=2, bidirectional=directions == 2)
    twin.load_dict({"rnn_param": np.array(vector)})
    assert (twin(x) == expected).all()
    with pytest.raises(ValueError, match=r"'rnn_param': .*fits no input size"):
        make().load_dict({"rnn_param": np.ones(7)})
    path.write_bytes(list_bytes([vector[:7]], ["1.rnn_param"]))
    with pytest.raises(ValueError, match=r"net\.params'?, '1\.rnn_param': .*fits no input size"):
        net.load_parameters(path)


def test_pickled_states_are_refused():
    with pytest.raises(mx.error.FileFormatError, match="pickled"):
        mx.optimizer.get_updater(mx.optimizer.SGD()).set_states(b"\x80\x04N.")


def test_saved_files_keep_their_names(tmp_path):
    npx.save(tmp_path / "a", np.ones(2))
    npx.savez(tmp_path / "b", x=np.ones(3))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
    assert npx.load(tmp_path / "a").tolist() == [1, 1]
    assert npx.load(tmp_path / "b")["x"].tolist() == [1, 1, 1]
