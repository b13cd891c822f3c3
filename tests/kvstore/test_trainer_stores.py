"""Trainers with stores, in one process: the same results as without a store, and what each way allows."""

import copy
import pickle

import numpy as onp
import pytest

import mxnet as mx
from mxnet import autograd, gluon, np
from mxnet.error import UnsupportedError
from mxnet.gluon import nn

STORES = ["local", "device", "dist_sync", "dist_device_sync"]
DEVICES = [mx.cpu(0), mx.cpu(1)]


def network(devices, sparse=False):
    mx.random.seed(1)
    net = nn.HybridSequential()
    if sparse:
        net.add(nn.Embedding(9, 4, sparse_grad=True))
    net.add(nn.Dense(5, activation="tanh", in_units=4), nn.Dense(2, in_units=5))
    net.initialize(mx.init.Normal(0.5), device=devices)
    return net


def backward(net, step, devices, sparse=False):
    rng = onp.random.default_rng(step)
    x = rng.integers(0, 9, (6,)) if sparse else rng.standard_normal((6, 4)).astype("float32")
    parts = gluon.utils.split_and_load(np.array(x), devices)
    with autograd.record():
        losses = [(net(part) ** 2).sum() for part in parts]
    autograd.backward(losses)


def trained(devices, sparse=False, **options):
    net = network(devices, sparse)
    rule = "sgd", {"learning_rate": 0.05, "momentum": 0.5}
    trainer = gluon.Trainer(net.collect_params(), *rule, **options)
    for step in range(3):
        backward(net, step, devices, sparse)
        trainer.step(6)
    return net, trainer


def bits(net):
    return [array.asnumpy().tobytes() for p in net.collect_params().values() for array in p.list_data()]


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("updates", [True, False, None])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("num_devices", [1, 2])
def test_training_has_the_bits_of_training_without_a_store(store, updates, sparse, num_devices):
    devices = DEVICES[:num_devices]
    expected = bits(trained(devices, sparse, kvstore=None)[0])
    assert bits(trained(devices, sparse, kvstore=store, update_on_kvstore=updates)[0]) == expected
    made = mx.kv.create(store)
    assert bits(trained(devices, sparse, kvstore=made, update_on_kvstore=updates)[0]) == expected


def test_an_asynchronous_store_of_one_process_updates_at_once():
    net, trainer = trained(DEVICES[:1], kvstore="dist_async")
    assert bits(net) == bits(trained(DEVICES[:1], kvstore=None)[0])
    with pytest.raises(RuntimeError, match="'dist_async' updates the parameters"):
        trainer.allreduce_grads()
    with pytest.raises(ValueError, match="must not be False"):
        gluon.Trainer(net.collect_params(), "sgd", kvstore="dist_async", update_on_kvstore=False)


def test_one_device_needs_no_store():
    for store in ("local", "device", None):
        assert trained(DEVICES[:1], kvstore=store)[1]._store is None


@pytest.mark.parametrize("store", ["local", "dist_sync"])
def test_a_store_that_updates_is_used_by_steps_only(store):
    net, trainer = trained(DEVICES, kvstore=store, update_on_kvstore=True)
    for action in (trainer.allreduce_grads, lambda: trainer.update(6)):
        with pytest.raises(RuntimeError, match=r"the store .* updates the parameters(.|\n)*update_on_kvstore=False"):
            action()
    mx.amp.init_trainer(trainer)
    backward(net, 1, DEVICES)
    with pytest.raises(RuntimeError, match="cannot skip gradients"):
        trainer.step(6)


@pytest.mark.parametrize("store", STORES)
def test_separate_calls_are_one_step(store):
    net, trainer = trained(DEVICES, kvstore=store, update_on_kvstore=False)
    again, other = trained(DEVICES, kvstore=store, update_on_kvstore=False)
    backward(net, 7, DEVICES)
    trainer.step(6)
    backward(again, 7, DEVICES)
    other.allreduce_grads()
    other.update(6)
    assert bits(net) == bits(again)


@pytest.mark.parametrize("updates", [True, False])
def test_the_batch_size_and_the_rate_may_change(updates):
    net, trainer = trained(DEVICES, kvstore="dist_sync", update_on_kvstore=updates)
    again, other = trained(DEVICES, kvstore=None)
    for one, steps in ((net, trainer), (again, other)):
        steps.set_learning_rate(0.2)
        backward(one, 5, DEVICES)
        steps.step(3)
    assert bits(net) == bits(again)


@pytest.mark.parametrize("updates", [True, False])
def test_stale_gradients_are_refused_or_left_out(updates):
    net, trainer = trained(DEVICES, kvstore="dist_sync", update_on_kvstore=updates)
    before = bits(net)
    with pytest.raises(UserWarning, match="no backward pass"):
        trainer.step(6)
    trainer.step(6, ignore_stale_grad=True)
    assert bits(net) == before


@pytest.mark.parametrize("updates", [True, False])
def test_states_continue_in_another_trainer(tmp_path, updates):
    net, trainer = trained(DEVICES, kvstore="local", update_on_kvstore=updates)
    trainer.save_states(tmp_path / "states")
    again = network(DEVICES)
    for parameter, other in zip(again.collect_params().values(), net.collect_params().values(), strict=True):
        parameter.set_data(other.data(DEVICES[0]))
    resumed = gluon.Trainer(again.collect_params(), "sgd", kvstore="local", update_on_kvstore=updates)
    resumed.load_states(tmp_path / "states")
    for one, steps in ((net, trainer), (again, resumed)):
        backward(one, 9, DEVICES)
        steps.step(6)
    assert bits(net) == bits(again)


@pytest.mark.parametrize("way", ["set_data", "initialize"])
def test_values_that_are_set_are_those_of_the_store(way):
    net, trainer = trained(DEVICES[:1], kvstore="local", update_on_kvstore=True)
    if way == "initialize":
        net.initialize(mx.init.Constant(3.0), force_reinit=True)
    else:
        for parameter in net.collect_params().values():
            parameter.set_data(np.full(parameter.shape, 3.0))
    trainer.set_learning_rate(0.0)
    backward(net, 2, DEVICES[:1])
    trainer.step(6)
    # Momentum of the steps before is at most as large as their gradients.
    assert abs(net[0].weight.data() - 3.0).max() < 1


def test_compressed_gradients_reach_the_parameters():
    weight = gluon.Parameter("w", shape=(3,))
    weight.initialize(mx.init.Zero(), device=DEVICES)
    trainer = gluon.Trainer(
        [weight], "sgd", {"learning_rate": 1.0}, compression_params={"type": "2bit", "threshold": 0.5}
    )
    for _ in range(2):
        with autograd.record():
            loss = [(array * np.array([0.3, 0.6, -2.0], device=array.device)).sum() for array in weight.list_data()]
        autograd.backward(loss)
        trainer.step(1)
    assert [array.asnumpy().tolist() for array in weight.list_data()] == [[-1, -2, 2]] * 2


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"kvstore": "nonsense"}, ValueError, "no store 'nonsense'"),
        ({"kvstore": 3}, TypeError, "found int"),
        ({"kvstore": None, "update_on_kvstore": True}, ValueError, "need a `kvstore`, found None"),
        ({"kvstore": None, "compression_params": {"type": "2bit"}}, ValueError, "need a `kvstore`, found None"),
        ({"kvstore": "local", "compression_params": {"type": "2bit"}}, UnsupportedError, "'local' does not compress"),
        ({"kvstore": "teststore", "update_on_kvstore": True}, ValueError, "'teststore' has no optimizers"),
    ],
)
def test_wrong_options_are_refused(options, error, said):
    with pytest.raises(error, match=said):
        gluon.Trainer(network(DEVICES[:1]).collect_params(), "sgd", **options)


@pytest.mark.parametrize("updates", [True, False])
def test_a_compiled_function_cannot_use_a_store(updates):
    net, trainer = trained(DEVICES[:1], kvstore="dist_sync", update_on_kvstore=updates)

    @mx.jit
    def step(x):
        with autograd.record():
            loss = (net(x) ** 2).sum()
        loss.backward()
        trainer.step(6)
        return loss

    with pytest.raises(UnsupportedError, match=r"Trainer.step: .* 'dist_sync'(.|\n)*hybridize"):
        step(np.ones((6, 4)))


def test_a_trainer_with_a_local_store_is_copied_and_pickled():
    _, trainer = trained(DEVICES[:1], kvstore="local", update_on_kvstore=True)
    for again in (copy.deepcopy(trainer), pickle.loads(pickle.dumps(trainer))):
        assert again.optimizer.learning_rate == 0.05
        assert again._store.store.type == "local"
