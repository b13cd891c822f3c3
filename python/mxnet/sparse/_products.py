"""Products of sparse arrays with dense ones and with each other."""

from __future__ import annotations

from typing import Any

from mxnet import error
from mxnet._core import asarray, ndarray
from mxnet.sparse._parts import op

# Columns up to which a product with CSC scatters; with more it is faster to convert to CSR first.
_SCATTERED_WIDTH = 8


def _check(a: Any, b: Any) -> None:
    inner = a.shape[-1], b.shape[0] if b.ndim == 1 else b.shape[-2]
    if inner[0] != inner[1]:
        raise error.ShapeError(
            f"matmul: last axis of `lhs` (size {inner[0]}) must equal the second-to-last axis of `rhs` "
            f"(size {inner[1]})\n"
            f"  lhs: {type(a).__name__} of shape {a.shape}  {a.dtype}\n"
            f"  rhs: {type(b).__name__} of shape {b.shape}  {b.dtype}"
        )


def sparse_dense(a: Any, b: Any) -> ndarray:
    """A sparse matrix (or vector) times a dense array of one or two axes."""
    b = asarray(b)
    if a.ndim > 2 or b.ndim > 2 or 0 in (a.ndim, b.ndim):
        raise error.ShapeError(f"matmul: operands of 1 or 2 axes are needed, found shapes {a.shape} and {b.shape}")
    _check(a, b)
    if a.ndim == 1:
        return sparse_dense(a.reshape(1, -1), b).reshape(b.shape[1:])
    width = 1 if b.ndim == 1 else b.shape[1]
    if a.format == "csc" and width <= _SCATTERED_WIDTH and a.device.device_type == "cpu":
        # The parts of CSC are those of the transpose in CSR.
        return op["csr_transposed_matmul_dense"](a.data, a.indices, a.indptr, b, a.shape[0])  # type: ignore[no-any-return]
    m = a.tocsr()
    return op["csr_matmul_dense"](m.data, m.indices, m.indptr, b)  # type: ignore[no-any-return]


def dense_sparse(a: Any, b: Any) -> ndarray:
    """A dense array of one or two axes times a sparse matrix (or vector)."""
    a = asarray(a)
    if a.ndim > 2 or b.ndim > 2 or 0 in (a.ndim, b.ndim):
        raise error.ShapeError(f"matmul: operands of 1 or 2 axes are needed, found shapes {a.shape} and {b.shape}")
    _check(a, b)
    return sparse_dense(b.transpose(), a.T).T


def sparse_sparse(a: Any, b: Any) -> Any:
    """The product of two sparse matrices, in CSR, or in CSC if both are. Vectors behave as in NumPy."""
    _check(a, b)
    if a.ndim == 1 or b.ndim == 1:
        left = a.reshape(1, -1) if a.ndim == 1 else a
        right = b.reshape(-1, 1) if b.ndim == 1 else b
        found = sparse_sparse(left, right)
        shape = (*a.shape[:-1], *b.shape[1:])
        return found.todense().reshape(()) if not shape else found.tocoo(copy=False).reshape(shape)
    if a.ndim != 2 or b.ndim != 2:
        raise error.ShapeError(f"matmul: operands of 1 or 2 axes are needed, found shapes {a.shape} and {b.shape}")
    if a.format == b.format == "csc":
        return sparse_sparse(b.transpose(), a.transpose()).transpose()
    left, right = a.tocsr(), b.tocsr()
    columns = right.shape[1]
    data, indices, indptr = op["csr_matmul"](
        left.data, left.indices, left.indptr, right.data, right.indices, right.indptr, columns
    )
    return type(left)._of(data, indices, indptr, (left.shape[0], columns))


def blocks_dense(a: Any, b: Any) -> ndarray:
    """A BSR array times a dense array: products of small matrices, summed over each row of blocks."""
    b = asarray(b)
    if b.ndim not in (1, 2):
        raise error.ShapeError(f"matmul: operands of 1 or 2 axes are needed, found shapes {a.shape} and {b.shape}")
    _check(a, b)
    return a._times(b)  # type: ignore[no-any-return]


def sampled(x: Any, y: Any, pattern: Any) -> Any:
    """The elements of ``x @ y.T`` at the places of a pattern (SDDMM), times the pattern's values.

    Parameters
    ----------
    x : ndarray, shape (m, k)
        Dense rows.
    y : ndarray, shape (n, k)
        Dense rows.
    pattern : csr_array, shape (m, n)
        Which elements are computed.

    Returns
    -------
    csr_array
        Of the pattern's places; values are `pattern.data` times the products.

    Raises
    ------
    mxnet.error.ShapeError
        If the shapes do not fit.

    Examples
    --------
    >>> import mxnet as mx
    >>> s = mx.sparse.csr_array(([1.0, 1.0], [0, 1], [0, 1, 2]), shape=(2, 2))
    >>> mx.sparse.sampled_matmul(mx.np.ones((2, 3)), mx.np.ones((2, 3)), s).data
    array([3., 3.])
    """
    x, y, m = asarray(x), asarray(y), pattern.tocsr()
    if x.shape[0] != m.shape[0] or y.shape[0] != m.shape[1]:
        raise error.ShapeError(
            f"sampled_matmul: rows of shapes {x.shape} and {y.shape} do not fit a pattern of shape {m.shape}"
        )
    return m._with_data(m.data * op["csr_sampled_dense"](x, y, m.indices, m.indptr))
