"""Sorting, selection and search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mxnet.onnx._exporter.builder import FLOATS, Value
from mxnet.onnx._exporter.call import Call
from mxnet.onnx._exporter.operators.elementwise import common_dtype

__all__ = ["TRANSLATIONS"]

# Dtypes in which runtimes sort others. Conversions are exact.
_SORTED_AS = {
    "bool": "int32",
    "int8": "int32",
    "int16": "int32",
    "uint8": "int32",
    "uint16": "int32",
    "uint32": "int64",
    "float16": "float32",
    "bfloat16": "float32",
}


def _top(call: Call, x: Value, count: int, *, descending: bool) -> tuple[Value, Value]:
    """Elements and positions of the first `count` of each row, in order; equal ones in the order of their positions."""
    b = call.b
    wide = b.cast(x, _SORTED_AS.get(x.dtype, x.dtype))
    shape = (*x.shape[:-1], count)
    specs = [(shape, wide.dtype), (shape, "int64")]
    values, where = b.nodes_of("TopK", [wide, b.ints([count])], specs, axis=-1, largest=int(descending), sorted=1)
    return b.cast(values, x.dtype), where


def _sorted(call: Call, x: Value) -> tuple[Value, Value]:
    return _top(call, x, x.shape[-1], descending=bool(call.attribute("descending", False)))


def _sort_rows(call: Call) -> Value:
    return _sorted(call, call.value(0))[0]


def _argsort_rows(call: Call) -> Value:
    return _sorted(call, call.value(0))[1]


def _topk_rows(call: Call) -> Value:
    return _top(call, call.value(0), call.attribute("k"), descending=bool(call.attribute("descending", True)))[1]


def _topk_mask(call: Call) -> Value:
    b, x = call.b, call.value(0)
    _, where = _top(call, x, call.attribute("k"), descending=bool(call.attribute("descending", True)))
    zeros, ones = b.full(x.shape, 0, "int32"), b.full(where.shape, 1, "int32")
    return b.cast(b.node("ScatterElements", [zeros, where, ones], x.shape, "int32", axis=x.ndim - 1), "bool")


def _at_ranks(call: Call, x: Value) -> Value:
    ranks = call.attribute("ranks")
    shape = (*x.shape[:-1], len(ranks))
    return call.b.node("Gather", [x, call.b.ints(ranks)], shape, x.dtype, axis=x.ndim - 1)


def _select_rows(call: Call) -> Value:
    b, x = call.b, call.value(0)
    found = _at_ranks(call, _sorted(call, x)[0])
    if x.dtype not in FLOATS:
        return found
    is_nan = b.cast(b.node("IsNaN", [x], x.shape, "bool"), "int32")
    has_nan = b.cast(b.reduce("ReduceMax", is_nan, [-1]), "bool")
    return b.where(has_nan, b.scalar(float("nan"), x.dtype), found)


def _argselect_rows(call: Call) -> Value:
    return _at_ranks(call, _sorted(call, call.value(0))[1])


def _each(call: Call, x: Value) -> Value:
    ranks = call.value(1, "int64")
    return call.b.node("GatherElements", [x, ranks], ranks.shape, x.dtype, axis=x.ndim - 1)


def _select_each(call: Call) -> Value:
    return _each(call, _sorted(call, call.value(0))[0])


def _argselect_each(call: Call) -> Value:
    return _each(call, _sorted(call, call.value(0))[1])


def _lexsort_rows(call: Call) -> Value:
    # Sorts by the first key, then stably by each of the others.
    b = call.b
    order: Value | None = None
    for at in range(len(call.operands)):
        key = call.value(at)
        if order is None:
            order = _top(call, key, key.shape[-1], descending=False)[1]
            continue
        moved = b.node("GatherElements", [key, order], key.shape, key.dtype, axis=key.ndim - 1)
        again = _top(call, moved, key.shape[-1], descending=False)[1]
        order = b.node("GatherElements", [order, again], key.shape, "int64", axis=key.ndim - 1)
    assert order is not None
    return order


def _arg_extreme(op: str) -> Callable[[Call], Value]:
    def translated(call: Call) -> Value:
        b, x = call.b, call.value(0)
        axis = call.attribute("axis")
        if axis is None:
            shape = [1] * x.ndim
            flat = b.cast(b.reshape(x, [x.size]), _SORTED_AS.get(x.dtype, x.dtype))
            found = b.node(op, [flat], [1], "int64", axis=0, keepdims=1)
            return b.reshape(found, shape if call.attribute("keepdims", False) else ())
        wide = b.cast(x, _SORTED_AS.get(x.dtype, x.dtype))
        return b.node(op, [wide], call.shape, "int64", axis=axis, keepdims=int(call.attribute("keepdims", False)))

    return translated


def _search_sorted(call: Call) -> Value:
    # The number of elements that come before each value.
    b = call.b
    dtype = common_dtype(call, call.operands)
    ascending, values = call.value(0, dtype), call.value(1, dtype)
    op = "LessOrEqual" if call.attribute("right", False) else "Less"
    before = b.compare(op, ascending, b.reshape(values, [*values.shape, 1]))
    return b.reduce("ReduceSum", b.cast(before, "int64"), [-1], keepdims=False)


def _contains(call: Call) -> Value:
    b, members, values = call.b, call.value(0), call.value(1)
    flat = b.reshape(members, [members.size])
    equal = b.cast(b.compare("Equal", b.reshape(values, [*values.shape, 1]), flat), "int64")
    return b.compare("Greater", b.reduce("ReduceSum", equal, [-1], keepdims=False), b.scalar(0, "int64"))


TRANSLATIONS: dict[str, Callable[[Call], Any]] = {
    "argmax": _arg_extreme("ArgMax"),
    "argmin": _arg_extreme("ArgMin"),
    "argpartition_rows": _argsort_rows,
    "argselect_each": _argselect_each,
    "argselect_rows": _argselect_rows,
    "argsort_rows": _argsort_rows,
    "contains": _contains,
    "lexsort_rows": _lexsort_rows,
    "partition_rows": _sort_rows,
    "search_sorted": _search_sorted,
    "select_each": _select_each,
    "select_rows": _select_rows,
    "sort_rows": _sort_rows,
    "topk_mask": _topk_mask,
    "topk_rows": _topk_rows,
}
