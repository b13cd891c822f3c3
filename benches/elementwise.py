"""Elementwise operators and reductions: in cache, beyond it, strided and broadcast, against NumPy and PyTorch.

`python benches/elementwise.py [word ...]` runs the cases whose name holds one of the words.
"""

from collections.abc import Callable
from typing import Any

import numpy
from _sides import OURS, SIDES, Table, torch

import mxnet as mx


def uniform(*shape: int, seed: int = 0) -> numpy.ndarray:
    return numpy.random.default_rng(seed).uniform(0.5, 1.5, shape).astype("float32")


def inputs(*arrays: numpy.ndarray) -> dict[str, list[Any]]:
    """The same values on every side."""
    sides: dict[str, list[Any]] = {OURS: [mx.np.array(x, dtype=x.dtype) for x in arrays], "NumPy": list(arrays)}
    if torch is not None:
        sides["PyTorch"] = [torch.from_numpy(x.copy()) for x in arrays]
    return sides


MODULES = {OURS: mx.np, "NumPy": numpy, "PyTorch": torch}


def each(case: Callable[..., Any], sides: dict[str, list[Any]]) -> dict[str, Callable[[], Any]]:
    """`case(module, *arrays)` for every side."""
    return {side: (lambda m=MODULES[side], a=arrays: case(m, *a)) for side, arrays in sides.items()}


def reduced(method: str, axis: int | None) -> Callable[..., Any]:
    def case(module: Any, x: Any) -> Any:
        if module is torch:
            if method == "max":
                return x.max() if axis is None else x.amax(axis)
            return x.sum() if axis is None else x.sum(axis)
        return getattr(x, method)(axis=axis)

    return case


def main() -> None:
    table = Table("elementwise and reductions, float32", SIDES)
    for n in (10_000, 1_000_000, 10_000_000):
        arrays = inputs(uniform(n), uniform(n, seed=1))
        size = f"1e{len(str(n)) - 1}"
        table.add(f"add {size}", each(lambda m, a, b: a + b, arrays))
        table.add(f"mul {size}", each(lambda m, a, b: a * b, arrays))
        table.add(f"exp {size}", each(lambda m, a, b: m.exp(a), arrays))
        table.add(f"tanh {size}", each(lambda m, a, b: m.tanh(a), arrays))
        table.add(f"strided a[::2]+b[1::2] {size}", each(lambda m, a, b: a[::2] + b[1::2], arrays))
        chosen = inputs(uniform(n) > 1, uniform(n), uniform(n, seed=1))
        table.add(f"where {size}", each(lambda m, c, a, b: m.where(c, a, b), chosen))
    for n in (1000, 3162):
        pair = inputs(uniform(n, 1), uniform(1, n, seed=1))
        table.add(f"broadcast ({n},1)+(1,{n})", each(lambda m, a, b: a + b, pair))
        square = inputs(uniform(n, n))
        table.add(f"copy of .T {n}x{n}", each(transposed_copy, square))
        for method in ("sum", "max"):
            for axis in (None, 0, 1):
                name = f"{method} {'all' if axis is None else f'axis {axis}'} {n}x{n}"
                table.add(name, each(reduced(method, axis), square))
        table.add(f"cumsum axis 1 {n}x{n}", each(lambda m, x: m.cumsum(x, 1), square), rtol=1e-4)
    rows = inputs(uniform(1000, 1000))
    table.add("sort rows 1000x1000", each(sorted_rows, rows))


def sorted_rows(module: Any, x: Any) -> Any:
    return module.sort(x, dim=1).values if module is torch else module.sort(x, axis=1)


def transposed_copy(module: Any, x: Any) -> Any:
    return x.T.contiguous() if module is torch else x.T.copy(order="C") if module is numpy else x.T.copy()


if __name__ == "__main__":
    main()
