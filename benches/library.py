"""Order statistics, sets, padding and insertion against NumPy: milliseconds of each side and their ratio.

python benches/library.py [--size 1000000]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy

import mxnet as mx
from mxnet import _core


def milliseconds(call: Callable[[], Any], repeat: int) -> float:
    """Median time of a call whose result is waited for."""
    times = []
    for _ in range(repeat + 1):
        start = time.perf_counter()
        call()
        mx.waitall()
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=1_000_000, help="elements of each array, a square number")
    parser.add_argument("--repeat", type=int, default=5, help="calls that are timed")
    options = parser.parse_args()
    n = options.size
    side = int(n**0.5)
    random = numpy.random.default_rng(0)
    names = {
        "x": random.standard_normal(n).astype("float32"),
        "m": random.standard_normal((side, side)).astype("float32"),
        "few": random.integers(0, 1000, n),
        "many": random.integers(0, 1 << 40, n),
        "third": numpy.arange(0, 1000, 3),
    }
    names["gaps"] = numpy.where(random.random((side, side)) < 0.1, numpy.nan, names["m"]).astype("float32")
    names["some"] = names["many"][::10].copy()
    names["at"] = random.integers(0, n, n // 100)
    ours = {name: mx.np.array(x) for name, x in names.items()}
    print(
        f"size {n}, {mx.engine.num_threads() if hasattr(mx.engine, 'num_threads') else '?'} threads; NumPy {numpy.__version__}"
    )
    print(f"{'call':44} {'mxnet ms':>9} {'numpy ms':>9} {'numpy/mxnet':>12}")
    for call in (
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
    ):
        code = compile(f"np.{call}", "<bench>", "eval")
        mine = milliseconds(lambda code=code: eval(code, {"np": mx.np, **ours}), options.repeat)  # type: ignore[misc]
        theirs = milliseconds(lambda code=code: eval(code, {"np": numpy, **names}), options.repeat)  # type: ignore[misc]
        print(f"{call:44} {mine:9.2f} {theirs:9.2f} {theirs / mine:12.2f}")


if __name__ == "__main__":
    main()
