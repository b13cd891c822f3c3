"""The base class of sparse arrays: operators, NumPy's protocols, reductions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from mxnet import error
from mxnet._core import ndarray
from mxnet.sparse import _alternatives, _table
from mxnet.sparse._parts import Shape, axis_of, op

if TYPE_CHECKING:
    from mxnet.sparse._bsr import bsr_array
    from mxnet.sparse._compressed import csc_array, csr_array
    from mxnet.sparse._coo import coo_array

__all__ = ["sparray"]


def _binary(name: str, *, swapped: bool = False) -> Callable[[Any, Any], Any]:
    """The method of an operator, which calls the function `name`."""

    def method(self: Any, other: Any) -> Any:
        return _table.elementwise(name, "__call__", (other, self) if swapped else (self, other), {})

    return method


def _given(out: Any, result: ndarray) -> ndarray:
    """The result, written to `out` if that is given."""
    if out is None:
        return result
    out[...] = result
    return out  # type: ignore[no-any-return]


class sparray:  # noqa: N801  # SciPy's name
    """Base class of sparse arrays: structures of ordinary arrays, named as in SciPy.

    Only stored elements take memory; all others are zero. Results are never made dense silently: what has no sparse
    result raises an error that names the function and the kinds of its operands, and `todense` makes a dense array.

    Gradients flow to the stored values (`data`), whose pattern is kept, and to dense operands.
    """

    format: str = ""
    data: ndarray
    _shape: Shape

    __array_priority__ = 10.1
    __hash__ = None  # type: ignore[assignment]  # equality is element by element

    # ---- properties ----

    @property
    def shape(self) -> Shape:
        """Sizes of the axes."""
        return self._shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self._shape)

    @property
    def dtype(self) -> Any:
        """Data type of the stored values."""
        return self.data.dtype

    @property
    def device(self) -> Any:
        """Where the parts are."""
        return self.data.device

    @property
    def nnz(self) -> int:
        """Number of stored elements, zeros among them included."""
        return int(self.data.size)

    @property
    def size(self) -> int:
        """Number of stored elements, as in SciPy."""
        return self.nnz

    @property
    def stype(self) -> str:
        """Storage type, by MXNet's name: 'csr', 'row_sparse', or the format."""
        return self.format

    @property
    def T(self) -> Any:  # NumPy's name
        """The transposed array."""
        return self.transpose()

    @property
    def mT(self) -> Any:  # NumPy's name
        """The array with its last two axes exchanged.

        Raises
        ------
        AxisError
            If there is only one axis.
        """
        return self.swapaxes(-2, -1)

    @property
    def real(self) -> Any:
        """Real parts."""
        return self._with_data(self.data.real)

    @property
    def imag(self) -> Any:
        """Imaginary parts."""
        return self._with_data(op["imag"](self.data))

    def __repr__(self) -> str:
        kind = type(self).__name__
        return f"<{kind} of shape {self.shape}, {self.dtype}, {self.nnz} stored elements, on {self.device}>"

    def __len__(self) -> int:
        raise TypeError(f"the length of a {type(self).__name__} is ambiguous: use `nnz` or `shape[0]`")

    def __iter__(self) -> Iterator[Any]:
        if not self._shape:
            raise TypeError(f"a {type(self).__name__} without axes has no rows to go through")
        rows: Any = self
        return (rows[i] for i in range(self._shape[0]))

    def __getattr__(self, name: str) -> Any:
        instead = _alternatives.METHODS.get(name)
        kind = type(self).__name__
        if instead is None:
            raise AttributeError(f"'{kind}' object has no attribute '{name}'", name=name, obj=self)
        raise AttributeError(f"{kind}.{name} does not exist: {instead}", name=name, obj=self)

    def __bool__(self) -> bool:
        if self._shape in ((), (1,), (1, 1)):
            return bool(self.todense())
        raise ValueError(f"the truth value of a {type(self).__name__} of several elements is ambiguous: use `nnz`")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise error.UnsupportedError(
            f"a {type(self).__name__} of shape {self.shape} is not made dense silently: call `.todense()`"
        )

    # ---- conversions; each class has further ones ----

    def tocsr(self, copy: bool = False) -> csr_array:
        """Compressed rows."""
        raise NotImplementedError

    def tocoo(self, copy: bool = False) -> coo_array:
        """Coordinates."""
        made: coo_array = self.tocsr().tocoo(copy)
        return made

    def tocsc(self, copy: bool = False) -> csc_array:
        """Compressed columns."""
        return self.tocsr().tocsc(copy)

    def tobsr(self, blocksize: tuple[int, int] | None = None, copy: bool = False) -> bsr_array:
        """Compressed rows of dense blocks."""
        from mxnet.sparse._bsr import bsr_array

        return bsr_array(self.tocsr(), blocksize=blocksize)

    def asformat(self, format: str | None, copy: bool = False) -> Any:
        """The array in the format of this name; None keeps its own.

        Parameters
        ----------
        format : {'csr', 'csc', 'coo', 'bsr', None}
            Name of the format.
        copy : bool
            Whether parts that could be shared are copied.
        """
        if format is None or format == self.format:
            return self.copy() if copy else self
        makers: dict[str, Callable[..., Any]] = {
            "csr": self.tocsr,
            "csc": self.tocsc,
            "coo": self.tocoo,
            "bsr": self.tobsr,
        }
        if format not in makers:
            raise error.ValueError(f"asformat: there is no format {format!r}, but {', '.join(makers)}")
        return makers[format](copy=copy)

    def todense(self) -> ndarray:
        """The same elements as a dense array."""
        return self.tocoo().todense()

    def toarray(self) -> ndarray:
        """The same elements as a dense array; SciPy's name of it."""
        return self.todense()

    def asnumpy(self) -> Any:
        """The same elements as a dense array of NumPy."""
        return self.todense().asnumpy()

    def tostype(self, stype: str) -> Any:
        """The array in another storage type, by MXNet's names.

        Parameters
        ----------
        stype : {'default', 'csr', 'row_sparse', ...}
            'default' is dense; the names of `asformat` are known, too.
        """
        if stype == "default":
            return self.todense()
        if stype == "row_sparse":
            from mxnet.sparse._row_sparse import row_sparse_array

            return row_sparse_array(self)
        return self.asformat(stype)

    def copy(self) -> Any:
        """A copy of all parts."""
        raise NotImplementedError

    def _with_data(self, data: ndarray) -> Any:
        """An array with the same pattern and other values."""
        raise NotImplementedError

    def _canonical(self) -> Any:
        """The same array without duplicates and with sorted indices."""
        raise NotImplementedError

    def astype(self, dtype: Any, casting: str = "unsafe", copy: bool = True) -> Any:
        """The values converted to another dtype.

        Parameters
        ----------
        dtype : dtype
            The new dtype.
        casting : str
            Which conversions are allowed, as in `numpy.can_cast`.
        copy : bool
            Whether the array is copied that has the dtype already.
        """
        if self.dtype == dtype and not copy:
            return self
        return self._with_data(op["astype"](self.data, dtype, casting=casting))

    # ---- gradients ----

    def attach_grad(self, grad_req: str = "write") -> None:
        """Gradients with respect to the stored values are kept from now on, in `grad`."""
        self.data.attach_grad(grad_req)

    @property
    def grad(self) -> Any:
        """The gradient with respect to the stored values, of the same pattern; None without `attach_grad`."""
        found = self.data.grad
        return None if found is None else self._with_data(found)

    def detach(self) -> Any:
        """The same elements, outside any recorded graph."""
        return self._with_data(self.data.detach())

    # ---- compiled functions: the parts are arguments, so the number of stored elements is fixed by the trace ----

    def _graph_parts(self) -> tuple[Any, tuple[ndarray, ...]]:
        """The data that is not an array, and the arrays."""
        raise NotImplementedError

    @classmethod
    def _of_graph_parts(cls, rest: Any, arrays: tuple[ndarray, ...]) -> Any:
        raise NotImplementedError

    def _file_parts(self, is_argument: bool) -> tuple[Any, tuple[ndarray, ...]]:
        """The parts for a graph in a file, whose arguments are in canonical form."""
        found: tuple[Any, tuple[ndarray, ...]] = (self._canonical() if is_argument else self)._graph_parts()
        return found

    def _file_lengths(self) -> list[str | None]:
        """Names of the lengths of the first axes of the parts; None for offsets, whose number the shape says."""
        return ["stored" if x is not getattr(self, "indptr", None) else None for x in self._graph_parts()[1]]

    @classmethod
    def _of_file_parts(cls, rest: Any, arrays: tuple[ndarray, ...]) -> Any:
        # JSON has no tuples.
        known = (tuple(rest[0]), *rest[1:]) if rest and isinstance(rest[0], list) else tuple(rest)
        return cls._of_graph_parts(known, arrays)

    _of_traced_parts = _of_file_parts

    # ---- NumPy's protocols: the table says who serves which operands ----

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        return _table.elementwise(function.__name__, method, inputs, keywords)

    def __array_function__(self, function: Any, types: Any, arguments: Any, keywords: Any) -> Any:
        return _table.call(function.__name__, arguments, keywords)

    __add__ = _binary("add")
    __radd__ = _binary("add", swapped=True)
    __sub__ = _binary("subtract")
    __rsub__ = _binary("subtract", swapped=True)
    __mul__ = _binary("multiply")
    __rmul__ = _binary("multiply", swapped=True)
    __truediv__ = _binary("divide")
    __rtruediv__ = _binary("divide", swapped=True)
    __floordiv__ = _binary("floor_divide")
    __rfloordiv__ = _binary("floor_divide", swapped=True)
    __mod__ = _binary("remainder")
    __rmod__ = _binary("remainder", swapped=True)
    __pow__ = _binary("power")
    __rpow__ = _binary("power", swapped=True)
    __eq__ = _binary("equal")
    __ne__ = _binary("not_equal")
    __lt__ = _binary("less")
    __le__ = _binary("less_equal")
    __gt__ = _binary("greater")
    __ge__ = _binary("greater_equal")

    def __neg__(self) -> Any:
        return _table.elementwise("negative", "__call__", (self,), {})

    def __pos__(self) -> Any:
        return self.copy()

    def __abs__(self) -> Any:
        return _table.elementwise("absolute", "__call__", (self,), {})

    def __matmul__(self, other: Any) -> Any:
        return _table.matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return _table.matmul(other, self)

    def __round__(self, ndigits: int = 0) -> Any:
        return self._with_data(op["round"](self._canonical().data, ndigits))

    def dot(self, other: Any) -> Any:
        """The product with a number, a vector, a matrix, dense or sparse."""
        return _table.dot(self, other)

    def multiply(self, other: Any) -> Any:
        """The product element by element."""
        return self * other

    def divide(self, other: Any) -> Any:
        """The quotient element by element."""
        return self / other

    def maximum(self, other: Any) -> Any:
        """The larger elements."""
        return _table.elementwise("maximum", "__call__", (self, other), {})

    def minimum(self, other: Any) -> Any:
        """The smaller elements."""
        return _table.elementwise("minimum", "__call__", (self, other), {})

    def power(self, n: float, dtype: Any = None) -> Any:
        """Every element to the power `n`, which must be positive."""
        base = self if dtype is None else self.astype(dtype)
        return base**n

    def conj(self, copy: bool = True) -> Any:
        """Complex conjugates."""
        return self._with_data(self.data.conj())

    conjugate = conj

    # ---- reductions ----

    def sum(self, axis: Any = None, dtype: Any = None, out: Any = None, *, keepdims: bool = False) -> ndarray:
        """Sums over axes, as a dense array.

        Parameters
        ----------
        axis : int, tuple of int or None
            Axes to sum over; None means all.
        dtype : dtype, optional
            Dtype of the sums.
        out : ndarray, optional
            Where the result goes.
        keepdims : bool
            Whether summed axes stay, with length 1.
        """
        return self._reduced("sum", axis, dtype, out, keepdims)

    def mean(self, axis: Any = None, dtype: Any = None, out: Any = None, *, keepdims: bool = False) -> ndarray:
        """Means over axes, of all elements, zeros included; as a dense array."""
        return self._reduced("mean", axis, dtype, out, keepdims)

    def prod(self, axis: Any = None, dtype: Any = None, out: Any = None, *, keepdims: bool = False) -> ndarray:
        """Products over axes, as a dense array."""
        return self._reduced("prod", axis, dtype, out, keepdims)

    def max(self, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> ndarray:
        """Largest elements over axes, zeros included; a dense array, where SciPy gives a sparse one."""
        return self._reduced("max", axis, None, out, keepdims)

    def min(self, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> ndarray:
        """Smallest elements over axes, zeros included; a dense array, where SciPy gives a sparse one."""
        return self._reduced("min", axis, None, out, keepdims)

    def nanmax(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> ndarray:
        """Largest elements over axes that are not NaN, zeros included; NaN where all are. A dense array.

        Parameters
        ----------
        axis : int, tuple of int or None
            Axes to reduce; None means all.
        out : ndarray, optional
            Where the result goes.
        explicit : bool
            Must be False: zeros that are not stored count, too.
        """
        return self._without_nan("max", axis, out, explicit)

    def nanmin(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> ndarray:
        """Smallest elements over axes that are not NaN; see `nanmax`."""
        return self._without_nan("min", axis, out, explicit)

    def _without_nan(self, name: str, axis: Any, out: Any, explicit: bool) -> ndarray:
        from mxnet.sparse import _reduce

        if explicit:
            raise error.UnsupportedError(
                f"nan{name}: `explicit` must be False; reduce `data` for stored elements alone"
            )
        x = self._canonical()
        is_nan = x.data != x.data
        least = op["where"](is_nan, float("-inf" if name == "max" else "inf"), x.data).astype(x.dtype)
        found = _reduce.reduced(x._with_data(least), name, axis, None, False)
        count = x._with_data(is_nan.astype("int64")).sum(axis)
        found = op["where"](count == _reduce.elements_over(self._shape, axis), float("nan"), found).astype(x.dtype)
        return _given(out, found)

    def any(self, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> ndarray:
        """Whether any element is not zero."""
        return self.count_nonzero(axis, keepdims=keepdims) > 0

    def all(self, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> ndarray:
        """Whether all elements are not zero."""
        from mxnet.sparse._reduce import elements_over

        return self.count_nonzero(axis, keepdims=keepdims) == elements_over(self._shape, axis)

    def count_nonzero(self, axis: Any = None, *, keepdims: bool = False) -> ndarray:
        """How many elements are not zero."""
        flags = self._canonical()
        return flags._with_data((flags.data != 0).astype("int64")).sum(axis, keepdims=keepdims)  # type: ignore[no-any-return]

    def getnnz(self, axis: int | None = None) -> Any:
        """How many elements are stored, of all or along an axis."""
        if axis is None:
            return self.nnz
        return self._with_data(op["ones_like"](self.data).astype("int64")).sum(axis)

    def _reduced(self, name: str, axis: Any, dtype: Any, out: Any, keepdims: bool) -> ndarray:
        from mxnet.sparse import _reduce

        return _given(out, _reduce.reduced(self, name, axis, dtype, keepdims))

    def argmax(self, axis: int | None = None) -> ndarray:
        """Positions of the largest elements, int64; of equal ones the first."""
        from mxnet.sparse import _reduce

        return _reduce.extreme_position(self, "max", axis)

    def argmin(self, axis: int | None = None) -> ndarray:
        """Positions of the smallest elements, int64; of equal ones the first."""
        from mxnet.sparse import _reduce

        return _reduce.extreme_position(self, "min", axis)

    def nonzero(self) -> tuple[ndarray, ...]:
        """Positions of the elements that are not zero, one array for each axis."""
        from mxnet.sparse._parts import gathered, masked

        coo = self.tocoo()._canonical()
        at = masked(coo.data != 0)
        return tuple(gathered(axis, at) for axis in coo.coords)

    def trace(self, offset: int = 0) -> ndarray:
        """Sum of a diagonal."""
        return self.diagonal(offset).sum()

    def diagonal(self, k: int = 0) -> ndarray:
        """A diagonal, as a dense array."""
        return self.tocsr().diagonal(k)

    def transpose(self, axes: Any = None, copy: bool = False) -> Any:
        """The array with its axes in another order."""
        raise NotImplementedError

    def swapaxes(self, axis1: int, axis2: int) -> Any:
        """The array with two axes exchanged."""
        order = list(range(self.ndim))
        a, b = axis_of(axis1, self.ndim, "swapaxes"), axis_of(axis2, self.ndim, "swapaxes")
        order[a], order[b] = order[b], order[a]
        return self.transpose(tuple(order))

    def reshape(self, *shape: Any, order: str = "C", copy: bool = False) -> Any:
        """The elements, in C order, in another shape.

        Parameters
        ----------
        *shape : int or tuple of int
            The new shape; one size may be -1.
        order : {'C', 'F'}
            Order in which elements are read and placed.
        copy : bool
            Not needed here: index arrays are new.
        """
        shaped = self.tocoo().reshape(*shape, order=order)
        return shaped.asformat(self.format) if shaped.ndim == 2 and self.format in ("csr", "csc") else shaped


def _function(name: str) -> Callable[[Any], Any]:
    """The method that is the elementwise function `name`, which maps zero to zero."""

    def method(self: Any) -> Any:
        return _table.elementwise(name, "__call__", (self,), {})

    method.__name__ = name
    method.__qualname__ = f"sparray.{name}"
    method.__doc__ = f"`mxnet.numpy.{name}` of every element."
    return method


for _name in (
    *("arcsin", "arcsinh", "arctan", "arctanh", "ceil", "deg2rad", "expm1", "floor", "log1p"),
    *("rad2deg", "rint", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc"),
):
    setattr(sparray, _name, _function(_name))
