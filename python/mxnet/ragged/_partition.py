"""Partitions of rows into segments: offsets, checked once, and values derived from them."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as onp

from mxnet import _core, error
from mxnet._core import ndarray

_op = _core.namespaces["op"]


class Partition:
    """Segments of consecutive rows: segment ``s`` is the rows ``offsets[s]`` to ``offsets[s + 1]``.

    The offsets are kept twice: as an array for the operators, and on the host, where shapes are made of them.
    """

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
    def places(self) -> Any:
        """The position of each row in its segment, on the host."""
        return onp.arange(self.total, dtype=onp.int64) - onp.repeat(self.host[:-1], self.lengths)

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

    def same(self, other: Partition) -> bool:
        """Whether both partition rows in the same way."""
        return self is other or onp.array_equal(self.host, other.host)

    def check_same(self, other: Partition, name: str) -> None:
        """An error for another partition, which names the first difference of the offsets."""
        if self is other:
            return
        if isinstance(other, TracedPartition):
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
        return chosen, onp.repeat(self.host[rows], chosen.lengths) + chosen.places


class TracedPartition(Partition):
    """Segments of any lengths in a graph for a file: the lengths are an argument of it, not known on the host.

    Parameters
    ----------
    sizes : ndarray, shape (count,), int64
        Rows of each segment.
    rows : int
        Number of rows.
    """

    def __init__(self, sizes: ndarray, rows: int) -> None:
        from mxnet import numpy as np

        self._sizes = sizes
        self._rows = rows
        start = np.zeros(1, dtype="int64", device=sizes.device)
        self._offsets = np.concatenate([start, np.cumsum(sizes, dtype="int64")])

    @property
    def host(self) -> Any:  # type: ignore[override]  # there is nothing to write to
        """Not known: raises `UnsupportedError`."""
        raise error.UnsupportedError(
            "export: a graph in a file is for ragged arrays of any lengths, and this function makes shapes or "
            "positions of the lengths of the rows\n  hint: export the part of the network that does not"
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
    def offsets(self) -> ndarray:
        """The offsets, computed in the graph."""
        return self._offsets

    @property
    def sizes(self) -> ndarray:
        """The lengths, an argument of the graph."""
        return self._sizes

    def has_empty(self) -> bool:
        """False: rows without elements are not known to a graph."""
        return False

    def same(self, other: Partition) -> bool:
        """Whether both are the same argument."""
        return self is other or (isinstance(other, TracedPartition) and other._sizes is self._sizes)

    def check_same(self, other: Partition, name: str) -> None:
        """Refuse offsets that are another argument of the graph, whose values are not known."""
        if not self.same(other):
            raise error.UnsupportedError(
                f"{name}: in a graph for a file two ragged arguments cannot be told to have the same lengths\n"
                "  hint: join their values along a uniform axis, to one argument"
            )

    __hash__ = object.__hash__
