"""Laplace distribution."""

from __future__ import annotations

import math
from typing import Any

from mxnet import numpy as np
from mxnet.gluon.probability.distributions._location_scale import LocationScale
from mxnet.gluon.probability.distributions.utils import where
from mxnet.numpy import ndarray

__all__ = ["Laplace"]


class Laplace(LocationScale):
    """Laplace distribution, of density ``exp(-abs(x - loc) / scale) / (2 * scale)``.

    Parameters
    ----------
    loc : ndarray or float
        Mean.
    scale : ndarray or float
        Mean distance from `loc`, above 0.
    validate_args : bool, optional
        See `Distribution`.

    Examples
    --------
    >>> from mxnet.gluon.probability import Laplace
    >>> Laplace(0.0, 2.0).cdf(0.0)
    array(0.5)
    """

    def _log_prob(self, value: ndarray) -> ndarray:
        return -np.abs(self._standard(value)) - np.log(2 * self.scale)

    def _draw(self, shape: tuple[int, ...]) -> ndarray:
        return np.random.laplace(self.loc, self.scale, shape)

    def cdf(self, value: Any) -> ndarray:
        x = self._standard(value)
        tail = 0.5 * np.exp(-np.abs(x))
        return where(x < 0, tail, 1 - tail)

    def icdf(self, value: Any) -> ndarray:
        p = self._value(value)
        tail = np.log(2 * where(p < 0.5, p, 1 - p))
        return self.loc + self.scale * where(p < 0.5, tail, -tail)

    @property
    def mean(self) -> ndarray:
        return self._spread(self.loc)

    @property
    def variance(self) -> ndarray:
        return self._spread(2 * self.scale**2)

    @property
    def stddev(self) -> ndarray:
        return self._spread(math.sqrt(2) * self.scale)

    def entropy(self) -> ndarray:
        return self._spread(1 + np.log(2 * self.scale))
