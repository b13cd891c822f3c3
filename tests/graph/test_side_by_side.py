"""Kernels that threads do not divide well run side by side in a graph: which, with which results, errors and memory."""

import re
import threading

import numpy
import pytest

import mxnet as mx
from mxnet import autograd, gluon, np
from mxnet.gluon import rnn


def data(*shape, seed=0):
    return np.array(numpy.random.default_rng(seed).normal(size=shape).astype("float32"))


def bits(x):
    return x.shape, str(x.dtype), x.asnumpy().tobytes()


def together(compiled):
    """The operators of each range that runs side by side."""
    lines = re.findall(r"^  side by side: (.*)$", compiled.graphs[-1].memory_plan, re.MULTILINE)
    return [line.split(", ") for line in lines]


def tagger(num_layers=1):
    layer = rnn.LSTM(64, num_layers, layout="NTC", bidirectional=True, input_size=32)
    layer.initialize()
    return layer


@pytest.mark.parametrize("num_layers", [1, 2])
def test_both_directions_of_a_layer_run_side_by_side(num_layers):
    layer, x = tagger(num_layers), data(8, 40, 32)
    compiled = mx.jit(layer)
    expected = bits(layer(x))
    for _ in range(3):
        assert bits(compiled(x)) == expected
    assert together(compiled) == [["rnn_layer", "rnn_layer"]] * num_layers
    apart = mx.jit(layer, passes_off=("gather_independent_nodes",))
    assert bits(apart(x)) == expected
    assert together(apart) == []


def test_a_training_step_has_the_same_bits():
    layer, x = tagger(2), data(8, 40, 32)
    trainer = gluon.Trainer(layer.collect_params(), "sgd", {"learning_rate": 0.1})

    def step(x):
        with autograd.record():
            loss = (layer(x) ** 2).mean()
        loss.backward()
        trainer.step(1)
        return loss

    weights = {name: p.data().copy() for name, p in layer.collect_params().items()}
    results = []
    for function in (step, mx.jit(step)):
        for name, p in layer.collect_params().items():
            p.set_data(weights[name])
        losses = [bits(function(x)) for _ in range(3)]
        results.append((losses, {name: bits(p.data()) for name, p in layer.collect_params().items()}))
    assert results[0] == results[1]
    assert together(function) == [["rnn_layer"] * 2] * 2 + [["rnn_layer_gradient"] * 2] * 2


def test_kernels_that_depend_on_each_other_do_not():
    layer = rnn.LSTM(64, 2, layout="NTC", input_size=32)
    layer.initialize()
    compiled, x = mx.jit(layer), data(8, 40, 32)
    assert bits(compiled(x)) == bits(layer(x))
    assert together(compiled) == []


def test_nodes_between_are_moved_only_if_nothing_is_written():
    def values(x, y):
        first = np.linalg.svd(x)[1] * 2
        second = np.linalg.svd(y @ y)[1]
        return first, second

    def written(x, y):
        first = np.linalg.svd(x)[1]
        y[:20] = (y @ y)[:20]
        return first, np.linalg.svd(y)[1]

    for function, expected in ((values, 1), (written, 0)):
        x, y = data(40, 40), data(40, 40, seed=1)
        wanted = [bits(z) for z in function(x.copy(), y.copy())]
        compiled = mx.jit(function)
        assert [bits(z) for z in compiled(x.copy(), y.copy())] == wanted
        assert len(together(compiled)) == expected


def positive(n, seed):
    x = numpy.random.default_rng(seed).normal(size=(n, n)).astype("float32")
    return np.array(x @ x.T + n * numpy.eye(n, dtype="float32"))


def test_an_argument_that_one_kernel_reads_is_not_overwritten_by_its_neighbour():
    def step(a, b):
        first = np.linalg.cholesky(a)
        a[:] = np.linalg.cholesky(b)
        return first

    compiled = mx.jit(step)
    for _ in range(30):
        a, b = positive(200, 0), positive(200, 1)
        wanted = [bits(z) for z in (step(a, b), a)]
        a = positive(200, 0)
        assert [bits(z) for z in (compiled(a, b), a)] == wanted


def test_an_array_that_one_kernel_reads_is_not_overwritten_by_the_other():
    def step(x, y):
        first = np.linalg.qr(x)[1]
        y[:] = np.linalg.qr(y)[1]
        x[:] = np.linalg.qr(x + 1)[1]
        return first

    for _ in range(20):
        x, y = data(60, 60), data(60, 60, seed=1)
        wanted = [bits(z) for z in (step(x, y), x, y)]
        x, y = data(60, 60), data(60, 60, seed=1)
        compiled = mx.jit(step)
        assert [bits(z) for z in (compiled(x, y), x, y)] == wanted


def test_the_error_of_one_names_its_operator_and_leaves_the_graph_usable():
    def function(x, y):
        return np.linalg.cholesky(x), np.linalg.cholesky(y)

    good = np.eye(300) * 2
    compiled = mx.jit(function)
    expected = [bits(z) for z in compiled(good, good)]
    assert together(compiled) == [["cholesky_lower", "cholesky_lower"]]
    for x, y in ((good, -good), (-good, good)):
        with pytest.raises(np.linalg.LinAlgError, match=r"(?s)cholesky.*test_side_by_side\.py"):
            [z.asnumpy() for z in compiled(x, y)]
        assert [bits(z) for z in compiled(good, good)] == expected


def test_many_threads_run_one_graph():
    layer = tagger()
    layer.hybridize()
    inputs = [data(4, 30, 32, seed=i) for i in range(4)]
    expected = [bits(layer(x)) for x in inputs]
    wrong = []

    def run():
        for _ in range(20):
            wrong.extend(i for i, x in enumerate(inputs) if bits(layer(x)) != expected[i])

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_random_numbers_are_those_of_the_function():
    layer = rnn.LSTM(16, 2, layout="NTC", bidirectional=True, input_size=8, dropout=0.5)
    layer.initialize()
    compiled, x = mx.jit(layer), data(2, 10, 8)
    results = []
    for function in (layer, compiled):
        np.random.seed(3)
        with autograd.train_mode():
            results.append([bits(function(x)) for _ in range(3)])
    assert results[0] == results[1]
