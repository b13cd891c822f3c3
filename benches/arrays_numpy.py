"""Arrays against NumPy in one run: small (cost of a call), medium (in cache), large (bandwidth).

Each case is one function of a module with NumPy's names. Both sides are warmed up, then timed in turns, so that what
disturbs the machine disturbs both; the median of many turns counts. `python benches/arrays_numpy.py [word ...]` runs
the cases whose name holds one of the words.
"""

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy

import mxnet as mx

TURNS = 15
TURN_S = 0.01  # a turn repeats the case for about this long


def inputs(module: Any, *shape: int) -> tuple[Any, Any]:
    """Two float32 arrays with the same values on both sides."""
    values = numpy.random.default_rng(0).uniform(0.5, 1.5, (2, *shape)).astype("float32")
    return module.array(values[0], dtype="float32"), module.array(values[1], dtype="float32")


def cases(module: Any) -> dict[str, Callable[[], Any]]:
    a2, b2 = inputs(module, 2, 2)
    a4, b4 = inputs(module, 10_000)
    a6, b6 = inputs(module, 1_000_000)
    m1, _ = inputs(module, 1000, 1000)
    column, row = inputs(module, 1000, 1)[0], inputs(module, 1, 1000)[0]
    small, small_b = inputs(module, 4, 4)
    middle, middle_b = inputs(module, 256, 256)
    large, large_b = inputs(module, 1024, 1024)

    def chain() -> Any:
        x = a2
        for _ in range(5):
            x = x * b2 + a2
        return x

    return {
        "add (2,2)": lambda: a2 + b2,
        "chain of 10 (2,2)": chain,
        "reshape (2,2)": lambda: a2.reshape(4),
        "slice x[1:3] of 1e4": lambda: a4[1:3],
        "sum() (2,2)": lambda: a2.sum(),
        "zeros((2,2))": lambda: module.zeros((2, 2)),
        "matmul 4": lambda: module.matmul(small, small_b),
        "add 1e4": lambda: a4 + b4,
        "exp 1e4": lambda: module.exp(a4),
        "tanh 1e4": lambda: module.tanh(a4),
        "add 1e6": lambda: a6 + b6,
        "exp 1e6": lambda: module.exp(a6),
        "tanh 1e6": lambda: module.tanh(a6),
        "broadcast (1000,1)+(1,1000)": lambda: column + row,
        "strided a[::2]+b[1::2] 1e6": lambda: a6[::2] + b6[1::2],
        "where 1e6": lambda: module.where(a6 > 1, a6, b6),
        "sum axis 0 1000x1000": lambda: m1.sum(axis=0),
        "sum axis 1 1000x1000": lambda: m1.sum(axis=1),
        "sum all 1000x1000": lambda: m1.sum(),
        "cumsum axis 1 1000x1000": lambda: module.cumsum(m1, axis=1),
        "sort rows 1000x1000": lambda: module.sort(m1, axis=1),
        "matmul 256": lambda: module.matmul(middle, middle_b),
        "matmul 1024": lambda: module.matmul(large, large_b),
    }


def seconds(case: Callable[[], Any], repeats: int, wait: Callable[[], Any]) -> float:
    """One turn, until the last result is there."""
    start = time.perf_counter()
    for _ in range(repeats):
        case()
    wait()
    return (time.perf_counter() - start) / repeats


def readable(value: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-9:.0f} ns"


def main(words: list[str]) -> None:
    ours, theirs = cases(mx.np), cases(numpy)
    print(f"float32, NumPy {numpy.__version__}; a ratio above 1 means that we are faster")
    print(f"{'case':<30} {'mxnet':>10} {'NumPy':>10} {'ratio':>7}")
    for name in ours:
        if words and not any(word in name for word in words):
            continue
        sides = ((ours[name], mx.waitall), (theirs[name], lambda: None))
        repeats = [
            max(1, int(TURN_S / max(min(seconds(case, 1, wait) for _ in range(5)), 1e-9))) for case, wait in sides
        ]
        turns = [[seconds(case, n, wait) for (case, wait), n in zip(sides, repeats, strict=True)] for _ in range(TURNS)]
        mine, other = (statistics.median(column) for column in zip(*turns, strict=True))
        print(f"{name:<30} {readable(mine):>10} {readable(other):>10} {other / mine:>7.2f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
