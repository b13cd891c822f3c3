"""Iterators around other iterators."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from mxnet.io.data_iter import DataDesc, DataIter, as_list

__all__ = ["PrefetchingIter", "ResizeIter"]


class ResizeIter(DataIter):
    """Another iterator with another number of batches in a run.

    Parameters
    ----------
    data_iter : DataIter
        Begins anew as often as is needed.
    size : int
        Number of batches, at least 0.
    reset_internal : bool
        Whether `data_iter` begins anew with each run; else it goes on where it is.

    Raises
    ------
    ValueError
        If `size` is negative; later, if `data_iter` has no batches.

    Examples
    --------
    >>> batches = mx.io.ResizeIter(mx.io.NDArrayIter(np.arange(3)), size=5)
    >>> [x.item() for (x,) in batches]
    [0, 1, 2, 0, 1]
    """

    def __init__(self, data_iter: DataIter, size: int, reset_internal: bool = True) -> None:
        super().__init__(data_iter.batch_size)
        if size < 0:
            raise ValueError(f"ResizeIter: `size` must be at least 0, found {size}")
        self.data_iter = data_iter
        self.size = size
        self.reset_internal = reset_internal
        self._num_given = 0
        for name in ("provide_data", "provide_label"):
            if hasattr(data_iter, name):
                setattr(self, name, getattr(data_iter, name))

    def reset(self) -> None:
        self._num_given = 0
        if self.reset_internal:
            self.data_iter.reset()

    def iter_next(self) -> bool:
        if self._num_given == self.size:
            return False
        if not self.data_iter.iter_next():
            self.data_iter.reset()
            if not self.data_iter.iter_next():
                raise ValueError(f"ResizeIter: `data_iter` has no batches, {self.size} are needed")
        self._num_given += 1
        return True

    def getdata(self) -> Any:
        return self.data_iter.getdata()

    def getlabel(self) -> Any:
        return self.data_iter.getlabel()

    def getindex(self) -> Any:
        return self.data_iter.getindex()

    def getpad(self) -> int | None:
        return self.data_iter.getpad()


class PrefetchingIter(DataIter):
    """Other iterators side by side, each on a thread of its own that makes the next batch ahead of time.

    Parameters
    ----------
    iters : DataIter or list of DataIter
        Must not be used by others meanwhile.
    rename_data, rename_label : list of dict of str to str, optional
        New names for the arrays of each iterator.

    Raises
    ------
    ValueError
        If there are no iterators, or not one dict for each; later, if one of them ends before the others.

    Notes
    -----
    A batch has the data of all iterators, then the labels of all. What an iterator raises is raised where its batch
    would have been.

    Examples
    --------
    >>> parts = [mx.io.NDArrayIter(np.arange(4) * k, np.arange(4), batch_size=2) for k in (1, 10)]
    >>> [x.tolist() for x in next(mx.io.PrefetchingIter(parts))]
    [[0, 1], [0, 10], [0, 1], [0, 1]]
    """

    def __init__(
        self,
        iters: DataIter | Sequence[DataIter],
        rename_data: Sequence[dict[str, str]] | None = None,
        rename_label: Sequence[dict[str, str]] | None = None,
    ) -> None:
        self.iters = list(iters) if isinstance(iters, Sequence) else [iters]
        if not self.iters:
            raise ValueError("PrefetchingIter: `iters` must have at least one iterator")
        for name, renamed in (("rename_data", rename_data), ("rename_label", rename_label)):
            if renamed is not None and len(renamed) != len(self.iters):
                raise ValueError(
                    f"PrefetchingIter: `{name}` must have a dict for each of {len(self.iters)} iterators, found "
                    f"{len(renamed)}"
                )
        super().__init__(self.iters[0].batch_size)
        self.rename_data = rename_data
        self.rename_label = rename_label
        # One thread an iterator; they end when this object goes away.
        self._threads = [ThreadPoolExecutor(1, "PrefetchingIter") for _ in self.iters]
        self._batches: list[tuple[Any, ...]] = []
        self._ahead: list[Future[tuple[Any, ...] | None]] = []
        self._fetch()

    @property
    def provide_data(self) -> list[DataDesc]:
        """Names, shapes and dtypes of the data of a batch."""
        return self._describe("provide_data", self.rename_data)

    @property
    def provide_label(self) -> list[DataDesc]:
        """Names, shapes and dtypes of the labels of a batch."""
        return self._describe("provide_label", self.rename_label)

    def reset(self) -> None:
        for future in self._ahead:
            future.exception()  # waits; what went wrong in a batch that nobody takes does not matter
        for data_iter in self.iters:
            data_iter.reset()
        self._batches = []
        self._fetch()

    def iter_next(self) -> bool:
        found = [future.result() for future in self._ahead]
        batches = [batch for batch in found if batch is not None]
        if not batches:
            return False
        if len(batches) < len(found):
            ended = [number for number, batch in enumerate(found) if batch is None]
            raise ValueError(f"PrefetchingIter: iterators {ended} of {len(found)} ended before the others")
        if len({pad for *_, pad in batches}) > 1:
            raise ValueError(f"PrefetchingIter: paddings must be the same, found {[pad for *_, pad in batches]}")
        self._batches = batches
        self._fetch()
        return True

    def next(self) -> tuple[Any, ...]:
        return super().next()

    def getdata(self) -> list[Any]:
        return [array for data, _, _, _ in self._current() for array in data]

    def getlabel(self) -> list[Any]:
        return [array for _, label, _, _ in self._current() for array in label]

    def getindex(self) -> Any:
        return self._current()[0][2]

    def getpad(self) -> int | None:
        pad: int | None = self._current()[0][3]
        return pad

    def _fetch(self) -> None:
        self._ahead = [
            thread.submit(_next_batch, data_iter) for thread, data_iter in zip(self._threads, self.iters, strict=True)
        ]

    def _current(self) -> list[tuple[Any, ...]]:
        if not self._batches:
            raise ValueError("PrefetchingIter: there is no batch yet; call `next` or `iter_next` first")
        return self._batches

    def _describe(self, name: str, renamed: Sequence[dict[str, str]] | None) -> list[DataDesc]:
        found = []
        for number, data_iter in enumerate(self.iters):
            names = renamed[number] if renamed is not None else {}
            for desc in (x if isinstance(x, DataDesc) else DataDesc(*x) for x in getattr(data_iter, name)):
                found.append(DataDesc(names.get(desc.name, desc.name), desc.shape, desc.dtype, desc.layout))
        return found


def _next_batch(data_iter: DataIter) -> tuple[Any, ...] | None:
    """Data, labels, numbers and padding of the next batch; None at the end."""
    if not data_iter.iter_next():
        return None
    return as_list(data_iter.getdata()), as_list(data_iter.getlabel()), data_iter.getindex(), data_iter.getpad()
