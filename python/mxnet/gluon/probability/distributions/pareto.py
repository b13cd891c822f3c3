"""Pareto distribution."""

from __future__ import annotations

import math
from typing import Any

from mxnet import numpy as np
from mxnet.gluon.probability.distributions.constraint import GreaterThanEq, Positive, dependent_property
from mxnet.gluon.probability.distributions.exponential import Exponential
from mxnet.gluon.probability.distributions.transformed_distribution import TransformedDistribution
from mxnet.gluon.probability.distributions.utils import where
from mxnet.gluon.probability.transformation.transformation import AffineTransform, ExpTransform
from mxnet.numpy import ndarray

__all__ = ["Pareto"]


class Pareto(TransformedDistribution):
    """Pareto distribution, of density ``alpha * scale**alpha / x**(alpha + 1)`` for ``x >= scale``.

    Parameters
    ----------
    alpha : ndarray or float
        Exponent, above 0.
    scale : ndarray or float
        Smallest value, above 0.
    validate_args : bool, optional
        See `Distribution`.

    Examples
    --------
    >>> from mxnet.gluon.probability import Pareto
    >>> Pareto(2.0, 3.0).mean
    array(6.)
    """

    has_grad = True
    arg_constraints = {"alpha": Positive(), "scale": Positive()}
    alpha: ndarray
    scale: ndarray

    def __init__(self, alpha: ndarray | float, scale: ndarray | float = 1.0, validate_args: bool | None = None) -> None:
        self._store(alpha=alpha, scale=scale)
        parts = [ExpTransform(), AffineTransform(np.zeros_like(self.scale), self.scale)]
        super().__init__(Exponential(1 / self.alpha), parts, validate_args=validate_args)

    @dependent_property
    def support(self) -> GreaterThanEq:
        """Constraint: from `scale` on."""
        return GreaterThanEq(self.scale)

    def log_prob(self, value: Any) -> ndarray:
        found = self._value(value)
        if self._validate_args:
            self._checked(self.support, found, "value")
        known = (found >= self.scale) | (found != found)
        inner = where(known, found, self.scale)
        result = np.log(self.alpha) + self.alpha * np.log(self.scale) - (self.alpha + 1) * np.log(inner)
        return where(known, result, np.full_like(result, -math.inf))

    def cdf(self, value: Any) -> ndarray:
        x = self._value(value)
        is_below = x < self.scale
        found = super().cdf(where(is_below, self.scale, x))
        return where(is_below, np.zeros_like(found), found)

    @property
    def mean(self) -> ndarray:
        known = self.alpha > 1
        alpha = where(known, self.alpha, np.full_like(self.alpha, 2))
        found = alpha * self.scale / (alpha - 1)
        return where(known, found, np.full_like(found, math.inf))

    @property
    def variance(self) -> ndarray:
        known = self.alpha > 2
        alpha = where(known, self.alpha, np.full_like(self.alpha, 3))
        found = self.scale**2 * alpha / ((alpha - 1) ** 2 * (alpha - 2))
        return where(known, found, np.full_like(found, math.inf))

    def entropy(self) -> ndarray:
        return np.log(self.scale / self.alpha) + 1 + 1 / self.alpha
