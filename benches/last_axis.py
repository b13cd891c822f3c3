"""Functions along a last axis of 4 to 1000 elements, where starting and ending a row costs as much as its elements.

`python benches/last_axis.py [word ...]` runs the cases whose name holds one of the words. All sides have one thread.
"""

from collections.abc import Callable
from typing import Any

import numpy
from _sides import OURS, SIDES, Table, torch

import mxnet as mx

ELEMENTS = 1_000_000
LENGTHS = (4, 12, 16, 32, 40, 64, 100, 256, 1000)

Function = Callable[[Any], Any]


def softmax(x: numpy.ndarray) -> numpy.ndarray:
    powers = numpy.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def layer_norm(x: numpy.ndarray) -> numpy.ndarray:
    return (x - x.mean(-1, keepdims=True)) / numpy.sqrt(x.var(-1, keepdims=True) + 1e-5)


def functions(n: int) -> dict[str, tuple[Function, Function, Function | None]]:
    """The sides of each function: ours, NumPy's, PyTorch's."""
    one, zero = mx.np.ones(n), mx.np.zeros(n)
    same: dict[str, Function] = {
        "sum": lambda x: x.sum(-1),
        "max": lambda x: x.max(-1),
        "argmax": lambda x: x.argmax(-1),
    }
    found: dict[str, tuple[Function, Function, Function | None]] = {name: (f, f, f) for name, f in same.items()}
    if torch is not None:
        found["max"] = (*found["max"][:2], lambda x: x.amax(-1))
    found["var"] = (lambda x: x.var(-1), lambda x: x.var(-1), lambda x: x.var(-1, unbiased=False))
    found["softmax"] = (lambda x: mx.npx.softmax(x, axis=-1), softmax, lambda x: x.softmax(-1))
    found["layer_norm"] = (
        lambda x: mx.npx.layer_norm(x, one, zero, axis=-1, eps=1e-5),
        layer_norm,
        lambda x: torch.nn.functional.layer_norm(x, (n,)),
    )
    return found


def main() -> None:
    rng = numpy.random.default_rng(0)
    table = Table("a million float32 in rows, one thread", SIDES, threads=1)
    for n in LENGTHS:
        x = rng.normal(0, 1, (ELEMENTS // n, n)).astype("float32")
        ours, tensor = mx.np.array(x), None if torch is None else torch.from_numpy(x.copy())
        for name, (own, numpys, torchs) in functions(n).items():

            def waited(own: Function = own, ours: Any = ours) -> Any:
                result = own(ours)
                result.wait_to_read()
                return result

            sides: dict[str, Callable[[], Any]] = {OURS: waited, "NumPy": lambda f=numpys, x=x: f(x)}
            if tensor is not None and torchs is not None:
                sides["PyTorch"] = lambda f=torchs, x=tensor: f(x)
            table.add(f"{name}, {ELEMENTS // n} rows of {n}", sides, 1e-4, turn_s=0.02)


if __name__ == "__main__":
    main()
