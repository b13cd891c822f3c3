"""A classifier of handwritten digits, trained by several processes: each computes gradients of its part of every batch.

python -m mxnet.launch -n 2 examples/distributed_digits.py --epochs 10
"""

import argparse

from _digits import digits, network

import mxnet as mx
from mxnet import autograd, gluon, np
from mxnet.gluon.data import ArrayDataset, DataLoader


def main(arguments: list[str] | None = None) -> float:
    """Train, and return the part of the test digits that is recognized."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=64, help="samples of all processes together")
    parser.add_argument("--kvstore", default="dist_sync")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)

    store = mx.kv.create(options.kvstore)
    mx.random.seed(options.seed + store.rank)
    net = network()
    # Each process has as many samples as any other, so that it makes as many steps.
    samples = ArrayDataset(*digits(True))
    part = samples.take(len(samples) // store.num_workers * store.num_workers).shard(store.num_workers, store.rank)
    train = DataLoader(part, options.batch_size // store.num_workers, shuffle=True)
    net(np.zeros((1, 1, 8, 8)))  # completes the shapes, so that the trainer makes all values equal
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 3e-3}, kvstore=store)
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    for _ in range(options.epochs):
        for x, y in train:
            with autograd.record():
                loss = loss_of(net(x), y)
            loss.backward()
            trainer.step(len(x) * store.num_workers)
    x, y = digits(False)
    accuracy = float((net(x).argmax(axis=1) == y).mean())
    if store.rank == 0:
        print(f"accuracy {accuracy:.4f} of {store.num_workers} processes")
    return accuracy


if __name__ == "__main__":
    main()
