"""Reading and writing safetensors files.

A file is the length of a header (8 bytes, little endian), the header (JSON: name -> dtype, shape and place of the
bytes) and the bytes of all arrays, row by row and without gaps. Nothing in it is executed.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import numpy as onp

from mxnet import numpy as np
from mxnet.base import dtype_name
from mxnet.error import FileFormatError
from mxnet.numpy import ndarray

__all__ = ["read", "write"]

_METADATA = "__metadata__"
# A header that takes more is no header: it would have to name a million arrays.
_MAX_HEADER_BYTES = 100_000_000
_CODES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "uint16": "U16",
    "int16": "I16",
    "uint32": "U32",
    "int32": "I32",
    "uint64": "U64",
    "int64": "I64",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
    "complex64": "C64",
}
_NAMES = {code: name for name, code in _CODES.items()}


def _stored_dtype(name: str) -> Any:
    """How the bytes of a dtype are seen by NumPy: bfloat16 as the upper halves of float32."""
    return onp.dtype("uint16" if name == "bfloat16" else name).newbyteorder("<")


def _to_host(array: ndarray, name: str) -> Any:
    if name != "bfloat16":
        return array.asnumpy().astype(_stored_dtype(name), copy=False)
    wide = array.astype("float32").asnumpy()
    # The lower halves are zero, because the values come from bfloat16.
    return (wide.view("uint32") >> 16).astype(_stored_dtype(name))


def _from_host(values: Any, name: str) -> ndarray:
    if name != "bfloat16":
        return np.array(values, dtype=name)
    wide = (values.astype("uint32") << 16).view("float32")
    return np.array(wide, dtype=name)


def write(file: BinaryIO, arrays: Mapping[str, ndarray], metadata: Mapping[str, str]) -> None:
    """Write named arrays.

    Parameters
    ----------
    file : binary file
    arrays : mapping of str to ndarray
    metadata : mapping of str to str

    Raises
    ------
    TypeError
        If the format has no such dtype.
    """
    header: dict[str, Any] = {_METADATA: dict(metadata)}
    start = 0
    for name, array in arrays.items():
        dtype = dtype_name(array.dtype)
        if dtype not in _CODES:
            raise TypeError(f"{name!r} has dtype {dtype}, which a parameter file cannot hold")
        end = start + math.prod(array.shape) * _stored_dtype(dtype).itemsize
        header[name] = {"dtype": _CODES[dtype], "shape": list(array.shape), "data_offsets": [start, end]}
        start = end
    text = json.dumps(header, separators=(",", ":")).encode()
    # Spaces after the header align the arrays to 8 bytes.
    text += b" " * (-len(text) % 8)
    file.write(struct.pack("<Q", len(text)) + text)
    for array in arrays.values():
        file.write(_to_host(array, dtype_name(array.dtype)).tobytes())


def read(file: BinaryIO, size: int) -> dict[str, ndarray]:
    """Read named arrays.

    Parameters
    ----------
    file : binary file
        At its beginning.
    size : int
        Its length in bytes.

    Returns
    -------
    dict of str to ndarray

    Raises
    ------
    FileFormatError
        If the file is truncated, damaged or no safetensors file.
    """
    header, begin = _header(file, size)
    entries = sorted(_entries(header, size - begin), key=lambda entry: entry[3])
    place = 0
    arrays: dict[str, ndarray] = {}
    for name, dtype, shape, start, end in entries:
        if start != place:
            raise FileFormatError(f"{name!r} begins at byte {start} of the data, expected {place}")
        data = file.read(end - start)
        values = onp.frombuffer(data, dtype=_stored_dtype(dtype)).reshape(shape)
        arrays[name] = _from_host(values, dtype)
        place = end
    if place != size - begin:
        raise FileFormatError(f"the arrays take {place} bytes, but there are {size - begin}")
    # In the order of the header, which is the order in which they were written.
    return {name: arrays[name] for name in header if name != _METADATA}


def _header(file: BinaryIO, size: int) -> tuple[dict[str, Any], int]:
    """The header, and where the data begins."""
    first = file.read(8)
    if len(first) < 8:
        raise FileFormatError(f"{size} bytes are too few: a parameter file has at least 8")
    (length,) = struct.unpack("<Q", first)
    if length > min(size - 8, _MAX_HEADER_BYTES):
        raise FileFormatError(f"the header should have {length} bytes, but {size - 8} follow")
    try:
        header = json.loads(file.read(length))
    except ValueError as error:
        raise FileFormatError(f"the header is no JSON text: {error}") from error
    if not isinstance(header, dict):
        raise FileFormatError(f"the header is a {type(header).__name__} and not a table of arrays")
    return header, 8 + length


def _entries(header: dict[str, Any], available: int) -> Iterator[tuple[str, str, tuple[int, ...], int, int]]:
    """Name, dtype, shape, first byte and end of each array, checked."""
    for name, entry in header.items():
        if name == _METADATA:
            continue
        try:
            dtype = _NAMES[entry["dtype"]]
            shape = tuple(int(length) for length in entry["shape"])
            start, end = (int(offset) for offset in entry["data_offsets"])
        except (KeyError, TypeError, ValueError) as error:
            raise FileFormatError(f"the header's entry of {name!r} makes no sense: {entry!r}") from error
        needed = math.prod(shape) * _stored_dtype(dtype).itemsize
        if min((0, *shape)) < 0 or start < 0 or end - start != needed:
            raise FileFormatError(f"{name!r}, {dtype} of shape {shape}, cannot lie in bytes {start} to {end}")
        if end > available:
            raise FileFormatError(f"{name!r} ends at byte {end} of the data, but there are {available}: truncated")
        yield name, dtype, shape, start, end
