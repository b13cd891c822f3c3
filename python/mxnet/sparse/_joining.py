"""Functions that join, split and rearrange sparse arrays."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from mxnet import error
from mxnet._core import asarray, ndarray
from mxnet.sparse import _parts
from mxnet.sparse._parts import axis_of, gathered, masked, op


def _sparse(x: Any) -> Any:
    """A sparse array; a dense array is converted."""
    from mxnet.sparse._coo import coo_array

    return x if hasattr(x, "_with_data") else coo_array(asarray(x))


def concatenate(arrays: Sequence[Any], axis: int = 0, **keywords: Any) -> Any:
    """Sparse arrays one after the other along an axis; see `np.concatenate`.

    The result is in CSR if all have two axes, in CSC if all are, else in COO.
    """
    from mxnet.sparse._coo import coo_array

    if keywords:
        raise error.UnsupportedError(f"concatenate of sparse arrays takes no `{next(iter(keywords))}`")
    parts = [_sparse(x) for x in arrays]
    if not parts:
        raise error.ValueError("concatenate: at least one array is needed")
    first = parts[0]
    at = _parts.axis_of(axis, first.ndim, "concatenate")
    for x in parts:
        if x.ndim != first.ndim or any(
            n != m for i, (n, m) in enumerate(zip(x.shape, first.shape, strict=False)) if i != at
        ):
            raise error.ShapeError(f"concatenate: shapes {first.shape} and {x.shape} differ in other axes than {axis}")
    coords: list[list[ndarray]] = [[] for _ in first.shape]
    offset, data = 0, []
    for x in parts:
        coo = x.tocoo()
        data.append(coo.data)
        for i, indices in enumerate(coo.coords):
            coords[i].append(indices + offset if i == at and offset else indices)
        offset += x.shape[at]
    shape = tuple(offset if i == at else n for i, n in enumerate(first.shape))
    made = coo_array._of(op["concatenate"](data), [op["concatenate"](c) for c in coords], shape)
    formats = {x.format for x in parts}
    if first.ndim == 2 and formats <= {"csr", "csc"}:
        return made.asformat("csc" if formats == {"csc"} else "csr")
    return made


def vstack(blocks: Sequence[Any], format: str | None = None, dtype: Any = None) -> Any:
    """Sparse matrices one below the other.

    Parameters
    ----------
    blocks : sequence of sparse arrays of shape (m_i, n)
        What is joined.
    format : str, optional
        Format of the result.
    dtype : dtype, optional
        Dtype of the result.

    Returns
    -------
    sparse array, shape (sum of m_i, n)

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.sparse.vstack([mx.sparse.eye_array(2), mx.sparse.eye_array(2)]).shape
    (4, 2)
    """
    made = concatenate([_rows(x) for x in blocks], 0)
    made = made if dtype is None else made.astype(dtype)
    return made.asformat(format)


def _rows(x: Any) -> Any:
    return _sparse(x).reshape(1, -1) if len(x.shape) == 1 else _sparse(x)


def hstack(blocks: Sequence[Any], format: str | None = None, dtype: Any = None) -> Any:
    """Sparse matrices (or vectors) side by side.

    Parameters
    ----------
    blocks : sequence of sparse arrays of shape (m, n_i)
        What is joined.
    format : str, optional
        Format of the result.
    dtype : dtype, optional
        Dtype of the result.

    Returns
    -------
    sparse array, shape (m, sum of n_i)

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.sparse.hstack([mx.sparse.eye_array(2), mx.sparse.eye_array(2)]).shape
    (2, 4)
    """
    parts = [_sparse(x) for x in blocks]
    made = concatenate(parts, -1 if parts and parts[0].ndim == 1 else 1)
    made = made if dtype is None else made.astype(dtype)
    return made.asformat(format)


def kron(a: Any, b: Any, format: str | None = None) -> Any:
    """Kronecker product of two matrices of which at least one is sparse.

    Parameters
    ----------
    a : array of shape (m, n)
        First factor.
    b : array of shape (p, q)
        Second factor.
    format : str, optional
        Format of the result; 'coo' if it is left out.

    Returns
    -------
    sparse array, shape (m * p, n * q)

    Raises
    ------
    mxnet.error.ShapeError
        If a factor has not two axes.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.sparse.kron(mx.sparse.eye_array(2), mx.np.array([[1.0, 2.0]])).todense()
    array([[1., 2., 0., 0.],
           [0., 0., 1., 2.]])
    """
    from mxnet.sparse._coo import coo_array

    x, y = _sparse(a).tocoo()._canonical(), _sparse(b).tocoo()._canonical()
    if x.ndim != 2 or y.ndim != 2:
        raise error.ShapeError(f"kron: two axes are needed, found shapes {x.shape} and {y.shape}")
    coords = [
        (i.reshape(-1, 1) * n + j.reshape(1, -1)).ravel() for i, j, n in zip(x.coords, y.coords, y.shape, strict=True)
    ]
    data = (x.data.reshape(-1, 1) * y.data.reshape(1, -1)).ravel()
    shape = tuple(m * n for m, n in zip(x.shape, y.shape, strict=True))
    return coo_array._of(data, coords, shape).asformat(format)


def _triangle(A: Any, k: int, format: str | None, is_kept: Any) -> Any:  # SciPy's name
    x = _sparse(A)
    if x.ndim != 2:
        raise error.ShapeError(f"tril and triu: two axes are needed, found shape {x.shape}")
    coo = x.tocoo()
    at = masked(is_kept(coo.col - coo.row, k))
    made = coo._of(gathered(coo.data, at), [gathered(c, at) for c in coo.coords], x.shape, canonical=coo._is_canonical)
    return made.asformat(format or (x.format if x.format in ("csr", "csc") else "coo"))


def tril(A: Any, k: int = 0, format: str | None = None) -> Any:  # SciPy's name
    """The elements on and below a diagonal.

    Parameters
    ----------
    A : sparse array of shape (m, n)
        The matrix.
    k : int
        The diagonal: 0 the main one, positive ones above it.
    format : str, optional
        Format of the result; that of `A` if it is left out.

    Returns
    -------
    sparse array, shape (m, n)

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.sparse.tril(mx.sparse.csr_array(mx.np.ones((2, 2)))).todense()
    array([[1., 0.],
           [1., 1.]])
    """
    return _triangle(A, operator.index(k), format, lambda away, k: away <= k)


def triu(A: Any, k: int = 0, format: str | None = None) -> Any:  # SciPy's name
    """The elements on and above a diagonal.

    Parameters
    ----------
    A : sparse array of shape (m, n)
        The matrix.
    k : int
        The diagonal: 0 the main one, positive ones above it.
    format : str, optional
        Format of the result; that of `A` if it is left out.

    Returns
    -------
    sparse array, shape (m, n)

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.sparse.triu(mx.sparse.csr_array(mx.np.ones((2, 2)))).todense()
    array([[1., 1.],
           [0., 1.]])
    """
    return _triangle(A, operator.index(k), format, lambda away, k: away >= k)


def diag(v: Any, k: int = 0) -> Any:
    """A diagonal of a sparse matrix, dense; or the matrix with a sparse vector on a diagonal."""
    from mxnet.sparse._coo import coo_array

    if v.ndim == 2:
        return v.diagonal(k)
    if v.ndim != 1:
        raise error.ShapeError(f"diag: one or two axes are needed, found shape {v.shape}")
    coo, n = v.tocoo(), v.shape[0] + abs(k)
    return coo_array._of(coo.data, [coo.coords[0] + max(-k, 0), coo.coords[0] + max(k, 0)], (n, n))


def ravel(a: Any, order: str = "C") -> Any:
    """All elements in one axis."""
    return a.reshape(-1, order=order)


def around(x: Any, decimals: int = 0) -> Any:
    """Rounded elements."""
    x = x._canonical()
    return x._with_data(op["round"](x.data, decimals))


def clip(x: Any, a_min: Any = None, a_max: Any = None, **keywords: Any) -> Any:
    """Elements within bounds, between which 0 must lie."""
    low, high = keywords.pop("min", a_min), keywords.pop("max", a_max)
    if keywords:
        raise error.UnsupportedError(f"clip of a sparse array takes no `{next(iter(keywords))}`")
    if (low is not None and low > 0) or (high is not None and high < 0):
        raise error.UnsupportedError(
            f"clip of a {type(x).__name__} to bounds without 0 has no zeros: call it on `x.todense()`"
        )
    x = x._canonical()
    return x._with_data(op["clip"](x.data, low, high))


def zeros_like(x: Any, dtype: Any = None) -> Any:
    """An array of the same shape and format that stores nothing."""
    from mxnet.sparse._coo import coo_array

    none = _parts.zeros(0, dtype or x.dtype)
    made = coo_array._of(none, [_parts.zeros(0) for _ in x.shape], x.shape, canonical=True)
    return made.asformat(x.format) if x.format in ("csr", "csc") else made


def permute_dims(A: Any, axes: Any = None, copy: bool = False) -> Any:  # SciPy's name
    """The axes in another order.

    Parameters
    ----------
    A : sparse array
        The array.
    axes : tuple of int, optional
        New order; by default reversed.
    copy : bool
        Whether parts that could be shared are copied.

    Returns
    -------
    sparse array
        In coordinates if there are more than two axes.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.sparse.permute_dims(mx.sparse.coo_array((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    found = A.transpose(axes)
    return found.copy() if copy else found


def swapaxes(A: Any, axis1: int, axis2: int) -> Any:  # SciPy's name
    """Two axes exchanged.

    Parameters
    ----------
    A : sparse array
        The array.
    axis1, axis2 : int
        The axes.

    Returns
    -------
    sparse array

    Raises
    ------
    mxnet.error.AxisError
        If an axis is out of range.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.sparse.swapaxes(mx.sparse.coo_array((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    axes = list(range(A.ndim))
    first, second = (axis_of(axis, A.ndim, "swapaxes") for axis in (axis1, axis2))
    axes[first], axes[second] = axes[second], axes[first]
    return A.transpose(tuple(axes))


def expand_dims(A: Any, /, *, axis: int = 0) -> Any:  # SciPy's name
    """An axis of length 1 more, in coordinates.

    Parameters
    ----------
    A : sparse array
        The array.
    axis : int
        Where the axis stands in the result.

    Returns
    -------
    coo_array

    Raises
    ------
    mxnet.error.AxisError
        If the axis is out of range.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.sparse.expand_dims(mx.sparse.csr_array((2, 3)), axis=1).shape
    (2, 1, 3)
    """
    at = axis_of(axis, A.ndim + 1, "expand_dims")
    return A.tocoo().reshape((*A.shape[:at], 1, *A.shape[at:]))


def kronsum(A: Any, B: Any, format: str | None = None) -> Any:  # SciPy's name
    """The Kronecker sum ``kron(I_n, A) + kron(B, I_m)`` of two square arrays.

    Parameters
    ----------
    A : sparse array, shape (m, m)
        The first one.
    B : sparse array, shape (n, n)
        The second one.
    format : str, optional
        Format of the result; CSR by default.

    Returns
    -------
    sparse array, shape (m * n, m * n)

    Raises
    ------
    mxnet.error.ShapeError
        If an array is not square.

    Notes
    -----
    Source: R. Horn and C. Johnson, "Topics in Matrix Analysis", 1991, section 4.4.

    Examples
    --------
    >>> import mxnet as mx
    >>> x = mx.sparse.csr_array(mx.np.array([[1.0, 2.0], [0.0, 3.0]]))
    >>> mx.sparse.kronsum(x, mx.sparse.eye_array(1)).todense()
    array([[2., 2.],
           [0., 4.]])
    """
    from mxnet.sparse._construct import eye_array

    for x in (A, B):
        if x.ndim != 2 or x.shape[0] != x.shape[1]:
            raise error.ShapeError(f"kronsum: square arrays are needed, found shape {x.shape}")
    ones = [eye_array(x.shape[0], dtype=x.dtype, format="csr") for x in (B, A)]
    found = kron(ones[0], A, format="csr") + kron(B, ones[1], format="csr")
    return found.asformat(format)
