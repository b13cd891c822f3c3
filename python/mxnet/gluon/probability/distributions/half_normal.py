"""Half-normal distribution."""

from __future__ import annotations

import math
from typing import Any

from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.gluon.probability.distributions.constraint import NonNegative, Positive
from mxnet.gluon.probability.distributions.normal import Normal
from mxnet.gluon.probability.distributions.transformed_distribution import TransformedDistribution
from mxnet.gluon.probability.distributions.utils import LOG_SQRT_2PI, where
from mxnet.gluon.probability.transformation.transformation import AbsTransform
from mxnet.numpy import ndarray

__all__ = ["HalfNormal"]


class HalfNormal(TransformedDistribution):
    """Half-normal distribution: that of the absolute value of a normal number with mean 0.

    Parameters
    ----------
    scale : ndarray or float
        Standard deviation of the normal number, above 0.
    validate_args : bool, optional
        See `Distribution`.

    Examples
    --------
    >>> from mxnet.gluon.probability import HalfNormal
    >>> HalfNormal(2.0).loc, HalfNormal(2.0).mean
    (array(0.), array(1.5957692))
    """

    has_grad = True
    arg_constraints = {"scale": Positive()}
    support = NonNegative()
    scale: ndarray

    def __init__(self, scale: ndarray | float = 1.0, validate_args: bool | None = None) -> None:
        self._store(scale=scale)
        super().__init__(Normal(np.zeros_like(self.scale), self.scale), AbsTransform(), validate_args=validate_args)

    @property
    def loc(self) -> ndarray:
        """ndarray: 0, the mode."""
        return np.zeros_like(self.scale)

    def _log_prob(self, value: ndarray) -> ndarray:
        return math.log(2) - LOG_SQRT_2PI - np.log(self.scale) - (value / self.scale) ** 2 / 2

    def cdf(self, value: Any) -> ndarray:
        return npx.erf(np.maximum(self._value(value), 0) / (math.sqrt(2) * self.scale))

    def icdf(self, value: Any) -> ndarray:
        p = self._value(value)
        found = self.scale * math.sqrt(2) * npx.erfinv(p)
        return where(p >= 0, found, np.full_like(found, math.nan))

    @property
    def mean(self) -> ndarray:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> ndarray:
        return self.scale**2 * (1 - 2 / math.pi)

    def entropy(self) -> ndarray:
        return 0.5 + LOG_SQRT_2PI - math.log(2) + np.log(self.scale)
