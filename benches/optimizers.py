"""Steps of `gluon.Trainer`: the update of all weights of a network by given gradients, against PyTorch's optimizers.

Gradients are set once and stay; nothing else of a training step is timed. PyTorch runs its fused kernels where it has
them for the CPU.
"""

from collections.abc import Sequence
from typing import Any

import numpy
from _sides import OURS, Case, Table, torch

import mxnet as mx
from mxnet import gluon

RATE = 1e-4
BATCH = 128
# Name, our class and arguments, PyTorch's class and arguments.
RULES: list[tuple[str, str, dict[str, Any], str, dict[str, Any]]] = [
    ("SGD", "sgd", {}, "SGD", {"fused": True}),
    ("SGD, momentum", "sgd", {"momentum": 0.9}, "SGD", {"momentum": 0.9, "fused": True}),
    ("NAG", "nag", {"momentum": 0.9}, "SGD", {"momentum": 0.9, "nesterov": True, "fused": True}),
    ("Adam", "adam", {}, "Adam", {"fused": True}),
    ("AdamW", "adamw", {"wd": 0.01}, "AdamW", {"weight_decay": 0.01, "fused": True}),
    ("RMSProp", "rmsprop", {}, "RMSprop", {"foreach": True}),
    ("RMSProp, centered", "rmsprop", {"centered": True}, "RMSprop", {"centered": True, "foreach": True}),
    ("AdaGrad", "adagrad", {}, "Adagrad", {"fused": True}),
]
SMALL = [(64, 32), (64,), (64, 64), (64,), (10, 64), (10,)]


def resnet18() -> list[tuple[int, ...]]:
    """Shapes of the 62 weights of ResNet-18 for 1000 classes, 11.7 million numbers."""

    def normalised(out: int, into: int, kernel: int) -> list[tuple[int, ...]]:
        return [(out, into, kernel, kernel), (out,), (out,)]

    shapes = normalised(64, 3, 7)
    into = 64
    for out in (64, 128, 256, 512):
        for _ in range(2):
            shapes += normalised(out, into, 3) + normalised(out, out, 3)
            if into != out:
                shapes += normalised(out, into, 1)
            into = out
    return [*shapes, (1000, 512), (1000,)]


def dense200() -> list[tuple[int, ...]]:
    """Shapes of 200 weights of some layers of width 64: 100 matrices and 100 vectors, 0.4 million numbers."""
    return [(64, 64), (64,)] * 100


def our_step(name: str, arguments: dict[str, Any], weights: Sequence[numpy.ndarray], dtype: str) -> Case:
    parameters = []
    for number, weight in enumerate(weights):
        parameter = gluon.Parameter(f"weight{number}", shape=weight.shape, dtype=dtype)
        parameter.initialize(mx.init.Zero())
        parameter.set_data(mx.np.array(weight, dtype=dtype))
        parameter.grad()[...] = mx.np.array(weight, dtype=dtype)
        parameters.append(parameter)
    trainer = gluon.Trainer(parameters, name, {"learning_rate": RATE, **arguments})
    data = [parameter.data() for parameter in parameters]

    def step() -> None:
        # The gradients stay as they are, and count as new again.
        mx._core.set_gradient_fresh(data, fresh=True)
        trainer.step(BATCH)

    return step


def torch_step(name: str, arguments: dict[str, Any], weights: Sequence[numpy.ndarray]) -> Case:
    parameters = [torch.nn.Parameter(torch.from_numpy(weight.copy())) for weight in weights]
    for parameter, weight in zip(parameters, weights, strict=True):
        parameter.grad = torch.from_numpy(weight.copy())
    return getattr(torch.optim, name)(parameters, lr=RATE, **arguments).step


def main() -> None:
    table = Table("Trainer.step: the update of all weights", [OURS, "PyTorch"])
    generator = numpy.random.default_rng(0)
    for what, shapes in (("6 small", SMALL), ("200 of width 64", dense200()), ("ResNet-18", resnet18())):
        weights = [generator.normal(size=shape).astype("float32") for shape in shapes]
        for title, ours, our_arguments, theirs, their_arguments in RULES:
            sides = {OURS: our_step(ours, our_arguments, weights, "float32")}
            if torch is not None:
                sides["PyTorch"] = torch_step(theirs, their_arguments, weights)
            table.add(f"{what}, {title}", sides, rtol=None, turn_s=0.05)
        halves = {OURS: our_step("adam", {"multi_precision": True}, weights, "float16")}
        table.add(f"{what}, Adam, float16 with copies", halves, rtol=None, turn_s=0.05)


if __name__ == "__main__":
    main()
