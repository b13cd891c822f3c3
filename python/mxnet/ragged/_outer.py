"""Rows that are reduced, scanned or ordered together along an axis before the innermost ragged one."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as onp

from mxnet import _core
from mxnet import numpy as np
from mxnet._core import ndarray
from mxnet.ragged._array import RaggedArray
from mxnet.ragged._partition import Partition, _index

_op = _core.namespaces["op"]


class OuterAxisSegments:
    """Which rows of the values differ in the index of one axis only, an axis before the innermost ragged one.

    Parameters
    ----------
    r : RaggedArray
    axis : int

    Attributes
    ----------
    at : ndarray, shape (total,), int64
        The segment of each row of the values: the row of a reduction's result.
    order : ndarray, shape (total,), int64
        Row numbers of the values, sorted by `at`.
    offsets : ndarray, int64
        Segments of `order`.
    partitions : tuple of Partition
        The rows of a result without the axis, with its first axis in front if axis 0 is reduced: each as long as the
        longest that are reduced to it.
    """

    def __init__(self, r: RaggedArray, axis: int) -> None:
        self.axis = axis
        self._r = r
        self.partitions: tuple[Partition, ...] = ()
        self._before: tuple[Partition, ...] = ()
        if r.num_ragged == 1:
            self.at = r._partitions[0].row_positions
            self.order, self.offsets = r._partitions[0].columns()
            return
        # `merged` numbers the results to which the rows of each depth belong, from the axis on inwards.
        if axis:
            merged, count = r._partitions[axis - 1].owners, r._partitions[axis - 1].count
            self._before = r._partitions[: axis - 1]
        else:
            merged, count = onp.zeros(len(r), dtype=onp.int64), 1
        inner: list[Partition] = []
        for partition in r._partitions[axis:]:
            lengths = onp.zeros(count, dtype=onp.int64)
            onp.maximum.at(lengths, merged, partition.lengths)
            inner.append(Partition.of_lengths(lengths))
            merged = inner[-1].host[:-1][merged][partition.owners] + partition.positions
            count = inner[-1].total
        self.partitions = tuple(inner)
        counts = onp.bincount(merged, minlength=count)
        self.at, self.order = _index(merged), _index(onp.argsort(merged, kind="stable"))
        self.offsets = _index(onp.concatenate([[0], onp.cumsum(counts)]))

    @cached_property
    def inverse(self) -> ndarray:
        """Where each row of the values is in `order`."""
        found: ndarray = np.argsort(self.order)
        return found

    @property
    def numbers(self) -> ndarray:
        """The index along the axis of each row of the values, int64."""
        partitions = self._r._partitions
        if len(partitions) == 1:
            return partitions[0].row_owners
        found = partitions[self.axis - 1].positions if self.axis else onp.arange(len(self._r), dtype=onp.int64)
        for partition in partitions[self.axis :]:
            found = found[partition.owners]
        return _index(found)

    def together(self, values: ndarray) -> ndarray:
        """Rows of values in the order of the segments."""
        found: ndarray = np.take(values, self.order, axis=0)
        return found

    def back(self, values: ndarray) -> ndarray:
        """Rows in the order of the segments as rows of values."""
        found: ndarray = np.take(values, self.inverse, axis=0)
        return found

    def result(self, values: ndarray, keepdims: bool) -> Any:
        """The array that has a row for each segment."""
        if not self.partitions:
            return np.expand_dims(values, 0) if keepdims else values
        if keepdims:
            own = () if not self.axis else (Partition.even(self.partitions[0].count, 1),)
            return RaggedArray(values, *self._before, *own, *self.partitions)
        kept = (*self._before, *(self.partitions if self.axis else self.partitions[1:]))
        return RaggedArray(values, *kept)
