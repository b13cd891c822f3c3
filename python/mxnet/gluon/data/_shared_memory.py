"""Anonymous shared memory, and pickling that stores the elements of arrays there.

The memory is an open file without a name: it goes away with the last process that has it open, however that one ends.
"""

from __future__ import annotations

import io
import mmap
import os
import pickle
import socket
import tempfile
from multiprocessing import reduction
from multiprocessing.connection import Connection
from typing import Any

import numpy as onp

from mxnet import numpy as np
from mxnet.base import dtype_name
from mxnet.error import UnsupportedError
from mxnet.numpy import ndarray

__all__ = ["Arrays", "allocate", "dumps", "loads", "map_file", "receive_fd", "send_fd"]

_ALIGNMENT = 64  # a cache line, and the alignment of our own allocator


def allocate(num_bytes: int) -> int:
    """Open a new file in memory.

    Parameters
    ----------
    num_bytes : int
        Size, at least 1. All of it is allocated now: memory that is short is an error here, not a signal at a write.

    Returns
    -------
    int
        File descriptor, to be closed by the caller.

    Raises
    ------
    OSError
        If there is not enough memory.
    UnsupportedError
        If the system has no descriptors that processes can hand to each other.
    """
    if not reduction.HAVE_SEND_HANDLE or os.name != "posix":
        raise UnsupportedError("DataLoader: this system cannot share memory by file descriptor; use `thread_pool=True`")
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("mxnet-data")
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(fd, 0, num_bytes)
        else:
            os.ftruncate(fd, num_bytes)
    except BaseException:
        os.close(fd)
        raise
    return fd


def send_fd(connection: Connection, fd: int) -> None:
    """Send a file descriptor through a pipe, between two messages; `receive_fd` receives it.

    Unlike `multiprocessing.reduction.send_handle`, which in Python 3.14 takes the next bytes from the pipe, where
    messages may come, for a receipt.
    """
    with _socket(connection) as pipe:
        socket.send_fds(pipe, [b"f"], [fd])


def receive_fd(connection: Connection) -> int:
    """The file descriptor that `send_fd` sent, to be closed by the caller."""
    with _socket(connection) as pipe:
        _, fds, _, _ = socket.recv_fds(pipe, 1, 1)
    if not fds:
        raise EOFError
    return fds[0]


def _socket(connection: Connection) -> socket.socket:
    """A pipe as a socket."""
    pipe = socket.socket(fileno=os.dup(connection.fileno()))
    # `socket.setdefaulttimeout` would have changed the pipe itself: reading a message would no longer wait.
    pipe.setblocking(True)
    return pipe


def map_file(fd: int, is_private: bool = False) -> mmap.mmap:
    """Map a whole file.

    Parameters
    ----------
    fd : int
        Closed by this function; the mapping keeps the file.
    is_private : bool
        Whether writes are seen by this process only.

    Returns
    -------
    mmap.mmap
    """
    try:
        return mmap.mmap(fd, 0, access=mmap.ACCESS_COPY if is_private else mmap.ACCESS_WRITE)
    finally:
        os.close(fd)


class Arrays:
    """Arrays that a pickle refers to, with the positions of their elements in the memory."""

    def __init__(self) -> None:
        # Keeps the objects alive, so that no id is reused meanwhile.
        self._found: dict[int, tuple[Any, onp.ndarray[Any, Any], int]] = {}
        self.num_bytes = 0

    def add(self, array: Any) -> tuple[str, int, tuple[int, ...], Any, str]:
        """Assign a position to an array; returns what `loads` needs to build it."""
        known = self._found.get(id(array))
        name = dtype_name(array.dtype) if isinstance(array, ndarray) else ""
        if known is None:
            host = _host(array, name)
            known = self._found[id(array)] = (array, host, self.num_bytes)
            self.num_bytes += -(-host.nbytes // _ALIGNMENT) * _ALIGNMENT
        _, host, offset = known
        return "mxnet" if name else "numpy", offset, host.shape, host.dtype, name

    def is_same(self, other: Arrays) -> bool:
        """Whether the other one has the same array objects at the same positions."""
        return list(self._found) == list(other._found)

    def write(self, memory: mmap.mmap) -> None:
        """Copy the elements of all arrays into the memory."""
        for _, host, offset in self._found.values():
            _view(memory, offset, host.shape, host.dtype)[...] = host


def _host(array: Any, name: str) -> onp.ndarray[Any, Any]:
    if not isinstance(array, ndarray):
        return array  # type: ignore[no-any-return]
    # NumPy has no bfloat16, so the bits are sent.
    host: onp.ndarray[Any, Any] = (array.view("uint16") if name == "bfloat16" else array).asnumpy()
    return host


def _view(memory: mmap.mmap, offset: int, shape: tuple[int, ...], dtype: Any) -> onp.ndarray[Any, Any]:
    return onp.ndarray(shape, dtype, buffer=memory if 0 not in shape else None, offset=offset if 0 not in shape else 0)


class _Pickler(reduction.ForkingPickler):
    def __init__(self, file: io.BytesIO, arrays: Arrays) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._arrays = arrays

    def persistent_id(self, obj: Any) -> Any:
        # Subclasses may have more state than elements, and Python objects have no bytes to share.
        is_shared = type(obj) is ndarray or (type(obj) is onp.ndarray and not obj.dtype.hasobject)
        return self._arrays.add(obj) if is_shared else None


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, memory: mmap.mmap, is_copied: bool) -> None:
        super().__init__(file)
        self._memory = memory
        self._is_copied = is_copied
        self._made: dict[tuple[str, int], Any] = {}

    def persistent_load(self, pid: tuple[str, int, tuple[int, ...], Any, str]) -> Any:
        kind, offset, shape, dtype, name = pid
        if 0 in shape:
            empty = onp.empty(shape, dtype)
            return np.array(empty, dtype=name) if name else empty
        if (kind, offset) not in self._made:
            view = _view(self._memory, offset, shape, dtype)
            found: Any
            if not name:
                found = view.copy() if self._is_copied else view
            else:
                found = np.array(view) if self._is_copied else np.from_dlpack(view)
                found = found.view(name) if name == "bfloat16" else found
            self._made[kind, offset] = found
        return self._made[kind, offset]


def dumps(obj: Any, arrays: Arrays) -> bytes:
    """Pickle an object but for the elements of the arrays in it.

    Parameters
    ----------
    obj : object
    arrays : Arrays
        Gets the arrays.

    Returns
    -------
    bytes
    """
    file = io.BytesIO()
    _Pickler(file, arrays).dump(obj)
    return file.getvalue()


def loads(data: bytes, memory: mmap.mmap, is_copied: bool) -> Any:
    """Make the object that was pickled by `dumps`.

    Parameters
    ----------
    data : bytes
    memory : mmap.mmap
        Where the elements of the arrays are.
    is_copied : bool
        Whether arrays get memory of their own, or are views of `memory`.

    Returns
    -------
    object
    """
    return _Unpickler(io.BytesIO(data), memory, is_copied).load()
