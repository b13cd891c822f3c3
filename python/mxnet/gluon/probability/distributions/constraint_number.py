"""Constraints on single numbers."""

from __future__ import annotations

from typing import Any

from mxnet import numpy as np
from mxnet.gluon.probability.distributions.constraint_base import Constraint
from mxnet.gluon.probability.distributions.utils import is_floating
from mxnet.numpy import ndarray

__all__ = [
    "Boolean",
    "GreaterThan",
    "GreaterThanEq",
    "HalfOpenInterval",
    "IntegerGreaterThan",
    "IntegerGreaterThanEq",
    "IntegerHalfOpenInterval",
    "IntegerInterval",
    "IntegerLessThan",
    "IntegerLessThanEq",
    "IntegerOpenInterval",
    "Interval",
    "LessThan",
    "LessThanEq",
    "NonNegative",
    "NonNegativeInteger",
    "OpenInterval",
    "Positive",
    "PositiveInteger",
    "Real",
    "UnitInterval",
]


def _is_integer(value: ndarray) -> Any:
    return np.floor(value) == value if is_floating(value) else np.ones(value.shape, dtype="bool")


class Real(Constraint):
    """Any number but NaN.

    Examples
    --------
    >>> from mxnet.gluon.probability.distributions import constraint
    >>> constraint.Real().check(-1.5)
    -1.5
    >>> constraint.Real().check(float('nan'))
    Traceback (most recent call last):
    ValueError: Real: values must be numbers, found nan
    """

    def _holds(self, value: ndarray) -> Any:
        return value == value

    def _requirement(self) -> str:
        return "numbers"


class Boolean(Constraint):
    """0 or 1.

    Examples
    --------
    >>> from mxnet.gluon.probability.distributions import constraint
    >>> constraint.Boolean().check(1)
    1
    >>> constraint.Boolean().check(2)
    Traceback (most recent call last):
    ValueError: Boolean: values must be 0 or 1, found 2
    """

    def _holds(self, value: ndarray) -> Any:
        return (value == 0) | (value == 1)

    def _requirement(self) -> str:
        return "0 or 1"


class Interval(Constraint):
    """Numbers of a closed interval.

    Parameters
    ----------
    lower_bound, upper_bound : float or ndarray
        Broadcast against the values.

    Examples
    --------
    >>> from mxnet.gluon.probability.distributions import constraint
    >>> constraint.Interval(0, 4).check(4)
    4
    >>> constraint.Interval(0, 4).check(5)
    Traceback (most recent call last):
    ValueError: Interval: values must be from 0 to 4, found 5
    """

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self._lower_bound = lower_bound
        self._upper_bound = upper_bound

    def _holds(self, value: ndarray) -> Any:
        return (self._lower_bound <= value) & (value <= self._upper_bound)

    def _requirement(self) -> str:
        return f"from {self._lower_bound} to {self._upper_bound}"


class OpenInterval(Constraint):
    """Numbers of an open interval.

    Parameters
    ----------
    lower_bound, upper_bound : float or ndarray
        Broadcast against the values.

    Examples
    --------
    >>> from mxnet.gluon.probability.distributions import constraint
    >>> constraint.OpenInterval(0, 4).check(1.5)
    1.5
    >>> constraint.OpenInterval(0, 4).check(4)
    Traceback (most recent call last):
    ValueError: OpenInterval: values must be between 0 and 4, both excluded, found 4
    """

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self._lower_bound = lower_bound
        self._upper_bound = upper_bound

    def _holds(self, value: ndarray) -> Any:
        return (self._lower_bound < value) & (value < self._upper_bound)

    def _requirement(self) -> str:
        return f"between {self._lower_bound} and {self._upper_bound}, both excluded"


class HalfOpenInterval(Constraint):
    """Numbers from a lower bound to below an upper one.

    Parameters
    ----------
    lower_bound, upper_bound : float or ndarray
        Broadcast against the values.

    Examples
    --------
    >>> from mxnet.gluon.probability.distributions import constraint
    >>> constraint.HalfOpenInterval(0, 4).check(0)
    0
    >>> constraint.HalfOpenInterval(0, 4).check(4)
    Traceback (most recent call last):
    ValueError: HalfOpenInterval: values must be from 0 to below 4, found 4
    """

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self._lower_bound = lower_bound
        self._upper_bound = upper_bound

    def _holds(self, value: ndarray) -> Any:
        return (self._lower_bound <= value) & (value < self._upper_bound)

    def _requirement(self) -> str:
        return f"from {self._lower_bound} to below {self._upper_bound}"


class GreaterThan(Constraint):
    """Numbers above a bound.

    Parameters
    ----------
    lower_bound : float or ndarray
        Broadcast against the values.

    Examples
    --------
    >>> from mxnet.gluon.probability.distributions import constraint
    >>> constraint.GreaterThan(1).check(2)
    2
    >>> constraint.GreaterThan(1).check(1)
    Traceback (most recent call last):
    ValueError: GreaterThan: values must be greater than 1, found 1
    """

    def __init__(self, lower_bound: Any) -> None:
        self._lower_bound = lower_bound

    def _holds(self, value: ndarray) -> Any:
        return value > self._lower_bound

    def _requirement(self) -> str:
        return f"greater than {self._lower_bound}"


class GreaterThanEq(Constraint):
    """Numbers from a bound on.

    Parameters
    ----------
    lower_bound : float or ndarray
        Broadcast against the values.

    Examples
    --------
    >>> from mxnet.gluon.probability.distributions import constraint
    >>> constraint.GreaterThanEq(1).check(1)
    1
    >>> constraint.GreaterThanEq(1).check(0)
    Traceback (most recent call last):
    ValueError: GreaterThanEq: values must be at least 1, found 0
    """

    def __init__(self, lower_bound: Any) -> None:
        self._lower_bound = lower_bound

    def _holds(self, value: ndarray) -> Any:
        return value >= self._lower_bound

    def _requirement(self) -> str:
        return f"at least {self._lower_bound}"


class LessThan(Constraint):
    """Numbers below a bound.

    Parameters
    ----------
    upper_bound : float or ndarray
        Broadcast against the values.

    Examples
    --------
    >>> from mxnet.gluon.probability.distributions import constraint
    >>> constraint.LessThan(1).check(0)
    0
    >>> constraint.LessThan(1).check(1)
    Traceback (most recent call last):
    ValueError: LessThan: values must be less than 1, found 1
    """

    def __init__(self, upper_bound: Any) -> None:
        self._upper_bound = upper_bound

    def _holds(self, value: ndarray) -> Any:
        return value < self._upper_bound

    def _requirement(self) -> str:
        return f"less than {self._upper_bound}"


class LessThanEq(Constraint):
    """Numbers up to a bound.

    Parameters
    ----------
    upper_bound : float or ndarray
        Broadcast against the values.

    Examples
    --------
    >>> from mxnet.gluon.probability.distributions import constraint
    >>> constraint.LessThanEq(1).check(1)
    1
    >>> constraint.LessThanEq(1).check(2)
    Traceback (most recent call last):
    ValueError: LessThanEq: values must be at most 1, found 2
    """

    def __init__(self, upper_bound: Any) -> None:
        self._upper_bound = upper_bound

    def _holds(self, value: ndarray) -> Any:
        return value <= self._upper_bound

    def _requirement(self) -> str:
        return f"at most {self._upper_bound}"


class IntegerInterval(Constraint):
    """Integers of a closed interval.

    Parameters
    ----------
    lower_bound, upper_bound : float or ndarray
        Broadcast against the values.

    Examples
    --------
    >>> from mxnet.gluon.probability.distributions import constraint
    >>> constraint.IntegerInterval(0, 4).check(4)
    4
    >>> constraint.IntegerInterval(0, 4).check(5)
    Traceback (most recent call last):
    ValueError: IntegerInterval: values must be integers from 0 to 4, found 5
    """

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self._lower_bound = lower_bound
        self._upper_bound = upper_bound

    def _holds(self, value: ndarray) -> Any:
        return _is_integer(value) & (self._lower_bound <= value) & (value <= self._upper_bound)

    def _requirement(self) -> str:
        return f"integers from {self._lower_bound} to {self._upper_bound}"


class IntegerOpenInterval(Constraint):
    """Integers of an open interval.

    Parameters
    ----------
    lower_bound, upper_bound : float or ndarray
        Broadcast against the values.

    Examples
    --------
    >>> from mxnet.gluon.probability.distributions import constraint
    >>> constraint.IntegerOpenInterval(0, 4).check(2)
    2
    >>> constraint.IntegerOpenInterval(0, 4).check(4)
    Traceback (most recent call last):
    ValueError: IntegerOpenInterval: values must be integers between 0 and 4, both excluded, found 4
    """

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self._lower_bound = lower_bound
        self._upper_bound = upper_bound

    def _holds(self, value: ndarray) -> Any:
        return _is_integer(value) & (self._lower_bound < value) & (value < self._upper_bound)

    def _requirement(self) -> str:
        return f"integers between {self._lower_bound} and {self._upper_bound}, both excluded"


class IntegerHalfOpenInterval(Constraint):
    """Integers from a lower bound to below an upper one.

    Parameters
    ----------
    lower_bound, upper_bound : float or ndarray
        Broadcast against the values.

    Examples
    --------
    >>> from mxnet.gluon.probability.distributions import constraint
    >>> constraint.IntegerHalfOpenInterval(0, 4).check(0)
    0
    >>> constraint.IntegerHalfOpenInterval(0, 4).check(4)
    Traceback (most recent call last):
    ValueError: IntegerHalfOpenInterval: values must be integers from 0 to below 4, found 4
    """

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self._lower_bound = lower_bound
        self._upper_bound = upper_bound

    def _holds(self, value: ndarray) -> Any:
        return _is_integer(value) & (self._lower_bound <= value) & (value < self._upper_bound)

    def _requirement(self) -> str:
        return f"integers from {self._lower_bound} to below {self._upper_bound}"


class IntegerGreaterThan(Constraint):
    """Integers above a bound.

    Parameters
    ----------
    lower_bound : float or ndarray
        Broadcast against the values.

    Examples
    --------
    >>> from mxnet.gluon.probability.distributions import constraint
    >>> constraint.IntegerGreaterThan(1).check(2)
    2
    >>> constraint.IntegerGreaterThan(1).check(1)
    Traceback (most recent call last):
    ValueError: IntegerGreaterThan: values must be integers greater than 1, found 1
    """

    def __init__(self, lower_bound: Any) -> None:
        self._lower_bound = lower_bound

    def _holds(self, value: ndarray) -> Any:
        return _is_integer(value) & (value > self._lower_bound)

    def _requirement(self) -> str:
        return f"integers greater than {self._lower_bound}"


class IntegerGreaterThanEq(Constraint):
    """Integers from a bound on.

    Parameters
    ----------
    lower_bound : float or ndarray
        Broadcast against the values.

    Examples
    --------
    >>> from mxnet.gluon.probability.distributions import constraint
    >>> constraint.IntegerGreaterThanEq(1).check(1)
    1
    >>> constraint.IntegerGreaterThanEq(1).check(0)
    Traceback (most recent call last):
    ValueError: IntegerGreaterThanEq: values must be integers at least 1, found 0
    """

    def __init__(self, lower_bound: Any) -> None:
        self._lower_bound = lower_bound

    def _holds(self, value: ndarray) -> Any:
        return _is_integer(value) & (value >= self._lower_bound)

    def _requirement(self) -> str:
        return f"integers at least {self._lower_bound}"


class IntegerLessThan(Constraint):
    """Integers below a bound.

    Parameters
    ----------
    upper_bound : float or ndarray
        Broadcast against the values.

    Examples
    --------
    >>> from mxnet.gluon.probability.distributions import constraint
    >>> constraint.IntegerLessThan(1).check(0)
    0
    >>> constraint.IntegerLessThan(1).check(1)
    Traceback (most recent call last):
    ValueError: IntegerLessThan: values must be integers less than 1, found 1
    """

    def __init__(self, upper_bound: Any) -> None:
        self._upper_bound = upper_bound

    def _holds(self, value: ndarray) -> Any:
        return _is_integer(value) & (value < self._upper_bound)

    def _requirement(self) -> str:
        return f"integers less than {self._upper_bound}"


class IntegerLessThanEq(Constraint):
    """Integers up to a bound.

    Parameters
    ----------
    upper_bound : float or ndarray
        Broadcast against the values.

    Examples
    --------
    >>> from mxnet.gluon.probability.distributions import constraint
    >>> constraint.IntegerLessThanEq(1).check(1)
    1
    >>> constraint.IntegerLessThanEq(1).check(2)
    Traceback (most recent call last):
    ValueError: IntegerLessThanEq: values must be integers at most 1, found 2
    """

    def __init__(self, upper_bound: Any) -> None:
        self._upper_bound = upper_bound

    def _holds(self, value: ndarray) -> Any:
        return _is_integer(value) & (value <= self._upper_bound)

    def _requirement(self) -> str:
        return f"integers at most {self._upper_bound}"


class Positive(GreaterThan):
    """Numbers above 0.

    Examples
    --------
    >>> from mxnet.gluon.probability.distributions import constraint
    >>> constraint.Positive().check(0.5)
    0.5
    >>> constraint.Positive().check(0)
    Traceback (most recent call last):
    ValueError: Positive: values must be greater than 0, found 0
    """

    def __init__(self) -> None:
        super().__init__(0)


class NonNegative(GreaterThanEq):
    """Numbers from 0 on.

    Examples
    --------
    >>> from mxnet.gluon.probability.distributions import constraint
    >>> constraint.NonNegative().check(0)
    0
    >>> constraint.NonNegative().check(-1)
    Traceback (most recent call last):
    ValueError: NonNegative: values must be at least 0, found -1
    """

    def __init__(self) -> None:
        super().__init__(0)


class PositiveInteger(IntegerGreaterThan):
    """Integers above 0.

    Examples
    --------
    >>> from mxnet.gluon.probability.distributions import constraint
    >>> constraint.PositiveInteger().check(1)
    1
    >>> constraint.PositiveInteger().check(0)
    Traceback (most recent call last):
    ValueError: PositiveInteger: values must be integers greater than 0, found 0
    """

    def __init__(self) -> None:
        super().__init__(0)


class NonNegativeInteger(IntegerGreaterThanEq):
    """Integers from 0 on.

    Examples
    --------
    >>> from mxnet.gluon.probability.distributions import constraint
    >>> constraint.NonNegativeInteger().check(0)
    0
    >>> constraint.NonNegativeInteger().check(0.5)
    Traceback (most recent call last):
    ValueError: NonNegativeInteger: values must be integers at least 0, found 0.5
    """

    def __init__(self) -> None:
        super().__init__(0)


class UnitInterval(Interval):
    """Numbers from 0 to 1.

    Examples
    --------
    >>> from mxnet.gluon.probability.distributions import constraint
    >>> constraint.UnitInterval().check(1)
    1
    >>> constraint.UnitInterval().check(1.5)
    Traceback (most recent call last):
    ValueError: UnitInterval: values must be from 0 to 1, found 1.5
    """

    def __init__(self) -> None:
        super().__init__(0, 1)
