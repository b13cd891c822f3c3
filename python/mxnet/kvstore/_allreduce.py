"""Sums over all processes, the same bits on each rank and in each run.

Values of one dtype are sent together, in buckets. Each rank adds up one segment of a bucket, in the order of the ranks,
and then sends its sum to all others:

    rank 0:  a0 | b0      all to all      rank 0:  a0 + a1 -> a       gather      a | b
    rank 1:  a1 | b1    ───────────────►  rank 1:  b0 + b1 -> b    ────────────►  a | b

Half precision is added in float32, and the sum is rounded once. The reductions of MPI know no bfloat16, add half
precision in half precision, and their order of additions is up to the implementation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as onp

from mxnet import autograd
from mxnet import numpy as np
from mxnet.base import dtype_name
from mxnet.error import UnsupportedError
from mxnet.kvstore._processes import Operation, Processes
from mxnet.numpy import ndarray

__all__ = ["Allreduce", "described", "host_memory"]

# Largest size of a bucket of several values. A bucket's messages travel while the next one is filled.
_BUCKET_BYTES = 4 << 20

Key = int | str


def described(what: str, key: Key, value: Any) -> str:
    """A value in one line, for comparison with those of other ranks.

    Parameters
    ----------
    what : str
        The operation.
    key : int or str
    value : ndarray or row_sparse_array

    Returns
    -------
    str
    """
    kind = "" if isinstance(value, ndarray) else " row_sparse"
    return f"{what} of key {key!r}: {dtype_name(value.dtype)} {tuple(value.shape)}{kind}"


def host_memory(num_bytes: int) -> tuple[ndarray, onp.ndarray[Any, Any]]:
    """Memory of the host, for MPI.

    Parameters
    ----------
    num_bytes : int

    Returns
    -------
    tuple of ndarray and numpy.ndarray, each of uint8, shape (num_bytes,)
        They share the memory.
    """
    memory = onp.zeros(num_bytes, onp.uint8)
    return np.frombuffer(memory, dtype="uint8"), memory


class _Bucket:
    """Values that are added up together.

    Parameters
    ----------
    processes : Processes
    dtype : str
    positions : sequence of int
        Which values of the operation these are.
    shapes : sequence of tuple of int
        Their shapes; none has 0 elements.
    """

    def __init__(
        self, processes: Processes, dtype: str, positions: Sequence[int], shapes: Sequence[tuple[int, ...]]
    ) -> None:
        self._processes = processes
        self.positions = positions
        size, rank = processes.size, processes.rank
        ends = onp.cumsum([math.prod(shape) for shape in shapes]).tolist()
        segment = -(-ends[-1] // size)
        itemsize = np.zeros(0, dtype=dtype).itemsize
        memory, self._host = host_memory(size * segment * itemsize)
        received, self._received = host_memory(self._host.size)
        array = memory.view(dtype)
        starts = [0, *ends[:-1]]
        self.parts = [array[start:end].reshape(shape) for start, end, shape in zip(starts, ends, shapes, strict=True)]
        self._mine = array[rank * segment : (rank + 1) * segment]
        self._rows = [received.view(dtype)[i * segment : (i + 1) * segment] for i in range(size)]
        self._is_half = dtype in ("float16", "bfloat16")
        self._request: Any = None

    @property
    def num_bytes(self) -> int:
        """Size of the buffers."""
        return 2 * self._host.nbytes

    def start(self, values: Sequence[ndarray]) -> None:
        """Wait for the values, one after the other, and send their segments.

        Parameters
        ----------
        values : sequence of ndarray
            Those of the whole operation.
        """
        for position, part in zip(self.positions, self.parts, strict=True):
            part[...] = values[position].to_device(part.device)
        self._request = self._processes.first.Ialltoall(self._host, self._received)

    def is_received(self) -> bool:
        """Whether the segments of this rank have arrived."""
        return bool(self._request.Test())

    def add_up(self) -> None:
        """Add up the segments that have arrived, and send the sum."""
        first, *others = self._rows
        if self._is_half:
            total = first.astype("float32")
            for row in others:
                total += row
            self._mine[...] = total
        else:
            self._mine[...] = first
            for row in others:
                self._mine += row
        self._request = self._processes.second.Iallgather(self._processes.mpi.IN_PLACE, self._host)

    def finish(self) -> None:
        """Wait until the sums of all segments are there, in `parts`."""
        self._processes.wait(self._request)


class Allreduce:
    """Sums of values with the same keys, dtypes and shapes, again and again.

    Parameters
    ----------
    processes : Processes
    what : str
        The operation, for messages.
    keys : sequence of int or str
    values : sequence of ndarray
        Like those of the calls.

    Raises
    ------
    mxnet.error.UnsupportedError
        If values of a dtype cannot be added up.
    """

    def __init__(self, processes: Processes, what: str, keys: Sequence[Key], values: Sequence[ndarray]) -> None:
        self._processes = processes
        self.operation = Operation(tuple(described(what, key, value) for key, value in zip(keys, values, strict=True)))
        for key, value in zip(keys, values, strict=True):
            if value.dtype == bool:
                raise UnsupportedError(f"{what}: values of key {key!r} are bool, and sums need numbers")
        self._buckets: list[_Bucket] = []
        # The gradients of the last layers are computed first.
        open_buckets: dict[str, list[int]] = {}
        for position in reversed(range(len(values))):
            value = values[position]
            if not value.size:
                continue
            name = dtype_name(value.dtype)
            bucket = open_buckets.setdefault(name, [])
            if bucket and sum(values[i].nbytes for i in bucket) + value.nbytes > _BUCKET_BYTES:
                self._add_bucket(name, bucket, values)
                bucket = open_buckets[name] = []
            bucket.append(position)
        for name, bucket in open_buckets.items():
            if bucket:
                self._add_bucket(name, bucket, values)

    @property
    def num_bytes(self) -> int:
        """Size of the buffers."""
        return sum(bucket.num_bytes for bucket in self._buckets)

    def _add_bucket(self, dtype: str, positions: list[int], values: Sequence[ndarray]) -> None:
        self._buckets.append(_Bucket(self._processes, dtype, positions, [values[i].shape for i in positions]))

    def __call__(self, values: Sequence[ndarray]) -> list[ndarray]:
        """The sums over all ranks.

        Parameters
        ----------
        values : sequence of ndarray

        Returns
        -------
        list of ndarray
            On the CPU, of the shapes and dtypes of `values`. The next call overwrites them.

        Raises
        ------
        DistributedError
            If the ranks do not call the same operation with the same keys, dtypes and shapes, or one has ended.
        """
        self._processes.agree(self.operation)
        sums = [value if not value.size else None for value in values]
        with self._processes.communicating(), autograd.pause():
            # Both kinds of messages are sent in the order of the buckets, on each rank.
            num_added = 0
            for number, bucket in enumerate(self._buckets):
                bucket.start(values)
                while num_added < number and self._buckets[num_added].is_received():
                    self._buckets[num_added].add_up()
                    num_added += 1
            for bucket in self._buckets[num_added:]:
                self._processes.wait_until(bucket.is_received)
                bucket.add_up()
            for bucket in self._buckets:
                bucket.finish()
                for position, part in zip(bucket.positions, bucket.parts, strict=True):
                    sums[position] = part
        return sums  # type: ignore[return-value]  # each value is in a bucket, or empty
