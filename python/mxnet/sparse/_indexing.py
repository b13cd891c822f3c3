"""Indexing of sparse arrays: elements, rows, columns, submatrices."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

from mxnet import _core, error
from mxnet._core import asarray, is_abstract, ndarray
from mxnet.sparse._parts import arange, gathered, masked, op

if TYPE_CHECKING:
    from mxnet.sparse._coo import coo_array


def expanded(key: Any, ndim: int) -> list[Any]:
    """One index for each axis: ellipses and missing axes become full slices."""
    items = list(key) if isinstance(key, tuple) else [key]
    if any(item is None for item in items):
        raise error.IndexError("sparse arrays take no new axes between brackets: use `reshape`")
    dots = [i for i, item in enumerate(items) if item is Ellipsis]
    if len(dots) > 1:
        raise error.IndexError("an index can have one ellipsis only")
    if dots:
        missing = ndim - len(items) + 1
        items[dots[0] : dots[0] + 1] = [slice(None)] * missing
    items += [slice(None)] * (ndim - len(items))
    if len(items) > ndim:
        raise error.IndexError(f"too many indices: {len(items)} for an array of {ndim} axes")
    return items


def resolved(item: Any, n: int, axis: int) -> Any:
    """A non-negative integer, a slice, or an int64 array of non-negative positions."""
    if isinstance(item, slice):
        return item
    if hasattr(item, "__index__") and getattr(item, "ndim", 0) == 0 and not isinstance(item, ndarray | bool):
        at = operator.index(item)
        if not -n <= at < n:
            raise error.IndexError(f"index {at} is out of bounds for axis {axis} of size {n}")
        return at % n
    array = asarray(item)
    if array.dtype == "bool":
        if array.shape != (n,):
            raise error.IndexError(f"a mask of shape {array.shape} does not fit axis {axis} of size {n}")
        return masked(array)
    if array.size == 0:
        array = array.astype("int64")
    if array.dtype.kind not in "iu":
        raise error.IndexError(f"index arrays must be integers or truth values, found {array.dtype}")
    if array.ndim == 0:
        return resolved(int(array), n, axis)
    # In a trace the positions may not be known; the operators that read them check them.
    if array.size and not is_abstract(array):
        least, most = _core.outside_trace(lambda: (int(array.min()), int(array.max())))
        if not -n <= least <= most < n:
            bad = least if least < -n else most
            raise error.IndexError(f"index {bad} is out of bounds for axis {axis} of size {n}")
    array = array.astype("int64")
    return op["where"](array < 0, array + n, array)


def positions(item: Any, n: int) -> ndarray:
    """The positions that a slice or a 1-d array selects."""
    if isinstance(item, slice):
        start, stop, step = item.indices(n)
        return op["arange"](start, stop, step, dtype="int64")  # type: ignore[no-any-return]
    return item  # type: ignore[no-any-return]


def get(x: Any, key: Any) -> Any:
    """`x[key]` of a CSR or CSC array."""
    if hasattr(key, "format") and hasattr(key, "nonzero"):
        key = key.nonzero()
    if getattr(key, "ndim", 0) == 2 and getattr(key, "dtype", None) == "bool":
        key = asarray(key).nonzero()
    shape = x.shape
    row, column = (resolved(item, n, axis) for axis, (item, n) in enumerate(zip(expanded(key, 2), shape, strict=True)))
    is_int = [isinstance(item, int) for item in (row, column)]
    if all(is_int):
        points = (op["full"](1, at, dtype="int64") for at in (row, column))
        return x.tocsr()._at(*points).reshape(())
    arrays = [item for item in (row, column) if isinstance(item, ndarray)]
    if len(arrays) + sum(is_int) == 2 and not any(isinstance(item, slice) for item in (row, column)):
        return _points(x, row, column)
    if x.format == "csc":
        # Columns of a CSC array are rows of its transpose.
        return _from_transposed(get(x.transpose(), (column, row)))
    if is_int[0]:
        chosen = rows(x, op["full"](1, row, dtype="int64"))[:, column]
        return chosen.tocoo(copy=False).reshape(chosen.shape[1])
    if is_int[1]:
        chosen = get(x, (row, slice(column, column + 1)))
        return chosen.tocoo(copy=False).reshape(chosen.shape[0])
    source = x.tocsr()
    if not _is_whole(row):
        source = rows(source, positions(row, shape[0]))
    if not _is_whole(column):
        source = columns(source, column)
    return source.asformat(x.format)


def _is_whole(item: Any) -> bool:
    return isinstance(item, slice) and item == slice(None)


def _from_transposed(found: Any) -> Any:
    return found.transpose() if found.ndim == 2 else found


def _points(x: Any, row: Any, column: Any) -> Any:
    """Elements at points, or a submatrix if row and column positions form a grid (`np.ix_`)."""
    i, j = (asarray(at) if isinstance(at, ndarray) else op["full"]((), at, dtype="int64") for at in (row, column))
    if i.ndim == 2 and j.ndim == 2 and i.shape[1] == 1 and j.shape[0] == 1:
        return get(rows(x.tocsr(), i.ravel()), (slice(None), j.ravel())).asformat(x.format)
    i, j = _broadcast(i, j)
    found = x.tocsr()._at(i.ravel(), j.ravel())
    from mxnet.sparse._coo import coo_array

    return coo_array(found.reshape(i.shape))


def _broadcast(i: ndarray, j: ndarray) -> tuple[ndarray, ndarray]:
    from mxnet.numpy import broadcast_arrays

    a, b = broadcast_arrays(i, j)
    return a, b


def rows(x: Any, chosen: ndarray) -> Any:
    """Rows of a CSR array at positions, in the given order."""
    starts = gathered(x.indptr, chosen)
    lengths = gathered(x.indptr, chosen + 1) - starts
    at = op["concatenated_ranges"](starts, lengths)
    indptr = op["concatenate"]([op["zeros"](1, dtype="int64"), op["cumsum"](lengths)])
    made = type(x)._of(gathered(x.data, at), gathered(x.indices, at), indptr, (chosen.size, x.shape[1]))
    made._is_sorted, made._is_canonical = x._is_sorted, x._is_canonical
    return made


def columns(x: Any, item: Any) -> Any:
    """Columns of a CSR array."""
    n = x.shape[1]
    if isinstance(item, slice):
        start, stop, step = item.indices(n)
        if step == 1:
            stop = max(stop, start)
            at = masked((x.indices >= start) & (x.indices < stop))
            # Number of kept elements before each row's start.
            indptr = op["search_sorted"](at, x.indptr)
            made = type(x)._of(
                gathered(x.data, at), gathered(x.indices, at) - start, indptr, (x.shape[0], stop - start)
            )
            made._is_sorted, made._is_canonical = x._is_sorted, x._is_canonical
            return made
    chosen = positions(item, n)
    crossed = x.tocsc().transpose()
    return rows(crossed, chosen).transpose().tocsr()


def get_coordinates(x: coo_array, key: Any) -> Any:
    """`x[key]` of a COO array, with integers, slices and arrays of positions."""
    from mxnet.sparse._coo import coo_array

    items = [resolved(item, n, axis) for axis, (item, n) in enumerate(zip(expanded(key, x.ndim), x.shape, strict=True))]
    if x.ndim == 2:
        return _as_coo(x.tocsr()[tuple(items)])
    chosen_axes = [axis for axis, item in enumerate(items) if not isinstance(item, slice)]
    arrays = [item for item in items if isinstance(item, ndarray)]
    if arrays and (len(chosen_axes) > 1 or arrays[0].ndim != 1):
        return _at_several(x, items, chosen_axes)
    source = x._canonical()
    coords, data = list(source.coords), source.data
    sizes: list[int | None] = []
    for axis, item in enumerate(items):
        n = x.shape[axis]
        if isinstance(item, int):
            keep, new, size = coords[axis] == item, None, None
        elif isinstance(item, slice):
            start, stop, step = item.indices(n)
            size = len(range(start, stop, step))
            away = coords[axis] - start
            new = away // step
            keep = (away % step == 0) & (new >= 0) & (new < size)
        else:
            # The selected positions that each element is at; all of them, because positions may repeat.
            order = op["argsort"](item)
            chosen = gathered(item, order)
            first = op["search_sorted"](chosen, coords[axis])
            lengths = op["search_sorted"](chosen, coords[axis], True) - first
            at = op["csr_rows"](
                op["zeros"](int(lengths.sum()), dtype="int64"),
                op["concatenate"]([op["zeros"](1, dtype="int64"), op["cumsum"](lengths)]),
            )
            where = op["concatenated_ranges"](first, lengths)
            coords = [gathered(c, at) for c in coords]
            data = gathered(data, at)
            coords[axis] = gathered(order, where)
            sizes.append(item.size)
            continue
        at = masked(keep)
        coords = [gathered(c, at) for c in coords]
        data = gathered(data, at)
        if new is not None:
            coords[axis] = gathered(new, at)
        sizes.append(size)
    left = [axis for axis, size in enumerate(sizes) if size is not None]
    if not left:
        return data.sum()
    shape = tuple(size for size in sizes if size is not None)
    return coo_array._of(data, [coords[axis] for axis in left], shape)


def _at_several(x: coo_array, items: list[Any], axes: list[int]) -> Any:
    """Indexes several axes by arrays that are broadcast together, as one axis of their flat positions."""
    from mxnet.numpy import broadcast_arrays
    from mxnet.sparse._coo import coo_array

    chosen = broadcast_arrays(*(asarray(items[a], dtype="int64") for a in axes))
    shape, count = chosen[0].shape, math.prod(x.shape[a] for a in axes)
    at, merged = chosen[0].ravel(), x.coords[axes[0]]
    for a, item in zip(axes[1:], chosen[1:], strict=True):
        at, merged = at * x.shape[a] + item.ravel(), merged * x.shape[a] + x.coords[a]
    # As in NumPy: where the axes were if they follow one another, else in front.
    first = axes[0] if axes[-1] - axes[0] + 1 == len(axes) else 0
    others = [a for a in range(x.ndim) if a not in axes]
    coords, sizes, rest = [x.coords[a] for a in others], [x.shape[a] for a in others], [items[a] for a in others]
    coords.insert(first, merged)
    sizes.insert(first, count)
    rest.insert(first, at)
    found = get_coordinates(coo_array._of(x.data, coords, tuple(sizes)), tuple(rest))
    return found.reshape((*found.shape[:first], *shape, *found.shape[first + 1 :]))


def _as_coo(found: Any) -> Any:
    return found if isinstance(found, ndarray) else found.tocoo(copy=False)


def flat_of(rows: ndarray, columns: ndarray, shape: tuple[int, ...]) -> ndarray:
    """Flat positions in C order in an array of this shape; axes of length 1 broadcast."""
    padded = (1,) * (2 - len(shape)) + tuple(shape)
    if math.prod(padded) == 0:
        return op["zeros"](rows.size, dtype="int64")  # type: ignore[no-any-return]
    flat = arange(1)[:0] if rows.size == 0 else op["zeros"](rows.size, dtype="int64")
    if padded[0] > 1:
        flat = rows * padded[1]
    if padded[1] > 1:
        flat = flat + columns
    return flat
