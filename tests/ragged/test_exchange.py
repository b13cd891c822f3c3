"""Exchange with other libraries by buffers."""

import ctypes
import gc

import numpy as onp
import pytest

from mxnet import error, np, ragged
from mxnet.ragged import _exchange

DEEP = [[[1, 2], [], [3]], [], [[4, 5, 6]]]


@pytest.mark.parametrize("rows", [[[1, 2], [], [3]], DEEP, [[[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]]]])
def test_buffers_come_back(rows):
    r = ragged.array(rows)
    form, length, container = ragged.to_buffers(r)
    assert ragged.from_buffers(form, length, container).tolist() == rows
    assert ragged.from_arrow(r).tolist() == rows


def test_buffers_are_those_of_awkward():
    form, length, container = ragged.to_buffers(ragged.array([[1, 2], [3]]))
    assert form == (
        '{"class": "ListOffsetArray", "offsets": "i64", "content": {"class": "NumpyArray", "primitive": "int64", '
        '"form_key": "node1"}, "form_key": "node0"}'
    )
    assert length == 2
    assert container["node0-offsets"].tolist() == [0, 2, 3]
    assert container["node1-data"].tolist() == [1, 2, 3]
    short = {**container, "node0-offsets": onp.array([0, 2])}
    with pytest.raises(ValueError, match="buffer 'node0-offsets' has 2 elements, 3 are needed"):
        ragged.from_buffers(form, length, short)
    with pytest.raises(error.UnsupportedError, match="a node 'RecordArray'"):
        ragged.from_buffers({"class": "RecordArray"}, 1, {})
    with pytest.raises(error.UnsupportedError, match="no axis is ragged"):
        ragged.from_buffers({"class": "NumpyArray", "primitive": "int64", "form_key": "n"}, 1, {})


def test_slices_export_their_own_rows():
    r = ragged.array([[1, 2], [3], [4, 5, 6]])[1:]
    assert ragged.from_arrow(r).tolist() == [[3], [4, 5, 6]]
    assert ragged.from_buffers(*ragged.to_buffers(r)).tolist() == [[3], [4, 5, 6]]


def test_exports_are_released():
    before = len(_exchange._HELD)
    r = ragged.array(DEEP)
    capsules = r.__arrow_c_array__()
    assert len(_exchange._HELD) == before + 4
    del capsules
    gc.collect()
    assert len(_exchange._HELD) == before
    # A consumer moves the structure and releases it where it is then.
    _schema, array = capsules = r.__arrow_c_array__()
    address = _exchange._api.PyCapsule_GetPointer(array, b"arrow_array")
    moved = _exchange._Array.from_buffer_copy(_exchange._Array.from_address(address))
    _exchange._Array.from_address(address).release = None
    del capsules, _schema, array
    gc.collect()
    assert onp.ctypeslib.as_array((ctypes.c_int64 * 4).from_address(moved.buffers[1])).tolist() == [0, 3, 3, 4]
    _exchange._Release(moved.release)(ctypes.addressof(moved))
    assert not moved.release
    assert len(_exchange._HELD) == before


def test_what_arrow_lacks_is_refused():
    with pytest.raises(error.UnsupportedError, match="no Arrow type for lists of complex128"):
        ragged.array([np.ones(2, dtype="complex128")]).__arrow_c_array__()
    with pytest.raises(error.UnsupportedError, match="a 'list' has no __arrow_c_array__"):
        ragged.from_arrow([1])
