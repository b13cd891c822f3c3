"""Gradients of samples: how they move with the parameters while the random bits stay the same."""

import numpy as onp
import pytest
from scipy import special, stats

import mxnet as mx
from mxnet import autograd, np

N = 40_000


@pytest.fixture(autouse=True)
def _seeded():
    mx.random.seed(20)


def slopes(draw, *parameters):
    """The sample, and its gradient with respect to each parameter (one value for each element of the sample)."""
    arrays = [np.array(p, dtype="float64") for p in parameters]
    for x in arrays:
        x.attach_grad()
    with autograd.record():
        y = draw(*arrays)
    y.backward()
    return y.asnumpy(), [x.grad.asnumpy() for x in arrays]


def along_quantile(quantile, a, probability, h=1e-3):
    """Difference of the quantile function by its parameter: five points, error of the order of h^4."""
    values = [quantile(probability, a * (1 + k * h)) for k in (-2, -1, 1, 2)]
    return (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * a * h)


@pytest.mark.parametrize("shape", [0.1, 0.7, 1.0, 2.5, 40.0, 900.0, 2e4, 1e6])
def test_gamma_moves_along_its_quantile(shape):
    y, (found,) = slopes(np.random.standard_gamma, onp.full(300, shape))
    # Numbers in the far tails are left out: there probabilities near 0 and 1 lose the digits that the difference needs.
    probability = stats.gamma(shape).cdf(y)
    inside = (probability > 1e-3) & (probability < 0.999) & (y > 1e-280)
    want = along_quantile(lambda p, a: special.gammaincinv(a, p), shape, probability[inside])
    # SciPy's quantile is good to about 1e-12 relative to itself, the difference divides that by the step.
    noise = 1e-11 * y[inside] / (shape * 1e-3)
    assert (abs(found[inside] - want) <= 1e-6 * abs(want) + noise).all()


def test_gamma_of_tiny_shape_has_no_nan():
    y, (found,) = slopes(np.random.standard_gamma, onp.full(2000, 1e-3))
    assert (y == 0).any()
    assert onp.isfinite(found).all()
    assert (found[y == 0] == 0).all()
    assert (found >= 0).all()


def test_gamma_slopes_in_float32_are_rounded_ones():
    shape = np.array(onp.full(500, 0.6, "float32"))
    shape.attach_grad()
    with autograd.record():
        y = np.random.gamma(shape)
    y.backward()
    assert shape.grad.dtype == "float32"
    want = along_quantile(
        lambda p, a: special.gammaincinv(a, p), 0.6, stats.gamma(0.6).cdf(y.asnumpy().astype("float64"))
    )
    # The quantile of y, from which the slope is computed, loses digits where y is small.
    assert onp.allclose(shape.grad.asnumpy(), want, rtol=1e-4, atol=1e-6)


# Name, parameters, parameter number -> derivative of the mean by that parameter.
MEANS = [
    ("gamma", (2.5, 3.0), 0, 3.0),
    ("gamma", (2.5, 3.0), 1, 2.5),
    ("standard_gamma", (0.4,), 0, 1.0),
    ("chisquare", (3.0,), 0, 1.0),
    ("beta", (2.0, 3.0), 0, 3 / 25),
    ("beta", (2.0, 3.0), 1, -2 / 25),
    ("beta", (0.3, 0.2), 0, 0.2 / 0.25),
    ("noncentral_chisquare", (3.0, 2.0), 0, 1.0),
    ("noncentral_chisquare", (3.0, 2.0), 1, 1.0),
    ("noncentral_chisquare", (0.7, 2.0), 0, 1.0),
    ("f", (6.0, 9.0), 1, -2 / 49),
    ("noncentral_f", (5.0, 12.0, 2.0), 2, 12 / (10 * 5)),
    ("normal", (1.0, 2.0), 0, 1.0),
    ("laplace", (1.0, 2.0), 0, 1.0),
    ("logistic", (1.0, 2.0), 0, 1.0),
    ("gumbel", (1.0, 2.0), 1, onp.euler_gamma),
    ("exponential", (2.0,), 0, 1.0),
    ("rayleigh", (2.0,), 0, (onp.pi / 2) ** 0.5),
    ("weibull", (1.5,), 0, -special.gamma(1 + 1 / 1.5) * special.digamma(1 + 1 / 1.5) / 1.5**2),
    ("pareto", (4.0,), 0, -1 / 9),
    ("power", (2.5,), 0, 1 / 3.5**2),
    ("lognormal", (0.5, 0.4), 1, 0.4 * onp.exp(0.5 + 0.08)),
    ("triangular", (-1.0, 2.0, 4.0), 1, 1 / 3),
    ("wald", (2.0, 3.0), 0, 1.0),
]


@pytest.mark.parametrize(("name", "parameters", "which", "slope"), MEANS)
def test_slopes_have_the_mean_that_the_mean_has(name, parameters, which, slope):
    _, found = slopes(getattr(np.random, name), *(onp.full(N, p) for p in parameters))
    found = found[which]
    assert onp.isfinite(found).all()
    # Five standard errors; the slopes of samples vary.
    assert abs(found.mean() - slope) < 5 * found.std() / N**0.5 + 1e-9


def test_student_moves_with_its_degrees_of_freedom():
    _, (found,) = slopes(lambda df: np.square(np.random.standard_t(df)), onp.full(N, 9.0))
    # The variance is df / (df - 2).
    assert abs(found.mean() + 2 / 49) < 5 * found.std() / N**0.5


def test_dirichlet_moves_with_its_parameters():
    weights = np.array([1.0, 10.0, 100.0], dtype="float64")
    alpha = onp.array([0.5, 2.0, 3.5])
    found = onp.array(
        [slopes(lambda a: (np.random.dirichlet(a, size=1000) * weights).sum(-1) / 1000, alpha)[1][0] for _ in range(40)]
    )
    mean = alpha / alpha.sum()
    want = (onp.array([1.0, 10.0, 100.0]) - (mean * [1, 10, 100]).sum()) / alpha.sum()
    # Five standard errors.
    assert (abs(found.mean(0) - want) < 5 * found.std(0) / 40**0.5).all()
    y, (found,) = slopes(lambda alpha: np.random.dirichlet(alpha, size=500), onp.array([1e-4, 1e-4]))
    # Shares far below the smallest float32 still make a row that sums to 1.
    assert onp.allclose(y.sum(-1), 1)
    assert onp.isfinite(found).all()


def test_angles_move_with_their_centre():
    y, (found,) = slopes(lambda mu: np.random.vonmises(mu, 0.5), onp.full(1000, 3.0))
    assert (found == 1).all()
    assert (abs(y) <= onp.pi).all()
    assert (y < 0).any()


def test_second_order_gradients_of_gamma_samples_are_refused():
    shape = np.array([2.0])
    shape.attach_grad()
    with autograd.record():
        y = np.random.gamma(shape)
        slope = autograd.grad(y, shape, create_graph=True, retain_graph=True)
        total = (slope[0] if isinstance(slope, list) else slope).sum()
    with pytest.raises(mx.error.AutogradError, match="first order"):
        total.backward()
