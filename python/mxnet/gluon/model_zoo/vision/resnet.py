"""Residual networks, with the activation after the sum (v1) or before the convolutions (v2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mxnet import numpy_extension as npx
from mxnet.base import PathLike
from mxnet.gluon.block import HybridBlock
from mxnet.gluon.model_zoo.vision._classifier import CPU, Classifier, load_pretrained
from mxnet.gluon.nn import (
    Activation,
    BatchNorm,
    Conv2D,
    Dense,
    Flatten,
    GlobalAvgPool2D,
    HybridSequential,
    MaxPool2D,
)
from mxnet.gluon.parameter import DeviceLike
from mxnet.numpy import ndarray

__all__ = [
    "BasicBlockV1",
    "BasicBlockV2",
    "BottleneckV1",
    "BottleneckV2",
    "ResNetV1",
    "ResNetV2",
    "get_resnet",
    "resnet18_v1",
    "resnet18_v2",
    "resnet34_v1",
    "resnet34_v2",
    "resnet50_v1",
    "resnet50_v2",
    "resnet101_v1",
    "resnet101_v2",
    "resnet152_v1",
    "resnet152_v2",
]


def _conv(channels: int, kernel_size: int, strides: int = 1, in_channels: int = 0, use_bias: bool = False) -> Conv2D:
    """A convolution that keeps the size of the image when `strides` is 1."""
    return Conv2D(
        channels,
        kernel_size=kernel_size,
        strides=strides,
        padding=kernel_size // 2,
        use_bias=use_bias,
        in_channels=in_channels,
    )


def _sequence(*blocks: HybridBlock) -> HybridSequential:
    chain = HybridSequential()
    chain.add(*blocks)
    return chain


class _ResidualV1(HybridBlock):
    """``relu(body(x) + shortcut(x))``."""

    def __init__(
        self, body: Sequence[HybridBlock], channels: int, stride: int, downsample: bool, in_channels: int, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.body = _sequence(*body)
        self.downsample: HybridSequential | None = None
        if downsample:
            self.downsample = _sequence(_conv(channels, 1, stride, in_channels), BatchNorm())

    def forward(self, x: ndarray) -> ndarray:
        """Transform a batch.

        Parameters
        ----------
        x : ndarray, shape (n, in_channels, h, w)

        Returns
        -------
        ndarray, shape (n, channels, h, w), sides divided by `stride` and rounded up
        """
        shortcut = x if self.downsample is None else self.downsample(x)
        out: ndarray = npx.relu(self.body(x) + shortcut)
        return out


class BasicBlockV1(_ResidualV1):
    """Two 3 x 3 convolutions beside a shortcut, normalised after each convolution.

    Parameters
    ----------
    channels : int
        Number of output channels.
    stride : int
        Of the first convolution.
    downsample : bool
        Put a 1 x 1 convolution into the shortcut: needed where `stride` is not 1 or the number of channels changes.
    in_channels : int
        0 to find it out from the first input.
    **kwargs
        Arguments of `HybridBlock`, which has none.

    Notes
    -----
    Source: K. He et al., "Deep Residual Learning for Image Recognition", 2015.

    Examples
    --------
    >>> block = mx.gluon.model_zoo.vision.BasicBlockV1(8, stride=2, downsample=True)
    >>> block.initialize()
    >>> block(np.ones((1, 4, 6, 6))).shape
    (1, 8, 3, 3)
    """

    def __init__(
        self, channels: int, stride: int, downsample: bool = False, in_channels: int = 0, **kwargs: Any
    ) -> None:
        body = [
            _conv(channels, 3, stride, in_channels),
            BatchNorm(),
            Activation("relu"),
            _conv(channels, 3, in_channels=channels),
            BatchNorm(),
        ]
        super().__init__(body, channels, stride, downsample, in_channels, **kwargs)


class BottleneckV1(_ResidualV1):
    """Convolutions of 1 x 1, 3 x 3 and 1 x 1 beside a shortcut; the middle one has a quarter of the channels.

    Parameters
    ----------
    channels : int
        Number of output channels, at least 4.
    stride : int
        Of the first convolution.
    downsample : bool
        Put a 1 x 1 convolution into the shortcut: needed where `stride` is not 1 or the number of channels changes.
    in_channels : int
        0 to find it out from the first input.
    **kwargs
        Arguments of `HybridBlock`, which has none.

    Notes
    -----
    The 1 x 1 convolutions of `body` have a bias, as in the published weights of this model zoo.
    Source: K. He et al., "Deep Residual Learning for Image Recognition", 2015.

    Examples
    --------
    >>> block = mx.gluon.model_zoo.vision.BottleneckV1(8, stride=1)
    >>> block.initialize()
    >>> block(np.ones((1, 8, 6, 6))).shape
    (1, 8, 6, 6)
    """

    def __init__(
        self, channels: int, stride: int, downsample: bool = False, in_channels: int = 0, **kwargs: Any
    ) -> None:
        narrow = channels // 4
        body = [
            _conv(narrow, 1, stride, use_bias=True),
            BatchNorm(),
            Activation("relu"),
            _conv(narrow, 3, in_channels=narrow),
            BatchNorm(),
            Activation("relu"),
            _conv(channels, 1, use_bias=True),
            BatchNorm(),
        ]
        super().__init__(body, channels, stride, downsample, in_channels, **kwargs)


class BasicBlockV2(HybridBlock):
    """Two 3 x 3 convolutions beside a shortcut, normalised before each convolution.

    Parameters
    ----------
    channels : int
        Number of output channels.
    stride : int
        Of the first convolution.
    downsample : bool
        Put a 1 x 1 convolution into the shortcut: needed where `stride` is not 1 or the number of channels changes.
    in_channels : int
        0 to find it out from the first input.
    **kwargs
        Arguments of `HybridBlock`, which has none.

    Notes
    -----
    Source: K. He et al., "Identity Mappings in Deep Residual Networks", 2016.

    Examples
    --------
    >>> block = mx.gluon.model_zoo.vision.BasicBlockV2(8, stride=2, downsample=True)
    >>> block.initialize()
    >>> block(np.ones((1, 4, 6, 6))).shape
    (1, 8, 3, 3)
    """

    def __init__(
        self, channels: int, stride: int, downsample: bool = False, in_channels: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.bn1 = BatchNorm()
        self.conv1 = _conv(channels, 3, stride, in_channels)
        self.bn2 = BatchNorm()
        self.conv2 = _conv(channels, 3, in_channels=channels)
        self.downsample = _conv(channels, 1, stride, in_channels) if downsample else None

    def forward(self, x: ndarray) -> ndarray:
        """Transform a batch.

        Parameters
        ----------
        x : ndarray, shape (n, in_channels, h, w)

        Returns
        -------
        ndarray, shape (n, channels, h, w), sides divided by `stride` and rounded up
        """
        activated = npx.relu(self.bn1(x))
        shortcut = x if self.downsample is None else self.downsample(activated)
        out: ndarray = self.conv2(npx.relu(self.bn2(self.conv1(activated)))) + shortcut
        return out


class BottleneckV2(HybridBlock):
    """Convolutions of 1 x 1, 3 x 3 and 1 x 1 beside a shortcut, normalised before each convolution.

    Parameters
    ----------
    channels : int
        Number of output channels, at least 4; the middle convolution has a quarter of them.
    stride : int
        Of the middle convolution.
    downsample : bool
        Put a 1 x 1 convolution into the shortcut: needed where `stride` is not 1 or the number of channels changes.
    in_channels : int
        0 to find it out from the first input.
    **kwargs
        Arguments of `HybridBlock`, which has none.

    Notes
    -----
    Source: K. He et al., "Identity Mappings in Deep Residual Networks", 2016.

    Examples
    --------
    >>> block = mx.gluon.model_zoo.vision.BottleneckV2(8, stride=1)
    >>> block.initialize()
    >>> block(np.ones((1, 8, 6, 6))).shape
    (1, 8, 6, 6)
    """

    def __init__(
        self, channels: int, stride: int, downsample: bool = False, in_channels: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        narrow = channels // 4
        self.bn1 = BatchNorm()
        self.conv1 = _conv(narrow, 1, in_channels=in_channels)
        self.bn2 = BatchNorm()
        self.conv2 = _conv(narrow, 3, stride, narrow)
        self.bn3 = BatchNorm()
        self.conv3 = _conv(channels, 1, in_channels=narrow)
        self.downsample = _conv(channels, 1, stride, in_channels) if downsample else None

    def forward(self, x: ndarray) -> ndarray:
        """Transform a batch.

        Parameters
        ----------
        x : ndarray, shape (n, in_channels, h, w)

        Returns
        -------
        ndarray, shape (n, channels, h, w), sides divided by `stride` and rounded up
        """
        activated = npx.relu(self.bn1(x))
        shortcut = x if self.downsample is None else self.downsample(activated)
        narrow = npx.relu(self.bn2(self.conv1(activated)))
        out: ndarray = self.conv3(npx.relu(self.bn3(self.conv2(narrow)))) + shortcut
        return out


ResidualBlock = type[BasicBlockV1] | type[BottleneckV1] | type[BasicBlockV2] | type[BottleneckV2]


class _ResNet(Classifier):
    """Parts that both versions have."""

    def _check(self, layers: Sequence[int], channels: Sequence[int]) -> None:
        if len(channels) != len(layers) + 1:
            raise ValueError(
                f"{type(self).__name__}: `channels` must have one entry more than `layers` ({len(layers)}), "
                f"found {len(channels)}"
            )

    def _add_stem(self, channels: int, thumbnail: bool) -> None:
        """The layers before the first stage; small images are not shrunk."""
        if thumbnail:
            self.features.add(_conv(channels, 3))
        else:
            self.features.add(
                _conv(channels, 7, strides=2),
                BatchNorm(),
                Activation("relu"),
                MaxPool2D(pool_size=3, strides=2, padding=1),
            )

    def _add_stages(self, block: ResidualBlock, layers: Sequence[int], channels: Sequence[int]) -> None:
        for index, num_blocks in enumerate(layers):
            before, after = channels[index], channels[index + 1]
            stride = 1 if index == 0 else 2
            stage = _sequence(block(after, stride, stride > 1 or before != after, before))
            stage.add(*(block(after, 1, False, after) for _ in range(num_blocks - 1)))
            self.features.add(stage)


class ResNetV1(_ResNet):
    """A residual network whose blocks are activated after the sum.

    Parameters
    ----------
    block : BasicBlockV1 or BottleneckV1
        The class of the blocks.
    layers : sequence of int
        Number of blocks in each stage.
    channels : sequence of int
        Number of channels before the first stage and of each stage.
    classes : int
        Number of classes.
    thumbnail : bool
        For small images: begin with one 3 x 3 convolution that keeps their size.
    **kwargs
        Arguments of `HybridBlock`, which has none.

    Raises
    ------
    ValueError
        If `channels` has not one entry more than `layers`.

    Notes
    -----
    Source: K. He et al., "Deep Residual Learning for Image Recognition", 2015.

    Examples
    --------
    >>> from mxnet.gluon.model_zoo import vision
    >>> net = vision.ResNetV1(vision.BasicBlockV1, [1, 1], [4, 4, 8], classes=10, thumbnail=True)
    >>> net.initialize()
    >>> net(np.ones((2, 3, 8, 8))).shape
    (2, 10)
    """

    def __init__(
        self,
        block: type[BasicBlockV1] | type[BottleneckV1],
        layers: Sequence[int],
        channels: Sequence[int],
        classes: int = 1000,
        thumbnail: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._check(layers, channels)
        self._add_stem(channels[0], thumbnail)
        self._add_stages(block, layers, channels)
        self.features.add(GlobalAvgPool2D())
        self.output = Dense(classes, in_units=channels[-1])


class ResNetV2(_ResNet):
    """A residual network whose blocks are activated before their convolutions.

    Parameters
    ----------
    block : BasicBlockV2 or BottleneckV2
        The class of the blocks.
    layers : sequence of int
        Number of blocks in each stage.
    channels : sequence of int
        Number of channels before the first stage and of each stage.
    classes : int
        Number of classes.
    thumbnail : bool
        For small images: begin with one 3 x 3 convolution that keeps their size.
    **kwargs
        Arguments of `HybridBlock`, which has none.

    Raises
    ------
    ValueError
        If `channels` has not one entry more than `layers`.

    Notes
    -----
    The first layer normalises the images themselves, without scale and shift.
    Source: K. He et al., "Identity Mappings in Deep Residual Networks", 2016.

    Examples
    --------
    >>> from mxnet.gluon.model_zoo import vision
    >>> net = vision.ResNetV2(vision.BottleneckV2, [1, 1], [4, 8, 16], classes=10, thumbnail=True)
    >>> net.initialize()
    >>> net(np.ones((2, 3, 8, 8))).shape
    (2, 10)
    """

    def __init__(
        self,
        block: type[BasicBlockV2] | type[BottleneckV2],
        layers: Sequence[int],
        channels: Sequence[int],
        classes: int = 1000,
        thumbnail: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._check(layers, channels)
        self.features.add(BatchNorm(scale=False, center=False))
        self._add_stem(channels[0], thumbnail)
        self._add_stages(block, layers, channels)
        self.features.add(BatchNorm(), Activation("relu"), GlobalAvgPool2D(), Flatten())
        self.output = Dense(classes, in_units=channels[-1])


_BASIC, _BOTTLENECK = (64, 64, 128, 256, 512), (64, 256, 512, 1024, 2048)
# Blocks of each stage and whether they are bottlenecks, by the number of layers with weights (table 1 of the source).
_DEPTHS = {
    18: ((2, 2, 2, 2), False),
    34: ((3, 4, 6, 3), False),
    50: ((3, 4, 6, 3), True),
    101: ((3, 4, 23, 3), True),
    152: ((3, 8, 36, 3), True),
}


def get_resnet(
    version: int,
    num_layers: int,
    pretrained: bool = False,
    device: DeviceLike = CPU,
    root: PathLike | None = None,
    **kwargs: Any,
) -> Any:
    """Residual network of a published depth.

    Parameters
    ----------
    version : {1, 2}
    num_layers : {18, 34, 50, 101, 152}
        Number of layers with weights.
    pretrained : bool
        Read the weights of ``resnet<num_layers>_v<version>`` from a local file in `root`, see `get_model`.
    device : Device or sequence of Device
        Where these weights go.
    root : path, optional
        Folder of the file; ``models`` in `mx.base.data_dir()` by default.
    **kwargs
        `classes` and `thumbnail` of `ResNetV1` and `ResNetV2`.

    Returns
    -------
    ResNetV1 or ResNetV2

    Raises
    ------
    ValueError
        If there is no such version or depth.
    FileNotFoundError
        If `pretrained` and there is no such file. Nothing is downloaded.
    """
    if version not in (1, 2):
        raise ValueError(f"get_resnet: `version` must be 1 or 2, found {version!r}")
    if num_layers not in _DEPTHS:
        raise ValueError(f"get_resnet: `num_layers` must be one of {list(_DEPTHS)}, found {num_layers!r}")
    layers, has_bottlenecks = _DEPTHS[num_layers]
    channels = _BOTTLENECK if has_bottlenecks else _BASIC
    net: ResNetV1 | ResNetV2
    if version == 1:
        net = ResNetV1(BottleneckV1 if has_bottlenecks else BasicBlockV1, layers, channels, **kwargs)
    else:
        net = ResNetV2(BottleneckV2 if has_bottlenecks else BasicBlockV2, layers, channels, **kwargs)
    return load_pretrained(net, f"resnet{num_layers}_v{version}", root, device) if pretrained else net


def resnet18_v1(**kwargs: Any) -> ResNetV1:
    """Residual network of 18 layers, version 1.

    Parameters
    ----------
    **kwargs
        Arguments of `get_resnet`.

    Returns
    -------
    ResNetV1
    """
    net: ResNetV1 = get_resnet(1, 18, **kwargs)
    return net


def resnet34_v1(**kwargs: Any) -> ResNetV1:
    """Residual network of 34 layers, version 1.

    Parameters
    ----------
    **kwargs
        Arguments of `get_resnet`.

    Returns
    -------
    ResNetV1
    """
    net: ResNetV1 = get_resnet(1, 34, **kwargs)
    return net


def resnet50_v1(**kwargs: Any) -> ResNetV1:
    """Residual network of 50 layers, version 1.

    Parameters
    ----------
    **kwargs
        Arguments of `get_resnet`.

    Returns
    -------
    ResNetV1
    """
    net: ResNetV1 = get_resnet(1, 50, **kwargs)
    return net


def resnet101_v1(**kwargs: Any) -> ResNetV1:
    """Residual network of 101 layers, version 1.

    Parameters
    ----------
    **kwargs
        Arguments of `get_resnet`.

    Returns
    -------
    ResNetV1
    """
    net: ResNetV1 = get_resnet(1, 101, **kwargs)
    return net


def resnet152_v1(**kwargs: Any) -> ResNetV1:
    """Residual network of 152 layers, version 1.

    Parameters
    ----------
    **kwargs
        Arguments of `get_resnet`.

    Returns
    -------
    ResNetV1
    """
    net: ResNetV1 = get_resnet(1, 152, **kwargs)
    return net


def resnet18_v2(**kwargs: Any) -> ResNetV2:
    """Residual network of 18 layers, version 2.

    Parameters
    ----------
    **kwargs
        Arguments of `get_resnet`.

    Returns
    -------
    ResNetV2
    """
    net: ResNetV2 = get_resnet(2, 18, **kwargs)
    return net


def resnet34_v2(**kwargs: Any) -> ResNetV2:
    """Residual network of 34 layers, version 2.

    Parameters
    ----------
    **kwargs
        Arguments of `get_resnet`.

    Returns
    -------
    ResNetV2
    """
    net: ResNetV2 = get_resnet(2, 34, **kwargs)
    return net


def resnet50_v2(**kwargs: Any) -> ResNetV2:
    """Residual network of 50 layers, version 2.

    Parameters
    ----------
    **kwargs
        Arguments of `get_resnet`.

    Returns
    -------
    ResNetV2
    """
    net: ResNetV2 = get_resnet(2, 50, **kwargs)
    return net


def resnet101_v2(**kwargs: Any) -> ResNetV2:
    """Residual network of 101 layers, version 2.

    Parameters
    ----------
    **kwargs
        Arguments of `get_resnet`.

    Returns
    -------
    ResNetV2
    """
    net: ResNetV2 = get_resnet(2, 101, **kwargs)
    return net


def resnet152_v2(**kwargs: Any) -> ResNetV2:
    """Residual network of 152 layers, version 2.

    Parameters
    ----------
    **kwargs
        Arguments of `get_resnet`.

    Returns
    -------
    ResNetV2
    """
    net: ResNetV2 = get_resnet(2, 152, **kwargs)
    return net
