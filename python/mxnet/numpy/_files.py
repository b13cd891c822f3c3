"""npy and npz files, read and written with NumPy."""

from __future__ import annotations

import contextlib
import os
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from tokenize import TokenError
from typing import IO, Any, BinaryIO
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

import numpy as onp
from numpy.lib.format import write_array

from mxnet import _core
from mxnet._atomic_file import write_atomically
from mxnet._core import ndarray
from mxnet.base import PathLike, dtype_name
from mxnet.error import FileFormatError

__all__ = ["NpzFile", "load", "save", "savez", "savez_compressed"]

File = str | os.PathLike[str] | BinaryIO


def _to_host(what: str, value: Any) -> Any:
    """`value` in the form that NumPy stores."""
    if not isinstance(value, ndarray):
        return value
    if dtype_name(value.dtype) == "bfloat16":
        raise TypeError(
            f"{what} is bfloat16, which npy files cannot hold: convert it to float32, or use npx.save with a dict"
        )
    return value.asnumpy()


def save(file: File, arr: Any, allow_pickle: bool = True) -> None:
    """Write one array to an npy file.

    Parameters
    ----------
    file : path or binary file
        ``.npy`` is added to a path that does not end so. A file of that name is replaced in one step: a crash, or a
        full disk, leaves the old one.
    arr : array_like
    allow_pickle : bool
        Whether objects that are no numbers may be written as pickles.

    Raises
    ------
    OSError
        If the file cannot be written, or is a pipe or a device; an old file is untouched then.
    TypeError
        If `arr` is bfloat16.

    Examples
    --------
    >>> import io
    >>> file = io.BytesIO()
    >>> np.save(file, np.arange(3))
    >>> _ = file.seek(0)
    >>> np.load(file)
    array([0, 1, 2])
    """
    host = _to_host("`arr`", arr)
    _write_to(file, ".npy", lambda opened: onp.save(opened, host, allow_pickle=allow_pickle))


def savez(file: File, *args: Any, allow_pickle: bool = True, **kwds: Any) -> None:
    """Write several arrays to an npz file.

    Parameters
    ----------
    file : path or binary file
        ``.npz`` is added to a path that does not end so. The file is replaced in one step, as by `save`.
    *args : array_like
        Stored as ``arr_0``, ``arr_1``, ...
    allow_pickle : bool
        Whether objects that are no numbers may be written as pickles.
    **kwds : array_like
        Stored under their names.

    Raises
    ------
    OSError
        As for `save`.
    TypeError
        If an array is bfloat16.

    Examples
    --------
    >>> import io
    >>> file = io.BytesIO()
    >>> np.savez(file, a=np.arange(3), b=np.ones(2))
    >>> _ = file.seek(0)
    >>> np.load(file)['b']
    array([1., 1.])
    """
    _write_npz(ZIP_STORED, file, args, kwds, allow_pickle)


def savez_compressed(file: File, *args: Any, allow_pickle: bool = True, **kwds: Any) -> None:
    """Write several arrays to a compressed npz file.

    Parameters
    ----------
    file, *args, allow_pickle, **kwds
        As for `savez`.

    Raises
    ------
    OSError
        As for `save`.
    TypeError
        If an array is bfloat16.

    Examples
    --------
    >>> import io
    >>> file = io.BytesIO()
    >>> np.savez_compressed(file, zeros=np.zeros(1000))
    >>> len(file.getvalue()) < 1000
    True
    """
    _write_npz(ZIP_DEFLATED, file, args, kwds, allow_pickle)


def _write_npz(compression: int, file: File, args: tuple[Any, ...], kwds: dict[str, Any], allow_pickle: bool) -> None:
    arrays = {name: _to_host(f"`{name}`", value) for name, value in kwds.items()}
    for i, value in enumerate(args):
        name = f"arr_{i}"
        if name in arrays:
            raise ValueError(f"savez: argument {i} is stored as `{name}`, which is the name of another array")
        arrays[name] = _to_host(f"argument {i}", value)

    def write(opened: Any) -> None:
        with ZipFile(opened, "w", compression) as archive:
            for name, value in arrays.items():
                # How long a member will be is not known when its header is written.
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    write_array(_Pieces(member), onp.asanyarray(value), allow_pickle=allow_pickle)

    _write_to(file, ".npz", write)


class _Pieces:
    """Writes to a file in pieces: Python handles signals between two of them, and compressing one takes some 10 ms."""

    LEN_BYTES = 1 << 18

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, data: Any) -> int:
        """Write all of `data`; its number of bytes."""
        view = memoryview(data)
        for start in range(0, len(view), self.LEN_BYTES):
            self._file.write(view[start : start + self.LEN_BYTES])
        return len(view)


def _write_to(file: File, extension: str, write: Callable[[Any], object]) -> None:
    """Call `write` with the given open file, or with a file that replaces the one of this name."""
    if hasattr(file, "write"):
        write(file)
        return
    path = os.fspath(file)
    replace_file(path if path.endswith(extension) else path + extension, write)


def replace_file(path: PathLike, write: Callable[[Any], object]) -> None:
    """Call `write` with an open file, which then atomically replaces the one at `path`."""

    def write_path(temporary: str) -> None:
        with open(temporary, "w+b") as opened:
            write(_FileMethods(opened))

    write_atomically(path, write_path)


class _FileMethods:
    """Methods of an open file. NumPy would write Python's own files by their descriptors, and miss errors."""

    def __init__(self, file: BinaryIO) -> None:
        self.write, self.read, self.flush, self.seek, self.tell = (
            file.write,
            file.read,
            file.flush,
            file.seek,
            file.tell,
        )


class NpzFile(Mapping[str, Any]):
    """The arrays of an npz file, read when they are asked for.

    Parameters
    ----------
    source : numpy.lib.npyio.NpzFile

    Examples
    --------
    >>> import io
    >>> file = io.BytesIO()
    >>> np.savez(file, weight=np.ones((2,)))
    >>> _ = file.seek(0)
    >>> with np.load(file) as arrays:
    ...     arrays["weight"]
    array([1., 1.])
    """

    def __init__(self, source: Any) -> None:
        self._source = source

    @property
    def files(self) -> list[str]:
        """Names of the arrays."""
        return list(self._source.files)

    def close(self) -> None:
        """Close the file."""
        self._source.close()

    def __getitem__(self, name: str) -> Any:
        with _damage(f"array {name!r} of an npz file"):
            found = self._source[name]
        return _from_host(found)

    def __iter__(self) -> Iterator[str]:
        return iter(self._source.files)

    def __len__(self) -> int:
        return len(self._source.files)

    def __enter__(self) -> NpzFile:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"NpzFile with {', '.join(self._source.files)}"


@contextlib.contextmanager
def _damage(what: str) -> Iterator[None]:
    """Convert the exceptions that NumPy and its modules raise for damaged files to one class."""
    try:
        yield
    except (BadZipFile, RuntimeError, SyntaxError, TokenError, struct.error, zlib.error) as error:
        raise FileFormatError(f"{what}: the file is damaged: {error}") from error


def _from_host(found: Any) -> Any:
    # Pickled objects, which require `allow_pickle`, stay NumPy's.
    return found if not isinstance(found, onp.ndarray) or found.dtype.hasobject else _core.asarray(found)


def load(
    file: File,
    mmap_mode: str | None = None,
    allow_pickle: bool = False,
    fix_imports: bool = True,
    encoding: str = "ASCII",
    *,
    max_header_size: int = 10000,
) -> Any:
    """Read an npy or npz file.

    Parameters
    ----------
    file : path or binary file
    mmap_mode : {None, 'r+', 'r', 'w+', 'c'}
        Map an npy file into memory instead of reading it. The array then shares the file's memory; it is read-only
        for 'r'.
    allow_pickle : bool
        Whether pickled objects are read, which can run code of the file.
    fix_imports : bool
        For pickles of Python 2.
    encoding : str
        For pickles of Python 2.
    max_header_size : int
        Longest header that is parsed.

    Returns
    -------
    ndarray or NpzFile

    Raises
    ------
    OSError
        If there is no such file, or it is a pipe or a device.
    FileFormatError
        If the file is damaged.
    ValueError
        If it is no npy or npz file, or holds pickled objects that are not allowed.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryFile() as file:
    ...     np.save(file, np.arange(3))
    ...     _ = file.seek(0)
    ...     np.load(file)
    array([0, 1, 2])
    """
    # The names are NumPy's. mypy selects its overloads by literal modes only.
    options: dict[str, Any] = {
        "mmap_mode": mmap_mode,
        "allow_pickle": allow_pickle,
        "fix_imports": fix_imports,
        "encoding": encoding,
        "max_header_size": max_header_size,
    }
    if not hasattr(file, "read"):
        _core.check_file(file)
    with _damage("load"):
        found = onp.load(file, **options)
    return NpzFile(found) if isinstance(found, onp.lib.npyio.NpzFile) else _from_host(found)


def _tofile(self: ndarray, fid: Any, sep: str = "", format: str = "%s") -> None:
    """Writes the elements to a file, in C order, as bytes or as text: what `mxnet.numpy.fromfile` reads.

    Parameters
    ----------
    fid : path or open file
    sep : str
        What stands between the elements in a text; empty for the bytes as they are in memory.
    format : str
        How one element is written to a text, in the manner of ``"%s" % element``.

    Raises
    ------
    OSError
        If the file cannot be written, or has no descriptor.
    TypeError
        For bfloat16.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     np.array([1.5, 2]).tofile(file.name)
    ...     np.fromfile(file.name, dtype="float32")
    array([1.5, 2. ])
    """
    _to_host("tofile: the array", self).tofile(fid, sep, format)


_tofile.__name__ = "tofile"
# Every array is of the extension's class, so methods written in Python must be added to that class.
ndarray.tofile = _tofile  # type: ignore[method-assign]
