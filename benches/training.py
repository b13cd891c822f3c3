"""Training steps of small networks, eager, against PyTorch eager: forward, loss, backward and update.

Both sides start from the same weights and see the same batches; their losses are compared before anything is timed.
"""

from collections.abc import Callable
from typing import Any

import numpy
from _sides import OURS, Case, Table, torch

import mxnet as mx
from mxnet import autograd, gluon
from mxnet.gluon import nn

BATCH = 128
RATE = 0.05
STEPS = 5  # compared before timing
RTOL = 1e-4  # of the losses after that many steps: float32 sums in another order, carried on by the updates


def mlp() -> Any:
    net = nn.HybridSequential()
    net.add(nn.Dense(512, activation="relu"), nn.Dense(512, activation="relu"), nn.Dense(10))
    return net


def lenet() -> Any:
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(20, 5, activation="relu"),
        nn.MaxPool2D(2, 2),
        nn.Conv2D(50, 5, activation="relu"),
        nn.MaxPool2D(2, 2),
        nn.Flatten(),
        nn.Dense(500, activation="relu"),
        nn.Dense(10),
    )
    return net


def torch_mlp() -> Any:
    layers = torch.nn
    return layers.Sequential(
        layers.Linear(784, 512), layers.ReLU(), layers.Linear(512, 512), layers.ReLU(), layers.Linear(512, 10)
    )


def torch_lenet() -> Any:
    layers = torch.nn
    return layers.Sequential(
        layers.Conv2d(1, 20, 5),
        layers.ReLU(),
        layers.MaxPool2d(2),
        layers.Conv2d(20, 50, 5),
        layers.ReLU(),
        layers.MaxPool2d(2),
        layers.Flatten(),
        layers.Linear(800, 500),
        layers.ReLU(),
        layers.Linear(500, 10),
    )


def our_step(net: Any, x: numpy.ndarray, labels: numpy.ndarray) -> Case:
    data, target = mx.np.array(x), mx.np.array(labels)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": RATE, "momentum": 0.9})
    measure = gluon.loss.SoftmaxCrossEntropyLoss()

    def step() -> Any:
        with autograd.record():
            loss = measure(net(data), target)
        loss.backward()
        trainer.step(BATCH)
        return loss

    return step


def torch_step(net: Any, x: numpy.ndarray, labels: numpy.ndarray) -> Case:
    data, target = torch.from_numpy(x), torch.from_numpy(labels)
    optimizer = torch.optim.SGD(net.parameters(), lr=RATE, momentum=0.9)

    def step() -> Any:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(data), target)
        loss.backward()
        optimizer.step()
        return loss

    return step


def same_weights(net: Any, other: Any) -> None:
    """Copies our initial weights to the other side, which holds them in the same shapes and order."""
    ours = [parameter.data().asnumpy() for parameter in net.collect_params().values()]
    theirs = list(other.parameters())
    assert [x.shape for x in ours] == [tuple(x.shape) for x in theirs]
    with torch.no_grad():
        for mine, parameter in zip(ours, theirs, strict=True):
            parameter.copy_(torch.from_numpy(mine.copy()))


def compare(name: str, ours: Case, theirs: Case) -> None:
    for step in range(STEPS):
        mine, other = float(ours().mean()), float(theirs().detach())
        if not abs(mine - other) <= RTOL * abs(other):
            raise SystemExit(f"{name}: loss {mine} after {step} steps, PyTorch's is {other}")


def main() -> None:
    table = Table(f"training steps, float32, batch {BATCH}, SGD with momentum", [OURS, "PyTorch"])
    cases: list[tuple[str, Callable[[], Any], Callable[[], Any], tuple[int, ...]]] = [
        ("MLP 784-512-512-10", mlp, torch_mlp, (784,)),
        ("LeNet 28x28", lenet, torch_lenet, (1, 28, 28)),
    ]
    generator = numpy.random.default_rng(0)
    for name, build, build_torch, shape in cases:
        x = generator.uniform(0, 1, (BATCH, *shape)).astype("float32")
        labels = generator.integers(0, 10, BATCH)
        net = build()
        net.initialize(mx.init.Xavier())
        net(mx.np.array(x))
        sides = {}
        other = None
        if torch is not None:
            other = build_torch()
            same_weights(net, other)
        sides[OURS] = our_step(net, x, labels)
        if other is not None:
            sides["PyTorch"] = torch_step(other, x, labels)
            compare(name, sides[OURS], sides["PyTorch"])
        table.add(name, sides, rtol=None, turn_s=0.05)


if __name__ == "__main__":
    main()
