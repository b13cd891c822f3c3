"""Transformations from all real numbers to what a constraint allows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mxnet.gluon.probability.distributions.constraint import (
    Constraint,
    GreaterThan,
    GreaterThanEq,
    HalfOpenInterval,
    Interval,
    LessThan,
    LessThanEq,
    NonNegative,
    OpenInterval,
    Positive,
    Real,
    Simplex,
    UnitInterval,
)
from mxnet.gluon.probability.transformation.transformation import (
    AffineTransform,
    ComposeTransform,
    ExpTransform,
    SigmoidTransform,
    SoftmaxTransform,
    Transformation,
)

__all__ = ["biject_to", "domain_map", "transform_to"]

Factory = Callable[[Any], Transformation]


class domain_map:  # noqa: N801
    """Table of transformations from all real numbers to what constraints allow.

    Called with a constraint it gives the transformation. There are two such tables: `biject_to` has bijections, and
    `transform_to` also others.

    Examples
    --------
    >>> from mxnet.gluon.probability import biject_to, domain_map
    >>> from mxnet.gluon.probability.distributions.constraint import GreaterThan
    >>> isinstance(biject_to, domain_map)
    True
    >>> biject_to(GreaterThan(3.0))(np.array([0.0]))
    array([4.])
    """

    def __init__(self) -> None:
        self._factories: dict[type[Constraint], Factory] = {}

    def register(self, constraint: Constraint | type[Constraint], factory: Factory | None = None) -> Any:
        """Enter a transformation.

        Parameters
        ----------
        constraint : Constraint or class
            What the transformation leads to: a class of constraints, or an object of it.
        factory : callable of a Constraint, optional
            Gives the transformation. Without it the result is a decorator.

        Returns
        -------
        callable
            The factory, or the decorator.

        Raises
        ------
        TypeError
            If `constraint` is no constraint.
        """
        kind: Any = type(constraint) if isinstance(constraint, Constraint) else constraint
        if not (isinstance(kind, type) and issubclass(kind, Constraint)):
            raise TypeError(f"domain_map.register: `constraint` must be a constraint or its class, found {kind!r}")
        if factory is None:
            return lambda given: self.register(kind, given)
        self._factories[kind] = factory
        return factory

    def __call__(self, constraint: Constraint) -> Transformation:
        """The transformation to what a constraint allows.

        Parameters
        ----------
        constraint : Constraint

        Returns
        -------
        Transformation

        Raises
        ------
        NotImplementedError
            If none is registered for its class.
        """
        factory = self._factories.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"domain_map: no transformation to {type(constraint).__name__} is registered")
        return factory(constraint)


biject_to = domain_map()
transform_to = domain_map()


def _both(*kinds: type[Constraint]) -> Callable[[Factory], Factory]:
    def enter(factory: Factory) -> Factory:
        for kind in kinds:
            biject_to.register(kind, factory)
            transform_to.register(kind, factory)
        return factory

    return enter


@_both(Real)
def _to_real(constraint: Real) -> Transformation:
    return ComposeTransform([])


@_both(Positive, NonNegative)
def _to_positive(constraint: Constraint) -> Transformation:
    return ExpTransform()


@_both(GreaterThan, GreaterThanEq)
def _to_greater(constraint: GreaterThan) -> Transformation:
    return ComposeTransform([ExpTransform(), AffineTransform(constraint._lower_bound, 1)])


@_both(LessThan, LessThanEq)
def _to_less(constraint: LessThan) -> Transformation:
    return ComposeTransform([ExpTransform(), AffineTransform(constraint._upper_bound, -1)])


@_both(UnitInterval)
def _to_unit_interval(constraint: UnitInterval) -> Transformation:
    return SigmoidTransform()


@_both(Interval, OpenInterval, HalfOpenInterval)
def _to_interval(constraint: Interval) -> Transformation:
    low, high = constraint._lower_bound, constraint._upper_bound
    return ComposeTransform([SigmoidTransform(), AffineTransform(low, high - low)])


def _to_simplex(constraint: Simplex) -> Transformation:
    return SoftmaxTransform()


transform_to.register(Simplex, _to_simplex)
