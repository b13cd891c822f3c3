"""Beta distribution."""

from __future__ import annotations

from typing import Any

from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.gluon.probability.distributions.constraint import Positive, UnitInterval
from mxnet.gluon.probability.distributions.exp_family import ExponentialFamily
from mxnet.gluon.probability.distributions.utils import betaln, where, xlogy
from mxnet.numpy import ndarray

__all__ = ["Beta"]


class Beta(ExponentialFamily):
    """Beta distribution, of a density proportional to ``x**(alpha - 1) * (1 - x)**(beta - 1)`` from 0 to 1.

    Parameters
    ----------
    alpha : ndarray or float
        Above 0.
    beta : ndarray or float
        Above 0.
    validate_args : bool, optional
        See `Distribution`.

    Examples
    --------
    >>> from mxnet.gluon.probability import Beta
    >>> Beta(1.0, 3.0).mean
    array(0.25)

    Notes
    -----
    `log_prob` and `entropy` are differences of logarithms of gamma functions: their absolute error is about
    ``n * log(n)`` times the spacing of the dtype at 1, where n is the largest parameter.
    """

    has_grad = True
    arg_constraints = {"alpha": Positive(), "beta": Positive()}
    support = UnitInterval()
    alpha: ndarray
    beta: ndarray

    def __init__(self, alpha: ndarray | float, beta: ndarray | float, validate_args: bool | None = None) -> None:
        self._store(alpha=alpha, beta=beta)
        super().__init__(event_dim=0, validate_args=validate_args)

    def _log_prob(self, value: ndarray) -> ndarray:
        powers = xlogy(self.alpha - 1, value) + xlogy(self.beta - 1, 1 - value)
        return powers - betaln(self.alpha, self.beta)

    def _draw(self, shape: tuple[int, ...]) -> ndarray:
        return np.random.beta(self.alpha, self.beta, shape)

    def cdf(self, value: Any) -> ndarray:
        x = self._value(value)
        is_outside = (x <= 0) | (x >= 1)
        found = npx.betainc(self.alpha, self.beta, where(is_outside, np.full_like(x, 0.5), x))
        return where(is_outside, (x > 0).astype(found.dtype), found)

    def icdf(self, value: Any) -> ndarray:
        return npx.betaincinv(self.alpha, self.beta, self._value(value))

    @property
    def mean(self) -> ndarray:
        return self.alpha / (self.alpha + self.beta)

    @property
    def variance(self) -> ndarray:
        total = self.alpha + self.beta
        return self.alpha * self.beta / (total**2 * (total + 1))

    def entropy(self) -> ndarray:
        a, b = self.alpha, self.beta
        mixed = (a - 1) * npx.digamma(a) + (b - 1) * npx.digamma(b)
        return betaln(a, b) - mixed + (a + b - 2) * npx.digamma(a + b)
