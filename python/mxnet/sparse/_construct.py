"""Sparse arrays made of sizes, diagonals, blocks and random numbers."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from mxnet import error
from mxnet._core import asarray, ndarray
from mxnet.sparse import _parts
from mxnet.sparse._array import sparray
from mxnet.sparse._compressed import csr_array
from mxnet.sparse._coo import coo_array
from mxnet.sparse._joining import hstack, vstack
from mxnet.sparse._parts import arange, op


def issparse(x: Any) -> bool:
    """Whether `x` is a sparse array of this library.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.sparse.issparse(mx.sparse.eye_array(2))
    True
    """
    return isinstance(x, sparray)


def eye_array(m: int, n: int | None = None, *, k: int = 0, dtype: Any = "float32", format: str | None = None) -> Any:
    """Ones on a diagonal.

    Parameters
    ----------
    m : int
        Number of rows.
    n : int, optional
        Number of columns; `m` if it is left out.
    k : int
        The diagonal.
    dtype : dtype
        Dtype of the values.
    format : str, optional
        Format of the result; 'csr' if it is left out.

    Returns
    -------
    sparse array, shape (m, n)

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.sparse.eye_array(2).todense()
    array([[1., 0.],
           [0., 1.]])
    """
    columns = m if n is None else n
    length = max(min(m + min(k, 0), columns - max(k, 0)), 0)
    steps = arange(length)
    made = coo_array._of(
        op["ones"](length, dtype=dtype), [steps + max(-k, 0), steps + max(k, 0)], (m, columns), canonical=True
    )
    return made.asformat(format or "csr")


def diags_array(
    diagonals: Any, *, offsets: Any = 0, shape: Any = None, format: str | None = None, dtype: Any = None
) -> Any:
    """A matrix of diagonals.

    Parameters
    ----------
    diagonals : sequence of array_like
        Elements of each diagonal; a single number fills one.
    offsets : int or sequence of int
        Which diagonals: 0 the main one, positive ones above it.
    shape : tuple of int, optional
        The smallest square that holds them, if it is left out.
    format : str, optional
        Format of the result; 'csr' if it is left out.
    dtype : dtype, optional
        Dtype of the result.

    Returns
    -------
    sparse array

    Raises
    ------
    mxnet.error.ValueError
        If there are not as many offsets as diagonals, or one does not fit.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.sparse.diags_array([[1.0, 2.0, 3.0], [4.0, 5.0]], offsets=[0, 1]).todense()
    array([[1., 4., 0.],
           [0., 2., 5.],
           [0., 0., 3.]])
    """
    if hasattr(offsets, "__index__"):
        first = diagonals[0] if len(diagonals) else 0
        rows, at = (
            (
                [diagonals]
                if getattr(first, "ndim", None) in (None, 0) and not isinstance(first, (list, tuple))
                else diagonals
            ),
            [operator.index(offsets)],
        )
    else:
        rows, at = list(diagonals), [operator.index(k) for k in offsets]
    if len(rows) != len(at):
        raise error.ValueError(f"diags_array: {len(rows)} diagonals need as many offsets, found {len(at)}")
    if len(set(at)) < len(at):
        raise error.ValueError(f"diags_array: offsets must differ, found {at}")
    elements = [op["ravel"](asarray(row)) for row in rows]
    if shape is None:
        n = max((x.size + abs(k) for x, k in zip(elements, at, strict=True)), default=0)
        shape = (n, n)
    m, n = _parts.checked_shape(shape, 2)
    data, i, j = [], [], []
    for x, k in zip(elements, at, strict=True):
        length = max(min(m + min(k, 0), n - max(k, 0)), 0)
        if x.size == 1 and length != 1:
            x = op["broadcast_to"](x, (length,))
        if x.size != length:
            raise error.ValueError(f"diags_array: diagonal {k} of shape {(m, n)} has {length} elements, found {x.size}")
        steps = arange(length)
        data.append(x)
        i.append(steps + max(-k, 0))
        j.append(steps + max(k, 0))
    values = op["concatenate"](data) if data else _parts.zeros(0, "float32")
    coords = [op["concatenate"](c) if c else _parts.zeros(0) for c in (i, j)]
    made = coo_array._of(values if dtype is None else values.astype(dtype), coords, (m, n))
    return made.asformat(format or "csr")


def block_array(blocks: Sequence[Sequence[Any]], *, format: str | None = None, dtype: Any = None) -> Any:
    """A matrix of blocks, of which None are zeros.

    Parameters
    ----------
    blocks : sequence of sequences of arrays or None
        Rows of blocks.
    format : str, optional
        Format of the result.
    dtype : dtype, optional
        Dtype of the result.

    Returns
    -------
    sparse array

    Raises
    ------
    mxnet.error.ValueError
        If the size of a row or a column of blocks is not known.

    Examples
    --------
    >>> import mxnet as mx
    >>> one = mx.sparse.eye_array(1)
    >>> mx.sparse.block_array([[one, None], [None, one]]).todense()
    array([[1., 0.],
           [0., 1.]])
    """
    heights = [next((b.shape[0] for b in row if b is not None), None) for row in blocks]
    widths = [next((row[j].shape[1] for row in blocks if row[j] is not None), None) for j in range(len(blocks[0]))]
    if None in heights or None in widths:
        raise error.ValueError("block_array: a row or a column of blocks is None only: its size is not known")
    rows = [
        hstack([_none(m, n) if b is None else b for b, n in zip(row, widths, strict=True)])
        for row, m in zip(blocks, heights, strict=True)
    ]
    return vstack(rows, format, dtype)


def _none(m: Any, n: Any) -> coo_array:
    return coo_array((m, n))


def block_diag(mats: Sequence[Any], format: str | None = None, dtype: Any = None) -> Any:
    """A matrix of blocks on the diagonal.

    Parameters
    ----------
    mats : sequence of arrays
        The blocks.
    format : str, optional
        Format of the result; 'coo' if it is left out.
    dtype : dtype, optional
        Dtype of the result.

    Returns
    -------
    sparse array

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.sparse.block_diag([mx.sparse.eye_array(1), mx.np.array([[2.0, 3.0]])]).todense()
    array([[1., 0., 0.],
           [0., 2., 3.]])
    """
    parts = [x.tocoo() if issparse(x) else coo_array(asarray(x)) for x in mats]
    row = column = 0
    data, i, j = [], [], []
    for x in parts:
        data.append(x.data)
        i.append(x.row + row)
        j.append(x.col + column)
        row, column = row + x.shape[0], column + x.shape[1]
    values = op["concatenate"](data)
    made = coo_array._of(
        values if dtype is None else values.astype(dtype), [op["concatenate"](i), op["concatenate"](j)], (row, column)
    )
    return made.asformat(format)


def find(A: Any) -> tuple[ndarray, ndarray, ndarray]:  # SciPy's name
    """Rows, columns and values of the elements that are not zero.

    Parameters
    ----------
    A : sparse array of shape (m, n)
        The matrix.

    Returns
    -------
    tuple of ndarray

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.sparse.find(mx.sparse.eye_array(2))
    (array([0, 1]), array([0, 1]), array([1., 1.]))
    """
    coo = A.tocoo()._canonical()
    at = _parts.masked(coo.data != 0)
    row, column = (_parts.gathered(c, at) for c in coo.coords)
    return row, column, _parts.gathered(coo.data, at)


def random_array(
    shape: Any, *, density: float = 0.01, format: str = "coo", dtype: Any = "float32", data_sampler: Any = None
) -> Any:
    """A sparse array with random elements at random places, by the global seed.

    Parameters
    ----------
    shape : tuple of int
        Shape.
    density : float
        Part of the elements that are stored, in [0, 1].
    format : str
        Format of the result.
    dtype : dtype
        Dtype of the values.
    data_sampler : callable, optional
        Called with ``size=``; gives the values, which are uniform in [0, 1) if it is left out.

    Returns
    -------
    sparse array

    Raises
    ------
    mxnet.error.ValueError
        If `density` is not in [0, 1].

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.sparse.random_array((100, 100), density=0.1).nnz
    1000
    """
    import math

    from mxnet import numpy as np

    sizes = _parts.checked_shape(shape)
    if not 0 <= density <= 1:
        raise error.ValueError(f"random_array: density must be in [0, 1], found {density}")
    total = math.prod(sizes)
    count = round(density * total)
    at = _distinct(total, count)
    data = np.random.uniform(size=count) if data_sampler is None else asarray(data_sampler(size=count))
    from mxnet.sparse._coo import _split

    made = coo_array._of(data.astype(dtype), _split(at, sizes), sizes, canonical=True)
    return made.asformat(format)


def _distinct(total: int, count: int) -> ndarray:
    """`count` distinct integers below `total`, ascending."""
    from mxnet import numpy as np

    if count * 3 > total:
        chosen: ndarray = np.sort(np.random.permutation(total)[:count].astype("int64"))
        return chosen
    found = np.unique(np.random.randint(0, total, size=count, dtype="int64")) if count else arange(0)
    while found.size < count:
        more = np.random.randint(0, total, size=count - found.size, dtype="int64")
        found = np.union1d(found, more)
    return found


def rand_sparse_ndarray(
    shape: Any, stype: str, density: float = 0.05, dtype: Any = "float32"
) -> tuple[Any, tuple[ndarray, ...]]:
    """A random sparse array and its parts, as MXNet's test utilities gave them.

    Parameters
    ----------
    shape : tuple of int
        Shape; two axes for 'csr'.
    stype : {'csr', 'row_sparse'}
        Storage type.
    density : float
        Part of the elements ('csr') or of the rows ('row_sparse') that are stored.
    dtype : dtype
        Dtype of the values.

    Returns
    -------
    tuple
        The array, and ``(data, indices, indptr)`` or ``(data, indices)``.

    Raises
    ------
    mxnet.error.ValueError
        For another storage type.

    Examples
    --------
    >>> import mxnet as mx
    >>> x, (data, indices, indptr) = mx.sparse.rand_sparse_ndarray((10, 10), "csr", density=0.2)
    >>> data.shape
    (20,)
    """
    if stype == "csr":
        x = random_array(shape, density=density, format="csr", dtype=dtype)
        return x, (x.data, x.indices, x.indptr)
    if stype == "row_sparse":
        from mxnet import numpy as np
        from mxnet.sparse._row_sparse import row_sparse_array

        sizes = _parts.checked_shape(shape)
        rows = _distinct(sizes[0], round(density * sizes[0]))
        data = np.random.uniform(size=(rows.size, *sizes[1:])).astype(dtype)
        y = row_sparse_array((data, rows), shape=sizes)
        return y, (y.data, y.indices)
    raise error.ValueError(f"rand_sparse_ndarray: stype must be 'csr' or 'row_sparse', found {stype!r}")


def cast_storage(arr: Any, stype: str) -> Any:
    """An array in another storage type.

    Parameters
    ----------
    arr : ndarray or sparse array
        The array.
    stype : {'default', 'csr', 'row_sparse', 'csc', 'coo', 'bsr'}
        Storage type; 'default' is dense.

    Returns
    -------
    ndarray or sparse array

    Raises
    ------
    mxnet.error.ValueError
        For an unknown storage type.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.sparse.cast_storage(mx.np.array([[0.0, 1.0]]), "csr").indices
    array([1])
    """
    if issparse(arr):
        return arr.tostype(stype)
    dense = asarray(arr)
    if stype == "default":
        return dense
    if stype == "row_sparse":
        from mxnet.sparse._row_sparse import row_sparse_array

        return row_sparse_array(dense)
    return (csr_array(dense) if stype == "csr" else coo_array(dense)).asformat(stype)
