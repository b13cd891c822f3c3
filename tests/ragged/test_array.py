"""Ragged arrays: making them, reading and writing rows, printing, defects of their parts."""

import pickle

import numpy as onp
import pytest

import mxnet as mx
from mxnet import error, np, ragged
from mxnet.ragged import RaggedArray

RNG = onp.random.default_rng(33)
ROWS = [onp.array([1.0, 2.0, 3.0]), onp.array([]), onp.array([4.0, 5.0]), onp.array([6.0])]
DEEP = [[[1, 2], [], [3]], [], [[4, 5, 6]]]


def same(r, rows):
    assert len(r) == len(rows)
    for got, want in zip(r, rows, strict=True):
        onp.testing.assert_array_equal(got.asnumpy(), want)


def test_rows_become_one_array():
    r = ragged.array([np.array(row, dtype="float64") for row in ROWS])
    assert r.shape == (4, None)
    assert (r.ndim, r.size, len(r), r.num_ragged) == (2, 6, 4, 1)
    assert r.dtype == onp.float64
    assert r.offsets[0].asnumpy().tolist() == [0, 3, 3, 5, 6]
    assert r.lengths().asnumpy().tolist() == [3, 0, 2, 1]
    same(r, ROWS)


def test_rows_with_uniform_axes():
    rows = [RNG.normal(size=(n, 2, 3)) for n in (2, 0, 4)]
    r = ragged.array([np.array(x) for x in rows])
    assert r.shape == (3, None, 2, 3)
    same(r, rows)
    empty = ragged.array([np.zeros((0, 2))] * 2)
    assert empty.shape == (2, None, 2)


def test_nested_rows_give_more_ragged_axes():
    r = ragged.array(DEEP)
    assert r.shape == (3, None, None)
    assert r.tolist() == DEEP
    assert r[0].tolist() == DEEP[0]
    assert r.lengths(1).asnumpy().tolist() == [3, 0, 1]
    assert r.lengths(2).asnumpy().tolist() == [2, 0, 1, 3]
    assert ragged.array([ragged.array([[1], [2, 3]])] * 2).tolist() == [[[1], [2, 3]]] * 2


@pytest.mark.parametrize(
    ("rows", "shape"),
    [
        ([[[1.0, 2.0]], [[3.0]]], (2, None, None)),
        ([[[[1, 2]], [[3]]]], (1, None, None, None)),
        ([[[[1, 2], [3, 4]]], [[[5, 6]], []]], (2, None, None, 2)),
        ([[[1], [2]], [[3], [4]]], (2, None, 1)),
        ([[], [[1, 2], []]], (2, None, None)),
        (((1, 2.5), [3]), (2, None)),
    ],
)
def test_nested_lists_are_ragged_down_to_the_last_axis_that_differs(rows, shape):
    r = ragged.array(rows)
    assert r.shape == shape
    assert r.tolist() == [list(row) for row in rows]
    assert ragged.array(rows, dtype="float64").dtype == "float64"


def test_rows_that_do_not_fit_are_named():
    with pytest.raises(ValueError, match="row 1 is a number"):
        ragged.array([np.ones(2), np.array(3.0)])
    with pytest.raises(ValueError, match=r"found \(2,\) and \(3,\) in row 1"):
        ragged.array([np.ones((1, 2)), np.ones((1, 3))])
    with pytest.raises(ValueError, match="there are no rows"):
        ragged.array([])


@pytest.mark.parametrize(
    ("offsets", "problem"),
    [
        ([1, 3], "must start with 0, found 1"),
        ([0, 2, 1, 3], "must not decrease: element 2 is 1, after 2"),
        ([0, 2], "the last of offsets is 2, but there are 3 rows"),
        ([], "must be a vector"),
        ([[0, 3]], "must be a vector"),
        ([0.0, 3.0], "must be integers, found float64"),
        (onp.array([0, 2**63 + 5], dtype="uint64"), "must fit int64"),
    ],
)
def test_malformed_offsets_are_found_on_construction(offsets, problem):
    with pytest.raises((ValueError, TypeError, OverflowError), match=problem):
        RaggedArray(np.ones(3), offsets)


def test_offsets_of_several_axes_fit_one_another():
    RaggedArray(np.ones(3), [0, 2], [0, 1, 3])
    with pytest.raises(ValueError, match="the last of offsets 0 is 3, but there are 2 rows"):
        RaggedArray(np.ones(3), [0, 3], [0, 1, 3])
    with pytest.raises(ValueError, match="offsets for at least one axis"):
        RaggedArray(np.ones(3))


def test_padding_comes_and_goes():
    x = RNG.normal(size=(3, 4, 2))
    lengths = [4, 0, 2]
    r = ragged.from_dense(np.array(x), lengths=lengths)
    same(r, [x[i, :n] for i, n in enumerate(lengths)])
    mask = onp.arange(4) < onp.array(lengths)[:, None]
    same(ragged.from_dense(np.array(x), mask=np.array(mask)), [x[i, :n] for i, n in enumerate(lengths)])
    onp.testing.assert_array_equal(r.to_dense(-1).asnumpy(), onp.where(mask[..., None], x, -1))
    assert r.to_dense(length=3).shape == (3, 3, 2)
    # Any mask chooses, in order.
    odd = onp.array([[True, False, True, False]] * 3)
    same(ragged.from_dense(np.array(x), mask=odd), [row[[0, 2]] for row in x])


def test_padding_of_two_ragged_axes():
    want = [[[1, 2, 0], [0, 0, 0], [3, 0, 0]], [[0] * 3] * 3, [[4, 5, 6], [0] * 3, [0] * 3]]
    assert ragged.array(DEEP).to_dense().asnumpy().tolist() == want


def test_padding_is_checked():
    x = np.ones((2, 3))
    with pytest.raises(ValueError, match=r"length 4 of row 1 is not in 0\.\.3"):
        ragged.from_dense(x, lengths=[1, 4])
    with pytest.raises(ValueError, match="`lengths` must be 2 integers"):
        ragged.from_dense(x, lengths=[1, 2, 3])
    with pytest.raises(ValueError, match="not both"):
        ragged.from_dense(x, lengths=[1, 2], mask=onp.ones((2, 3), bool))
    with pytest.raises(ValueError, match="2 axes are needed"):
        ragged.from_dense(np.ones(3))
    with pytest.raises(ValueError, match="`mask` must be bool"):
        ragged.from_dense(x, mask=onp.ones((2, 2), bool))
    with pytest.raises(ValueError, match="lengths must not be negative: element 1 is -1"):
        ragged.from_lengths(np.ones(3), [4, -1])


def test_even_rows_are_views_both_ways():
    x = np.ones((3, 4, 2))
    r = ragged.from_dense(x)
    assert np.shares_memory(r.values, x)
    assert np.shares_memory(r.to_ndarray(), x)
    assert np.shares_memory(r.to_dense(), x)
    with pytest.raises(ValueError, match="rows 0 and 1 have 3 and 0 elements"):
        ragged.array(ROWS).to_ndarray()


KEYS = [
    0, -1, 2, slice(1, 3), slice(None, None, -1), slice(None, None, 2), slice(3, 1), [2, 0, 2],
    onp.array([True, False, True, False]), Ellipsis, slice(None), onp.array([], dtype="int64"), onp.array(-3),
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS)
def test_rows_are_chosen_as_in_an_array_of_objects(key):
    rows = [RNG.normal(size=(n, 2)) for n in (3, 0, 2, 1)]
    objects = onp.empty(4, dtype=object)
    objects[:] = rows
    r = ragged.array([np.array(x) for x in rows])
    got, want = r[key], objects[key]
    if isinstance(want, onp.ndarray) and want.dtype == object:
        same(got, list(want))
    else:
        onp.testing.assert_array_equal(got.asnumpy(), want)


@pytest.mark.parametrize(
    "key", [slice(1, None), slice(None, -1), slice(None, None, -1), slice(-2, None, 2), slice(5, 9)]
)
def test_parts_of_rows(key):
    rows = [RNG.normal(size=(n, 2)) for n in (3, 0, 2, 1)]
    r = ragged.array([np.array(x) for x in rows])
    same(r[:, key], [x[key] for x in rows])
    same(r[1:, key, 0], [x[key, 0] for x in rows[1:]])
    same(r[..., 1], [x[..., 1] for x in rows])
    onp.testing.assert_array_equal(r[[0, 2, 3], -1].asnumpy(), [rows[i][-1] for i in (0, 2, 3)])
    onp.testing.assert_array_equal(r[2, key].asnumpy(), rows[2][key])
    assert r[0, 1, 0].item() == rows[0][1, 0]


def test_parts_of_deep_rows():
    r = ragged.array(DEEP)
    assert r[2, 0].asnumpy().tolist() == [4, 5, 6]
    assert r[:, :1].tolist() == [row[:1] for row in DEEP]
    assert r[[0, 2], 0].tolist() == [[1, 2], [4, 5, 6]]
    assert r[::2, 0:2, ...].tolist() == [DEEP[0][:2], DEEP[2][:2]]
    assert r[0, :, :1].tolist() == [row[:1] for row in DEEP[0]]


def test_the_last_of_two_ragged_axes_is_indexed():
    r = ragged.array([[[1.0, 2.0], [3.0]], [[4.0, 5.0, 6.0]], []])
    assert r[:, :, 0].tolist() == [[1.0, 3.0], [4.0], []]
    assert r[:, :, -1].tolist() == [[2.0, 3.0], [6.0], []]
    assert r[:, :, 1:].tolist() == [[[2.0], []], [[5.0, 6.0]], []]
    assert r[1:, :, ::-1].tolist() == [[[6.0, 5.0, 4.0]], []]
    assert r[:, :1, :2].tolist() == [[[1.0, 2.0]], [[4.0, 5.0]], []]
    with pytest.raises(IndexError, match="index 1 is out of bounds for row 1, which has 1 elements"):
        r[:, :, 1]


def test_masks_select_elements_of_rows():
    r = ragged.array([[3.0, -1.0], [], [2.0, -5.0, 4.0]])
    assert r[r > 0].tolist() == [[3.0], [], [2.0, 4.0]]
    deep = ragged.array([[[1.0, -2.0], [-3.0]], [[4.0]]])
    assert deep[deep > 0].tolist() == [[[1.0], []], [[4.0]]]
    with pytest.raises(mx.error.ShapeError, match="offsets first differ at element 1"):
        r[ragged.array([[True], [True], [True, False, False]])]
    with pytest.raises(IndexError, match="a ragged index is a mask"):
        r[r]


def test_rows_are_views_and_can_be_written():
    r = ragged.array([np.array([1.0, 2.0]), np.array([3.0])])
    r[0] = 9.0
    r[1][0] = 7.0
    assert r.tolist() == [[9, 9], [7]]
    r[0:1] = np.array([1.0, 2.0])
    r[:] = r + 1
    assert r.tolist() == [[2, 3], [8]]
    with pytest.raises(IndexError, match="written in place"):
        r[[1, 0]] = 0.0


@pytest.mark.parametrize(
    ("key", "problem"),
    [
        (4, "index 4 is out of bounds for axis 0 with size 4"),
        ([0, 7], "index 7 is out of bounds for axis 0"),
        ((slice(None), 2), "index 2 is out of bounds for row 1, which has 0 elements"),
        ((slice(None), [0]), "a ragged axis is indexed by an integer or a slice"),
        (onp.ones(3, bool), r"a mask of shape \(3,\) for 4 rows"),
        ((0, 0, 0), "3 indices for 2 axes"),
        (None, "new axes stand behind"),
    ],
)
def test_keys_that_do_not_fit_are_named(key, problem):
    with pytest.raises(IndexError, match=problem):
        ragged.array(ROWS)[key]


def test_printing_shows_rows():
    assert repr(ragged.array([[1, 2], [], [3]])) == "ragged.array([[1, 2],\n              [],\n              [3]])"
    assert repr(ragged.array([[1]], dtype="int8")).endswith("dtype=int8)")
    long = repr(ragged.array([[i] for i in range(100)]))
    assert "..." in long
    assert len(long.splitlines()) == 7
    assert "shape=(2, None, 3)" in repr(ragged.array([np.zeros((0, 3))] * 2))


def test_numpy_objects_and_lists():
    r = ragged.array(ROWS)
    objects = r.to_numpy()
    assert objects.dtype == object
    same(ragged.array(objects), ROWS)
    assert ragged.array(DEEP).to_numpy()[0][2].tolist() == [3]
    with pytest.raises(error.UnsupportedError, match="does not become a dense one by itself"):
        onp.asarray(r)
    with pytest.raises(error.UnsupportedError, match="does not become a dense one by itself"):
        np.array(r)


def test_it_pickles():
    r = pickle.loads(pickle.dumps(ragged.array(DEEP)))
    assert r.tolist() == DEEP


def test_conversions_keep_rows():
    r = ragged.array(ROWS)
    assert r.astype("float16").dtype == onp.float16
    assert r.copy().tolist() == r.tolist()
    assert r.to_device(mx.cpu()).device == mx.cpu()
    assert not r.detach().values.grad
    x = ragged.from_dense(np.ones((2, 3, 4)), lengths=[1, 3])
    assert x.reshape(2, None, 2, 2).shape == (2, None, 2, 2)
    assert x.reshape((2, -1, 2, -1)).swapaxes(2, 3).shape == (2, None, 2, 2)
    with pytest.raises(ValueError, match="must start with the axes"):
        x.reshape(4, -1, 2)
    with pytest.raises(ValueError, match="ambiguous"):
        bool(r)


def test_lengths_are_those_of_ragged_axes():
    with pytest.raises(ValueError, match="axis 2 of shape"):
        ragged.from_dense(np.ones((2, 3, 4))).lengths(2)
    with pytest.raises(ValueError, match="axis 5 is out of bounds"):
        ragged.array(ROWS).lengths(5)


def test_single_elements_are_written():
    r = ragged.array([[1.0, 2.0], [3.0, 4.0, 5.0]])
    r[1, 2] = 9.0
    r[0, 1:] = 7.0
    assert r.tolist() == [[1.0, 7.0], [3.0, 4.0, 9.0]]
    nested = ragged.array([[[1, 2], [3]], [[4]]])
    nested[0, 1, 0] = 8
    nested[1, 0] = 5
    assert nested.tolist() == [[[1, 2], [8]], [[5]]]
    with pytest.raises(IndexError):
        r[0, 2] = 1.0
