"""Gradient compression, element by element."""

import numpy as onp


def quantized(kind, threshold, gradient, residual):
    """The value that each element is sent as. Changes `residual`. All of them are float32."""
    out = onp.zeros_like(gradient)
    for at in onp.ndindex(gradient.shape):
        residual[at] += gradient[at]
        if kind == "1bit":
            out[at] = 1 if residual[at] > onp.float32(threshold) else -1
        elif residual[at] >= onp.float32(threshold):
            out[at] = threshold
        elif residual[at] <= -onp.float32(threshold):
            out[at] = -threshold
        residual[at] -= out[at]
    return out
