"""Medians, percentiles and quantiles."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy
from numpy.typing import ArrayLike

from mxnet import _core
from mxnet._core import asarray, ndarray
from mxnet.numpy import _dtypes
from mxnet.numpy._axes import Axes, axes_of
from mxnet.numpy._dtypes import is_exact
from mxnet.numpy._errors import silent, warn_of
from mxnet.numpy._overriding import overridable
from mxnet.numpy._writing import deliver

_op = _core.namespaces["op"]


def _rows(name: str, x: ndarray, axis: Axes) -> ndarray:
    """The array with the reduced axes merged to a last axis."""
    axes = axes_of(name, axis, x.ndim)
    kept = [i for i in range(x.ndim) if i not in axes]
    moved = _op["transpose"](x, (*kept, *axes))
    return cast(ndarray, moved.reshape((*(x.shape[i] for i in kept), math.prod(x.shape[i] for i in axes))))


def _inexact(x: ndarray) -> ndarray:
    if _dtypes.isdtype(x.dtype, ("real floating", "complex floating")):
        return x
    return x.astype(_core.default_dtype("f"))


def _warn_of_empty(x: ndarray, axis: Axes, result: ndarray, looks: bool) -> None:
    """Warn if results have no elements or, if the elements may be read, only NaN."""
    if x.size == 0 and result.size:
        warn_of("Mean of empty slice")
    elif looks and x.size and bool(_op["any"](_op["all"](_op["isnan"](x), axis))):
        warn_of("All-NaN slice encountered")


@overridable
def median(
    a: ArrayLike,
    axis: Axes = None,
    out: ndarray | None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> ndarray:
    """The middle of the sorted elements; the mean of the two middle ones if their number is even.

    Parameters
    ----------
    a : array_like
    axis : int, sequence of int or None
        Axes to reduce; None reduces all of them.
    out : ndarray, optional
        Where the result goes.
    overwrite_input : bool
        Whether `a` may be changed. It never is.
    keepdims : bool
        Keep reduced axes with length 1.

    Returns
    -------
    ndarray
        Of the dtype of `a`; the default float for integers. NaN where there is one among the elements, or no element.

    Raises
    ------
    numpy.exceptions.AxisError
        If there is no such axis.

    Warns
    -----
    RuntimeWarning
        "Mean of empty slice".

    Notes
    -----
    A sample of each long row narrows it down to some thousand elements in one pass; nothing is sorted. The gradient
    goes to the elements in the middle.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.median([[10, 7, 4], [3, 2, 1]])
    array(3.5)
    >>> mx.np.median([[10, 7, 4], [3, 2, 1]], axis=1)
    array([7., 2.])
    """
    del overwrite_input
    x = asarray(a)
    axes = axes_of("median", axis, x.ndim)
    result = _op["median"](x, axes, keepdims)
    _warn_of_empty(x, axes, result, False)
    return deliver("median", result, out, "unsafe")


def _probabilities(name: str, q: Any, scale: float) -> tuple[list[float], tuple[int, ...], Any]:
    """Probabilities as floats, their shape, and their dtype for promotion (None for Python numbers)."""
    if type(q) in (int, float, bool):
        values: list[float] = [q / scale]
        shape: tuple[int, ...] = ()
        dtype = None
    else:
        given = asarray(q)
        if _dtypes.isdtype(given.dtype, "complex floating"):
            raise TypeError(f"{name}: `q` must be real, found {given.dtype}")
        shape = given.shape
        # Arrays that are made while a function is traced have no values; those of Python and of NumPy have.
        known = given if isinstance(q, ndarray) else numpy.asarray(q, given.dtype)
        values = [each / scale for each in known.reshape(-1).astype("float64").tolist()]
        dtype = _inexact(given).dtype
    if not all(0 <= each <= 1 for each in values):
        what = "Percentiles" if scale == 100 else "Quantiles"
        found = [each * scale for each in values]
        raise ValueError(f"{name}: {what} must be in the range [0, {int(scale)}], found {found}")
    return values, shape, dtype


def _weight_rows(name: str, x: ndarray, axis: Axes, weights: ArrayLike) -> ndarray:
    """The weights of the elements of each row, checked."""
    axes = axes_of(name, axis, x.ndim)
    given = asarray(weights)
    if given.shape != x.shape:
        if axis is None or given.shape != tuple(x.shape[i] for i in axes):
            what = TypeError if axis is None else ValueError
            raise what(f"{name}: `weights` must have shape {x.shape} or that of the axes, found {given.shape}")
        order = sorted(range(len(axes)), key=lambda i: axes[i])
        given = _op["transpose"](given, tuple(order))
        given = given.reshape(tuple(n if i in axes else 1 for i, n in enumerate(x.shape)))
        given = _op["broadcast_to"](given, x.shape)
    if given.size and float(_op["min"](given)) < 0:
        raise ValueError(f"{name}: Weights must be non-negative, found {float(_op['min'](given))}")
    rows = _rows(name, given, axis).astype("float64")
    total = rows.sum(-1)
    if rows.shape[-1] and not _op["all"](_op["isfinite"](total) & (total > 0)):
        raise ValueError(f"{name}: Weights included NaN, inf or were all zero in a slice; their sums are {total}")
    return rows


def _weighted(rows: ndarray, weights: ndarray, values: list[float], ignore_nan: bool) -> ndarray:
    """Quantiles of each row by the inverse of the weighted distribution function: of shape (number of values, ...)."""
    spoiled = None
    if _dtypes.isdtype(rows.dtype, "real floating"):
        missing = _op["isnan"](rows)
        spoiled = _op["all" if ignore_nan else "any"](missing, -1)
        if ignore_nan:
            rows, weights = _op["where"](missing, math.inf, rows), _op["where"](missing, 0, weights)
    order = _op["argsort"](rows)
    ordered = _op["gather_along"](rows, order, rows.ndim - 1)
    mass = _op["cumsum"](_op["gather_along"](weights, order, rows.ndim - 1), -1)
    mass = mass / mass[..., -1:]
    # Leading elements without weight are no quantiles, not even for probability 0.
    mass = _op["where"](mass == 0, -1.0, mass)
    found = []
    for q in values:
        at = _op["minimum"](_op["sum"](mass < q, -1, keepdims=True), rows.shape[-1] - 1)
        each = _op["gather_along"](ordered, at, rows.ndim - 1)[..., 0]
        found.append(each if spoiled is None else _op["where"](spoiled, math.nan, each))
    return cast(ndarray, _op["stack"](found, 0) if found else _op["zeros"]((0, *rows.shape[:-1]), rows.dtype))


def _quantile(
    name: str,
    a: ArrayLike,
    q: ArrayLike,
    scale: float,
    axis: Axes,
    out: ndarray | None,
    method: str,
    keepdims: bool,
    weights: ArrayLike | None,
    ignore_nan: bool,
) -> ndarray:
    x = asarray(a)
    values, shape, brought = _probabilities(name, q, scale)
    axes = axes_of(name, axis, x.ndim)
    discrete = method in ("inverted_cdf", "closest_observation", "lower", "higher", "nearest")
    if method == "linear" and scale == 1 and is_exact(asarray(q).dtype):
        # Integers select the first and the last element, without interpolation; every method takes these.
        discrete, method = True, "lower"
    if weights is not None:
        if method != "inverted_cdf":
            raise ValueError(f"{name}: Only method 'inverted_cdf' supports weights, not '{method}'")
        if _dtypes.isdtype(x.dtype, "complex floating"):
            raise TypeError(f"{name}: `a` must be real, found {x.dtype}")
        checked = _weight_rows(name, x, axis, weights)
    if weights is not None and x.size:
        result = _weighted(_rows(name, x, axis), checked, values, ignore_nan)
        if keepdims:
            result = _op["expand_dims"](result, tuple(1 + i for i in axes))
    else:
        base = x.dtype if discrete else _inexact(x).dtype
        dtype = base if discrete or brought is None else _core.result_type([base, brought])
        found = (x, tuple(values), axes, method, keepdims, dtype)
        if ignore_nan:
            with silent():
                result = _op["nanquantile"](*found)
        else:
            result = _op["quantile"](*found)
    with silent() as is_asked:
        if is_asked and ignore_nan and _dtypes.isdtype(x.dtype, "real floating"):
            _warn_of_empty(x, axes, result, True)
    result = result.reshape((*shape, *result.shape[1:]))
    if out is not None and result.ndim == 0:
        result = _op["broadcast_to"](result, out.shape)
    return deliver(name, result, out)


@overridable
def quantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axes = None,
    out: ndarray | None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> ndarray:
    """The values below which given parts of the elements lie.

    Parameters
    ----------
    a : array_like, real
    q : array_like of float
        Probabilities in 0..1.
    axis : int, sequence of int or None
        Axes to reduce; None reduces all of them.
    out : ndarray, optional
        Where the result goes.
    overwrite_input : bool
        Whether `a` may be changed. It never is.
    method : str
        How the value between two elements is found: 'inverted_cdf', 'averaged_inverted_cdf', 'closest_observation',
        'interpolated_inverted_cdf', 'hazen', 'weibull', 'linear', 'median_unbiased', 'normal_unbiased' (methods 1 to 9
        of the source), 'lower', 'higher', 'midpoint', 'nearest'.
    keepdims : bool
        Keep reduced axes with length 1.
    weights : array_like, optional
        Weights of the elements, of the shape of `a` or of its reduced axes; with method 'inverted_cdf'.

    Returns
    -------
    ndarray
        The axes of `q`, then those of `a` that are left. NaN where there is one among the elements.

    Raises
    ------
    IndexError
        If there are no elements.
    TypeError
        For complex numbers.
    ValueError
        For probabilities outside 0..1, another method, weights with another method or negative ones.

    Notes
    -----
    Differences: positions are computed in float64 whatever the dtype of `a`. Source: Hyndman and Fan, "Sample quantiles
    in statistical packages", The American Statistician 50 (1996).

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.quantile([1.0, 2.0, 3.0, 4.0], 0.5)
    array(2.5)
    >>> mx.np.quantile([1.0, 2.0, 3.0, 4.0], [0.25, 0.75], method="lower")
    array([1., 3.])
    """
    del overwrite_input
    return _quantile("quantile", a, q, 1, axis, out, method, keepdims, weights, False)


@overridable
def percentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axes = None,
    out: ndarray | None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> ndarray:
    """The values below which given percentages of the elements lie: `quantile` with `q` in 0..100.

    Parameters
    ----------
    a, q, axis, out, overwrite_input, method, keepdims, weights
        As for `quantile`; `q` in percent.

    Returns
    -------
    ndarray

    Raises
    ------
    TypeError, ValueError
        As `quantile`.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.percentile([[10, 7, 4], [3, 2, 1]], 50, axis=0)
    array([6.5, 4.5, 2.5])
    """
    del overwrite_input
    return _quantile("percentile", a, q, 100, axis, out, method, keepdims, weights, False)


def nanquantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axes = None,
    out: ndarray | None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> ndarray:
    """`quantile` of the elements that are no NaN.

    Parameters
    ----------
    a, q, axis, out, overwrite_input, method, keepdims, weights
        As for `quantile`.

    Returns
    -------
    ndarray
        NaN where there is nothing but NaN.

    Raises
    ------
    TypeError, ValueError
        As `quantile`.

    Notes
    -----
    Differences: there is no warning where there is nothing but NaN, which would have to wait for the values.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.nanquantile([1.0, mx.np.nan, 3.0], 0.5)
    array(2.)
    """
    del overwrite_input
    return _quantile("nanquantile", a, q, 1, axis, out, method, keepdims, weights, True)


def nanpercentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axes = None,
    out: ndarray | None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> ndarray:
    """`percentile` of the elements that are no NaN; see `nanquantile`.

    Parameters
    ----------
    a : array_like
        The array.
    q : array_like
        Percentages, from 0 to 100.
    axis : int, tuple of int or None
        Axes to go over; all of them for None.
    out : ndarray, optional
        Where the result is written.
    overwrite_input : bool
        Accepted; `a` is never changed.
    method : str
        As of `quantile`.
    keepdims : bool
        Whether the axes stay, with length 1.
    weights : array_like, optional
        How much each element counts.

    Returns
    -------
    ndarray
        The axes of `q`, then those of `a` that stay.

    Examples
    --------
    >>> np.nanpercentile([1.0, np.nan, 3.0], 50)
    array(2.)
    """
    del overwrite_input
    return _quantile("nanpercentile", a, q, 100, axis, out, method, keepdims, weights, True)


def nanmedian(
    a: ArrayLike,
    axis: Axes = None,
    out: ndarray | None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> ndarray:
    """`median` of the elements that are no NaN.

    Parameters
    ----------
    a, axis, out, overwrite_input, keepdims
        As for `median`.

    Returns
    -------
    ndarray
        NaN where there is nothing but NaN.

    Warns
    -----
    RuntimeWarning
        "Mean of empty slice" if there is nothing; "All-NaN slice encountered" if `errstate` asks for invalid values:
        looking waits.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.nanmedian([[1.0, mx.np.nan, 5.0], [2.0, 8.0, mx.np.nan]], axis=1)
    array([3., 5.])
    """
    x = asarray(a)
    if not _dtypes.isdtype(x.dtype, ("real floating", "complex floating")):
        return median(x, axis, out, overwrite_input, keepdims)
    axes = axes_of("nanmedian", axis, x.ndim)
    with silent() as is_asked:
        result = _op["nanmedian"](x, axes, keepdims)
        _warn_of_empty(x, axes, result, is_asked)
    return deliver("nanmedian", result, out, "unsafe")
