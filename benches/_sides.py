"""Times the same case on several sides in turns. The benches import it; it runs nothing by itself.

A case is a function without arguments a side. Results are compared first, then every side is warmed up, then the sides
take turns, so that what disturbs the machine disturbs all of them. The median of the turns is the time; the ratio is
the fastest other side's median over ours, so above 1 means that we are faster. Beside it stand the ratio of the best
turns and that of processor time summed over all threads, of NumPy where it takes part: on a busy machine that says most
(PyTorch's threads spin while they wait).
"""

import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy

import mxnet as mx

try:
    import torch
except ImportError:
    torch = None  # the benches then compare with NumPy alone

THREADS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
TURNS = 15
TURN_S = 0.01  # a turn repeats the case for about this long
OURS = "mxnet"

Case = Callable[[], Any]


@dataclass(frozen=True)
class Timed:
    """Seconds a side needs for the case."""

    median: float
    best: float
    cpu: float


def nothing() -> None:
    """NumPy and PyTorch on the CPU have nothing to wait for."""


def turn(case: Case, repeats: int, wait: Case) -> tuple[float, float]:
    """Seconds for one of `repeats` runs of the case until the last result is there: elapsed, and of processors."""
    start, cpu_start = time.perf_counter(), time.process_time()
    for _ in range(repeats):
        case()
    wait()
    return (time.perf_counter() - start) / repeats, (time.process_time() - cpu_start) / repeats


def settle() -> None:
    """Waits until the threads of the side before have stopped spinning (at most 0.2 s).

    Idle workers of OpenBLAS and OpenMP keep a processor busy for tens of milliseconds after their last piece of work;
    on few processors the next side would be measured against them.
    """
    for _ in range(40):
        start, cpu_start = time.perf_counter(), time.process_time()
        time.sleep(0.005)
        if time.process_time() - cpu_start < 0.1 * (time.perf_counter() - start):
            return


def time_in_turns(sides: Mapping[str, Case], turns: int = TURNS, turn_s: float = TURN_S) -> dict[str, Timed]:
    waits = {side: mx.waitall if side == OURS else nothing for side in sides}
    repeats = {}
    for side, case in sides.items():
        settle()
        shortest_s = min(turn(case, 1, waits[side])[0] for _ in range(5))
        repeats[side] = max(1, int(turn_s / max(shortest_s, 1e-9)))
    columns: dict[str, list[tuple[float, float]]] = {side: [] for side in sides}
    for _ in range(turns):
        for side, case in sides.items():
            settle()
            columns[side].append(turn(case, repeats[side], waits[side]))
    results = {}
    for side, column in columns.items():
        elapsed, cpu = zip(*column, strict=True)
        results[side] = Timed(statistics.median(elapsed), min(elapsed), statistics.median(cpu))
    return results


def to_numpy(result: Any) -> Any:
    """A result of any side as NumPy's array; None for what is no array."""
    if isinstance(result, numpy.ndarray | numpy.generic):
        return numpy.asarray(result)
    if isinstance(result, mx.np.ndarray):
        return result.asnumpy()
    if torch is not None and isinstance(result, torch.Tensor):
        return result.detach().numpy()
    return None


def check_equal(name: str, sides: Mapping[str, Case], rtol: float) -> None:
    """Refuses to time sides whose results differ by more than `rtol` of the largest element."""
    results = {side: to_numpy(case()) for side, case in sides.items()}
    expected = results.pop("NumPy", None)
    for side, result in results.items():
        if expected is None or result is None:
            continue
        if result.shape != expected.shape:
            raise SystemExit(f"{name}: {side} has shape {result.shape}, NumPy {expected.shape}")
        limit = rtol * float(numpy.abs(expected).max(initial=0))
        wide = "complex128" if result.dtype.kind == "c" else "float64"
        difference = float(numpy.abs(result.astype(wide) - expected.astype(wide)).max(initial=0))
        if not difference <= limit:
            raise SystemExit(f"{name}: {side} differs from NumPy by {difference:.3g}, allowed is {limit:.3g}")


def readable(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.0f} ns"


def versions(threads: int = THREADS) -> str:
    """The sides with their versions. Sets PyTorch's threads."""
    parts = [f"mxnet {mx.__version__}", f"NumPy {numpy.__version__}"]
    if torch is not None:
        torch.set_num_threads(threads)
        parts.append(f"PyTorch {torch.__version__} on {torch.get_num_threads()} threads")
    return ", ".join(parts)


class Table:
    """Prints one line a case as soon as it is timed. All sides have `threads` threads."""

    def __init__(self, title: str, sides: list[str], threads: int = THREADS) -> None:
        self.sides = sides
        mx.config.num_threads = threads
        print(f"{title}; {THREADS} processors; {versions(threads)}")
        print(f"ratio: fastest other side over ours (medians, best turns); cpu: processor time, {sides[1]}'s over ours")
        print(
            f"{'case':<38}" + "".join(f" {side:>10}" for side in sides) + f" {'ratio':>7} {'best':>6} {'cpu':>6}",
            flush=True,
        )

    def add(self, name: str, sides: Mapping[str, Case], rtol: float | None = 1e-5, **how: Any) -> None:
        if (words := sys.argv[1:]) and not any(word in name for word in words):
            return
        if rtol is not None:
            check_equal(name, sides, rtol)
        self.line(name, time_in_turns(sides, **how))

    def line(self, name: str, times: Mapping[str, Timed]) -> None:
        cells = "".join(f" {readable(times[side].median) if side in times else '-':>10}" for side in self.sides)
        others = [times[side] for side in times if side != OURS]
        tail = ""
        if others:
            ratio = min(other.median for other in others) / times[OURS].median
            best = min(other.best for other in others) / times[OURS].best
            tail = f" {ratio:>7.2f} {best:>6.2f} {others[0].cpu / times[OURS].cpu:>6.2f}"
        print(f"{name:<38}{cells}{tail}", flush=True)


def with_torch(sides: dict[str, Case], case: Callable[[], Case]) -> dict[str, Case]:
    """Adds PyTorch's side when it can be imported."""
    if torch is not None:
        sides["PyTorch"] = case()
    return sides


SIDES = [OURS, "NumPy"] + ([] if torch is None else ["PyTorch"])
