"""AlexNet."""

from __future__ import annotations

from typing import Any

from mxnet.base import PathLike
from mxnet.gluon.model_zoo.vision._classifier import CPU, Classifier, load_pretrained
from mxnet.gluon.nn import Conv2D, Dense, Dropout, Flatten, MaxPool2D
from mxnet.gluon.parameter import DeviceLike

__all__ = ["AlexNet", "alexnet"]


class AlexNet(Classifier):
    """AlexNet: five convolutions and three dense layers, the one-tower form, for images of at least 63 by 63.

    Parameters
    ----------
    classes : int
        Number of classes.
    **kwargs
        Arguments of `HybridBlock`, which has none.

    Notes
    -----
    Source: A. Krizhevsky, "One weird trick for parallelizing convolutional neural networks", 2014.

    Examples
    --------
    >>> net = mx.gluon.model_zoo.vision.AlexNet(classes=10)
    >>> len(net.features), net.output
    (13, Dense(None -> 10, linear))
    """

    def __init__(self, classes: int = 1000, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.features.add(
            Conv2D(64, kernel_size=11, strides=4, padding=2, activation="relu"),
            MaxPool2D(pool_size=3, strides=2),
            Conv2D(192, kernel_size=5, padding=2, activation="relu"),
            MaxPool2D(pool_size=3, strides=2),
            Conv2D(384, kernel_size=3, padding=1, activation="relu"),
            Conv2D(256, kernel_size=3, padding=1, activation="relu"),
            Conv2D(256, kernel_size=3, padding=1, activation="relu"),
            MaxPool2D(pool_size=3, strides=2),
            Flatten(),
            Dense(4096, activation="relu"),
            Dropout(0.5),
            Dense(4096, activation="relu"),
            Dropout(0.5),
        )
        self.output = Dense(classes)


def alexnet(pretrained: bool = False, device: DeviceLike = CPU, root: PathLike | None = None, **kwargs: Any) -> AlexNet:
    """AlexNet: see the class `AlexNet`.

    Parameters
    ----------
    pretrained : bool
        Read the weights of ``alexnet`` from a local file in `root`, see `get_model`.
    device : Device or sequence of Device
        Where these weights go.
    root : path, optional
        Folder of the file; ``models`` in `mx.base.data_dir()` by default.
    **kwargs
        Arguments of `AlexNet`.

    Returns
    -------
    AlexNet

    Raises
    ------
    FileNotFoundError
        If `pretrained` and there is no such file. Nothing is downloaded.
    """
    net = AlexNet(**kwargs)
    return load_pretrained(net, "alexnet", root, device) if pretrained else net
