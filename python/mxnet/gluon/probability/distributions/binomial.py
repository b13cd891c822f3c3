"""Binomial distribution."""

from __future__ import annotations

from typing import Any

from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.gluon.probability.distributions.constraint import (
    IntegerInterval,
    NonNegativeInteger,
    Real,
    UnitInterval,
    dependent_property,
)
from mxnet.gluon.probability.distributions.count_entropies import mean_log_ways
from mxnet.gluon.probability.distributions.prob_or_logit import ProbOrLogit
from mxnet.gluon.probability.distributions.utils import quantile_of_counts, where
from mxnet.numpy import ndarray

__all__ = ["Binomial"]


class Binomial(ProbOrLogit):
    """Binomial distribution: the number of successes among `n` trials.

    Parameters
    ----------
    n : ndarray or float
        Number of trials, an integer.
    prob : ndarray or float, optional
        Probability of a success. Exactly one of `prob` and `logit` is given.
    logit : ndarray or float, optional
        Its logit, ``log(prob / (1 - prob))``.
    validate_args : bool, optional
        See `Distribution`.

    Examples
    --------
    >>> from mxnet.gluon.probability import Binomial
    >>> Binomial(4, prob=0.25).mean
    array(1.)
    """

    arg_constraints = {"n": NonNegativeInteger(), "prob": UnitInterval(), "logit": Real()}
    _inner_value = 0.0
    n: ndarray

    def __init__(
        self,
        n: ndarray | float = 1,
        prob: ndarray | float | None = None,
        logit: ndarray | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._store_either(prob, logit, n=n)
        super().__init__(event_dim=0, validate_args=validate_args)

    @dependent_property
    def support(self) -> IntegerInterval:
        """Constraint: integers from 0 to `n`."""
        return IntegerInterval(0, self.n)

    def _log_prob(self, value: ndarray) -> ndarray:
        ways = npx.gammaln(self.n + 1) - npx.gammaln(value + 1) - npx.gammaln(self.n - value + 1)
        return ways + self._times_log_prob(value) + self._times_log_rest(self.n - value)

    def _draw(self, shape: tuple[int, ...]) -> ndarray:
        prob = self.prob.detach()
        found: ndarray = np.random.binomial(self.n.detach(), prob, shape, dtype=prob.dtype)
        return found

    def cdf(self, value: Any) -> ndarray:
        count = np.floor(self._value(value)).detach()
        # n = 0 has no count in between, but no NaN may come into gradients.
        is_between = (count >= 0) & (count < self.n)
        inner = where(is_between, count, np.zeros_like(count))
        found = self._betainc_of_rest(np.maximum(self.n - inner, 1), inner + 1)
        ends = (count >= 0).astype(found.dtype) + np.zeros_like(found)
        return where(is_between | (count != count), found + 0 * count, ends)

    def icdf(self, value: Any) -> ndarray:
        return quantile_of_counts(self, self._value(value), self.n)

    @property
    def mean(self) -> ndarray:
        return self.n * self.prob

    @property
    def variance(self) -> ndarray:
        return self.n * self.prob * self._rest

    def entropy(self) -> ndarray:
        """Expectation of ``-log_prob(sample)``.

        Returns
        -------
        ndarray, shape batch_shape
            In nats.

        Notes
        -----
        An integral that is computed in float64, with an error of about ``n * 1e-14`` (see `count_entropies.py`).
        """
        exact = self._in_float64()
        prob, rest = exact.prob, exact._rest
        of_trial = -(exact._times_log_prob(prob) + exact._times_log_rest(rest))
        found = exact.n * of_trial - mean_log_ways(exact.n, np.stack([prob, rest], axis=-1))
        return found.astype(self.n.dtype)
