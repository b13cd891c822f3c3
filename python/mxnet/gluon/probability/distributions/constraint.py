"""Constraints: which values parameters and samples may have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.gluon.probability.distributions.utils import epsilon, is_floating
from mxnet.numpy import ndarray

__all__ = [
    "Boolean",
    "Cat",
    "Constraint",
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
    "LowerCholesky",
    "LowerTriangular",
    "NonNegative",
    "NonNegativeInteger",
    "OpenInterval",
    "Positive",
    "PositiveDefinite",
    "PositiveInteger",
    "Real",
    "Simplex",
    "Stack",
    "UnitInterval",
    "dependent_property",
    "is_dependent",
]


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


def _is_integer(value: ndarray) -> Any:
    return np.floor(value) == value if is_floating(value) else np.ones(value.shape, dtype="bool")


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


class Real(Constraint):
    """Any number but NaN.

    Examples
    --------
    >>> from mxnet.gluon.probability.distributions import constraint
    >>> constraint.Real().check(-1.5)
    -1.5
    >>> constraint.Real().check(float('nan'))
    Traceback (most recent call last):
    ValueError: Real: values must be numbers, found float('nan')
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


class Simplex(Constraint):
    """Numbers from 0 on along the last axis that sum to 1, up to rounding.

    The sum of n numbers may differ from 1 by ``4 * n`` times the spacing of the dtype at 1, at least 1e-6.

    Examples
    --------
    >>> from mxnet.gluon.probability.distributions import constraint
    >>> constraint.Simplex().check(np.array([0.25, 0.75]))
    array([0.25, 0.75])
    >>> constraint.Simplex().check(np.array([0.25, 0.25]))
    Traceback (most recent call last):
    ValueError: Simplex: values must be at least 0 with sum 1 along the last axis, found [0.25, 0.25]
    """

    def _holds(self, value: ndarray) -> Any:
        if value.ndim == 0:
            return np.array(False)
        slack = max(4 * value.shape[-1] * epsilon(value), 1e-6) if is_floating(value) else 0.0
        return (value >= 0).all(axis=-1) & (np.abs(value.sum(axis=-1) - 1) <= slack)

    def _requirement(self) -> str:
        return "at least 0 with sum 1 along the last axis"


def _is_square(value: ndarray) -> bool:
    return value.ndim >= 2 and value.shape[-1] == value.shape[-2]


class LowerTriangular(Constraint):
    """Square matrices in the last two axes without elements above the diagonal.

    Examples
    --------
    >>> from mxnet.gluon.probability.distributions import constraint
    >>> constraint.LowerTriangular().check(np.array([[1.0, 0.0], [2.0, -3.0]])).shape
    (2, 2)
    >>> constraint.LowerTriangular().check(np.array([[1.0, 5.0], [2.0, -3.0]]))
    Traceback (most recent call last):
    ValueError: LowerTriangular: values must be square and lower triangular, found [[1.0, 5.0], [2.0, -3.0]]
    """

    def _holds(self, value: ndarray) -> Any:
        return (np.tril(value) == value).all(axis=(-2, -1)) if _is_square(value) else np.array(False)

    def _requirement(self) -> str:
        return "square and lower triangular"


class LowerCholesky(Constraint):
    """Lower triangular matrices with a positive diagonal.

    Examples
    --------
    >>> from mxnet.gluon.probability.distributions import constraint
    >>> constraint.LowerCholesky().check(np.array([[1.0, 0.0], [2.0, 3.0]])).shape
    (2, 2)
    >>> constraint.LowerCholesky().check(np.array([[1.0, 0.0], [2.0, -3.0]]))
    Traceback (most recent call last):
    ValueError: LowerCholesky: values must be lower triangular with a positive diagonal, found [[1.0, 0.0], [2.0, -3.0]]
    """

    def _holds(self, value: ndarray) -> Any:
        if not _is_square(value):
            return np.array(False)
        positive = (np.diagonal(value, axis1=-2, axis2=-1) > 0).all(axis=-1)
        return (np.tril(value) == value).all(axis=(-2, -1)) & positive

    def _requirement(self) -> str:
        return "lower triangular with a positive diagonal"


class PositiveDefinite(Constraint):
    """Symmetric positive definite matrices in the last two axes.

    Opposite elements may differ by 1e-5 of the largest element (by 16 spacings of the dtype if that is more).

    Examples
    --------
    >>> from mxnet.gluon.probability.distributions import constraint
    >>> constraint.PositiveDefinite().check(np.array([[2.0, 1.0], [1.0, 2.0]])).shape
    (2, 2)
    >>> constraint.PositiveDefinite().check(np.array([[1.0, 2.0], [2.0, 1.0]]))
    Traceback (most recent call last):
    ValueError: PositiveDefinite: values must be symmetric and positive definite, found [[1.0, 2.0], [2.0, 1.0]]
    """

    def _holds(self, value: ndarray) -> Any:
        if not _is_square(value):
            return np.array(False)
        slack = max(1e-5, 16 * epsilon(value)) if is_floating(value) else 0.0
        largest = np.abs(value).max(axis=(-2, -1), keepdims=True)
        symmetric = (np.abs(value - np.matrix_transpose(value)) <= slack * largest).all(axis=(-2, -1))
        return symmetric & (np.linalg.eigvalsh(value) > 0).all(axis=-1)

    def _requirement(self) -> str:
        return "symmetric and positive definite"


class Cat(Constraint):
    """Constraints of parts that are joined along an axis.

    Parameters
    ----------
    constraint_seq : sequence of Constraint
    axis : int
    lengths : sequence of int, optional
        Length of each part; 1 by default.

    Raises
    ------
    TypeError
        If a part is no constraint.
    ValueError
        If there are not as many lengths as constraints.

    Examples
    --------
    >>> from mxnet.gluon.probability.distributions import constraint
    >>> both = constraint.Cat([constraint.Positive(), constraint.Real()], lengths=[1, 2])
    >>> both.check(np.array([1.0, -1.0, -2.0]))
    array([ 1., -1., -2.])
    """

    def __init__(
        self, constraint_seq: Sequence[Constraint], axis: int = 0, lengths: Sequence[int] | None = None
    ) -> None:
        self._constraints = _constraints("Cat", constraint_seq)
        self._lengths = [1] * len(self._constraints) if lengths is None else list(lengths)
        if len(self._lengths) != len(self._constraints):
            raise ValueError(
                f"Cat: `lengths` must have one entry for each of {len(self._constraints)} constraints, "
                f"found {len(self._lengths)}"
            )
        self._axis = axis

    def check(self, value: Any) -> Any:
        """Return the value, or raise if a part is not allowed.

        Parameters
        ----------
        value : ndarray

        Returns
        -------
        ndarray
            `value`.

        Raises
        ------
        ValueError
            If a part is not allowed, or the axis has another length.
        """
        array = np.asarray(value)
        if array.shape[self._axis] != sum(self._lengths):
            raise ValueError(
                f"Cat: axis {self._axis} must have length {sum(self._lengths)}, found {array.shape[self._axis]}"
            )
        start = 0
        for constraint, length in zip(self._constraints, self._lengths, strict=True):
            constraint.check(npx.slice_axis(array, self._axis, start, start + length))
            start += length
        return value


class Stack(Constraint):
    """Constraints of parts that are stacked along an axis.

    Parameters
    ----------
    constraint_seq : sequence of Constraint
    axis : int

    Raises
    ------
    TypeError
        If a part is no constraint.

    Examples
    --------
    >>> from mxnet.gluon.probability.distributions import constraint
    >>> both = constraint.Stack([constraint.Positive(), constraint.Real()], axis=-1)
    >>> both.check(np.array([[1.0, -1.0], [2.0, -2.0]])).shape
    (2, 2)
    """

    def __init__(self, constraint_seq: Sequence[Constraint], axis: int = 0) -> None:
        self._constraints = _constraints("Stack", constraint_seq)
        self._axis = axis

    def check(self, value: Any) -> Any:
        """Return the value, or raise if a part is not allowed.

        Parameters
        ----------
        value : ndarray

        Returns
        -------
        ndarray
            `value`.

        Raises
        ------
        ValueError
            If a part is not allowed, or the axis has another length.
        """
        array = np.asarray(value)
        if array.shape[self._axis] != len(self._constraints):
            raise ValueError(
                f"Stack: axis {self._axis} must have length {len(self._constraints)}, found {array.shape[self._axis]}"
            )
        for index, constraint in enumerate(self._constraints):
            constraint.check(np.take(array, index, axis=self._axis))
        return value


def _constraints(owner: str, sequence: Sequence[Constraint]) -> list[Constraint]:
    found = list(sequence)
    for constraint in found:
        if not isinstance(constraint, Constraint):
            raise TypeError(f"{owner}: `constraint_seq` must hold constraints, found {type(constraint).__name__}")
    return found
