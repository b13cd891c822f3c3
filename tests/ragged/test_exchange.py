"""Exchange with other libraries by buffers."""

import ctypes
import sys

import numpy as onp
import pytest

from mxnet import _arrow, error, np, ragged

DEEP = [[[1, 2], [], [3]], [], [[4, 5, 6]]]


@pytest.mark.parametrize("rows", [[[1, 2], [], [3]], DEEP, [[[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]]]])
def test_buffers_come_back(rows):
    r = ragged.array(rows)
    form, length, container = ragged.to_buffers(r)
    assert ragged.from_buffers(form, length, container).tolist() == rows
    assert ragged.from_arrow(r).tolist() == rows


def test_lists_of_booleans_are_packed_in_arrow():
    rows = [[True, False, True], [], [False] * 9 + [True]]
    r = ragged.array(rows)
    assert r.dtype == bool and ragged.from_arrow(r).tolist() == rows and ragged.from_arrow(r).dtype == bool
    stored = _arrow.Array.from_address(_arrow.address((made := r.__arrow_c_array__())[1], b"arrow_array"))
    bits = ctypes.string_at(stored.children[0].contents.buffers[1], 2)
    assert len(made) == 2 and bits == bytes([0b00000101, 0b00010000])


def test_buffers_of_a_slice_begin_behind_the_rows_that_were_cut_off():
    form, _, container = ragged.to_buffers(ragged.array(DEEP))
    container["node0-offsets"] = container["node0-offsets"][1:]
    assert ragged.from_buffers(form, 2, container).tolist() == DEEP[1:]
    form, _, container = ragged.to_buffers(ragged.array([[[1, 2]], [[3, 4], [5, 6]]]))
    container["node0-offsets"] = container["node0-offsets"][1:]
    assert ragged.from_buffers(form, 1, container).tolist() == [[[3, 4], [5, 6]]]
    form, _, container = ragged.to_buffers(ragged.from_dense(np.arange(12).reshape(2, 3, 2), lengths=[2, 1]))
    container["node0-offsets"] = container["node0-offsets"][1:]
    assert ragged.from_buffers(form, 1, container).tolist() == [[[6, 7]]]


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
    r = ragged.array(DEEP)
    before = sys.getrefcount(r)
    capsules = r.__arrow_c_array__()
    assert sys.getrefcount(r) == before + 1
    del capsules
    assert sys.getrefcount(r) == before
    # A consumer moves the structure, or a part of it, and releases it where it is then.
    for of_child in (False, True):
        _schema, array = capsules = r.__arrow_c_array__()
        kept = _arrow.Array.from_address(_arrow.address(array, b"arrow_array"))
        kept = kept.children[0].contents if of_child else kept
        moved = _arrow.Array.from_buffer_copy(kept)
        kept.release = None
        del capsules, _schema, array, kept
        want = [0, 2, 2, 3, 6] if of_child else [0, 3, 3, 4]
        found = (ctypes.c_int64 * len(want)).from_address(moved.buffers[1])
        assert list(found) == want
        assert sys.getrefcount(r) == before + 1
        ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(moved.release)(ctypes.addressof(moved))
        assert not moved.release
        assert sys.getrefcount(r) == before


def test_exports_are_released_while_an_error_is_raised():
    r = ragged.array(DEEP)
    before = sys.getrefcount(r)

    def exports():
        yield r.__arrow_c_array__()
        raise KeyError("wanted")

    with pytest.raises(KeyError, match="wanted"):
        list(exports())
    assert sys.getrefcount(r) == before


def test_what_arrow_lacks_is_refused():
    with pytest.raises(error.UnsupportedError, match="Arrow has no numbers of dtype complex128"):
        ragged.array([np.ones(2, dtype="complex128")]).__arrow_c_array__()
    with pytest.raises(error.UnsupportedError, match="a 'list' has no __arrow_c_array__"):
        ragged.from_arrow([1])
