"""Reductions of sparse arrays. All results are dense, because sums over rows have hardly any zeros."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from mxnet import error
from mxnet._core import ndarray
from mxnet.sparse._parts import axis_of, gathered, op, segment_prod, segment_sum


def axes_of(axis: Any, ndim: int, what: str) -> tuple[int, ...]:
    """Reduced axes in ascending order."""
    if axis is None:
        return tuple(range(ndim))
    given = axis if isinstance(axis, tuple) else (axis,)
    axes = tuple(sorted(axis_of(a, ndim, what) for a in given))
    if len(set(axes)) < len(axes):
        raise error.AxisError(f"{what}: axis {axis} is repeated")
    return axes


def elements_over(shape: tuple[int, ...], axis: Any) -> int:
    """Number of elements that are reduced to each result."""
    return math.prod(shape[a] for a in axes_of(axis, len(shape), "reduction"))


def reduced(x: Any, name: str, axis: Any, dtype: Any, keepdims: bool) -> ndarray:
    """The reduction called `name` over axes."""
    axes = axes_of(axis, x.ndim, name)
    kept = [a for a in range(x.ndim) if a not in axes]
    counted = elements_over(x.shape, axis)
    if name in ("max", "min") and counted == 0:
        raise error.ValueError(f"{name}: an array without elements has none, found shape {x.shape}")
    x = (x.tocoo() if x.format in ("bsr", "row_sparse") else x)._canonical()
    data = x.data
    # The dtypes of NumPy's reductions: integers are summed as int64, and their means are floats.
    if dtype is not None:
        data = data.astype(dtype)
    elif name in ("sum", "prod", "mean"):
        data = data.astype(op[name](data[:1] if data.size else op["zeros"](1, dtype=data.dtype)).dtype)
    if not kept:
        result = _folded(name, data, _whole(data.size), counted).reshape(())
    else:
        indptr, order = _grouped(x, kept)
        result = _folded(name, gathered(data, order) if order is not None else data, indptr, counted)
        result = result.reshape([x.shape[a] for a in kept])
    if keepdims:
        result = result.reshape([1 if a in axes else n for a, n in enumerate(x.shape)])
    return result


def _whole(size: int) -> ndarray:
    return op["arange"](2, dtype="int64") * size  # type: ignore[no-any-return]


def _grouped(x: Any, kept: list[int]) -> tuple[ndarray, ndarray | None]:
    """Groups stored elements by the result that they belong to: offsets, and the order of the elements."""
    if (x.format == "csr" and kept == [0]) or (x.format == "csc" and kept == [1]):
        return x.indptr, None
    if x.format in ("csr", "csc"):
        minor = x._major(x.shape)[1]
        _, indptr, order = op["csr_transpose"](x.indices, x.indptr, minor)
        return indptr, order
    coo = x.tocoo()
    flat = coo.coords[kept[0]]
    for a in kept[1:]:
        flat = flat * x.shape[a] + coo.coords[a]
    count = math.prod(x.shape[a] for a in kept)
    order, indptr = op["coo_order"](flat, op["zeros_like"](flat), count, 1)
    return indptr, order


def _folded(name: str, data: ndarray, indptr: ndarray, counted: int) -> ndarray:
    """Reduces segments of stored elements, each of which represents `counted` elements."""
    if name == "sum":
        return segment_sum(data, indptr)
    if name == "mean":
        total = segment_sum(data, indptr)
        if data.dtype.kind in "fcV":
            return total / counted
        # An integer `dtype`: the mean is truncated to it.
        return (total.astype("float64") / counted).astype(data.dtype)
    is_full = indptr[1:] - indptr[:-1] == counted
    if name == "prod":
        product = segment_prod(data, indptr)
        return op["where"](is_full, product, op["zeros_like"](product))  # type: ignore[no-any-return]
    found = op[f"segment_{name}"](data, indptr)[0]
    beside = op["maximum" if name == "max" else "minimum"](found, op["zeros_like"](found))
    return op["where"](is_full, found, beside)  # type: ignore[no-any-return]


def extreme_position(x: Any, name: str, axis: int | None) -> ndarray:
    """Position of the largest or smallest element over an axis, or in C order over all."""
    if x.size == 0 and math.prod(x.shape) == 0:
        raise error.ValueError(f"arg{name}: an array without elements has none, found shape {x.shape}")
    if axis is None:
        flat = x.tocoo().reshape(1, -1)
        return extreme_position(flat, name, 1).reshape(())
    if x.ndim > 2:
        raise error.UnsupportedError(f"arg{name}: of {x.ndim} axes none can be chosen: reshape to a matrix")
    if x.ndim == 1:
        return extreme_position(x.reshape(1, -1), name, 1).reshape(())
    at = axis_of(axis, 2, f"arg{name}")
    m = (x.tocsr() if at == 1 else x.tocsc().transpose())._canonical()
    data, n = m.data.detach(), m.shape[1]
    best, where = op[f"segment_{name}"](data, m.indptr)
    column = gathered(m.indices, where)
    # The first column that is not stored: the number of stored ones whose column equals their ordinal.
    rank = op["arange"](data.size, dtype="int64") - gathered(m.indptr, m._majors())
    free = segment_sum((m.indices == rank).astype("int64"), m.indptr)
    zero = op["zeros_like"](best)
    is_full = m.indptr[1:] - m.indptr[:-1] == n
    is_better = (best > zero) if name == "max" else (best < zero)
    is_stored = (where >= 0) & (is_full | is_better | (best != best) | ((best == zero) & (column < free)))
    return op["where"](is_stored, column, free)  # type: ignore[no-any-return]


def position(name: str) -> Callable[..., ndarray]:
    """`argmax` or `argmin` as a function."""

    def function(a: Any, axis: int | None = None, out: Any = None, *, keepdims: bool = False) -> ndarray:
        if out is not None:
            raise error.UnsupportedError(f"{name}: sparse arrays take no `out`")
        found: ndarray = getattr(a, name)(axis)
        if not keepdims:
            return found
        at = None if axis is None else axis_of(axis, a.ndim, name)
        return found.reshape([1 if at in (None, i) else n for i, n in enumerate(a.shape)])

    return function


def var(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: bool = False, **other: Any
) -> ndarray:
    """Mean squared distance from the mean, in which elements that are not stored count as zeros."""
    return _spread("var", a, axis, dtype, out, ddof, keepdims, other)


def std(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: bool = False, **other: Any
) -> ndarray:
    """Root of the variance."""
    computed = dtype if _computes(dtype) else None
    found: ndarray = op["sqrt"](_spread("std", a, axis, computed, out, ddof, keepdims, other))
    return found if dtype is None else found.astype(dtype)


def _spread(
    name: str, a: Any, axis: Any, dtype: Any, out: Any, ddof: float, keepdims: bool, other: dict[str, Any]
) -> ndarray:
    for key, value in (("out", out), *other.items()):
        if value is not None:
            raise error.UnsupportedError(f"{name}: sparse arrays take no `{key}`")
    axes = axes_of(axis, a.ndim, name)
    kept = [at for at in range(a.ndim) if at not in axes]
    counted = elements_over(a.shape, axis)
    x = (a.tocoo() if a.format in ("bsr", "row_sparse") else a)._canonical()
    result = dtype
    if not _computes(dtype):
        data = x.data.astype(op["mean"](op["zeros"](1, dtype=x.data.dtype)).dtype, copy=False)
        result = op["absolute"](data[:0]).dtype if dtype is None else dtype
    else:
        data = x.data.astype(dtype)
    if data.dtype.itemsize == 2:  # counts leave the range of float16
        data = data.astype("float32")
    indptr, order = _grouped(x, kept) if kept else (_whole(data.size), None)
    data = gathered(data, order) if order is not None else data
    mean = segment_sum(data, indptr) / counted
    stored = op["square"](op["absolute"](data - op["ragged_expand"](mean, indptr, data.size)))
    rest = (counted - (indptr[1:] - indptr[:-1])).astype(stored.dtype)
    squares = segment_sum(stored, indptr) + rest * op["square"](op["absolute"](mean))
    found: ndarray = (squares / (counted - ddof)).astype(result).reshape([a.shape[at] for at in kept])
    return found.reshape([1 if at in axes else n for at, n in enumerate(a.shape)]) if keepdims else found


def _computes(dtype: Any) -> bool:
    """Whether a mean is computed in this dtype. Those of integers are floats, converted at the end."""
    return dtype is not None and op["empty"](0, dtype=dtype).dtype.kind in "fcV"


def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> ndarray:
    """Spread of the values: largest minus smallest."""
    if out is not None:
        raise error.UnsupportedError("ptp: sparse arrays take no `out`")
    largest = reduced(a, "max", axis, None, keepdims)
    spread: ndarray = largest - reduced(a, "min", axis, None, keepdims)
    return spread
