"""Gamma distribution."""

from __future__ import annotations

from typing import Any

from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.gluon.probability.distributions.constraint import NonNegative, Positive
from mxnet.gluon.probability.distributions.exp_family import ExponentialFamily
from mxnet.gluon.probability.distributions.utils import where, xlogy
from mxnet.numpy import ndarray

__all__ = ["Gamma"]


class Gamma(ExponentialFamily):
    """Gamma distribution, of density ``x**(shape - 1) * exp(-x / scale) / (gamma(shape) * scale**shape)``.

    Parameters
    ----------
    shape : ndarray or float
        Exponent, above 0.
    scale : ndarray or float
        Unit of the values, above 0.
    validate_args : bool, optional
        See `Distribution`.

    Examples
    --------
    >>> from mxnet.gluon.probability import Gamma
    >>> Gamma(3.0, 2.0).mean
    array(6.)

    Notes
    -----
    `log_prob` and `entropy` are differences of logarithms of gamma functions: their absolute error is about
    ``n * log(n)`` times the spacing of the dtype at 1, where n is the largest parameter.
    """

    has_grad = True
    arg_constraints = {"shape": Positive(), "scale": Positive()}
    support = NonNegative()
    shape: ndarray
    scale: ndarray

    def __init__(self, shape: ndarray | float, scale: ndarray | float = 1.0, validate_args: bool | None = None) -> None:
        self._store(shape=shape, scale=scale)
        super().__init__(event_dim=0, validate_args=validate_args)

    def _log_prob(self, value: ndarray) -> ndarray:
        x = value / self.scale
        return xlogy(self.shape - 1, x) - x - npx.gammaln(self.shape) - np.log(self.scale)

    def _draw(self, shape: tuple[int, ...]) -> ndarray:
        return np.random.gamma(self.shape, self.scale, shape)

    def cdf(self, value: Any) -> ndarray:
        x = self._value(value) / self.scale
        is_below = x <= 0
        found = npx.gammainc(self.shape, where(is_below, np.ones_like(x), x))
        return where(is_below, np.zeros_like(found), found)

    def icdf(self, value: Any) -> ndarray:
        return npx.gammaincinv(self.shape, self._value(value)) * self.scale

    @property
    def mean(self) -> ndarray:
        return self.shape * self.scale

    @property
    def variance(self) -> ndarray:
        return self.shape * self.scale**2

    def entropy(self) -> ndarray:
        a = self.shape
        return a + np.log(self.scale) + npx.gammaln(a) + (1 - a) * npx.digamma(a)
