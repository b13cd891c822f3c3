"""Ragged arrays as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mxnet import numpy as np

if TYPE_CHECKING:
    from mxnet.ragged._array import RaggedArray

_HEAD = "ragged.array("
_EDGE, _MOST = 3, 12  # rows formatted at each end, and number of rows up to which all are formatted


def _rows(r: RaggedArray, margin: str) -> str:
    count = len(r)
    numbers: list[int | None] = list(range(count))
    if count > _MOST:
        numbers = [*range(_EDGE), None, *range(count - _EDGE, count)]
    parts: list[str] = []
    for i in numbers:
        row: Any = "..." if i is None else r[i]
        if i is None:
            parts.append("...")
        elif hasattr(row, "num_ragged"):
            parts.append(_rows(row, margin + " "))
        elif not row.size:
            parts.append("[]")
        else:
            parts.append(np.array2string(row, separator=", ", prefix=margin + " "))
    return "[" + (",\n" + margin + " ").join(parts) + "]"


def formatted(r: RaggedArray) -> str:
    """The array as nested lists, with elisions."""
    if any(partition.is_traced for partition in r._partitions):
        return f"<ragged array of shape {r.shape} and dtype {r.dtype} in a trace>"
    text = _HEAD + _rows(r, " " * len(_HEAD))
    if not r.size:
        text += f", shape={r.shape}"
    if not r.size or str(r.dtype) not in ("float32", "int64", "bool"):
        text += f", dtype={r.dtype}"
    return text + ")"
