"""Elementwise functions of two operands: merges the patterns, and computes the values with dense operators."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mxnet import _core, error
from mxnet._core import asarray, ndarray
from mxnet.sparse._indexing import flat_of
from mxnet.sparse._parts import arange, gathered, op

if TYPE_CHECKING:
    from mxnet.sparse._coo import coo_array


def _matrices(name: str, a: Any, b: Any) -> tuple[Any, Any, Any]:
    """Both as CSR matrices of one shape, and a function that restores format and shape of a result."""
    if a.ndim > 2 or b.ndim > 2 or a.ndim == 1 == b.ndim:
        if a.shape != b.shape:
            raise error.ShapeError(
                f"{name}: arrays of more than 2 axes must have one shape, found {a.shape}, {b.shape}"
            )
        shape = a.shape
        return a.tocoo().as_matrix(), b.tocoo().as_matrix(), lambda m: m.tocoo(copy=False).reshape(shape)
    kind = a.format if a.format in ("csr", "csc", "bsr") else b.format if b.format in ("csr", "csc") else "csr"
    wanted = "csc" if kind == "csc" and a.shape == b.shape else "csr"
    if wanted == "csc" and a.ndim == b.ndim == 2:
        left, right = a.tocsc().transpose()._canonical(), b.tocsc().transpose()._canonical()
        return left, right, lambda m: m.transpose()
    left, right = (_two_axes(x).tocsr()._canonical() for x in (a, b))
    rows, columns = (_common(name, a, b, m, n) for m, n in zip(left.shape, right.shape, strict=True))
    shape = (rows, columns)
    return broadcast_to(left, shape), broadcast_to(right, shape), lambda m: m.asformat(kind if kind != "bsr" else "csr")


def _two_axes(x: Any) -> Any:
    return x.reshape(1, -1) if x.ndim == 1 else x


def _common(name: str, a: Any, b: Any, m: int, n: int) -> int:
    if m != n and 1 not in (m, n):
        raise error.ShapeError(f"{name}: shapes {a.shape} and {b.shape} cannot be broadcast together")
    return n if m == 1 else m


def broadcast_to(x: Any, shape: tuple[int, ...]) -> Any:
    """A CSR array broadcast along axes of length 1."""
    from mxnet.sparse._compressed import csr_array
    from mxnet.sparse._indexing import rows

    if x.shape[1] != shape[1]:
        # Each stored element becomes a row of the result's columns.
        n, stored = shape[1], x.nnz
        indices = op["tile"](arange(n), stored)
        x = csr_array._of(op["repeat"](x.data, n), indices, x.indptr * n, (x.shape[0], n))
    if x.shape[0] != shape[0]:
        x = rows(x, op["zeros"](shape[0], dtype="int64"))
    return x


def _merged(a: Any, b: Any, both: bool) -> tuple[ndarray, ndarray, ndarray, ndarray]:
    indices, indptr, left, right = op["csr_merge"](a.indices, a.indptr, b.indices, b.indptr, both)
    return gathered(a.data, left), gathered(b.data, right), indices, indptr


def _gives_zero(call: Callable[..., Any], *operands: Any) -> bool:
    """Whether a function is zero at these numbers, and at 0 in place of sparse arrays, also while it is traced."""
    from mxnet.numpy import errstate

    def at_zero() -> bool:
        with errstate(all="ignore"):
            return bool(
                call(*(op["zeros"](1, dtype=x.dtype) if hasattr(x, "_with_data") else x for x in operands)) == 0
            )

    return _core.outside_trace(at_zero)  # type: ignore[no-any-return]


def union(name: str, a: Any, b: Any) -> Any:
    """A function that is zero where both operands are, on the union of the patterns."""
    if not _gives_zero(op[name], a, b):
        return NotImplemented
    left, right, finish = _matrices(name, a, b)
    x, y, indices, indptr = _merged(left, right, both=False)
    return finish(type(left)._of(op[name](x, y), indices, indptr, left.shape))


def added(name: str, a: Any, b: Any) -> Any:
    """A sum or a difference, on the union of the patterns."""
    left, right, finish = _matrices(name, a, b)
    if name == "subtract" and left.dtype == right.dtype == "bool":
        raise error.DTypeError("subtract: truth values are not subtracted: use `!=`")
    data, indices, indptr = op["csr_add"](
        left.data, left.indices, left.indptr, right.data, right.indices, right.indptr, name == "subtract"
    )
    return finish(type(left)._of(data, indices, indptr, left.shape))


def product(name: str, a: Any, b: Any) -> Any:
    """A product, on the intersection of the patterns."""
    left, right, finish = _matrices(name, a, b)
    x, y, indices, indptr = _merged(left, right, both=True)
    return finish(type(left)._of(op[name](x, y), indices, indptr, left.shape))


def quotient(name: str, a: Any, b: Any) -> ndarray:
    """A quotient, which is dense as in SciPy: NaN where both operands are zero."""
    left, right, finish = _matrices(name, a, b)
    x, y, indices, indptr = _merged(left, right, both=False)
    found = type(left)._of(op[name](x, y), indices, indptr, left.shape)
    shape = finish(found).shape
    flat = found._majors() * left.shape[1] + indices
    nan = op["full"](left.shape[0] * left.shape[1], float("nan"), dtype=found.dtype)
    # Elements of the union replace the NaN there; adding to it would give NaN.
    is_there = op["scatter_or_skip"](op["ones_like"](flat), flat, nan.size) > 0
    dense = op["where"](is_there, op["scatter_or_skip"](found.data, flat, nan.size), nan)
    if left.format == "csr" and finish(found).format == "csc":
        return dense.reshape(left.shape).T  # type: ignore[no-any-return]
    return dense.reshape(shape)  # type: ignore[no-any-return]


def _at_positions(name: str, x: Any, dense: Any) -> tuple[Any, ndarray]:
    """The sparse operand as a canonical matrix, and the dense operand's elements on its pattern."""
    dense = asarray(dense)
    if x.ndim > 2:
        if dense.shape != x.shape:
            raise error.ShapeError(
                f"{name}: arrays of more than 2 axes must have one shape, found {x.shape}, {dense.shape}"
            )
        coo = x._canonical()
        return coo, gathered(dense.ravel(), coo._flat())
    matrix = x if x.format in ("csr", "csc") else _two_axes(x).tocsr()
    shape = (1,) * (2 - dense.ndim) + dense.shape
    if len(shape) > 2:
        raise error.ShapeError(f"{name}: shapes {x.shape} and {dense.shape} cannot be broadcast together")
    full = tuple(_common(name, x, dense, m, n) for m, n in zip(matrix.shape, shape, strict=True))
    matrix = matrix._canonical()
    if full != matrix.shape:
        matrix = broadcast_to(matrix.tocsr(), full)
    coo = matrix.tocoo(copy=False)
    return matrix, gathered(dense.ravel(), flat_of(coo.coords[0], coo.coords[1], dense.shape))


def _finished(x: Any, matrix: Any, data: ndarray) -> Any:
    made = matrix._with_data(data)
    if x.ndim == 1 and made.ndim == 2 and made.shape[0] == 1:
        return made.tocoo(copy=False).reshape(made.shape[1])
    return made


def on_pattern(name: str, a: Any, b: Any) -> Any:
    """A function of a sparse and a dense array, at the stored elements of the sparse one: such as `multiply`.

    Elsewhere the result is zero, as in SciPy: also where a zero is divided by zero.
    """
    is_left = hasattr(a, "format")
    x, dense = (a, b) if is_left else (b, a)
    matrix, found = _at_positions(name, x, dense)
    data = op[name](matrix.data, found) if is_left else op[name](found, matrix.data)
    return _finished(x, matrix, data)


def with_dense(name: str, a: Any, b: Any) -> ndarray:
    """Any other function of a sparse and a dense array, which has the shape of the result. The result is dense."""
    is_left = hasattr(a, "format")
    x, dense = (a, asarray(b)) if is_left else (b, asarray(a))
    matrix, _ = _at_positions(name, x, dense)
    if dense.size != math.prod(matrix.shape):
        raise error.UnsupportedError(
            f"{name}: the result is dense, so the dense operand must have its shape {matrix.shape}, found {dense.shape}"
            "; `np.broadcast_to` or `x.todense()` makes such arrays"
        )
    placed = op["scatter_or_skip"](matrix.data, matrix.tocoo(copy=False)._flat(), dense.size)
    values = dense.ravel()
    result = op[name](placed, values) if is_left else op[name](values, placed)
    return result.reshape(x.shape if x.ndim > dense.ndim else dense.shape)  # type: ignore[no-any-return]


def _function(name: str) -> Callable[..., Any]:
    from mxnet import numpy, numpy_extension

    return getattr(numpy, name, None) or getattr(numpy_extension, name)  # type: ignore[no-any-return]


def of_values(name: str) -> Callable[..., Any]:
    """A function of one array that is computed at the stored elements, if it maps zero to zero."""

    def function(*arguments: Any, **keywords: Any) -> Any:
        call = _function(name)
        given = inspect.signature(call).bind(*arguments, **keywords)
        first = next(iter(given.arguments))
        x = given.arguments[first]
        if given.arguments.get("out") is not None:
            raise error.UnsupportedError(f"{name}: sparse arrays take no `out`")

        def of(values: Any) -> Any:
            given.arguments[first] = values
            return call(*given.args, **given.kwargs)

        if not _gives_zero(of, x):
            raise error.UnsupportedError(
                f"{name}({type(x).__name__}): no operator serves these kinds: it is not zero at zero"
                "; `x.todense()` makes a dense array"
            )
        x = x._canonical()
        return x._with_data(of(x.data))

    return function


def dropout(*arguments: Any, **keywords: Any) -> Any:
    """Dropout of stored elements."""
    call = _function("dropout")
    given = inspect.signature(call).bind(*arguments, **keywords)
    first = next(iter(given.arguments))
    if given.arguments.get("axes"):
        raise error.UnsupportedError("dropout: sparse arrays take no `axes`")
    # An element that is stored twice is one element.
    x = given.arguments[first]._canonical()
    given.arguments[first] = x.data
    return x._with_data(call(*given.args, **given.kwargs))


def _added(name: str, dense: Any, x: coo_array, data: ndarray) -> ndarray:
    dense = asarray(dense)
    coo = x._with_data(data)
    result = dense + op["zeros"](1, dtype=data.dtype)
    if result.shape == coo.shape:
        # The sparse array is not converted to dense: its elements are added at their positions.
        size = result.size
        return (result.ravel() + op["scatter_or_skip"](coo.data, coo._flat(), size)).reshape(result.shape)  # type: ignore[no-any-return]
    from mxnet.numpy import broadcast_shapes

    full = broadcast_shapes(result.shape, coo.shape)
    if full != coo.shape:
        matrix = broadcast_to(_two_axes(coo).tocsr(), full)
        coo = matrix.tocoo(copy=False)
    return _added(name, op["broadcast_to"](result, full), coo, coo.data)


def plus_dense(name: str, x: Any, dense: Any) -> ndarray:
    """A sum with a dense array; the result is dense."""
    coo = x.tocoo()
    return _added(name, dense, coo, coo.data)


def dense_plus(name: str, dense: Any, x: Any) -> ndarray:
    """As `plus_dense`, with the operands exchanged."""
    coo = x.tocoo()
    return _added(name, dense, coo, coo.data)


def minus_dense(name: str, x: Any, dense: Any) -> ndarray:
    """A difference with a dense array; the result is dense."""
    coo = x.tocoo()
    return _added(name, -asarray(dense), coo, coo.data)


def dense_minus(name: str, dense: Any, x: Any) -> ndarray:
    """A dense array minus a sparse one; the result is dense."""
    coo = x.tocoo()
    return _added(name, dense, coo, -coo.data)


def times_number(name: str, x: Any, number: Any) -> Any:
    """A product with a number."""
    return x._with_data(x.data * number)


def number_times(name: str, number: Any, x: Any) -> Any:
    """As `times_number`, with the operands exchanged."""
    return x._with_data(x.data * number)


def over_number(name: str, x: Any, number: Any) -> Any:
    """A quotient by a number."""
    return x._with_data(x.data / number)


def with_number(name: str, a: Any, b: Any) -> Any:
    """A function of a sparse array and a number that maps zero to zero."""
    x, is_left = (a, True) if hasattr(a, "format") else (b, False)
    number = b if is_left else a
    if not _gives_zero(op[name], a, b):
        return NotImplemented
    x = x._canonical()
    return x._with_data(op[name](x.data, number) if is_left else op[name](number, x.data))
