"""Distributions whose batches are taken for events."""

from __future__ import annotations

from typing import Any, TypeVar

from mxnet.gluon.probability.distributions.constraint import Constraint, dependent_property
from mxnet.gluon.probability.distributions.distribution import Distribution
from mxnet.gluon.probability.distributions.utils import sample_n_shape_converter, sum_last
from mxnet.numpy import ndarray

__all__ = ["Independent"]

_Self = TypeVar("_Self", bound="Independent")


class _Joint(Constraint):
    """What another constraint allows in all of the last axes."""

    def __init__(self, part: Constraint, num_axes: int) -> None:
        self._part = part
        self._num_axes = num_axes

    def _holds(self, value: ndarray) -> Any:
        allowed = self._part._holds(value)
        return allowed.all(axis=tuple(range(-self._num_axes, 0))) if self._num_axes else allowed

    def _requirement(self) -> str:
        return self._part._requirement()


class Independent(Distribution):
    """Another distribution whose last batch axes count as axes of the event.

    Parameters
    ----------
    base_distribution : Distribution
    reinterpreted_batch_ndims : int
        Number of axes; at most that of the batch shape.
    validate_args : bool, optional
        See `Distribution`.

    Raises
    ------
    TypeError
        If `base_distribution` is no distribution.
    ValueError
        If the batch shape has fewer axes.

    Examples
    --------
    >>> from mxnet.gluon.probability import Independent, Normal
    >>> vectors = Independent(Normal(np.zeros((2, 3)), 1.0), 1)
    >>> vectors.sample().shape, vectors.log_prob(np.zeros((2, 3))).shape
    ((2, 3), (2,))
    """

    def __init__(
        self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ) -> None:
        given: Any = base_distribution
        if not isinstance(given, Distribution):
            raise TypeError(f"Independent: `base_distribution` must be a distribution, found {type(given).__name__}")
        batch = base_distribution._batch_shape()
        if not 0 <= reinterpreted_batch_ndims <= len(batch):
            raise ValueError(
                f"Independent: `reinterpreted_batch_ndims` must be from 0 to the number of axes of the batch shape "
                f"{batch}, found {reinterpreted_batch_ndims}"
            )
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        self.has_grad = base_distribution.has_grad
        self.has_enumerate_support = base_distribution.has_enumerate_support and reinterpreted_batch_ndims == 0
        event_dim = base_distribution.event_dim + reinterpreted_batch_ndims
        super().__init__(event_dim=event_dim, validate_args=validate_args)

    @property
    def _some_param(self) -> ndarray:
        return self.base_dist._some_param

    def _joined(self) -> tuple[int, ...]:
        """The axes of the base's batch that belong to the event."""
        batch = self.base_dist._batch_shape()
        return batch[len(batch) - self.reinterpreted_batch_ndims :]

    def _batch_shape(self) -> tuple[int, ...]:
        batch = self.base_dist._batch_shape()
        return batch[: len(batch) - self.reinterpreted_batch_ndims]

    def _event_shape(self) -> tuple[int, ...]:
        return self._joined() + self.base_dist._event_shape()

    def broadcast_to(self: _Self, batch_shape: int | tuple[int, ...]) -> _Self:
        new = super().broadcast_to(batch_shape)
        new.base_dist = self.base_dist.broadcast_to(sample_n_shape_converter(batch_shape) + self._joined())
        return new

    @dependent_property
    def support(self) -> Constraint:
        """Constraint: that of the base distribution, in all axes of the event."""
        return _Joint(self.base_dist.support, self.reinterpreted_batch_ndims)

    def log_prob(self, value: Any) -> ndarray:
        found = self._value(value)
        if self._validate_args:
            self._checked(self.support, found, "value")
        return sum_last(self.base_dist.log_prob(found), self.reinterpreted_batch_ndims)

    def _draw(self, shape: tuple[int, ...]) -> ndarray:
        return self.base_dist._draw(shape + self._joined())

    def enumerate_support(self) -> ndarray:
        """All values, if no axes of the batch are joined.

        Returns
        -------
        ndarray, shape ``(n,) + batch_shape + event_shape``

        Raises
        ------
        NotImplementedError
            If axes are joined: the number of combinations has no bound.
        """
        if self.reinterpreted_batch_ndims:
            raise NotImplementedError("Independent.enumerate_support: combinations of joined axes are not listed")
        return self.base_dist.enumerate_support()

    @property
    def mean(self) -> ndarray:
        return self.base_dist.mean

    @property
    def variance(self) -> ndarray:
        return self.base_dist.variance

    def entropy(self) -> ndarray:
        return sum_last(self.base_dist.entropy(), self.reinterpreted_batch_ndims)
