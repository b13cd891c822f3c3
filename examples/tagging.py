"""Tags for each element of sequences of several lengths: a bidirectional LSTM over padded batches.

    python examples/tagging.py --steps 400

The task: mark every letter that occurs again later in its word or occurred before.
"""

import argparse

import numpy as onp

import mxnet as mx
from mxnet import autograd, gluon, np
from mxnet.gluon import nn, rnn
from mxnet.gluon.data import DataLoader, SimpleDataset, batchify

LETTERS = 6


class Tagger(gluon.HybridBlock):
    """Letters (n, t) and lengths (n,) to scores (n, t, 2)."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(LETTERS + 1, size)
        self.lstm = rnn.LSTM(size, layout="NTC", bidirectional=True, use_sequence_length=True)
        self.out = nn.Dense(2, flatten=False)

    def forward(self, letters, lengths):
        return self.out(self.lstm(self.embedding(letters), sequence_length=lengths))


def words(generator, count: int):
    """Letters from 1, tags and length of words of 3 to 9 letters."""
    samples = []
    for _ in range(count):
        word = generator.integers(1, LETTERS + 1, size=generator.integers(3, 10))
        tags = [int((word == letter).sum() > 1) for letter in word]
        samples.append((word.astype("int32"), onp.array(tags, "int32"), len(word)))
    return SimpleDataset(samples)


def main(arguments: list[str] | None = None) -> float:
    """Train, and return the part of right tags in new words."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--words", type=int, default=1000)
    parser.add_argument("--size", type=int, default=48)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)

    mx.random.seed(options.seed)
    generator = onp.random.default_rng(options.seed)
    # Padding: letter 0, and tags that no mask lets count.
    padded = batchify.Group(batchify.Pad(val=0), batchify.Pad(val=0), batchify.Stack())
    train = DataLoader(words(generator, options.words), 50, shuffle=True, batchify_fn=padded)
    test = DataLoader(words(generator, 200), 50, batchify_fn=padded)
    net = Tagger(options.size)
    net.initialize(mx.init.Xavier())
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01})
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss(axis=-1)

    def mask_of(letters, lengths):
        return (np.arange(letters.shape[1]) < lengths.reshape(-1, 1)).astype("float32")

    for epoch in range(options.epochs):
        for letters, tags, lengths in train:
            mask = np.expand_dims(mask_of(letters, lengths), -1)
            with autograd.record():
                # The loss of a word is a mean over the padded length; each letter shall count the same.
                loss = loss_of(net(letters, lengths), tags, mask).sum() * letters.shape[1] / mask.sum()
            loss.backward()
            trainer.step(1)
        print(f"epoch {epoch + 1:3}  loss {loss.item():.4f}", flush=True)
    right = counted = 0.0
    for letters, tags, lengths in test:
        mask = mask_of(letters, lengths)
        right += ((net(letters, lengths).argmax(axis=-1) == tags) * mask).sum().item()
        counted += mask.sum().item()
    print(f"{right / counted:.1%} of the tags are right")
    return right / counted


if __name__ == "__main__":
    main()
