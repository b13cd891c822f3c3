"""Arrays in Arrow's C data interface: two structures in PyCapsules.

Source: the Arrow C data interface and the Arrow PyCapsule interface.
"""

from __future__ import annotations

import ctypes
import importlib
from typing import Any, NamedTuple

import numpy as onp

from mxnet import _core, error


class Schema(ctypes.Structure):
    """``ArrowSchema``: the type of an array."""


class Array(ctypes.Structure):
    """``ArrowArray``: the lengths and the buffers of an array."""


Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(Schema))),
    ("dictionary", ctypes.c_void_p),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]
Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(Array))),
    ("dictionary", ctypes.c_void_p),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]

PRIMITIVES = {
    "c": "int8", "C": "uint8", "s": "int16", "S": "uint16", "i": "int32", "I": "uint32", "l": "int64", "L": "uint64",
    "e": "float16", "f": "float32", "g": "float64", "b": "bool",
}  # fmt: skip
_FORMATS = {name: letter for letter, name in PRIMITIVES.items()}

_api = ctypes.pythonapi
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def address(capsule: Any, name: bytes) -> int:
    """Address of the structure in a capsule that is called ``arrow_schema`` or ``arrow_array``."""
    found: int = _api.PyCapsule_GetPointer(capsule, name)
    return found


class Level(NamedTuple):
    """Lists around the elements: their format in Arrow, their number, and the offsets if lengths differ."""

    kind: str
    rows: int
    offsets: Any = None


def capsules(lists: list[Level], values: Any, owner: Any) -> tuple[Any, Any]:
    """PyCapsules of lists of numbers.

    Parameters
    ----------
    lists : list of Level
        From the outermost.
    values : numpy.ndarray, shape (n, ...)
        The elements of the innermost lists; further axes become lists of fixed size.
    owner : object
        Stays alive until both structures are released.

    Returns
    -------
    tuple of two capsules

    Raises
    ------
    mxnet.error.UnsupportedError
        If Arrow has no such numbers: complex ones and bfloat16.
    """
    values = onp.ascontiguousarray(values)
    if values.dtype.name not in _FORMATS:
        raise error.UnsupportedError(f"__arrow_c_array__: Arrow has no numbers of dtype {values.dtype}")
    levels = list(lists)
    rows = values.shape[0]
    for size in values.shape[1:]:
        levels.append(Level(f"+w:{size}", rows))
        rows *= size
    # Arrow has eight booleans in a byte, the first one in the lowest bit.
    stored = onp.packbits(values, bitorder="little") if values.dtype == bool else values
    alive: list[Any] = [stored, owner]
    schema: Any = None
    array: Any = None
    for level in reversed([*levels, Level(_FORMATS[values.dtype.name], rows, stored)]):
        # No element is missing, so that the first buffer, their bit map, is left out.
        buffers = [None] if level.offsets is None else [None, level.offsets]
        own, parts = Schema(), Array()
        own.format = level.kind.encode()
        parts.length, parts.n_buffers = level.rows, len(buffers)
        pointers = (ctypes.c_void_p * len(buffers))(*(None if b is None else b.ctypes.data for b in buffers))
        parts.buffers = ctypes.cast(pointers, ctypes.POINTER(ctypes.c_void_p))
        if schema is not None:
            schemas = (ctypes.POINTER(Schema) * 1)(ctypes.pointer(schema))
            arrays = (ctypes.POINTER(Array) * 1)(ctypes.pointer(array))
            # The outermost array has no name, so that a consumer may give it one.
            schema.name = b"item"
            own.n_children = parts.n_children = 1
            own.children = ctypes.cast(schemas, ctypes.POINTER(ctypes.POINTER(Schema)))
            parts.children = ctypes.cast(arrays, ctypes.POINTER(ctypes.POINTER(Array)))
            alive += [schemas, arrays]
        alive += [own, parts, pointers, buffers]
        schema, array = own, parts
    made: tuple[Any, Any] = _core.arrow_capsules(ctypes.addressof(schema), ctypes.addressof(array), alive)
    return made


def of_array(x: _core.ndarray) -> tuple[Any, Any]:
    """PyCapsules of a copy of an array: the result of ``ndarray.__arrow_c_array__``."""
    if x.ndim == 0:
        raise error.UnsupportedError("__arrow_c_array__: Arrow has no arrays without axes: give it `x.item()`")
    return capsules([], x.asnumpy(), None)


def of_pyarrow(x: _core.ndarray, dtype: Any) -> Any:
    """A ``pyarrow.Array`` of an array, of a type of pyarrow or None: the result of ``ndarray.__arrow_array__``.

    ``pyarrow.array`` prefers this method, and refuses the arguments `mask` and `size` then; with the capsules alone it
    leaves them out.
    """
    made = importlib.import_module("pyarrow").array(_Exported(x))
    return made if dtype is None else made.cast(dtype)


class _Exported:
    """The capsules of an array, and nothing else of it."""

    def __init__(self, array: _core.ndarray) -> None:
        self.array = array

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        return of_array(self.array)
