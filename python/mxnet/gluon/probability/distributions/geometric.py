"""Geometric distribution."""

from __future__ import annotations

import math
from typing import Any

from mxnet import numpy as np
from mxnet.gluon.probability.distributions.constraint import NonNegativeInteger, Real, UnitInterval
from mxnet.gluon.probability.distributions.prob_or_logit import ProbOrLogit
from mxnet.gluon.probability.distributions.utils import where
from mxnet.numpy import ndarray

__all__ = ["Geometric"]


class Geometric(ProbOrLogit):
    """Geometric distribution: the number of failures before the first success.

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
    >>> from mxnet.gluon.probability import Geometric
    >>> Geometric(prob=0.25).mean
    array(3.)
    """

    arg_constraints = {"prob": UnitInterval(), "logit": Real()}
    support = NonNegativeInteger()
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
        return self._times_log_rest(value) + self._times_log_prob(np.ones_like(value))

    def _draw(self, shape: tuple[int, ...]) -> ndarray:
        prob = self.prob.detach()
        found: ndarray = np.random.geometric(prob, shape, dtype=prob.dtype) - 1
        return found

    def cdf(self, value: Any) -> ndarray:
        count = np.floor(self._value(value)).detach() + 1
        is_end = (count <= 0) | (count == math.inf)
        found = -np.expm1(self._times_log_rest(where(is_end, np.ones_like(count), count)))
        return where(is_end, (count > 0).astype(found.dtype), found)

    def icdf(self, value: Any) -> ndarray:
        p = self._value(value)
        found = np.maximum(np.ceil(np.log1p(-p) / self._times_log_rest(np.ones_like(p))) - 1, 0)
        # The quotient may be rounded up past an integer.
        found = where((found > 0) & (self.cdf(found - 1) >= p), found - 1, found)
        return where((p >= 0) & (p <= 1), found, np.full_like(found, math.nan))

    @property
    def mean(self) -> ndarray:
        return self._rest / self.prob

    @property
    def variance(self) -> ndarray:
        prob = self.prob
        return self._rest / prob**2

    def entropy(self) -> ndarray:
        prob = self.prob
        return -(self._times_log_prob(prob) + self._times_log_rest(self._rest)) / prob
