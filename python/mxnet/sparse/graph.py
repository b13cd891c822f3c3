"""Message passing on graphs, and a small graph to try it on; sampling is in `_graph_sampling.py`. Names are DGL's.

A graph is a `csr_array` of shape (num_dst, num_src): row i stores the sources of the edges into node i. Features of
edges are in the order of the stored elements; the values of the array do not count. `from_edges` makes one of lists of
edges.
"""

from __future__ import annotations

from typing import Any

from mxnet import error
from mxnet._core import asarray, ndarray
from mxnet.sparse import _karate, _parts
from mxnet.sparse._compressed import csr_array
from mxnet.sparse._graph_arguments import checked, features
from mxnet.sparse._graph_sampling import node_subgraph, random_walk, sample_neighbors
from mxnet.sparse._parts import gathered, integers, op

__all__ = [
    "edge_softmax",
    "edges",
    "from_edges",
    "gsddmm",
    "gspmm",
    "in_degrees",
    "karate_club",
    "node_subgraph",
    "out_degrees",
    "random_walk",
    "sample_neighbors",
    "segment_reduce",
    "segment_softmax",
]

_MESSAGES = ("add", "sub", "mul", "div", "copy_lhs", "copy_rhs", "copy_u", "copy_e")
_REDUCTIONS = ("sum", "mean", "max", "min", "mul", "prod")


def from_edges(src: Any, dst: Any, num_src: int | None = None, num_dst: int | None = None) -> tuple[csr_array, ndarray]:
    """A graph of lists of edges.

    Parameters
    ----------
    src, dst : array_like of int, shape (num_edges,)
        Where each edge starts and ends.
    num_src, num_dst : int, optional
        Numbers of nodes; without both, one more than the largest node of either list.

    Returns
    -------
    csr_array, shape (num_dst, num_src)
        The graph, its values ones. Edges that are there twice stay.
    ndarray, shape (num_edges,)
        For each stored edge the position that it had: ``features[order]`` are the graph's edge features.

    Raises
    ------
    mxnet.error.IndexError
        If a node is out of range.

    Examples
    --------
    >>> import mxnet as mx
    >>> g, order = mx.sparse.graph.from_edges([0, 1, 2], [2, 0, 0])
    >>> g.indices.tolist(), order.tolist()
    ([1, 2, 0], [1, 2, 0])
    """
    u, v = integers(src, "src"), integers(dst, "dst")
    if num_src is None and num_dst is None:
        largest = max((int(x.max()) for x in (u, v) if x.size), default=-1)
        num_src = num_dst = largest + 1
    m, n = (num_dst if num_dst is not None else num_src), (num_src if num_src is not None else num_dst)
    order, indptr = _parts.named("from_edges", lambda: op["coo_order"](v, u, m, n))
    g = csr_array((op["ones"](u.size, dtype="float32"), gathered(u, order), indptr), shape=(m, n))
    return g, order


def edges(g: csr_array) -> tuple[ndarray, ndarray]:
    """Sources and destinations of the edges, in the order of storage.

    Parameters
    ----------
    g : csr_array
        The graph.

    Returns
    -------
    tuple of ndarray, each of shape (num_edges,)

    Examples
    --------
    >>> import mxnet as mx
    >>> g, _ = mx.sparse.graph.from_edges([0, 1], [1, 0])
    >>> mx.sparse.graph.edges(g)
    (array([1, 0]), array([0, 1]))
    """
    g = checked(g, "edges")
    return g.indices, g._majors()


def in_degrees(g: csr_array) -> ndarray:
    """Number of edges into each destination, int64.

    Examples
    --------
    >>> import mxnet as mx
    >>> g, _ = mx.sparse.graph.from_edges([0, 1], [1, 1])
    >>> mx.sparse.graph.in_degrees(g)
    array([0, 2])
    """
    return g.indptr[1:] - g.indptr[:-1]


def out_degrees(g: csr_array) -> ndarray:
    """Number of edges out of each source, int64.

    Examples
    --------
    >>> import mxnet as mx
    >>> g, _ = mx.sparse.graph.from_edges([0, 1], [1, 1])
    >>> mx.sparse.graph.out_degrees(g)
    array([1, 1])
    """
    return op["scatter_or_skip"](op["ones_like"](g.indices), g.indices, g.shape[1])  # type: ignore[no-any-return]


def _spread(x: ndarray, g: csr_array) -> ndarray:
    return op["ragged_expand"](x, g.indptr, g.indices.size)  # type: ignore[no-any-return]


def _aligned(x: ndarray, y: ndarray) -> tuple[ndarray, ndarray]:
    """Rows with as many axes, as broadcasting of the features aligns them."""
    ndim = max(x.ndim, y.ndim)
    a, b = (z.reshape(z.shape[0], *(1,) * (ndim - z.ndim), *z.shape[1:]) for z in (x, y))
    return a, b


def gspmm(g: csr_array, op: str, reduce_op: str, lhs_data: Any = None, rhs_data: Any = None) -> ndarray:
    """Messages of edges, made of the features of their sources and their own, reduced at each destination (g-SpMM).

    Parameters
    ----------
    g : csr_array, shape (num_dst, num_src)
        The graph.
    op : {'add', 'sub', 'mul', 'div', 'copy_lhs', 'copy_rhs'}
        How a message is made: of both features, or a copy of the source's (also 'copy_u') or the edge's ('copy_e').
    reduce_op : {'sum', 'mean', 'max', 'min', 'mul'}
        How the messages into a node are reduced; 'prod' is another name of 'mul'. A node without edges gets 0.
    lhs_data : array_like, shape (num_src, ...)
        Features of sources.
    rhs_data : array_like, shape (num_edges, ...)
        Features of edges; features broadcast with each other.

    Returns
    -------
    ndarray, shape (num_dst, ...)
        Differentiable with respect to both features. Sums of 'copy_lhs' and of 'mul' by one number an edge (or a head)
        are sparse products and need no memory for messages; 'max', 'min' and 'mul' hold one message an edge.

    Raises
    ------
    mxnet.error.ValueError
        For an unknown operator or reduction.
    mxnet.error.ShapeError
        If there is not a row of features for each source, or each edge.

    Examples
    --------
    >>> import mxnet as mx
    >>> g, _ = mx.sparse.graph.from_edges([0, 1, 2], [2, 0, 0])
    >>> mx.sparse.graph.gspmm(g, "copy_lhs", "sum", mx.np.array([[1.0], [2.0], [4.0]])).tolist()
    [[6.0], [0.0], [1.0]]
    """
    g = checked(g, "gspmm")
    name = {"copy_u": "copy_lhs", "copy_e": "copy_rhs"}.get(op, op)
    if op not in _MESSAGES:
        raise error.ValueError(f"gspmm: `op` must be one of {', '.join(_MESSAGES)}, found {op!r}")
    if reduce_op not in _REDUCTIONS:
        raise error.ValueError(f"gspmm: `reduce_op` must be one of {', '.join(_REDUCTIONS)}, found {reduce_op!r}")
    u = None if name == "copy_rhs" else features(lhs_data, g.shape[1], "gspmm: lhs_data")
    e = None if name == "copy_lhs" else features(rhs_data, g.nnz, "gspmm: rhs_data")
    if reduce_op in ("sum", "mean"):
        total = _summed(g, name, u, e)
        if reduce_op == "sum":
            return total
        degree = _parts.op["maximum"](in_degrees(g), 1).reshape(-1, *(1,) * (total.ndim - 1))
        mean: ndarray = total / degree.astype(total.dtype)
        return mean
    messages = _messages(g, name, u, e)
    return _folded(messages, g.indptr, reduce_op)


def _folded(messages: ndarray, indptr: ndarray, reduction: str) -> ndarray:
    if reduction in ("max", "min"):
        return op[f"segment_{reduction}"](messages, indptr)[0]  # type: ignore[no-any-return]
    product = _parts.segment_prod(messages, indptr)
    is_empty = (indptr[1:] == indptr[:-1]).reshape(-1, *(1,) * (product.ndim - 1))
    return op["where"](is_empty, op["zeros_like"](product), product)  # type: ignore[no-any-return]


def _summed(g: csr_array, name: str, u: ndarray | None, e: ndarray | None) -> ndarray:
    if u is None:
        assert e is not None, "`copy_rhs` has features of edges"
        return _parts.segment_sum(e, g.indptr)
    if e is None:
        return op["csr_matmul_dense"](op["ones"](g.nnz, dtype=u.dtype), g.indices, g.indptr, u)  # type: ignore[no-any-return]
    if name in ("add", "sub"):
        of_edges = _parts.segment_sum(e, g.indptr)
        of_nodes, of_edges = _aligned(_summed(g, "copy_lhs", u, None), of_edges)
        return of_nodes + of_edges if name == "add" else of_nodes - of_edges
    factor = e if name == "mul" else 1 / e
    u, factor = _aligned(u, factor)
    if factor.size == g.nnz:
        found = op["csr_matmul_dense"](factor.reshape(-1), g.indices, g.indptr, u)
        return found  # type: ignore[no-any-return]
    if factor.shape[1] == u.shape[1] and factor.size == g.nnz * u.shape[1]:
        return op["csr_matmul_dense"](factor.reshape(g.nnz, -1), g.indices, g.indptr, u)  # type: ignore[no-any-return]
    return _parts.segment_sum(gathered(u, g.indices) * factor, g.indptr)


def _combined(name: str, x: ndarray, y: ndarray) -> ndarray:
    a, b = _aligned(x, y)
    function = {"add": "add", "sub": "subtract", "mul": "multiply", "div": "divide"}[name]
    return op[function](a, b)  # type: ignore[no-any-return]


def _messages(g: csr_array, name: str, u: ndarray | None, e: ndarray | None) -> ndarray:
    of_sources = None if u is None else gathered(u, g.indices)
    if of_sources is None or e is None:
        return e if of_sources is None else of_sources  # type: ignore[return-value]
    return _combined(name, of_sources, e)


def gsddmm(
    g: csr_array, op: str, lhs_data: Any, rhs_data: Any = None, lhs_target: str = "u", rhs_target: str = "v"
) -> ndarray:
    """Scores of edges, made of features of their ends or their own (g-SDDMM).

    Parameters
    ----------
    g : csr_array, shape (num_dst, num_src)
        The graph.
    op : {'add', 'sub', 'mul', 'div', 'dot', 'copy_lhs', 'copy_rhs'}
        How a score is made; 'dot' sums products over the last axis, which stays with length 1.
    lhs_data, rhs_data : array_like, shape (n, ...)
        Features; they broadcast with each other.
    lhs_target, rhs_target : {'u', 'v', 'e'}
        Whose features they are: of sources, destinations or edges.

    Returns
    -------
    ndarray, shape (num_edges, ...)
        Differentiable with respect to both features.

    Raises
    ------
    mxnet.error.ValueError
        For an unknown operator or target.
    mxnet.error.ShapeError
        If there is not a row of features for each node, or each edge.

    Examples
    --------
    >>> import mxnet as mx
    >>> g, _ = mx.sparse.graph.from_edges([0, 1], [1, 0])
    >>> mx.sparse.graph.gsddmm(g, "sub", mx.np.array([1.0, 5.0]), mx.np.array([1.0, 5.0]))
    array([ 4., -4.])
    """
    g = checked(g, "gsddmm")
    counts = {"u": g.shape[1], "v": g.shape[0], "e": g.nnz}
    for target in (lhs_target, rhs_target):
        if target not in counts:
            raise error.ValueError(f"gsddmm: a target must be 'u', 'v' or 'e', found {target!r}")

    def brought(x: ndarray, target: str) -> ndarray:
        return {"u": lambda: gathered(x, g.indices), "v": lambda: _spread(x, g), "e": lambda: x}[target]()

    if op in ("copy_lhs", "copy_rhs"):
        data, target = (lhs_data, lhs_target) if op == "copy_lhs" else (rhs_data, rhs_target)
        return brought(features(data, counts[target], f"gsddmm: {op[5:]}_data"), target)
    x = features(lhs_data, counts[lhs_target], "gsddmm: lhs_data")
    y = features(rhs_data, counts[rhs_target], "gsddmm: rhs_data")
    if op in ("add", "sub", "mul", "div"):
        return _combined(op, brought(x, lhs_target), brought(y, rhs_target))
    if op != "dot":
        raise error.ValueError(f"gsddmm: `op` must be one of add, sub, mul, div, dot, copy_lhs, copy_rhs, found {op!r}")
    if {lhs_target, rhs_target} == {"u", "v"} and x.shape[1:] == y.shape[1:] and x.ndim in (2, 3):
        of_dst, of_src = (x, y) if lhs_target == "v" else (y, x)
        found = _parts.op["csr_sampled_dense"](of_dst, of_src, g.indices, g.indptr, x.ndim == 3)
        return found.reshape(*found.shape, 1)  # type: ignore[no-any-return]
    return _combined("mul", brought(x, lhs_target), brought(y, rhs_target)).sum(axis=-1, keepdims=True)


def edge_softmax(g: csr_array, logits: Any, norm_by: str = "dst") -> ndarray:
    """Softmax of the scores of the edges into each destination, or out of each source.

    Parameters
    ----------
    g : csr_array, shape (num_dst, num_src)
        The graph.
    logits : array_like, shape (num_edges, ...)
        Scores.
    norm_by : {'dst', 'src'}
        Whose edges sum to 1.

    Returns
    -------
    ndarray, shape (num_edges, ...)

    Raises
    ------
    mxnet.error.ValueError
        For another `norm_by`.
    mxnet.error.ShapeError
        If there is not a row of scores for each edge.

    Examples
    --------
    >>> import mxnet as mx
    >>> g, _ = mx.sparse.graph.from_edges([0, 1], [1, 1])
    >>> mx.sparse.graph.edge_softmax(g, mx.np.array([0.0, 0.0]))
    array([0.5, 0.5])
    """
    g = checked(g, "edge_softmax")
    x = features(logits, g.nnz, "edge_softmax: logits")
    if norm_by == "dst":
        return op["ragged_softmax"](x, g.indptr)  # type: ignore[no-any-return]
    if norm_by != "src":
        raise error.ValueError(f"edge_softmax: `norm_by` must be 'dst' or 'src', found {norm_by!r}")
    _, indptr, order = op["csr_transpose"](g.indices, g.indptr, g.shape[1])
    y = op["ragged_softmax"](gathered(x, order), indptr)
    return op["scatter_or_skip"](y, order, g.nnz)  # type: ignore[no-any-return]


def _offsets(seglen: Any, count: int, what: str) -> ndarray:
    lengths = integers(seglen, f"{what}: seglen")
    if int(lengths.sum()) != count or (lengths.size and int(lengths.min()) < 0):
        raise error.ValueError(f"{what}: segments of {int(lengths.sum())} rows do not fit {count} rows of values")
    return op["concatenate"]([_parts.zeros(1), op["cumsum"](lengths)])  # type: ignore[no-any-return]


def segment_reduce(seglen: Any, value: Any, reducer: str = "sum") -> ndarray:
    """Reductions of segments: runs of rows that follow one another.

    Parameters
    ----------
    seglen : array_like of int, shape (num_segments,)
        Lengths of the segments.
    value : array_like, shape (n, ...)
        Rows, as many as the lengths sum to.
    reducer : {'sum', 'mean', 'max', 'min', 'mul'}
        What is made of a segment; an empty one gives 0.

    Returns
    -------
    ndarray, shape (num_segments, ...)

    Raises
    ------
    mxnet.error.ValueError
        If the lengths do not sum to the number of rows, or for an unknown reducer.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.sparse.graph.segment_reduce([1, 2], mx.np.array([1.0, 2.0, 3.0]))
    array([1., 5.])
    """
    x = asarray(value)
    indptr = _offsets(seglen, x.shape[0], "segment_reduce")
    if reducer not in _REDUCTIONS:
        raise error.ValueError(f"segment_reduce: `reducer` must be one of {', '.join(_REDUCTIONS)}, found {reducer!r}")
    if reducer not in ("sum", "mean"):
        return _folded(x, indptr, reducer)
    total: ndarray = _parts.segment_sum(x, indptr)
    if reducer == "sum":
        return total
    count = op["maximum"](indptr[1:] - indptr[:-1], 1).reshape(-1, *(1,) * (x.ndim - 1))
    mean: ndarray = total / count.astype(total.dtype)
    return mean


def segment_softmax(seglen: Any, value: Any) -> ndarray:
    """Softmax of each segment.

    Parameters
    ----------
    seglen : array_like of int, shape (num_segments,)
        Lengths of the segments.
    value : array_like, shape (n, ...)
        Rows, as many as the lengths sum to.

    Returns
    -------
    ndarray, shape (n, ...)

    Raises
    ------
    mxnet.error.ValueError
        If the lengths do not sum to the number of rows.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.sparse.graph.segment_softmax([1, 2], mx.np.zeros(3))
    array([1. , 0.5, 0.5])
    """
    x = asarray(value)
    return op["ragged_softmax"](x, _offsets(seglen, x.shape[0], "segment_softmax"))  # type: ignore[no-any-return]


def karate_club() -> tuple[csr_array, ndarray]:
    """Zachary's karate club: friendships among 34 members of a club that fell apart.

    Returns
    -------
    csr_array, shape (34, 34)
        The graph; each of the 78 friendships is an edge both ways.
    ndarray, shape (34,)
        int64: 0 for members who stayed with the instructor, 1 for those who went with the officer.

    Notes
    -----
    Source: W. W. Zachary, An information flow model for conflict and fission in small groups, Journal of
    Anthropological Research 33 (1977), 452-473.

    Examples
    --------
    >>> import mxnet as mx
    >>> g, side = mx.sparse.graph.karate_club()
    >>> g.nnz, int(side.sum())
    (156, 17)
    """
    a = [i - 1 for i, _ in _karate.FRIENDSHIPS]
    b = [j - 1 for _, j in _karate.FRIENDSHIPS]
    g, _ = from_edges(a + b, b + a, 34, 34)
    side = [0 if member in _karate.WITH_INSTRUCTOR else 1 for member in range(1, 35)]
    return g, asarray(side)
