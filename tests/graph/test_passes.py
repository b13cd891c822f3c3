"""Passes of graphs: what each removes, that results keep their bits, those that programs add, recomputation."""

import itertools
import re

import numpy
import pytest

import mxnet as mx
from mxnet import _core, autograd, gluon, np, npx
from mxnet.gluon import nn, rnn


def data(*shape, seed=0):
    return np.array(numpy.random.default_rng(seed).normal(size=shape).astype("float32"))


def bits(x):
    return x.shape, str(x.dtype), x.asnumpy().tobytes()


def operators(compiled):
    return [node.op for node in mx.graph.view(compiled).nodes]


def with_and_without(function, *args, off):
    """Operators of the graph without a pass and with it; the results are those of the function."""
    expected = bits(function(*args))
    found = []
    for passes in [(off,), ()]:
        compiled = mx.jit(function, passes_off=passes)
        for _ in range(2):
            assert bits(compiled(*args)) == expected
        found.append(operators(compiled))
    return found


def test_constants_are_folded():
    before, after = with_and_without(
        lambda x: x + np.arange(3.0) * np.sqrt(np.full(3, 2.0)), data(3), off="fold_constants"
    )
    assert before == ["arange", "filled", "sqrt", "multiply", "add"]
    assert after == ["add"]


def test_large_constants_are_not_kept_in_the_graph():
    compiled = mx.jit(lambda x: x + np.zeros((1 << 15,)))
    compiled(data(1 << 15))
    assert operators(compiled) == ["zeros", "add"]


def test_random_numbers_are_not_folded():
    compiled = mx.jit(lambda: np.random.normal(size=3))
    assert bits(compiled()) != bits(compiled())


def test_constants_that_are_written_or_returned_are_new_at_each_call():
    def fill(x):
        y = np.zeros(3)
        y[1] = x
        return y, np.ones(2)

    compiled = mx.jit(fill)
    for value in (1.0, 2.0):
        y, ones = compiled(np.array(value))
        assert y.asnumpy().tolist() == [0, value, 0]
        ones[:] = 5
    assert compiled(np.array(0.0))[1].asnumpy().tolist() == [1, 1]


@pytest.mark.parametrize(
    ("function", "before", "after"),
    [
        (lambda x: np.exp(x * 1), ["multiply", "exp"], ["exp"]),
        (lambda x: np.exp(1 * x / 1 - 0), ["multiply", "divide", "subtract", "exp"], ["exp"]),
        (lambda x: np.exp(np.negative(-x)), ["negative", "negative", "exp"], ["exp"]),
        (lambda x: np.floor(np.floor(x)) * 2, ["floor", "floor", "multiply"], ["floor", "multiply"]),
        (lambda x: x.astype("float64").astype("float32") * 2, ["astype", "astype", "multiply"], ["multiply"]),
        (lambda x: x.astype("float64").astype("float16") * 2, ["astype", "astype", "multiply"], ["astype", "multiply"]),
    ],
)
def test_what_changes_nothing_is_removed(function, before, after):
    x = np.array([[1.5, -0.0, numpy.inf], [0.0, -2.5, 1e-40]], dtype="float32")
    assert with_and_without(function, x, off="simplify") == [before, after]


def test_simplifications_that_would_change_bits_are_not_made():
    x = np.array([-0.0, 1.0])
    for function, expected in [
        (lambda x: np.exp(x + 0) * 1, ["add", "exp"]),  # -0 + 0 is 0
        (lambda x: x.astype("float16").astype("float32") * 2, ["astype", "astype", "multiply"]),
        (lambda x: x.astype("int32").astype("float32") * 2, ["astype", "astype", "multiply"]),
    ]:
        compiled = mx.jit(function)
        assert bits(compiled(x)) == bits(function(x))
        assert [op for op in operators(compiled) if op != "copy"] == expected


def test_parts_of_joined_arrays_are_read_where_they_were():
    def joined(x, y):
        both = np.concatenate([x, y])
        return np.exp(both[1:2]) + both[3:4], both[2:].sum()

    x, y = data(2, 3), data(2, 3, seed=1)
    expected = joined(x, y)
    compiled = mx.jit(joined)
    assert [bits(z) for z in compiled(x, y)] == [bits(z) for z in expected]
    assert sorted(operators(compiled)) == ["add", "exp", "sum"]
    assert {x.buffer for node in mx.graph.view(compiled).nodes for x in node.inputs} & {0, 1} == {0, 1}


def test_copies_before_a_write_in_place_are_kept():
    def swapped(x):
        first = x[0].copy()
        x[0] = x[1]
        x[1] = first
        return first * 2

    x, y = data(2, 3), data(2, 3)
    expected = swapped(x)
    assert bits(mx.jit(swapped)(y)) == bits(expected)
    assert bits(x) == bits(y)


def test_elementwise_operators_read_transposed_arrays_without_a_copy():
    before, after = with_and_without(lambda x: np.exp(np.ascontiguousarray(x.T)), data(3, 4), off="forward_copies")
    assert (len(before), after) == (2, ["exp"])


def test_products_read_transposed_arrays_as_they_are():
    compiled = mx.jit(lambda x, w: np.matmul(x, w.T))
    x, w = data(20, 30), data(10, 30)
    assert bits(compiled(x, w)) == bits(np.matmul(x, w.T))
    assert operators(compiled) == ["matmul"]


def test_activations_become_a_part_of_the_product_before_them():
    net = nn.Dense(4, activation="relu", in_units=6)
    net.initialize()
    net.bias.set_data(np.array([-0.0, 1.0, -1.0, numpy.nan]))
    x = np.concatenate([data(5, 6), np.zeros((1, 6)), np.full((1, 6), -1e-30)])
    before, after = with_and_without(lambda x: net(x), x, off="fuse_epilogues")
    assert (before, after) == (["fully_connected", "relu"], ["fully_connected_relu"])
    # What others read, too, is computed by itself.
    both = mx.jit(lambda x, w: (npx.relu(y := npx.fully_connected(x, w)), y.sum()))
    both(data(3, 2), data(4, 2))
    assert sorted(operators(both)) == ["fully_connected", "relu", "sum"]


def test_activations_become_a_part_of_the_convolution_before_them():
    for keywords in ({}, {"groups": 4}, {"strides": 2, "padding": 1}):
        net = nn.Conv2D(4, 3, activation="relu", in_channels=4, **keywords)
        net.initialize()
        net.bias.set_data(np.array([-0.0, 0.1, -0.1, numpy.nan]))
        x = data(3, 4, 7, 6)
        before, after = with_and_without(lambda x, net=net: net(x), x, off="fuse_epilogues")
        assert (before, after) == (["convolution", "relu"], ["convolution_relu"])


def normalised(**keywords):
    net = nn.HybridSequential()
    net.add(nn.Conv2D(6, 3, in_channels=4, use_bias=False, padding=1, **keywords), nn.BatchNorm(in_channels=6))
    net.initialize()
    for name, parameter in net.collect_params().items():
        if name != "0.weight":
            parameter.set_data(np.random.uniform(0.5, 1.5, (6,)))
    return net


def test_batch_normalisation_becomes_a_part_of_the_convolution_before_it():
    x = data(3, 4, 7, 6)
    net = normalised()
    names = ["convolution", "batch_norm_inference"]
    before, after = with_and_without(lambda x: net(x), x, off="fuse_epilogues")
    assert (before, after) == (names, ["convolution_batch_norm"])
    net = normalised(groups=2, strides=2)
    before, after = with_and_without(lambda x: npx.relu(net(x)), x, off="fuse_epilogues")
    assert (before, after) == ([*names, "relu"], ["convolution_batch_norm"])
    # Statistics that are written later are those of the next call.
    compiled = mx.jit(lambda x: net(x))
    first = bits(compiled(x))
    net[1].running_mean.set_data(np.ones((6,)))
    assert bits(compiled(x)) == bits(net(x)) != first


def test_additions_become_a_part_of_the_normalised_convolution_before_them():
    x, body, shortcut = data(3, 4, 7, 6), normalised(), normalised()
    other = data(3, 6, 7, 6, seed=1)
    names = ["convolution", "batch_norm_inference"]
    fused = ["convolution_batch_norm"]
    for function, before, after in [
        (lambda x, y: npx.relu(body(x) + y), [*names, "add", "relu"], fused),
        (lambda x, y: y + body(x), [*names, "add"], fused),
        # Both operands are products, and the later one takes the other, which comes first in the sum or last.
        (lambda x, y: npx.relu(body(x) + shortcut(x)), [*names, *names, "add", "relu"], fused * 2),
        (lambda x, y: npx.relu(npx.relu(body(x)) + shortcut(x)), [*names, "relu", *names, "add", "relu"], fused * 2),
    ]:
        found = with_and_without(function, x, other, off="fuse_epilogues")
        assert [sorted(names) for names in found] == [sorted(before), after]


def test_additions_stay_apart_where_they_must():
    x, net, other = data(3, 4, 7, 6), normalised(), data(3, 6, 7, 6, seed=1)
    fused = "convolution_batch_norm"

    for function, after in [
        (lambda x: npx.relu(net(x)) + x[:, :1], [fused, "add"]),  # another shape
        (lambda x: npx.relu(net(x)) + np.exp(np.tile(x, (1, 2, 1, 1))[:, :6]), None),  # relu comes first
        (lambda x: (y := net(x)) + y, [fused, "add"]),
        (lambda x: net(x) + np.exp(other), [fused, "exp", "add"]),  # the addend is made later
        (lambda x: net(x) + 1, [fused, "add"]),
        (lambda x: np.stack([y := net(x), y + np.ones((3, 6, 7, 6))]), None),  # others read the result
    ]:
        compiled = mx.jit(function)
        assert bits(compiled(x)) == bits(function(x))
        found = operators(compiled)
        assert found == after if after else "add" in found


def test_batch_normalisation_stays_apart_where_it_must():
    x, net = data(3, 4, 7, 6), normalised()
    weight = net[0].weight.data()

    def both(x):
        y = npx.convolution(x, weight, kernel=(3, 3), num_filter=6, no_bias=True)
        return np.stack([net[1](y), y])

    def other_axis(x):
        y = npx.convolution(x, weight, kernel=(3, 3), num_filter=6, no_bias=True, pad=(1, 0))
        return npx.batch_norm(y, *(np.ones((4,)),) * 4, axis=3)

    def computed(x):
        y = npx.convolution(x, weight, kernel=(3, 3), num_filter=6, no_bias=True)
        mean = y.mean((0, 2, 3))
        return npx.batch_norm(y, np.ones((6,)), np.ones((6,)), mean, np.ones((6,)))

    for function in (both, other_axis, computed):
        compiled = mx.jit(function)
        assert bits(compiled(x)) == bits(function(x))
        assert "convolution" in operators(compiled)


def test_networks_with_batch_normalisation_keep_their_gradients():
    gradients = []
    for hybrid in (False, True):
        mx.random.seed(3)
        net = normalised()
        net.hybridize(hybrid)
        x = data(2, 4, 5, 5)
        x.attach_grad()
        with autograd.record(train_mode=False):
            y = (net(x) ** 2).sum()
        y.backward()
        gradients.append((bits(y), bits(x.grad), bits(net[0].weight.grad()), bits(net[1].gamma.grad())))
    assert gradients[0] == gradients[1]


def test_gradients_flow_through_fused_activations():
    gradients = []
    for hybrid in (False, True):
        mx.random.seed(2)
        net = nn.HybridSequential()
        net.add(nn.Dense(5, activation="relu", in_units=3), nn.Dense(2, activation="relu", in_units=5))
        net.initialize(mx.init.Normal(1.0))
        net.hybridize(hybrid)
        x = data(4, 3)
        x.attach_grad()
        with autograd.record():
            y = (net(x) ** 2).sum()
            first = autograd.grad(y, x, create_graph=True)
            second = (first**2).sum()
        second.backward()
        gradients.append((bits(y), bits(first), bits(x.grad), bits(net[0].weight.grad())))
    assert gradients[0] == gradients[1]


def test_recurrent_layers_read_their_weights_where_they_are():
    net = gluon.rnn.LSTM(8, 2, input_size=4)
    net.initialize()
    x = data(5, 2, 4)
    expected = bits(net(x))
    net.hybridize()
    assert bits(net(x)) == expected
    assert operators(net) == ["rnn_layer", "rnn_layer"]


def test_cheap_results_that_a_gradient_reads_are_computed_again():
    weights = [data(32, 64, seed=1) * 0.1, data(64, 32, seed=2) * 0.1, np.ones(32), np.zeros(32)]

    def step(x):
        for w in weights:
            w.attach_grad()
        with autograd.record():
            for _ in range(3):
                hidden = npx.gelu(np.matmul(npx.layer_norm(x, weights[2], weights[3]), weights[0]))
                x = x + np.matmul(hidden, weights[1])
            loss = (x**2).sum()
        loss.backward()
        return [loss, *[w.grad for w in weights]]

    x, found = data(128, 32), []
    for off in ((), ("repeat_cheap_nodes",)):
        compiled = mx.jit(step, passes_off=off)
        results = [bits(y) for y in compiled(x)]
        counts = {name: operators(compiled).count(name) for name in ("gelu_erf", "row_norm")}
        found.append((results, counts, compiled.graphs[-1].planned_bytes[0]))
    (ours, again, less), (baseline, once, more) = found
    assert ours == baseline == [bits(y) for y in step(x)]
    assert (again, once) == ({"gelu_erf": 6, "row_norm": 6}, {"gelu_erf": 3, "row_norm": 3})
    assert less < 0.8 * more
    # Without a gradient nothing is kept for later.
    forward = mx.jit(lambda x: npx.gelu(x * 2) + npx.gelu(x * 3))
    forward(x)
    assert operators(forward).count("gelu_erf") == 2


def test_all_passes_can_be_switched_off_by_name():
    x = data(4, 4)

    def function(x):
        return np.exp(x * 1) + np.zeros((4, 4)) + np.concatenate([x, x])[:4]

    compiled = mx.jit(function)
    full = len(operators_of(compiled, x))
    for name in ("fold_constants", "simplify", "forward_copies"):
        with mx.graph.without_pass(name):
            assert len(operators_of(compiled, x)) > full
        assert len(operators_of(compiled, x)) == full
    with mx.graph.without_pass(*mx.graph.passes()):
        assert bits(compiled(x)) == bits(function(x))
    with pytest.raises(ValueError, match="there is no pass 'fuze'"), mx.graph.without_pass("fuze"):
        pass


def operators_of(compiled, x):
    compiled(x)
    return operators(compiled)


def test_bisect_names_the_pass_that_changes_a_result():
    def function(x):
        return np.exp(x) * 2 + 1

    assert mx.graph.bisect(function, data(3)) is None

    @mx.graph.register_pass
    def wrong(graph):
        for node in graph.nodes:
            if node.op == "exp":
                graph.replace(node, "tanh", node.inputs)

    try:
        assert mx.graph.bisect(function, data(3)) == "wrong"
    finally:
        mx.graph.unregister_pass("wrong")
    assert mx.graph.bisect(function, data(3)) is None


def test_registered_passes_change_graphs():
    seen = []

    @mx.graph.register_pass
    def log_of_exp(graph):
        seen.append((graph.name, len(graph.inputs), len(graph.outputs)))
        for node in list(graph.nodes):
            inner = graph.producer(node.inputs[0]) if node.op == "log" else None
            if inner is not None and inner.op == "exp":
                assert graph.consumers(inner.outputs[0]) == [node]
                assert re.search(r"test_passes.py:\d+", node.line)
                graph.replace_value(node.outputs[0], inner.inputs[0])
                graph.remove(node)
                graph.remove(inner)

    compiled = mx.jit(lambda x: np.log(np.exp(x)) + x.sum(axis=0, keepdims=True))
    try:
        assert operators_of(compiled, data(3, 2)) == ["sum", "add"]
    finally:
        mx.graph.unregister_pass("log_of_exp")
    assert sorted(operators_of(compiled, data(3, 2))) == ["add", "exp", "log", "sum"]
    assert seen[0][1:] == (1, 1)
    with pytest.raises(ValueError, match="no pass 'log_of_exp' is registered"):
        mx.graph.unregister_pass("log_of_exp")


def test_new_nodes_have_numbers_and_attributes():
    @mx.graph.register_pass
    def mean_by_hand(graph):
        for node in list(graph.nodes):
            if node.op == "mean":
                x, total = node.inputs[0], graph.new_value(node.outputs[0].shape, node.outputs[0].dtype)
                attributes = {"axis": node.attributes["axis"], "dtype": None, "keepdims": False}
                graph.insert(node, mx.graph.GraphNode("sum", [x], [total], attributes))
                graph.replace(node, "divide", [total, x.shape[0]])

    try:
        compiled = mx.jit(lambda x: x.mean(axis=0))
        x = data(4, 3)
        numpy.testing.assert_allclose(compiled(x).asnumpy(), x.asnumpy().mean(0), rtol=1e-6)
        assert operators(compiled) == ["sum", "divide"]
    finally:
        mx.graph.unregister_pass("mean_by_hand")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda g: g.nodes.pop(0), "reads buffer"),
        (lambda g: g.nodes.reverse(), "before it is defined"),
        (lambda g: setattr(g.nodes[0], "op", "no_such_operator"), "there is no operator `no_such_operator`"),
        (lambda g: g.replace(g.nodes[0], "sum", g.nodes[0].inputs, {"axis": [0], "keepdims": False}), "`sum`"),
        (lambda g: g.remove(g.nodes[0]), "the graph reads b1"),
    ],
)
def test_passes_that_break_a_graph_are_named(change, message):
    mx.graph.register_pass(lambda graph: change(graph) and None, name="breaks")
    compiled = mx.jit(lambda x: np.exp(x) * 2)
    try:
        with pytest.raises((ValueError, TypeError), match=message):
            compiled(data(3))
    finally:
        mx.graph.unregister_pass("breaks")
    assert bits(compiled(data(3))) == bits(np.exp(data(3)) * 2)
    with pytest.raises(ValueError, match="`fuse` is the name of a pass of the library"):
        mx.graph.register_pass(change, name="fuse")


class Net(gluon.HybridBlock):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Dense(8, activation="relu", in_units=4), nn.Dense(3, in_units=8)

    def forward(self, x):
        hidden = self.first(x)
        return self.second(np.tanh(hidden) + hidden) * 2


def test_partitioners_take_parts_of_a_graph():
    parts = []

    def compile(part):
        parts.append([node.op for node in part.nodes])
        run = part.compile()
        return lambda *arrays: run(*arrays)

    mx.graph.register_partitioner("products", lambda node: node.op in ("fully_connected", "relu"), compile)
    try:
        net = Net()
        net.initialize()
        x = data(5, 4)
        expected = bits(net(x))
        net.optimize_for(x, backend="products")
        assert bits(net(x)) == expected
        assert parts == [["fully_connected", "relu"], ["fully_connected"]]
        assert operators(net) == ["graph_partition", "tanh", "add", "graph_partition", "multiply"]
        with pytest.raises(ValueError, match="there is no backend 'other'; known are: 'products'"):
            net.optimize_for(x, backend="other")
        net.optimize_for(x, clear=True)
        assert "graph_partition" not in operators(net)
    finally:
        mx.graph.unregister_pass("products")


def test_parts_have_no_path_that_leaves_and_comes_back():
    def function(x):
        first = np.exp(x)
        return np.exp(np.tanh(first) + first) * np.exp(first)

    mx.graph.register_partitioner("exp", lambda node: node.op in ("exp", "multiply"))
    try:
        compiled = mx.jit(function, backend="exp")
        x = data(6)
        assert bits(compiled(x)) == bits(function(x))
        found = operators(compiled)
        assert found.count("graph_partition") == 2
        assert {"tanh", "add"} < set(found)
    finally:
        mx.graph.unregister_pass("exp")


def test_parts_do_not_depend_on_each_other():
    def function(x, y):
        first, second = np.exp(x), np.sin(y)
        # Each of two groups reads what the other one computes, so one of them is not dissolved.
        return second + first, first * np.cos(second)

    sizes = []

    def compile(part):
        sizes.append(len(part.nodes))
        return part.compile()

    mx.graph.register_partitioner("mutual", lambda node: True, compile, min_nodes=2)
    try:
        compiled, x, y = mx.jit(function, backend="mutual"), data(6), data(6)
        for found, expected in zip(compiled(x, y), function(x, y), strict=True):
            assert bits(found) == bits(expected)
        assert sizes == [2]
        assert operators(compiled).count("graph_partition") == 1
    finally:
        mx.graph.unregister_pass("mutual")


def test_many_parts_replace_their_nodes():
    def function(x):
        for _ in range(200):
            x = np.sin(np.cos(x))
        return x

    mx.graph.register_partitioner("sines", lambda node: node.op == "sin")
    try:
        compiled, x = mx.jit(function, backend="sines"), data(6)
        assert bits(compiled(x)) == bits(function(x))
        assert operators(compiled) == ["cos", "graph_partition"] * 200
    finally:
        mx.graph.unregister_pass("sines")


def test_errors_of_registration_name_the_function_that_was_called():
    with pytest.raises(ValueError, match=r"^register_partitioner: `fuse` is the name of a pass of the library"):
        mx.graph.register_partitioner("fuse", lambda node: True)
    with pytest.raises(ValueError, match=r"^register_pass: `fuse` is the name of a pass of the library"):
        mx.graph.register_pass(lambda graph: None, name="fuse")


def deep(depth=12, width=64):
    net = nn.HybridSequential()
    for _ in range(depth):
        net.add(nn.Dense(width, in_units=width), nn.HybridLambda(lambda x: np.tanh(x) * npx.sigmoid(x)))
    return net


def trained(budget, whole):
    mx.random.seed(3)
    net = deep()
    net.initialize(mx.init.Xavier())
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    x = data(256, 64)

    def step(x):
        with autograd.record():
            loss = (net(x) ** 2).mean()
        loss.backward()
        trainer.step(1)
        return loss

    if whole:
        step = mx.jit(step, memory_budget=budget)
    else:
        net.hybridize(memory_budget=budget)
    losses = [bits(step(x)) for _ in range(3)]
    compiled = step if whole else net._compiled
    return losses, [bits(p.data()) for p in net.collect_params().values()], max(compiled.graphs[-1].planned_bytes)


@pytest.mark.parametrize("whole", [False, True])
def test_recomputation_keeps_to_the_budget_and_the_bits(whole):
    baseline = trained(None, whole)
    budget = int(baseline[2] * 0.6)
    bounded = trained(budget, whole)
    assert bounded[:2] == baseline[:2]
    assert bounded[2] <= budget < baseline[2]
    with pytest.raises(ValueError, match=r"with recomputation: more than the budget of 1000 bytes"):
        trained(1000, whole)


def test_dropout_is_not_drawn_again():
    def run(budget):
        mx.random.seed(5)
        net = nn.HybridSequential()
        for _ in range(6):
            net.add(nn.Dense(32, in_units=32), nn.Dropout(0.5), nn.HybridLambda(np.tanh))
        net.initialize()
        net.hybridize(memory_budget=budget)
        x = data(128, 32)
        with autograd.record():
            y = net(x)
        y.backward()
        graph = net._compiled.graphs[-1]
        return [bits(p.grad()) for p in net.collect_params().values()], max(graph.planned_bytes)

    baseline = run(None)
    bounded = run(int(baseline[1] * 0.95))
    assert bounded[0] == baseline[0]
    assert bounded[1] <= baseline[1] * 0.95


def reduced(fold, axis):
    """Functions of arrays `x` and `y` and of a row, in which `fold` reduces the result of elementwise operators."""
    return [
        lambda x, y, row: [fold((x - y) * (x - y), axis=axis)],
        lambda x, y, row: [fold(np.abs(x * 2 + row) - 1.5, axis=axis, keepdims=True)],
        # The operand is a result, too.
        lambda x, y, row: [z := np.tanh(x) * y, fold(z, axis=axis)],
        lambda x, y, row: [fold((x > y + row) * 1, axis=axis)],
    ]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("shape", [(7,), (70_000,), (300, 64), (90, 700), (5, 3, 90), (40, 30, 512)])
def test_reductions_of_elementwise_results_have_the_bits_of_the_function(shape, dtype):
    x, y = ((data(*shape, seed=i) * 10).astype(dtype) for i in range(2))
    row = (data(shape[-1]) * 10).astype(dtype)
    sizes = range(1, len(shape) + 1)
    every = [None, *(axes for n in sizes for axes in itertools.combinations(range(len(shape)), n))]
    for axis, fold in itertools.product(every, (np.sum, np.mean, np.max, np.min)):
        for function in reduced(fold, axis):
            compiled = mx.jit(function)
            for _ in range(2):
                assert [bits(z) for z in compiled(x, y, row)] == [bits(z) for z in function(x, y, row)]


@pytest.mark.parametrize("fold", [np.sum, np.max, np.min])
def test_inputs_of_a_reduction_are_not_overwritten_before_they_are_read(fold):
    weights = data(1024, 1024)

    def step(d):
        d[:] = fold(weights + d, axis=1)

    def sines(x):
        x[:] = np.sin(x)
        return fold(x, axis=1)

    for function, x in ((step, data(1024)), (sines, data(512, 1024) * 1e7)):
        expected, found = x.copy(), x.copy()
        results = [bits(y) for y in (function(expected),) if y is not None]
        assert [bits(y) for y in (mx.jit(function)(found),) if y is not None] == results
        assert bits(found) == bits(expected)


def test_operands_of_reductions_are_computed_while_they_are_reduced():
    def loss(x, y):
        return ((x - y) * (x - y)).mean()

    x, y = data(600, 1000), data(600, 1000, seed=1)
    # The sum has ten tasks. With more threads than that it would run by itself.
    with mx.config(num_threads=2):
        compiled = mx.jit(loss)
        assert bits(compiled(x, y)) == bits(loss(x, y))
        assert compiled.graphs[0].planned_bytes[0] < 1000
        # Rows that are cut among columns, products (which are read twice) and views of results are reduced afterwards.
        for function in (
            lambda x, y: (x - y).sum(axis=0),
            lambda x, y: (x - y).prod(),
            lambda x, y: (x - y).T[::2].sum(),
        ):
            compiled = mx.jit(function)
            assert bits(compiled(x, y)) == bits(function(x, y))
            assert compiled.graphs[0].planned_bytes[0] >= x.nbytes


def test_reported_peaks_contain_the_working_memory_of_kernels():
    layer = rnn.LSTM(256, 2, layout="NTC", input_size=128)
    layer.initialize()
    layer.hybridize()
    x = data(32, 64, 128)
    mode, mx.config.engine_mode = mx.config.engine_mode, "sync"
    try:
        for _ in range(3):
            layer(x)
        before = _core.memory_stats()["in_use_bytes"]
        _core.reset_memory_peak()
        layer(x)
        taken = _core.memory_stats()["peak_bytes"] - before
    finally:
        mx.config.engine_mode = mode
    entry, graph = layer.trace_report()[0], layer._compiled.graphs[0]
    result = 32 * 64 * 256 * 4
    arena = graph.planned_bytes[0] - result
    # Kernels find their working memory in the arena, which was there before the call.
    assert arena + 500_000 < entry["arena_bytes"]
    assert result <= taken
    assert arena + result + 500_000 < entry["peak_bytes"] <= taken + entry["arena_bytes"]
    lines = graph.memory_plan.splitlines()
    assert f"{arena} bytes in the arena" in lines[0]
    assert len(lines) == 1 + len([line for line in lines if line.startswith("  b")])
    ends = [int(line.split("..")[1]) for line in lines if ", arena " in line]
    assert max(ends) <= arena < max(ends) + 64
    assert sum("new result 0" in line for line in lines) == 1


def test_graphs_are_drawn(tmp_path):
    net = Net()
    net.initialize()
    net.hybridize()
    with pytest.raises(ValueError, match="`Net` has no graph yet: hybridize it and call it once"):
        mx.graph.plot(net)
    net(data(2, 4))
    text = mx.graph.plot(net, tmp_path / "net.dot")
    assert (tmp_path / "net.dot").read_text() == text
    assert text.count("->") == 11
    picture = mx.graph.plot(net)
    from xml.etree import ElementTree

    root = ElementTree.fromstring(picture)
    texts = [element.text for element in root.iter() if element.tag.endswith("text")]
    assert {"fully_connected_relu", "fully_connected"} <= set(texts)
    # Boxes of one layer do not overlap.
    boxes = [
        (float(e.get("y")), float(e.get("x")), float(e.get("width"))) for e in root.iter() if e.tag.endswith("rect")
    ]
    for (y, x, width), (other, right, _) in zip(sorted(boxes), sorted(boxes)[1:], strict=False):
        assert y != other or x + width <= right
    with pytest.raises(ValueError, match="`format` must be 'svg' or 'dot', found 'png'"):
        mx.graph.plot(net, format="png")
    with pytest.raises(TypeError, match="a 'int' has no graph"):
        mx.graph.plot(3)


def test_nan_check_names_operator_block_and_line():
    class Bad(gluon.HybridBlock):
        def forward(self, x):
            return np.log(x - 2) * 3

    net = nn.HybridSequential()
    net.add(nn.HybridLambda(lambda x: x * 1.0), Bad())
    net.hybridize()
    assert bits(mx.graph.nan_check(net, np.full((2, 2), 3.0))) == bits(net(np.full((2, 2), 3.0)))
    with pytest.raises(
        FloatingPointError,
        match=r"`log` in block `1` made 4 NaN among 4 .*\n  at .*test_passes.py:\d+: `return np.log",
    ):
        mx.graph.nan_check(net, np.ones((2, 2)))


def test_types_are_inferred():
    net = Net()
    net.infer_type(np.ones((2, 4), dtype="float64"))
    net.initialize()
    assert {str(p.dtype) for p in net.collect_params().values()} == {"float64"}
    net.infer_type(np.ones((2, 4), dtype="int32"))
    assert net(np.ones((2, 4), dtype="float64")).dtype == "float64"


def test_jit_can_be_switched_off_for_all():
    calls = []
    compiled = mx.jit(lambda x: calls.append(1) or x + 1)
    with mx.config(jit=False):
        compiled(data(2))
        compiled(data(2))
    assert len(calls) == 2


def test_summary_counts_operations_and_bytes(capsys):
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3, in_channels=2), nn.Dense(5, activation="relu", in_units=4 * 4 * 4), nn.Dropout(0.5))
    net.initialize()
    net.hybridize()
    net.summary(np.ones((3, 2, 6, 6)))
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    numbers = {row[0]: row[-3:] for row in rows if row[0] in ("0:", "1:", "total")}
    convolution, dense = 3 * 4 * 4 * 4, 3 * 5
    assert numbers["0:"] == [str(4 * 2 * 9 + 4), str(2 * convolution * 2 * 9), str(4 * convolution)]
    relu = next((row for row in rows if row[0] == "act:"), None)
    own = 2 * dense * 64 + (0 if relu else dense)
    assert numbers["1:"][1] == str(own)
    assert numbers["total"][1] == str(2 * convolution * 18 + 2 * dense * 64 + dense)


def test_passes_that_are_removed_may_call_functions_of_passes():
    seen = []

    class Held:
        def __del__(self):
            seen.append(mx.graph.passes())

    def register(held):
        def unused(graph):
            return held and graph

        mx.graph.register_pass(unused)

    register(Held())
    register(Held())  # replaces the first
    assert len(seen) == 1
    mx.graph.unregister_pass("unused")
    assert len(seen) == 2
