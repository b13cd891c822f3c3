"""Sums over all processes as part of a network, with gradients."""

from __future__ import annotations

from mxnet import _core, autograd
from mxnet import numpy as np
from mxnet.error import UnsupportedError
from mxnet.kvstore._communicators import AllProcesses
from mxnet.kvstore._processes import find_processes
from mxnet.numpy import ndarray

__all__ = ["num_ranks", "sum_over_ranks"]

_shared: AllProcesses | None = None


def num_ranks() -> int:
    """The number of processes of the program. Each rank calls this.

    Returns
    -------
    int
    """
    processes = find_processes()
    return 1 if processes is None else processes.size


def _total(what: str, value: ndarray) -> ndarray:
    global _shared
    processes = find_processes()
    if processes is None:
        return value.copy()
    if _shared is None:
        _shared = AllProcesses("dist_sync", processes)
    (total,) = _shared.total(what, ["values"], [value], None)
    return np.array(total, dtype=value.dtype, device=value.device)


class _RankSum(autograd.Function):
    """The sum over the ranks. The loss of every rank depends on the value of each, so gradients are added up, too."""

    def __init__(self, what: str) -> None:
        self._what = what

    def forward(self, value: ndarray) -> ndarray:
        return _total(self._what, value)

    def backward(self, dy: ndarray) -> ndarray:
        return sum_over_ranks(f"gradient of {self._what}", dy)


def sum_over_ranks(what: str, value: ndarray) -> ndarray:
    """Add up an array over all ranks, with gradients of any order. Each rank calls this, in the same order.

    Parameters
    ----------
    what : str
        The operation, for messages.
    value : ndarray

    Returns
    -------
    ndarray
        Of the shape, dtype and device of `value`; the same bits on each rank.

    Raises
    ------
    mxnet.error.UnsupportedError
        If a function is being traced.
    DistributedError
        If the ranks do not call the same, or one has ended.
    """
    if _core.trace_is_active():
        raise UnsupportedError(
            f"{what}: a compiled function cannot add up values of several processes\n"
            "  hint: hybridize the blocks before and behind this one, and not the block that contains it"
        )
    total: ndarray = _RankSum(what)(value)
    return total
