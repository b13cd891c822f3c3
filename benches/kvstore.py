"""Sums of float32 values over two processes: a store's `pushpull`, its sums alone, and MPI's own reduction.

The bench starts itself in two processes. Each side takes its turns in a fixed number, because the calls are collective.
"""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy

import mxnet as mx
from mxnet import np

NUM_RANKS = 2
TURNS = 31
SIZES = (1_000, 100_000, 1_000_000, 10_000_000)


def times_ms(sides: list[Callable[[], object]]) -> list[list[float]]:
    """Milliseconds of each turn of each side."""
    found: list[list[float]] = [[] for _ in sides]
    for side in sides:
        side()
    for _ in range(TURNS):
        for side, column in zip(sides, found, strict=True):
            start = time.perf_counter()
            side()
            column.append((time.perf_counter() - start) * 1e3)
    return found


def columns(store: Any, comm: Any, size: int) -> list[list[float]]:
    """The times of values of one size."""
    value, out = np.ones(size), np.zeros(size)
    store.init(size, value)
    sent, received = numpy.ones(size, "float32"), numpy.empty(size, "float32")
    found = times_ms(
        [
            lambda: store.pushpull(size, value, out=out),
            lambda: store._sums("sums", {size: [value]}),
            lambda: comm.Allreduce(sent, received),
        ]
    )
    numpy.testing.assert_array_equal(out.asnumpy(), received)
    return found


def measure() -> None:
    """The table, printed by the first rank."""
    from mpi4py import MPI

    store = mx.kv.create("dist_sync")
    comm = MPI.COMM_WORLD.Dup()
    if store.rank == 0:
        print(f"{store.num_workers} ranks, {os.cpu_count()} processors; median and best of {TURNS} turns in ms")
        print(f"{'elements':>10} {'pushpull':>17} {'sums':>17} {'MPI.Allreduce':>17}", flush=True)
    for size in SIZES:
        found = columns(store, comm, size)
        cells = "".join(f" {statistics.median(column):>8.2f} {min(column):>8.2f}" for column in found)
        if store.rank == 0:
            print(f"{size:>10}{cells}", flush=True)


if __name__ == "__main__":
    if "--rank" in sys.argv:
        measure()
    else:
        command = [sys.executable, "-m", "mxnet.launch", "-n", str(NUM_RANKS), __file__, "--rank"]
        raise SystemExit(subprocess.call(command))
