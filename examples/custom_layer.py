"""A layer and an operator of one's own, in a network that learns.

    python examples/custom_layer.py

The layer maps points to distances from learnt centres. The operator rounds, and its gradient is that of the identity.
"""

import argparse

import numpy as onp

import mxnet as mx
from mxnet import autograd, gluon, np
from mxnet.gluon import nn


class RoundThrough(autograd.Function):
    """The nearest multiple of a step; backwards as if it were not there."""

    def __init__(self, step: float) -> None:
        super().__init__()
        self.step = step

    def forward(self, x):
        return np.round(x / self.step) * self.step

    def backward(self, dy):
        return dy


class Distances(gluon.HybridBlock):
    """Points (n, c) to ``exp(-width * |x - centre|^2)`` for each of the centres, (n, centres)."""

    def __init__(self, centres: int, in_units: int = -1) -> None:
        super().__init__()
        # The number of coordinates may be found out from the first input.
        self.centres = gluon.Parameter("centres", shape=(centres, in_units), init="normal", allow_deferred_init=True)
        self.width = gluon.Parameter("width", shape=(1,), init="ones")

    def infer_shape(self, x, *args):
        self.centres.shape = (self.centres.shape[0], x.shape[1])

    def forward(self, x):
        apart = np.expand_dims(x, 1) - self.centres.data(x.device)
        return np.exp(-self.width.data(x.device) * (apart**2).sum(axis=2))


class Net(gluon.HybridBlock):
    """Distances, scores, and scores rounded to quarters."""

    def __init__(self) -> None:
        super().__init__()
        self.distances = Distances(24)
        self.out = nn.Dense(2)

    def forward(self, x):
        return RoundThrough(0.25)(self.out(self.distances(x)))


def main(arguments: list[str] | None = None) -> float:
    """Train on a disc inside a ring, and return the part of new points that is told apart."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)

    mx.random.seed(options.seed)
    generator = onp.random.default_rng(options.seed)

    def data(count: int):
        points = generator.uniform(-1.5, 1.5, size=(count, 2)).astype("float32")
        return np.array(points), np.array(((points**2).sum(axis=1) < 1).astype("int32"))

    net = Net()
    net.initialize(mx.init.Xavier())
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    net(data(2)[0])
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.03})
    for step in range(options.steps):
        x, y = data(128)
        with autograd.record():
            loss = loss_of(net(x), y).mean()
        loss.backward()
        trainer.step(1)
        if step % 100 == 0:
            print(f"step {step:4}  loss {loss.item():.3f}", flush=True)
    x, y = data(1000)
    right = (net(x).argmax(axis=1) == y).astype("float32").mean().item()
    print(f"{right:.1%} of new points are told apart")
    return right


if __name__ == "__main__":
    main()
