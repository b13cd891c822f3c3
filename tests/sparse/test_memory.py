"""Peak memory of sparse operators at a density of 0.1 %: less than a tenth of the dense array's."""

import json
import subprocess
import sys

import numpy
import pytest

import mxnet as mx
from mxnet import _core, autograd, np, npx, sparse
from mxnet.sparse import graph

N, STORED = 4000, 16_000
DENSE_BYTES = N * N * 4
RNG = numpy.random.default_rng(0)


def random_csr(seed: int):
    rng = numpy.random.default_rng(seed)
    places = numpy.sort(rng.choice(N * N, STORED, replace=False))
    indptr = numpy.searchsorted(places // N, numpy.arange(N + 1))
    parts = (rng.uniform(0.5, 1, STORED).astype("float32"), places % N, indptr)
    return sparse.csr_array(parts, shape=(N, N))


A, B = random_csr(1), random_csr(2)
BLOCKS = sparse.bsr_array(A)
ROWS = sparse.row_sparse_array((np.ones((2, N)), [3, 7]), shape=(N, N))
V, M = np.ones(N), np.ones((N, 16))
E = np.ones(STORED)
ROW = np.ones((1, N))


def gradient(function, *operands):
    def run():
        for x in operands:
            x.attach_grad()
        with autograd.record():
            y = function(*operands)
            y = y.data if sparse.issparse(y) else y
        y.backward()

    return run


CASES = {
    "tocsc": lambda: A.tocsc(),
    "tocoo": lambda: A.tocoo(),
    "coo to csr": lambda: A.tocoo().tocsr(),
    "tobsr": lambda: A.tobsr((2, 2)),
    "bsr to csr": lambda: BLOCKS.tocsr(),
    "tostype": lambda: ROWS.tocsr(),
    "copy": lambda: A.copy(),
    "astype": lambda: A.astype("float64"),
    "from parts": lambda: sparse.csr_array((A.data, A.indices, A.indptr), shape=(N, N)),
    "from coordinates": lambda: sparse.coo_array((A.data, A.tocoo().coords), shape=(N, N)).tocsr(),
    "negative": lambda: -A,
    "tanh": lambda: np.tanh(A),
    "add": lambda: A + B,
    "subtract": lambda: A - B,
    "multiply": lambda: A * B,
    "multiply by a row": lambda: A * ROW,
    "divide by a row": lambda: A / ROW,
    "multiply by a number": lambda: A * 2,
    "power": lambda: A**2,
    "maximum": lambda: np.maximum(A, B),
    "not equal": lambda: A != B,
    "greater": lambda: A > 0.7,
    **{
        f"{name} over {axis}": lambda name=name, axis=axis: getattr(A, name)(axis)
        for name in ("sum", "mean", "max", "min", "prod", "argmax", "count_nonzero", "nanmax", "any")
        for axis in (None, 0, 1)
    },
    "sparse @ vector": lambda: A @ V,
    "sparse @ matrix": lambda: A @ M,
    "matrix @ sparse": lambda: M.T @ A,
    "blocks @ matrix": lambda: BLOCKS @ M,
    "coordinates @ vector": lambda: A.tocoo() @ V,
    "rows @ vector": lambda: ROWS @ V,
    "sparse @ sparse": lambda: A @ B,
    "sampled product": lambda: sparse.sampled_matmul(M, M, A),
    "transpose": lambda: A.T.tocsr(),
    "slice": lambda: A[10:900, ::3],
    "rows chosen": lambda: A[[1, 5, 1]],
    "columns chosen": lambda: A[:, [1, 5, 1]],
    "elements chosen": lambda: A[[1, 2], [3, 4]],
    "vstack": lambda: sparse.vstack([A, B]),
    "hstack": lambda: sparse.hstack([A, B]),
    "diagonal": lambda: A.diagonal(),
    "trace": lambda: A.trace(),
    "diags_array": lambda: sparse.diags_array(V),
    "eye_array": lambda: sparse.eye_array(N),
    "kron": lambda: sparse.kron(A[:10], sparse.eye_array(20)),
    "kronsum": lambda: sparse.kronsum(A[:40, :40], sparse.eye_array(50)),
    "tril": lambda: sparse.tril(A),
    "triu": lambda: sparse.triu(A),
    "reshape": lambda: A.reshape(N // 2, 2 * N),
    "sum_duplicates": lambda: sparse.coo_array((A.data, A.tocoo().coords), shape=(N, N)).sum_duplicates(),
    "eliminate_zeros": lambda: A.copy().eliminate_zeros(),
    "block_array": lambda: sparse.block_array([[A, None], [None, B]]),
    "block_diag": lambda: sparse.block_diag([A, B]),
    "find": lambda: sparse.find(A),
    "retain": lambda: sparse.retain(ROWS, [3]),
    "random_array": lambda: sparse.random_array((N, N), density=1e-3),
    "gspmm, sum": lambda: graph.gspmm(A, "mul", "sum", M, E),
    "gspmm, max": lambda: graph.gspmm(A, "copy_lhs", "max", M, None),
    "gsddmm": lambda: graph.gsddmm(A, "dot", M, M),
    "edge_softmax": lambda: graph.edge_softmax(A, E),
    "gradient of sparse @ matrix": gradient(lambda a, m: a @ m, A.copy(), M.copy()),
    "gradient of sparse @ sparse": gradient(lambda a, b: a @ b, A.copy(), B.copy()),
    "gradient of add": gradient(lambda a, b: a + b, A.copy(), B.copy()),
    "gradient of the sampled product": gradient(lambda x, y: sparse.sampled_matmul(x, y, A), M.copy(), M.copy()),
}


def embedding():
    table = np.zeros((N, N))
    table.attach_grad(stype="row_sparse")

    def run():
        with autograd.record():
            y = npx.embedding(np.array([1, 5]), table, sparse_grad=True)
        y.backward()

    return run


OTHERS = {"todense": lambda: A.todense(), "embedding": embedding()}


def peak(function) -> int:
    """How many bytes more are in use during a call than before it."""
    mx.waitall()
    _core.reset_memory_peak()
    before = _core.memory_stats()["in_use_bytes"]
    function()
    mx.waitall()
    return _core.memory_stats()["peak_bytes"] - before


@pytest.fixture(scope="module")
def peaks():
    """Peaks in a new process: they count whole blocks of memory, which earlier tests leave behind in other sizes."""
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=True, timeout=120)
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", [*CASES, "embedding"])
def test_peak_is_less_than_a_tenth_of_the_dense_array(name, peaks):
    assert peaks[name] < DENSE_BYTES / 10


def test_the_dense_array_is_seen(peaks):
    assert peaks["todense"] >= DENSE_BYTES


if __name__ == "__main__":
    with mx.engine.mode("sync"):
        print(json.dumps({name: peak(function) for name, function in {**CASES, **OTHERS}.items()}))
