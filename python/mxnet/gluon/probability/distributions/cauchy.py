"""Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

from mxnet import numpy as np
from mxnet.gluon.probability.distributions._location_scale import LocationScale
from mxnet.gluon.probability.distributions.utils import where
from mxnet.numpy import ndarray

__all__ = ["Cauchy"]


class Cauchy(LocationScale):
    """Cauchy distribution, of density ``1 / (pi * scale * (1 + ((x - loc) / scale)**2))``. It has no moments.

    Parameters
    ----------
    loc : ndarray or float
        Median.
    scale : ndarray or float
        Half of the width at half of the maximum, above 0.
    validate_args : bool, optional
        See `Distribution`.

    Examples
    --------
    >>> from mxnet.gluon.probability import Cauchy
    >>> Cauchy(0.0, 1.0).cdf(1.0)
    array(0.75)
    """

    def _log_prob(self, value: ndarray) -> ndarray:
        return -math.log(math.pi) - np.log(self.scale) - np.log1p(self._standard(value) ** 2)

    def _draw(self, shape: tuple[int, ...]) -> ndarray:
        standard = np.random.standard_cauchy(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + self.scale * standard

    def cdf(self, value: Any) -> ndarray:
        # atan2(1, -x) / pi keeps its relative accuracy for small probabilities.
        return np.arctan2(np.ones_like(self.loc), -self._standard(value)) / math.pi

    def icdf(self, value: Any) -> ndarray:
        p = self._value(value)
        inside = (p >= 0) & (p <= 1)
        found = self.loc - self.scale * np.cos(math.pi * p) / np.sin(math.pi * p)
        found = where(p == 0, np.full_like(found, -math.inf), found)
        found = where(p == 1, np.full_like(found, math.inf), found)
        return where(inside, found, np.full_like(found, math.nan))

    @property
    def mean(self) -> ndarray:
        return self._spread(np.full_like(self.loc, math.nan))

    @property
    def variance(self) -> ndarray:
        return self._spread(np.full_like(self.loc, math.nan))

    def entropy(self) -> ndarray:
        return self._spread(math.log(4 * math.pi) + np.log(self.scale))
