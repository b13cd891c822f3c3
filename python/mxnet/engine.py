"""The dependency engine: execution mode and waiting."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from mxnet import _core

__all__ = ["bulk", "mode", "set_bulk_size", "set_mode", "wait_all"]

MODES = ("adaptive", "async", "sync")

_bulk_size = 15


def set_mode(mode: str) -> str:
    """Choose when operations run.

    Parameters
    ----------
    mode : {"adaptive", "async", "sync"}
        ``adaptive`` runs cheap ready operations at once and queues the others, ``async`` queues all, ``sync`` waits for
        each operation before its call returns.

    Returns
    -------
    str
        The mode before.

    Raises
    ------
    ValueError
        If there is no such mode.
    """
    if mode not in MODES:
        raise ValueError(f"`mode` must be one of {', '.join(MODES)}, found {mode!r}")
    previous = _core.engine_mode()
    _core.set_engine_mode(mode)
    return previous


@contextlib.contextmanager
def mode(name: str) -> Iterator[None]:
    """Another execution mode inside a ``with`` block.

    Parameters
    ----------
    name : {"adaptive", "async", "sync"}

    Raises
    ------
    ValueError
        If there is no such mode.
    """
    previous = set_mode(name)
    try:
        yield
    finally:
        set_mode(previous)


def set_bulk_size(size: int) -> int:
    """Remember a bulk size.

    The engine runs cheap operations on the calling thread, so there is nothing left to gain from bundling them; the
    number is kept for programs that read it back and changes nothing else.

    Parameters
    ----------
    size : int
        At least 0.

    Returns
    -------
    int
        The size before; 15 at first.

    Raises
    ------
    ValueError
        If `size` is negative.

    Examples
    --------
    >>> before = mx.engine.set_bulk_size(10)
    >>> mx.engine.set_bulk_size(before)
    10
    """
    global _bulk_size
    if size < 0:
        raise ValueError(f"`size` must be at least 0, found {size}")
    previous, _bulk_size = _bulk_size, size
    return previous


@contextlib.contextmanager
def bulk(size: int) -> Iterator[None]:
    """Another bulk size inside a ``with`` block; see `set_bulk_size`.

    Parameters
    ----------
    size : int
        At least 0.

    Returns
    -------
    context manager

    Raises
    ------
    ValueError
        If `size` is negative.

    Examples
    --------
    >>> with mx.engine.bulk(10):
    ...     x = np.ones(2) + 1
    >>> x
    array([2., 2.])
    """
    previous = set_bulk_size(size)
    try:
        yield
    finally:
        set_bulk_size(previous)


def wait_all() -> None:
    """Wait until all queued work is done.

    Raises
    ------
    MXNetError
        The first error of the queued work, if any failed.

    Examples
    --------
    >>> x = np.ones((100, 100)) @ np.ones((100, 100))
    >>> mx.waitall()
    >>> x[0, 0]
    array(100.)
    """
    _core.waitall()
