"""Weighted means, covariance, correlation."""

from __future__ import annotations

import warnings
from typing import Any

import numpy
from numpy.typing import ArrayLike, DTypeLike

from mxnet import _core
from mxnet._core import asarray, ndarray
from mxnet.numpy._dtypes import is_exact, spelled

_np = _core.namespaces["numpy"]
_op = _core.namespaces["op"]

Axes = int | tuple[int, ...] | None


def _floating(x: ndarray) -> ndarray:
    """The array itself if its dtype is inexact, else converted to the default float."""
    if "float" in spelled(x.dtype) or "complex" in spelled(x.dtype):
        return x
    return _op["astype"](x, "float64" if _core.numpy_promotion() else "float32")  # type: ignore[no-any-return]


def _weights_along(weights: ndarray, a: ndarray, axis: Axes) -> ndarray:
    """Weights with the shape of `a`, or of its shape along `axis`, shaped to broadcast with it."""
    if weights.shape == a.shape:
        return weights
    if axis is None:
        raise TypeError(
            f"average: Axis must be specified when shapes of a and weights differ, found {a.shape} and {weights.shape}"
        )
    given = (axis,) if isinstance(axis, int) else tuple(axis)
    for i in given:
        if not -a.ndim <= i < a.ndim:
            raise numpy.exceptions.AxisError(i, a.ndim)
    axes = [i % a.ndim for i in given]
    expected = tuple(a.shape[i] for i in axes)
    if weights.shape != expected:
        raise ValueError(
            "average: Shape of weights must be consistent with shape of a along specified axis: "
            f"{expected} along {axis}, found {weights.shape}"
        )
    order = sorted(range(len(axes)), key=axes.__getitem__)
    turned = _np["transpose"](weights, order) if len(order) > 1 else weights
    return turned.reshape(tuple(n if i in axes else 1 for i, n in enumerate(a.shape)))


def average(
    a: ArrayLike,
    axis: Axes = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    *,
    keepdims: bool = False,
) -> Any:
    """Weighted mean.

    Parameters
    ----------
    a : array_like
    axis : int, tuple of int or None
        Axes to reduce; None reduces all of them.
    weights : array_like, optional
        Of the shape of `a`, or of its shape along `axis`. All 1 if left out.
    returned : bool
        Return the sums of the weights too.
    keepdims : bool
        Keep reduced axes with length 1.

    Returns
    -------
    ndarray or (ndarray, ndarray)
        Sums of weighted elements over the sums of the weights.

    Raises
    ------
    ZeroDivisionError
        If weights sum to 0.
    TypeError, ValueError
        If the shape of `weights` does not fit.

    Notes
    -----
    Differentiable in `a` and `weights`.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.average(mx.np.array([1.0, 2.0, 4.0]), weights=[2, 1, 1])
    array(2.)
    """
    values = asarray(a)
    given: Any = axis
    if isinstance(given, list):
        axis = tuple(given)
    if weights is None:
        mean: ndarray = _np["mean"](_floating(values), axis=axis, keepdims=keepdims)
        if not returned:
            return mean
        return mean, _np["full_like"](mean, values.size // max(mean.size, 1))
    scales = _weights_along(asarray(weights), values, axis)
    if _core.numpy_promotion() and not is_exact(values.dtype):
        scales = _op["astype"](scales, _core.result_type([values.dtype, scales.dtype]))
    values, scales = _floating(values), _floating(scales)
    # Every element is counted: weights along some axes are repeated over the others.
    total = _np["sum"](_np["broadcast_to"](scales, values.shape), axis=axis, keepdims=keepdims)
    if bool(_np["any"](_np["equal"](total.detach(), 0))):
        raise ZeroDivisionError("average: weights sum to zero, so that they cannot be normalised")
    mean = _np["sum"](values * scales, axis=axis, keepdims=keepdims) / total
    return (mean, _op["astype"](total, mean.dtype)) if returned else mean


def _observations(m: ArrayLike, rowvar: bool, dtype: DTypeLike | None) -> ndarray:
    """The observations with variables as rows."""
    x = _floating(asarray(m))
    if dtype is None and _core.numpy_promotion():
        dtype = _core.result_type([x.dtype, "float64"])
    if dtype is not None:
        x = _op["astype"](x, dtype)
    if x.ndim > 2:
        raise ValueError(f"cov: an array has 1 or 2 axes, found {x.ndim}")
    if x.ndim < 2:
        return x.reshape((1, x.size))
    return x if rowvar else x.T


def _counts(weights: ArrayLike, n: int, name: str) -> ndarray:
    x = asarray(weights)
    if x.ndim > 1:
        raise RuntimeError(f"cov: `{name}` must have 1 axis, found {x.ndim}")
    if x.shape != (n,):
        raise RuntimeError(f"cov: `{name}` must have {n} elements, as many as there are observations, found {x.size}")
    if bool(_np["any"](_np["less"](x, 0))):
        raise ValueError(f"cov: `{name}` must not be negative")
    return x


def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
    *,
    dtype: DTypeLike | None = None,
) -> ndarray:
    """Covariance matrix.

    Parameters
    ----------
    m : array_like, shape (k, n) or (n,)
        n observations of k variables; with ``rowvar=False`` of shape (n, k).
    y : array_like, optional
        More variables, of the same form.
    rowvar : bool
        Whether rows are variables.
    bias : bool
        Divide by n and not by n - 1.
    ddof : int, optional
        Divide by ``n - ddof``, whatever `bias` says.
    fweights : array_like of int, shape (n,), optional
        How often each observation was made.
    aweights : array_like, shape (n,), optional
        How much each observation weighs.
    dtype : dtype, optional
        In which it is computed.

    Returns
    -------
    ndarray, shape (k, k), or () for one variable

    Raises
    ------
    ValueError
        If there are more than two axes, or weights are negative.
    RuntimeError
        If weights do not have the shape (n,).
    TypeError
        If `fweights` are no integers.

    Notes
    -----
    Differentiable in `m` and `y`.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.cov(mx.np.array([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    if ddof is not None and ddof != int(ddof):
        raise ValueError(f"cov: `ddof` must be an integer, found {ddof}")
    x = _observations(m, rowvar, dtype)
    if x.shape[0] == 0 and y is None:
        return _np["zeros"]((0, 0), dtype=x.dtype)  # type: ignore[no-any-return]
    if y is not None:
        x = _np["concatenate"]([x, _observations(y, rowvar, dtype)], 0)
    n = x.shape[1]
    if ddof is None:
        ddof = 0 if bias else 1
    if n > 1:
        # A constant that all observations share is subtracted exactly: its rounding would count as variance, and may
        # overflow.
        x = x - x[:, :1]
    weights: ndarray | None = None
    if fweights is not None:
        counts = _counts(fweights, n, "fweights")
        if "int" not in spelled(counts.dtype):
            whole = _np["equal"](counts, _np["rint"](counts))
            if not bool(_np["all"](whole)):
                raise TypeError(f"cov: `fweights` must be integers, found {counts.dtype}")
        weights = _floating(counts)
    if aweights is not None:
        scales = _floating(_counts(aweights, n, "aweights"))
        weights = scales if weights is None else weights * scales
    if weights is None:
        centred = x - _np["mean"](x, axis=1, keepdims=True)
        weighted, divisor = centred, float(n - ddof)
    else:
        total = _np["sum"](weights)
        centred = x - _np["sum"](x * weights, axis=1, keepdims=True) / total
        weighted = centred * weights
        if ddof == 0:
            divisor = float(total)
        elif aweights is None:
            divisor = float(total) - ddof
        else:
            divisor = float(total - ddof * _np["sum"](weights * scales) / total)
    if divisor <= 0:
        warnings.warn("Degrees of freedom <= 0 for slice", RuntimeWarning, stacklevel=2)
        divisor = 0.0
    result = _np["matmul"](weighted, _np["conj"](centred.T))
    result = result / divisor if divisor else result * float("inf")
    return result.reshape(()) if result.size == 1 else result  # type: ignore[no-any-return]


def corrcoef(
    x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, *, dtype: DTypeLike | None = None
) -> ndarray:
    """Correlation coefficients of Pearson.

    Parameters
    ----------
    x : array_like, shape (k, n) or (n,)
        n observations of k variables; with ``rowvar=False`` of shape (n, k).
    y : array_like, optional
        More variables, of the same form.
    rowvar : bool
        Whether rows are variables.
    dtype : dtype, optional
        In which it is computed.

    Returns
    -------
    ndarray, shape (k, k), or () for one variable
        Covariances over the products of standard deviations; real and imaginary parts lie in [-1, 1].

    Notes
    -----
    Differentiable in `x` and `y`.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.corrcoef(mx.np.array([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    c = cov(x, y, rowvar, dtype=dtype)
    if c.ndim == 0:
        return c / c
    deviations = _np["sqrt"](_np["real"](_np["diagonal"](c)))
    scaled = c / deviations.reshape((-1, 1)) / deviations.reshape((1, -1))
    if "complex" not in spelled(scaled.dtype):
        return _np["clip"](scaled, -1, 1)  # type: ignore[no-any-return]
    return _np["clip"](_np["real"](scaled), -1, 1) + 1j * _np["clip"](_np["imag"](scaled), -1, 1)  # type: ignore[no-any-return]
