"""Transforms in a row, always or at random, and changes of dtype."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mxnet import numpy as np
from mxnet.base import DTypeLike, dtype_name
from mxnet.gluon.block import Block, HybridBlock
from mxnet.gluon.data.vision.transforms._base import HybridTransform, TakesNumpy
from mxnet.gluon.nn import HybridLambda, HybridSequential, Lambda, Sequential
from mxnet.numpy import ndarray

__all__ = ["Cast", "Compose", "HybridCompose", "HybridRandomApply", "RandomApply"]


class Compose(Sequential):
    """Applies transforms one after another.

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


class HybridCompose(TakesNumpy, HybridSequential):
    """Applies hybrid transforms one after another.

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


class Cast(HybridTransform):
    """Converts arrays to a dtype.

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


def _parts(transforms: Any) -> list[Any]:
    return list(transforms) if isinstance(transforms, list | tuple) else [transforms]


def _check_probability(p: float) -> float:
    if not 0 <= p <= 1:
        raise ValueError(f"`p` must be from 0 to 1, found {p}")
    return float(p)


class RandomApply(Sequential):
    """Applies all of some transforms with a probability, or none.

    Parameters
    ----------
    transforms : callable or sequence of callable
    p : float
        From 0 to 1.

    Raises
    ------
    ValueError
        If `p` is no probability.

    Examples
    --------
    >>> transforms = mx.gluon.data.vision.transforms
    >>> transforms.RandomApply(transforms.ToTensor(), p=1)(np.zeros((4, 5, 3))).shape
    (3, 4, 5)
    """

    def __init__(self, transforms: Any, p: float = 0.5) -> None:
        super().__init__()
        self._p = _check_probability(p)
        self.add(*(part if isinstance(part, Block) else Lambda(part) for part in _parts(transforms)))

    def forward(self, x: Any, *args: Any) -> Any:
        """Apply the transforms or return what was given; the number drawn is read on the host."""
        if float(np.random.uniform()) < self._p:
            return super().forward(x, *args)
        return (x, *args) if args else x


class HybridRandomApply(TakesNumpy, HybridSequential):
    """Applies all of some hybrid transforms with a probability, or none.

    Parameters
    ----------
    transforms : HybridBlock, callable, or sequence of such
        They keep the shape; both results are computed, and one is chosen without a read on the host.
    p : float
        From 0 to 1.

    Raises
    ------
    ValueError
        If `p` is no probability; at the call, if shapes are changed.

    Examples
    --------
    >>> transforms = mx.gluon.data.vision.transforms
    >>> transforms.HybridRandomApply(transforms.Cast(), p=1)(np.zeros((4, 5, 3))).shape
    (4, 5, 3)
    """

    def __init__(self, transforms: Any, p: float = 0.5) -> None:
        super().__init__()
        self._p = _check_probability(p)
        self.add(*(part if isinstance(part, HybridBlock) else HybridLambda(part) for part in _parts(transforms)))

    def forward(self, x: Any, *args: Any) -> Any:
        """Apply the transforms or return what was given, in the dtype of their result."""
        changed = super().forward(x, *args)
        is_chosen = np.random.uniform(size=(), device=x.device) < self._p
        if not args:
            return _choose(is_chosen, changed, x)
        return tuple(_choose(is_chosen, y, z) for y, z in zip(changed, (x, *args), strict=True))


def _choose(is_chosen: ndarray, changed: ndarray, given: ndarray) -> ndarray:
    if changed.shape != given.shape:
        raise ValueError(
            f"transforms that are applied at random must keep the shape, found {changed.shape} of {given.shape}; "
            f"RandomApply changes it"
        )
    chosen: ndarray = np.where(is_chosen, changed, given.astype(changed.dtype))
    return chosen
