"""The parameters `dtype`, `initial` and `order` of reductions and of other functions, against NumPy."""

import numpy
import pytest

import mxnet as mx

np = mx.np
HALVES = numpy.array([[0.5, 0.7, 0.2], [1.5, 2.5, -3.7]])


@pytest.fixture(autouse=True)
def numpys_dtypes():
    mx.util.set_np(dtype=True)
    yield
    mx.util.set_np(dtype=False)


def same(got, want):
    got, want = numpy.asarray(got.asnumpy()), numpy.asarray(want)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    numpy.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["int32", "int64", "int8", "bool"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("name", ["sum", "prod", "cumsum", "cumprod"])
def test_elements_become_integers_before_they_are_folded(name, axis, dtype):
    for x in (HALVES, HALVES.T, HALVES[:, ::-1], HALVES.astype("float32")):
        same(getattr(np, name)(np.array(x), axis, dtype=dtype), getattr(numpy, name)(x, axis, dtype=dtype))


def test_other_folds_take_integers_first_too():
    x = np.array(HALVES)
    same(np.nansum(x, dtype="int64"), numpy.nansum(HALVES, dtype="int64"))
    same(np.nanprod(x, 1, dtype="int64"), numpy.nanprod(HALVES, 1, dtype="int64"))
    with_nan = numpy.array([0.5, numpy.nan, 2.7])
    same(np.nansum(np.array(with_nan), dtype="int64"), numpy.nansum(with_nan, dtype="int64"))
    same(np.trace(x, dtype="int64"), numpy.trace(HALVES, dtype="int64"))
    same(np.add.reduce(x, 0, dtype="int64"), numpy.add.reduce(HALVES, 0, dtype="int64"))


@pytest.mark.parametrize("arguments", [(0, 5, 0.5), (-3, 3, 0.5), (0, 10, 2.9), (0.5, 4), (5, 0, -0.7)])
@pytest.mark.parametrize("dtype", ["int64", "uint8", "int16"])
def test_ranges_of_integers_keep_the_distance_of_their_first_two_numbers(arguments, dtype):
    if arguments[0] >= 0 or dtype != "uint8":
        same(np.arange(*arguments, dtype=dtype), numpy.arange(*arguments, dtype=dtype))


def test_ravel_takes_elements_as_they_lie():
    theirs = numpy.arange(24).reshape(2, 3, 4)
    ours = np.array(theirs)
    for turn in (
        lambda x: x,
        lambda x: x.T,
        lambda x: x.swapaxes(1, 2),
        lambda x: x.transpose(1, 0, 2),
        lambda x: x.T[:, ::-1],
        lambda x: x[::-1, :, ::2],
    ):
        for order in "CFAK":
            same(turn(ours).ravel(order), turn(theirs).ravel(order))
            same(turn(ours).flatten(order), turn(theirs).flatten(order))


def test_starts_of_another_kind_become_what_the_result_is_made_of():
    truths = numpy.array([False, True])
    same(np.min(np.array(truths), initial=-1), numpy.min(truths, initial=-1))
    same(np.minimum.reduce(np.array(truths), initial=-1), numpy.minimum.reduce(truths, initial=-1))
    same(np.sum(np.array([1, 2]), initial=2.5), numpy.sum([1, 2], initial=2.5))
    same(np.nansum(np.array([1, 2]), initial=2.5), numpy.nansum([1, 2], initial=2.5))
    same(np.nanmax(np.array([True]), initial=5), numpy.nanmax([True], initial=5))
    single = numpy.array([1, 2], "float32")
    same(np.nanmax(np.array(single), initial=numpy.float64(1.5)), numpy.nanmax(single, initial=numpy.float64(1.5)))
    same(np.nansum(np.array([1.0]), initial=None), numpy.nansum([1.0], initial=None))


def test_folds_of_one_element_drop_its_sign_where_the_function_does():
    same(np.hypot.reduce(np.array([-2.0])), numpy.hypot.reduce([-2.0]))
    same(np.gcd.reduce(np.array([[-4], [6]]), axis=1), numpy.gcd.reduce([[-4], [6]], axis=1))
    same(np.gcd.reduce(np.array([[-4, 6]]), axis=0), numpy.gcd.reduce([[-4, 6]], axis=0))


@pytest.mark.parametrize("method", ["reduce", "accumulate"])
def test_negative_exponents_of_integers_are_refused_in_folds(method):
    with pytest.raises(ValueError, match="negative integer powers"):
        getattr(np.power, method)(np.array([2, -1]))
    same(getattr(np.power, method)(np.array([-2, 3])), getattr(numpy.power, method)(numpy.array([-2, 3])))
    same(getattr(np.power, method)(np.array([2.0, -1])), getattr(numpy.power, method)(numpy.array([2.0, -1])))


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "max", "min", "cumsum", "cumprod"])
def test_folds_convert_to_whatever_out_is(name):
    x = numpy.array([0.5, 1.7, 2.9])
    shape = (3,) if name.startswith("cum") else ()
    for dtype in ("int64", "float32", "bool"):
        ours, theirs = np.zeros(shape, dtype=dtype), numpy.zeros(shape, dtype)
        assert getattr(np, name)(np.array(x), out=ours) is ours
        getattr(numpy, name)(x, out=theirs)
        numpy.testing.assert_allclose(ours.asnumpy(), theirs, rtol=1e-6)  # NumPy's mean divides what `out` holds
    with pytest.raises(TypeError, match="same_kind"):
        np.std(np.array(x), out=np.zeros((), dtype="int64"))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: np.average(x, axis=5), "average: axis 5 is out of bounds for array of dimension 2"),
        (lambda x: np.average(x, axis=5, weights=x), "average: axis 5 is out of bounds for array of dimension 2"),
        (
            lambda x: np.cov(x, np.ones((1, 4))),
            "cov: `y` must have 3 observations, as many as the first array, found 4",
        ),
        (lambda x: np.corrcoef(x, np.ones(4)), "corrcoef: `y` must have 3 observations, as many as the first array"),
        (lambda x: np.put(x, [7], 1), "put: index 7 is out of bounds for axis 0 with size 6"),
        (lambda x: np.take(x, [7]), "take: index 7 is out of bounds for axis 0 with size 6"),
        (lambda x: np.compress([0, 0, 1], x, axis=0), "compress: index 2 is out of bounds for axis 0 with size 2"),
        (lambda x: np.delete(x, [0, 7]), "delete: index 7 is out of bounds for axis 0 with size 6"),
        (lambda x: np.nanmean(x, axis=5), "nanmean: axis 5 is out of bounds for array of dimension 2"),
        *(
            (
                lambda x, name=name: getattr(np, name)(x, where=np.ones(2) > 0),
                f"{name}: `where` of shape \\(2,\\) does not",
            )
            for name in ("nansum", "nanprod", "nanmean", "nanvar", "nanstd")
        ),
        (lambda x: np.nanmax(x, where=np.ones(2) > 0, initial=0), r"nanmax: `where` of shape \(2,\) does not"),
        (lambda x: np.histogram(x, bins=0), "histogram: `bins` must be positive, when an integer, found 0"),
        (lambda x: np.histogram(x, bins=[3, 1]), "histogram: `bins` must increase monotonically"),
        (lambda x: np.histogram(x, "foo"), "histogram: 'foo' is not a valid estimator"),
        (lambda x: np.histogram(x, weights=np.ones(4)), r"histogram: `weights` .* found \(4,\) and \(2, 3\)"),
        (lambda x: np.histogram_bin_edges(x, 0), "histogram_bin_edges: `bins` must be positive"),
        (lambda x: np.histogramdd(x, 0), r"histogramdd: `bins\[0\]` must be positive"),
    ],
)
def test_errors_name_the_function_that_was_called(call, message):
    with pytest.raises((ValueError, IndexError), match=f"^{message}"):
        call(np.ones((2, 3)))


def test_ranges_that_no_bins_divide_are_errors():
    for values in ([1e308, -1e308], [2**53, 2**53 + 1]):
        with pytest.raises(ValueError, match="Too many bins"), numpy.errstate(all="ignore"):
            numpy.histogram(values, bins=10)
        with pytest.raises(ValueError, match="Too many bins"):
            np.histogram(np.array(values), bins=10)


def test_devices_of_the_namespace_may_be_named():
    info = np.__array_namespace_info__()
    assert info.dtypes(device="cpu") == info.dtypes(device=str(mx.cpu())) == info.dtypes()
    with pytest.raises(ValueError, match="'moon'"):
        info.dtypes(device="moon")


def test_single_precision_beside_integers_is_double_precision():
    x = numpy.array([1.5, 2.5, 4.0], "float32")
    for name, arguments in (("vander", (3,)), ("cov", ()), ("bincount", ())):
        if name == "bincount":
            ours, theirs = np.bincount(np.array([0, 1, 1]), np.array(x)), numpy.bincount([0, 1, 1], x)
        else:
            ours, theirs = getattr(np, name)(np.array(x), *arguments), getattr(numpy, name)(x, *arguments)
        assert ours.dtype == theirs.dtype == "float64", name
        numpy.testing.assert_allclose(ours.asnumpy(), theirs, rtol=1e-12)
    fit, want = np.polyfit(np.array(x), np.array(x) ** 2, 2), numpy.polyfit(x, x**2, 2)
    assert fit.dtype == want.dtype == "float64"
    numpy.testing.assert_allclose(fit.asnumpy(), want, atol=1e-5)


def test_variances_whose_squares_overflow_are_infinite():
    with numpy.errstate(all="ignore"):
        for values in ([1e308, -1e308], [3e200, -3e200, 0.0], [numpy.inf, 1.0], [numpy.nan, 1.0]):
            x = numpy.array(values)
            same(np.var(np.array(x)), numpy.var(x))
            same(np.std(np.array(x)), numpy.std(x))
