"""Attention by the fused operator of `npx`. What it does not compute is left to ONNX's function body."""

from __future__ import annotations

import math
from typing import Any

from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.base import dtype_name
from mxnet.onnx._importer.table import Call, operator


def _is_plain(call: Call, inputs: tuple[bool, ...]) -> bool:
    """Whether scores are neither capped, limited to a window nor returned, and all keys count."""
    has_lengths = len(inputs) > 6 and inputs[6]
    windows = (call["left_window_size"], call["right_window_size"])
    return not call["softcap"] and not call.uses(3) and not has_lengths and set(windows) <= {None, -1}


@operator("Attention", suits=_is_plain)
def attention(
    call: Call, q: Any, k: Any, v: Any, mask: Any = None, past_key: Any = None, past_value: Any = None, *_: Any
) -> Any:
    """Queries (n, heads, l, d), keys and values (n, heads, s, d), or three axes with all heads in the last."""
    is_joined = q.ndim == 3
    if is_joined:
        q = _split_heads(q, call["q_num_heads"])
        k, v = (_split_heads(x, call["kv_num_heads"]) for x in (k, v))
    num_past = 0
    if past_key is not None:
        num_past = past_key.shape[2]
        k, v = np.concatenate([past_key, k], axis=2), np.concatenate([past_value, v], axis=2)
    present = k, v
    groups = q.shape[1] // k.shape[1]
    if groups > 1:
        k, v = np.repeat(k, groups, axis=1), np.repeat(v, groups, axis=1)
    if call["scale"] is not None:
        q = q * (call["scale"] * math.sqrt(q.shape[-1]))  # the operator divides by the root of d
    if mask is not None and mask.shape[-1] < k.shape[2]:
        # Keys behind the end of the mask are not attended to.
        fill = False if dtype_name(mask.dtype) == "bool" else -float("inf")
        widths = [(0, 0)] * (mask.ndim - 1) + [(0, k.shape[2] - mask.shape[-1])]
        mask = np.pad(mask, widths, constant_values=fill)
    is_causal = bool(call["is_causal"])
    if is_causal and (mask is not None or num_past):
        # Query i is number `num_past + i` of the sequence.
        allowed = np.arange(k.shape[2]) <= np.expand_dims(np.arange(q.shape[2]), 1) + num_past
        if mask is None:
            mask = allowed
        elif dtype_name(mask.dtype) == "bool":
            mask = np.logical_and(mask, allowed)
        else:
            mask = np.where(allowed, mask, np.full((), -float("inf"), dtype=dtype_name(mask.dtype)))
        is_causal = False
    y = npx.scaled_dot_product_attention(q, k, v, mask, is_causal=is_causal)
    if is_joined:
        y = np.swapaxes(y, 1, 2)
        y = y.reshape((*y.shape[:2], -1))
    return y, *present


def _split_heads(x: Any, num_heads: int) -> Any:
    # (n, l, heads * d) -> (n, heads, l, d)
    return np.swapaxes(x.reshape((*x.shape[:2], num_heads, -1)), 1, 2)
