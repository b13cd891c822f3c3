"""Matrix products against NumPy's BLAS and PyTorch's: small (cost of a call) to large (arithmetic).

`python benches/matmul.py [word ...]` runs the cases whose name holds one of the words.
"""

import numpy
from _sides import OURS, SIDES, Table, torch

import mxnet as mx

SIZES = (4, 64, 128, 256, 512, 1024, 2048)


def main() -> None:
    table = Table("matrix products", SIDES)
    for dtype in ("float32", "float64"):
        for n in SIZES:
            a, b = numpy.random.default_rng(n).uniform(-1, 1, (2, n, n)).astype(dtype)
            ours = [mx.np.array(x, dtype=dtype) for x in (a, b)]
            sides = {
                OURS: lambda ours=ours: mx.np.matmul(*ours),
                "NumPy": lambda a=a, b=b: numpy.matmul(a, b),
            }
            if torch is not None:
                theirs = [torch.from_numpy(x) for x in (a, b)]
                sides["PyTorch"] = lambda theirs=theirs: torch.matmul(*theirs)
            # Sums of n products of numbers below 1 in any order: n * eps bounds the error.
            rtol = n * float(numpy.finfo(dtype).eps)
            turns = 15 if n < 2048 else 5
            table.add(f"{n}x{n} {dtype}", sides, rtol=rtol, turns=turns)


if __name__ == "__main__":
    main()
