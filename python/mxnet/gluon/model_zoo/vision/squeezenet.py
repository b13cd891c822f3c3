"""SqueezeNet."""

from __future__ import annotations

from typing import Any

from mxnet.base import PathLike
from mxnet.gluon.model_zoo.vision._classifier import CPU, Classifier, load_pretrained
from mxnet.gluon.nn import (
    Activation,
    Conv2D,
    Dropout,
    Flatten,
    GlobalAvgPool2D,
    HybridConcatenate,
    HybridSequential,
    MaxPool2D,
)
from mxnet.gluon.parameter import DeviceLike

__all__ = ["SqueezeNet", "get_squeezenet", "squeezenet1_0", "squeezenet1_1"]

# Version: channels, kernel size of the first convolution; then squeezed channels of each fire, a pool for None.
_LAYERS: dict[str, tuple[int, int, tuple[int | None, ...]]] = {
    "1.0": (96, 7, (None, 16, 16, 32, None, 32, 48, 48, 64, None, 64)),
    "1.1": (64, 3, (None, 16, 16, None, 32, 32, None, 48, 48, 64, 64)),
}


def _convolution(channels: int, kernel_size: int) -> HybridSequential:
    block = HybridSequential()
    block.add(Conv2D(channels, kernel_size, padding=kernel_size // 2), Activation("relu"))
    return block


def _fire(squeezed: int) -> HybridSequential:
    """1x1 convolution to `squeezed` channels, then 1x1 and 3x3 convolutions concatenated.

    (n, c, h, w) -> (n, 8 * squeezed, h, w)
    """
    expanded = HybridConcatenate(axis=1)
    expanded.add(_convolution(4 * squeezed, 1), _convolution(4 * squeezed, 3))
    block = HybridSequential()
    block.add(_convolution(squeezed, 1), expanded)
    return block


class SqueezeNet(Classifier):
    """SqueezeNet: squeeze and expand convolutions, for images of at least 21 by 21.

    Parameters
    ----------
    version : {"1.0", "1.1"}
        1.1 pools earlier and needs less than half of the operations.
    classes : int
        Number of classes.
    **kwargs
        Arguments of `HybridBlock`, which has none.

    Raises
    ------
    ValueError
        If there is no such version.

    Notes
    -----
    Source: F. N. Iandola et al., "SqueezeNet: AlexNet-level accuracy with 50x fewer parameters", 2016; version 1.1 as
    the authors released it.

    Examples
    --------
    >>> net = mx.gluon.model_zoo.vision.SqueezeNet("1.1", classes=10)
    >>> len(net.features)
    14
    """

    def __init__(self, version: str, classes: int = 1000, **kwargs: Any) -> None:
        if version not in _LAYERS:
            raise ValueError(f"SqueezeNet: `version` must be one of {list(_LAYERS)}, found {version!r}")
        super().__init__(**kwargs)
        channels, kernel, layers = _LAYERS[version]
        self.features.add(Conv2D(channels, kernel_size=kernel, strides=2), Activation("relu"))
        for squeezed in layers:
            self.features.add(
                MaxPool2D(pool_size=3, strides=2, ceil_mode=True) if squeezed is None else _fire(squeezed)
            )
        self.features.add(Dropout(0.5))
        output = HybridSequential()
        output.add(Conv2D(classes, kernel_size=1), Activation("relu"), GlobalAvgPool2D(), Flatten())
        self.output = output


def get_squeezenet(
    version: str, pretrained: bool = False, device: DeviceLike = CPU, root: PathLike | None = None, **kwargs: Any
) -> SqueezeNet:
    """SqueezeNet of a version.

    Parameters
    ----------
    version : {"1.0", "1.1"}
        See `SqueezeNet`.
    pretrained : bool
        Read the weights of ``squeezenet<version>`` from a local file in `root`, see `get_model`.
    device : Device or sequence of Device
        Where these weights go.
    root : path, optional
        Folder of the file; ``models`` in `mx.base.data_dir()` by default.
    **kwargs
        `classes` of `SqueezeNet`.

    Returns
    -------
    SqueezeNet

    Raises
    ------
    ValueError
        If there is no such version.
    FileNotFoundError
        If `pretrained` and there is no such file. Nothing is downloaded.
    """
    net = SqueezeNet(version, **kwargs)
    return load_pretrained(net, f"squeezenet{version}", root, device) if pretrained else net


def squeezenet1_0(**kwargs: Any) -> SqueezeNet:
    """SqueezeNet of version 1.0.

    Parameters
    ----------
    **kwargs
        Arguments of `get_squeezenet`.

    Returns
    -------
    SqueezeNet
    """
    return get_squeezenet("1.0", **kwargs)


def squeezenet1_1(**kwargs: Any) -> SqueezeNet:
    """SqueezeNet of version 1.1.

    Parameters
    ----------
    **kwargs
        Arguments of `get_squeezenet`.

    Returns
    -------
    SqueezeNet
    """
    return get_squeezenet("1.1", **kwargs)
