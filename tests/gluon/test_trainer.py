"""The trainer: steps, several devices, states."""

import copy

import pytest

import mxnet as mx
from mxnet import autograd, gluon
from mxnet.error import FileFormatError
from mxnet.gluon import nn


def network(device=None):
    net = nn.Dense(1, in_units=2, use_bias=False)
    net.initialize(mx.init.One(), device=device)
    return net


def trainer_of(net, **kwargs):
    return gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5, "momentum": 0.5}, **kwargs)


def backward(net, x):
    with autograd.record():
        loss = net(x).sum()
    loss.backward()


def test_step_divides_by_the_batch_size():
    net = network()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5})
    backward(net, mx.np.array([[2.0, 4.0], [2.0, 0.0]]))
    trainer.step(2)
    assert net.weight.data().asnumpy().tolist() == [[0, 0]]
    with pytest.raises(ValueError, match="positive, found 0"):
        trainer.step(0)


def test_rate_can_be_set():
    trainer = trainer_of(network())
    trainer.set_learning_rate(0.25)
    assert trainer.learning_rate == 0.25 == trainer.optimizer.learning_rate


def test_factors_of_parameters_count():
    net = network()
    net.weight.lr_mult = 0.0
    trainer = trainer_of(net)
    backward(net, mx.np.ones((1, 2)))
    trainer.step(1)
    assert net.weight.data().asnumpy().tolist() == [[1, 1]]


def test_parameters_without_gradient_stay():
    net = network()
    net.weight.grad_req = "null"
    trainer_of(net).step(1)
    assert net.weight.data().asnumpy().tolist() == [[1, 1]]


def test_copies_on_two_devices_get_the_sum_of_the_gradients():
    devices = [mx.cpu(0), mx.cpu(1)]
    net, single = network(devices), network()
    trainers = [trainer_of(net), trainer_of(single)]
    for _ in range(2):
        parts = gluon.utils.split_and_load(mx.np.array([[1.0, 2.0], [3.0, 5.0]]), devices)
        with autograd.record():
            losses = [net(part).sum() for part in parts]
        autograd.backward(losses)
        trainers[0].step(2)
        backward(single, mx.np.array([[1.0, 2.0], [3.0, 5.0]]))
        trainers[1].step(2)
    first, second = (array.asnumpy().tolist() for array in net.weight.list_data())
    assert first == second == single.weight.data().asnumpy().tolist()


def test_restored_states_go_on(tmp_path):
    x = mx.np.array([[1.0, 2.0]])
    net = network()
    trainer = trainer_of(net)
    backward(net, x)
    trainer.step(1)
    trainer.save_states(tmp_path / "states")
    net.save_parameters(tmp_path / "net")
    again = network()
    again.load_parameters(tmp_path / "net")
    resumed = trainer_of(again)
    resumed.load_states(tmp_path / "states")
    for which, steps in ((net, trainer), (again, resumed)):
        backward(which, x)
        steps.step(1)
    assert net.weight.data().asnumpy().tolist() == again.weight.data().asnumpy().tolist()


def test_damaged_states_are_refused(tmp_path):
    file = tmp_path / "states"
    trainer = trainer_of(network())
    trainer.save_states(file)
    file.write_bytes(file.read_bytes()[:50])
    with pytest.raises(FileFormatError, match="states"):
        trainer.load_states(file)


@pytest.mark.parametrize("store", ["device", "local", None])
def test_local_stores_are_all_the_same(store):
    net = network()
    trainer = trainer_of(net, kvstore=store)
    backward(net, mx.np.ones((1, 2)))
    trainer.step(1)
    assert net.weight.data().asnumpy().tolist() == [[0.5, 0.5]]


def test_what_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="compression"):
        trainer_of(network(), kvstore=None, compression_params={"type": "2bit"})
    with pytest.raises(ValueError, match="update_on_kvstore"):
        trainer_of(network(), kvstore=None, update_on_kvstore=True)
    with pytest.raises(TypeError, match="found str"):
        gluon.Trainer(["weight"], "sgd")


def test_global_norm_is_clipped():
    arrays = [mx.np.array([3.0, 0.0]), mx.np.array([[4.0]])]
    assert gluon.utils.clip_global_norm(arrays, 1.0) == 5.0
    assert arrays[0].asnumpy().tolist() == pytest.approx([0.6, 0.0], rel=1e-6)
    assert gluon.utils.clip_global_norm(arrays, 2.0) == pytest.approx(1.0, rel=1e-6)
    assert arrays[1].item() == pytest.approx(0.8, rel=1e-6)
    with pytest.warns(UserWarning, match="inf"):
        gluon.utils.clip_global_norm([mx.np.array([float("inf")])], 1.0)


@pytest.mark.parametrize(("size", "parts", "expected"), [(7, 3, [3, 2, 2]), (8, 3, [3, 3, 2]), (3, 3, [1, 1, 1])])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_parts_of_uneven_batches_differ_by_one_sample(size, parts, expected, axis):
    data = mx.np.arange(size).reshape((size, 1) if axis == 0 else (1, size))
    cut = gluon.utils.split_data(data, parts, batch_axis=axis, even_split=False)
    assert [part.size for part in cut] == expected
    assert mx.np.concatenate(cut, axis=axis).tolist() == data.tolist()


def test_split_data_in_parts():
    data = mx.np.array([[1], [2], [3], [4], [5]])
    assert [part.shape[0] for part in gluon.utils.split_data(data, 2, even_split=False)] == [3, 2]
    with pytest.raises(ValueError, match="5 samples along axis 0 cannot be split evenly into 2"):
        gluon.utils.split_data(data, 2)
    with pytest.raises(ValueError, match="cannot split 5 samples"):
        gluon.utils.split_data(data, 6, even_split=False)


def test_steps_see_parameters_whose_arrays_or_requests_were_replaced():
    def stepped():
        with mx.autograd.record():
            loss = (first.data() * 2 + second.data()).sum()
        loss.backward()
        trainer.step(1)

    first, second = (gluon.Parameter(name, shape=(2,)) for name in ("first", "second"))
    for parameter in (first, second):
        parameter.initialize(mx.init.Zero())
    trainer = gluon.Trainer([first, second], "sgd", {"learning_rate": 1.0})
    stepped()
    first.initialize(mx.init.One(), force_reinit=True)
    stepped()
    assert first.data().tolist() == [-1.0, -1.0]
    assert second.data().tolist() == [-2.0, -2.0]
    second.grad_req = "null"
    stepped()
    assert first.data().tolist() == [-3.0, -3.0]
    assert second.data().tolist() == [-2.0, -2.0]
    second.grad_req = "write"
    first.cast("float64")
    stepped()
    assert first.data().tolist() == [-5.0, -5.0]
    assert second.data().tolist() == [-3.0, -3.0]
    copied = copy.deepcopy(trainer)
    assert copied._params[0] is not first
    stepped()
    assert copied._params[0].data().tolist() == [-5.0, -5.0]


def test_a_parameter_that_waits_again_for_its_shape_ends_a_step():
    layer = gluon.nn.Dense(1, use_bias=False)
    layer.initialize()
    layer(mx.np.ones((1, 2)))
    trainer = gluon.Trainer(layer.collect_params(), "sgd")
    with mx.autograd.record():
        loss = layer(mx.np.ones((1, 2))).sum()
    loss.backward()
    trainer.step(1)
    layer.weight._shape = (1, -1)
    layer.initialize(force_reinit=True)
    with pytest.raises(gluon.parameter.DeferredInitializationError, match="weight"):
        trainer.step(1)
