"""Densely connected networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mxnet.base import PathLike
from mxnet.gluon.model_zoo.vision._classifier import CPU, Classifier, load_pretrained
from mxnet.gluon.nn import (
    Activation,
    AvgPool2D,
    BatchNorm,
    Conv2D,
    Dense,
    Dropout,
    Flatten,
    HybridConcatenate,
    HybridSequential,
    Identity,
    MaxPool2D,
)
from mxnet.gluon.parameter import DeviceLike

__all__ = ["DenseNet", "get_densenet", "densenet121", "densenet161", "densenet169", "densenet201"]

# Depth: channels of the first layer, channels that each layer adds, layers of the four blocks.
_SIZES = {
    121: (64, 32, (6, 12, 24, 16)),
    161: (96, 48, (6, 12, 36, 24)),
    169: (64, 32, (6, 12, 32, 32)),
    201: (64, 32, (6, 12, 48, 32)),
}


def _dense_layer(growth_rate: int, bn_size: int, dropout: float) -> HybridConcatenate:
    """Appends the channels that it computes to its input: (n, c, h, w) to (n, c + growth_rate, h, w)."""
    body = HybridSequential()
    body.add(
        BatchNorm(),
        Activation("relu"),
        Conv2D(bn_size * growth_rate, kernel_size=1, use_bias=False),
        BatchNorm(),
        Activation("relu"),
        Conv2D(growth_rate, kernel_size=3, padding=1, use_bias=False),
    )
    if dropout:
        body.add(Dropout(dropout))
    layer = HybridConcatenate(axis=1)
    layer.add(Identity(), body)
    return layer


class DenseNet(Classifier):
    """DenseNet: blocks of layers that each see the outputs of all before, for images of at least 221 by 221.

    Parameters
    ----------
    num_init_features : int
        Channels of the first convolution.
    growth_rate : int
        Channels that each layer adds.
    block_config : sequence of int
        Layers of each block.
    bn_size : int
        Channels between the two convolutions of a layer, in `growth_rate`.
    dropout : float
        After each layer; in [0, 1).
    classes : int
        Number of classes.
    **kwargs
        Arguments of `HybridBlock`, which has none.

    Notes
    -----
    Source: G. Huang, Z. Liu, L. van der Maaten and K. Q. Weinberger, "Densely Connected Convolutional Networks", 2017.

    Examples
    --------
    >>> net = mx.gluon.model_zoo.vision.DenseNet(8, 4, [2, 2], classes=10)
    >>> len(net.features), net.output
    (11, Dense(None -> 10, linear))
    """

    def __init__(
        self,
        num_init_features: int,
        growth_rate: int,
        block_config: Sequence[int],
        bn_size: int = 4,
        dropout: float = 0,
        classes: int = 1000,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.features.add(
            Conv2D(num_init_features, kernel_size=7, strides=2, padding=3, use_bias=False),
            BatchNorm(),
            Activation("relu"),
            MaxPool2D(pool_size=3, strides=2, padding=1),
        )
        channels = num_init_features
        for number, num_layers in enumerate(block_config):
            block = HybridSequential()
            for _ in range(num_layers):
                block.add(_dense_layer(growth_rate, bn_size, dropout))
            self.features.add(block)
            channels += num_layers * growth_rate
            if number + 1 < len(block_config):
                channels //= 2
                transition = HybridSequential()
                transition.add(
                    BatchNorm(), Activation("relu"), Conv2D(channels, kernel_size=1, use_bias=False), AvgPool2D(2, 2)
                )
                self.features.add(transition)
        self.features.add(BatchNorm(), Activation("relu"), AvgPool2D(pool_size=7), Flatten())
        self.output = Dense(classes)


def get_densenet(
    num_layers: int, pretrained: bool = False, device: DeviceLike = CPU, root: PathLike | None = None, **kwargs: Any
) -> DenseNet:
    """DenseNet of a published depth.

    Parameters
    ----------
    num_layers : {121, 161, 169, 201}
        Number of layers with weights.
    pretrained : bool
        Read the weights of ``densenet<num_layers>`` from a local file in `root`, see `get_model`.
    device : Device or sequence of Device
        Where these weights go.
    root : path, optional
        Folder of the file; ``models`` in `mx.base.data_dir()` by default.
    **kwargs
        `bn_size`, `dropout` and `classes` of `DenseNet`.

    Returns
    -------
    DenseNet

    Raises
    ------
    ValueError
        If there is no DenseNet of that depth.
    FileNotFoundError
        If `pretrained` and there is no such file. Nothing is downloaded.
    """
    if num_layers not in _SIZES:
        raise ValueError(f"get_densenet: `num_layers` must be one of {list(_SIZES)}, found {num_layers!r}")
    net = DenseNet(*_SIZES[num_layers], **kwargs)
    return load_pretrained(net, f"densenet{num_layers}", root, device) if pretrained else net


def densenet121(**kwargs: Any) -> DenseNet:
    """DenseNet of 121 layers.

    Parameters
    ----------
    **kwargs
        Arguments of `get_densenet`.

    Returns
    -------
    DenseNet
    """
    return get_densenet(121, **kwargs)


def densenet161(**kwargs: Any) -> DenseNet:
    """DenseNet of 161 layers.

    Parameters
    ----------
    **kwargs
        Arguments of `get_densenet`.

    Returns
    -------
    DenseNet
    """
    return get_densenet(161, **kwargs)


def densenet169(**kwargs: Any) -> DenseNet:
    """DenseNet of 169 layers.

    Parameters
    ----------
    **kwargs
        Arguments of `get_densenet`.

    Returns
    -------
    DenseNet
    """
    return get_densenet(169, **kwargs)


def densenet201(**kwargs: Any) -> DenseNet:
    """DenseNet of 201 layers.

    Parameters
    ----------
    **kwargs
        Arguments of `get_densenet`.

    Returns
    -------
    DenseNet
    """
    return get_densenet(201, **kwargs)
