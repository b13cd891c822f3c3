"""Time the cases of the table in docs/design/performance.md and rewrite the table.

`python benches/figures.py` compares with NumPy, and with PyTorch where it can be imported; `--print` shows the table
instead of writing it. `make bench` runs this with all other benches.
"""

import argparse
import platform
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy
from _sides import OURS, SIDES, THREADS, Case, check_equal, readable, time_in_turns, torch, versions

import mxnet as mx

PAGE = Path(__file__).resolve().parents[1] / "docs/design/performance.md"
BEGIN, END = "<!-- begin: written by benches/figures.py -->", "<!-- end: written by benches/figures.py -->"
MODULES = {OURS: mx.np, "NumPy": numpy, "PyTorch": torch}

# Name, shape of the float32 operands a and b, the call; "NumPy" alone where PyTorch has no such function.
CASES: list[tuple[str, tuple[int, ...], Callable[[Any, Any, Any], Any]]] = [
    ("`a + b`", (4, 4), lambda m, a, b: a + b),
    ("`a[1, 2]`", (4, 4), lambda m, a, b: a[1, 2]),
    ("`a[1:3]`", (4, 4), lambda m, a, b: a[1:3]),
    ("`a.sum()`", (4, 4), lambda m, a, b: a.sum()),
    ("`exp(a)`", (4, 4), lambda m, a, b: m.exp(a)),
    ("`a @ b`", (4, 4), lambda m, a, b: a @ b),
    ("`a + b`", (1000, 1000), lambda m, a, b: a + b),
    ("`exp(a)`", (1000, 1000), lambda m, a, b: m.exp(a)),
    ("`tanh(a)`", (1000, 1000), lambda m, a, b: m.tanh(a)),
    ("`where(a > b, a, b)`", (1000, 1000), lambda m, a, b: m.where(a > b, a, b)),
    ("`a.sum()`", (1000, 1000), lambda m, a, b: a.sum()),
    ("`a.sum(0)`", (1000, 1000), lambda m, a, b: a.sum(0)),
    ("`a.max(1)`", (1000, 1000), lambda m, a, b: m.amax(a, 1)),
    ("`a.T` copied", (1000, 1000), lambda m, a, b: a.T.contiguous() if m is torch else a.T.copy()),
    ("rows sorted", (1000, 1000), lambda m, a, b: torch.sort(a, 1).values if m is torch else m.sort(a, 1)),
    ("`a @ b`", (1000, 1000), lambda m, a, b: a @ b),
    ("`a + b`", (3000, 3000), lambda m, a, b: a + b),
    ("`exp(a)`", (3000, 3000), lambda m, a, b: m.exp(a)),
    ("`a.sum(0)`", (3000, 3000), lambda m, a, b: a.sum(0)),
]


def sides(shape: tuple[int, ...], call: Callable[[Any, Any, Any], Any]) -> dict[str, Case]:
    """The case on every side, with the same operands."""
    values = numpy.random.default_rng(0).uniform(0.5, 1.5, (2, *shape)).astype("float32")
    made = {OURS: mx.np.array, "NumPy": numpy.array, "PyTorch": lambda x: torch.from_numpy(x.copy())}
    cases: dict[str, Case] = {}
    for side in SIDES:
        a, b = (made[side](x) for x in values)
        cases[side] = lambda m=MODULES[side], a=a, b=b: call(m, a, b)
    return cases


def row(name: str, shape: tuple[int, ...], times: Mapping[str, Any]) -> str:
    ours = times[OURS].median
    ratios = [f"{times[side].median / ours:.2f}" if side in times else "-" for side in ("NumPy", "PyTorch")]
    return f"| {name} | {' x '.join(map(str, shape))} | {readable(ours)} | {' | '.join(ratios)} |"


def table() -> str:
    lines = [
        f"{THREADS} threads, {processor()};",
        f"{versions()}.",
        "",
        "| case, float32 | shape | ours | NumPy / ours | PyTorch / ours |",
        "|---|---|--:|--:|--:|",
    ]
    for name, shape, call in CASES:
        cases = sides(shape, call)
        check_equal(name, cases, 1e-4)  # sums of 1e6 float32 in another order
        lines.append(row(name, shape, time_in_turns(cases, turns=9)))
        print(lines[-1], flush=True)
    return "\n".join(lines)


def processor() -> str:
    """The processor's name, as Linux gives it."""
    try:
        found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    except OSError:
        found = None
    return found[1] if found else platform.machine()


def replaced(text: str, new: str) -> str:
    """The page with what lies between the two marks replaced."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{PAGE.name} needs the marks `{BEGIN}` and `{END}`")
    return f"{before}{BEGIN}\n{new}\n{END}{after}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--print", action="store_true", dest="print_only")
    options = parser.parse_args()
    found = table()
    if not options.print_only:
        PAGE.write_text(replaced(PAGE.read_text(), found))


if __name__ == "__main__":
    main()
