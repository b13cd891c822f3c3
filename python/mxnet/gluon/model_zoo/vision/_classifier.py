"""Base class of the image classifiers: features followed by scores, and weights in local files."""

from __future__ import annotations

import glob
import os
from typing import Any, TypeVar

from mxnet.base import PathLike
from mxnet.device import cpu
from mxnet.gluon.block import Block, HybridBlock
from mxnet.gluon.nn import HybridSequential
from mxnet.gluon.parameter import DeviceLike
from mxnet.numpy import ndarray

__all__ = ["CPU", "ROOT", "Classifier", "load_pretrained"]

CPU = cpu(0)
ROOT = "~/.mxnet/models"
_Net = TypeVar("_Net", bound=Block)


class Classifier(HybridBlock):
    """A network whose `features` are followed by its `output`, the scores of the classes.

    Parameters
    ----------
    **kwargs
        Arguments of `HybridBlock`, which has none: any other name is a TypeError.
    """

    features: HybridSequential
    output: HybridBlock

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.features = HybridSequential()

    def forward(self, x: ndarray) -> ndarray:
        """Scores of the classes, without softmax.

        Parameters
        ----------
        x : ndarray, shape (n, c, h, w)
            Images.

        Returns
        -------
        ndarray, shape (n, classes)
        """
        scores: ndarray = self.output(self.features(x))
        return scores


def load_pretrained(net: _Net, name: str, root: PathLike, device: DeviceLike) -> _Net:
    """Read the weights of a network from ``<root>/<name>.safetensors``, or ``.params`` as MXNet 1.x and 2.x wrote it.

    Parameters
    ----------
    net : Block
    name : str
        Name of the model, as in `get_model`. A file of older programs may have a hash behind it,
        ``<name>-0a1b2c3d.params``.
    root : path
        A folder; ``~`` stands for the home folder.
    device : Device or sequence of Device
        Where the weights go.

    Returns
    -------
    Block
        `net`.

    Raises
    ------
    FileNotFoundError
        If there is no such file. Nothing is downloaded.
    FileFormatError, ValueError, TypeError
        See `Block.load_parameters`.
    """
    start = os.path.join(os.path.expanduser(os.fspath(root)), name)
    hashed = sorted(glob.glob(f"{glob.escape(start)}-{'[0-9a-f]' * 8}.params"))
    candidates = [f"{start}.safetensors", f"{start}.params", *hashed]
    path = next((path for path in candidates if os.path.isfile(path)), None)
    if path is None:
        raise FileNotFoundError(
            f"{name}: `pretrained=True` reads the local file {candidates[0]!r}, which does not exist; nothing is "
            "downloaded"
        )
    net.load_parameters(path, device=device)
    return net
