"""Order statistics, sets, borders and insertion of 1e6 elements against NumPy.

`python benches/library.py [word ...]` runs the cases whose name holds one of the words.
"""

from collections.abc import Callable
from typing import Any

import numpy
from _sides import OURS, Table

import mxnet as mx

CALLS = (
    "median(x)",
    "median(m, axis=0)",
    "median(m, axis=1)",
    "percentile(x, [25, 50, 75])",
    "quantile(m, 0.9, axis=1)",
    "nanmedian(gaps)",
    "nanmedian(gaps, axis=1)",
    "nansum(gaps, axis=1)",
    "nanmean(gaps, axis=0)",
    "nanmax(gaps, axis=1)",
    "nanstd(gaps)",
    "unique(x)",
    "unique(few)",
    "unique(many)",
    "unique(few, return_inverse=True)",
    "isin(few, third)",
    "isin(many, some)",
    "intersect1d(many, some)",
    "pad(m, 16)",
    "pad(m, 16, mode='edge')",
    "pad(m, 16, mode='reflect')",
    "pad(m, 16, mode='wrap')",
    "pad(m, 16, mode='linear_ramp')",
    "pad(m, 16, mode='mean')",
    "insert(x, at, 0)",
    "delete(x, at)",
    "append(x, x)",
    "flatnonzero(few)",
)


def operands(n: int) -> dict[str, numpy.ndarray]:
    random = numpy.random.default_rng(0)
    side = int(n**0.5)
    x = random.standard_normal(n).astype("float32")
    many = random.integers(0, 1 << 40, n)
    return {
        "x": x,
        "m": x.reshape(side, side),
        "gaps": numpy.where(random.random((side, side)) < 0.1, numpy.float32("nan"), x.reshape(side, side)),
        "few": random.integers(0, 1000, n),
        "third": numpy.arange(0, 1000, 3),
        "many": many,
        "some": many[::10].copy(),
        "at": random.integers(0, n, n // 100),
    }


def evaluation(call: str, module: Any, names: dict[str, Any]) -> Callable[[], Any]:
    code = compile(f"np.{call}", "<case>", "eval")
    return lambda: eval(code, {"np": module, **names})  # noqa: S307  # the calls stand above


def main() -> None:
    table = Table("order statistics, sets, borders; 1e6 elements", [OURS, "NumPy"])
    theirs = operands(1_000_000)
    ours = {name: mx.np.array(x) for name, x in theirs.items()}
    for call in CALLS:
        sides = {OURS: evaluation(call, mx.np, ours), "NumPy": evaluation(call, numpy, theirs)}
        # Several results at once are compared by the tests.
        table.add(call, sides, rtol=None if "return_inverse" in call else 1e-4)


if __name__ == "__main__":
    main()
