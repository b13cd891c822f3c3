"""Worker processes of a loader, from the loader's side."""

from __future__ import annotations

import ast
import collections
import contextlib
import itertools
import mmap
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
import tokenize
import warnings
from collections.abc import Iterable, Iterator
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from typing import Any

from mxnet import _core, autograd
from mxnet.gluon.data._fetch import Fetcher, Task
from mxnet.gluon.data._shared_memory import loads, map_file, receive_fd
from mxnet.gluon.data._worker import Shipment, run_worker, unpack_error

__all__ = ["ProcessPool"]

# Tasks that a worker has at a time. They fit into a pipe, so sending a task never blocks.
_MAX_PENDING = 32

# Time that workers get to finish their current batch before they are terminated.
_GRACE_S = 1.0


@contextlib.contextmanager
def _context() -> Iterator[tuple[Any, str]]:
    """The start method of processes: the program's choice, else a fork server, which has no threads.

    Workers of a program that they cannot import are forked: a script that starts its loop at the top would start it
    again in each of them, and classes of a notebook are in no file.
    """
    method: str | None = multiprocessing.get_start_method(allow_none=True)
    if method is not None:
        yield multiprocessing.get_context(method), method
        return
    if not _main_is_importable() and "fork" in multiprocessing.get_all_start_methods():
        with warnings.catch_warnings():
            # The engine's threads survive a fork, and workers use no GPU.
            warnings.filterwarnings("ignore", ".*multi-threaded, use of fork", DeprecationWarning)
            yield multiprocessing.get_context("fork"), "fork"
        return
    # `fork` would copy a process whose other threads may hold locks, and whose GPU contexts do not survive. Starting
    # a new interpreter for each worker takes half a second.
    method = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    # Workers inherit the start method. If it were unset, starting a process would set Python's default for the
    # program.
    multiprocessing.set_start_method(method)
    try:
        context = multiprocessing.get_context(method)
        if method == "forkserver":
            context.set_forkserver_preload(["__main__", "mxnet.gluon.data._worker"])
        yield context, method
    finally:
        multiprocessing.set_start_method(None, force=True)  # restore the previous state


def _main_is_importable() -> bool:
    """Whether a new process can import the main module without running the program."""
    main = sys.modules["__main__"]
    if getattr(main, "__spec__", None) is not None:
        return True  # run by `python -m`: a package's __main__ is not imported, a module is found by its name
    path = getattr(main, "__file__", None)
    if path is None or not os.path.exists(path):
        return False
    try:
        with tokenize.open(path) as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError):
        return True  # no source: multiprocessing knows what to do
    return any(
        isinstance(part, ast.If) and any(isinstance(x, ast.Name) and x.id == "__name__" for x in ast.walk(part.test))
        for part in tree.body
    )


@contextlib.contextmanager
def _without_missing_main() -> Iterator[None]:
    """Hide the path of a main module that is no file (``python -`` reads a pipe), so that workers do not import it."""
    main = sys.modules["__main__"]
    path = getattr(main, "__file__", None)
    if path is None or os.path.exists(path):
        yield
        return
    del main.__file__
    try:
        yield
    finally:
        main.__file__ = path


class _Worker:
    """A worker process, the pipe to it, and the shared memory in which it leaves batches."""

    def __init__(self, process: BaseProcess, pipe: connection.Connection) -> None:
        self.process = process
        self.pipe = pipe
        self.pending: collections.deque[int] = collections.deque()  # tasks without an answer, in order
        self.slots: dict[int, mmap.mmap] = {}
        self.free_slots: list[int] = []
        self.num_slots = 0
        self.has_answered = False

    def take_slot(self) -> int:
        """A slot whose memory is not in use."""
        if self.free_slots:
            return self.free_slots.pop()
        self.num_slots += 1
        return self.num_slots - 1


class ProcessPool:
    """Processes that make batches.

    Parameters
    ----------
    fetch : Fetcher
        What it holds now is what the processes work with until they end.
    num_workers : int
    timeout : float
        Seconds to wait for a batch.

    Raises
    ------
    TypeError
        If `fetch` cannot be pickled and the processes do not inherit it.
    """

    def __init__(self, fetch: Fetcher, num_workers: int, timeout: float) -> None:
        self._timeout = timeout
        # Held while a pipe is used. Code that the garbage collector may run in the holder must not wait for it.
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._is_closed = False
        self._numbers = itertools.count()
        self._owners: dict[int, tuple[_Worker, int]] = {}  # task -> worker and slot
        self._answers: dict[int, tuple[str, int, int]] = {}  # kind, and position of the pickle in the slot
        self._unwanted: list[int] = []  # cancelled, not processed yet
        self._abandoned: set[int] = set()  # cancelled tasks whose answers are still to come
        self._workers: list[_Worker] = []
        try:
            with _without_missing_main(), _context() as (context, method):
                self._start(context, method, fetch, num_workers)
        except BaseException:
            self.close()
            raise

    def _start(self, context: Any, method: str, fetch: Fetcher, num_workers: int) -> None:
        shipment = None if method == "fork" else Shipment(fetch, method)
        try:
            for number in range(num_workers):
                ours, theirs = context.Pipe()
                inherited = [] if shipment else [ours, *(worker.pipe for worker in self._workers)]
                process = context.Process(
                    target=run_worker,
                    args=(theirs, shipment or fetch, inherited),
                    name=f"DataLoader-{number}",
                    daemon=True,
                )
                try:
                    process.start()
                except BaseException:
                    ours.close()
                    raise
                finally:
                    theirs.close()
                self._workers.append(_Worker(process, ours))
        finally:
            if shipment is not None:
                shipment.release()

    @property
    def is_usable(self) -> bool:
        """Whether the pool is open and owned by this process: a forked child must not use its parent's pipes."""
        return not self._is_closed and self._pid == os.getpid()

    def submit(self, task: Task) -> int:
        """Submit a batch; returns the number with which `take` gets it."""
        with self._lock:
            self._check_open()
            self._drop_unwanted()
            worker = min(self._workers, key=lambda worker: len(worker.pending))
            deadline = time.monotonic() + self._timeout
            while len(worker.pending) >= _MAX_PENDING:
                self._wait_for_answer(worker, deadline)
            number, slot = next(self._numbers), worker.take_slot()
            self._owners[number] = worker, slot
            worker.pending.append(number)
            self._send(worker, ("fetch", number, slot, task, autograd.is_training(), _core.numpy_promotion()))
            return number

    def take(self, number: int) -> Any:
        """Wait for a batch, and copy it from the shared memory.

        Raises
        ------
        TimeoutError
            If it is not there in time.
        RuntimeError
            If the worker died.
        BaseException
            What went wrong in the worker.
        """
        with self._lock:
            self._check_open()
            self._drop_unwanted()
            worker, slot = self._owners[number]
            deadline = time.monotonic() + self._timeout
            while number not in self._answers:
                self._wait_for_answer(worker, deadline)
            kind, offset, length = self._answers.pop(number)
            del self._owners[number]
            worker.free_slots.append(slot)
            memory = worker.slots[slot]
            data = memory[offset : offset + length]
            if kind == "failed":
                raise unpack_error(pickle.loads(data))
            return loads(data, memory, is_copied=True)

    def cancel(self, numbers: Iterable[int]) -> None:
        """Cancel batches. Those that no worker has begun are not made."""
        self._unwanted.extend(numbers)
        # A generator closed by the garbage collector may get here inside `submit` or `take`; their next call drops
        # the batches.
        if not self.is_usable or not self._lock.acquire(blocking=False):
            return
        try:
            with contextlib.suppress(Exception):  # the pool is closed: nobody makes these batches any more
                self._drop_unwanted()
        finally:
            self._lock.release()

    def close(self, grace_s: float = _GRACE_S) -> None:
        """Stop the processes, and free their memory and pipes.

        Parameters
        ----------
        grace_s : float
            How many seconds processes have to finish the batch they are at before they are terminated.
        """
        if self._is_closed:
            return
        self._is_closed = True
        workers, self._workers = self._workers, []
        self._owners.clear()
        self._answers.clear()
        for worker in workers:
            worker.pipe.close()
            worker.slots.clear()
        if self._pid != os.getpid():
            return  # the processes belong to the parent of this process
        for end, wait_s in ((None, grace_s), (BaseProcess.terminate, _GRACE_S), (BaseProcess.kill, _GRACE_S)):
            deadline = time.monotonic() + wait_s
            for worker in workers:
                if end is not None and worker.process.is_alive():
                    end(worker.process)
            for worker in workers:
                worker.process.join(max(0.0, deadline - time.monotonic()))
        for worker in workers:
            with contextlib.suppress(ValueError):  # not terminated yet, although it was killed
                worker.process.close()

    def _check_open(self) -> None:
        if not self.is_usable:
            raise RuntimeError("DataLoader: the workers have been ended; start a new loop over the loader")

    def _drop_unwanted(self) -> None:
        cancelled = collections.defaultdict(list)
        while self._unwanted:
            number = self._unwanted.pop()
            if number not in self._owners:
                continue
            worker, slot = self._owners[number]
            if self._answers.pop(number, None) is not None:
                worker.free_slots.append(slot)
                del self._owners[number]
            else:
                self._abandoned.add(number)
                cancelled[worker].append(number)
        for worker, numbers in cancelled.items():
            self._send(worker, ("cancel", numbers))

    def _send(self, worker: _Worker, message: tuple[Any, ...]) -> None:
        try:
            worker.pipe.send(message)
        except OSError:
            while self._receive(worker, time.monotonic()):
                pass  # its last message may contain the reason
            raise self._death(worker) from None
        except BaseException:
            self.close()  # the pipe may contain half a message
            raise

    def _wait_for_answer(self, worker: _Worker, deadline: float) -> None:
        if not self._receive(worker, deadline):
            self.close(grace_s=0.0)  # a worker that hangs would block later calls
            raise TimeoutError(
                f"DataLoader: no batch within `timeout` ({self._timeout} seconds); raise it or look at what the "
                "dataset waits for"
            )

    def _receive(self, worker: _Worker, deadline: float) -> bool:
        """Wait for an answer of a worker, and record it; returns False if none comes before the deadline."""
        found = connection.wait([worker.pipe, worker.process.sentinel], max(0.0, deadline - time.monotonic()))
        if not found:
            return False
        try:
            if worker.pipe not in found:
                raise EOFError
            kind, *content = worker.pipe.recv()
            if kind != "broken" and content[-1]:
                _, slot = self._owners[content[0]]
                worker.slots[slot] = map_file(receive_fd(worker.pipe))
        except (EOFError, ConnectionResetError):
            raise self._death(worker) from None
        except BaseException:
            self.close()  # the pipe may contain half a message
            raise
        if kind == "broken":
            self.close()
            raise unpack_error(content[0])
        number, offset, length, _ = content
        worker.has_answered = True
        worker.pending.popleft()
        if number in self._abandoned:
            self._abandoned.discard(number)
            _, slot = self._owners.pop(number)
            worker.free_slots.append(slot)
        else:
            self._answers[number] = kind, offset, length
        return True

    def _death(self, worker: _Worker) -> RuntimeError:
        """The error for a worker that has died. Stops the other workers."""
        process = worker.process
        process.join(_GRACE_S)
        code, pid = process.exitcode, process.pid
        self.close()
        if code is not None and code < 0:
            how = f"was killed by {signal.Signals(-code).name}"
            how += " (the system may have been short of memory)" if -code == signal.SIGKILL else ""
        else:
            how = f"ended with exit code {code}"
            if not worker.has_answered:
                how += (
                    ' before its first batch; a script must start its work under `if __name__ == "__main__":`, as '
                    "worker processes import it"
                )
        return RuntimeError(f"DataLoader: worker process {pid} {how}")
