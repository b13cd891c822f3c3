"""Reductions over uniform and ragged axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as onp

from mxnet import _core, error
from mxnet import numpy as np
from mxnet._core import ndarray
from mxnet.ragged._array import RaggedArray
from mxnet.ragged._outer import OuterAxisSegments

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


def _fold(x: Any, axis: int, name: str, shown: str, keepdims: bool) -> Any:
    """Reduces one axis of a ragged or dense array."""
    if isinstance(x, ndarray):
        return getattr(np, name)(x, axis=axis, keepdims=keepdims)
    ragged = x.num_ragged
    if axis > ragged:
        return x.with_values(getattr(np, name)(x.values, axis=axis - ragged, keepdims=keepdims))
    if axis != ragged:
        across = OuterAxisSegments(x, axis)
        found = _op[_SEGMENTS[name]](across.together(x.values), across.offsets)
        return across.result(found, keepdims)
    partition = x._partitions[-1]
    if name in ("max", "min"):
        _check_empty(partition, shown)
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


def _wide(r: RaggedArray, dtype: Any) -> tuple[RaggedArray, Any]:
    """`_float`, in float32 if it has 16 bits, whose range sums and counts leave, and the dtype of the result."""
    x = _float(r, dtype)
    return (x.astype("float32") if x.dtype.itemsize == 2 else x), x.dtype


def mean(
    a: RaggedArray, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, **other: Any
) -> Any:
    """Arithmetic mean; NaN for no elements."""
    _check("mean", out, other)
    x, result = _wide(a, dtype)
    total = _reduce(x, axis, "sum", "mean", bool(keepdims))
    return (total / _counts(x, axis, np.finfo(x.dtype).dtype, bool(keepdims), "mean")).astype(result)


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
    x, result = _wide(a, dtype)
    axes = _axes(x, axis, "var")
    squares = _squared(x, _mean_of_each(x, axes))
    total = _reduce(squares, axis, "sum", "var", bool(keepdims))
    return (total / (_counts(x, axis, squares.dtype, bool(keepdims), "var") - ddof)).astype(
        result if dtype is not None else np.finfo(result).dtype
    )


def _squared(x: RaggedArray, mean: ndarray) -> Any:
    centred = x.with_values(x.values - mean)
    return np.square(np.abs(centred)) if x.dtype.kind == "c" else np.square(centred)


def _mean_of_each(r: RaggedArray, axes: list[int], count: RaggedArray | None = None) -> ndarray:
    """The mean that belongs to each element, so that it broadcasts to the values; of `r` over `count`, by default 1."""
    if len(axes) == r.ndim:
        number: Any = r.size if count is None else np.sum(count.values)
        whole: ndarray = np.sum(r.values) / number
        return whole
    x: Any = r
    n: Any = r.with_values(np.ones(r.values.shape, dtype=np.finfo(r.dtype).dtype, device=r.device))
    n = n if count is None else count
    # How each reduction is undone, the last one first.
    undo: list[Callable[[ndarray], ndarray]] = []
    for axis in axes:
        undo.insert(0, _broadcast_back(x, axis))
        x, n = (_fold(y, axis, "sum", "mean", False) for y in (x, n))
    found: ndarray = (x / n).values if isinstance(x, RaggedArray) else x / n
    for spread in undo:
        found = spread(found)
    return found


def _broadcast_back(x: Any, axis: int) -> Callable[[ndarray], ndarray]:
    """From values that `_fold` reduced along an axis to values that broadcast to those before."""
    ragged = 0 if isinstance(x, ndarray) else x.num_ragged
    if isinstance(x, ndarray):
        return lambda y: np.broadcast_to(np.expand_dims(y, axis), (*y.shape[:axis], x.shape[axis], *y.shape[axis:]))
    if axis > ragged:
        return lambda y: np.expand_dims(y, axis - ragged)
    if axis == ragged:
        return lambda y: x._partitions[-1].expand(y)
    across = OuterAxisSegments(x, axis)
    return lambda y: np.take(y, across.at, axis=0)


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
            found: Any = getattr(np, name)(a.values)
            return found.reshape((1,) * a.ndim) if keepdims else found
        at = a._axis(axis, name)
        if at > a.num_ragged:
            return a.with_values(getattr(np, name)(a.values, axis=at - a.num_ragged, keepdims=keepdims))
        x = a.values.detach()
        if at != a.num_ragged:
            across = OuterAxisSegments(a, at)
            rows = _extreme_rows(across.together(x), across.offsets, extreme)
            return across.result(np.take(across.together(across.numbers), rows), keepdims)
        partition = a._partitions[-1]
        _check_empty(partition, name)
        starts = partition.offsets[:-1].reshape((partition.count,) + (1,) * (x.ndim - 1))
        found = _extreme_rows(x, partition.offsets, extreme) - starts
        found = partition.without_empty(found)
        if keepdims:
            found = np.expand_dims(found, 1)
        return found if a.num_ragged == 1 else RaggedArray(found, *a._partitions[:-1])

    return function


def _check_empty(partition: Any, shown: str) -> None:
    """An error for a row without elements."""
    if partition.has_empty():
        row = int(onp.flatnonzero(partition.lengths == 0)[0])
        raise error.ValueError(f"{shown}: row {row} has no element, and {shown} has no identity")


def _extreme_rows(x: ndarray, offsets: ndarray, extreme: str) -> ndarray:
    """The first row of each segment that has the extreme, for each column: NaN if there is one."""
    total = x.shape[0]
    is_best = x == _op["ragged_expand"](_op[_SEGMENTS[extreme]](x, offsets), offsets, total)
    if x.dtype.kind in "fV":
        is_best = np.logical_or(is_best, np.isnan(x))
    rows = np.arange(total, dtype="int64", device=x.device).reshape((total,) + (1,) * (x.ndim - 1))
    # Every row number is below their count.
    found: ndarray = _op["ragged_min"](np.where(is_best, rows, total), offsets)
    return found


def count_nonzero(a: RaggedArray, axis: Any = None, *, keepdims: bool = False) -> Any:
    """Number of elements that are not zero."""
    return _reduce(a != 0, axis, "sum", "count_nonzero", bool(keepdims))


def ptp(a: RaggedArray, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    """Spread of the values: largest minus smallest."""
    _check("ptp", out, {})
    largest = _reduce(a, axis, "max", "ptp", bool(keepdims))
    return largest - _reduce(a, axis, "min", "ptp", bool(keepdims))


argmax, argmin = _position("argmax"), _position("argmin")


def _without_nan(a: RaggedArray, value: float) -> RaggedArray:
    """The array with a number in place of NaN."""
    if a.dtype.kind not in "fcV":
        return a
    return a.with_values(np.where(np.isnan(a.values), np.array(value, dtype=a.dtype), a.values))


def nansum(a: RaggedArray, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    """Sum of the elements that are not NaN."""
    _check("nansum", out, {})
    return _reduce(_without_nan(_converted(a, dtype), 0), axis, "sum", "nansum", bool(keepdims))


def nanprod(a: RaggedArray, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    """Product of the elements that are not NaN."""
    _check("nanprod", out, {})
    return _reduce(_without_nan(_converted(a, dtype), 1), axis, "prod", "nanprod", bool(keepdims))


def nanmean(a: RaggedArray, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    """Mean of the elements that are not NaN; NaN if there are none."""
    _check("nanmean", out, {})
    x, result = _wide(a, dtype)
    total = _reduce(_without_nan(x, 0), axis, "sum", "nanmean", bool(keepdims))
    return (total / _reduce(_numbers_of(x), axis, "sum", "nanmean", bool(keepdims))).astype(result)


def _numbers_of(x: RaggedArray) -> RaggedArray:
    """1 for each element that is not NaN, else 0."""
    return x.with_values(np.logical_not(np.isnan(x.values)).astype(np.finfo(x.dtype).dtype))


def nanvar(
    a: RaggedArray, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: bool = False
) -> Any:
    """Variance of the elements that are not NaN."""
    _check("nanvar", out, {})
    x, result = _wide(a, dtype)
    numbers = _numbers_of(x)
    centre = _mean_of_each(_without_nan(x, 0), _axes(x, axis, "nanvar"), numbers)
    squares = _squared(x, centre)
    # NaN elements are left out; NaN that comes from infinities is the result.
    squares = squares.with_values(np.where(np.isnan(x.values), np.zeros_like(squares.values), squares.values))
    total = _reduce(squares, axis, "sum", "nanvar", bool(keepdims))
    free = _reduce(numbers, axis, "sum", "nanvar", bool(keepdims)) - ddof
    quotient = total / np.where(free > 0, free, np.array(float("nan"), dtype=numbers.dtype))
    return quotient.astype(np.finfo(result).dtype)


def nanstd(
    a: RaggedArray, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: bool = False
) -> Any:
    """Root of the variance of the elements that are not NaN."""
    return np.sqrt(nanvar(a, axis, dtype, out, ddof, keepdims))


def _extreme_number(name: str, extreme: str, least: float) -> Callable[..., Any]:
    def function(a: RaggedArray, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        _check(name, out, {})
        found = _reduce(_without_nan(a, least), axis, extreme, name, bool(keepdims))
        if a.dtype.kind not in "fV":
            return found
        count = _reduce(_numbers_of(a), axis, "sum", name, bool(keepdims))
        return np.where(count > 0, found, np.array(float("nan"), dtype=a.dtype))

    return function


nanmax, nanmin = _extreme_number("nanmax", "max", float("-inf")), _extreme_number("nanmin", "min", float("inf"))


def average(
    a: RaggedArray, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False
) -> Any:
    """Mean weighted by ragged numbers in the same rows; those of fewer axes count for all elements behind them."""
    if weights is None:
        found = mean(a, axis, keepdims=keepdims)
        return (found, _counts(a, axis, found.dtype, keepdims, "average") + np.zeros_like(found)) if returned else found
    if not isinstance(weights, RaggedArray):
        raise error.UnsupportedError(
            f"average: `weights` of ragged arrays are ragged arrays in the same rows, found {type(weights).__name__!r}"
        )
    a._check_same(weights, "average")
    x, result = _wide(a, None)
    own = weights.values.reshape((*weights.values.shape, *(1,) * (a.ndim - weights.ndim)))
    shares = x.with_values(np.broadcast_to(own, x.values.shape))
    total = _reduce(shares, axis, "sum", "average", bool(keepdims))
    found = (_reduce(x * shares, axis, "sum", "average", bool(keepdims)) / total).astype(result)
    return (found, total.astype(result)) if returned else found


def norm(x: RaggedArray, ord: Any = None, axis: Any = None, keepdims: bool = False, **other: Any) -> Any:
    """Root of the sum of squares, sum or maximum of absolute values, along axes."""
    for key, value in other.items():
        if value is not None:
            raise error.UnsupportedError(f"norm: ragged arrays take no `{key}`")
    if ord is not None and len(_axes(x, axis, "norm")) > 1:
        raise error.UnsupportedError(
            f"norm: ragged arrays take one `axis` with `ord`, found {axis}\n"
            "  hint: np.sum(np.abs(x), axis=...) adds absolute values over several axes"
        )
    sizes: Any = np.abs(x)
    if ord == 1:
        return _reduce(sizes, axis, "sum", "norm", bool(keepdims))
    if ord in (float("inf"), float("-inf")):
        return _reduce(sizes, axis, "max" if ord > 0 else "min", "norm", bool(keepdims))
    if ord not in (None, 2):
        raise error.UnsupportedError(f"norm: `ord` of ragged arrays is 1, 2, inf or -inf, found {ord!r}")
    return np.sqrt(_reduce(_float(sizes * sizes, None), axis, "sum", "norm", bool(keepdims)))
