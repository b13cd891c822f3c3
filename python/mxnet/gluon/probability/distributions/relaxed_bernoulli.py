"""Relaxed Bernoulli distribution."""

from __future__ import annotations

from typing import Any

from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.gluon.probability.distributions.constraint import Interval, Positive, Real, UnitInterval
from mxnet.gluon.probability.distributions.distribution import Distribution
from mxnet.gluon.probability.distributions.prob_or_logit import ProbOrLogit
from mxnet.gluon.probability.distributions.transformed_distribution import TransformedDistribution
from mxnet.gluon.probability.distributions.utils import softplus, where
from mxnet.gluon.probability.transformation.transformation import SigmoidTransform
from mxnet.numpy import ndarray

__all__ = ["RelaxedBernoulli"]


class _LogisticSample(Distribution):
    """Distribution of the logit of a relaxed Bernoulli number: logistic, around ``logit / T``, of scale ``1 / T``."""

    has_grad = True
    support = Real()
    T: ndarray
    _logit: ndarray

    def __init__(self, temperature: ndarray, logit: ndarray) -> None:
        self._store(T=temperature, _logit=logit)
        super().__init__(event_dim=0, validate_args=False)

    def _log_prob(self, value: ndarray) -> ndarray:
        x = self.T * value - self._logit
        return np.log(self.T) - x - 2 * softplus(-x)

    def _draw(self, shape: tuple[int, ...]) -> ndarray:
        return np.random.logistic(self._logit, np.ones_like(self._logit), shape) / self.T

    def cdf(self, value: ndarray) -> ndarray:
        return npx.sigmoid(self.T * value - self._logit)

    def icdf(self, value: ndarray) -> ndarray:
        return (np.log(value) - np.log1p(-value) + self._logit) / self.T


class RelaxedBernoulli(ProbOrLogit, TransformedDistribution):
    """Relaxed Bernoulli distribution: numbers between 0 and 1 that approach Bernoulli's as the temperature goes to 0.

    Source: Maddison, Mnih and Teh, "The Concrete Distribution", ICLR 2017.

    Parameters
    ----------
    T : ndarray or float
        Temperature, above 0.
    prob : ndarray or float, optional
        Probability of a number near 1. Exactly one of `prob` and `logit` is given.
    logit : ndarray or float, optional
        Its logit, ``log(prob / (1 - prob))``.
    validate_args : bool, optional
        See `Distribution`.

    Examples
    --------
    >>> from mxnet.gluon.probability import RelaxedBernoulli
    >>> RelaxedBernoulli(1.0, prob=0.5).log_prob(0.25)  # uniform
    array(0.)
    """

    has_grad = True
    arg_constraints = {"T": Positive(), "prob": UnitInterval(), "logit": Real()}
    support: Interval = UnitInterval()
    _T: ndarray

    def __init__(
        self,
        T: ndarray | float,
        prob: ndarray | float | None = None,
        logit: ndarray | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._store_either(prob, logit, _T=T)
        base = _LogisticSample(self._T, self.logit)
        TransformedDistribution.__init__(self, base, SigmoidTransform(), validate_args=validate_args)

    @property
    def T(self) -> ndarray:
        """ndarray: temperature."""
        return self._T

    def _log_prob(self, value: ndarray) -> ndarray:
        return TransformedDistribution._log_prob(self, value)

    def cdf(self, value: Any) -> ndarray:
        x = self._value(value)
        is_outside = (x <= 0) | (x >= 1)
        found = super().cdf(where(is_outside, np.full_like(x, 0.5), x))
        return where(is_outside, (x > 0).astype(found.dtype), found)
