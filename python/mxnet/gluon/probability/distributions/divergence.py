"""Kullback-Leibler divergences."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.gluon.probability.distributions.bernoulli import Bernoulli
from mxnet.gluon.probability.distributions.beta import Beta
from mxnet.gluon.probability.distributions.binomial import Binomial
from mxnet.gluon.probability.distributions.categorical import Categorical
from mxnet.gluon.probability.distributions.cauchy import Cauchy
from mxnet.gluon.probability.distributions.dirichlet import Dirichlet
from mxnet.gluon.probability.distributions.distribution import Distribution, Size
from mxnet.gluon.probability.distributions.exponential import Exponential
from mxnet.gluon.probability.distributions.gamma import Gamma
from mxnet.gluon.probability.distributions.geometric import Geometric
from mxnet.gluon.probability.distributions.gumbel import Gumbel
from mxnet.gluon.probability.distributions.half_normal import HalfNormal
from mxnet.gluon.probability.distributions.independent import Independent
from mxnet.gluon.probability.distributions.laplace import Laplace
from mxnet.gluon.probability.distributions.multinomial import Multinomial
from mxnet.gluon.probability.distributions.multivariate_normal import MultivariateNormal
from mxnet.gluon.probability.distributions.normal import Normal
from mxnet.gluon.probability.distributions.one_hot_categorical import OneHotCategorical
from mxnet.gluon.probability.distributions.pareto import Pareto
from mxnet.gluon.probability.distributions.poisson import Poisson
from mxnet.gluon.probability.distributions.uniform import Uniform
from mxnet.gluon.probability.distributions.utils import EULER, LOG_SQRT_2PI, betaln, sum_last, where, xlogy
from mxnet.gluon.probability.distributions.weibull import Weibull
from mxnet.numpy import ndarray

__all__ = ["empirical_kl", "kl_divergence", "register_kl"]

Rule = Callable[[Any, Any], ndarray]
_rules: dict[tuple[type, type], Rule] = {}


def register_kl(typeP: type, typeQ: type) -> Callable[[Rule], Rule]:
    """Decorator that enters a formula of the divergence between two classes of distributions.

    Parameters
    ----------
    typeP, typeQ : class
        Classes of the two distributions. What was entered for them before is replaced.

    Returns
    -------
    callable
        Takes a function of the two distributions, and gives it back.

    Raises
    ------
    TypeError
        If one is no class.

    Examples
    --------
    >>> from mxnet.gluon.probability import Normal, kl_divergence, register_kl
    >>> class Unit(Normal):
    ...     pass
    >>> @register_kl(Unit, Unit)
    ... def kl_of_units(p, q):
    ...     return (p.loc - q.loc)**2 / 2
    >>> kl_divergence(Unit(0.0), Unit(2.0))
    array(2.)
    """
    for name, kind in (("typeP", typeP), ("typeQ", typeQ)):
        if not isinstance(kind, type):
            raise TypeError(f"register_kl: `{name}` must be a class, found {kind!r}")

    def enter(rule: Rule) -> Rule:
        _rules[typeP, typeQ] = rule
        return rule

    return enter


def kl_divergence(p: Distribution, q: Distribution) -> ndarray:
    """The Kullback-Leibler divergence ``E[log p(x) - log q(x)]``, where x has the distribution p.

    Parameters
    ----------
    p, q : Distribution
        Their batch shapes broadcast.

    Returns
    -------
    ndarray, shape of the batches
        Infinite where p has values that q has not.

    Raises
    ------
    NotImplementedError
        If no formula is entered for the classes or their base classes; see `register_kl` and `empirical_kl`.

    Examples
    --------
    >>> from mxnet.gluon.probability import Normal, kl_divergence
    >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
    array(0.5)
    """
    # The nearest base classes of p count first, then those of q.
    for kind_p in type(p).__mro__:
        for kind_q in type(q).__mro__:
            rule = _rules.get((kind_p, kind_q))
            if rule is not None:
                return rule(p, q)
    raise NotImplementedError(f"kl_divergence: no formula for {type(p).__name__} and {type(q).__name__}")


def empirical_kl(p: Distribution, q: Distribution, n_samples: Size = 1) -> ndarray:
    """An estimate of the Kullback-Leibler divergence from samples of p.

    Parameters
    ----------
    p, q : Distribution
    n_samples : int or tuple of int
        Number of samples of each distribution of the batch.

    Returns
    -------
    ndarray, shape of the batches
        The mean of ``p.log_prob(x) - q.log_prob(x)`` over the samples.

    Examples
    --------
    >>> from mxnet.gluon.probability import Normal, empirical_kl
    >>> np.random.seed(1)
    >>> round(float(empirical_kl(Normal(0.0, 1.0), Normal(1.0, 1.0), 10000)), 1)
    0.5
    """
    samples = p.sample_n(n_samples)
    axes = tuple(range(samples.ndim - p.event_dim - len(p._batch_shape())))
    return (p.log_prob(samples) - q.log_prob(samples)).mean(axis=axes)


def _infinite_unless(condition: ndarray, x: ndarray) -> ndarray:
    return where(condition, x, np.full_like(x, math.inf))


@register_kl(Normal, Normal)
def _normal_normal(p: Normal, q: Normal) -> ndarray:
    ratio = (p.scale / q.scale) ** 2
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale) ** 2 - 1 - np.log(ratio))


@register_kl(HalfNormal, HalfNormal)
def _half_normal_half_normal(p: HalfNormal, q: HalfNormal) -> ndarray:
    ratio = (p.scale / q.scale) ** 2
    return 0.5 * (ratio - 1 - np.log(ratio))


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p: MultivariateNormal, q: MultivariateNormal) -> ndarray:
    size = p.loc.shape[-1]
    if q.loc.shape[-1] != size:
        raise ValueError(f"kl_divergence: vectors must have the same length, found {size} and {q.loc.shape[-1]}")
    lower = q.scale_tril
    spread = (np.linalg.solve(lower, p.scale_tril) ** 2).sum(axis=(-2, -1))
    distance = (np.linalg.solve(lower, (p.loc - q.loc)[..., None])[..., 0] ** 2).sum(axis=-1)
    return 0.5 * (spread + distance - size) + q._log_det_scale() - p._log_det_scale()


@register_kl(Laplace, Laplace)
def _laplace_laplace(p: Laplace, q: Laplace) -> ndarray:
    distance = np.abs(p.loc - q.loc)
    ratio = p.scale / q.scale
    return distance / q.scale + ratio * np.exp(-distance / p.scale) - 1 - np.log(ratio)


@register_kl(Cauchy, Cauchy)
def _cauchy_cauchy(p: Cauchy, q: Cauchy) -> ndarray:
    # Source: Chyzak and Nielsen, "A closed-form formula for the Kullback-Leibler divergence between Cauchy
    # distributions", 2019.
    squares = (p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2
    return np.log(squares / (4 * p.scale * q.scale))


@register_kl(Gumbel, Gumbel)
def _gumbel_gumbel(p: Gumbel, q: Gumbel) -> ndarray:
    ratio, distance = p.scale / q.scale, (q.loc - p.loc) / q.scale
    return np.exp(distance + npx.gammaln(ratio + 1)) - distance + EULER * (ratio - 1) - 1 - np.log(ratio)


@register_kl(Uniform, Uniform)
def _uniform_uniform(p: Uniform, q: Uniform) -> ndarray:
    inside = (q.low <= p.low) & (p.high <= q.high)
    return _infinite_unless(inside, np.log((q.high - q.low) / (p.high - p.low)))


@register_kl(Exponential, Exponential)
def _exponential_exponential(p: Exponential, q: Exponential) -> ndarray:
    ratio = p.scale / q.scale
    return ratio - 1 - np.log(ratio)


@register_kl(Gamma, Gamma)
def _gamma_gamma(p: Gamma, q: Gamma) -> ndarray:
    return _gamma_formula(p.shape, p.scale, q)


def _gamma_formula(shape: ndarray, scale: ndarray, q: Gamma) -> ndarray:
    ratio = scale / q.scale
    shapes = (shape - q.shape) * npx.digamma(shape) - npx.gammaln(shape) + npx.gammaln(q.shape)
    return shapes - q.shape * np.log(ratio) + shape * (ratio - 1)


@register_kl(Beta, Beta)
def _beta_beta(p: Beta, q: Beta) -> ndarray:
    a, b = p.alpha - q.alpha, p.beta - q.beta
    mixed = a * npx.digamma(p.alpha) + b * npx.digamma(p.beta) - (a + b) * npx.digamma(p.alpha + p.beta)
    return betaln(q.alpha, q.beta) - betaln(p.alpha, p.beta) + mixed


@register_kl(Dirichlet, Dirichlet)
def _dirichlet_dirichlet(p: Dirichlet, q: Dirichlet) -> ndarray:
    total = p.alpha.sum(axis=-1, keepdims=True)
    mixed = ((p.alpha - q.alpha) * (npx.digamma(p.alpha) - npx.digamma(total))).sum(axis=-1)
    return q._log_normalizer(q.alpha) - p._log_normalizer(p.alpha) + mixed


@register_kl(Pareto, Pareto)
def _pareto_pareto(p: Pareto, q: Pareto) -> ndarray:
    ratio = q.alpha / p.alpha
    return _infinite_unless(p.scale >= q.scale, q.alpha * np.log(p.scale / q.scale) + ratio - 1 - np.log(ratio))


@register_kl(Weibull, Weibull)
def _weibull_weibull(p: Weibull, q: Weibull) -> ndarray:
    # Source: Bauckhage, "Computing the Kullback-Leibler divergence between two Weibull distributions", 2013.
    ratio, scales = q.concentration / p.concentration, np.log(p.scale / q.scale)
    power = np.exp(q.concentration * scales + npx.gammaln(ratio + 1))
    return -np.log(ratio) - q.concentration * scales + EULER * (ratio - 1) + power - 1


@register_kl(Bernoulli, Bernoulli)
def _bernoulli_bernoulli(p: Bernoulli, q: Bernoulli) -> ndarray:
    prob = p.prob
    return -p.entropy() - q._times_log_prob(prob) - q._times_log_rest(p._rest)


@register_kl(Binomial, Binomial)
def _binomial_binomial(p: Binomial, q: Binomial) -> ndarray:
    # There is no closed form for fewer trials of p than of q; its more trials lead to counts that q has not.
    prob = p.prob
    trial = p._times_log_prob(prob) + p._times_log_rest(p._rest) - q._times_log_prob(prob) - q._times_log_rest(p._rest)
    found = p.n * trial
    other = where(p.n > q.n, np.full_like(found, math.inf), np.full_like(found, math.nan))
    return where(p.n == q.n, found, other)


@register_kl(Geometric, Geometric)
def _geometric_geometric(p: Geometric, q: Geometric) -> ndarray:
    prob = p.prob
    return -p.entropy() - (q._times_log_prob(prob) + q._times_log_rest(p._rest)) / prob


@register_kl(Poisson, Poisson)
def _poisson_poisson(p: Poisson, q: Poisson) -> ndarray:
    return xlogy(p.rate, p.rate) - xlogy(p.rate, q.rate) - p.rate + q.rate


@register_kl(Categorical, Categorical)
@register_kl(OneHotCategorical, OneHotCategorical)
def _categorical_categorical(p: Categorical, q: Categorical) -> ndarray:
    if p.num_events != q.num_events:
        raise ValueError(f"kl_divergence: numbers of classes must be the same, found {p.num_events} and {q.num_events}")
    return -p.entropy() - q._sum_log_prob(p.prob)


@register_kl(Multinomial, Multinomial)
def _multinomial_multinomial(p: Multinomial, q: Multinomial) -> ndarray:
    found = p.total_count * (-p._class_entropy() - q._sum_log_prob(p.prob))
    # Counts of different sums have nothing in common.
    return found if p.total_count == q.total_count else np.full_like(found, math.inf)


@register_kl(Independent, Independent)
def _independent_independent(p: Independent, q: Independent) -> ndarray:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise ValueError(
            "kl_divergence: numbers of joined axes must be the same, "
            f"found {p.reinterpreted_batch_ndims} and {q.reinterpreted_batch_ndims}"
        )
    return sum_last(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(Uniform, Normal)
def _uniform_normal(p: Uniform, q: Normal) -> ndarray:
    squares = (p.variance + (p.mean - q.loc) ** 2) / (2 * q.scale**2)
    return squares + LOG_SQRT_2PI + np.log(q.scale) - p.entropy()


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p: Uniform, q: Gumbel) -> ndarray:
    low, high = (p.low - q.loc) / q.scale, (p.high - q.loc) / q.scale
    return (low + high) / 2 + (np.exp(-low) - np.exp(-high)) / (high - low) - np.log(high - low)


@register_kl(Exponential, Gumbel)
def _exponential_gumbel(p: Exponential, q: Gumbel) -> ndarray:
    ratio = p.scale / q.scale
    return -1 - np.log(ratio) + ratio - q.loc / q.scale + np.exp(q.loc / q.scale) / (1 + ratio)


@register_kl(Exponential, Normal)
def _exponential_normal(p: Exponential, q: Normal) -> ndarray:
    squares = (p.scale**2 + (p.scale - q.loc) ** 2) / (2 * q.scale**2)
    return squares + LOG_SQRT_2PI + np.log(q.scale) - p.entropy()


@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Exponential, q: Gamma) -> ndarray:
    return _gamma_formula(np.ones_like(p.scale), p.scale, q)
