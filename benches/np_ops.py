"""Every function that mx.np shares with NumPy, small (what a call costs) and large (what the work costs), worst first.

`python benches/np_ops.py [word ...]` runs the cases whose text holds one of the words; `--small` or `--large` runs one
size only, `--threads N` sets the number of our threads, `--turns N` how often a side gets its turn.

A case is one line of `np_cases.txt`: an expression over `np`, `rng` and the operands of `operands`, or a statement that
may change these, evaluated with mx.np and with NumPy. A function that no line names is called on the first of
`ATTEMPTS` that both sides accept, so that new functions are measured from the day they appear; `UNTIMED` says which are
left out and why. Results, and what a statement has changed, are compared before anything is timed.
"""

import argparse
import builtins
import math
import re
import resource
import statistics
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
from _sides import THREADS, readable, settle, to_numpy, turn, versions

import mxnet as mx
from mxnet import _core

SIDES = (4, 1000)  # x is a square of this side, v a row of as many elements: 16 and a million
NAMES = ("small", "large")

CASES = Path(__file__).with_name("np_cases.txt")
MEMORY_BYTES = 8 << 30  # an attempt whose result is larger fails instead of taking the machine's memory
# Functions that no line names are called with the first of these that both sides accept.
ATTEMPTS = ("x", "x, y", "i", "i, j", "b", "c", "v", "v, w", "m", "spd", "n", "x, 1", "x, 0, 1", "(x, y)", "b, x, y")

# Functions of files, of settings, of documentation, and those that only make an object of the host.
UNTIMED = {
    *("save", "savez", "savez_compressed", "savetxt", "load", "loadtxt", "genfromtxt", "fromfile", "fromregex"),
    *("set_printoptions", "get_printoptions", "printoptions", "seterr", "geterr", "seterrcall", "geterrcall"),
    *("from_dlpack", "ndarray", "frompyfunc", "apply_over_axes", "nditer", "poly1d"),
    *("seed", "get_state", "set_state", "RandomState", "Generator"),
}


def operands(n: int) -> dict[str, numpy.ndarray | int]:
    """What the cases may name; squares of side n unless another shape is said."""
    rng = numpy.random.default_rng(0)

    def uniform(low: float, high: float, *shape: int, dtype: str = "float32") -> numpy.ndarray:
        return rng.uniform(low, high, shape or (n, n)).astype(dtype)

    def whole(high: int, dtype: str, *shape: int) -> numpy.ndarray:
        return rng.integers(1, high, shape or (n, n)).astype(dtype)

    side = builtins.min(n, 200)  # decompositions and integer products cost the cube
    m = uniform(-1, 1, side, side) + side * numpy.eye(side, dtype="float32")
    t = numpy.sort(uniform(0.5, 1.5, n))
    return {
        "n": n,
        "half": n // 2,
        "side": side,
        "near": uniform(0.9999, 1.0001, dtype="float64"),
        **{name: uniform(0.5, 1.5) for name in ("x", "y")},
        **{name: uniform(0.5, 1.5, n * n) for name in ("v", "w")},
        "s": uniform(-3, 3),
        "p": uniform(-0.95, 0.95),
        **{name: uniform(0.5, 1.5, dtype="float64") for name in ("d", "d2")},
        "dv": uniform(0.5, 1.5, n * n, dtype="float64"),
        **{name: uniform(0.5, 1.5, dtype="float16") for name in ("h", "h2")},
        **{name: uniform(-1, 1) + 1j * uniform(-1, 1) for name in ("c", "c2")},
        "cv": uniform(-1, 1, n * n) + 1j * uniform(-1, 1, n * n),
        **{name: whole(10_000, "int64") for name in ("i", "j")},
        **{name: whole(10_000, "int64", n * n) for name in ("iv", "jv")},
        **{name: whole(10_000, "int32") for name in ("i32", "j32")},
        **{name: whole(100, "int16") for name in ("i16", "j16")},
        **{name: whole(100, "int8") for name in ("i8", "j8")},
        "u8": whole(200, "uint8"),
        "k4": whole(4, "int64"),
        "e": whole(10, "int32"),
        **{name: rng.uniform(size=(n, n)) < 0.5 for name in ("b", "b2")},
        "f": numpy.zeros((n, n), "bool"),
        "t": t,
        "t4": t[:4],
        "kernel": uniform(-1, 1, 5),
        "pos": rng.integers(0, n * n, n * n),
        "rows": rng.integers(0, n, n),
        "order": numpy.argsort(uniform(0, 1), 1),
        "m": m,
        "spd": m @ m.T,
        "xm": uniform(-1, 1, side, side),
        "cm": uniform(-1, 1, side, side) + 1j * uniform(-1, 1, side, side),
        "i32m": whole(10, "int32", side, side),
        "im": whole(10, "int64", side, side),
        **{name: uniform(-1, 1, n * n // 3, 3) for name in ("x3", "y3")},
    }


@dataclass(frozen=True)
class Spec:
    """An expression, and whether its value is the same on both sides; or a statement."""

    text: str
    compared: bool = True
    is_statement: bool = False

    @staticmethod
    def of(line: str) -> "Spec":
        text = line.removeprefix("! ").removeprefix("~ ")
        return Spec(text, compared="~ " not in line[:4], is_statement=line.startswith("! "))


def specs() -> list[Spec]:
    """The lines of `np_cases.txt`, then a call of every shared function that they leave out."""
    lines = [line.strip() for line in CASES.read_text().splitlines() if line.strip() and not line.startswith("#")]
    listed = [Spec.of(line) for line in lines]
    named = set(re.findall(r"np\.((?:linalg\.|fft\.|random\.)?\w+)", "\n".join(lines)))
    for prefix in ("", "linalg.", "fft.", "random."):
        listed += [Spec(f"np.{name}(...)", compared=prefix != "random.") for name in shared(prefix, named)]
    return listed


def module(root: Any, prefix: str) -> Any:
    return getattr(root, prefix[:-1], None) if prefix else root


def shared(prefix: str, named: set[str]) -> Iterator[str]:
    """Functions that both sides have and `named` lacks, under any of their names."""
    ours, theirs = module(mx.np, prefix), module(numpy, prefix)
    seen = {id(getattr(theirs, name.removeprefix(prefix), None)) for name in named}
    for name in sorted(dir(ours)) if ours else []:
        function, peer = getattr(ours, name), getattr(theirs, name, None)
        is_function = callable(function) and callable(peer) and not isinstance(function, type | types.ModuleType)
        if name.startswith("_") or not is_function or {name, prefix + name} & UNTIMED:
            continue
        if id(peer) not in seen:
            seen.add(id(peer))
            yield prefix + name


def sides(spec: Spec, ours: dict[str, Any], theirs: dict[str, Any]) -> tuple[Callable[[], Any], Callable[[], Any], str]:
    """Both sides of a case as functions without arguments, and the case's text. Raises what the first call raises."""
    if spec.is_statement:
        return (*changed(spec, ours, theirs), spec.text)
    texts = [spec.text.replace("...", attempt) for attempt in ATTEMPTS] if "(...)" in spec.text else [spec.text]
    failure: Exception | None = None
    for text in texts:
        pair = [eval(f"lambda: {text}", scope) for scope in (ours, theirs)]  # noqa: S307  the cases are ours
        try:
            values = [case() for case in pair]
            mx.waitall()
        except Exception as error:  # noqa: BLE001  whatever a side does not accept
            failure = failure or error
            continue
        if spec.compared:
            compare(text, *values)
        return pair[0], pair[1], text
    raise failure or ValueError(f"{spec.text}: no call of `ATTEMPTS` fits")


def changed(spec: Spec, *scopes: dict[str, Any]) -> list[Callable[[], Any]]:
    """Both sides of a statement, over operands of their own; raises if it changed them in different ways."""
    names = sorted(
        set(re.findall(r"\b[a-z]\w*", spec.text))
        & {name for name, x in scopes[1].items() if isinstance(x, numpy.ndarray)}
    )
    cases, values = [], []
    for scope in scopes:
        own = {**scope, **{name: scope[name].copy() for name in names}}
        exec(f"def case():\n    global {', '.join(names)}\n    {spec.text}", own)  # noqa: S102  the cases are ours
        own["case"]()
        cases.append(own["case"])
        values.append([own[name] for name in names])
    mx.waitall()
    if spec.compared:
        compare(spec.text, *values)
    return cases


def compare(text: str, ours: Any, theirs: Any) -> None:
    """Raises if two results differ by more than rounding: 2e-5 of the largest element, 2e-2 for halves."""
    if isinstance(theirs, tuple | list):
        for mine, other in zip(ours, theirs, strict=True):
            compare(text, mine, other)
        return
    got = to_numpy(ours) if to_numpy(ours) is not None else numpy.asarray(ours)
    want = numpy.asarray(theirs)
    if got.shape != want.shape:
        raise ValueError(f"{text}: shape {got.shape}, NumPy's {want.shape}")
    if want.dtype.kind not in "biufc" or want.size == 0:
        return
    rtol = 2e-2 if numpy.float16 in (got.dtype, want.dtype) else 2e-5
    wide = "complex128" if want.dtype.kind == "c" else "float64"
    got, want = got.astype(wide), want.astype(wide)
    largest = float(numpy.abs(want[numpy.isfinite(want)]).max(initial=0))
    same = numpy.isclose(got, want, rtol=0, atol=rtol * largest, equal_nan=True)
    if not same.all():
        at = numpy.unravel_index(numpy.argmin(same), same.shape)
        raise ValueError(f"{text}: {got[at]} at {tuple(map(int, at))}, NumPy has {want[at]}")


@dataclass(frozen=True)
class Line:
    """One case's times in seconds: the best turns; and ratios: of the turns, of the best turns' processor times."""

    text: str
    ours: float
    theirs: float
    median: float
    cpu: float

    @property
    def ratio(self) -> float:
        return self.theirs / self.ours


def timed(text: str, ours: Callable[[], Any], theirs: Callable[[], Any], turns: int) -> Line:
    def nothing() -> None:
        pass

    waits, repeats = (mx.waitall, nothing), []
    for case, wait in zip((ours, theirs), waits, strict=True):
        shortest_s = builtins.min(turn(case, 1, wait)[0] for _ in range(3))
        repeats.append(builtins.max(1, int(0.003 / builtins.max(shortest_s, 1e-7))))
    columns: tuple[list[tuple[float, float]], list[tuple[float, float]]] = ([], [])
    for _ in range(turns):
        for case, wait, count, column in zip((ours, theirs), waits, repeats, columns, strict=True):
            settle()
            column.append(turn(case, count, wait))
    median = statistics.median(b[0] / a[0] for a, b in zip(*columns, strict=True))
    best = [[builtins.min(times) for times in zip(*column, strict=True)] for column in columns]
    return Line(text, best[0][0], best[1][0], median, best[1][1] / builtins.max(best[0][1], 1e-12))


def measure(n: int, words: list[str], turns: int) -> tuple[list[Line], list[str]]:
    arrays = operands(n)
    theirs: dict[str, Any] = {**arrays, "np": numpy, "rng": numpy.random.default_rng(0)}
    ours: dict[str, Any] = {
        name: mx.np.array(x, dtype=x.dtype) if isinstance(x, numpy.ndarray) else x for name, x in arrays.items()
    }
    ours |= {"np": mx.np, "rng": mx.np.random.default_rng(0)}
    lines, missing = [], []
    for spec in specs():
        if words and not any(word in spec.text for word in words):
            continue
        try:
            mine, other, text = sides(spec, ours, theirs)
        except Exception as error:  # noqa: BLE001  the table says so
            missing.append(f"{spec.text}: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
            continue
        lines.append(timed(text, mine, other, turns))
    return lines, missing


def report(name: str, lines: list[Line], missing: list[str]) -> None:
    print(f"\n{name}: {'case':<42} {'mxnet':>10} {'NumPy':>10} {'ratio':>7} {'median':>7} {'cpu':>7}")
    for line in sorted(lines, key=lambda line: line.ratio):
        times = f"{readable(line.ours):>10} {readable(line.theirs):>10}"
        print(f"  {line.text:<47} {times} {line.ratio:>7.2f} {line.median:>7.2f} {line.cpu:>7.2f}")
    if lines:
        means = [
            math.exp(statistics.fmean(math.log(x) for x in column))
            for column in ([line.ratio for line in lines], [line.cpu for line in lines])
        ]
        below = [sum(line.ratio < bound for line in lines) for bound in (0.5, 1.0)]
        print(
            f"{name}: geometric mean {means[0]:.2f} (cpu {means[1]:.2f}) of {len(lines)} cases; "
            f"{below[0]} below 0.5, {below[1]} below 1"
        )
    for text in missing:
        print(f"  not timed: {text}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("words", nargs="*", help="run the cases whose text holds one of these")
    parser.add_argument("--small", action="store_true", help="only arrays of 4 x 4")
    parser.add_argument("--large", action="store_true", help="only arrays of 1000 x 1000")
    parser.add_argument("--threads", type=int, default=THREADS, help="our threads")
    parser.add_argument("--turns", type=int, default=5, help="turns of each side")
    chosen = parser.parse_args()
    _core.set_num_threads(chosen.threads)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    print(f"mx.np against NumPy; {THREADS} processors; {versions()}")
    print("ratio: NumPy's time over ours, best turns; median: of the turns' ratios; above 1 we are faster")
    print("cpu: NumPy's processor time over ours, summed over threads: what other jobs on the machine disturb least")
    numpy.seterr(all="ignore")
    for n, name in zip(SIDES, NAMES, strict=True):
        if (chosen.small or chosen.large) and not getattr(chosen, name):
            continue
        report(name, *measure(n, chosen.words, chosen.turns))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
