"""Expectations of logarithms of factorials, which the entropies of counts consist of.

Both are integrals over ``t`` from 0 to infinity in which samples occur only as ``E[exp(-t * x)]``, which has a closed
form. They follow from ``log(gamma(z + r) / gamma(r)) = integral of
(z * exp(-t) - exp(-r * t) * (1 - exp(-z * t)) / (1 - exp(-t))) / t``. The trapezoidal rule in ``log(t)`` computes them.
Its error decreases as ``exp(-pi**2 / step)``, because the integrands have no singularity nearer to the axis than
``2 * pi * 1j``.

Source: Knessl, "Integral representations and asymptotic expansions for Shannon and Renyi entropies", Applied
Mathematics Letters 11 (1998).
"""

from __future__ import annotations

from mxnet import numpy as np
from mxnet.numpy import ndarray

__all__: list[str] = []

# exp(-pi**2 / 0.25) is 7e-18.
_STEP = 0.25
# Below exp(-60) there is a share of about exp(-60) * mean, above exp(3.5) one of exp(-33) of a term that is below 1/33.
_LOWEST, _HIGHEST = -60.0, 3.5
# With powers of exp(-r * t), where r may be small: the share above exp(20) is below 1e-15 for r from 1e-7.
_HIGHEST_OF_POWERS = 20.0


def mean_log_ways(n: ndarray, prob: ndarray) -> ndarray:
    """Expectation of ``log(n! / (x[0]! * ... * x[k - 1]!))`` for multinomial counts `x`.

    Parameters
    ----------
    n : ndarray, shape (...), float64
        Number of trials.
    prob : ndarray, shape (..., k), float64
        Probabilities of the classes, with sum 1.

    Returns
    -------
    ndarray, shape (...)
        With an error of about ``n * 1e-14``: `prob` sums to 1 up to 1e-16, and `t` covers 60 powers of e.
    """
    t = np.exp(np.arange(_LOWEST, _HIGHEST, _STEP, dtype="float64", device=n.device))
    rest = -np.expm1(-t)
    powers = np.expm1(n[..., None, None] * np.log1p(-prob[..., None] * rest)).sum(axis=-2)
    integrand = np.exp(-t) / rest * (np.expm1(-n[..., None] * t) - powers)
    return integrand.sum(axis=-1) * _STEP


def mean_log_choices(n: ndarray, odds: ndarray) -> ndarray:
    """Expectation of ``log(gamma(x + n) / (gamma(n) * x!))`` for a negative binomial count `x`.

    Parameters
    ----------
    n : ndarray, float64
        Number of failures.
    odds : ndarray, float64
        ``prob / (1 - prob)``, where `prob` is the probability of a success.

    Returns
    -------
    ndarray
        With an error of about 1e-15 of itself.
    """
    t = np.exp(np.arange(_LOWEST, _HIGHEST_OF_POWERS, _STEP, dtype="float64", device=n.device))
    rest = -np.expm1(-t)
    n = n[..., None]
    some = -np.expm1(-n * np.log1p(odds[..., None] * rest))
    integrand = (np.exp(-t) - np.exp(-n * t)) * some / rest
    return integrand.sum(axis=-1) * _STEP
