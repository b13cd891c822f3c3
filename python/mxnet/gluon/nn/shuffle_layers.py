"""Layers that only move elements: pixel shuffles and padding."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mxnet import numpy as np
from mxnet.gluon.block import HybridBlock
from mxnet.gluon.nn.conv_layers import sizes
from mxnet.numpy import ndarray

__all__ = ["PixelShuffle1D", "PixelShuffle2D", "PixelShuffle3D", "ReflectionPad2D"]


class _PixelShuffle(HybridBlock):
    """Moves channels into neighbouring positions."""

    def __init__(self, factor: int | Sequence[int], num_axes: int) -> None:
        super().__init__()
        self._factors = sizes(factor, num_axes, "factor")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._factors})"

    def forward(self, x: ndarray) -> ndarray:
        """Enlarge images.

        Parameters
        ----------
        x : ndarray, shape (n, c * product of factors, ...)

        Returns
        -------
        ndarray, shape (n, c, ...), each size multiplied by its factor

        Raises
        ------
        ValueError
            If the channels cannot be divided.
        """
        factors, area = self._factors, math.prod(self._factors)
        n, channels, *spatial = x.shape
        if channels % area:
            raise ValueError(f"{channels} channels cannot be divided by the product of the factors {factors}")
        # (n, c, f1, f2, h, w) -> (n, c, h, f1, w, f2) -> (n, c, h * f1, w * f2)
        split = x.reshape((n, channels // area, *factors, *spatial))
        rank = len(factors)
        pairs = [axis for index in range(rank) for axis in (2 + rank + index, 2 + index)]
        merged = [size * factor for size, factor in zip(spatial, factors, strict=True)]
        return split.transpose((0, 1, *pairs)).reshape((n, channels // area, *merged))


class PixelShuffle1D(_PixelShuffle):
    """Moves channels into positions: ``(n, f * c, w)`` becomes ``(n, c, w * f)``.

    Parameters
    ----------
    factor : int
        How many times as many positions there will be.

    Notes
    -----
    Source: W. Shi et al., "Real-Time Single Image and Video Super-Resolution Using an Efficient Sub-Pixel Convolutional
    Neural Network", 2016.

    Examples
    --------
    >>> mx.gluon.nn.PixelShuffle1D(2)(np.array([[[1.0, 2.0], [10.0, 20.0]]]))
    array([[[ 1., 10.,  2., 20.]]])
    """

    def __init__(self, factor: int | Sequence[int]) -> None:
        super().__init__(factor, 1)


class PixelShuffle2D(_PixelShuffle):
    """Moves channels into positions: ``(n, f1 * f2 * c, h, w)`` becomes ``(n, c, h * f1, w * f2)``.

    Parameters
    ----------
    factor : int or sequence of 2 int
        How many times as many positions there will be along each axis.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.gluon.nn.PixelShuffle2D((2, 3))(mx.np.zeros((1, 12, 3, 5))).shape
    (1, 2, 6, 15)
    """

    def __init__(self, factor: int | Sequence[int]) -> None:
        super().__init__(factor, 2)


class PixelShuffle3D(_PixelShuffle):
    """Moves channels into positions, as `PixelShuffle2D` does, for three axes.

    Parameters
    ----------
    factor : int or sequence of 3 int
        How many times as many positions there will be along each axis.

    Examples
    --------
    >>> mx.gluon.nn.PixelShuffle3D(2)(np.ones((1, 8, 3, 5, 7))).shape
    (1, 1, 6, 10, 14)
    """

    def __init__(self, factor: int | Sequence[int]) -> None:
        super().__init__(factor, 3)


class ReflectionPad2D(HybridBlock):
    """Pads images with their mirror images; the border itself is not repeated.

    Parameters
    ----------
    padding : int or sequence of 8 int
        How many pixels on each side; less than the height and the width. Eight numbers are those before and after each
        of the axes (n, c, h, w), of which the first four are 0.

    Raises
    ------
    ValueError
        If a number is negative, or `padding` has another length or other samples or channels.

    Examples
    --------
    >>> mx.gluon.nn.ReflectionPad2D(1)(np.arange(9.0).reshape(1, 1, 3, 3))[0, 0]
    array([[4., 3., 4., 5., 4.],
           [1., 0., 1., 2., 1.],
           [4., 3., 4., 5., 4.],
           [7., 6., 7., 8., 7.],
           [4., 3., 4., 5., 4.]])
    """

    def __init__(self, padding: int | Sequence[int] = 0) -> None:
        widths = (0, 0, 0, 0, *[padding] * 4) if isinstance(padding, int) else tuple(padding)
        if len(widths) != 8 or any(widths[:4]):
            raise ValueError(f"`padding` must be a number or 8 numbers that begin with four zeros, found {padding}")
        if min(widths) < 0:
            raise ValueError(f"`padding` must be at least 0, found {padding}")
        super().__init__()
        self._padding = widths[4:]

    def __repr__(self) -> str:
        shown = self._padding[0] if len(set(self._padding)) == 1 else (0, 0, 0, 0, *self._padding)
        return f"{type(self).__name__}({shown})"

    def forward(self, x: ndarray) -> ndarray:
        """Pad images.

        Parameters
        ----------
        x : ndarray, shape (n, c, h, w)

        Returns
        -------
        ndarray, shape (n, c, top + h + bottom, left + w + right)

        Raises
        ------
        ValueError
            If an image is too small.
        """
        for axis, before, after in ((2, *self._padding[:2]), (3, *self._padding[2:])):
            size = x.shape[axis]
            if size <= max(before, after):
                raise ValueError(
                    f"images of {x.shape[2]} by {x.shape[3]} are too small to reflect {max(before, after)} pixels"
                )
            # 2 1 | 0 1 2 3 | 2 1: distance from the border, folded at both ends.
            index = [abs(i) if i < size else 2 * (size - 1) - i for i in range(-before, size + after)]
            x = np.take(x, np.array(index), axis=axis)
        return x
