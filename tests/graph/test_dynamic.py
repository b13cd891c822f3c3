"""One graph for arrays of any size: the bits of the function at every size, forward and backward, and from files."""

import random
import re

import numpy
import pytest

import mxnet as mx
from mxnet import autograd, gluon, np, npx
from mxnet.gluon import nn, rnn


def bits(x):
    return x.shape, x.dtype, x.asnumpy().tobytes()


def data(*shape, seed=0):
    return np.array(numpy.random.default_rng(seed).normal(size=shape).astype("float32"))


def by_sizes(x, weight):
    """Sizes in reshape, arange, zeros, slices, arithmetic, random numbers."""
    n, m = x.shape
    positions = np.arange(n).reshape(n, 1) / n
    hidden = np.tanh(np.dot(x, weight) + positions) * n
    padded = np.concatenate([hidden, np.zeros((2, weight.shape[1]))])[1 : n + 1]
    noise = np.random.normal(size=(2 * n, m))
    return padded.reshape(n * weight.shape[1]), hidden.mean(axis=0), hidden.T @ hidden, noise, np.full(n - 1, n * n)


def test_one_graph_gives_the_bits_of_every_size():
    weight, traces = data(6, 5), []

    @mx.jit(dynamic=(0,))
    def f(x):
        traces.append(x.shape[0])
        return by_sizes(x, weight)

    for n in (4, 7, 1, 12, 4, 100, 2, 33):
        x = data(n, 6, seed=n)
        mx.random.seed(n)
        found = f(x)
        mx.random.seed(n)
        expected = by_sizes(x, weight)
        assert list(map(bits, found)) == list(map(bits, expected)), n
    assert len(traces) == 3
    (report,) = f.trace_report()
    assert report["num_sizes"] == 7
    assert "note" not in report


def test_lengths_of_0_and_1():
    compiled = mx.jit(lambda x: (x * 2 + x.sum(axis=0), x.reshape(-1), np.ones(x.shape[0])), dynamic=True)
    for n in (1, 0, 3):
        x = data(n, 4, seed=n)
        assert list(map(bits, compiled(x))) == list(map(bits, compiled.function(x)))
    assert len(compiled.trace_report()) == 1


def convolutional():
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(4, 3, padding=1),
        nn.BatchNorm(),
        nn.Activation("relu"),
        nn.MaxPool2D(2, 2),
        nn.Dropout(0.5),
        nn.Conv2D(6, 3, strides=2),
        nn.GlobalAvgPool2D(),
        nn.Dense(3),
    )
    return net, (3, None, None), [(2, 9, 8), (3, 9, 11), (1, 20, 7), (5, 15, 16)]


def recurrent():
    net = nn.HybridSequential()
    net.add(rnn.LSTM(5, layout="NTC", bidirectional=True), nn.LayerNorm(), nn.Dense(3))
    return net, (6, 4), [(2,), (5,), (1,), (8,)]


class Attention(gluon.HybridBlock):
    """Scores between all pairs of positions: their number is a product of sizes."""

    def __init__(self):
        super().__init__()
        self.project = nn.Dense(12, flatten=False)

    def forward(self, x):
        n, length, _ = x.shape
        q, k, v = (part.reshape(n, length, 2, 2) for part in np.split(self.project(x), 3, axis=-1))
        scores = np.einsum("nqhd,nkhd->nhqk", q, k) / 2**0.5
        mask = np.tril(np.ones((length, length)))
        weights = npx.softmax(np.where(mask > 0, scores, -1e9), axis=-1)
        return np.einsum("nhqk,nkhd->nqhd", weights, v).reshape(n * length, 4).mean()


def attention():
    return Attention(), (None, 8), [(2, 5), (3, 4), (1, 7), (4, 11), (6, 6)]


@pytest.mark.parametrize("build", [convolutional, recurrent, attention])
def test_networks_train_alike_at_every_size(build):
    net, form, sizes = build()
    mx.random.seed(2)
    net.initialize()

    def shape(size):
        return tuple(numpy.array(size[:1])) + tuple(
            n if n is not None else size[1 + sum(k is None for k in form[:i])] for i, n in enumerate(form)
        )

    net(data(*shape(sizes[0])))
    trainable = [p for p in net.collect_params().values() if p.grad_req != "null"]

    def passes():
        found = []
        for i, size in enumerate(sizes * 2):
            x = data(*shape(size), seed=i)
            x.attach_grad()
            mx.random.seed(i)
            with autograd.record():
                loss = (net(x) ** 2).mean()
            loss.backward()
            found.append((bits(loss), bits(x.grad), [bits(p.grad()) for p in trainable]))
        return found

    state = [p.data().copy() for p in net.collect_params().values()]
    expected = passes()
    for parameter, was in zip(net.collect_params().values(), state, strict=True):
        parameter.set_data(was)
    net.hybridize(dynamic=mx.InputSpec(None, *form))
    assert passes() == expected
    reports = net.trace_report()
    # Equal lengths are one length: those of the attention's last size are another form.
    assert [r["num_sizes"] for r in reports] == ([4, 1] if build is attention else [len(sizes)])
    assert not any("note" in r for r in reports)


def test_second_order_gradients_and_writes():
    weight = data(3, 2)
    weight.attach_grad()

    def energy(x):
        hidden = np.tanh(np.dot(x, weight)) * 1.0
        hidden[1:] = hidden[:-1] * 2
        return (hidden**3).sum() / x.shape[0]

    compiled = mx.jit(energy, dynamic=True)
    for n in (4, 6, 9):
        found = []
        for f in (energy, compiled):
            x = data(n, 3, seed=n)
            x.attach_grad()
            with autograd.record():
                first = autograd.grad(f(x), x, create_graph=True)
                penalty = (first * first).sum()
            penalty.backward()
            found.append((bits(first), bits(x.grad), bits(weight.grad)))
        assert found[0] == found[1]
    assert len(compiled.trace_report()) == 1


def test_whole_steps_serve_all_batches():
    def train(way):
        mx.random.seed(1)
        net = nn.Dense(3, in_units=4)
        net.initialize()
        trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9})

        def step(x, y):
            with autograd.record():
                loss = gluon.loss.L2Loss()(net(x), y).mean()
            loss.backward()
            trainer.step(1)
            return loss

        run = way(step)
        losses = [bits(run(data(n, 4, seed=n), data(n, 3, seed=2 * n))) for n in (4, 6, 3, 9)]
        return losses, bits(net.weight.data()), run

    expected = train(lambda step: step)
    found = train(mx.jit(dynamic=True))
    assert found[:2] == expected[:2]
    assert len(found[2].trace_report()) == 1


def test_writes_to_arguments_and_two_lengths():
    def f(x, y):
        x[1:] += 1
        return np.concatenate([x, y]), x.shape[0] + 2 * y.shape[0] + np.zeros(y.shape[0])

    compiled = mx.jit(f, dynamic=True)
    for n, m in [(3, 5), (5, 3), (4, 9), (2, 2), (6, 6)]:
        x, y, other = data(n, 2, seed=1), data(m, 2, seed=2), data(n, 2, seed=1)
        assert list(map(bits, compiled(x, y))) == list(map(bits, f(other, y)))
        assert bits(x) == bits(other)
    assert len(compiled.trace_report()) == 2


@pytest.mark.parametrize(
    ("f", "why"),
    [
        (lambda x: x * (x.shape[0] % 3), r"not a polynomial of the sizes"),
        (lambda x: x.reshape(-1, 2, 3), r"it raises"),
        (lambda x: sum(x[i] for i in range(x.shape[0])), r"it calls \d+ operators at one size and \d+ at another"),
        (lambda x: (x * 2, x.shape[0]), r"a result that is not an array depends on a size"),
    ],
)
def test_functions_that_one_graph_cannot_serve_have_one_for_each_size(f, why):
    compiled = mx.jit(f, dynamic=True)
    for n in (4, 6, 8, 4):
        x = data(n, 3, seed=n)
        expected, found = f(x), compiled(x)
        if isinstance(expected, tuple):
            assert found[1] == expected[1]
            expected, found = expected[0], found[0]
        assert bits(found) == bits(expected)
    report = compiled.trace_report()
    assert re.search(why, report[0]["note"])
    assert len(report) == 4


def test_sizes_that_are_halved_are_found_by_the_operators_rules():
    compiled = mx.jit(lambda x: npx.pooling(x, kernel=(2,), stride=(2,)).reshape(x.shape[0], -1).sum(axis=1), dynamic=2)
    for n in (8, 9, 5, 12):
        x = data(2, 3, n, seed=n)
        assert bits(compiled(x)) == bits(compiled.function(x))
    assert len(compiled.trace_report()) == 1


def test_products_of_lengths_that_operators_give():
    layers = nn.HybridSequential()
    layers.add(nn.Conv2D(4, 3, strides=2), nn.MaxPool2D(2))
    layers.initialize()
    layers(data(1, 3, 20, 24))

    def flat(x):
        y = layers(x)
        return y.reshape(y.shape[0], y.shape[1], y.shape[2] * y.shape[3]).sum(axis=1)

    compiled = mx.jit(flat, dynamic=[mx.InputSpec("n", 3, "h", "w")])
    for shape in ((1, 3, 20, 24), (2, 3, 24, 62), (3, 3, 29, 44), (2, 3, 22, 23)):
        x = data(*shape)
        assert bits(compiled(x)) == bits(flat(x))
    assert len(compiled.trace_report()) == 1


def test_arrays_in_another_order_have_a_graph_of_their_own():
    compiled = mx.jit(lambda x: np.exp(x).reshape(-1), dynamic=True)
    for x in (data(4, 3), data(3, 4).T, data(8, 3)[::2]):
        assert bits(compiled(x)) == bits(np.exp(x).reshape(-1))
    assert len(compiled.trace_report()) == 3


def test_forms_are_checked():
    compiled = mx.jit(lambda x, y: x + y, dynamic=[mx.InputSpec("n", 3, dtype="float32"), mx.InputSpec("n", 1)])
    assert compiled(data(2, 3), data(2, 1)).shape == (2, 3)
    with pytest.raises(
        ValueError, match=r"array 0 must have shape \(any, 3\) and dtype float32, found float32 \(2, 4\)"
    ):
        compiled(data(2, 4), data(2, 1))
    with pytest.raises(ValueError, match=r"array 0 must have .* dtype float32, found float64"):
        compiled(data(2, 3).astype("float64"), data(2, 1))
    with pytest.raises(ValueError, match=r'length "n" is 2 on axis 0 of array 0 and 3 on axis 0 of array 1'):
        compiled(data(2, 3), data(3, 1))
    with pytest.raises(TypeError, match=r"`dynamic` must be True, axes, or one `mx\.InputSpec`"):
        mx.jit(lambda x: x, dynamic="batch")
    with pytest.raises(ValueError, match="must not be negative"):
        mx.InputSpec(None, -1)
    with pytest.raises(ValueError, match="must not be negative"):
        mx.jit(lambda x: x, dynamic=-1)


def test_errors_of_the_function_are_its_own():
    compiled = mx.jit(lambda x: x @ np.ones((4, 2)), dynamic=True)
    with pytest.raises(ValueError, match="matmul"):
        compiled(data(2, 3))


@pytest.mark.parametrize("build", [convolutional, attention])
def test_files_serve_all_sizes(build, tmp_path):
    net, form, sizes = build()
    net.initialize()
    shapes = [
        (size[0], *(n if n is not None else size[1 + sum(k is None for k in form[:i])] for i, n in enumerate(form)))
        for size in sizes[:4]
    ]
    net(data(*shapes[0]))
    net.hybridize(dynamic=mx.InputSpec(None, *form))
    net(data(*shapes[0]))
    files = net.export(tmp_path / "net")
    loaded, block = mx.graph.load(files[0]), gluon.SymbolBlock.imports(files[0], ["data"], files[1])
    assert loaded.arguments == [([None, *form], "float32")]
    hybrid = gluon.SymbolBlock.imports(files[0], ["data"], files[1])
    hybrid.hybridize(dynamic=mx.InputSpec(None, *form))
    for turn, shape in enumerate(shapes):
        x = data(*shape, seed=turn)
        expected = bits(net(x))
        assert bits(loaded(x)) == bits(block(x)) == bits(hybrid(x)) == expected
    assert len(hybrid.trace_report()) == 1
    x = data(*shapes[2])
    with autograd.record(train_mode=False):
        loss = (block(x) ** 2).sum()
    loss.backward()
    found = {name: bits(p.grad()) for name, p in block.collect_params().items() if p.grad_req != "null"}
    with autograd.record(train_mode=False):
        loss = (net(x) ** 2).sum()
    loss.backward()
    assert found == {n: bits(p.grad()) for n, p in net.collect_params().items() if p.grad_req != "null"}
    with pytest.raises(ValueError, match=r"argument 0 must have shape|takes 1 arrays"):
        loaded(data(*shapes[0][:-1], 2) if build is attention else data(2, 4, 9, 9))
    with pytest.raises(ValueError, match="takes 1 arrays, found 2"):
        loaded(x, x)


def test_reports_say_what_differed():
    compiled = mx.jit(lambda x, scale=1: x * scale)
    compiled(data(2, 3))
    compiled(data(2, 4), scale=2)
    compiled(data(2, 4), scale=3)
    with autograd.record():
        compiled(data(2, 4), scale=3)
    why = [entry["why"] for entry in compiled.trace_report()]
    assert why[0] == "first call"
    assert why[1] == "x is float32 (2, 4), was float32 (2, 3); scale is 2, was missing"
    assert why[2] == "scale is 3, was 2"
    assert why[3] == "recording is True, was False; training is True, was False"
    assert compiled.trace_report()[0]["arguments"] == {"x": "float32 (2, 3)", "recording": "False", "training": "False"}
    assert all(entry["seconds"] > 0 for entry in compiled.trace_report())


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x[-3:][1:] * 2,
        lambda x: x[:, :3] * 2,
        lambda x: x[:4, -3:] + 1,
        lambda x: x[1:, ..., None, 2:4].sum(axis=0),
        lambda x: x[::-1, 3::-1] - 1,
        lambda x: x[:4, 3] * 1,
    ],
)
def test_slices_that_end_elsewhere_at_small_sizes_have_graphs_of_their_own(function):
    for first in ((7, 8), (2, 3)):
        compiled = mx.jit(function, dynamic=[mx.InputSpec("n", "m")])
        for shape in (first, (9, 5), (7, 4), (6, 3), (5, 2), (2, 6), (3, 9), (2, 2), (1, 4), (4, 1)):
            x = data(*shape)
            try:
                want = bits(function(x))
            except IndexError:
                with pytest.raises(IndexError):
                    compiled(x)
            else:
                assert bits(compiled(x)) == want, shape


def test_slices_of_one_axis_that_end_elsewhere():
    compiled = mx.jit(lambda x: x[-3:][1:] * 2, dynamic=True)
    for n in (7, 9, 3, 2, 1, 5):
        assert bits(compiled(data(n))) == bits(data(n)[-3:][1:] * 2), n


def test_arrays_with_one_column_may_have_another_order_in_memory():
    def turned(x):
        return np.concatenate([x.T, x.T])[::-1] * 1

    compiled = mx.jit(turned, dynamic=[mx.InputSpec("n", "m")])
    for shape in ((6, 7), (8, 1), (1, 5), (1, 1), (3, 1), (4, 2)):
        assert bits(compiled(data(*shape))) == bits(turned(data(*shape))), shape


def random_views(rng):
    """A chain of slices, transposes, arithmetic and copies."""

    def key():
        if rng.random() < 0.15:
            return rng.randint(-4, 4)
        bounds = [rng.choice([None, None, None, *range(-5, 6)]) for _ in range(2)]
        return slice(*bounds, rng.choice([None, None, 1, 2, -1, -2, 3]))

    steps = {
        "key": lambda x, keys: x[keys[: x.ndim]] if x.ndim else x,
        "turn": lambda x, _: x.T,
        "add": lambda x, _: x * 2 + 1,
        "reverse": lambda x, _: x[::-1] if x.ndim else x,
        "join": lambda x, _: np.concatenate([x, x]) if x.ndim else x,
    }
    chosen = rng.choices(list(steps), [13, 2, 2, 1, 2], k=rng.randint(1, 4))
    chain = [(name, tuple(key() for _ in range(rng.randint(1, 2)))) for name in chosen]

    def function(x):
        for name, keys in chain:
            x = steps[name](x, keys)
        return x * 1

    return function, chain


def test_random_views_have_the_bits_of_the_function_at_every_size():
    rng = random.Random(5)
    for _ in range(200):
        function, chain = random_views(rng)
        compiled = mx.jit(function, dynamic=[mx.InputSpec("n", "m")])
        for shape in ((6, 7), *((rng.randint(0, 9), rng.randint(0, 9)) for _ in range(6))):
            try:
                want = bits(function(data(*shape)))
            except IndexError:
                with pytest.raises(IndexError):
                    compiled(data(*shape))
            else:
                assert bits(compiled(data(*shape))) == want, (chain, shape)


def test_files_refuse_sizes_at_which_slices_end_elsewhere(tmp_path):
    class Columns(nn.HybridBlock):
        def forward(self, x):
            return x[:, -3:] * 2

    net = Columns()
    net.hybridize(dynamic=[mx.InputSpec("n", "m")])
    net(data(4, 7))
    loaded = mx.graph.load(*net.export(tmp_path / "net"))
    assert bits(loaded(data(2, 5))) == bits(data(2, 5)[:, -3:] * 2)
    with pytest.raises(ValueError, match="does not support these sizes"):
        loaded(data(4, 2))
