"""Two ranks train. The oracle is a trainer of one process, whose gradients are those of both halves, added."""

import os
import tempfile
from pathlib import Path

import numpy as onp

import mxnet as mx
from compression_oracle import quantized
from mxnet import autograd, gluon, np
from mxnet.gluon import nn

rank, size = mx.kv.create("dist_sync").rank, 2
LOSS = gluon.loss.SoftmaxCrossEntropyLoss()
FOLDER = Path(tempfile.gettempdir())


def network(seed, sparse=False, known=True, dtype="float32"):
    mx.random.seed(seed)
    net = nn.HybridSequential()
    if sparse:
        net.add(nn.Embedding(20, 6, sparse_grad=True))
    net.add(nn.Dense(8, activation="tanh", in_units=6 * known), nn.BatchNorm(in_channels=8 * known))
    net.add(nn.Dense(3, in_units=8 * known))
    net.initialize(mx.init.Xavier())
    net.cast(dtype)
    return net


def batches(sparse, count=4, dtype="float32"):
    rng = onp.random.default_rng(3)
    for _ in range(count):
        x = rng.integers(0, 20, (8,)) if sparse else rng.standard_normal((8, 6)).astype("float32")
        y = rng.integers(0, 3, (8,))
        yield [(np.array(x[r::2], dtype=None if sparse else dtype), np.array(y[r::2])) for r in range(2)]


def values(net):
    return {name: parameter.data().asnumpy() for name, parameter in net.collect_params().items()}


def backward(net, x, y):
    with autograd.record():
        loss = LOSS(net(x), y)
    loss.backward()


def oracle(optimizer, arguments, sparse=False, dtype="float32", before=lambda net: None, known=True, compression=None):
    """Parameters of rank 0 after training in one process. Each half has its own network for its statistics."""
    nets = [network(0, sparse, dtype=dtype), network(0, sparse, dtype=dtype)]
    trainers = [gluon.Trainer(net.collect_params(), optimizer, dict(arguments), kvstore=None) for net in nets]
    residuals = {}
    for halves in batches(sparse, dtype=dtype):
        for net, half in zip(nets, halves, strict=True):
            backward(net, *half)
        for name in nets[0].collect_params():
            pair = [net.collect_params()[name] for net in nets]
            if pair[0].grad_req == "null":
                continue
            grads = [parameter.grad() for parameter in pair]
            if pair[0].grad_stype == "row_sparse":
                grads = [grad.todense() for grad in grads]
                total = grads[0] + grads[1]
                at = np.nonzero((total != 0).any(axis=1))[0]
                for parameter in pair:
                    mx._core.set_row_gradient(parameter.data(), at, total[at])
                continue
            found = [grad.astype("float32").asnumpy() for grad in grads]
            if compression:
                for i, grad in enumerate(found):
                    residual = residuals.setdefault((name, i), onp.zeros_like(grad))
                    found[i] = quantized(*compression, grad, residual)
            total = np.array(found[0] + found[1], dtype=grads[0].dtype)
            for grad in grads:
                grad[...] = total
        for net, trainer in zip(nets, trainers, strict=True):
            before(net)
            trainer.update(8)
    return values(nets[rank])


def trained(optimizer, arguments, sparse=False, dtype="float32", before=None, known=True, hybrid=False, **options):
    net = network(rank, sparse, known, dtype)  # other first values on each rank
    if hybrid:
        net.hybridize()
    if not known:
        mx.random.seed(0)
        net(np.ones((1, 6)))  # completes the shapes
    trainer = gluon.Trainer(net.collect_params(), optimizer, dict(arguments), kvstore="dist_sync", **options)
    for halves in batches(sparse, dtype=dtype):
        backward(net, *halves[rank])
        if before is None:
            trainer.step(8)
        else:
            trainer.allreduce_grads()
            before(net)
            trainer.update(8)
    return net, trainer


def same(found, expected):
    assert list(found) == list(expected)
    for name, value in expected.items():
        assert found[name].tobytes() == value.tobytes(), name


def clip(net):
    gluon.utils.clip_global_norm(
        [parameter.grad() for parameter in net.collect_params().values() if parameter.grad_req != "null"], 0.5
    )


SGD = "sgd", {"learning_rate": 0.1, "momentum": 0.9}
ADAM = "adam", {"learning_rate": 0.01}
for wanted in (None, True):
    for rule in (SGD, ADAM):
        same(values(trained(*rule, update_on_kvstore=wanted)[0]), oracle(*rule))
    same(values(trained(*SGD, hybrid=True, update_on_kvstore=wanted)[0]), oracle(*SGD))
    same(values(trained(*SGD, sparse=True, update_on_kvstore=wanted)[0]), oracle(*SGD, sparse=True))
    compression = {"type": "2bit", "threshold": 0.5}
    net, _ = trained(*SGD, update_on_kvstore=wanted, compression_params=compression)
    same(values(net), oracle(*SGD, compression=("2bit", 0.5)))
same(values(trained(*ADAM, dtype="float16")[0]), oracle(*ADAM, dtype="float16"))
same(values(trained(*ADAM, before=clip)[0]), oracle(*ADAM, before=clip))

# Sums of small integers over powers of two are exact in any order: training on the joined batch has the same bits.
rng = onp.random.default_rng(4)
x, y = (rng.integers(-3, 4, (3, 8, n)).astype("float32") for n in (4, 1))
for wanted in (None, True):
    weights = []
    for store, part in (("dist_sync", slice(rank, None, 2)), (None, slice(None))):
        net = nn.Dense(1, in_units=4)
        net.initialize(mx.init.One())
        options = {"kvstore": store, "update_on_kvstore": wanted if store else None}
        trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.125, "momentum": 0.5}, **options)
        for step in range(3):
            with autograd.record():
                loss = gluon.loss.L2Loss()(net(np.array(x[step, part])), np.array(y[step, part]))
            loss.backward()
            trainer.step(8)
        weights.append(values(net))
    same(*weights)

# Shapes that the first input completes: the ranks have the same values after the first step.
net, trainer = trained(*SGD, known=False)
same(values(net), oracle(*SGD))

# States are saved and loaded, by the trainer and in the store.
for wanted in (None, True):
    net, trainer = trained(*ADAM, update_on_kvstore=wanted)
    file = FOLDER / f"states of {os.getpid()}"
    trainer.save_states(file)
    parameters = {name: np.array(value) for name, value in values(net).items()}
    again = network(5 + rank)
    for name, parameter in again.collect_params().items():
        parameter.set_data(parameters[name])
    resumed = gluon.Trainer(again.collect_params(), "adam", kvstore="dist_sync", update_on_kvstore=wanted)
    resumed.load_states(file)
    file.unlink()
    for one, steps in ((net, trainer), (again, resumed)):
        (halves,) = batches(False, 1)
        backward(one, *halves[rank])
        steps.step(8)
    learned = {name: value for name, value in values(net).items() if "running" not in name}
    same({name: values(again)[name] for name in learned}, learned)

# Values that are set later are those of the store, too.
net, trainer = trained(*SGD, update_on_kvstore=True)
for parameter in net.collect_params().values():
    parameter.set_data(np.full(parameter.shape, 0.5 + rank))
backward(net, *halves[rank])
trainer.step(8)
assert 0 < abs(net[0].bias.data() - 0.5).max() < 0.5

# One rank uses a layer that the other does not: its gradient counts once, and zero for the other.
left, right = nn.Dense(1, in_units=2, use_bias=False), nn.Dense(1, in_units=2, use_bias=False)
for layer in (left, right):
    layer.initialize(mx.init.Constant(1))
both = {"left": left.weight, "right": right.weight}
for wanted in (None, True):
    for parameter in both.values():
        parameter.set_data(np.ones((1, 2)))
    trainer = gluon.Trainer(both, "sgd", {"learning_rate": 1.0}, kvstore="dist_sync", update_on_kvstore=wanted)
    for _ in range(2):
        with autograd.record():
            total = (left, right)[rank](np.ones((1, 2))).sum()
        total.backward()
        trainer.step(1, ignore_stale_grad=True)
    assert [parameter.data().asnumpy().tolist() for parameter in both.values()] == [[[-1.0, -1.0]]] * 2

# Gradients that are not finite on one rank are skipped on both.
scaler = mx.amp.LossScaler(init_scale=4.0)
trainer = gluon.Trainer(both, "sgd", {"learning_rate": 1.0}, kvstore="dist_sync")
mx.amp.init_trainer(trainer, scaler)
before = values(left)
with autograd.record():
    total = (left(np.ones((1, 2))) + right(np.ones((1, 2)))).sum() * (onp.inf if rank else 1)
    with mx.amp.scale_loss(total, trainer) as scaled:
        scaled.backward()
trainer.step(1)
same(values(left), before)
assert scaler.loss_scale == 2.0

# Statistics of both parts of a batch, which differ in size: the layer on the joined batch is the oracle.
rng = onp.random.default_rng(9)
for shape, parts in (((8, 3, 2, 2), (slice(0, 5), slice(5, 8))), ((6, 3), (slice(0, 3), slice(3, 6)))):
    x, dy = (np.array(rng.standard_normal(shape), dtype="float64") * 3 + 50 for _ in range(2))
    layers = [nn.SyncBatchNorm(in_channels=3, num_devices=2), nn.BatchNorm(in_channels=3)]
    found = []
    for layer, part in zip(layers, (parts[rank], slice(None)), strict=True):
        layer.initialize()
        layer.cast("float64")
        layer.gamma.set_data(np.array([1.0, 2.0, 3.0]))
        own = x[part].copy()
        own.attach_grad()
        with autograd.record():
            y = layer(own)
        y.backward(dy[part])
        grads = [layer.gamma.grad(), layer.beta.grad()]
        if layer is layers[0]:
            grads = [mx.kvstore._rank_sums._total("test", grad) for grad in grads]
            assert own.shape[0] < x.shape[0]
            evaluated = layer(own)  # running statistics: nothing is sent
        at = slice(None) if layer is layers[0] else parts[rank]
        statistics = [layer.running_mean.data(), layer.running_var.data()]
        found.append([array.asnumpy() for array in (y[at], own.grad[at], *grads, *statistics)])
    # Values are about 50, and sums have up to 32 terms.
    for one, other in zip(*found, strict=True):
        assert abs(one - other).max() <= 50 * 50 * 32 * onp.finfo("f8").eps

# What cannot be done says so.
hybrid = nn.HybridSequential()
hybrid.add(nn.SyncBatchNorm(in_channels=3, num_devices=2))
hybrid.initialize()
hybrid.hybridize()


def compiled():
    with autograd.record():
        hybrid(np.ones((2, 3)))


for action, said in (
    (lambda: gluon.Trainer(both, "sgd", kvstore="dist_async", update_on_kvstore=False), "must not be False"),
    (lambda: mx.jit(lambda: trainer.step(1))(), "cannot use the key-value store"),
    (compiled, "SyncBatchNorm: a compiled function cannot add up values of several processes"),
    (lambda: nn.SyncBatchNorm(num_devices=3), "the number of processes (2), found 3"),
):
    text = "no error"
    try:
        action()
    except (ValueError, mx.error.UnsupportedError) as error:
        text = str(error)
    assert said in text, text
print(f"rank {rank} is done\n", end="", flush=True)
