"""Products by the built-in kernels against the libraries of `mx.config.blas`, in one process and one pool.

`python benches/blas.py [word ...]` runs the cases whose name holds one of the words. Libraries that are not installed
are left out: `pip install scipy-openblas32 onednn-cpu-gomp`.
"""

from collections.abc import Callable

import numpy
from _sides import OURS, Table

import mxnet as mx

SHAPES = ((32, 32, 32), (128, 128, 128), (512, 512, 512), (1500, 1500, 1500), (64, 4096, 1024))


def can_be_opened(name: str) -> bool:
    try:
        with mx.config(blas=name):
            return True
    except mx.error.UnsupportedError:
        return False


def by(name: str, call: Callable[[], mx.np.ndarray]) -> Callable[[], mx.np.ndarray]:
    """The call with its products by `name`; the other sides pay for the choice as well."""

    def case() -> mx.np.ndarray:
        mx.config.set("blas", name)
        result = call()
        result.wait_to_read()
        return result

    return case


def main() -> None:
    libraries = [name for name in ("openblas", "onednn") if can_be_opened(name)]
    if not libraries:
        raise SystemExit("neither OpenBLAS nor oneDNN is installed")
    table = Table("products", [OURS, "NumPy", *libraries])
    for dtype in ("float32", "float64"):
        sides = [name for name in libraries if name != "onednn" or dtype == "float32"]
        for m, k, n in SHAPES:
            rng = numpy.random.default_rng(m)
            a, b = (mx.np.array(rng.uniform(-1, 1, shape), dtype=dtype) for shape in ((m, k), (k, n)))
            x, y = a.asnumpy(), b.asnumpy()
            cases = {OURS: by("builtin", lambda a=a, b=b: a @ b), "NumPy": lambda x=x, y=y: x @ y}
            cases |= {name: by(name, lambda a=a, b=b: a @ b) for name in sides}
            # Sums of k products in another order.
            table.add(f"({m}, {k}) @ ({k}, {n}) {dtype}", cases, rtol=k * float(numpy.finfo(dtype).eps), turns=7)


if __name__ == "__main__":
    main()
