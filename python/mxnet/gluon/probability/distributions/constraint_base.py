"""What constraints have in common, and constraints that depend on an object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as onp

from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.numpy import ndarray

__all__ = ["Constraint", "dependent_property", "is_dependent"]


class Constraint:
    """A condition on the values of an array.

    A subclass defines `_holds`, or `check` as a whole.

    Examples
    --------
    >>> from mxnet.gluon.probability.distributions import constraint
    >>> constraint.Positive().check(np.array([1.0, 2.0]))
    array([1., 2.])
    >>> constraint.Positive().check(np.array([1.0, -2.0]))
    Traceback (most recent call last):
    ValueError: Positive: values must be greater than 0, found -2.0
    """

    def _holds(self, value: ndarray) -> Any:
        """Whether each value, or each event in the last axes, is allowed: an array of bool."""
        raise NotImplementedError(f"{type(self).__name__} must define _holds or check")

    def _requirement(self) -> str:
        """What values must be, as the end of a sentence."""
        return "allowed"

    def check(self, value: Any) -> Any:
        """Return the value, or raise if it is not allowed.

        Parameters
        ----------
        value : ndarray or float
            The values are read, so the call waits for them.

        Returns
        -------
        ndarray or float
            `value`.

        Raises
        ------
        ValueError
            With a value that is not allowed.
        """
        array = np.asarray(value)
        allowed = np.asarray(self._holds(array))
        message = f"{type(self).__name__}: values must be {self._requirement()}"
        try:
            npx.constraint_check(allowed, message)
        except ValueError:
            raise ValueError(f"{message}, found {_first_bad(array, allowed)}") from None
        return value


def _first_bad(array: ndarray, allowed: ndarray) -> str:
    """The first value, or event, that is not allowed."""
    found, is_bad = array.asnumpy(), ~allowed.asnumpy()
    if is_bad.shape != found.shape[: is_bad.ndim]:
        found = onp.broadcast_to(found, is_bad.shape)  # bounds have more axes than the value
    event = found[tuple(onp.argwhere(is_bad)[0])]
    # The shortest digits that tell a number from others of its dtype.
    return str(event.astype("U").astype("float64").tolist() if event.dtype.kind == "f" else event.tolist())


class _Dependent(Constraint):
    """A constraint that is known only when other values are."""

    def check(self, value: Any) -> Any:
        """Refuse to check: there is no condition yet.

        Parameters
        ----------
        value : ndarray or float

        Raises
        ------
        ValueError
            Always.
        """
        raise ValueError("the constraint depends on other parameters; read it from an object, not from its class")


def is_dependent(constraint: Any) -> bool:
    """Whether a constraint is known only when other values are.

    Parameters
    ----------
    constraint : Constraint

    Returns
    -------
    bool

    Examples
    --------
    >>> from mxnet.gluon import probability
    >>> from mxnet.gluon.probability.distributions import constraint
    >>> constraint.is_dependent(probability.Uniform.support), constraint.is_dependent(probability.Normal.support)
    (True, False)
    """
    return isinstance(constraint, _Dependent)


class dependent_property(property, _Dependent):  # noqa: N801
    """A property that gives a constraint which depends on the object.

    Parameters
    ----------
    fget, fset, fdel : callable, optional
    doc : str, optional
        As of Python's `property`.

    Examples
    --------
    >>> from mxnet.gluon.probability.distributions import constraint
    >>> class Dice:
    ...     sides = 6
    ...     @constraint.dependent_property
    ...     def support(self):
    ...         return constraint.IntegerInterval(1, self.sides)
    >>> constraint.is_dependent(Dice.support), Dice().support.check(6)
    (True, 6)
    """

    def __init__(
        self,
        fget: Callable[[Any], Any] | None = None,
        fset: Callable[[Any, Any], None] | None = None,
        fdel: Callable[[Any], None] | None = None,
        doc: str | None = None,
    ) -> None:
        super().__init__(fget, fset, fdel, doc)
