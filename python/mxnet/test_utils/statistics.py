"""Whether samples follow a distribution."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp
from numpy.typing import NDArray

from mxnet.test_utils.comparison import host

__all__ = ["chi_square_check", "gen_buckets_probs_with_ppf", "mean_check", "var_check", "verify_generator"]

Generator = Callable[[int], Any]
# Buckets of a continuous distribution are half-open ranges, those of a discrete one are values.
Buckets = Sequence[tuple[float, float]] | Sequence[float]
# Mean and variance may be off by this number of standard errors, which one sample in 370 exceeds.
_STANDARD_ERRORS = 3.0


def _samples(generator: Generator, nsamples: int) -> NDArray[onp.float64]:
    drawn = host(generator(nsamples)).astype(onp.float64).ravel()
    if drawn.size != nsamples:
        raise ValueError(f"`generator` was asked for {nsamples} samples and gave {drawn.size}")
    return drawn


def _chi_square_tail(statistic: float, freedom: int) -> float:
    """Probability that a chi-squared variable exceeds `statistic`.

    Q(a + 1, x) = Q(a, x) + x**a exp(-x) / Gamma(a + 1), from Q(1/2, x) = erfc(sqrt(x)) or Q(1, x) = exp(-x). Source:
    DLMF 8.8.6, 8.4.6, 8.4.8.
    """
    x = statistic / 2
    if x == 0:
        return 1.0
    tail, a = (math.erfc(math.sqrt(x)), 0.5) if freedom % 2 else (math.exp(-x), 1.0)
    while a < freedom / 2:
        tail += math.exp(a * math.log(x) - x - math.lgamma(a + 1))
        a += 1
    return min(tail, 1.0)


def gen_buckets_probs_with_ppf(
    ppf: Callable[[float], Any], nbuckets: int
) -> tuple[list[tuple[float, float]], list[float]]:
    """Ranges of equal probability.

    Parameters
    ----------
    ppf : callable of a float
        Inverse of the distribution function.
    nbuckets : int

    Returns
    -------
    buckets : list of (float, float)
    probs : list of float
        Each ``1 / nbuckets``.

    Raises
    ------
    ValueError
        If `nbuckets` is not positive.

    Examples
    --------
    >>> mx.test_utils.gen_buckets_probs_with_ppf(lambda p: 4 * p, 2)
    ([(0.0, 2.0), (2.0, 4.0)], [0.5, 0.5])
    """
    if nbuckets < 1:
        raise ValueError(f"`nbuckets` must be positive, found {nbuckets}")
    ends = [float(ppf(number / nbuckets)) for number in range(nbuckets + 1)]
    return list(zip(ends[:-1], ends[1:], strict=True)), [1.0 / nbuckets] * nbuckets


def chi_square_check(
    generator: Generator, buckets: Buckets, probs: Sequence[float], nsamples: int = 1_000_000
) -> tuple[float, NDArray[Any], NDArray[Any]]:
    """Pearson's chi-squared test of samples.

    Parameters
    ----------
    generator : callable of an int
        Gives that number of samples.
    buckets : sequence of (float, float), or sequence of float
        Half-open ranges, or values of a discrete distribution.
    probs : sequence of float
        Probability of each bucket; their sum is 1.
    nsamples : int

    Returns
    -------
    p : float
        Probability of a larger deviation.
    obs_freq, expected_freq : numpy.ndarray, shape (number of buckets,)
        Counts.

    Raises
    ------
    ValueError
        If there are less than two buckets, numbers of buckets and probabilities differ, or probabilities are not
        positive with the sum 1.

    Examples
    --------
    >>> p, observed, expected = mx.test_utils.chi_square_check(lambda n: np.arange(n) % 2, [0, 1], [0.5, 0.5], 100)
    >>> p, observed.tolist(), expected.tolist()
    (1.0, [50, 50], [50.0, 50.0])
    """
    if len(buckets) != len(probs) or len(buckets) < 2:
        raise ValueError(f"at least 2 buckets and as many probabilities are needed, found {len(buckets)}, {len(probs)}")
    if min(probs) <= 0 or abs(sum(probs) - 1) > 1e-6:
        raise ValueError(f"`probs` must be positive with the sum 1, found {list(probs)}")
    drawn = _samples(generator, nsamples)
    observed = onp.array(
        [
            ((drawn >= bucket[0]) & (drawn < bucket[1])).sum()
            if isinstance(bucket, tuple | list)
            else (drawn == bucket).sum()
            for bucket in buckets
        ]
    )
    expected = onp.asarray(probs, onp.float64) * nsamples
    outside = nsamples - int(observed.sum())
    if outside:
        # Impossible values: no probability at all.
        return 0.0, observed, expected
    statistic = float((onp.square(observed - expected) / expected).sum())
    return _chi_square_tail(statistic, len(probs) - 1), observed, expected


def verify_generator(
    generator: Generator,
    buckets: Buckets,
    probs: Sequence[float],
    nsamples: int = 1_000_000,
    nrepeat: int = 5,
    success_rate: float = 0.2,
    alpha: float = 0.05,
) -> list[float]:
    """Check samples by repeated chi-squared tests.

    Parameters
    ----------
    generator, buckets, probs, nsamples
        See `chi_square_check`.
    nrepeat : int
        Number of tests.
    success_rate : float
        Share of the tests that must succeed.
    alpha : float
        A test succeeds if its probability is larger.

    Returns
    -------
    list of float
        The probability of each test.

    Raises
    ------
    AssertionError
        If fewer tests succeed.

    Examples
    --------
    >>> mx.test_utils.verify_generator(lambda n: np.arange(n) % 2, [0, 1], [0.5, 0.5], nsamples=100, nrepeat=2)
    [1.0, 1.0]
    """
    found = [chi_square_check(generator, buckets, probs, nsamples)[0] for _ in range(nrepeat)]
    succeeded = sum(p > alpha for p in found)
    if succeeded < nrepeat * success_rate:
        raise AssertionError(
            f"{succeeded} of {nrepeat} tests succeeded, at least {nrepeat * success_rate:g} are needed: "
            f"probabilities {found}, alpha {alpha}"
        )
    return found


def mean_check(generator: Generator, mu: float, sigma: float, nsamples: int = 1_000_000) -> bool:
    """Whether the mean of samples is within three standard errors.

    Parameters
    ----------
    generator : callable of an int
    mu, sigma : float
        Mean and standard deviation of the distribution.
    nsamples : int

    Returns
    -------
    bool

    Examples
    --------
    >>> mx.test_utils.mean_check(lambda n: np.arange(n) % 2, mu=0.5, sigma=0.5, nsamples=100)
    True
    """
    return abs(float(_samples(generator, nsamples).mean()) - mu) < _STANDARD_ERRORS * sigma / math.sqrt(nsamples)


def var_check(generator: Generator, sigma: float, nsamples: int = 1_000_000) -> bool:
    """Whether the variance of samples of a normal distribution is within three standard errors.

    Parameters
    ----------
    generator : callable of an int
    sigma : float
        Standard deviation of the distribution.
    nsamples : int

    Returns
    -------
    bool

    Notes
    -----
    The variance of `nsamples` normal samples has the standard error ``sigma**2 * sqrt(2 / (nsamples - 1))``.

    Examples
    --------
    >>> mx.test_utils.var_check(lambda n: np.arange(n) % 2, sigma=0.5, nsamples=100)
    True
    """
    error = sigma**2 * math.sqrt(2.0 / (nsamples - 1))
    return abs(float(_samples(generator, nsamples).var(ddof=1)) - sigma**2) < _STANDARD_ERRORS * error
