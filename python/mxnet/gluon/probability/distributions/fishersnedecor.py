"""F distribution."""

from __future__ import annotations

from typing import Any

from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.gluon.probability.distributions.constraint import NonNegative, Positive
from mxnet.gluon.probability.distributions.distribution import Distribution
from mxnet.gluon.probability.distributions.utils import betaln, where, xlogy
from mxnet.numpy import ndarray

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Distribution):
    """F distribution: that of the ratio of two chi-squared numbers, each divided by its degrees of freedom.

    Parameters
    ----------
    df1 : ndarray or float
        Degrees of freedom of the numerator, above 0.
    df2 : ndarray or float
        Degrees of freedom of the denominator, above 0.
    validate_args : bool, optional
        See `Distribution`.

    Examples
    --------
    >>> from mxnet.gluon.probability import FisherSnedecor
    >>> FisherSnedecor(3.0, 4.0).mean
    array(2.)

    Notes
    -----
    `log_prob` and `entropy` are differences of logarithms of gamma functions: their absolute error is about
    ``n * log(n)`` times the spacing of the dtype at 1, where n is the largest parameter.
    """

    has_grad = True
    arg_constraints = {"df1": Positive(), "df2": Positive()}
    support = NonNegative()
    df1: ndarray
    df2: ndarray

    def __init__(self, df1: ndarray | float, df2: ndarray | float, validate_args: bool | None = None) -> None:
        self._store(df1=df1, df2=df2)
        super().__init__(event_dim=0, validate_args=validate_args)

    def _log_prob(self, value: ndarray) -> ndarray:
        a, b = self.df1 / 2, self.df2 / 2
        ratio = self.df1 / self.df2
        power = xlogy(a - 1, value) + a * np.log(ratio)
        return power - (a + b) * np.log1p(ratio * value) - betaln(a, b)

    def _draw(self, shape: tuple[int, ...]) -> ndarray:
        return np.random.f(self.df1, self.df2, shape)

    def cdf(self, value: Any) -> ndarray:
        """Probability of a sample that is at most `value`.

        Parameters
        ----------
        value : ndarray or float
            Broadcast against the batch shape.

        Returns
        -------
        ndarray
            From 0 to 1.

        Notes
        -----
        ``d1 * x / (d1 * x + d2)`` has a beta distribution. The formula takes the smaller of this number and of its
        difference to 1, which has all its digits.
        """
        x, ratio = self._value(value), self.df2 / self.df1
        is_below, is_small = x <= 0, x < ratio
        # A value that a formula is not for is replaced by `ratio`, so that no overflow comes into its gradient.
        small = where(is_small & ~is_below, x, ratio)
        large = where(is_small, ratio, x)
        lower = npx.betainc(self.df1 / 2, self.df2 / 2, small / (ratio + small))
        rest = ratio / (ratio + large)
        is_end = rest == 0
        upper = npx.betaincc(self.df2 / 2, self.df1 / 2, where(is_end, np.full_like(rest, 0.5), rest))
        found = where(is_small, lower, where(is_end, np.ones_like(upper), upper))
        return where(is_below, np.zeros_like(found), found)

    def icdf(self, value: Any) -> ndarray:
        p, a, b = self._value(value), self.df1 / 2, self.df2 / 2
        return npx.betaincinv(a, b, p) / npx.betainccinv(b, a, p) * (self.df2 / self.df1)

    @property
    def mean(self) -> ndarray:
        known = self.df2 > 2
        b = where(known, self.df2, np.full_like(self.df2, 3))
        return self._spread(where(known, b / (b - 2), np.full_like(b, float("nan"))))

    @property
    def variance(self) -> ndarray:
        a, known = self.df1, self.df2 > 4
        b = where(known, self.df2, np.full_like(self.df2, 5))
        found = 2 * b**2 * (a + b - 2) / (a * (b - 2) ** 2 * (b - 4))
        return where(known, found, np.full_like(found, float("nan")))

    def entropy(self) -> ndarray:
        a, b = self.df1 / 2, self.df2 / 2
        mixed = (1 - a) * npx.digamma(a) - (1 + b) * npx.digamma(b) + (a + b) * npx.digamma(a + b)
        return betaln(a, b) + np.log(self.df2 / self.df1) + mixed
