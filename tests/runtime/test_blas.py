"""`mx.config.blas`: products by OpenBLAS or oneDNN, opened while the program runs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as onp
import pytest

import mxnet as mx
from c_library import run, tool
from mxnet import autograd, np, npx

PACKAGE = str(Path(mx.__file__).parent.parent)

# A library that looks like OpenBLAS and gives twice the product, if it was set to use one thread.
TWICE = r"""
#include <complex.h>
static int threads = 99;
void scipy_openblas_set_num_threads(int n) { threads = n; }
const char *scipy_openblas_get_config(void) { return "OpenBLAS 7.8.9  TWICE"; }
#define GEMM(NAME, T, F, VALUE)                                                                    \
    void NAME(int order, int ta, int tb, int m, int n, int k, F alpha, const T *a, int lda,        \
              const T *b, int ldb, F beta, T *c, int ldc)                                          \
    {                                                                                              \
        for (int i = 0; i < m; i++)                                                                \
            for (int j = 0; j < n; j++) {                                                          \
                T sum = 0;                                                                         \
                for (int q = 0; q < k; q++)                                                        \
                    sum += (ta == 112 ? a[q * lda + i] : a[i * lda + q]) *                         \
                           (tb == 112 ? b[j * ldb + q] : b[q * ldb + j]);                          \
                T old = VALUE(beta) == 0 ? 0 : VALUE(beta) * c[i * ldc + j];                       \
                c[i * ldc + j] = order == 101 && threads == 1 ? 2 * VALUE(alpha) * sum + old : -1; \
            }                                                                                      \
    }
#define SELF(x) (x)
#define SINGLE(x) (*(const float complex *)(x))
#define DOUBLE(x) (*(const double complex *)(x))
GEMM(scipy_cblas_sgemm, float, float, SELF)
GEMM(scipy_cblas_dgemm, double, double, SELF)
GEMM(scipy_cblas_cgemm, float complex, const void *, SINGLE)
GEMM(scipy_cblas_zgemm, double complex, const void *, DOUBLE)
"""

# Who multiplies shows in the result: it is twice what the built-in kernels give.
CALLS = """
import os
import numpy as onp
import mxnet as mx
from mxnet import autograd, np, npx

def ratio(function, *arrays):
    with mx.config(blas="builtin"):
        plain = function(*arrays).asnumpy()
    with mx.config(blas="openblas"):
        served = function(*arrays).asnumpy()
    return onp.round(abs(served).sum() / abs(plain).sum(), 3).item()

def gradient(a, b):
    a.attach_grad()
    with autograd.record():
        y = a @ b
    y.backward()
    return a.grad.copy()

rng = onp.random.default_rng(0)
def make(*shape, dtype="float32"):
    return np.array(rng.uniform(1, 2, shape), dtype=dtype)

for dtype in ["float32", "float64", "complex64", "complex128", "bfloat16"]:
    print(dtype, ratio(np.matmul, make(20, 30, dtype=dtype), make(30, 25, dtype=dtype)))
print("transposed", ratio(lambda a, b: a.T @ b.T, make(30, 20), make(25, 30)))
print("batch", ratio(np.matmul, make(3, 20, 30), make(30, 25)))
print("einsum", ratio(lambda a, b: np.einsum("ij,kj->ki", a, b), make(20, 30), make(25, 30)))
print("dense", ratio(lambda x, w: npx.fully_connected(x, w, num_hidden=25), make(20, 30), make(25, 30)))
print("gradient", ratio(gradient, make(20, 30), make(30, 25)))
print("graph", ratio(mx.jit(lambda a, b: a @ b), make(20, 30), make(30, 25)))
print("strided", ratio(lambda a, b: a[:, ::2] @ b, make(20, 60), make(30, 25)))
print("vector", ratio(np.matmul, make(20, 30), make(30)))
print("integer", ratio(np.matmul, make(20, 30, dtype="int64"), make(30, 25, dtype="int64")))
before, mx.config.blas = mx.config.blas, "auto"
print("auto", abs((np.ones((20, 30)) @ np.ones((30, 25))).asnumpy()).max().item() / 30)
backends = {backend.name: backend for backend in mx.runtime.backends()}
serving = [name for name, backend in backends.items() if "matrix products" in backend.serves]
assert serving == ["openblas" if backends["openblas"].is_loaded else "builtin"], serving
found = backends["openblas"]
print("backend", found.kind, found.is_loaded, found.version, os.path.basename(found.path), found.reason or "fine")
print("serves", *found.serves)
"""


def python(code: str, *folders: str | Path, options: tuple[str, ...] = (), **environment: str) -> str:
    """What a program prints that looks for packages in these folders first."""
    path = os.pathsep.join([*map(str, folders), PACKAGE])
    keep = {name: value for name, value in os.environ.items() if not name.startswith("MXNET_")}
    done = subprocess.run(
        [sys.executable, *options, "-c", code],
        env={**keep, **environment, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="session")
def twice(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a package whose library gives twice the product."""
    folder = tmp_path_factory.mktemp("twice")
    library = folder / "scipy_openblas32" / "lib" / "libscipy_openblas.so"
    library.parent.mkdir(parents=True)
    (folder / "twice.c").write_text(TWICE)
    run([tool("gcc"), "-shared", "-fPIC", "-O1", str(folder / "twice.c"), "-o", str(library)])
    return folder


def test_products_of_every_kind_run_in_the_library(twice: Path) -> None:
    lines = dict(line.split(" ", 1) for line in python(CALLS, twice).splitlines())
    served = ["float32", "float64", "complex64", "complex128", "bfloat16", "transposed", "batch", "einsum", "dense"]
    for name in [*served, "gradient", "graph", "auto"]:
        assert float(lines[name]) == 2, name  # to three places
    # No axis of neighbours in memory, vectors, integers: the built-in kernels.
    for name in ["strided", "vector", "integer"]:
        assert float(lines[name]) == 1, name
    assert lines["backend"] == "blas True 7.8.9 libscipy_openblas.so fine"
    assert lines["serves"] == "matrix products"


def test_the_environment_names_a_library(twice: Path) -> None:
    code = "import mxnet as mx; print(mx.config.blas, (mx.np.ones((20, 30)) @ mx.np.ones((30, 25)))[0, 0].item())"
    assert python(code, twice, MXNET_BLAS="openblas") == "openblas 60.0\n"
    assert python(code, twice) == "builtin 30.0\n"
    assert "`blas` must be one of builtin, openblas, onednn, auto, not 'mkl'" in python(code, twice, MXNET_BLAS="mkl")


def test_a_library_without_the_functions_is_passed_over(twice: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    library = empty / "scipy_openblas32" / "lib" / "libscipy_openblas.so"
    library.parent.mkdir(parents=True)
    (tmp_path / "empty.c").write_text("int nothing;")
    run([tool("gcc"), "-shared", "-fPIC", str(tmp_path / "empty.c"), "-o", str(library)])
    code = """
import mxnet as mx
mx.config.blas = "openblas"
print({backend.name: backend.version for backend in mx.runtime.backends()}["openblas"])
"""
    assert python(code, empty, twice) == "7.8.9\n"


def test_a_library_that_is_not_there_is_an_error_that_says_how_to_get_it(tmp_path: Path) -> None:
    # Python's own folders stay away (-S), but for NumPy.
    site = Path(onp.__file__).parent.parent
    for name in ("numpy", "numpy.libs"):
        if (site / name).exists():
            (tmp_path / name).symlink_to(site / name)
    (tmp_path / "blas.toml").write_text('[mxnet]\njit = false\nblas = "openblas"\n')
    code = """
import sys
import mxnet as mx
for set_blas in [
    lambda: mx.config.set("blas", "openblas"),
    lambda: mx.config.set("blas", "onednn"),
    lambda: mx.config.load(sys.path[1] + "/blas.toml"),
]:
    try:
        set_blas()
    except mx.error.UnsupportedError as error:
        print(error)
print(mx.config.blas, mx.config.origin("blas"), mx.config.jit)
mx.config.blas = "auto"
print((mx.np.ones((20, 30)) @ mx.np.ones((30, 25)))[0, 0].item())
print({backend.name: backend.reason for backend in mx.runtime.backends()}["openblas"])
"""
    lines = python(code, tmp_path, options=("-S",)).splitlines()
    missing = "config: `blas` cannot be 'openblas': the library of scipy-openblas32 was not found"
    assert lines[:2] == [missing, "  hint: pip install scipy-openblas32"]
    assert lines[2].startswith("config: `blas` cannot be 'onednn': ")
    assert lines[3:6] == ["  hint: pip install onednn-cpu-gomp", missing, "  hint: pip install scipy-openblas32"]
    assert lines[6:8] == ["builtin default True", "30.0"]
    assert lines[8] == "the library of scipy-openblas32 was not found: pip install scipy-openblas32"


def bound(a: onp.ndarray, b: onp.ndarray, eps: float) -> onp.ndarray:
    """How far two products may be apart: k roundings each; of complex numbers, each is four products and two sums."""
    size = a.shape[-1] * (4 if onp.iscomplexobj(a) else 1)
    product: onp.ndarray = 2 * (size + 2) * eps * (abs(a) @ abs(b))
    return product


def served_by(name: str) -> None:
    """Skips a test whose library is not installed."""
    try:
        with mx.config(blas=name):
            pass
    except mx.error.UnsupportedError as error:
        pytest.skip(f"{name} is not installed: {error}")


@pytest.mark.parametrize("library", ["openblas", "onednn"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_results_are_those_of_the_built_in_kernels(library: str, dtype: str) -> None:
    served_by(library)
    rng = onp.random.default_rng(5)

    def make(*shape: int) -> onp.ndarray:
        values = rng.normal(size=shape)
        return (values + 1j * rng.normal(size=shape) if "complex" in dtype else values).astype(dtype)

    shapes = [((33, 47), (47, 29)), ((600, 300), (300, 500)), ((5, 40, 64), (64, 70)), ((4, 2, 33, 30), (2, 30, 31))]
    for left, right in shapes:
        a, b = make(*left), make(*right)
        x, y = np.array(a, dtype=dtype), np.array(b, dtype=dtype)
        calls: dict[str, Callable[[], np.ndarray]] = {
            "plain": lambda x=x, y=y: x @ y,  # type: ignore[misc]
            "turned": lambda x=x, y=y: (y.swapaxes(-1, -2) @ x.swapaxes(-1, -2)).swapaxes(-1, -2),  # type: ignore[misc]
            "views": lambda x=x, y=y: np.concatenate([x, x], -1)[..., : x.shape[-1]] @ y,  # type: ignore[misc]
        }
        for name, call in calls.items():
            own = call().asnumpy()
            with mx.config(blas=library):
                served = call().asnumpy()
            difference, allowed = abs(served - own), bound(a, b, float(onp.finfo(dtype).eps))
            assert (difference <= allowed).all(), (name, left, (difference / allowed).max())


@pytest.mark.parametrize("library", ["openblas", "onednn"])
def test_networks_gradients_and_threads(library: str) -> None:
    served_by(library)
    rng = onp.random.default_rng(6)
    x = np.array(rng.normal(size=(8, 3, 20, 20)), dtype="float32")
    weight = np.array(rng.normal(size=(16, 3, 3, 3)), dtype="float32")
    dense = np.array(rng.normal(size=(300, 16 * 18 * 18)) / 100, dtype="float32")
    weight.attach_grad()

    def loss() -> tuple[onp.ndarray, onp.ndarray]:
        with autograd.record():
            y = npx.convolution(x, weight, kernel=(3, 3), num_filter=16, no_bias=True)
            y = npx.fully_connected(y, dense, num_hidden=300)
        y.backward()
        return y.asnumpy(), weight.grad.asnumpy().copy()

    own = loss()
    with mx.config(blas=library):
        many = loss()
        with mx.config(num_threads=1):
            one = loss()
    for a, b, c in zip(own, many, one, strict=True):
        # Sums of up to 5184 terms, two after another, of which each rounds by half an ulp.
        assert abs(a - b).max() <= 2 * 5184 * onp.finfo("float32").eps * abs(a).max()
        assert (b == c).all()


def test_numpy_and_openblas_live_in_one_process() -> None:
    served_by("openblas")
    rng = onp.random.default_rng(7)
    a = rng.normal(size=(300, 300))
    before = a @ a
    with mx.config(blas="openblas"):
        x = np.array(a, dtype="float64")
        for _ in range(3):
            ours = (x @ x).asnumpy()
            assert ((a @ a) == before).all()
    assert (abs(ours - before) <= bound(a, a, onp.finfo("float64").eps)).all()
