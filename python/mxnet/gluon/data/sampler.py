"""Samplers: the order in which samples are taken."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from mxnet import numpy as np
from mxnet._argument_repr import argument_repr

__all__ = ["BatchSampler", "FilterSampler", "IntervalSampler", "RandomSampler", "Sampler", "SequentialSampler"]

T = TypeVar("T")


class Sampler(Generic[T]):
    """Base class of samplers: iterables of sample indices, or of batches of them.

    A sampler can be iterated several times. A subclass defines ``__iter__`` and ``__len__``.
    """

    def __repr__(self) -> str:
        return argument_repr(self)

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError(f"{type(self).__name__} does not define __iter__")

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} does not define __len__")


def sampler_state(sampler: Any) -> Any:
    """The state of a sampler that has one, else None.

    Parameters
    ----------
    sampler : Sampler

    Returns
    -------
    object or None
    """
    return sampler.state_dict() if hasattr(sampler, "state_dict") else None


def _check_length(length: int) -> int:
    if length < 0:
        raise ValueError(f"`length` must be at least 0, found {length}")
    return length


class SequentialSampler(Sampler[int]):
    """Indices in order.

    Parameters
    ----------
    length : int
        How many.
    start : int
        The first one.

    Raises
    ------
    ValueError
        If `length` is negative.

    Examples
    --------
    >>> list(mx.gluon.data.SequentialSampler(4))
    [0, 1, 2, 3]
    """

    def __init__(self, length: int, start: int = 0) -> None:
        self._length = _check_length(length)
        self._start = start

    def __iter__(self) -> Iterator[int]:
        return iter(range(self._start, self._start + self._length))

    def __len__(self) -> int:
        return self._length


class RandomSampler(Sampler[int]):
    """Indices in a new random order at each iteration.

    Parameters
    ----------
    length : int
        How many.

    Raises
    ------
    ValueError
        If `length` is negative.

    Notes
    -----
    The order follows from the seed of `mxnet.random.seed`.

    Examples
    --------
    >>> sorted(mx.gluon.data.RandomSampler(4))
    [0, 1, 2, 3]
    """

    def __init__(self, length: int) -> None:
        self._length = _check_length(length)

    def __iter__(self) -> Iterator[int]:
        # Sorting random keys is a permutation; a tie among 53 bits is broken by place, with negligible bias.
        keys = np.random.uniform(0.0, 1.0, size=(self._length,), dtype="float64").asnumpy()
        return iter(keys.argsort(kind="stable").tolist())

    def __len__(self) -> int:
        return self._length


class FilterSampler(Sampler[int]):
    """Indices of the samples for which a function is true.

    Parameters
    ----------
    fn : callable of a sample
        Called once with every sample, now.
    dataset : Dataset

    Examples
    --------
    >>> list(mx.gluon.data.FilterSampler(lambda x: x > 2, [1, 5, 2, 7]))
    [1, 3]
    """

    def __init__(self, fn: Callable[[Any], bool], dataset: Any) -> None:
        self._indices = [idx for idx in range(len(dataset)) if fn(dataset[idx])]

    def __iter__(self) -> Iterator[int]:
        return iter(self._indices)

    def __len__(self) -> int:
        return len(self._indices)


class IntervalSampler(Sampler[int]):
    """Every `interval`-th index; then, with `rollover`, again from 1, from 2 and so on.

    Parameters
    ----------
    length : int
        Numbers are below.
    interval : int
        At least 1 and at most `length`.
    rollover : bool

    Raises
    ------
    ValueError
        If `interval` is out of range.

    Examples
    --------
    >>> from mxnet.gluon.data import IntervalSampler
    >>> list(IntervalSampler(7, 3))
    [0, 3, 6, 1, 4, 2, 5]
    """

    def __init__(self, length: int, interval: int, rollover: bool = True) -> None:
        if not 1 <= interval <= length:
            raise ValueError(f"`interval` must be from 1 to `length` ({length}), found {interval}")
        self._length = length
        self._interval = interval
        self._rollover = rollover

    def __iter__(self) -> Iterator[int]:
        for start in range(self._interval if self._rollover else 1):
            yield from range(start, self._length, self._interval)

    def __len__(self) -> int:
        return self._length if self._rollover else (self._length + self._interval - 1) // self._interval


class BatchSampler(Sampler[list[int]]):
    """Groups the indices of another sampler into batches.

    Parameters
    ----------
    sampler : Sampler
    batch_size : int
        At least 1.
    last_batch : {"keep", "discard", "rollover"}
        What happens to a last group that is not full: it is given, dropped, or kept for the beginning of the next run.

    Raises
    ------
    ValueError
        If `batch_size` is below 1 or `last_batch` is unknown.

    Examples
    --------
    >>> from mxnet.gluon.data import BatchSampler, SequentialSampler
    >>> list(BatchSampler(SequentialSampler(5), 2))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, last_batch: str = "keep") -> None:
        if batch_size < 1:
            raise ValueError(f"`batch_size` must be at least 1, found {batch_size}")
        if last_batch not in ("keep", "discard", "rollover"):
            raise ValueError(f"`last_batch` must be 'keep', 'discard' or 'rollover', found {last_batch!r}")
        self._sampler = sampler
        self._batch_size = batch_size
        self._last_batch = last_batch
        self._left_over: list[int] = []

    def __iter__(self) -> Iterator[list[int]]:
        batch, self._left_over = self._left_over, []
        for idx in self._sampler:
            batch.append(idx)
            if len(batch) == self._batch_size:
                yield batch
                batch = []
        if batch and self._last_batch == "keep":
            yield batch
        elif self._last_batch == "rollover":
            self._left_over = batch

    def state_dict(self) -> dict[str, Any]:
        """What the next run depends on: what is left over, and the state of the other sampler if that has one.

        Returns
        -------
        dict
            Numbers and lists only.
        """
        return {"left_over": list(self._left_over), "sampler": sampler_state(self._sampler)}

    def load_state_dict(self, state: Any) -> None:
        """Let the next run be the one that `state_dict` described.

        Parameters
        ----------
        state : dict

        Raises
        ------
        ValueError
            If `state` has other keys, or is of another kind of sampler.
        """
        if not isinstance(state, dict) or state.keys() != {"left_over", "sampler"}:
            found = sorted(state) if isinstance(state, dict) else type(state).__name__
            raise ValueError(f"load_state_dict: `state` must have the keys left_over and sampler, found {found}")
        if (state["sampler"] is None) != (sampler_state(self._sampler) is None):
            raise ValueError("load_state_dict: one of the two samplers has a state, the other has none")
        if state["sampler"] is not None:
            self._sampler.load_state_dict(state["sampler"])  # type: ignore[attr-defined]  # it gave a state
        self._left_over = list(state["left_over"])

    def __len__(self) -> int:
        size = len(self._sampler)  # type: ignore[arg-type]  # a sampler without length cannot say how many batches it has
        if self._last_batch == "keep":
            return (size + self._batch_size - 1) // self._batch_size
        return (size + len(self._left_over)) // self._batch_size
