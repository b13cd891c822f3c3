"""The loader: batches of a dataset, made ahead of time by worker processes or threads."""

from __future__ import annotations

import collections
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from mxnet import numpy as np
from mxnet._argument_repr import argument_repr
from mxnet._renamed import old_attribute, removed
from mxnet.device import cpu, current_device, num_gpus
from mxnet.gluon.data._fetch import Fetcher, Task, default_batchify_fn, random_stream
from mxnet.gluon.data._process_pool import ProcessPool
from mxnet.gluon.data._thread_pool import ThreadPool
from mxnet.gluon.data.sampler import BatchSampler, RandomSampler, SequentialSampler, sampler_state

__all__ = ["DataLoader", "default_batchify_fn"]


def __getattr__(name: str) -> Any:
    if name == "default_mp_batchify_fn":
        return old_attribute(__name__, name, "default_batchify_fn", default_batchify_fn)
    raise removed(__name__, name)


class DataLoader:
    """Loads batches of a dataset, in worker processes or threads if asked for.

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
        Makes a batch of a list of samples; `default_batchify_fn` by default.
    num_workers : int
        Number of processes or threads that make batches; 0 to make each when it is asked for.
    pin_memory : bool
        Ask for host memory from which a GPU copies fast. Batches are made in ordinary memory of the host; without a GPU
        there is no difference.
    pin_device_id : int
        The GPU that `pin_memory` is meant for.
    prefetch : int, optional
        How many batches may be ready or in work; twice the number of workers by default.
    thread_pool : bool
        Workers are threads of this process, not processes.
    timeout : float
        Seconds to wait for a batch.
    try_nopython : bool, optional
        Whether batches are taken as a whole, without a Python call for each sample: None does so where it is possible,
        False never, True insists on it. The batches are the same. It is possible for arrays in an `ArrayDataset` or
        `SimpleDataset`, parts of these, and the transforms `Cast`, `ToTensor`, `Normalize` and compositions of them,
        with samples stacked (`default_batchify_fn`, `Stack`, `Group` of `Stack`). It is also possible for encoded
        images (`ImageFolderDataset`, `ImageListDataset`, `ImageRecordDataset`) under ``transform_first`` of `Resize`,
        `CenterCrop`, `CropResize`, random flips, `ToTensor` and at most one `Normalize` at the end; where these are
        resized, levels of pixels may differ by one from those of single samples.

    Raises
    ------
    ValueError
        If arguments exclude each other or are out of range; if `try_nopython` is True and batches cannot be taken as a
        whole; if `pin_memory` is asked for on a GPU.

    Notes
    -----
    *Order and randomness.* Each loop over the loader draws one seed from the stream of `mxnet.random.seed`. The order
    of the samples follows from it, and each sample has a random stream of its own: what transforms draw from
    `mxnet.numpy.random` depends neither on the number of workers nor on their kind. In worker processes Python's
    `random` and NumPy's global generator are seeded for each batch, so that the number of processes does not matter for
    them either; without processes they are left alone.

    *Processes* start in the first loop and stay until the loader goes away. They work with the dataset as it was when
    they started. They are started by the method of `multiprocessing.set_start_method` if the program has chosen one.
    Otherwise they come from a clean server process (``forkserver``), or by ``spawn`` where that does not exist, because
    a forked copy of this process can inherit locks that nobody releases, and cannot use a GPU. Dataset, transforms and
    `batchify_fn` must then be defined at the top of a module. A program that cannot be imported, because it is a
    notebook or a script without ``if __name__ == "__main__":``, has forked workers. Arrays of the dataset lie in memory
    that all processes share; those of batches come through shared memory and are copied once.

    *Failures.* If making a batch fails, the exception is raised where the batch would have been, with the worker's
    traceback and a note that names the samples. A process that is killed is a RuntimeError; the next loop starts new
    ones.

    Examples
    --------
    >>> from mxnet.gluon.data import ArrayDataset, DataLoader
    >>> loader = DataLoader(ArrayDataset([1, 2, 3], [0, 1, 0]), batch_size=2)
    >>> [x.shape for x, y in loader]
    [(2,), (1,)]
    """

    def __repr__(self) -> str:
        return argument_repr(self)

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
        pin_device_id: int = 0,
        prefetch: int | None = None,
        thread_pool: bool = False,
        timeout: float = 120,
        try_nopython: bool | None = None,
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
        _check_pinning(pin_memory, pin_device_id)
        if prefetch is not None and prefetch < 1 and num_workers:
            raise ValueError(f"`prefetch` must be at least 1, found {prefetch}")
        if not timeout > 0:
            raise ValueError(f"`timeout` must be positive, found {timeout}")
        self._batch_sampler = batch_sampler
        self._fetch = Fetcher(dataset, batchify_fn or default_batchify_fn, takes_whole=try_nopython is not False)
        if try_nopython and len(dataset) and not self._fetch.takes_images() and self._fetch.whole([0]) is None:
            raise ValueError(
                f"`try_nopython` is True, but {type(dataset).__name__}, its transforms or `batchify_fn` need a Python "
                "call for each sample"
            )
        self._num_workers = num_workers
        self._prefetch = 2 * num_workers if prefetch is None else prefetch
        self._uses_threads = thread_pool
        self._timeout = timeout
        self._pool: ProcessPool | None = None
        self._epoch: _Epoch | None = None
        self._resumed: _Epoch | None = None

    def __len__(self) -> int:
        return len(self._batch_sampler)  # type: ignore[arg-type]  # a sampler without length has no number of batches

    def __iter__(self) -> Iterator[Any]:
        epoch, self._resumed = self._resumed or _Epoch.draw(self._batch_sampler), None
        self._epoch = epoch
        if self._num_workers == 0:
            return self._run_here(epoch)
        return self._run_threads(epoch) if self._uses_threads else self._run_processes(epoch)

    def __getstate__(self) -> dict[str, Any]:
        # Processes belong to the one that started them.
        return {**self.__dict__, "_pool": None}

    def state_dict(self) -> dict[str, Any]:
        """Where the loop over the loader is.

        Returns
        -------
        dict
            The seed of the loop (None between two loops), how many batches it has given, and the state of the batch
            sampler when it began, if that has a method `state_dict`. Numbers, strings, lists and None only.

        Notes
        -----
        Inside the loop the batch at hand counts as given. A loop that was left by ``break`` stays where it is until the
        next one begins. Samplers that draw from `mxnet.numpy.random` are resumed as they are; one that draws from
        another generator, or changes from run to run, needs the methods `state_dict` and `load_state_dict`.

        Examples
        --------
        >>> loader = mx.gluon.data.DataLoader(list(range(6)), batch_size=2, shuffle=True)
        >>> batches = iter(loader)
        >>> first, state, rest = next(batches), loader.state_dict(), list(batches)
        >>> loader.load_state_dict(state)
        >>> [bool((a == b).all()) for a, b in zip(loader, rest, strict=True)]
        [True, True]
        """
        epoch = self._resumed or self._epoch
        if epoch is None or epoch.is_finished:
            return {"seed": None, "num_batches": 0, "sampler": sampler_state(self._batch_sampler)}
        return {"seed": epoch.seed, "num_batches": epoch.num_batches, "sampler": epoch.sampler_state}

    def load_state_dict(self, state: Any) -> None:
        """Let the next loop go on where another one was.

        Parameters
        ----------
        state : dict
            What `state_dict` gave, of a loader with an equal dataset and the same sampling; workers may differ.

        Raises
        ------
        ValueError
            If `state` has other keys or values.
        """
        if not isinstance(state, dict) or state.keys() != {"seed", "num_batches", "sampler"}:
            found = sorted(state) if isinstance(state, dict) else type(state).__name__
            raise ValueError(
                f"load_state_dict: `state` must have the keys num_batches, sampler and seed, found {found}"
            )
        seed, num_batches = state["seed"], state["num_batches"]
        if type(num_batches) is not int or num_batches < 0:
            raise ValueError(f"load_state_dict: `num_batches` must be an integer of at least 0, found {num_batches!r}")
        if seed is not None and not (type(seed) is int and 0 <= seed < 1 << 64):
            raise ValueError(f"load_state_dict: `seed` must be None or from 0 to 2**64 - 1, found {seed!r}")
        if seed is None and num_batches:
            raise ValueError(
                f"load_state_dict: `num_batches` must be 0 between two loops, found {num_batches} without a seed"
            )
        if (state["sampler"] is None) != (sampler_state(self._batch_sampler) is None):
            raise ValueError("load_state_dict: one of the two batch samplers has a state, the other has none")
        if state["sampler"] is not None:
            self._batch_sampler.load_state_dict(state["sampler"])  # type: ignore[attr-defined]  # it gave a state
        self._epoch = None
        self._resumed = None if seed is None else _Epoch(seed, self._batch_sampler, num_batches)

    def _run_here(self, epoch: _Epoch) -> Iterator[Any]:
        for task in epoch.tasks():
            batch = self._fetch(task)
            epoch.num_batches += 1
            yield batch
        epoch.is_finished = True

    def _run_threads(self, epoch: _Epoch) -> Iterator[Any]:
        pool = ThreadPool(self._fetch, self._num_workers, self._timeout)
        waiting: collections.deque[Any] = collections.deque()
        try:
            yield from self._run_ahead(epoch, pool, waiting)
        finally:
            # Also runs when the loop over the batches is left early.
            pool.close()

    def _run_processes(self, epoch: _Epoch) -> Iterator[Any]:
        if self._pool is None or not self._pool.is_usable:
            self._pool = ProcessPool(self._fetch, self._num_workers, self._timeout)
            weakref.finalize(self, self._pool.close)
        pool = self._pool
        waiting: collections.deque[int] = collections.deque()
        try:
            yield from self._run_ahead(epoch, pool, waiting)
        finally:
            pool.cancel(waiting)

    def _run_ahead(
        self, epoch: _Epoch, pool: ThreadPool | ProcessPool, waiting: collections.deque[Any]
    ) -> Iterator[Any]:
        """Batches in order, with up to `prefetch` asked for ahead; `waiting` holds those that were not taken."""
        tasks = epoch.tasks()
        is_exhausted = False
        while True:
            while not is_exhausted and len(waiting) < self._prefetch:
                task = next(tasks, None)
                if task is None:
                    is_exhausted = True
                else:
                    waiting.append(pool.submit(task))
            if not waiting:
                break
            batch = pool.take(waiting.popleft())
            epoch.num_batches += 1
            yield batch
        epoch.is_finished = True


class _Epoch:
    """One loop over a loader: all that its order and its random numbers follow from, and how far it is."""

    def __init__(self, seed: int, batch_sampler: Iterable[Sequence[int]], num_batches: int = 0) -> None:
        self.seed = seed
        self.num_batches = num_batches
        self.is_finished = False
        self.sampler_state = sampler_state(batch_sampler)
        self._batch_sampler = batch_sampler
        self._num_skipped = num_batches

    @staticmethod
    def draw(batch_sampler: Iterable[Sequence[int]]) -> _Epoch:
        """An epoch with a new seed, drawn from the process's stream."""
        low, high = np.random.randint(0, 1 << 32, size=(2,), dtype="int64", device=cpu()).tolist()
        return _Epoch(low | high << 32, batch_sampler)

    def tasks(self) -> Iterator[Task]:
        """The batches that are left; what samplers draw comes from a stream that belongs to the epoch."""
        stream = random_stream(self.seed, "order")
        batches = stream.call(iter, self._batch_sampler)
        position = 0
        number = 0
        while (indices := stream.call(next, batches, None)) is not None:
            if number >= self._num_skipped:
                yield Task(indices, self.seed, position)
            number += 1
            position += len(indices)
        if number < self._num_skipped:
            raise ValueError(
                f"load_state_dict: the state is behind batch {self._num_skipped}, but there are {number}: the dataset "
                "or its sampler is another one"
            )


def _check_pinning(pin_memory: bool, pin_device_id: int) -> None:
    """Refuse what cannot be had: page-locked memory for a GPU."""
    limit = max(1, num_gpus())
    if not 0 <= pin_device_id < limit:
        raise ValueError(f"`pin_device_id` must be from 0 to {limit - 1}, found {pin_device_id}")
    if pin_memory and current_device().device_type == "gpu":
        raise ValueError(
            f"`pin_memory` must be False on {current_device()}: batches are made in ordinary memory of the host; copy "
            "them with `to_device`"
        )
