"""Factorisations against NumPy's LAPACK and PyTorch's: one large matrix, and many small ones.

`python benches/linalg.py [word ...]` runs the cases whose name holds one of the words.
"""

from collections.abc import Callable
from typing import Any

import numpy
from _sides import OURS, SIDES, Table, torch

import mxnet as mx

Solver = Callable[[Any, Any], Any]

# Each takes the `linalg` module of a side and a matrix or a stack of them.
CASES: dict[str, Solver] = {
    "inv": lambda module, a: module.inv(a),
    "det": lambda module, a: module.det(a),
    "solve": lambda module, a: module.solve(a, a),
    "cholesky": lambda module, a: module.cholesky(a),
    "qr": lambda module, a: module.qr(a)[1],
    "svdvals": lambda module, a: module.svdvals(a),
    "svd": lambda module, a: module.svd(a)[1],
    "eigvalsh": lambda module, a: module.eigvalsh(a),
    "eigh": lambda module, a: module.eigh(a)[0],
    "eigvals": lambda module, a: module.eigvals(a),
    "eig": lambda module, a: module.eig(a)[0],
    "pinv": lambda module, a: module.pinv(a),
}

SHAPES = ((1000, 4, 4), (1000, 16, 16), (64, 64), (256, 256), (1000, 1000))


def main() -> None:
    table = Table("factorisations", SIDES)
    for dtype in ("float64", "float32"):
        for shape in SHAPES:
            n = shape[-1]
            x = numpy.random.default_rng(n).uniform(-1, 1, shape)
            # Symmetric and positive definite: every case takes it, and eigenvalues are real.
            matrix = (x @ numpy.swapaxes(x, -1, -2) / n + numpy.eye(n)).astype(dtype)
            ours = mx.np.array(matrix, dtype=dtype)
            theirs = None if torch is None else torch.from_numpy(matrix)
            for name, run in CASES.items():
                if n == 1000 and name in ("eig", "eigvals", "svd", "pinv", "svdvals", "eigh", "eigvalsh"):
                    continue  # these take seconds; n = 256 says the same
                sides = {
                    OURS: lambda run=run, a=ours: run(mx.np.linalg, a),
                    "NumPy": lambda run=run, a=matrix: run(numpy.linalg, a),
                }
                if theirs is not None:
                    sides["PyTorch"] = lambda run=run, a=theirs: run(torch.linalg, a)
                # Condition numbers are below 10; signs of R and the order of eigenvalues are any.
                rtol = None if name in ("qr", "eig", "eigvals") or (name == "det" and n > 16) else 1e-3
                table.add(f"{name} {shape} {dtype}", sides, rtol=rtol, turns=5)


if __name__ == "__main__":
    main()
