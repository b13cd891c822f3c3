"""Distributions of transformed random variables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from mxnet import numpy as np
from mxnet.gluon.probability.distributions.constraint import Constraint
from mxnet.gluon.probability.distributions.distribution import Distribution
from mxnet.gluon.probability.distributions.utils import epsilon, sample_n_shape_converter, sum_last, where
from mxnet.numpy import ndarray

if TYPE_CHECKING:
    from mxnet.gluon.probability.transformation.transformation import Transformation

__all__ = ["TransformedDistribution"]

_Self = TypeVar("_Self", bound="TransformedDistribution")


class _Image(Constraint):
    """What transformations make of the values that another constraint allows, up to rounding."""

    def __init__(self, start: Constraint, transforms: Sequence[Transformation]) -> None:
        self._start = start
        self._transforms = transforms

    def _holds(self, value: ndarray) -> Any:
        x = value
        for transform in reversed(self._transforms):
            x = transform.inv(x)
        allowed = self._start._holds(x)
        # An infinite argument is the end of the real numbers, which has no density.
        is_finite = np.isfinite(x)
        for transform in self._transforms:
            x = transform(x)
        close = np.abs(x - value) <= math.sqrt(epsilon(value)) * np.abs(value)
        close = close & is_finite
        axes = tuple(range(allowed.ndim - close.ndim, 0))
        return allowed & (close.all(axis=axes) if axes else close)

    def _requirement(self) -> str:
        return "what the transformations lead to"


class TransformedDistribution(Distribution):
    """The distribution of ``transforms[-1](...transforms[0](x))``, where x is a sample of another distribution.

    Parameters
    ----------
    base_dist : Distribution
    transforms : Transformation or sequence of Transformation
        The first is applied first. `log_prob` needs bijections, `cdf` and `icdf` monotonic ones.
    validate_args : bool, optional
        See `Distribution`.

    Raises
    ------
    TypeError
        If `base_dist` is no distribution or a transform no transformation.

    Examples
    --------
    >>> from mxnet.gluon.probability import ExpTransform, Normal, TransformedDistribution
    >>> lognormal = TransformedDistribution(Normal(0.0, 1.0), ExpTransform())
    >>> lognormal.cdf(1.0), lognormal.log_prob(1.0)
    (array(0.5), array(-0.9189385))
    """

    def __init__(
        self,
        base_dist: Distribution,
        transforms: Transformation | Sequence[Transformation],
        validate_args: bool | None = None,
    ) -> None:
        name = type(self).__name__
        if not isinstance(base_dist, Distribution):
            raise TypeError(f"{name}: `base_dist` must be a distribution, found {type(base_dist).__name__}")
        given: Any = list(transforms) if isinstance(transforms, list | tuple) else [transforms]
        for transform in given:
            if not hasattr(transform, "log_det_jacobian"):
                raise TypeError(f"{name}: `transforms` must be transformations, found {type(transform).__name__}")
        self._base_dist = base_dist
        self._transforms: list[Transformation] = given
        self.has_grad = base_dist.has_grad
        event_dim = max([base_dist.event_dim, *(transform.event_dim for transform in self._transforms)])
        super().__init__(event_dim=event_dim, validate_args=validate_args)

    @property
    def _some_param(self) -> ndarray:
        return super()._some_param if self._names else self._base_dist._some_param

    def _batch_shape(self) -> tuple[int, ...]:
        if self._names:
            return super()._batch_shape()
        base = self._base_dist
        shape = base._batch_shape()
        # Axes that the transformations join into events are no longer axes of the batch.
        return shape[: len(shape) - (self.event_dim - base.event_dim)]

    def _event_shape(self) -> tuple[int, ...]:
        base = self._base_dist
        shape = base._batch_shape() + base._event_shape()
        return shape[len(shape) - self.event_dim :]

    def broadcast_to(self: _Self, batch_shape: int | tuple[int, ...]) -> _Self:
        new = super().broadcast_to(batch_shape)
        joined = self._event_shape()[: self.event_dim - self._base_dist.event_dim]
        new._base_dist = self._base_dist.broadcast_to(sample_n_shape_converter(batch_shape) + joined)
        return new

    @property
    def support(self) -> Any:
        """Constraint: what the transformations make of the base distribution's support."""
        return _Image(self._base_dist.support, self._transforms)

    def _draw(self, shape: tuple[int, ...]) -> ndarray:
        joined = self._event_shape()[: self.event_dim - self._base_dist.event_dim]
        x = self._base_dist._draw(shape + joined)
        for transform in self._transforms:
            x = transform(x)
        return x

    def log_prob(self, value: Any) -> ndarray:
        if self.event_dim > 0 or type(self)._log_prob is not TransformedDistribution._log_prob:
            return super().log_prob(value)
        found = self._value(value)
        support = self.support
        if self._validate_args:
            self._checked(support, found, "value")
        known = support._holds(found) | (found != found)
        inner = np.full_like(found, self._base_dist._inner_value)
        for transform in self._transforms:
            inner = transform(inner)
        result = self._log_prob(where(known, found, inner))
        return where(known, result, np.full_like(result, -math.inf))

    def _log_prob(self, value: ndarray) -> ndarray:
        slopes: Any = 0.0
        for transform in reversed(self._transforms):
            x = transform.inv(value)
            slopes = slopes + sum_last(transform.log_det_jacobian(x, value), self.event_dim - transform.event_dim)
            value = x
        found: ndarray = sum_last(self._base_dist.log_prob(value), self.event_dim - self._base_dist.event_dim) - slopes
        return found

    def _sign(self) -> Any:
        found: Any = 1
        for transform in self._transforms:
            found = found * transform.sign
        return found

    @staticmethod
    def _complement_if_decreasing(sign: Any, p: ndarray) -> ndarray:
        """``1 - p`` where the transformations decrease."""
        if isinstance(sign, ndarray):
            return where(sign > 0, p, 1 - p)
        return p if sign > 0 else 1 - p

    def cdf(self, value: Any) -> ndarray:
        sign, x = self._sign(), self._value(value)
        for transform in reversed(self._transforms):
            x = transform.inv(x)
        return self._complement_if_decreasing(sign, self._base_dist.cdf(x))

    def icdf(self, value: Any) -> ndarray:
        x = self._base_dist.icdf(self._complement_if_decreasing(self._sign(), self._value(value)))
        for transform in self._transforms:
            x = transform(x)
        return x
