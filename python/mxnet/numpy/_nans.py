"""Reductions and cumulative sums that ignore NaN."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

from numpy.typing import ArrayLike, DTypeLike

from mxnet import _core
from mxnet._core import asarray, ndarray
from mxnet.error import ShapeError
from mxnet.numpy import _dtype_limits, _dtypes
from mxnet.numpy._axes import Axes, axes_of, axis_of
from mxnet.numpy._dtypes import spelled
from mxnet.numpy._errors import silent, warn_of
from mxnet.numpy._overriding import overridable
from mxnet.numpy._writing import deliver

_op = _core.namespaces["op"]


def _has_nan(x: ndarray) -> bool:
    return not _dtypes.is_exact(x.dtype)


def _mask(name: str, x: ndarray, where: Any) -> ndarray | None:
    """`where` as an array, which broadcasts to the shape of `x`; None if it is True."""
    if where is True:
        return None
    mask = asarray(where)
    pairs = zip(reversed(mask.shape), reversed(x.shape), strict=False)
    if mask.ndim > x.ndim or any(m not in (1, n) for m, n in pairs):
        raise ShapeError(f"{name}: `where` of shape {mask.shape} does not broadcast to the array's shape {x.shape}")
    return mask


def _counted(name: str, x: ndarray, where: Any) -> ndarray | None:
    """Mask of the elements that take part; None if all do."""
    mask = _mask(name, x, where)
    if mask is not None:
        mask = _op["broadcast_to"](mask.astype("bool"), x.shape)
    if not _has_nan(x):
        return mask
    valid: ndarray = _op["equal"](x, x)
    return valid if mask is None else cast(ndarray, _op["logical_and"](valid, mask))


def _filled(x: ndarray, counted: ndarray | None, value: Any) -> ndarray:
    return x if counted is None else cast(ndarray, _op["where"](counted, x, value))


@overridable
def nansum(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: ndarray | None = None,
    keepdims: bool = False,
    initial: Any = 0,
    where: Any = True,
) -> ndarray:
    """Sum of the elements that are no NaN.

    Parameters
    ----------
    a : array_like
    axis : int, sequence of int or None
        Axes to reduce; None reduces all of them.
    dtype : dtype, optional
        Of the sum.
    out : ndarray, optional
        Where the result goes.
    keepdims : bool
        Keep reduced axes with length 1.
    initial : number
        What the sum starts from.
    where : array_like of bool
        The elements that take part.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.nansum([1.0, mx.np.nan, 2.0])
    array(3.)
    """
    x = asarray(a)
    if where is True and (dtype is None or not _has_nan(x) or not _dtypes.is_exact(_core.result_type([dtype]))):
        result = _op["nansum"](x, axis, dtype, keepdims)
    else:
        result = _op["sum"](_filled(x, _counted("nansum", x, where), 0), axis, dtype, keepdims=keepdims)
    if initial is not None and initial != 0:
        result = result + asarray(initial).astype(result.dtype)
    return deliver("nansum", result, out, "unsafe")


@overridable
def nanprod(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: ndarray | None = None,
    keepdims: bool = False,
    initial: Any = 1,
    where: Any = True,
) -> ndarray:
    """Product of the elements that are no NaN; arguments as for `nansum`.

    Parameters
    ----------
    a : array_like
        The array.
    axis : int, tuple of int or None
        Axes to go over; all of them for None.
    dtype : dtype, optional
        Dtype of the computation and of the result.
    out : ndarray, optional
        Where the result is written.
    keepdims : bool
        Whether the axes stay, with length 1.
    initial : number
        What the product starts from.
    where : array_like of bool
        Elements where this is false are left out.

    Returns
    -------
    ndarray
        Of the shape of `a` without the axes.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.nanprod([3.0, mx.np.nan, 2.0])
    array(6.)
    """
    x = asarray(a)
    result = _op["prod"](_filled(x, _counted("nanprod", x, where), 1), axis, dtype, keepdims=keepdims)
    if initial is not None and initial != 1:
        result = result * asarray(initial).astype(result.dtype)
    return deliver("nanprod", result, out, "unsafe")


def _limit(x: ndarray, sign: int) -> Any:
    """A value that no element of the dtype exceeds (sign 1), or that no element is below (sign -1)."""
    if _dtypes.kind_of(x.dtype) == "c":
        return complex(sign * math.inf, sign * math.inf)
    if _has_nan(x):
        return sign * math.inf
    if spelled(x.dtype) == "bool":
        return sign > 0
    info = _dtype_limits.iinfo(x.dtype)
    return info.max if sign > 0 else info.min


def _extreme(
    name: str, a: ArrayLike, axis: Axes, out: ndarray | None, keepdims: bool, initial: Any, where: Any
) -> ndarray:
    x = asarray(a)
    if where is not True and initial is None:
        raise ValueError(f"{name}: with `where` an `initial` value is required")
    if initial is not None and x.size == 0:
        shape = _op["sum"](x, axis, keepdims=keepdims).shape
        return deliver(name, _op["full"](shape, initial, x.dtype), out, "unsafe")
    with silent() as is_asked:
        result, has_none = _folded_extreme(name, x, axis, keepdims, initial, where)
        if is_asked and has_none and bool(_op["any"](_op["isnan"](result))):
            warn_of("All-NaN slice encountered")
    return deliver(name, result, out, "unsafe")


def _folded_extreme(
    name: str, x: ndarray, axis: Axes, keepdims: bool, initial: Any, where: Any
) -> tuple[ndarray, bool]:
    """The extremes, and where they are NaN because there is no element."""
    fold, pair, sign = ("max", "fmax", -1) if name == "nanmax" else ("min", "fmin", 1)
    mask = _mask(name, x, where)
    if mask is not None:
        mask = _op["broadcast_to"](mask.astype("bool"), x.shape)
        x = _filled(x, mask, math.nan if _has_nan(x) else _limit(x, sign))
    if _dtypes.kind_of(x.dtype) == "c":
        counted = _counted(name, x, True)
        result = _op[fold](_filled(x, counted, _limit(x, sign)), axis, keepdims=keepdims)
        result = _op["where"](_op["any"](counted, axis, keepdims=keepdims), result, math.nan)
    else:
        result = _op[f"nan{fold}"](x, axis, keepdims)
    if initial is not None:
        return _op[pair](result, asarray(initial).astype(result.dtype)), False
    return result, _has_nan(x)


@overridable
def nanmax(
    a: ArrayLike,
    axis: Axes = None,
    out: ndarray | None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> ndarray:
    """The largest of the elements that are no NaN.

    Parameters
    ----------
    a : array_like
        Complex numbers are ordered by their real parts, then by their imaginary ones.
    axis : int, sequence of int or None
        Axes to reduce; None reduces all of them.
    out : ndarray, optional
        Where the result goes.
    keepdims : bool
        Keep reduced axes with length 1.
    initial : number, optional
        The least that the result can be.
    where : array_like of bool
        The elements that take part; with `initial` only.

    Returns
    -------
    ndarray
        NaN where there is nothing but NaN.

    Raises
    ------
    ValueError
        If there are no elements and no `initial` value.

    Warns
    -----
    RuntimeWarning
        "All-NaN slice encountered", if `errstate` asks for invalid values: looking waits for them.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.nanmax([[1.0, mx.np.nan], [mx.np.nan, mx.np.nan]], axis=1)
    array([ 1., nan])
    """
    return _extreme("nanmax", a, axis, out, keepdims, initial, where)


@overridable
def nanmin(
    a: ArrayLike,
    axis: Axes = None,
    out: ndarray | None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> ndarray:
    """The smallest of the elements that are no NaN; arguments as for `nanmax`, `initial` being the most it can be.

    Parameters
    ----------
    a : array_like
        The array.
    axis : int, tuple of int or None
        Axes to go over; all of them for None.
    out : ndarray, optional
        Where the result is written.
    keepdims : bool
        Whether the axes stay, with length 1.
    initial : number, optional
        The most the result can be.
    where : array_like of bool
        Elements where this is false are left out.

    Returns
    -------
    ndarray
        Of the shape of `a` without the axes; NaN where all are NaN.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.nanmin([1.0, mx.np.nan, 3.0])
    array(1.)
    """
    return _extreme("nanmin", a, axis, out, keepdims, initial, where)


def _position(name: str, a: ArrayLike, axis: int | None, out: ndarray | None, keepdims: bool) -> ndarray:
    x = asarray(a)
    if axis is not None:
        axis = axis_of(name, axis, x.ndim)
    # The largest element is NaN if any is. Most arrays have no NaN: they are read twice instead of copied.
    has_none = not _has_nan(x) or (x.size > 0 and not bool(_op["isnan"](_op["max"](x))))
    counted = None if has_none else _counted(name, x, True)
    filled = _filled(x, counted, _limit(x, -1 if name == "nanargmax" else 1))
    result = _op[name[3:]](filled, axis, keepdims=keepdims)
    if counted is not None and not bool(_op["all"](_op["any"](counted, axis))):
        raise ValueError(f"{name}: All-NaN slice encountered: there is nothing but NaN along axis {axis}")
    return deliver(name, result, out)


def nanargmax(a: ArrayLike, axis: int | None = None, out: ndarray | None = None, *, keepdims: bool = False) -> ndarray:
    """Position of the largest of the elements that are no NaN.

    Parameters
    ----------
    a : array_like, real
    axis : int or None
        None takes the flattened array.
    out : ndarray, optional
        Where the result goes.
    keepdims : bool
        Keep the axis with length 1.

    Returns
    -------
    ndarray
        int64.

    Raises
    ------
    ValueError
        If there is nothing but NaN; the call waits for the values.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.nanargmax([mx.np.nan, 4.0, 9.0])
    array(2)
    """
    return _position("nanargmax", a, axis, out, keepdims)


def nanargmin(a: ArrayLike, axis: int | None = None, out: ndarray | None = None, *, keepdims: bool = False) -> ndarray:
    """Position of the smallest of the elements that are no NaN; see `nanargmax`.

    Parameters
    ----------
    a : array_like
        The array.
    axis : int, optional
        Axis to go along; None takes the elements as one row.
    out : ndarray, optional
        Where the result is written.
    keepdims : bool
        Whether the axis stays, with length 1.

    Returns
    -------
    ndarray of int64
        Of the shape of `a` without the axis.

    Raises
    ------
    ValueError
        If all elements of a row are NaN.

    Examples
    --------
    >>> np.nanargmin([np.nan, 3.0, 1.0])
    array(2)
    """
    return _position("nanargmin", a, axis, out, keepdims)


def _length(name: str, x: ndarray, axis: Axes) -> int:
    """Number of elements that are reduced to one result."""
    return math.prod(x.shape[i] for i in axes_of(name, axis, x.ndim))


def _has_at_most(name: str, x: ndarray, axis: Axes, where: Any, most: float) -> bool:
    """Whether some result is made of at most `most` elements. Waits for them."""
    counted = _counted(name, x, where)
    return counted is not None and bool(_op["any"](_op["less_equal"](_op["sum"](counted, axis), most)))


@overridable
def nanmean(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: ndarray | None = None,
    keepdims: bool = False,
    *,
    where: Any = True,
) -> ndarray:
    """Mean of the elements that are no NaN.

    Parameters
    ----------
    a : array_like
    axis : int, sequence of int or None
        Axes to reduce; None reduces all of them.
    dtype : dtype, optional
        That the mean is computed in.
    out : ndarray, optional
        Where the result goes.
    keepdims : bool
        Keep reduced axes with length 1.
    where : array_like of bool
        The elements that take part.

    Returns
    -------
    ndarray
        NaN where there is nothing but NaN.

    Raises
    ------
    TypeError
        If the elements are floats and `dtype` is no type of floats.

    Warns
    -----
    RuntimeWarning
        "Mean of empty slice", if there are no elements, or if all are NaN and `errstate` asks for invalid values:
        looking waits for them.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.nanmean([[1.0, mx.np.nan], [3.0, 4.0]], axis=0)
    array([2., 4.])
    """
    x = asarray(a)
    with silent() as is_asked:
        result = _op["nanmean"](x, axis, dtype, keepdims, _mask("nanmean", x, where))
        if result.size and (
            _length("nanmean", x, axis) == 0 or (is_asked and _has_at_most("nanmean", x, axis, where, 0))
        ):
            warn_of("Mean of empty slice")
    return deliver("nanmean", result, out, "unsafe")


def _variance(
    name: str,
    a: ArrayLike,
    axis: Axes,
    dtype: DTypeLike | None,
    ddof: float,
    keepdims: bool,
    where: Any,
    mean: ArrayLike | None,
    correction: float | None,
) -> ndarray:
    if correction is not None:
        if ddof != 0:
            raise ValueError(f"{name}: ddof and correction can't be provided simultaneously.")
        ddof = correction
    x = asarray(a)
    center = None if mean is None else asarray(mean)
    with silent() as is_asked:
        result: ndarray = _op[name](x, axis, dtype, float(ddof), keepdims, _mask(name, x, where), center)
        too_short = _length(name, x, axis) <= ddof
        if result.size and (too_short or (is_asked and _has_at_most(name, x, axis, where, ddof))):
            warn_of("Degrees of freedom <= 0 for slice.")
    return result


@overridable
def nanvar(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: ndarray | None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = True,
    mean: ArrayLike | None = None,
    correction: float | None = None,
) -> ndarray:
    """Variance of the elements that are no NaN.

    Parameters
    ----------
    a, axis, dtype, out, keepdims, where
        As for `nanmean`.
    ddof, correction : float
        What is subtracted from the number of elements that the sum of squares is divided by; two names of one thing.
    mean : array_like, optional
        The mean, if it is known, as ``nanmean(..., keepdims=True)`` returns it.

    Returns
    -------
    ndarray
        Real; NaN where there are too few elements.

    Raises
    ------
    TypeError
        If the elements are floats and `dtype` is no type of floats.
    ValueError
        If both `ddof` and `correction` are given.

    Warns
    -----
    RuntimeWarning
        "Degrees of freedom <= 0 for slice.", if there are too few elements, or too few that are no NaN and `errstate`
        asks for invalid values: looking waits for them.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.nanvar([1.0, mx.np.nan, 3.0])
    array(1.)
    """
    result = _variance("nanvar", a, axis, dtype, ddof, keepdims, where, mean, correction)
    return deliver("nanvar", result, out, "unsafe")


@overridable
def nanstd(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: ndarray | None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = True,
    mean: ArrayLike | None = None,
    correction: float | None = None,
) -> ndarray:
    """Standard deviation of the elements that are no NaN: the square root of `nanvar`.

    Parameters
    ----------
    a : array_like
        The array.
    axis : int, tuple of int or None
        Axes to go over; all of them for None.
    dtype : dtype, optional
        Dtype of the computation and of the result.
    out : ndarray, optional
        Where the result is written.
    ddof, correction : float
        What the number of elements is reduced by; one of the two.
    keepdims : bool
        Whether the axes stay, with length 1.
    where : array_like of bool
        Elements where this is false are left out.
    mean : array_like, optional
        The mean, if it has been computed before.

    Returns
    -------
    ndarray
        Of the shape of `a` without the axes.

    Examples
    --------
    >>> np.nanstd([1.0, np.nan, 3.0])
    array(1.)
    """
    return deliver("nanstd", _variance("nanstd", a, axis, dtype, ddof, keepdims, where, mean, correction), out)
