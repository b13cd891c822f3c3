"""Memory shared through buffers, `__array__` and `__array_interface__`."""

import array as pyarray
import gc
import hashlib
import weakref

import numpy as onp
import pytest

import mxnet as mx
from mxnet import np

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
DTYPES += ["float16", "float32", "float64", "complex64", "complex128"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_asarray_shares_memory_and_sees_later_writes(dtype):
    x = np.array(onp.array([[0, 1], [1, 0]]).astype(dtype))
    seen = onp.asarray(x)
    assert (seen.dtype, seen.tolist()) == (x.dtype, x.tolist())
    x[0, 0] = 1
    assert seen[0, 0] == 1
    seen[1, 1] = 1
    assert x[1, 1].item() == 1
    assert onp.shares_memory(seen, onp.asarray(x[1:]))


def test_queued_writes_are_done_before_anybody_can_look():
    for mode in ("adaptive", "async", "sync"):
        with mx.engine.mode(mode):
            x = np.zeros((500_000,))
            seen = onp.asarray(x)
            view = memoryview(x)
            for i in range(10):
                x += 1
                assert seen[0] == seen[-1] == view[123_456] == i + 1


def test_operations_read_what_foreign_code_wrote():
    x = np.zeros((300_000,))
    seen = onp.asarray(x)
    with mx.engine.mode("async"):
        for i in range(10):
            seen[:] = i
            total = (x + 1).sum()
            seen[:] = -1
            assert total.item() == 300_000 * (i + 1)


def test_memoryviews_say_what_the_array_is():
    x = np.array(onp.arange(6, dtype="int16").reshape(2, 3))
    view = memoryview(x)
    assert (view.format, view.shape, view.strides, view.itemsize, view.readonly) == ("h", (2, 3), (6, 2), 2, False)
    assert view.tolist() == x.tolist()
    assert bytes(x) == onp.arange(6, dtype="int16").tobytes()
    for dtype in ("int64", "uint64"):
        # NumPy has two types of 8 bytes; ours must be the one it calls by that name.
        assert np.zeros((1,), dtype).asnumpy().dtype.char == onp.dtype(dtype).char
    turned = memoryview(x.T)
    assert (turned.shape, turned.strides) == ((3, 2), (2, 6))
    assert turned.tolist() == x.T.tolist()
    assert memoryview(np.array(2.5)).tolist() == 2.5
    assert memoryview(np.zeros((0, 2))).nbytes == 0


def test_the_memory_outlives_the_array():
    x = np.arange(10.0)
    view = memoryview(x * 3)
    gone = weakref.ref(x)
    del x
    gc.collect()
    assert gone() is None
    assert view[9] == 27


def test_consumers_without_strides_get_contiguous_arrays_only():

    x = np.array(onp.arange(12.0).reshape(2, 6))
    assert hashlib.sha256(x[0]).digest() == hashlib.sha256(onp.asarray(x)[0]).digest()
    with pytest.raises(BufferError, match="contiguous"):
        hashlib.sha256(x[:, 0])


@pytest.mark.parametrize(
    "source",
    [
        b"\x01\x02\x03",
        bytearray(b"\x01\x02\x03"),
        memoryview(b"\x01\x02\x03"),
        pyarray.array("d", [1.0, 2.0]),
        pyarray.array("i", [1, -2]),
    ],
    ids=["bytes", "bytearray", "memoryview", "array-d", "array-i"],
)
def test_bytes_like_objects_are_imported_as_numpy_does(source):
    want, got = onp.array(memoryview(source)), np.array(memoryview(source))
    assert (got.dtype, got.tolist()) == (want.dtype, want.tolist())


def test_array_protocol_copies_and_converts_as_asked():
    x = np.array([1.5, 2.5])
    assert onp.array(x).tolist() == [1.5, 2.5]
    copied = onp.array(x)
    copied[0] = 9
    assert x.tolist() == [1.5, 2.5]
    assert onp.asarray(x, dtype="int64").tolist() == [1, 2]
    assert x.__array__("float64").dtype == "float64"
    assert onp.shares_memory(onp.asarray(x, copy=False), onp.asarray(x))
    with pytest.raises(ValueError, match="copy"):
        onp.asarray(x, dtype="float64", copy=False)
    assert onp.sqrt(np.array([4.0, 9.0])).tolist() == [2, 3]


def test_array_interface_describes_the_memory():
    x = np.array(onp.arange(6.0).reshape(2, 3))
    facts = x.T.__array_interface__
    assert facts["version"] == 3
    assert facts["shape"] == (3, 2)
    assert facts["strides"] == (8, 24)
    assert facts["typestr"] == "<f8"
    assert facts["data"] == (onp.asarray(x).ctypes.data, False)


# ---- imports ----


def test_imports_share_memory_unless_a_copy_is_asked_for():
    source = onp.zeros((4,))
    shared, copied = np.asarray(source), np.array(source)
    source[1] = 7
    assert shared.tolist() == [0, 7, 0, 0]
    assert copied.tolist() == [0, 0, 0, 0]
    shared[2] = 8
    assert source.tolist() == [0, 7, 8, 0]
    assert np.asarray(source[::-2]).tolist() == [0, 7]


def test_foreign_arrays_are_kept_alive_and_let_go():
    class Watched(onp.ndarray):
        pass

    source = onp.ones(1000).view(Watched)
    gone = weakref.ref(source)
    with mx.engine.mode("async"):
        y = np.asarray(source) * 2
        del source
        assert y.sum().item() == 2000
    del y
    mx.waitall()
    gc.collect()
    assert gone() is None


def test_read_only_arrays_are_shared_but_not_written():
    source = onp.arange(3.0)
    source.flags.writeable = False
    x = np.asarray(source)
    assert x.tolist() == [0, 1, 2]
    for write in (
        lambda: x.__setitem__(0, 1.0),
        lambda: x.__setitem__(slice(None), 1.0),
        lambda: x[1:].__setitem__(0, 1.0),
        lambda: x.__iadd__(1),
        lambda: np.add(x, 1.0, out=x),
        lambda: np.random.shuffle(x),
    ):
        with pytest.raises(ValueError, match="read-only"):
            write()
    assert source.tolist() == [0, 1, 2]
    assert memoryview(x).readonly
    assert not onp.asarray(x).flags.writeable
    assert (x + 1).tolist() == [1, 2, 3]
    assert np.array(source).tolist() == [0, 1, 2]
    np.array(source)[0] = 5.0


@pytest.mark.parametrize("dtype", [">i4", ">f8", ">u2", ">c8", "<f4"])
def test_bytes_in_the_other_order_are_converted(dtype):
    source = onp.array([1, 2, 3]).astype(dtype)
    for make in (np.array, np.asarray):
        x = make(source)
        assert x.dtype == onp.dtype(dtype).newbyteorder("=")
        assert x.tolist() == source.tolist()


def test_unaligned_elements_are_copied():
    raw = onp.zeros(33, "uint8")
    source = raw[1:].view("float64")
    source[:] = [1, 2, 3, 4]
    assert not source.flags.aligned
    assert np.asarray(source).tolist() == [1, 2, 3, 4]
    record = onp.zeros(3, onp.dtype([("a", "u1"), ("b", "<f4")], align=False))
    record["b"] = [1, 2, 3]
    assert np.asarray(record["b"]).tolist() == [1, 2, 3]
    aligned = onp.zeros(3, onp.dtype([("a", "<f4"), ("b", "<f8")], align=True))
    aligned["b"] = [4, 5, 6]
    assert np.asarray(aligned["b"]).tolist() == [4, 5, 6]
    packed = onp.zeros(
        3, onp.dtype({"names": ["a", "b"], "formats": ["<f4", "<f8"], "offsets": [0, 4], "itemsize": 12})
    )
    packed["b"] = [4, 5, 6]
    assert np.asarray(packed["b"]).tolist() == [4, 5, 6]


@pytest.mark.parametrize(
    "value",
    [onp.array(["a"]), onp.array([object()]), onp.array([1], "datetime64[s]"), onp.zeros(2, [("a", "f4")]), "text"],
    ids=["text", "object", "date", "record", "str"],
)
def test_what_is_no_number_is_refused(value):
    with pytest.raises(TypeError):
        np.array(value)


def test_buffers_have_no_format_for_bfloat16_and_numpy_gets_its_numbers():
    ml = pytest.importorskip("ml_dtypes")
    x = np.array([1.5, -2.0], dtype="bfloat16")
    with pytest.raises(BufferError, match="bfloat16"):
        memoryview(x)
    assert not hasattr(x, "__array_interface__")
    assert onp.asarray(x).dtype == ml.bfloat16
    assert onp.asarray(x).tolist() == [1.5, -2.0]


def test_numpys_copyto_takes_our_arrays():
    target = onp.zeros(3)
    onp.copyto(target, np.array([1.0, 2.0, 3.0]), where=np.array([True, False, True]))
    assert target.tolist() == [1, 0, 3]


def test_bfloat16_goes_through_ml_dtypes():
    ml = pytest.importorskip("ml_dtypes")
    source = onp.array([1.5, -2.0, float("inf")], ml.bfloat16)
    x = np.array(source)
    assert str(x.dtype) == "bfloat16"
    assert x.tolist() == [1.5, -2.0, float("inf")]
    back = x.asnumpy()
    assert back.dtype == ml.bfloat16
    assert back.tolist() == source.tolist()
