"""Inception v3."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mxnet.base import PathLike
from mxnet.gluon.block import HybridBlock
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
    MaxPool2D,
)
from mxnet.gluon.parameter import DeviceLike

__all__ = ["Inception3", "inception_v3"]

# A convolution: channels, kernel size, strides, padding.
_Size = int | tuple[int, int]
_Convolution = tuple[int, _Size, _Size, _Size]


def _convolution(channels: int, kernel_size: _Size, strides: _Size = 1, padding: _Size = 0) -> HybridSequential:
    block = HybridSequential()
    block.add(
        Conv2D(channels, kernel_size, strides, padding, use_bias=False), BatchNorm(epsilon=0.001), Activation("relu")
    )
    return block


def _branch(*convolutions: _Convolution, pool: HybridBlock | None = None) -> HybridSequential:
    """Convolutions one after the other, behind a pool if there is one."""
    block = HybridSequential()
    if pool is not None:
        block.add(pool)
    for convolution in convolutions:
        block.add(_convolution(*convolution))
    return block


def _parallel(*branches: HybridBlock) -> HybridConcatenate:
    """The channels of all branches, which get the same input."""
    block = HybridConcatenate(axis=1)
    block.add(*branches)
    return block


def _average() -> AvgPool2D:
    return AvgPool2D(pool_size=3, strides=1, padding=1)


def _block_35(pooled: int) -> HybridConcatenate:
    """For images of 35 by 35."""
    return _parallel(
        _branch((64, 1, 1, 0)),
        _branch((48, 1, 1, 0), (64, 5, 1, 2)),
        _branch((64, 1, 1, 0), (96, 3, 1, 1), (96, 3, 1, 1)),
        _branch((pooled, 1, 1, 0), pool=_average()),
    )


def _reduction_17() -> HybridConcatenate:
    """From 35 by 35 to 17 by 17."""
    return _parallel(
        _branch((384, 3, 2, 0)),
        _branch((64, 1, 1, 0), (96, 3, 1, 1), (96, 3, 2, 0)),
        _branch(pool=MaxPool2D(pool_size=3, strides=2)),
    )


def _block_17(inner: int) -> HybridConcatenate:
    """For images of 17 by 17: kernels of 7 by 7 as a row and a column."""
    row, column = ((1, 7), 1, (0, 3)), ((7, 1), 1, (3, 0))
    return _parallel(
        _branch((192, 1, 1, 0)),
        _branch((inner, 1, 1, 0), (inner, *row), (192, *column)),
        _branch((inner, 1, 1, 0), (inner, *column), (inner, *row), (inner, *column), (192, *row)),
        _branch((192, 1, 1, 0), pool=_average()),
    )


def _reduction_8() -> HybridConcatenate:
    """From 17 by 17 to 8 by 8."""
    return _parallel(
        _branch((192, 1, 1, 0), (320, 3, 2, 0)),
        _branch((192, 1, 1, 0), (192, (1, 7), 1, (0, 3)), (192, (7, 1), 1, (3, 0)), (192, 3, 2, 0)),
        _branch(pool=MaxPool2D(pool_size=3, strides=2)),
    )


def _block_8() -> HybridConcatenate:
    """For images of 8 by 8: a row and a column side by side."""

    def split(convolutions: Sequence[_Convolution]) -> HybridSequential:
        block = HybridSequential()
        block.add(
            _branch(*convolutions), _parallel(_branch((384, (1, 3), 1, (0, 1))), _branch((384, (3, 1), 1, (1, 0))))
        )
        return block

    return _parallel(
        _branch((320, 1, 1, 0)),
        split([(384, 1, 1, 0)]),
        split([(448, 1, 1, 0), (384, 3, 1, 1)]),
        _branch((192, 1, 1, 0), pool=_average()),
    )


class Inception3(Classifier):
    """Inception v3 without the auxiliary output, for images of 299 by 299.

    Parameters
    ----------
    classes : int
        Number of classes.
    **kwargs
        Arguments of `HybridBlock`, which has none.

    Notes
    -----
    Source: C. Szegedy et al., "Rethinking the Inception Architecture for Computer Vision", 2016.

    Examples
    --------
    >>> net = mx.gluon.model_zoo.vision.Inception3(classes=10)
    >>> len(net.features), net.output
    (21, Dense(None -> 10, linear))
    """

    def __init__(self, classes: int = 1000, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.features.add(
            _convolution(32, 3, 2),
            _convolution(32, 3),
            _convolution(64, 3, 1, 1),
            MaxPool2D(pool_size=3, strides=2),
            _convolution(80, 1),
            _convolution(192, 3),
            MaxPool2D(pool_size=3, strides=2),
            *(_block_35(pooled) for pooled in (32, 64, 64)),
            _reduction_17(),
            *(_block_17(inner) for inner in (128, 160, 160, 192)),
            _reduction_8(),
            _block_8(),
            _block_8(),
            AvgPool2D(pool_size=8),
            Dropout(0.5),
            Flatten(),
        )
        self.output = Dense(classes)


def inception_v3(
    pretrained: bool = False, device: DeviceLike = CPU, root: PathLike | None = None, **kwargs: Any
) -> Inception3:
    """Inception v3: see the class `Inception3`.

    Parameters
    ----------
    pretrained : bool
        Read the weights of ``inceptionv3`` from a local file in `root`, see `get_model`.
    device : Device or sequence of Device
        Where these weights go.
    root : path, optional
        Folder of the file; ``models`` in `mx.base.data_dir()` by default.
    **kwargs
        Arguments of `Inception3`.

    Returns
    -------
    Inception3

    Raises
    ------
    FileNotFoundError
        If `pretrained` and there is no such file. Nothing is downloaded.
    """
    net = Inception3(**kwargs)
    return load_pretrained(net, "inceptionv3", root, device) if pretrained else net
