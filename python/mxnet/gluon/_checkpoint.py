"""Parameter files in the safetensors format, written atomically."""

from __future__ import annotations

import os
from collections.abc import Mapping

from mxnet import _core
from mxnet import numpy_extension as npx
from mxnet.base import PathLike
from mxnet.error import FileFormatError, IOError
from mxnet.numpy import ndarray

__all__ = ["load_arrays", "save_arrays"]


def save_arrays(path: PathLike, arrays: Mapping[str, ndarray], metadata: Mapping[str, str]) -> None:
    """Write named arrays.

    Parameters
    ----------
    path : path
    arrays : mapping of str to ndarray
    metadata : mapping of str to str

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    _core.save_safetensors(path, dict(arrays), dict(metadata))


def load_arrays(path: PathLike) -> dict[str, ndarray]:
    """Read named arrays.

    Parameters
    ----------
    path : path
        A safetensors file, an npz archive, or a binary list of arrays of MXNet 1.x and 2.x.

    Returns
    -------
    dict of str to ndarray
        Without ``arg:`` and ``aux:``, which files of symbols have in front of names. Sparse arrays of older files are
        made dense.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    mxnet.error.IOError
        If it is no file but a pipe or a device.
    FileFormatError
        If it is truncated, damaged or no safetensors file.
    """
    _core.check_file(path)
    try:
        arrays = npx.load(os.fspath(path))
    except IOError as error:
        raise FileFormatError(f"{os.fspath(path)!r} is damaged or no parameter file: {error}") from error
    if not isinstance(arrays, dict):
        raise FileFormatError(f"{os.fspath(path)!r} is no parameter file: its arrays have no names")
    return {
        name.removeprefix("arg:").removeprefix("aux:"): array.todense() if hasattr(array, "todense") else array
        for name, array in arrays.items()
    }
