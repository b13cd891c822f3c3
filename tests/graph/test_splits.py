"""Functions with results whose shape depends on values: graphs in pieces, with the bits of the function."""

import numpy
import pytest

import mxnet as mx
from mxnet import autograd, gluon, np, npx
from mxnet.gluon import nn


def bits(x):
    return x.shape, x.dtype, x.asnumpy().tobytes()


def data(*shape, seed=0):
    return np.array(numpy.random.default_rng(seed).normal(size=shape).astype("float32"))


def entries(compiled):
    return [(report.get("num_pieces"), report.get("note")) for report in compiled.trace_report()]


PROGRAMS = {
    "mask": lambda x: np.tanh(x[x > 0] * 2) + 1,
    "mask of rows": lambda x: x[x.sum(axis=1) > 0] @ np.ones((x.shape[1], 2)),
    "one mask twice": lambda x: x[x > 0] * np.exp(x)[x > 0],
    "two masks": lambda x: (x[x > 0.5].sum() + x[x < -0.5].sum(), x[x > 0.5] * 2),
    "nonzero": lambda x: (x * 2)[np.nonzero(x > 0)] - 1,
    "flatnonzero": lambda x: np.flatnonzero(x > 0) * 2,
    "argwhere": lambda x: np.argwhere(x > 0.3) + 1,
    "compress": lambda x: np.compress((x > 0).reshape(-1), x * 3) + 1,
    "unique": lambda x: np.unique(np.round(x)) * 2,
    "unique with counts": lambda x: np.unique(np.round(x), return_counts=True)[1] * 2,
    "unique with all": lambda x: [y * 2 for y in np.unique_all(np.round(x))],
    "bincount": lambda x: np.bincount(np.abs(np.round(x * 2)).astype("int64").reshape(-1)) * 2,
    "weighted bincount": lambda x: np.bincount(np.abs(np.round(x[0])).astype("int64"), weights=x[0]) / 2,
    "sizes": lambda x: np.arange(x[x > 0].shape[0]) + x[x > 0].size * 2,
    "mean": lambda x: x[x > -9].mean(),
    "mask after mask": lambda x: (lambda y: y[y > 0.5] + 1)(x[x > 0]),
    "written": lambda x: _written(x),
}


def _written(x):
    y = x * 1
    y[y > 0] *= 3
    y[y > 1] = y[y > 1] + 10
    return y


@pytest.mark.parametrize("name", PROGRAMS)
def test_pieces_give_the_bits_of_the_function(name):
    f, traces = PROGRAMS[name], []

    def counted(x):
        traces.append(1)
        return f(x)

    compiled = mx.jit(counted)
    for seed in range(5):
        x = data(5, 4, seed=seed)
        found, expected = compiled(x), f(x)
        if not isinstance(expected, (tuple, list)):
            found, expected = [found], [expected]
        assert list(map(bits, found)) == list(map(bits, expected))
    ((pieces, note),) = entries(compiled)
    assert note is None
    assert pieces >= 2
    assert len(traces) == 3


def test_no_element_is_left():
    compiled = mx.jit(lambda x: (x[x > 0] * 2, x[x > 0].sum(), np.nonzero(x > 0)[0]))
    for x in (data(6), -np.abs(data(6)), np.abs(data(6))):
        assert list(map(bits, compiled(x))) == list(map(bits, compiled.function(x)))
    assert entries(compiled) == [(2, None)]


class Masked(gluon.HybridBlock):
    """Two layers, of which the second sees the rows that a mask lets through."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.second = nn.Dense(6, activation="tanh"), nn.BatchNorm(), nn.Dense(3)

    def forward(self, x):
        hidden = self.norm(self.first(x))
        kept = npx.dropout(hidden, p=0.3)[hidden.sum(axis=1) > 0]
        return self.second(npx.dropout(kept, p=0.5)), hidden.mean()


@pytest.mark.parametrize("dynamic", [None, True])
def test_networks_with_masks_are_trained_alike(dynamic):
    found = []
    for way in ("as it is", "compiled"):
        mx.random.seed(3)
        net = Masked()
        net.initialize()
        net(data(7, 5))
        if way == "compiled":
            net.hybridize(dynamic=dynamic)
        trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
        mx.random.seed(4)
        results = []
        for step in range(6):
            x = data(7 + step % 3 * 2, 5, seed=step)
            x.attach_grad()
            with autograd.record():
                y, mean = net(x)
                loss = (y**2).sum() + mean
            loss.backward()
            trainer.step(1)
            results.append((bits(y), bits(loss), bits(x.grad)))
        state = [bits(p.data()) for p in net.collect_params().values()]
        found.append((results, state, np.random.uniform(size=2).tolist()))
        if way == "compiled":
            assert all(pieces == 2 and note is None for pieces, note in entries(net))
            assert len(net.trace_report()) == (1 if dynamic else 3)
    assert found[0] == found[1]


def test_second_order_gradients_through_masks():
    weight = data(4)
    weight.attach_grad()

    def energy(x):
        return (np.tanh(x * weight)[x > 0] ** 3).sum()

    found = []
    for f in (energy, mx.jit(energy)):
        x = data(3, 4, seed=5)
        x.attach_grad()
        with autograd.record():
            first = autograd.grad(f(x), x, create_graph=True)
            penalty = (first * first).sum()
        penalty.backward()
        found.append((bits(first), bits(x.grad), bits(weight.grad)))
    assert found[0] == found[1]


def test_gradients_of_unique_elements():
    def f(x):
        return (np.unique(x) ** 2).sum()

    compiled, found = mx.jit(f), []
    for g in (f, compiled):
        x = np.array([3.0, 1.0, 3.0, 2.0])
        x.attach_grad()
        with autograd.record():
            y = g(x)
        y.backward()
        found.append((bits(y), bits(x.grad)))
    assert found[0] == found[1]
    assert entries(compiled) == [(2, None)]


def test_writes_before_and_behind_a_mask():
    total, parts = np.zeros(6), np.zeros(6)

    def step(x):
        nonlocal total
        before = total * 1
        total += x
        kept = x[x > 0]
        parts[:3] += kept.sum()
        total *= 2
        x -= 1
        return before + kept.mean(), total, parts

    compiled = mx.jit(step)
    for seed in range(4):
        state = total.copy(), parts.copy()
        x = data(6, seed=seed)
        expected = [bits(y) for y in step(x)] + [bits(x), bits(total), bits(parts)]
        total[:], parts[:] = state
        x = data(6, seed=seed)
        assert [bits(y) for y in compiled(x)] + [bits(x), bits(total), bits(parts)] == expected
    assert entries(compiled) == [(2, None)]


def test_decisions_by_lengths_are_those_of_the_function():
    def chosen(x):
        kept = x[x > 0]
        return kept.sum() if kept.shape[0] else x[0] * 7

    compiled = mx.jit(chosen)
    for x in (data(6), -np.abs(data(6))):
        assert bits(compiled(x)) == bits(chosen(x))
    ((pieces, note),) = entries(compiled)
    assert pieces is None
    assert "branches on a length that is known only when it runs" in note
    by_len = mx.jit(lambda x: x[x > 0].sum() if len(x[x > 0]) > 2 else x[0] * 7)
    for x in (data(6), -np.abs(data(6))):
        assert bits(by_len(x)) == bits(by_len.function(x))


def test_decisions_by_lengths_of_arguments():
    def chosen(x):
        n = x.shape[0]
        if n * 2 > 20 and n != 13:
            return x * 2
        return x - 1 if min(n, 7) == n else x

    compiled = mx.jit(chosen, dynamic=True)
    for n in (4, 7, 8, 11, 12, 13, 2, 1, 30, 5):
        assert bits(compiled(data(n))) == bits(chosen(data(n)))


def test_errors_are_those_of_the_function():
    compiled = mx.jit(lambda x: x[x > 0].max())
    compiled(data(6))
    with pytest.raises(ValueError) as expected:
        compiled.function(-np.abs(data(6)))
    with pytest.raises(ValueError) as found:
        compiled(-np.abs(data(6)))
    assert str(found.value) == str(expected.value)


def test_lengths_are_pythons_numbers():
    def lengths(x):
        n = x.shape[0]
        made = [np.array([n, 2]), np.array([n / 2, 1]), np.array(n / 2), x * n, x + n / 3, n - x, x[: n // 2] * x.size]
        return made, {"whole": n, "real": n / 2, "size": x.size, "shape": x.shape}

    for compiled in (mx.jit(lengths), mx.jit(lengths, dynamic=True)):
        for n in (5, 8):
            (made, numbers), (expected, expected_lengths) = compiled(data(n)), lengths(data(n))
            assert list(map(bits, made)) == list(map(bits, expected))
            assert numbers == expected_lengths
            assert [type(x) for x in numbers.values()] == [int, float, int, tuple]
            assert type(numbers["shape"][0]) is int


def test_partition_if_dynamic_turns_pieces_off():
    class Kept(gluon.HybridBlock):
        def forward(self, x):
            return x[x > 0] * 2

    x, found = data(7), []
    for splits in (True, False):
        net = Kept()
        net.hybridize(partition_if_dynamic=splits)
        found.append(bits(net(x)))
        ((pieces, note),) = entries(net)
        assert (pieces, note) == ((2, None) if splits else (None, "shapes of results depend on values"))
    assert found[0] == found[1] == bits(x[x > 0] * 2)


def test_passes_of_ones_own_run_on_each_piece():
    seen = []

    @mx.graph.register_pass(name="count_of_pieces", backend=True)
    def note(graph):
        seen.append([node.op for node in graph.nodes])

    try:
        compiled = mx.jit(lambda x: np.tanh(x[x > 0] * 2), backend="count_of_pieces")
        x = data(6)
        assert bits(compiled(x)) == bits(compiled.function(x))
        assert [nodes[-1] for nodes in seen] == ["greater", "tanh"]
    finally:
        mx.graph.unregister_pass("count_of_pieces")
