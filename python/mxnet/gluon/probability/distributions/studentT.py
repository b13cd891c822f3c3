"""Student's t distribution."""  # noqa: N999

from __future__ import annotations

import math
from typing import Any

from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.gluon.probability.distributions.constraint import Positive, Real
from mxnet.gluon.probability.distributions.distribution import Distribution
from mxnet.gluon.probability.distributions.utils import betaln, where
from mxnet.numpy import ndarray

__all__ = ["StudentT"]


class StudentT(Distribution):
    """Student's t distribution, shifted by `loc` and scaled by `scale`.

    Parameters
    ----------
    df : ndarray or float
        Degrees of freedom, above 0.
    loc : ndarray or float
        Median.
    scale : ndarray or float
        Above 0.
    validate_args : bool, optional
        See `Distribution`.

    Examples
    --------
    >>> from mxnet.gluon.probability import StudentT
    >>> StudentT(4.0).variance
    array(2.)

    Notes
    -----
    `log_prob` and `entropy` are differences of logarithms of gamma functions: their absolute error is about
    ``n * log(n)`` times the spacing of the dtype at 1, where n is the largest parameter.
    """

    has_grad = True
    arg_constraints = {"df": Positive(), "loc": Real(), "scale": Positive()}
    support = Real()
    df: ndarray
    loc: ndarray
    scale: ndarray

    def __init__(
        self,
        df: ndarray | float,
        loc: ndarray | float = 0.0,
        scale: ndarray | float = 1.0,
        validate_args: bool | None = None,
    ) -> None:
        self._store(df=df, loc=loc, scale=scale)
        super().__init__(event_dim=0, validate_args=validate_args)

    def _log_prob(self, value: ndarray) -> ndarray:
        x = (value - self.loc) / self.scale
        normalizer = np.log(self.scale) + 0.5 * np.log(self.df) + betaln(self.df / 2, np.full_like(self.df, 0.5))
        return -(self.df + 1) / 2 * np.log1p(x**2 / self.df) - normalizer

    def _draw(self, shape: tuple[int, ...]) -> ndarray:
        return self.loc + self.scale * np.random.standard_t(self.df, shape)

    def cdf(self, value: Any) -> ndarray:
        """Probability of a sample that is at most `value`.

        Parameters
        ----------
        value : ndarray or float
            Broadcast against the batch shape.

        Returns
        -------
        ndarray
            From 0 to 1; small probabilities keep their digits.

        Notes
        -----
        For x standard, ``(1 + x / sqrt(x**2 + df)) / 2`` has the beta distribution of parameters ``df / 2`` and
        ``df / 2``. It is computed in float64, because for large `df` it is near 1/2.
        """
        value = self._value(value)
        x, df = ((value - self.loc) / self.scale).astype("float64"), self.df.astype("float64")
        is_low = x < 0
        size = where(is_low, -x, x)
        root = np.sqrt(x**2 + df)
        tail = npx.betainc(df / 2, df / 2, df / (2 * root * (root + size)))
        return where(is_low, tail, 1 - tail).astype(np.result_type(value, self.df))

    def icdf(self, value: Any) -> ndarray:
        value = self._value(value)
        p, df = value.astype("float64"), self.df.astype("float64")
        is_low = p < 0.5
        part = npx.betaincinv(df / 2, df / 2, where(is_low, p, 1 - p))
        size = np.sqrt(df) * (0.5 - part) / np.sqrt(part * (1 - part))
        x = where(is_low, -size, size).astype(np.result_type(value, self.df))
        return self.loc + self.scale * x

    @property
    def mean(self) -> ndarray:
        found = self._spread(self.loc)
        return where(self.df > 1, found, np.full_like(found, math.nan))

    @property
    def variance(self) -> ndarray:
        df = where(self.df > 2, self.df, np.full_like(self.df, 3))
        found = self._spread(self.scale**2 * df / (df - 2))
        infinite = where(self.df > 1, np.full_like(found, math.inf), np.full_like(found, math.nan))
        return where(self.df > 2, found, infinite)

    def entropy(self) -> ndarray:
        half = (self.df + 1) / 2
        spread = half * (npx.digamma(half) - npx.digamma(self.df / 2)) + 0.5 * np.log(self.df)
        return self._spread(spread + betaln(self.df / 2, np.full_like(self.df, 0.5)) + np.log(self.scale))
