"""Arrays as Python sees them: numbers, truth, length, iteration, copies, pickles."""

import copy
import math
import operator
import pickle

import numpy as onp
import pytest

import mxnet as mx
from mxnet import autograd, np

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
DTYPES += ["float16", "float32", "float64", "complex64", "complex128"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_item_and_tolist_give_python_numbers(dtype):
    source = onp.array([[0, 1, 1], [1, 0, 1]]).astype(dtype)
    x = np.array(source)
    assert x.tolist() == source.tolist()
    assert type(x.tolist()[0][0]) is type(source.tolist()[0][0])
    assert x[0, 1].item() == source[0, 1].item()
    assert type(x[0, 1].item()) is type(source[0, 1].item())
    assert x.item(4) == source.item(4)
    assert x.item(-1) == source.item(-1)
    assert x.item(1, 2) == x.item((1, 2)) == source.item(1, 2)
    assert x.T.item(1) == source.T.item(1)
    assert x[:, ::-1].item(2) == source[:, ::-1].item(2)


def test_extreme_numbers_survive():
    for value, dtype in (
        (2**63 - 1, "int64"),
        (-(2**63), "int64"),
        (2**64 - 1, "uint64"),
        (1e308, "float64"),
        (5e-324, "float64"),
        (-0.0, "float32"),
        (math.inf, "float16"),
        (complex(-0.0, math.inf), "complex128"),
    ):
        got = np.array(value, dtype=dtype).item()
        assert got == value
        assert repr(got) == repr(value)
    assert math.isnan(np.array(math.nan).item())


def test_item_refuses_positions_and_arrays_that_have_no_single_element():
    x = np.zeros((2, 3))
    with pytest.raises(ValueError, match="size 6"):
        x.item()
    with pytest.raises(IndexError, match="6"):
        x.item(6)
    with pytest.raises(IndexError):
        x.item(0, 3)
    with pytest.raises(ValueError, match="needs 2 indices, found 3"):
        x.item(0, 0, 0)
    with pytest.raises(TypeError):
        x.item("a")
    with pytest.raises(ValueError, match="size 0"):
        np.zeros((0,)).item()


@pytest.mark.parametrize("convert", [int, float, complex, bool])
@pytest.mark.parametrize("value", [0, 1, -3, 2.75, True])
def test_arrays_of_one_element_convert_to_numbers(convert, value):
    for x in (np.array(value), np.array([value]), np.array([[value]])):
        got = convert(x)
        assert got == convert(value)
        assert type(got) is convert


def test_arrays_of_several_elements_do_not():
    x = np.ones((2,))
    for convert in (int, float, complex):
        with pytest.raises(TypeError, match="length-1"):
            convert(x)
    with pytest.raises(ValueError, match="ambiguous"):
        bool(x)
    with pytest.raises(ValueError, match="ambiguous"):
        bool(np.zeros((0,)))
    with pytest.raises(OverflowError):
        int(np.array(math.inf))
    assert math.floor(np.array(2.5)) == 2
    assert round(float(np.array(2.5))) == 2


def test_index_is_for_integer_points():
    assert operator.index(np.array(3)) == 3
    assert [10, 20, 30][np.array(1, dtype="uint8")] == 20
    assert list(range(np.array(3))) == [0, 1, 2]
    for wrong in (np.array(3.0), np.array([3]), np.array(True)):
        with pytest.raises(TypeError, match="integer scalar"):
            operator.index(wrong)


def test_length_iteration_and_membership():
    x = np.array([[1, 2], [3, 4], [5, 6]])
    assert len(x) == 3
    assert [row.tolist() for row in x] == [[1, 2], [3, 4], [5, 6]]
    first, *_, last = x
    last[0] = 9
    assert x[2, 0].item() == 9
    assert first.shape == (2,)
    assert 4 in x
    assert 7 not in x
    assert [1, 2] in x
    assert math.nan not in np.array([math.nan])
    with pytest.raises(TypeError, match="unsized"):
        len(np.array(1))
    with pytest.raises(TypeError, match="0-d"):
        iter(np.array(1))
    assert list(np.zeros((0, 3))) == []
    assert sum(np.array([1, 2, 3])).item() == 6
    assert max(np.array([1, 3, 2])).item() == 3
    assert [y.tolist() for y in reversed(x)] == [[9, 6], [3, 4], [1, 2]]


def test_arrays_are_not_hashable_as_numpys_are_not():
    with pytest.raises(TypeError, match="unhashable"):
        hash(np.ones((1,)))


def test_equality_is_elementwise_and_foreign_objects_are_unequal():
    x = np.array([1, 2])
    assert (x == [1, 3]).tolist() == [True, False]
    assert (x == 2).tolist() == [False, True]
    assert (x == None) is False or (x == None).tolist() == [False, False]  # noqa: E711
    assert (x != "text") is True or (x != "text").tolist() == [True, True]


@pytest.mark.parametrize("dtype", [*DTYPES, "bfloat16"])
@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_and_pickles_are_equal_and_apart(dtype, again):
    for source in (np.array([[0, 1, 1], [1, 0, 1]], dtype=dtype), np.array(1, dtype=dtype), np.zeros((0, 2), dtype)):
        for x in (source, source.T):
            y = again(x)
            assert (str(y.dtype), y.shape, y.tolist()) == (str(x.dtype), x.shape, x.tolist())
            if y.size:
                y[...] = 0
                assert x.sum().item() == source.sum().item() != 0


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_every_pickle_protocol_works_and_waits(protocol):
    with mx.engine.mode("async"):
        x = np.cumsum(np.ones((100_000,)))
        y = pickle.loads(pickle.dumps(x, protocol))
    assert y[-1].item() == 100_000


def test_a_deep_copy_of_a_structure_keeps_sharing_inside_it():
    x = np.ones((2,))
    pair = copy.deepcopy([x, x])
    pair[0][0] = 5
    assert pair[1].tolist() == [5, 1]
    assert x.tolist() == [1, 1]


def test_copies_have_no_gradient_of_their_own():
    x = np.ones((2,))
    x.attach_grad()
    for again in (copy.copy, copy.deepcopy, lambda v: pickle.loads(pickle.dumps(v))):
        with autograd.pause():
            y = again(x)
        assert y.grad is None
        assert y.tolist() == [1, 1]


# ---- text ----


PRINTED = [
    onp.array(1.5),
    onp.array(7),
    onp.array(True),
    onp.array([]),
    onp.zeros((0, 3)),
    onp.zeros((2, 0)),
    onp.array([1.0, 2.5, -3.25]),
    onp.array([1, -20, 300]),
    onp.array([True, False]),
    onp.array([[1.0, 2.0], [3.0, 4.0]]),
    onp.arange(24.0).reshape(2, 3, 4) / 7,
    onp.array([1e-10, 1.0, 1e10]),
    onp.array([float("nan"), float("inf"), -float("inf"), -0.0]),
    onp.array([1 + 2j, 3 - 4j]),
    onp.arange(2000),
    onp.arange(2000.0) / 3,
    onp.arange(5000).reshape(50, 100),
    onp.array([1e-30, 1e30]),
    onp.array([0.1, 0.2, 0.30000001]),
]


@pytest.mark.parametrize("source", PRINTED, ids=lambda a: f"{a.dtype}{a.shape}")
def test_str_is_numpys(source):
    for dtype in {str(source.dtype), "float32" if source.dtype.kind == "f" else str(source.dtype)}:
        theirs = source.astype(dtype)
        assert str(np.array(theirs)) == str(theirs)
        assert f"{np.array(theirs)}" == f"{theirs}"


@pytest.mark.parametrize("source", PRINTED, ids=lambda a: f"{a.dtype}{a.shape}")
def test_repr_is_numpys_with_our_default_float_left_out(source):
    if source.dtype.kind == "f":
        # Where NumPy says dtype=float32 nothing is said, as it is the default; float64 is what has to be said.
        narrow = source.astype("float32")
        said = repr(narrow) if narrow.size == 0 else without_dtype(repr(narrow), "float32")
        assert repr(np.array(narrow)) == said
        assert "dtype=float64" in repr(np.array(source))
    elif source.dtype.kind != "c":
        assert repr(np.array(source)) == repr(source)


def without_dtype(text, name):
    """NumPy may have put the dtype on a line of its own."""
    for tail in (f", dtype={name})", f",\n      dtype={name})"):
        if text.endswith(tail):
            return text[: -len(tail)] + ")"
    return text


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint64", "float16", "float64"])
def test_repr_names_other_dtypes(dtype):
    x = onp.array([1, 2, 3]).astype(dtype)
    want = repr(x) if dtype != "float64" else repr(x)[:-1] + ", dtype=float64)"
    assert repr(np.array(x)) == want


def test_printing_follows_numpys_options():
    x = onp.array([1.23456789, 1e-7, 1000.0], "float32")
    with onp.printoptions(precision=2, suppress=True):
        assert str(np.array(x)) == str(x)
    with onp.printoptions(threshold=5, edgeitems=2):
        assert str(np.array(onp.arange(100))) == str(onp.arange(100))
    with onp.printoptions(linewidth=30):
        assert repr(np.array(onp.arange(30))) == repr(onp.arange(30))


def test_one_element_takes_format_specifications():
    assert f"{np.array(2.5):.2f}" == "2.50"
    assert f"{np.array([7]):03d}" == "007"
    with pytest.raises((TypeError, ValueError)):
        format(np.ones((2,)), ".2f")


def test_bfloat16_prints():
    pytest.importorskip("ml_dtypes")
    x = np.array([1.5, 2.0], dtype="bfloat16")
    assert "dtype=bfloat16" in repr(x)
    assert "1.5" in str(x)
