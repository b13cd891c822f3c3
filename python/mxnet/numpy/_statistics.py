"""Weighted means, covariance, correlation."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike, DTypeLike

from mxnet import _core
from mxnet._core import asarray, ndarray
from mxnet.numpy._overriding import overridable

_np = _core.namespaces["numpy"]
_op = _core.namespaces["op"]

Axes = int | tuple[int, ...] | None


@overridable
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
        found = _op["average"](values, axis, None, returned, keepdims)
        return tuple(found) if returned else found
    mean, total = _op["average"](values, axis, asarray(weights), True, keepdims)
    if bool(_np["any"](_np["equal"](total.detach(), 0))):
        raise ZeroDivisionError("average: weights sum to zero, so that they cannot be normalised")
    return (mean, total) if returned else mean


def _weights(weights: ArrayLike | None, m: ndarray, rowvar: bool, name: str) -> ndarray | None:
    """Weights of the observations, with the errors that NumPy has for their shapes."""
    if weights is None:
        return None
    x = asarray(weights)
    n = m.shape[-1 if rowvar or m.ndim < 2 else 0] if m.ndim else 1
    if x.ndim > 1:
        raise RuntimeError(f"cov: `{name}` must have 1 axis, found {x.ndim}")
    if x.shape != (n,):
        raise RuntimeError(f"cov: `{name}` must have {n} elements, as many as there are observations, found {x.size}")
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
    x = asarray(m)
    counts, scales = (_weights(w, x, rowvar, name) for w, name in ((fweights, "fweights"), (aweights, "aweights")))
    more = None if y is None else asarray(y)
    whole = None if ddof is None else int(ddof)
    return _op["cov"](x, more, bool(rowvar), bool(bias), whole, counts, scales, dtype=dtype)  # type: ignore[no-any-return]


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
    more = None if y is None else asarray(y)
    return _op["corrcoef"](asarray(x), more, bool(rowvar), dtype=dtype)  # type: ignore[no-any-return]
