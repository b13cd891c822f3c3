"""Poisson samples under MXNet's names."""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import ArrayLike

from mxnet import _core
from mxnet._core import asarray, ndarray
from mxnet.base import DTypeLike
from mxnet.device import Device

__all__ = ["scalar_poisson", "tensor_poisson"]

_poisson = _core.namespaces["random"]["poisson"]


def _shape(shape: int | Sequence[int] | None) -> tuple[int, ...]:
    return () if shape is None else (shape,) if isinstance(shape, int) else tuple(shape)


def scalar_poisson(
    lam: float = 1,
    shape: int | Sequence[int] | None = None,
    ctx: Device | None = None,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """Poisson samples of one mean.

    Parameters
    ----------
    lam : float
        At least 0.
    shape : int or sequence of int, optional
        None is one sample, shape ().
    ctx : Device, optional
    dtype : dtype, optional
        None is the default float.

    Returns
    -------
    ndarray
        Of shape `shape`.

    Raises
    ------
    ValueError
        If `lam` is negative.

    Examples
    --------
    >>> np.random.seed(1)
    >>> round(float(npx.scalar_poisson(4.0, shape=100000).mean()), 1)
    4.0
    """
    wanted = _core.array(0.0).dtype if dtype is None else dtype
    samples: ndarray = _poisson(float(lam), _shape(shape), wanted, ctx)
    return samples


def tensor_poisson(lam: ArrayLike, shape: int | Sequence[int] = (), dtype: DTypeLike | None = None) -> ndarray:
    """Poisson samples of many means: `shape` of them for each.

    Parameters
    ----------
    lam : array_like
        At least 0.
    shape : int or sequence of int
    dtype : dtype, optional
        None is the default float.

    Returns
    -------
    ndarray, shape ``lam.shape + shape``

    Raises
    ------
    ValueError
        If an element of `lam` is negative.

    Examples
    --------
    >>> np.random.seed(1)
    >>> npx.tensor_poisson(np.array([1.0, 10.0]), shape=(100000,)).mean(axis=1).round()
    array([ 1., 10.])
    """
    means, own = asarray(lam), _shape(shape)
    wanted = _core.array(0.0).dtype if dtype is None else dtype
    samples: ndarray = _poisson(means.reshape(*means.shape, *(1 for _ in own)), (*means.shape, *own), wanted)
    return samples
