"""Batches of arrays in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as onp

from mxnet import numpy as np
from mxnet.io.data_iter import DataDesc, DataIter
from mxnet.numpy import ndarray

__all__ = ["NDArrayIter"]

_ENDS = ("pad", "discard", "roll_over")


class NDArrayIter(DataIter):
    """Batches of arrays.

    Parameters
    ----------
    data : array_like, list of array_like, or dict of str to array_like
        Samples along the first axis; the same number in all.
    label : array_like, list of array_like, or dict of str to array_like, optional
    batch_size : int
        From 1 to the number of samples.
    shuffle : bool
        A new random order in every run; it follows from `mxnet.random.seed`.
    last_batch_handle : {"pad", "discard", "roll_over"}
        A last batch that is not full is filled up with the first samples (`getpad` says how many these are), is
        dropped, or begins the next run.
    data_name, label_name : str
        Name of a single array; the names of several are a number and these, ``_0_data``.

    Raises
    ------
    ValueError
        If there are no data, numbers of samples differ, or an argument is out of range.

    Examples
    --------
    >>> batches = mx.io.NDArrayIter(np.arange(5), np.arange(5) * 10, batch_size=2)
    >>> [(x.tolist(), y.tolist()) for x, y in batches]
    [([0, 1], [0, 10]), ([2, 3], [20, 30]), ([4, 0], [40, 0])]
    """

    def __init__(
        self,
        data: Any,
        label: Any = None,
        batch_size: int = 1,
        shuffle: bool = False,
        last_batch_handle: str = "pad",
        data_name: str = "data",
        label_name: str = "softmax_label",
    ) -> None:
        super().__init__(batch_size)
        self.data = _named(data, data_name, "data")
        self.label = [] if label is None else _named(label, label_name, "label")
        if not self.data:
            raise ValueError("NDArrayIter: `data` must have at least one array")
        lengths = {name: len(array) for name, array in (*self.data, *self.label)}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"NDArrayIter: all arrays must have the same number of samples, found {lengths}")
        self.num_data = next(iter(lengths.values()))
        if not 1 <= batch_size <= self.num_data:
            raise ValueError(
                f"NDArrayIter: `batch_size` must be from 1 to the number of samples ({self.num_data}), found "
                f"{batch_size}"
            )
        if last_batch_handle not in _ENDS:
            raise ValueError(
                f"NDArrayIter: `last_batch_handle` must be one of {', '.join(_ENDS)}, found {last_batch_handle!r}"
            )
        self.shuffle = shuffle
        self.last_batch_handle = last_batch_handle
        self._batch: Any = None
        self.hard_reset()

    @property
    def provide_data(self) -> list[DataDesc]:
        """Names, shapes and dtypes of the data of a batch."""
        return self._describe(self.data)

    @property
    def provide_label(self) -> list[DataDesc]:
        """Names, shapes and dtypes of the labels of a batch."""
        return self._describe(self.label)

    def hard_reset(self) -> None:
        """Begin anew, without what is left over from the run before."""
        self._begin([])

    def reset(self) -> None:
        """Begin anew; after the last batch of a run that rolls over, with the samples that are left.

        A run that has just begun stays as it is: the end of a loop over the batches resets too.
        """
        if self._batch is None:
            return
        rolls_over = self.last_batch_handle == "roll_over" and self._is_at_end()
        self._begin(self._order[self._start :].tolist() if rolls_over else [])

    def iter_next(self) -> bool:
        if self._is_at_end():
            return False
        chosen = self._order[self._start : self._start + self.batch_size]
        self._pad = self.batch_size - len(chosen)
        self._batch = onp.concatenate([chosen, self._order[: self._pad]])
        self._start += self.batch_size
        return True

    def next(self) -> tuple[Any, ...]:
        return super().next()

    def getdata(self) -> list[ndarray]:
        return [array[self._current()] for _, array in self.data]

    def getlabel(self) -> list[ndarray]:
        return [array[self._current()] for _, array in self.label]

    def getindex(self) -> Any:
        return self._current()

    def getpad(self) -> int:
        self._current()
        return self._pad

    def _begin(self, rest: list[int]) -> None:
        order = np.random.permutation(self.num_data).asnumpy() if self.shuffle else onp.arange(self.num_data)
        self._order = onp.concatenate([onp.array(rest, "int64"), order])
        self._start = 0
        self._batch = None
        self._pad = 0

    def _is_at_end(self) -> bool:
        left = len(self._order) - self._start
        return left <= 0 if self.last_batch_handle == "pad" else left < self.batch_size

    def _current(self) -> Any:
        if self._batch is None:
            raise ValueError("NDArrayIter: there is no batch yet; call `next` or `iter_next` first")
        return self._batch

    def _describe(self, arrays: list[tuple[str, ndarray]]) -> list[DataDesc]:
        return [DataDesc(name, (self.batch_size, *array.shape[1:]), array.dtype) for name, array in arrays]


def _named(arrays: Any, name: str, argument: str) -> list[tuple[str, ndarray]]:
    """Names and arrays in order."""
    if isinstance(arrays, Mapping):
        pairs = list(arrays.items())
    elif isinstance(arrays, list | tuple) and any(
        hasattr(array, "shape") or isinstance(array, list) for array in arrays
    ):
        pairs = [(name if len(arrays) == 1 else f"_{number}_{name}", array) for number, array in enumerate(arrays)]
    else:
        pairs = [(name, arrays)]
    found = [(key, array if isinstance(array, ndarray) else np.array(array)) for key, array in pairs]
    for key, array in found:
        if array.ndim == 0:
            raise ValueError(f"NDArrayIter: `{argument}` must have samples along its first axis, {key} has no axes")
    return found
