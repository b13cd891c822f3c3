"""Who shares a store: one process, or all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as onp

from mxnet import autograd
from mxnet import numpy as np
from mxnet.base import dtype_name
from mxnet.device import cpu
from mxnet.kvstore._allreduce import Allreduce, described, host_memory
from mxnet.kvstore._compression import Compression
from mxnet.kvstore._processes import Operation, Processes
from mxnet.numpy import ndarray
from mxnet.sparse import row_sparse_array

__all__ = ["AllProcesses", "Communicator", "move_rows", "sum_rows"]

Key = int | str
Value = Any
"""An `ndarray` or a `row_sparse_array`."""

# Buffers of sets of keys are kept up to this size together; those of the last set always are.
_KEPT_BYTES = 256 << 20


def move_rows(array: row_sparse_array, device: Any) -> row_sparse_array:
    """A row-sparse array on a device; the same object if it is there.

    Parameters
    ----------
    array : row_sparse_array
    device : Device

    Returns
    -------
    row_sparse_array
    """
    if array.device == device:
        return array
    return row_sparse_array._of(array.data.to_device(device), array.indices.to_device(device), array.shape)


def sum_rows(arrays: Sequence[row_sparse_array], device: Any) -> row_sparse_array:
    """The sum of row-sparse arrays on one device, added in their order. It holds the rows that any of them holds.

    Half precision is added in float32 and rounded once.

    Parameters
    ----------
    arrays : sequence of row_sparse_array, each of the same shape and dtype
    device : Device

    Returns
    -------
    row_sparse_array
        The array itself if there is one, on `device`.
    """
    moved = [move_rows(array, device) for array in arrays]
    if len(moved) == 1:
        return moved[0]
    with autograd.pause():
        first = moved[0]
        name = dtype_name(first.dtype)
        # Not every device finds distinct numbers.
        indices = [array.indices.to_device(cpu()) for array in arrays]
        rows = np.unique(np.concatenate(indices))
        total = np.zeros(
            (rows.size, *first.shape[1:]),
            dtype="float32" if name in ("float16", "bfloat16") else name,
            device=device,
        )
        for array, found in zip(moved, indices, strict=True):
            if found.size:
                at = np.searchsorted(rows, found).to_device(device)
                total[at] = total[at] + array.data
        return row_sparse_array._of(total.astype(name), rows.to_device(device), first.shape)


class Communicator:
    """One process, which shares its store with no other.

    Parameters
    ----------
    type : str
        Name of the kind of store.
    """

    rank = 0
    num_workers = 1

    def __init__(self, type: str) -> None:
        self.type = type

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.type!r}, rank {self.rank} of {self.num_workers})"

    def agree(self, lines: Sequence[str], payload: bytes = b"") -> list[bytes]:
        """Check that all ranks do the same, and gather a payload from each; see `Processes.agree`.

        Parameters
        ----------
        lines : sequence of str
        payload : bytes

        Returns
        -------
        list of bytes
        """
        return [payload]

    def first_values(self, what: str, keys: Sequence[Key], values: Sequence[Value]) -> list[Value]:
        """Copies of the values of rank 0.

        Parameters
        ----------
        what : str
            The operation, for messages.
        keys : sequence of int or str
        values : sequence of ndarray or row_sparse_array

        Returns
        -------
        list of ndarray or row_sparse_array
        """
        return [value.copy() for value in values]

    def total(
        self, what: str, keys: Sequence[Key], values: Sequence[Value], compression: Compression | None
    ) -> list[Value]:
        """Sums over the ranks.

        Parameters
        ----------
        what : str
            The operation, for messages.
        keys : sequence of int or str
        values : sequence of ndarray or row_sparse_array
        compression : Compression or None

        Returns
        -------
        list of ndarray or row_sparse_array
            The next call may overwrite them. They may be `values` themselves.
        """
        if compression is None or "dist" not in self.type:
            return list(values)
        return [
            compression.quantize(key, value) if isinstance(value, ndarray) else value
            for key, value in zip(keys, values, strict=True)
        ]

    def barrier(self) -> None:
        """Wait for all ranks."""


class AllProcesses(Communicator):
    """All processes of the program, which keep equal copies of the values.

    Parameters
    ----------
    type : str
    processes : Processes
    """

    def __init__(self, type: str, processes: Processes) -> None:
        super().__init__(type)
        self._processes = processes
        self.rank = processes.rank
        self.num_workers = processes.size
        self._plans: dict[Any, Allreduce] = {}

    def agree(self, lines: Sequence[str], payload: bytes = b"") -> list[bytes]:
        return self._processes.agree(Operation(tuple(lines)), payload)

    def first_values(self, what: str, keys: Sequence[Key], values: Sequence[Value]) -> list[Value]:
        lines = [described(what, key, value) for key, value in zip(keys, values, strict=True)]
        counts = onp.array([-1 if isinstance(value, ndarray) else value.indices.size for value in values], onp.int64)
        found = self.agree(lines, counts.tobytes())
        nums_rows = onp.frombuffer(found[0], onp.int64).tolist()
        return [self._first_value(value, n) for value, n in zip(values, nums_rows, strict=True)]

    def _first_value(self, value: Value, num_rows: int) -> Value:
        if isinstance(value, ndarray):
            return self._sent(value, value.shape, dtype_name(value.dtype), value.device)
        indices = self._sent(value.indices, (num_rows,), "int64", value.device)
        data = self._sent(value.data, (num_rows, *value.shape[1:]), dtype_name(value.dtype), value.device)
        return row_sparse_array._of(data, indices, value.shape)

    def _sent(self, value: ndarray, shape: tuple[int, ...], dtype: str, device: Any) -> ndarray:
        """What this array is on rank 0, where it has a shape of its own."""
        itemsize = np.zeros(0, dtype=dtype).itemsize
        memory, host = host_memory(int(onp.prod(shape, dtype=onp.int64)) * itemsize)
        if not host.size:
            return np.zeros(shape, dtype=dtype, device=device)
        array = memory.view(dtype).reshape(shape)
        with autograd.pause():
            if self.rank == 0:
                array[...] = value.to_device(array.device)
            self._processes.broadcast(host)
            return np.array(array, dtype=dtype, device=device)

    def total(
        self, what: str, keys: Sequence[Key], values: Sequence[Value], compression: Compression | None
    ) -> list[Value]:
        dense = [i for i, value in enumerate(values) if isinstance(value, ndarray)]
        sums: list[Value] = [None] * len(values)
        for chosen in (dense, sorted(set(range(len(values))) - set(dense))):
            if not chosen:
                continue
            some = [keys[i] for i in chosen], [values[i] for i in chosen]
            if chosen is not dense:
                found = self._rows_total(what, *some)
            elif compression is None:
                found = self._dense_total(what, *some)
            else:
                found = self._compressed_total(what, *some, compression)
            for i, value in zip(chosen, found, strict=True):
                sums[i] = value
        return sums

    def _dense_total(self, what: str, keys: Sequence[Key], values: Sequence[ndarray]) -> list[Value]:
        form = (what, *keys, *((value.shape, dtype_name(value.dtype)) for value in values))
        plan = self._plans.pop(form, None)
        if plan is None:
            plan = Allreduce(self._processes, what, keys, values)
            # The set that was used last is the last to go.
            while self._plans and plan.num_bytes + sum(kept.num_bytes for kept in self._plans.values()) > _KEPT_BYTES:
                self._plans.pop(next(iter(self._plans)))
        self._plans[form] = plan
        return list(plan(values))

    def _compressed_total(
        self, what: str, keys: Sequence[Key], values: Sequence[ndarray], compression: Compression
    ) -> list[Value]:
        lines = [described(f"compressed {what}", key, value) for key, value in zip(keys, values, strict=True)]
        found = self.agree([*lines, repr(compression)])
        quantized = [compression.quantize(key, value) for key, value in zip(keys, values, strict=True)]
        with self._processes.communicating(), autograd.pause():
            codes = onp.concatenate([compression.pack(value) for value in quantized])
            lengths = [codes.size] * len(found)
            received = self._processes.gather_bytes(self._processes.first, codes.tobytes(), lengths)
            sums, start = [], 0
            for value in values:
                end = start + compression.num_bytes(value.size)
                total = onp.zeros(value.size, onp.float32)
                for part in received:
                    total += compression.unpack(onp.frombuffer(part, onp.uint8)[start:end], value.size)
                sums.append(np.array(total.reshape(value.shape), dtype="float32", device=cpu()))
                start = end
            return sums

    def _rows_total(self, what: str, keys: Sequence[Key], values: Sequence[row_sparse_array]) -> list[Value]:
        lines = [described(what, key, value) for key, value in zip(keys, values, strict=True)]
        counts = onp.array([value.indices.size for value in values], onp.int64)
        found = [onp.frombuffer(part, onp.int64) for part in self.agree(lines, counts.tobytes())]
        sums = []
        with self._processes.communicating(), autograd.pause():
            for i, value in enumerate(values):
                name = dtype_name(value.dtype)
                width = int(onp.prod(value.shape[1:], dtype=onp.int64)) * np.zeros(0, dtype=name).itemsize
                nums = [int(part[i]) for part in found]
                indices = self._gathered(value.indices, 8, nums)
                data = self._gathered(value.data, width, nums)
                parts = [
                    row_sparse_array._of(
                        rows.view(name).reshape(n, *value.shape[1:]), at.view("int64").reshape(n), value.shape
                    )
                    for rows, at, n in zip(data, indices, nums, strict=True)
                ]
                sums.append(sum_rows(parts, cpu()))
        return sums

    def _gathered(self, mine: ndarray, width: int, nums: Sequence[int]) -> list[ndarray]:
        """The bytes of an array of each rank, `width` for each of its rows."""
        memory, host = host_memory(mine.size * mine.itemsize)
        if host.size:
            memory.view(dtype_name(mine.dtype)).reshape(mine.shape)[...] = mine.to_device(memory.device)
        found = self._processes.gather_bytes(self._processes.first, host.tobytes(), [n * width for n in nums])
        return [np.array(onp.frombuffer(part, onp.uint8), dtype="uint8") for part in found]

    def barrier(self) -> None:
        self._processes.barrier()
