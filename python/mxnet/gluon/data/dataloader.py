"""The loader: batches of a dataset, made ahead of time by worker threads."""

from __future__ import annotations

import collections
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from mxnet import autograd
from mxnet.gluon.data.batchify import Stack
from mxnet.gluon.data.sampler import BatchSampler, RandomSampler, SequentialSampler
from mxnet.gluon.data.vision._image_batches import image_batch

__all__ = ["DataLoader", "default_batchify"]


def default_batchify(data: Sequence[Any]) -> Any:
    """Stack samples; samples that are tuples place by place.

    Parameters
    ----------
    data : sequence
        Array-likes of equal shape, or tuples of such.

    Returns
    -------
    ndarray or list of ndarray

    Raises
    ------
    ValueError
        If there are no samples, or shapes differ.
    """
    if data and isinstance(data[0], tuple):
        return [default_batchify(part) for part in zip(*data, strict=True)]
    return Stack()(data)


class DataLoader:
    """Batches of a dataset.

    Parameters
    ----------
    dataset : Dataset or sequence
    batch_size : int, optional
        Required without `batch_sampler`.
    shuffle : bool
        Take the samples in random order.
    sampler : Sampler, optional
        Order of the samples; excludes `shuffle`.
    last_batch : {"keep", "discard", "rollover"}, optional
        What happens to a last batch that is not full; ``"keep"`` by default. See `BatchSampler`.
    batch_sampler : Sampler of lists of int, optional
        Excludes the four arguments before.
    batchify_fn : callable, optional
        Makes a batch of a list of samples; `default_batchify` by default.
    num_workers : int
        Number of threads that make batches; 0 to make each when it is asked for.
    pin_memory : bool
        Must be False: there is no device that would profit from pinned host memory.
    prefetch : int, optional
        How many batches may be ready or in work; twice the number of workers by default.
    thread_pool : bool
        Older programs choose threads (True) or processes by it; workers are threads either way.
    timeout : float
        Seconds to wait for a batch.

    Raises
    ------
    ValueError
        If arguments exclude each other or are out of range.

    Notes
    -----
    The order of the batches does not depend on the number of workers. If making a batch fails, the exception is raised
    where the batch would have been, with the worker's traceback and a note that names the samples.

    Examples
    --------
    >>> from mxnet.gluon.data import ArrayDataset, DataLoader
    >>> loader = DataLoader(ArrayDataset([1, 2, 3], [0, 1, 0]), batch_size=2)
    >>> [x.shape for x, y in loader]
    [(2,), (1,)]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = None,
        shuffle: bool = False,
        sampler: Iterable[int] | None = None,
        last_batch: str | None = None,
        batch_sampler: Iterable[Sequence[int]] | None = None,
        batchify_fn: Callable[[Sequence[Any]], Any] | None = None,
        num_workers: int = 0,
        pin_memory: bool = False,
        prefetch: int | None = None,
        thread_pool: bool = False,
        timeout: float = 120,
    ) -> None:
        if batch_sampler is not None:
            if batch_size is not None or shuffle or sampler is not None or last_batch is not None:
                raise ValueError("`batch_sampler` excludes `batch_size`, `shuffle`, `sampler` and `last_batch`")
        else:
            if batch_size is None:
                raise ValueError("`batch_size` is needed without `batch_sampler`")
            if sampler is None:
                sampler = RandomSampler(len(dataset)) if shuffle else SequentialSampler(len(dataset))
            elif shuffle:
                raise ValueError("`sampler` excludes `shuffle`")
            batch_sampler = BatchSampler(sampler, batch_size, last_batch or "keep")
        if num_workers < 0:
            raise ValueError(f"`num_workers` must be at least 0, found {num_workers}")
        if pin_memory:
            raise ValueError("`pin_memory` must be False: there is no device to copy pinned memory to")
        if prefetch is not None and prefetch < 1 and num_workers:
            raise ValueError(f"`prefetch` must be at least 1, found {prefetch}")
        del thread_pool
        if not timeout > 0:
            raise ValueError(f"`timeout` must be positive, found {timeout}")
        self._dataset = dataset
        self._batch_sampler = batch_sampler
        self._batchify_fn = batchify_fn or default_batchify
        self._num_workers = num_workers
        self._prefetch = 2 * num_workers if prefetch is None else prefetch
        self._timeout = timeout

    def __len__(self) -> int:
        return len(self._batch_sampler)  # type: ignore[arg-type]  # a sampler without length has no number of batches

    def __iter__(self) -> Iterator[Any]:
        if self._num_workers == 0:
            return (self._make(indices) for indices in self._batch_sampler)
        return self._run_workers()

    def _make(self, indices: Sequence[int]) -> Any:
        """One batch; a failure gets a note about where it happened."""
        if self._batchify_fn is default_batchify:
            batch = image_batch(self._dataset, indices)
            if batch is not None:
                return batch
        samples = []
        for idx in indices:
            try:
                samples.append(self._dataset[idx])
            except Exception as error:
                error.add_note(f"while loading sample {idx} of {type(self._dataset).__name__}")
                raise
        try:
            return self._batchify_fn(samples)
        except Exception as error:
            error.add_note(f"while building a batch of the samples {list(indices)}")
            raise

    def _run_workers(self) -> Iterator[Any]:
        tasks: queue.SimpleQueue[tuple[Sequence[int], _Slot] | None] = queue.SimpleQueue()
        training = autograd.is_training()
        stop = threading.Event()
        workers = [
            threading.Thread(
                target=_work, args=(self._make, tasks, stop, training), name=f"DataLoader-{number}", daemon=True
            )
            for number in range(self._num_workers)
        ]
        for worker in workers:
            worker.start()
        waiting: collections.deque[_Slot] = collections.deque()
        batches = iter(self._batch_sampler)
        exhausted = False
        try:
            while True:
                while not exhausted and len(waiting) < self._prefetch:
                    indices = next(batches, None)
                    if indices is None:
                        exhausted = True
                        break
                    slot = _Slot()
                    tasks.put((indices, slot))
                    waiting.append(slot)
                if not waiting:
                    return
                yield waiting.popleft().take(self._timeout)
        finally:
            # Also runs when the loop over the batches is left early: workers end after the batch they are at.
            stop.set()
            for _ in workers:
                tasks.put(None)
            deadline = time.monotonic() + self._timeout
            for worker in workers:
                worker.join(max(0.0, deadline - time.monotonic()))


class _Slot:
    """A place for one batch, or for the exception in its stead."""

    def __init__(self) -> None:
        self._filled = threading.Event()
        self._batch: Any = None
        self._error: BaseException | None = None

    def fill(self, batch: Any, error: BaseException | None) -> None:
        """Put the batch or the exception there."""
        self._batch, self._error = batch, error
        self._filled.set()

    def take(self, timeout: float) -> Any:
        """Wait for the batch, and return it or raise the exception."""
        if not self._filled.wait(timeout):
            raise TimeoutError(
                f"no batch within {timeout} seconds; raise `timeout` or look at what the dataset waits for"
            )
        if self._error is not None:
            raise self._error
        return self._batch


def _work(
    make: Callable[[Sequence[int]], Any],
    tasks: queue.SimpleQueue[tuple[Sequence[int], _Slot] | None],
    stop: threading.Event,
    training: bool,
) -> None:
    """What a worker thread does: make batches until it is told to stop."""
    autograd.set_training(training)
    while True:
        task = tasks.get()
        if task is None or stop.is_set():
            return
        indices, slot = task
        try:
            batch = make(indices)
        except BaseException as error:  # noqa: BLE001  # raised again where the batch is taken
            slot.fill(None, error)
        else:
            slot.fill(batch, None)
