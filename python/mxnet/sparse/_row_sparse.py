"""Arrays with few non-zero rows, such as gradients of embeddings."""

from __future__ import annotations

from typing import Any

from mxnet import error
from mxnet._core import asarray, ndarray
from mxnet.sparse import _parts
from mxnet.sparse._array import sparray
from mxnet.sparse._parts import Shape, gathered, integers, masked, op, values

__all__ = ["row_sparse_array", "retain"]


class row_sparse_array(sparray):  # noqa: N801  # MXNet's name
    """Stored rows: `data[k]` is row `indices[k]`; all other rows are zero.

    Parameters
    ----------
    arg1 : sparse array, array_like, tuple
        A sparse array; a dense one, of whose rows those are stored that are not zero; a shape without rows; or
        ``(data, indices)`` with data of shape (num_stored, ...).
    shape : tuple of int, optional
        If it does not follow from the parts.
    dtype : dtype, optional
        Dtype of the values.
    copy : bool
        Whether parts are copied that could be shared.
    device : Device, optional
        Where the parts are put.

    Raises
    ------
    mxnet.error.ValueError
        If indices do not ascend or one is there twice.
    mxnet.error.IndexError
        If an index is out of range.
    mxnet.error.ShapeError
        If there is not one index for each row of `data`.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.sparse.row_sparse_array(([[1.0, 2.0]], [1]), shape=(3, 2)).todense()
    array([[0., 0.],
           [1., 2.],
           [0., 0.]])
    """

    format = "row_sparse"
    indices: ndarray

    def __init__(
        self, arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False, *, device: Any = None
    ) -> None:
        data, indices, self._shape = self._read(arg1, shape)
        data = values(data, dtype)
        self.data, self.indices = (x.copy() if copy else x for x in (data, indices))
        if device is not None:
            self.data, self.indices = self.data.to_device(device), self.indices.to_device(device)
        self._check()

    @classmethod
    def _of(cls, data: ndarray, indices: ndarray, shape: Shape) -> row_sparse_array:
        """An array from parts that are known to be valid."""
        made = cls.__new__(cls)
        made.data, made.indices, made._shape = data, indices, shape
        return made

    def _graph_parts(self) -> tuple[Any, tuple[ndarray, ...]]:
        return self._shape, (self.data, self.indices)

    @classmethod
    def _of_graph_parts(cls, rest: Any, arrays: tuple[ndarray, ...]) -> row_sparse_array:
        data, indices = arrays
        return cls._of(data, indices, rest)

    def _read(self, arg1: Any, shape: Any) -> tuple[Any, ndarray, Shape]:
        if isinstance(arg1, row_sparse_array):
            return arg1.data, arg1.indices, arg1.shape
        if isinstance(arg1, tuple) and len(arg1) == 2 and not _parts.is_shape(arg1):
            data, indices = asarray(arg1[0]), integers(arg1[1], "indices")
            if shape is None:
                shape = (int(indices.max()) + 1 if indices.size else 0, *data.shape[1:])
            return data, indices, _parts.checked_shape(shape)
        if isinstance(arg1, tuple) and _parts.is_shape(arg1):
            sizes = _parts.checked_shape(arg1)
            return _parts.zeros((0, *sizes[1:]), "float32"), _parts.zeros(0), sizes
        if isinstance(arg1, sparray) or _parts.is_scipy(arg1):
            from mxnet.sparse._compressed import csr_array

            m = csr_array(arg1)._canonical()
            at = masked(m.indptr[1:] > m.indptr[:-1])
            row = op["search_sorted"](at, m._majors())
            dense = op["scatter_or_skip"](m.data, row * m.shape[1] + m.indices, at.size * m.shape[1])
            return dense.reshape(at.size, m.shape[1]), at, m.shape
        dense = asarray(arg1)
        if dense.ndim == 0:
            raise error.ShapeError("row_sparse_array: an array without axes has no rows")
        at = masked((dense.reshape(dense.shape[0], -1) != 0).any(axis=1))
        return gathered(dense, at), at, dense.shape

    def _check(self) -> None:
        if self.data.ndim != self.ndim or self.data.shape[1:] != self._shape[1:]:
            raise error.ShapeError(
                f"row_sparse_array: rows of data of shape {self.data.shape} do not fit shape {self._shape}"
            )
        if self.data.shape[0] != self.indices.size:
            raise error.ShapeError(
                f"row_sparse_array: {self.data.shape[0]} rows need as many indices, found {self.indices.size}"
            )
        if not self.indices.size:
            return
        first, last = int(self.indices.min()), int(self.indices.max())
        if first < 0 or last >= self._shape[0]:
            bad = first if first < 0 else last
            raise error.IndexError(f"row_sparse_array: row {bad} is out of bounds for an axis of size {self._shape[0]}")
        steps = self.indices[1:] - self.indices[:-1]
        if self.indices.size > 1 and int(steps.min()) <= 0:
            at = int(masked(steps <= 0)[0])
            raise error.ValueError(
                "row_sparse_array: indices must ascend, but "
                f"indices[{at}] is {int(self.indices[at])} and indices[{at + 1}] is {int(self.indices[at + 1])}"
            )

    @property
    def nnz(self) -> int:
        """Number of stored elements: of all elements of stored rows."""
        return int(self.data.size)

    def copy(self) -> row_sparse_array:
        """A copy of both parts."""
        return row_sparse_array._of(self.data.copy(), self.indices.copy(), self._shape)

    def _with_data(self, data: ndarray) -> row_sparse_array:
        return row_sparse_array._of(data, self.indices, self._shape)

    def _canonical(self) -> row_sparse_array:
        return self

    def todense(self) -> ndarray:
        """The same elements as a dense array."""
        return op["scatter_or_skip"](self.data, self.indices, self._shape[0])  # type: ignore[no-any-return]

    def tocoo(self, copy: bool = False) -> Any:
        """Coordinates of all elements of stored rows."""
        from mxnet.sparse._coo import _split, coo_array

        width = self.nnz // max(self.indices.size, 1)
        flat = (self.indices.reshape(-1, 1) * width + _parts.arange(width)).ravel()
        return coo_array._of(self.data.ravel(), _split(flat, self._shape), self._shape, canonical=True)

    def tocsr(self, copy: bool = False) -> Any:
        """Compressed rows, of an array of two axes."""
        return self.tocoo().tocsr()

    def transpose(self, axes: Any = None, copy: bool = False) -> Any:
        """The transposed array, in coordinates."""
        return self.tocoo().transpose(axes)

    def retain(self, indices: Any) -> row_sparse_array:
        """Only the rows at `indices`; see `retain`."""
        return retain(self, indices)

    def __getitem__(self, key: Any) -> Any:
        return self.tocoo()[key]


def retain(data: row_sparse_array, indices: Any) -> row_sparse_array:
    """Only some rows of a row-sparse array, all others zero.

    Parameters
    ----------
    data : row_sparse_array
        The array.
    indices : array_like of int
        Rows that stay.

    Returns
    -------
    row_sparse_array
        Of the same shape; it stores the rows of `indices` that `data` stores.

    Raises
    ------
    mxnet.error.IndexError
        If a row is out of range.

    Examples
    --------
    >>> import mxnet as mx
    >>> x = mx.sparse.row_sparse_array(([[1.0], [2.0]], [0, 2]), shape=(4, 1))
    >>> mx.sparse.retain(x, [2, 3]).indices
    array([2])
    """
    if not isinstance(data, row_sparse_array):
        raise error.UnsupportedError(f"retain: a row_sparse_array is needed, found {type(data).__name__}")
    wanted = integers(indices, "indices")
    if wanted.size and not 0 <= int(wanted.min()) <= int(wanted.max()) < data.shape[0]:
        bad = int(wanted.min()) if int(wanted.min()) < 0 else int(wanted.max())
        raise error.IndexError(f"retain: row {bad} is out of bounds for an axis of size {data.shape[0]}")
    at = masked(_isin(data.indices, wanted))
    return row_sparse_array._of(gathered(data.data, at), gathered(data.indices, at), data.shape)


def _isin(x: ndarray, members: ndarray) -> ndarray:
    from mxnet import numpy as np

    return np.isin(x, members)
