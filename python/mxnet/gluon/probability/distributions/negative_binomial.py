"""Negative binomial distribution."""

from __future__ import annotations

import math
from typing import Any

from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.gluon.probability.distributions.constraint import NonNegativeInteger, Positive, Real, UnitInterval
from mxnet.gluon.probability.distributions.count_entropies import mean_log_choices
from mxnet.gluon.probability.distributions.prob_or_logit import ProbOrLogit
from mxnet.gluon.probability.distributions.utils import quantile_of_counts, where
from mxnet.numpy import ndarray

__all__ = ["NegativeBinomial"]


class NegativeBinomial(ProbOrLogit):
    """Negative binomial distribution: the number of successes before `n` failures.

    The mean is ``n * prob / (1 - prob)``. For numbers `n` that are no integers it is a mixture of Poisson
    distributions, whose rates have a gamma distribution.

    Parameters
    ----------
    n : ndarray or float
        Number of failures, above 0.
    prob : ndarray or float, optional
        Probability of a success. Exactly one of `prob` and `logit` is given.
    logit : ndarray or float, optional
        Its logit, ``log(prob / (1 - prob))``.
    validate_args : bool, optional
        See `Distribution`.

    Examples
    --------
    >>> from mxnet.gluon.probability import NegativeBinomial
    >>> NegativeBinomial(3.0, prob=0.5).mean
    array(3.)

    Notes
    -----
    *Differences*: `log_prob` belongs to the same meaning of `prob` as the mean, the variance and the samples; in
    MXNet 2 it takes `prob` for the probability of a failure.
    """

    arg_constraints = {"n": Positive(), "prob": UnitInterval(), "logit": Real()}
    support = NonNegativeInteger()
    _inner_value = 0.0
    n: ndarray

    def __init__(
        self,
        n: ndarray | float,
        prob: ndarray | float | None = None,
        logit: ndarray | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._store_either(prob, logit, n=n)
        super().__init__(event_dim=0, validate_args=validate_args)

    def _log_prob(self, value: ndarray) -> ndarray:
        ways = npx.gammaln(value + self.n) - npx.gammaln(value + 1) - npx.gammaln(self.n)
        return ways + self._times_log_prob(value) + self._times_log_rest(self.n + np.zeros_like(value))

    def _draw(self, shape: tuple[int, ...]) -> ndarray:
        rest = self._rest.detach()
        found: ndarray = np.random.negative_binomial(self.n.detach(), rest, shape, dtype=rest.dtype)
        return found

    def cdf(self, value: Any) -> ndarray:
        count = np.floor(self._value(value)).detach()
        is_end = (count < 0) | (count == math.inf)
        found = self._betainc_of_rest(self.n, where(is_end, np.zeros_like(count), count) + 1)
        return where(is_end, (count > 0).astype(found.dtype), found)

    def icdf(self, value: Any) -> ndarray:
        return quantile_of_counts(self, self._value(value))

    @property
    def mean(self) -> ndarray:
        return self.n * self.prob / self._rest

    @property
    def variance(self) -> ndarray:
        rest = self._rest
        return self.n * self.prob / rest / rest

    def entropy(self) -> ndarray:
        """Expectation of ``-log_prob(sample)``.

        Returns
        -------
        ndarray, shape batch_shape
            In nats.

        Notes
        -----
        An integral that is computed in float64, with an error of about 1e-15 of ``n + mean`` (see
        `count_entropies.py`).
        """
        exact = self._in_float64()
        logs = exact._times_log_prob(exact.mean) + exact._times_log_rest(exact.n)
        found = -logs - mean_log_choices(exact.n, exact.prob / exact._rest)
        return found.astype(self.n.dtype)
