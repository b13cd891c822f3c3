"""Exchange with Awkward and Arrow through their buffers; neither library is required."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Mapping
from typing import Any

import numpy as onp

from mxnet import _core, error
from mxnet._arrow import PRIMITIVES, Array, Level, Schema, address, capsules
from mxnet.ragged._array import RaggedArray

# Awkward: a form, which has the array's nesting, and flat buffers keyed by the names of its nodes.

_OFFSETS = {"i32": "int32", "u32": "uint32", "i64": "int64"}


def to_buffers(r: RaggedArray) -> tuple[str, int, dict[str, Any]]:
    """The array as the parts that ``awkward.from_buffers`` takes.

    Parameters
    ----------
    r : RaggedArray

    Returns
    -------
    form : str
        JSON.
    length : int
    container : dict of str to numpy.ndarray

    Examples
    --------
    >>> form, length, container = mx.ragged.to_buffers(mx.ragged.array([[1, 2], [3]]))
    >>> container['node0-offsets']
    array([0, 2, 3])
    """
    values = r.values.asnumpy()
    container: dict[str, Any] = {}
    depth = r.num_ragged + values.ndim - 1
    form: dict[str, Any] = {"class": "NumpyArray", "primitive": str(values.dtype), "form_key": f"node{depth}"}
    container[f"node{depth}-data"] = values.ravel()
    for axis in range(values.ndim - 1, 0, -1):
        depth -= 1
        form = {"class": "RegularArray", "size": values.shape[axis], "content": form, "form_key": f"node{depth}"}
    for partition in reversed(r._partitions):
        depth -= 1
        form = {"class": "ListOffsetArray", "offsets": "i64", "content": form, "form_key": f"node{depth}"}
        container[f"node{depth}-offsets"] = partition.host
    return json.dumps(form), len(r), container


def from_buffers(form: Any, length: int, container: Mapping[str, Any]) -> RaggedArray:
    """An array of the parts that ``awkward.to_buffers`` gives.

    Parameters
    ----------
    form : str, mapping or Form
        Lists by offsets, regular lists and numbers; ``awkward.to_packed`` makes such of any lists.
    length : int
    container : mapping of str to buffer

    Returns
    -------
    RaggedArray, shape (length, None, ...)

    Raises
    ------
    mxnet.error.UnsupportedError
        If the form has other nodes: records, unions, missing values, lists by starts and stops.
    ValueError
        If a buffer is too short, or offsets are malformed.

    Examples
    --------
    >>> mx.ragged.from_buffers(*mx.ragged.to_buffers(mx.ragged.array([[1, 2], [3]])))
    ragged.array([[1, 2],
                  [3]])
    """
    if isinstance(form, str):
        form = json.loads(form)
    elif not isinstance(form, Mapping):
        form = form.to_dict()

    def buffer(node: Mapping[str, Any], what: str, dtype: Any, count: int) -> Any:
        name = f"{node['form_key']}-{what}"
        if name not in container:
            raise error.ValueError(f"from_buffers: there is no buffer {name!r}")
        held = onp.frombuffer(memoryview(container[name]).cast("B"), dtype=dtype)
        if len(held) < count:
            raise error.ValueError(f"from_buffers: buffer {name!r} has {len(held)} elements, {count} are needed")
        return held[:count]

    offsets: list[Any] = []
    tail: list[int] = []
    # The rows of a node that belong to the array: lists of a slice begin behind those that were cut off.
    node, start, rows = form, 0, length
    while True:
        kind = node.get("class")
        if kind == "ListOffsetArray" and not tail:
            found = buffer(node, "offsets", _OFFSETS[node["offsets"]], start + rows + 1)[start:].astype("int64")
            start, rows = int(found[0]), int(found[-1] - found[0])
            offsets.append(found - found[0])
        elif kind == "RegularArray":
            size = int(node["size"])
            tail.append(size)
            start, rows = start * size, rows * size
        elif kind == "NumpyArray":
            break
        else:
            raise error.UnsupportedError(
                f"from_buffers: no ragged array has a node {kind!r} here; awkward.to_packed makes lists by offsets"
            )
        node = node["content"]
    inner = [int(n) for n in node.get("inner_shape", ())]
    tail += inner
    if not offsets:
        raise error.UnsupportedError("from_buffers: no axis is ragged; use np.array")
    size = int(onp.prod(inner, dtype=onp.int64))
    values = buffer(node, "data", node["primitive"], (start + rows) * size)[start * size :]
    return RaggedArray(_core.array(values.reshape(int(offsets[-1][-1]), *tail)), *offsets)


# Arrow: lists of its C data interface.


def to_arrow(r: RaggedArray) -> tuple[Any, Any]:
    """Arrow PyCapsules of an array of (large) lists: the result of ``RaggedArray.__arrow_c_array__``."""
    levels: list[Level] = []
    rows = len(r)
    for partition in r._partitions:
        levels.append(Level("+L", rows, partition.host))
        rows = partition.total
    return capsules(levels, r.values.asnumpy(), r)


def from_arrow(x: Any) -> RaggedArray:
    """A copy of an Arrow array of lists.

    Parameters
    ----------
    x : object with ``__arrow_c_array__``
        A ``pyarrow.Array`` of lists, large lists or lists of fixed size, of numbers; nested as deep as it likes.

    Returns
    -------
    RaggedArray, shape (n, None, ...)

    Raises
    ------
    mxnet.error.UnsupportedError
        If it has missing values or other types.

    Examples
    --------
    >>> mx.ragged.from_arrow(mx.ragged.array([[1, 2], [3]]))
    ragged.array([[1, 2],
                  [3]])
    """
    if not hasattr(x, "__arrow_c_array__"):
        raise error.UnsupportedError(f"from_arrow: a {type(x).__name__!r} has no __arrow_c_array__")
    held = x.__arrow_c_array__()
    schema: Any = Schema.from_address(address(held[0], b"arrow_schema"))
    array: Any = Array.from_address(address(held[1], b"arrow_array"))

    def elements(start: int | None, dtype: Any, count: int) -> Any:
        size = onp.dtype(dtype).itemsize * count
        raw = (ctypes.c_char * size).from_address(start) if size and start else b""
        return onp.frombuffer(raw, dtype=dtype).copy()

    offsets: list[Any] = []
    tail: list[int] = []
    start, rows = 0, int(array.length)
    while True:
        if array.null_count > 0 or (array.null_count < 0 and array.n_buffers and array.buffers[0]):
            raise error.UnsupportedError("from_arrow: ragged arrays have no missing values")
        kind = schema.format.decode()
        start += int(array.offset)
        if kind in ("+l", "+L") and not tail:
            found = elements(array.buffers[1], "int32" if kind == "+l" else "int64", start + rows + 1)[start:]
            found = found.astype("int64") if len(found) else onp.zeros(1, dtype="int64")
            start, rows = int(found[0]), int(found[-1] - found[0])
            offsets.append(found - found[0])
        elif kind.startswith("+w:"):
            size = int(kind[3:])
            tail.append(size)
            start, rows = start * size, rows * size
        elif kind in PRIMITIVES:
            break
        else:
            raise error.UnsupportedError(f"from_arrow: no ragged array has the Arrow type {kind!r} here")
        schema, array = schema.children[0].contents, array.children[0].contents
    if not offsets:
        raise error.UnsupportedError("from_arrow: no axis is ragged; use np.array")
    if kind == "b":
        packed = elements(array.buffers[1], "uint8", (start + rows + 7) // 8)
        values = onp.unpackbits(packed, count=start + rows, bitorder="little").astype(bool)[start:]
    else:
        values = elements(array.buffers[1], PRIMITIVES[kind], start + rows)[start:]
    return RaggedArray(_core.array(values.reshape(int(offsets[-1][-1]), *tail)), *offsets)
