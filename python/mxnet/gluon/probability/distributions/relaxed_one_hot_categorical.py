"""Relaxed one-hot categorical distribution."""

from __future__ import annotations

import math

from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.gluon.probability.distributions.constraint import Positive, Real, Simplex
from mxnet.gluon.probability.distributions.distribution import Distribution
from mxnet.gluon.probability.distributions.prob_or_logit import ClassProbOrLogit
from mxnet.gluon.probability.distributions.transformed_distribution import TransformedDistribution
from mxnet.gluon.probability.distributions.utils import smallest_normal
from mxnet.gluon.probability.transformation.transformation import ExpTransform
from mxnet.numpy import ndarray

__all__ = ["RelaxedOneHotCategorical"]


class _LogConcrete(Distribution):
    """The distribution of the logarithms of relaxed one-hot vectors."""

    has_grad = True
    support = Real()
    _param_axes = {"logit": 1}
    T: ndarray
    _logit: ndarray

    def __init__(self, temperature: ndarray, logit: ndarray) -> None:
        self._store(_logit=logit, T=temperature)
        super().__init__(event_dim=1, validate_args=False)

    def _event_shape(self) -> tuple[int, ...]:
        return (self._logit.shape[-1],)

    def _log_prob(self, value: ndarray) -> ndarray:
        num_events = self._logit.shape[-1]
        scores = self._logit - self.T[..., None] * value
        constant = math.lgamma(num_events) + (num_events - 1) * np.log(self.T)
        return constant + npx.log_softmax(scores, axis=-1).sum(axis=-1)

    def _draw(self, shape: tuple[int, ...]) -> ndarray:
        noisy = np.random.gumbel(self._logit, np.ones_like(self._logit), shape + self._event_shape())
        return npx.log_softmax(noisy / self.T[..., None], axis=-1)


class RelaxedOneHotCategorical(ClassProbOrLogit, TransformedDistribution):
    """Relaxed categorical distribution: vectors of sum 1 that approach one-hot vectors as the temperature goes to 0.

    Source: Maddison, Mnih and Teh, "The Concrete Distribution", ICLR 2017.

    Parameters
    ----------
    T : ndarray or float
        Temperature, above 0.
    num_events : int
        Number of classes.
    prob : ndarray, shape (..., num_events), optional
        Probabilities of the classes, with sum 1. Exactly one of `prob` and `logit` is given.
    logit : ndarray, shape (..., num_events), optional
        Their logarithms up to a constant.
    validate_args : bool, optional
        See `Distribution`.

    Examples
    --------
    >>> from mxnet.gluon.probability import RelaxedOneHotCategorical
    >>> relaxed = RelaxedOneHotCategorical(0.5, 3, logit=np.zeros((2, 3)))
    >>> relaxed.sample().shape, relaxed.log_prob(np.full((2, 3), 1 / 3)).shape
    ((2, 3), (2,))
    """

    has_grad = True
    arg_constraints = {"T": Positive(), "prob": Simplex(), "logit": Real()}
    support = Simplex()
    _T: ndarray

    def __init__(
        self,
        T: ndarray | float,
        num_events: int,
        prob: ndarray | None = None,
        logit: ndarray | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._store_classes(num_events, prob, logit, _T=T)
        base = _LogConcrete(self._T, self.logit)
        TransformedDistribution.__init__(self, base, ExpTransform(), validate_args=validate_args)

    @property
    def T(self) -> ndarray:
        """ndarray: temperature."""
        return self._T

    def _log_prob(self, value: ndarray) -> ndarray:
        return TransformedDistribution._log_prob(self, value)

    def _draw(self, shape: tuple[int, ...]) -> ndarray:
        sample = TransformedDistribution._draw(self, shape)
        # An element that rounds to 0 would have no finite log_prob.
        return np.maximum(sample, smallest_normal(sample))
