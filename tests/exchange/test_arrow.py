"""Arrays in Arrow's C data interface, read by its structures."""

import sys
import types

import numpy as onp
import pytest

from mxnet import _arrow, error, np

FORMATS = {
    "int8": b"c", "uint8": b"C", "int16": b"s", "uint16": b"S", "int32": b"i", "uint32": b"I", "int64": b"l",
    "uint64": b"L", "float16": b"e", "float32": b"f", "float64": b"g",
}  # fmt: skip


def structures(x):
    """Capsules, which hold the memory, and the structures in them."""
    held = x.__arrow_c_array__()
    schema = _arrow.Schema.from_address(_arrow.address(held[0], b"arrow_schema"))
    return held, schema, _arrow.Array.from_address(_arrow.address(held[1], b"arrow_array"))


def elements(array, dtype, count):
    size = onp.dtype(dtype).itemsize * count
    return onp.frombuffer((onp.ctypeslib.ctypes.c_char * size).from_address(array.buffers[1]), dtype=dtype)


@pytest.mark.parametrize("dtype", FORMATS)
def test_numbers_are_one_buffer(dtype):
    x = np.array([3, 1, 4, 1, 5], dtype=dtype)
    _held, schema, array = structures(x)
    assert (schema.format, schema.name, schema.n_children) == (FORMATS[dtype], None, 0)
    assert (array.length, array.null_count, array.offset, array.n_buffers, array.n_children) == (5, 0, 0, 2, 0)
    assert array.buffers[0] is None
    assert elements(array, dtype, 5).tolist() == [3, 1, 4, 1, 5]


def test_the_elements_are_copied():
    x = np.arange(4.0)
    _held, _schema, array = structures(x)
    x[:] = 7
    assert elements(array, "float32", 4).tolist() == [0, 1, 2, 3]


def test_booleans_are_bits_and_views_are_packed():
    mask = np.array([True, False, True, True, False, False, False, False, True])
    _held, schema, array = structures(mask)
    assert (schema.format, array.length) == (b"b", 9)
    assert elements(array, "uint8", 2).tolist() == [0b00001101, 0b1]
    _held, _schema, array = structures(np.arange(12, dtype="int64").reshape(3, 4)[::-1, 1])
    assert elements(array, "int64", 3).tolist() == [9, 5, 1]


def test_further_axes_are_lists_of_fixed_size():
    _held, schema, array = structures(np.arange(24, dtype="int16").reshape(2, 3, 4))
    assert (schema.format, schema.name, array.length, array.n_buffers) == (b"+w:3", None, 2, 1)
    schema, array = schema.children[0].contents, array.children[0].contents
    assert (schema.format, schema.name, array.length) == (b"+w:4", b"item", 6)
    schema, array = schema.children[0].contents, array.children[0].contents
    assert (schema.format, array.length) == (b"s", 24)
    assert elements(array, "int16", 24).tolist() == list(range(24))
    _held, schema, array = structures(np.zeros((0, 3)))
    assert (schema.format, array.length) == (b"+w:3", 0)


@pytest.mark.parametrize("dtype", ["complex64", "complex128", "bfloat16"])
def test_numbers_that_arrow_lacks_are_refused(dtype):
    with pytest.raises(error.UnsupportedError, match=f"no numbers of dtype {dtype}"):
        np.ones(3, dtype=dtype).__arrow_c_array__()


def test_an_array_without_axes_is_refused():
    with pytest.raises(error.UnsupportedError, match=r"without axes: give it `x.item\(\)`"):
        np.array(1.0).__arrow_c_array__()


class Made:
    """A result of the stand-in for pyarrow; `source` is the argument."""

    def __init__(self, source):
        self.source, self.type = source, None

    def cast(self, dtype):
        self.type = dtype
        return self


def test_pyarrow_gets_an_object_that_has_the_capsules_alone(monkeypatch):
    # With `__arrow_array__` and an argument `mask`, pyarrow raises; with the capsules alone it ignores the mask.
    pyarrow = types.ModuleType("pyarrow")
    pyarrow.array = Made
    monkeypatch.setitem(sys.modules, "pyarrow", pyarrow)
    x = np.array([1.5, 2.0])
    made = x.__arrow_array__()
    assert made.type is None
    assert not hasattr(made.source, "__arrow_array__")
    _held, _schema, array = structures(made.source)
    assert elements(array, "float32", 2).tolist() == [1.5, 2.0]
    assert x.__arrow_array__(type="int32").type == "int32"
