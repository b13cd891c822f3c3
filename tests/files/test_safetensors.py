"""safetensors files: every dtype, whole or not at all, and nothing believed unchecked."""

import json
import os
import random
import signal
import stat
import struct
import subprocess
import sys
import time
import zipfile

import numpy as onp
import pytest

import mxnet as mx
from mxnet import _core, np, npx

DTYPES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
]


def bits(array):
    """What `==` would hide: NaN and the sign of zero too."""
    return array.dtype, array.shape, array.asnumpy().tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_comes_back_bit_for_bit(tmp_path, dtype):
    path = tmp_path / "a.safetensors"
    values = onp.array([0, 1, 1, 0, 1, 0])
    if dtype not in ("bool",) and not dtype.startswith("uint"):
        values = values * -3
    arrays = {"a": np.array(values, dtype=dtype), "empty": np.zeros((0, 3), dtype), "point": np.array(1, dtype=dtype)}
    if dtype in ("float16", "bfloat16", "float32", "float64"):
        arrays["special"] = np.array([float("nan"), float("inf"), -0.0, 1e-40], dtype=dtype)
    _core.save_safetensors(path, arrays)
    loaded, metadata = _core.load_safetensors(path)
    assert metadata == {}
    assert loaded.keys() == arrays.keys()
    for name in arrays:
        assert bits(loaded[name]) == bits(arrays[name])


def test_files_are_laid_out_as_the_format_says(tmp_path):
    path = tmp_path / "a.safetensors"
    arrays = {
        "bytes": np.array([1, 2, 3], dtype="uint8"),
        "turned": np.array(onp.arange(6, dtype="float32").reshape(2, 3)).T,
        'a "name" \\ \n \u00e4': np.array([1.5], dtype="float64"),
    }
    _core.save_safetensors(path, arrays, {"format": "pt", "epoch": "3"})
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    assert length % 8 == 0
    assert header.pop("__metadata__") == {"format": "pt", "epoch": "3"}
    assert header.keys() == arrays.keys()
    data = content[8 + length :]
    for name, entry in header.items():
        start, end = entry["data_offsets"]
        assert start % arrays[name].itemsize == 0
        found = onp.frombuffer(data[start:end], arrays[name].dtype).reshape(entry["shape"])
        assert found.tolist() == arrays[name].tolist()
    assert len(data) == max(entry["data_offsets"][1] for entry in header.values())
    loaded, metadata = _core.load_safetensors(path)
    assert metadata == {"format": "pt", "epoch": "3"}
    assert {k: v.tolist() for k, v in loaded.items()} == {k: v.tolist() for k, v in arrays.items()}


def test_equal_arrays_and_metadata_give_equal_bytes(tmp_path):
    path = tmp_path / "arrays"
    names = [f"key {i}" for i in range(8)]
    contents = set()
    for order in (names, names[::-1], names[3:] + names[:3]):
        _core.save_safetensors(path, {"b": np.ones(2), "a": np.zeros(3)}, {name: name.upper() for name in order})
        contents.add(path.read_bytes())
        arrays, metadata = _core.load_safetensors(path)
        assert list(arrays) == ["b", "a"]
        assert list(metadata.items()) == [(name, name.upper()) for name in names]
    assert len(contents) == 1
    _core.save_safetensors(path, {}, {"only": "metadata"})
    assert _core.load_safetensors(path) == ({}, {"only": "metadata"})


def test_an_empty_dict_is_a_file_too(tmp_path):
    _core.save_safetensors(tmp_path / "none", {})
    assert _core.load_safetensors(tmp_path / "none") == ({}, {})


def test_pending_work_is_waited_for_and_later_work_does_not_count(tmp_path):
    for mode in ("adaptive", "async", "sync"):
        with mx.engine.mode(mode):
            x = np.zeros((2_000_000,))
            for _ in range(5):
                x += 1
            _core.save_safetensors(str(tmp_path / "a"), {"x": x})
            x += 1
            found = _core.load_safetensors(tmp_path / "a")[0]["x"].asnumpy()
            assert (found == 5).all()


def test_what_the_format_cannot_hold_is_refused_and_the_old_file_stays(tmp_path):
    path = tmp_path / "a"
    _core.save_safetensors(path, {"x": np.ones((2,))})
    before = path.read_bytes()
    with pytest.raises(TypeError, match="`c` has dtype complex128"):
        _core.save_safetensors(path, {"c": np.array([1j], dtype="complex128")})
    with pytest.raises(ValueError, match="__metadata__"):
        _core.save_safetensors(path, {"__metadata__": np.ones((1,))})
    with pytest.raises(TypeError, match="'x' must be an ndarray, not 'list'"):
        _core.save_safetensors(path, {"x": [1.0]})
    with pytest.raises(TypeError, match="names of arrays must be str, not 'int'"):
        _core.save_safetensors(path, {1: np.ones((1,))})
    with pytest.raises(TypeError):
        _core.save_safetensors(path, {}, {"epoch": 3})
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a"]


def test_a_file_gives_back_what_was_saved_under_any_names(tmp_path):
    arrays = {"dense": np.ones(2), "ragged": mx.ragged.array([[1.0], []]), "sparse": mx.sparse.csr_array(np.eye(2))}

    def saved(x):
        npx.save(tmp_path / "a", x)
        return npx.load(tmp_path / "a")

    for x in arrays.values():
        assert type(saved(x)) is type(x)
        for name in ("", "list/0", "array"):
            found = saved({name: x})
            assert type(found) is dict and type(found[name]) is type(x)
    found = saved(list(arrays.values()))
    assert [type(x) for x in found] == [type(x) for x in arrays.values()]
    assert found[1].tolist() == [[1.0], []] and found[2].toarray().tolist() == [[1.0, 0.0], [0.0, 1.0]]
    with pytest.raises(TypeError, match="a list with 'str'"):
        npx.save(tmp_path / "a", [np.ones(2), "x"])


def test_files_that_cannot_be_opened_raise_pythons_own_classes(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        _core.load_safetensors(tmp_path / "missing")
    assert caught.value.filename == str(tmp_path / "missing")
    with pytest.raises(FileNotFoundError):
        _core.save_safetensors(tmp_path / "no folder" / "a", {})
    with pytest.raises(IsADirectoryError):
        _core.load_safetensors(tmp_path)


def sealed(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


ENTRY = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "has 0 bytes"),
        (b"abc", "has 3 bytes"),
        (struct.pack("<Q", 2**63) + b"{}", "should have 9223372036854775808 bytes, but 2 follow"),
        (struct.pack("<Q", 100) + b"{}", "should have 100 bytes, but 2 follow"),
        (sealed(b"not json!"), "its header is invalid"),
        (sealed(b"[1, 2]"), "its header is invalid"),
        (sealed(b'{"a": \xff}'), "its header is invalid"),
        (sealed({"a": {"dtype": "F32"}}), "its header is invalid"),
        (sealed({"a": {**ENTRY, "dtype": "Q7"}}, bytes(8)), "its header is invalid"),
        (sealed({"a": {**ENTRY, "shape": [-2]}}, bytes(8)), "its header is invalid"),
        (sealed({"a": {**ENTRY, "shape": [3]}}, bytes(8)), "its header is invalid"),
        (sealed({"a": {**ENTRY, "shape": [2**40, 2**40]}}, bytes(8)), "its header is invalid"),
        (sealed({"a": {**ENTRY, "data_offsets": [8, 0]}}, bytes(8)), "its header is invalid"),
        (sealed({"a": {**ENTRY, "data_offsets": [4, 12]}}, bytes(12)), "its header is invalid"),
        (sealed({"a": ENTRY, "b": ENTRY}, bytes(16)), "its header is invalid"),
        (sealed({"a": ENTRY}, bytes(7)), "truncated: its arrays take 8 bytes, but 7 follow"),
        (sealed({"a": ENTRY}, bytes(9)), "damaged: its arrays take 8 bytes, but 9 follow"),
        (sealed({"a": {**ENTRY, "dtype": "F8_E4M3", "shape": [8]}}, bytes(8)), "`a` of dtype F8_E4M3"),
        (sealed({"a": {**ENTRY, "dtype": "BOOL", "shape": [8]}}, b"\0\1\2\3\0\0\0\0"), "boolean values"),
        (b"PK\x03\x04" + bytes(50), "zip archive"),
        (b"\x93NUMPY\x01\x00" + bytes(50), "npy file"),
        (b"\x80\x04\x95" + bytes(50), "pickle"),
        (struct.pack("<QQ", 0x112, 0) + bytes(50), "MXNet 1"),
    ],
)
def test_damaged_and_foreign_files_are_refused_with_their_path(tmp_path, content, message):
    path = tmp_path / "odd.safetensors"
    path.write_bytes(content)
    with pytest.raises(mx.error.IOError, match=message) as caught:
        _core.load_safetensors(path)
    assert str(path) in str(caught.value)
    assert isinstance(caught.value, OSError)


@pytest.mark.parametrize("length", [0x112, 0x280, 0x480])
def test_headers_whose_length_looks_like_another_format_are_read(tmp_path, length):
    # The first bytes are those of an old parameter file and of pickles of protocols 2 and 4.
    header = json.dumps({"a": ENTRY}).encode().ljust(length)
    path = tmp_path / "a"
    path.write_bytes(struct.pack("<Q", length) + header + bytes(8))
    assert list(_core.load_safetensors(path)[0]) == ["a"]


def test_every_truncation_of_a_file_is_noticed(tmp_path):
    path = tmp_path / "a"
    _core.save_safetensors(path, {"x": np.ones((5,)), "y": np.ones((3,), "int8")})
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(mx.error.IOError):
            _core.load_safetensors(path)


def test_random_damage_never_does_more_than_raise(tmp_path):
    path = tmp_path / "a"
    _core.save_safetensors(path, {"x": np.ones((5,)), "y": np.ones((3,), "int8")}, {"k": "v"})
    content, rng = path.read_bytes(), random.Random(4)
    for _ in range(500):
        damaged = bytearray(content)
        for _ in range(rng.randrange(1, 4)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        path.write_bytes(damaged)
        try:
            arrays, _ = _core.load_safetensors(path)
        except mx.error.IOError:
            continue
        assert sum(a.nbytes for a in arrays.values()) == 23


def test_modes_links_and_names_are_kept(tmp_path, monkeypatch):
    old = os.umask(0o027)
    try:
        _core.save_safetensors(tmp_path / "new", {})
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
    (tmp_path / "new").chmod(0o600)
    (tmp_path / "link").symlink_to(tmp_path / "new")
    _core.save_safetensors(tmp_path / "link", {"x": np.ones((1,))})
    assert (tmp_path / "link").is_symlink()
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o600
    assert list(_core.load_safetensors(tmp_path / "new")[0]) == ["x"]
    monkeypatch.chdir(tmp_path)
    _core.save_safetensors("plain", {})
    assert sorted(os.listdir()) == ["link", "new", "plain"]


WRITER = """
import sys
from mxnet import _core, np
generation = 0
while True:
    generation += 1
    x = np.full((400_000,), float(generation))
    _core.save_safetensors(sys.argv[1], {"a": x, "b": x})
    print(generation, flush=True)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system has no SIGKILL")
def test_a_killed_save_leaves_a_whole_file(tmp_path):
    path, rng = tmp_path / "a.safetensors", random.Random(8)
    for _ in range(4):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
        try:
            assert writer.stdout.readline() == "1\n"
            deadline = time.monotonic() + rng.uniform(0.005, 0.05)
            while time.monotonic() < deadline:
                pass
        finally:
            writer.kill()
            writer.wait(60)
            writer.stdout.close()
        arrays, _ = _core.load_safetensors(path)
        values = onp.unique(onp.stack([arrays["a"].asnumpy(), arrays["b"].asnumpy()]))
        assert len(values) == 1
        assert values[0] >= 1


def test_a_full_disk_leaves_the_old_file(tmp_path):
    resource = pytest.importorskip("resource")
    path = tmp_path / "a"
    _core.save_safetensors(path, {"x": np.ones((4,))})
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(OSError, match="a") as caught:
            _core.save_safetensors(path, {"x": np.ones((1_000_000,))})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)
    assert caught.value.filename == str(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a"]


def test_failed_arrays_raise_their_own_error(tmp_path):
    with mx.engine.mode("async"):
        x = np.random.randint(np.array([0, 5]), np.array([1, 5]))
        with pytest.raises(ValueError, match="element 1"):
            _core.save_safetensors(tmp_path / "a", {"x": x})
    assert os.listdir(tmp_path) == []


# ---- MXNet's names ----


def test_npx_saves_one_array_as_npy_and_named_arrays_as_safetensors(tmp_path):
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    npx.save(tmp_path / "x.npy", x)
    assert onp.load(tmp_path / "x.npy").tolist() == x.tolist()
    assert npx.load(tmp_path / "x.npy").tolist() == x.tolist()
    half = np.array([1.5], dtype="bfloat16")
    npx.save(tmp_path / "many", {"x": x, "half": half})
    loaded = npx.load(str(tmp_path / "many"))
    assert loaded["x"].tolist() == x.tolist()
    assert bits(loaded["half"]) == bits(half)
    npx.savez(tmp_path / "many.npz", x, y=x)
    assert {k: v.tolist() for k, v in npx.load(tmp_path / "many.npz").items()} == {"arr_0": x.tolist(), "y": x.tolist()}
    with pytest.raises(TypeError, match="not 'int'"):
        npx.save(tmp_path / "a", 5)


def test_npx_load_refuses_damaged_files(tmp_path):
    npx.savez(tmp_path / "a.npz", np.ones((50,)))
    content = (tmp_path / "a.npz").read_bytes()
    (tmp_path / "a.npz").write_bytes(content[:-30])
    with pytest.raises(mx.error.IOError, match=r"a\.npz"):
        npx.load(tmp_path / "a.npz")
    npx.save(tmp_path / "a.npy", np.ones((50,)))
    (tmp_path / "a.npy").write_bytes((tmp_path / "a.npy").read_bytes()[:-3])
    with pytest.raises(mx.error.IOError, match=r"a\.npy"):
        npx.load(tmp_path / "a.npy")
    with pytest.raises(FileNotFoundError):
        npx.load(tmp_path / "missing")


@pytest.mark.parametrize(
    ("entry", "hint"), [("notes.txt", ""), ("weights/data.pkl", "; `torch.load` reads files of PyTorch")]
)
def test_npx_load_refuses_archives_of_other_things(tmp_path, entry, hint):
    path = tmp_path / "archive"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(entry, b"text")
    message = f"is an archive, but its entry '{entry}' is no array{hint}$"
    with pytest.raises(mx.error.IOError, match=message):
        npx.load(path)
    with pytest.raises(mx.error.FileFormatError, match=message):
        mx.gluon.nn.Dense(1, in_units=1).load_parameters(path)


def test_np_files_are_numpys(tmp_path):
    x = np.array([[1, 2], [3, 4]], dtype="int16")
    np.save(tmp_path / "x", x)
    assert onp.load(tmp_path / "x.npy").dtype == "int16"
    back = np.load(tmp_path / "x.npy")
    assert isinstance(back, np.ndarray)
    assert (back.dtype, back.tolist()) == (x.dtype, x.tolist())
    for writer in (np.savez, np.savez_compressed):
        writer(tmp_path / "xy.npz", x, y=x.T)
        with np.load(tmp_path / "xy.npz") as both:
            assert sorted(both) == sorted(both.files) == ["arr_0", "y"]
            assert len(both) == 2
            assert both["y"].tolist() == [[1, 3], [2, 4]]
    with pytest.raises(TypeError, match="bfloat16"):
        np.save(tmp_path / "b", np.ones((1,), "bfloat16"))
    with pytest.raises(TypeError, match="`b` is bfloat16"):
        np.savez(tmp_path / "b", b=np.ones((1,), "bfloat16"))
    onp.save(tmp_path / "objects.npy", onp.array([{}]), allow_pickle=True)
    with pytest.raises(ValueError, match="allow_pickle"):
        np.load(tmp_path / "objects.npy")


def test_mapped_files_share_their_memory(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((4,)))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r+")
    mapped[1] = 7.0
    del mapped
    assert np.load(tmp_path / "x.npy").tolist() == [0, 7, 0, 0]
    with pytest.raises(ValueError, match="read-only"):
        np.load(tmp_path / "x.npy", mmap_mode="r")[0] = 1.0
