"""The parts of sparse arrays (index arrays, values), and parsing of constructor arguments."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from mxnet import _core, error
from mxnet._core import asarray, is_abstract, ndarray

op: dict[str, Callable[..., Any]] = _core.namespaces["op"]

Shape = tuple[int, ...]


def integers(x: Any, what: str) -> ndarray:
    """`x` as a 1-d int64 array, without a copy if it is one."""
    array = asarray(x)
    if array.ndim != 1:
        raise error.ShapeError(f"{what} must have 1 axis, found {array.ndim}")
    if array.size == 0 and array.dtype.kind == "f":
        return op["astype"](array, "int64")  # type: ignore[no-any-return]  # what an empty list is
    if array.dtype.kind not in "iu":
        raise error.DTypeError(f"{what} must be integers, found {array.dtype}")
    if array.dtype == "uint64" and array.size and int(array.max()) > 2**63 - 1:
        raise error.ValueError(f"{what}: {int(array.max())} does not fit int64")
    return array if array.dtype == "int64" else op["astype"](array, "int64")


def values(x: Any, dtype: Any = None) -> ndarray:
    """`x` as an array of numbers, with `dtype` if that is given."""
    array = asarray(x)
    return array if dtype is None or array.dtype == dtype else array.astype(dtype)


def checked_shape(shape: Any, ndim: int | None = None) -> Shape:
    """A shape as a tuple of non-negative integers."""
    sizes = (operator.index(shape),) if hasattr(shape, "__index__") else tuple(operator.index(n) for n in shape)
    if any(n < 0 for n in sizes):
        raise error.ValueError(f"sizes of axes must not be negative, found shape {sizes}")
    if ndim is not None and len(sizes) != ndim:
        raise error.ShapeError(f"{ndim} axes are needed, found shape {sizes}")
    if math.prod(sizes) > 2**63 - 1 and len(sizes) > 2:
        raise error.OverflowError(f"shape {sizes} has more elements than int64 counts")
    return sizes


def is_shape(x: Any) -> bool:
    """Whether a constructor's argument is a shape: a tuple of integers."""
    is_size = (
        [hasattr(n, "__index__") and getattr(n, "ndim", 0) == 0 for n in x] if isinstance(x, (tuple, list)) else []
    )
    return bool(is_size) and all(is_size)


def is_scipy(x: Any) -> bool:
    """Whether `x` is a sparse array or matrix of SciPy."""
    return type(x).__module__.startswith("scipy.sparse")


def named(name: str, call: Callable[[], Any]) -> Any:
    """The result of `call`; its errors name the function `name`."""
    try:
        return call()
    except error.MXNetError as fault:
        _, _, problem = str(fault).partition(": ")
        raise type(fault)(f"{name}: {problem}") from None


def offsets(rows: ndarray, num_rows: int) -> ndarray:
    """The offsets of rows, given ascending row indices."""
    return op["search_sorted"](rows, op["arange"](num_rows + 1, dtype="int64"))  # type: ignore[no-any-return]


def gathered(x: ndarray, positions: ndarray) -> ndarray:
    """Rows of `x` at positions; zeros for negative positions."""
    return op["gather_or_zero"](x, positions)  # type: ignore[no-any-return]


def masked(mask: ndarray) -> ndarray:
    """Positions where a 1-d mask is true."""
    return op["flatnonzero"](mask)  # type: ignore[no-any-return]


def arange(n: int) -> ndarray:
    """0, 1, …, n - 1."""
    return op["arange"](n, dtype="int64")  # type: ignore[no-any-return]


def zeros(n: int | Sequence[int], dtype: Any = "int64") -> ndarray:
    """Zeros."""
    return op["zeros"](n, dtype=dtype)  # type: ignore[no-any-return]


def segment_sum(x: ndarray, indptr: ndarray) -> ndarray:
    """Sums of the rows of segments, in the dtype of `x`: integers wrap."""
    return op["ragged_sum"](x, indptr).astype(x.dtype, copy=False)  # type: ignore[no-any-return]


def segment_prod(x: ndarray, indptr: ndarray) -> ndarray:
    """Products of the rows of segments, in the dtype of `x`: integers wrap."""
    return op["ragged_prod"](x, indptr).astype(x.dtype, copy=False)  # type: ignore[no-any-return]


def axis_of(axis: int, ndim: int, what: str) -> int:
    """The axis as a non-negative number."""
    at = operator.index(axis)
    if not -ndim <= at < ndim:
        raise error.AxisError(f"{what}: axis {axis} is out of bounds for an array of {ndim} axes")
    return at % ndim


def flags(indices: ndarray, indptr: ndarray, num_minor: int) -> tuple[bool, bool]:
    """Whether the indices of each row are sorted, and whether they are distinct. In a trace both are unknown."""
    found = op["csr_check"](indices, indptr, num_minor)
    if is_abstract(found):
        return False, False
    is_sorted, is_canonical = found.tolist()
    return is_sorted, is_canonical
