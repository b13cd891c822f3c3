"""Joining and splitting arrays, along one axis or several."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, SupportsIndex, cast

from numpy.exceptions import AxisError
from numpy.typing import ArrayLike

from mxnet import _core
from mxnet._core import asarray, ndarray
from mxnet.numpy import _dtypes
from mxnet.numpy._axes import axes_of, axis_of
from mxnet.numpy._dtypes import spelled
from mxnet.numpy._indexing import resolved
from mxnet.numpy._overriding import overridable

_op = _core.namespaces["op"]

_ATLEAST_1D, _ATLEAST_2D, _ATLEAST_3D = _op["atleast_1d"], _op["atleast_2d"], _op["atleast_3d"]

Sections = int | Sequence[int]

# Up to this many positions, the slices between them are joined directly, in one pass over the elements.
_PIECES = 16


def _is_integral(x: ndarray) -> bool:
    return _dtypes.isdtype(x.dtype, "integral")


def _part(x: ndarray, axis: int, start: int | None, stop: int | None, step: int | None = None) -> ndarray:
    return x[(slice(None),) * axis + (slice(start, stop, step),)]


def _at_least(arys: tuple[ArrayLike, ...], axes: int, one: Callable[[ArrayLike], ndarray]) -> Any:
    if len(arys) == 1:
        (ary,) = arys
        # Fast path: most arrays have enough axes already.
        return ary if type(ary) is ndarray and ary.ndim >= axes else one(ary)
    return tuple(one(ary) for ary in arys)


def atleast_1d(*arys: ArrayLike) -> Any:
    """Arrays of at least one axis.

    Parameters
    ----------
    *arys : array_like

    Returns
    -------
    ndarray, or tuple of ndarray for several arguments
        Views where possible.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.atleast_1d(1, [2, 3])
    (array([1]), array([2, 3]))
    """
    return _at_least(arys, 1, _ATLEAST_1D)


def atleast_2d(*arys: ArrayLike) -> Any:
    """Arrays of at least two axes, new ones in front; see `atleast_1d`.

    Parameters
    ----------
    *arys : array_like
        The arrays.

    Returns
    -------
    ndarray, or list of ndarray for several

    Examples
    --------
    >>> np.atleast_2d([1, 2])
    array([[1, 2]])
    """
    return _at_least(arys, 2, _ATLEAST_2D)


def atleast_3d(*arys: ArrayLike) -> Any:
    """Arrays of at least three axes: new ones around one axis, behind two; see `atleast_1d`.

    Parameters
    ----------
    *arys : array_like
        The arrays.

    Returns
    -------
    ndarray, or list of ndarray for several

    Examples
    --------
    >>> np.atleast_3d([1, 2]).shape
    (1, 2, 1)
    """
    return _at_least(arys, 3, _ATLEAST_3D)


@overridable
def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> ndarray:
    """One array behind another.

    Parameters
    ----------
    arr, values : array_like
        Alike but for `axis`; flattened without it.
    axis : int, optional

    Returns
    -------
    ndarray
        A copy, of the dtype that both give together.

    Raises
    ------
    ValueError
        If the arrays do not fit each other.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.append([1, 2], [[3], [4]])
    array([1, 2, 3, 4])
    """
    # Python numbers are converted to arrays with a dtype here. Without an axis, the function flattens its operands.
    pair = (asarray(arr), asarray(values))
    return cast(ndarray, _op["concatenate"](pair, axis))


def _positions(name: str, obj: Any, size: int) -> tuple[ndarray, bool]:
    """The positions given by argument `obj`, and whether it is a single integer."""
    if isinstance(obj, slice):
        return _op["arange"](*obj.indices(size), dtype="int64"), False
    indices = asarray(obj)
    if spelled(indices.dtype) == "bool":
        if indices.ndim != 1:
            raise ValueError(f"{name}: an array of bool must have 1 axis, found {indices.ndim}")
        return _op["flatnonzero"](indices), False
    if indices.ndim > 1 and name != "delete":
        raise ValueError(f"{name}: `obj` must be an integer or have 1 axis, found {indices.ndim} axes")
    if indices.size == 0 and not isinstance(obj, ndarray):
        indices = indices.astype("int64")
    if not _is_integral(indices):
        raise IndexError(f"{name}: `obj` must be integers, found {indices.dtype}")
    return indices.astype("int64"), indices.ndim == 0


def _checked(name: str, position: int, size: int, axis: int, most: int) -> int:
    if not -size <= position < most:
        raise IndexError(f"{name}: index {position} is out of bounds for axis {axis} with size {size}")
    return position + size if position < 0 else position


def insert(arr: ArrayLike, obj: Any, values: ArrayLike, axis: int | None = None) -> ndarray:
    """An array with elements put in before some positions.

    Parameters
    ----------
    arr : array_like
    obj : int, slice, array_like of int or of bool
        Positions in `arr` (before anything is put in), or a mask of them.
    values : array_like
        What is put in, converted to the dtype of `arr`; broadcast to one slice for each position.
    axis : int, optional
        Without it `arr` is flattened.

    Returns
    -------
    ndarray
        A copy.

    Raises
    ------
    IndexError
        If a position is out of bounds.
    ValueError
        If `obj` has several axes, or `values` do not fit.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.insert([1, 2, 3], 1, 9)
    array([1, 9, 2, 3])
    >>> mx.np.insert([[1, 1], [2, 2]], [0, 2], [[7], [8]], axis=0)
    array([[7, 7],
           [1, 1],
           [2, 2],
           [8, 8]])
    """
    x = asarray(arr)
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis = axis_of("insert", axis, x.ndim)
    size = x.shape[axis]
    positions, is_single = _positions("insert", obj, size)
    new = asarray(values, x.dtype)
    if new.ndim < x.ndim:
        new = new.reshape((1,) * (x.ndim - new.ndim) + new.shape)
    if positions.size == 1:
        at = _checked("insert", int(positions.item()), size, axis, size + 1)
        if is_single:
            # As in the assignment x[:, at] = values, where `values` lacks the inserted axis.
            new = _op["moveaxis"](new, 0, axis)
        new = _op["broadcast_to"](new, (*x.shape[:axis], new.shape[axis], *x.shape[axis + 1 :]))
        return cast(ndarray, _op["concatenate"]([_part(x, axis, None, at), new, _part(x, axis, at, None)], axis))
    count = positions.size
    for found in (_op["min"](positions), _op["max"](positions)) if count else ():
        _checked("insert", int(found), size, axis, size + 1)
    if 0 < count <= _PIECES:
        new = _op["broadcast_to"](new, (*x.shape[:axis], count, *x.shape[axis + 1 :]))
        pieces, start = [], 0
        at_each = [at + size if at < 0 else at for at in positions.tolist()]
        for i in sorted(range(count), key=at_each.__getitem__):
            pieces += [_part(x, axis, start, at_each[i]), _part(new, axis, i, i + 1)]
            start = at_each[i]
        return cast(ndarray, _op["concatenate"]([*pieces, _part(x, axis, start, None)], axis))
    positions = _op["where"](positions < 0, positions + size, positions)
    order = _op["argsort"](positions)
    numbers = _op["arange"](count, dtype="int64")
    # Every position is shifted by the number of elements inserted before it.
    insertions = _op["scatter_along"](positions[order] + numbers, order, 0, (count,))
    is_new = _op["contains"](insertions, _op["arange"](size + count, dtype="int64"))
    source = _op["cumsum"](~is_new, dtype="int64") - 1
    source = _op["where"](is_new, _op["scatter_along"](numbers + size, insertions, 0, (size + count,)), source)
    new = _op["broadcast_to"](new, (*x.shape[:axis], count, *x.shape[axis + 1 :]))
    return cast(ndarray, _op["take"](_op["concatenate"]([x, new], axis), source, axis))


def delete(arr: ArrayLike, obj: Any, axis: int | None = None) -> ndarray:
    """An array without some slices.

    Parameters
    ----------
    arr : array_like
    obj : int, slice, array_like of int or of bool
        Positions to leave out, or a mask of them.
    axis : int, optional
        Without it `arr` is flattened.

    Returns
    -------
    ndarray
        A copy.

    Raises
    ------
    IndexError
        If a position is out of bounds.
    ValueError
        If a mask is not as long as the axis.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.delete([1, 2, 3, 4], [0, -1])
    array([2, 3])
    """
    x = asarray(arr)
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis = axis_of("delete", axis, x.ndim)
    size = x.shape[axis]
    if isinstance(obj, slice):
        start, stop, step = obj.indices(size)
        if step == 1:
            stop = max(start, stop)
            return cast(ndarray, _op["concatenate"]([_part(x, axis, None, start), _part(x, axis, stop, None)], axis))
    elif not isinstance(obj, int):
        mask = asarray(obj)
        if spelled(mask.dtype) == "bool":
            if mask.shape != (size,):
                raise ValueError(
                    f"delete: a mask must have 1 axis of the array's {size} elements, found shape {mask.shape}"
                )
            return cast(ndarray, _op["compress"](~mask, x, axis))
    positions, is_single = (None, True) if type(obj) is int else _positions("delete", obj, size)
    if positions is None or is_single:
        at = _checked("delete", obj if positions is None else int(positions.item()), size, axis, size)
        return cast(ndarray, _op["concatenate"]([_part(x, axis, None, at), _part(x, axis, at + 1, None)], axis))
    positions = positions.reshape(-1)
    if positions.size <= _PIECES:
        if positions.size:
            positions = resolved("delete", positions, size)
        pieces, start = [], 0
        for at in sorted(set(positions.tolist())):
            pieces.append(_part(x, axis, start, at))
            start = at + 1
        return cast(ndarray, _op["concatenate"]([*pieces, _part(x, axis, start, None)], axis))
    stays = _op["ones"]((size,), "bool")
    stays[positions] = False
    return cast(ndarray, _op["compress"](stays, x, axis))


def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: int | Sequence[int] | None = None) -> Any:
    """The part of an array without the zeros around it.

    Parameters
    ----------
    filt : array_like or sequence
    trim : {'fb', 'f', 'b'}
        Whether to trim at the front, at the back, or both.
    axis : int, sequence of int or None
        The axes to trim; None means all.

    Returns
    -------
    ndarray, list, tuple, ...
        View; a sequence of one axis is cut as it is, and of nested lists a list is left.

    Raises
    ------
    ValueError
        For another `trim`.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.trim_zeros([0, 0, 1, 0, 2, 0])
    [1, 0, 2]
    """
    x = asarray(filt)
    sides = trim.lower()
    if sides not in ("f", "b", "fb", "bf"):
        raise ValueError(f"trim_zeros: unexpected character(s) in `trim`: {trim!r}, must be 'f', 'b' or 'fb'")
    filled = x != 0
    key = [slice(None)] * x.ndim
    for each in axes_of("trim_zeros", axis, x.ndim):
        others = tuple(i for i in range(x.ndim) if i != each)
        found = _op["flatnonzero"](_op["any"](filled, axis=others) if others else filled)
        # If there are only zeros, trimming either end leaves nothing.
        first, end = (int(found[0]), int(found[-1]) + 1) if found.size else (x.shape[each], 0)
        key[each] = slice(first if "f" in sides else 0, end if "b" in sides else x.shape[each])
    if isinstance(filt, Sequence) and x.ndim == 1:
        return filt[key[0]]
    trimmed = x[tuple(key)]
    return trimmed.tolist() if isinstance(filt, list) else trimmed


def _depth(arrays: Any) -> int:
    """The nesting depth of lists, which must be the same everywhere."""
    if isinstance(arrays, tuple):
        raise TypeError("block: arrays are nested in lists, found a tuple")
    if not isinstance(arrays, list):
        return 0
    if not arrays:
        raise ValueError("block: lists must not be empty")
    depths = {_depth(each) for each in arrays}
    if len(depths) > 1:
        raise ValueError(f"block: List depths are mismatched, found depths {sorted(depths)}")
    return 1 + depths.pop()


def _leaves(arrays: Any) -> Iterator[ndarray]:
    if isinstance(arrays, list):
        for each in arrays:
            yield from _leaves(each)
    else:
        yield asarray(arrays)


def block(arrays: Any) -> ndarray:
    """An array put together from blocks.

    Parameters
    ----------
    arrays : nested list of array_like
        The innermost lists are joined along the last axis, the lists around them along the one before, and so on.

    Returns
    -------
    ndarray
        A copy.

    Raises
    ------
    TypeError
        For tuples.
    ValueError
        If lists are empty or nested differently, or blocks do not fit.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.block([[mx.np.eye(2), mx.np.zeros((2, 1))], [mx.np.ones((1, 3))]])
    array([[1., 0., 0.],
           [0., 1., 0.],
           [1., 1., 1.]])
    """
    if not isinstance(arrays, list | tuple):
        return asarray(arrays).copy()
    depth = _depth(arrays)
    ndim = max(depth, *(x.ndim for x in _leaves(arrays)))

    def joined(part: Any, level: int) -> ndarray:
        if not isinstance(part, list):
            x = asarray(part)
            return x.reshape((1,) * (ndim - x.ndim) + x.shape)
        return cast(ndarray, _op["concatenate"]([joined(each, level - 1) for each in part], -level))

    return joined(arrays, depth) if depth else joined(arrays, 0).copy()


def _split_along(name: str, ary: ArrayLike, sections: Sections, axis: int, least: int) -> list[ndarray]:
    x = asarray(ary)
    if x.ndim < least:
        raise ValueError(f"{name}: the array must have at least {least} axes, found {x.ndim}")
    return list(_op["split"](x, sections, axis))


@overridable
def hsplit(ary: ArrayLike, indices_or_sections: Sections) -> list[ndarray]:
    """Parts of an array along its second axis, or its only one.

    Parameters
    ----------
    ary : array_like
    indices_or_sections : int or sequence of int
        Number of equal parts, or the positions to cut at.

    Returns
    -------
    list of ndarray
        Views.

    Raises
    ------
    ValueError
        If there is no axis, or equal parts do not come out.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.hsplit(mx.np.arange(4), 2)
    [array([0, 1]), array([2, 3])]
    """
    x = asarray(ary)
    return _split_along("hsplit", x, indices_or_sections, 1 if x.ndim > 1 else 0, 1)


@overridable
def vsplit(ary: ArrayLike, indices_or_sections: Sections) -> list[ndarray]:
    """Parts of an array along its first axis; it must have two axes at least. See `hsplit`.

    Parameters
    ----------
    ary : array_like, at least two axes
        The array.
    indices_or_sections : int or sequence of int
        A number of equal parts, or where to cut.

    Returns
    -------
    list of ndarray
        Views of the parts.

    Examples
    --------
    >>> np.vsplit(np.array([[1, 2], [3, 4]]), 2)
    [array([[1, 2]]), array([[3, 4]])]
    """
    return _split_along("vsplit", ary, indices_or_sections, 0, 2)


@overridable
def dsplit(ary: ArrayLike, indices_or_sections: Sections) -> list[ndarray]:
    """Parts of an array along its third axis; it must have three axes at least. See `hsplit`.

    Parameters
    ----------
    ary : array_like, at least three axes
        The array.
    indices_or_sections : int or sequence of int
        A number of equal parts, or where to cut.

    Returns
    -------
    list of ndarray
        Views of the parts.

    Examples
    --------
    >>> [part.shape for part in np.dsplit(np.zeros((2, 3, 4)), 2)]
    [(2, 3, 2), (2, 3, 2)]
    """
    return _split_along("dsplit", ary, indices_or_sections, 2, 3)


def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> ndarray:
    """View with an axis moved before another one.

    Parameters
    ----------
    a : array_like
    axis : int
        The axis that is moved.
    start : int
        The axis that it will stand before.

    Returns
    -------
    ndarray or list
        View; a list of what is left of a list.

    Raises
    ------
    numpy.exceptions.AxisError
        If there is no such axis.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.rollaxis(mx.np.ones((3, 4, 5)), 2).shape
    (5, 3, 4)
    """
    x = asarray(a)
    axis = axis_of("rollaxis", axis, x.ndim)
    if not -x.ndim <= start <= x.ndim:
        raise AxisError(start, x.ndim + 1, "rollaxis: start")
    start += x.ndim if start < 0 else 0
    return cast(ndarray, _op["moveaxis"](x, axis, start - 1 if axis < start else start))
