"""Weibull distribution."""

from __future__ import annotations

from typing import Any

from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.gluon.probability.distributions.constraint import NonNegative, Positive
from mxnet.gluon.probability.distributions.exponential import Exponential
from mxnet.gluon.probability.distributions.transformed_distribution import TransformedDistribution
from mxnet.gluon.probability.distributions.utils import EULER, where, xlogy
from mxnet.gluon.probability.transformation.transformation import AffineTransform, PowerTransform
from mxnet.numpy import ndarray

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """Weibull distribution, whose `cdf` is ``1 - exp(-(x / scale)**concentration)`` for ``x >= 0``.

    Parameters
    ----------
    concentration : ndarray or float
        Exponent, above 0.
    scale : ndarray or float
        Unit of the values, above 0.
    validate_args : bool, optional
        See `Distribution`.

    Examples
    --------
    >>> from mxnet.gluon.probability import Weibull
    >>> Weibull(1.0, 2.0).mean
    array(2.)
    """

    has_grad = True
    arg_constraints = {"concentration": Positive(), "scale": Positive()}
    support = NonNegative()
    concentration: ndarray
    scale: ndarray

    def __init__(
        self, concentration: ndarray | float, scale: ndarray | float = 1.0, validate_args: bool | None = None
    ) -> None:
        self._store(concentration=concentration, scale=scale)
        parts = [PowerTransform(1 / self.concentration), AffineTransform(np.zeros_like(self.scale), self.scale)]
        super().__init__(Exponential(np.ones_like(self.scale)), parts, validate_args=validate_args)

    def _log_prob(self, value: ndarray) -> ndarray:
        x = value / self.scale
        density = np.log(self.concentration / self.scale) + xlogy(self.concentration - 1, x)
        return density - x**self.concentration

    def cdf(self, value: Any) -> ndarray:
        x = self._value(value)
        is_below = x <= 0
        found = super().cdf(where(is_below, self.scale, x))
        return where(is_below, np.zeros_like(found), found)

    @property
    def mean(self) -> ndarray:
        return self.scale * np.exp(npx.gammaln(1 + 1 / self.concentration))

    @property
    def variance(self) -> ndarray:
        first = np.exp(2 * npx.gammaln(1 + 1 / self.concentration))
        return self.scale**2 * (np.exp(npx.gammaln(1 + 2 / self.concentration)) - first)

    def entropy(self) -> ndarray:
        return EULER * (1 - 1 / self.concentration) + np.log(self.scale / self.concentration) + 1
