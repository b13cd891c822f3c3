"""Blocks: structure, hooks, parameters, shapes that follow from the input."""

import numpy as onp
import pytest

import mxnet as mx
from mxnet import gluon
from mxnet.gluon import nn


class Pair(gluon.HybridBlock):
    def __init__(self):
        super().__init__()
        self.left = nn.Dense(2)
        self.right = nn.Dense(3, activation="relu")
        self.scale = gluon.Parameter("scale", shape=(1,), init="ones")

    def forward(self, x):
        return self.right(self.left(x)) * self.scale.data()


def initialized(net, *shape):
    net.initialize(mx.init.Normal(0.5))
    net(mx.np.ones(shape))
    return net


def test_names_follow_attributes():
    assert list(Pair().collect_params()) == ["scale", "left.weight", "left.bias", "right.weight", "right.bias"]


def test_select_matches_from_the_beginning():
    assert list(Pair().collect_params("left|.*bias")) == ["left.weight", "left.bias", "right.bias"]


def test_reassigned_child_replaces_the_old_one():
    net = Pair()
    net.left = nn.Dense(7)
    assert net.collect_params()["left.weight"].shape == (7, -1)
    with pytest.raises(TypeError, match="cannot become a int"):
        net.left = 3
    net.left = None
    assert "left.weight" not in net.collect_params()


def test_child_before_super_init_is_refused():
    class Wrong(gluon.Block):
        def __init__(self):
            self.child = nn.Dense(1)

    with pytest.raises(RuntimeError, match=r"super\(\).__init__\(\)"):
        Wrong()


def test_unknown_sizes_come_from_the_first_input():
    net = initialized(Pair(), 4, 5)
    assert net.left.weight.shape == (2, 5)
    assert net.right.weight.shape == (3, 2)


def test_infer_shape_runs_forward_once():
    net = Pair()
    net.initialize()
    net.infer_shape(mx.np.ones((4, 6)))
    assert net.left.weight.data().shape == (2, 6)
    assert not mx.autograd.is_recording()


def test_own_unknown_size_needs_infer_shape():
    class Lazy(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.weight = gluon.Parameter("weight", shape=(-1,), allow_deferred_init=True)

        def forward(self, x):
            return x * self.weight.data()

    net = Lazy()
    net.initialize()
    with pytest.raises(NotImplementedError, match="Lazy must define infer_shape, because sizes of 'weight'"):
        net(mx.np.ones((2,)))


def test_hooks_run_in_order_and_detach():
    net = nn.Dense(1, in_units=2)
    net.initialize()
    seen = []
    before = net.register_forward_pre_hook(lambda block, inputs: seen.append(("before", inputs[0].shape)))
    with net.register_forward_hook(lambda block, inputs, output: seen.append(("after", output.shape))):
        net(mx.np.ones((3, 2)))
    net(mx.np.ones((1, 2)))
    before.detach()
    net(mx.np.ones((1, 2)))
    assert seen == [("before", (3, 2)), ("after", (3, 1)), ("before", (1, 2))]


def test_apply_visits_children_first():
    seen = []
    Pair().apply(lambda block: seen.append(type(block).__name__))
    assert seen == ["Dense", "Activation", "Dense", "Pair"]


def test_setattr_reaches_all_parameters():
    net = initialized(Pair(), 4, 5)
    net.setattr("grad_req", "null")
    assert {parameter.grad_req for parameter in net.collect_params().values()} == {"null"}
    with pytest.raises(AttributeError, match="'colour'"):
        net.setattr("colour", "red")


def test_cast_reaches_all_parameters():
    net = initialized(Pair(), 4, 5)
    net.cast("float64")
    assert net(mx.np.ones((4, 5), dtype="float64")).dtype == onp.float64


def test_shared_parameters_are_the_same_objects():
    first, second = initialized(Pair(), 4, 5), Pair()
    assert second.share_parameters(first.collect_params()) is second
    assert all(a is b for a, b in zip(first.collect_params().values(), second.collect_params().values(), strict=True))
    x = mx.np.ones((4, 5))
    assert first(x).asnumpy().tolist() == second(x).asnumpy().tolist()
    with pytest.raises(ValueError, match=r"'weight' has shape \(2, 4\), the parameter to share \(3, 4\)"):
        nn.Dense(2, in_units=4).share_parameters(nn.Dense(3, in_units=4).collect_params())


def test_zero_grad_clears_gradients():
    net = initialized(Pair(), 4, 5)
    with mx.autograd.record():
        loss = net(mx.np.ones((4, 5))).sum()
    loss.backward()
    net.zero_grad()
    assert all((parameter.grad().asnumpy() == 0).all() for parameter in net.collect_params().values())


def test_repr_shows_the_tree():
    net = nn.HybridSequential()
    net.add(nn.Dense(2, in_units=3, activation="relu"), nn.Flatten())
    assert repr(net) == "HybridSequential(\n  (0): Dense(3 -> 2, Activation(relu))\n  (1): Flatten()\n)"


def test_summary_counts_shared_parameters_once(capsys):
    shared = nn.Dense(3, in_units=3)
    net = nn.HybridSequential()
    net.add(shared, shared, nn.BatchNorm(in_channels=3))
    net.initialize()
    net.summary(mx.np.ones((2, 3)))
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["trainable", "18"] in lines
    assert ["fixed", "6"] in lines


def test_forward_must_be_defined():
    with pytest.raises(NotImplementedError, match="Block does not define forward"):
        gluon.Block()()
