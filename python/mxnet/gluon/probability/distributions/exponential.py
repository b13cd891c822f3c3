"""Exponential distribution."""

from __future__ import annotations

from typing import Any

from mxnet import numpy as np
from mxnet.gluon.probability.distributions.constraint import NonNegative, Positive
from mxnet.gluon.probability.distributions.exp_family import ExponentialFamily
from mxnet.gluon.probability.distributions.utils import where
from mxnet.numpy import ndarray

__all__ = ["Exponential"]


class Exponential(ExponentialFamily):
    """Exponential distribution, of density ``exp(-x / scale) / scale`` for ``x >= 0``.

    Parameters
    ----------
    scale : ndarray or float
        Mean, above 0.
    validate_args : bool, optional
        See `Distribution`.

    Examples
    --------
    >>> from mxnet.gluon.probability import Exponential
    >>> Exponential(2.0).rate
    array(0.5)
    """

    has_grad = True
    arg_constraints = {"scale": Positive()}
    support = NonNegative()
    scale: ndarray

    def __init__(self, scale: ndarray | float = 1.0, validate_args: bool | None = None) -> None:
        self._store(scale=scale)
        super().__init__(event_dim=0, validate_args=validate_args)

    @property
    def rate(self) -> ndarray:
        """ndarray: ``1 / scale``."""
        return 1 / self.scale

    def _log_prob(self, value: ndarray) -> ndarray:
        return -value / self.scale - np.log(self.scale)

    def _draw(self, shape: tuple[int, ...]) -> ndarray:
        return np.random.exponential(self.scale, shape)

    def cdf(self, value: Any) -> ndarray:
        return -np.expm1(-np.maximum(self._value(value), 0) / self.scale)

    def icdf(self, value: Any) -> ndarray:
        p = self._value(value)
        found = -self.scale * np.log1p(-p)
        return where(p >= 0, found, np.full_like(found, float("nan")))

    @property
    def mean(self) -> ndarray:
        return self.scale

    @property
    def variance(self) -> ndarray:
        return self.scale**2

    @property
    def stddev(self) -> ndarray:
        return self.scale

    def entropy(self) -> ndarray:
        return 1 + np.log(self.scale)
