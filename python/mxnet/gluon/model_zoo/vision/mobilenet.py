"""MobileNet, versions 1 to 3."""

from __future__ import annotations

from typing import Any

from mxnet import numpy_extension as npx
from mxnet.base import PathLike
from mxnet.gluon.block import HybridBlock
from mxnet.gluon.model_zoo.vision._classifier import CPU, Classifier, load_pretrained
from mxnet.gluon.nn import Activation, BatchNorm, Conv2D, Dense, Dropout, Flatten, GlobalAvgPool2D, HybridSequential
from mxnet.gluon.parameter import DeviceLike
from mxnet.numpy import ndarray

__all__ = [
    "MobileNet",
    "MobileNetV2",
    "MobileNetV3",
    "get_mobilenet",
    "get_mobilenet_v2",
    "get_mobilenet_v3",
    "mobilenet1_0",
    "mobilenet0_75",
    "mobilenet0_5",
    "mobilenet0_25",
    "mobilenet_v2_1_0",
    "mobilenet_v2_0_75",
    "mobilenet_v2_0_5",
    "mobilenet_v2_0_25",
    "mobilenet_v3_large",
    "mobilenet_v3_small",
]

# Version 1: channels and strides of each depthwise step.
_STEPS = (
    (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1),
)  # fmt: skip
# Version 2: factor of the inner channels, output channels, number of blocks, strides of the first one.
_STAGES = (
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
)  # fmt: skip
# Version 3: kernel, inner channels, output channels, squeeze-and-excitation, hard swish, strides.
_V3 = {
    "large": (
        (3, 16, 16, False, False, 1),
        (3, 64, 24, False, False, 2),
        (3, 72, 24, False, False, 1),
        (5, 72, 40, True, False, 2),
        (5, 120, 40, True, False, 1),
        (5, 120, 40, True, False, 1),
        (3, 240, 80, False, True, 2),
        (3, 200, 80, False, True, 1),
        (3, 184, 80, False, True, 1),
        (3, 184, 80, False, True, 1),
        (3, 480, 112, True, True, 1),
        (3, 672, 112, True, True, 1),
        (5, 672, 160, True, True, 2),
        (5, 960, 160, True, True, 1),
        (5, 960, 160, True, True, 1),
    ),
    "small": (
        (3, 16, 16, True, False, 2),
        (3, 72, 24, False, False, 2),
        (3, 88, 24, False, False, 1),
        (5, 96, 40, True, True, 2),
        (5, 240, 40, True, True, 1),
        (5, 240, 40, True, True, 1),
        (5, 120, 48, True, True, 1),
        (5, 144, 48, True, True, 1),
        (5, 288, 96, True, True, 2),
        (5, 576, 96, True, True, 1),
        (5, 576, 96, True, True, 1),
    ),
}
_V3_HIDDEN = {"large": 1280, "small": 1024}


class _Bounded(HybridBlock):
    """Rectified and bounded by 6."""

    def forward(self, x: ndarray) -> ndarray:
        """Elements of `x` brought into [0, 6]."""
        return x.clip(0, 6)


class _HardSwish(HybridBlock):
    """``x * min(max(x + 3, 0), 6) / 6``."""

    def forward(self, x: ndarray) -> ndarray:
        """Apply it to each element."""
        y: ndarray = x * npx.hard_sigmoid(x, alpha=1 / 6, beta=0.5)
        return y


def _multiple_of_8(channels: float) -> int:
    """The nearest multiple of 8 that is not smaller by more than a tenth, at least 8."""
    rounded = max(8, int(channels + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * channels else rounded


def _convolution(
    block: HybridSequential,
    channels: int,
    kernel_size: int = 1,
    strides: int = 1,
    groups: int = 1,
    activation: HybridBlock | None = None,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
) -> None:
    """Append a convolution that keeps sizes (but for strides), a normalisation and an activation."""
    block.add(
        Conv2D(channels, kernel_size, strides, kernel_size // 2, groups=groups, use_bias=False),
        BatchNorm(momentum=momentum, epsilon=epsilon),
    )
    if activation is not None:
        block.add(activation)


class MobileNet(Classifier):
    """MobileNet: depthwise convolutions followed by pointwise ones, for images of at least 193 by 193.

    Parameters
    ----------
    multiplier : float
        Factor of all numbers of channels.
    classes : int
        Number of classes.
    **kwargs
        Arguments of `HybridBlock`, which has none.

    Notes
    -----
    Source: A. G. Howard et al., "MobileNets", 2017.

    Examples
    --------
    >>> net = mx.gluon.model_zoo.vision.MobileNet(0.25, classes=10)
    >>> net.output
    Dense(None -> 10, linear)
    """

    def __init__(self, multiplier: float = 1.0, classes: int = 1000, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        before = int(32 * multiplier)
        _convolution(self.features, before, 3, 2, activation=Activation("relu"))
        for channels, strides in _STEPS:
            _convolution(self.features, before, 3, strides, groups=before, activation=Activation("relu"))
            before = int(channels * multiplier)
            _convolution(self.features, before, activation=Activation("relu"))
        self.features.add(GlobalAvgPool2D(), Flatten())
        self.output = Dense(classes)


class _LinearBottleneck(HybridBlock):
    """Many channels between few, with a connection around them where sizes stay."""

    def __init__(self, in_channels: int, factor: int, channels: int, strides: int) -> None:
        super().__init__()
        self._adds = strides == 1 and in_channels == channels
        inner = in_channels * factor
        self.out = HybridSequential()
        _convolution(self.out, inner, activation=_Bounded())
        _convolution(self.out, inner, 3, strides, groups=inner, activation=_Bounded())
        _convolution(self.out, channels)

    def forward(self, x: ndarray) -> ndarray:
        """Images (n, c, h, w)."""
        y: ndarray = self.out(x)
        return x + y if self._adds else y


class MobileNetV2(Classifier):
    """MobileNet v2: inverted residual blocks, for images of at least 193 by 193.

    Parameters
    ----------
    multiplier : float
        Factor of all numbers of channels.
    classes : int
        Number of classes.
    **kwargs
        Arguments of `HybridBlock`, which has none.

    Notes
    -----
    As in MXNet, the first block has a convolution of single pixels too. Source: M. Sandler et al., "MobileNetV2:
    Inverted Residuals and Linear Bottlenecks", 2018.

    Examples
    --------
    >>> net = mx.gluon.model_zoo.vision.MobileNetV2(0.25, classes=10)
    >>> net.output[0]
    Conv2D(None -> 10, kernel_size=(1, 1), stride=(1, 1), bias=False)
    """

    def __init__(self, multiplier: float = 1.0, classes: int = 1000, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        before = int(32 * multiplier)
        _convolution(self.features, before, 3, 2, activation=_Bounded())
        for factor, channels, repeats, strides in _STAGES:
            for number in range(repeats):
                after = int(channels * multiplier)
                self.features.add(_LinearBottleneck(before, factor, after, strides if number == 0 else 1))
                before = after
        _convolution(self.features, int(1280 * multiplier) if multiplier > 1 else 1280, activation=_Bounded())
        self.features.add(GlobalAvgPool2D())
        output = HybridSequential()
        output.add(Conv2D(classes, 1, use_bias=False), Flatten())
        self.output = output


class _Excitation(HybridBlock):
    """A factor between 0 and 1 for each channel, computed from the means of all."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.mean = GlobalAvgPool2D()
        self.squeeze = Conv2D(_multiple_of_8(channels / 4), 1, activation="relu")
        self.excite = Conv2D(channels, 1)

    def forward(self, x: ndarray) -> ndarray:
        """Images (n, c, h, w)."""
        factor = npx.hard_sigmoid(self.excite(self.squeeze(self.mean(x))), alpha=1 / 6, beta=0.5)
        y: ndarray = x * factor
        return y


class _BlockV3(HybridBlock):
    """As `_LinearBottleneck`, with other activations and factors for channels."""

    def __init__(
        self, in_channels: int, kernel: int, inner: int, channels: int, excites: bool, swishes: bool, strides: int
    ) -> None:
        super().__init__()
        self._adds = strides == 1 and in_channels == channels
        self.body = HybridSequential()

        def activation() -> HybridBlock:
            return _HardSwish() if swishes else Activation("relu")

        if inner != in_channels:
            _convolution(self.body, inner, activation=activation(), epsilon=0.001, momentum=0.99)
        _convolution(
            self.body, inner, kernel, strides, groups=inner, activation=activation(), epsilon=0.001, momentum=0.99
        )
        if excites:
            self.body.add(_Excitation(inner))
        _convolution(self.body, channels, epsilon=0.001, momentum=0.99)

    def forward(self, x: ndarray) -> ndarray:
        """Images (n, c, h, w)."""
        y: ndarray = self.body(x)
        return x + y if self._adds else y


class MobileNetV3(Classifier):
    """MobileNet v3: inverted residual blocks found by search, for images of at least 33 by 33.

    Parameters
    ----------
    size : {"large", "small"}
        Which of the two published networks.
    classes : int
        Number of classes.
    dropout : float
        Before the scores; in [0, 1).
    **kwargs
        Arguments of `HybridBlock`, which has none.

    Raises
    ------
    ValueError
        If `size` is unknown.

    Notes
    -----
    Source: A. Howard et al., "Searching for MobileNetV3", 2019.

    Examples
    --------
    >>> net = mx.gluon.model_zoo.vision.MobileNetV3("small", classes=10)
    >>> net.output[-1]
    Dense(None -> 10, linear)
    """

    def __init__(self, size: str, classes: int = 1000, dropout: float = 0.2, **kwargs: Any) -> None:
        if size not in _V3:
            raise ValueError(f"MobileNetV3: `size` must be 'large' or 'small', found {size!r}")
        super().__init__(**kwargs)
        before = 16
        _convolution(self.features, before, 3, 2, activation=_HardSwish(), epsilon=0.001, momentum=0.99)
        for kernel, inner, channels, excites, swishes, strides in _V3[size]:
            self.features.add(_BlockV3(before, kernel, inner, channels, excites, swishes, strides))
            before = channels
        _convolution(self.features, 6 * before, activation=_HardSwish(), epsilon=0.001, momentum=0.99)
        self.features.add(GlobalAvgPool2D(), Flatten())
        output = HybridSequential()
        output.add(Dense(_V3_HIDDEN[size]), _HardSwish(), Dropout(dropout), Dense(classes))
        self.output = output


def _multiplier_text(multiplier: float) -> str:
    """1.0 and 0.75 are written so, whatever the type of the number."""
    return f"{float(multiplier):.2f}".removesuffix("0") if multiplier != 1 else "1.0"


def get_mobilenet(
    multiplier: float, pretrained: bool = False, device: DeviceLike = CPU, root: PathLike | None = None, **kwargs: Any
) -> MobileNet:
    """MobileNet of a width.

    Parameters
    ----------
    multiplier : float
        Factor of all numbers of channels; 1.0, 0.75, 0.5 and 0.25 are published.
    pretrained : bool
        Read the weights of ``mobilenet<multiplier>`` from a local file in `root`, see `get_model`.
    device : Device or sequence of Device
        Where these weights go.
    root : path, optional
        Folder of the file; ``models`` in `mx.base.data_dir()` by default.
    **kwargs
        `classes` of `MobileNet`.

    Returns
    -------
    MobileNet

    Raises
    ------
    FileNotFoundError
        If `pretrained` and there is no such file. Nothing is downloaded.
    """
    net = MobileNet(multiplier, **kwargs)
    return load_pretrained(net, f"mobilenet{_multiplier_text(multiplier)}", root, device) if pretrained else net


def get_mobilenet_v2(
    multiplier: float, pretrained: bool = False, device: DeviceLike = CPU, root: PathLike | None = None, **kwargs: Any
) -> MobileNetV2:
    """MobileNet v2 of a width.

    Parameters
    ----------
    multiplier : float
        Factor of all numbers of channels; 1.0, 0.75, 0.5 and 0.25 are published.
    pretrained : bool
        Read the weights of ``mobilenetv2_<multiplier>`` from a local file in `root`, see `get_model`.
    device : Device or sequence of Device
        Where these weights go.
    root : path, optional
        Folder of the file; ``models`` in `mx.base.data_dir()` by default.
    **kwargs
        `classes` of `MobileNetV2`.

    Returns
    -------
    MobileNetV2

    Raises
    ------
    FileNotFoundError
        If `pretrained` and there is no such file. Nothing is downloaded.
    """
    net = MobileNetV2(multiplier, **kwargs)
    return load_pretrained(net, f"mobilenetv2_{_multiplier_text(multiplier)}", root, device) if pretrained else net


def get_mobilenet_v3(
    size: str, pretrained: bool = False, device: DeviceLike = CPU, root: PathLike | None = None, **kwargs: Any
) -> MobileNetV3:
    """MobileNet v3 of a published size.

    Parameters
    ----------
    size : {"large", "small"}
        Which of the two.
    pretrained : bool
        Read the weights of ``mobilenetv3_<size>`` from a local file in `root`, see `get_model`.
    device : Device or sequence of Device
        Where these weights go.
    root : path, optional
        Folder of the file; ``models`` in `mx.base.data_dir()` by default.
    **kwargs
        `classes` and `dropout` of `MobileNetV3`.

    Returns
    -------
    MobileNetV3

    Raises
    ------
    ValueError
        If `size` is unknown.
    FileNotFoundError
        If `pretrained` and there is no such file. Nothing is downloaded.
    """
    net = MobileNetV3(size, **kwargs)
    return load_pretrained(net, f"mobilenetv3_{size}", root, device) if pretrained else net


def mobilenet1_0(**kwargs: Any) -> MobileNet:
    """MobileNet with 1.0 of the channels.

    Parameters
    ----------
    **kwargs
        Arguments of `get_mobilenet`.

    Returns
    -------
    MobileNet
    """
    return get_mobilenet(1.0, **kwargs)


def mobilenet0_75(**kwargs: Any) -> MobileNet:
    """MobileNet with 0.75 of the channels.

    Parameters
    ----------
    **kwargs
        Arguments of `get_mobilenet`.

    Returns
    -------
    MobileNet
    """
    return get_mobilenet(0.75, **kwargs)


def mobilenet0_5(**kwargs: Any) -> MobileNet:
    """MobileNet with 0.5 of the channels.

    Parameters
    ----------
    **kwargs
        Arguments of `get_mobilenet`.

    Returns
    -------
    MobileNet
    """
    return get_mobilenet(0.5, **kwargs)


def mobilenet0_25(**kwargs: Any) -> MobileNet:
    """MobileNet with 0.25 of the channels.

    Parameters
    ----------
    **kwargs
        Arguments of `get_mobilenet`.

    Returns
    -------
    MobileNet
    """
    return get_mobilenet(0.25, **kwargs)


def mobilenet_v2_1_0(**kwargs: Any) -> MobileNetV2:
    """MobileNet v2 with 1.0 of the channels.

    Parameters
    ----------
    **kwargs
        Arguments of `get_mobilenet_v2`.

    Returns
    -------
    MobileNetV2
    """
    return get_mobilenet_v2(1.0, **kwargs)


def mobilenet_v2_0_75(**kwargs: Any) -> MobileNetV2:
    """MobileNet v2 with 0.75 of the channels.

    Parameters
    ----------
    **kwargs
        Arguments of `get_mobilenet_v2`.

    Returns
    -------
    MobileNetV2
    """
    return get_mobilenet_v2(0.75, **kwargs)


def mobilenet_v2_0_5(**kwargs: Any) -> MobileNetV2:
    """MobileNet v2 with 0.5 of the channels.

    Parameters
    ----------
    **kwargs
        Arguments of `get_mobilenet_v2`.

    Returns
    -------
    MobileNetV2
    """
    return get_mobilenet_v2(0.5, **kwargs)


def mobilenet_v2_0_25(**kwargs: Any) -> MobileNetV2:
    """MobileNet v2 with 0.25 of the channels.

    Parameters
    ----------
    **kwargs
        Arguments of `get_mobilenet_v2`.

    Returns
    -------
    MobileNetV2
    """
    return get_mobilenet_v2(0.25, **kwargs)


def mobilenet_v3_large(**kwargs: Any) -> MobileNetV3:
    """The large MobileNet v3.

    Parameters
    ----------
    **kwargs
        Arguments of `get_mobilenet_v3`.

    Returns
    -------
    MobileNetV3
    """
    return get_mobilenet_v3("large", **kwargs)


def mobilenet_v3_small(**kwargs: Any) -> MobileNetV3:
    """The small MobileNet v3.

    Parameters
    ----------
    **kwargs
        Arguments of `get_mobilenet_v3`.

    Returns
    -------
    MobileNetV3
    """
    return get_mobilenet_v3("small", **kwargs)
