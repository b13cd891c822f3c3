"""Categorical distribution."""

from __future__ import annotations

from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.gluon.probability.distributions.constraint import IntegerHalfOpenInterval, Real, Simplex, dependent_property
from mxnet.gluon.probability.distributions.prob_or_logit import ClassProbOrLogit
from mxnet.numpy import ndarray

__all__ = ["Categorical"]


class Categorical(ClassProbOrLogit):
    """Categorical distribution: the index of a class, from 0.

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
    >>> from mxnet.gluon.probability import Categorical
    >>> dice = Categorical(2, prob=np.array([0.25, 0.75]))
    >>> dice.log_prob(np.array([0, 1]))
    array([-1.3862944 , -0.28768206])
    >>> dice.enumerate_support()
    array([0, 1], dtype=int32)
    """

    arg_constraints = {"prob": Simplex(), "logit": Real()}
    _inner_value = 0.0
    has_enumerate_support = True

    def __init__(
        self,
        num_events: int,
        prob: ndarray | None = None,
        logit: ndarray | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._store_classes(num_events, prob, logit)
        super().__init__(event_dim=0, validate_args=validate_args)

    @dependent_property
    def support(self) -> IntegerHalfOpenInterval:
        """Constraint: integers from 0 to below `num_events`."""
        return IntegerHalfOpenInterval(0, self.num_events)

    def _log_prob(self, value: ndarray) -> ndarray:
        table = self._prob if "_prob" in self._names else npx.log_softmax(self._logit, axis=-1)
        shape = np.broadcast_shapes(value.shape, table.shape[:-1])
        picked = npx.pick(np.broadcast_to(table, (*shape, self.num_events)), np.broadcast_to(value, shape))
        return np.log(picked) if "_prob" in self._names else picked

    def _draw(self, shape: tuple[int, ...]) -> ndarray:
        return self._draw_classes(shape)

    def enumerate_support(self) -> ndarray:
        """All classes.

        Returns
        -------
        ndarray, shape ``(num_events, *batch_shape)``
            int32, as samples.
        """
        classes = np.arange(self.num_events, dtype="int32", device=self._some_param.device)
        batch = self._batch_shape()
        return np.broadcast_to(classes.reshape((-1,) + (1,) * len(batch)), (self.num_events, *batch))

    def entropy(self) -> ndarray:
        return self._class_entropy()
