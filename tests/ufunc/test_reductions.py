"""Reductions with all of NumPy's arguments, as functions and as methods."""

import warnings

import numpy as np
import pytest

import mxnet as mx
import slopes
from probing import generator

NAMES = ("sum", "prod", "max", "min", "mean", "std", "var", "any", "all", "amax", "amin")
METHODS = ("sum", "prod", "max", "min", "mean", "std", "var", "any", "all")
X = generator("reductions").uniform(0.5, 2, (2, 3, 4)).astype(np.float32)
MASK = generator("mask").random((2, 3, 4)) < 0.7
MASK[:, 0, 0] = True


def close(ours, theirs):
    assert isinstance(ours, mx.np.ndarray)
    assert ours.shape == np.shape(theirs)
    # Sums of up to 24 float32 numbers, squared for variances.
    assert np.allclose(ours.asnumpy(), theirs, rtol=24 * np.finfo(np.float32).eps, equal_nan=True)


def calls(name, x, **keywords):
    """The function, and the method of the same name."""
    yield getattr(mx.np, name)(mx.np.array(x), **keywords)
    if name in METHODS:
        yield getattr(mx.np.array(x), name)(**keywords)


@pytest.mark.parametrize("name", NAMES)
def test_where_takes_some_of_the_elements(name):
    start = {"initial": 0.75} if name in ("max", "min", "amax", "amin") else {}
    for axis in (None, 0, -1, (0, 2)):
        for keepdims in (False, True):
            for mask in (MASK, MASK[0], MASK[:, :1, :1]):
                keywords = {"axis": axis, "keepdims": keepdims, "where": mask, **start}
                with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
                    wanted = getattr(np, name)(X.astype(np.float64), **keywords)
                    for got in calls(name, X, **keywords):
                        close(got, wanted)
    for got in calls(name, X, where=True):
        close(got, getattr(np, name)(X, where=True))


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
def test_initial_is_where_a_fold_starts(name):
    for initial in (0.25, 7, -3.5):
        for axis in (None, 1, (0, 2)):
            for got in calls(name, X, axis=axis, initial=initial):
                close(got, getattr(np, name)(X.astype(np.float64), axis=axis, initial=initial))
    for got in calls(name, X[:0], axis=0, initial=2):
        close(got, np.full((3, 4), 2))
    integers = np.arange(6).reshape(2, 3)
    for got in calls(name, integers, initial=4):
        assert got.dtype == np.int64
        assert got.item() == getattr(np, name)(integers, initial=4)


@pytest.mark.parametrize("name", ["max", "min", "amax", "amin"])
def test_extremes_of_nothing_are_errors(name):
    for x in (X[:0], X[:, :0]):
        with pytest.raises(ValueError, match="zero-size array to"):
            getattr(mx.np, name)(mx.np.array(x))
    assert getattr(mx.np, name)(mx.np.array(X[:0]), axis=1).shape == (0, 4)
    with pytest.raises(ValueError, match="one has to specify 'initial'"):
        getattr(mx.np, name)(mx.np.array(X), where=MASK)
    for name in ("argmax", "argmin", "ptp"):
        with pytest.raises(ValueError, match=r"empty|zero-size"):
            getattr(mx.np, name)(mx.np.array(X[:0]))


def test_positional_arguments_have_numpys_order():
    x = mx.np.array(X)
    out = mx.np.zeros((3, 4))
    assert mx.np.sum(x, 0, "float32", out, False, 2.0, MASK) is out
    close(out, np.sum(X, 0, np.float32, None, False, 2.0, MASK))
    assert mx.np.max(x, 0, out, False, 1.0, MASK) is out
    close(out, np.max(X, 0, None, False, 1.0, MASK))
    close(mx.np.std(x, 1, None, None, 1, True), np.std(X, 1, None, None, 1, True))
    assert mx.np.sum(x, dtype="float64", where=MASK).dtype == np.float64
    assert mx.np.mean(x, dtype="float16", where=MASK).dtype == np.float16
    for name in ("mean", "any", "all", "std", "var"):
        with pytest.raises(TypeError, match="positional"):
            getattr(mx.np, name)(x, *[None] * (7 if name in ("std", "var") else 5), MASK)


@pytest.mark.parametrize("name", ["var", "std"])
def test_variances_take_a_mean_and_a_correction(name):
    ours, theirs = getattr(mx.np, name), getattr(np, name)
    x = mx.np.array(X)
    for axis in (None, 1, (0, 2)):
        mean = X.mean(axis, keepdims=True)
        close(ours(x, axis, mean=mx.np.array(mean)), theirs(X, axis, mean=mean))
        close(ours(x, axis, correction=1), theirs(X, axis, ddof=1))
        with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
            wanted = theirs(X, axis, ddof=1.5, where=MASK)
            close(ours(x, axis, ddof=1.5, where=MASK), wanted)
    with pytest.raises(ValueError, match="ddof and correction can't be provided simultaneously"):
        ours(x, ddof=1, correction=1)
    z = X[0] + 1j * X[1]
    close(ours(mx.np.array(z), where=MASK[0]), theirs(z.astype(np.complex128), where=MASK[0]))
    with pytest.warns(RuntimeWarning, match="Degrees of freedom <= 0 for slice"):
        assert np.isnan(ours(x, where=mx.np.zeros((), dtype=bool)).item())


def test_halves_are_averaged_in_float32():
    x = np.full((3000,), 40.0, np.float16)
    assert mx.np.mean(mx.np.array(x), where=mx.np.array(x > 0)).item() == 40.0
    assert mx.np.var(mx.np.array(x), where=mx.np.array(x > 0)).item() == 0.0


def test_running_folds_of_the_array_api():
    x = mx.np.array(X)
    for name in ("cumulative_sum", "cumulative_prod"):
        ours, theirs = getattr(mx.np, name), getattr(np, name)
        for axis in (0, 1, -1):
            for include in (False, True):
                close(ours(x, axis=axis, include_initial=include), theirs(X, axis=axis, include_initial=include))
        close(ours(x[0, 0]), theirs(X[0, 0]))
        assert ours(x[0, 0], dtype="float64").dtype == np.float64
        out = mx.np.zeros((4,))
        assert ours(x[0, 0], out=out) is out
        with pytest.raises(ValueError, match="3 axes"):
            ours(x)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "mean", "var", "std"])
def test_gradients_with_a_mask_are_the_slopes(name):
    rng = generator(name)
    x = rng.uniform(0.5, 2, (4, 3))
    mask = rng.random((4, 3)) < 0.7
    mask[:2] = True
    start = {"initial": 0.25} if name == "max" else {}
    function = getattr(mx.np, name)
    slopes.check(lambda x: function(x, axis=0, where=mx.np.array(mask), **start), [x], rng)


def test_results_written_to_out_are_recorded():
    x = mx.np.array(X)
    x.attach_grad()
    with mx.autograd.record():
        out = mx.np.zeros((3, 4))
        mx.np.sum(x * x, axis=0, where=mx.np.array(MASK), out=out)
        total = out.sum()
    total.backward()
    close(x.grad, 2 * X * MASK)


# Expressions over `m`, and whether they warn where NumPy does: by shapes, or by masks.
SCARCE = [
    "m.mean(m.zeros(0))",
    "m.mean(m.zeros((0, 3)), axis=0)",
    "m.mean(m.zeros((0, 3)), axis=1)",
    "m.mean(m.zeros((0, 0)), axis=1)",
    "m.zeros((3, 0)).mean(1, keepdims=True)",
    "m.mean(m.zeros((2, 0), int), -1)",
    "m.mean(m.ones((2, 3)), where=False)",
    "m.mean(m.ones((2, 3)), where=True)",
    "m.mean(m.ones((2, 2)), axis=0, where=m.array([True, False]))",
    "m.mean(m.ones((2, 2)), axis=1, where=m.array([True, False]))",
    "m.mean(m.ones((2, 2)), where=m.array([[True], [False]]), axis=1)",
    "m.std(m.zeros(0))",
    "m.var(m.ones(1))",
    "m.var(m.ones(1), ddof=1)",
    "m.ones(1).std(ddof=1)",
    "m.var(m.ones((3, 2)), axis=1, ddof=2)",
    "m.var(m.ones((3, 2)), axis=0, ddof=2)",
    "m.var(m.ones((3, 2)), axis=1, correction=2.5)",
    "m.var(m.ones((2, 3)), where=False)",
    "m.std(m.ones((2, 3)), axis=1, where=m.array([[True], [False]]))",
    "m.std(m.ones((2, 3)), axis=1, ddof=2, where=m.array([True, True, False]))",
    "m.std(m.ones((2, 3)), axis=1, ddof=1, where=m.array([True, True, False]))",
    "m.average(m.zeros(0))",
    "m.average(m.zeros((0, 2)), axis=0)",
    "m.median(m.zeros(0))",
    "m.median(m.zeros((0, 2)), axis=0)",
    "m.median(m.zeros((0, 2)), axis=1)",
    "m.nanmean(m.zeros(0))",
    "m.nanmean(m.zeros((0, 2)), axis=0)",
    "m.nanmean(m.zeros((0, 2)), axis=1)",
    "m.nanvar(m.zeros(0))",
    "m.nanvar(m.ones(2), ddof=2)",
    "m.nanstd(m.ones((2, 1)), axis=1, ddof=1)",
    "m.nanstd(m.ones((2, 3)), axis=1, ddof=1)",
    "m.nanmedian(m.zeros(0))",
    "m.nanmedian(m.zeros((2, 0)), axis=1)",
]


@pytest.mark.parametrize("expression", SCARCE)
def test_too_few_elements_are_warned_of_as_numpy_warns(expression):
    def warned(module):
        with warnings.catch_warnings(record=True) as caught, np.errstate(all="ignore"):
            warnings.simplefilter("always")
            eval(expression, {"m": module})
        return [(one.category, str(one.message)) for one in caught]

    assert warned(mx.np) == warned(np)


def test_warnings_of_empty_means_name_the_line_of_the_program():
    for call in (
        lambda: mx.np.mean([]),
        lambda: mx.np.median([]),
        lambda: mx.np.nanmean([]),
        lambda: mx.np.average([]),
    ):
        with pytest.warns(RuntimeWarning, match="Mean of empty slice") as caught:
            call()
        assert [one.filename for one in caught] == [__file__]


def test_a_warning_that_is_an_error_is_raised():
    with warnings.catch_warnings(action="error"), pytest.raises(RuntimeWarning, match="Mean of empty slice"):
        mx.np.zeros((0, 2)).mean(0)


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "cumsum", "cumprod", "nanprod", "nansum", "nancumsum"])
def test_complex_elements_become_real_before_they_are_reduced_to_a_real_dtype(name):
    x = np.array([1 + 2j, 3 - 1j, 0.5 + 0.25j], np.complex64)
    with pytest.warns(np.exceptions.ComplexWarning):
        expected = getattr(np, name)(x, dtype=np.float32)
    with pytest.warns(np.exceptions.ComplexWarning):
        found = getattr(mx.np, name)(mx.np.array(x), dtype=np.float32)
    assert found.dtype == np.float32
    close(found, expected)
