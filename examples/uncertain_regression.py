"""Regression that says how sure it is: a network gives mean and deviation of a normal distribution.

    python examples/uncertain_regression.py --steps 1500

Noise grows with x. The loss is minus the log-density of the data.
"""

import argparse

import numpy as onp

import mxnet as mx
from mxnet import autograd, gluon, np, npx
from mxnet.gluon import nn
from mxnet.gluon import probability as mgp


class Likelihood(gluon.HybridBlock):
    """Inputs (n, 1) to a normal distribution of each output."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.HybridSequential()
        self.body.add(nn.Dense(32, activation="tanh"), nn.Dense(32, activation="tanh"), nn.Dense(2))

    def forward(self, x):
        mean, raw = np.split(self.body(x), 2, axis=1)
        return mgp.Normal(mean, npx.activation(raw, "softrelu") + 1e-3)


def main(arguments: list[str] | None = None) -> tuple[float, float]:
    """Train, and return the part of new data within one deviation, and the error of the deviations."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)

    mx.random.seed(options.seed)
    generator = onp.random.default_rng(options.seed)

    def data(count: int):
        x = generator.uniform(-1, 1, size=(count, 1))
        scale = 0.05 + 0.2 * (x + 1)
        y = onp.sin(3 * x) + generator.normal(size=x.shape) * scale
        return np.array(x.astype("float32")), np.array(y.astype("float32")), np.array(scale.astype("float32"))

    net = Likelihood()
    net.initialize(mx.init.Xavier())
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 5e-3})
    for step in range(options.steps):
        x, y, _ = data(128)
        with autograd.record():
            loss = -net(x).log_prob(y).mean()
        loss.backward()
        trainer.step(1)
        if step % 250 == 0:
            print(f"step {step:5}  minus log-density {loss.item():.3f}", flush=True)
    x, y, scale = data(2000)
    found = net(x)
    within = (np.abs(y - found.loc) < found.scale).mean().item()
    error = np.abs(found.scale - scale).mean().item()
    print(f"{within:.1%} of new data within one deviation (68.3% is right), deviations off by {error:.3f}")
    return within, error


if __name__ == "__main__":
    main()
