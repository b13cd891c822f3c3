"""Coordinates: one index array an axis, of any number of axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mxnet import error
from mxnet._core import is_abstract, ndarray
from mxnet.sparse import _indexing, _parts
from mxnet.sparse._array import sparray
from mxnet.sparse._compressed import csc_array, csr_array
from mxnet.sparse._parts import Shape, flags, gathered, integers, masked, op, values

__all__ = ["coo_array"]


class coo_array(sparray):  # noqa: N801  # SciPy's name
    """Coordinates: element k is at ``(coords[0][k], coords[1][k], ...)`` and is ``data[k]``; equal ones add up.

    Parameters
    ----------
    arg1 : sparse array, array_like, tuple
        A sparse array of this library or of SciPy; a dense array; a shape without elements; or ``(data, coords)`` with
        an index array for each axis.
    shape : tuple of int, optional
        If it does not follow from the parts: else one more than the largest index of each axis.
    dtype : dtype, optional
        Dtype of the values.
    copy : bool
        Whether parts are copied that could be shared.
    device : Device, optional
        Where the parts are put.

    Raises
    ------
    mxnet.error.IndexError
        If an index is out of range.
    mxnet.error.ShapeError
        If the parts do not have the same length, or there is not one for each axis.
    mxnet.error.DTypeError
        If index arrays are no integers.

    Examples
    --------
    >>> import mxnet as mx
    >>> x = mx.sparse.coo_array(([1.0, 2.0, 3.0], ([0, 1, 1], [1, 0, 0])), shape=(2, 2))
    >>> x.todense()
    array([[0., 1.],
           [5., 0.]])
    """

    format = "coo"
    coords: tuple[ndarray, ...]
    _is_canonical: bool

    def __init__(
        self, arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False, *, device: Any = None
    ) -> None:
        data, coords, self._shape = self._read(arg1, shape)
        data = values(data, dtype)
        self._is_canonical = False
        self.data = data.copy() if copy else data
        self.coords = tuple(x.copy() if copy else x for x in coords)
        if device is not None:
            self.data = self.data.to_device(device)
            self.coords = tuple(x.to_device(device) for x in self.coords)
        self._check()

    @classmethod
    def _of(cls, data: ndarray, coords: Sequence[ndarray], shape: Shape, *, canonical: bool = False) -> coo_array:
        """An array from parts that are known to be valid."""
        made = cls.__new__(cls)
        made.data, made.coords, made._shape, made._is_canonical = data, tuple(coords), shape, canonical
        return made

    def _graph_parts(self) -> tuple[Any, tuple[ndarray, ...]]:
        return (self._shape, self._is_canonical), (self.data, *self.coords)

    @classmethod
    def _of_graph_parts(cls, rest: Any, arrays: tuple[ndarray, ...]) -> coo_array:
        return cls._of(arrays[0], arrays[1:], rest[0], canonical=rest[1])

    def _read(self, arg1: Any, shape: Any) -> tuple[Any, Sequence[ndarray], Shape]:
        if isinstance(arg1, sparray):
            same = arg1.tocoo()
            self._expect(shape, same.shape)
            return same.data, same.coords, same.shape
        if _parts.is_scipy(arg1):
            theirs = arg1.tocoo(copy=False)
            self._expect(shape, theirs.shape)
            return theirs.data, [integers(axis, "coords") for axis in theirs.coords], theirs.shape
        if isinstance(arg1, tuple) and len(arg1) == 2 and not _parts.is_shape(arg1):
            data, coords = arg1
            axes = [integers(axis, f"coords[{i}]") for i, axis in enumerate(coords)]
            if shape is None:
                if not axes or any(axis.size == 0 for axis in axes):
                    raise error.ValueError("coo_array: without elements the shape must be given")
                shape = [int(axis.max()) + 1 for axis in axes]
            return data, axes, _parts.checked_shape(shape)
        if isinstance(arg1, tuple) and _parts.is_shape(arg1):
            sizes = _parts.checked_shape(arg1)
            return _parts.zeros(0, "float32"), [_parts.zeros(0) for _ in sizes], sizes
        dense = values(arg1)
        if dense.ndim == 0:
            raise error.ShapeError("coo_array: an array without axes has no coordinates")
        self._expect(shape, dense.shape)
        at = masked(dense.ravel() != 0)
        return gathered(dense.ravel(), at), _split(at, dense.shape), dense.shape

    def _expect(self, shape: Any, found: Shape) -> None:
        if shape is not None and _parts.checked_shape(shape) != found:
            raise error.ShapeError(f"coo_array: shape {tuple(shape)} was asked for, found {found}")

    def _check(self) -> None:
        if len(self.coords) != self.ndim:
            raise error.ShapeError(
                f"coo_array: shape {self._shape} needs {self.ndim} index arrays, found {len(self.coords)}"
            )
        if self.data.ndim != 1 or any(axis.size != self.data.size for axis in self.coords):
            lengths = [axis.size for axis in self.coords]
            raise error.ShapeError(
                f"coo_array: data of shape {self.data.shape} needs index arrays of its length, found lengths {lengths}"
            )
        for i, (axis, n) in enumerate(zip(self.coords, self._shape, strict=True)):
            if axis.size and not 0 <= int(axis.min()) <= int(axis.max()) < n:
                bad = int(axis.min()) if int(axis.min()) < 0 else int(axis.max())
                raise error.IndexError(f"coo_array: index {bad} is out of bounds for axis {i} of size {n}")

    @property
    def row(self) -> ndarray:
        """Rows, of an array of two axes."""
        return self.coords[-2]

    @property
    def col(self) -> ndarray:
        """Columns: the last index array."""
        return self.coords[-1]

    @property
    def has_canonical_format(self) -> bool:
        """Whether elements are in C order and no place is stored twice, as far as it is known."""
        return self._is_canonical

    def copy(self) -> coo_array:
        """A copy of all parts."""
        coords = [axis.copy() for axis in self.coords]
        return coo_array._of(self.data.copy(), coords, self._shape, canonical=self._is_canonical)

    def _with_data(self, data: ndarray) -> coo_array:
        return coo_array._of(data, self.coords, self._shape, canonical=self._is_canonical)

    def _flat(self) -> ndarray:
        """Flat positions in C order."""
        flat = self.coords[0]
        for axis, n in zip(self.coords[1:], self._shape[1:], strict=True):
            flat = flat * n + axis
        return flat

    def as_matrix(self) -> csr_array:
        """The elements as a CSR matrix: all axes but the last are merged."""
        if self.ndim == 2:
            return self.tocsr()
        rows, columns = math.prod(self._shape[:-1]), self._shape[-1]
        return coo_array._of(self.data, _split(self._flat(), (rows, columns)), (rows, columns)).tocsr()

    def _canonical(self) -> coo_array:
        if self._is_canonical:
            return self
        matrix = self.as_matrix()._canonical()
        return matrix.tocoo(copy=False).reshape(self._shape)  # type: ignore[no-any-return]

    def sum_duplicates(self) -> None:
        """Puts elements in C order and adds up those stored at the same place, in place."""
        other = self._canonical()
        self.data, self.coords, self._is_canonical = other.data, other.coords, True

    def eliminate_zeros(self) -> None:
        """Removes stored elements that are zero, in place."""
        at = masked(self.data != 0)
        self.data, self.coords = gathered(self.data, at), tuple(gathered(axis, at) for axis in self.coords)

    def tocoo(self, copy: bool = False) -> coo_array:
        """The array itself, or a copy."""
        return self.copy() if copy else self

    def _two_axes(self, name: str) -> None:
        if self.ndim != 2:
            raise error.ShapeError(f"{name}: 2 axes are needed, found shape {self._shape}")

    def tocsr(self, copy: bool = False) -> csr_array:
        """Compressed rows, of an array of two axes; elements at the same place are added up."""
        self._two_axes("tocsr")
        at, indptr = op["coo_order"](self.coords[0], self.coords[1], *self._shape)
        made: csr_array = csr_array._of(
            gathered(self.data, at), gathered(self.coords[1], at), indptr, self._shape, canonical=False
        )
        if self._is_canonical:
            made._is_sorted = made._is_canonical = True
        else:
            made._is_sorted, made._is_canonical = flags(made.indices, made.indptr, self._shape[1])
        return made if is_abstract(made.indices) else made._canonical()

    def tocsc(self, copy: bool = False) -> csc_array:
        """Compressed columns, of an array of two axes; elements at the same place are added up."""
        self._two_axes("tocsc")
        return self.transpose().tocsr().transpose()  # type: ignore[no-any-return]

    def todense(self) -> ndarray:
        """The same elements as a dense array."""
        dense = op["scatter_or_skip"](self.data, self._flat(), math.prod(self._shape))
        return dense.reshape(self._shape)  # type: ignore[no-any-return]

    def transpose(self, axes: Any = None, copy: bool = False) -> coo_array:
        """The array with its axes in another order.

        Parameters
        ----------
        axes : tuple of int, optional
            The new order; reversed if it is left out.
        copy : bool
            Whether the parts are copied.
        """
        order = tuple(range(self.ndim))[::-1] if axes is None else tuple(axes)
        order = tuple(_parts.axis_of(axis, self.ndim, "transpose") for axis in order)
        if sorted(order) != list(range(self.ndim)):
            raise error.AxisError(f"transpose: axes {axes} are no order of {self.ndim} axes")
        source = self.copy() if copy else self
        shape = tuple(self._shape[i] for i in order)
        return coo_array._of(source.data, [source.coords[i] for i in order], shape)

    def reshape(self, *shape: Any, order: str = "C", copy: bool = False) -> coo_array:
        """The elements in another shape; see `sparray.reshape`."""
        if order not in ("C", "F"):
            raise error.ValueError(f"reshape: `order` must be 'C' or 'F', found {order!r}")
        given = shape[0] if len(shape) == 1 and not hasattr(shape[0], "__index__") else shape
        sizes = [int(n) for n in given]
        total = math.prod(self._shape)
        if sizes.count(-1) == 1:
            known = -math.prod(sizes)
            sizes[sizes.index(-1)] = total // known if known else 0
        if math.prod(sizes) != total or any(n < 0 for n in sizes):
            raise error.ShapeError(f"reshape: shape {self._shape} does not fit shape {tuple(given)}")
        if order == "F":
            return self.transpose().reshape(tuple(sizes[::-1])).transpose()
        if tuple(sizes) == self._shape:
            return self
        return coo_array._of(self.data, _split(self._flat(), sizes), tuple(sizes), canonical=self._is_canonical)

    def diagonal(self, k: int = 0) -> ndarray:
        """A diagonal, as a dense array."""
        return self.tocsr().diagonal(k)

    def __getitem__(self, key: Any) -> Any:
        return _indexing.get_coordinates(self, key)

    def to_scipy(self) -> Any:
        """The same array of SciPy, which shares the parts.

        Returns
        -------
        scipy.sparse.coo_array
        """
        import numpy
        import scipy.sparse

        parts = [numpy.from_dlpack(axis) for axis in self.coords]
        made = scipy.sparse.coo_array(self._shape)
        made.data, made.coords = numpy.from_dlpack(self.data.detach()), tuple(parts)
        return made


def _split(flat: ndarray, shape: Sequence[int]) -> list[ndarray]:
    """Index arrays of flat positions in C order."""
    if len(shape) == 1:
        return [flat]
    coords: list[ndarray] = []
    for n in reversed(shape[1:]):
        coords.insert(0, flat % max(n, 1))
        flat = flat // max(n, 1)
    return [flat, *coords]
