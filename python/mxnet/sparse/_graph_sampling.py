"""Parts of graphs: drawn neighbours, random walks, subgraphs. Names are DGL's."""

from __future__ import annotations

from typing import Any

from mxnet import error
from mxnet._core import ndarray
from mxnet.sparse import _parts
from mxnet.sparse._compressed import csr_array
from mxnet.sparse._graph_arguments import checked, checked_nodes, features
from mxnet.sparse._indexing import rows as rows_of
from mxnet.sparse._parts import arange, gathered, masked, op


def sample_neighbors(
    g: csr_array, nodes: Any, fanout: int, prob: Any = None, replace: bool = False
) -> tuple[csr_array, ndarray]:
    """Some of the edges into each of some nodes, drawn by the global seed.

    Parameters
    ----------
    g : csr_array, shape (num_dst, num_src)
        The graph.
    nodes : array_like of int
        Destinations whose edges are drawn, each at most once.
    fanout : int
        Number of edges a node; -1 takes all. Without replacement a node with fewer keeps all of them.
    prob : array_like, shape (num_edges,), optional
        Weights of edges, not negative; those of weight 0 are never drawn. Equal ones if it is left out.
    replace : bool
        Whether an edge may be drawn several times.

    Returns
    -------
    csr_array, shape (num_dst, num_src)
        The drawn edges.
    ndarray
        For each of them its position in `g`.

    Raises
    ------
    mxnet.error.IndexError
        If a node is out of range.
    mxnet.error.ValueError
        If `fanout` is below -1, or a weight is negative.

    Notes
    -----
    Without replacement each edge gets a key ``-log(u) / weight`` and the smallest keys are taken (Efraimidis and
    Spirakis, Information Processing Letters 97 (2006), 181-185).

    Examples
    --------
    >>> import mxnet as mx
    >>> g, _ = mx.sparse.graph.from_edges([0, 1, 2], [2, 2, 2])
    >>> sub, at = mx.sparse.graph.sample_neighbors(g, [2], 2)
    >>> sub.nnz
    2
    """
    from mxnet import numpy as np

    g = checked(g, "sample_neighbors")
    if fanout < -1:
        raise error.ValueError(f"sample_neighbors: `fanout` must be at least -1, found {fanout}")
    chosen = np.unique(checked_nodes(nodes, g.shape[0], "sample_neighbors"))
    candidates = rows_of(g._with_data(arange(g.nnz)), chosen)
    at, indptr = candidates.data, candidates.indptr
    weights = None if prob is None else features(prob, g.nnz, "sample_neighbors: prob").astype("float64")
    if weights is not None:
        if weights.size and float(weights.min()) < 0:
            raise error.ValueError(f"sample_neighbors: weights must not be negative, found {float(weights.min())}")
        keep = masked(gathered(weights, at) > 0)
        indptr = op["search_sorted"](keep, indptr)
        at = gathered(at, keep)
    if fanout >= 0:
        draw = _with_replacement if replace else _without_replacement
        at = gathered(at, draw(indptr, None if weights is None else gathered(weights, at), fanout, at.size))
        at = op["sort"](at)
    row = gathered(g._majors(), at)
    found: csr_array = csr_array._of(
        gathered(g.data, at), gathered(g.indices, at), _parts.offsets(row, g.shape[0]), g.shape, canonical=False
    )
    found.check_format()
    return found, at


def _without_replacement(indptr: ndarray, weights: ndarray | None, fanout: int, count: int) -> ndarray:
    from mxnet import numpy as np

    # Uniform numbers in (0, 1], so that their logarithm is finite.
    keys = 1 - np.random.uniform(size=count, dtype="float64")
    keys = -np.log(keys) if weights is None else -np.log(keys) / weights
    segment = op["csr_rows"](_parts.zeros(count), indptr)
    order = np.lexsort((keys, segment))
    rank = arange(count) - gathered(indptr, segment)
    return gathered(order, masked(rank < fanout))


def _with_replacement(indptr: ndarray, weights: ndarray | None, fanout: int, count: int) -> ndarray:
    from mxnet import numpy as np

    full = masked(indptr[1:] > indptr[:-1])
    first, end = gathered(indptr, full), gathered(indptr, full + 1)
    u = np.random.uniform(size=(full.size, fanout), dtype="float64")
    first, end = first.reshape(-1, 1), end.reshape(-1, 1)
    if weights is None:
        drawn = first + (u * (end - first)).astype("int64")
    else:
        total = op["concatenate"]([_parts.zeros(1, "float64"), op["cumsum"](weights)])
        low, high = (gathered(total, x.ravel()).reshape(-1, 1) for x in (first, end))
        target = (low + u * (high - low)).ravel()
        drawn = op["search_sorted"](total, target, True).reshape(u.shape) - 1
    return op["minimum"](drawn, end - 1).ravel()  # type: ignore[no-any-return]


def random_walk(g: csr_array, nodes: Any, length: int, restart_prob: float = 0.0) -> ndarray:
    """Random walks along edges, drawn by the global seed.

    Parameters
    ----------
    g : csr_array, shape (n, n)
        The graph; a walk goes from the source of an edge to its destination.
    nodes : array_like of int, shape (num_walks,)
        Where each walk begins.
    length : int
        Number of steps.
    restart_prob : float
        Probability of ending before each step, in [0, 1].

    Returns
    -------
    ndarray, shape (num_walks, length + 1)
        int64 nodes; -1 after a walk has ended, as it does at a node without outgoing edges.

    Raises
    ------
    mxnet.error.ValueError
        If `length` is negative or `restart_prob` is not in [0, 1].
    mxnet.error.ShapeError
        If sources and destinations are not the same nodes.
    mxnet.error.IndexError
        If a node is out of range.

    Examples
    --------
    >>> import mxnet as mx
    >>> g, _ = mx.sparse.graph.from_edges([0, 1], [1, 2])
    >>> mx.sparse.graph.random_walk(g, [0], 3).tolist()
    [[0, 1, 2, -1]]
    """
    from mxnet import numpy as np

    g = checked(g, "random_walk")
    if g.shape[0] != g.shape[1]:
        raise error.ShapeError(f"random_walk: a graph of shape (n, n) is needed, found {g.shape}")
    if length < 0 or not 0 <= restart_prob <= 1:
        raise error.ValueError(
            f"random_walk: length >= 0 and 0 <= restart_prob <= 1 are needed, found {length} and {restart_prob}"
        )
    outgoing = g.tocsc()
    at = checked_nodes(nodes, g.shape[0], "random_walk")
    trace = [at]
    for _ in range(length):
        here = op["maximum"](at, 0)
        first = gathered(outgoing.indptr, here)
        degree = gathered(outgoing.indptr, here + 1) - first
        u = np.random.uniform(size=(2, at.size), dtype="float64")
        step = op["minimum"]((u[0] * degree).astype("int64"), degree - 1)
        goes_on = (at >= 0) & (degree > 0)
        if restart_prob:
            goes_on = goes_on & (u[1] >= restart_prob)
        edge = op["where"](goes_on, first + step, -1)
        at = op["where"](goes_on, gathered(outgoing.indices, edge), -1)
        trace.append(at)
    return op["stack"](trace, 1)  # type: ignore[no-any-return]


def node_subgraph(g: csr_array, nodes: Any) -> tuple[csr_array, ndarray]:
    """The nodes of a list and the edges among them.

    Parameters
    ----------
    g : csr_array, shape (n, n)
        The graph.
    nodes : array_like of int, shape (m,)
        Nodes, which get the numbers 0, 1, …, m - 1.

    Returns
    -------
    csr_array, shape (m, m)
        The subgraph.
    ndarray
        For each of its edges the position in `g`.

    Raises
    ------
    mxnet.error.IndexError
        If a node is out of range.
    mxnet.error.ValueError
        If a node is there twice.

    Examples
    --------
    >>> import mxnet as mx
    >>> g, _ = mx.sparse.graph.from_edges([0, 1, 2], [1, 2, 0])
    >>> mx.sparse.graph.node_subgraph(g, [2, 0])[0].todense()
    array([[0., 0.],
           [1., 0.]])
    """
    g = checked(g, "node_subgraph")
    chosen = checked_nodes(nodes, min(g.shape), "node_subgraph")
    number = op["scatter_or_skip"](arange(chosen.size) + 1, chosen, g.shape[1])
    if int((op["scatter_or_skip"](op["ones_like"](chosen), chosen, g.shape[1]) > 1).sum()):
        raise error.ValueError("node_subgraph: a node is there twice")
    part = rows_of(g._with_data(arange(g.nnz)), chosen)
    column = gathered(number, part.indices) - 1
    keep = masked(column >= 0)
    row, column, at = (gathered(x, keep) for x in (part._majors(), column, part.data))
    order, indptr = op["coo_order"](row, column, chosen.size, chosen.size)
    at = gathered(at, order)
    found: csr_array = csr_array._of(
        gathered(g.data, at), gathered(column, order), indptr, (chosen.size, chosen.size), canonical=False
    )
    found.check_format()
    return found, at
