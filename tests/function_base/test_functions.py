"""What cannot be compared call by call: functions of functions, grids between brackets, errors, single precision."""

import numpy as np
import pytest

import mxnet as mx

RNG = np.random.default_rng(11)


def same(got, want):
    got = got if isinstance(got, tuple) else (got,)
    want = want if isinstance(want, tuple) else (want,)
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        w = np.asarray(w)
        assert g.shape == w.shape
        assert (g.dtype.kind, w.dtype.kind) in {(k, k) for k in "biufc"}
        np.testing.assert_allclose(g.asnumpy(), w, rtol=1e-6)


@pytest.mark.parametrize(
    "key",
    [
        np.s_[1:7],
        np.s_[0:1:0.25],
        np.s_[-1:1:5j],
        np.s_[0:3, 0:2],
        np.s_[0:2:3j, 0:4],
        np.s_[:2, 5:3:-1, 0:1],
    ],
)
def test_grids_between_brackets(key):
    same(mx.np.mgrid[key], np.mgrid[key])
    got, want = mx.np.ogrid[key], np.ogrid[key]
    same(got, want)


def test_joined_between_brackets():
    a, b, m = np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0]), np.arange(6.0).reshape(2, 3)

    def both(take):
        same(take(mx.np, *(mx.np.array(x) for x in (a, b, m))), take(np, a, b, m))

    both(lambda np, a, b, m: np.r_[a, 0, 0, b])
    both(lambda np, a, b, m: np.r_[1:4, 0, 4])
    both(lambda np, a, b, m: np.r_[-1:1:6j, [0] * 3, 5, 6])
    both(lambda np, a, b, m: np.r_["-1", m, m])
    both(lambda np, a, b, m: np.r_["0,2", a, b])
    both(lambda np, a, b, m: np.r_["0,2,0", a, b])
    both(lambda np, a, b, m: np.r_["1,2,0", a, b])
    both(lambda np, a, b, m: np.r_["0,3,1", m, m])
    both(lambda np, a, b, m: np.r_[m, m])
    both(lambda np, a, b, m: np.c_[a, b])
    both(lambda np, a, b, m: np.c_[m, m, [7.0, 8.0]])
    both(lambda np, a, b, m: np.c_[1:4, 4:7])
    assert mx.np.r_[mx.np.array([1, 2], dtype="int8"), 5].dtype == "int8"
    with pytest.raises(ValueError, match="unknown special directive 'x'"):
        mx.np.r_["x", 1]


def test_s_and_index_exp_return_their_index():
    assert mx.np.s_[2::2] == slice(2, None, 2)
    assert mx.np.s_[1, ..., None] == (1, Ellipsis, None)
    assert mx.np.index_exp[2::2] == (slice(2, None, 2),)


def test_functions_of_positions():
    same(
        mx.np.fromfunction(lambda i, j: i * 10 + j, (2, 3), dtype=int),
        np.fromfunction(lambda i, j: i * 10 + j, (2, 3), dtype=int),
    )
    assert mx.np.fromfunction(lambda i: i, (2,)).dtype == "float32"
    assert mx.np.fromfunction(lambda i, k: i + k, (3,), k=5).asnumpy().tolist() == [5, 6, 7]


def test_piecewise_functions():
    x = RNG.standard_normal(9)
    ours = mx.np.array(x)
    for conditions, functions in (
        ([x < 0, x >= 1], [-1, 1]),
        ([x < 0], [lambda v: -v, lambda v: v * 2]),
        ([x < 0, x > -1], [lambda v: v**2, 5.0, -3.0]),
        (x < 0, [2.0]),
    ):
        given = [mx.np.array(c) for c in conditions] if isinstance(conditions, list) else mx.np.array(conditions)
        same(mx.np.piecewise(ours, given, functions), np.piecewise(x, conditions, functions).astype("float32"))
    same(mx.np.piecewise(mx.np.array(3.0), [True], [7]), np.piecewise(3.0, [True], [7]))
    assert mx.np.piecewise(ours, [ours < 0], [lambda v, a, b: v * a + b, 0], 2.0, b=1.0).shape == x.shape
    with pytest.raises(ValueError, match="with 1 condition"):
        mx.np.piecewise(ours, [ours < 0], [1, 2, 3])


def test_functions_along_and_over_axes():
    x = RNG.standard_normal((3, 4, 5))
    ours = mx.np.array(x, dtype="float64")
    for axis in (0, 1, -1):
        same(
            mx.np.apply_along_axis(lambda v: v.max() - v.min(), axis, ours),
            np.apply_along_axis(lambda v: v.max() - v.min(), axis, x),
        )
        same(mx.np.apply_along_axis(mx.np.sort, axis, ours), np.apply_along_axis(np.sort, axis, x))
        same(mx.np.apply_along_axis(mx.np.diag, axis, ours), np.apply_along_axis(np.diag, axis, x))
    same(mx.np.apply_over_axes(mx.np.sum, ours, (0, -1)), np.apply_over_axes(np.sum, x, (0, -1)))
    same(mx.np.apply_over_axes(mx.np.cumsum, ours, 1), np.apply_over_axes(np.cumsum, x, 1))
    with pytest.raises(ValueError, match="iteration dimensions are 0"):
        mx.np.apply_along_axis(mx.np.sum, 0, mx.np.zeros((2, 0)))
    with pytest.raises(ValueError, match="correct shape"):
        mx.np.apply_over_axes(lambda a, axis: a.sum(), ours, 0)


def test_single_precision_stays_single():
    x = mx.np.array(RNG.standard_normal(20).astype("float32"))
    for result in (
        mx.np.gradient(x),
        mx.np.interp(x, mx.np.arange(5.0), mx.np.arange(5.0)),
        mx.np.cov(x),
        mx.np.convolve(x, x),
        mx.np.hanning(5),
        mx.np.kaiser(5, 3.0),
        mx.np.i0(x),
        mx.np.logspace(0, 1, 3),
        mx.np.geomspace(1, 2, 3),
        mx.np.trapezoid(x),
        mx.np.average(mx.np.arange(4)),
        mx.np.histogram(x, density=True)[0],
        mx.np.histogram(x)[1],
    ):
        assert result.dtype == "float32"
    assert mx.np.hamming(4, dtype="float64").dtype == "float64"
    assert mx.np.convolve(mx.np.ones(3, dtype="float16"), mx.np.ones(2, dtype="float16")).dtype == "float16"
    np.testing.assert_allclose(mx.np.i0(x).asnumpy(), np.i0(x.asnumpy()), rtol=2e-6)


@pytest.mark.parametrize("coordinates", [[0, 1, 3], [0.0, 1.0, 3.0], (0, 2, 4), np.array([0, 1, 3])])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
def test_slopes_have_the_dtype_of_the_samples(dtype, coordinates):
    x = np.array([1, 2, 5], dtype)
    with mx.util.np_default_dtype(True):
        found = mx.np.gradient(mx.np.array(x), coordinates)
    expected = np.gradient(x, coordinates)
    assert found.dtype == expected.dtype
    # A few roundings, in a wider type or in this one.
    np.testing.assert_allclose(found.asnumpy(), expected, rtol=8 * np.finfo(dtype).eps)


def test_convolution_of_long_sequences_is_exact_enough():
    for kind, n, m in (("float32", 5000, 700), ("float64", 3000, 2999), ("complex64", 500, 60), ("int64", 300, 40)):
        a = (RNG.standard_normal(n) * 50).astype(kind)
        v = (RNG.standard_normal(m) * 50).astype(kind)
        for mode in ("full", "same", "valid"):
            got = mx.np.convolve(mx.np.array(a, dtype=kind), mx.np.array(v, dtype=kind), mode)
            want = np.convolve(a.astype("complex128" if kind == "complex64" else kind), v, mode)
            assert got.dtype == kind
            # m products, added in some order.
            limit = np.finfo(kind).eps * np.sqrt(m) * 8 * np.abs(want).max() if kind != "int64" else 0
            np.testing.assert_allclose(got.asnumpy(), want, rtol=0, atol=limit)


ERRORS = [
    (lambda np: np.convolve([], [1]), ValueError, "a cannot be empty"),
    (lambda np: np.convolve([1], []), ValueError, "v cannot be empty"),
    (lambda np: np.convolve([1], [1], "some"), ValueError, "some"),
    (lambda np: np.correlate([[1.0]], [1.0]), ValueError, "1 axis, found 2"),
    (lambda np: np.diff(1.0), ValueError, "at least 1 axis"),
    (lambda np: np.diff([1.0], -1), ValueError, "-1"),
    (lambda np: np.gradient([1.0]), ValueError, "at least 2"),
    (lambda np: np.gradient([1.0, 2.0], edge_order=2), ValueError, "at least 3"),
    (lambda np: np.gradient([1.0, 2.0], edge_order=3), ValueError, "found 3"),
    (lambda np: np.gradient([1.0, 2.0, 3.0], [1.0, 2.0]), ValueError, "axis 0 of size 3"),
    (lambda np: np.gradient([[1.0, 2.0], [3.0, 4.0]], 1.0, 2.0, 3.0), TypeError, "3 spacings for 2 axes"),
    (lambda np: np.interp(1.0, [], []), ValueError, "empty"),
    (lambda np: np.interp(1.0, [1.0, 2.0], [1.0]), ValueError, "1 and 2"),
    (lambda np: np.interp(1.0, [1.0], [1.0], period=0), ValueError, "period"),
    (lambda np: np.ediff1d(np.array([1, 2]), to_begin=1.5), TypeError, "to_begin"),
    (lambda np: np.average([1.0, 2.0], weights=[1.0, -1.0]), ZeroDivisionError, "zero"),
    (lambda np: np.average([[1.0, 2.0]], weights=[1.0, 2.0]), TypeError, r"\(1, 2\)"),
    (lambda np: np.average([[1.0, 2.0]], 1, weights=[1.0]), ValueError, r"\(2,\)"),
    (lambda np: np.cov([[[1.0]]]), ValueError, "found 3"),
    (lambda np: np.cov([1.0, 2.0], fweights=[1]), RuntimeError, "2 elements"),
    (lambda np: np.cov([1.0, 2.0], fweights=[1, -1]), ValueError, "negative"),
    (lambda np: np.cov([1.0, 2.0], fweights=[1.5, 1.0]), TypeError, "integers"),
    (lambda np: np.digitize([1.0], [0.0, 2.0, 1.0]), ValueError, "monotonically"),
    (lambda np: np.histogram([1.0], bins=0), ValueError, "positive"),
    (lambda np: np.histogram([1.0], bins=[2.0, 1.0]), ValueError, "monotonically"),
    (lambda np: np.histogram([1.0], bins=1.5), TypeError, "integer"),
    (lambda np: np.histogram([1.0], range=(2, 1)), ValueError, "larger"),
    (lambda np: np.histogram([1.0, float("inf")]), ValueError, "not finite"),
    (lambda np: np.histogram([1.0], weights=[1.0, 2.0]), ValueError, "same shape"),
    (lambda np: np.histogram([1.0], bins="best"), ValueError, "best"),
    (lambda np: np.histogram([1.0], bins="fd", weights=[1.0]), TypeError, "weighted"),
    (lambda np: np.histogramdd([[1.0, 2.0]], bins=[1, 2]), ValueError, "dimension"),
    (lambda np: np.histogram2d([1.0], [1.0, 2.0]), ValueError, "same length"),
    (lambda np: np.unravel_index(22, (2, 3)), ValueError, "index 22 is out of bounds for array with size 6"),
    (lambda np: np.unravel_index(1.5, (2, 3)), TypeError, "integer"),
    (lambda np: np.ravel_multi_index(([3], [0]), (2, 2)), ValueError, "invalid entry"),
    (lambda np: np.ravel_multi_index(([3],), (2, 2)), ValueError, "1 index arrays for 2 axes"),
    (lambda np: np.meshgrid([1.0], indexing="yx"), ValueError, "xy"),
    (lambda np: np.ix_([[1]]), ValueError, "1 dimensional"),
    (lambda np: np.geomspace(0, 1), ValueError, "zero"),
    (lambda np: np.linspace(0, 1, -1), ValueError, "-1"),
    (lambda np: np.select([], []), ValueError, "empty"),
    (lambda np: np.select([np.array([1.0])], [1.0]), TypeError, "entry 0"),
    (lambda np: np.select([np.array([True])], [1.0, 2.0]), ValueError, "same length"),
    (lambda np: np.packbits(np.array([1.5])), TypeError, "integer"),
    (lambda np: np.unpackbits(np.array([1])), TypeError, "unsigned byte|uint8"),
    (lambda np: np.unpackbits(np.array([1], dtype="uint8"), bitorder="odd"), ValueError, "little"),
    (lambda np: np.i0(1j), TypeError, "complex"),
    (lambda np: np.vander([[1.0]]), ValueError, "one-dimensional"),
    (lambda np: np.polyder([1.0], -1), ValueError, "positive"),
    (lambda np: np.polyint([1.0], -1), ValueError, "positive"),
]


@pytest.mark.parametrize("case", range(len(ERRORS)))
def test_errors_are_numpys_and_name_the_numbers(case):
    call, kind, text = ERRORS[case]
    with pytest.raises(kind, match=text):
        call(mx.np)
    # NumPy refuses it too, with that class or one of its own.
    with pytest.raises((kind, ValueError, TypeError, IndexError)):
        call(np)
