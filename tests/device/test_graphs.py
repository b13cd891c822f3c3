"""Compiled functions on a device that is not the CPU give what they give on the CPU, to the bit."""

import numpy
import pytest

import mxnet as mx
from mxnet import _core, autograd, gluon, np, npx
from mxnet.gluon import nn

_core.add_simulated_devices()
DEVICE = mx.Device("sim", 0)


def bits(result):
    if isinstance(result, list | tuple):
        return [bits(item) for item in result]
    return result.shape, str(result.dtype), result.asnumpy().tobytes()


def both(function, *shapes):
    """The results of a compiled function on the CPU and on the device, of three calls."""
    found = []
    for device in (mx.cpu(), DEVICE):
        compiled = mx.jit(function)
        rng = numpy.random.default_rng(3)
        mx.random.seed(5)
        with device:
            arrays = [np.array(rng.normal(size=shape).astype("float32"), device=device) for shape in shapes]
            results = [compiled(*arrays) for _ in range(3)]
            found.append((bits(results), bits(arrays)))
            assert all(y.device == device for result in results for y in result)
    return found


def arithmetic(x, y):
    z = np.tanh(x) * 2 + y
    return [z, z.sum(axis=0), z[1:, ::2], x.T]


def writes(x, y):
    x[1:] += y[0]
    y *= 2
    z = np.zeros_like(x)
    z[:, 1] = 3
    return [x, z, y[1]]


def draws(x, y):
    return [npx.dropout(x, p=0.5, mode="always") + np.random.normal(size=y.shape), np.random.uniform(size=(3,))]


def constants(x, y):
    table = np.arange(4, dtype="float32")
    return [x + table, table * 2, np.where(y > 0, y, table)]


@pytest.mark.parametrize("function", [arithmetic, writes, draws, constants])
def test_functions_give_the_bits_of_the_cpu(function):
    cpu, device = both(function, (3, 4), (3, 4))
    assert cpu == device


def network():
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3), nn.BatchNorm(), nn.Activation("relu"), nn.Flatten(), nn.Dropout(0.3), nn.Dense(5))
    return net


def trained(device, optimizer, whole_step):
    """The losses and weights of three steps."""
    mx.random.seed(7)
    net = network()
    net.initialize(mx.init.Xavier())
    net(np.zeros((1, 1, 8, 8)))
    net.reset_device(device)
    trainer = gluon.Trainer(net.collect_params(), optimizer, {"learning_rate": 0.05})
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    rng = numpy.random.default_rng(2)
    x = np.array(rng.normal(size=(6, 1, 8, 8)).astype("float32"), device=device)
    label = np.array([0, 1, 2, 3, 4, 0], device=device)

    def step(x, label):
        with autograd.record():
            value = loss(net(x), label).mean()
        value.backward()
        trainer.step(1)
        return value

    if whole_step:
        step = mx.jit(step)
    else:
        net.hybridize()
    mx.random.seed(11)
    values = [step(x, label) for _ in range(3)]
    assert all(value.device == device for value in values)
    return bits(values), bits([parameter.data() for parameter in net.collect_params().values()])


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("whole_step", [False, True])
def test_training_gives_the_weights_of_the_cpu(optimizer, whole_step):
    assert trained(DEVICE, optimizer, whole_step) == trained(mx.cpu(), optimizer, whole_step)


def test_second_gradients_run_there():
    found = []
    for device in (mx.cpu(), DEVICE):
        function = mx.jit(lambda x: (np.sin(x) * x).sum())
        x = np.array([0.5, -1.0, 2.0], device=device)
        x.attach_grad()
        with autograd.record():
            (slope,) = autograd.grad(function(x), [x], create_graph=True)
            (slope**2).sum().backward()
        found.append(bits(x.grad))
    assert found[0] == found[1]
