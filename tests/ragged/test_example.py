"""The classifiers of `examples/ragged_sequences.py` give what they give of padded sequences, gradients included."""

import importlib.util
from pathlib import Path

import numpy as onp
import pytest

import mxnet as mx
from mxnet import autograd, gluon, np


@pytest.fixture(scope="module")
def example():
    path = Path(__file__).parents[2] / "examples" / "ragged_sequences.py"
    spec = importlib.util.spec_from_file_location("ragged_sequences", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("kind", ["Encoder", "Recurrent"])
def test_networks_run_ragged_end_to_end(example, kind):
    rows, classes = zip(*example.samples(onp.random.default_rng(7), 12), strict=True)
    tokens = gluon.data.batchify.Ragged()(rows)
    mx.random.seed(3)
    net = getattr(example, kind)()
    net.initialize(mx.init.Xavier())
    net(tokens)
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    parameters = list(net.collect_params().values())
    found = []
    for call in (lambda: net(tokens), lambda: net.padded(tokens.to_dense(), tokens.lengths())):
        with autograd.record():
            scores = call()
            loss = loss_of(scores, np.array(classes)).sum()
        loss.backward()
        found.append([scores.asnumpy(), *(p.grad().asnumpy().copy() for p in parameters)])
    for one, other in zip(*found, strict=True):
        # float32 sums of some hundred products in another order.
        onp.testing.assert_allclose(one, other, atol=2e-5 * (1 + onp.abs(other).max()))
    assert any(onp.abs(gradient).max() > 1e-3 for gradient in found[0][1:])


@pytest.mark.parametrize("kind", ["Encoder", "Recurrent"])
def test_networks_learn(example, kind, capsys):
    mx.random.seed(1)
    example.train(getattr(example, kind)(), steps=3)
    assert "step    2: loss" in capsys.readouterr().out
