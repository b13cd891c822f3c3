"""Partitions of rows into segments: offsets, checked once, and values derived from them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as onp

from mxnet import _core, error
from mxnet._core import ndarray

_op = _core.namespaces["op"]


def _index(positions: Any) -> ndarray:
    made: ndarray = _core.array(onp.ascontiguousarray(positions), dtype="int64")
    return made


class Partition:
    """Segments of consecutive rows: segment ``s`` is the rows ``offsets[s]`` to ``offsets[s + 1]``.

    The offsets are kept twice: as an array for the operators, and on the host, where shapes are made of them.
    """

    is_traced = False  # whether the offsets are unknown: in graphs for files, or because they follow from values
    is_computed = False  # whether the offsets follow from values in a compiled function

    def __init__(self, host: Any, rows: int | None = None, what: str = "offsets") -> None:
        found = onp.asarray(host.asnumpy() if isinstance(host, ndarray) else host)
        if found.size and found.dtype.kind not in "iu":
            raise error.DTypeError(f"ragged: {what} must be integers, found {found.dtype}")
        if found.ndim != 1 or not found.size:
            raise error.ShapeError(
                f"ragged: {what} must be a vector with an element for each segment and one more, "
                f"found shape {found.shape}"
            )
        if found.dtype == onp.uint64 and found.max() > onp.iinfo(onp.int64).max:
            raise error.OverflowError(f"ragged: {what} must fit int64, found {found.max()}")
        self.host = onp.ascontiguousarray(found, dtype=onp.int64)
        if self.host is host:
            self.host = self.host.copy()
        self.host.flags.writeable = False
        if self.host[0] != 0:
            raise error.ValueError(f"ragged: {what} must start with 0, found {self.host[0]}")
        falls = onp.flatnonzero(self.host[1:] < self.host[:-1])
        if falls.size:
            at = int(falls[0]) + 1
            raise error.ValueError(
                f"ragged: {what} must not decrease: element {at} is {self.host[at]}, after {self.host[at - 1]}"
            )
        if rows is not None and self.total != rows:
            raise error.ValueError(f"ragged: the last of {what} is {self.total}, but there are {rows} rows")

    def __eq__(self, other: object) -> bool:
        return self.same(other) if isinstance(other, Partition) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.host.tobytes())

    @classmethod
    def of_lengths(cls, lengths: Any, rows: int | None = None) -> Partition:
        """Segments with these lengths, which must not be negative."""
        lengths = onp.asarray(lengths, dtype=onp.int64)
        if lengths.ndim != 1:
            raise error.ShapeError(f"ragged: lengths must be a vector, found shape {lengths.shape}")
        if (lengths < 0).any():
            at = int(onp.flatnonzero(lengths < 0)[0])
            raise error.ValueError(f"ragged: lengths must not be negative: element {at} is {lengths[at]}")
        offsets = onp.zeros(len(lengths) + 1, dtype=onp.int64)
        onp.cumsum(lengths, out=offsets[1:])
        return cls(offsets, rows)

    @classmethod
    def even(cls, count: int, length: int) -> Partition:
        """Segments of equal length."""
        return cls(onp.arange(count + 1, dtype=onp.int64) * length)

    @property
    def count(self) -> int:
        """Number of segments."""
        return len(self.host) - 1

    @property
    def total(self) -> int:
        """Number of rows."""
        return int(self.host[-1])

    @cached_property
    def offsets(self) -> ndarray:
        """The offsets as an int64 array. In a compiled function they are constants."""
        made: ndarray = _core.outside_trace(lambda: _core.array(self.host, dtype="int64"))
        return made

    @cached_property
    def lengths(self) -> Any:
        """Number of rows of each segment, on the host."""
        return onp.diff(self.host)

    @cached_property
    def longest(self) -> int:
        """Number of rows of the longest segment; 0 if there are none."""
        return int(self.lengths.max()) if self.count else 0

    @cached_property
    def owners(self) -> Any:
        """The segment of each row, on the host."""
        return onp.repeat(onp.arange(self.count, dtype=onp.int64), self.lengths)

    @cached_property
    def positions(self) -> Any:
        """The position of each row in its segment, on the host."""
        return onp.arange(self.total, dtype=onp.int64) - onp.repeat(self.host[:-1], self.lengths)

    @property
    def row_owners(self) -> ndarray:
        """The segment of each row, int64."""
        return _index(self.owners)

    @property
    def row_starts(self) -> ndarray:
        """The first row of the segment of each row, int64."""
        return _index(onp.repeat(self.host[:-1], self.lengths))

    @property
    def row_positions(self) -> ndarray:
        """The position of each row in its segment, int64."""
        return _index(self.positions)

    @property
    def mirrored(self) -> Any:
        """Row numbers with each segment reversed, on the host."""
        return onp.repeat(self.host[1:] - 1, self.lengths) - self.positions

    @property
    def row_mirrored(self) -> ndarray:
        """Row numbers with each segment reversed, int64."""
        return _index(self.mirrored)

    def nth(self, i: int, name: str) -> ndarray:
        """The row number of row `i` of each segment, from the end if negative; an error if a segment is too short."""
        bad = onp.flatnonzero((i >= self.lengths) | (i < -self.lengths))
        if bad.size:
            raise error.IndexError(
                f"{name}: index {i} is out of bounds for row {bad[0]}, which has {self.lengths[bad[0]]} elements"
            )
        return _index(self.host[:-1] + onp.where(i < 0, self.lengths + i, i))

    def columns(self) -> tuple[ndarray, ndarray]:
        """Row numbers ordered by the position in the segment, and the offsets of the positions."""
        counts = onp.bincount(self.positions, minlength=self.longest) if self.total else onp.zeros(0, dtype=onp.int64)
        order = onp.argsort(self.positions, kind="stable")
        return _index(order), _index(onp.concatenate([[0], onp.cumsum(counts)]))

    @classmethod
    def joined(cls, partitions: Sequence[Partition]) -> Partition:
        """The segments of several partitions, one partition after the other."""
        return cls.of_lengths(onp.concatenate([partition.lengths for partition in partitions]))

    def is_even(self) -> bool:
        """Whether all segments have the same length."""
        return bool((self.lengths == self.lengths[0]).all()) if self.count else True

    @cached_property
    def sizes(self) -> ndarray:
        """Rows of each segment as an int64 array, which is the same in each call of a compiled function."""
        made: ndarray = _core.outside_trace(lambda: _core.array(self.lengths, dtype="int64"))
        return made

    def has_empty(self) -> bool:
        """Whether a segment is known to have no rows."""
        return bool((self.lengths == 0).any())

    def without_empty(self, values: ndarray) -> ndarray:
        """The same values, one for each segment, which all have rows: see `has_empty`."""
        return values

    def same(self, other: Partition) -> bool:
        """Whether both partition rows in the same way."""
        return self is other or onp.array_equal(self.host, other.host)

    def check_same(self, other: Partition, name: str) -> None:
        """An error for another partition, which names the first difference of the offsets."""
        if self is other:
            return
        if other.is_traced:
            return other.check_same(self, name)
        if self.count != other.count:
            raise error.ShapeError(f"{name}: ragged arrays of {self.count} and {other.count} rows")
        differ = onp.flatnonzero(self.host != other.host)
        if differ.size:
            at = int(differ[0])
            raise error.ShapeError(
                f"{name}: the raggedness differs: offsets first differ at element {at}, "
                f"{self.host[at]} and {other.host[at]}: row {at - 1} has {self.lengths[at - 1]} elements "
                f"in one operand and {other.lengths[at - 1]} in the other"
            )

    def expand(self, x: ndarray) -> ndarray:
        """One row for each row of a segment: ``(count, ...)`` -> ``(total, ...)``."""
        found: ndarray = _op["ragged_expand"](x, self.offsets, self.total)
        return found

    def taken(self, rows: Any) -> tuple[Partition, Any]:
        """The segments with these indices, and the indices of their rows."""
        rows = onp.asarray(rows, dtype=onp.int64)
        chosen = Partition.of_lengths(self.lengths[rows])
        return chosen, onp.repeat(self.host[rows], chosen.lengths) + chosen.positions
