"""Train a small network on points of the plane and draw what it has learnt as an SVG image.

``python examples/plane.py`` writes ``docs/images/plane.svg``, the picture of the README. The network sees 512 points;
the class of a point says whether its two coordinates have the same sign.
"""

import argparse
from pathlib import Path

from mxnet import autograd, gluon, np, npx
from mxnet.gluon import nn

CELLS = 48  # of the drawing, along each axis
PIXELS = 8  # of a cell
LEVELS = 12  # of colour
COLOURS = ((214, 96, 77), (247, 247, 247), (67, 147, 195))  # probability 0, 1/2, 1
SHOWN = 160  # points that are drawn


def points(count):
    """Points of shape `(count, 2)` in the square from -1 to 1, and their classes of shape `(count,)`."""
    x = np.random.uniform(-1, 1, (count, 2))
    return x, (x[:, 0] * x[:, 1] > 0).astype("float32")


def train(x, y, steps=300):
    """A network of two hidden layers, trained on all points at once."""
    net = nn.HybridSequential()
    net.add(nn.Dense(32, activation="relu"), nn.Dense(32, activation="relu"), nn.Dense(1))
    net.initialize()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01})
    loss_function = gluon.loss.SigmoidBCELoss()
    for _ in range(steps):
        with autograd.record():
            loss = loss_function(net(x), y).mean()
        loss.backward()
        trainer.step(1)
    return net


def colour(probability):
    """A colour between the three given ones, as `#rrggbb`; `probability` is from 0 to 1."""
    position = probability * 2
    first = min(int(position), 1)
    share = position - first
    mixed = (a + share * (b - a) for a, b in zip(COLOURS[first], COLOURS[first + 1], strict=True))
    return "#" + "".join(f"{round(part):02x}" for part in mixed)


def drawing(net, x, y):
    """An SVG image: the probability in every cell of the square, and some of the points."""
    centres = (np.arange(CELLS) + 0.5) * (2 / CELLS) - 1
    across, down = np.meshgrid(centres, -centres)
    grid = np.stack([across.reshape(-1), down.reshape(-1)], axis=1)
    probability = npx.sigmoid(net(grid)).reshape(CELLS, CELLS)
    levels = np.round(probability * LEVELS).astype("int32").tolist()
    size = CELLS * PIXELS
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{size}" height="{size}" viewBox="0 0 {size} {size}">']
    for row, values in enumerate(levels):
        start = 0
        for column in range(1, CELLS + 1):
            if column == CELLS or values[column] != values[start]:  # one rectangle for each run of equal levels
                box = f'x="{start * PIXELS}" y="{row * PIXELS}" width="{(column - start) * PIXELS}" height="{PIXELS}"'
                lines.append(f'<rect {box} fill="{colour(values[start] / LEVELS)}"/>')
                start = column
    for (across, up), label in zip(x[:SHOWN].tolist(), y[:SHOWN].tolist(), strict=True):
        place = f'cx="{(across + 1) / 2 * size:.1f}" cy="{(1 - up) / 2 * size:.1f}"'
        lines.append(f'<circle {place} r="3.5" fill="{colour(label)}" stroke="#333"/>')
    return "\n".join([*lines, "</svg>", ""])


def main(arguments=None):
    """Train, draw and print the accuracy on new points."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path(__file__).parents[1] / "docs/images/plane.svg")
    options = parser.parse_args(arguments)
    np.random.seed(7)
    x, y = points(512)
    net = train(x, y)
    options.output.write_text(drawing(net, x, y))
    new_x, new_y = points(2000)
    accuracy = float(((net(new_x)[:, 0] > 0) == (new_y > 0)).astype("float32").mean())
    print(f"accuracy on new points: {accuracy:.1%}")
    return accuracy


if __name__ == "__main__":
    main()
