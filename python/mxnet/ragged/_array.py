"""The ragged array: values, and offsets for each ragged dimension."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any, cast

import numpy as onp
from numpy.lib.mixins import NDArrayOperatorsMixin

from mxnet import _core, autograd, error
from mxnet._core import ndarray
from mxnet.ragged._partition import Partition

_op = _core.namespaces["op"]


class RaggedArray(NDArrayOperatorsMixin):
    """Rows of different lengths, as values and offsets.

    Axis 0 counts the rows, the next axes are ragged, the last ones uniform. A function of every element is that of the
    values; everything else works on values and offsets with operators of `mxnet`, so gradients flow to the values.

    Parameters
    ----------
    values : ndarray, shape (total, ...)
        Elements of all rows, one row after the other.
    *offsets : array_like of int, shape (n + 1,)
        One for each ragged axis, the outermost first: where each row begins among the rows of the next one, or of the
        values, and their number at the end.

    Raises
    ------
    ValueError
        If offsets do not start with 0, decrease, or do not end with the number of rows.

    Examples
    --------
    >>> import mxnet as mx
    >>> r = mx.ragged.RaggedArray(mx.np.array([1.0, 2.0, 3.0]), [0, 2, 2, 3])
    >>> r
    ragged.array([[1., 2.],
                  [],
                  [3.]])
    >>> r.shape
    (3, None)
    >>> mx.np.sum(r * 10, axis=1)
    array([30.,  0., 30.])
    """

    __slots__ = ("_choice", "_partitions", "_values")
    __hash__ = None  # type: ignore[assignment]  # equality is element by element

    def __init__(self, values: Any, *offsets: Any) -> None:
        if not isinstance(values, ndarray):
            values = _core.array(values)
        if not offsets:
            raise error.ValueError("ragged: a ragged array has offsets for at least one axis; use an ndarray otherwise")
        if not values.ndim:
            raise error.ShapeError("ragged: values need an axis of rows, found 0 axes")
        partitions: list[Partition] = []
        rows = values.shape[0]
        for i in range(len(offsets) - 1, -1, -1):
            given = offsets[i]
            what = "offsets" if len(offsets) == 1 else f"offsets {i}"
            if isinstance(given, Partition):
                if not given.is_traced and given.total != rows:
                    raise error.ValueError(f"ragged: the last of {what} is {given.total}, but there are {rows} rows")
                partitions.insert(0, given)
            elif isinstance(given, ndarray) and _core.is_abstract(given):
                from mxnet.ragged._computed import ComputedPartition

                partitions.insert(0, ComputedPartition.of_offsets(given, rows))
            else:
                partitions.insert(0, Partition(given, rows, what))
            rows = partitions[0].count
        self._values: ndarray = values
        self._partitions = tuple(partitions)
        self._choice: Any = None

    # Parts.

    @property
    def values(self) -> ndarray:
        """Elements of all rows: shape (total, ...)."""
        return self._values

    @property
    def offsets(self) -> tuple[ndarray, ...]:
        """Offsets of each ragged axis, int64, the outermost first."""
        return tuple(partition.offsets for partition in self._partitions)

    @property
    def num_ragged(self) -> int:
        """Number of ragged axes."""
        return len(self._partitions)

    def lengths(self, axis: int = 1) -> ndarray:
        """Sizes of the rows along a ragged axis.

        Parameters
        ----------
        axis : int

        Returns
        -------
        ndarray, shape (rows,), int64

        Raises
        ------
        ValueError
            If the axis is not ragged.

        Examples
        --------
        >>> mx.ragged.array([[1, 2], [3]]).lengths()
        array([2, 1])
        """
        at = self._axis(axis, "lengths")
        if not 1 <= at <= self.num_ragged:
            raise error.ValueError(f"lengths: axis {axis} of shape {self.shape} is not ragged")
        return self._partitions[at - 1].sizes.copy()

    @property
    def shape(self) -> tuple[int | None, ...]:
        """Sizes of the axes; None for ragged ones."""
        ragged: tuple[int | None, ...] = (None,) * self.num_ragged
        return (self._partitions[0].count, *ragged, *self._values.shape[1:])

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self._values.ndim + self.num_ragged

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._values.size

    @property
    def dtype(self) -> Any:
        """Type of the elements."""
        return self._values.dtype

    @property
    def device(self) -> Any:
        """Where the values are."""
        return self._values.device

    context = ctx = device

    def _axis(self, axis: int, name: str) -> int:
        """An axis counted from the front."""
        at = operator.index(axis)
        if not -self.ndim <= at < self.ndim:
            raise error.AxisError(f"{name}: axis {axis} is out of bounds for shape {self.shape}")
        return at % self.ndim

    def with_values(self, values: ndarray) -> RaggedArray:
        """Other values in the same rows.

        Parameters
        ----------
        values : ndarray, shape (total, ...)

        Returns
        -------
        RaggedArray

        Raises
        ------
        ValueError
            If the number of rows is another.

        Examples
        --------
        >>> r = mx.ragged.array([[1, 2], [3]])
        >>> r.with_values(r.values * r.values)
        ragged.array([[1, 4],
                      [9]])
        """
        return RaggedArray(values, *self._partitions)

    # Dense arrays and other libraries.

    def to_dense(self, fill: float = 0, length: int | None = None) -> ndarray:
        """Rows padded to one length.

        Parameters
        ----------
        fill : number
            What stands behind the elements of a row.
        length : int, optional
            Size of the first ragged axis; that of the longest row by default. Longer rows are cut.

        Returns
        -------
        ndarray, shape (n, length, ...)
            A view of the values if nothing is to be filled.

        Examples
        --------
        >>> mx.ragged.array([[1, 2], [3]]).to_dense(fill=-1)
        array([[ 1,  2],
               [ 3, -1]])
        """
        x = self._values
        for i in range(self.num_ragged - 1, -1, -1):
            partition = self._partitions[i]
            size = partition.longest if i or length is None else operator.index(length)
            if partition.is_even() and partition.longest == size:
                x = x.reshape((partition.count, size, *x.shape[1:]))
            else:
                x = _op["ragged_pad"](x, partition.offsets, size, float(fill))
        return x

    def to_ndarray(self) -> ndarray:
        """The same elements without ragged axes, not copied.

        Returns
        -------
        ndarray

        Raises
        ------
        ValueError
            If rows have different lengths; `to_dense` fills them up.

        Examples
        --------
        >>> mx.ragged.array([[1, 2], [3, 4]]).to_ndarray()
        array([[1, 2],
               [3, 4]])
        """
        for i, partition in enumerate(self._partitions):
            if not partition.is_even():
                lengths = partition.lengths
                at = int(onp.flatnonzero(lengths != lengths[0])[0])
                raise error.ValueError(
                    f"to_ndarray: axis {i + 1} is ragged: rows 0 and {at} have {lengths[0]} and {lengths[at]} elements"
                    "; use to_dense"
                )
        return self.to_dense()

    def to_numpy(self) -> Any:
        """Rows as arrays of NumPy, in an array of objects.

        Returns
        -------
        numpy.ndarray of object, shape (n,)

        Examples
        --------
        >>> mx.ragged.array([[1, 2], [3]]).to_numpy()[1]
        array([3])
        """
        found = onp.empty(len(self), dtype=object)
        if self.num_ragged > 1:
            for i in range(len(self)):
                found[i] = self[i].to_numpy()
            return found
        host, bounds = self._values.asnumpy(), self._partitions[0].host
        for i in range(len(self)):
            found[i] = host[bounds[i] : bounds[i + 1]]
        return found

    asnumpy = to_numpy

    def tolist(self) -> list[Any]:
        """The elements in nested lists.

        Returns
        -------
        list

        Examples
        --------
        >>> mx.ragged.array([[1, 2], [3]]).tolist()
        [[1, 2], [3]]
        """
        return [row.tolist() for row in self]

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        from mxnet.ragged._exchange import to_arrow

        return to_arrow(self)

    # Rows.

    def __len__(self) -> int:
        return self._partitions[0].count

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        raise error.ValueError("the truth value of a ragged array is ambiguous; use np.any or np.all")

    def __getitem__(self, key: Any) -> Any:
        from mxnet.ragged._indexing import get

        return get(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        from mxnet.ragged._indexing import put

        put(self, key, value)

    def __repr__(self) -> str:
        from mxnet.ragged._printing import formatted

        return formatted(self)

    def __reduce__(self) -> Any:
        return RaggedArray, (self._values, *(partition.host for partition in self._partitions))

    # Gradients are those of the values.

    def attach_grad(self, grad_req: str = "write") -> None:
        """Make the values a variable of `autograd`.

        Parameters
        ----------
        grad_req : {'write', 'add', 'null'}

        Examples
        --------
        >>> r = mx.ragged.array([[1.0, 2.0], [3.0]])
        >>> r.attach_grad()
        >>> with mx.autograd.record():
        ...     y = np.sum(r * r)
        >>> y.backward()
        >>> r.grad
        ragged.array([[2., 4.],
                      [6.]])
        """
        self._values.attach_grad(grad_req)

    @property
    def grad(self) -> RaggedArray | None:
        """Gradient of the values, in the same rows."""
        grad = self._values.grad
        return None if grad is None else self.with_values(grad)

    def backward(self, out_grad: Any = None, retain_graph: bool = False, train_mode: bool = True) -> None:
        """Compute gradients from here; see `mxnet.autograd.backward`.

        Parameters
        ----------
        out_grad : RaggedArray or ndarray, optional
            Cotangent of the values; ones by default.
        retain_graph, train_mode : bool
        """
        if isinstance(out_grad, RaggedArray):
            self._check_same(out_grad, "backward")
            out_grad = out_grad.values
        heads = None if out_grad is None else [out_grad]
        autograd.backward([self._values], heads, retain_graph=retain_graph, train_mode=train_mode)

    def detach(self) -> RaggedArray:
        """The same elements, through which no gradient flows.

        Returns
        -------
        RaggedArray
        """
        return self.with_values(self._values.detach())

    def _check_same(self, other: RaggedArray, name: str) -> None:
        """Refuse another raggedness."""
        if self.num_ragged != other.num_ragged:
            raise error.ShapeError(f"{name}: {self.num_ragged} and {other.num_ragged} ragged axes")
        for own, its in zip(self._partitions, other._partitions, strict=True):
            own.check_same(its, name)

    # Conversions and forms.

    def copy(self) -> RaggedArray:
        """A copy of the elements.

        Returns
        -------
        RaggedArray
        """
        return self.with_values(self._values.copy())

    def astype(self, dtype: Any, copy: bool = True) -> RaggedArray:
        """The elements converted.

        Parameters
        ----------
        dtype : dtype
        copy : bool
            Whether the values are copied if they have the dtype.

        Returns
        -------
        RaggedArray
        """
        return self.with_values(self._values.astype(dtype, copy=copy))

    def to_device(self, device: Any) -> RaggedArray:
        """The values on another device.

        Parameters
        ----------
        device : Device

        Returns
        -------
        RaggedArray
        """
        return self.with_values(self._values.to_device(device))

    def wait_to_read(self) -> None:
        """Wait until the values are there."""
        self._values.wait_to_read()

    def reshape(self, *shape: Any) -> RaggedArray:
        """Other uniform axes.

        Parameters
        ----------
        *shape : int or None
            The sizes of all axes. The first and the ragged ones stay: they are given as they are, or as -1 or None.

        Returns
        -------
        RaggedArray

        Raises
        ------
        ValueError
            If the first axis or a ragged one would change, or the sizes do not fit.

        Examples
        --------
        >>> x = mx.ragged.from_dense(np.ones((2, 3, 8)), lengths=[3, 1])
        >>> x.reshape(2, None, 4, 2).shape
        (2, None, 4, 2)
        """
        sizes = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
        lead = 1 + self.num_ragged
        kept = self.shape[:lead]
        if len(sizes) < lead or any(new not in (old, -1, None) for new, old in zip(sizes, kept, strict=False)):
            raise error.ShapeError(f"reshape: shape {sizes} must start with the axes {kept}, which stay")
        return self.with_values(self._values.reshape((self._values.shape[0], *sizes[lead:])))

    def swapaxes(self, axis1: int, axis2: int) -> RaggedArray:
        """Two uniform axes exchanged; see `numpy.swapaxes`.

        Parameters
        ----------
        axis1, axis2 : int

        Returns
        -------
        RaggedArray
        """
        from mxnet import numpy as np

        return cast("RaggedArray", np.swapaxes(cast("Any", self), axis1, axis2))

    # In compiled functions the values are an argument; offsets are part of the signature.

    # Lengths that follow from values are arrays, too.

    def _graph_parts(self) -> tuple[Any, tuple[ndarray, ...]]:
        known = tuple(None if partition.is_computed else partition for partition in self._partitions)
        sizes = (partition.sizes for partition in self._partitions if partition.is_computed)
        return known, (self._values, *sizes)

    @classmethod
    def _of_graph_parts(cls, known: tuple[Partition | None, ...], arrays: tuple[ndarray, ...]) -> RaggedArray:
        from mxnet.ragged._computed import partition_of

        values, *sizes = arrays
        partitions: list[Partition] = []
        rows = values.shape[0]
        for partition in reversed(known):
            if partition is None:
                own = sizes.pop()
                found = partition_of(own, rows) if _core.is_abstract(own) else Partition.of_lengths(own.asnumpy(), rows)
            else:
                found = partition
            partitions.insert(0, found)
            rows = found.count
        return cls(values, *partitions)

    def _is_computed(self) -> bool:
        """Whether lengths of rows follow from values, in a compiled function."""
        return any(partition.is_computed for partition in self._partitions)

    def _chosen(self) -> tuple[Partition, ndarray]:
        """The rows of the values that are true, in their segments: the same objects until the values are written to."""
        from mxnet.ragged._computed import masked

        version = _core.version_of(self._values)
        if self._choice is None or self._choice[0] != version:
            self._choice = (version, masked(self._values, self._partitions[-1]))
        found: tuple[Partition, ndarray] = self._choice[1]
        return found

    # In graphs of files values and lengths are arguments.

    def _file_parts(self, is_argument: bool, has_steps: bool = False) -> tuple[Any, tuple[ndarray, ...]]:
        """Values and lengths; with `has_steps` also as many numbers as the longest rows have elements."""
        parts = (self._values, *(partition.sizes for partition in self._partitions))
        if not has_steps:
            return (self.num_ragged,), parts
        numbers = (_core.array(onp.arange(partition.longest), dtype="int64") for partition in self._partitions)
        return (self.num_ragged, True), (*parts, *(x.to_device(self.device) for x in numbers))

    def _file_lengths(self, has_steps: bool = False) -> list[str]:
        """Names of the lengths of the first axes of the parts: those with one name are equal."""
        axes = range(1, self.num_ragged + 1)
        steps = [f"longest of axis {i}" for i in axes] if has_steps else []
        return ["elements", f"rows {len(self)}", *(f"rows of axis {i}" for i in axes[:-1]), *steps]

    @classmethod
    def _of_file_parts(cls, rest: Any, arrays: tuple[ndarray, ...]) -> RaggedArray:
        return cls(arrays[0], *map(Partition.of_lengths, arrays[1 : 1 + rest[0]]))

    @classmethod
    def _of_traced_parts(cls, rest: Any, arrays: tuple[ndarray, ...]) -> RaggedArray:
        from mxnet.ragged._traced import TracedPartition

        values, sizes, steps = arrays[0], arrays[1 : 1 + rest[0]], arrays[1 + rest[0] :]
        made = cls.__new__(cls)
        made._values = values
        made._choice = None
        made._partitions = tuple(
            TracedPartition(own, inner.shape[0], steps[i] if steps else None)
            for i, (own, inner) in enumerate(zip(sizes, [*sizes[1:], values], strict=True))
        )
        return made

    # Functions by name.

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise error.UnsupportedError(
            f"{_caller()}a ragged array does not become a dense one by itself: use to_dense, to_ndarray or to_numpy"
        )

    def __array_function__(self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        from mxnet.ragged._table import call

        return call(func, args, kwargs)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        from mxnet.ragged._table import call_ufunc

        return call_ufunc(ufunc, method, inputs, kwargs)


def _caller() -> str:
    """The function of `mxnet.numpy` or `mxnet.numpy_extension` that the user called, for a message."""
    frame: FrameType | None = sys._getframe(2)
    name = ""
    while frame is not None and frame.f_globals.get("__name__", "").startswith(("mxnet.", "numpy.")):
        if frame.f_globals["__name__"].startswith("mxnet.numpy") and not frame.f_code.co_name.startswith(("_", "<")):
            name = frame.f_code.co_name
        frame = frame.f_back
    return f"{name}: " if name and name != "asked" else ""


def _reduction(name: str) -> Callable[..., Any]:
    def method(self: RaggedArray, axis: Any = None, **kwargs: Any) -> Any:
        from mxnet import numpy as np

        return getattr(np, name)(self, axis=axis, **kwargs)

    method.__name__ = name
    method.__qualname__ = f"RaggedArray.{name}"
    method.__doc__ = f"""`mxnet.numpy.{name}` of the array.

        Parameters
        ----------
        axis : int, tuple of int or None
        **kwargs
            Other arguments of the function.

        Returns
        -------
        ndarray or RaggedArray
        """
    return method


_REDUCTIONS = ("sum", "prod", "max", "min", "mean", "std", "var", "any", "all", "argmax", "argmin", "ptp")
for _name in (*_REDUCTIONS, "cumsum", "argsort", "squeeze"):
    setattr(RaggedArray, _name, _reduction(_name))
