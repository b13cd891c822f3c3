"""Window functions, and the Bessel function `i0`."""

from __future__ import annotations

import math
from typing import Any

import numpy
from numpy.typing import ArrayLike, DTypeLike

from mxnet import _core
from mxnet._core import Device, asarray, ndarray
from mxnet._renamed import old_keywords
from mxnet.numpy._dtypes import spelled

_np = _core.namespaces["numpy"]
_op = _core.namespaces["op"]


def _default_float() -> str:
    return "float64" if _core.numpy_promotion() else "float32"


def _finished(window: ndarray, dtype: DTypeLike | None) -> ndarray:
    return _op["astype"](window, _default_float() if dtype is None else dtype)  # type: ignore[no-any-return]


def _length(M: float) -> float:
    """The length as a Python number: subtracting 1 from an unsigned element would wrap around."""
    return M.item() if isinstance(M, ndarray | numpy.generic) else M


def _phases(M: float, device: Device | None) -> ndarray:
    """1 - M, 3 - M, ..., M - 1: twice the distance from the middle; empty for M < 1."""
    phases: ndarray = _np["arange"](1 - M, M, 2, dtype="float64", device=device)
    return phases


def _cosines(M: float, weights: tuple[float, ...], dtype: DTypeLike | None, device: Device | None) -> ndarray:
    """Sum of `weights[k] cos(k phase)`; a single sample is 1."""
    M = _length(M)
    phases = _phases(M, device)
    if M == 1:
        return _finished(_np["ones_like"](phases), dtype)
    window: Any = weights[0]
    for k, weight in enumerate(weights[1:], 1):
        window = window + weight * _np["cos"](phases * (math.pi * k / (M - 1)))
    return _finished(window, dtype)


@old_keywords(ctx="device")
def hanning(M: float, dtype: DTypeLike | None = None, device: Device | None = None) -> ndarray:
    """Hann window: a raised cosine that ends in 0.

    Parameters
    ----------
    M : int
        Number of samples; below 1 the window is empty.
    dtype : dtype, optional
        The default float if left out.
    device : Device, optional

    Returns
    -------
    ndarray, shape (M,)
        ``0.5 + 0.5 cos(2 pi n / (M - 1))``, n counted from the middle.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.hanning(5)
    array([0. , 0.5, 1. , 0.5, 0. ])
    """
    return _cosines(M, (0.5, 0.5), dtype, device)


@old_keywords(ctx="device")
def hamming(M: float, dtype: DTypeLike | None = None, device: Device | None = None) -> ndarray:
    """Hamming window: a raised cosine that ends in 0.08.

    Parameters
    ----------
    M : int
        Number of samples; below 1 the window is empty.
    dtype : dtype, optional
        The default float if left out.
    device : Device, optional

    Returns
    -------
    ndarray, shape (M,)
        ``0.54 + 0.46 cos(2 pi n / (M - 1))``, n counted from the middle.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.hamming(3)
    array([0.08, 1.  , 0.08])
    """
    return _cosines(M, (0.54, 0.46), dtype, device)


@old_keywords(ctx="device")
def blackman(M: float, dtype: DTypeLike | None = None, device: Device | None = None) -> ndarray:
    """Blackman window: the first three terms of a sum of cosines.

    Parameters
    ----------
    M : int
        Number of samples; below 1 the window is empty.
    dtype : dtype, optional
        The default float if left out.
    device : Device, optional

    Returns
    -------
    ndarray, shape (M,)
        ``0.42 + 0.5 cos(2 pi n / (M - 1)) + 0.08 cos(4 pi n / (M - 1))``, n counted from the middle.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.blackman(3).round(2)
    array([-0.,  1., -0.])
    """
    return _cosines(M, (0.42, 0.5, 0.08), dtype, device)


def bartlett(M: float, dtype: DTypeLike | None = None, device: Device | None = None) -> ndarray:
    """Bartlett window: a triangle that ends in 0.

    Parameters
    ----------
    M : int
        Number of samples; below 1 the window is empty.
    dtype : dtype, optional
        The default float if left out.
    device : Device, optional

    Returns
    -------
    ndarray, shape (M,)

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.bartlett(5)
    array([0. , 0.5, 1. , 0.5, 0. ])
    """
    M = _length(M)
    phases = _phases(M, device)
    if M == 1:
        return _finished(_np["ones_like"](phases), dtype)
    return _finished(1 - _np["abs"](phases / (M - 1)), dtype)


def i0(x: ArrayLike) -> ndarray:
    """Modified Bessel function of the first kind, of order 0.

    Parameters
    ----------
    x : array_like, real

    Returns
    -------
    ndarray
        Shape of `x`; its dtype, or the default float for integers. Accurate to some units in the last place up to where
        the dtype overflows.

    Raises
    ------
    TypeError
        If `x` is complex.

    Notes
    -----
    The power series (DLMF 10.25.2) up to 20, the asymptotic one (10.40.1) beyond, in float64. Differentiable. NumPy
    returns float64 whatever the dtype.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.i0(mx.np.array([0.0, 1.0]))
    array([1.       , 1.2660658])
    """
    values = asarray(x)
    if "complex" in spelled(values.dtype):
        raise TypeError(f"i0: i0 not supported for complex values, found {values.dtype}")
    if "float" not in spelled(values.dtype):
        values = _op["astype"](values, _default_float())
    return _op["i0"](values)  # type: ignore[no-any-return]


def kaiser(M: float, beta: float, dtype: DTypeLike | None = None, device: Device | None = None) -> ndarray:
    """Kaiser window, made of a Bessel function.

    Parameters
    ----------
    M : int
        Number of samples; below 1 the window is empty.
    beta : float
        Shape: 0 is a rectangle, 5 is like a Hamming window, 14 is a good start.
    dtype : dtype, optional
        The default float if left out.
    device : Device, optional

    Returns
    -------
    ndarray, shape (M,)
        ``i0(beta sqrt(1 - (2 n / (M - 1))^2)) / i0(beta)``, n counted from the middle.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.kaiser(3, 5).round(4)
    array([0.0367, 1.    , 0.0367])
    """
    M = _length(M)
    phases = _phases(M, device)
    if M == 1:
        return _finished(_np["ones_like"](phases), dtype)
    # Rounding may make the last sample negative under the root.
    inside = _np["maximum"](1 - _np["square"](phases / max(M - 1, 1)), 0)
    return _finished(i0(beta * _np["sqrt"](inside)) / i0(asarray(float(beta), dtype="float64")), dtype)
