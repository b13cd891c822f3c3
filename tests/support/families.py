"""Distributions and their twins in SciPy: `FAMILIES` by name."""

from dataclasses import dataclass
from typing import Any

import numpy as onp
import scipy.stats as stats

import mxnet as mx
from mxnet.gluon import probability as mgp


@dataclass
class Family:
    """`make(*params)` is ours, `twin(*params)` SciPy's; `shift` is what SciPy's values have more."""

    make: Any
    twin: Any
    params: tuple
    values: Any  # inside the support
    outside: tuple = ()
    shift: int = 0
    is_discrete: bool = False
    has_cdf: bool = False
    has_entropy: bool = True
    has_moments: bool = True

    def ours(self):
        return self.make(*(mx.np.array(param, dtype="float64") for param in self.params))

    def theirs(self):
        return self.twin(*(onp.array(param) for param in self.params))


REAL = onp.array([[-2.5, 0.3], [0.0, 4.0], [1.5, -0.7]])
POSITIVE = onp.array([[0.01, 0.3], [2.0, 4.0], [1.5, 0.7]])
UNIT = onp.array([[0.05, 0.3], [0.5, 0.9], [0.77, 0.95]])
COUNTS = onp.array([[0.0, 1.0], [2.0, 3.0], [1.0, 0.0]])
LOC, SCALE = (0.5, -1.0), (2.0, 0.7)
PROB = (0.3, 0.85)
LOGIT = tuple(onp.log(PROB) - onp.log1p(-onp.array(PROB)))


def expit(logit):
    return 1 / (1 + onp.exp(-logit))


FAMILIES = {
    "normal": Family(mgp.Normal, stats.norm, (LOC, SCALE), REAL, has_cdf=True),
    "laplace": Family(mgp.Laplace, stats.laplace, (LOC, SCALE), REAL, has_cdf=True),
    "cauchy": Family(mgp.Cauchy, stats.cauchy, (LOC, SCALE), REAL, has_cdf=True, has_moments=False),
    "gumbel": Family(mgp.Gumbel, stats.gumbel_r, (LOC, SCALE), REAL, has_cdf=True),
    "uniform": Family(
        mgp.Uniform,
        lambda low, high: stats.uniform(low, high - low),
        ((-1.0, 2.0), (3.0, 2.5)),
        onp.array([[-0.5, 2.1], [2.9, 2.4]]),
        outside=(-1.5, 7.0),
        has_cdf=True,
    ),
    "exponential": Family(
        mgp.Exponential, lambda scale: stats.expon(0, scale), (SCALE,), POSITIVE, outside=(-0.5,), has_cdf=True
    ),
    "gamma": Family(
        mgp.Gamma,
        lambda a, scale: stats.gamma(a, 0, scale),
        ((0.4, 3.0), SCALE),
        POSITIVE,
        outside=(-0.5,),
        has_cdf=True,
    ),
    "chi2": Family(mgp.Chi2, stats.chi2, ((3.0, 1.2),), POSITIVE, outside=(-0.5,), has_cdf=True),
    "beta": Family(mgp.Beta, stats.beta, ((0.6, 3.0), (2.0, 1.5)), UNIT, outside=(-0.5, 1.5), has_cdf=True),
    "f": Family(
        mgp.FisherSnedecor,
        stats.f,
        ((3.0, 5.0), (7.0, 9.5)),
        POSITIVE,
        outside=(-0.5,),
        has_cdf=True,
    ),
    "student": Family(mgp.StudentT, stats.t, ((3.0, 5.5), LOC, SCALE), REAL, has_cdf=True),
    "half normal": Family(
        mgp.HalfNormal, lambda scale: stats.halfnorm(0, scale), (SCALE,), POSITIVE, outside=(-0.5,), has_cdf=True
    ),
    "half cauchy": Family(
        mgp.HalfCauchy,
        lambda scale: stats.halfcauchy(0, scale),
        (SCALE,),
        POSITIVE,
        outside=(-0.5,),
        has_cdf=True,
        has_moments=False,
    ),
    "pareto": Family(
        mgp.Pareto,
        lambda alpha, scale: stats.pareto(alpha, 0, scale),
        ((2.5, 6.0), SCALE),
        2 + POSITIVE,
        outside=(0.5, -1.0),
        has_cdf=True,
    ),
    "weibull": Family(
        mgp.Weibull,
        lambda c, scale: stats.weibull_min(c, 0, scale),
        ((0.8, 2.5), SCALE),
        POSITIVE,
        outside=(-0.5,),
        has_cdf=True,
    ),
    "relaxed bernoulli": Family(  # the logit of a sample is logistic
        lambda T, logit: mgp.RelaxedBernoulli(T, logit=logit),
        lambda T, logit: _Relaxed(T, logit),
        ((0.5, 2.0), LOGIT),
        UNIT,
        outside=(-0.5, 1.5),
        has_cdf=True,
        has_entropy=False,
        has_moments=False,
    ),
    "bernoulli": Family(mgp.Bernoulli, stats.bernoulli, (PROB,), COUNTS > 0, outside=(0.5, 2.0), is_discrete=True),
    "bernoulli logit": Family(
        lambda logit: mgp.Bernoulli(logit=logit),
        lambda logit: stats.bernoulli(expit(logit)),
        (LOGIT,),
        COUNTS > 0,
        outside=(0.5, -1.0),
        is_discrete=True,
    ),
    "geometric": Family(mgp.Geometric, stats.geom, (PROB,), COUNTS, outside=(0.5, -1.0), shift=1, is_discrete=True),
    "geometric logit": Family(
        lambda logit: mgp.Geometric(logit=logit),
        lambda logit: stats.geom(expit(logit)),
        (LOGIT,),
        COUNTS,
        outside=(0.5, -1.0),
        shift=1,
        is_discrete=True,
    ),
    "binomial": Family(
        lambda prob: mgp.Binomial(5, prob),
        lambda prob: stats.binom(5, prob),
        (PROB,),
        COUNTS,
        outside=(0.5, -1.0, 6.0),
        is_discrete=True,
    ),
    "binomial logit": Family(
        lambda logit: mgp.Binomial(5, logit=logit),
        lambda logit: stats.binom(5, expit(logit)),
        (LOGIT,),
        COUNTS,
        outside=(0.5,),
        is_discrete=True,
    ),
    "negative binomial": Family(
        lambda n, prob: mgp.NegativeBinomial(n, prob),
        lambda n, prob: stats.nbinom(n, 1 - prob),
        ((3.0, 2.5), PROB),
        COUNTS,
        outside=(0.5, -1.0),
        is_discrete=True,
    ),
    "negative binomial logit": Family(
        lambda n, logit: mgp.NegativeBinomial(n, logit=logit),
        lambda n, logit: stats.nbinom(n, 1 - expit(logit)),
        ((3.0, 2.5), LOGIT),
        COUNTS,
        outside=(0.5,),
        is_discrete=True,
    ),
    "poisson": Family(mgp.Poisson, stats.poisson, ((0.8, 4.0),), COUNTS, outside=(0.5, -1.0), is_discrete=True),
}


class _Relaxed:
    """The relaxed Bernoulli distribution from SciPy's logistic one."""

    def __init__(self, T, logit):
        self.logistic = stats.logistic(logit / T, 1 / T)

    def logpdf(self, y):
        inside = (y > 0) & (y < 1)
        y = onp.where(inside, y, 0.5)
        found = self.logistic.logpdf(onp.log(y) - onp.log1p(-y)) - onp.log(y) - onp.log1p(-y)
        return onp.where(inside, found, -onp.inf)

    def cdf(self, y):
        return self.logistic.cdf(onp.log(y) - onp.log1p(-y))

    def ppf(self, p):
        return expit(self.logistic.ppf(p))
