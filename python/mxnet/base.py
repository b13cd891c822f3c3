"""Errors and the few types that every other module of the package uses.

Operators, arrays and gluon build on this module; it imports none of them.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as onp

from mxnet._core import MXNetError

__all__ = ["DTypeLike", "MXNetError", "PathLike", "Shape", "dtype_name", "dtype_object"]

Shape = tuple[int, ...]
PathLike = str | os.PathLike[str]
# A NumPy dtype, a NumPy scalar class, a Python type or a name. `bfloat16` has only a name.
DTypeLike = Any


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
