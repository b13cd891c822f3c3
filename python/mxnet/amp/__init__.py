"""Automatic mixed precision: products in float16 or bfloat16, sensitive operators in float32, weights in float32."""

from mxnet._autocast import autocast
from mxnet.amp.amp import (
    convert_hybrid_block,
    init,
    init_trainer,
    list_fp32_ops,
    list_lp16_fp32_ops,
    list_lp16_ops,
    list_widest_type_cast,
    scale_loss,
    unscale,
)
from mxnet.amp.loss_scaler import LossScaler

__all__ = [
    "LossScaler",
    "autocast",
    "convert_hybrid_block",
    "init",
    "init_trainer",
    "list_fp32_ops",
    "list_lp16_fp32_ops",
    "list_lp16_ops",
    "list_widest_type_cast",
    "scale_loss",
    "unscale",
]
