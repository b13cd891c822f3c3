"""Classes that programs register as stores, and the store for tests."""

import pytest

import mxnet as mx
from mxnet import autograd, gluon, np
from mxnet.error import UnsupportedError
from mxnet.kvstore import KVStoreBase


@pytest.fixture
def registered():
    before = dict(KVStoreBase.kv_registry)
    yield KVStoreBase.register
    KVStoreBase.kv_registry.clear()
    KVStoreBase.kv_registry.update(before)


def plugin(register, **members):
    return register(type("Doubling", (KVStoreBase,), {"type": "doubling", "rank": 0, "num_workers": 1, **members}))


def broadcast(self, key, value, out, priority=0):
    self.calls.append(("broadcast", key, priority))
    for array in out:
        array[...] = value


def pushpull(self, key, value, out=None, priority=0):
    self.calls.append(("pushpull", key, priority))
    for array in out or value:
        array[...] = sum(value) * 2


def trained(store, **options):
    net = gluon.nn.Dense(1, in_units=2)
    net.initialize(mx.init.Constant(1.0))
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5}, kvstore=store, **options)
    with autograd.record():
        loss = net(np.array([[1.0, 3.0]])).sum()
    loss.backward()
    trainer.step(1)
    return net


def test_a_registered_class_is_created_by_its_name(registered):
    made = plugin(registered, calls=[])
    assert type(mx.kv.create("DOUBLING")) is made
    with pytest.warns(UserWarning, match="key-value store 'doubling' was .*Doubling and becomes"):
        again = plugin(registered)
    assert type(mx.kv.create("doubling")) is again
    with pytest.raises(TypeError, match="subclass of KVStoreBase"):
        registered(int)


@pytest.mark.parametrize("by_name", [True, False])
def test_a_trainer_calls_a_plugin_for_each_parameter(registered, by_name):
    calls = []
    made = plugin(registered, calls=calls, broadcast=broadcast, pushpull=pushpull, is_capable=lambda self, name: False)
    net = trained("doubling" if by_name else made())
    assert calls == [("broadcast", 0, 0), ("broadcast", 1, -1), ("pushpull", 0, 0), ("pushpull", 1, -1)]
    assert net.weight.data().asnumpy().tolist() == [[1 - 0.5 * 2, 1 - 0.5 * 6]]
    with pytest.raises(ValueError, match="'doubling' has no optimizers"):
        trained(made(), update_on_kvstore=True)
    with pytest.raises(ValueError, match="'doubling' does not compress"):
        trained(made(), compression_params={"type": "2bit"})
    weight = gluon.Parameter("w", shape=(3, 2), grad_stype="row_sparse")
    with pytest.raises(ValueError, match="'doubling' adds up no row-sparse gradients, as of 'w'"):
        gluon.Trainer([weight], "sgd", kvstore=made())


def test_a_plugin_may_update_parameters(registered):
    weights = {}

    def first(self, key, value, out, priority=0):
        weights[key] = value.copy()

    def update(self, key, value, out=None, priority=0):
        weights[key] -= self.rate * sum(value)
        for array in out:
            array[...] = weights[key]

    made = plugin(
        registered, broadcast=first, pushpull=update, is_capable=lambda self, name: name == "optimizer",
        set_optimizer=lambda self, optimizer: setattr(self, "rate", optimizer.learning_rate),
    )  # fmt: skip
    net = trained(made(), update_on_kvstore=True)
    assert net.weight.data().asnumpy().tolist() == [[0.5, -0.5]]


def test_methods_that_a_plugin_leaves_out_say_so(registered):
    made = registered(type("Bare", (KVStoreBase,), {}))()
    x = np.ones(1)
    for name, action in {
        "broadcast": lambda: made.broadcast(0, x, x),
        "pushpull": lambda: made.pushpull(0, x),
        "set_optimizer": lambda: made.set_optimizer(None),
        "is_capable": lambda: made.is_capable("optimizer"),
        "save_optimizer_states": lambda: made.save_optimizer_states("x"),
        "load_optimizer_states": lambda: made.load_optimizer_states("x"),
        "type": lambda: made.type,
        "rank": lambda: made.rank,
        "num_workers": lambda: made.num_workers,
    }.items():
        with pytest.raises(UnsupportedError, match=f"Bare: this store does not define `{name}`"):
            action()


def test_the_store_for_tests():
    store = mx.kv.create("teststore")
    assert (store.type, store.rank, store.num_workers) == ("teststore", 0, 1)
    assert store.is_capable("optimizer") is False
    with pytest.raises(ValueError, match="capability"):
        store.is_capable("x")
    outs = [np.zeros(2), np.zeros(2, device=mx.cpu(1))]
    store.broadcast(1, np.full(2, 3.0), out=outs)
    assert [out.asnumpy().tolist() for out in outs] == [[3, 3]] * 2
    store.pushpull(1, outs, out=outs[0])
    assert outs[0].asnumpy().tolist() == [6, 6]
    store.pushpull(1, outs)
    assert [out.asnumpy().tolist() for out in outs] == [[9, 9]] * 2
    store.pushpull(1, outs[0])
    assert outs[0].asnumpy().tolist() == [9, 9]
    net = trained("teststore")
    assert net.weight.data().asnumpy().tolist() == [[0.5, -0.5]]
