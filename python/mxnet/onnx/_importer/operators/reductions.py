"""Sums, means, extremes along axes, cumulative sums, orders."""

from __future__ import annotations

from typing import Any

from mxnet import numpy as np
from mxnet.base import dtype_name
from mxnet.onnx._importer.operators.elementwise import is_integer
from mxnet.onnx._importer.table import Call, operator
from mxnet.onnx._importer.values import numbers


def _axes(call: Call, x: Any, axes: Any, all_if_empty: bool = True) -> tuple[int, ...] | None:
    """The axes of a reduction: of the attribute or, in later opsets, of an input; None for no reduction."""
    listed = call["axes"] if axes is None else numbers(axes)
    if not listed:
        return None if call["noop_with_empty_axes"] or not all_if_empty else tuple(range(x.ndim))
    return tuple(axis % x.ndim if x.ndim else axis for axis in listed)


def _lowest(x: Any, sign: int) -> Any:
    """The number that is below (above, for a negative sign) all elements of a dtype."""
    name = dtype_name(x.dtype)
    if name == "bool":
        return sign < 0
    if is_integer(x):
        return np.iinfo(x.dtype).min if sign > 0 else np.iinfo(x.dtype).max
    return -float("inf") if sign > 0 else float("inf")


def _extreme(call: Call, x: Any, axes: tuple[int, ...], keepdims: bool, sign: int) -> Any:
    function = call.np.max if sign > 0 else call.np.min
    if all(x.shape[axis] for axis in axes):
        return function(x, axis=axes, keepdims=keepdims)
    kept = [1 if axis in axes else size for axis, size in enumerate(x.shape)]
    shape = kept if keepdims else [size for axis, size in enumerate(x.shape) if axis not in axes]
    return call.np.full(tuple(shape), _lowest(x, sign), dtype=x.dtype)


@operator(
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSum",
    "ReduceSumSquare",
    host=(1,),
    folds=True,
)
def reduction(call: Call, x: Any, axes: Any = None) -> Any:
    xp, kind = call.np, call.op_type.removeprefix("Reduce")
    chosen = _axes(call, x, axes)
    if chosen is None:
        # Nothing is reduced, but elements are mapped.
        maps = {"L1": xp.absolute, "L2": xp.absolute, "LogSum": xp.log, "SumSquare": xp.square}
        return maps[kind](x) if kind in maps else x
    options: dict[str, Any] = {"axis": chosen, "keepdims": bool(call["keepdims"])}
    if kind in ("Max", "Min"):
        return _extreme(call, x, chosen, options["keepdims"], 1 if kind == "Max" else -1)
    if kind == "Mean":
        return xp.mean(x, **options).astype(x.dtype)
    if kind == "LogSumExp":
        largest = xp.zeros((1,) * x.ndim, dtype=x.dtype)
        if x.size:
            largest = xp.max(x, axis=chosen, keepdims=True)
            largest = xp.where(xp.isfinite(largest), largest, xp.zeros_like(largest))
        total = xp.log(xp.sum(xp.exp(x - largest), **options))
        return (total + (largest if options["keepdims"] else largest.reshape(total.shape) if x.size else 0)).astype(
            x.dtype
        )
    options["dtype"] = x.dtype
    if kind == "Prod":
        return xp.prod(x, **options)
    terms = {"L1": xp.absolute, "L2": xp.square, "SumSquare": xp.square}.get(kind, lambda x: x)(x)
    total = xp.sum(terms, **options)
    if kind == "L2":
        return xp.sqrt(total).astype(x.dtype)
    return xp.log(total).astype(x.dtype) if kind == "LogSum" else total


@operator("ArgMax", "ArgMin", folds=True)
def position_of_extreme(call: Call, x: Any) -> Any:
    function = call.np.argmax if call.op_type == "ArgMax" else call.np.argmin
    axis = call["axis"]
    if call["select_last_index"]:
        found = x.shape[axis] - 1 - function(call.np.flip(x, axis), axis=axis, keepdims=bool(call["keepdims"]))
    else:
        found = function(x, axis=axis, keepdims=bool(call["keepdims"]))
    return found.astype("int64")


@operator("CumSum", "CumProd", host=(1,), folds=True)
def cumulative(call: Call, x: Any, axis: Any) -> Any:
    xp = call.np
    (number,) = numbers(axis)
    if call["reverse"]:
        x = xp.flip(x, number)
    found = (xp.cumsum if call.op_type == "CumSum" else xp.cumprod)(x, axis=number, dtype=x.dtype)
    if call["exclusive"]:
        first = [slice(None)] * x.ndim
        first[number] = slice(0, 1)
        others = [slice(None)] * x.ndim
        others[number] = slice(0, x.shape[number] - 1)
        start = xp.zeros_like(x[tuple(first)]) if call.op_type == "CumSum" else xp.ones_like(x[tuple(first)])
        found = xp.concatenate([start, found[tuple(others)]], axis=number)
    return xp.flip(found, number) if call["reverse"] else found


@operator("TopK", host=(1,))
def top_k(call: Call, x: Any, k: Any = None) -> Any:
    axis = call["axis"]
    (count,) = [call["k"]] if k is None else numbers(k)
    is_largest = call["largest"] is None or bool(call["largest"])
    # Of equal elements the one with the lower index comes first: a stable order.
    order = np.argsort(x, axis=axis, stable=True, descending=is_largest)
    kept = [slice(None)] * x.ndim
    kept[axis] = slice(0, count)
    positions = order[tuple(kept)]
    return np.take_along_axis(x, positions, axis=axis), positions


@operator("Unique")
def unique(call: Call, x: Any) -> Any:
    axis = call["axis"]
    values, first, inverse, counts = np.unique(
        x, return_index=True, return_inverse=True, return_counts=True, axis=axis, equal_nan=True
    )
    inverse = inverse.reshape(-1)
    if not call["sorted"]:
        order = np.argsort(first)
        rank = np.argsort(order)
        values = np.take(values, order, axis=0 if axis is None else axis)
        first, inverse, counts = first[order], rank[inverse], counts[order]
    return values, first.astype("int64"), inverse.astype("int64"), counts.astype("int64")
