"""What distributions share that have a probability or its logit as a parameter."""

from __future__ import annotations

from typing import Any

from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.gluon.probability.distributions.distribution import Distribution
from mxnet.gluon.probability.distributions.utils import (
    logit2prob,
    one_of,
    prob2logit,
    softplus,
    where,
    xlog1py,
    xlogy,
)
from mxnet.numpy import ndarray

__all__: list[str] = []


class ProbOrLogit(Distribution):
    """Distributions with a probability, or the logit of one, as a parameter."""

    _binary = True
    _prob: ndarray
    _logit: ndarray

    def _store_either(self, prob: Any, logit: Any, **others: Any) -> None:
        self._store(**one_of(type(self).__name__, prob, logit), **others)

    @property
    def prob(self) -> ndarray:
        """ndarray: probability; computed from the logit if that was given."""
        return self._prob if "_prob" in self._names else logit2prob(self._logit, self._binary)

    @property
    def logit(self) -> ndarray:
        """ndarray: ``log(prob / (1 - prob))``; computed from the probability if that was given."""
        return self._logit if "_logit" in self._names else prob2logit(self._prob, self._binary)

    @property
    def _rest(self) -> ndarray:
        """``1 - prob``, which keeps its digits for large logits."""
        return 1 - self._prob if "_prob" in self._names else npx.sigmoid(-self._logit)

    def _betainc_of_rest(self, a: ndarray, b: ndarray) -> ndarray:
        """``betainc(a, b, 1 - prob)``, computed from the smaller of ``prob`` and ``1 - prob`` if logits are given."""
        if "_prob" in self._names:
            return npx.betaincc(b, a, self._prob)
        is_high = self._logit > 0
        half = np.full_like(self._logit, 0.5)
        of_rest = npx.betainc(a, b, where(is_high, self._rest, half))
        of_prob = npx.betaincc(b, a, where(is_high, half, self.prob))
        return where(is_high, of_rest, of_prob)

    def _times_log_prob(self, x: ndarray) -> ndarray:
        """``x * log(prob)``."""
        return xlogy(x, self._prob) if "_prob" in self._names else -x * softplus(-self._logit)

    def _times_log_rest(self, x: ndarray) -> ndarray:
        """``x * log(1 - prob)``."""
        return xlog1py(x, -self._prob) if "_prob" in self._names else -x * softplus(self._logit)


class ClassProbOrLogit(ProbOrLogit):
    """Distributions with the probabilities of classes, or their logits, in the last axis."""

    _binary = False
    _param_axes = {"prob": 1, "logit": 1}
    num_events: int

    def _store_classes(self, num_events: int, prob: Any, logit: Any, **others: Any) -> None:
        name = type(self).__name__
        if isinstance(num_events, bool) or not hasattr(num_events, "__index__"):
            raise TypeError(f"{name}: `num_events` must be an int, found {num_events!r}")
        self.num_events = num_events.__index__()
        if self.num_events < 1:
            raise ValueError(f"{name}: `num_events` must be at least 1, found {self.num_events}")
        self._store_either(prob, logit, **others)
        if self._some_param.shape[-1] != self.num_events:
            argument = self._names[0].lstrip("_")
            raise ValueError(
                f"{name}: the last axis of `{argument}` must have length `num_events` {self.num_events}, "
                f"found shape {self._some_param.shape}"
            )

    def _event_shape(self) -> tuple[int, ...]:
        return (self.num_events,) if self.event_dim else ()

    @property
    def logit(self) -> ndarray:
        """ndarray, shape (..., num_events): ``log(prob)`` up to a constant for each row."""
        return super().logit

    def _sum_log_prob(self, counts: ndarray) -> ndarray:
        """``sum(counts * log(prob))`` over the classes."""
        if "_prob" in self._names:
            return xlogy(counts, self._prob).sum(axis=-1)
        return (counts * npx.log_softmax(self._logit, axis=-1)).sum(axis=-1)

    def _class_entropy(self) -> ndarray:
        return -self._sum_log_prob(self.prob)

    def _draw_classes(self, shape: tuple[int, ...]) -> ndarray:
        found: ndarray = npx.random.categorical(np.broadcast_to(self.prob, (*shape, self.num_events)))
        return found
