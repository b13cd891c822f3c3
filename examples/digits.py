"""A classifier of handwritten digits with the training loop of `Estimator`.

python examples/digits.py --epochs 10
"""

import argparse

from _digits import digits, network

import mxnet as mx
from mxnet import gluon
from mxnet.gluon.contrib.estimator import Estimator
from mxnet.gluon.data import ArrayDataset, DataLoader


def main(arguments: list[str] | None = None) -> float:
    """Train, and return the part of the test digits that is recognized."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)

    mx.random.seed(options.seed)
    net = network()
    train = DataLoader(ArrayDataset(*digits(True)), options.batch_size, shuffle=True)
    test = DataLoader(ArrayDataset(*digits(False)), options.batch_size)
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 3e-3})
    loop = Estimator(
        net, gluon.loss.SoftmaxCrossEntropyLoss(), gluon.metric.Accuracy(), trainer=trainer,
        val_metrics=gluon.metric.Accuracy(),
    )  # fmt: skip
    loop.fit(train, val_data=test, epochs=options.epochs)
    accuracy = loop.val_metrics[0].get()[1]
    print(f"accuracy {accuracy:.4f}")
    return accuracy


if __name__ == "__main__":
    main()
