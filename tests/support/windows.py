"""Slow float64 references of network operators: loops over positions, nothing clever."""

import itertools

import numpy as np


def convolution(x, w, bias=None, stride=None, dilate=None, pad=None, groups=1):
    """Cross-correlation of (n, c, *spatial) data with (o, c / groups, *kernel) weights."""
    spatial = x.ndim - 2
    stride, dilate, pad = stride or (1,) * spatial, dilate or (1,) * spatial, pad or (0,) * spatial
    padded = np.pad(x.astype(np.float64), [(0, 0), (0, 0), *[(p, p) for p in pad]])
    kernel = w.shape[2:]
    sizes = [(padded.shape[2 + i] - dilate[i] * (kernel[i] - 1) - 1) // stride[i] + 1 for i in range(spatial)]
    y = np.zeros((x.shape[0], w.shape[0], *sizes))
    outputs, inputs = w.shape[0] // groups, w.shape[1]
    for o in range(w.shape[0]):
        group = o // outputs
        channels = padded[:, group * inputs : (group + 1) * inputs]
        for at in itertools.product(*map(range, sizes)):
            window = tuple(
                slice(at[i] * stride[i], at[i] * stride[i] + dilate[i] * (kernel[i] - 1) + 1, dilate[i])
                for i in range(spatial)
            )
            y[(slice(None), o, *at)] = (
                (channels[(slice(None), slice(None), *window)] * w[o]).reshape(x.shape[0], -1).sum(1)
            )
    if bias is not None:
        y += np.reshape(bias, (-1, *[1] * spatial))
    return y


def transposed_convolution(x, w, stride, pad, adj, dilate, groups=1):
    """Every element of the data adds its multiple of the kernel to the result."""
    spatial = x.ndim - 2
    kernel = w.shape[2:]
    full = [(x.shape[2 + i] - 1) * stride[i] + dilate[i] * (kernel[i] - 1) + 1 + adj[i] for i in range(spatial)]
    outputs, inputs = w.shape[1], x.shape[1] // groups
    y = np.zeros((x.shape[0], outputs * groups, *full))
    for c in range(x.shape[1]):
        group = c // inputs
        for at in itertools.product(*map(range, x.shape[2:])):
            window = tuple(
                slice(at[i] * stride[i], at[i] * stride[i] + dilate[i] * (kernel[i] - 1) + 1, dilate[i])
                for i in range(spatial)
            )
            block = (slice(None), slice(group * outputs, (group + 1) * outputs), *window)
            y[block] += x[(slice(None), c, *at)].reshape(-1, *[1] * (spatial + 1)) * w[c][None]
    cut = tuple(slice(pad[i], full[i] - pad[i]) for i in range(spatial))
    return y[(slice(None), slice(None), *cut)]


def pooling(x, kernel, stride, pad, kind, convention="valid", include=True, p=2):
    """Windows of (n, c, *spatial) data, one at a time."""
    spatial = x.ndim - 2
    sizes = []
    for i in range(spatial):
        span = x.shape[2 + i] + 2 * pad[i] - kernel[i]
        if convention == "same":
            sizes.append(-(-(x.shape[2 + i] + 2 * pad[i]) // stride[i]))
        elif convention == "full":
            sizes.append(-(-span // stride[i]) + 1)
        else:
            sizes.append(span // stride[i] + 1)
    y = np.zeros((*x.shape[:2], *sizes))
    for at in itertools.product(*map(range, sizes)):
        window, counted = [], 1
        for i in range(spatial):
            start = at[i] * stride[i] - pad[i]
            stop = start + kernel[i]
            counted *= max(min(stop, x.shape[2 + i] + pad[i]) - start, 0)
            window.append(slice(max(start, 0), max(min(stop, x.shape[2 + i]), 0)))
        part = x[(slice(None), slice(None), *window)].reshape(*x.shape[:2], -1).astype(np.float64)
        if kind == "max":
            value = part.max(-1) if part.size else -np.inf
        elif kind == "sum":
            value = part.sum(-1)
        elif kind == "lp":
            value = (np.abs(part) ** p).sum(-1) ** (1 / p)
        else:
            value = part.sum(-1) / max(counted if include else part.shape[-1], 1)
        y[(slice(None), slice(None), *at)] = value
    return y
