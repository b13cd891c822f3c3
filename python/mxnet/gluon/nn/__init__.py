"""Layers."""

from mxnet._renamed import attribute_finder
from mxnet.gluon.block import Block, HybridBlock
from mxnet.gluon.nn.activations import (
    ELU,
    GELU,
    SELU,
    Activation,
    LeakyReLU,
    Mish,
    PReLU,
    SiLU,
    Swish,
)
from mxnet.gluon.nn.attention import MultiHeadAttention
from mxnet.gluon.nn.basic_layers import (
    Dense,
    Dropout,
    Embedding,
    Flatten,
    HybridLambda,
    Identity,
    Lambda,
)
from mxnet.gluon.nn.containers import Concatenate, HybridConcatenate, HybridSequential, Sequential
from mxnet.gluon.nn.conv_layers import (
    Conv1D,
    Conv1DTranspose,
    Conv2D,
    Conv2DTranspose,
    Conv3D,
    Conv3DTranspose,
)
from mxnet.gluon.nn.deformable_layers import DeformableConvolution, ModulatedDeformableConvolution
from mxnet.gluon.nn.norm_layers import BatchNorm, GroupNorm, InstanceNorm, LayerNorm, SyncBatchNorm
from mxnet.gluon.nn.pool_layers import (
    AvgPool1D,
    AvgPool2D,
    AvgPool3D,
    GlobalAvgPool1D,
    GlobalAvgPool2D,
    GlobalAvgPool3D,
    GlobalMaxPool1D,
    GlobalMaxPool2D,
    GlobalMaxPool3D,
    MaxPool1D,
    MaxPool2D,
    MaxPool3D,
)
from mxnet.gluon.nn.shuffle_layers import PixelShuffle1D, PixelShuffle2D, PixelShuffle3D, ReflectionPad2D

__all__ = [
    "DeformableConvolution",
    "ModulatedDeformableConvolution",
    "ELU",
    "GELU",
    "SELU",
    "Activation",
    "AvgPool1D",
    "AvgPool2D",
    "AvgPool3D",
    "BatchNorm",
    "Block",
    "Concatenate",
    "Conv1D",
    "Conv1DTranspose",
    "Conv2D",
    "Conv2DTranspose",
    "Conv3D",
    "Conv3DTranspose",
    "Dense",
    "Dropout",
    "Embedding",
    "Flatten",
    "GlobalAvgPool1D",
    "GlobalAvgPool2D",
    "GlobalAvgPool3D",
    "GlobalMaxPool1D",
    "GlobalMaxPool2D",
    "GlobalMaxPool3D",
    "GroupNorm",
    "HybridBlock",
    "HybridConcatenate",
    "HybridLambda",
    "HybridSequential",
    "Identity",
    "InstanceNorm",
    "Lambda",
    "LayerNorm",
    "LeakyReLU",
    "MaxPool1D",
    "MaxPool2D",
    "MaxPool3D",
    "Mish",
    "MultiHeadAttention",
    "PReLU",
    "PixelShuffle1D",
    "PixelShuffle2D",
    "PixelShuffle3D",
    "ReflectionPad2D",
    "Sequential",
    "SiLU",
    "Swish",
    "SyncBatchNorm",
]

__getattr__ = attribute_finder(__name__, "mxnet.gluon.symbol_block")
