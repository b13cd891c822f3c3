"""Parameter files: safetensors, written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Mapping

from mxnet import _core
from mxnet.base import PathLike
from mxnet.error import FileFormatError, IOError
from mxnet.numpy import ndarray

__all__ = ["load_arrays", "save_arrays", "write_atomically"]


def write_atomically(path: PathLike, write: Callable[[str], None]) -> None:
    """Replace a file by a new one in one step, so that a crash leaves the old one or the new one.

    Parameters
    ----------
    path : path
    write : callable of str
        Writes the whole content to the path it is given, in the same folder.

    Raises
    ------
    OSError
        If the folder cannot be written; an old file is untouched then.
    """
    target = os.fspath(path)
    folder = os.path.dirname(target) or "."
    descriptor, temporary = tempfile.mkstemp(prefix=f".{os.path.basename(target)}.", dir=folder)
    os.close(descriptor)
    try:
        write(temporary)
        # The data must be on the disk before the name is: otherwise a power cut can leave an empty file of that name.
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    # Makes the renaming itself durable; not every system lets a folder be opened.
    with contextlib.suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


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

    Returns
    -------
    dict of str to ndarray

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    FileFormatError
        If it is truncated, damaged or no safetensors file.
    """
    try:
        arrays: dict[str, ndarray] = _core.load_safetensors(path)[0]
    except IOError as error:
        raise FileFormatError(f"{os.fspath(path)!r} is damaged or no parameter file: {error}") from error
    return arrays
