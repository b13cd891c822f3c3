"""Atomic writing of files: a file is written completely or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable

from mxnet import _core
from mxnet.base import PathLike

__all__ = ["AtomicFile", "write_atomically"]


def write_atomically(path: PathLike, write: Callable[[str], object]) -> None:
    """Replace a file atomically, so that a crash leaves either the old or the new one.

    Parameters
    ----------
    path : path
        Links are followed, as by `open`.
    write : callable of str
        Writes the whole content to the path of an empty file in the same folder.

    Raises
    ------
    OSError
        If the file cannot be written; an old file is untouched then.
    mxnet.error.IOError
        If `path` is a pipe, a device or a socket.
    """
    file = _core.AtomicFile(path)
    try:
        write(os.fspath(file.path))
        file.commit()
    finally:
        file.discard()


class AtomicFile:
    """A temporary file that replaces its target when it is closed.

    Parameters
    ----------
    target : path
        Links are followed, as by `open`. A pipe or a device is written directly.

    Raises
    ------
    OSError
        If the folder cannot be written.
    """

    def __init__(self, target: PathLike) -> None:
        real_path = os.path.realpath(target)
        self._file = None
        if os.path.exists(real_path) and not os.path.isfile(real_path):
            self._descriptor = os.open(real_path, os.O_WRONLY)
        else:
            self._file = _core.AtomicFile(real_path)
            self._descriptor = os.open(self._file.path, os.O_WRONLY | getattr(os, "O_BINARY", 0))
        self._pid = os.getpid()
        self.is_open = True

    @property
    def is_mine(self) -> bool:
        """Whether the file is open and was opened by this process."""
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
        """Discard what was written; the target is unchanged."""
        if self._end() and self._file is not None:
            self._file.discard()

    def _end(self) -> bool:
        """Close the descriptor, once. Returns whether this process may replace the target."""
        was_mine = self.is_mine
        if self.is_open:
            self.is_open = False
            os.close(self._descriptor)
        return was_mine
