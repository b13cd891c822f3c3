"""Layers as float64 formulas in NumPy, written from their definitions, and the same layers in PyTorch.

A formula takes the input and a dictionary with the layer's parameters. Channels are axis 1; `channels_last` wraps a
formula for the other layouts.
"""

import itertools
import math

import numpy as onp
import scipy.special


def each(value, count):
    return (value,) * count if isinstance(value, int) else tuple(value)


def windows(size, strides, dilation, counts):
    """For each tap of a window: its place, and the slices of the padded axes that it meets."""
    for tap in itertools.product(*map(range, size)):
        yield (
            tap,
            tuple(
                slice(t * d, t * d + s * (n - 1) + 1, s)
                for t, d, s, n in zip(tap, dilation, strides, counts, strict=True)
            ),
        )


def convolution(axes, strides=1, padding=0, dilation=1, groups=1):
    """Source: V. Dumoulin, F. Visin, "A guide to convolution arithmetic for deep learning", 2016."""
    strides, padding, dilation = each(strides, axes), each(padding, axes), each(dilation, axes)

    def formula(x, p):
        w = p["weight"]
        x = onp.pad(x, [(0, 0), (0, 0), *((n, n) for n in padding)])
        spans = [d * (k - 1) + 1 for d, k in zip(dilation, w.shape[2:], strict=True)]
        counts = [(n - k) // s + 1 for n, k, s in zip(x.shape[2:], spans, strides, strict=True)]
        y = onp.zeros((len(x), len(w), *counts))
        inputs, outputs = x.shape[1] // groups, len(w) // groups
        for tap, place in windows(w.shape[2:], strides, dilation, counts):
            for g in range(groups):
                filters = slice(g * outputs, (g + 1) * outputs)
                seen = x[(slice(None), slice(g * inputs, (g + 1) * inputs), *place)]
                y[:, filters] += onp.einsum("oi,ni...->no...", w[(filters, slice(None), *tap)], seen)
        return y + p["bias"].reshape(-1, *[1] * axes) if "bias" in p else y

    return formula


def transposed(axes, strides=1, padding=0, output_padding=0, dilation=1, groups=1):
    """Each element of the data is spread over a window of the result."""
    strides, padding, dilation = each(strides, axes), each(padding, axes), each(dilation, axes)
    output_padding = each(output_padding, axes)

    def formula(x, p):
        w = p["weight"]
        inputs, outputs = x.shape[1] // groups, w.shape[1]
        wide = [
            (n - 1) * s + d * (k - 1) + 1 + a
            for n, s, d, k, a in zip(x.shape[2:], strides, dilation, w.shape[2:], output_padding, strict=True)
        ]
        y = onp.zeros((len(x), outputs * groups, *wide))
        for tap, place in windows(w.shape[2:], strides, dilation, x.shape[2:]):
            for g in range(groups):
                data = slice(g * inputs, (g + 1) * inputs)
                y[(slice(None), slice(g * outputs, (g + 1) * outputs), *place)] += onp.einsum(
                    "io,ni...->no...", w[(data, slice(None), *tap)], x[:, data]
                )
        y = y[(slice(None), slice(None), *(slice(n, size - n) for n, size in zip(padding, wide, strict=True)))]
        return y + p["bias"].reshape(-1, *[1] * axes) if "bias" in p else y

    return formula


def pooling(kind, size, strides, padding=0, ceil_mode=False, count_include_pad=True):
    axes = len(size)
    padding = each(padding, axes)

    def formula(x, p):
        fraction = math.ceil if ceil_mode else math.floor
        counts = [
            fraction((n + 2 * q - k) / s) + 1 for n, q, k, s in zip(x.shape[2:], padding, size, strides, strict=True)
        ]
        y = onp.zeros((*x.shape[:2], *counts))
        for place in itertools.product(*map(range, counts)):
            first = [i * s - q for i, s, q in zip(place, strides, padding, strict=True)]
            inside = tuple(slice(max(f, 0), min(f + k, n)) for f, k, n in zip(first, size, x.shape[2:], strict=True))
            seen = x[(..., *inside)].reshape(*x.shape[:2], -1)
            # The padding counts, what lies behind it does not.
            sides = [min(f + k, n + q) - f for f, k, n, q in zip(first, size, x.shape[2:], padding, strict=True)]
            count = math.prod(sides) if count_include_pad else seen.shape[-1]
            y[(..., *place)] = seen.max(-1) if kind == "max" else seen.sum(-1) / count
        return y

    return formula


def global_pooling(kind):
    return lambda x, p: getattr(x, kind)(axis=tuple(range(2, x.ndim)), keepdims=True)


def normalised(x, axes, epsilon):
    return (x - x.mean(axes, keepdims=True)) / onp.sqrt(x.var(axes, keepdims=True) + epsilon)


def scaled(y, p, axis):
    shape = [1] * y.ndim
    shape[axis] = -1
    return y * p["gamma"].reshape(shape) + p["beta"].reshape(shape)


def batch_norm(axis=1, epsilon=1e-5):
    return lambda x, p: scaled(normalised(x, tuple(a for a in range(x.ndim) if a != axis % x.ndim), epsilon), p, axis)


def instance_norm(axis=1, epsilon=1e-5):
    return lambda x, p: scaled(
        normalised(x, tuple(a for a in range(1, x.ndim) if a != axis % x.ndim), epsilon), p, axis
    )


def layer_norm(axis=-1, epsilon=1e-5):
    return lambda x, p: scaled(normalised(x, axis, epsilon), p, axis)


def group_norm(groups, epsilon=1e-5):
    def formula(x, p):
        parts = x.reshape(len(x), groups, -1)
        return scaled(normalised(parts, -1, epsilon).reshape(x.shape), p, 1)

    return formula


def softplus(x):
    return onp.logaddexp(0, x)


def elementwise(function):
    return lambda x, p: function(x)


def gelu(x):
    return x * scipy.special.ndtr(x)


def gelu_tanh(x):
    return x / 2 * (1 + onp.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def selu(x):
    return SELU_SCALE * onp.where(x > 0, x, SELU_ALPHA * onp.expm1(x))


def dense(activation=None, flatten=True):
    def formula(x, p):
        y = (x.reshape(len(x), -1) if flatten else x) @ p["weight"].T
        y = y + p["bias"] if "bias" in p else y
        return y if activation is None else activation(y)

    return formula


def attention(heads, is_causal=False):
    """Source: A. Vaswani et al., "Attention Is All You Need", 2017."""

    def formula(x, p):
        n, length, _ = x.shape
        project = {
            name: (x @ p[f"{name}.weight"].T + p[f"{name}.bias"]).reshape(n, length, heads, -1).swapaxes(1, 2)
            for name in ("query", "key", "value")
        }
        scores = project["query"] @ project["key"].swapaxes(2, 3) / math.sqrt(project["query"].shape[-1])
        if is_causal:
            scores = onp.where(onp.tri(length, dtype=bool), scores, -onp.inf)
        found = scipy.special.softmax(scores, -1) @ project["value"]
        return found.swapaxes(1, 2).reshape(n, length, -1) @ p["output.weight"].T + p["output.bias"]

    return formula


def bilinear(image, y, x):
    """The value of an image (c, h, w) between its pixels; 0 outside."""
    found = onp.zeros(len(image))
    for row, column in itertools.product((math.floor(y), math.floor(y) + 1), (math.floor(x), math.floor(x) + 1)):
        if 0 <= row < image.shape[1] and 0 <= column < image.shape[2]:
            found = found + (1 - abs(y - row)) * (1 - abs(x - column)) * image[:, row, column]
    return found


def deformable(modulated, strides, padding):
    """Taps that another convolution moves and, if `modulated`, weighs.

    Sources: J. Dai et al., "Deformable Convolutional Networks", 2017; X. Zhu et al., "Deformable ConvNets v2", 2019.
    """

    def formula(x, p):
        w, (kh, kw) = p["deformable_conv_weight"], p["deformable_conv_weight"].shape[2:]
        taps = kh * kw
        moves = convolution(2, strides, padding)(x, {"weight": p["offset_weight"], "bias": p["offset_bias"]})
        y = onp.zeros((len(x), len(w), *moves.shape[2:]))
        for n, i, j, tap in onp.ndindex(len(x), *moves.shape[2:], taps):
            r, c = divmod(tap, kw)
            down, right = moves[n, 2 * tap, i, j], moves[n, 2 * tap + 1, i, j]
            row, column = i * strides - padding + r + down, j * strides - padding + c + right
            if modulated:
                factor = 2 * scipy.special.expit(moves[n, 2 * taps + tap, i, j])
            else:  # as MXNet 2: nothing fades out, and the last pixels extend by one
                factor = float(0 <= row < x.shape[2] and 0 <= column < x.shape[3])
                row, column = min(row, x.shape[2] - 1), min(column, x.shape[3] - 1)
            seen = bilinear(x[n], row, column)
            y[n, :, i, j] += factor * (w[:, :, r, c] @ seen)
        return y + p["deformable_conv_bias"].reshape(-1, 1, 1)

    return formula


def rnn_step(activation):
    return lambda x, h, c: (activation(x + h), c)


def lstm_step(x, h, c):
    i, f, g, o = onp.split(x + h, 4, axis=1)
    c = scipy.special.expit(f) * c + scipy.special.expit(i) * onp.tanh(g)
    return scipy.special.expit(o) * onp.tanh(c), c


def gru_step(hidden):
    def step(x, h, c):
        (xr, xz, xn), (hr, hz, hn) = onp.split(x, 3, axis=1), onp.split(h, 3, axis=1)
        z = scipy.special.expit(xz + hz)
        h = (1 - z) * onp.tanh(xn + scipy.special.expit(xr + hr) * hn) + z * c
        return h, h

    return step


def recurrent(step, hidden, layers, directions, layout="TNC"):
    """`step` maps what the input gives, what the last output gives and the last memory to an output and a memory."""

    def formula(x, p):
        x = x if layout == "TNC" else x.swapaxes(0, 1)
        for layer in range(layers):
            found = []
            for direction in "lr"[:directions]:
                name = f"{direction}{layer}_"
                steps = x if direction == "l" else x[::-1]
                h = memory = onp.zeros((x.shape[1], hidden))
                outputs = []
                for item in steps:
                    h, memory = step(
                        item @ p[f"{name}i2h_weight"].T + p[f"{name}i2h_bias"],
                        h @ p[f"{name}h2h_weight"].T + p[f"{name}h2h_bias"],
                        memory,
                    )
                    outputs.append(h)
                found.append(onp.stack(outputs if direction == "l" else outputs[::-1]))
            x = onp.concatenate(found, axis=-1)
        return x if layout == "TNC" else x.swapaxes(0, 1)

    return formula


def reflection(left, right, top, bottom):
    return lambda x, p: onp.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), mode="reflect")


def pixel_shuffle(factors):
    def formula(x, p):
        axes = len(factors)
        sizes, channels = x.shape[2:], x.shape[1] // math.prod(factors)
        y = onp.zeros((len(x), channels, *(n * f for n, f in zip(sizes, factors, strict=True))))
        for number, place in enumerate(itertools.product(*map(range, factors))):
            there = tuple(slice(i, None, f) for i, f in zip(place, factors, strict=True))
            y[(slice(None), slice(None), *there)] = x[:, number :: math.prod(factors)]
        assert y.ndim == axes + 2
        return y

    return formula


def channels_last(formula):
    """The formula for data and weights whose channels are the last axis."""

    def moved(x, p):
        p = {name: onp.moveaxis(v, -1, 1) if name == "weight" else v for name, v in p.items()}
        return onp.moveaxis(formula(onp.moveaxis(x, -1, 1), p), 1, -1)

    return moved
