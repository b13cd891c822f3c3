"""`Trainer`: gradients are applied once."""

import numpy as onp
import pytest

import mxnet as mx
from mxnet import autograd, gluon
from mxnet.gluon import nn


class Branches(gluon.HybridBlock):
    def __init__(self):
        super().__init__()
        self.left = nn.Dense(1, in_units=2)
        self.right = nn.Dense(1, in_units=2)

    def forward(self, x, side):
        return (self.left if side == "left" else self.right)(x)


def setup(grad_req="write"):
    net = Branches()
    net.initialize(mx.init.One())
    net.setattr("grad_req", grad_req)
    return net, gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5})


def backward(net, *sides):
    x = mx.np.array([[1.0, 2.0]])
    with autograd.record():
        loss = sum(net(x, side) for side in sides)
    loss.backward()


def values(net):
    return {name: parameter.data().asnumpy() for name, parameter in net.collect_params().items()}


def test_a_gradient_is_not_applied_twice():
    net, trainer = setup()
    backward(net, "left", "right")
    trainer.step(1)
    before = values(net)
    with pytest.raises(UserWarning, match=r"gradients of 4 of 4 parameters .*: 'left\.weight', 'left\.bias', 'right"):
        trainer.step(1)
    with pytest.raises(UserWarning, match="`backward` was not called"):
        trainer.update(1)
    for name, value in values(net).items():
        onp.testing.assert_array_equal(value, before[name])


def test_parameters_without_a_new_gradient_are_named_and_left_alone_if_asked():
    net, trainer = setup()
    backward(net, "left")
    before = values(net)
    with pytest.raises(UserWarning, match=r"of 2 of 4 parameters .*'right\.weight', 'right\.bias'"):
        trainer.step(1)
    trainer.step(1, ignore_stale_grad=True)
    after = values(net)
    onp.testing.assert_array_equal(after["left.weight"], before["left.weight"] - 0.5 * onp.array([[1, 2]]))
    onp.testing.assert_array_equal(after["right.weight"], before["right.weight"])
    # Nothing is new any more.
    trainer.step(1, ignore_stale_grad=True)
    onp.testing.assert_array_equal(values(net)["left.weight"], after["left.weight"])


def test_added_gradients_need_one_backward_pass_for_each_step():
    net, trainer = setup("add")
    backward(net, "left", "right")
    backward(net, "left", "right")
    trainer.step(1)
    onp.testing.assert_array_equal(net.left.weight.data().asnumpy(), 1 - 0.5 * 2 * onp.array([[1, 2]]))
    net.zero_grad()
    with pytest.raises(UserWarning, match="no backward pass"):
        trainer.step(1)
    backward(net, "left", "right")
    trainer.step(1)
    onp.testing.assert_array_equal(net.left.weight.data().asnumpy(), 1 - 0.5 * 3 * onp.array([[1, 2]]))


def test_gradients_may_be_changed_between_reduction_and_update():
    net, trainer = setup()
    backward(net, "left", "right")
    trainer.allreduce_grads()
    net.left.weight.grad()[:] *= 10
    trainer.update(2)
    onp.testing.assert_array_equal(net.left.weight.data().asnumpy(), 1 - 0.5 * 10 / 2 * onp.array([[1, 2]]))


def test_copies_on_several_devices_are_fresh_together():
    devices = [mx.cpu(0), mx.cpu(1)]
    net = nn.Dense(1, in_units=2, use_bias=False)
    net.initialize(mx.init.One(), device=devices)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1.0})
    with autograd.record():
        losses = [net(mx.np.full((1, 2), place + 1.0, device=device)).sum() for place, device in enumerate(devices)]
    autograd.backward(losses)
    trainer.step(1)
    for device in devices:
        onp.testing.assert_array_equal(net.weight.data(device).asnumpy(), [[-2, -2]])
    with pytest.raises(UserWarning, match="'weight'"):
        trainer.step(1)
    # One device alone: it does not go on with what the other one has added before.
    with autograd.record():
        loss = net(mx.np.ones((1, 2), device=devices[1])).sum()
    loss.backward()
    with pytest.raises(UserWarning, match="'weight'"):
        trainer.step(1)
    trainer.step(1, ignore_stale_grad=True)
    for device in devices:
        onp.testing.assert_array_equal(net.weight.data(device).asnumpy(), [[-3, -3]])


def test_a_dtype_change_starts_without_gradients():
    net, trainer = setup()
    backward(net, "left", "right")
    net.cast("float64")
    with pytest.raises(UserWarning, match="of 4 of 4"):
        trainer.step(1)
