"""Medians, percentiles and quantiles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy
from numpy.typing import ArrayLike

from mxnet import _core
from mxnet._core import asarray, ndarray
from mxnet.numpy import _dtypes
from mxnet.numpy._dtypes import is_exact
from mxnet.numpy._errors import silent, warn_of
from mxnet.numpy._joining import axis_of
from mxnet.numpy._writing import deliver

_op = _core.namespaces["op"]

Axes = int | Sequence[int] | None

_METHODS = (
    "interpolated_inverted_cdf",
    "hazen",
    "weibull",
    "linear",
    "median_unbiased",
    "normal_unbiased",
    "inverted_cdf",
    "averaged_inverted_cdf",
    "closest_observation",
    "lower",
    "higher",
    "midpoint",
    "nearest",
)


def _rows(x: ndarray, axis: Axes) -> tuple[ndarray, tuple[int, ...]]:
    """The array with the reduced axes merged to a last axis, and those axes."""
    if axis is None:
        return x.reshape(-1), tuple(range(x.ndim))
    axes = tuple(axis_of(i, x.ndim) for i in ((axis,) if isinstance(axis, int) else axis))
    if len(set(axes)) < len(axes):
        raise ValueError(f"axes must be different, found {axes}")
    kept = [i for i in range(x.ndim) if i not in axes]
    moved = x if (*kept, *axes) == tuple(range(x.ndim)) else _op["transpose"](x, (*kept, *axes))
    if len(axes) == 1:
        return moved, axes
    length = math.prod(x.shape[i] for i in axes)
    return moved.reshape((*(x.shape[i] for i in kept), length)), axes


def _kept(result: ndarray, leading: int, axes: tuple[int, ...], ndim: int, keepdims: bool) -> ndarray:
    """Insert the reduced axes with length 1, after `leading` axes of the result."""
    if not keepdims:
        return result
    return cast(ndarray, _op["expand_dims"](result, tuple(leading + i for i in axes)))


def _between(low: ndarray, high: ndarray, part: Any) -> ndarray:
    """Linear interpolation: `low` at 0, `high` at 1, exact at both ends. NaN at infinities, as in NumPy."""
    step = high - low
    if isinstance(part, float):
        return low + step * part if part < 0.5 else high - step * (1 - part)
    return cast(ndarray, _op["where"](part < 0.5, low + step * part, high - step * (1 - part)))


def _inexact(x: ndarray) -> ndarray:
    if _dtypes.isdtype(x.dtype, ("real floating", "complex floating")):
        return x
    return x.astype(_core.default_dtype("f"))


def _nans(shape: tuple[int, ...], dtype: Any) -> ndarray:
    both = complex(math.nan, math.nan) if str(dtype).startswith("complex") else math.nan
    return cast(ndarray, _op["full"](shape, both, dtype))


def _warn_of_nothing(rows: ndarray, looks: bool) -> None:
    """Warn if rows are empty or, if the elements may be read, contain only NaN."""
    if math.prod(rows.shape[:-1]) and rows.shape[-1] == 0:
        warn_of("Mean of empty slice")
    elif looks and rows.size and bool(_op["any"](_op["all"](_op["isnan"](rows), -1))):
        warn_of("All-NaN slice encountered")


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
    rows, axes = _rows(x, axis)
    if rows.shape[-1] == 0:
        _warn_of_nothing(rows, False)
        # 0 / 0 also reports an invalid value, as the mean of no elements does in NumPy.
        result = _op["sum"](_inexact(rows), -1) / 0
    else:
        result = _op["median"](rows, -1)
    return deliver("median", _kept(result, 0, axes, x.ndim, keepdims), out)


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


def _weighted(name: str, rows: ndarray, weights: ndarray, values: list[float]) -> list[ndarray]:
    """Quantiles by the inverse of the weighted distribution function."""
    order = _op["argsort"](rows)
    ordered = _op["gather_along"](rows, order, rows.ndim - 1)
    mass = _op["cumsum"](_op["gather_along"](weights.astype("float64"), order, rows.ndim - 1), -1)
    mass = mass / mass[..., -1:]
    # Leading elements without weight are no quantiles, not even for probability 0.
    mass = _op["where"](mass == 0, -1.0, mass)
    spoiled = _op["isnan"](ordered[..., -1]) if _is_real_float(rows) else None
    found = []
    for q in values:
        at = _op["minimum"](_op["sum"](mass < q, -1, keepdims=True), rows.shape[-1] - 1)
        each = _op["gather_along"](ordered, at, rows.ndim - 1)[..., 0]
        found.append(each if spoiled is None else _op["where"](spoiled, math.nan, each))
    return found


def _is_real_float(x: ndarray) -> bool:
    return _dtypes.isdtype(x.dtype, "real floating")


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
    if _dtypes.isdtype(x.dtype, "complex floating"):
        raise TypeError(f"{name}: `a` must be real, found {x.dtype}")
    if method not in _METHODS:
        raise ValueError(f"{name}: `method` must be one of {', '.join(_METHODS)}, not '{method}'")
    values, shape, brought = _probabilities(name, q, scale)
    rows, axes = _rows(x, axis)
    with silent() as is_asked:
        if is_asked and ignore_nan and _is_real_float(x):
            _warn_of_nothing(rows, True)
    discrete = method in ("inverted_cdf", "closest_observation", "lower", "higher", "nearest")
    if method == "linear" and scale == 1:
        # Integers select the first and the last element, without interpolation.
        discrete = is_exact(asarray(q).dtype)
    if not discrete and _dtypes.spelled(x.dtype) == "bool":
        raise TypeError(f"{name}: truth values have no differences: convert them to numbers")
    base = x.dtype if discrete else _inexact(x).dtype
    dtype = base if discrete or brought is None else _core.result_type([base, brought])
    if weights is not None:
        if method != "inverted_cdf":
            raise ValueError(f"{name}: Only method 'inverted_cdf' supports weights, not '{method}'")
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
        weight_rows, _ = _rows(given, axis)
        total = weight_rows.astype("float64").sum(-1)
        if rows.shape[-1] and not _op["all"](_op["isfinite"](total) & (total > 0)):
            raise ValueError(f"{name}: Weights included NaN, inf or were all zero in a slice; their sums are {total}")
    if rows.shape[-1] == 0:
        if not ignore_nan:
            raise IndexError(f"{name}: there is no element to take a quantile of")
        found = [_nans(rows.shape[:-1], dtype)] * len(values)
    elif weights is not None:
        if ignore_nan and _is_real_float(x):
            missing = _op["isnan"](rows)
            rows = _op["where"](missing, math.inf, rows)
            everything = _op["all"](missing, -1)
            weight_rows = _op["where"](missing, 0, weight_rows)
            found = [_op["where"](everything, math.nan, each) for each in _weighted(name, rows, weight_rows, values)]
        else:
            found = _weighted(name, rows, weight_rows, values)
    else:
        # Where integers name the first and the last element, every method takes these.
        way = "lower" if method == "linear" and discrete else method
        function = _op["nanquantile" if ignore_nan else "quantile"]
        found = list(function(rows, tuple(values), -1, way, False, dtype)) if values else []
    if shape == ():
        result, leading = found[0], 0
    elif found:
        result, leading = _op["stack"](found, 0).reshape((*shape, *found[0].shape)), len(shape)
    else:
        result, leading = _op["zeros"]((*shape, *rows.shape[:-1]), dtype), len(shape)
    result = _kept(result, leading, axes, x.ndim, keepdims)
    if out is not None and result.ndim == 0:
        result = _op["broadcast_to"](result, out.shape)
    return deliver(name, result, out)


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
    rows, axes = _rows(x, axis)
    with silent() as is_asked:
        result = _op["nanmedian"](rows, -1)
        _warn_of_nothing(rows, is_asked)
    return deliver("nanmedian", _kept(result, 0, axes, x.ndim, keepdims), out)
