"""Fourier transforms against NumPy's and PyTorch's: one line and many, lengths of every kind, along every axis.

`python benches/fft.py [word ...]` runs the cases whose name holds one of the words.
"""

from collections.abc import Callable
from typing import Any

import numpy
from _sides import OURS, SIDES, Table, torch

import mxnet as mx


def noise(*shape: int, dtype: str = "complex64") -> numpy.ndarray:
    rng = numpy.random.default_rng(0)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype.startswith("complex") else x).astype(dtype)


def sides(name: str, x: numpy.ndarray, **how: Any) -> dict[str, Callable[[], Any]]:
    """`name` of the same numbers on every side."""
    ours, theirs = mx.np.array(x, dtype=x.dtype), getattr(numpy.fft, name)
    cases = {OURS: lambda: getattr(mx.np.fft, name)(ours, **how), "NumPy": lambda: theirs(x, **how)}
    if torch is not None:
        tensor, called = torch.from_numpy(x), {"dim" if key == "axis" else key: value for key, value in how.items()}
        cases["PyTorch"] = lambda: getattr(torch.fft, name)(tensor, **called)
    return cases


def main() -> None:
    table = Table("Fourier transforms", SIDES)
    kinds = ("complex64", "complex128", "float32")
    for n in (16, 1024, 1000, 1009, 65536, 1_000_000):
        for kind in kinds:
            name = "rfft" if kind == "float32" else "fft"
            table.add(f"{name} {n} {kind}", sides(name, noise(n, dtype=kind)))
    for shape in ((10_000, 16), (1000, 256), (500, 1000), (200, 4096), (1000, 255)):
        for kind in kinds:
            name = "rfft" if kind == "float32" else "fft"
            table.add(f"{name} lines {shape[0]}x{shape[1]} {kind}", sides(name, noise(*shape, dtype=kind)))
    table.add("fft of reals 500x1000 float32", sides("fft", noise(500, 1000, dtype="float32")))
    table.add("irfft 500x501 complex64", sides("irfft", noise(500, 501)))
    table.add("irfft 500x500 to 999 complex64", sides("irfft", noise(500, 500), n=999))
    for shape in ((256, 1000), (1024, 1024), (64, 64, 64)):
        for kind in ("complex64", "float32"):
            name = "rfft" if kind == "float32" else "fft"
            table.add(f"{name} axis 0 {shape} {kind}", sides(name, noise(*shape, dtype=kind), axis=0))
    for shape in ((256, 256), (1024, 1024), (64, 64, 64)):
        for kind in ("complex64", "float32"):
            name = "rfftn" if kind == "float32" else "fftn"
            table.add(f"{name} {shape} {kind}", sides(name, noise(*shape, dtype=kind)))
    table.add("fftn of reals (1024, 1024) float32", sides("fftn", noise(1024, 1024, dtype="float32")))
    table.add("irfftn (1024, 513) complex64", sides("irfftn", noise(1024, 513)))


if __name__ == "__main__":
    main()
