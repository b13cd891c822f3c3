"""Student's t distribution."""  # noqa: N999

from __future__ import annotations

import math
from typing import Any

from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.gluon.probability.distributions.constraint import Positive, Real
from mxnet.gluon.probability.distributions.distribution import Distribution
from mxnet.gluon.probability.distributions.utils import betaln, epsilon, where
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
        size = np.abs(x) / np.sqrt(self.df)
        # From here on 1 + size**2 is rounded to size**2, which may overflow.
        is_far = size > math.sqrt(2 / epsilon(size))
        near, far = where(is_far, np.zeros_like(size), size), where(is_far, size, np.ones_like(size))
        return -(self.df + 1) / 2 * where(is_far, 2 * np.log(far), np.log1p(near**2)) - normalizer

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

        - Where the smaller of this number and of its difference to 1 is below 1e-200, the result is the first term of
          the series, from logarithms.
        - For `df` up to 1e8 the relative error of small probabilities is below 1e-9.
        - For larger `df` the result is that of a normal distribution at ``x - (x**3 + x) / (4 * df) + (13 * x**5 +
          8 * x**3 + 3 * x) / (96 * df**2)``. The next term changes it by less than 1e-12 of itself.

        Source: M. Abramowitz and I. A. Stegun, "Handbook of Mathematical Functions", 26.5.4, 26.7.5 (inverted).
        """
        value = self._value(value)
        standard = (value - self.loc) / self.scale
        is_low, is_end = standard < 0, np.abs(standard) == math.inf
        # The quotient once more, without infinite numbers in its gradient.
        x = ((where(is_end, self.loc, value) - self.loc) / self.scale).astype("float64")
        size, df = where(is_low, -x, x), self.df.astype("float64")
        tail = where(df > MIN_SERIES_DF, _tail_of_large_df(size, df), _tail(size, np.minimum(df, MIN_SERIES_DF)))
        tail = where(is_end, np.zeros_like(tail), tail)
        return where(is_low, tail, 1 - tail).astype(np.result_type(value, self.df))

    def icdf(self, value: Any) -> ndarray:
        """The value whose `cdf` is `value`.

        Parameters
        ----------
        value : ndarray or float
            From 0 to 1, broadcast against the batch shape.

        Returns
        -------
        ndarray
            NaN where `value` is no probability; `loc` for 1/2.

        Notes
        -----
        Computed in float64, by the formulas of `cdf`. In the tails of a standard distribution the quantile is a power
        of the probability, whose exponent is ``-1 / df``: its relative error is about ``2e-16 * abs(log(p)) / df`` for
        a probability p of the tail. Near the median, the absolute error is below 1e-11 for `df` up to 1e8.
        Above, the result is the series ``z + (z**3 + z) / (4 * df) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * df**2)`` of
        the normal quantile z, whose next term is below 3e-17 of it.

        Source: M. Abramowitz and I. A. Stegun, "Handbook of Mathematical Functions", 26.5.4, 26.7.5.
        """
        value = self._value(value)
        p, df = value.astype("float64"), self.df.astype("float64")
        is_low = p < 0.5
        tail = where(is_low, p, 1 - p)
        size = where(
            df > MIN_SERIES_DF, _quantile_of_large_df(tail, df), _quantile(tail, np.minimum(df, MIN_SERIES_DF))
        )
        # Exactly 0, with its gradient.
        size = where(p == 0.5, size - size.detach(), size)
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


# Above it, two terms of the series around the normal distribution are exact to float64, whatever the quantile is.
MIN_SERIES_DF = 1e8
# Below it, the first term of the series of the incomplete beta function is exact to float64.
MAX_FIRST_TERM_PART = 1e-200


def _log_of_first_term(a: ndarray) -> ndarray:
    """Logarithm of ``a * beta(a, a)``: for small x, ``betainc(a, a, x)`` is ``x**a`` divided by it."""
    return np.log(a) + betaln(a, a)


def _tail(size: ndarray, df: ndarray) -> ndarray:
    """Probability beyond `size`, which is at least 0 and finite."""
    a, sqrt_df = df / 2, np.sqrt(df)
    root = np.hypot(size, sqrt_df)
    mean = root / 2 + size / 2
    part = sqrt_df / root * (sqrt_df / mean) / 4
    log_part = np.log(df) - math.log(4) - np.log(root) - np.log(mean)
    log_first = a * log_part - _log_of_first_term(a)
    # Below exp(-750) everything is 0 in float64.
    is_far = (part < MAX_FIRST_TERM_PART) | (log_first < -750)
    near = npx.betainc(a, a, where(is_far, np.full_like(part, 0.5), part))
    return where(is_far, np.exp(where(is_far, log_first, np.zeros_like(log_first))), near)


def _quantile(tail: ndarray, df: ndarray) -> ndarray:
    """Inverse of `_tail`."""
    a = df / 2
    log_part = (np.log(tail) + _log_of_first_term(a)) / a
    is_far = log_part < math.log(MAX_FIRST_TERM_PART)
    part = npx.betaincinv(a, a, where(is_far, np.full_like(tail, 0.25), tail))
    part = where(is_far, np.full_like(part, 0.25), part)
    near = np.sqrt(df) * (0.5 - part) / np.sqrt(part * (1 - part))
    log_part = where(is_far, log_part, np.zeros_like(log_part))
    return where(is_far, np.exp(0.5 * (np.log(df) - log_part)) / 2, near)


def _tail_of_large_df(size: ndarray, df: ndarray) -> ndarray:
    # Beyond 40, the result is 0 in float64.
    x, df = np.minimum(size, 40), np.maximum(df, MIN_SERIES_DF)
    z = x * (1 - (x**2 + 1) / (4 * df) + ((13 * x**2 + 8) * x**2 + 3) / (96 * df) / df)
    return npx.erfc(z / math.sqrt(2)) / 2


def _quantile_of_large_df(tail: ndarray, df: ndarray) -> ndarray:
    z, df = math.sqrt(2) * npx.erfcinv(2 * tail), np.maximum(df, MIN_SERIES_DF)
    return z * (1 + (z**2 + 1) / (4 * df) + ((5 * z**2 + 16) * z**2 + 3) / (96 * df) / df)
