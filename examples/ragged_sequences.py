"""Two classifiers of sequences of different length, without padding: a transformer encoder and an LSTM.

    python examples/ragged_sequences.py --steps 100

A sequence of numbers is in class 1 if its largest number stands in its first half. Prints the loss while each network
learns, and the share of new sequences it gets right.
"""

import argparse

import numpy as onp

import mxnet as mx
from mxnet import autograd, gluon, np, ragged
from mxnet.gluon import nn

NUMBERS = 20


class EncoderLayer(gluon.HybridBlock):
    """Attention and two affine maps, each beside a way around it."""

    def __init__(self, units: int, num_heads: int) -> None:
        super().__init__()
        self.attention = nn.MultiHeadAttention(units, num_heads)
        self.norm1, self.norm2 = nn.LayerNorm(), nn.LayerNorm()
        self.inner = nn.Dense(2 * units, flatten=False, activation="relu")
        self.outer = nn.Dense(units, flatten=False)

    def forward(self, x, mask=None):
        """Map (n, length, units) to the same shape."""
        x = self.norm1(x + self.attention(x, mask=mask))
        return self.norm2(x + self.outer(self.inner(x)))


class Encoder(gluon.HybridBlock):
    """Numbers and their positions -> vectors -> encoder layers -> the mean of each sequence -> scores."""

    def __init__(self, units: int = 32, num_heads: int = 4, num_layers: int = 2, longest: int = 64) -> None:
        super().__init__()
        self.numbers = nn.Embedding(NUMBERS, units)
        self.positions = nn.Embedding(longest, units)
        self.layers = nn.HybridSequential()
        for _ in range(num_layers):
            self.layers.add(EncoderLayer(units, num_heads))
        self.out = nn.Dense(2)

    def forward(self, tokens):
        """Map ragged (n, None) numbers to (n, 2) scores."""
        x = self.numbers(tokens) + self.positions(positions_of(tokens))
        for layer in self.layers:
            x = layer(x)
        return self.out(np.mean(x, axis=1))

    def padded(self, tokens, lengths):
        """The same of padded (n, length) numbers, with masks."""
        inside = np.arange(tokens.shape[1]) < np.expand_dims(lengths, 1)
        x = self.numbers(tokens) + self.positions(np.arange(tokens.shape[1]))
        for layer in self.layers:
            x = layer(x, mask=np.expand_dims(inside, (1, 2)))
        total = np.sum(x * np.expand_dims(inside, 2), axis=1)
        return self.out(total / np.expand_dims(lengths, 1))


class Recurrent(gluon.HybridBlock):
    """Numbers -> vectors -> an LSTM in both directions -> the largest of each sequence -> scores."""

    def __init__(self, units: int = 32) -> None:
        super().__init__()
        self.numbers = nn.Embedding(NUMBERS, units)
        self.lstm = gluon.rnn.LSTM(units, layout="NTC", bidirectional=True)
        self.out = nn.Dense(2)

    def forward(self, tokens):
        """Map ragged (n, None) numbers to (n, 2) scores."""
        return self.out(ragged.pool(self.lstm(self.numbers(tokens)), "max"))

    def padded(self, tokens, lengths):
        """The same of padded (n, length) numbers, with masks."""
        x = self.numbers(tokens)
        y, _ = self.lstm(x, self.lstm.begin_state(len(tokens)), lengths)
        inside = np.arange(tokens.shape[1]) < np.expand_dims(lengths, 1)
        return self.out(np.max(np.where(np.expand_dims(inside, 2), y, -onp.inf), axis=1))


def positions_of(tokens):
    """0, 1, 2, ... in each row."""
    return np.argsort(np.zeros_like(tokens), axis=1)


def samples(rng: onp.random.Generator, count: int):
    """Sequences of 3 to 40 numbers, and their classes."""
    rows = [rng.integers(0, NUMBERS, rng.integers(3, 41)) for _ in range(count)]
    classes = [int(2 * row.argmax() < len(row)) for row in rows]
    return list(zip(rows, classes, strict=True))


def train(net: gluon.HybridBlock, steps: int, seed: int = 0) -> float:
    """Train on batches without padding; returns the share of new sequences that are right."""
    rng = onp.random.default_rng(seed)
    batchify = gluon.data.batchify.Group(gluon.data.batchify.Ragged(), gluon.data.batchify.Stack())
    net.initialize(mx.init.Xavier())
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    loader = gluon.data.DataLoader(samples(rng, 32 * steps), batch_size=32, batchify_fn=batchify)
    trainer = None
    for step, (tokens, classes) in enumerate(loader):
        with autograd.record():
            loss = np.mean(loss_of(net(tokens), classes))
        loss.backward()
        trainer = trainer or gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 3e-3})
        trainer.step(1)
        if step % 50 == 0 or step == steps - 1:
            print(f"  step {step:4d}: loss {loss.item():.3f}")
    tokens, classes = batchify(samples(rng, 512))
    return float(np.mean(np.argmax(net(tokens), axis=1) == classes).item())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=300)
    options = parser.parse_args()
    mx.random.seed(0)
    for net in (Encoder(), Recurrent()):
        print(type(net).__name__)
        print(f"  right: {100 * train(net, options.steps):.0f} %")


if __name__ == "__main__":
    main()
