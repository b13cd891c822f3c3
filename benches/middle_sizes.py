"""Arrays of 1 to 8 MB, where handing work to another thread costs as much as the work: against NumPy and PyTorch.

`python benches/middle_sizes.py [word ...]` runs the cases whose name holds one of the words. `waited` waits behind each
call, as NumPy and PyTorch do, the others once a turn.
"""

from collections.abc import Callable
from typing import Any

import numpy
from _sides import OURS, SIDES, Table, torch

import mxnet as mx

Each = dict[str, Callable[[], Any]]


def sides(case: Callable[..., Any], other: Callable[..., Any] | None, *arrays: numpy.ndarray) -> Each:
    """`case(module, *arrays)` for mx.np and NumPy, `other(*arrays)` or the same for PyTorch."""
    ours = [mx.np.array(x, dtype=x.dtype) for x in arrays]
    theirs = [x.copy() for x in arrays]
    cases: Each = {OURS: lambda: case(mx.np, *ours), "NumPy": lambda: case(numpy, *theirs)}
    if torch is not None:
        tensors = [torch.from_numpy(x.copy()) for x in arrays]
        cases["PyTorch"] = lambda: other(*tensors) if other else case(torch, *tensors)
    return cases


def waiting(cases: Each) -> Each:
    """The same with a wait behind each call of ours."""
    inner = cases[OURS]

    def waited() -> Any:
        result = inner()
        result.wait_to_read()
        return result

    return {**cases, OURS: waited}


def add_into(_: Any, x: Any, y: Any) -> Any:
    x += y
    return x


def gelu(module: Any, x: Any) -> Any:
    if module is mx.np:
        return mx.npx.gelu(x)
    half = x * numpy.float32(0.5)
    return half * (1 + numpy.tanh(x * numpy.float32(0.7978845608) * (1 + numpy.float32(0.044715) * x * x)))


def main() -> None:
    rng = numpy.random.default_rng(0)
    x, y = rng.uniform(0.5, 1.5, (2, 1_000_000)).astype("float32")
    steps = rng.integers(0, 1000, 1_000_000).astype("int32")
    square = x.reshape(1000, 1000)
    gelu_torch = None if torch is None else torch.nn.functional.gelu
    table = Table("arrays of 1 to 8 MB", SIDES)
    for name, cases, rtol in [
        ("add 1e6 float32", sides(lambda m, a, b: a + b, None, x, y), 1e-6),
        ("add in place 1e6", sides(add_into, None, x, y * numpy.float32(0)), 1e-6),
        ("clip 1e6", sides(lambda m, a: m.clip(a, 0.7, 1.2), None, x), 1e-6),
        ("int32 to float32 1e6", sides(lambda m, a: a.astype("float32"), lambda a: a.to(torch.float32), steps), 0),
        ("sum axis 0 1000x1000", sides(lambda m, a: a.sum(axis=0), None, square), 1e-5),
        ("sum axis 1 1000x1000", sides(lambda m, a: a.sum(axis=1), None, square), 1e-5),
        ("sum all 1000x1000", sides(lambda m, a: a.sum(), None, square), 1e-5),
        ("max all 1000x1000", sides(lambda m, a: a.max(), None, square), 0),
        ("strided add a[::2]+b[1::2]", sides(lambda m, a, b: a[::2] + b[1::2], None, x, y), 1e-6),
        ("gelu 1e6", sides(gelu, gelu_torch, x), 1e-2),
        ("add 2e6 float32", sides(lambda m, a, b: a + b, None, numpy.tile(x, 2), numpy.tile(y, 2)), 1e-6),
    ]:
        table.add(name, cases, rtol)
        table.add(f"{name}, waited", waiting(cases), rtol)


if __name__ == "__main__":
    main()
