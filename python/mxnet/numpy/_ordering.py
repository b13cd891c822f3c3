"""Several sort keys, sorting in place."""

from __future__ import annotations

from typing import Any

from mxnet import _core
from mxnet._core import asarray, ndarray

_op = _core.namespaces["op"]


def lexsort(keys: Any, axis: int = -1) -> ndarray:
    """The positions that sort by several keys, the last one first.

    Parameters
    ----------
    keys : sequence of array_like, or array_like
        Keys of one shape; the last is the primary one.
    axis : int
        Axis of the keys to sort along.

    Returns
    -------
    ndarray
        int64, of the shape of a key.

    Raises
    ------
    TypeError
        Without keys.

    Examples
    --------
    >>> surnames, names = np.array([2, 1, 2]), np.array([1, 5, 0])
    >>> np.lexsort((names, surnames))  # by surname, then by name
    array([1, 2, 0])
    """
    keys = [asarray(key) for key in keys]
    if not keys:
        raise TypeError("lexsort: need at least one key")
    order: ndarray = _op["argsort"](keys[0], axis)
    for key in keys[1:]:
        again = _op["argsort"](_op["take_along_axis"](key, order, axis), axis)
        order = _op["take_along_axis"](order, again, axis)
    return order


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
    self[...] = _op["sort"](self, axis, kind, order, stable=stable)


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
