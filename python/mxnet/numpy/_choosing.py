"""Functions applied by condition, along one axis, or axis by axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy
from numpy.typing import ArrayLike

from mxnet import _core
from mxnet._core import asarray, ndarray
from mxnet.numpy._axes import axis_of
from mxnet.numpy._dtypes import kind_of, result_type, spelled

_np = _core.namespaces["numpy"]
_op = _core.namespaces["op"]

_NUMBERS = (bool, int, float, complex)


def select(condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike], default: ArrayLike = 0) -> ndarray:
    """Elements of the first array whose condition is true.

    Parameters
    ----------
    condlist : sequence of array_like of bool
        Conditions, the first of which that is true decides.
    choicelist : sequence of array_like
        As many arrays; all broadcast.
    default : array_like
        Where no condition is true.

    Returns
    -------
    ndarray
        Of the dtype that choices and default promote to.

    Raises
    ------
    ValueError
        If the lists differ in length or are empty.
    TypeError
        If a condition is not of truth values.

    Notes
    -----
    Differentiable in the choices and the default.

    Examples
    --------
    >>> import mxnet as mx
    >>> x = mx.np.arange(5)
    >>> mx.np.select([x < 2, x > 2], [x, x * x], 7)
    array([ 0,  1,  7,  9, 16])
    """
    if len(condlist) != len(choicelist):
        raise ValueError(
            "select: list of cases must be same length as list of conditions: "
            f"{len(choicelist)} choices, {len(condlist)} conditions"
        )
    if not condlist:
        raise ValueError("select with an empty condition list is not possible")
    conditions = [asarray(condition) for condition in condlist]
    for i, condition in enumerate(conditions):
        if spelled(condition.dtype) != "bool":
            raise TypeError(
                f"select: invalid entry {i} in condlist: should be boolean ndarray, found {condition.dtype}"
            )
    result: Any = default
    if type(default) in _NUMBERS and (len(choicelist) > 1 or type(choicelist[-1]) in _NUMBERS):
        # A Python number beside another one, or beside booleans, would not be promoted with the other arrays.
        result = asarray(default, result_type(*choicelist, default))
    for condition, choice in zip(reversed(conditions), reversed(list(choicelist)), strict=True):
        result = _np["where"](condition, choice, result)
    # If all arrays are in Fortran order, so is the result.
    return result if result.ndim < 2 or result.flags.c_contiguous else result.copy()  # type: ignore[no-any-return]


def _condition(c: ArrayLike, shape: tuple[int, ...]) -> ndarray:
    """A condition as booleans, broadcast to this shape."""
    mask = asarray(c)
    if kind_of(mask.dtype) != "b":
        mask = _op["astype"](mask, "bool")
    return mask if mask.shape == shape else _np["broadcast_to"](mask, shape)


def piecewise(x: ArrayLike, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> ndarray:
    """A function that is another one on each piece of its domain.

    Parameters
    ----------
    x : array_like
    condlist : sequence of array_like of bool, or one of them
        Where each piece is; later ones win.
    funclist : sequence of callable or number
        A function for each piece, called with the elements there, or a value. One more is for the rest, which is 0
        otherwise.
    *args, **kw
        Passed on to the functions.

    Returns
    -------
    ndarray
        Shape and dtype of `x`.

    Raises
    ------
    ValueError
        If there are neither as many functions as conditions nor one more.

    Examples
    --------
    >>> import mxnet as mx
    >>> x = mx.np.array([-2.0, 3.0])
    >>> mx.np.piecewise(x, [x < 0], [lambda v: -v, 10.0])
    array([ 2., 10.])
    """
    values = asarray(x)
    single = isinstance(condlist, ndarray | numpy.ndarray | bool) and asarray(condlist).ndim in (0, values.ndim)
    if not single and not isinstance(condlist, ndarray | numpy.ndarray):
        # A list of booleans is one condition; a list of arrays (or lists) is several conditions.
        single = len(condlist) > 0 and all(isinstance(c, bool | numpy.bool_) for c in condlist) and values.ndim == 1
    conditions = [_condition(c, values.shape) for c in ([condlist] if single else condlist)]
    n = len(funclist)
    if n == len(conditions) + 1:
        rest = _np["ones"](values.shape, dtype="bool")
        for condition in conditions:
            rest = rest & ~condition
        conditions.append(rest)
    elif n != len(conditions):
        raise ValueError(
            f"with {len(conditions)} condition(s), either {len(conditions)} or {len(conditions) + 1} functions are "
            f"expected, found {n}"
        )
    result: ndarray = _np["zeros_like"](values)
    for condition, function in zip(conditions, funclist, strict=True):
        if not callable(function):
            result = _np["where"](condition, asarray(function, values.dtype), result)
            continue
        piece = values[condition]
        if piece.size:
            spread = _np["zeros_like"](values)
            spread[condition] = asarray(function(piece, *args, **kw), values.dtype)
            result = _np["where"](condition, spread, result)
    return result


def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: ArrayLike, *args: Any, **kwargs: Any) -> ndarray:
    """Calls a function with every line along an axis and puts its results together.

    Parameters
    ----------
    func1d : callable
        Takes an array of one axis; returns arrays of one shape.
    axis : int
    arr : array_like
    *args, **kwargs
        Passed on to `func1d`.

    Returns
    -------
    ndarray
        The shape of `arr` with `axis` replaced by the axes of the results.

    Raises
    ------
    ValueError
        If there are no lines.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.apply_along_axis(lambda x: x[0] + x[-1], 0, mx.np.arange(6).reshape(3, 2))
    array([4, 6])
    """
    x = asarray(arr)
    axis = axis_of("apply_along_axis", axis, x.ndim)
    turned = _np["moveaxis"](x, axis, -1)
    outer = turned.shape[:-1]
    if 0 in outer:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    lines = turned.reshape((math.prod(outer), x.shape[axis]))
    results = [asarray(func1d(lines[i], *args, **kwargs)) for i in range(lines.shape[0])]
    joined = _np["stack"](results).reshape((*outer, *results[0].shape))
    for i in range(results[0].ndim):
        joined = _np["moveaxis"](joined, len(outer) + i, axis + i)
    return joined  # type: ignore[no-any-return]


def apply_over_axes(func: Callable[[ndarray, int], Any], a: ArrayLike, axes: int | Sequence[int]) -> ndarray:
    """Calls a reduction for one axis after the other, keeping the number of axes.

    Parameters
    ----------
    func : callable
        Takes an array and an axis; its result has as many axes or one fewer.
    a : array_like
    axes : int or sequence of int

    Returns
    -------
    ndarray
        As many axes as `a`.

    Raises
    ------
    ValueError
        If a result has another number of axes.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.apply_over_axes(mx.np.sum, mx.np.ones((2, 3, 4)), [0, 2])
    array([[[8.],
            [8.],
            [8.]]])
    """
    x = asarray(a)
    for axis in (axes,) if isinstance(axes, int) else axes:
        positive_axis = axis + x.ndim if axis < 0 else axis
        result = asarray(func(x, positive_axis))
        if result.ndim == x.ndim - 1:
            result = _np["expand_dims"](result, positive_axis)
        if result.ndim != x.ndim:
            raise ValueError(
                f"function is not returning an array of the correct shape: {result.ndim} axes, found from {x.ndim}"
            )
        x = result
    return x
