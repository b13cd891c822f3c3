"""A generative adversarial network that learns a ring of eight clusters of points.

    python examples/gan.py --steps 2000

Source: I. Goodfellow et al., "Generative Adversarial Nets", 2014; the loss of the generator is the non-saturating one.
"""

import argparse
import math

import numpy as onp

import mxnet as mx
from mxnet import autograd, gluon, np
from mxnet.gluon import nn


def ring(generator, count: int):
    """Points near eight places on the unit circle."""
    angle = generator.integers(0, 8, size=count) * math.pi / 4
    points = onp.stack([onp.cos(angle), onp.sin(angle)], axis=1) + generator.normal(0, 0.05, size=(count, 2))
    return np.array(points.astype("float32"))


def network(outputs: int):
    net = nn.HybridSequential()
    net.add(nn.Dense(64, activation="relu"), nn.Dense(64, activation="relu"), nn.Dense(outputs))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    return net


def main(arguments: list[str] | None = None) -> tuple[float, float]:
    """Train, and return the mean distance of made points from the circle in the beginning and in the end."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)

    mx.random.seed(options.seed)
    generator = onp.random.default_rng(options.seed)
    maker, judge = network(2), network(1)
    rules = {"learning_rate": 1e-3, "beta1": 0.5}
    maker_trainer = gluon.Trainer(maker.collect_params(), "adam", rules)
    judge_trainer = gluon.Trainer(judge.collect_params(), "adam", rules)
    loss_of = gluon.loss.SigmoidBinaryCrossEntropyLoss()
    real, fake = np.ones((options.batch_size, 1)), np.zeros((options.batch_size, 1))

    def made(count: int):
        return maker(np.random.normal(size=(count, 4)))

    def distance() -> float:
        radius = np.sqrt((made(512) ** 2).sum(axis=1))
        return np.abs(radius - 1).mean().item()

    start = distance()
    for step in range(options.steps):
        points = made(options.batch_size)
        with autograd.record():
            loss = (loss_of(judge(ring(generator, options.batch_size)), real) + loss_of(judge(points), fake)).mean()
        loss.backward()
        judge_trainer.step(1)
        with autograd.record():
            loss = loss_of(judge(made(options.batch_size)), real).mean()
        loss.backward()
        # The pass wrote gradients of the judge, too; its next step takes those of the next pass.
        maker_trainer.step(1)
        if step % 200 == 0:
            print(f"step {step:5}  distance from the circle {distance():.3f}", flush=True)
    end = distance()
    print(f"in the end {end:.3f}, {start:.3f} before")
    return start, end


if __name__ == "__main__":
    main()
