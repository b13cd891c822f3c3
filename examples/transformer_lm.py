"""A small transformer that learns to write Python, letter by letter, from the standard library's own source.

python examples/transformer_lm.py --steps 1000
"""

import argparse
import inspect
import math
import textwrap

import numpy as onp

import mxnet as mx
from mxnet import autograd, gluon, np, npx
from mxnet.gluon.model_zoo.text import GPT2


def write(net, letters: str, start: str, length: int, window: int, generator) -> str:
    """Let the network go on with a text; it sees the last `window` letters."""
    text = start
    for _ in range(length):
        given = np.array([[letters.index(letter) for letter in text[-window:]]])
        chances = npx.softmax(net(given)[0, -1] / 0.7).asnumpy().astype("float64")
        text += letters[int(generator.choice(len(letters), p=chances / chances.sum()))]
    return text


def main(arguments: list[str] | None = None) -> tuple[float, float]:
    """Train, and return the bits per letter in the beginning and in the end."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--units", type=int, default=96)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--sample", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)

    mx.random.seed(options.seed)
    generator = onp.random.default_rng(options.seed)
    text = inspect.getsource(argparse) + inspect.getsource(textwrap)
    letters = "".join(sorted(set(text)))
    numbers = onp.array([letters.index(letter) for letter in text])
    net = GPT2(len(letters), options.units, options.layers, num_heads=4, max_length=options.length, dropout=0.0)
    net.initialize()
    net.hybridize()
    schedule = mx.lr_scheduler.CosineScheduler(
        options.steps, base_lr=3e-3, final_lr=1e-4, warmup_steps=options.steps // 20
    )
    trainer = gluon.Trainer(net.collect_params(), "adamw", {"lr_scheduler": schedule, "wd": 0.01})
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    bits = []
    for step in range(options.steps):
        starts = generator.integers(0, len(numbers) - options.length - 1, size=(options.batch_size, 1))
        part = numbers[starts + onp.arange(options.length + 1)]
        with autograd.record():
            loss = loss_of(net(np.array(part[:, :-1])), np.array(part[:, 1:])).mean()
        loss.backward()
        gluon.utils.clip_global_norm([p.grad() for p in net.collect_params().values()], 1.0, check_isfinite=False)
        trainer.step(1)
        bits.append(loss.item() / math.log(2))
        if step % 50 == 0 or step + 1 == options.steps:
            print(f"step {step:5}  {bits[-1]:.3f} bits per letter", flush=True)
    print(textwrap.indent(write(net, letters, "def ", options.sample, options.length, generator), "    "))
    return bits[0], bits[-1]


if __name__ == "__main__":
    main()
