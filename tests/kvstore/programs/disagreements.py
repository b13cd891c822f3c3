"""Two ranks that do not do the same get an error, both of them, and can go on."""

import os
import sys

import mxnet as mx
from mxnet import gluon, np
from mxnet.error import DistributedError

store = mx.kv.create("dist_sync")
rank = store.rank


def refused(action, *parts):
    """The action raises an error with these parts in the message."""
    text = "no error"
    try:
        action()
    except DistributedError as error:
        text = str(error)
    for part in parts:
        assert part in text, (part, text)


refused(lambda: store.init("a", np.ones(3 + rank)), "init of key 'a'", "rank 0: init", "(3,)", "rank 1:", "(4,)")
refused(lambda: store.init("a", np.ones(3, dtype=("float32", "float64")[rank])), "float32 (3,)", "float64 (3,)")
refused(lambda: store.init("ab"[rank], np.ones(3)), "key 'a'", "key 'b'")
store.init(["a", "b"], [np.ones(3), np.ones(4)])
assert repr(store) == f"KVStore('dist_sync', rank {rank} of 2, 2 keys)"
refused(lambda: store.push("ab"[rank], np.ones(3 + rank)), "push of key 'a'", "push of key 'b'")
refused(lambda: (store.push, store.pushpull)[rank]("a", np.ones(3)), "push of key", "pushpull of key")
refused(lambda: store.push(["a", "b"][: rank + 1], [np.ones(3), np.ones(4)][: rank + 1]), "nothing after", "'b'")
rows = mx.sparse.row_sparse_array
refused(lambda: store.push("a", (np.ones(3), rows(np.ones(3)))[rank]), "row_sparse")
refused(lambda: store.push("a", np.ones(3)) if rank else store._barrier(), "barrier", "push")
refused(lambda: store.set_optimizer(mx.optimizer.SGD(learning_rate=0.1 + rank)), '"lr": 0.1', '"lr": 1.1')
refused(lambda: store.set_gradient_compression({"type": ("1bit", "2bit")[rank]}), "'1bit'", "'2bit'")
refused(lambda: mx.kv.create(("dist_sync", "dist_async")[rank]), "dist_sync", "dist_async")


def trainer():
    net = gluon.nn.Dense(1, in_units=2 + rank)
    net.initialize()
    gluon.Trainer(net.collect_params(), "sgd", kvstore="dist_sync")


refused(trainer, "broadcast of key 0: float32 (1, 2)", "(1, 3)")

# Errors of one rank's own arguments come before it sends anything.
for action in (lambda: store.push("a", np.ones(5)), lambda: store.push("c", np.ones(5)), lambda: store.push("a", 3)):
    try:
        action()
    except (KeyError, TypeError, ValueError):
        pass
    else:
        raise AssertionError("no error")

store.push("a", np.full((3,), rank + 1.0))
out = np.zeros(3)
store.pull("a", out=out)
assert out.asnumpy().tolist() == [3.0] * 3

# A child of a fork can read what there is, and send nothing.
if hasattr(os, "fork"):
    pid = os.fork()
    if not pid:
        store.pull("a", out=out)
        refused(lambda: store.push("a", out), "was forked from rank")
        print(f"child of {rank}\n", end="", flush=True)
        sys.exit()
    assert os.waitpid(pid, 0)[1] == 0
store.pushpull("a", np.ones(3), out=out)
assert out.asnumpy().tolist() == [2.0] * 3
print(f"rank {rank} is done\n", end="", flush=True)
