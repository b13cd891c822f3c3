"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable

from mxnet.base import PathLike

__all__ = ["Draft", "write_atomically"]


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


class Draft:
    """A file that grows beside its target and takes the target's name when it is closed.

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
        self._target = os.path.realpath(target)
        self._path: str | None = None
        if os.path.exists(self._target) and not os.path.isfile(self._target):
            self._descriptor = os.open(self._target, os.O_WRONLY)
        else:
            folder, name = os.path.split(self._target)
            self._descriptor, self._path = tempfile.mkstemp(prefix=f".{name}.", dir=folder)
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
            If not all of them can be written; the draft is dropped then.
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
        if not self._end() or self._path is None:
            return
        path = self._path
        try:
            write_atomically(self._target, lambda temporary: os.replace(path, temporary))
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            raise

    def discard(self) -> None:
        """Drop what was written; the target stays as it is."""
        if self._end() and self._path is not None:
            os.unlink(self._path)

    def _end(self) -> bool:
        """Close the descriptor, once; returns whether the file is this process's to finish."""
        was_mine = self.is_mine
        if self.is_open:
            self.is_open = False
            os.close(self._descriptor)
        return was_mine
