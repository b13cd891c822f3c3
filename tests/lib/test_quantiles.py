"""Medians, percentiles and quantiles against NumPy: methods, axes, weights, NaN, dtypes, gradients."""

import hypothesis
import numpy
import pytest
from hypothesis import strategies as st

import mxnet as mx
from both import both
from mxnet import _core, autograd

METHODS = [
    "inverted_cdf",
    "averaged_inverted_cdf",
    "closest_observation",
    "interpolated_inverted_cdf",
    "hazen",
    "weibull",
    "linear",
    "median_unbiased",
    "normal_unbiased",
    "lower",
    "higher",
    "midpoint",
    "nearest",
]
GENERATOR = numpy.random.default_rng(3)
A = GENERATOR.standard_normal((4, 5, 3))
N = A.copy()
N[0, 1] = numpy.nan
N[:, 2, 0] = numpy.nan
N[1, 3, 2] = numpy.nan
I = GENERATOR.integers(-9, 9, (4, 5))
ODD = A[:, :, 0]
# The straight line between two elements is computed in another order than NumPy's: two roundings.
ROUNDING = 1e-15


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 10])
def test_every_method_agrees_at_every_probability(method, n):
    x = GENERATOR.permutation(n) * 1.0
    q = numpy.linspace(0, 1, 41)
    both("np.quantile(x, q, method=method)", x=x, q=q, method=method, rtol=ROUNDING)
    both("np.nanquantile(x, q, method=method)", x=x, q=q, method=method, rtol=ROUNDING)


@pytest.mark.parametrize("function", ["quantile", "nanquantile"])
@pytest.mark.parametrize(
    "arguments",
    [
        "A, 0.3",
        "A, [0.25, 0.5, 0.75]",
        "A, [[0.1, 0.2], [0.3, 0.4]], axis=1",
        "A, 0.3, axis=0",
        "A, 0.3, axis=(0, 2)",
        "A, 0.3, axis=(-1, 0), keepdims=True",
        "A, [0.3, 0.4], axis=1, keepdims=True",
        "A, 0.3, keepdims=True",
        "A, []",
        "N, 0.3",
        "N, [0.3, 0.6], axis=0",
        "N, 0.3, axis=(0, 1)",
        "N, 0.3, axis=2, method='hazen'",
        "N, 0.3, axis=2, method='lower'",
        "I, 0.3",
        "I, 0.3, axis=1, method='higher'",
        "I, [0.3, 0.9], axis=0, method='nearest'",
        "A.astype('float32'), 0.3, axis=1",
        "A.astype('float32'), [0.3], axis=1",
        "A.astype('float16'), 0.3",
        "I.astype('uint8'), 0.3",
        "A, 1.5",
        "A, -0.1",
        "A, [0.5, 2]",
        "A, 0.5, axis=3",
        "A, 0.5, axis=(0, 0)",
        "A, 0.5, method='other'",
        "A + 1j, 0.5",
        "A, 0, axis=1",
        "A, 1",
        "A[:0], 0.5",
        "A[:0], 0.5, axis=0",
        "5.0, 0.5",
        "[3, 1, 2], 0.5",
    ],
)
def test_arguments_agree(function, arguments):
    tolerance = 1e-3 if "float16" in arguments else 1e-6 if "float32" in arguments else ROUNDING
    both(f"np.{function}({arguments})", A=A, N=N, I=I, rtol=tolerance)
    percent = arguments.replace("0.", "").replace("[[1, 2]", "[[10, 20]")
    both(f"np.{function.replace('quantile', 'percentile')}({percent})", A=A, N=N, I=I, rtol=tolerance)


@pytest.mark.parametrize("function", ["median", "nanmedian"])
@pytest.mark.parametrize(
    "arguments",
    [
        "A",
        "A, 0",
        "A, axis=(0, 2)",
        "A, axis=-2, keepdims=True",
        "A, keepdims=True",
        "ODD, 1",
        "N",
        "N, 0",
        "N, axis=(0, 1)",
        "I",
        "I, 1",
        "I, 0, overwrite_input=True",
        "A.astype('float32'), 1",
        "A.astype('float16'), 0",
        "A > 0, 1",
        "A + 1j * A[::-1], 0",
        "A[:0], 0",
        "A[:0]",
        "A, 3",
        "[1, 2, inf, inf]",
        "[-inf, inf]",
        "3",
    ],
)
def test_medians_agree(function, arguments):
    tolerance = 1e-3 if "float16" in arguments else 1e-6 if "float32" in arguments else ROUNDING
    both(f"np.{function}({arguments})", A=A, N=N, I=I, ODD=ODD, rtol=tolerance)


@pytest.mark.parametrize(
    "arguments",
    [
        "A, 0.3, weights=W",
        "A, [0, 0.3, 0.7, 1], axis=1, weights=W",
        "A, 0.3, axis=1, weights=[1, 2, 0, 3, 1]",
        "A, 0.3, axis=(0, 2), weights=W[:, 0]",
        "A, 0.3, axis=(2, 0), weights=W[:, 0].T",
        "A, 0.3, axis=1, weights=W, keepdims=True",
        "I, 0.3, weights=I * I",
        "A, 0.3, weights=-W",
        "A, 0.3, axis=1, weights=[1, 2]",
        "N, 0.3, axis=1, weights=W",
    ],
)
@pytest.mark.parametrize("function", ["quantile", "nanquantile"])
def test_weights_agree(function, arguments):
    weights = GENERATOR.integers(0, 4, A.shape) * 1.0
    if (function == "nanquantile" and "weights=W[:" in arguments) or "weights=[1, 2, 0" in arguments:
        # NumPy fails here (IndexError): weights of the axes only are those of `quantile` as there is no NaN.
        function = "quantile"
        numpy.testing.assert_array_equal(
            *(
                eval(
                    f"mx.np.{name}({arguments}, method='inverted_cdf')", {"mx": mx, "A": mx.np.array(A), "W": weights}
                ).asnumpy()
                for name in ("quantile", "nanquantile")
            )
        )
    both(f"np.{function}({arguments}, method='inverted_cdf')", A=A, I=I, N=N, W=weights)


def test_weights_need_their_method():
    both("np.quantile(A, 0.5, weights=A * A)", A=A)


@hypothesis.settings(max_examples=60)
@hypothesis.given(st.integers(1, 40_000), st.lists(st.floats(0, 100), min_size=1, max_size=6), st.integers(0, 3))
def test_long_rows_agree(n, q, kind):
    random = numpy.random.default_rng(n)
    x = [
        random.standard_normal(n),
        random.integers(0, 4, n),
        numpy.sort(random.standard_normal(n).astype("float32")),
        random.exponential(size=n) ** 9,
    ][kind]
    both("np.percentile(x, q, method='lower')", x=x, q=q)
    both("np.median(x)", x=x, rtol=1e-6 if kind == 2 else ROUNDING)


def test_results_go_to_out():
    out = mx.np.zeros(3)
    assert mx.np.quantile(mx.np.array(A), 0.5, axis=(0, 1), out=out) is out
    numpy.testing.assert_allclose(out.asnumpy(), numpy.quantile(A, 0.5, axis=(0, 1)), rtol=1e-6)
    with pytest.raises(ValueError, match=r"median: `out` has shape \(3,\), the result has shape \(\)"):
        mx.np.median(mx.np.array(A), out=out)


def test_default_dtypes_are_float32():
    x = mx.np.array([1, 2, 4])
    assert mx.np.median(x).dtype == "float32" == mx.np.quantile(x, [0.5]).dtype
    assert mx.np.percentile(x, 50, method="lower").dtype == "int64"
    half = mx.np.array([1, 2, 4, 8], dtype=mx.np.bfloat16)
    assert str(mx.np.median(half).dtype) == "bfloat16" and float(mx.np.median(half)) == 3


@pytest.mark.parametrize(
    "function",
    [
        lambda x: mx.np.median(x, axis=1),
        lambda x: mx.np.median(x[:, :3]),
        lambda x: mx.np.nanmedian(x, axis=0),
        lambda x: mx.np.percentile(x, [10, 50, 77], axis=1),
        lambda x: mx.np.quantile(x, 0.9, method="weibull"),
        lambda x: mx.np.nanquantile(x, [0.2, 0.6], axis=0),
        lambda x: mx.np.quantile(x, 0.4, method="inverted_cdf", weights=mx.np.ones((4, 5))),
    ],
)
def test_gradients_are_slopes(function):
    values = GENERATOR.permutation(20).reshape(4, 5) * 1.0
    x = mx.np.array(values, dtype="float64")
    x.attach_grad()
    with mx.autograd.record():
        y = function(x)
        weights = numpy.arange(1.0, y.size + 1).reshape(y.shape)
        head = (y * mx.np.array(weights)).sum()
    head.backward()
    slope = numpy.zeros_like(values)
    for at in numpy.ndindex(values.shape):
        ends = []
        for step in (0.01, -0.01):
            moved = values.copy()
            moved[at] += step
            ends.append((function(mx.np.array(moved, dtype="float64")).asnumpy() * weights).sum())
        slope[at] = (ends[0] - ends[1]) / 0.02
    # Elements are whole numbers, so quantiles are linear within the step; what is left is rounding.
    numpy.testing.assert_allclose(x.grad.asnumpy(), slope, atol=1e-10)


@pytest.mark.parametrize(("values", "dtype"), [([1.7e308], "float64"), ([1.7e308] * 3, "float64"), ([3e38], "float32")])
def test_the_median_of_large_elements_is_one_of_them(values, dtype):
    x = numpy.array([*values, numpy.nan], dtype)
    assert mx.np.nanmedian(mx.np.array(x)) == numpy.nanmedian(x) == x[0]


@pytest.mark.parametrize("method", ["linear", "nearest"])
def test_rows_without_numbers_have_gradient_zero(method):
    x = mx.np.array([[numpy.nan] * 3, [1.0, 2.0, 4.0]])
    x.attach_grad()
    with autograd.record():
        found = mx.np.nanquantile(x, 0.3, axis=1, method=method)
    found.backward(mx.np.ones(2))
    assert numpy.isnan(found.asnumpy()).tolist() == [True, False]
    assert x.grad[0].tolist() == [0, 0, 0]
    numpy.testing.assert_allclose(x.grad[1].asnumpy(), [0.4, 0.6, 0] if method == "linear" else [0, 1, 0], rtol=1e-6)


@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
def test_fractions_need_a_float(name):
    with pytest.raises(TypeError, match="`dtype` must be a float for method 'linear', found int32"):
        _core.namespaces["op"][name](mx.np.array([1.0, 2.0, 4.0]), [0.25], dtype="int32")
