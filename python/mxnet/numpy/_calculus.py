"""Gradients and phases of samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy
from numpy.typing import ArrayLike

from mxnet import _core
from mxnet._core import asarray, ndarray
from mxnet.numpy._axes import axes_of, axis_of
from mxnet.numpy._dtypes import is_exact, kind_of, spelled
from mxnet.numpy._errors import silent

_np = _core.namespaces["numpy"]
_op = _core.namespaces["op"]

Axes = int | tuple[int, ...] | None
# The default distance of samples: the division by it is skipped.
_UNIT = 1.0


def _floating(x: ndarray) -> ndarray:
    """The array itself if its dtype is inexact, else converted to the default float."""
    if not is_exact(x.dtype):
        return x
    return _op["astype"](x, "float64" if _core.numpy_promotion() else "float32")  # type: ignore[no-any-return]


def _part(x: ndarray, axis: int, start: int | None, stop: int | None) -> ndarray:
    """The elements `start` to `stop` along `axis`."""
    if axis == 0:
        return x[start:stop]
    part: ndarray = x[(*[slice(None)] * axis, slice(start, stop))]
    return part


def _along(x: ndarray, axis: int, ndim: int) -> ndarray:
    """A sequence as an array of `ndim` axes, all of length 1 but `axis`."""
    return x.reshape(tuple(x.size if i == axis else 1 for i in range(ndim)))


def _spacings(varargs: Sequence[Any], axes: Sequence[int], shape: Sequence[int]) -> list[Any]:
    """For each axis, the distance or an array of coordinates."""
    if not varargs:
        return [_UNIT] * len(axes)
    if len(varargs) == 1 and asarray(varargs[0]).ndim == 0:
        return list(varargs) * len(axes)
    if len(varargs) != len(axes):
        raise TypeError(f"gradient: invalid number of arguments: {len(varargs)} spacings for {len(axes)} axes")
    spacings: list[Any] = []
    for given, axis in zip(varargs, axes, strict=True):
        coordinates = asarray(given)
        if coordinates.ndim == 0:
            spacings.append(given)
        elif coordinates.ndim == 1:
            if coordinates.size != shape[axis]:
                raise ValueError(
                    f"gradient: {coordinates.size} coordinates for axis {axis} of size {shape[axis]}: they must match"
                )
            spacings.append(_floating(coordinates))
        else:
            raise ValueError(f"gradient: distances must be either scalars or 1d, found {coordinates.ndim} axes")
    return spacings


def _end_slope(f: ndarray, axis: int, steps: Any, edge_order: int, at_start: bool) -> ndarray:
    """Slope at one end, by a polynomial of degree `edge_order`; `steps`: the two distances there, outer first."""

    def pick(k: int) -> ndarray:
        return _part(f, axis, k, k + 1) if at_start else _part(f, axis, -k - 1, -k or None)

    sign = 1.0 if at_start else -1.0
    f0, f1 = pick(0), pick(1)
    h0, h1 = steps
    if edge_order == 1:
        rise = f1 - f0 if at_start else f0 - f1
        return rise if h0 is _UNIT else rise / h0
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
        # The derivative at the middle point of the parabola through three points.
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
        If the number of distances is not that of the axes, or `f` has truth values.

    Notes
    -----
    Differentiable in `f` and in arrays of coordinates. Coordinates are taken as they are, evenly spaced or not.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.gradient(mx.np.array([1.0, 2.0, 4.0, 7.0]))
    array([1. , 1.5, 2.5, 3. ])
    """
    samples = asarray(f)
    if spelled(samples.dtype) == "bool":
        raise TypeError("gradient: truth values have no differences: convert them to numbers")
    samples = _floating(samples)
    axes = list(axes_of("gradient", axis, samples.ndim))
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
        slopes = _slopes(samples, spacing, a, edge_order)
        if _core.numpy_promotion() and kind_of(slopes.dtype) == kind_of(samples.dtype):
            slopes = _op["astype"](slopes, samples.dtype)
        results.append(slopes)
    return results[0] if len(axes) == 1 else tuple(results)


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

    Raises
    ------
    OverflowError
        If integers without a sign are to be moved by an integer period.

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
    axis = axis_of("unwrap", axis, phases.ndim)
    limit = period / 2 if discont is None else discont
    # Differences of integers keep their dtype, and wrap around.
    steps = _np["diff"](phases.detach(), axis=axis)
    if not whole:
        phases, steps = _floating(phases), _floating(steps)
    half: Any
    if whole:
        half, odd = divmod(int(period), 2)
        ambiguous = odd == 0
        if half > 0 and spelled(phases.dtype)[0] == "u":
            raise OverflowError(f"unwrap: half a period down, {-half}, is out of bounds for {phases.dtype}")
    else:
        half, ambiguous = period / 2, True
    wrapped = (steps + half) % period - half
    if ambiguous:
        # Half a period is ambiguous: the sign of the step decides.
        wrapped = _np["where"]((wrapped == -half) & (steps > 0), _np["full_like"](wrapped, half), wrapped)
    added = wrapped - steps
    added = _np["where"](_np["abs"](steps) < limit, _np["zeros_like"](added), added)
    first = _part(phases, axis, 0, 1)
    rest = _part(phases, axis, 1, None) + _op["astype"](_np["cumsum"](added, axis=axis), phases.dtype)
    return _np["concatenate"]([first, rest], axis)  # type: ignore[no-any-return]
