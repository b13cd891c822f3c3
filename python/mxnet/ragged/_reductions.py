"""Reductions over uniform and ragged axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as onp

from mxnet import _core, error
from mxnet import numpy as np
from mxnet._core import ndarray
from mxnet.ragged._array import RaggedArray
from mxnet.ragged._partition import Partition, _index

_op = _core.namespaces["op"]

_SEGMENTS = {"sum": "ragged_sum", "prod": "ragged_prod", "max": "ragged_max", "min": "ragged_min"}


def _axes(r: RaggedArray, axis: Any, name: str) -> list[int]:
    """Axes in descending order."""
    if axis is None:
        return list(range(r.ndim - 1, -1, -1))
    given = axis if isinstance(axis, tuple) else (axis,)
    found = sorted((r._axis(a, name) for a in given), reverse=True)
    if len(set(found)) < len(found):
        raise error.AxisError(f"{name}: an axis is named twice in {axis}")
    return found


class OuterAxisSegments:
    """Which rows of the values are reduced together, for an axis before the innermost ragged one.

    Attributes
    ----------
    at : ndarray, shape (total,), int64
        The row of the result to which each row of the values belongs.
    order : ndarray, shape (total,), int64
        Row numbers of the values, sorted by `at`.
    offsets : ndarray, int64
        Segments of `order`, one for each row of the result.
    partition : Partition or None
        The rows of the result if the array has two ragged axes: as long as the longest that are reduced.
    """

    def __init__(self, r: RaggedArray, axis: int, name: str) -> None:
        self.axis = axis
        self.partition: Partition | None = None
        if r.num_ragged == 1:
            self.at = r._partitions[0].row_places
            self.order, self.offsets = r._partitions[0].columns()
            return
        if r.num_ragged > 2:
            raise error.UnsupportedError(
                f"{name}: axis {axis} of shape {r.shape} cannot be reduced before axes 2 to {r.num_ragged}"
            )
        outer, inner = r._partitions
        rows = outer.places if axis == 0 else outer.owners
        lengths = onp.zeros(outer.longest if axis == 0 else outer.count, dtype=onp.int64)
        onp.maximum.at(lengths, rows, inner.lengths)
        self.partition = Partition.of_lengths(lengths)
        at = onp.repeat(self.partition.host[:-1][rows], inner.lengths) + inner.places
        counts = onp.bincount(at, minlength=self.partition.total)
        self.at, self.order = _index(at), _index(onp.argsort(at, kind="stable"))
        self.offsets = _index(onp.concatenate([[0], onp.cumsum(counts)]))

    def result(self, values: ndarray, keepdims: bool) -> Any:
        """The array with these rows."""
        if self.partition is None:
            return np.expand_dims(values, 0) if keepdims else values
        if not keepdims:
            return RaggedArray(values, self.partition)
        count = self.partition.count
        outer = Partition.even(count, 1) if self.axis else Partition.even(1, count)
        return RaggedArray(values, outer, self.partition)


def _fold(x: Any, axis: int, name: str, shown: str, keepdims: bool) -> Any:
    """Reduces one axis of a ragged or dense array."""
    if isinstance(x, ndarray):
        return getattr(np, name)(x, axis=axis, keepdims=keepdims)
    ragged = x.num_ragged
    if axis > ragged:
        return x.with_values(getattr(np, name)(x.values, axis=axis - ragged, keepdims=keepdims))
    if axis != ragged:
        across = OuterAxisSegments(x, axis, shown)
        found = _op[_SEGMENTS[name]](np.take(x.values, across.order, axis=0), across.offsets)
        return across.result(found, keepdims)
    partition = x._partitions[-1]
    if name in ("max", "min") and partition.has_empty():
        row = int(onp.flatnonzero(partition.lengths == 0)[0])
        raise error.ValueError(f"{shown}: row {row} has no element, and {shown} has no identity")
    found = _op[_SEGMENTS[name]](x.values, partition.offsets)
    if name in ("max", "min"):
        found = partition.without_empty(found)
    if keepdims:
        found = np.expand_dims(found, 1)
    return found if ragged == 1 else RaggedArray(found, *x._partitions[:-1])


def _reduce(r: RaggedArray, axis: Any, name: str, shown: str, keepdims: bool) -> Any:
    axes = _axes(r, axis, shown)
    if len(axes) == r.ndim:
        whole = getattr(np, name)(r.values)
        return whole.reshape((1,) * r.ndim) if keepdims else whole
    found: Any = r
    for one in axes:
        found = _fold(found, one, name, shown, keepdims)
    return found


def _converted(r: RaggedArray, dtype: Any) -> RaggedArray:
    return r if dtype is None else r.astype(dtype)


def _folding(name: str) -> Callable[..., Any]:
    def function(
        a: RaggedArray, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, **other: Any
    ) -> Any:
        _check(name, out, other)
        return _reduce(_converted(a, dtype), axis, name, name, bool(keepdims))

    return function


def _extreme(name: str) -> Callable[..., Any]:
    def function(a: RaggedArray, axis: Any = None, out: Any = None, keepdims: bool = False, **other: Any) -> Any:
        _check(name, out, other)
        return _reduce(a, axis, name, name, bool(keepdims))

    return function


def _check(shown: str, out: Any, other: dict[str, Any]) -> None:
    """An error for arguments that have no meaning for ragged arrays."""
    if out is not None:
        raise error.UnsupportedError(f"{shown}: ragged arrays take no `out`")
    for name, value in other.items():
        if name not in ("initial", "where"):
            raise TypeError(f"{shown}() got an unexpected keyword argument '{name}'")
        if value is not None and not (name == "where" and value is True):
            raise error.UnsupportedError(f"{shown}: ragged arrays take no `{name}`")


sum_, prod = _folding("sum"), _folding("prod")
max_, min_ = _extreme("max"), _extreme("min")


def any_(a: RaggedArray, axis: Any = None, out: Any = None, keepdims: bool = False, **other: Any) -> Any:
    """Whether an element is not zero."""
    _check("any", out, other)
    # Without elements the sum of booleans is 0, so the result is False.
    return _reduce(a != 0, axis, "sum", "any", bool(keepdims)) != 0


def all_(a: RaggedArray, axis: Any = None, out: Any = None, keepdims: bool = False, **other: Any) -> Any:
    """Whether no element is zero."""
    _check("all", out, other)
    return _reduce(a == 0, axis, "sum", "all", bool(keepdims)) == 0


def _counts(r: RaggedArray, axis: Any, dtype: Any, keepdims: bool, shown: str) -> Any:
    """Number of elements reduced to each result; a number if it is the same everywhere."""
    axes = _axes(r, axis, shown)
    uniform = 1
    for one in axes:
        if one > r.num_ragged:
            uniform *= r.values.shape[one - r.num_ragged]
    if len(axes) == r.ndim:
        return r.size
    ragged = tuple(one for one in axes if one <= r.num_ragged)
    if not ragged:
        return uniform
    # Uniform axes that are kept have length 1; reduced ones were removed before.
    kept = r.values.ndim - 1 - sum(one > r.num_ragged for one in axes)
    sizes = (1,) * (r.values.ndim - 1 if keepdims else kept)
    ones = r.with_values(np.ones((r.values.shape[0], *sizes), dtype=dtype, device=r.device))
    return _reduce(ones, ragged, "sum", shown, keepdims) * uniform


def _float(r: RaggedArray, dtype: Any) -> RaggedArray:
    if dtype is not None:
        return r.astype(dtype)
    return r if r.dtype.kind in "fcV" else r.astype(_core.default_dtype("f"))


def mean(
    a: RaggedArray, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, **other: Any
) -> Any:
    """Arithmetic mean; NaN for no elements."""
    _check("mean", out, other)
    x = _float(a, dtype)
    total = _reduce(x, axis, "sum", "mean", bool(keepdims))
    return total / _counts(x, axis, np.finfo(x.dtype).dtype, bool(keepdims), "mean")


def var(
    a: RaggedArray,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    **other: Any,
) -> Any:
    """Variance: sum of squared distances from the mean, divided by the number of elements less `ddof`."""
    _check("var", out, other)
    x = _float(a, dtype)
    centred = x - _stretched(x, mean(x, axis, keepdims=True), _axes(x, axis, "var"))
    squares: Any = np.square(np.abs(centred)) if x.dtype.kind == "c" else np.square(centred)
    total = _reduce(squares, axis, "sum", "var", bool(keepdims))
    return total / (_counts(x, axis, squares.dtype, bool(keepdims), "var") - ddof)


def _stretched(r: RaggedArray, mean: Any, axes: list[int]) -> Any:
    """A mean over axes, which have length 1, so that it broadcasts to `r`."""
    before = [axis for axis in axes if axis < r.num_ragged]
    # The mean broadcasts if one outer axis is reduced alone, or all axes from an outer one to the innermost ragged one.
    is_inner = before and set(range(min(before), r.num_ragged + 1)) <= set(axes)
    if before and not is_inner and (len(before) > 1 or r.num_ragged in axes):
        raise error.UnsupportedError(f"var: over axes {sorted(axes)} of shape {r.shape} there is no operator")
    if before and r.num_ragged not in axes:
        rows = mean.values if isinstance(mean, RaggedArray) else mean[0]
        return r.with_values(np.take(rows, OuterAxisSegments(r, before[0], "var").at, axis=0))
    if isinstance(mean, RaggedArray) and mean.num_ragged < r.num_ragged:
        values = mean.values.reshape((mean.values.shape[0], *mean.values.shape[2:]))
        return r.with_values(r._partitions[-1].expand(values))
    return mean


def std(
    a: RaggedArray,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    **other: Any,
) -> Any:
    """Standard deviation: the root of the variance."""
    return np.sqrt(var(a, axis, dtype, out, ddof, keepdims, **other))


def _position(name: str) -> Callable[..., Any]:
    extreme = {"argmax": "max", "argmin": "min"}[name]

    def function(a: RaggedArray, axis: int | None = None, out: Any = None, *, keepdims: bool = False) -> Any:
        _check(name, out, {})
        if axis is None:
            return getattr(np, name)(a.values)
        at = a._axis(axis, name)
        if at > a.num_ragged:
            return a.with_values(getattr(np, name)(a.values, axis=at - a.num_ragged, keepdims=keepdims))
        x = a.detach()
        if at == 0 and a.num_ragged == 1:
            return _across_rows(function, x, keepdims)
        if at != a.num_ragged:
            raise error.UnsupportedError(f"{name}: over axis {at} of shape {a.shape} there is no operator")
        best = _fold(x, at, extreme, name, False)
        partition = a._partitions[-1]
        best = best.values if isinstance(best, RaggedArray) else best
        spread = partition.expand(best)
        is_best = x.values == spread
        if x.dtype.kind in "fV":
            is_best = np.logical_or(is_best, np.isnan(x.values))
        places = partition.row_places.reshape((partition.total,) + (1,) * (x.values.ndim - 1))
        # Every place is below the number of rows.
        found = _op["ragged_min"](np.where(is_best, places, partition.total), partition.offsets)
        if keepdims:
            found = np.expand_dims(found, 1)
        return found if a.num_ragged == 1 else RaggedArray(found, *a._partitions[:-1])

    return function


def _across_rows(function: Callable[..., Any], x: RaggedArray, keepdims: bool) -> ndarray:
    """The row with the extreme among those that are long enough, for each position: (longest, ...)."""
    order, offsets = x._partitions[0].columns()
    place = function(RaggedArray(np.take(x.values, order, axis=0), offsets), 1)
    first = offsets[:-1].reshape((place.shape[0],) + (1,) * (place.ndim - 1))
    found: ndarray = np.take(np.take(x._partitions[0].row_owners, order), place + first)
    return np.expand_dims(found, 0) if keepdims else found


def count_nonzero(a: RaggedArray, axis: Any = None, *, keepdims: bool = False) -> Any:
    """Number of elements that are not zero."""
    return _reduce(a != 0, axis, "sum", "count_nonzero", bool(keepdims))


def ptp(a: RaggedArray, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    """Spread of the values: largest minus smallest."""
    _check("ptp", out, {})
    largest = _reduce(a, axis, "max", "ptp", bool(keepdims))
    return largest - _reduce(a, axis, "min", "ptp", bool(keepdims))


argmax, argmin = _position("argmax"), _position("argmin")
