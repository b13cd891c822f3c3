"""Constraints: which values parameters and samples may have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.gluon.probability.distributions.constraint_base import Constraint, dependent_property, is_dependent
from mxnet.gluon.probability.distributions.constraint_number import (
    Boolean,
    GreaterThan,
    GreaterThanEq,
    HalfOpenInterval,
    IntegerGreaterThan,
    IntegerGreaterThanEq,
    IntegerHalfOpenInterval,
    IntegerInterval,
    IntegerLessThan,
    IntegerLessThanEq,
    IntegerOpenInterval,
    Interval,
    LessThan,
    LessThanEq,
    NonNegative,
    NonNegativeInteger,
    OpenInterval,
    Positive,
    PositiveInteger,
    Real,
    UnitInterval,
)
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
