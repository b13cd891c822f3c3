"""Arrays from nested sequences, numbers and other arrays: shapes, dtypes, copies, orders of axes, classes."""

import collections

import numpy as onp
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mxnet as mx
from mxnet import autograd, np

COPIES = (ValueError, "copy=False")


class Derived(np.ndarray):
    """A class derived from ndarray."""


def nested(shape, leaf):
    return leaf() if not shape else [nested(shape[1:], leaf) for _ in range(shape[0])]


@given(
    st.lists(st.integers(0, 4), max_size=4),
    st.sampled_from([bool, int, float, complex]),
    st.randoms(use_true_random=False),
)
def test_nested_lists_are_read_as_numpy_reads_them(shape, kind, random):
    def leaf():
        x = random.randrange(-9, 9)
        return complex(x, x + 1) if kind is complex else kind(x)

    lists = nested(shape, leaf)
    want = onp.array(lists, dtype=None if onp.array(lists).size else "float64")
    narrow = {"float64": "float32", "complex128": "complex64"}
    got = np.array(lists)
    assert got.shape == want.shape
    assert got.dtype == narrow.get(want.dtype.name, want.dtype.name)
    assert got.tolist() == want.tolist()


@pytest.mark.parametrize(
    ("lists", "dtype", "want"),
    [
        ([True, 2], None, "int64"),
        ([True, 2.5], None, "float32"),
        ([1, 2.5j], None, "complex64"),
        ([2**63], None, "uint64"),
        ([], None, "float32"),
        ([[], []], None, "float32"),
        ([1.9, -1.9], "int8", "int8"),
        ([1, 0, 2], "bool", "bool"),
        ([float("nan"), 0.0], "bool", "bool"),
        ([2**70, 1], "float64", "float64"),
        ([2**40, 1], "float32", "float32"),
        ([1, 2], "complex128", "complex128"),
        ([1.5, 2], "float16", "float16"),
        ((1, (2,)[0]), None, "int64"),
        ([(1, 2), [3, 4]], None, "int64"),
        (range(4), None, "int64"),
        ([range(3), range(3)], None, "int64"),
        (collections.deque([1, 2]), None, "int64"),
        ([onp.int8(3), onp.int8(4)], None, "int8"),
        ([onp.float32(3), 4], None, "float32"),
        ([onp.uint64(2**64 - 1)], None, "uint64"),
        ([onp.array([1, 2], "int16"), onp.array([3, 4], "int32")], None, "int32"),
        ([onp.bool_(True), False], None, "bool"),
    ],
)
def test_dtypes_of_lists(lists, dtype, want):
    with onp.errstate(invalid="ignore"):
        reference = onp.array(list(lists), dtype=dtype or want)
    got = np.array(lists, dtype=dtype)
    assert got.dtype == want
    assert got.shape == reference.shape
    assert got.tolist() == reference.tolist()


def test_bfloat16_is_rounded_to():
    assert np.array([1.0, 2.00390625, 3.0], dtype="bfloat16").tolist() == [1.0, 2.0, 3.0]


def test_numpys_mode_reads_python_floats_as_float64():
    mx.util.set_np(dtype=True)
    try:
        assert np.array([1.0, 2]).dtype == "float64"
        assert np.array([1j]).dtype == "complex128"
        assert np.array([onp.float32(1), 2.0]).dtype == "float64"
    finally:
        mx.util.set_np(dtype=False)


def test_arrays_and_numbers_stand_in_lists_together():
    x = np.array([1.0, 2.0])
    assert np.array([x, [3, 4], onp.array([5, 6]), (np.array(7), onp.float32(8))]).tolist() == [
        [1, 2],
        [3, 4],
        [5, 6],
        [7, 8],
    ]
    assert np.array([x]).shape == (1, 2)
    assert np.array([np.zeros((0, 3)), onp.ones((0, 3))]).shape == (2, 0, 3)
    got = np.array([x])
    got[0, 0] = 9
    assert x[0].item() == 1, "the list's array was handed out"


def test_gradients_flow_through_lists_of_arrays():
    x = np.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        y = (np.array([x * x, x]) * np.array([[1.0], [10.0]])).sum()
    y.backward()
    assert x.grad.tolist() == [12, 14]


@pytest.mark.parametrize(
    "ragged",
    [
        [[1, 2], [3]],
        [[1, 2], 3],
        [1, [2, 3]],
        [[1], [[2]]],
        [[], [1]],
        [[[1, 2]], [[3]]],
        [np.ones((2,)), [1]],
        [np.ones(()), [1]],
        [onp.ones((1, 2)), [1, 2]],
    ],
)
def test_ragged_lists_are_refused(ragged):
    with pytest.raises(ValueError, match="inhomogeneous shape"):
        np.array(ragged)
    converted = [x.asnumpy() if isinstance(x, np.ndarray) else x for x in ragged]
    with pytest.raises(ValueError):
        onp.array(converted)


@pytest.mark.parametrize(
    ("value", "dtype", "error", "match"),
    [
        ([300], "int8", OverflowError, "300 .*int8"),
        ([1, -1], "uint8", OverflowError, "-1 .*uint8"),
        ([2**64], None, OverflowError, "about 1.8.*int64"),
        ([2**63, -1], "int64", OverflowError, "9223372036854775808 .*int64"),
        ([float("nan")], "int32", ValueError, "NaN"),
        ([float("inf")], "int32", OverflowError, "inf"),
        ([1e30], "int64", OverflowError, "1e30|1000"),
        ([1j], "float32", TypeError, "complex"),
        (1j, "float32", TypeError, "complex"),
        (["a"], None, TypeError, "numbers"),
        ("a", None, TypeError, "numbers"),
        (None, None, TypeError, "numbers"),
        ([None], None, TypeError, "numbers"),
        ({1: 2}, None, TypeError, "numbers"),
        ({1, 2}, None, TypeError, "numbers"),
    ],
)
def test_what_is_no_number_or_does_not_fit_is_refused(value, dtype, error, match):
    with pytest.raises(error, match=match):
        np.array(value, dtype=dtype)


@pytest.mark.parametrize(
    ("value", "cause"),
    [
        ((i for i in range(2)), "object: found an object of class generator\\n  hint: make a list of its items"),
        (map(int, "12"), "object: found an object of class map\\n  hint: make a list of its items"),
        ({1, 2}, "object: found an object of class set\\n  hint: make a list of its items"),
        ([1, None], "object: found an object of class NoneType$"),
    ],
)
def test_objects_that_are_no_numbers_are_named(value, cause):
    with pytest.raises(mx.error.DTypeError, match=f"^array: arrays of numbers cannot have dtype {cause}"):
        np.array(value)


def test_an_array_is_no_dtype():
    with pytest.raises(TypeError, match="cannot construct a dtype from an array: its `dtype` is one"):
        np.ones(2).astype(np.ones(3))


def test_depth_is_bounded():
    endless = []
    endless.append(endless)
    with pytest.raises(ValueError, match="number of dimension of 64"):
        np.array(endless)
    with pytest.raises(ValueError, match="number of dimension of 1"):
        np.array([[1, 2], [3, 4]], ndmax=1)
    assert np.array([[1, 2], [3, 4]], ndmax=2).shape == (2, 2)


def test_ndmin_puts_axes_in_front():
    assert np.array(5, ndmin=2).shape == (1, 1)
    assert np.array([1, 2], ndmin=3).shape == (1, 1, 2)
    assert np.array([[1, 2]], ndmin=1).shape == (1, 2)


def test_copy_false_never_copies():
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    source = onp.ones((2, 3), "float32")
    for make in (np.array, np.asarray, np.asanyarray):
        assert make(x, copy=False) is x
        shared = make(source, copy=False)
        shared[0, 0] = 7
        assert source[0, 0] == 7
        source[0, 0] = 1
        for refused in (
            lambda make=make: make([1, 2], copy=False),
            lambda make=make: make(1.5, copy=False),
            lambda make=make: make(onp.float32(1), copy=False),
            lambda make=make: make(x, dtype="float64", copy=False),
            lambda make=make: make(x, order="F", copy=False),
            lambda make=make: make(x, device=mx.cpu(1), copy=False),
            lambda make=make: make(source, dtype="int32", copy=False),
            lambda make=make: make(source, order="F", copy=False),
            lambda make=make: make(source.astype(">f4"), copy=False),
        ):
            with pytest.raises(COPIES[0], match=COPIES[1]):
                refused()


def test_copy_true_always_copies_and_none_only_if_needed():
    x = np.array([1.0, 2.0])
    source = onp.ones(3, "float32")
    for make in (np.array, np.asarray, np.asanyarray):
        copy = make(x, copy=True)
        copy[0] = 9
        assert x[0].item() == 1
        copy = make(source, copy=True)
        source[0] = 5
        assert copy[0].item() == 1
        source[0] = 1
        assert make(x, copy=None) is x
        shared = make(source, copy=None)
        source[0] = 6
        assert shared[0].item() == 6
        source[0] = 1
        assert make([1, 2], copy=None).tolist() == [1, 2]
    assert np.array(x) is not x
    assert np.asarray(x) is x


ORDERS = ["C", "F", "A", "K"]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("source", ["c", "f", "mixed", "strided"])
def test_orders_of_axes_are_numpys(order, source):
    base = onp.arange(24, dtype="float32").reshape(2, 3, 4)
    theirs = {"c": base, "f": base.T, "mixed": base.transpose(1, 0, 2), "strided": onp.repeat(base, 2, 2)[:, :, ::2]}[
        source
    ]
    ours = np.array(theirs, copy=None)
    assert ours.strides == theirs.strides
    for name, got, want in (
        ("array", np.array(ours, order=order), onp.array(theirs, order=order)),
        ("array of NumPy's", np.array(theirs, order=order), onp.array(theirs, order=order)),
        ("copy", np.copy(ours, order=order), onp.copy(theirs, order=order)),
        ("method", ours.copy(order=order), theirs.copy(order=order)),
        ("astype", ours.astype("float64", order=order), theirs.astype("float64", order=order)),
        ("same", ours.astype("float32", order=order), theirs.astype("float32", order=order)),
        ("asarray", np.asarray(ours, order=order), onp.asarray(theirs, order=order)),
        ("zeros_like", np.zeros_like(ours, order=order), onp.zeros_like(theirs, order=order)),
        ("ones_like", np.ones_like(ours, order=order), onp.ones_like(theirs, order=order)),
        ("full_like", np.full_like(ours, 3, order=order), onp.full_like(theirs, 3, order=order)),
        ("empty_like", np.empty_like(ours, order=order), onp.empty_like(theirs, order=order)),
    ):
        assert got.strides == want.strides, name
        if name != "empty_like":
            onp.testing.assert_array_equal(got.asnumpy(), want, name)


def test_constants_take_an_order():
    for name in ("zeros", "ones", "empty"):
        assert getattr(np, name)((2, 3, 4), order="F").strides == (4, 8, 24)
        assert getattr(np, name)((2, 3, 4), "int8", "C").strides == (12, 4, 1)
        with pytest.raises(ValueError, match="order"):
            getattr(np, name)((2,), order="Z")
    assert np.full((2, 3), 7, order="F").strides == (8, 16)
    assert np.full((2, 3), [1, 2, 3], order="F").tolist() == [[1, 2, 3], [1, 2, 3]]
    assert np.full((2, 3), [1.0, 2.0, 3.0], "int32").tolist() == [[1, 2, 3], [1, 2, 3]]
    assert np.full_like(np.ones((2, 3)).T, np.array([1, 2])).tolist() == [[1, 2]] * 3
    with pytest.raises(ValueError, match="broadcast"):
        np.full((2, 3), [1, 2])
    with pytest.raises(OverflowError, match="300"):
        np.full((2,), 300, "int8")
    with pytest.raises(ValueError, match="-1"):
        np.zeros((2, -1))
    with pytest.raises(TypeError):
        np.zeros("a")


def test_small_and_large_constants_agree():
    for n in (0, 1, 4096, 4097, 100_000):
        assert np.zeros(n).asnumpy().sum() == 0
        assert np.ones((n,), "int32").asnumpy().sum() == n
        assert (np.full(n, 2.5).asnumpy() == 2.5).all()
        assert np.empty(n, dtype="bool").shape == (n,)


def test_contiguous_arrays_have_an_axis():
    x = np.arange(6).reshape(2, 3)
    assert np.ascontiguousarray(x) is x
    assert np.ascontiguousarray(x.T).strides == (16, 8)
    assert np.ascontiguousarray(5).shape == (1,)
    assert np.asfortranarray(x.T).strides == (8, 24)
    assert np.asfortranarray(x).strides == (8, 16)
    assert np.asfortranarray(5).shape == (1,)
    assert np.ascontiguousarray([1, 2], dtype="float64").dtype == "float64"


def test_like_says_on_which_device():
    there = np.zeros(2, device=mx.cpu(1))
    for made in (
        np.array([1], like=there),
        np.asarray([1], like=there),
        np.zeros(2, like=there),
        np.full(2, 3, like=there),
    ):
        assert made.device == mx.cpu(1)
    assert np.zeros(2, like=there, device=mx.cpu(0)).device == mx.cpu(0)
    assert np.zeros_like(there).device == mx.cpu(1)
    assert np.ones_like(there, device=mx.cpu(0)).device == mx.cpu(0)
    for wrong in (
        lambda: np.array([1], like=onp.ones(1)),
        lambda: np.asarray([1], like=5),
        lambda: np.zeros(2, like=5),
    ):
        with pytest.raises(TypeError, match="like"):
            wrong()


def test_derived_classes_are_kept_where_asked():
    x = Derived((2, 3))
    assert type(x) is Derived
    assert x.shape == (2, 3)
    assert type(np.asarray(x)) is np.ndarray
    assert np.asanyarray(x) is x
    assert type(np.asanyarray(x, dtype="float64")) is Derived
    assert type(np.array(x)) is np.ndarray
    assert type(np.array(x, subok=True)) is Derived
    assert type(np.copy(x)) is np.ndarray
    assert type(np.copy(x, subok=True)) is Derived
    assert type(np.zeros_like(x)) is Derived
    assert type(np.zeros_like(x, subok=False)) is np.ndarray
    assert type(x.astype("float64")) is Derived
    assert type(x.astype("float64", subok=False)) is np.ndarray
    shared = np.asarray(x)
    shared[0, 0] = 5
    assert x[0, 0].item() == 5


def test_the_class_makes_arrays():
    assert np.ndarray((2, 3)).shape == (2, 3)
    assert np.ndarray(4, "int8").dtype == "int8"
    assert np.ndarray((2, 3), order="F").strides == (4, 8)
    memory = bytearray(16)
    x = np.ndarray((2,), "int32", buffer=memory, offset=4, strides=(8,))
    x[1] = 7
    assert memory[12] == 7
    with pytest.raises(TypeError):
        np.ndarray((8,), "int32", buffer=memory)
    with pytest.raises(ValueError, match="buffer"):
        np.ndarray((2,), offset=4)
    with pytest.raises(ValueError, match="-1"):
        np.ndarray((-1,))


def test_membership_is_equality_with_any_element():
    x = np.array([[1, 2], [3, 4]])
    assert 3 in x
    assert 5 not in x
    assert [3, 4] in x
    assert onp.int8(4) in x
    assert np.array(2) in x
    assert "a" not in x
    assert None not in x
    assert 1 not in np.zeros((0, 3))
    assert float("nan") not in np.array([float("nan")])
