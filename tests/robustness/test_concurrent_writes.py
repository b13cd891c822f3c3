"""Elements, positions and small arrays that are read while they are written, by this thread or by others."""

import threading
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import mxnet as mx


def test_a_thread_sees_its_own_writes() -> None:
    x = mx.np.zeros(1 << 22)
    for turn in range(1, 20):
        x[...] = turn
        assert float(x[-1]) == turn
        x += 0.5
        assert x.item(-1) == turn + 0.5
        x[:] = x * 2
        assert bool(x[-1] == 2 * turn + 1)
        x[-2] = x[-1]
        y = x + 1
        assert y[numpy.array([-1, -2])].tolist() == [2 * turn + 2] * 2


def test_positions_that_are_written_are_waited_for() -> None:
    positions = mx.np.zeros(1 << 22, "int64")
    chosen = positions[-4:]
    x = mx.np.arange(8)
    for turn in range(8):
        positions[...] = turn
        assert x[chosen].tolist() == [turn] * 4
        positions[...] = turn - 8
        x[chosen] = 100.0 + turn
        assert float(x[turn]) == 100 + turn


def read_beside(write: Callable[[int], None], read: Callable[[], None]) -> None:
    """Calls `read` many times while another thread writes; whatever fails is raised here."""
    is_over = threading.Event()

    def loop() -> None:
        turn = 0
        while not is_over.is_set():
            write(turn)
            turn += 1

    writer = threading.Thread(target=loop)
    writer.start()
    try:
        for _ in range(20):
            read()
    finally:
        is_over.set()
        writer.join()


def test_elements_are_read_whole() -> None:
    n = 1 << 17
    x = mx.np.zeros(n, "complex128")

    def write(turn: int) -> None:
        x[...] = complex(turn, turn)

    def read() -> None:
        value = complex(x[n - 1])
        assert value.real == value.imag
        value = x.item(0)
        assert value.real == value.imag

    read_beside(write, read)


def test_positions_are_read_whole() -> None:
    # Written beside Python's lock, and of two cache lines.
    whole = mx.np.zeros(1 << 18, "int64")
    positions = whole[-16:]
    x = mx.np.arange(8)
    y = mx.np.zeros(8, "int64")

    def write(turn: int) -> None:
        whole[...] = turn % 2 * 3

    def read() -> None:
        assert len(set(x[positions].tolist())) == 1
        y[...] = 0
        y[positions] = 1
        assert int(y.sum()) == 1

    write(0)
    read_beside(write, read)


def test_overwritten_values_are_refused_however_often() -> None:
    def gradient(writes: int) -> Any:
        x = mx.np.array([1.0, 2.0])
        x.attach_grad()
        with mx.autograd.record():
            y = mx.np.exp(x)
            z = (y * 2).sum()
        with mx.autograd.pause():
            for _ in range(writes):
                y[0] = 5.0
                y[...] = y * 3
        z.backward()
        return x.grad

    numpy.testing.assert_allclose(gradient(0).asnumpy(), 2 * numpy.exp([1.0, 2.0]), rtol=1e-6)
    for writes in (1, 2, 3):
        with pytest.raises(RuntimeError, match="overwritten in place"):
            gradient(writes)
