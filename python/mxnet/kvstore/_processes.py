"""The processes of a distributed program, which communicate by MPI: how they start, agree on an operation, and end.

What is sent in an operation is in `_allreduce.py` and `_server.py`.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import os
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as onp

from mxnet.error import DistributedError

__all__ = ["Operation", "Processes", "find_processes", "started_by_launcher"]

# Variables of the environment by which launchers of MPI programs tell a process how many there are.
_NUM_PROCESSES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MPI_LOCALNRANKS")

# MPI moves long messages piece by piece, while both sides test. So a wait tests all the time at first, and lets other
# processes run in between; later it pauses, longer and longer.
_TESTING_S = 2e-3
_FIRST_PAUSE_S = 50e-6
_LONGEST_PAUSE_S = 1e-3

# A rank that ends all others leaves the launcher this time to read what it has printed.
_BEFORE_ABORT_S = 0.5

# Not every system has `sched_yield`.
_yield_processor: Callable[[], None] = getattr(os, "sched_yield", functools.partial(time.sleep, 0))

# What a rank tells the others before an operation: digest and length of its text, length of its payload.
_RECORD = struct.Struct("=16sqq")

Host = onp.ndarray[Any, Any]


@dataclass(frozen=True)
class Operation:
    """What a rank is about to do, in lines of text. All ranks must do the same.

    Parameters
    ----------
    lines : tuple of str
        One for each value that takes part, with everything that must be equal.
    """

    lines: tuple[str, ...]

    @functools.cached_property
    def text(self) -> bytes:
        """The lines as UTF-8."""
        return "\n".join(self.lines).encode()

    @functools.cached_property
    def digest(self) -> bytes:
        """16 bytes that differ where the text does."""
        return hashlib.blake2b(self.text, digest_size=16).digest()


_END = "the program ends"


class Processes:
    """All processes of the program, and this one's number among them. Methods are collective: each rank calls them.

    Parameters
    ----------
    mpi : module
        `mpi4py.MPI`, initialized.
    finalizes : bool
        Whether MPI is finalized when the process ends.
    """

    def __init__(self, mpi: Any, finalizes: bool) -> None:
        self._mpi = mpi
        self._finalizes = finalizes
        self._pid = os.getpid()
        world = mpi.COMM_WORLD
        self.rank: int = world.Get_rank()
        self.size: int = world.Get_size()
        # Operations that are in flight together use communicators of their own: MPI orders them in each by itself.
        self.agreement, self.first, self.second, self.requests, self._last = (world.Dup() for _ in range(5))
        # Why no operation is possible any more.
        self._failure: str | None = None
        # Whether the ranks have agreed that one of them ends. Each rank takes part in one such agreement.
        self._has_ended = False
        self._is_busy = False
        self._abandoned: list[Any] = []
        self._lock = threading.RLock()
        self._closers: list[tuple[Callable[[str], None], Callable[[], None]]] = []
        atexit.register(self._close)

    @property
    def mpi(self) -> Any:
        """The module `mpi4py.MPI`."""
        return self._mpi

    def at_close(self, announce: Callable[[str], None], stop: Callable[[], None]) -> None:
        """Have functions called when the process ends.

        Parameters
        ----------
        announce : callable of str
            Called first, with what ended this process, or empty text.
        stop : callable
            Called when all processes are about to end.
        """
        self._closers.append((announce, stop))

    def fail(self, message: str) -> None:
        """Make all further operations, and waits in progress, raise a DistributedError.

        Parameters
        ----------
        message : str
        """
        self._failure = self._failure or message

    def check(self) -> None:
        """Raise DistributedError if no operation is possible: after a failure, and in children of a fork."""
        if os.getpid() != self._pid:
            raise DistributedError(
                f"kvstore: process {os.getpid()} was forked from rank {self.rank} and cannot communicate with the "
                "ranks\n  hint: only the process that the launcher started uses the store"
            )
        if self._failure is not None:
            raise DistributedError(self._failure)

    @contextlib.contextmanager
    def communicating(self) -> Iterator[None]:
        """A ``with`` block that sends and receives. If an exception leaves it, no operation is possible any more."""
        with self._lock:
            self.check()
            self._is_busy = True
            try:
                yield
            except BaseException as error:
                self.fail(f"kvstore: rank {self.rank} left an operation by {type(error).__name__}: {error}")
                raise
            self._is_busy = False

    def wait(self, request: Any) -> None:
        """Wait for a request of MPI. Other threads run and signals are handled meanwhile.

        Parameters
        ----------
        request : MPI.Request
        """
        try:
            self.wait_until(request.Test)
        except BaseException:
            # MPI goes on to use the memory.
            self._abandoned.append(request)
            raise

    @staticmethod
    def wait_until(is_done: Callable[[], Any], testing_s: float = _TESTING_S) -> None:
        """Call a function until its result is true, with pauses.

        Parameters
        ----------
        is_done : callable
        testing_s : float
            Seconds before the first pause.
        """
        if is_done():
            return
        end = time.perf_counter() + testing_s
        while time.perf_counter() < end:
            _yield_processor()
            if is_done():
                return
        pause = _FIRST_PAUSE_S
        while not is_done():
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)

    def agree(self, operation: Operation, payload: bytes = b"") -> list[bytes]:
        """Check that all ranks begin the same operation.

        Parameters
        ----------
        operation : Operation
        payload : bytes
            Sent to all; may differ from rank to rank.

        Returns
        -------
        list of bytes
            The payload of each rank.

        Raises
        ------
        DistributedError
            If a rank begins another operation, or ends. It is raised on every rank, and nothing was done.
        """
        with self.communicating():
            texts, payloads = self._exchange(operation, payload)
        if texts is None:
            return payloads
        ended = [number for number, text in enumerate(texts) if text.startswith(_END)]
        message = _described(texts)
        if ended:
            self._has_ended = True
            self.fail(message)
        raise DistributedError(message)

    def _exchange(self, operation: Operation, payload: bytes) -> tuple[list[str] | None, list[bytes]]:
        """The texts of all ranks if they differ, and their payloads."""
        mine = _RECORD.pack(operation.digest, len(operation.text), len(payload))
        records = onp.empty(self.size * _RECORD.size, onp.uint8)
        self.wait(self.agreement.Iallgather(onp.frombuffer(mine, onp.uint8), records))
        found = list(_RECORD.iter_unpack(records.tobytes()))
        if any(digest != operation.digest for digest, _, _ in found):
            texts = self.gather_bytes(self.agreement, operation.text, [length for _, length, _ in found])
            return [text.decode() for text in texts], []
        lengths = [length for _, _, length in found]
        return None, self.gather_bytes(self.agreement, payload, lengths) if any(lengths) else [b""] * self.size

    def gather_bytes(self, comm: Any, mine: bytes, lengths: Sequence[int]) -> list[bytes]:
        """The bytes of all ranks.

        Parameters
        ----------
        comm : MPI.Comm
        mine : bytes
        lengths : sequence of int
            Number of bytes of each rank.

        Returns
        -------
        list of bytes
        """
        received = onp.empty(sum(lengths), onp.uint8)
        self.wait(comm.Iallgatherv(onp.frombuffer(mine, onp.uint8), [received, list(lengths)]))
        ends = onp.cumsum(lengths).tolist()
        return [received[end - n : end].tobytes() for end, n in zip(ends, lengths, strict=True)]

    def broadcast(self, host: Host) -> None:
        """Overwrite memory by that of rank 0.

        Parameters
        ----------
        host : numpy.ndarray of uint8, one axis
        """
        with self.communicating():
            self.wait(self.first.Ibcast(host, 0))

    def barrier(self) -> None:
        """Wait until all ranks have called this.

        Raises
        ------
        DistributedError
            If a rank calls something else, or ends.
        """
        self.agree(Operation(("barrier",)))

    def _close(self) -> None:
        """End together: a rank that still communicates gets an error, and no rank waits for one that is gone."""
        if os.getpid() != self._pid:
            return
        error = getattr(sys, "last_value", None)
        cause = "" if error is None else f"{type(error).__name__}: {error}"
        if self._is_busy:
            # The other ranks wait in MPI and read no message, so they are ended.
            print(f"kvstore: rank {self.rank} was interrupted in an operation and ends all ranks", file=sys.stderr)
            sys.stdout.flush()
            sys.stderr.flush()
            # The launcher passes on what was printed as long as the ranks run.
            time.sleep(_BEFORE_ABORT_S)
            self._mpi.COMM_WORLD.Abort(1)
            # MPI may only ask the launcher to end the ranks, and return.
            os._exit(1)
        for announce, _ in self._closers:
            announce(cause)
        if not self._has_ended:
            self._exchange(Operation((_END, cause) if cause else (_END,)), b"")
        self.wait(self._last.Ibarrier())
        for _, stop in self._closers:
            stop()
        if self._finalizes and not self._mpi.Is_finalized():
            self._mpi.Finalize()


def _described(texts: Sequence[str]) -> str:
    """The error of ranks that do not do the same: the first line in which they differ."""
    lines = [text.split("\n") for text in texts]
    ended = [number for number, text in enumerate(texts) if text.startswith(_END)]
    if ended:
        causes = [f"\n  rank {number}: {'; '.join(lines[number][1:])}" for number in ended if len(lines[number]) > 1]
        listed = ", ".join(map(str, ended))
        others = sorted({found[0] for number, found in enumerate(lines) if number not in ended})
        doing = f" while others do: {'; '.join(others)}" if others else ""
        return f"kvstore: rank {listed} has ended{doing}{''.join(causes)}"
    at = next(
        i for i in range(max(map(len, lines))) if len({found[i] if i < len(found) else "" for found in lines}) > 1
    )
    shown = [
        f"\n  rank {number}: {found[at] if at < len(found) else f'nothing after {found[-1]}'}"
        for number, found in enumerate(lines)
    ]
    return f"kvstore: the ranks must call the same operation with the same keys, dtypes and shapes{''.join(shown)}"


_found: Processes | None = None


def started_by_launcher() -> bool:
    """Whether a launcher of MPI programs has started this process together with others.

    Returns
    -------
    bool
    """
    return any(os.environ.get(name, "1") not in ("", "1") for name in _NUM_PROCESSES)


def find_processes() -> Processes | None:
    """The processes of this program, found by the first call, which each rank makes.

    Returns
    -------
    Processes or None
        None if there is one process.

    Raises
    ------
    ImportError
        If there are several, and `mpi4py` is not installed.
    DistributedError
        If a launcher has started several, and MPI does not know of them.
    """
    global _found
    if _found is not None:
        return _found
    if not started_by_launcher() and "mpi4py.MPI" not in sys.modules:
        return None
    try:
        import mpi4py
    except ImportError as error:
        raise ImportError(
            "kvstore: a launcher has started several processes, and they communicate by the package mpi4py, which is "
            "not installed\n  hint: pip install mxnet[dist]"
        ) from error
    is_ours = "mpi4py.MPI" not in sys.modules
    if is_ours:
        # MPI is finalized by `Processes._close`, because a forked child must not do it.
        mpi4py.rc.initialize = False
        mpi4py.rc.finalize = False
    from mpi4py import MPI

    if not MPI.Is_initialized():
        MPI.Init_thread(MPI.THREAD_MULTIPLE)
    if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        raise ImportError(
            "kvstore: MPI was initialized without `MPI_THREAD_MULTIPLE`, which the store needs because it communicates "
            f"from several threads; found level {MPI.Query_thread()}"
        )
    if MPI.COMM_WORLD.Get_size() == 1:
        if is_ours:
            atexit.register(MPI.Finalize)
        if started_by_launcher():
            raise DistributedError(
                "kvstore: a launcher has started several processes, but MPI sees one: `mpiexec` is of another MPI than "
                f"mpi4py, which uses {MPI.Get_library_version().split(chr(10))[0]!r}\n"
                "  hint: `python -m mxnet.launch` finds the one of the package mpich"
            )
        return None
    _found = Processes(MPI, is_ours)
    return _found
