"""Differences, slopes, integrals and interpolation of samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy
from numpy.typing import ArrayLike

from mxnet import _core
from mxnet._core import asarray, ndarray
from mxnet.numpy._dtypes import spelled
from mxnet.numpy._errors import silent

_np = _core.namespaces["numpy"]
_op = _core.namespaces["op"]

Axes = int | tuple[int, ...] | None


def _floating(x: ndarray) -> ndarray:
    """The array itself if its elements are floats or complex, else in the default float."""
    if "float" in spelled(x.dtype) or "complex" in spelled(x.dtype):
        return x
    return _op["astype"](x, "float64" if _core.numpy_promotion() else "float32")  # type: ignore[no-any-return]


def _axis_of(axis: int, ndim: int) -> int:
    if not -ndim <= axis < ndim:
        raise numpy.exceptions.AxisError(axis, ndim)
    return axis % ndim


def _part(x: ndarray, axis: int, start: int | None, stop: int | None) -> ndarray:
    """The elements `start` to `stop` along `axis`."""
    part: ndarray = x[(*[slice(None)] * axis, slice(start, stop))]
    return part


def _along(x: ndarray, axis: int, ndim: int) -> ndarray:
    """A sequence as an array of `ndim` axes that has it along `axis`."""
    return x.reshape(tuple(x.size if i == axis else 1 for i in range(ndim)))


def ediff1d(ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None) -> ndarray:
    """Differences of neighbours in the flattened array.

    Parameters
    ----------
    ary : array_like
    to_end, to_begin : array_like, optional
        What is put behind and before the differences; it must be of the same kind of dtype.

    Returns
    -------
    ndarray, one axis, the dtype of `ary`

    Raises
    ------
    TypeError
        If the dtype of an end cannot become that of `ary`.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.ediff1d(mx.np.array([1, 4, 9]), to_begin=0)
    array([0, 3, 5])
    """
    x = asarray(ary).reshape(-1)
    parts = [_np["diff"](x)]
    for end, name, place in ((to_begin, "to_begin", 0), (to_end, "to_end", 2)):
        if end is None:
            continue
        piece = asarray(end).reshape(-1)
        if not isinstance(end, int | float) and not numpy.can_cast(piece.dtype, x.dtype, "same_kind"):
            raise TypeError(
                f"ediff1d: dtype of `{name}` must be compatible with that of `ary`, {x.dtype}, found {piece.dtype}"
            )
        if isinstance(end, float) and "int" in spelled(x.dtype):
            raise TypeError(f"ediff1d: dtype of `{name}` must be compatible with that of `ary`, {x.dtype}, found {end}")
        parts.insert(place, _op["astype"](piece, x.dtype))
    return _np["concatenate"](parts)  # type: ignore[no-any-return]


def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1) -> ndarray:
    """Integral along an axis by the trapezoidal rule.

    Parameters
    ----------
    y : array_like
        Samples.
    x : array_like, optional
        Where they were taken: along `axis`, or of the shape of `y`.
    dx : float
        Their distance, if `x` is left out.
    axis : int
        The axis that is integrated over.

    Returns
    -------
    ndarray
        Shape of `y` without `axis`.

    Notes
    -----
    Differentiable in `y`, `x` and `dx`.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.trapezoid(mx.np.array([1.0, 2.0, 3.0]), dx=2)
    array(8.)
    """
    samples = asarray(y)
    axis = _axis_of(axis, samples.ndim)
    step: Any
    if x is None:
        step = dx
    else:
        places = asarray(x)
        if places.ndim == 1:
            step = _along(_np["diff"](places), axis, samples.ndim)
        else:
            step = _np["diff"](places, axis=axis - samples.ndim)
    heights = _part(samples, axis, 1, None) + _part(samples, axis, None, -1)
    return _np["sum"](step * heights / 2.0, axis=axis)  # type: ignore[no-any-return]


def _spacings(varargs: Sequence[Any], axes: Sequence[int], shape: Sequence[int]) -> list[Any]:
    """For each axis a distance, or an array of coordinates."""
    if not varargs:
        return [1.0] * len(axes)
    if len(varargs) == 1 and asarray(varargs[0]).ndim == 0:
        return list(varargs) * len(axes)
    if len(varargs) != len(axes):
        raise TypeError(f"gradient: invalid number of arguments: {len(varargs)} spacings for {len(axes)} axes")
    spacings: list[Any] = []
    for given, axis in zip(varargs, axes, strict=True):
        places = asarray(given)
        if places.ndim == 0:
            spacings.append(given)
        elif places.ndim == 1:
            if places.size != shape[axis]:
                raise ValueError(
                    f"gradient: {places.size} coordinates for axis {axis} of size {shape[axis]}: they must match"
                )
            spacings.append(_floating(places))
        else:
            raise ValueError(f"gradient: distances must be either scalars or 1d, found {places.ndim} axes")
    return spacings


def _end_slope(f: ndarray, axis: int, steps: Any, edge_order: int, at_start: bool) -> ndarray:
    """Slope at one end by a polynomial of degree `edge_order`; `steps`: the two distances there, outer first."""

    def pick(k: int) -> ndarray:
        return _part(f, axis, k, k + 1) if at_start else _part(f, axis, -k - 1, -k or None)

    sign = 1.0 if at_start else -1.0
    f0, f1 = pick(0), pick(1)
    h0, h1 = steps
    if edge_order == 1:
        return sign * (f1 - f0) / h0  # type: ignore[no-any-return]
    f2 = pick(2)
    # The derivative at 0 of the parabola through (0, f0), (h0, f1), (h0 + h1, f2).
    a = -(2.0 * h0 + h1) / (h0 * (h0 + h1))
    b = (h0 + h1) / (h0 * h1)
    c = -h0 / (h1 * (h0 + h1))
    return sign * (a * f0 + b * f1 + c * f2)  # type: ignore[no-any-return]


def _slopes(f: ndarray, spacing: Any, axis: int, edge_order: int) -> ndarray:
    before, after = _part(f, axis, None, -2), _part(f, axis, 2, None)
    if isinstance(spacing, ndarray) and spacing.ndim == 1:
        steps = _along(_np["diff"](spacing), axis, f.ndim)
        left, right = _part(steps, axis, None, -1), _part(steps, axis, 1, None)
        middle = _part(f, axis, 1, -1)
        # The derivative in the middle of the parabola through three points.
        inner = (
            before * (-right / (left * (left + right)))
            + middle * ((right - left) / (left * right))
            + after * (left / (right * (left + right)))
        )
        first = (_part(steps, axis, 0, 1), _part(steps, axis, 1, 2))
        last = (_part(steps, axis, -1, None), _part(steps, axis, -2, -1))
    else:
        inner = (after - before) / (2.0 * spacing)
        first = last = (spacing, spacing)
    start = _end_slope(f, axis, first, edge_order, True)
    end = _end_slope(f, axis, last, edge_order, False)
    return _np["concatenate"]([start, inner, end], axis)  # type: ignore[no-any-return]


def gradient(f: ArrayLike, *varargs: ArrayLike, axis: Axes = None, edge_order: int = 1) -> Any:
    """Slopes of samples: central differences of second order inside, one-sided ones at the ends.

    Parameters
    ----------
    f : array_like
    *varargs : float or array_like
        Distances: none (1), one for all axes, or for each axis a number or the coordinates along it.
    axis : int, tuple of int or None
        Axes along which slopes are taken; None takes all of them.
    edge_order : {1, 2}
        Order of accuracy at the ends.

    Returns
    -------
    ndarray, or tuple of ndarray if there are several axes
        Each of the shape of `f`; integers become floats.

    Raises
    ------
    ValueError
        If an axis has fewer than ``edge_order + 1`` elements, or coordinates do not fit.
    TypeError
        If the number of distances is not that of the axes.

    Notes
    -----
    Differentiable in `f` and in arrays of coordinates. Coordinates are taken as they are, evenly spaced or not.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.gradient(mx.np.array([1.0, 2.0, 4.0, 7.0]))
    array([1. , 1.5, 2.5, 3. ])
    """
    samples = _floating(asarray(f))
    if axis is None:
        axes = list(range(samples.ndim))
    else:
        axes = [_axis_of(a, samples.ndim) for a in ((axis,) if isinstance(axis, int) else axis)]
        if len(set(axes)) < len(axes):
            raise ValueError(f"gradient: repeated axis in {axis}")
    if edge_order not in (1, 2):
        raise ValueError(f"gradient: `edge_order` greater than 2 not supported: it must be 1 or 2, found {edge_order}")
    spacings = _spacings(varargs, axes, samples.shape)
    results = []
    for a, spacing in zip(axes, spacings, strict=True):
        if samples.shape[a] < edge_order + 1:
            raise ValueError(
                "gradient: Shape of array too small to calculate a numerical gradient: "
                f"axis {a} has {samples.shape[a]} elements, at least {edge_order + 1} are needed"
            )
        results.append(_slopes(samples, spacing, a, edge_order))
    return results[0] if len(axes) == 1 else tuple(results)


def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: ArrayLike | None = None,
    right: ArrayLike | None = None,
    period: float | None = None,
) -> ndarray:
    """Linear interpolation between points.

    Parameters
    ----------
    x : array_like
        Where values are wanted.
    xp : array_like, shape (n,)
        Coordinates of the points, ascending unless `period` is given.
    fp : array_like, shape (n,), real or complex
        Their values.
    left, right : number, optional
        The value before the first and behind the last point; the first and the last of `fp` if left out.
    period : float, optional
        Period of the coordinates; `left` and `right` are then of no effect.

    Returns
    -------
    ndarray
        Shape of `x`, of the float dtype that the arguments promote to. (NumPy computes in float64.)

    Raises
    ------
    ValueError
        If there are no points, `xp` and `fp` are not of one length and one axis, or `period` is 0.

    Notes
    -----
    Differentiable in `x`, `xp` and `fp`.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.interp([0.5, 3.0], [0, 1, 2], [0.0, 10.0, 30.0])
    array([ 5., 30.])
    """
    at, places, values = _floating(asarray(x)), _floating(asarray(xp)), _floating(asarray(fp))
    if places.ndim != 1 or values.ndim != 1:
        raise ValueError(f"interp: Data points must be 1-D sequences, found {places.ndim} and {values.ndim} axes")
    if places.size != values.size:
        raise ValueError(f"interp: fp and xp are not of the same length: {values.size} and {places.size}")
    if places.size == 0:
        raise ValueError("interp: array of sample points is empty")
    if period is not None:
        if period == 0:
            raise ValueError("interp: period must be a non-zero value")
        period = abs(period)
        left = right = None
        at, places = at % period, places % period
        order = _np["argsort"](places.detach())
        places, values = _np["take"](places, order), _np["take"](values, order)
        places = _np["concatenate"]([_part(places, 0, -1, None) - period, places, _part(places, 0, 0, 1) + period])
        values = _np["concatenate"]([_part(values, 0, -1, None), values, _part(values, 0, 0, 1)])
    low = values[0] if left is None else asarray(left)
    high = values[places.size - 1] if right is None else asarray(right)
    with silent():
        if not str(_core.result_type([values.dtype, low.dtype, high.dtype])).startswith("complex"):
            return _interpolated(at, places, values, low, high)
        # Part by part, so that an infinite part leaves the other one alone.
        parts = [_interpolated(at, places, *(_np[part](y) for y in (values, low, high))) for part in ("real", "imag")]
        return _op["complex_of"](*parts)  # type: ignore[no-any-return]


def _interpolated(at: ndarray, places: ndarray, values: ndarray, low: ndarray, high: ndarray) -> ndarray:
    n = places.size
    if n == 1:
        result = values[0] + 0 * at
    else:
        found = _np["searchsorted"](places.detach(), at.detach(), "right") - 1
        i = _np["clip"](found, 0, n - 2)
        x0, y0, x1, y1 = (_np["take"](p, j) for j in (i, i + 1) for p in (places, values))
        step = x1 - x0
        # Two points at one place have no slope between them; the later one counts.
        safe = _np["where"](step == 0, _np["ones_like"](step), step)
        slope = (y1 - y0) / safe
        result = y0 + slope * (at - x0)
        # Infinities: from the other end there may be a number, and between equals there is one.
        missing = _np["isnan"](result)
        other = _np["where"](missing, y1 + slope * (at - x1), result)
        result = _np["where"](_np["logical_and"](_np["isnan"](other), y0 == y1), y0, other)
        # A point is its own value, whatever follows it.
        result = _np["where"](at == x0, y0, result)
        result = _np["where"](at == places[n - 1], values[n - 1], result)
        result = _np["where"](_np["isnan"](at), at, result)
    result = _np["where"](at < places[0], low, result)
    return _np["where"](at > places[n - 1], high, result)  # type: ignore[no-any-return]


def unwrap(p: ArrayLike, discont: float | None = None, axis: int = -1, *, period: float = 2 * math.pi) -> ndarray:
    """Phases without jumps: multiples of the period are added so that neighbours differ by at most half of it.

    Parameters
    ----------
    p : array_like
    discont : float, optional
        Jumps up to this size are left alone; half a period if left out, and never less.
    axis : int
        The axis along which the phases follow one another.
    period : float
        An integer period keeps integers.

    Returns
    -------
    ndarray
        Shape of `p`.

    Notes
    -----
    Differentiable: what is added is constant.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.unwrap(mx.np.array([0, 3, 1]), period=4)
    array([ 0, -1, -3])
    """
    phases = asarray(p)
    whole = isinstance(period, int) and "int" in spelled(phases.dtype)
    if not whole:
        phases = _floating(phases)
    axis = _axis_of(axis, phases.ndim)
    limit = period / 2 if discont is None else discont
    steps = _np["diff"](phases.detach(), axis=axis)
    half: Any
    if whole:
        half, odd = divmod(int(period), 2)
        ambiguous = odd == 0
    else:
        half, ambiguous = period / 2, True
    wrapped = (steps + half) % period - half
    if ambiguous:
        # Half a period may be either end: the sign of the step decides.
        wrapped = _np["where"]((wrapped == -half) & (steps > 0), _np["full_like"](wrapped, half), wrapped)
    added = wrapped - steps
    added = _np["where"](_np["abs"](steps) < limit, _np["zeros_like"](added), added)
    first = _part(phases, axis, 0, 1)
    rest = _part(phases, axis, 1, None) + _op["astype"](_np["cumsum"](added, axis=axis), phases.dtype)
    return _np["concatenate"]([first, rest], axis)  # type: ignore[no-any-return]
