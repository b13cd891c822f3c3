"""Half-Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

from mxnet import numpy as np
from mxnet.gluon.probability.distributions.cauchy import Cauchy
from mxnet.gluon.probability.distributions.constraint import NonNegative, Positive
from mxnet.gluon.probability.distributions.transformed_distribution import TransformedDistribution
from mxnet.gluon.probability.distributions.utils import where
from mxnet.gluon.probability.transformation.transformation import AbsTransform
from mxnet.numpy import ndarray

__all__ = ["HalfCauchy"]


class HalfCauchy(TransformedDistribution):
    """Half-Cauchy distribution: that of the absolute value of a Cauchy number with median 0. Its moments are infinite.

    Parameters
    ----------
    scale : ndarray or float
        Median, above 0.
    validate_args : bool, optional
        See `Distribution`.

    Examples
    --------
    >>> from mxnet.gluon.probability import HalfCauchy
    >>> HalfCauchy(2.0).cdf(2.0)
    array(0.5)
    """

    has_grad = True
    arg_constraints = {"scale": Positive()}
    support = NonNegative()
    scale: ndarray

    def __init__(self, scale: ndarray | float = 1.0, validate_args: bool | None = None) -> None:
        self._store(scale=scale)
        super().__init__(Cauchy(np.zeros_like(self.scale), self.scale), AbsTransform(), validate_args=validate_args)

    def _log_prob(self, value: ndarray) -> ndarray:
        return math.log(2 / math.pi) - np.log(self.scale) - np.log1p((value / self.scale) ** 2)

    def cdf(self, value: Any) -> ndarray:
        return np.arctan(np.maximum(self._value(value), 0) / self.scale) * (2 / math.pi)

    def icdf(self, value: Any) -> ndarray:
        p = self._value(value)
        found = self.scale * np.tan(p * (math.pi / 2))
        found = where(p == 1, np.full_like(found, math.inf), found)
        return where((p >= 0) & (p <= 1), found, np.full_like(found, math.nan))

    @property
    def mean(self) -> ndarray:
        return np.full_like(self.scale, math.inf)

    @property
    def variance(self) -> ndarray:
        return np.full_like(self.scale, math.inf)

    def entropy(self) -> ndarray:
        return math.log(2 * math.pi) + np.log(self.scale)
