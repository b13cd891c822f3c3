"""The worker process: makes batches and leaves them in memory that it shares with the loader.

Messages to a worker are ``("fetch", number, slot, task, training, promotion)`` and ``("cancel", numbers)``. Every task
has one answer, in order: ``(kind, number, offset, length, is_new)`` with a kind of ``made``, ``failed`` or
``cancelled``, followed by a file descriptor if the slot has new memory. Offset and length say where in the slot the
pickle of the batch or of the exception is. So answers are short, and a worker never waits for a reader.
``("broken", error)`` says that the worker could not start. The pipe is closed to end a worker.
"""

from __future__ import annotations

import collections
import contextlib
import mmap
import os
import pickle
import random
import select
import signal
import threading
import time
import traceback
from collections.abc import Sequence
from multiprocessing import reduction
from multiprocessing.connection import Connection
from typing import Any

import numpy as onp

from mxnet import _core, autograd
from mxnet._core import RandomStream
from mxnet.device import cpu
from mxnet.gluon.data._fetch import Fetcher, Task
from mxnet.gluon.data._shared_memory import Arrays, allocate, dumps, loads, map_file, send_fd

__all__ = ["Shipment", "run_worker", "unpack_error"]

# A worker whose pipe is closed while it loads a sample exits after this time.
_GRACE_S = 5.0


class Shipment:
    """A fetcher on its way to workers that do not inherit it: its arrays are written once and mapped by all of them.

    Parameters
    ----------
    fetch : Fetcher
    method : str
        Start method of the processes, for messages.
    """

    def __init__(self, fetch: Fetcher, method: str) -> None:
        self._fetch = fetch
        self._method = method
        self._arrays = Arrays()
        self._fd: int | None = None

    def __getstate__(self) -> tuple[bytes, Any, str]:
        # Runs while a process is started: only then can inheritable objects (locks, queues) be pickled.
        arrays = Arrays()
        try:
            data = dumps(self._fetch, arrays)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            name = type(self._fetch.dataset).__name__
            raise TypeError(
                f"DataLoader: {name}, its transforms or `batchify_fn` cannot be sent to a worker process started by "
                f"{self._method!r} ({error}); define them at the top of a module, or use `thread_pool=True`, or choose "
                "multiprocessing.set_start_method('fork')"
            ) from error
        if self._fd is None or not arrays.is_same(self._arrays):
            self.release()
            self._fd = allocate(max(arrays.num_bytes, 1))
            self._arrays = arrays
            arrays.write(map_file(os.dup(self._fd)))
        return data, reduction.DupFd(self._fd), self._method

    def __setstate__(self, state: tuple[bytes, Any, str]) -> None:
        self._data, self._duplicate, self._method = state

    def open(self) -> Fetcher:
        """In the worker: the fetcher, whose arrays are in memory that all workers share (copy on write)."""
        memory = map_file(self._duplicate.detach(), is_private=True)
        try:
            found: Fetcher = loads(self._data, memory, is_copied=False)
        except (AttributeError, ImportError) as error:
            error.add_note(
                f"a worker process started by {self._method!r} imports what it is sent by name: define it at the top "
                "of a module, not in a notebook or a prompt; or use `thread_pool=True`, or choose "
                "multiprocessing.set_start_method('fork')"
            )
            raise
        return found

    def release(self) -> None:
        """Close the memory in this process."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def run_worker(connection: Connection, fetch: Fetcher | Shipment, inherited: Sequence[Connection]) -> None:
    """Entry point of a worker process.

    Parameters
    ----------
    connection : Connection
        To the loader.
    fetch : Fetcher or Shipment
        A fetcher where the process inherited it.
    inherited : sequence of Connection
        The loader's ends of other workers' pipes, closed here: they would keep those pipes open.
    """
    # Ctrl-C reaches the whole process group; the loader's process handles it and closes the pipes.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for other in inherited:
        other.close()
    # The workers share the cores, so each computes with one thread.
    _core.set_num_threads(1)
    _core.set_current_device(cpu())
    autograd.set_recording(False)
    threading.Thread(target=_watch, args=(connection.fileno(),), name="DataLoader-watch", daemon=True).start()
    _Worker(connection).work(fetch)


def _watch(descriptor: int) -> None:
    """Exit this process some time after its pipe is closed, even if it is loading a sample.

    Waits without Python's lock. A thread that received messages would compete for it with the one that makes batches,
    which then takes twice as long.
    """
    poll = select.poll()
    poll.register(descriptor, 0)  # only the end of the pipe
    poll.poll()
    time.sleep(_GRACE_S)
    os._exit(1)


class _Worker:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._tasks: collections.deque[Any] = collections.deque()
        self._cancelled: set[int] = set()
        self._slots: dict[int, mmap.mmap] = {}

    def work(self, shipment: Fetcher | Shipment) -> None:
        """Make batches until the pipe is closed."""
        try:
            fetch = shipment.open() if isinstance(shipment, Shipment) else shipment
        except BaseException as error:  # noqa: BLE001  # raised again by the loader
            self._connection.send(("broken", pack_error(error)))
            return
        # If nobody waits for an answer, either call may find the pipe broken.
        with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
            while True:
                self._take_messages()
                self._answer(fetch, *self._tasks.popleft())

    def _take_messages(self) -> None:
        """Receive all pending messages; waits for one if there is no task."""
        while not self._tasks or self._connection.poll():
            kind, *content = self._connection.recv()
            if kind == "cancel":
                self._cancelled.update(content[0])
            else:
                self._tasks.append(content)

    def _answer(self, fetch: Fetcher, number: int, slot: int, task: Task, training: bool, promotion: bool) -> None:
        if number in self._cancelled:
            self._cancelled.discard(number)
            self._connection.send(("cancelled", number, 0, 0, False))
            return
        kind = "made"
        try:
            autograd.set_training(training)
            _core.set_numpy_promotion(promotion)
            _seed_others(task)
            arrays = Arrays()
            data = dumps(fetch(task), arrays)
            fd = self._write(slot, arrays, data)
        except BaseException as error:  # noqa: BLE001  # raised again where the batch is taken
            kind = "failed"
            arrays = Arrays()
            data = pickle.dumps(pack_error(error))
            fd = self._write(slot, arrays, data)
        self._connection.send((kind, number, arrays.num_bytes, len(data), fd is not None))
        if fd is not None:
            try:
                send_fd(self._connection, fd)
            finally:
                os.close(fd)

    def _write(self, slot: int, arrays: Arrays, data: bytes) -> int | None:
        """Write elements and pickle to the slot's memory; returns the file descriptor of the memory if it is new."""
        fd = None
        num_bytes = arrays.num_bytes + len(data)
        memory = self._slots.get(slot)
        if memory is None or len(memory) < num_bytes:
            # An eighth more, so that slightly larger batches do not need new memory each time.
            fd = allocate(max(num_bytes + num_bytes // 8, mmap.PAGESIZE))
            memory = self._slots[slot] = map_file(os.dup(fd))
        arrays.write(memory)
        memory[arrays.num_bytes : num_bytes] = data
        return fd


def _seed_others(task: Task) -> None:
    """Seed the generators of other libraries anew for each batch, equally in every process."""
    words = [task.seed & 0xFFFFFFFF, task.seed >> 32, task.position & 0xFFFFFFFF, task.position >> 32]
    key = int(RandomStream(words).state()[0])
    random.seed(key)
    # Both are Mersenne Twisters with the same seeding algorithm, so equal seeds would give equal numbers.
    onp.random.seed([key & 0xFFFFFFFF, key >> 32, 1])  # noqa: NPY002  # programs still draw from it
    _core.seed(key)


def pack_error(error: BaseException) -> tuple[bytes, str]:
    """An exception and its traceback as bytes and text; exceptions that cannot be pickled become RuntimeErrors."""
    text = "".join(traceback.format_exception(error))
    try:
        data = pickle.dumps(error)
        pickle.loads(data)
    except Exception:  # noqa: BLE001  # whatever the class of the user does when it is pickled
        substitute = RuntimeError(f"{type(error).__qualname__}: {error}")
        for note in getattr(error, "__notes__", ()):
            substitute.add_note(note)
        data = pickle.dumps(substitute)
    return data, text


class _WorkerTraceback(Exception):
    """The traceback of a worker process, as the cause of the exception that came from there."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._text = text

    def __str__(self) -> str:
        return f'\n"""\n{self._text}"""'


def unpack_error(packed: tuple[bytes, str]) -> BaseException:
    """The exception of a worker, with its traceback there as the cause."""
    data, text = packed
    error: BaseException = pickle.loads(data)
    error.__cause__ = _WorkerTraceback(text)
    return error
