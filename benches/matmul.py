"""Matrix products against NumPy's BLAS and PyTorch's: small (cost of a call) to large (arithmetic).

`python benches/matmul.py [word ...]` runs the cases whose name holds one of the words.
"""

from collections.abc import Callable
from typing import Any

import numpy
from _sides import OURS, SIDES, Table, torch

import mxnet as mx

SIZES = (4, 64, 128, 256, 512, 1024, 2048)
# Rows and columns of the result and length of the sums: an inner product, gradients of weights, normal equations.
TALL = ((1, 1, 1_000_000), (10, 1, 100_000), (1, 64, 100_000), (10, 10, 100_000), (64, 64, 10_000))
Pair = tuple[numpy.ndarray, numpy.ndarray]


def add(table: Table, name: str, product: Callable[[Any, Any, Any], Any], pair: Pair, turns: int = 15) -> None:
    """Times `product(module, a, b)` of matrices with elements below 1."""
    ours = [mx.np.array(x, dtype=x.dtype) for x in pair]
    sides = {OURS: lambda: product(mx.np, *ours), "NumPy": lambda: product(numpy, *pair)}
    if torch is not None:
        theirs = [torch.from_numpy(x) for x in pair]
        sides["PyTorch"] = lambda: product(torch, *theirs)
    # Sums of n products in any order: n * eps bounds the error.
    rtol = len(pair[1]) * float(numpy.finfo(pair[1].dtype).eps)
    table.add(name, sides, rtol=rtol, turns=turns)


def main() -> None:
    table = Table("matrix products", SIDES)
    for dtype in ("float32", "float64"):
        for n in SIZES:
            rng = numpy.random.default_rng(n)
            pair = (rng.uniform(-1, 1, (n, n)).astype(dtype), rng.uniform(-1, 1, (n, n)).astype(dtype))
            add(table, f"{n}x{n} {dtype}", lambda m, a, b: m.matmul(a, b), pair, 15 if n < 2048 else 5)
        for m, n, k in TALL:
            rng = numpy.random.default_rng(k)
            pair = (rng.uniform(-1, 1, (k, m)).astype(dtype), rng.uniform(-1, 1, (k, n)).astype(dtype))
            add(table, f"({m}, {k}) @ ({k}, {n}) {dtype}", lambda m, a, b: m.matmul(a.T, b), pair)


if __name__ == "__main__":
    main()
