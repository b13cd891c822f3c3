"""Compressed rows and compressed columns."""

from __future__ import annotations

from typing import Any

from mxnet import error
from mxnet._core import ndarray
from mxnet.sparse import _indexing, _parts
from mxnet.sparse._array import sparray
from mxnet.sparse._parts import Shape, arange, flags, gathered, integers, masked, op, segment_sum, values

__all__ = ["csc_array", "csr_array"]


class _Compressed(sparray):
    """Stored elements grouped along the major axis (rows of CSR, columns of CSC)."""

    indices: ndarray
    indptr: ndarray
    _is_sorted: bool
    _is_canonical: bool

    def __init__(
        self, arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False, *, device: Any = None
    ) -> None:
        parts = self._read(arg1, shape)
        data, indices, indptr, self._shape = parts
        data = values(data, dtype)
        if data.ndim != 1:
            raise error.ShapeError(f"{type(self).__name__}: data must have 1 axis, found {data.ndim}")
        self.data, self.indices, self.indptr = (x.copy() if copy else x for x in (data, indices, indptr))
        if device is not None:
            self.data, self.indices, self.indptr = (x.to_device(device) for x in (self.data, self.indices, self.indptr))
        self.check_format()

    # ---- the major axis is rows or columns ----

    @classmethod
    def _major(cls, pair: tuple[Any, ...]) -> tuple[Any, Any]:
        """Converts (row, column) to (major, minor) and back."""
        raise NotImplementedError

    @classmethod
    def _of(cls, data: ndarray, indices: ndarray, indptr: ndarray, shape: Shape, *, canonical: bool = True) -> Any:
        """An array from parts that are known to be valid."""
        made = cls.__new__(cls)
        made.data, made.indices, made.indptr, made._shape = data, indices, indptr, shape
        made._is_sorted = made._is_canonical = canonical
        return made

    def _graph_parts(self) -> tuple[Any, tuple[ndarray, ...]]:
        return (self._shape, self._is_sorted, self._is_canonical), (self.data, self.indices, self.indptr)

    @classmethod
    def _of_graph_parts(cls, rest: Any, arrays: tuple[ndarray, ...]) -> Any:
        data, indices, indptr = arrays
        made = cls._of(data, indices, indptr, rest[0])
        made._is_sorted, made._is_canonical = rest[1:]
        return made

    def _read(self, arg1: Any, shape: Any) -> tuple[Any, ndarray, ndarray, Shape]:
        name = type(self).__name__
        if isinstance(arg1, sparray):
            same = arg1.asformat(self.format)
            self._expect(shape, same.shape)
            return same.data, same.indices, same.indptr, same.shape
        if _parts.is_scipy(arg1):
            theirs = arg1.asformat(self.format)
            self._expect(shape, theirs.shape)
            return theirs.data, integers(theirs.indices, "indices"), integers(theirs.indptr, "indptr"), theirs.shape
        if isinstance(arg1, tuple) and len(arg1) == 3:
            data, indices, indptr = arg1[0], integers(arg1[1], "indices"), integers(arg1[2], "indptr")
            if shape is None:
                minor = int(indices.max()) + 1 if indices.size else 0
                shape = self._major((max(indptr.size - 1, 0), minor))
            return data, indices, indptr, _parts.checked_shape(shape, 2)
        if isinstance(arg1, tuple) and len(arg1) == 2 and not _parts.is_shape(arg1):
            from mxnet.sparse._coo import coo_array

            same = coo_array(arg1, shape=shape).asformat(self.format)
            return same.data, same.indices, same.indptr, same.shape
        if isinstance(arg1, tuple) and _parts.is_shape(arg1):
            sizes = _parts.checked_shape(arg1, 2)
            none = _parts.zeros(0, "float32")
            return none, _parts.zeros(0), _parts.zeros(self._major(sizes)[0] + 1), sizes
        dense = values(arg1)
        if dense.ndim != 2:
            raise error.ShapeError(f"{name}: 2 axes are needed, found shape {dense.shape}")
        self._expect(shape, dense.shape)
        from mxnet.sparse._coo import coo_array

        same = coo_array(dense).asformat(self.format)
        return same.data, same.indices, same.indptr, same.shape

    def _expect(self, shape: Any, found: Shape) -> None:
        if shape is not None and _parts.checked_shape(shape) != found:
            raise error.ShapeError(f"{type(self).__name__}: shape {tuple(shape)} was asked for, found {found}")

    def check_format(self, full_check: bool = True) -> None:
        """Checks the index arrays, and finds out whether indices are in order.

        Parameters
        ----------
        full_check : bool
            Whether every index is looked at, or the lengths only.

        Raises
        ------
        mxnet.error.ValueError
            If offsets do not begin at 0, decrease, or do not end at the number of stored elements.
        mxnet.error.IndexError
            If an index is out of range.
        mxnet.error.ShapeError
            If the parts have lengths that do not fit each other or the shape.
        """
        name = type(self).__name__
        num_major, num_minor = self._major(self._shape)
        if self.indptr.size != num_major + 1:
            raise error.ShapeError(
                f"{name}: indptr must have {num_major + 1} elements for shape {self._shape}, found {self.indptr.size}"
            )
        if self.data.size != self.indices.size:
            raise error.ShapeError(
                f"{name}: data and indices must have the same length, found {self.data.size} and {self.indices.size}"
            )
        if full_check:
            check = _parts.named(name, lambda: op["csr_check"](self.indices, self.indptr, num_minor))
            self._is_sorted, self._is_canonical = map(bool, check.asnumpy())

    # ---- flags and order ----

    @property
    def has_sorted_indices(self) -> bool:
        """Whether indices ascend in each row (of CSC: in each column)."""
        return self._is_sorted

    @property
    def has_canonical_format(self) -> bool:
        """Whether indices ascend and no place is stored twice."""
        return self._is_canonical

    def copy(self) -> Any:
        """A copy of all parts."""
        made = self._with_data(self.data.copy())
        made.indices, made.indptr = self.indices.copy(), self.indptr.copy()
        return made

    def _with_data(self, data: ndarray) -> Any:
        made = self._of(data, self.indices, self.indptr, self._shape)
        made._is_sorted, made._is_canonical = self._is_sorted, self._is_canonical
        return made

    def _majors(self) -> ndarray:
        """The row (in CSC: the column) of each stored element."""
        return op["csr_rows"](self.indices, self.indptr)  # type: ignore[no-any-return]

    def _sorted(self) -> Any:
        if self._is_sorted:
            return self
        majors, num = self._majors(), self._major(self._shape)
        at, indptr = op["coo_order"](majors, self.indices, num[0], num[1])
        made = self._of(gathered(self.data, at), gathered(self.indices, at), indptr, self._shape, canonical=False)
        made._is_sorted = True
        made._is_canonical = flags(made.indices, made.indptr, num[1])[1]
        return made

    def _canonical(self) -> Any:
        if self._is_canonical:
            return self
        ordered = self._sorted()
        if ordered._is_canonical:
            return ordered
        majors, minors = ordered._majors(), ordered.indices
        is_first = op["concatenate"](
            [op["ones"](1, dtype="bool"), (majors[1:] != majors[:-1]) | (minors[1:] != minors[:-1])]
        )
        starts = masked(is_first)
        cuts = op["concatenate"]([starts, op["full"](1, majors.size, dtype="int64")])
        data = segment_sum(ordered.data, cuts)
        rows = gathered(majors, starts)
        indptr = _parts.offsets(rows, self._major(self._shape)[0])
        return self._of(data, gathered(minors, starts), indptr, self._shape)

    def _become(self, other: Any) -> None:
        self.data, self.indices, self.indptr = other.data, other.indices, other.indptr
        self._is_sorted, self._is_canonical = other._is_sorted, other._is_canonical

    def sort_indices(self) -> None:
        """Puts the indices of each row (of CSC: of each column) in order, in place."""
        self._become(self._sorted())

    def sorted_indices(self) -> Any:
        """A copy whose indices are in order."""
        return self._sorted().copy()

    def sum_duplicates(self) -> None:
        """Adds up elements that are stored at the same place, in place."""
        self._become(self._canonical())

    def eliminate_zeros(self) -> None:
        """Removes stored elements that are zero, in place."""
        at = masked(self.data != 0)
        rows = gathered(self._majors(), at)
        indptr = _parts.offsets(rows, self._major(self._shape)[0])
        made = self._of(gathered(self.data, at), gathered(self.indices, at), indptr, self._shape)
        made._is_sorted, made._is_canonical = self._is_sorted, self._is_canonical
        self._become(made)

    # ---- the transposed array has the same parts ----

    def _crossed(self) -> tuple[ndarray, ndarray, ndarray]:
        """Values, indices and offsets in the other compressed format."""
        indices, indptr, at = op["csr_transpose"](self.indices, self.indptr, self._major(self._shape)[1])
        return gathered(self.data, at), indices, indptr

    def transpose(self, axes: Any = None, copy: bool = False) -> Any:
        """The transposed array, which shares its parts with this one: of CSR it is CSC.

        Parameters
        ----------
        axes : tuple of int, optional
            (1, 0), or (0, 1) for the array itself.
        copy : bool
            Whether the parts are copied.
        """
        if axes is not None and tuple(_parts.axis_of(a, 2, "transpose") for a in axes) == (0, 1):
            return self.copy() if copy else self
        other = csc_array if isinstance(self, csr_array) else csr_array
        source = self.copy() if copy else self
        made = other._of(source.data, source.indices, source.indptr, self._shape[::-1])
        made._is_sorted, made._is_canonical = self._is_sorted, self._is_canonical
        return made

    def tocoo(self, copy: bool = True) -> Any:
        """Coordinates.

        Parameters
        ----------
        copy : bool
            Whether the parts that could be shared are copied.
        """
        from mxnet.sparse._coo import coo_array

        source = self.copy() if copy else self
        coords = self._major((self._majors(), source.indices))
        canonical = self._is_canonical and self.format == "csr"
        return coo_array._of(source.data, coords, self._shape, canonical=canonical)

    def todense(self) -> ndarray:
        """The same elements as a dense array."""
        rows, columns = self._major((self._majors(), self.indices))
        flat = rows * self._shape[1] + columns
        dense = op["scatter_or_skip"](self.data, flat, self._shape[0] * self._shape[1])
        return dense.reshape(self._shape)  # type: ignore[no-any-return]

    def __getitem__(self, key: Any) -> Any:
        return _indexing.get(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        raise error.UnsupportedError(
            f"elements of a {type(self).__name__} are not assigned to: change `data`, or build it from coordinates"
        )


class csr_array(_Compressed):  # noqa: N801  # SciPy's name
    """Compressed rows: row i stores the columns `indices[indptr[i]:indptr[i + 1]]`, values are in `data`.

    Parameters
    ----------
    arg1 : sparse array, array_like of shape (m, n), tuple
        A sparse array of this library or of SciPy (int64 index arrays and values are shared, not copied); a dense
        array; a shape (m, n) without elements; ``(data, (rows, columns))``; or ``(data, indices, indptr)``.
    shape : tuple of int, optional
        (m, n), if it does not follow from the parts.
    dtype : dtype, optional
        Dtype of the values.
    copy : bool
        Whether parts are copied that could be shared.
    device : Device, optional
        Where the parts are put.

    Raises
    ------
    mxnet.error.ValueError
        If offsets do not begin at 0, decrease, or do not end at the number of stored elements.
    mxnet.error.IndexError
        If an index is out of range.
    mxnet.error.ShapeError
        If the parts do not fit each other or the shape.
    mxnet.error.DTypeError
        If index arrays are no integers.

    Examples
    --------
    >>> import mxnet as mx
    >>> x = mx.sparse.csr_array(([1.0, 2.0, 3.0], [0, 2, 1], [0, 2, 3]), shape=(2, 3))
    >>> x.todense()
    array([[1., 0., 2.],
           [0., 3., 0.]])
    >>> x @ mx.np.ones(3)
    array([3., 3.])
    """

    format = "csr"

    @classmethod
    def _major(cls, pair: tuple[Any, ...]) -> tuple[Any, Any]:
        return pair[0], pair[1]

    def tocsr(self, copy: bool = False) -> csr_array:
        """The array itself, or a copy."""
        return self.copy() if copy else self

    def tocsc(self, copy: bool = False) -> csc_array:
        """Compressed columns."""
        made: csc_array = csc_array._of(*self._crossed(), self._shape, canonical=self._is_canonical)
        made._is_sorted = True
        return made

    def diagonal(self, k: int = 0) -> ndarray:
        """A diagonal, as a dense array.

        Parameters
        ----------
        k : int
            Which one: 0 the main diagonal, positive ones above it.
        """
        rows, columns = self._shape
        length = max(min(rows + min(k, 0), columns - max(k, 0)), 0)
        steps = arange(length)
        return self._at(steps + max(-k, 0), steps + max(k, 0))

    def _at(self, rows: ndarray, columns: ndarray) -> ndarray:
        """Elements at positions whose indices are in range."""
        source = self._canonical()
        at = op["csr_find_points"](source.indices, source.indptr, rows, columns)
        return gathered(source.data, at)

    def to_scipy(self) -> Any:
        """The same array of SciPy, which shares the parts.

        Returns
        -------
        scipy.sparse.csr_array
        """
        return _to_scipy(self, "csr_array")


class csc_array(_Compressed):  # noqa: N801  # SciPy's name
    """Compressed columns: column j stores the rows `indices[indptr[j]:indptr[j + 1]]`, values are in `data`.

    Parameters
    ----------
    arg1, shape, dtype, copy, device
        As for `csr_array`; in ``(data, indices, indptr)`` the indices are rows.

    Raises
    ------
    mxnet.error.ValueError, mxnet.error.IndexError, mxnet.error.ShapeError, mxnet.error.DTypeError
        As for `csr_array`.

    Examples
    --------
    >>> import mxnet as mx
    >>> x = mx.sparse.csc_array(([1.0, 2.0], [1, 0], [0, 1, 2]))
    >>> x.todense()
    array([[0., 2.],
           [1., 0.]])
    """

    format = "csc"

    @classmethod
    def _major(cls, pair: tuple[Any, ...]) -> tuple[Any, Any]:
        return pair[1], pair[0]

    def tocsc(self, copy: bool = False) -> csc_array:
        """The array itself, or a copy."""
        return self.copy() if copy else self

    def tocsr(self, copy: bool = False) -> csr_array:
        """Compressed rows."""
        made: csr_array = csr_array._of(*self._crossed(), self._shape, canonical=self._is_canonical)
        made._is_sorted = True
        return made

    def to_scipy(self) -> Any:
        """The same array of SciPy, which shares the parts.

        Returns
        -------
        scipy.sparse.csc_array
        """
        return _to_scipy(self, "csc_array")


def _to_scipy(x: _Compressed, name: str) -> Any:
    import numpy
    import scipy.sparse

    data, indices, indptr = (numpy.from_dlpack(part) for part in (x.data.detach(), x.indices, x.indptr))
    made = getattr(scipy.sparse, name)(x.shape, dtype=data.dtype)
    # SciPy's constructor would copy int64 indices to int32.
    made.data, made.indices, made.indptr = data, indices, indptr
    return made
