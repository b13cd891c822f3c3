"""Dirichlet distribution."""

from __future__ import annotations

from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.gluon.probability.distributions.constraint import Positive, Simplex
from mxnet.gluon.probability.distributions.exp_family import ExponentialFamily
from mxnet.gluon.probability.distributions.utils import xlogy
from mxnet.numpy import ndarray

__all__ = ["Dirichlet"]


class Dirichlet(ExponentialFamily):
    """Dirichlet distribution, of a density proportional to ``prod(x**(alpha - 1))`` where ``sum(x) == 1``.

    `log_prob` takes for granted that values sum to 1 unless `validate_args` is on.

    Parameters
    ----------
    alpha : ndarray, shape (..., k)
        Above 0.
    validate_args : bool, optional
        See `Distribution`.

    Examples
    --------
    >>> from mxnet.gluon.probability import Dirichlet
    >>> Dirichlet(np.array([1.0, 3.0])).mean
    array([0.25, 0.75])
    """

    has_grad = True
    arg_constraints = {"alpha": Positive()}
    support = Simplex()
    _param_axes = {"alpha": 1}
    alpha: ndarray

    def __init__(self, alpha: ndarray, validate_args: bool | None = None) -> None:
        self._store(alpha=alpha)
        super().__init__(event_dim=1, validate_args=validate_args)

    def _event_shape(self) -> tuple[int, ...]:
        return (self.alpha.shape[-1],)

    def _log_prob(self, value: ndarray) -> ndarray:
        return xlogy(self.alpha - 1, value).sum(axis=-1) - self._log_normalizer(self.alpha)

    def _log_normalizer(self, *natural_params: ndarray) -> ndarray:
        (alpha,) = natural_params
        return npx.gammaln(alpha).sum(axis=-1) - npx.gammaln(alpha.sum(axis=-1))

    def _draw(self, shape: tuple[int, ...]) -> ndarray:
        # A gamma number of exponent a is one of a + 1 times u**(1 / a). The logarithms of both do not underflow.
        size = shape + self._event_shape()
        larger = np.random.gamma(self.alpha + 1, 1.0, size)
        exponential = np.random.exponential(np.ones_like(self.alpha), size)
        return npx.softmax(np.log(larger) - exponential / self.alpha, axis=-1)

    @property
    def mean(self) -> ndarray:
        return self.alpha / self.alpha.sum(axis=-1, keepdims=True)

    @property
    def variance(self) -> ndarray:
        total = self.alpha.sum(axis=-1, keepdims=True)
        return self.alpha * (total - self.alpha) / (total**2 * (total + 1))

    def entropy(self) -> ndarray:
        alpha, total = self.alpha, self.alpha.sum(axis=-1)
        spread = (total - alpha.shape[-1]) * npx.digamma(total)
        return self._log_normalizer(alpha) + spread - ((alpha - 1) * npx.digamma(alpha)).sum(axis=-1)
