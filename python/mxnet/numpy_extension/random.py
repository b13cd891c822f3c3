"""Samplers beyond those of NumPy."""

from __future__ import annotations

from typing import Any

import numpy as onp

from mxnet import _core
from mxnet import random as _random
from mxnet._core import ndarray
from mxnet.base import DTypeLike
from mxnet.device import Device

__all__ = ["bernoulli", "categorical", "multinomial", "normal_n", "seed", "uniform_n"]

bernoulli = _core.namespaces["op"]["bernoulli"]
categorical = _core.namespaces["op"]["categorical"]


def seed(seed: int, device: Device | str = "all") -> None:
    """Start the stream of random numbers anew.

    Parameters
    ----------
    seed : int
        From 0 to ``2**64 - 1``.
    device : Device or "all"
        There is one stream for all devices, which the seed of any of them starts anew.

    Raises
    ------
    ValueError
        If `device` is something else, or the seed is out of range.

    Examples
    --------
    >>> npx.random.seed(1)
    >>> x = np.random.normal(size=3)
    >>> npx.random.seed(1)
    >>> bool((np.random.normal(size=3) == x).all())
    True
    """
    _random.seed(seed, device)


def _batched(parameters: tuple[Any, ...], batch_shape: int | tuple[int, ...] | None) -> tuple[int, ...]:
    """`batch_shape` before the shape that the parameters broadcast to."""
    own = onp.broadcast_shapes(*(getattr(p, "shape", ()) for p in parameters))
    if batch_shape is None:
        return own
    if isinstance(batch_shape, int):
        batch_shape = (batch_shape,)
    return (*batch_shape, *own)


def uniform_n(
    low: ndarray | float = 0.0,
    high: ndarray | float = 1.0,
    batch_shape: int | tuple[int, ...] | None = None,
    dtype: DTypeLike | None = None,
    device: Device | None = None,
) -> ndarray:
    """Uniform samples, a batch for every element of the parameters.

    Parameters
    ----------
    low, high : float or ndarray
        Bounds; they broadcast. Differentiable with respect to both.
    batch_shape : int or tuple of int
        Stands before the shape of the parameters.
    dtype : dtype
    device : Device

    Returns
    -------
    ndarray, shape ``batch_shape + broadcast(low, high).shape``

    Examples
    --------
    >>> npx.random.uniform_n(np.array([0.0, 100.0]), np.array([1.0, 101.0]), batch_shape=(3,)).shape
    (3, 2)
    """
    size = _batched((low, high), batch_shape)
    samples: ndarray = _core.namespaces["random"]["uniform"](low, high, size, dtype, device)
    return samples


def normal_n(
    loc: ndarray | float = 0.0,
    scale: ndarray | float = 1.0,
    batch_shape: int | tuple[int, ...] | None = None,
    dtype: DTypeLike | None = None,
    device: Device | None = None,
) -> ndarray:
    """Normal samples, a batch for every element of the parameters.

    Parameters
    ----------
    loc, scale : float or ndarray
        Mean and standard deviation; they broadcast. Differentiable with respect to both.
    batch_shape : int or tuple of int
        Stands before the shape of the parameters.
    dtype : dtype
    device : Device

    Returns
    -------
    ndarray, shape ``batch_shape + broadcast(loc, scale).shape``

    Examples
    --------
    >>> npx.random.normal_n(np.array([0.0, 100.0]), 1.0, batch_shape=(3,)).shape
    (3, 2)
    """
    size = _batched((loc, scale), batch_shape)
    samples: ndarray = _core.namespaces["random"]["normal"](loc, scale, size, dtype, device)
    return samples


def multinomial(
    n: int, p: ndarray, shape: int | tuple[int, ...] = (), ctx: Device | None = None, dtype: DTypeLike = "int32"
) -> ndarray:
    """Counts of categories in `n` draws.

    Parameters
    ----------
    n : int
        At least 0.
    p : ndarray, shape (k,)
        Probabilities; the last is what the others leave of 1.
    shape : int or tuple of int
        How many samples.
    ctx : Device, optional
        Where the result is; None is where `p` is.
    dtype : dtype

    Returns
    -------
    ndarray, shape ``shape + (k,)``

    Raises
    ------
    ValueError
        If `n` is negative or `p` holds no probabilities.

    Examples
    --------
    >>> counts = npx.random.multinomial(10, np.array([0.2, 0.3, 0.5]), shape=(4,))
    >>> counts.shape, counts.sum(axis=1)
    ((4, 3), array([10, 10, 10, 10]))
    """
    counts: ndarray = _core.asarray(_core.namespaces["random"]["multinomial"](n, p, shape), dtype=dtype)
    return counts if ctx is None else counts.to_device(ctx)
