"""One-hot categorical distribution."""

from __future__ import annotations

from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.gluon.probability.distributions.constraint import Constraint, Real, Simplex
from mxnet.gluon.probability.distributions.prob_or_logit import ClassProbOrLogit
from mxnet.numpy import ndarray

__all__ = ["OneHotCategorical"]


class _OneHot(Constraint):
    """One 1 in the last axis, zeros else."""

    def _holds(self, value: ndarray) -> ndarray:
        return ((value == 0) | (value == 1)).all(axis=-1) & (value.sum(axis=-1) == 1)

    def _requirement(self) -> str:
        return "one 1 and zeros along the last axis"


class OneHotCategorical(ClassProbOrLogit):
    """Categorical distribution of one-hot vectors.

    Parameters
    ----------
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
    >>> from mxnet.gluon.probability import OneHotCategorical
    >>> dice = OneHotCategorical(2, prob=np.array([0.25, 0.75]))
    >>> dice.log_prob(np.array([0.0, 1.0]))
    array(-0.28768206)
    >>> dice.enumerate_support()
    array([[1., 0.],
           [0., 1.]])
    """

    arg_constraints = {"prob": Simplex(), "logit": Real()}
    support = _OneHot()
    has_enumerate_support = True

    def __init__(
        self,
        num_events: int,
        prob: ndarray | None = None,
        logit: ndarray | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._store_classes(num_events, prob, logit)
        super().__init__(event_dim=1, validate_args=validate_args)

    def _log_prob(self, value: ndarray) -> ndarray:
        return self._sum_log_prob(value)

    def _draw(self, shape: tuple[int, ...]) -> ndarray:
        return npx.one_hot(self._draw_classes(shape), self.num_events, dtype=self._some_param.dtype)

    def enumerate_support(self) -> ndarray:
        """All classes as vectors.

        Returns
        -------
        ndarray, shape ``(num_events, *batch_shape, num_events)``
        """
        batch = self._batch_shape()
        classes = np.eye(self.num_events, dtype=self._some_param.dtype, device=self._some_param.device)
        shape = (self.num_events,) + (1,) * len(batch) + (self.num_events,)
        return np.broadcast_to(classes.reshape(shape), (self.num_events, *batch, self.num_events))

    @property
    def mean(self) -> ndarray:
        return self.prob

    @property
    def variance(self) -> ndarray:
        prob = self.prob
        return prob * (1 - prob)

    def entropy(self) -> ndarray:
        return self._class_entropy()
