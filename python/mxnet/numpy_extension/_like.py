"""Samples of the shape of another array, and the number of its elements."""

from __future__ import annotations

from numpy.typing import ArrayLike

from mxnet import _core
from mxnet._core import asarray, ndarray

__all__ = ["normal_like", "uniform_like"]

_random = _core.namespaces["random"]


def uniform_like(data: ArrayLike, low: float = 0.0, high: float = 1.0) -> ndarray:
    """Uniform samples of the shape and dtype of an array.

    Parameters
    ----------
    data : array_like, floating dtype
    low, high : float
        Samples are in ``[low, high)``.

    Returns
    -------
    ndarray
        Of the shape, dtype and device of `data`.

    Examples
    --------
    >>> npx.uniform_like(np.zeros((2, 3))).shape
    (2, 3)
    """
    x = asarray(data)
    samples: ndarray = _random["uniform"](low, high, size=x.shape, dtype=x.dtype, device=x.device)
    return samples


def normal_like(data: ArrayLike, loc: float = 0.0, scale: float = 1.0) -> ndarray:
    """Normal samples of the shape and dtype of an array.

    Parameters
    ----------
    data : array_like, floating dtype
    loc : float
        Mean.
    scale : float
        Standard deviation, at least 0.

    Returns
    -------
    ndarray
        Of the shape, dtype and device of `data`.

    Raises
    ------
    ValueError
        If `scale` is negative.

    Examples
    --------
    >>> npx.normal_like(np.zeros((2, 3))).shape
    (2, 3)
    """
    x = asarray(data)
    samples: ndarray = _random["normal"](loc, scale, size=x.shape, dtype=x.dtype, device=x.device)
    return samples
