"""What the profiler adds to a call: small operators, elements, a training step and a compiled function, off and on.

Off and on take turns in one run; the results are compared first. The time of a call is the median of the turns.
"""

import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy

import mxnet as mx
from mxnet import autograd, gluon, np, profiler

TURNS = 31
TURN_S = 0.01


def cases() -> dict[str, Callable[[], Any]]:
    x = np.ones((4,))
    big = np.ones((1000, 1000))
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(64, activation="relu"), gluon.nn.Dense(10))
    net.initialize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.0})
    data, target, loss = np.ones((16, 32)), np.zeros((16, 10)), gluon.loss.L2Loss()

    def step() -> Any:
        with autograd.record():
            value = loss(net(data), target)
        value.backward()
        trainer.step(16)
        return value

    @mx.jit
    def function(x: Any) -> Any:
        return np.exp(np.matmul(x, x)).sum(axis=0)

    square = np.ones((8, 8))
    return {
        "x + x, 4 numbers": lambda: x + x,
        "np.exp, 4 numbers": lambda: np.exp(x),
        "matmul, 8 x 8": lambda: np.matmul(square, square),
        "x + x, 10^6 numbers": lambda: big + big,
        "x[1:3]": lambda: x[1:3],
        "step, two layers, eager": step,
        "compiled function": lambda: function(square),
    }


def turn(case: Callable[[], Any], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        case()
    mx.waitall()
    return (time.perf_counter() - start) / repeats


def main() -> None:
    print(f"{'case':<28} {'off':>10} {'on':>10} {'ratio':>7} {'events':>7} {'ns an event':>12}")
    for name, case in cases().items():
        profiler.set_config()
        case()
        expected = numpy.asarray(case())
        profiler.dumps(reset=True)
        profiler.set_state("run")
        found = numpy.asarray(case())
        profiler.set_state("stop")
        if expected.tobytes() != found.tobytes():
            raise SystemExit(f"{name}: the results differ")
        num_events = count()
        repeats = max(1, int(TURN_S / turn(case, 5)))
        off, on = [], []
        for _ in range(TURNS):
            off.append(turn(case, repeats))
            profiler.set_state("run")
            on.append(turn(case, repeats))
            profiler.set_state("stop")
        profiler.dumps(reset=True)
        unprofiled, profiled = statistics.median(off), statistics.median(on)
        each = (profiled - unprofiled) / max(num_events, 1) * 1e9
        print(
            f"{name:<28} {unprofiled * 1e6:>7.2f} us {profiled * 1e6:>7.2f} us {profiled / unprofiled:>7.2f}"
            f" {num_events:>7} {each:>12.0f}"
        )


def count() -> int:
    """Events in the statistics."""
    tables = json.loads(profiler.dumps(format="json"))["Time"]
    return sum(row["Count"] for name, table in tables.items() if "queue" not in name for row in table.values())


if __name__ == "__main__":
    main()
