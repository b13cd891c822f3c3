"""Files in the idx format, which the MNIST images come in: a head that says type and shape, and the elements.

The head is two zero bytes, a code of the type, the number of axes, and the length of each axis; numbers are big-endian.
Source: Y. LeCun, C. Cortes and C. J. C. Burges, "The MNIST database of handwritten digits".
"""

from __future__ import annotations

import gzip
import math
import os
import struct
import zlib
from typing import Any

import numpy as onp

from mxnet.base import PathLike
from mxnet.error import FileFormatError

__all__ = ["read_idx"]

_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_GZIP = b"\x1f\x8b"


def read_idx(path: PathLike) -> onp.ndarray[Any, Any]:
    """Read an idx file.

    Parameters
    ----------
    path : path
        Compressed by gzip or not, whatever its name.

    Returns
    -------
    numpy.ndarray
        Of this machine's byte order.

    Raises
    ------
    OSError
        If the file cannot be read.
    FileFormatError
        If it is something else, or cut off.
    """
    name = os.fspath(path)
    with open(name, "rb") as file:
        content = file.read()
    if content[:2] == _GZIP:
        try:
            content = gzip.decompress(content)
        except (EOFError, OSError, zlib.error) as error:
            raise FileFormatError(f"{name}: damaged gzip file: {error}") from error
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in _TYPES:
        raise FileFormatError(f"{name}: no idx file, it begins with {content[:4].hex(' ') or 'nothing'}")
    dtype = onp.dtype(_TYPES[content[2]])
    num_axes = content[3]
    start = 4 + 4 * num_axes
    if len(content) < start:
        raise FileFormatError(f"{name}: cut off in the lengths of its {num_axes} axes")
    shape = struct.unpack_from(f">{num_axes}I", content, 4)
    num_bytes = math.prod(shape) * dtype.itemsize
    if len(content) - start != num_bytes:
        raise FileFormatError(f"{name}: shape {shape} needs {num_bytes} bytes, but {len(content) - start} are there")
    return onp.frombuffer(content, dtype, offset=start).reshape(shape).astype(dtype.newbyteorder("="))
