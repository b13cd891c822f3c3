"""Transfer learning: what was learnt about digits helps to tell even from odd ones, of which few examples are given.

python examples/transfer.py
"""

import argparse
import tempfile
from pathlib import Path

from _digits import digits

import mxnet as mx
from mxnet import autograd, gluon
from mxnet.gluon import nn
from mxnet.gluon.data import ArrayDataset, DataLoader


class Classifier(gluon.HybridBlock):
    """Features, then scores."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.features = nn.HybridSequential()
        self.features.add(
            nn.Conv2D(16, 3, padding=1, activation="relu"), nn.Conv2D(32, 3, padding=1, activation="relu"),
            nn.MaxPool2D(), nn.Dense(64, activation="relu"),
        )  # fmt: skip
        self.output = nn.Dense(classes)

    def forward(self, x):
        return self.output(self.features(x))


def fit(net, parameters, images, labels, steps: int) -> None:
    trainer = gluon.Trainer(parameters, "adam", {"learning_rate": 3e-3})
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    done = 0
    while done < steps:
        for batch, wanted in DataLoader(ArrayDataset(images, labels), 32, shuffle=True):
            with autograd.record():
                loss = loss_of(net(batch), wanted).mean()
            loss.backward()
            trainer.step(1)
            done += 1
            if done == steps:
                break


def accuracy(net, images, labels) -> float:
    return (net(images).argmax(axis=1) == labels).astype("float32").mean().item()


def main(arguments: list[str] | None = None) -> tuple[float, float]:
    """Return the accuracies without and with what was learnt before."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--tuning", type=int, default=100, help="steps with the new labels")
    parser.add_argument("--examples", type=int, default=12, help="with the new labels")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)

    mx.random.seed(options.seed)
    images, labels = digits(True)
    first = Classifier(10)
    first.initialize(mx.init.Xavier())
    fit(first, first.collect_params(), images, labels, options.steps)

    few = images[: options.examples], labels[: options.examples] % 2
    test_images, test_labels = digits(False)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "features.safetensors"
        first.features.save_parameters(path)
        found = []
        for is_known in (False, True):
            net = Classifier(2)
            net.initialize(mx.init.Xavier())
            if is_known:
                net.features.load_parameters(path)
                # Frozen: no gradients are computed for them.
                net.features.setattr("grad_req", "null")
            fit(net, net.collect_params(), *few, options.tuning)
            found.append(accuracy(net, test_images, test_labels % 2))
    print(f"{options.examples} examples: {found[0]:.1%} from scratch, {found[1]:.1%} with known features")
    return found[0], found[1]


if __name__ == "__main__":
    main()
