"""Saving and loading of arrays under MXNet's names."""

from __future__ import annotations

import importlib
import os
import struct
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO
from zipfile import BadZipFile

from mxnet import _core
from mxnet._core import ndarray
from mxnet.numpy import _files

__all__ = ["load", "save", "savez"]

Path = str | os.PathLike[str]

_ZIP, _NPY = b"PK\x03\x04", b"\x93NUMPY"
# What a safetensors file holds if not a mapping stands in its metadata under this key.
_CONTAINER = "container"
_ARRAY, _LIST = "array", "list"
_LIST_MAGIC = struct.pack("<Q", 0x112)


def save(file: Path, arr: Any) -> None:
    """Write arrays to a file.

    Parameters
    ----------
    file : path
    arr : ndarray, sparse array, RaggedArray, mapping of str to these, or sequence of these
        One ndarray makes an npy file of exactly this name. Named arrays, and a sparse or ragged one, make a safetensors
        file, which holds bfloat16 too; a list makes one that `load` returns as a list. All are written whole or not at
        all.

    Raises
    ------
    OSError
        If the file cannot be written.
    TypeError
        If `arr` is none of these, or an array has a dtype that the file cannot hold.

    Examples
    --------
    >>> import tempfile, os
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, 'arrays')
    ...     npx.save(path, {'w': np.ones(2, dtype='bfloat16')})
    ...     npx.load(path)['w'].dtype
    dtype(bfloat16)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, 'arrays')
    ...     npx.save(path, [np.ones(2), np.zeros(1)])
    ...     npx.load(path)
    [array([1., 1.]), array([0.])]
    """
    if isinstance(arr, ndarray):
        _files.replace_file(file, lambda opened: _files.save(opened, arr, allow_pickle=False))
    elif isinstance(arr, Mapping):
        _save_named(file, dict(arr), {})
    elif hasattr(arr, "_graph_parts"):
        _save_named(file, {_ARRAY: arr}, {_CONTAINER: _ARRAY})
    elif isinstance(arr, list | tuple) and arr and all(_is_array(part) for part in arr):
        _save_named(file, {f"{_LIST}/{i}": part for i, part in enumerate(arr)}, {_CONTAINER: _LIST})
    else:
        raise TypeError(
            f"save: `arr` must be an ndarray, a mapping of names to arrays or a list of arrays, not {_kind(arr)}"
        )


def _is_array(x: Any) -> bool:
    return isinstance(x, ndarray) or hasattr(x, "_graph_parts")


def _save_named(file: Path, named: dict[str, Any], metadata: dict[str, str]) -> None:
    if any(hasattr(x, "num_ragged") for x in named.values()):
        named = importlib.import_module("mxnet.ragged._files").parts(named)
    if any(hasattr(x, "_graph_parts") for x in named.values()):
        named, described = importlib.import_module("mxnet.sparse._files").parts(named)
        metadata = {**metadata, **described}
    _core.save_safetensors(file, named, metadata)


def _kind(arr: Any) -> str:
    if not isinstance(arr, list | tuple):
        return repr(type(arr).__name__)
    wrong = next((type(part).__name__ for part in arr if not _is_array(part)), None)
    return "an empty list" if wrong is None else f"a list with {wrong!r}"


def savez(file: Path, *args: Any, **kwds: Any) -> None:
    """Write several arrays to an npz file, whole or not at all.

    Parameters
    ----------
    file : path
        Its name stays as it is.
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
    _files.replace_file(file, lambda opened: _files.savez(opened, *args, allow_pickle=False, **kwds))


def load(file: Path) -> Any:
    """Read a file that `save`, `savez`, NumPy or an older MXNet wrote.

    Parameters
    ----------
    file : path
        An npy, npz or safetensors file, or a binary list of arrays of MXNet 1.x and 2.x; its first bytes say which.

    Returns
    -------
    ndarray, sparse array, RaggedArray, or dict of str to these, or list of these
        An npy file gives one array, as does a file of one sparse or ragged array; what `save` wrote of a list, and a
        binary list without names, a list.

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
    _core.check_file(file)
    with open(file, "rb") as opened:
        start = opened.read(8)
        if start == _LIST_MAGIC:
            # Imported here, because `mxnet.numpy` imports this module.
            return importlib.import_module("mxnet._legacy_arrays").load_legacy(file)
        if not start.startswith((_ZIP, _NPY)):
            arrays, metadata = _core.load_safetensors(file)
            if any(key.startswith("sparse:") for key in metadata or ()):
                arrays = importlib.import_module("mxnet.sparse._files").joined(file, arrays, metadata)
            if any(name.endswith("/ragged.values") for name in arrays):
                arrays = importlib.import_module("mxnet.ragged._files").joined(arrays)
            container = (metadata or {}).get(_CONTAINER)
            if container == _ARRAY and list(arrays) == [_ARRAY]:
                return arrays[_ARRAY]
            names = [f"{_LIST}/{i}" for i in range(len(arrays))]
            if container == _LIST and arrays.keys() == set(names):
                return [arrays[name] for name in names]
            return arrays
        opened.seek(0)
        try:
            found = _files.load(opened)
            if isinstance(found, ndarray):
                return found
            entries = dict(found)
        except (ValueError, EOFError, BadZipFile) as error:
            raise _core.IOError(f"{os.fspath(file)!r} is truncated or damaged: {error}") from error
    for name, entry in entries.items():
        if not isinstance(entry, ndarray):
            hint = "; `torch.load` reads files of PyTorch" if any(map(_is_of_torch, entries)) else ""
            raise _core.IOError(f"{os.fspath(file)!r} is an archive, but its entry {name!r} is no array{hint}")
    return entries


def _is_of_torch(entry: str) -> bool:
    """Whether archives that PyTorch writes have an entry of this name."""
    return entry.endswith("/data.pkl")
