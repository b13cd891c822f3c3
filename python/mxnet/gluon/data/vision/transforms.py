"""Transforms of images, as blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mxnet import numpy as np
from mxnet.base import DTypeLike, dtype_name
from mxnet.gluon.block import Block, HybridBlock
from mxnet.gluon.nn import HybridLambda, HybridSequential, Lambda, Sequential
from mxnet.numpy import ndarray

__all__ = ["Cast", "Compose", "HybridCompose", "Normalize", "ToTensor"]


class Compose(Sequential):
    """Transforms in a row.

    Parameters
    ----------
    transforms : sequence of Block or callable

    Examples
    --------
    >>> transforms = mx.gluon.data.vision.transforms
    >>> both = transforms.Compose([transforms.ToTensor(), transforms.Cast('float16')])
    >>> both(np.zeros((4, 5, 3), dtype='uint8')).shape
    (3, 4, 5)
    """

    def __init__(self, transforms: Sequence[Callable[..., Any]]) -> None:
        super().__init__()
        self.add(*(part if isinstance(part, Block) else Lambda(part) for part in transforms))


class HybridCompose(HybridSequential):
    """Hybrid transforms in a row.

    Parameters
    ----------
    transforms : sequence of HybridBlock or callable

    Examples
    --------
    >>> transforms = mx.gluon.data.vision.transforms
    >>> both = transforms.HybridCompose([transforms.ToTensor(), transforms.Cast('float16')])
    >>> both(np.zeros((4, 5, 3), dtype='uint8')).shape
    (3, 4, 5)
    """

    def __init__(self, transforms: Sequence[Callable[..., Any]]) -> None:
        super().__init__()
        self.add(*(part if isinstance(part, HybridBlock) else HybridLambda(part) for part in transforms))


class Cast(HybridBlock):
    """Change the dtype.

    Parameters
    ----------
    dtype : dtype

    Examples
    --------
    >>> mx.gluon.data.vision.transforms.Cast('float16')(np.ones(2)).dtype
    dtype('float16')
    """

    def __init__(self, dtype: DTypeLike = "float32") -> None:
        super().__init__()
        self._dtype = dtype_name(dtype)

    def forward(self, *args: Any) -> Any:
        """Convert arrays; returns one array for one argument, else a tuple."""
        found = tuple((x if isinstance(x, ndarray) else np.array(x)).astype(self._dtype) for x in args)
        return found[0] if len(found) == 1 else found


class ToTensor(HybridBlock):
    """Integers from 0 to 255 to float32 from 0 to 1, channels first.

    Examples
    --------
    >>> image = np.full((1, 2, 3), 255, dtype='uint8')
    >>> mx.gluon.data.vision.transforms.ToTensor()(image).shape
    (3, 1, 2)
    """

    def forward(self, x: Any) -> ndarray:
        """Convert an image or a batch of images.

        Parameters
        ----------
        x : array_like, shape (h, w, c) or (n, h, w, c)

        Returns
        -------
        ndarray, shape (c, h, w) or (n, c, h, w), float32

        Raises
        ------
        ValueError
            If `x` has another number of axes.
        """
        array = x if isinstance(x, ndarray) else np.array(x)
        if array.ndim not in (3, 4):
            raise ValueError(f"`x` must have 3 or 4 axes, (h, w, c) or (n, h, w, c), found shape {array.shape}")
        axes = (2, 0, 1) if array.ndim == 3 else (0, 3, 1, 2)
        return array.transpose(axes).astype("float32") / 255.0


class Normalize(HybridBlock):
    """Subtract a mean and divide by a standard deviation.

    Parameters
    ----------
    mean, std : float or sequence of float
        One number, or one for each channel.

    Raises
    ------
    ValueError
        If a standard deviation is zero.

    Examples
    --------
    >>> mx.gluon.data.vision.transforms.Normalize(mean=0.5, std=0.25)(np.ones((1, 1, 2)))
    array([[[2., 2.]]])
    """

    def __init__(self, mean: float | Sequence[float] = 0.0, std: float | Sequence[float] = 1.0) -> None:
        super().__init__()
        self._mean = (float(mean),) if isinstance(mean, int | float) else tuple(mean)
        self._std = (float(std),) if isinstance(std, int | float) else tuple(std)
        if 0.0 in self._std:
            raise ValueError(f"`std` must not be zero, found {self._std}")

    def forward(self, x: ndarray) -> ndarray:
        """Normalise an image or a batch of images.

        Parameters
        ----------
        x : ndarray, shape (c, h, w) or (n, c, h, w)

        Returns
        -------
        ndarray, shape of `x`
        """
        # (c,) -> (c, 1, 1), which broadcasts against both layouts.
        mean = np.array(self._mean, dtype=x.dtype, device=x.device).reshape((-1, 1, 1))
        std = np.array(self._std, dtype=x.dtype, device=x.device).reshape((-1, 1, 1))
        return (x - mean) / std
