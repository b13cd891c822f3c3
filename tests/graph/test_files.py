"""Exported networks give the bits of the network, can be trained again, and damaged files are refused."""

import json
import random
from pathlib import Path

import numpy
import pytest

import mxnet as mx
from mxnet import autograd, gluon, np
from mxnet.error import FileFormatError
from mxnet.gluon import nn, rnn
from mxnet.gluon._checkpoint import load_arrays
from mxnet.graph import Graph


def bits(x):
    return x.shape, x.dtype, x.asnumpy().tobytes()


def convolutional():
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(4, 3, padding=1), nn.BatchNorm(), nn.Activation("relu"), nn.MaxPool2D(), nn.Dropout(0.5), nn.Dense(3)
    )
    return net, (2, 3, 8, 8)


def recurrent():
    net = nn.HybridSequential()
    net.add(rnn.LSTM(5, layout="NTC", bidirectional=True), nn.LayerNorm(), nn.Dense(3))
    return net, (2, 6, 4)


class Several(gluon.HybridBlock):
    """Results in a dict and a tuple, a constant, an index."""

    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(4)
        self.scale = gluon.Constant([1.0, 2.0, 3.0, 4.0])

    def forward(self, x):
        y = self.dense(x) * self.scale.data() + np.array([0.5, 0.5, 0.5, 0.5])
        y[0] = 1
        return {"y": y, "parts": (y[:, 1:3].T, y.argmax(axis=1))}, None, "name"


def several():
    return Several(), (3, 5)


def of_any_size():
    net = nn.HybridSequential()
    net.add(nn.Conv2D(2, 3, strides=2), nn.GlobalAvgPool2D(), nn.Dense(3), nn.HybridLambda(lambda x: x * x.shape[0]))
    return net, (2, 3, 8, 8)


def exported(build, folder):
    mx.random.seed(3)
    net, shape = build()
    net.initialize()
    net.hybridize(dynamic=(0, 2) if build is of_any_size else None)
    x = np.random.normal(0, 1, shape)
    net(x)
    with autograd.record():
        net(x)
    return net, x, net.export(folder / "model")


@pytest.mark.parametrize("build", [convolutional, recurrent])
def test_exported_networks_give_the_same_bits(build, tmp_path):
    net, x, files = exported(build, tmp_path)
    assert files == (str(tmp_path / "model-symbol.json"), str(tmp_path / "model-0000.params"))
    expected = bits(net(x))
    loaded = mx.graph.load(files[0])
    assert bits(loaded(x)) == expected
    assert loaded.arguments == [([None, *x.shape[1:]], "float32")]
    block = gluon.SymbolBlock.imports(files[0], ["data"], files[1])
    assert bits(block(x)) == expected
    block.hybridize()
    assert bits(block(x)) == expected


@pytest.mark.parametrize("build", [convolutional, recurrent])
def test_exported_networks_take_any_number_of_samples(build, tmp_path):
    net, x, files = exported(build, tmp_path)
    block = gluon.SymbolBlock.imports(files[0], ["data"], files[1])
    net.hybridize(False)
    for number in (1, 3, 7):
        batch = np.random.normal(0, 1, (number, *x.shape[1:]))
        expected = bits(net(batch))
        assert bits(mx.graph.load(files[0])(batch)) == expected
        assert bits(block(batch)) == expected


def test_sequences_may_have_any_number_of_steps_and_samples(tmp_path):
    class Tagger(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.lstm, self.dense = gluon.rnn.LSTM(4), nn.Dense(2, flatten=False)

        def forward(self, x, hidden, cell):
            outputs, states = self.lstm(x, [hidden, cell])
            return self.dense(outputs), states

    def inputs(steps, samples):
        return np.random.normal(0, 1, (steps, samples, 3)), *(np.ones((1, samples, 4)) for _ in range(2))

    net = Tagger()
    net.initialize()
    net.hybridize()
    net(*inputs(5, 2))
    loaded = mx.graph.load(net.export(tmp_path / "net")[0])
    assert [shape for shape, _ in loaded.arguments] == [[None, None, 3], [1, None, 4], [1, None, 4]]
    net.hybridize(False)
    for steps, samples in ((5, 2), (1, 1), (7, 3), (3, 3)):
        given = inputs(steps, samples)
        (found, states), (expected, last) = loaded(*given), net(*given)
        for one, other in zip([found, *states], [expected, *last], strict=True):
            mx.test_utils.assert_almost_equal(one, other, rtol=1e-6, atol=1e-7)
    # Channels are not taken for steps.
    convolution = nn.Conv1D(2, 3)
    convolution.initialize()
    convolution.hybridize()
    convolution(np.ones((4, 3, 8)))
    loaded = mx.graph.load(convolution.export(tmp_path / "convolution")[0])
    assert loaded.arguments == [([None, 3, 8], "float32")]


def test_networks_of_one_number_of_samples_are_exported_too(tmp_path):
    class Steps(gluon.HybridBlock):
        def forward(self, x):
            total = x[0]
            for t in range(1, x.shape[0]):
                total = np.tanh(total) + x[t]
            return total

    net = Steps()
    net.hybridize()
    x = np.ones((4, 3))
    expected = net(x)
    loaded = mx.graph.load(net.export(tmp_path / "net")[0])
    assert (loaded(x) == expected).all()
    assert loaded.arguments == [([4, 3], "float32")]
    with pytest.raises(ValueError, match=r"argument 0 must have shape \(4, 3\), found \(6, 3\)"):
        loaded(np.ones((6, 3)))


def test_several_arguments_share_the_number_of_samples(tmp_path):
    class Weighted(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.dense = nn.Dense(2, in_units=3)

        def forward(self, x, weight, scale):
            return self.dense(x) * weight.reshape(-1, 1) * scale

    net = Weighted()
    net.initialize()
    net.hybridize()
    net(np.ones((4, 3)), np.ones(4), np.array(2.0))
    loaded = mx.graph.load(net.export(tmp_path / "net")[0])
    assert [shape for shape, _ in loaded.arguments] == [[None, 3], [None], []]
    x, weight, scale = np.random.normal(size=(5, 3)), np.arange(5.0), np.array(3.0)
    assert bits(loaded(x, weight, scale)) == bits(net(x, weight, scale))
    with pytest.raises(ValueError, match="argument 1"):
        loaded(x, np.ones(4), scale)


def test_structures_of_results_are_kept(tmp_path):
    net, x, files = exported(several, tmp_path)
    loaded = mx.graph.load(files[0], files[1])
    (expected, _, _), (found, nothing, name) = net(x), loaded(x)
    assert nothing is None
    assert name == "name"
    assert bits(found["y"]) == bits(expected["y"])
    assert [bits(part) for part in found["parts"]] == [bits(part) for part in expected["parts"]]
    assert bits(loaded(np.asarray(numpy.asfortranarray(x.asnumpy())))[0]["y"]) == bits(expected["y"])


@pytest.mark.parametrize("train_mode", [False, True])
@pytest.mark.parametrize("way", ["as it is", "hybridized"])
@pytest.mark.parametrize("build", [convolutional, recurrent])
def test_imported_networks_are_trained_like_the_exported_one(build, way, train_mode, tmp_path):
    net, x, files = exported(build, tmp_path)
    has_modes = build is convolutional
    assert ("training" in json.loads(Path(files[0]).read_text())) == has_modes
    block = gluon.SymbolBlock.imports(files[0], ["data"], files[1])
    assert {name for name, p in block.collect_params().items() if p.grad_req != "null"} == {
        name for name, p in net.collect_params().items() if p.grad_req != "null"
    }
    if way == "hybridized":
        block.hybridize()
    before, results = {name: bits(p.data()) for name, p in net.collect_params().items()}, []
    for each in (net, block):
        mx.random.seed(4)
        trainer = gluon.Trainer(each.collect_params(), "adam", {"learning_rate": 0.1})
        for _ in range(3):
            with autograd.record(train_mode=train_mode):
                loss = (each(x) ** 2).sum()
            loss.backward()
            trainer.step(1)
        after = {name: bits(p.data()) for name, p in each.collect_params().items()}
        results.append((bits(loss), after, bits(each(x))))
    assert results[0] == results[1]
    statistics = [name for name in before if "running" in name]
    assert all((before[name] != after[name]) == train_mode for name in statistics)


def test_noise_that_only_training_has_is_drawn_again_by_what_was_imported(tmp_path):
    class Noisy(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.dense = nn.Dense(2, in_units=3)

        def forward(self, x):
            scale = np.array([0.5, 2.0, 1.0])  # a constant that each graph has of its own
            y = self.dense(x * scale)
            return (y + np.random.normal(size=y.shape) * np.array([3.0, 4.0])) if autograd.is_training() else y

    net, x = Noisy(), np.ones((4, 3))
    net.initialize()
    net.hybridize()
    net(x)
    files = net.export(tmp_path / "x")
    block = gluon.SymbolBlock.imports(files[0], ["x"], files[1])
    assert {n for n, p in block.collect_params().items() if p.grad_req != "null"} == {"dense.bias", "dense.weight"}
    for mode in (autograd.train_mode, autograd.predict_mode):
        found = []
        for each in (net, block):
            mx.random.seed(1)
            with mode():
                found.append([bits(each(x)) for _ in range(2)])
        assert found[0] == found[1]
        assert (found[0][0] != found[0][1]) == (mode is autograd.train_mode)
    assert bits(mx.graph.load(files[0])(x)) == bits(net(x))
    document = json.loads(Path(files[0]).read_text())
    document["training"]["nodes"].reverse()
    with pytest.raises(FileFormatError, match=r"\(training\)"):
        gluon.SymbolBlock(Graph(json.dumps(document), load_arrays(files[1]), "file"), ["x"])
    document["training"] = [1]
    with pytest.raises(FileFormatError, match="damaged or no graph"):
        Graph(json.dumps(document), load_arrays(files[1]), "file")


def test_graphs_of_older_versions_are_named(tmp_path):
    file = tmp_path / "old-symbol.json"
    file.write_text('{"nodes": [{"op": "null", "name": "data", "inputs": []}], "arg_nodes": [0], "heads": [[0, 0, 0]]}')
    with pytest.raises(FileFormatError, match=r"graph of an older MXNet.*write the network as a HybridBlock"):
        gluon.SymbolBlock.imports(file, ["data"])


def test_arrays_that_both_graphs_have_are_written_once(tmp_path):
    class Scaled(gluon.HybridBlock):
        def forward(self, x):
            y = x * np.array([0.5, 2.0, 1.0])
            return y + np.array([3.0, 4.0, 5.0]) if autograd.is_training() else y

    net = Scaled()
    net.hybridize()
    net(np.ones((4, 3)))
    files = net.export(tmp_path / "x")
    block = gluon.SymbolBlock.imports(files[0], ["x"], files[1])
    assert sorted(p.data().tolist() for p in block.collect_params().values()) == [[0.5, 2, 1], [3, 4, 5]]
    x = np.ones((5, 3))
    for mode in (autograd.train_mode, autograd.predict_mode):
        with mode():
            assert bits(block(x)) == bits(net(x))


class Refuses(gluon.HybridBlock):
    def forward(self, x):
        if autograd.is_training():
            raise ValueError("no labels in training")
        return x * 2


class Reads(gluon.HybridBlock):
    def forward(self, x):
        return x * (3 if autograd.is_training() and x.sum().item() > 0 else 2)


class Selects(gluon.HybridBlock):
    def forward(self, x):
        return x[x > 0] if autograd.is_training() else x * 2


class Fixed(gluon.HybridBlock):
    def forward(self, x):
        return x * 3 + np.ones((4, 1)) if autograd.is_training() else x * 2


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (Refuses, "no labels in training"),
        (Reads, "no values"),
        (Selects, "depend on values"),
        (Fixed, "differ in the lengths"),
    ],
)
def test_networks_that_have_no_graph_for_training_are_exported_with_a_warning(tmp_path, kind, reason):
    net = kind()
    net.hybridize()
    net(np.ones((4, 3)))
    with pytest.warns(UserWarning, match=rf"{kind.__name__}.export: the file is for prediction.*{reason}") as found:
        files = net.export(tmp_path / "x")
    assert [Path(w.filename).name for w in found] == [Path(__file__).name]
    block = gluon.SymbolBlock.imports(files[0], ["x"], files[1])
    for mode in (autograd.train_mode, autograd.predict_mode):
        with mode():
            assert block(np.ones((5, 3))).tolist() == [[2.0] * 3] * 5


def test_operators_are_found_by_their_names_of_earlier_versions(tmp_path):
    class Folds(gluon.HybridBlock):
        def forward(self, x):
            return np.nansum(x, axis=0) + np.nanmax(x) * np.nanmin(x)

    net = Folds()
    net.hybridize()
    x = np.array([[1.0, np.nan], [2.0, 5.0]])
    expected = net(x)
    files = net.export(tmp_path / "x")
    text = Path(files[0]).read_text()
    for name in ("sum", "max", "min"):
        assert f'"nan{name}"' in text
        text = text.replace(f'"nan{name}"', f'"nan_{name}"')
    assert bits(Graph(text, load_arrays(files[1]), "file")(x)) == bits(expected)
    with pytest.raises(ValueError, match="no operator `nan_sum`"):
        mx._core.added_operator("nan_sum")


def test_what_cannot_be_exported_says_why(tmp_path):
    net = nn.Dense(2)
    net.initialize()
    with pytest.raises(RuntimeError, match="hybridize"):
        net.export(tmp_path / "x")

    class Odd(gluon.HybridBlock):
        def forward(self, x):
            return x, {1, 2}

    odd = Odd()
    odd.hybridize()
    odd(np.ones(2))
    with pytest.raises(TypeError, match="'set'"):
        odd.export(tmp_path / "x")
    assert not list(tmp_path.iterdir())


def test_parts_that_python_compiled_are_not_exported(tmp_path):
    mx.graph.register_partitioner("products", lambda node: node.op == "exp", lambda part: lambda x: np.exp(x))
    try:
        net = nn.HybridLambda(lambda x: np.exp(x) + 1)
        x = np.ones(3)
        net.optimize_for(x, backend="products")
        with pytest.raises(
            mx.error.UnsupportedError, match=r"HybridLambda\.export: .* `optimize_for\(x, clear=True\)`"
        ):
            net.export(tmp_path / "x")
        assert not list(tmp_path.iterdir())
        net.optimize_for(x, clear=True)
        files = net.export(tmp_path / "x")
    finally:
        mx.graph.unregister_pass("products")
    assert (mx.graph.load(files[0])(x) == net(x)).all()


def test_keyword_arguments_and_lists_keep_their_lengths(tmp_path):
    class Sum(gluon.HybridBlock):
        def forward(self, x):
            return x.sum(axis=-1) if isinstance(x, np.ndarray) else x[0] + x[1]

    for args, kwargs in [((), {"x": np.ones((2, 3))}), (([np.ones((2, 3))] * 2,), {})]:
        net = Sum()
        net.hybridize()
        net(*args, **kwargs)
        loaded = mx.graph.load(net.export(tmp_path / "x")[0])
        arrays = args[0] if args else [kwargs["x"]]
        assert (loaded(*arrays) == net(*args, **kwargs)).all()
        with pytest.raises(ValueError, match=r"must have shape \(2, 3\), found \(4, 3\)"):
            loaded(*[np.ones((4, 3))] * len(arrays))


def test_wrong_arguments_are_named(tmp_path):
    _, x, files = exported(convolutional, tmp_path)
    loaded = mx.graph.load(files[0])
    with pytest.raises(ValueError, match="takes 1 arrays, found 2"):
        loaded(x, x)
    with pytest.raises(ValueError, match=r"argument 0 must have shape \(any, 3, 8, 8\), found \(3, 8, 8\)"):
        loaded(x[0])
    with pytest.raises(TypeError, match="argument 0 must be float32, found float64"):
        loaded(x.astype("float64"))
    with pytest.raises(ValueError, match="2 names for the 1 arguments"):
        gluon.SymbolBlock.imports(files[0], ["a", "b"])


def test_files_of_other_versions_are_refused(tmp_path):
    _, _, files = exported(convolutional, tmp_path)
    arrays = load_arrays(files[1])
    document = json.loads(Path(files[0]).read_text())

    def refused(match, **changes):
        with pytest.raises(FileFormatError, match=match):
            Graph(json.dumps({**document, **changes}), arrays, "file")

    refused("version 9, this library reads versions up to 2", version=9)
    refused("no entry", format="other")
    refused("promotion mode", promotion="numpy")
    nodes = document["nodes"]
    refused("no operator `nothing`", nodes=[{**nodes[0], "op": "nothing"}, *nodes[1:]])
    refused("has version 7 in the file", nodes=[{**nodes[0], "version": 7}, *nodes[1:]])
    refused("before it is defined", nodes=nodes[1:])
    refused("again", nodes=[nodes[0], *nodes])
    refused("exceed the address space", buffers=[2**62] * len(document["buffers"]))
    refused("exceeds buffer", buffers=[8] * len(document["buffers"]))
    with pytest.raises(FileFormatError, match="needs arrays"):
        Graph(json.dumps(document), {}, "file")
    with pytest.raises(FileFormatError, match="bytes of buffer"):
        Graph(json.dumps(document), {**arrays, "0.weight": np.ones(3)}, "file")
    with pytest.raises(FileNotFoundError):
        mx.graph.load(tmp_path / "nothing-symbol.json")


@pytest.mark.parametrize("build", [convolutional, several, of_any_size])
def test_damaged_graphs_are_refused_or_run(build, tmp_path):
    _, _, files = exported(build, tmp_path)
    text, arrays = Path(files[0]).read_text(), load_arrays(files[1])
    source, outcomes = random.Random(5), {"refused": 0, "ran": 0}
    for _ in range(400):
        damaged = list(text)
        for _ in range(source.randint(1, 3)):
            at = source.randrange(len(damaged))
            damaged[at] = source.choice(["", "0", "7", "-", "[", "]", "{", "}", '"', ",", "1e9", "9" * 19, "null", "a"])
        try:
            graph = Graph("".join(damaged), arrays, "damaged")
            for n in (2, 5):
                shapes = [[n if k is None else k for k in shape] for shape, _ in graph.arguments]
                graph(*[np.ones(shape, dtype=x[1]) for shape, x in zip(shapes, graph.arguments, strict=True)])
            outcomes["ran"] += 1
        except (FileFormatError, ValueError, TypeError, MemoryError, KeyError):
            outcomes["refused"] += 1
    assert outcomes["refused"] > 200


OTHER_KINDS = [None, True, 7, "x", [1, 2], {"float": 0.5}, {"floats": [0.5]}, {"dtype": "int8"}, {"index": []}]


@pytest.mark.parametrize("build", [convolutional, recurrent, several])
def test_attributes_of_another_kind_are_refused_or_run(build, tmp_path):
    _, x, files = exported(build, tmp_path)
    whole, arrays = json.loads(Path(files[0]).read_text()), load_arrays(files[1])
    refused = 0
    for i, node in enumerate(whole["nodes"]):
        for name in node["attrs"]:
            for other in OTHER_KINDS:
                damaged = json.loads(json.dumps(whole))
                damaged["nodes"][i]["attrs"][name] = other
                try:
                    Graph(json.dumps(damaged), arrays, "damaged")(x)
                except mx.error.InternalError:
                    pytest.fail(f"{node['op']}, {name}: {other}")
                except (FileFormatError, ValueError, TypeError):
                    refused += 1
    assert refused > 20


def test_other_arrays_in_the_file_are_refused_or_passed_over(tmp_path):
    _, x, files = exported(convolutional, tmp_path)
    arrays = load_arrays(files[1])
    more = str(tmp_path / "more.params")
    mx.npx.save(more, {**arrays, "other": np.ones(2)})
    with pytest.raises(ValueError, match="has 'other', which the graph has not"):
        gluon.SymbolBlock.imports(files[0], ["data"], more)
    block = gluon.SymbolBlock.imports(files[0], ["data"], more, ignore_extra=True)
    assert bits(block(x)) == bits(gluon.SymbolBlock.imports(files[0], ["data"], files[1])(x))
    mx.npx.save(more, {"other": np.ones(2)})
    with pytest.raises(FileFormatError, match="needs arrays"):
        gluon.SymbolBlock.imports(files[0], ["data"], more, allow_missing=True, ignore_extra=True)
