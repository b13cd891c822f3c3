"""Partitions in a graph for a file: the lengths are an argument of it, so everything is computed by operators."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from mxnet import error
from mxnet import numpy as np
from mxnet._core import ndarray
from mxnet.ragged._partition import Partition


class LongestUnknownError(error.UnsupportedError):
    """A shape is made of the length of the longest row, which the graph has no argument for."""


class TracedPartition(Partition):
    """Segments of any lengths.

    Parameters
    ----------
    sizes : ndarray, shape (count,), int64
        Rows of each segment.
    rows : int
        Number of rows.
    steps : ndarray, shape (longest,), int64, optional
        The numbers from 0 on: as many as the longest segment has rows.
    """

    is_traced = True

    def __init__(self, sizes: ndarray, rows: int, steps: ndarray | None = None) -> None:
        self._sizes = sizes
        self._rows = rows
        self._steps = steps
        start = np.zeros(1, dtype="int64", device=sizes.device)
        self._offsets = np.concatenate([start, np.cumsum(sizes, dtype="int64")])

    @property
    def host(self) -> Any:  # type: ignore[override]  # there is nothing to write to
        """Not known: raises `UnsupportedError`."""
        raise error.UnsupportedError(
            "export: a graph in a file is for ragged arrays of any lengths, and this function makes the number of rows "
            "of its result of the lengths of the rows\n  hint: export the part of the network that does not"
        )

    @property
    def count(self) -> int:
        """Number of segments."""
        found: int = self._sizes.shape[0]
        return found

    @property
    def total(self) -> int:
        """Number of rows."""
        return self._rows

    @property
    def longest(self) -> int:
        """Number of rows of the longest segment; an error if the graph has no argument for it."""
        return self._all_steps().shape[0]

    def _all_steps(self) -> ndarray:
        if self._steps is None:
            raise LongestUnknownError(
                "export: a shape is made of the longest row of ragged arrays that were joined, which a graph in a file "
                "does not know\n  hint: pad each with `to_dense` before they are joined, or give `to_dense` a `length`"
            )
        return self._steps

    @property
    def offsets(self) -> ndarray:
        """The offsets, computed in the graph."""
        return self._offsets

    @property
    def sizes(self) -> ndarray:
        """The lengths, an argument of the graph."""
        return self._sizes

    @cached_property
    def row_owners(self) -> ndarray:
        """The segment of each row, int64."""
        return self.expand(np.arange(self.count, dtype="int64", device=self._sizes.device))

    @cached_property
    def row_starts(self) -> ndarray:
        """The first row of the segment of each row, int64."""
        return self.expand(self._offsets[:-1])

    @cached_property
    def row_positions(self) -> ndarray:
        """The position of each row in its segment, int64."""
        return self._numbers() - self.row_starts

    @property
    def row_mirrored(self) -> ndarray:
        """Row numbers with each segment reversed, int64."""
        return self.expand(self._offsets[:-1] + self._offsets[1:] - 1) - self._numbers()

    def _numbers(self) -> ndarray:
        return np.arange(self._rows, dtype="int64", device=self._sizes.device)

    def nth(self, i: int, name: str) -> ndarray:
        """The row number of row `i` of each segment. If one is too short, the graph's `take` raises, without `name`."""
        at = self._offsets[:-1] + i if i >= 0 else self._offsets[1:] + i
        needed = i + 1 if i >= 0 else -i
        found: ndarray = np.where(self._sizes >= needed, at, self._rows)
        return found

    def columns(self) -> tuple[ndarray, ndarray]:
        """Row numbers ordered by the position in the segment, and the offsets of the positions."""
        counts = np.sum(self._sizes > np.expand_dims(self._all_steps(), 1), axis=1, dtype="int64")
        start = np.zeros(1, dtype="int64", device=self._sizes.device)
        offsets = np.concatenate([start, np.cumsum(counts, dtype="int64")])
        return np.argsort(self.row_positions, kind="stable"), offsets

    @classmethod
    def joined(cls, partitions: Sequence[Partition]) -> Partition:
        """The segments of several partitions, one partition after the other."""
        sizes = np.concatenate([partition.sizes for partition in partitions])
        return cls(sizes, sum(partition.total for partition in partitions))

    @classmethod
    def beside(cls, partitions: Sequence[Partition]) -> tuple[Partition, ndarray]:
        """Segments of one of each partition, and the order of the rows, which are given partition by partition."""
        sizes, start = partitions[0].sizes, partitions[0].offsets
        for partition in partitions[1:]:
            sizes, start = sizes + partition.sizes, start + partition.offsets
        at, positions = start[:-1], []
        for partition in partitions:
            positions.append(partition.expand(at) + partition.row_positions)
            at = at + partition.sizes
        made = cls(sizes, sum(partition.total for partition in partitions))
        return made, np.argsort(np.concatenate(positions), kind="stable")

    def is_even(self) -> bool:
        """False: the lengths are not known."""
        return False

    def has_empty(self) -> bool:
        """False: rows without elements are found when the graph runs, see `without_empty`."""
        return False

    def without_empty(self, values: ndarray) -> ndarray:
        """The same values, one for each segment; the graph raises IndexError if a segment has no row."""
        own = np.arange(self.count, dtype="int64", device=self._sizes.device)
        found: ndarray = np.take(values, np.where(self._sizes > 0, own, self.count), axis=0)
        return found

    def same(self, other: Partition) -> bool:
        """Whether both are the same argument."""
        return self is other or (isinstance(other, TracedPartition) and other._sizes is self._sizes)

    def check_same(self, other: Partition, name: str) -> None:
        """Refuse offsets that are another argument of the graph, whose values are not known."""
        if not self.same(other):
            raise error.UnsupportedError(
                f"{name}: in a graph for a file two ragged arguments cannot be known to have the same lengths\n"
                "  hint: join their values along a uniform axis, to one argument"
            )

    __hash__ = object.__hash__
