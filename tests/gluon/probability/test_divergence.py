"""Divergences against sums and integrals of SciPy's densities."""

import itertools
import math

import numpy as onp
import pytest
import scipy.integrate
import scipy.stats as stats

import mxnet as mx
from mxnet.gluon import probability as mgp
from mxnet.test_utils import assert_almost_equal, check_numeric_gradient

INFINITY = math.inf


def gumbel(loc, scale):
    return mgp.Gumbel(loc, scale), stats.gumbel_r(loc, scale), (-INFINITY, INFINITY)


def normal(loc, scale):
    return mgp.Normal(loc, scale), stats.norm(loc, scale), (-INFINITY, INFINITY)


def gamma(shape, scale):
    return mgp.Gamma(shape, scale), stats.gamma(shape, 0, scale), (0, INFINITY)


def exponential(scale):
    return mgp.Exponential(scale), stats.expon(0, scale), (0, INFINITY)


def uniform(low, high):
    return mgp.Uniform(low, high), stats.uniform(low, high - low), (low, high)


def laplace(loc, scale):
    return mgp.Laplace(loc, scale), stats.laplace(loc, scale), (-INFINITY, INFINITY)


def cauchy(loc, scale):
    return mgp.Cauchy(loc, scale), stats.cauchy(loc, scale), (-INFINITY, INFINITY)


def half_normal(scale):
    return mgp.HalfNormal(scale), stats.halfnorm(0, scale), (0, INFINITY)


def pareto(alpha, scale):
    return mgp.Pareto(alpha, scale), stats.pareto(alpha, 0, scale), (scale, INFINITY)


def weibull(concentration, scale):
    return mgp.Weibull(concentration, scale), stats.weibull_min(concentration, 0, scale), (0, INFINITY)


def beta(alpha, b):
    return mgp.Beta(alpha, b), stats.beta(alpha, b), (0, 1)


def dirichlet(alpha, b):
    """Of two numbers, of which the first has a beta distribution."""
    parameters = mx.np.stack([mx.np.array(alpha, dtype="float64"), mx.np.array(b, dtype="float64")])
    return mgp.Dirichlet(parameters), stats.beta(float(alpha), float(b)), (0, 1)


def chi2(df):
    return mgp.Chi2(df), stats.chi2(df), (0, INFINITY)


PAIRS = {
    "normal": (normal, (0.5, 2.0), normal, (-0.3, 1.2)),
    "half normal": (half_normal, (0.5,), half_normal, (1.2,)),
    "laplace": (laplace, (0.5, 2.0), laplace, (-0.3, 1.2)),
    "cauchy": (cauchy, (0.5, 2.0), cauchy, (-0.3, 1.2)),
    "gumbel": (gumbel, (0.5, 2.0), gumbel, (-0.3, 1.8)),
    "uniform": (uniform, (0.5, 2.0), uniform, (-0.3, 3.2)),
    "exponential": (exponential, (0.5,), exponential, (1.2,)),
    "gamma": (gamma, (1.5, 2.0), gamma, (2.3, 1.2)),
    "chi2": (chi2, (3.5,), chi2, (2.3,)),
    "chi2 gamma": (chi2, (3.5,), gamma, (2.3, 0.7)),
    "beta": (beta, (1.5, 2.0), beta, (2.3, 1.2)),
    "dirichlet": (dirichlet, (1.5, 2.0), dirichlet, (2.3, 1.2)),
    "pareto": (pareto, (1.5, 2.0), pareto, (2.3, 1.2)),
    "weibull": (weibull, (1.5, 2.0), weibull, (2.3, 1.2)),
    "uniform normal": (uniform, (0.5, 2.0), normal, (-0.3, 1.2)),
    "uniform gumbel": (uniform, (0.5, 2.0), gumbel, (-0.3, 1.2)),
    "exponential gumbel": (exponential, (0.5,), gumbel, (-0.3, 1.2)),
    "exponential normal": (exponential, (0.5,), normal, (-0.3, 1.2)),
    "exponential gamma": (exponential, (0.5,), gamma, (2.3, 1.2)),
}


def ours(make, params):
    return make(*(mx.np.array(param, dtype="float64") for param in params))[0]


@pytest.mark.parametrize("name", PAIRS)
def test_continuous(name):
    make_p, params_p, make_q, params_q = PAIRS[name]
    (_, p, (low, high)), (_, q, _) = make_p(*params_p), make_q(*params_q)

    def integrand(x):
        # Quadrature looks at far points, where densities are 0.
        return p.pdf(x) * (p.logpdf(x) - q.logpdf(x)) if p.pdf(x) > 0 else 0.0

    ends = [low, p.median(), high]
    if low == -INFINITY and make_p is not cauchy:
        # Exponential tails: what is left out is below 1e-14, and SciPy's densities do not overflow.
        ends = [p.ppf(1e-18), p.ppf(1e-4), p.median(), p.isf(1e-4), p.isf(1e-18)]
    expected = sum(
        scipy.integrate.quad(integrand, *part, epsabs=1e-11, epsrel=1e-10, limit=400)[0]
        for part in itertools.pairwise(ends)
    )
    found = mgp.kl_divergence(ours(make_p, params_p), ours(make_q, params_q))
    assert_almost_equal(found, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", [name for name in PAIRS if "dirichlet" not in name])
def test_gradients(name):
    make_p, params_p, make_q, params_q = PAIRS[name]
    classes = [type(ours(make_p, params_p)), type(ours(make_q, params_q))]

    def divergence(*params):
        p, q = params[: len(params_p)], params[len(params_p) :]
        return mgp.kl_divergence(classes[0](*p), classes[1](*q))

    check_numeric_gradient(divergence, [*params_p, *params_q], rtol=1e-5, atol=1e-7)


def array(x):
    return mx.np.array(x, dtype="float64")


PROBS = onp.array([0.2, 0.5, 0.3]), onp.array([0.1, 0.6, 0.3])
DISCRETE = {
    "bernoulli": (mgp.Bernoulli(array(0.3)), mgp.Bernoulli(array(0.8)), stats.bernoulli(0.3), stats.bernoulli(0.8)),
    "bernoulli logit": (
        mgp.Bernoulli(array(0.3)),
        mgp.Bernoulli(logit=array(math.log(4))),
        stats.bernoulli(0.3),
        stats.bernoulli(0.8),
    ),
    "binomial": (mgp.Binomial(4, array(0.3)), mgp.Binomial(4, array(0.8)), stats.binom(4, 0.3), stats.binom(4, 0.8)),
    "geometric": (
        mgp.Geometric(array(0.3)),
        mgp.Geometric(array(0.8)),
        stats.geom(0.3, loc=-1),
        stats.geom(0.8, loc=-1),
    ),
    "poisson": (mgp.Poisson(array(3.0)), mgp.Poisson(array(1.4)), stats.poisson(3.0), stats.poisson(1.4)),
    "categorical": (
        mgp.Categorical(3, array(PROBS[0])),
        mgp.Categorical(3, logit=array(onp.log(PROBS[1]) + 2)),
        stats.rv_discrete(values=(range(3), PROBS[0])),
        stats.rv_discrete(values=(range(3), PROBS[1])),
    ),
    "one hot": (
        mgp.OneHotCategorical(3, logit=array(onp.log(PROBS[0]))),
        mgp.OneHotCategorical(3, array(PROBS[1])),
        stats.rv_discrete(values=(range(3), PROBS[0])),
        stats.rv_discrete(values=(range(3), PROBS[1])),
    ),
}


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete(name):
    p, q, p_twin, q_twin = DISCRETE[name]
    x = onp.arange(200)  # what is left out is below 1e-25
    x = x[p_twin.pmf(x) > 1e-300]
    expected = (p_twin.pmf(x) * (p_twin.logpmf(x) - q_twin.logpmf(x))).sum()
    assert_almost_equal(mgp.kl_divergence(p, q), expected, rtol=1e-10)
    assert_almost_equal(mgp.kl_divergence(p, p), 0, atol=1e-15)


def test_multivariate_normal_in_all_forms():
    generator = onp.random.default_rng(5)
    a, b = generator.normal(size=(2, 3, 3))
    cov_p, cov_q = a @ a.T + onp.eye(3), b @ b.T + onp.eye(3)
    loc_p, loc_q = generator.normal(size=(2, 3))
    precision = onp.linalg.inv(cov_q)
    expected = 0.5 * (
        onp.trace(precision @ cov_p)
        + (loc_q - loc_p) @ precision @ (loc_q - loc_p)
        - 3
        + onp.linalg.slogdet(cov_q)[1]
        - onp.linalg.slogdet(cov_p)[1]
    )

    def forms(loc, cov):
        yield mgp.MultivariateNormal(array(loc), cov=array(cov))
        yield mgp.MultivariateNormal(array(loc), precision=array(onp.linalg.inv(cov)))
        yield mgp.MultivariateNormal(array(loc), scale_tril=array(onp.linalg.cholesky(cov)))

    for p in forms(loc_p, cov_p):
        for q in forms(loc_q, cov_q):
            # Condition numbers are below 100.
            assert_almost_equal(mgp.kl_divergence(p, q), expected, rtol=1e-11)


def test_multinomial():
    """Against the sum over all counts."""
    p, q = (mgp.Multinomial(3, array(prob), total_count=4) for prob in PROBS)
    counts = [(i, j, 4 - i - j) for i in range(5) for j in range(5 - i)]
    logs = [stats.multinomial(4, prob).logpmf(counts) for prob in PROBS]
    assert_almost_equal(mgp.kl_divergence(p, q), (onp.exp(logs[0]) * (logs[0] - logs[1])).sum(), rtol=1e-11)
    assert mgp.kl_divergence(p, mgp.Multinomial(3, array(PROBS[1]), total_count=5)).item() == INFINITY


def test_independent_adds_up():
    p, q = mgp.Normal(array([[0.5, 1.0], [2.0, 3.0]]), 1.0), mgp.Normal(array([0.0, 0.0]), 2.0).broadcast_to((2, 2))
    found = mgp.kl_divergence(mgp.Independent(p, 1), mgp.Independent(q, 1))
    assert_almost_equal(found, mgp.kl_divergence(p, q).asnumpy().sum(axis=1), rtol=1e-14)
    with pytest.raises(ValueError, match="found 1 and 2"):
        mgp.kl_divergence(mgp.Independent(p, 1), mgp.Independent(q, 2))


def test_supports_that_do_not_fit():
    assert mgp.kl_divergence(mgp.Uniform(0.0, 2.0), mgp.Uniform(0.0, 1.0)).item() == INFINITY
    assert mgp.kl_divergence(mgp.Pareto(1.0, 1.0), mgp.Pareto(1.0, 2.0)).item() == INFINITY
    assert mgp.kl_divergence(mgp.Binomial(5, 0.5), mgp.Binomial(4, 0.5)).item() == INFINITY
    assert math.isnan(mgp.kl_divergence(mgp.Binomial(3, 0.5), mgp.Binomial(4, 0.5)).item())
    with pytest.raises(ValueError, match="found 2 and 3"):
        mgp.kl_divergence(mgp.Categorical(2, logit=mx.np.zeros(2)), mgp.Categorical(3, logit=mx.np.zeros(3)))
    with pytest.raises(ValueError, match="found 2 and 3"):
        mgp.kl_divergence(
            mgp.MultivariateNormal(mx.np.zeros(2), mx.np.eye(2)), mgp.MultivariateNormal(mx.np.zeros(3), mx.np.eye(3))
        )


def test_empirical_divergence():
    """The mean of n samples is nearer to the divergence than six standard deviations of the mean."""
    mx.random.seed(3)
    p, q, count = mgp.Normal(array([0.0, 1.0]), 1.0), mgp.Normal(array([1.0, -1.0]), 1.5), 5000
    found = mgp.empirical_kl(p, q, count)
    samples = p.sample_n(count)
    error = 6 * (p.log_prob(samples) - q.log_prob(samples)).asnumpy().std(axis=0) / math.sqrt(count)
    assert found.shape == (2,)
    assert (abs(found - mgp.kl_divergence(p, q)).asnumpy() < error).all()
    vectors = mgp.Dirichlet(array([[1.0, 2.0], [3.0, 1.0], [2.0, 2.0]]))
    assert mgp.empirical_kl(vectors, vectors, (4, 2)).asnumpy().tolist() == [0, 0, 0]


def test_registered_formulas():
    class Mine(mgp.Normal):
        pass

    # Without a formula of its own a class takes that of its base class.
    assert mgp.kl_divergence(Mine(0.0, 1.0), mgp.Normal(1.0, 1.0)).item() == 0.5

    @mgp.register_kl(Mine, mgp.Normal)
    def formula(p, q):
        return p.loc + 7

    assert mgp.kl_divergence(Mine(0.0, 1.0), mgp.Normal(1.0, 1.0)).item() == 7
    assert mgp.kl_divergence(mgp.Normal(0.0, 1.0), mgp.Normal(1.0, 1.0)).item() == 0.5
    with pytest.raises(NotImplementedError, match="Normal and Beta"):
        mgp.kl_divergence(mgp.Normal(), mgp.Beta(1.0, 1.0))
    with pytest.raises(TypeError, match="typeQ"):
        mgp.register_kl(Mine, mgp.Normal())
