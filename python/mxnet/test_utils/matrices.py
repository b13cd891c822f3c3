"""Random square matrices with known properties, as NumPy arrays, drawn from `numpy.random`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as onp

__all__ = [
    "new_matrix_with_real_eigvals_2d",
    "new_matrix_with_real_eigvals_nd",
    "new_orthonormal_matrix_2d",
    "new_sym_matrix_with_real_eigvals_2d",
    "new_sym_matrix_with_real_eigvals_nd",
]

_LARGEST = 10.0


def new_orthonormal_matrix_2d(n: int) -> onp.ndarray:
    """A matrix whose columns are orthonormal.

    Parameters
    ----------
    n : int
        Number of rows and columns.

    Returns
    -------
    numpy.ndarray, shape (n, n), float64

    Examples
    --------
    >>> q = mx.test_utils.new_orthonormal_matrix_2d(3)
    >>> (abs(q.T @ q - [[1, 0, 0], [0, 1, 0], [0, 0, 1]]) < 1e-12).all()
    np.True_
    """
    q: onp.ndarray = onp.linalg.qr(onp.random.normal(size=(n, n)))[0]  # noqa: NPY002  # programs seed it
    return q


def new_sym_matrix_with_real_eigvals_2d(n: int) -> onp.ndarray:
    """A symmetric matrix with eigenvalues between -10 and 10.

    Parameters
    ----------
    n : int
        Number of rows and columns.

    Returns
    -------
    numpy.ndarray, shape (n, n), float64

    Examples
    --------
    >>> a = mx.test_utils.new_sym_matrix_with_real_eigvals_2d(3)
    >>> (a == a.T).all()
    np.True_
    """
    q = new_orthonormal_matrix_2d(n)
    a = q.T @ onp.diag(onp.random.uniform(-_LARGEST, _LARGEST, n)) @ q  # noqa: NPY002  # programs seed it
    # Rounding leaves differences of the last digit between both halves.
    symmetric: onp.ndarray = (a + a.T) / 2
    return symmetric


def new_matrix_with_real_eigvals_2d(n: int) -> onp.ndarray:
    """A matrix that is not symmetric, with eigenvalues between -10 and 10 and eigenvectors of condition below 3.

    Parameters
    ----------
    n : int
        Number of rows and columns.

    Returns
    -------
    numpy.ndarray, shape (n, n), float64

    Examples
    --------
    >>> import numpy
    >>> a = mx.test_utils.new_matrix_with_real_eigvals_2d(3)
    >>> (abs(numpy.linalg.eigvals(a).imag) < 1e-6).all()
    np.True_
    """
    # The condition of a product with orthonormal matrices is that of its diagonal.
    scales = onp.random.uniform(1.0, 2.9, n)  # noqa: NPY002  # programs seed it
    vectors = new_orthonormal_matrix_2d(n) @ onp.diag(scales) @ new_orthonormal_matrix_2d(n)
    values = onp.diag(onp.random.uniform(-_LARGEST, _LARGEST, n))  # noqa: NPY002  # programs seed it
    a: onp.ndarray = vectors @ values @ onp.linalg.inv(vectors)
    return a


def new_sym_matrix_with_real_eigvals_nd(shape: Sequence[int]) -> onp.ndarray:
    """A batch of `new_sym_matrix_with_real_eigvals_2d`.

    Parameters
    ----------
    shape : sequence of int, (..., n, n)

    Returns
    -------
    numpy.ndarray, float64

    Examples
    --------
    >>> mx.test_utils.new_sym_matrix_with_real_eigvals_nd((2, 3, 3)).shape
    (2, 3, 3)
    """
    return _batch(new_sym_matrix_with_real_eigvals_2d, shape)


def new_matrix_with_real_eigvals_nd(shape: Sequence[int]) -> onp.ndarray:
    """A batch of `new_matrix_with_real_eigvals_2d`.

    Parameters
    ----------
    shape : sequence of int, (..., n, n)

    Returns
    -------
    numpy.ndarray, float64

    Examples
    --------
    >>> mx.test_utils.new_matrix_with_real_eigvals_nd((2, 3, 3)).shape
    (2, 3, 3)
    """
    return _batch(new_matrix_with_real_eigvals_2d, shape)


def _batch(make: Callable[[int], onp.ndarray], shape: Sequence[int]) -> onp.ndarray:
    matrices = [make(shape[-1]) for _ in range(math.prod(shape[:-2]))]
    return onp.array(matrices).reshape(shape)
