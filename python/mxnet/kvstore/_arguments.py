"""Keys and values of the calls of a store: brought into one form, and checked."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from mxnet import numpy as np
from mxnet.base import dtype_name
from mxnet.device import cpu
from mxnet.error import DTypeError, ShapeError
from mxnet.error import IndexError as MXNetIndexError
from mxnet.kvstore._communicators import move_rows
from mxnet.numpy import ndarray
from mxnet.sparse import row_sparse_array

__all__ = ["Groups", "Key", "Value", "assign_rows", "check_fits", "check_same_keys", "flat", "grouped", "sorted_rows"]

Key = int | str
Value = Any
"""An `ndarray` or a `row_sparse_array`."""

Groups = dict[Key, list[Value]]


def grouped(what: str, key: Any, value: Any, known: Iterable[Key]) -> Groups:
    """The arrays of each key.

    Parameters
    ----------
    what : str
        The operation, for messages.
    key : int, str or sequence of them
    value : array, list of arrays, or list of such
    known : iterable of int or str
        Keys of the store, which are of the same kind.

    Returns
    -------
    dict
    """
    if isinstance(key, list | tuple):
        values = list(value) if isinstance(value, list | tuple) else None
        if values is None or len(values) != len(key):
            found = type(value).__name__ if values is None else len(values)
            raise ValueError(f"{what}: {len(key)} keys need a list of as many values, found {found}")
        pairs = list(zip(key, values, strict=True))
    else:
        pairs = [(key, value)]
    groups: Groups = {}
    for name, one in pairs:
        groups.setdefault(_checked(what, name), []).extend(flat(one))
    for name, arrays in groups.items():
        for array in arrays:
            if not isinstance(array, ndarray | row_sparse_array):
                raise TypeError(
                    f"{what}: values of key {name!r} must be ndarray or row_sparse_array, found {type(array).__name__}"
                )
        if not arrays:
            raise ValueError(f"{what}: key {name!r} has an empty list of values")
    if len({type(name) for name in [*groups, *known]}) > 1:
        raise TypeError(f"{what}: keys must be integers or text, but not both, found {list(groups)}")
    return groups


def _checked(what: str, key: Any) -> Key:
    if isinstance(key, str):
        return key
    if isinstance(key, bool) or not hasattr(key, "__index__") or isinstance(key, ndarray):
        raise TypeError(f"{what}: a key must be an integer or text, found {type(key).__name__}")
    return operator.index(key)


def flat(value: Any) -> Iterator[Any]:
    """An array, or the arrays of nested lists.

    Parameters
    ----------
    value : array or list

    Returns
    -------
    iterator
    """
    if isinstance(value, list | tuple):
        for item in value:
            yield from flat(item)
    else:
        yield value


def check_same_keys(what: str, values: Groups, outs: Groups) -> None:
    """Refuse arrays for results of other keys than those of the values.

    Parameters
    ----------
    what : str
        The operation, for messages.
    values, outs : dict
    """
    if list(values) != list(outs):
        raise ValueError(f"{what}: `value` and `out` must have the same keys, found {list(values)} and {list(outs)}")


def check_fits(what: str, key: Key, stored: Any, values: Sequence[Value]) -> None:
    """Refuse arrays whose shape, dtype or kind is not that of the key's value, or of the other arrays.

    Parameters
    ----------
    what : str
        The operation, for messages.
    key : int or str
    stored : ndarray, row_sparse_array or Form
        Has the shape and the dtype.
    values : sequence of ndarray or row_sparse_array
    """
    for value in values:
        if tuple(value.shape) != tuple(stored.shape):
            raise ShapeError(f"{what}: key {key!r} has shape {tuple(stored.shape)}, found {tuple(value.shape)}")
        needed, found = dtype_name(stored.dtype), dtype_name(value.dtype)
        if found != needed:
            raise DTypeError(f"{what}: key {key!r} has dtype {needed}, found {found}")
    if len({isinstance(value, ndarray) for value in values}) > 1:
        raise TypeError(f"{what}: the arrays of key {key!r} must be all dense or all row-sparse")


def sorted_rows(key: Key, row_ids: Any, num_rows: int) -> ndarray:
    """Row numbers in ascending order, each once, on the CPU.

    Parameters
    ----------
    key : int or str
        For the message.
    row_ids : ndarray of int
    num_rows : int

    Returns
    -------
    ndarray of int64, one axis
    """
    rows: ndarray = np.unique(np.array(row_ids, dtype="int64", device=cpu()))
    if rows.size and not 0 <= int(rows[0]) <= int(rows[-1]) < num_rows:
        bad = int(rows[0]) if int(rows[0]) < 0 else int(rows[-1])
        raise MXNetIndexError(f"row_sparse_pull: row {bad} is out of bounds for key {key!r} of {num_rows} rows")
    return rows


def assign_rows(out: row_sparse_array, value: row_sparse_array) -> None:
    """Replace the rows of a row-sparse array, on its device, by those of another.

    Parameters
    ----------
    out, value : row_sparse_array, each of the same shape
    """
    moved = move_rows(value, out.device)
    out.data, out.indices = moved.data, moved.indices
