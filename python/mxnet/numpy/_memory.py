"""Sizes of array-likes, and whether arrays share memory."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod

from numpy.exceptions import TooHardError
from numpy.typing import ArrayLike

from mxnet import _core
from mxnet._core import asarray, ndarray
from mxnet.numpy._axes import axes_of
from mxnet.numpy._overriding import overridable


@overridable
def ndim(a: ArrayLike) -> int:
    """Number of axes.

    Parameters
    ----------
    a : array_like

    Returns
    -------
    int

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.ndim([[1, 2]])
    2
    """
    return asarray(a).ndim


@overridable
def shape(a: ArrayLike) -> tuple[int, ...]:
    """Sizes of the axes.

    Parameters
    ----------
    a : array_like

    Returns
    -------
    tuple of int

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.shape([[1, 2]])
    (1, 2)
    """
    return asarray(a).shape


def isfortran(a: ndarray) -> bool:
    """Whether the elements are in Fortran order and not in C order.

    Parameters
    ----------
    a : ndarray

    Returns
    -------
    bool

    Examples
    --------
    >>> x = np.ones((2, 3))
    >>> np.isfortran(x), np.isfortran(x.T)
    (False, True)
    """
    answer: bool = _core.is_fortran(a)
    return answer


@overridable
def size(a: ArrayLike, axis: int | Sequence[int] | None = None) -> int:
    """Number of elements, or of those along some axes.

    Parameters
    ----------
    a : array_like
    axis : int, sequence of int or None

    Returns
    -------
    int

    Raises
    ------
    numpy.exceptions.AxisError
        If there is no such axis.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.size([[1, 2, 3]]), mx.np.size([[1, 2, 3]], 0)
    (3, 1)
    """
    x = asarray(a)
    if axis is None:
        return x.size
    return prod(x.shape[i] for i in axes_of("size", axis, x.ndim))


def _terms(x: ndarray) -> tuple[int, list[tuple[int, int]]]:
    """The offset of the lowest byte of an array in its memory, and (step, count - 1) of each axis."""
    offset = _core.memory_location(x)[1]
    terms = [(1, x.itemsize - 1)]
    for step, n in zip(x.strides, x.shape, strict=True):
        if step < 0:
            offset += step * (n - 1)
        terms.append((abs(step), n - 1))
    return offset, [(step, most) for step, most in terms if step and most]


def may_share_memory(a: ArrayLike, b: ArrayLike, /, max_work: int = 0) -> bool:
    """Whether two arrays may share memory: whether the memory between their first and last bytes overlaps.

    Parameters
    ----------
    a, b : array_like
    max_work : int
        See `shares_memory`; 0 looks at first and last bytes only.

    Returns
    -------
    bool

    Examples
    --------
    >>> import mxnet as mx
    >>> x = mx.np.arange(4)
    >>> mx.np.may_share_memory(x[::2], x[1::2]), mx.np.shares_memory(x[::2], x[1::2])
    (True, False)
    """
    if max_work != 0:
        return shares_memory(a, b, max_work)
    answer: bool = _core.may_overlap(asarray(a), asarray(b))
    return answer


def shares_memory(a: ArrayLike, b: ArrayLike, /, max_work: int = -1) -> bool:
    """Whether two arrays have a byte in common.

    Parameters
    ----------
    a, b : array_like
    max_work : int
        How many candidates to look at; -1 for as many as it takes, 0 for `may_share_memory`.

    Returns
    -------
    bool

    Raises
    ------
    numpy.exceptions.TooHardError
        If `max_work` candidates were not enough.
    ValueError
        If `max_work` is less than -1.

    Notes
    -----
    A common byte is a solution of an equation in bounded integers. It is looked for step by step, from the largest
    stride on; what is left of the distance must be in reach of the smaller strides and a multiple of their divisor.

    Examples
    --------
    >>> x = np.arange(6)
    >>> np.shares_memory(x[::2], x[1::2]), np.shares_memory(x[:3], x[2:])
    (False, True)
    """
    if max_work < -1:
        raise ValueError(f"shares_memory: `max_work` must be at least -1, found {max_work}")
    x, y = asarray(a), asarray(b)
    if not _core.may_overlap(x, y):
        return False
    if max_work == 0:
        return True
    (low_x, terms_x), (low_y, terms_y) = _terms(x), _terms(y)
    # low_x + sum(step i) = low_y + sum(step j). With j counted from the end, all terms are added.
    distance = low_y + sum(step * most for step, most in terms_y) - low_x
    terms = sorted(terms_x + terms_y, reverse=True)
    reach, divisor = [0], [0]
    for step, most in reversed(terms):
        reach.append(reach[-1] + step * most)
        divisor.append(gcd(divisor[-1], step))
    reach.reverse()
    divisor.reverse()
    work = 0

    def found(level: int, rest: int) -> bool:
        nonlocal work
        work += 1
        if 0 < max_work < work:
            raise TooHardError(f"shares_memory: not decided after {max_work} candidates")
        if not 0 <= rest <= reach[level] or (rest % divisor[level] if divisor[level] else rest):
            return False
        if level == len(terms) or rest == 0:
            return rest == 0
        step, most = terms[level]
        # This stride must cover the distance that the remaining, smaller strides cannot reach.
        least = max(0, -(-(rest - reach[level + 1]) // step))
        return any(found(level + 1, rest - step * i) for i in range(min(most, rest // step), least - 1, -1))

    return found(0, distance)
