"""Errors and the few types that every other module of the package uses.

Operators, arrays and gluon build on this module; it imports none of them.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as onp

from mxnet._core import MXNetError

__all__ = [
    "DTypeLike",
    "MXNetError",
    "PathLike",
    "Shape",
    "_as_list",
    "data_dir",
    "dtype_name",
    "dtype_object",
    "integer_types",
    "numeric_types",
    "py_str",
    "string_types",
]

Shape = tuple[int, ...]
PathLike = str | os.PathLike[str]
# A NumPy dtype, a NumPy scalar class, a Python type or a name. `bfloat16` has only a name.
DTypeLike = Any
# What counts as an integer in arguments; bool does, as a subclass of int.
integer_types = (int, onp.int32, onp.int64)
# What counts as a number, and as text, in arguments.
numeric_types = (float, int, onp.generic)
string_types = (str,)


def py_str(x: bytes) -> str:
    """Text of UTF-8 bytes.

    Parameters
    ----------
    x : bytes

    Returns
    -------
    str

    Raises
    ------
    UnicodeDecodeError
        If `x` is not UTF-8.
    """
    return x.decode("utf-8")


def data_dir() -> str:
    """Folder for data sets and downloaded files.

    Returns
    -------
    str
        The environment variable ``MXNET_HOME``, without it ``.mxnet`` in the home folder (``mxnet`` in ``%APPDATA%``
        on Windows). It need not exist.
    """
    default = (
        os.path.join(os.environ.get("APPDATA", ""), "mxnet")
        if os.name == "nt"
        else os.path.join(os.path.expanduser("~"), ".mxnet")
    )
    return os.environ.get("MXNET_HOME", default)


def _as_list(obj: Any) -> list[Any] | tuple[Any, ...]:
    """A list or tuple as it is, anything else as the only element of a list."""
    return obj if isinstance(obj, list | tuple) else [obj]


def dtype_name(dtype: DTypeLike) -> str:
    """Name of a dtype, however it is spelt.

    Parameters
    ----------
    dtype : str, numpy.dtype, NumPy scalar class, Python type or any object with a `name`
        For example ``"float32"``, ``numpy.float32`` or ``array.dtype``.

    Returns
    -------
    str
        For example ``"float32"``.

    Raises
    ------
    TypeError
        If `dtype` names no dtype.
    """
    if isinstance(dtype, str):
        return dtype if dtype == "bfloat16" else str(onp.dtype(dtype).name)
    name = getattr(dtype, "name", None)
    if isinstance(name, str):
        return name
    return str(onp.dtype(dtype).name)


def dtype_object(dtype: DTypeLike) -> Any:
    """The `numpy.dtype` of `dtype`, or its name where NumPy has no such dtype.

    Parameters
    ----------
    dtype : as for `dtype_name`

    Returns
    -------
    numpy.dtype or str
        A string only for ``"bfloat16"``.
    """
    name = dtype_name(dtype)
    return name if name == "bfloat16" else onp.dtype(name)
