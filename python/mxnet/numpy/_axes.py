"""Axes as non-negative numbers."""

from __future__ import annotations

import operator
from collections.abc import Sequence

from numpy.exceptions import AxisError

__all__ = ["Axes", "axes_of", "axis_of"]

Axes = int | Sequence[int] | None


def axis_of(name: str, axis: int, ndim: int) -> int:
    """The axis as a non-negative number.

    Parameters
    ----------
    name : str
        The function that the user called, for the error.
    axis : int
        Negative numbers count from the last axis.
    ndim : int

    Returns
    -------
    int

    Raises
    ------
    numpy.exceptions.AxisError
        If there is no such axis.
    """
    axis = operator.index(axis)
    if not -ndim <= axis < ndim:
        raise AxisError(axis, ndim, name)
    return axis % ndim


def axes_of(name: str, axis: Axes, ndim: int) -> tuple[int, ...]:
    """One axis, several of them or, for None, all of them as non-negative numbers; see `axis_of`."""
    if axis is None:
        return tuple(range(ndim))
    return tuple(axis_of(name, each, ndim) for each in ((axis,) if isinstance(axis, int) else axis))
