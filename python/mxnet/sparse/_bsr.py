"""Compressed rows of dense blocks."""

from __future__ import annotations

from typing import Any

from mxnet import error
from mxnet._core import asarray, ndarray
from mxnet.sparse import _parts
from mxnet.sparse._array import sparray
from mxnet.sparse._parts import Shape, flags, gathered, integers, op, segment_sum, values

__all__ = ["bsr_array"]


class bsr_array(sparray):  # noqa: N801  # SciPy's name
    """Compressed rows of dense blocks of shape (r, c): `data[k]` is the block at block column `indices[k]`.

    Parameters
    ----------
    arg1 : sparse array, array_like, tuple
        A sparse array of this library or of SciPy; a dense array; a shape without elements; or
        ``(data, indices, indptr)`` with data of shape (num_blocks, r, c).
    shape : tuple of int, optional
        If it does not follow from the parts.
    dtype : dtype, optional
        Dtype of the values.
    copy : bool
        Whether parts are copied that could be shared.
    blocksize : tuple of int, optional
        (r, c), which divide the shape; (1, 1) if it is left out and does not follow.
    device : Device, optional
        Where the parts are put.

    Raises
    ------
    mxnet.error.ShapeError
        If blocks do not divide the shape, or the parts do not fit each other.
    mxnet.error.ValueError, mxnet.error.IndexError
        For index arrays that are wrong, as for `csr_array`.

    Examples
    --------
    >>> import mxnet as mx
    >>> x = mx.sparse.bsr_array(([[[1.0, 2.0], [3.0, 4.0]]], [1], [0, 1]), shape=(2, 4))
    >>> x.todense()
    array([[0., 0., 1., 2.],
           [0., 0., 3., 4.]])
    """

    format = "bsr"
    indices: ndarray
    indptr: ndarray
    # Whether block columns of each row are sorted without duplicates; None if not checked yet.
    _is_canonical: bool | None = None

    def __init__(
        self,
        arg1: Any,
        shape: Any = None,
        dtype: Any = None,
        copy: bool = False,
        blocksize: tuple[int, int] | None = None,
        *,
        device: Any = None,
    ) -> None:
        data, indices, indptr, self._shape = self._read(arg1, shape, blocksize)
        data = values(data, dtype)
        self.data, self.indices, self.indptr = (x.copy() if copy else x for x in (data, indices, indptr))
        if device is not None:
            self.data, self.indices, self.indptr = (x.to_device(device) for x in (self.data, self.indices, self.indptr))
        self.check_format()

    @classmethod
    def _of(cls, data: ndarray, indices: ndarray, indptr: ndarray, shape: Shape) -> bsr_array:
        """An array from parts that are known to be valid."""
        made = cls.__new__(cls)
        made.data, made.indices, made.indptr, made._shape = data, indices, indptr, shape
        return made

    def _graph_parts(self) -> tuple[Any, tuple[ndarray, ...]]:
        return (self._shape, self._canonical() is self), (self.data, self.indices, self.indptr)

    @classmethod
    def _of_graph_parts(cls, rest: Any, arrays: tuple[ndarray, ...]) -> bsr_array:
        data, indices, indptr = arrays
        made = cls._of(data, indices, indptr, rest[0])
        made._is_canonical = rest[1]
        return made

    def _read(self, arg1: Any, shape: Any, blocksize: Any) -> tuple[Any, ndarray, ndarray, Shape]:
        from mxnet.sparse._compressed import csr_array

        if isinstance(arg1, tuple) and len(arg1) == 3:
            data, indices, indptr = asarray(arg1[0]), integers(arg1[1], "indices"), integers(arg1[2], "indptr")
            if data.ndim != 3:
                raise error.ShapeError(f"bsr_array: data must have 3 axes (blocks, r, c), found shape {data.shape}")
            if shape is None:
                last = int(indices.max()) + 1 if indices.size else 0
                shape = ((indptr.size - 1) * data.shape[1], last * data.shape[2])
            return data, indices, indptr, _parts.checked_shape(shape, 2)
        if isinstance(arg1, tuple) and _parts.is_shape(arg1):
            sizes = _parts.checked_shape(arg1, 2)
            r, c = blocksize or (1, 1)
            return _parts.zeros((0, r, c), "float32"), _parts.zeros(0), _parts.zeros(sizes[0] // r + 1), sizes
        if isinstance(arg1, bsr_array) and blocksize in (None, arg1.blocksize):
            return arg1.data, arg1.indices, arg1.indptr, arg1.shape
        if _parts.is_scipy(arg1) and arg1.format == "bsr" and blocksize in (None, arg1.blocksize):
            return arg1.data, integers(arg1.indices, "indices"), integers(arg1.indptr, "indptr"), arg1.shape
        source = csr_array(arg1, shape)._canonical()
        r, c = blocksize or (1, 1)
        m, n = source.shape
        if m % r or n % c:
            raise error.ShapeError(f"bsr_array: blocks of {(r, c)} do not divide shape {(m, n)}")
        rows, columns = source._majors(), source.indices
        at, _ = op["coo_order"](rows // r, columns // c, m // r, n // c)
        block = gathered(rows // r * (n // c) + columns // c, at)
        is_first = op["concatenate"]([op["ones"](min(block.size, 1), dtype="bool"), block[1:] != block[:-1]])
        number = op["cumsum"](is_first.astype("int64")) - 1
        starts = _parts.masked(is_first)
        rows, columns = gathered(rows, at), gathered(columns, at)
        inner = (number * r + rows % r) * c + columns % c
        data = op["scatter_or_skip"](gathered(source.data, at), inner, starts.size * r * c)
        first = gathered(block, starts)
        width = max(n // c, 1)
        indptr = _parts.offsets(first // width, m // r)
        return data.reshape(starts.size, r, c), first % width, indptr, source.shape

    @property
    def blocksize(self) -> tuple[int, int]:
        """Shape (r, c) of a block."""
        return self.data.shape[1], self.data.shape[2]

    def check_format(self, full_check: bool = True) -> None:
        """Checks the parts; see `csr_array.check_format`."""
        r, c = self.blocksize
        m, n = self._shape
        if not r or not c or m % r or n % c:
            raise error.ShapeError(f"bsr_array: blocks of {(r, c)} do not divide shape {self._shape}")
        if self.indptr.size != m // r + 1 or self.data.shape[0] != self.indices.size:
            raise error.ShapeError(
                f"bsr_array: shape {self._shape} in blocks of {(r, c)} needs {m // r + 1} offsets and an index for "
                f"each of {self.data.shape[0]} blocks, found {self.indptr.size} and {self.indices.size}"
            )
        if full_check:
            _parts.named("bsr_array", lambda: op["csr_check"](self.indices, self.indptr, n // c))

    def copy(self) -> bsr_array:
        """A copy of all parts."""
        return bsr_array._of(self.data.copy(), self.indices.copy(), self.indptr.copy(), self._shape)

    def _with_data(self, data: ndarray) -> bsr_array:
        made = bsr_array._of(data, self.indices, self.indptr, self._shape)
        made._is_canonical = self._is_canonical
        return made

    def _canonical(self) -> Any:
        if self._is_canonical is None:
            self._is_canonical = flags(self.indices, self.indptr, self._shape[1] // self.blocksize[1])[1]
        return self if self._is_canonical else bsr_array(self.tocsr(), blocksize=self.blocksize)

    def tocoo(self, copy: bool = False) -> Any:
        """Coordinates of all elements of stored blocks."""
        from mxnet.sparse._coo import coo_array

        r, c = self.blocksize
        rows = op["csr_rows"](self.indices, self.indptr).reshape(-1, 1, 1) * r + _parts.arange(r).reshape(1, -1, 1)
        columns = self.indices.reshape(-1, 1, 1) * c + _parts.arange(c).reshape(1, 1, -1)
        coords = [op["broadcast_to"](x, self.data.shape).ravel() for x in (rows, columns)]
        return coo_array._of(self.data.ravel(), coords, self._shape)

    def tocsr(self, copy: bool = False) -> Any:
        """Compressed rows."""
        return self.tocoo().tocsr()

    def tobsr(self, blocksize: tuple[int, int] | None = None, copy: bool = False) -> bsr_array:
        """The array itself, a copy, or in blocks of another shape."""
        if blocksize in (None, self.blocksize):
            return self.copy() if copy else self
        return bsr_array(self.tocsr(), blocksize=blocksize)

    def transpose(self, axes: Any = None, copy: bool = False) -> Any:
        """The transposed array, of transposed blocks."""
        if axes is not None and tuple(axes) == (0, 1):
            return self
        m, n = self._shape
        indices, indptr, at = op["csr_transpose"](self.indices, self.indptr, n // self.blocksize[1])
        return bsr_array._of(gathered(self.data, at).transpose(0, 2, 1), indices, indptr, (n, m))

    def _times(self, b: ndarray) -> ndarray:
        c = self.blocksize[1]
        width = 1 if b.ndim == 1 else b.shape[1]
        blocks = gathered(b.reshape(-1, c, width), self.indices)
        product = segment_sum(op["matmul"](self.data, blocks), self.indptr)
        return product.reshape(self._shape[0], *b.shape[1:])

    def __getitem__(self, key: Any) -> Any:
        return self.tocsr()[key]

    def to_scipy(self) -> Any:
        """The same array of SciPy, which shares the parts.

        Returns
        -------
        scipy.sparse.bsr_array
        """
        import numpy
        import scipy.sparse

        data = numpy.from_dlpack(self.data.detach())
        made = scipy.sparse.bsr_array(self._shape, blocksize=self.blocksize, dtype=data.dtype)
        made.data = data
        made.indices, made.indptr = numpy.from_dlpack(self.indices), numpy.from_dlpack(self.indptr)
        return made
