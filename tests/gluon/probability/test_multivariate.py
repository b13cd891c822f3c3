"""Distributions of vectors and classes, and distributions made of others."""

import math

import numpy as onp
import pytest
import scipy.special
import scipy.stats as stats

import mxnet as mx
from mxnet.gluon import probability as mgp
from mxnet.test_utils import assert_almost_equal, check_numeric_gradient

GENERATOR = onp.random.default_rng(9)
ALPHA = onp.array([[0.5, 2.0, 3.0], [1.0, 1.5, 4.0]])
LOGIT = GENERATOR.normal(size=(2, 3))
PROB = scipy.special.softmax(LOGIT, axis=-1)
ROOT = GENERATOR.normal(size=(3, 3))
COV = ROOT @ ROOT.T + onp.eye(3)
LOC = GENERATOR.normal(size=(2, 3))
FORMS = {"cov": COV, "precision": onp.linalg.inv(COV), "scale_tril": onp.linalg.cholesky(COV)}


def array(x):
    return mx.np.array(x, dtype="float64")


def assert_sample_moments(samples, mean, variance, count):
    """Means of n samples, of values and of squares, are within six of their standard deviations."""
    samples = samples.asnumpy()
    assert (abs(samples.mean(axis=0) - mean) <= 6 * samples.std(axis=0) / math.sqrt(count)).all()
    squares = (samples - mean) ** 2
    assert (abs(squares.mean(axis=0) - variance) <= 6 * squares.std(axis=0) / math.sqrt(count)).all()


def test_dirichlet():
    ours, x = mgp.Dirichlet(array(ALPHA)), GENERATOR.dirichlet([1, 2, 3], size=(4, 2))
    twins = [stats.dirichlet(alpha) for alpha in ALPHA]
    expected = onp.stack([twin.logpdf(x[:, i].T) for i, twin in enumerate(twins)], axis=1)
    assert_almost_equal(ours.log_prob(array(x)), expected, rtol=1e-11, atol=1e-12)
    assert_almost_equal(ours.entropy(), [twin.entropy() for twin in twins], rtol=1e-11)
    assert_almost_equal(ours.mean, [twin.mean() for twin in twins], rtol=1e-13)
    assert_almost_equal(ours.variance, [twin.var() for twin in twins], rtol=1e-13)
    assert ours.sample().shape == (2, 3) and ours.sample((5, 2)).shape == (5, 2, 3)
    assert ours.broadcast_to((4, 2)).sample_n(5).shape == (5, 4, 2, 3)
    mx.random.seed(2)
    samples = ours.sample_n(5000)
    assert_sample_moments(samples, ours.mean.asnumpy(), ours.variance.asnumpy(), 5000)
    assert ours.support.check(samples) is samples
    check_numeric_gradient(lambda alpha: mgp.Dirichlet(alpha).log_prob(array(x)), [ALPHA], rtol=1e-6, atol=1e-8)
    check_numeric_gradient(lambda alpha: mgp.Dirichlet(alpha).entropy(), [ALPHA], rtol=1e-6, atol=1e-8)


def test_dirichlet_samples_move_with_alpha():
    """The mean gradient of squares is the derivative of the second moment ``a (a + 1) / (s (s + 1))``."""
    mx.random.seed(4)
    count, alpha, index = 20000, ALPHA[0], 1
    spread = array(onp.broadcast_to(alpha, (count, 3)))
    spread.attach_grad()
    with mx.autograd.record():
        total = (mgp.Dirichlet(spread).sample()[:, index] ** 2).sum()
    total.backward()
    found, a, s = spread.grad.asnumpy(), alpha[index], alpha.sum()
    moment = a * (a + 1) / (s * (s + 1))
    expected = -moment * (1 / s + 1 / (s + 1)) + onp.eye(3)[index] * (2 * a + 1) / (s * (s + 1))
    assert (abs(found.mean(axis=0) - expected) < 6 * found.std(axis=0) / math.sqrt(count)).all()


def test_dirichlet_of_small_alpha_does_not_underflow():
    samples = mgp.Dirichlet(mx.np.full((1000, 3), 1e-4)).sample().asnumpy()
    assert abs(samples.sum(axis=-1) - 1).max() < 1e-6


@pytest.mark.parametrize("form", FORMS)
def test_multivariate_normal(form):
    ours = mgp.MultivariateNormal(array(LOC), **{form: array(FORMS[form])}, validate_args=True)
    x = GENERATOR.normal(size=(4, 2, 3))
    expected = onp.stack([stats.multivariate_normal(loc, COV).logpdf(x[:, i]) for i, loc in enumerate(LOC)], axis=1)
    # Condition numbers are below 100.
    assert_almost_equal(ours.log_prob(array(x)), expected, rtol=1e-11)
    assert_almost_equal(ours.entropy(), [stats.multivariate_normal(LOC[0], COV).entropy()] * 2, rtol=1e-12)
    assert_almost_equal(ours.mean, LOC, rtol=0, atol=0)
    assert_almost_equal(ours.variance, [onp.diag(COV)] * 2, rtol=1e-11)
    for other, matrix in FORMS.items():
        assert_almost_equal(getattr(ours, other), matrix, rtol=1e-11, atol=1e-12)
    assert ours.sample((5, 2)).shape == ours.sample_n(5).shape == (5, 2, 3)
    assert ours.broadcast_to((4, 2)).sample().shape == (4, 2, 3)

    def of_params(loc, matrix):
        # Gradients of a symmetric matrix are those of its symmetric part.
        matrix = matrix if form == "scale_tril" else (matrix + mx.np.matrix_transpose(matrix)) / 2
        return mgp.MultivariateNormal(loc, **{form: matrix}).log_prob(array(x[0]))

    if form != "scale_tril":
        check_numeric_gradient(of_params, [LOC, FORMS[form]], rtol=1e-5, atol=1e-7)
    else:
        lower = array(onp.tril(onp.ones((3, 3))))
        check_numeric_gradient(lambda loc, m: of_params(loc, m * lower), [LOC, FORMS[form]], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("form", FORMS)
def test_multivariate_normal_samples(form):
    mx.random.seed(6)
    count = 5000
    ours = mgp.MultivariateNormal(array(LOC[0]), **{form: array(FORMS[form])})
    samples = ours.sample_n(count)
    assert_sample_moments(samples, LOC[0], onp.diag(COV), count)
    # Projections have all directions' variances.
    direction = onp.array([1.0, -2.0, 0.5])
    variance = direction @ COV @ direction
    assert_sample_moments(samples @ array(direction), LOC[0] @ direction, variance, count)

    def with_seed(loc, matrix):
        mx.random.seed(8)
        matrix = mx.np.tril(matrix) if form == "scale_tril" else (matrix + mx.np.matrix_transpose(matrix)) / 2
        return mgp.MultivariateNormal(loc, **{form: matrix}).sample_n(2)

    check_numeric_gradient(with_seed, [LOC[0], FORMS[form]], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("use_logit", [False, True])
def test_categorical(use_logit):
    given = {"logit": array(LOGIT + 3)} if use_logit else {"prob": array(PROB)}
    ours = mgp.Categorical(3, **given, validate_args=True)
    classes = onp.array([[0, 2], [1, 1], [2, 0]])
    expected = onp.log(PROB)[onp.arange(2), classes]
    assert_almost_equal(ours.log_prob(mx.np.array(classes)), expected, rtol=1e-13, atol=1e-14)
    assert_almost_equal(ours.log_prob(1), onp.log(PROB)[:, 1], rtol=1e-13)
    assert_almost_equal(ours.prob, PROB, rtol=1e-13)
    assert_almost_equal(ours.entropy(), stats.entropy(PROB, axis=-1), rtol=1e-12)
    unchecked = mgp.Categorical(3, **given)
    assert (unchecked.log_prob(array([3.0, 0.5])).asnumpy() == -onp.inf).all()
    with pytest.raises(ValueError, match="integers from 0 to below 3, found 3"):
        ours.log_prob(array([3.0, 0.0]))
    found = ours.enumerate_support()
    assert ours.has_enumerate_support and found.asnumpy().tolist() == [[0, 0], [1, 1], [2, 2]]
    assert_almost_equal(ours.pdf(found).asnumpy().sum(axis=0), onp.ones(2), rtol=1e-13)
    mx.random.seed(5)
    samples = ours.sample((4000, 2))
    shares = (samples.asnumpy()[..., None] == onp.arange(3)).mean(axis=0)
    assert (abs(shares - PROB) < 6 * onp.sqrt(PROB * (1 - PROB) / 4000)).all()
    assert ours.sample().shape == (2,) and ours.sample_n(5).shape == (5, 2)
    assert ours.broadcast_to((4, 2)).sample().shape == (4, 2)
    name = "logit" if use_logit else "prob"
    start = LOGIT if use_logit else PROB
    check_numeric_gradient(
        lambda x: mgp.Categorical(3, **{name: x}).log_prob(mx.np.array(classes)), [start], rtol=1e-6, atol=1e-8
    )


def test_probability_zero_leaves_gradients_finite():
    prob = array([0.0, 1.0])
    prob.attach_grad()
    with mx.autograd.record():
        total = mgp.Categorical(2, prob=prob).log_prob(1) + mgp.OneHotCategorical(2, prob=prob).log_prob(array([0, 1]))
    total.backward()
    assert prob.grad.asnumpy().tolist() == [0, 2]


@pytest.mark.parametrize("use_logit", [False, True])
def test_one_hot_categorical(use_logit):
    given = {"logit": array(LOGIT + 3)} if use_logit else {"prob": array(PROB)}
    ours = mgp.OneHotCategorical(3, **given, validate_args=True)
    found = ours.enumerate_support()
    assert found.shape == (3, 2, 3)
    assert_almost_equal(ours.log_prob(found), onp.log(PROB).T, rtol=1e-12, atol=1e-14)
    assert_almost_equal(ours.mean, PROB, rtol=1e-13)
    assert_almost_equal(ours.variance, PROB * (1 - PROB), rtol=1e-12)
    assert_almost_equal(ours.entropy(), stats.entropy(PROB, axis=-1), rtol=1e-12)
    mx.random.seed(5)
    samples = ours.sample_n(4000)
    assert samples.shape == (4000, 2, 3) and ours.support.check(samples) is samples
    assert_sample_moments(samples, PROB, PROB * (1 - PROB), 4000)
    assert ours.broadcast_to((4, 2)).sample().shape == (4, 2, 3)
    with pytest.raises(ValueError, match="one 1 and zeros"):
        ours.log_prob(array([1.0, 1.0, 0.0]))


@pytest.mark.parametrize("use_logit", [False, True])
def test_multinomial(use_logit):
    name, start = ("logit", LOGIT + 3) if use_logit else ("prob", PROB)
    ours = mgp.Multinomial(3, **{name: array(start)}, total_count=4)
    counts = onp.array([[[4, 0, 0], [1, 2, 1]], [[2, 2, 0], [0, 1, 3]]])
    expected = onp.stack([stats.multinomial(4, PROB[i]).logpmf(counts[:, i]) for i in range(2)], axis=1)
    assert_almost_equal(ours.log_prob(array(counts)), expected, rtol=1e-11, atol=1e-12)
    assert (ours.log_prob(array([[5.0, 0, 0], [-1.0, 5.0, 0]])).asnumpy() == -onp.inf).all()
    assert_almost_equal(ours.mean, 4 * PROB, rtol=1e-13)
    assert_almost_equal(ours.variance, 4 * PROB * (1 - PROB), rtol=1e-12)
    entropies = [stats.multinomial(4, PROB[i]).entropy() for i in range(2)]
    assert_almost_equal(ours.entropy(), entropies, rtol=1e-13)
    check_numeric_gradient(
        lambda x: mgp.Multinomial(3, **{name: x}, total_count=4).entropy(), [start], rtol=1e-6, atol=1e-7
    )
    mx.random.seed(5)
    samples = ours.sample((4000, 2))
    assert samples.shape == (4000, 2, 3) and ours.support.check(samples) is samples
    assert_sample_moments(samples, 4 * PROB, 4 * PROB * (1 - PROB), 4000)
    assert ours.broadcast_to((4, 2)).sample_n(5).shape == (5, 4, 2, 3)
    check_numeric_gradient(
        lambda x: mgp.Multinomial(3, **{name: x}, total_count=4).log_prob(array(counts)), [start], rtol=1e-6, atol=1e-7
    )
    with pytest.raises(ValueError, match="sum 4"):
        mgp.Multinomial(3, array(PROB), total_count=4, validate_args=True).log_prob(array([5.0, 0, 0]))


def test_relaxed_one_hot_categorical():
    """Against the density of the source, ``(n - 1)! T**(n - 1) prod(a x**(-T - 1)) / sum(a x**-T)**n``."""
    temperature, x = onp.array([0.5, 2.0]), GENERATOR.dirichlet([2, 3, 4], size=(4, 2))
    t = temperature[:, None]
    powers = (PROB * x**-t).sum(axis=-1) ** 3
    expected = onp.log(2 * temperature**2 * (PROB * x ** (-t - 1)).prod(axis=-1) / powers)
    for given in ({"prob": array(PROB)}, {"logit": array(LOGIT + 3)}):
        ours = mgp.RelaxedOneHotCategorical(array(temperature), 3, **given)
        assert_almost_equal(ours.log_prob(array(x)), expected, rtol=1e-10, atol=1e-11)
        assert_almost_equal(ours.prob, PROB, rtol=1e-13)
        samples = ours.sample_n(100)
        assert samples.shape == (100, 2, 3) and ours.support.check(samples) is samples
    assert ours.has_grad and ours.T.asnumpy().tolist() == [0.5, 2]
    assert ours.broadcast_to((4, 2)).sample().shape == (4, 2, 3)
    cold = mgp.RelaxedOneHotCategorical(0.01, 3, logit=mx.np.array(LOGIT[0]))
    samples = cold.sample(4000)
    assert onp.isfinite(cold.log_prob(samples).asnumpy()).all()
    shares = (samples.asnumpy() == samples.asnumpy().max(axis=-1, keepdims=True)).mean(axis=0)
    assert (abs(shares - PROB[0]) < 6 * onp.sqrt(PROB[0] * (1 - PROB[0]) / 4000)).all()

    def with_seed(logit, temperature):
        mx.random.seed(8)
        return mgp.RelaxedOneHotCategorical(temperature, 3, logit=logit).sample((2, 2))

    check_numeric_gradient(with_seed, [LOGIT, temperature], rtol=1e-5, atol=1e-7)


def test_independent():
    normal = mgp.Normal(array(LOC), array(1.5))
    ours = mgp.Independent(normal, 1)
    x = GENERATOR.normal(size=(4, 2, 3))
    expected = stats.norm(LOC, 1.5).logpdf(x).sum(axis=-1)
    assert_almost_equal(ours.log_prob(array(x)), expected, rtol=1e-12)
    assert_almost_equal(ours.entropy(), [3 * stats.norm(0, 1.5).entropy()] * 2, rtol=1e-13)
    assert ours.event_dim == 1 and ours.has_grad
    assert ours.sample((4, 2)).shape == (4, 2, 3) and ours.sample_n(5).shape == (5, 2, 3)
    larger = ours.broadcast_to((4, 2))
    assert larger.sample().shape == (4, 2, 3) and larger.log_prob(array(x)).shape == (4, 2)
    assert_almost_equal(ours.mean, LOC, rtol=0, atol=0)
    assert_almost_equal(ours.variance, onp.full((2, 3), 2.25), rtol=1e-15)
    with pytest.raises(ValueError, match=r"batch shape \(2, 3\), found 3"):
        mgp.Independent(normal, 3)
    with pytest.raises(TypeError, match="float"):
        mgp.Independent(1.0, 1)
    checked = mgp.Independent(mgp.Exponential(mx.np.ones(2)), 1, validate_args=True)
    with pytest.raises(ValueError, match="at least 0"):
        checked.log_prob(mx.np.array([1.0, -1.0]))


def test_independent_lists_the_support_of_unjoined_axes():
    base = mgp.Categorical(2, logit=mx.np.zeros((3, 2)))
    assert mgp.Independent(base, 0).enumerate_support().shape == (2, 3)
    assert not mgp.Independent(base, 1).has_enumerate_support
    with pytest.raises(NotImplementedError, match="enumerate_support"):
        mgp.Independent(base, 1).enumerate_support()


BAD = {
    "exactly one of `cov`, `precision` and `scale_tril` must be given, found none": lambda: mgp.MultivariateNormal(
        mx.np.zeros(2)
    ),
    "found `cov`, `precision`": lambda: mgp.MultivariateNormal(mx.np.zeros(2), mx.np.eye(2), mx.np.eye(2)),
    r"found shapes \(3, 3\) and \(2,\)": lambda: mgp.MultivariateNormal(mx.np.zeros(2), mx.np.eye(3)),
    "`cov`: PositiveDefinite": lambda: mgp.MultivariateNormal(mx.np.zeros(2), -mx.np.eye(2), validate_args=True),
    "`scale_tril`: LowerCholesky": lambda: mgp.MultivariateNormal(
        mx.np.zeros(2), scale_tril=-mx.np.eye(2), validate_args=True
    ),
    r"`alpha` must have at least 1 axes, found shape \(\)": lambda: mgp.Dirichlet(1.0),
    "Dirichlet: `alpha`: Positive": lambda: mgp.Dirichlet(mx.np.zeros(2), validate_args=True),
    "Categorical: `prob`: Simplex": lambda: mgp.Categorical(2, mx.np.ones(2), validate_args=True),
    r"must have length `num_events` 3, found shape \(2,\)": lambda: mgp.OneHotCategorical(3, mx.np.ones(2)),
    "`num_events` must be at least 1, found 0": lambda: mgp.Categorical(0, mx.np.ones(0)),
    "`total_count` must be at least 0, found -1": lambda: mgp.Multinomial(2, mx.np.ones(2) / 2, total_count=-1),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_parameters(message):
    with pytest.raises(ValueError, match=message):
        BAD[message]()


def test_counts_must_be_integers():
    with pytest.raises(TypeError, match=r"`num_events` must be an int, found 2\.0"):
        mgp.Categorical(2.0, mx.np.ones(2) / 2)
    with pytest.raises(TypeError, match=r"`total_count` must be an int, found 1\.5"):
        mgp.Multinomial(2, mx.np.ones(2) / 2, total_count=1.5)
