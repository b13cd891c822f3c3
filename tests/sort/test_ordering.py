"""Sorting, selecting, searching and counting against NumPy."""

import hypothesis
import numpy
import pytest
from hypothesis import strategies as st

from mxnet import numpy as mxnp
from mxnet import numpy_extension as npx

DTYPES = ["bool", "int8", "uint8", "int32", "int64", "uint64", "float16", "float32", "float64", "complex64"]
SETTINGS = hypothesis.settings(max_examples=200, deadline=None, derandomize=True)


@st.composite
def arrays(draw, min_axes=1):
    """Small arrays with ties; floats with NaN, infinities and both zeros."""
    shape = tuple(draw(st.lists(st.integers(0, 5), min_size=min_axes, max_size=3)))
    dtype = draw(st.sampled_from(DTYPES))
    count = int(numpy.prod(shape))
    values = st.integers(0, 3)
    if dtype.startswith("float"):
        values = values | st.sampled_from([-1.5, float("nan"), float("inf"), -float("inf"), -0.0])
    return numpy.array(draw(st.lists(values, min_size=count, max_size=count))).astype(dtype).reshape(shape)


@SETTINGS
@hypothesis.given(arrays(), st.data())
def test_sort_and_argsort_agree_with_numpy(a, data):
    axis = data.draw(st.none() | st.integers(-a.ndim, a.ndim - 1))
    numpy.testing.assert_array_equal(mxnp.sort(mxnp.array(a), axis).asnumpy(), numpy.sort(a, axis))
    found = mxnp.argsort(mxnp.array(a), axis, kind="stable")
    assert found.dtype == "int64"
    numpy.testing.assert_array_equal(found.asnumpy(), numpy.argsort(a, axis, kind="stable"))


@SETTINGS
@hypothesis.given(arrays(), st.data())
def test_positions_of_extremes_are_numpys(a, data):
    axis = data.draw(st.none() | st.integers(-a.ndim, a.ndim - 1))
    keepdims = data.draw(st.booleans())
    for name in ("argmax", "argmin"):
        try:
            expected = getattr(numpy, name)(a, axis, keepdims=keepdims)
        except ValueError:
            with pytest.raises(ValueError, match="empty"):
                getattr(mxnp, name)(mxnp.array(a), axis, keepdims=keepdims)
            continue
        found = getattr(mxnp, name)(mxnp.array(a), axis, keepdims=keepdims)
        numpy.testing.assert_array_equal(found.asnumpy(), expected)


@SETTINGS
@hypothesis.given(arrays(), st.data())
def test_unique_agrees_with_numpy(a, data):
    flags = data.draw(st.tuples(*[st.booleans()] * 3))
    equal_nan = data.draw(st.booleans())
    expected = numpy.unique(a, *flags, equal_nan=equal_nan)
    found = mxnp.unique(mxnp.array(a), *flags, equal_nan=equal_nan)
    if not any(flags):
        expected, found = (expected,), (found,)
    for x, y in zip(found, expected, strict=True):
        numpy.testing.assert_array_equal(x.asnumpy(), y)


@SETTINGS
@hypothesis.given(arrays(), st.data())
def test_unique_along_an_axis_agrees_with_numpy(a, data):
    hypothesis.assume(a.size and not numpy.isnan(a).any())
    axis = data.draw(st.integers(-a.ndim, a.ndim - 1))
    expected = numpy.unique(a, True, True, True, axis=axis)
    found = mxnp.unique(mxnp.array(a), True, True, True, axis=axis)
    for x, y in zip(found, expected, strict=True):
        numpy.testing.assert_array_equal(x.asnumpy(), y)


@SETTINGS
@hypothesis.given(arrays(), st.data())
def test_partitions_put_the_element_in_its_place(a, data):
    axis = data.draw(st.integers(-a.ndim, a.ndim - 1))
    n = a.shape[axis]
    hypothesis.assume(n and not numpy.isnan(a).any())
    kth = data.draw(st.integers(-n, n - 1))
    ordered = numpy.moveaxis(numpy.sort(a, axis), axis, 0)
    rows = numpy.moveaxis(mxnp.partition(mxnp.array(a), kth, axis).asnumpy(), axis, 0)
    at = mxnp.argpartition(mxnp.array(a), kth, axis).asnumpy()
    chosen = numpy.moveaxis(numpy.take_along_axis(a, at, axis), axis, 0)
    for found in (rows, chosen):
        numpy.testing.assert_array_equal(found[kth], ordered[kth])
        numpy.testing.assert_array_equal(numpy.sort(found, 0), ordered)
        numpy.testing.assert_array_equal(numpy.sort(found[: kth % n], 0), ordered[: kth % n])


@SETTINGS
@hypothesis.given(arrays(), arrays(0), st.sampled_from(["left", "right"]))
def test_searchsorted_agrees_with_numpy(a, v, side):
    # Both sides promote differently here (integers with floats stay narrow); values of this size are exact in either.
    a = numpy.sort(a.reshape(-1))
    found = mxnp.searchsorted(mxnp.array(a), mxnp.array(v), side)
    numpy.testing.assert_array_equal(found.asnumpy(), numpy.searchsorted(a, v, side))


@SETTINGS
@hypothesis.given(arrays(), st.data())
def test_topk_returns_the_first_of_a_sort(a, data):
    hypothesis.assume(a.dtype.kind == "f" and not numpy.isnan(a).any())
    axis = data.draw(st.integers(-a.ndim, a.ndim - 1))
    n = a.shape[axis]
    hypothesis.assume(n)
    k, ascending = data.draw(st.integers(1, n)), data.draw(st.booleans())
    at = numpy.take(numpy.argsort(a if ascending else -a, axis, kind="stable"), range(k), axis)
    x = mxnp.array(a)
    values, indices = npx.topk(x, axis, k, "both", ascending, "int32")
    assert indices.dtype == "int32"
    numpy.testing.assert_array_equal(indices.asnumpy(), at)
    numpy.testing.assert_array_equal(values.asnumpy(), numpy.take_along_axis(a, at, axis))
    mask = npx.topk(x, axis, k, "mask", ascending).asnumpy()
    expected = numpy.zeros(a.shape, a.dtype)
    numpy.put_along_axis(expected, at, 1, axis)
    numpy.testing.assert_array_equal(mask, expected)


def test_topk_refuses_more_than_there_are():
    with pytest.raises(ValueError, match=r"0\.\.=3.*found 5"):
        npx.topk(mxnp.zeros((2, 3)), k=5)


def test_long_rows_sort_as_in_numpy():
    a = numpy.random.default_rng(5).standard_normal((2, 100_000)).astype("float32")
    x = mxnp.array(a)
    numpy.testing.assert_array_equal(mxnp.sort(x).asnumpy(), numpy.sort(a))
    numpy.testing.assert_array_equal(mxnp.argsort(x).asnumpy(), numpy.argsort(a, kind="stable"))


def test_sorting_in_place():
    x = mxnp.array([[3, 1, 2], [9, 7, 8]])
    assert x.sort() is None
    assert x.asnumpy().tolist() == [[1, 2, 3], [7, 8, 9]]
    x.partition(0, axis=0)
    assert x.asnumpy().tolist() == [[1, 2, 3], [7, 8, 9]]


def test_sorting_by_fields_is_refused():
    with pytest.raises(ValueError, match="'f'"):
        mxnp.sort(mxnp.zeros((3,)), order="f")


@pytest.mark.parametrize(
    ("arguments", "keywords"),
    [
        (([0, 1, 1, 3],), {}),
        (([0, 1, 1, 3], [0.5, 1, 2, 4]), {}),
        (([1],), {"minlength": 5}),
        ((numpy.zeros(0, int),), {"minlength": 2}),
    ],
)
def test_bincount_agrees_with_numpy(arguments, keywords):
    found = mxnp.bincount(*[mxnp.array(x) for x in arguments], **keywords)
    numpy.testing.assert_array_equal(found.asnumpy(), numpy.bincount(*arguments, **keywords))


def test_bincount_refuses_negative_numbers():
    with pytest.raises(ValueError, match="found -2"):
        mxnp.bincount(mxnp.array([1, -2]))


def test_lexsort_agrees_with_numpy():
    rng = numpy.random.default_rng(2)
    keys = rng.integers(0, 3, (3, 50))
    numpy.testing.assert_array_equal(mxnp.lexsort(list(keys)).asnumpy(), numpy.lexsort(keys))


def test_where_with_one_argument_finds_positions():
    a = numpy.array([[0, 1], [2, 0]])
    for x, y in zip(mxnp.where(mxnp.array(a)), numpy.where(a), strict=True):
        numpy.testing.assert_array_equal(x.asnumpy(), y)
    assert isinstance(mxnp.nonzero(mxnp.array([1, 0])), tuple)
    with pytest.raises(ValueError, match="both or neither"):
        mxnp.where(mxnp.array(a), 1)


def test_put_and_put_along_axis_agree_with_numpy():
    rng = numpy.random.default_rng(4)
    a = rng.standard_normal((3, 4))
    x = mxnp.array(a)
    at = rng.integers(-4, 4, (3, 2))
    numpy.put_along_axis(a, at, 7, 1)
    mxnp.put_along_axis(x, mxnp.array(at), 7, 1)
    numpy.put(a, [-1, 3, 5], [1, 2])
    mxnp.put(x, [-1, 3, 5], [1, 2])
    numpy.put(a, [30, -20], 5, mode="wrap")
    x.put([30, -20], 5, mode="wrap")
    numpy.testing.assert_array_equal(x.asnumpy(), a)
    with pytest.raises(IndexError, match="99"):
        mxnp.put(x, 99, 0)


@pytest.mark.parametrize(
    "dtypes",
    [("float32", "float64"), ("int8", "uint64", "bool"), ("float16", "int64"), ("float64",) * 5, ("complex64",)],
)
def test_lexsort_of_short_and_long_rows_keeps_the_order_of_equals(dtypes):
    rng = numpy.random.default_rng(len(dtypes))
    for n in (0, 1, 2, 16, 63, 64, 65, 200):
        keys = [rng.integers(0, 4, n).astype(dtype) for dtype in dtypes]
        for key in keys:
            if key.dtype.kind == "f":
                key[key == 3] = numpy.nan
                key[key == 2] *= -1
                key[::3] *= -0.0
            if key.dtype == "uint64":
                key[key == 1] += numpy.uint64(2**63)
        for axis in (-1, 0):
            found = mxnp.lexsort(tuple(mxnp.array(key) for key in keys), axis=axis)
            assert found.dtype == "int64"
            assert found.tolist() == numpy.lexsort(keys, axis=axis).tolist()
