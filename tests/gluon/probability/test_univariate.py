"""Distributions of numbers against SciPy, in float64."""

import math

import mpmath
import numpy as onp
import pytest
import scipy.stats as stats

import mxnet as mx
from families import FAMILIES
from mxnet._core import abstract_array
from mxnet.gluon import probability as mgp
from mxnet.gluon.probability.distributions import constraint
from mxnet.test_utils import assert_almost_equal, check_numeric_gradient

# Both sides add up a handful of terms of size up to about 50, each known to a few units of 2**-53.
RTOL, ATOL = 1e-10, 1e-12
WITH_CDF = [name for name, family in FAMILIES.items() if family.has_cdf]
WITH_ENTROPY = [name for name, family in FAMILIES.items() if family.has_entropy]
WITH_MOMENTS = [name for name, family in FAMILIES.items() if family.has_moments]
REPARAMETERISED = [name for name, family in FAMILIES.items() if not family.is_discrete]


def array(x):
    return mx.np.array(x, dtype="float64")


def log_prob_of(family, values):
    twin = family.theirs()
    return (twin.logpmf if family.is_discrete else twin.logpdf)(onp.asarray(values, float) + family.shift)


@pytest.mark.parametrize("name", FAMILIES)
def test_log_prob(name):
    family = FAMILIES[name]
    expected = log_prob_of(family, family.values)
    assert onp.isfinite(expected).all()
    assert_almost_equal(family.ours().log_prob(array(family.values)), expected, rtol=RTOL, atol=ATOL)
    assert_almost_equal(family.ours().pdf(array(family.values)), onp.exp(expected), rtol=RTOL, atol=ATOL)


@pytest.mark.parametrize("name", [name for name, family in FAMILIES.items() if family.outside])
def test_log_prob_outside_of_the_support(name):
    family = FAMILIES[name]
    for value in family.outside:
        assert (log_prob_of(family, [value]) == -onp.inf).all()
        value = array([value])
        value.attach_grad()
        with mx.autograd.record():
            found = family.ours().log_prob(value)
        assert (found.asnumpy() == -onp.inf).all()
        found.backward()
        assert (value.grad.asnumpy() == 0).all()
        checked = family.ours()
        checked._validate_args = True
        with pytest.raises(ValueError, match="`value`"):
            checked.log_prob(value)
    assert onp.isnan(family.ours().log_prob(array([onp.nan])).asnumpy()).all()


@pytest.mark.parametrize("name", FAMILIES)
def test_gradient_of_log_prob(name):
    family = FAMILIES[name]

    def of_params(*params):
        return family.make(*params).log_prob(array(family.values))

    check_numeric_gradient(of_params, list(family.params), rtol=1e-5, atol=1e-7)
    if not family.is_discrete and name != "uniform":
        check_numeric_gradient(lambda x: family.ours().log_prob(x), [family.values], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", WITH_CDF)
def test_cdf_and_inverse(name):
    family, p = FAMILIES[name], onp.array([[1e-6, 0.2], [0.5, 0.7], [0.9, 0.999]])
    # Formulas with 1 + x know small probabilities to 2**-53 of 1.
    assert_almost_equal(
        family.ours().cdf(array(family.values)), family.theirs().cdf(family.values), rtol=RTOL, atol=1e-15
    )
    # Near 1e-6 the same error is 1e-10 of the probability.
    assert_almost_equal(family.ours().icdf(array(p)), family.theirs().ppf(p), rtol=1e-9, atol=1e-12)
    assert onp.isnan(family.ours().icdf(array([-0.5, 1.5])).asnumpy()).all()
    assert_almost_equal(family.ours().cdf(family.ours().icdf(array(p))), p, rtol=1e-9)


@pytest.mark.parametrize("name", [name for name in WITH_CDF if FAMILIES[name].outside])
def test_cdf_outside_of_the_support(name):
    family = FAMILIES[name]
    for value in family.outside:
        given = [array(value), *map(array, family.params)]
        for x in given:
            x.attach_grad()
        with mx.autograd.record():
            found = family.make(*given[1:]).cdf(given[0])
        assert found.tolist() == [float((value > onp.asarray(family.values)).all())] * 2
        found.backward()
        for x in given:
            assert (x.grad.asnumpy() == 0).all()
    assert onp.isnan(family.ours().cdf(onp.nan).asnumpy()).all()


@pytest.mark.parametrize("name", WITH_CDF)
def test_gradients_of_cdf_and_inverse(name):
    family = FAMILIES[name]
    check_numeric_gradient(
        lambda *params: family.make(*params).cdf(array(family.values)), list(family.params), rtol=1e-5, atol=1e-7
    )
    p = onp.array([[0.3, 0.2], [0.6, 0.7]])
    check_numeric_gradient(
        lambda *params: family.make(*params).icdf(array(p)), list(family.params), rtol=1e-5, atol=1e-7
    )
    check_numeric_gradient(lambda p: family.ours().icdf(p), [p], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("how", ["prob", "logit"])
def test_cdf_and_inverse_of_discrete_distributions(how):
    prob = onp.array([0.2, 0.75, 0.5])
    given = {"prob": array(prob)} if how == "prob" else {"logit": array(onp.log(prob / (1 - prob)))}
    values = onp.array([-2.0, -0.5, 0.0, 0.3, 1.0, 2.5, 40.0])[:, None]
    p = onp.array([-0.1, 0.1, 0.3, 0.6, 0.99, 1.0, 1.1])[:, None]
    for ours, theirs in [
        (mgp.Bernoulli(**given), stats.bernoulli(prob)),
        (mgp.Geometric(**given), stats.geom(prob, loc=-1)),
    ]:
        assert_almost_equal(ours.cdf(array(values)), theirs.cdf(values), rtol=1e-13)
        onp.testing.assert_array_equal(ours.icdf(array(p)).asnumpy(), theirs.ppf(p))
        assert ours.icdf(0.0).asnumpy().tolist() == [0, 0, 0]
    for make in (mgp.Bernoulli, mgp.Geometric):
        check_numeric_gradient(lambda q, make=make: make(prob=q).cdf(array(values)), [prob], rtol=1e-6, atol=1e-9)
    # A probability that is exactly that of a count gives this count, whatever its logarithm is rounded to.
    counts = onp.arange(60.0)
    found = mgp.Geometric(prob=array(0.25))
    onp.testing.assert_array_equal(found.icdf(found.cdf(array(counts))).asnumpy(), counts)


COUNTING = {
    "poisson": (mgp.Poisson, stats.poisson, ((0.0, 0.3, 4.0, 2e5),)),
    "binomial": (mgp.Binomial, stats.binom, ((1.0, 5.0, 40.0, 1e6), (0.5, 0.01, 0.9, 0.3))),
    "negative binomial": (
        mgp.NegativeBinomial,
        lambda n, prob: stats.nbinom(n, 1 - prob),
        ((0.5, 3.0, 2.5, 1e4), (0.5, 0.01, 0.9, 0.3)),
    ),
}


@pytest.mark.parametrize("name", COUNTING)
def test_cdf_and_inverse_of_counts(name):
    make, twin, given = COUNTING[name]
    ours, theirs = make(*map(array, given)), twin(*map(onp.array, given))
    values = onp.array([-2.0, -0.5, 0.0, 0.3, 1.0, 2.5, 40.0, 199_800.0, onp.inf])[:, None]
    # SciPy's results of large parameters have errors of 1e-11.
    assert_almost_equal(ours.cdf(array(values)), theirs.cdf(values), rtol=1e-9, atol=1e-300)
    p = onp.array([1e-200, 1e-9, 0.1, 0.3, 0.6, 0.99, 1 - 1e-12])[:, None]
    onp.testing.assert_array_equal(ours.icdf(array(p)).asnumpy(), theirs.ppf(p))
    assert onp.isnan(ours.icdf(array([[-0.1], [1.1], [onp.nan]])).asnumpy()).all()
    assert (ours.icdf(0.0).asnumpy() == 0).all()
    onp.testing.assert_array_equal(ours.icdf(1.0), theirs.ppf(1.0))
    assert onp.isnan(ours.cdf(onp.nan).asnumpy()).all()
    # The quantile of the probability of a count is this count, if no other count has it.
    counts = onp.arange(5.0)[:, None]
    probability = ours.cdf(array(counts)).asnumpy()
    is_first = (probability > 0) & (probability < 1)
    onp.testing.assert_array_equal(
        ours.icdf(array(probability)).asnumpy()[is_first], (counts + 0 * probability)[is_first]
    )


@pytest.mark.parametrize("name", COUNTING)
def test_gradients_of_cdf_of_counts(name):
    make, _, given = COUNTING[name]
    params = [onp.array(param[1:3]) for param in given]
    fixed = params[:-1] if name == "binomial" else []
    counts = array([[0.0], [2.5], [4.0]])

    def of_params(*others):
        return make(*map(array, fixed), *others).cdf(counts)

    check_numeric_gradient(of_params, params[len(fixed) :], rtol=1e-5, atol=1e-8)


def test_quantiles_of_counts_in_single_precision():
    rate = mx.np.array([0.5, 30.0, 1e5], dtype="float32")
    found = mgp.Poisson(rate).icdf(mx.np.array([[0.01], [0.5], [0.999]], dtype="float32"))
    assert found.dtype == onp.float32
    onp.testing.assert_array_equal(found, stats.poisson(rate.asnumpy()).ppf([[0.01], [0.5], [0.999]]))


def test_counts_of_large_logits():
    """The complement of a probability that is rounded to 1."""

    def single(x):
        return mx.np.array(x, dtype="float32")

    ours, rest = mgp.NegativeBinomial(single(0.01), logit=single(20.0)), 1 / (1 + math.exp(20))
    theirs = stats.nbinom(onp.float64(onp.float32(0.01)), rest)
    counts = onp.array([0.0, 10.0, 1e5])
    assert_almost_equal(ours.cdf(single(counts)), theirs.cdf(counts), rtol=1e-6)
    assert ours.icdf(single([0.5, 0.9])).tolist() == theirs.ppf([0.5, 0.9]).tolist() == [0, 7295]
    assert_almost_equal(ours.mean, theirs.mean(), rtol=1e-6)
    assert_almost_equal(ours.variance, theirs.var(), rtol=1e-6)
    ours = mgp.Binomial(single(10.0), logit=single(20.0))
    assert_almost_equal(ours.cdf(single(9.0)), -math.expm1(10 * math.log1p(-rest)), rtol=1e-6)
    assert_almost_equal(ours.variance, 10 * rest, rtol=1e-6)
    assert_almost_equal(mgp.Bernoulli(logit=single(20.0)).cdf(single(0.0)), rest, rtol=1e-6)
    assert_almost_equal(mgp.Geometric(logit=single(20.0)).mean, math.exp(-20), rtol=1e-6)


def test_gradients_of_cdf_by_large_logits():
    n, k = onp.array([2.5, 5.0]), array([[1.0], [3.0]])
    logit = onp.array([12.0, -12.0])
    check_numeric_gradient(lambda x: mgp.NegativeBinomial(array(n), logit=x).cdf(k), [logit], rtol=1e-5, atol=1e-10)
    check_numeric_gradient(lambda x: mgp.Binomial(5, logit=x).cdf(k), [logit], rtol=1e-5, atol=1e-10)


def test_quantiles_of_counts_near_the_end_of_float16():
    rate = mx.np.array(50_000.0, dtype="float16")
    found = mgp.Poisson(rate).icdf(mx.np.array([0.3, 0.5, 0.99], dtype="float16")).astype("float64").asnumpy()
    assert (abs(found - stats.poisson(float(rate)).ppf([0.3, 0.5, 0.99])) <= 64).all()
    # The bounds of the quantile are more than 2**32 apart.
    wide = mgp.NegativeBinomial(mx.np.array(0.01, dtype="float32"), logit=mx.np.array(33.0, dtype="float32"))
    assert wide.icdf(mx.np.array(0.5, dtype="float32")).item() == 0


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_gradients_of_cdf_at_the_largest_numbers(dtype):
    def given(x):
        x = mx.np.array(x, dtype=dtype)
        x.attach_grad()
        return x

    largest = float(mx.np.finfo(dtype).max)
    for make, values in (
        (mgp.FisherSnedecor, [1.0, largest]),
        (lambda df, scale: mgp.StudentT(df, 0, scale), [largest, math.inf]),
        (lambda n, logit: mgp.NegativeBinomial(n, logit=logit), [largest, math.inf]),
        (lambda rate, _: mgp.Poisson(rate), [largest, math.inf]),
    ):
        x, *params = given(values), given(3.0), given(6.0)
        with mx.autograd.record():
            found = make(*params).cdf(x)
        found.backward()
        assert found.asnumpy()[-1] == 1
        for variable in (x, *params):
            assert onp.isfinite(variable.grad.asnumpy()).all()


def test_tails_of_normal():
    ours = mgp.Normal(array(1.0), array(2.0))
    x = onp.array([-70.0, -20.0, -3.0, 1.0, 6.0])
    assert_almost_equal(ours.cdf(array(x)), stats.norm(1, 2).cdf(x), rtol=1e-12, atol=0)
    p = onp.array([1e-300, 1e-20, 1e-3, 0.5, 0.9, 1 - 1e-10])
    assert_almost_equal(ours.icdf(array(p)), stats.norm(1, 2).ppf(p), rtol=1e-13)
    assert ours.icdf(array([0.0, 1.0])).tolist() == [-math.inf, math.inf]


@pytest.mark.parametrize("df", [1e-3, 0.5, 40.0, 1e6, 1e10])
def test_tails_of_student(df):
    x = onp.array([-1e9, -50.0, -1e-6, 0.0, 1e-6, 2.0, 1e9])
    ours, theirs = mgp.StudentT(array(df)), stats.t(df)
    assert_almost_equal(ours.cdf(array(x)), theirs.cdf(x), rtol=1e-9, atol=1e-300)
    single = mgp.StudentT(mx.np.array(df, dtype="float32")).cdf(mx.np.array(x, dtype="float32"))
    assert single.dtype == onp.float32
    # Parameters and values are rounded to float32 first, and the result once more.
    rounded = stats.t(float(onp.float32(df))).cdf(x.astype("float32").astype("float64"))
    assert_almost_equal(single, rounded, rtol=2**-23, atol=0)
    at = array([-1e-3, 0.0, 1e-3])
    at.attach_grad()
    with mx.autograd.record():
        y = ours.cdf(at)
    y.backward()
    assert_almost_equal(at.grad, theirs.pdf(at.asnumpy()), rtol=1e-9, atol=1e-10)


def test_far_tails_of_student():
    ours = mgp.StudentT(array(0.5))
    with mpmath.workdps(50):
        # Both are rounded exponentials of logarithms up to 370.
        want = float(mpmath.betainc(0.25, 0.5, 0, 0.5 / (0.5 + mpmath.mpf(10) ** 320), regularized=True) / 2)
    assert_almost_equal(ours.cdf(array(-1e160)), want, rtol=1e-12)
    assert_almost_equal(ours.icdf(array(want)), -1e160, rtol=1e-12)
    assert ours.cdf(array([-onp.inf, onp.inf])).tolist() == [0, 1]
    assert_almost_equal(ours.log_prob(array(1e160)), stats.t(0.5).logpdf(1e100) - 1.5 * 60 * math.log(10), rtol=1e-12)
    loc = array([-2.0, 0.1, 7.0])
    assert mgp.StudentT(array([0.3, 7.0, 1e12]), loc).icdf(0.5).tolist() == loc.tolist()


@pytest.mark.parametrize("df", [9.9e7, 1.01e8, 1e10, 1e20])
def test_student_of_large_df(df):
    ours = mgp.StudentT(array(df))
    p = onp.array([1e-300, 1e-50, 1e-3, 0.1, 0.4999])
    z = -stats.norm.isf(p)
    want = z + (z**3 + z) / (4 * df) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * df) / df
    assert_almost_equal(ours.icdf(array(p)), want, rtol=1e-13, atol=1e-11 if df < 1e8 else 0)
    # The logarithm of a probability is known to 700 * 2**-53; below 1e8 see the note of `cdf`.
    assert_almost_equal(ours.cdf(array(want)), p, rtol=1e-9 if df < 1e8 else 2e-12)
    at, many = array([-1e300, -50.0, -1.0, 0.0, 2.0]), array(df)
    at.attach_grad()
    many.attach_grad()
    with mx.autograd.record():
        found = mgp.StudentT(many).cdf(at)
    found.backward()
    assert onp.isfinite(many.grad.item())
    assert_almost_equal(at.grad, stats.norm.pdf(onp.maximum(at.asnumpy(), -50)), rtol=1e-6, atol=1e-300)


@pytest.mark.parametrize("df", [(0.1, 0.2), (3.0, 0.05), (1e5, 2.0)])
def test_tails_of_fisher(df):
    x = onp.array([1e-12, 1e-3, 1.0, 1e3, 1e12])
    ours, theirs = mgp.FisherSnedecor(*map(array, df)), stats.f(*df)
    assert_almost_equal(ours.cdf(array(x)), theirs.cdf(x), rtol=1e-10, atol=1e-300)
    p = onp.array([1e-3, 0.3, 0.7])
    assert_almost_equal(ours.icdf(array(p)), theirs.ppf(p), rtol=1e-8)


@pytest.mark.parametrize("name", WITH_ENTROPY)
def test_entropy(name):
    family = FAMILIES[name]
    # SciPy sums or integrates some of them, to 1e-8.
    assert_almost_equal(family.ours().entropy(), family.theirs().entropy(), rtol=1e-7, atol=1e-8)
    assert_almost_equal(family.ours().perplexity(), onp.exp(family.theirs().entropy()), rtol=1e-7, atol=1e-8)
    check_numeric_gradient(
        lambda *params: family.make(*params).entropy() + 0 * params[0], list(family.params), rtol=1e-5, atol=1e-7
    )


@pytest.mark.parametrize("name", WITH_MOMENTS)
def test_moments(name):
    family, ours, theirs = FAMILIES[name], FAMILIES[name].ours(), FAMILIES[name].theirs()
    assert_almost_equal(ours.mean, theirs.mean() - family.shift, rtol=RTOL, atol=ATOL)
    assert_almost_equal(ours.variance, theirs.var(), rtol=RTOL, atol=ATOL)
    assert_almost_equal(ours.stddev, theirs.std(), rtol=RTOL, atol=ATOL)


def test_moments_that_do_not_exist():
    assert onp.isnan(mgp.Cauchy().mean.item()) and onp.isnan(mgp.Cauchy().variance.item())
    assert mgp.HalfCauchy().mean.item() == mgp.HalfCauchy().variance.item() == onp.inf
    df = array([0.5, 1.5, 3.0])
    onp.testing.assert_array_equal(mgp.StudentT(df).mean.asnumpy(), [onp.nan, 0, 0])
    onp.testing.assert_array_equal(mgp.StudentT(df).variance.asnumpy(), [onp.nan, onp.inf, 3])
    onp.testing.assert_array_equal(mgp.Pareto(array([0.5, 1.5, 3.0])).mean.asnumpy(), [onp.inf, 3, 1.5])
    onp.testing.assert_array_equal(mgp.Pareto(array([1.5, 3.0])).variance.asnumpy(), [onp.inf, 0.75])
    found = mgp.FisherSnedecor(2.0, array([1.0, 3.0, 6.0]))
    onp.testing.assert_array_equal(found.mean.asnumpy(), [onp.nan, 3, 1.5])
    assert onp.isnan(found.variance.asnumpy()).tolist() == [True, True, False]


@pytest.mark.parametrize("name", FAMILIES)
def test_samples_have_the_distribution(name):
    """By the inequality of Dvoretzky, Kiefer and Wolfowitz, with an error of 1e-9 for each of the two columns."""
    mx.random.seed(7)
    family, count = FAMILIES[name], 4000
    samples = family.ours().sample_n(count)
    assert samples.shape == (count, 2) and samples.dtype == onp.float64
    assert onp.isfinite(family.ours().log_prob(samples).asnumpy()).all()
    samples = onp.sort(samples.asnumpy(), axis=0)
    bound = math.sqrt(math.log(2 / 1e-9) / (2 * count))
    below = onp.stack([onp.searchsorted(samples[:, i], samples[:, i], "right") for i in range(2)], axis=1)
    assert abs(below / count - family.theirs().cdf(samples + family.shift)).max() < bound


@pytest.mark.parametrize("name", FAMILIES)
def test_shapes_of_samples(name):
    ours = FAMILIES[name].ours()
    assert ours.sample().shape == (2,)
    assert ours.sample((3, 2)).shape == (3, 2)
    assert ours.sample_n().shape == ours.sample_n(()).shape == (2,)
    assert ours.sample_n((3, 4)).shape == (3, 4, 2)
    larger = ours.broadcast_to((3, 2))
    assert type(larger) is type(ours)
    assert larger.sample().shape == larger.log_prob(array(FAMILIES[name].values[0])).shape == (3, 2)
    with pytest.raises(ValueError, match=r"sample: batch shape \(2,\) does not broadcast to `size` \(3,\)"):
        ours.sample(3)
    with pytest.raises(ValueError, match=r"broadcast_to: batch shape \(2,\)"):
        ours.broadcast_to((2, 3))


@pytest.mark.parametrize("name", REPARAMETERISED)
def test_samples_move_with_the_parameters(name):
    """The mean gradient of a bounded function of samples is the derivative of its expectation.

    The expectation of ``tanh(x)`` is integrated by SciPy over quantiles; the error of the mean is below six of its
    standard deviations.
    """
    mx.random.seed(11)
    family, count, step = FAMILIES[name], 20000, 1e-4
    assert family.ours().has_grad
    params = [array(param) for param in family.params]
    spread = [mx.np.broadcast_to(param, (count, 2)) for param in params]
    for param in spread:
        param.attach_grad()
    with mx.autograd.record():
        total = mx.np.tanh(family.make(*spread).sample()).sum()
    total.backward()
    # Midpoints of 20000 quantiles: the error of the integral is below 1 / 20000, and cancels in differences.
    p = (onp.arange(20000) + 0.5)[:, None] / 20000
    for index, param in enumerate(spread):
        found = param.grad.asnumpy()
        sides = []
        for sign in (1, -1):
            moved = [onp.array(other) + (sign * step if i == index else 0) for i, other in enumerate(family.params)]
            sides.append(onp.tanh(family.twin(*moved).ppf(p)).mean(axis=0))
        expected = (sides[0] - sides[1]) / (2 * step)
        error = 6 * found.std(axis=0) / math.sqrt(count) + 1e-3
        assert (abs(found.mean(axis=0) - expected) < error).all(), (found.mean(axis=0), expected, error)


@pytest.mark.parametrize("name", [name for name, family in FAMILIES.items() if family.is_discrete])
def test_discrete_samples_use_the_score(name):
    """Samples have no gradient; ``sum(p * x * gradient of log p)`` is the derivative of the mean."""
    family = FAMILIES[name]
    assert not family.ours().has_grad
    # Probabilities beyond 400 are below 1e-20 here.
    values = array(onp.arange(2 if "bernoulli" in name else 6 if name.startswith("binomial") else 400)[:, None])
    weights = (values * family.ours().pdf(values)).detach()
    params = [array(param) for param in family.params]
    for param in params:
        param.attach_grad()
    with mx.autograd.record():
        total = (weights * family.make(*params).log_prob(values)).sum()
    total.backward()
    scores = [param.grad.asnumpy() for param in params]
    with mx.autograd.record():
        total = family.make(*params).mean.sum()
    total.backward()
    for param, score in zip(params, scores, strict=True):
        assert_almost_equal(score, param.grad, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", FAMILIES)
def test_no_values_are_read(name):
    """Everything runs on arrays without values, as a compiler would trace it."""
    family, values = FAMILIES[name], abstract_array((3, 2), "float64")
    ours = family.make(*(abstract_array((2,), "float64") for _ in family.params))
    found = [ours.log_prob(values)]
    found += [ours.cdf(values), ours.icdf(values)] if family.has_cdf else []
    assert [array.shape for array in found] == [(3, 2)] * len(found)
    found = [ours.sample(), ours.broadcast_to((2,)).sample()]
    found += [ours.entropy()] if family.has_entropy else []
    found += [ours.mean, ours.variance] if family.has_moments else []
    assert [array.shape for array in found] == [(2,)] * len(found)


@pytest.mark.parametrize("name", FAMILIES)
def test_single_precision(name):
    """Each family keeps float32, and is near its double."""
    family = FAMILIES[name]
    ours = family.make(*(mx.np.array(param, dtype="float32") for param in family.params))
    found = ours.log_prob(mx.np.array(family.values, dtype="float32"))
    assert found.dtype == ours.sample().dtype == onp.float32
    # Sums of terms up to 16, each known to a few units of 2**-23 of itself, and values rounded to float32.
    assert_almost_equal(found, log_prob_of(family, family.values), rtol=1e-5, atol=3e-5)


def test_poisson_entropy_of_large_rates():
    rates = onp.array([40.0, 59.9, 60.1, 200.0])
    counts = onp.arange(1000)
    logs = onp.array([[k * math.log(rate) - rate - math.lgamma(k + 1) for k in counts] for rate in rates])
    assert_almost_equal(mgp.Poisson(array(rates)).entropy(), -(onp.exp(logs) * logs).sum(axis=1), rtol=1e-8)


def sum_of_entropy(log_prob, counts):
    """Entropy as a sum in 40 digits."""
    with mpmath.workdps(40):
        logs = [log_prob(k) for k in counts]
        return float(-mpmath.fsum(mpmath.exp(x) * x for x in logs if x != -mpmath.inf))


@pytest.mark.parametrize(("n", "prob"), [(1, 0.3), (2, 0.5), (7, 1e-9), (40, 0.98), (900, 0.3)])
def test_entropy_of_binomial(n, prob):
    def log_prob(k):
        ways = mpmath.log(mpmath.binomial(n, k))
        return ways + k * mpmath.log(prob) + (n - k) * mpmath.log1p(-mpmath.mpf(prob))

    expected = sum_of_entropy(log_prob, range(n + 1))
    # The error that the docstring states.
    assert_almost_equal(mgp.Binomial(array(n), array(prob)).entropy(), expected, rtol=1e-14, atol=1e-14 * n)
    logit = math.log(prob) - math.log1p(-prob)
    assert_almost_equal(mgp.Binomial(array(n), logit=array(logit)).entropy(), expected, rtol=1e-13, atol=1e-14 * n)
    as_classes = mgp.Multinomial(2, array([prob, 1 - prob]), total_count=n)
    assert_almost_equal(as_classes.entropy(), expected, rtol=1e-14, atol=1e-14 * n)
    # In single precision only the parameters and the result are rounded.
    single = mgp.Binomial(mx.np.array(n, dtype="float32"), mx.np.array(prob, dtype="float32")).entropy()
    double = mgp.Binomial(array(n), array(onp.float32(prob))).entropy()
    assert single.dtype == onp.float32
    assert_almost_equal(single, double, rtol=2**-24)


@pytest.mark.parametrize(
    ("n", "prob", "num_counts"), [(1, 0.3, 100), (0.5, 0.9, 900), (1e-4, 0.5, 140), (60, 0.25, 200), (800, 0.4, 1200)]
)
def test_entropy_of_negative_binomial(n, prob, num_counts):
    def log_prob(k):
        ways = mpmath.loggamma(k + mpmath.mpf(n)) - mpmath.loggamma(n) - mpmath.loggamma(k + 1)
        return ways + k * mpmath.log(prob) + n * mpmath.log1p(-mpmath.mpf(prob))

    expected = sum_of_entropy(log_prob, range(num_counts))
    scale = 4e-15 * n / (1 - prob)
    assert_almost_equal(mgp.NegativeBinomial(array(n), array(prob)).entropy(), expected, rtol=1e-14, atol=scale)


def test_entropy_of_many_trials_is_that_of_a_normal_distribution():
    n, prob = onp.array([1e6, 1e8]), 0.3
    normal = 0.5 * onp.log(2 * math.pi * math.e * n * prob * (1 - prob))
    # The next term of the expansion is below 1 / n.
    assert_almost_equal(mgp.Binomial(array(n), array(prob)).entropy(), normal, rtol=0, atol=1e-6)
    normal = 0.5 * onp.log(2 * math.pi * math.e * n * prob / (1 - prob) ** 2)
    assert_almost_equal(mgp.NegativeBinomial(array(n), array(prob)).entropy(), normal, rtol=0, atol=1e-6)


def test_entropy_of_certain_counts_is_zero():
    for prob in (0.0, 1.0):
        assert_almost_equal(mgp.Binomial(array([0.0, 1.0, 9.0]), array(prob)).entropy(), [0, 0, 0], atol=1e-14)
    assert mgp.NegativeBinomial(array([0.5, 3.0]), array(0.0)).entropy().tolist() == [0, 0]
    assert_almost_equal(mgp.Multinomial(3, array([0.0, 1.0, 0.0]), total_count=4).entropy(), 0, atol=1e-14)


@pytest.mark.parametrize("value", [-math.inf, -3.0, math.inf])
def test_cdf_of_geometric_beyond_all_counts(value):
    for name in ("prob", "logit"):
        parameter, x = array(0.25), array(value)
        parameter.attach_grad(), x.attach_grad()
        with mx.autograd.record():
            found = mgp.Geometric(**{name: parameter}).cdf(x)
        found.backward()
        assert (found.item(), parameter.grad.item(), x.grad.item()) == (float(value > 0), 0, 0)
    assert math.isnan(mgp.Geometric(prob=array(0.25)).cdf(math.nan).item())


def test_log_prob_at_the_ends():
    assert mgp.Exponential(2.0).log_prob(0.0).item() == pytest.approx(-math.log(2))
    assert mgp.Beta(1.0, 1.0).log_prob(array([0.0, 1.0])).asnumpy().tolist() == [0, 0]
    assert mgp.Gamma(1.0, 1.0).log_prob(array(0.0)).item() == 0
    assert mgp.Bernoulli(prob=array([0.0, 1.0])).log_prob(array([0.0, 1.0])).asnumpy().tolist() == [0, 0]
    assert mgp.Bernoulli(prob=array([0.0, 1.0])).log_prob(array([1.0, 0.0])).asnumpy().tolist() == [-onp.inf] * 2
    assert mgp.Poisson(array(0.0)).log_prob(array([0.0, 1.0])).asnumpy().tolist() == [0, -onp.inf]
    assert abs(mgp.Bernoulli(logit=array(1000.0)).log_prob(array(0.0)).item()) == 1000


def test_dtypes_follow_the_parameters():
    for dtype in ("float16", "float32", "float64"):
        normal = mgp.Normal(mx.np.zeros(2, dtype=dtype), 1.0)
        assert normal.sample().dtype == normal.log_prob(0.5).dtype == normal.scale.dtype == onp.dtype(dtype)
    assert mgp.Normal(0, 1).loc.dtype == mx.np.array(0.0).dtype
    assert mgp.Normal(mx.np.array([1, 2]), 1).loc.dtype == mx.np.array(0.0).dtype
    assert mgp.Poisson(1.0).log_prob(mx.np.array([1, 2])).dtype == mx.np.array(0.0).dtype


BAD = {
    "Normal: `scale`": lambda: mgp.Normal(0.0, -1.0, validate_args=True),
    "Laplace: `scale`": lambda: mgp.Laplace(0.0, 0.0, validate_args=True),
    "Cauchy: `loc`": lambda: mgp.Cauchy(math.nan, 1.0, validate_args=True),
    "Gumbel: `scale`": lambda: mgp.Gumbel(0.0, -2.0, validate_args=True),
    "Uniform: `low` must be less": lambda: mgp.Uniform(1.0, 1.0, validate_args=True),
    "Exponential: `scale`": lambda: mgp.Exponential(-1.0, validate_args=True),
    "Gamma: `shape`": lambda: mgp.Gamma(0.0, 1.0, validate_args=True),
    "Chi2: `df`": lambda: mgp.Chi2(-3.0, validate_args=True),
    "Beta: `beta`": lambda: mgp.Beta(1.0, -1.0, validate_args=True),
    "FisherSnedecor: `df2`": lambda: mgp.FisherSnedecor(1.0, -1.0, validate_args=True),
    "StudentT: `df`": lambda: mgp.StudentT(-1.0, validate_args=True),
    "HalfNormal: `scale`": lambda: mgp.HalfNormal(-1.0, validate_args=True),
    "HalfCauchy: `scale`": lambda: mgp.HalfCauchy(-1.0, validate_args=True),
    "Pareto: `alpha`": lambda: mgp.Pareto(-1.0, validate_args=True),
    "Weibull: `concentration`": lambda: mgp.Weibull(-1.0, validate_args=True),
    "RelaxedBernoulli: `T`": lambda: mgp.RelaxedBernoulli(-1.0, 0.5, validate_args=True),
    "Bernoulli: `prob`": lambda: mgp.Bernoulli(1.5, validate_args=True),
    "Geometric: `prob`": lambda: mgp.Geometric(-0.5, validate_args=True),
    "Binomial: `n`": lambda: mgp.Binomial(2.5, 0.5, validate_args=True),
    "NegativeBinomial: `n`": lambda: mgp.NegativeBinomial(-1.0, 0.5, validate_args=True),
    "Poisson: `rate`": lambda: mgp.Poisson(-1.0, validate_args=True),
    "exactly one of `prob` and `logit` must be given, found both": lambda: mgp.Bernoulli(0.5, 0.5),
    "exactly one of `prob` and `logit` must be given, found neither": lambda: mgp.Geometric(),
    "do not broadcast": lambda: mgp.Normal(mx.np.zeros(2), mx.np.ones(3)),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_parameters(message):
    with pytest.raises(ValueError, match=message):
        BAD[message]()


def test_arguments_that_are_no_numbers():
    with pytest.raises(TypeError, match="Normal: `scale` must be an array or a number, found None"):
        mgp.Normal(0.0, None)
    with pytest.raises(TypeError, match="Normal: `loc` must be an array or a number, found 'a'"):
        mgp.Normal("a", 1.0)
    with pytest.raises(TypeError, match="complex"):
        mgp.Normal(mx.np.array([1j]), 1.0)
    with pytest.raises(TypeError, match="size"):
        mgp.Normal().sample(1.5)
    with pytest.raises(ValueError, match="negative"):
        mgp.Normal().sample_n(-1)


def test_default_of_validation():
    assert mgp.Normal(0.0, -1.0).scale.item() == -1
    mgp.Distribution.set_default_validate_args(True)
    try:
        with pytest.raises(ValueError, match=r"Normal: `scale`: Positive: values must be greater than 0, found -1\.0"):
            mgp.Normal(0.0, -1.0)
        assert mgp.Normal(0.0, -1.0, validate_args=False).scale.item() == -1
    finally:
        mgp.Distribution.set_default_validate_args(False)
    with pytest.raises(TypeError, match="set_default_validate_args"):
        mgp.Distribution.set_default_validate_args(1)


def test_support_is_a_constraint():
    for family in FAMILIES.values():
        support = family.ours().support
        assert isinstance(support, constraint.Constraint)
        samples = family.ours().sample_n(50)
        assert support.check(samples) is samples


def test_formulas_that_do_not_exist_say_so():
    with pytest.raises(NotImplementedError, match="RelaxedBernoulli has no closed form of entropy"):
        mgp.RelaxedBernoulli(1.0, 0.5).entropy()
    with pytest.raises(NotImplementedError, match="Normal has no closed form of enumerate_support"):
        mgp.Normal().enumerate_support()


def test_probabilities_and_logits():
    assert_almost_equal(mgp.Bernoulli(logit=array(0.4)).prob, 1 / (1 + math.exp(-0.4)), rtol=1e-14)
    assert_almost_equal(mgp.Bernoulli(prob=array(0.4)).logit, math.log(0.4 / 0.6), rtol=1e-14)
    assert_almost_equal(mgp.Exponential(array(4.0)).rate, 0.25, rtol=1e-15)
    assert mgp.Chi2(array(3.0)).broadcast_to(2).df.asnumpy().tolist() == [3, 3]
    assert mgp.RelaxedBernoulli(array(3.0), 0.5).broadcast_to(2).T.asnumpy().tolist() == [3, 3]


def test_parameters_keep_their_gradients_between_recordings():
    logit = array([0.3])
    logit.attach_grad()
    with mx.autograd.record():
        bernoulli = mgp.Bernoulli(logit=logit)
        with mx.autograd.pause():
            outside = bernoulli.prob
        total = bernoulli.mean.sum()
    total.backward()
    assert_almost_equal(logit.grad, outside * (1 - outside), rtol=1e-14)
