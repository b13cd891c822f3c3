"""Random numbers. A node with a seed gives the same numbers at each run; others draw from the global stream."""

from __future__ import annotations

from typing import Any

import numpy

from mxnet import numpy as np
from mxnet.base import dtype_name
from mxnet.onnx._importer.table import Call, operator


def _source(call: Call) -> Any:
    """What draws: a generator with the node's seed, or the global functions."""
    seed = call["seed"]
    if seed is None:
        return np.random
    return np.random.default_rng(int(numpy.float32(seed).view(numpy.uint32)))


def _dtype(call: Call, like: Any = None) -> str:
    if call["dtype"] is not None:
        return call.dtype(call["dtype"])
    return "float32" if like is None else dtype_name(like.dtype)


def _drawn(call: Call, shape: Any, dtype: str) -> Any:
    source = _source(call)
    if "Normal" in call.op_type:
        found = source.normal(call["mean"], call["scale"], tuple(shape))
    else:
        found = source.uniform(call["low"], call["high"], tuple(shape))
    return found.astype(dtype)


@operator("RandomNormal", "RandomUniform")
def random_of_shape(call: Call) -> Any:
    return _drawn(call, call["shape"], _dtype(call))


@operator("RandomNormalLike", "RandomUniformLike")
def random_like(call: Call, like: Any) -> Any:
    return _drawn(call, like.shape, _dtype(call, like))


@operator("Bernoulli")
def bernoulli(call: Call, probability: Any) -> Any:
    draws = _source(call).uniform(0.0, 1.0, tuple(probability.shape))
    return (draws < probability).astype(_dtype(call, probability))


@operator("Multinomial")
def multinomial(call: Call, logits: Any) -> Any:
    """Classes, (n, sample_size), with probabilities that are proportional to the exponentials of (n, classes)."""
    # The largest of logits with Gumbel noise is a class with its probability.
    shape = (logits.shape[0], call["sample_size"], logits.shape[1])
    draws = np.maximum(_source(call).uniform(0.0, 1.0, shape), 1e-30)
    noise = -np.log(-np.log(draws))
    return np.argmax(np.expand_dims(logits, 1) + noise, axis=-1).astype(call.dtype(call["dtype"]))
