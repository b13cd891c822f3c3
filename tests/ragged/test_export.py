"""Ragged and sparse arrays as arguments and results of exported networks."""

import json

import numpy
import pytest

import mxnet as mx
from mxnet import autograd, gluon, np, npx, ragged, sparse
from mxnet.error import FileFormatError, ShapeError, UnsupportedError

RNG = numpy.random.default_rng(0)


class Encoder(gluon.HybridBlock):
    """Words to one row for each sequence, and one for each word."""

    def __init__(self):
        super().__init__()
        self.words = gluon.nn.Embedding(20, 8)
        self.attention = gluon.nn.MultiHeadAttention(8, 2)
        self.norm = gluon.nn.LayerNorm(in_channels=8)
        self.out = gluon.nn.Dense(3, flatten=False)

    def forward(self, words):
        x = self.words(words)
        x = self.norm(x + self.attention(x, is_causal=True))
        return self.out(np.mean(x, axis=1)), {"words": npx.softmax(x, axis=1), "highest": np.max(x, axis=1)}


def words(*lengths):
    return ragged.array([RNG.integers(0, 20, n) for n in lengths])


def exported(net, path, *arguments):
    net.initialize()
    net.hybridize()
    net(*arguments)
    return net.export(path)


def assert_same(found, want):
    assert type(found) is type(want)
    if isinstance(want, tuple):
        for one, other in zip(found, want, strict=True):
            assert_same(one, other)
        return
    if isinstance(want, ragged.RaggedArray):
        assert found.lengths().asnumpy().tolist() == want.lengths().asnumpy().tolist()
        found, want = found.values, want.values
    elif sparse.issparse(want):
        found, want = found.todense(), want.todense()
    # Float32 sums of tens of terms in another order.
    numpy.testing.assert_allclose(found.asnumpy(), want.asnumpy(), rtol=1e-5, atol=1e-6)


def test_one_file_serves_all_lengths(tmp_path):
    net = Encoder()
    symbol, params = exported(net, tmp_path / "net", words(3, 1, 2))
    graph, block = mx.graph.load(symbol), gluon.SymbolBlock.imports(symbol, ["words"], params)
    assert graph.arguments == [([None], "int64"), ([None], "int64")] and graph.num_arguments == 1
    for lengths in ((3, 1, 2), (5,), (1, 9, 4, 2, 2)):
        x = words(*lengths)
        rows, others = net(x)
        for run in (graph, block):
            found, named = run(x)
            assert_same(found, rows)
            assert_same(named["words"], others["words"])
            assert_same(named["highest"], others["highest"])
        # What other languages pass: values and lengths.
        assert_same(graph(x.values, x.lengths())[0], rows)


def test_rows_without_elements(tmp_path):
    class Mean(gluon.HybridBlock):
        def forward(self, x):
            return np.sum(x, axis=1), x * 2

    symbol, _ = exported(Mean(), tmp_path / "net", ragged.array([[1.0], [2.0, 3.0]]))
    total, doubled = mx.graph.load(symbol)(ragged.array([[], [4.0], []]))
    assert total.asnumpy().tolist() == [0, 4, 0] and doubled.tolist() == [[], [8.0], []]


def test_several_arguments_and_ragged_axes(tmp_path):
    class Cross(gluon.HybridBlock):
        def forward(self, queries, keys, scale):
            y = npx.scaled_dot_product_attention(queries, keys, keys)
            return y * np.expand_dims(scale, (1, 2)), np.sum(keys, axis=1)

    def rows(*lengths):
        return ragged.array([RNG.normal(size=(n, 4)) for n in lengths])

    net = Cross()
    symbol, _ = exported(net, tmp_path / "cross", rows(2, 1), rows(3, 4), np.ones(2, dtype="float64"))
    for q, k in (((1, 2, 3), (2, 5, 1)), ((4,), (2,))):
        arguments = rows(*q), rows(*k), np.array(RNG.normal(size=len(q)))
        for found, want in zip(mx.graph.load(symbol)(*arguments), net(*arguments), strict=True):
            assert_same(found, want)

    class Inner(gluon.HybridBlock):
        def forward(self, x):
            return np.sum(x, axis=2)

    net = Inner()
    symbol, _ = exported(net, tmp_path / "inner", ragged.array([[[1.0, 2.0], []], [[3.0]]]))
    x = ragged.array([[[1.0], [2.0, 3.0], [4.0]], [], [[5.0, 6.0]]])
    assert mx.graph.load(symbol)(x).tolist() == net(x).tolist() == [[1.0, 5.0, 4.0], [], [11.0]]


def test_sparse_arguments_of_any_number_of_elements(tmp_path):
    class Product(gluon.HybridBlock):
        def forward(self, graph, x):
            return graph @ x, np.tanh(graph) * 2

    def matrix(stored):
        x = numpy.zeros((6, 5), "float32")
        x.ravel()[RNG.choice(30, stored, replace=False)] = RNG.uniform(0.5, 1, stored)
        return np.array(x)

    v = np.array(RNG.normal(size=(5, 3)).astype("float32"))
    for format in ("csr", "csc", "coo", "row_sparse"):

        def make(x, format=format):
            # Coordinates in canonical order: others are added up first, to a number of elements that depends on values.
            return sparse.csr_array(x).tocoo() if format == "coo" else getattr(sparse, f"{format}_array")(x)

        net = Product()
        symbol, params = exported(net, tmp_path / format, make(matrix(7)), v)
        block = gluon.SymbolBlock.imports(symbol, ["graph", "x"], params)
        for stored in (7, 12):
            x = make(matrix(stored))
            for found, want in zip(block(x, v), net(x, v), strict=True):
                assert_same(found, want)
    graph = mx.graph.load(symbol)
    with pytest.raises(ShapeError, match=r"argument 0.*\(5, 5\)"):
        graph(sparse.row_sparse_array(np.ones((5, 5))), v)
    with pytest.raises(TypeError, match="argument 0 must be of type row_sparse_array, found 'csr_array'"):
        graph(sparse.csr_array(matrix(3)), v)
    with pytest.raises(ValueError, match="takes 2 arguments, found 1"):
        graph(sparse.row_sparse_array(matrix(3)))


def test_elements_out_of_order_are_ordered_first(tmp_path):
    class Largest(gluon.HybridBlock):
        def forward(self, x):
            return x.max(axis=0)

    net = Largest()
    symbol, _ = exported(net, tmp_path / "net", sparse.csr_array(np.eye(3)))
    # The element (0, 2) is stored twice: its value is 1 + 2.
    x = sparse.csr_array((np.array([1.0, 4.0, 2.0]), [2, 0, 2], [0, 3, 3, 3]), shape=(3, 3))
    assert mx.graph.load(symbol)(x).asnumpy().tolist() == [4, 0, 3]


def test_loaded_blocks_can_be_trained(tmp_path):
    net = Encoder()
    symbol, params = exported(net, tmp_path / "net", words(3, 1))
    block = gluon.SymbolBlock.imports(symbol, ["words"], params)
    x = words(2, 4)
    grads = []
    for run in (net, block):
        with autograd.record():
            loss = np.square(run(x)[0]).sum()
        loss.backward()
        grads.append({name: p.grad().asnumpy() for name, p in run.collect_params().items() if p.grad_req != "null"})
    assert grads[0].keys() == grads[1].keys()
    for name, grad in grads[0].items():
        # The same operators, but sums of gradients in another order.
        numpy.testing.assert_allclose(grads[1][name], grad, rtol=0, atol=64 * 2.0**-24 * max(1, abs(grad).max()))


class Function(gluon.HybridBlock):
    """A function of its arguments as a network."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *arguments):
        return self.function(*arguments)


FUNCTIONS = {
    "to_dense": lambda x: x.to_dense(fill=-1),
    "to_dense of a length": lambda x: x.to_dense(length=2),
    "sum over axis 0": lambda x: np.sum(x, axis=0),
    "mean over axis 0": lambda x: np.mean(x, axis=0),
    "variance of all": np.var,
    "argmax": lambda x: np.argmax(x, axis=1),
    "argmax over axis 0": lambda x: np.argmax(x, axis=0),
    "variance over axes 0 and 2": lambda x: np.var(x, axis=(0, 2)),
    "medians": lambda x: (np.median(x, axis=1), np.median(x, axis=0)),
    "running sums": lambda x: (np.cumsum(x, axis=1), np.cumsum(x, axis=0)),
    "sums of products": lambda x: (np.einsum("blc,blc->bl", x, x), np.einsum("blc,bld->bcd", x, x)),
    "pooling": lambda x: (npx.pooling(x, global_pool=True), npx.pooling(x, kernel=3, pad=1, pool_type="avg")),
    "shift": lambda x: np.roll(x, 1, axis=1),
    "sort": lambda x: np.sort(x, axis=1),
    "sort over axis 0": lambda x: np.sort(x, axis=0),
    "argsort": lambda x: np.argsort(x, axis=1),
    "flip": lambda x: np.flip(x, axis=1),
    "first": lambda x: ragged.pool(x, "first"),
    "last": lambda x: x[:, -1],
    "a uniform axis": lambda x: x[:, :, ::2],
    "joined rows": lambda x: np.concatenate([x, np.exp(x), x], axis=1),
    "joined": lambda x: np.concatenate([x, np.exp(x)], axis=0),
    "a matrix for each row": lambda x: np.matmul(x, np.expand_dims(np.mean(x, axis=1), 2)),
    "padded attention": lambda x: npx.softmax(np.matmul(x.to_dense(), np.swapaxes(x.to_dense(), 1, 2)), axis=-1),
    "ctc": lambda x: npx.ctc_loss(x, np.ones((x.shape[0], 1))),
}


def rows(*lengths, channels=4):
    return ragged.array([RNG.normal(size=(n, channels)).astype("float32") for n in lengths])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_positions_and_shapes_of_any_lengths(name, tmp_path):
    net = Function(FUNCTIONS[name])
    symbol, _ = exported(net, tmp_path / "net", rows(3, 1, 2))
    graph = mx.graph.load(symbol)
    for lengths in ((3, 1, 2), (5,), (1, 9, 4, 2, 2)):
        x = rows(*lengths)
        assert_same(graph(x), net(x))


class Labelled(gluon.HybridBlock):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer
        self.out = gluon.nn.Dense(3, flatten=False)

    def forward(self, x):
        y = self.layer(x)
        return self.out(y), np.mean(y, axis=1)


@pytest.mark.parametrize(
    "layer",
    [
        lambda: gluon.rnn.LSTM(5, num_layers=2, layout="NTC", bidirectional=True),
        lambda: gluon.rnn.GRU(5, layout="NTC"),
        lambda: gluon.nn.Conv1D(5, 3, padding=2, dilation=2),
    ],
    ids=["lstm", "gru", "convolution"],
)
def test_layers_over_rows_of_any_lengths(layer, tmp_path):
    net = Labelled(layer())
    symbol, params = exported(net, tmp_path / "net", rows(3, 1, 2))
    block = gluon.SymbolBlock.imports(symbol, ["x"], params)
    for lengths in ((3, 1, 2), (5,), (1, 9, 4, 2, 2)):
        x = rows(*lengths)
        grads = []
        for run in (net, block):
            with autograd.record():
                every, mean = run(x)
                loss = np.square(every.values).sum() + mean.sum()
            loss.backward()
            found = run.collect_params()
            grads.append({key: p.grad().asnumpy() for key, p in found.items() if p.grad_req != "null"})
        for found, want in zip(block(x), net(x), strict=True):
            assert_same(found, want)
        assert grads[0].keys() == grads[1].keys()
        for key, grad in grads[0].items():
            # Float32 sums over all steps in another order.
            numpy.testing.assert_allclose(grads[1][key], grad, rtol=0, atol=64 * 2.0**-24 * max(1, abs(grad).max()))


def test_graphs_with_the_longest_row_take_its_numbers_from_other_languages(tmp_path):
    symbol, _ = exported(Function(FUNCTIONS["to_dense"]), tmp_path / "net", rows(2, 1))
    graph, x = mx.graph.load(symbol), rows(1, 4, 0)
    assert len(graph.arguments) == 3 and graph.num_arguments == 1
    assert_same(graph(x.values, x.lengths(), np.arange(4)), x.to_dense(fill=-1))
    assert graph(ragged.array([numpy.zeros((0, 4), "float32")] * 2)).shape == (2, 0, 4)


def test_rows_that_are_too_short_are_found_when_the_graph_runs(tmp_path):
    symbol, _ = exported(Function(FUNCTIONS["last"]), tmp_path / "net", rows(2, 1))
    with pytest.raises(IndexError):
        mx.graph.load(symbol)(rows(2, 0, 1))


@pytest.mark.parametrize("name", ["argmax", "argmin", "max", "min", "ptp"])
def test_extrema_of_rows_without_elements_are_found_when_the_graph_runs(name, tmp_path):
    net = Function(lambda x: getattr(np, name)(x, axis=1))
    symbol, _ = exported(net, tmp_path / "net", rows(2, 1))
    graph = mx.graph.load(symbol)
    x = rows(1, 3)
    assert_same(graph(x), net(x))
    for run in (graph, net):
        with pytest.raises((IndexError, ValueError)):
            run(rows(2, 0, 3))


def test_what_makes_a_number_of_rows_of_the_lengths_is_refused_by_name(tmp_path):
    with pytest.raises(UnsupportedError, match="number of rows of its result"):
        exported(Function(lambda x: x[:, 1:]), tmp_path / "tail", rows(2, 1))
    with pytest.raises(UnsupportedError, match=r"stride 1 and padding .* found kernel 3, stride 1, dilate 1 .*ing 0"):
        exported(Labelled(gluon.nn.Conv1D(5, 3)), tmp_path / "convolution", rows(4, 3))
    joined = Function(lambda x: np.concatenate([x, x], axis=0).to_dense())
    with pytest.raises(UnsupportedError, match="give `to_dense` a `length`"):
        exported(joined, tmp_path / "joined", rows(4, 3))

    class Sum(gluon.HybridBlock):
        def forward(self, x, y):
            return x + y

    with pytest.raises(UnsupportedError, match="cannot be known to have the same lengths"):
        exported(Sum(), tmp_path / "sum", words(2, 1), words(2, 1))


@pytest.mark.parametrize(
    "forms", [[["RaggedArray", [1], 3]], [["Path", [1], 2]], [None], [["RaggedArray", [1], 0]], 4, [["RaggedArray"]]]
)
def test_files_with_other_forms_of_arguments_are_refused(tmp_path, forms):
    class Double(gluon.HybridBlock):
        def forward(self, x):
            return x * 2

    symbol, _ = exported(Double(), tmp_path / "net", words(2, 1))
    path = tmp_path / "net-symbol.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"arguments": forms}))
    with pytest.raises(FileFormatError):
        mx.graph.load(symbol)
