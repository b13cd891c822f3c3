"""Operators of neural networks beyond NumPy's interface."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from mxnet import _core
from mxnet._renamed import old_attribute as _old_attribute
from mxnet._renamed import removed as _removed
from mxnet.device import Device as Device
from mxnet.device import cpu as cpu
from mxnet.device import current_device as current_device
from mxnet.device import gpu as gpu
from mxnet.device import gpu_memory_info as gpu_memory_info
from mxnet.device import num_gpus as num_gpus
from mxnet.dlpack import from_dlpack as from_dlpack
from mxnet.dlpack import from_numpy as from_numpy
from mxnet.dlpack import to_dlpack_for_read as to_dlpack_for_read
from mxnet.dlpack import to_dlpack_for_write as to_dlpack_for_write
from mxnet.engine import wait_all as waitall
from mxnet.numpy_extension import control_flow as control_flow
from mxnet.numpy_extension import random as random
from mxnet.numpy_extension._arithmetic import add_n as add_n
from mxnet.numpy_extension._arithmetic import batch_norm_with_relu as batch_norm_with_relu
from mxnet.numpy_extension._arithmetic import broadcast_greater as broadcast_greater
from mxnet.numpy_extension._arithmetic import constraint_check as constraint_check
from mxnet.numpy_extension._arithmetic import norm as norm
from mxnet.numpy_extension._arithmetic import sync_batch_norm as sync_batch_norm
from mxnet.numpy_extension._attention import interleaved_matmul_encdec_qk as interleaved_matmul_encdec_qk
from mxnet.numpy_extension._attention import interleaved_matmul_encdec_valatt as interleaved_matmul_encdec_valatt
from mxnet.numpy_extension._attention import interleaved_matmul_selfatt_qk as interleaved_matmul_selfatt_qk
from mxnet.numpy_extension._attention import interleaved_matmul_selfatt_valatt as interleaved_matmul_selfatt_valatt
from mxnet.numpy_extension._attention import sldwin_atten_mask_like as sldwin_atten_mask_like
from mxnet.numpy_extension._checkpoint import checkpoint as checkpoint
from mxnet.numpy_extension._control_flow import cond as cond
from mxnet.numpy_extension._control_flow import foreach as foreach
from mxnet.numpy_extension._control_flow import while_loop as while_loop
from mxnet.numpy_extension._detection import bipartite_matching as bipartite_matching
from mxnet.numpy_extension._detection import box_decode as box_decode
from mxnet.numpy_extension._detection import box_encode as box_encode
from mxnet.numpy_extension._detection import multibox_detection as multibox_detection
from mxnet.numpy_extension._detection import multibox_prior as multibox_prior
from mxnet.numpy_extension._detection import multibox_target as multibox_target
from mxnet.numpy_extension._files import load as load
from mxnet.numpy_extension._files import save as save
from mxnet.numpy_extension._files import savez as savez
from mxnet.numpy_extension._like import normal_like as normal_like
from mxnet.numpy_extension._like import uniform_like as uniform_like
from mxnet.numpy_extension._padding import pad as pad
from mxnet.numpy_extension._poisson import scalar_poisson as scalar_poisson
from mxnet.numpy_extension._poisson import tensor_poisson as tensor_poisson
from mxnet.numpy_extension._quantization import contrib_quantize as contrib_quantize
from mxnet.numpy_extension._quantization import contrib_quantize_v2 as contrib_quantize_v2
from mxnet.numpy_extension._quantization import quantized_act as quantized_act
from mxnet.numpy_extension._quantization import quantized_conv as quantized_conv
from mxnet.numpy_extension._quantization import quantized_elemwise_add as quantized_elemwise_add
from mxnet.numpy_extension._quantization import quantized_elemwise_mul as quantized_elemwise_mul
from mxnet.numpy_extension._quantization import quantized_embedding as quantized_embedding
from mxnet.numpy_extension._quantization import quantized_flatten as quantized_flatten
from mxnet.numpy_extension._quantization import quantized_fully_connected as quantized_fully_connected
from mxnet.numpy_extension._quantization import quantized_pooling as quantized_pooling
from mxnet.numpy_extension._quantization import quantized_reshape as quantized_reshape
from mxnet.numpy_extension._quantization import quantized_transpose as quantized_transpose
from mxnet.numpy_extension._quantization import requantize as requantize
from mxnet.numpy_extension._regions import bilinear_resize as bilinear_resize
from mxnet.numpy_extension._regions import correlation as correlation
from mxnet.numpy_extension._regions import roi_pooling as roi_pooling
from mxnet.numpy_extension._sampling import bilinear_sampler as bilinear_sampler
from mxnet.numpy_extension._sampling import deformable_convolution as deformable_convolution
from mxnet.numpy_extension._sampling import grid_generator as grid_generator
from mxnet.numpy_extension._sampling import modulated_deformable_convolution as modulated_deformable_convolution
from mxnet.numpy_extension._sampling import spatial_transformer as spatial_transformer
from mxnet.numpy_extension._shapes import cast as cast
from mxnet.numpy_extension._shapes import reshape as reshape
from mxnet.numpy_extension._shapes import slice as slice
from mxnet.numpy_extension._shapes import slice_channel as slice_channel
from mxnet.numpy_extension._shapes import stop_gradient as stop_gradient
from mxnet.util import get_cuda_compute_capability as get_cuda_compute_capability
from mxnet.util import is_np_array as is_np_array
from mxnet.util import is_np_default_dtype as is_np_default_dtype
from mxnet.util import is_np_shape as is_np_shape
from mxnet.util import set_np as set_np
from mxnet.util import set_np_default_dtype as set_np_default_dtype

if TYPE_CHECKING:
    from mxnet.numpy_extension import image as image

globals().update(_core.namespaces["npx"])


def __getattr__(name: str) -> Any:
    if name == "image":  # at first use: it needs all of `mxnet.numpy`
        return importlib.import_module("mxnet.numpy_extension.image")
    if name == "reset_np":  # it took what `set_np` had set back
        return _old_attribute("npx", name, "npx.set_np()", set_np)
    raise _removed(__name__, name)
