"""Message passing, sampling and the examples' graph, against loops over edges."""

import numpy
import pytest

import mxnet as mx
from mxnet import autograd, np
from mxnet.sparse import graph

NODES, EDGES = 9, 31


def example(seed=0, num_src=NODES, num_dst=NODES - 2):
    rng = numpy.random.default_rng(seed)
    src, dst = rng.integers(0, num_src, EDGES), rng.integers(0, num_dst, EDGES)
    g, order = graph.from_edges(src, dst, num_src, num_dst + 2)
    # The last two destinations have no edges.
    return g, src[order.asnumpy()], dst[order.asnumpy()], rng


FUNCTIONS = {
    "add": numpy.add,
    "sub": numpy.subtract,
    "mul": numpy.multiply,
    "div": numpy.divide,
    "copy_lhs": lambda u, e: u + 0 * e,
    "copy_rhs": lambda u, e: e + 0 * u,
}
FOLDS = {"sum": numpy.sum, "mean": numpy.mean, "max": numpy.max, "min": numpy.min, "mul": numpy.prod}


def reduced(messages, dst, count, fold):
    out = numpy.zeros((count, *messages.shape[1:]))
    for i in range(count):
        if (dst == i).any():
            out[i] = FOLDS[fold](messages[dst == i], axis=0)
    return out


@pytest.mark.parametrize("fold", FOLDS)
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(
    ("of_nodes", "of_edges"), [((3,), (3,)), ((), ()), ((2, 4), (2, 1)), ((5,), (1,)), ((2, 4), (2, 4))]
)
def test_messages_are_reduced_as_by_loops(function, fold, of_nodes, of_edges):
    g, src, dst, rng = example()
    u, e = rng.uniform(0.5, 2, (NODES, *of_nodes)), rng.uniform(0.5, 2, (EDGES, *of_edges))
    got = graph.gspmm(g, function, fold, np.array(u), np.array(e)).asnumpy()
    messages = FUNCTIONS[function](u[src], e)
    if function.startswith("copy"):
        messages = u[src] if function == "copy_lhs" else e
    # At most 31 messages up to 4: their products reach 4^31 with as many roundings.
    numpy.testing.assert_allclose(got, reduced(messages, dst, NODES, fold), rtol=1e-13 * EDGES)


@pytest.mark.parametrize("fold", FOLDS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_gradients_of_messages_are_slopes(function, fold):
    g, _, _, rng = example(1)
    u, e = np.array(rng.uniform(0.5, 2, (NODES, 2, 3))), np.array(rng.uniform(0.5, 2, (EDGES, 2, 1)))
    head = np.array(rng.uniform(-1, 1, (NODES, 2, 1 if function == "copy_rhs" else 3)))
    u.attach_grad()
    e.attach_grad()
    with autograd.record():
        (graph.gspmm(g, function, fold, u, e) * head).sum().backward()
    step = 1e-6
    for x, at in ((u, (3, 1, 2)), (u, (0, 0, 0)), (e, (7, 1, 0)), (e, (30, 0, 0))):
        slopes = []
        for sign in (1, -1):
            moved = np.array(x.asnumpy())
            moved[at] += sign * step
            operands = (moved, e) if x is u else (u, moved)
            slopes.append(float((graph.gspmm(g, function, fold, *operands) * head).sum()))
        slope = (slopes[0] - slopes[1]) / (2 * step)
        # Central differences: rounding is eps * value / step, values reach a few thousand.
        assert abs(float(x.grad[at]) - slope) <= 1e-5 * max(1, abs(slope)), (at, float(x.grad[at]), slope)


@pytest.mark.parametrize("function", ["add", "sub", "mul", "div", "dot", "copy_lhs", "copy_rhs"])
@pytest.mark.parametrize(("left", "right"), [("u", "v"), ("v", "u"), ("u", "e"), ("e", "v"), ("u", "u")])
@pytest.mark.parametrize("shape", [(4,), (2, 3)])
def test_scores_of_edges(function, left, right, shape):
    g, src, dst, rng = example(2)
    counts = {"u": NODES, "v": NODES, "e": EDGES}
    at = {"u": src, "v": dst, "e": numpy.arange(EDGES)}
    x, y = rng.uniform(0.5, 2, (counts[left], *shape)), rng.uniform(0.5, 2, (counts[right], *shape))
    got = graph.gsddmm(g, function, np.array(x), np.array(y), left, right)
    a, b = x[at[left]], y[at[right]]
    want = {"dot": lambda a, b: (a * b).sum(-1, keepdims=True), "copy_lhs": lambda a, b: a, "copy_rhs": lambda a, b: b}
    want = want.get(function) or FUNCTIONS[function]
    numpy.testing.assert_allclose(got.asnumpy(), want(a, b), rtol=1e-14)


def test_edge_softmax_sums_to_one_over_the_edges_of_a_node():
    g, src, dst, rng = example(3)
    x = np.array(rng.normal(size=(EDGES, 2)) * 300)
    for side, at in (("dst", dst), ("src", src)):
        y = graph.edge_softmax(g, x, norm_by=side).asnumpy()
        for i in range(NODES):
            part = x.asnumpy()[at == i]
            want = numpy.exp(part - part.max(0, initial=-numpy.inf))
            numpy.testing.assert_allclose(y[at == i], want / want.sum(0), rtol=1e-13, atol=1e-300)


def test_edge_softmax_gradients():
    g, _, dst, rng = example(3)
    x, head = np.array(rng.normal(size=EDGES)), rng.normal(size=EDGES)
    for side in ("dst", "src"):
        x.attach_grad()
        with autograd.record():
            y = graph.edge_softmax(g, x, norm_by=side)
            (y * np.array(head)).sum().backward()
        y, at = y.asnumpy(), dst if side == "dst" else graph.edges(g)[0].asnumpy()
        total = numpy.bincount(at, y * head, NODES)
        numpy.testing.assert_allclose(x.grad.asnumpy(), y * (head - total[at]), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("fold", FOLDS)
def test_segments(fold):
    rng = numpy.random.default_rng(0)
    x, lengths = rng.uniform(0.5, 2, (10, 3)), [3, 0, 5, 2]
    got = graph.segment_reduce(lengths, np.array(x), fold).asnumpy()
    numpy.testing.assert_allclose(got, reduced(x, numpy.repeat(range(4), lengths), 4, fold), rtol=1e-13)
    y = graph.segment_softmax(lengths, np.array(x)).asnumpy()
    numpy.testing.assert_allclose(y[:3].sum(0), 1, rtol=1e-14)
    with pytest.raises(ValueError, match=r"9 rows .* 10 rows"):
        graph.segment_reduce([4, 5], np.array(x))


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_sampled_neighbours_are_edges_of_the_graph(replace, weighted):
    g, src, dst, rng = example(4)
    prob = None
    if weighted:
        prob = rng.uniform(0.5, 1, EDGES) * (numpy.arange(EDGES) % 4 > 0)
    mx.random.seed(1)
    sub, at = graph.sample_neighbors(g, [0, 3, 8], 2, prob=None if prob is None else np.array(prob), replace=replace)
    at = at.asnumpy()
    assert sub.shape == g.shape
    assert (sub.indices.asnumpy() == src[at]).all()
    assert (graph.edges(sub)[1].asnumpy() == dst[at]).all()
    assert set(dst[at]) <= {0, 3, 8}
    for node in (0, 3, 8):
        candidates = (dst == node) & (numpy.ones(EDGES) if prob is None else prob > 0).astype(bool)
        wanted = 2 * bool(candidates.sum()) if replace else min(2, candidates.sum())
        assert (dst[at] == node).sum() == wanted
        assert replace or len(set(at)) == len(at)
    mx.random.seed(1)
    again = graph.sample_neighbors(g, [0, 3, 8], 2, prob=None if prob is None else np.array(prob), replace=replace)[1]
    assert (again.asnumpy() == at).all()


def test_neighbours_are_drawn_by_their_weights():
    g, _ = graph.from_edges([0, 1, 2], [3, 3, 3], 4, 4)
    mx.random.seed(0)
    weights = np.array([1.0, 2.0, 5.0])
    _, at = graph.sample_neighbors(g, [3], 40000, prob=weights, replace=True)
    counts = numpy.bincount(at.asnumpy(), minlength=3)
    # Counts of 40000 draws have standard deviations below 100.
    assert (abs(counts - numpy.array([5000, 10000, 25000])) < 500).all()
    assert graph.sample_neighbors(g, [3], -1)[1].size == 3
    with pytest.raises(IndexError, match="node 4"):
        graph.sample_neighbors(g, [4], 1)
    with pytest.raises(ValueError, match="negative"):
        graph.sample_neighbors(g, [3], 1, prob=-weights)


def test_walks_follow_edges():
    g, src, dst, _ = example(5)
    edges = set(zip(src.tolist(), dst.tolist(), strict=True))
    mx.random.seed(2)
    walks = graph.random_walk(g, list(range(NODES)) * 3, 6).tolist()
    for walk in walks:
        for a, b in zip(walk, walk[1:], strict=False):
            assert (a, b) in edges or (b == -1 and not any(s == a for s, _ in edges))
    assert all(-1 in walk[1:2] for walk in graph.random_walk(g, [0, 1], 3, restart_prob=1.0).tolist())
    with pytest.raises(ValueError, match="restart_prob"):
        graph.random_walk(g, [0], 1, restart_prob=2)


def test_subgraphs_have_the_edges_among_their_nodes():
    g, src, dst, _ = example(6)
    nodes = [7, 0, 4, 5]
    sub, at = graph.node_subgraph(g, nodes)
    want = sorted((nodes.index(d), nodes.index(s)) for s, d in zip(src, dst, strict=True) if s in nodes and d in nodes)
    u, v = (x.tolist() for x in graph.edges(sub))
    assert list(zip(v, u, strict=True)) == want
    assert [nodes[i] for i in u] == src[at.asnumpy()].tolist()
    with pytest.raises(ValueError, match="twice"):
        graph.node_subgraph(g, [1, 1])


def test_karate_club_is_zacharys():
    g, side = graph.karate_club()
    a = g.todense().asnumpy()
    assert (a == a.T).all() and a.sum() == 156 and a.max() == 1
    degrees = graph.in_degrees(g).tolist()
    assert degrees == graph.out_degrees(g).tolist()
    assert (degrees[0], degrees[32], degrees[33]) == (16, 12, 17)
    # Both leaders, and the best-known member whose side the paper predicted wrong (member 9).
    assert side[[0, 33, 8]].tolist() == [0, 1, 0]


def test_graphs_check_their_features():
    g, *_ = example()
    with pytest.raises(ValueError, match=r"lhs_data must have 9 rows.*\(4, 2\)"):
        graph.gspmm(g, "copy_lhs", "sum", np.ones((4, 2)))
    with pytest.raises(ValueError, match=r"reduce_op.*median"):
        graph.gspmm(g, "copy_lhs", "median", np.ones((9, 2)))
    with pytest.raises(ValueError, match="target"):
        graph.gsddmm(g, "add", np.ones(9), np.ones(9), "w", "v")
    with pytest.raises(mx.error.UnsupportedError, match="coo_array"):
        graph.edge_softmax(g.tocoo(), np.ones(EDGES))
    with pytest.raises(IndexError, match="9"):
        graph.from_edges([0, 9], [0, 1], 3, 3)
