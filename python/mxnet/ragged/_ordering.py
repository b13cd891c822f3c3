"""Functions that order elements: sorting, largest elements, quantiles."""

from __future__ import annotations

from typing import Any

import numpy as onp

from mxnet import _core, error
from mxnet import numpy as np
from mxnet._core import ndarray
from mxnet.ragged._array import RaggedArray
from mxnet.ragged._outer import OuterAxisSegments

_op, _npx = _core.namespaces["op"], _core.namespaces["npx"]


def _along(x: ndarray, order: ndarray) -> ndarray:
    """Elements of each column by row number."""
    found: ndarray = np.take(x, order, axis=0) if x.ndim == 1 else np.take_along_axis(x, order, axis=0)
    return found


def _beside(rows: ndarray, x: ndarray) -> ndarray:
    """One number for each row, so that it broadcasts to the columns."""
    return rows.reshape((rows.shape[0],) + (1,) * (x.ndim - 1))


def _axis(r: RaggedArray, axis: Any, name: str) -> int:
    if axis is None:
        raise error.UnsupportedError(f"{name}: a ragged array is ordered along an axis; use `values` for all elements")
    return r._axis(axis, name)


def sort(a: RaggedArray, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    """Sorts the elements of each row; NaN last."""
    if order is not None:
        raise error.UnsupportedError("sort: arrays have no fields to order by")
    at = _axis(a, axis, "sort")
    if at > a.num_ragged:
        return a.with_values(np.sort(a.values, axis=at - a.num_ragged))
    if at == a.num_ragged:
        return a.with_values(_along(a.values, _op["ragged_argsort"](a.values, a._partitions[-1].offsets)))
    across = OuterAxisSegments(a, at)
    x = across.together(a.values)
    return a.with_values(across.back(_along(x, _op["ragged_argsort"](x, across.offsets))))


def argsort(a: RaggedArray, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    """The positions that sort the elements of each row."""
    if order is not None:
        raise error.UnsupportedError("argsort: arrays have no fields to order by")
    at = _axis(a, axis, "argsort")
    if at > a.num_ragged:
        return a.with_values(np.argsort(a.values, axis=at - a.num_ragged))
    if at == a.num_ragged:
        found = _op["ragged_argsort"](a.values, a._partitions[-1].offsets)
        return a.with_values(found - _beside(a._partitions[-1].row_starts, found))
    across = OuterAxisSegments(a, at)
    chosen = _op["ragged_argsort"](across.together(a.values), across.offsets)
    return a.with_values(across.back(np.take(across.together(across.numbers), chosen)))


def topk(
    data: RaggedArray,
    axis: Any = -1,
    k: int = 1,
    ret_typ: str = "indices",
    is_ascend: bool = False,
    dtype: Any = "float32",
) -> Any:
    """The largest elements of each row, the largest first; a row with fewer than `k` gives all of them."""
    at = _axis(data, axis, "topk")
    if at > data.num_ragged:
        found = _npx["topk"](data.values, at - data.num_ragged, k, ret_typ, is_ascend, dtype)
        return tuple(map(data.with_values, found)) if isinstance(found, tuple) else data.with_values(found)
    if at != data.num_ragged:
        raise error.UnsupportedError(
            f"topk: axis {axis} of shape {data.shape} is before a ragged one; `np.sort` orders along it"
        )
    if ret_typ not in ("indices", "value", "both", "mask"):
        raise error.ValueError(f"topk: `ret_typ` must be 'indices', 'value', 'both' or 'mask', found {ret_typ!r}")
    x, partition = data.values, data._partitions[-1]
    order = _op["ragged_argsort"](x, partition.offsets, not is_ascend)
    if ret_typ == "mask":
        ranks = np.argsort(order, axis=0) - _beside(partition.row_starts, x)
        return data.with_values((ranks < k if k >= 1 else ranks >= 0).astype(x.dtype))
    every = data.with_values(order)
    first = every if k < 1 else every[(*(slice(None),) * at, slice(None, k))]
    starts = first._partitions[-1].expand(partition.offsets[:-1])
    indices = first.with_values((first.values - _beside(starts, x)).astype(dtype))
    if ret_typ == "indices":
        return indices
    largest = first.with_values(_along(x, first.values))
    return largest if ret_typ == "value" else (largest, indices)


def median(
    a: RaggedArray, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False
) -> Any:
    """The element in the middle; NaN for rows without elements or with NaN."""
    return _quantile("median", a, 0.5, axis, out, "linear", keepdims)


def quantile(
    a: RaggedArray,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    **other: Any,
) -> Any:
    """The element below which a share of the others is, interpolated linearly."""
    return _quantile("quantile", a, q, axis, out, method, keepdims, **other)


def percentile(
    a: RaggedArray,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    **other: Any,
) -> Any:
    """The element below which a percentage of the others is, interpolated linearly."""
    return _quantile("percentile", a, q, axis, out, method, keepdims, **other)


def _quantile(name: str, a: RaggedArray, q: Any, axis: Any, out: Any, method: str, keepdims: bool, **other: Any) -> Any:
    for key, value in (("out", out), *other.items()):
        if value is not None:
            raise error.UnsupportedError(f"{name}: ragged arrays take no `{key}`")
    if method != "linear":
        raise error.UnsupportedError(f"{name}: ragged arrays take the method 'linear', found {method!r}")
    if not isinstance(q, int | float | onp.number):
        raise error.UnsupportedError(f"{name}: ragged arrays take one number as `q`, found {type(q).__name__!r}")
    most = 100 if name == "percentile" else 1
    if not 0 <= q <= most:
        raise error.ValueError(f"{name}: `q` must be in the range [0, {most}], found {q}")
    if a.dtype.kind == "c":
        raise error.DTypeError(f"{name}: complex numbers have no order, found {a.dtype}\n  hint: take `.real` first")
    q = float(q) / most
    if axis is None:
        whole = np.median(a.values) if name == "median" else np.quantile(a.values, q)
        return whole.reshape((1,) * a.ndim) if keepdims else whole
    if isinstance(axis, tuple):
        raise error.UnsupportedError(f"{name}: ragged arrays take one `axis` or none, found {axis}")
    at = a._axis(axis, name)
    if at > a.num_ragged:
        inner = at - a.num_ragged
        if name == "median":
            return a.with_values(np.median(a.values, axis=inner, keepdims=keepdims))
        return a.with_values(np.quantile(a.values, q, axis=inner, keepdims=keepdims))
    across = OuterAxisSegments(a, at) if at != a.num_ragged else None
    x = a.values if across is None else across.together(a.values)
    offsets = a._partitions[-1].offsets if across is None else across.offsets
    if x.dtype.kind not in "fV":
        x = x.astype(_core.default_dtype("f"))
    nothing = np.full((1, *x.shape[1:]), np.nan, dtype=x.dtype, device=x.device)
    ordered = np.concatenate([_along(x, _op["ragged_argsort"](x, offsets)), nothing])
    sizes, total = offsets[1:] - offsets[:-1], x.shape[0]
    position = q * np.maximum(sizes - 1, 0).astype(x.dtype if x.dtype.itemsize > 2 else "float32")
    below = np.floor(position).astype("int64")
    # Rows without elements read the NaN behind the last one.
    rows = [np.where(sizes > 0, offsets[:-1] + n, total) for n in (below, np.minimum(below + 1, sizes - 1), sizes - 1)]
    lower, upper, last = (np.take(ordered, row, axis=0) for row in rows)
    share = _beside((position - below).astype(x.dtype), x)
    between = lower + (upper - lower) * share
    if name == "median":  # no product, which is NaN for an infinite element
        between = np.where(share == 0, lower, lower / 2 + upper / 2)
    found = np.where(np.isnan(last), last, between)
    if across is not None:
        return across.result(found, keepdims)
    if keepdims:
        found = np.expand_dims(found, 1)
    return found if a.num_ragged == 1 else RaggedArray(found, *a._partitions[:-1])
