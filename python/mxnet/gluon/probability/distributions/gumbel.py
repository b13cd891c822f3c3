"""Gumbel distribution."""

from __future__ import annotations

import math
from typing import Any

from mxnet import numpy as np
from mxnet.gluon.probability.distributions._location_scale import LocationScale
from mxnet.gluon.probability.distributions.utils import EULER
from mxnet.numpy import ndarray

__all__ = ["Gumbel"]


class Gumbel(LocationScale):
    """Gumbel distribution, whose `cdf` is ``exp(-exp(-(x - loc) / scale))``.

    Parameters
    ----------
    loc : ndarray or float
        Mode.
    scale : ndarray or float
        Width, above 0.
    validate_args : bool, optional
        See `Distribution`.

    Examples
    --------
    >>> from mxnet.gluon.probability import Gumbel
    >>> Gumbel(0.0, 1.0).mean
    array(0.5772157)
    """

    def __init__(self, loc: ndarray | float, scale: ndarray | float = 1, validate_args: bool | None = None) -> None:
        super().__init__(loc, scale, validate_args)

    def _log_prob(self, value: ndarray) -> ndarray:
        x = self._standard(value)
        return -x - np.exp(-x) - np.log(self.scale)

    def _draw(self, shape: tuple[int, ...]) -> ndarray:
        return np.random.gumbel(self.loc, self.scale, shape)

    def cdf(self, value: Any) -> ndarray:
        return np.exp(-np.exp(-self._standard(value)))

    def icdf(self, value: Any) -> ndarray:
        return self.loc - self.scale * np.log(-np.log(self._value(value)))

    @property
    def mean(self) -> ndarray:
        return self._spread(self.loc + EULER * self.scale)

    @property
    def variance(self) -> ndarray:
        return self._spread((math.pi * self.scale) ** 2 / 6)

    @property
    def stddev(self) -> ndarray:
        return self._spread(math.pi / math.sqrt(6) * self.scale)

    def entropy(self) -> ndarray:
        return self._spread(1 + EULER + np.log(self.scale))
