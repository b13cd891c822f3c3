"""Multinomial distribution."""

from __future__ import annotations

from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.gluon.probability.distributions.constraint import Constraint, Real, Simplex, dependent_property
from mxnet.gluon.probability.distributions.count_entropies import mean_log_ways
from mxnet.gluon.probability.distributions.prob_or_logit import ClassProbOrLogit
from mxnet.gluon.probability.distributions.utils import is_floating, where
from mxnet.numpy import ndarray

__all__ = ["Multinomial"]


class _Counts(Constraint):
    """Integers from 0 on with a given sum along the last axis."""

    def __init__(self, total: int) -> None:
        self._total = total

    def _holds(self, value: ndarray) -> ndarray:
        whole = np.floor(value) == value if is_floating(value) else value == value
        return (whole & (value >= 0)).all(axis=-1) & (value.sum(axis=-1) == self._total)

    def _requirement(self) -> str:
        return f"integers at least 0 with sum {self._total} along the last axis"


class Multinomial(ClassProbOrLogit):
    """Multinomial distribution: how often each class occurs in `total_count` trials.

    Parameters
    ----------
    num_events : int
        Number of classes.
    prob : ndarray, shape (..., num_events), optional
        Probabilities of the classes, with sum 1. Exactly one of `prob` and `logit` is given.
    logit : ndarray, shape (..., num_events), optional
        Their logarithms up to a constant.
    total_count : int
        Number of trials.
    validate_args : bool, optional
        See `Distribution`.

    Examples
    --------
    >>> from mxnet.gluon.probability import Multinomial
    >>> dice = Multinomial(2, prob=np.array([0.5, 0.5]), total_count=2)
    >>> dice.log_prob(np.array([1.0, 1.0]))
    array(-0.6931472)
    """

    arg_constraints = {"prob": Simplex(), "logit": Real()}

    def __init__(
        self,
        num_events: int,
        prob: ndarray | None = None,
        logit: ndarray | None = None,
        total_count: int = 1,
        validate_args: bool | None = None,
    ) -> None:
        self._store_classes(num_events, prob, logit)
        if isinstance(total_count, bool) or not hasattr(total_count, "__index__"):
            raise TypeError(f"Multinomial: `total_count` must be an int, found {total_count!r}")
        if total_count < 0:
            raise ValueError(f"Multinomial: `total_count` must be at least 0, found {total_count}")
        self.total_count = total_count
        super().__init__(event_dim=1, validate_args=validate_args)

    @dependent_property
    def support(self) -> Constraint:
        """Constraint: integers at least 0 with the sum `total_count` along the last axis."""
        return _Counts(self.total_count)

    def _log_prob(self, value: ndarray) -> ndarray:
        known = _Counts(self.total_count)._holds(value)
        inner = where(known[..., None], value, np.zeros_like(value))
        ways = npx.gammaln(inner.sum(axis=-1) + 1) - npx.gammaln(inner + 1).sum(axis=-1)
        result = ways + self._sum_log_prob(inner)
        return where(known, result, np.full_like(result, -float("inf")))

    def _draw(self, shape: tuple[int, ...]) -> ndarray:
        # Rounding of float32 probabilities would leave sums above 1.
        prob = self.prob.detach().astype("float64")
        counts = np.random.multinomial(self.total_count, prob / prob.sum(axis=-1, keepdims=True), shape)
        found: ndarray = counts.astype(self._some_param.dtype)
        return found

    @property
    def mean(self) -> ndarray:
        return self.total_count * self.prob

    @property
    def variance(self) -> ndarray:
        prob = self.prob
        return self.total_count * prob * (1 - prob)

    def entropy(self) -> ndarray:
        """Expectation of ``-log_prob(sample)``.

        Returns
        -------
        ndarray, shape batch_shape
            In nats.

        Notes
        -----
        An integral that is computed in float64, with an error of about ``total_count * 1e-14`` (see
        `count_entropies.py`).
        """
        exact = self._in_float64()
        prob = exact.prob
        prob = prob / prob.sum(axis=-1, keepdims=True)
        total = np.full_like(prob[..., 0], self.total_count)
        found = self.total_count * exact._class_entropy() - mean_log_ways(total, prob)
        return found.astype(self._some_param.dtype)
