"""Bernoulli distribution."""

from __future__ import annotations

import math
from typing import Any

from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.gluon.probability.distributions.constraint import Boolean, Real, UnitInterval
from mxnet.gluon.probability.distributions.exp_family import ExponentialFamily
from mxnet.gluon.probability.distributions.prob_or_logit import ProbOrLogit
from mxnet.gluon.probability.distributions.utils import softplus, where
from mxnet.numpy import ndarray

__all__ = ["Bernoulli"]


class Bernoulli(ProbOrLogit, ExponentialFamily):
    """Bernoulli distribution: 1 with the probability `prob`, else 0.

    Parameters
    ----------
    prob : ndarray or float, optional
        Probability of a success. Exactly one of `prob` and `logit` is given.
    logit : ndarray or float, optional
        Its logit, ``log(prob / (1 - prob))``.
    validate_args : bool, optional
        See `Distribution`.

    Examples
    --------
    >>> from mxnet.gluon.probability import Bernoulli
    >>> Bernoulli(prob=0.25).variance
    array(0.1875)
    >>> Bernoulli(logit=0.0).log_prob(1)
    array(-0.6931472)
    """

    arg_constraints = {"prob": UnitInterval(), "logit": Real()}
    support = Boolean()
    _inner_value = 0.0

    def __init__(
        self,
        prob: ndarray | float | None = None,
        logit: ndarray | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._store_either(prob, logit)
        super().__init__(event_dim=0, validate_args=validate_args)

    def _log_prob(self, value: ndarray) -> ndarray:
        if "_logit" in self._names:
            return value * self._logit - softplus(self._logit)
        return self._times_log_prob(value) + self._times_log_rest(1 - value)

    def _draw(self, shape: tuple[int, ...]) -> ndarray:
        prob = self.prob.detach()
        found: ndarray = npx.random.bernoulli(prob, size=shape, dtype=prob.dtype)
        return found

    def cdf(self, value: Any) -> ndarray:
        x = self._value(value)
        below = where(x < 1, self._rest + np.zeros_like(x), np.ones_like(x))
        return where(x < 0, np.zeros_like(x), below)

    def icdf(self, value: Any) -> ndarray:
        p = self._value(value)
        found = (p > self._rest).astype(p.dtype)
        return where((p >= 0) & (p <= 1), found, np.full_like(found, math.nan))

    @property
    def mean(self) -> ndarray:
        return self.prob

    @property
    def variance(self) -> ndarray:
        return self.prob * self._rest

    def entropy(self) -> ndarray:
        return -self._times_log_prob(self.prob) - self._times_log_rest(self._rest)
