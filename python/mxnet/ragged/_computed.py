"""Rows whose lengths follow from values, in compiled functions: partitions are computed by the graph."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from mxnet import _core, error
from mxnet import numpy as np
from mxnet._core import is_abstract, ndarray
from mxnet.ragged._partition import Partition
from mxnet.ragged._traced import TracedPartition

_op = _core.namespaces["op"]


class ComputedPartition(TracedPartition):
    """Segments whose lengths the graph of a compiled function computes.

    Their number of rows, and the length of the longest, are lengths that depend on values: the graph is run in pieces.
    """

    is_computed = True

    @classmethod
    def of_offsets(cls, offsets: ndarray, rows: int) -> ComputedPartition:
        """Segments with offsets that have no values yet; kernels check them.

        Lengths do not tell where the first segment begins, so they are negative, which is found, if it is not at 0.
        """
        if offsets.ndim != 1:
            raise error.ShapeError(f"ragged: offsets must be a vector, found shape {offsets.shape}")
        if offsets.dtype.kind not in "iu":
            raise error.DTypeError(f"ragged: offsets must be integers, found {offsets.dtype}")
        offsets = offsets.astype("int64", copy=False)
        found = cls(np.where(offsets[0] == 0, offsets[1:] - offsets[:-1], -1), rows)
        found._offsets = offsets
        return found

    @property
    def host(self) -> Any:  # type: ignore[override]  # there is nothing to write to
        """Not known: raises `AbstractArrayError`."""
        raise error.AbstractArrayError(
            "ragged: the lengths of these rows follow from values, and this function needs them before the compiled "
            "function runs"
        )

    @cached_property
    def _numbered(self) -> ndarray:
        zero = np.zeros(1, dtype="int64", device=self._sizes.device)
        longest = np.max(np.concatenate([zero, self._sizes]), axis=0, keepdims=True)
        found: ndarray = np.arange(np.bincount(longest).shape[0] - 1, dtype="int64", device=self._sizes.device)
        return found

    def _all_steps(self) -> ndarray:
        return self._numbered

    def nth(self, i: int, name: str) -> ndarray:
        """The row number of row `i` of each segment. If one is too short, the graph's `take` raises, without `name`."""
        at = self._offsets[:-1] + i if i >= 0 else self._offsets[1:] + i
        needed = i + 1 if i >= 0 else -i
        # No array has so many rows.
        found: ndarray = np.where(self._sizes >= needed, at, 2**62)
        return found

    def check_same(self, other: Partition, name: str) -> None:
        """Refuse offsets that are computed otherwise, whose values are not known."""
        if not self.same(other):
            raise error.AbstractArrayError(
                f"{name}: in a compiled function rows whose lengths follow from values have the lengths of others only "
                "if both were chosen by one mask"
            )

    @classmethod
    def joined(cls, partitions: Sequence[Partition]) -> Partition:
        """The segments of several partitions, one partition after the other."""
        sizes = np.concatenate([partition.sizes for partition in partitions])
        return cls(sizes, sum(partition.total for partition in partitions))

    __hash__ = object.__hash__


def is_computed(x: Any) -> bool:
    """Whether rows or lengths are known only when the compiled function runs."""
    return isinstance(x, ndarray) and bool(is_abstract(x))


def partition_of(lengths: ndarray, rows: int) -> ComputedPartition:
    """Segments with lengths that have no values yet; kernels check that they are not negative and have this sum."""
    if lengths.ndim != 1:
        raise error.ShapeError(f"ragged: lengths must be a vector, found shape {lengths.shape}")
    if lengths.dtype.kind not in "iu":
        raise error.DTypeError(f"ragged: lengths must be integers, found {lengths.dtype}")
    return ComputedPartition(lengths.astype("int64", copy=False), rows)


def ranges(starts: ndarray, sizes: ndarray) -> tuple[ComputedPartition, ndarray]:
    """Segments of consecutive rows, and their indices."""
    zero = np.zeros(1, dtype="int64", device=sizes.device)
    # How many segments begin at each row, and after the last one: the graph knows the length of this result.
    begins = np.bincount(np.concatenate([zero, np.cumsum(sizes, dtype="int64")]))
    partition = ComputedPartition(sizes, begins.shape[0] - 1)
    owners = np.cumsum(begins, dtype="int64")[:-1] - 1
    numbers = np.arange(partition.total, dtype="int64", device=sizes.device)
    rows: ndarray = np.take(starts - partition.offsets[:-1], owners, axis=0) + numbers
    return partition, rows


def taken(partition: Partition, rows: ndarray) -> tuple[ComputedPartition, ndarray]:
    """The segments with these indices, and the indices of their rows."""
    return ranges(np.take(partition.offsets[:-1], rows, axis=0), np.take(partition.sizes, rows, axis=0))


def chosen_rows(key: Any, count: int) -> ndarray:
    """The indices of axis 0 that a slice, mask or vector of integers chooses."""
    if isinstance(key, slice):
        found: ndarray = np.arange(count, dtype="int64")[key]
        return found
    if key.dtype == "bool":
        if key.shape != (count,):
            raise error.IndexError(f"a mask of shape {key.shape} for {count} rows")
        return np.flatnonzero(key)
    if key.ndim != 1 or key.dtype.kind not in "iu":
        raise error.IndexError(
            f"rows of a ragged array are chosen by integers, slices, masks and vectors of integers, found {key.dtype} "
            f"of shape {key.shape}"
        )
    return inside(key.astype("int64", copy=False), count, "raise")


def inside(numbers: ndarray, sizes: Any, mode: str) -> ndarray:
    """Indices into axes of these sizes as non-negative numbers. The graph's `take` raises for those out of range."""
    if mode == "clip":
        return np.clip(numbers, 0, np.maximum(sizes - 1, 0))
    if mode == "wrap":
        return np.remainder(numbers, np.maximum(sizes, 1))
    is_valid = np.logical_and(numbers >= -sizes, numbers < sizes)
    # No array has so many rows.
    found: ndarray = np.where(is_valid, np.where(numbers < 0, numbers + sizes, numbers), 2**62)
    return found


def sliced(partition: Partition, key: slice) -> tuple[ComputedPartition, ndarray]:
    """The rows of a slice of each segment, with the rules of Python for bounds, and their indices."""
    n = partition.sizes
    step = 1 if key.step is None else operator.index(key.step)
    if step == 0:
        raise error.ValueError("slice step cannot be zero")

    def bound(given: Any, default: Any) -> Any:
        if given is None:
            return default
        i = operator.index(given)
        # Backwards the place before the first row is a bound.
        low, high = (0, n) if step > 0 else (-1, n - 1)
        return np.minimum(i, high) if i >= 0 else np.maximum(n + i, low)

    start = bound(key.start, n * 0 if step > 0 else n - 1)
    stop = bound(key.stop, n if step > 0 else n * 0 - 1)
    apart = abs(step)
    counts = np.maximum((stop - start if step > 0 else start - stop) + (apart - 1), 0) // apart
    found, positions = ranges(n * 0, counts)
    return found, found.expand(partition.offsets[:-1] + start) + positions * step


def masked(mask: ndarray, partition: Partition) -> tuple[ComputedPartition, ndarray]:
    """The rows where a mask is true, and their indices."""
    rows = np.flatnonzero(mask)
    sizes = _op["ragged_sum"](mask, partition.offsets)
    return ComputedPartition(sizes, rows.shape[0]), rows
