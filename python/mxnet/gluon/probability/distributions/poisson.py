"""Poisson distribution."""

from __future__ import annotations

import math
from typing import Any

from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.gluon.probability.distributions.constraint import NonNegative, NonNegativeInteger
from mxnet.gluon.probability.distributions.exp_family import ExponentialFamily
from mxnet.gluon.probability.distributions.utils import quantile_of_counts, where, xlogy
from mxnet.numpy import ndarray

__all__ = ["Poisson"]

# Up to this rate the entropy is a sum over counts; the tail beyond the last count is below 1e-16 there.
_LARGE_RATE, _NUM_COUNTS = 60.0, 160


class Poisson(ExponentialFamily):
    """Poisson distribution: the number of events that occur at a constant rate.

    Parameters
    ----------
    rate : ndarray or float
        Mean, at least 0.
    validate_args : bool, optional
        See `Distribution`.

    Examples
    --------
    >>> from mxnet.gluon.probability import Poisson
    >>> Poisson(2.0).log_prob(0)
    array(-2.)
    """

    arg_constraints = {"rate": NonNegative()}
    support = NonNegativeInteger()
    _inner_value = 0.0
    rate: ndarray

    def __init__(
        self,
        rate: ndarray | float = 1.0,
        validate_args: bool | None = None,
    ) -> None:
        self._store(rate=rate)
        super().__init__(event_dim=0, validate_args=validate_args)

    def _log_prob(self, value: ndarray) -> ndarray:
        return xlogy(value, self.rate) - self.rate - npx.gammaln(value + 1)

    def _draw(self, shape: tuple[int, ...]) -> ndarray:
        return np.random.poisson(self.rate.detach(), shape, dtype=self.rate.dtype)

    def cdf(self, value: Any) -> ndarray:
        count = np.floor(self._value(value)).detach()
        is_end = (count < 0) | (count == math.inf)
        found = npx.gammaincc(where(is_end, np.zeros_like(count), count) + 1, self.rate)
        return where(is_end, (count > 0).astype(found.dtype), found)

    def icdf(self, value: Any) -> ndarray:
        return quantile_of_counts(self, self._value(value))

    @property
    def mean(self) -> ndarray:
        return self.rate

    @property
    def variance(self) -> ndarray:
        return self.rate

    def entropy(self) -> ndarray:
        """Expectation of ``-log_prob(sample)``.

        Returns
        -------
        ndarray, shape batch_shape
            In nats.

        Notes
        -----
        A sum over counts up to a rate of 60. Beyond it the expansion
        ``log(2 * pi * e * r) / 2 - 1 / (12 * r) - 1 / (24 * r**2) - 19 / (360 * r**3)``, whose error is below 1e-8
        there. Source: Evans and Boersma, "The entropy of a Poisson distribution", SIAM Review 30 (1988).
        """
        is_small = self.rate <= _LARGE_RATE
        rate = where(is_small, self.rate, np.ones_like(self.rate))
        counts = np.arange(_NUM_COUNTS, dtype=rate.dtype, device=rate.device)
        terms = xlogy(counts + np.zeros_like(rate)[..., None], rate[..., None]) - npx.gammaln(counts + 1)
        logs = terms - rate[..., None]
        summed = -(np.exp(logs) * logs).sum(axis=-1)
        large = where(is_small, np.full_like(rate, _LARGE_RATE), self.rate)
        series = 0.5 * np.log(2 * math.pi * math.e * large) - (1 / 12 + (1 / 24 + 19 / 360 / large) / large) / large
        return where(is_small, summed, series)
