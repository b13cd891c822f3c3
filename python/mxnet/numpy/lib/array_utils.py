"""Axes counted from the front, and the bytes an array lies in."""

from __future__ import annotations

from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from mxnet import _core
from mxnet._core import ndarray

__all__ = ["byte_bounds", "normalize_axis_index", "normalize_axis_tuple"]


def byte_bounds(a: ndarray) -> tuple[int, int]:
    """The addresses of the first byte of an array and of the first one behind it.

    Parameters
    ----------
    a : ndarray

    Returns
    -------
    (int, int)

    Examples
    --------
    >>> first, end = np.lib.array_utils.byte_bounds(np.zeros((2, 3), dtype="float32"))
    >>> end - first
    24
    """
    start, offset, _, _ = _core.memory_location(a)
    first = last = start + offset
    if a.size == 0:
        return first, first
    for size, stride in zip(a.shape, a.strides, strict=True):
        if stride < 0:
            first += (size - 1) * stride
        else:
            last += (size - 1) * stride
    return first, last + a.itemsize
