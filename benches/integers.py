"""Functions of a million integers against NumPy: folds, inner products, membership."""

import numpy
from _sides import OURS, Table

from mxnet import np, npx

rng = numpy.random.default_rng(0)


def main() -> None:
    npx.set_np(dtype=True)  # NumPy's dtypes of results
    table = Table("integers, 1000 x 1000", [OURS, "NumPy"])
    for dtype in ("int64", "int32", "uint8"):
        x = rng.integers(0, 100, (1000, 1000)).astype(dtype)
        members = numpy.array([3, 5], dtype)
        mine, my_members = np.array(x, dtype=dtype), np.array(members, dtype=dtype)
        cases = {
            "sum": lambda m, x, _: m.sum(x),
            "sum over axis 1": lambda m, x, _: m.sum(x, axis=1),
            "max over axis 1": lambda m, x, _: m.max(x, axis=1),
            "inner product": lambda m, x, _: m.dot(x.ravel(), x.ravel()),
            "isin, 2 members": lambda m, x, members: m.isin(x, members),
        }
        for name, case in cases.items():
            sides = {
                OURS: lambda case=case, x=mine, members=my_members: case(np, x, members),
                "NumPy": lambda case=case, x=x, members=members: case(numpy, x, members),
            }
            table.add(f"{name}, {dtype}", sides, rtol=0, turns=7)


if __name__ == "__main__":
    main()
