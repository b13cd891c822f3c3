"""Stores of values on devices whose memory the host cannot touch: the results of the CPU, to the bit."""

import pytest

import mxnet as mx
from mxnet import _core, autograd, gluon, np

_core.add_simulated_devices()
DEVICES = [mx.Device("sim", 0), mx.Device("sim", 1)]
CPUS = [mx.cpu(0), mx.cpu(1)]
rows = mx.sparse.row_sparse_array


def results(name, devices, compresses):
    """What a store gives, as lists of numbers."""
    store = mx.kv.create(name)
    if compresses:
        store.set_gradient_compression({"type": "2bit", "threshold": 0.5})
    values = [np.arange(6.0, device=device).reshape(2, 3) / 4 + i for i, device in enumerate(devices)]
    outs = [np.zeros((2, 3), device=device) for device in devices]
    store.init(0, values[1])
    store.set_optimizer(mx.optimizer.SGD(learning_rate=0.5, momentum=0.5))
    store.pushpull(0, values, out=outs)
    found = [out.asnumpy().tolist() for out in outs]
    assert [out.device for out in outs] == devices
    first = rows(([[1.0, 2.0, 3.0]], [1]), shape=(2, 3), device=devices[0])
    second = rows(([[4.0] * 3, [5.0] * 3], [0, 1]), shape=(2, 3), device=devices[1])
    store.push(0, [first, second])
    store.pull(0, out=outs)
    pulled = rows(([[0.0] * 3], [0]), shape=(2, 3), device=devices[1])
    store.row_sparse_pull(0, out=pulled, row_ids=np.array([1, 1], device=devices[0]))
    assert pulled.device == devices[1]
    return [*found, *(out.asnumpy().tolist() for out in outs), pulled.data.asnumpy().tolist()]


@pytest.mark.parametrize("name", ["local", "device", "dist_sync", "dist_device_sync", "dist_async"])
@pytest.mark.parametrize("compresses", [False, True])
def test_values_are_added_and_updated_on_any_device(name, compresses):
    compresses = compresses and name != "local"
    assert results(name, DEVICES, compresses) == results(name, CPUS, compresses)


@pytest.mark.parametrize("name", ["device", "dist_sync", "dist_device_sync"])
@pytest.mark.parametrize("updates", [True, False])
def test_trainers_give_each_device_the_values(name, updates):
    found = []
    for devices in (DEVICES, CPUS):
        net = gluon.nn.Dense(2, in_units=3)
        net.initialize(mx.init.Constant(0.5), device=devices)
        trainer = gluon.Trainer(net.collect_params(), "adam", kvstore=name, update_on_kvstore=updates)
        with autograd.record():
            losses = [(net(np.ones((1, 3), device=device) * (i + 1)) ** 2).sum() for i, device in enumerate(devices)]
        autograd.backward(losses)
        trainer.step(2)
        found.append([array.asnumpy().tolist() for array in net.weight.list_data()])
        assert found[-1][0] == found[-1][1]
    assert found[0] == found[1]
