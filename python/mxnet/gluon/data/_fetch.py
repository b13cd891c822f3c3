"""Makes one batch: gets the samples, each with its own random stream, and calls the batch builder."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from mxnet._core import RandomStream
from mxnet.gluon.data._whole_batch import whole_batch
from mxnet.gluon.data.batchify import Group, Stack, as_array
from mxnet.gluon.data.vision._image_batches import has_image_batches, image_batch

__all__ = ["Fetcher", "Task", "default_batchify_fn", "random_stream"]

_STREAMS = {"order": 0, "samples": 1, "batches": 2}
# Counter blocks reserved for one sample: a block gives four 32-bit numbers, and positions stay below 2**32.
_BLOCKS = 1 << 32


def random_stream(seed: int, purpose: str) -> RandomStream:
    """A random stream of an epoch.

    Parameters
    ----------
    seed : int
        The epoch's, from 0 to ``2**64 - 1``.
    purpose : {"order", "samples", "batches"}
        Streams of different purpose are unrelated.

    Returns
    -------
    RandomStream
    """
    return RandomStream([seed & 0xFFFFFFFF, seed >> 32, _STREAMS[purpose]])


@lru_cache(maxsize=16)
def _key(seed: int, purpose: str) -> int:
    return int(random_stream(seed, purpose).state()[0])


@dataclass(frozen=True)
class Task:
    """A batch to load: sample indices, the epoch's seed, and the number of earlier samples in the epoch."""

    indices: Sequence[int]
    seed: int
    position: int


def default_batchify_fn(data: Sequence[Any]) -> Any:
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
        return [default_batchify_fn(part) for part in zip(*data, strict=True)]
    return Stack()(data)


class Fetcher:
    """Makes batches of a dataset. Worker processes receive this object.

    Parameters
    ----------
    dataset : Dataset or sequence
    batchify_fn : callable of a list of samples
    takes_whole : bool
        Whether batches are taken as a whole where that is possible.
    """

    def __init__(self, dataset: Any, batchify_fn: Callable[[Sequence[Any]], Any], takes_whole: bool) -> None:
        self.dataset = dataset
        self._batchify_fn = batchify_fn
        self._takes_whole = takes_whole

    def __call__(self, task: Task) -> Any:
        """Make one batch; an exception gets a note that names the sample."""
        if self._takes_whole:
            try:
                batch = self.whole(task.indices)
            except Exception:  # noqa: BLE001  # the samples one by one say which of them it is
                batch = None
            if batch is not None:
                return batch
        stream = random_stream(task.seed, "samples")
        key = _key(task.seed, "samples")

        def of_sample(index: int, fn: Callable[..., Any], *args: Any) -> Any:
            """Call a function with the random stream of one sample of the batch."""
            stream.set_state(key, (task.position + index) * _BLOCKS, 0)
            return stream.call(fn, *args)

        if self._takes_whole and self.takes_images():
            try:
                batch = image_batch(self.dataset, task.indices, of_sample)
            except Exception as error:
                error.add_note(f"while building a batch of the samples {list(task.indices)}")
                raise
            if batch is not None:
                return batch
        samples = []
        for index, idx in enumerate(task.indices):
            try:
                samples.append(of_sample(index, operator.getitem, self.dataset, idx))
            except Exception as error:
                error.add_note(f"while loading sample {idx} of {type(self.dataset).__name__}")
                raise
        stream.set_state(_key(task.seed, "batches"), task.position * _BLOCKS, 0)
        try:
            return stream.call(self._batchify_fn, samples)
        except Exception as error:
            error.add_note(f"while building a batch of the samples {list(task.indices)}")
            raise

    def takes_images(self) -> bool:
        """Whether batches are made from encoded images in one call."""
        return self._batchify_fn is default_batchify_fn and has_image_batches(self.dataset)

    def whole(self, indices: Sequence[int]) -> Any:
        """The batch, made without a Python call for every sample; None if dataset or builder do not support it."""
        # A list, because arrays interpret a tuple as one index over several axes.
        parts = whole_batch(self.dataset, list(indices)) if len(indices) else None
        if parts is None:
            return None
        if self._batchify_fn is default_batchify_fn:
            return [as_array(part) for part in parts] if isinstance(parts, tuple) else as_array(parts)
        # Subclasses of the builders may have overridden anything.
        if type(self._batchify_fn) in (Stack, Group):
            return self._batchify_fn.of_stacked(parts)  # type: ignore[attr-defined]
        return None
