"""Distributions inside of hybridized blocks: values, samples and gradients are those of operators called one by one."""

import pytest

import mxnet as mx
from families import FAMILIES
from mxnet import autograd, gluon, np
from mxnet.gluon import probability as mgp


def array(*x):
    return np.array(x, dtype="float32")


COV = array([2.0, 0.5], [0.5, 1.0])
# Parameters, the distribution of them, a value.
OTHERS = {
    "mvn-cov": ([array(0.0, 1.0), COV], lambda m, c: mgp.MultivariateNormal(m, cov=c), array(0.3, 0.5)),
    "mvn-tril": (
        [array(0.0, 1.0), COV],
        lambda m, c: mgp.MultivariateNormal(m, scale_tril=np.tril(c)),
        array(0.3, 0.5),
    ),
    "mvn-precision": ([array(0.0, 1.0), COV], lambda m, c: mgp.MultivariateNormal(m, precision=c), array(0.3, 0.5)),
    "dirichlet": ([array(1.0, 2.0, 3.0)], mgp.Dirichlet, array(0.2, 0.3, 0.5)),
    "multinomial": ([array(0.2, 0.3, 0.5)], lambda p: mgp.Multinomial(3, prob=p, total_count=4), array(1, 1, 2)),
    "categorical": ([array(0.2, 0.3, 0.5)], lambda p: mgp.Categorical(3, prob=p), array(0.0)),
    "categorical-logit": ([array(0.2, 0.3, 0.5)], lambda p: mgp.Categorical(3, logit=p), array(2.0)),
    "one-hot": ([array(0.2, 0.3, 0.5)], lambda p: mgp.OneHotCategorical(3, prob=p), array(0, 1, 0)),
    "relaxed-one-hot": (
        [array(0.2, 0.3, 0.5)],
        lambda p: mgp.RelaxedOneHotCategorical(T=0.5, num_events=3, prob=p),
        array(0.2, 0.3, 0.5),
    ),
    "relaxed-bernoulli": ([array(0.3, 0.6)], lambda p: mgp.RelaxedBernoulli(T=0.5, prob=p), array(0.2, 0.3)),
    "independent": ([array(0.0, 1.0)], lambda m: mgp.Independent(mgp.Normal(m, 2.0), 1), array(0.2, 0.3)),
    "transformed": (
        [array(0.0, 1.0)],
        lambda m: mgp.TransformedDistribution(
            mgp.Normal(m, 2.0), [mgp.ExpTransform(), mgp.AffineTransform(1.0, m + 1)]
        ),
        array(1.2, 3.3),
    ),
    **{
        name: (
            [np.array(p, dtype="float32") for p in family.params],
            family.make,
            np.array(family.values, dtype="float32"),
        )
        for name, family in FAMILIES.items()
    },
}


class Everything(gluon.HybridBlock):
    """All that a distribution computes, by name."""

    def __init__(self, make):
        super().__init__()
        self._make = make
        self.names = []

    def forward(self, value, *params):
        distribution = self._make(*params)
        found = {"log_prob": distribution.log_prob(value), "sample": distribution.sample()}
        for name, compute in (
            ("cdf", lambda: distribution.cdf(value)),
            ("icdf", lambda: distribution.icdf(0.3)),
            ("entropy", lambda: distribution.entropy()),
            ("mean", lambda: distribution.mean),
            ("variance", lambda: distribution.variance),
            ("samples", lambda: distribution.sample_n(5)),
        ):
            try:
                found[name] = compute()
            except NotImplementedError:
                continue
        self.names = list(found)
        return list(found.values())


@pytest.mark.parametrize("name", OTHERS)
def test_hybridized_blocks_give_the_same(name):
    params, make, value = OTHERS[name]
    block, results = Everything(make), []
    for way in (False, True):
        block.hybridize(way)
        mx.random.seed(5)
        for x in params:
            x.attach_grad()
        with autograd.record():
            found = block(value, *params)
            # Samples are left out of the sum where they have no gradient.
            total = sum(np.where(np.isfinite(y), y, 0.0).sum() for y in found if y.dtype.kind == "f")
        total.backward()
        results.append([*found, *(x.grad for x in params)])
    assert len(block.names) >= 2
    eager, hybridized = results
    for place, (one, other) in enumerate(zip(eager, hybridized, strict=True)):
        what = [*block.names, *(f"gradient {n}" for n in range(len(params)))][place]
        assert one.dtype == other.dtype, what
        mx.test_utils.assert_almost_equal(one, other, rtol=1e-6, atol=1e-7, equal_nan=True, names=(what, what))


def test_divergences_inside_of_a_hybridized_block():
    class Divergence(gluon.HybridBlock):
        def forward(self, mean, scale):
            posterior, prior = mgp.Normal(mean, scale), mgp.Normal(0.0, 1.0)
            return mgp.kl_divergence(posterior, prior), posterior.sample()

    block, results = Divergence(), []
    mean, scale = array(0.5, -1.0), array(0.3, 2.0)
    for way in (False, True):
        block.hybridize(way)
        mx.random.seed(2)
        mean.attach_grad()
        with autograd.record():
            divergence, sample = block(mean, scale)
            (divergence + sample**2).sum().backward()
        results.append([divergence, sample, mean.grad])
    for one, other in zip(*results, strict=True):
        mx.test_utils.assert_almost_equal(one, other, rtol=1e-6)
