"""Histograms, counts, distinct elements, bits and folds without NaN, in arrays long enough for all code paths."""

import warnings

import numpy
import pytest

import mxnet as mx
from both import both
from mxnet import np


@pytest.fixture
def rng() -> numpy.random.Generator:
    return numpy.random.default_rng(7)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "uint8"])
@pytest.mark.parametrize("bins", [1, 10, 3000])
def test_histograms_of_a_number_of_bins_agree_with_edges(rng: numpy.random.Generator, dtype: str, bins: int) -> None:
    x = (rng.normal(size=20_000) * 40 + 100).astype(dtype)
    if dtype == "float16" and bins == 3000:
        with pytest.raises(ValueError, match="Cannot create 3000 finite-sized bins"):
            np.histogram(np.array(x, dtype=dtype), bins)
        return
    counts, edges = np.histogram(np.array(x, dtype=dtype), bins)
    assert counts.dtype == "int64"
    # The edges are ours, in our dtype: elements fall as a search among them says.
    expected = numpy.histogram(x.astype(edges.dtype).astype("float64"), edges.asnumpy().astype("float64"))[0]
    assert (counts.asnumpy() == expected).all()


def test_elements_on_edges_fall_into_the_bin_on_the_right() -> None:
    x = numpy.arange(0, 5000, dtype="float32") % 11
    counts, _ = np.histogram(np.array(x), 10, (0.0, 10.0))
    assert (counts.asnumpy() == numpy.histogram(x, 10, (0.0, 10.0))[0]).all()


def test_what_lies_outside_or_is_nan_is_not_counted(rng: numpy.random.Generator) -> None:
    x = rng.normal(size=5000)
    x[::7] = numpy.nan
    x[::11] = numpy.inf
    counts, _ = np.histogram(np.array(x, dtype="float64"), 20, (-1.0, 1.0))
    assert (counts.asnumpy() == numpy.histogram(x[~numpy.isnan(x)], 20, (-1.0, 1.0))[0]).all()


def test_weighted_histograms_add_up_the_weights(rng: numpy.random.Generator) -> None:
    x, w = rng.normal(size=5000), rng.uniform(size=5000)
    sums, _ = np.histogram(np.array(x, dtype="float64"), 20, (-1.0, 1.0), weights=np.array(w, dtype="float64"))
    numpy.testing.assert_allclose(sums.asnumpy(), numpy.histogram(x, 20, (-1.0, 1.0), weights=w)[0], rtol=1e-13)


@pytest.mark.parametrize("n", [0, 1, 8, 1000])
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "int64", "uint64"])
def test_searches_agree_with_numpy(rng: numpy.random.Generator, dtype: str, side: str, n: int) -> None:
    a = numpy.sort(rng.integers(0, 500, n).astype(dtype))
    v = rng.integers(0, 520, 5003).astype(dtype)
    found = np.searchsorted(np.array(a, dtype=dtype), np.array(v, dtype=dtype), side)
    assert (found.asnumpy() == numpy.searchsorted(a, v, side)).all()


def test_searches_put_nan_last_and_take_zeros_for_equal() -> None:
    a = np.array([-1.0, -0.0, 0.0, numpy.nan])
    v = np.array([0.0, -0.0, numpy.nan, numpy.inf, -numpy.inf])
    assert np.searchsorted(a, v).tolist() == [1, 1, 3, 3, 0]
    assert np.searchsorted(a, v, "right").tolist() == [3, 3, 4, 3, 0]


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "int64", "uint64", "float32", "float16"])
@pytest.mark.parametrize("high", [3, 120])
def test_distinct_elements_of_long_arrays(rng: numpy.random.Generator, dtype: str, high: int) -> None:
    x = rng.integers(0, high, 5000).astype(dtype)
    values, counts = np.unique(np.array(x, dtype=dtype), return_counts=True)
    alone = np.unique(np.array(x, dtype=dtype))
    assert values.dtype == alone.dtype == dtype
    for got, expected in zip((values, counts), numpy.unique(x, return_counts=True), strict=True):
        assert (got.asnumpy() == expected).all()
    assert (alone.asnumpy() == values.asnumpy()).all()


def test_distinct_integers_far_apart_and_at_the_ends_of_the_type() -> None:
    ends = [numpy.iinfo("int64").min, numpy.iinfo("int64").max, 0, -1]
    x = numpy.array(ends * 600)
    assert np.unique(np.array(x, dtype="int64")).tolist() == sorted(ends)


def test_distinct_nans_are_one_or_each_their_own() -> None:
    x = np.array([2.0, numpy.nan, 1.0, numpy.nan, 2.0])
    assert np.unique(x).shape == (3,)
    assert np.unique(x, equal_nan=False).shape == (4,)


@pytest.mark.parametrize("high", [1, 9, 5000])
def test_counts_of_integers(rng: numpy.random.Generator, high: int) -> None:
    x = rng.integers(0, high, 150_000)
    assert (np.bincount(np.array(x, dtype="int64")).asnumpy() == numpy.bincount(x)).all()


@pytest.mark.parametrize("order", ["big", "little"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int64"])
def test_bits_go_into_bytes_and_come_back(
    rng: numpy.random.Generator, dtype: str, axis: int | None, order: str
) -> None:
    x = rng.integers(0, 3, (19, 37)).astype(dtype)
    packed = np.packbits(np.array(x, dtype=dtype), axis, order)
    assert (packed.asnumpy() == numpy.packbits(x, axis, order)).all()
    for count in (None, 5, -3, 400):
        bits = np.unpackbits(packed, axis, count, order)
        assert (bits.asnumpy() == numpy.unpackbits(packed.asnumpy(), axis, count, order)).all()


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
def test_folds_without_nan_of_arrays_that_are_partly_nan(rng: numpy.random.Generator, axis: int | None) -> None:
    x = rng.normal(size=(70, 50)).astype("float32")
    x[rng.uniform(size=x.shape) < 0.3] = numpy.nan
    x[:, 4] = numpy.nan
    x[6] = numpy.nan
    for name in ("nanmax", "nanmin", "nansum"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            expected = getattr(numpy, name)(x, axis)
        numpy.testing.assert_allclose(getattr(np, name)(np.array(x), axis).asnumpy(), expected, rtol=1e-5)


def test_initial_values_stand_in_for_what_is_nan() -> None:
    x = np.array([[numpy.nan, numpy.nan], [1.0, numpy.nan]])
    assert np.nanmax(x, 1, initial=-2.0).tolist() == [-2.0, 1.0]
    assert np.nanmin(x, 1, initial=5.0, where=np.array([True, False])).tolist() == [5.0, 1.0]


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1), (1, 0, 1)])
def test_rolls_along_several_axes(axis: int | tuple[int, ...] | None) -> None:
    x = numpy.arange(35).reshape(5, 7)
    for shift in (0, 3, -9):
        assert (np.roll(np.array(x), shift, axis).asnumpy() == numpy.roll(x, shift, axis)).all()


def test_any_and_all_of_rows_and_columns(rng: numpy.random.Generator) -> None:
    x = rng.uniform(size=(40, 3000)) < 0.001
    for values in (x, ~x):
        ours = np.array(values)
        for axis in (None, 0, 1):
            assert (np.any(ours, axis).asnumpy() == values.any(axis)).all()
            assert (np.all(ours, axis).asnumpy() == values.all(axis)).all()


def test_bytes_other_than_0_and_1_are_true() -> None:
    x = np.array(numpy.array([[0, 2], [255, 0]], "uint8").view("bool"))
    assert np.any(x, 0).asnumpy().view("uint8").tolist() == [1, 1]
    assert np.all(x, 1).asnumpy().view("uint8").tolist() == [0, 0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_mantissas_and_exponents_of_all_sizes(dtype: str) -> None:
    info = numpy.finfo(dtype)
    x = numpy.array([0.0, -0.0, info.smallest_subnormal, -info.tiny, info.max, 1.0, -3.5, numpy.inf, numpy.nan], dtype)
    for got, expected in zip(np.frexp(np.array(x, dtype=dtype)), numpy.frexp(x), strict=True):
        numpy.testing.assert_array_equal(got.asnumpy(), expected)


def test_python_numbers_and_lists_of_arrays() -> None:
    assert int(np.array(3.9)) == 3 and int(np.array(-3.9)) == -3
    assert int(np.array(1e30, dtype="float64")) == int(1e30)
    assert int(np.array(True)) == 1 and type(int(np.array(True))) is int
    assert float(np.array(2**53 + 1, dtype="int64")) == 2.0**53
    for number in (numpy.inf, numpy.nan):
        with pytest.raises((OverflowError, ValueError)):
            int(np.array(number))
    with pytest.warns(numpy.exceptions.ComplexWarning):
        assert float(np.array(2 + 1j)) == 2.0
    assert np.array([[1, 2], [3, 4]]).T.tolist() == [[1, 3], [2, 4]]
    assert np.array([[]]).tolist() == [[]] and np.array(2.5).tolist() == 2.5
    assert np.zeros((2, 0, 3)).tolist() == [[], []]
    assert np.array([1j, True]).tolist() == [1j, 1 + 0j]
    assert np.array([1.5, 2.5], dtype="bfloat16").tolist() == [1.5, 2.5]


@pytest.mark.parametrize("sample", [[1, 2, 3], [], [1.0, 4.0], (2, 5, 9), [[1, 2, 3]], [[1, 2, 3], [0, 1, 5]]])
def test_a_list_of_numbers_is_points_on_a_line(sample) -> None:
    with mx.util.np_default_dtype(True):
        found, edges = np.histogramdd(sample, bins=2)
    expected, theirs = numpy.histogramdd(
        sample if not sample or numpy.ndim(sample) == 1 else numpy.array(sample).T, bins=2
    )
    assert found.shape == expected.shape
    assert found.tolist() == expected.tolist()
    assert [one.tolist() for one in edges] == [one.tolist() for one in theirs]


def test_coordinates_of_points_have_one_axis() -> None:
    for module in (np, numpy):
        with pytest.raises(ValueError):
            module.histogram2d(module.ones((2, 2)), module.ones((2, 2)))


@pytest.mark.filterwarnings("ignore:Casting complex values to real")
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize(
    "expression",
    [
        "np.histogram(x)",
        "np.histogram(x, 7, (-1, 2))",
        "np.histogram(x, 7, weights=x)",
        "np.histogram(x, 7, density=True)",
        "np.histogram(x, [-1, 0, 0.5, 2])",
        "np.histogram(x, np.sort(x[::10]))",
        "np.histogram(x.real, np.sort(x[::10]), weights=x.real)",
        "np.histogram(x[:0])",
        "np.histogram(x[:1])",
        "np.histogram_bin_edges(x, 5)",
        "np.histogram2d(x, x.imag, 4)",
        "np.histogram2d(x.imag, x, [4, [-1, 0, 1]])",
        "np.histogramdd(x.reshape(-1, 2), 3)",
        "np.histogram(x, 3, (0, np.inf))",
        "np.histogram(x + np.nan)",
    ],
)
def test_histograms_of_complex_numbers_are_numpys(rng: numpy.random.Generator, expression: str, dtype: str) -> None:
    x = (rng.normal(size=100) + 1j * rng.normal(size=100)).astype(dtype)
    # NumPy adds up weights in their own precision.
    both(expression, 1e-5 if dtype == "complex64" else 1e-14, x=x)
    if dtype == "complex128":
        both(expression, 1e-14, x=x.round(1))


@pytest.mark.parametrize(
    "shapes", [((2, 2), (2, 2)), ((2, 3), (2, 2)), ((2, 1), (2, 1)), ((), ()), ((3,), (2,)), ((0,), (0,))]
)
def test_planar_histograms_take_the_coordinates_that_numpy_takes(shapes) -> None:
    both("np.histogram2d(x, y)", x=numpy.ones(shapes[0]), y=numpy.ones(shapes[1]))
    both("np.histogram2d(x, y, 3)", x=numpy.ones(shapes[0], "f4"), y=numpy.ones(shapes[1], "f8"))


@pytest.mark.parametrize("rule", ["fd", "doane", "auto", "scott"])
@pytest.mark.parametrize("data", [[0, 5, 5, 5, 5, 5, 5, 9], [3, 7]])
@pytest.mark.parametrize("dtype", ["int64", "uint8"])
def test_rules_for_integers_without_a_width_give_numpys_edges(rule, data, dtype):
    data = numpy.array(data, dtype)
    found = np.histogram_bin_edges(np.array(data, dtype=dtype), rule)
    numpy.testing.assert_allclose(found.asnumpy(), numpy.histogram_bin_edges(data, rule), rtol=1e-6)


def test_more_bins_than_can_be_counted_are_refused():
    with pytest.raises(ValueError, match="too many `bins`"):
        np.histogram_bin_edges(np.array([0.0, 1.0]), 2**63 - 1)
