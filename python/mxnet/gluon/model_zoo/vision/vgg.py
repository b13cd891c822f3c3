"""VGG: stacks of 3 x 3 convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mxnet import initializer
from mxnet.base import PathLike
from mxnet.gluon.model_zoo.vision._classifier import CPU, Classifier, load_pretrained
from mxnet.gluon.nn import Activation, BatchNorm, Conv2D, Dense, Dropout, MaxPool2D
from mxnet.gluon.parameter import DeviceLike

__all__ = ["VGG", "get_vgg", "vgg11", "vgg11_bn", "vgg13", "vgg13_bn", "vgg16", "vgg16_bn", "vgg19", "vgg19_bn"]

_FILTERS = (64, 128, 256, 512, 512)
# Number of convolutions in each stage, by the number of layers with weights (table 1 of the source).
_LAYERS = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}


class VGG(Classifier):
    """VGG: stages of 3 x 3 convolutions, each halved by pooling, and three dense layers.

    Parameters
    ----------
    layers : sequence of int
        Number of convolutions in each stage.
    filters : sequence of int
        Number of channels in each stage.
    classes : int
        Number of classes.
    batch_norm : bool
        Normalise after each convolution.
    **kwargs
        Arguments of `HybridBlock`, which has none.

    Raises
    ------
    ValueError
        If `layers` and `filters` have different lengths.

    Notes
    -----
    The sides of images must be at least 2 to the number of stages.
    Source: K. Simonyan and A. Zisserman, "Very Deep Convolutional Networks for Large-Scale Image Recognition", 2014.

    Examples
    --------
    >>> net = mx.gluon.model_zoo.vision.VGG([1, 1], [4, 8], classes=3)
    >>> net.initialize()
    >>> net(np.ones((2, 3, 8, 8))).shape
    (2, 3)
    """

    def __init__(
        self,
        layers: Sequence[int],
        filters: Sequence[int],
        classes: int = 1000,
        batch_norm: bool = False,
        **kwargs: Any,
    ) -> None:
        if len(layers) != len(filters):
            raise ValueError(
                f"VGG: `layers` and `filters` must have an entry for each stage, found {len(layers)} and {len(filters)}"
            )
        super().__init__(**kwargs)
        for num_layers, channels in zip(layers, filters, strict=True):
            for _ in range(num_layers):
                rule = initializer.Xavier(rnd_type="gaussian", factor_type="out", magnitude=2)
                self.features.add(Conv2D(channels, kernel_size=3, padding=1, weight_initializer=rule))
                if batch_norm:
                    self.features.add(BatchNorm())
                self.features.add(Activation("relu"))
            self.features.add(MaxPool2D(strides=2))
        for _ in range(2):
            self.features.add(Dense(4096, activation="relu", weight_initializer="normal"), Dropout(0.5))
        self.output = Dense(classes, weight_initializer="normal")


def get_vgg(
    num_layers: int, pretrained: bool = False, device: DeviceLike = CPU, root: PathLike | None = None, **kwargs: Any
) -> VGG:
    """VGG of a published depth.

    Parameters
    ----------
    num_layers : {11, 13, 16, 19}
        Number of layers with weights.
    pretrained : bool
        Read the weights of ``vgg<num_layers>``, or ``vgg<num_layers>_bn`` if `batch_norm` is on, from a local file in
        `root`, see `get_model`.
    device : Device or sequence of Device
        Where these weights go.
    root : path, optional
        Folder of the file; ``models`` in `mx.base.data_dir()` by default.
    **kwargs
        `classes` and `batch_norm` of `VGG`.

    Returns
    -------
    VGG

    Raises
    ------
    ValueError
        If there is no VGG of that depth.
    FileNotFoundError
        If `pretrained` and there is no such file. Nothing is downloaded.
    """
    if num_layers not in _LAYERS:
        raise ValueError(f"get_vgg: `num_layers` must be one of {list(_LAYERS)}, found {num_layers!r}")
    net = VGG(_LAYERS[num_layers], _FILTERS, **kwargs)
    suffix = "_bn" if kwargs.get("batch_norm") else ""
    return load_pretrained(net, f"vgg{num_layers}{suffix}", root, device) if pretrained else net


def vgg11(**kwargs: Any) -> VGG:
    """VGG of 11 layers.

    Parameters
    ----------
    **kwargs
        Arguments of `get_vgg`.

    Returns
    -------
    VGG
    """
    return get_vgg(11, **kwargs)


def vgg11_bn(**kwargs: Any) -> VGG:
    """VGG of 11 layers with batch normalisation.

    Parameters
    ----------
    **kwargs
        Arguments of `get_vgg`.

    Returns
    -------
    VGG
    """
    return get_vgg(11, batch_norm=True, **kwargs)


def vgg13(**kwargs: Any) -> VGG:
    """VGG of 13 layers.

    Parameters
    ----------
    **kwargs
        Arguments of `get_vgg`.

    Returns
    -------
    VGG
    """
    return get_vgg(13, **kwargs)


def vgg13_bn(**kwargs: Any) -> VGG:
    """VGG of 13 layers with batch normalisation.

    Parameters
    ----------
    **kwargs
        Arguments of `get_vgg`.

    Returns
    -------
    VGG
    """
    return get_vgg(13, batch_norm=True, **kwargs)


def vgg16(**kwargs: Any) -> VGG:
    """VGG of 16 layers.

    Parameters
    ----------
    **kwargs
        Arguments of `get_vgg`.

    Returns
    -------
    VGG
    """
    return get_vgg(16, **kwargs)


def vgg16_bn(**kwargs: Any) -> VGG:
    """VGG of 16 layers with batch normalisation.

    Parameters
    ----------
    **kwargs
        Arguments of `get_vgg`.

    Returns
    -------
    VGG
    """
    return get_vgg(16, batch_norm=True, **kwargs)


def vgg19(**kwargs: Any) -> VGG:
    """VGG of 19 layers.

    Parameters
    ----------
    **kwargs
        Arguments of `get_vgg`.

    Returns
    -------
    VGG
    """
    return get_vgg(19, **kwargs)


def vgg19_bn(**kwargs: Any) -> VGG:
    """VGG of 19 layers with batch normalisation.

    Parameters
    ----------
    **kwargs
        Arguments of `get_vgg`.

    Returns
    -------
    VGG
    """
    return get_vgg(19, batch_norm=True, **kwargs)
