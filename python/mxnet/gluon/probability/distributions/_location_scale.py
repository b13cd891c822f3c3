"""Families of distributions that shift and scale a standard one."""

from __future__ import annotations

from typing import Any

from mxnet.gluon.probability.distributions.constraint import Positive, Real
from mxnet.gluon.probability.distributions.distribution import Distribution
from mxnet.numpy import ndarray


class LocationScale(Distribution):
    """A distribution of real numbers with a location and a scale.

    Parameters
    ----------
    loc : ndarray or float
    scale : ndarray or float
        Above 0.
    validate_args : bool, optional
        See `Distribution`.
    """

    has_grad = True
    arg_constraints = {"loc": Real(), "scale": Positive()}
    support = Real()
    loc: ndarray
    scale: ndarray

    def __init__(
        self, loc: ndarray | float = 0.0, scale: ndarray | float = 1.0, validate_args: bool | None = None
    ) -> None:
        self._store(loc=loc, scale=scale)
        super().__init__(event_dim=0, validate_args=validate_args)

    def _standard(self, value: Any) -> ndarray:
        """Values of the standard distribution, which has location 0 and scale 1."""
        return (self._value(value) - self.loc) / self.scale
