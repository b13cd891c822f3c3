"""`pad`."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, cast

import numpy
from numpy.typing import ArrayLike

from mxnet import _core
from mxnet._core import asarray, ndarray
from mxnet.numpy import _dtypes

_op = _core.namespaces["op"]

Pairs = list[tuple[Any, Any]]

_KEYWORDS = {
    "constant": {"constant_values"},
    "edge": set[str](),
    "empty": set[str](),
    "linear_ramp": {"end_values"},
    "maximum": {"stat_length"},
    "mean": {"stat_length"},
    "median": {"stat_length"},
    "minimum": {"stat_length"},
    "reflect": {"reflect_type"},
    "symmetric": {"reflect_type"},
    "wrap": set[str](),
}


def _pairs(x: Any, ndim: int) -> Pairs:
    """(before, after) for each axis, from one number, one pair, one number for each axis, or one pair for each axis."""
    values = numpy.asarray(x.tolist() if isinstance(x, ndarray) else x)
    if values.size == 2 and values.shape != (2, 1):
        values = values.reshape(1, 2)
    return [(before, after) for before, after in numpy.broadcast_to(values, (ndim, 2)).tolist()]


def _widths(pad_width: Any, ndim: int) -> list[tuple[int, int]]:
    if isinstance(pad_width, dict):
        pairs: Pairs = [(0, 0)] * ndim
        for axis, width in pad_width.items():
            pairs[axis] = (width, width) if isinstance(width, int) else tuple(width)
    else:
        pairs = _pairs(pad_width, ndim)
    if any(not isinstance(width, int) for pair in pairs for width in pair):
        raise TypeError(f"pad: `pad_width` must be integers, found {pad_width}")
    if any(width < 0 for pair in pairs for width in pair):
        raise ValueError(f"pad: `pad_width` must not be negative, found {pad_width}")
    return pairs


def _part(x: ndarray, axis: int, start: int | None, stop: int | None) -> ndarray:
    return x[(slice(None),) * axis + (slice(start, stop),)]


def _repeated(x: ndarray, axis: int, count: int) -> ndarray:
    return cast(ndarray, _op["broadcast_to"](x, (*x.shape[:axis], count, *x.shape[axis + 1 :])))


def _constant(x: ndarray, widths: list[tuple[int, int]], values: Pairs) -> ndarray:
    first = values[0][0] if values else 0
    if all(value == first for pair in values for value in pair):
        flat = tuple(width for pair in widths for width in pair)
        return cast(ndarray, _op["pad_constant"](x, flat, first))
    for axis, (pair, borders) in enumerate(zip(widths, values, strict=True)):
        for side, value in enumerate(borders):
            one = [0] * (2 * x.ndim)
            one[2 * axis + side] = pair[side]
            x = _op["pad_constant"](x, tuple(one), value)
    return x


def _joined(x: ndarray, axis: int, before: ndarray | None, after: ndarray | None) -> ndarray:
    parts = [part for part in (before, x, after) if part is not None and part.shape[axis]]
    return cast(ndarray, _op["concatenate"](parts, axis)) if len(parts) > 1 else x


def _ramp(edge: ndarray, end: Any, axis: int, count: int, dtype: Any) -> ndarray:
    """A ramp from `end` (inclusive) to the edge value (exclusive)."""
    work = "float64" if _dtypes.isdtype(dtype, ("integral", "bool")) else dtype
    steps = _op["arange"](count, dtype=work).reshape((1,) * axis + (count,) + (1,) * (edge.ndim - axis - 1))
    edge = edge.astype(work, copy=False)
    values = end + (edge - end) * (steps / count)
    if work != dtype:
        values = _op["floor"](values)
    return cast(ndarray, values.astype(dtype, copy=False))


def _linear_ramp(x: ndarray, widths: list[tuple[int, int]], ends: Pairs) -> ndarray:
    for axis, (before, after) in enumerate(widths):
        low, high = ends[axis]
        left = _ramp(_part(x, axis, None, 1), low, axis, before, x.dtype) if before else None
        right = _op["flip"](_ramp(_part(x, axis, -1, None), high, axis, after, x.dtype), axis) if after else None
        x = _joined(x, axis, left, right)
    return x


def _statistic(x: ndarray, axis: int, mode: str) -> ndarray:
    from mxnet.numpy._quantiles import median

    fold: Callable[..., ndarray] = {"maximum": _op["max"], "minimum": _op["min"], "mean": _op["mean"]}.get(mode, median)
    found = fold(x, axis=axis, keepdims=True)
    if found.dtype != x.dtype:
        found = (_op["rint"](found) if _dtypes.isdtype(x.dtype, "integral") else found).astype(x.dtype)
    return found


def _statistics(x: ndarray, widths: list[tuple[int, int]], mode: str, lengths: Any) -> ndarray:
    pairs: Pairs = [(None, None)] * x.ndim if lengths is None else _pairs(lengths, x.ndim)
    if any(length is not None and length < 0 for pair in pairs for length in pair):
        raise ValueError(f"pad: `stat_length` must not be negative, found {lengths}")
    if mode in ("maximum", "minimum") and any(length == 0 for pair in pairs for length in pair):
        raise ValueError("pad: there is no extreme of the 0 elements that `stat_length` leaves")
    for axis, (before, after) in enumerate(widths):
        n = x.shape[axis]
        low, high = (n if length is None else min(length, n) for length in pairs[axis])
        left = right = None
        if before:
            left = _statistic(_part(x, axis, None, low), axis, mode)
        if after:
            right = (
                left
                if left is not None and low == high == n
                else _statistic(_part(x, axis, n - high, None), axis, mode)
            )
        x = _joined(
            x,
            axis,
            None if left is None or not before else _repeated(left, axis, before),
            None if right is None else _repeated(right, axis, after),
        )
    return x


def _odd(x: ndarray, widths: list[tuple[int, int]], mode: str) -> ndarray:
    """Odd reflection: also mirrored at the edge's value. What is reflected k times changes its sign k times."""
    for axis, (before, after) in enumerate(widths):
        n = x.shape[axis]
        flat = [0] * (2 * x.ndim)
        flat[2 * axis : 2 * axis + 2] = before, after
        mirrored = _op["pad_border"](x, tuple(flat), "edge" if n == 1 else mode)
        if n == 1 or before + after == 0:
            x = mirrored
            continue
        period = n if mode == "symmetric" else n - 1
        # If both readings agree, the last element of a mirrored copy counts as not reflected.
        times = [0 if 0 <= i < n else i // period for i in range(-before, n + after)]
        shape = (1,) * axis + (len(times),) + (1,) * (x.ndim - axis - 1)

        first, last = _part(x, axis, None, 1), _part(x, axis, -1, None)
        factors = ([-1 if k % 2 else 1 for k in times], [k - k % 2 for k in times], [2 * (k % 2) for k in times])
        sign, periods, edges = (asarray(factor).astype(x.dtype).reshape(shape) for factor in factors)
        x = sign * mirrored + periods * (last - first) + edges * last
    return x


def _called(x: ndarray, widths: list[tuple[int, int]], function: Callable[..., Any], kwargs: dict[str, Any]) -> ndarray:
    padded: ndarray = _constant(x, widths, [(0, 0)] * x.ndim)
    for axis, pair in enumerate(widths):
        view = _op["moveaxis"](padded, axis, -1)
        for index in product(*(range(n) for n in view.shape[:-1])):
            function(view[index], pair, axis, kwargs)
    return padded


def pad(array: ArrayLike, pad_width: Any, mode: str | Callable[..., Any] = "constant", **kwargs: Any) -> ndarray:
    """An array with a border around it.

    Parameters
    ----------
    array : array_like
    pad_width : int, pair, sequence of pairs, or dict
        Elements before and after each axis: one number for all, one pair for all, a pair for each axis, or by axis.
    mode : str or callable
        What the border is made of: 'constant', 'edge', 'linear_ramp' (from an end value to the edge), 'maximum',
        'mean', 'median', 'minimum' (of the elements along the axis), 'reflect' (mirrored, without the edge),
        'symmetric' (with it), 'wrap', 'empty' (unspecified values). A callable gets each padded vector,
        the pair of widths, the axis and `kwargs`, and changes the vector in place.
    **kwargs
        `constant_values` (0), `end_values` (0): like `pad_width`. `stat_length` (None: all elements): how many elements
        next to the border count, like `pad_width`. `reflect_type` ('even'): 'odd' mirrors values at the edge's too.

    Returns
    -------
    ndarray
        Of the dtype of `array`.

    Raises
    ------
    TypeError
        If widths are no integers.
    ValueError
        For negative widths, another mode, keywords that do not go with the mode, or an axis of size 0 from which the
        border would be made.

    Notes
    -----
    The gradient of a border goes to the elements it is made of.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.pad([1, 2, 3], (2, 1), constant_values=9)
    array([9, 9, 1, 2, 3, 9])
    >>> mx.np.pad([1, 2, 3], 2, mode="reflect")
    array([3, 2, 1, 2, 3, 2, 1])
    """
    x = asarray(array)
    widths = _widths(pad_width, x.ndim)
    if callable(mode):
        return _called(x, widths, mode, kwargs)
    if mode not in _KEYWORDS:
        raise ValueError(f"pad: `mode` must be callable or one of {', '.join(_KEYWORDS)}, not '{mode}'")
    if unknown := set(kwargs) - _KEYWORDS[mode]:
        raise ValueError(f"pad: mode '{mode}' takes no keyword {', '.join(sorted(unknown))}")
    if mode in ("constant", "empty"):
        values = _pairs(kwargs.get("constant_values", 0), x.ndim)
        return _constant(x, widths, values)
    empty = [axis for axis, n in enumerate(x.shape) if n == 0 and any(widths[axis])]
    if empty:
        raise ValueError(f"pad: axis {empty[0]} has size 0: mode '{mode}' has nothing to make its border from")
    if mode == "linear_ramp":
        return _linear_ramp(x, widths, _pairs(kwargs.get("end_values", 0), x.ndim))
    if mode in ("maximum", "mean", "median", "minimum"):
        return _statistics(x, widths, mode, kwargs.get("stat_length"))
    reflection = kwargs.get("reflect_type", "even")
    if reflection not in ("even", "odd"):
        raise ValueError(f"pad: `reflect_type` must be 'even' or 'odd', not {reflection!r}")
    if reflection == "odd":
        return _odd(x, widths, mode)
    return cast(ndarray, _op["pad_border"](x, tuple(width for pair in widths for width in pair), mode))
