"""Losses of classifications."""

from __future__ import annotations

from typing import Any

from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.onnx._importer.table import Call, operator


def _likelihood_loss(call: Call, log_probability: Any, label: Any, weight: Any) -> Any:
    """Negative log-likelihoods, (n, c, ...) and labels (n, ...), weighted by class and reduced as the node says."""
    ignored = call["ignore_index"]
    is_used = None if ignored is None else label != ignored
    index = label if is_used is None else np.where(is_used, label, np.zeros_like(label))
    loss = -np.take_along_axis(log_probability, np.expand_dims(index, 1).astype("int64"), axis=1)[:, 0]
    factor = None if weight is None else np.take(weight, index)
    if is_used is not None:
        factor = is_used.astype(loss.dtype) if factor is None else np.where(is_used, factor, np.zeros_like(factor))
    if factor is not None:
        loss = loss * factor
    reduction = call.choice("reduction", "none", "mean", "sum")
    if reduction == "none":
        return loss
    if reduction == "sum":
        return np.sum(loss)
    return np.mean(loss) if factor is None else np.sum(loss) / np.sum(factor)


@operator("NegativeLogLikelihoodLoss")
def negative_log_likelihood(call: Call, log_probability: Any, label: Any, weight: Any = None) -> Any:
    return _likelihood_loss(call, log_probability, label, weight)


@operator("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy(call: Call, scores: Any, label: Any, weight: Any = None) -> Any:
    log_probability = npx.log_softmax(scores, axis=1)
    return _likelihood_loss(call, log_probability, label, weight), log_probability
