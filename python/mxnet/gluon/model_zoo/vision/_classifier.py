"""Base class of the image classifiers: features followed by scores, and weights in local files."""

from __future__ import annotations

import glob
import os
from typing import Any, TypeVar

from mxnet.base import PathLike, data_dir
from mxnet.device import cpu
from mxnet.gluon.block import Block, HybridBlock
from mxnet.gluon.nn import HybridSequential
from mxnet.gluon.parameter import DeviceLike
from mxnet.numpy import ndarray

__all__ = ["CPU", "Classifier", "load_pretrained", "weights_folder"]

CPU = cpu(0)
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


def weights_folder(root: PathLike | None) -> str:
    """Folder of the files of weights.

    Parameters
    ----------
    root : path, optional
        ``~`` in front stands for the home folder; ``models`` in `mx.base.data_dir()` by default.

    Returns
    -------
    str
    """
    return os.path.expanduser(os.path.join(data_dir(), "models") if root is None else os.fspath(root))


def load_pretrained(net: _Net, name: str, root: PathLike | None, device: DeviceLike) -> _Net:
    """Read the weights of a network from a local file, see `get_model`.

    Parameters
    ----------
    net : Block
    name : str
        Name of the model, as in `get_model`.
    root : path, optional
        A folder, see `weights_folder`.
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
    ValueError
        If there are several files with a hash and none without one.
    FileFormatError, ValueError, TypeError
        See `Block.load_parameters`.
    """
    start = os.path.join(weights_folder(root), name)
    hashed = sorted(glob.glob(f"{glob.escape(start)}-{'[0-9a-f]' * 8}.params"))
    candidates = [path for path in (f"{start}.safetensors", f"{start}.params") if os.path.isfile(path)] or hashed
    if not candidates:
        raise FileNotFoundError(
            f"{name}: `pretrained=True` reads one of the local files {name}.safetensors, {name}.params and "
            f"{name}-<hash>.params in {os.path.dirname(start)!r}, where there is none; nothing is downloaded"
        )
    if candidates == hashed and len(hashed) > 1:
        raise ValueError(f"{name}: `pretrained=True` needs one file of the weights, found {', '.join(hashed)}")
    path = candidates[0]
    net.load_parameters(path, device=device)
    return net
