"""Small calls of layers, eager, against PyTorch: what a call costs beside its arithmetic. And metrics beside a step.

`python benches/layers.py [words]`; words choose cases.
"""

import statistics
import time
from typing import Any

import numpy
from _sides import OURS, Case, Table, readable, time_in_turns, torch

import mxnet as mx
from mxnet import autograd, gluon
from mxnet.gluon import nn

BATCH = 128
CLASSES = 10


def chain(width: int) -> Any:
    net = nn.HybridSequential()
    net.add(nn.Dense(width, activation="relu"), nn.Dense(width))
    return net


def layers() -> dict[str, tuple[Any, Any, tuple[int, ...]]]:
    """Ours, PyTorch's, and the shape of the input: small, so that the calls are what takes time."""
    there = torch.nn
    return {
        "Dense": (nn.Dense(4, in_units=4), there.Linear(4, 4), (2, 4)),
        "Dense, relu, Dense": (
            chain(4),
            there.Sequential(there.Linear(4, 4), there.ReLU(), there.Linear(4, 4)),
            (2, 4),
        ),
        "Conv2D 3 x 3": (nn.Conv2D(2, 3, in_channels=2), there.Conv2d(2, 2, 3), (1, 2, 5, 5)),
        "BatchNorm": (nn.BatchNorm(in_channels=3), there.BatchNorm2d(3), (2, 3, 4, 4)),
        "LayerNorm": (nn.LayerNorm(in_channels=8), there.LayerNorm(8), (2, 8)),
        "Activation relu": (nn.Activation("relu"), there.ReLU(), (2, 4)),
        "Dropout": (nn.Dropout(0.5), there.Dropout(0.5), (2, 4)),
        "MaxPool2D": (nn.MaxPool2D(), there.MaxPool2d(2), (1, 2, 4, 4)),
        "Embedding": (nn.Embedding(10, 4), there.Embedding(10, 4), (2, 3)),
    }


def calls(table: Table) -> None:
    generator = numpy.random.default_rng(0)
    for name, (ours, theirs, shape) in layers().items():
        x = generator.normal(size=shape).astype("float32")
        if name == "Embedding":
            x = numpy.array([[1, 2, 3], [4, 5, 6]])
        data, other = mx.np.array(x, dtype=x.dtype), torch.from_numpy(x)
        ours.initialize()
        ours(data)
        with torch.no_grad():
            for parameter, mine in zip(theirs.parameters(), ours.collect_params().values(), strict=False):
                parameter.copy_(torch.from_numpy(mine.data().asnumpy()))
        theirs.eval()
        numpy.testing.assert_allclose(ours(data).asnumpy(), theirs(other).detach().numpy(), rtol=1e-4, atol=1e-5)

        def predicted(net: Any = theirs, at: Any = other) -> Any:
            with torch.no_grad():
                return net(at)

        table.add(name, {OURS: lambda net=ours, at=data: net(at), "PyTorch": predicted}, rtol=None)

        def recorded(net: Any = ours, at: Any = data) -> Any:
            with autograd.record(train_mode=False):
                return net(at)

        if any(parameter.grad_req != "null" for parameter in ours.collect_params().values()):
            table.add(f"{name}, recorded", {OURS: recorded, "PyTorch": lambda net=theirs, at=other: net(at)}, rtol=None)


def step(metrics: Any) -> Case:
    """One training step of a small convolution network on 128 images of 28 x 28, with or without metrics."""
    net = nn.HybridSequential()
    net.add(nn.Conv2D(20, 5, activation="relu"), nn.MaxPool2D(2, 2), nn.Conv2D(50, 5, activation="relu"))
    net.add(nn.MaxPool2D(2, 2), nn.Dense(500, activation="relu"), nn.Dense(CLASSES))
    net.initialize()
    generator = numpy.random.default_rng(0)
    data = mx.np.array(generator.normal(size=(BATCH, 1, 28, 28)), dtype="float32")
    labels = mx.np.array(generator.integers(0, CLASSES, BATCH))
    measure = gluon.loss.SoftmaxCrossEntropyLoss()
    net(data)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1e-4})

    def run() -> None:
        with autograd.record():
            scores = net(data)
            loss = measure(scores, labels)
        loss.backward()
        trainer.step(BATCH)
        for metric in metrics:
            metric.update(labels, scores)

    return run


def update(metric: Any) -> Case:
    generator = numpy.random.default_rng(0)
    scores = mx.np.array(generator.normal(size=(BATCH, CLASSES)), dtype="float32")
    labels = mx.np.array(generator.integers(0, CLASSES, BATCH))

    def run() -> None:
        metric.update(labels, scores)

    return run


def main() -> None:
    if torch is not None:
        table = Table("a call of a layer, eager", [OURS, "PyTorch"])
        calls(table)
    metrics()


def metrics() -> None:
    """What updates of metrics add to a step, alone and inside of it."""
    kinds = gluon.metric
    without_metrics = time_in_turns({OURS: step([])}, turns=9)[OURS]
    print(f"a training step of {BATCH} images without metrics: {readable(without_metrics.median)}")
    for metric in (kinds.Accuracy(), kinds.TopKAccuracy(5), kinds.CrossEntropy(from_logits=True), kinds.PCC()):
        timed = time_in_turns({OURS: update(metric)})[OURS]
        part = 100 * timed.median / without_metrics.median
        print(f"update of {type(metric).__name__:<14} {readable(timed.median):>8}, {part:.2f} % of the step")
    both = {"without": step([]), "with": step([kinds.Accuracy()])}
    columns: dict[str, list[float]] = {name: [] for name in both}
    for _ in range(31):
        for name, case in both.items():
            start = time.perf_counter()
            case()
            mx.waitall()
            columns[name].append(time.perf_counter() - start)
    without, with_ = (statistics.median(columns[name]) for name in both)
    print(f"a step with Accuracy takes {with_ / without:.4f} times one without")


if __name__ == "__main__":
    main()
