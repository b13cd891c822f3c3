"""Sparse arrays against SciPy and PyTorch: a power-law graph of 100,000 nodes and a million edges.

Columns of the graph's matrix are drawn by weights that fall as 1 / rank, so a few nodes have thousands of edges.
Index arrays are int64 on all sides. Results are compared first.
"""

import numpy
import scipy.sparse
from _sides import OURS, Table, to_numpy

import mxnet as mx
from mxnet import _core, autograd, np, sparse
from mxnet.sparse import graph

try:
    import torch
except ImportError:
    torch = None

NODES, EDGES = 100_000, 1_000_000
rng = numpy.random.default_rng(0)


def power_law(nodes: int, edges: int) -> scipy.sparse.csr_array:
    """A random matrix whose rows and columns have power-law degrees, values uniform."""
    weights = 1 / numpy.arange(1, nodes + 1) ** 0.8
    weights /= weights.sum()
    places = numpy.zeros(0, "int64")
    while places.size < edges:
        u = rng.permutation(nodes)[rng.choice(nodes, edges, p=weights)]
        v = rng.choice(nodes, edges, p=weights)
        places = numpy.unique(numpy.concatenate([places, u * nodes + v]))
    places = numpy.sort(rng.choice(places, edges, replace=False))
    x = scipy.sparse.csr_array(
        (rng.uniform(0.5, 1, edges).astype("float32"), (places // nodes, places % nodes)), shape=(nodes, nodes)
    )
    x.indices, x.indptr = x.indices.astype("int64"), x.indptr.astype("int64")
    return x


def to_torch(x: scipy.sparse.csr_array):
    parts = [torch.from_numpy(part) for part in (x.indptr, x.indices, x.data)]
    return torch.sparse_csr_tensor(*parts, size=x.shape)


def compare(name, sides, rtol: float) -> None:
    """Refuses to time sides whose results differ by more than `rtol` of the largest element."""
    # Values in ascending order: PyTorch's products of sparse matrices store rows in another order.
    results = {side: numpy.sort(numpy.asarray(to_numpy(case())), axis=None) for side, case in sides.items()}
    ours = results.pop(OURS)
    for side, result in results.items():
        if ours.shape != result.shape or numpy.abs(ours - result).max() > rtol * numpy.abs(result).max():
            raise SystemExit(f"{name}: {side} has another result")


def main() -> None:
    table = Table(f"sparse, {NODES} nodes, {EDGES} edges, float32", [OURS, "SciPy", "PyTorch"])
    x = power_law(NODES, EDGES)
    a, t = sparse.csr_array(x), None if torch is None else to_torch(x)

    def add(name, ours, scipy=None, pytorch=None, rtol=1e-4):
        sides = {OURS: ours}
        if scipy is not None:
            sides["SciPy"] = scipy
        if torch is not None and pytorch is not None:
            sides["PyTorch"] = pytorch
        if rtol is not None:
            compare(name, sides, rtol)
        table.add(name, sides, rtol=None, turns=9)

    for width in (1, 64, 256):
        v = rng.uniform(0.5, 1, (NODES, width)).astype("float32")
        mine, theirs = np.array(v), None if torch is None else torch.from_numpy(v)
        add(
            f"matrix of {width} columns",
            lambda mine=mine: a @ mine,
            lambda v=v: x @ v,
            lambda theirs=theirs: t @ theirs,
        )
        if width == 1:
            add("the transpose and 1 column", lambda mine=mine: a.T @ mine, lambda v=v: x.T @ v)
    y = power_law(NODES, EDGES)
    b, u = sparse.csr_array(y), None if torch is None else to_torch(y)
    add("sum of two", lambda: (a + b).data, lambda: (x + y).data, lambda: (t + u).values())
    small = scipy.sparse.random_array(
        (20_000, 20_000), density=5e-4, format="csr", dtype="float32", rng=numpy.random.default_rng(1)
    )
    small.indices, small.indptr = small.indices.astype("int64"), small.indptr.astype("int64")
    c, s = sparse.csr_array(small), None if torch is None else to_torch(small)

    def scipys():
        product = small @ small
        product.sort_indices()
        return product.data

    add("product of two (20000, 5e-4)", lambda: (c @ c).data, scipys, lambda: (s @ s).values())
    add("transposed, as CSR", lambda: a.T.tocsr().data, lambda: x.T.tocsr().data)
    if torch is None:
        return
    g = a
    index = torch.from_numpy(numpy.repeat(numpy.arange(NODES), numpy.diff(x.indptr)))
    column = torch.from_numpy(x.indices)
    scores = rng.normal(size=EDGES).astype("float32")
    mine, theirs = np.array(scores), torch.from_numpy(scores)

    def scattered(z):
        top = torch.full((NODES,), -torch.inf).scatter_reduce(0, index, z, "amax")
        e = (z - top[index]).exp()
        return e / torch.zeros(NODES).index_add(0, index, e)[index]

    add("edge softmax", lambda: graph.edge_softmax(g, mine), None, lambda: scattered(theirs))
    p, q = (rng.uniform(0.5, 1, (NODES, 64)).astype("float32") for _ in range(2))
    ours, torchs = (np.array(p), np.array(q)), (torch.from_numpy(p), torch.from_numpy(q))
    add(
        "products at edges, 64 (SDDMM)",
        lambda: graph.gsddmm(g, "dot", *ours)[:, 0],
        None,
        lambda: (torchs[0][column] * torchs[1][index]).sum(1),
    )

    def our_step():
        z = np.array(mine)
        z.attach_grad()
        with autograd.record():
            out = graph.gspmm(g, "mul", "sum", ours[0], graph.edge_softmax(g, z))
        out.backward()
        return z.grad

    def their_step():
        z = theirs.clone().requires_grad_()
        messages = torchs[0][column] * scattered(z)[:, None]
        torch.zeros(NODES, 64).index_add(0, index, messages).sum().backward()
        return z.grad

    add("attention and its gradient, 64", our_step, None, their_step, rtol=None)


def memory() -> None:
    """Peak memory of operators at a density of 0.1 %, as a part of the dense array's."""
    n = 6000
    a = sparse.random_array((n, n), density=1e-3, format="csr")
    dense_bytes = n * n * 4
    cases = {
        "a @ vector": lambda: a @ np.ones(n),
        "a @ a": lambda: a @ a,
        "a + a.T": lambda: a + a.T.tocsr(),
        "a * a": lambda: a * a,
        "sum(axis=0)": lambda: a.sum(axis=0),
        "a[::2, ::3]": lambda: a[::2, ::3],
        "tocoo, tocsc": lambda: a.tocoo().tocsc(),
    }
    for name, case in cases.items():
        mx.waitall()
        _core.reset_memory_peak()
        before = _core.memory_stats()["in_use_bytes"]
        case()
        mx.waitall()
        share = (_core.memory_stats()["peak_bytes"] - before) / dense_bytes
        print(f"peak memory of {name:16} {share:8.2%} of the dense array")


if __name__ == "__main__":
    main()
    memory()
