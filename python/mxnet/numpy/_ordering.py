"""Several sort keys, sorting in place."""

from __future__ import annotations

import operator
from typing import Any

from mxnet import _core
from mxnet._core import asarray, ndarray

_op = _core.namespaces["op"]
_op_sort = _op["sort"]


def _sort(
    self: ndarray, axis: int = -1, kind: str | None = None, order: str | None = None, *, stable: bool | None = None
) -> None:
    """Sorts the array in place along `axis`; see `mxnet.numpy.sort`.

    Parameters
    ----------
    axis : int
        The axis.
    kind, stable : optional
        Accepted as NumPy's; every kind is stable.
    order : None
        There are no fields.

    Examples
    --------
    >>> x = np.array([3, 1, 2])
    >>> x.sort()
    >>> x
    array([1, 2, 3])
    """
    if kind is None and order is None and stable is None:
        self[...] = _op_sort(self, operator.index(axis))
    else:
        self[...] = _op_sort(self, operator.index(axis), kind, order, stable=stable)


def _partition(self: ndarray, kth: Any, axis: int = -1, kind: str = "introselect", order: str | None = None) -> None:
    """Partitions the array in place along `axis`; see `mxnet.numpy.partition`.

    Parameters
    ----------
    kth : int or sequence of int
        Positions at which elements stand as after sorting.
    axis : int
        The axis.
    kind : str
        Accepted as NumPy's.
    order : None
        There are no fields.

    Examples
    --------
    >>> x = np.array([7, 1, 5, 3])
    >>> x.partition(1)
    >>> x[:2]
    array([1, 3])
    """
    if axis is None:
        raise TypeError("partition: in place `axis` must be an integer, found None")
    self[...] = _op["partition"](self, kth, axis, kind, order)


_sort.__name__ = "sort"
_partition.__name__ = "partition"
# Every array is of the extension's own class, so methods that are written in Python must be put on that class.
ndarray.sort = _sort  # type: ignore[method-assign]
ndarray.partition = _partition  # type: ignore[method-assign]
