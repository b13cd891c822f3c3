"""Train a small network on handwritten digits: ``python -m mxnet.demo``.

Prints the accuracy on digits it has not seen, saves the parameters, loads them into a new network, checks that it
predicts the same, and draws the course of the loss and the worst mistakes into the output folder.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as onp

import mxnet as mx
from mxnet import autograd, gluon
from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.gluon import nn
from mxnet.gluon.data import DataLoader
from mxnet.gluon.data.vision import Digits

__all__ = ["build", "main", "picture", "train"]

_LEARNING_RATE = 3e-3
_BAR_WIDTH = 30


def build() -> nn.HybridSequential:
    """A network for images of shape ``(n, 1, 8, 8)``: two convolutions, pooling, two dense layers.

    Returns
    -------
    HybridSequential
        Its output has shape ``(n, 10)``.
    """
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(32, kernel_size=3, padding=1, use_bias=False),
        nn.BatchNorm(),
        nn.Activation("relu"),
        nn.Conv2D(64, kernel_size=3, padding=1, use_bias=False),
        nn.BatchNorm(),
        nn.Activation("relu"),
        nn.MaxPool2D(),
        nn.Dense(128, activation="relu"),
        nn.Dropout(0.4),
        nn.Dense(10),
    )
    return net


def _batch(samples: Sequence[Any]) -> tuple[Any, Any]:
    """Images scaled to [0, 1] with channels first, and labels."""
    images = onp.stack([image for image, _ in samples]).transpose(0, 3, 1, 2)
    return np.array(images.astype("float32") / 16), np.array([label for _, label in samples], dtype="int32")


def _loader(train: bool, batch_size: int) -> DataLoader:
    return DataLoader(
        Digits(train=train),
        batch_size,
        shuffle=train,
        last_batch="discard" if train else "keep",
        batchify_fn=_batch,
        num_workers=1,
    )


def _show_progress(done: int, total: int, text: str) -> None:
    """Redraw the bar, on a terminal only: a log should not fill with it."""
    if sys.stderr.isatty():
        filled = _BAR_WIDTH * done // total
        end = "\n" if done == total else ""
        sys.stderr.write(f"\r[{'#' * filled}{'.' * (_BAR_WIDTH - filled)}] {text}{end}")
        sys.stderr.flush()


def train(net: gluon.Block, epochs: int, batch_size: int, progress: Callable[[int, int, str], None]) -> list[float]:
    """Train a network on the training digits.

    Parameters
    ----------
    net : Block
        Initialized.
    epochs : int
        How often each image is seen.
    batch_size : int
    progress : callable of (steps done, steps in all, text)

    Returns
    -------
    list of float
        Mean loss of each step.
    """
    loader = _loader(True, batch_size)
    total = epochs * len(loader)
    schedule = mx.lr_scheduler.CosineScheduler(total, base_lr=_LEARNING_RATE, final_lr=_LEARNING_RATE / 100)
    trainer = gluon.Trainer(net.collect_params(), "adam", {"lr_scheduler": schedule})
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    losses: list[Any] = []
    for epoch in range(epochs):
        for images, labels in loader:
            with autograd.record():
                loss = loss_of(net(images), labels).mean()
            loss.backward()
            trainer.step(1)  # the loss is a mean already
            losses.append(loss)
            progress(len(losses), total, f"epoch {epoch + 1}/{epochs}")
        progress(len(losses), total, f"epoch {epoch + 1}/{epochs}, loss {float(losses[-1].item()):.4f}")
    return [float(loss.item()) for loss in losses]


def _predict(net: gluon.Block) -> tuple[Any, Any, Any]:
    """Images, labels and probabilities of the test digits, as NumPy arrays."""
    images, labels, probabilities = [], [], []
    for image, label in _loader(False, 256):
        images.append(image.asnumpy())
        labels.append(label.asnumpy())
        probabilities.append(npx.softmax(net(image), axis=-1).asnumpy())
    return onp.concatenate(images), onp.concatenate(labels), onp.concatenate(probabilities)


def _curve(losses: Sequence[float], left: int, top: int, width: int, height: int) -> list[str]:
    """The course of the loss, smoothed, on a logarithmic scale."""
    window = max(len(losses) // 100, 1)
    smooth = [sum(losses[i : i + window]) / window for i in range(max(len(losses) - window + 1, 1))]
    heights = onp.log10(onp.maximum(smooth, 1e-6))
    low, high = onp.floor(heights.min()), onp.ceil(heights.max())
    high = max(high, low + 1)
    parts = []
    for power in range(int(low), int(high) + 1):
        y = top + height * (high - power) / (high - low)
        parts.append(f'<line x1="{left}" y1="{y:.1f}" x2="{left + width}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g}</text>')
    points = " ".join(
        f"{left + width * i / max(len(heights) - 1, 1):.1f},{top + height * (high - h) / (high - low):.1f}"
        for i, h in enumerate(heights)
    )
    parts.append(f'<polyline points="{points}" fill="none" stroke="#1f77b4" stroke-width="1.5"/>')
    return parts


def _digit(image: Any, left: int, top: int, caption: str) -> list[str]:
    """An image, 8 pixels for each of its own, with a line of text below."""
    parts = []
    for (row, column), value in onp.ndenumerate(image):
        shade = round(255 * (1 - float(value)))
        parts.append(
            f'<rect x="{left + 8 * column}" y="{top + 8 * row}" width="8" height="8" '
            f'fill="rgb({shade},{shade},{shade})"/>'
        )
    parts.append(f'<text x="{left + 32}" y="{top + 80}" text-anchor="middle">{caption}</text>')
    return parts


def picture(losses: Sequence[float], images: Any, labels: Any, probabilities: Any) -> str:
    """A drawing of the loss and of the digits whose label got the lowest probability.

    Parameters
    ----------
    losses : sequence of float
        Of each step; at least one.
    images : numpy.ndarray, shape (n, 1, 8, 8)
        From 0 to 1.
    labels : numpy.ndarray, shape (n,)
    probabilities : numpy.ndarray, shape (n, 10)

    Returns
    -------
    str
        SVG text.
    """
    right = onp.take_along_axis(probabilities, labels[:, None], axis=1)[:, 0]
    worst = right.argsort()[:8]
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" width="760" height="420" font-family="sans-serif" font-size="12">',
        '<rect width="760" height="420" fill="white"/>',
        f'<text x="60" y="24" font-size="15">Loss of {len(losses)} steps</text>',
        *_curve(losses, 60, 40, 680, 220),
        '<text x="60" y="296" font-size="15">Hardest test digits: label, prediction and its probability</text>',
    ]
    for column, number in enumerate(worst):
        guess = int(probabilities[number].argmax())
        caption = f"{labels[number]}: {guess} ({probabilities[number, guess]:.0%})"
        parts += _digit(images[number, 0], 60 + 86 * column, 312, caption)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m mxnet.demo", description="Train a network on handwritten digits.")
    parser.add_argument("--epochs", type=int, default=20, help="how often each image is seen (default %(default)s)")
    parser.add_argument("--batch-size", type=int, default=64, help="images in one step (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed of all random numbers (default %(default)s)")
    parser.add_argument("--output", type=Path, default=Path("demo_output"), help="folder (default %(default)s)")
    chosen = parser.parse_args(arguments)
    size = len(Digits(train=True))
    if chosen.epochs < 1 or not 1 <= chosen.batch_size <= size:
        parser.error(f"--epochs must be at least 1 and --batch-size from 1 to {size}")
    return chosen


def main(arguments: Sequence[str] | None = None) -> float:
    """Run the demo.

    Parameters
    ----------
    arguments : sequence of str, optional
        Of the command line; the process's own by default.

    Returns
    -------
    float
        Accuracy on the test digits.

    Raises
    ------
    RuntimeError
        If the loaded network predicts otherwise than the saved one.
    """
    chosen = _arguments(arguments)
    mx.random.seed(chosen.seed)
    started = time.perf_counter()
    net = build()
    net.initialize(mx.init.Xavier())
    losses = train(net, chosen.epochs, chosen.batch_size, _show_progress)
    images, labels, probabilities = _predict(net)
    accuracy = float((probabilities.argmax(axis=1) == labels).mean())
    print(f"test accuracy: {accuracy:.4f}")
    print(f"trained for {chosen.epochs} epochs in {time.perf_counter() - started:.1f} s")

    chosen.output.mkdir(parents=True, exist_ok=True)
    file = chosen.output / "digits.safetensors"
    net.save_parameters(file)
    again = build()
    again.load_parameters(file)
    if not onp.array_equal(_predict(again)[2], probabilities):
        raise RuntimeError(f"the network loaded from {file} predicts otherwise than the one that was saved")
    print(f"parameters: {file} (loaded again, predictions are identical)")
    again.hybridize()
    first = np.array(images[:1])
    with autograd.predict_mode():
        scores = again(first)
    symbol, params = again.export(chosen.output / "digits")
    if not onp.array_equal(mx.graph.load(symbol, params)(first).asnumpy(), scores.asnumpy()):
        raise RuntimeError(f"the graph of {symbol} predicts otherwise than the network")
    print(f"graph: {symbol} (for any number of images; runs without Python, see examples/rust-serve)")
    drawing = chosen.output / "digits.svg"
    drawing.write_text(picture(losses, images, labels, probabilities), encoding="utf-8")
    print(f"picture: {drawing}")
    return accuracy


if __name__ == "__main__":
    main()
