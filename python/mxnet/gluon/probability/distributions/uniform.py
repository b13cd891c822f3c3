"""Uniform distribution."""

from __future__ import annotations

import math
from typing import Any

from mxnet import numpy as np
from mxnet.gluon.probability.distributions.constraint import Interval, Real, dependent_property
from mxnet.gluon.probability.distributions.distribution import Distribution
from mxnet.gluon.probability.distributions.utils import where
from mxnet.numpy import ndarray

__all__ = ["Uniform"]


class Uniform(Distribution):
    """Uniform distribution on an interval.

    Parameters
    ----------
    low : ndarray or float
        Lower end.
    high : ndarray or float
        Upper end, above `low`.
    validate_args : bool, optional
        See `Distribution`.

    Examples
    --------
    >>> from mxnet.gluon.probability import Uniform
    >>> Uniform(0.0, 4.0).cdf(1.0)
    array(0.25)
    """

    has_grad = True
    arg_constraints = {"low": Real(), "high": Real()}
    low: ndarray
    high: ndarray

    def __init__(
        self, low: ndarray | float = 0.0, high: ndarray | float = 1.0, validate_args: bool | None = None
    ) -> None:
        self._store(low=low, high=high)
        super().__init__(event_dim=0, validate_args=validate_args)
        if self._validate_args and not bool((self.low < self.high).all()):
            raise ValueError("Uniform: `low` must be less than `high` in each element")

    @dependent_property
    def support(self) -> Interval:
        """Constraint: from `low` to `high`."""
        return Interval(self.low, self.high)

    def log_prob(self, value: Any) -> ndarray:
        found = self._value(value)
        if self._validate_args:
            self._checked(self.support, found, "value")
        known = (self.low <= found) & (found <= self.high)
        # The clipped value is 0, or NaN at NaN; its gradient is 0.
        result = np.clip(found, 0, 0) - np.log(self.high - self.low)
        return where(known | (found != found), result, np.full_like(result, -math.inf))

    def _draw(self, shape: tuple[int, ...]) -> ndarray:
        return np.random.uniform(self.low, self.high, shape)

    def cdf(self, value: Any) -> ndarray:
        return np.clip((self._value(value) - self.low) / (self.high - self.low), 0, 1)

    def icdf(self, value: Any) -> ndarray:
        p = self._value(value)
        found = self.low + p * (self.high - self.low)
        return where((p >= 0) & (p <= 1), found, np.full_like(found, math.nan))

    @property
    def mean(self) -> ndarray:
        return (self.low + self.high) / 2

    @property
    def variance(self) -> ndarray:
        return (self.high - self.low) ** 2 / 12

    def entropy(self) -> ndarray:
        return np.log(self.high - self.low)
