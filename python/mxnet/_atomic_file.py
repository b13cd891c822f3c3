"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable

from mxnet import _core
from mxnet.base import PathLike

__all__ = ["AtomicFile", "write_atomically"]


def write_atomically(path: PathLike, write: Callable[[str], object]) -> None:
    """Replace a file by a new one in one step, so that a crash leaves the old one or the new one.

    Parameters
    ----------
    path : path
        Through links, as `open` would write.
    write : callable of str
        Writes the whole content to the path of an empty file in the same folder.

    Raises
    ------
    OSError
        If the file cannot be written; an old file is untouched then.
    mxnet.error.IOError
        If there is something other than a file: a pipe, a device or a socket.
    """
    file = _core.AtomicFile(path)
    try:
        write(os.fspath(file.path))
        file.commit()
    finally:
        file.discard()


class AtomicFile:
    """A file that is written beside its target and replaces it when it is closed.

    Parameters
    ----------
    target : path
        Through links, as `open` would write. What is no file (a pipe, a device) is written at once.

    Raises
    ------
    OSError
        If the folder cannot be written.
    """

    def __init__(self, target: PathLike) -> None:
        place = os.path.realpath(target)
        self._file = None
        if os.path.exists(place) and not os.path.isfile(place):
            self._descriptor = os.open(place, os.O_WRONLY)
        else:
            self._file = _core.AtomicFile(place)
            self._descriptor = os.open(self._file.path, os.O_WRONLY | getattr(os, "O_BINARY", 0))
        self._pid = os.getpid()
        self.is_open = True

    @property
    def is_mine(self) -> bool:
        """Whether it is open, and this process's to finish."""
        return self.is_open and self._pid == os.getpid()

    def write(self, data: bytes) -> None:
        """Append bytes. Nothing is buffered, so a forked process has nothing to write a second time.

        Raises
        ------
        OSError
            If not all of them can be written; what was written is dropped then.
        """
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._descriptor, left) :]
        except BaseException:
            self.discard()
            raise

    def close(self) -> None:
        """Replace the target. In a process that was forked off, and after `discard`, nothing happens.

        Raises
        ------
        OSError
            If the target cannot be replaced.
        """
        if self._end() and self._file is not None:
            self._file.commit()

    def discard(self) -> None:
        """Drop what was written; the target stays as it is."""
        if self._end() and self._file is not None:
            self._file.discard()

    def _end(self) -> bool:
        """Close the descriptor, once; returns whether the file is this process's to finish."""
        was_mine = self.is_mine
        if self.is_open:
            self.is_open = False
            os.close(self._descriptor)
        return was_mine
