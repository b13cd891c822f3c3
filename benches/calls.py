"""What a call costs: operators on arrays so small that only the way to them counts, recorded for gradients or not.

`python benches/calls.py [word ...]` runs the cases whose name holds one of the words.
"""

from collections.abc import Callable
from typing import Any

import numpy
from _sides import OURS, SIDES, Case, Table, torch

import mxnet as mx

MODULES = {OURS: mx.np, "NumPy": numpy, "PyTorch": torch}
CHAIN = 10  # operators in a recorded chain


def arrays(side: str, *shape: int) -> list[Any]:
    values = numpy.random.default_rng(0).uniform(0.5, 1.5, (2, *shape)).astype("float32")
    if side == OURS:
        return [mx.np.array(x, dtype="float32") for x in values]
    return [torch.from_numpy(x.copy()) for x in values] if side == "PyTorch" else list(values)


def each(case: Callable[[Any, Any, Any], Any], *shape: int) -> dict[str, Case]:
    """`case(module, a, b)` for every side, a and b of `shape`."""
    sides = {}
    for side in SIDES:
        a, b = arrays(side, *shape)
        sides[side] = lambda m=MODULES[side], a=a, b=b: case(m, a, b)
    return sides


def chain(x: Any, b: Any) -> Any:
    for _ in range(CHAIN // 2):
        x = x * b + b
    return x


def recorded() -> dict[str, Case]:
    """A chain with its gradients: what recording and going back add to each operator."""

    def ours(a: Any, b: Any) -> Case:
        a.attach_grad()

        def case() -> Any:
            with mx.autograd.record():
                y = chain(a, b)
            y.backward()
            return a.grad

        return case

    def theirs(a: Any, b: Any) -> Case:
        a.requires_grad_()
        ones = torch.ones_like(a)

        def case() -> Any:
            a.grad = None
            chain(a, b).backward(ones)
            return a.grad

        return case

    sides = {OURS: ours(*arrays(OURS, 2, 2))}
    if torch is not None:
        sides["PyTorch"] = theirs(*arrays("PyTorch", 2, 2))
    return sides


def forward_only() -> dict[str, Case]:
    """The same chain recorded and dropped."""

    def ours(a: Any, b: Any) -> Case:
        a.attach_grad()

        def case() -> Any:
            with mx.autograd.record():
                return chain(a, b)

        return case

    sides = {OURS: ours(*arrays(OURS, 2, 2))}
    if torch is not None:
        a, b = arrays("PyTorch", 2, 2)
        a.requires_grad_()
        sides["PyTorch"] = lambda: chain(a, b)
    return sides


def main() -> None:
    table = Table("calls, float32", SIDES)
    table.add("a+b (2,2)", each(lambda m, a, b: a + b, 2, 2))
    table.add("a*2 (2,2)", each(lambda m, a, b: a * 2, 2, 2))
    table.add("a[1:3] (4,2)", each(lambda m, a, b: a[1:3], 4, 2))
    table.add("a[1] (2,2)", each(lambda m, a, b: a[1], 2, 2))
    table.add("a.reshape(4) (2,2)", each(lambda m, a, b: a.reshape(4), 2, 2))
    table.add("a.T (2,2)", each(lambda m, a, b: a.T, 2, 2))
    table.add("a.sum() (2,2)", each(lambda m, a, b: a.sum(), 2, 2))
    table.add("exp(a) (2,2)", each(lambda m, a, b: m.exp(a), 2, 2))
    table.add("where(a>b, a, b) (2,2)", each(lambda m, a, b: m.where(a > b, a, b), 2, 2))
    table.add("matmul(a, b) (4,4)", each(lambda m, a, b: m.matmul(a, b), 4, 4))
    table.add("zeros((2,2))", each(lambda m, a, b: m.zeros((2, 2)), 2, 2))
    table.add(f"chain of {CHAIN} (2,2)", each(lambda m, a, b: chain(a, b), 2, 2))
    table.add(f"chain of {CHAIN} recorded (2,2)", forward_only())
    table.add(f"chain of {CHAIN} with gradients (2,2)", recorded())


if __name__ == "__main__":
    main()
