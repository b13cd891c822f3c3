"""Resident memory, threads and descriptors of long loops: steps of training, epochs of loaders, views, exceptions.

`python tests/soak/leaks.py [SCALE]` runs 100,000 steps, 10,000 epochs, 1,000,000 views and exceptions, times `SCALE`
(1). The exit status is 1 if memory grows by more than 1 % after warm-up, or threads
or descriptors change.
"""

import gc
import os
import sys
from collections.abc import Callable

import mxnet as mx
from mxnet import autograd, gluon, np


def resident() -> int:
    """Bytes of this process in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _steps() -> Callable[[], None]:
    net = gluon.nn.Sequential()
    net.add(gluon.nn.Dense(16, activation="relu"), gluon.nn.Dense(2))
    net.initialize()
    trainer = gluon.Trainer(net.collect_params(), "adam")
    loss, x, y = gluon.loss.SoftmaxCrossEntropyLoss(), np.ones((8, 4)), np.zeros((8,))

    def step() -> None:
        with autograd.record():
            value = loss(net(x), y)
        value.backward()
        trainer.step(8)

    return step


def _epochs() -> Callable[[], None]:
    data = gluon.data.ArrayDataset(np.arange(32.0).reshape(16, 2), np.arange(16))
    loader = gluon.data.DataLoader(data, batch_size=4, shuffle=True)

    def epoch() -> None:
        for batch in loader:
            assert len(batch) == 2

    return epoch


def _views() -> Callable[[], None]:
    x = np.ones((30, 40))

    def view() -> None:
        assert x[3:, ::2].T.reshape(-1)[5:].ndim == 1

    return view


def _exceptions() -> Callable[[], None]:
    x, y = np.ones((3, 4)), np.ones((5,))

    def fail() -> None:
        try:
            x + y
        except mx.error.ShapeError:
            return
        raise SystemExit("no error")

    return fail


LOOPS = {"steps": (_steps, 100_000), "epochs": (_epochs, 10_000), "views": (_views, 1_000_000)}
LOOPS["exceptions"] = (_exceptions, 1_000_000)


def state() -> tuple[int, int, int]:
    """Resident bytes, threads, descriptors."""
    gc.collect()
    mx.waitall()
    return resident(), len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))


def main() -> int:
    """Run the loops; the exit status."""
    scale = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    is_bad = False
    for name, (make, count) in LOOPS.items():
        body, count = make(), int(count * scale)
        for _ in range(max(count // 10, 100)):
            body()
        before = state()
        for _ in range(count):
            body()
        after = state()
        growth = after[0] / before[0] - 1
        is_bad |= growth > 0.01 or before[1:] != after[1:]
        print(
            f"{name}: {count} times, {before[0] / 1e6:.1f} MB, grown by {100 * growth:.2f} %, "
            f"threads {before[1]} to {after[1]}, descriptors {before[2]} to {after[2]}",
            flush=True,
        )
    return int(is_bad)


if __name__ == "__main__":
    raise SystemExit(main())
