"""Whole NumPy programs: each is one function over a module, run with mx.np and with NumPy on the same data.

`python benches/programs.py [word ...]` runs the programs whose name holds one of the words. They hold what single calls
do not show: temporaries, views that are written, loops of small calls, results that decide what comes next.
"""

from collections.abc import Callable
from typing import Any

import numpy
from _sides import OURS, Table

import mxnet as mx

Program = Callable[..., Any]
PROGRAMS: dict[str, tuple[Program, Callable[[numpy.random.Generator], tuple[Any, ...]]]] = {}


def program(data: Callable[[numpy.random.Generator], tuple[Any, ...]]) -> Callable[[Program], Program]:
    """Registers a program with the function that makes its data."""

    def register(function: Program) -> Program:
        PROGRAMS[function.__name__.replace("_", " ")] = (function, data)
        return function

    return register


def clusters(rng: numpy.random.Generator, n: int, dims: int) -> numpy.ndarray:
    return rng.normal(size=(n, dims)) + rng.integers(0, 5, (n, 1)) * 3


@program(lambda rng: (clusters(rng, 50_000, 8),))
def k_means(np, points):
    centres = points[:10].copy()
    for _ in range(5):
        distances = (points**2).sum(1)[:, None] - 2 * points @ centres.T + (centres**2).sum(1)
        nearest = distances.argmin(1)
        for k in range(10):
            centres[k] = points[nearest == k].mean(0)
    return centres


@program(lambda rng: (rng.normal(size=(100_000, 20)), rng.integers(0, 2, 100_000).astype("float64")))
def logistic_regression(np, x, y):
    w = np.zeros(20)
    for _ in range(10):
        p = 1 / (1 + np.exp(-(x @ w)))
        w -= 0.1 * (x.T @ (p - y)) / len(y)
    return w


@program(lambda rng: (rng.normal(size=(5_000, 100)),))
def principal_components(np, x):
    x = x - x.mean(0)
    _, vectors = np.linalg.eigh(x.T @ x / len(x))
    return np.abs(x @ vectors[:, -3:])


@program(lambda rng: (rng.uniform(size=(500, 500)),))
def heat_equation(np, u):
    u = u.copy()
    for _ in range(30):
        u[1:-1, 1:-1] += 0.1 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1])
    return u


@program(lambda rng: (rng.integers(0, 2, (800, 800)).astype("uint8"),))
def game_of_life(np, board):
    for _ in range(10):
        around = sum(np.roll(board, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
        board = ((around == 3) | ((board == 1) & (around == 2))).astype("uint8")
    return board


@program(lambda _: (numpy.linspace(-2, 1, 400), numpy.linspace(-1.5, 1.5, 400)))
def mandelbrot(np, x, y):
    c = x + 1j * y[:, None]
    z, steps = np.zeros_like(c), np.zeros(c.shape, dtype="int64")
    for _ in range(30):
        inside = np.abs(z) <= 2
        z[inside] = z[inside] ** 2 + c[inside]
        steps += inside
    return steps


@program(lambda rng: (rng.normal(size=(400, 3)), rng.uniform(size=400)))
def n_body(np, position, mass):
    velocity = np.zeros_like(position)
    for _ in range(5):
        apart = position[None] - position[:, None]
        cubed = ((apart**2).sum(-1) + 0.01) ** -1.5
        velocity = velocity + 0.01 * (apart * (mass * cubed)[:, :, None]).sum(1)
        position = position + 0.01 * velocity
    return position


@program(lambda rng: (rng.normal(size=(5_000, 250)),))
def option_prices(np, noise):
    paths = 100 * np.exp(np.cumsum(0.01 * noise - 0.00005, axis=1))
    asian = np.maximum(paths.mean(1) - 100, 0).mean()
    lookback = (paths.max(1) - paths[:, -1]).mean()
    barrier = np.where((paths > 120).any(1), 0, np.maximum(paths[:, -1] - 100, 0)).mean()
    return np.stack([asian, lookback, barrier, np.percentile(paths[:, -1], 5)])


@program(lambda rng: (rng.uniform(size=(512, 512)),))
def filter_by_frequency(np, picture):
    spectrum = np.fft.fftshift(np.fft.fft2(picture))
    y, x = np.ogrid[-256:256, -256:256]
    spectrum[x**2 + y**2 > 50**2] = 0
    return np.fft.ifft2(np.fft.ifftshift(spectrum)).real


@program(lambda rng: (clusters(rng, 1_500, 10), rng.integers(0, 5, 1_500)))
def nearest_neighbours(np, points, labels):
    squares = (points**2).sum(1)
    distances = squares[:, None] + squares - 2 * points @ points.T
    nearest = np.argpartition(distances, 7, axis=1)[:, :7]
    votes = (labels[nearest][:, :, None] == np.arange(5)).sum(1)
    return votes.argmax(1)


@program(lambda rng: (rng.uniform(0, 10, (200, 200)),))
def shortest_paths(np, distances):
    d = distances.copy()
    for k in range(200):
        np.minimum(d, d[:, k, None] + d[k], out=d)
    return d


@program(lambda rng: (rng.normal(size=(120, 120)) + 20 * numpy.eye(120), rng.normal(size=120)))
def gaussian_elimination(np, a, b):
    a, b, n = a.copy(), b.copy(), len(b)
    for i in range(n - 1):
        factors = a[i + 1 :, i] / a[i, i]
        a[i + 1 :] -= factors[:, None] * a[i]
        b[i + 1 :] -= factors * b[i]
    for i in range(n - 1, -1, -1):
        b[i] = (b[i] - a[i, i + 1 :] @ b[i + 1 :]) / a[i, i]
    return b


@program(lambda rng: (rng.integers(0, 256, (1_000, 1_000)).astype("uint8"),))
def equalize_histogram(np, picture):
    counts = np.bincount(picture.ravel(), minlength=256)
    below = np.cumsum(counts)
    table = ((below - below[0]) * 255 // (below[-1] - below[0])).astype("uint8")
    return table[picture]


@program(lambda rng: (rng.integers(0, 20_000, 200_000), rng.integers(0, 20_000, 200_000)))
def page_rank(np, source, target):
    degree = np.maximum(np.bincount(source, minlength=20_000), 1)
    rank = np.full(20_000, 1 / 20_000)
    for _ in range(10):
        rank = 0.15 / 20_000 + 0.85 * np.bincount(target, weights=(rank / degree)[source], minlength=20_000)
    return rank


@program(lambda rng: (rng.integers(0, 50_000, 100_000), rng.integers(0, 50_000, 50_000)))
def join_tables(np, left, right):
    keys, counts = np.unique(right, return_counts=True)
    at = np.minimum(np.searchsorted(keys, left), len(keys) - 1)
    matches = np.where(keys[at] == left, counts[at], 0)
    return np.sort(left[matches > 0])[::-1][:1000] + matches.sum()


@program(lambda rng: (rng.integers(0, 4, 300), rng.integers(0, 4, 300)))
def edit_distance(np, first, second):
    steps = np.arange(len(second) + 1)
    row = steps.copy()
    for i in range(len(first)):
        changed = row[:-1] + (second != first[i])
        new = np.concatenate([np.array([i + 1]), np.minimum(changed, row[1:] + 1)])
        row = np.minimum.accumulate(new - steps) + steps
    return row[-1]


@program(lambda rng: (rng.normal(size=(300, 2)),))
def kalman_filter(np, measured):
    f = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0], [0, 0, 0, 1.0]])
    h = np.eye(2, 4)
    x, p, q, r = np.zeros(4), np.eye(4), 0.01 * np.eye(4), np.eye(2)
    for i in range(len(measured)):
        x, p = f @ x, f @ p @ f.T + q
        gain = p @ h.T @ np.linalg.inv(h @ p @ h.T + r)
        x = x + gain @ (measured[i] - h @ x)
        p = (np.eye(4) - gain @ h) @ p
    return x


@program(lambda rng: (rng.uniform(size=(300, 400, 3)),))
def resize_picture(np, picture):
    y, x = np.linspace(0, 298.999, 600), np.linspace(0, 398.999, 800)
    top, left = y.astype("int64"), x.astype("int64")
    fy, fx = (y - top)[:, None, None], (x - left)[None, :, None]
    upper = picture[top][:, left] * (1 - fx) + picture[top][:, left + 1] * fx
    lower = picture[top + 1][:, left] * (1 - fx) + picture[top + 1][:, left + 1] * fx
    return upper * (1 - fy) + lower * fy


@program(lambda _: ())
def sieve_of_primes(np):
    is_prime = np.ones(1_000_000, dtype="bool")
    is_prime[:2] = False
    for k in range(2, 1000):
        if is_prime[k]:
            is_prime[k * k :: k] = False
    return np.nonzero(is_prime)[0]


@program(lambda rng: (rng.normal(size=(8, 64, 32)), rng.normal(size=(32, 96))))
def attention(np, x, weights):
    q, k, v = np.split(x @ weights, 3, axis=-1)
    scores = np.einsum("bqd,bkd->bqk", q, k) / 32**0.5
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("bqk,bkd->bqd", scores / scores.sum(-1, keepdims=True), v)


@program(lambda rng: (rng.normal(size=200_000).cumsum(),))
def rolling_statistics(np, series):
    windows = np.lib.stride_tricks.sliding_window_view(series, 20)
    mean, deviation = windows.mean(-1), windows.std(-1)
    score = (series[19:] - mean) / np.where(deviation == 0, 1, deviation)
    return np.diff(np.sign(score)).nonzero()[0]


@program(lambda rng: (rng.uniform(size=(256, 256)), rng.uniform(size=(7, 7))))
def convolution(np, picture, kernel):
    windows = np.lib.stride_tricks.sliding_window_view(picture, (7, 7))
    return np.tensordot(windows, kernel, 2)


@program(lambda rng: (rng.normal(size=(2_000, 50)), rng.normal(size=2_000)))
def lasso_by_coordinates(np, x, y):
    w, squares = np.zeros(50), (x**2).sum(0)
    rest = y.copy()
    for _ in range(5):
        for j in range(50):
            rest += x[:, j] * w[j]
            rho = x[:, j] @ rest
            w[j] = np.sign(rho) * np.maximum(np.abs(rho) - 20, 0) / squares[j]
            rest -= x[:, j] * w[j]
    return w


def main() -> None:
    table = Table("NumPy programs", [OURS, "NumPy"])
    with mx.util.np_default_dtype(True):
        for name, (function, make) in PROGRAMS.items():
            data = make(numpy.random.default_rng(0))
            ours = [mx.np.array(x, dtype=x.dtype) for x in data]
            sides = {
                OURS: lambda function=function, ours=ours: function(mx.np, *ours),
                "NumPy": lambda function=function, data=data: function(numpy, *data),
            }
            table.add(name, sides, rtol=1e-6, turns=7)


if __name__ == "__main__":
    main()
