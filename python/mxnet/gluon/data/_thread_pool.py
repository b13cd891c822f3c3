"""Worker threads of a loader."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import Any

from mxnet import autograd
from mxnet.gluon.data._fetch import Task

__all__ = ["ThreadPool"]


class ThreadPool:
    """Threads that make batches in the order of submission.

    Parameters
    ----------
    fetch : callable of a Task
    num_workers : int
    timeout : float
        Seconds to wait for a batch.
    """

    def __init__(self, fetch: Callable[[Task], Any], num_workers: int, timeout: float) -> None:
        self._timeout = timeout
        self._tasks: queue.SimpleQueue[tuple[Task, _Slot] | None] = queue.SimpleQueue()
        self._stop = threading.Event()
        arguments = (fetch, self._tasks, self._stop, autograd.is_training())
        self._workers = [
            threading.Thread(target=_work, args=arguments, name=f"DataLoader-{number}", daemon=True)
            for number in range(num_workers)
        ]
        for worker in self._workers:
            worker.start()

    def submit(self, task: Task) -> _Slot:
        """Submit a batch; returns the slot that will hold it."""
        slot = _Slot()
        self._tasks.put((task, slot))
        return slot

    def take(self, slot: _Slot) -> Any:
        """Wait for a batch; raises its exception, or TimeoutError."""
        return slot.take(self._timeout)

    def close(self) -> None:
        """Stop the threads, each after its current batch; waits for that as long as for a batch."""
        self._stop.set()
        for _ in self._workers:
            self._tasks.put(None)
        deadline = time.monotonic() + self._timeout
        for worker in self._workers:
            worker.join(max(0.0, deadline - time.monotonic()))


class _Slot:
    """Holds one batch, or the exception raised instead."""

    def __init__(self) -> None:
        self._is_filled = threading.Event()
        self._batch: Any = None
        self._error: BaseException | None = None

    def fill(self, batch: Any, error: BaseException | None) -> None:
        """Store the batch or the exception."""
        self._batch, self._error = batch, error
        self._is_filled.set()

    def take(self, timeout: float) -> Any:
        """Wait for the batch, and return it or raise the exception."""
        if not self._is_filled.wait(timeout):
            raise TimeoutError(
                f"DataLoader: no batch within `timeout` ({timeout} seconds); raise it or look at what the dataset "
                "waits for"
            )
        if self._error is not None:
            raise self._error
        return self._batch


def _work(
    fetch: Callable[[Task], Any],
    tasks: queue.SimpleQueue[tuple[Task, _Slot] | None],
    stop: threading.Event,
    training: bool,
) -> None:
    """The loop of a worker thread: makes batches until it receives the stop message."""
    autograd.set_training(training)
    while True:
        item = tasks.get()
        if item is None or stop.is_set():
            return
        task, slot = item
        try:
            batch = fetch(task)
        except BaseException as error:  # noqa: BLE001  # raised again where the batch is taken
            slot.fill(None, error)
        else:
            slot.fill(batch, None)
