"""Normal distribution."""

from __future__ import annotations

import math
from typing import Any

from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.gluon.probability.distributions._location_scale import LocationScale
from mxnet.gluon.probability.distributions.exp_family import ExponentialFamily
from mxnet.gluon.probability.distributions.utils import LOG_SQRT_2PI
from mxnet.numpy import ndarray

__all__ = ["Normal"]


class Normal(LocationScale, ExponentialFamily):
    """Normal distribution, of density ``exp(-((x - loc) / scale)**2 / 2) / (scale * sqrt(2 * pi))``.

    Parameters
    ----------
    loc : ndarray or float
        Mean.
    scale : ndarray or float
        Standard deviation, above 0.
    validate_args : bool, optional
        See `Distribution`.

    Examples
    --------
    >>> from mxnet.gluon.probability import Normal
    >>> Normal(0.0, 2.0).log_prob(0.0)
    array(-1.6120857)

    Notes
    -----
    `cdf` is ``erfc(-z / sqrt(2)) / 2``, so small probabilities in the lower tail have all their digits.
    """

    def _log_prob(self, value: ndarray) -> ndarray:
        return -(self._standard(value) ** 2) / 2 - np.log(self.scale) - LOG_SQRT_2PI

    def _draw(self, shape: tuple[int, ...]) -> ndarray:
        return np.random.normal(self.loc, self.scale, shape)

    def cdf(self, value: Any) -> ndarray:
        return 0.5 * npx.erfc(-self._standard(value) / math.sqrt(2))

    def icdf(self, value: Any) -> ndarray:
        return self.loc - self.scale * math.sqrt(2) * npx.erfcinv(2 * self._value(value))

    @property
    def mean(self) -> ndarray:
        return self._spread(self.loc)

    @property
    def variance(self) -> ndarray:
        return self._spread(self.scale**2)

    @property
    def stddev(self) -> ndarray:
        return self._spread(self.scale)

    def entropy(self) -> ndarray:
        return self._spread(0.5 + LOG_SQRT_2PI + np.log(self.scale))
