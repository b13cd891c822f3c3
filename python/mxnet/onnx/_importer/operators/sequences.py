"""Sequences of arrays, which are lists, and optional values, which are None if there is none."""

from __future__ import annotations

from typing import Any

import numpy

from mxnet import numpy as np
from mxnet.onnx._importer.program import Scope
from mxnet.onnx._importer.table import Call, operator
from mxnet.onnx._importer.values import Value, numbers


@operator("SequenceConstruct")
def sequence_construct(call: Call, *arrays: Any) -> Any:
    return list(arrays)


@operator("SequenceEmpty")
def sequence_empty(call: Call) -> Any:
    return []


@operator("SequenceAt", host=(1,))
def sequence_at(call: Call, items: Any, index: Any) -> Any:
    return items[int(index.reshape(()))]


@operator("SequenceInsert", host=(2,))
def sequence_insert(call: Call, items: Any, item: Any, index: Any = None) -> Any:
    number = len(items) if index is None else int(index.reshape(()))
    number = number + len(items) if number < 0 else number
    return [*items[:number], item, *items[number:]]


@operator("SequenceErase", host=(1,))
def sequence_erase(call: Call, items: Any, index: Any = None) -> Any:
    number = (-1 if index is None else int(index.reshape(()))) % len(items)
    return [*items[:number], *items[number + 1 :]]


@operator("SequenceLength", takes_values=True)
def sequence_length(call: Call, outer: Scope, items: Value) -> list[Value]:
    length = len(items.array)
    return [
        Value(
            make_array=lambda: np.array(length, dtype="int64"),
            make_host=lambda: numpy.array(length, dtype=numpy.int64),
        )
    ]


@operator("SplitToSequence", host=(1,))
def split_to_sequence(call: Call, x: Any, sizes: Any = None) -> Any:
    axis = call["axis"]
    length = int(x.shape[axis])
    if sizes is None:
        lengths = [1] * length
    elif sizes.ndim == 0:
        each = int(sizes)
        lengths = [min(each, length - start) for start in range(0, length, each)]
    else:
        lengths = numbers(sizes)
    parts, start = [], 0
    for size in lengths:
        key = [slice(None)] * x.ndim
        key[axis] = slice(start, start + size)
        part = x[tuple(key)]
        parts.append(part if sizes is not None or call["keepdims"] else np.squeeze(part, axis=axis))
        start += size
    return parts


@operator("ConcatFromSequence")
def concat_from_sequence(call: Call, items: Any) -> Any:
    return (np.stack if call["new_axis"] else np.concatenate)(items, axis=call["axis"])


@operator("SequenceMap", takes_values=True)
def sequence_map(call: Call, outer: Scope, *values: Value) -> list[Value]:
    """Runs the body for the items of the first sequence, with those of the others or with whole arrays."""
    body = call["body"]
    given = [value.array for value in values]
    rows: list[list[Any]] = [[] for _ in body.outputs]
    for number in range(len(given[0])):
        items = [Value(x[number] if isinstance(x, list) else x) for x in given]
        for row, value in zip(rows, body.run(items, outer), strict=True):
            row.append(value.array)
    return [Value(row) for row in rows]


@operator("Optional")
def optional(call: Call, x: Any = None) -> Any:
    return x


@operator("OptionalHasElement", takes_values=True)
def optional_has_element(call: Call, outer: Scope, x: Value | None = None) -> list[Value]:
    has = x is not None and x.array is not None
    return [Value(make_array=lambda: np.array(has), make_host=lambda: numpy.array(has))]


@operator("OptionalGetElement")
def optional_get_element(call: Call, x: Any) -> Any:
    if x is None:
        raise ValueError(f"{call.label}: the optional value is not there")
    return x
