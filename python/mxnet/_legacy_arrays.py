"""Reads files of arrays that MXNet 1.x and 2.x wrote: the binary list of `nd.save` (``.params``).

All numbers are little-endian:

    list     u64 0x112, u64 0, u64 n, n arrays, u64 m, m names (u64 length, letters); m is n or 0
    array    version 3, 2: u32 0xF993FACA or 0xF993FAC9, i32 storage (0 is dense), shape, place, elements
                           storage 1 (rows) and 2 (csr): before the shape that of the stored elements, and after the
                           place i32 type, i32 type and shape of each index array, elements, index arrays
             version 1:    u32 0xF993FAC8, shape, place, elements
             version 0:    u32 number of axes, u32 sizes, place, elements
    shape    i32 number of axes (version 1: u32), i64 sizes
    place    i32 kind of device, i32 number
    elements i32 type, then the elements in C order
"""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as onp

from mxnet import numpy as np
from mxnet.base import PathLike
from mxnet.error import FileFormatError
from mxnet.numpy import ndarray

__all__ = ["load_legacy"]

_LIST_MAGIC = struct.pack("<Q", 0x112)
_V1, _V2, _V3 = 0xF993FAC8, 0xF993FAC9, 0xF993FACA
# Type numbers in these files. NumPy has no dtype for bfloat16, so it is read as its bits.
_TYPES = {
    0: "float32", 1: "float64", 2: "float16", 3: "uint8", 4: "int32", 5: "int8", 6: "int64", 7: "bool", 8: "int16",
    9: "uint16", 10: "uint32", 11: "uint64", 12: "bfloat16",
}  # fmt: skip
_MOST_AXES = 32
# How many arrays of indices there are, by the number of the storage: rows; pointers and columns.
_INDEX_ARRAYS = {1: 1, 2: 2}


class _Reader:
    """Reads numbers and elements from the front of a byte string."""

    def __init__(self, content: bytes) -> None:
        self._content = memoryview(content)
        self._at = 0

    def take(self, length: int) -> memoryview:
        if length > len(self._content) - self._at:
            raise FileFormatError(f"truncated: {length} bytes are missing at byte {self._at} of {len(self._content)}")
        self._at += length
        return self._content[self._at - length : self._at]

    def number(self, kind: str) -> int:
        (value,) = struct.unpack(f"<{kind}", self.take(struct.calcsize(f"<{kind}")))
        return int(value)

    def numbers(self, kind: str, count: int) -> tuple[int, ...]:
        if not 0 <= count <= _MOST_AXES:
            raise FileFormatError(f"an array of {count} axes at byte {self._at}")
        return struct.unpack(f"<{count}{kind}", self.take(count * struct.calcsize(f"<{kind}")))

    def array(self) -> Any:
        """The next array; None if it was saved without elements."""
        version = self.number("I")
        if version in (_V2, _V3):
            storage = self.number("i")
            if storage in _INDEX_ARRAYS:
                return self.sparse(storage)
            if storage != 0:
                raise FileFormatError(f"an array of storage {storage} at byte {self._at}")
            shape = self.numbers("q", self.number("i"))
            # For an array without elements, version 2 writes no axes, version 3 a negative size.
            if (version == _V2 and not shape) or any(size < 0 for size in shape):
                return None
        elif version == _V1:
            shape = self.numbers("q", self.number("I"))
            if not shape:
                return None
        else:
            shape = self.numbers("I", version)
            if not shape:
                return None
        self.take(8)
        return self.elements(self.type(), shape)

    def type(self) -> str:
        kind = self.number("i")
        if kind not in _TYPES:
            raise FileFormatError(f"an array of type number {kind} at byte {self._at}")
        return _TYPES[kind]

    def elements(self, name: str, shape: tuple[int, ...]) -> ndarray:
        stored = onp.dtype("uint16" if name == "bfloat16" else name).newbyteorder("<")
        elements = onp.frombuffer(self.take(math.prod(shape) * stored.itemsize), stored).reshape(shape)
        if name == "bfloat16":
            # bfloat16 is the upper half of a float32.
            wide = (elements.astype("uint32") << 16).view("float32")
            return np.array(wide, dtype="bfloat16")
        return np.array(elements, dtype=name)

    def sparse(self, storage: int) -> Any:
        """The rest of a sparse array."""
        from mxnet import sparse  # a program without sparse arrays need not import it

        stored, shape = (self.numbers("q", self.number("i")) for _ in range(2))
        self.take(8)
        name = self.type()
        kinds = [(self.type(), self.numbers("q", self.number("i"))) for _ in range(_INDEX_ARRAYS[storage])]
        if any(size < 0 for sizes in (stored, shape, *(sizes for _, sizes in kinds)) for size in sizes):
            raise FileFormatError(f"a sparse array with a negative size at byte {self._at}")
        data = self.elements(name, stored)
        indices = [self.elements(*kind) for kind in kinds]
        try:
            if storage == 1:
                return sparse.row_sparse_array((data, indices[0]), shape=shape)
            return sparse.csr_array((data, indices[1], indices[0]), shape=shape)
        except (ValueError, TypeError, IndexError) as error:
            raise FileFormatError(f"a sparse array before byte {self._at} does not fit: {error}") from error

    def text(self) -> str:
        return bytes(self.take(self.number("Q"))).decode()


def load_legacy(path: PathLike) -> dict[str, Any] | list[Any]:
    """Read a binary list of arrays.

    Parameters
    ----------
    path : path

    Returns
    -------
    dict of str to ndarray or sparse array, or list of them
        A list if the arrays have no names.

    Raises
    ------
    OSError
        If the file cannot be read.
    FileFormatError
        If it is truncated or damaged.
    """
    with open(path, "rb") as file:
        reader = _Reader(file.read())
    try:
        if bytes(reader.take(8)) != _LIST_MAGIC:
            raise FileFormatError("no list of arrays")
        reader.take(8)
        arrays: list[Any] = []
        for number in range(reader.number("Q")):
            array = reader.array()
            if array is None:
                raise FileFormatError(f"array {number} was saved without elements")
            arrays.append(array)
        names = [reader.text() for _ in range(reader.number("Q"))]
    except (FileFormatError, UnicodeDecodeError) as error:
        raise FileFormatError(f"{str(path)!r}: {error}") from error
    if not names:
        return arrays
    if len(names) != len(arrays):
        raise FileFormatError(f"{str(path)!r}: {len(arrays)} arrays and {len(names)} names")
    return dict(zip(names, arrays, strict=True))
