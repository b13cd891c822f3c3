"""Three ranks update values on servers, each in its own time."""

import time

import numpy as onp

import mxnet as mx
from compression_oracle import quantized
from mxnet import autograd, gluon, np

store = mx.kv.create("dist_async")
rank, size = store.rank, store.num_workers
assert (store.type, size) == ("dist_async", 3)

# Values of rank 0, spread over the servers by their sizes.
shapes = [(100,), (30, 3), (5,), (0, 2), ()]
store.init(list(range(5)), [np.full(shape, 7.0 + rank) for shape in shapes])
assert [store._forms[key].owner for key in range(5)] == [0, 1, 2, 2, 2]
outs = [np.zeros(shape) for shape in shapes]
store.pull(list(range(5)), out=outs)
assert all((out == 7).all() for out in outs)
text = "no error"
try:
    store.push(0, outs[0])
except RuntimeError as error:
    text = str(error)
assert "set_optimizer" in text

# Each push is one update of a whole value: the sum of all updates is exact.
store.set_optimizer(mx.optimizer.SGD(learning_rate=0.5))
for _ in range(20):
    store.push(list(range(5)), [np.full(shape, float(rank)) for shape in shapes])
store._barrier()
store.pull(list(range(5)), out=outs)
assert all((out == 7 - 20 * 0.5 * (0 + 1 + 2)).all() for out in outs)

# The rates are those of the rank that pushes.
store._barrier()
rates = mx.optimizer.SGD(learning_rate=1.0)
store.set_optimizer(rates)
rates.set_learning_rate(2.0**rank)
rates.rescale_grad = 0.5
store.pushpull(2, np.ones(5), out=outs[2])
store._barrier()
store.pull(2, out=outs[2])
assert outs[2].asnumpy().tolist() == [7 - 30 - 3.5] * 5
rates.set_learning_rate(1.0)

# A function updates values, too, and rows of them are pulled and pushed.
rows = mx.sparse.row_sparse_array
store._barrier()
store._set_updater(
    lambda key, value, stored: stored.__isub__(value if isinstance(value, np.ndarray) else value.todense())
)
store._barrier()
store.init(7, np.zeros((6, 2)))
store.push(7, rows((np.ones((2, 2)), np.array([rank, rank + 1])), shape=(6, 2)))
store._barrier()
found = rows((6, 2))
store.row_sparse_pull(7, out=found, row_ids=np.array([5, 2, 2, 0]))
assert found.indices.asnumpy().tolist() == [0, 2, 5]
assert found.data.asnumpy().tolist() == [[-1, -1], [-2, -2], [0, 0]]


# An error of a server's function is raised by the rank that pushed.
def refuse(key, value, stored):
    raise ValueError(f"no update of {key}")


store._barrier()
store._set_updater(refuse)
store._barrier()
text = "no error"
try:
    store.push([0, 1, 2], [np.zeros(shape) for shape in shapes[:3]])
except ValueError as error:
    text = str(error)
assert text.startswith("no update of "), text

# A class that needs more than a text arrives as another one.
store._barrier()
store._set_updater(lambda key, value, stored: b"\xff".decode())
store._barrier()
text = "no error"
try:
    store.push([0, 1, 2], [np.zeros(shape) for shape in shapes[:3]])
except (mx.error.DistributedError, UnicodeDecodeError) as error:
    text = str(error)
assert "invalid start byte" in text, text

# Compressed gradients: the sum of what the ranks send.
store._barrier()
store.set_gradient_compression({"type": "2bit", "threshold": 0.5})
store._set_updater(lambda key, value, stored: stored.__iadd__(value))
store.init(8, np.zeros((7, 3)))
total = onp.zeros((7, 3), "float32")
for number in range(size):
    residual = onp.zeros((7, 3), "float32")
    rng = onp.random.default_rng(number)
    for _ in range(3):
        gradient = rng.standard_normal((7, 3)).astype("float32")
        total += quantized("2bit", 0.5, gradient, residual)
        if number == rank:
            store.push(8, np.array(gradient))
store._barrier()
out = np.zeros((7, 3))
store.pull(8, out=out)
assert out.asnumpy().tobytes() == total.tobytes()  # multiples of one half: exact in any order

# States lie on all ranks.
text = "no error"
try:
    store.save_optimizer_states("states")
except mx.error.UnsupportedError as error:
    text = str(error)
assert "asynchronous" in text

# A regression: every rank has other samples, and works at its own pace.
mx.random.seed(rank)
truth = onp.random.default_rng(0).standard_normal((4, 1)).astype("float32")
x = onp.random.default_rng(rank + 1).standard_normal((64, 4)).astype("float32")
inputs, targets = np.array(x), np.array(x @ truth)
net = gluon.nn.Dense(1, in_units=4)
net.initialize(mx.init.Normal(1.0))
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.05}, kvstore="dist_async")
loss_of = gluon.loss.L2Loss()
for step in range(120):
    with autograd.record():
        loss = loss_of(net(inputs), targets)
    loss.backward()
    trainer.step(64)
    if step % 40 == 10 * rank:
        time.sleep(0.02)
store._barrier()
with autograd.record():
    loss = loss_of(net(inputs), targets)
loss.backward()
trainer.step(64)
assert abs(net.weight.data().asnumpy() - truth.T).max() < 0.01
print(f"rank {rank} is done\n", end="", flush=True)
