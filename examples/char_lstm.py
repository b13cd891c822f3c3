"""A recurrent network that learns to write Python, letter by letter, from the standard library's own source.

    python examples/char_lstm.py --steps 600

Prints the loss while it learns, and a sample of its writing in the end.
"""

import argparse
import inspect
import math
import textwrap
import time
from types import ModuleType

import numpy as onp

import mxnet as mx
from mxnet import autograd, gluon, np, npx

# Plain modules without generated tables, so that what there is to learn is style and grammar.
MODULES = ("argparse", "ast", "collections", "dataclasses", "functools", "inspect", "random", "shutil", "textwrap")


class CharLSTM(gluon.HybridBlock):
    """Letters -> vectors -> LSTM -> scores of the next letter."""

    def __init__(self, num_letters: int, size: int, num_layers: int, dropout: float) -> None:
        super().__init__()
        self.embedding = gluon.nn.Embedding(num_letters, size)
        self.lstm = gluon.rnn.LSTM(size, num_layers, layout="NTC", dropout=dropout, input_size=size)
        self.out = gluon.nn.Dense(num_letters, flatten=False, in_units=size)

    def forward(self, letters, states):
        """Map (n, t) letters and states to (n, t, num_letters) scores and new states."""
        output, states = self.lstm(self.embedding(letters), states)
        return self.out(output), states


def source_text() -> str:
    """The source of the chosen modules, one after the other."""
    modules: list[ModuleType] = [__import__(name) for name in MODULES]
    return "\n".join(inspect.getsource(module) for module in modules)


def batches(text: onp.ndarray, batch_size: int, length: int):
    """Endless (letters, next letters) of shape (batch_size, length), each going on where the last one ended."""
    rows = (len(text) - 1) // batch_size
    letters = text[: rows * batch_size].reshape(batch_size, rows)
    following = text[1 : rows * batch_size + 1].reshape(batch_size, rows)
    while True:
        for start in range(0, rows - length + 1, length):
            part = slice(start, start + length)
            yield start == 0, np.array(letters[:, part]), np.array(following[:, part])


def train(net: CharLSTM, text: onp.ndarray, options: argparse.Namespace) -> tuple[float, float]:
    """Train, and return the bits per letter of the first and the last step."""
    schedule = mx.lr_scheduler.CosineScheduler(
        options.steps, base_lr=4e-3, final_lr=1e-4, warmup_steps=options.steps // 20
    )
    trainer = gluon.Trainer(net.collect_params(), "adam", {"lr_scheduler": schedule})
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    started = time.perf_counter()
    states = None
    first = last = math.inf
    for step, (is_first, letters, following) in enumerate(batches(text, options.batch_size, options.length), 1):
        if is_first or states is None:
            states = net.lstm.begin_state(options.batch_size)
        # The gradient stops at the border of the batch, the memory does not.
        states = [state.detach() for state in states]
        with autograd.record():
            scores, states = net(letters, states)
            loss = loss_of(scores, following).mean()
        loss.backward()
        gluon.utils.clip_global_norm([p.grad() for p in net.collect_params().values()], 1.0, check_isfinite=False)
        trainer.step(1)
        if step == 1 or step % options.report == 0 or step == options.steps:
            bits = loss.item() / math.log(2)
            first, last = (bits, bits) if step == 1 else (first, bits)
            print(f"step {step:5}  {bits:.3f} bits per letter  {time.perf_counter() - started:6.1f} s", flush=True)
        if step == options.steps:
            break
    return first, last


def write(net: CharLSTM, letters: str, start: str, length: int, temperature: float, seed: int) -> str:
    """Let the network go on with a text, letter by letter."""
    generator = onp.random.default_rng(seed)
    states = net.lstm.begin_state(1)
    text = start
    given = np.array([[letters.index(letter) for letter in start]])
    for _ in range(length):
        scores, states = net(given, states)
        chances = npx.softmax(scores[0, -1] / temperature, axis=-1).asnumpy().astype("float64")
        chosen = int(generator.choice(len(letters), p=chances / chances.sum()))
        text += letters[chosen]
        given = np.array([[chosen]])
    return text


def main(arguments: list[str] | None = None) -> tuple[float, float]:
    """Train, write, and return the bits per letter in the beginning and in the end."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--length", type=int, default=64, help="letters in one step of training")
    parser.add_argument("--size", type=int, default=128, help="size of the vectors and of the memory")
    parser.add_argument("--layers", type=int, default=1)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--report", type=int, default=50, help="print the loss every so many steps")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sample", type=int, default=400, help="letters to write in the end")
    parser.add_argument("--temperature", type=float, default=0.6)
    options = parser.parse_args(arguments)

    mx.random.seed(options.seed)
    text = source_text()
    letters = "".join(sorted(set(text)))
    print(f"{len(text)} letters, {len(letters)} different ones")
    numbers = onp.array([letters.index(letter) for letter in text], dtype="int32")
    net = CharLSTM(len(letters), options.size, options.layers, options.dropout)
    net.initialize(mx.init.Xavier())
    bits = train(net, numbers, options)
    print(textwrap.indent(write(net, letters, "def ", options.sample, options.temperature, options.seed), "    "))
    return bits


if __name__ == "__main__":
    main()
