"""Arrays in files, under MXNet's names."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from zipfile import BadZipFile

from mxnet import _core
from mxnet._core import ndarray
from mxnet.numpy import _files

__all__ = ["load", "save", "savez"]

Path = str | os.PathLike[str]

_ZIP, _NPY = b"PK\x03\x04", b"\x93NUMPY"


def save(file: Path, arr: ndarray | Mapping[str, ndarray]) -> None:
    """Write arrays to a file.

    Parameters
    ----------
    file : path
    arr : ndarray or mapping of str to ndarray
        One array makes an npy file. Named arrays make a safetensors file, which holds bfloat16 too and is written whole
        or not at all.

    Raises
    ------
    OSError
        If the file cannot be written.
    TypeError
        If `arr` is neither, or an array has a dtype that the file cannot hold.

    Examples
    --------
    >>> import tempfile, os
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, 'arrays')
    ...     npx.save(path, {'w': np.ones(2, dtype='bfloat16')})
    ...     npx.load(path)['w'].dtype
    dtype(bfloat16)
    """
    if isinstance(arr, ndarray):
        _files.save(file, arr, allow_pickle=False)
    elif isinstance(arr, Mapping):
        _core.save_safetensors(file, dict(arr))
    else:
        raise TypeError(f"`arr` must be an ndarray or a mapping of names to arrays, not {type(arr).__name__!r}")


def savez(file: Path, *args: Any, **kwds: Any) -> None:
    """Write several arrays to an npz file.

    Parameters
    ----------
    file : path
    *args, **kwds : ndarray
        Stored as ``arr_0``, ``arr_1``, ... and under their names.

    Raises
    ------
    OSError
        If the file cannot be written.
    TypeError
        If an array is bfloat16.

    Examples
    --------
    >>> import tempfile, os
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, 'arrays.npz')
    ...     npx.savez(path, w=np.ones(2))
    ...     np.load(path)['w']
    array([1., 1.])
    """
    _files.savez(file, *args, allow_pickle=False, **kwds)


def load(file: Path) -> ndarray | dict[str, ndarray]:
    """Read a file that `save`, `savez` or NumPy wrote.

    Parameters
    ----------
    file : path
        An npy, npz or safetensors file; its first bytes say which.

    Returns
    -------
    ndarray, or dict of str to ndarray
        An npy file gives one array.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    mxnet.error.IOError
        If it is truncated, damaged or of another kind.

    Examples
    --------
    >>> import tempfile, os
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, 'arrays')
    ...     npx.save(path, {'w': np.ones(2)})
    ...     npx.load(path)
    {'w': array([1., 1.])}
    """
    with open(file, "rb") as opened:
        if not opened.read(6).startswith((_ZIP, _NPY)):
            arrays: dict[str, ndarray] = _core.load_safetensors(file)[0]
            return arrays
        opened.seek(0)
        try:
            found = _files.load(opened)
            return found if isinstance(found, ndarray) else dict(found)
        except (ValueError, EOFError, BadZipFile) as error:
            raise _core.IOError(f"{os.fspath(file)!r} is truncated or damaged: {error}") from error
