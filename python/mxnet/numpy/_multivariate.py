"""Multivariate normal samples."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp
from numpy.typing import ArrayLike

from mxnet import _core
from mxnet._core import asarray, ndarray
from mxnet.numpy import linalg as _linalg

_np = _core.namespaces["numpy"]
_normal = _core.namespaces["random"]["standard_normal"]


def _factor(cov: ndarray, method: str) -> tuple[ndarray, ndarray | None]:
    """A matrix A with A^T A = cov, and the signed eigenvalues unless `method` is 'cholesky'."""
    if method == "cholesky":
        return _linalg.cholesky(cov).swapaxes(-1, -2), None
    if method == "eigh":
        values, vectors = _linalg.eigh(cov)
        return (vectors * _np["sqrt"](_np["maximum"](values, 0))[..., None, :]).swapaxes(-1, -2), values
    left, values, right = _linalg.svd(cov)
    # For a symmetric matrix, a negative eigenvalue shows as left and right vectors of opposite sign.
    signs = _np["sign"]((left.swapaxes(-1, -2) * right).sum(-1))
    return _np["sqrt"](values)[..., None] * right, values * signs


def sample(
    call: Callable[..., Any],
    mean: ArrayLike,
    cov: ArrayLike,
    size: int | Sequence[int] | None,
    check_valid: str | None,
    tol: float | None,
    method: str,
) -> ndarray:
    """Implementation of `multivariate_normal`; `call` runs a sampler on its stream."""
    name = "multivariate_normal"
    if method not in ("svd", "eigh", "cholesky"):
        raise ValueError(f"{name}: `method` must be 'svd', 'eigh' or 'cholesky', found {method!r}")
    if check_valid not in (None, "warn", "raise", "ignore"):
        raise ValueError(f"{name}: `check_valid` must be 'warn', 'raise' or 'ignore', found {check_valid!r}")
    mu, sigma = asarray(mean), asarray(cov)
    if mu.ndim < 1 or sigma.ndim < 2 or sigma.shape[-2:] != (mu.shape[-1], mu.shape[-1]):
        raise ValueError(
            f"{name}: `mean` must have shape (..., n) and `cov` (..., n, n), found {mu.shape} and {sigma.shape}"
        )
    # Promoted as in operators, and to a float.
    dtype = (mu[..., :0].sum() * 1.0 + sigma[..., :0].sum()).dtype
    mu, sigma = mu.astype(dtype), sigma.astype(dtype)
    factor, values = _factor(sigma, method)
    if values is not None and check_valid in ("warn", "raise"):
        least = float(values.detach().min().item()) if values.size else 0.0
        if least < -(1e-8 if tol is None else tol):
            problem = f"{name}: `cov` is not positive semidefinite, its least eigenvalue is {least}"
            if check_valid == "raise":
                raise ValueError(problem)
            warnings.warn(problem, RuntimeWarning, stacklevel=4)
    own = () if size is None else (size,) if isinstance(size, int) else tuple(size)
    rows = onp.broadcast_shapes(mu.shape, sigma.shape[:-1])
    z = call(_normal, (*own, *rows), dtype)
    moved = z @ factor if sigma.ndim == 2 else (z[..., None, :] @ factor)[..., 0, :]
    result: ndarray = mu + moved
    return result


def multivariate_normal(
    mean: ArrayLike,
    cov: ArrayLike,
    size: int | Sequence[int] | None = None,
    check_valid: str | None = "warn",
    tol: float | None = 1e-8,
) -> ndarray:
    """Normal vectors.

    Parameters
    ----------
    mean : array_like, shape (..., n)
    cov : array_like, shape (..., n, n)
        Covariances, symmetric and positive semidefinite; their leading axes broadcast with those of `mean`.
    size : int or sequence of int, optional
        Stands before the shape of the parameters.
    check_valid : {'warn', 'raise', 'ignore'}
        What to do if `cov` has an eigenvalue below -`tol`. The check reads values, so the call waits; 'ignore' does
        not.
    tol : float

    Returns
    -------
    ndarray, shape `size` + (..., n)
        Differentiable with respect to `mean`, and to `cov` where its eigenvalues differ. The method 'cholesky' of
        `Generator.multivariate_normal` needs a positive definite matrix instead.

    Raises
    ------
    ValueError
        If the shapes do not fit, or `cov` is not valid and `check_valid` is 'raise'.

    Examples
    --------
    >>> mx.np.random.multivariate_normal([0.0, 1.0], [[1.0, 0.5], [0.5, 2.0]], size=4).shape
    (4, 2)
    """

    def call(function: Callable[..., Any], *arguments: Any) -> Any:
        return function(*arguments)

    return sample(call, mean, cov, size, check_valid, tol, "svd")
