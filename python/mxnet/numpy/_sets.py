"""Arrays as sets: distinct elements, membership, union, intersection, difference."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy
from numpy.typing import ArrayLike

from mxnet import _core
from mxnet._core import asarray, ndarray
from mxnet.numpy import _dtypes
from mxnet.numpy._axes import axis_of
from mxnet.numpy._dtypes import spelled
from mxnet.numpy._overriding import overridable

_op = _core.namespaces["op"]

_MAX_TABLE_LEN = 1 << 16  # up to this many members are looked up in a table


class UniqueAllResult(NamedTuple):
    """Result of `unique_all`."""

    values: ndarray
    indices: ndarray
    inverse_indices: ndarray
    counts: ndarray


class UniqueCountsResult(NamedTuple):
    """Result of `unique_counts`."""

    values: ndarray
    counts: ndarray


class UniqueInverseResult(NamedTuple):
    """Result of `unique_inverse`."""

    values: ndarray
    inverse_indices: ndarray


def _row_numbers(rows: ndarray) -> ndarray:
    """For each row of a matrix, its index among the distinct rows in lexicographic order."""
    n, columns = rows.shape
    number = _core.array([0] * n, dtype="int64")
    for j in range(columns):
        # Both factors are less than the number of rows, so the product does not overflow.
        _, inverse, _ = _op["unique_parts"](rows[:, j], False)
        _, number, _ = _op["unique_parts"](number * max(n, 1) + inverse)
    return number


@overridable
def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    """The distinct elements of an array, in ascending order.

    Parameters
    ----------
    ar : array_like
        The elements; flattened without `axis`.
    return_index : bool
        Also return where each distinct element stands first.
    return_inverse : bool
        Also return which distinct element stands at each position.
    return_counts : bool
        Also return how often each stands in the array.
    axis : int, optional
        Find distinct slices along this axis, in lexicographic order.
    equal_nan : bool
        Whether NaNs are one element. Slices along an axis with NaN are distinct in any case.
    sorted : bool
        The elements are in ascending order whatever is asked.

    Returns
    -------
    ndarray or tuple of ndarray
        The distinct elements, then what was asked for. The gradient of an element goes to its first position.

    Raises
    ------
    numpy.exceptions.AxisError
        If there is no such axis.

    Examples
    --------
    >>> np.unique([3, 1, 3, 2])
    array([1, 2, 3])
    >>> np.unique([3, 1, 3, 2], return_counts=True)
    (array([1, 2, 3]), array([1, 1, 2]))
    """
    ar = asarray(ar)
    if axis is not None and not hasattr(axis, "__index__"):
        raise TypeError(f"unique: integer argument expected for `axis`, found {type(axis).__name__}")
    if axis is not None and ar.ndim == 1:
        axis = axis_of("unique", axis, 1)
    if axis is None or ar.ndim == 1:
        slices = _op["reshape"](ar, (-1,))
        if not (return_index or return_inverse):
            if not return_counts:
                return _op["unique_sorted"](slices, equal_nan)
            values, counts = _op["unique_runs"](slices, equal_nan)
            return values, counts
        parts = _op["unique_parts"](slices, equal_nan)
        inverse_shape, at = ar.shape, 0
    else:
        slices = ar if axis in (0, -ar.ndim) and ar.ndim else _op["moveaxis"](ar, axis, 0)
        width = 1
        for n in slices.shape[1:]:
            width *= n
        numbers = _row_numbers(_op["reshape"](slices, (slices.shape[0], width)))
        parts = _op["unique_parts"](numbers)
        inverse_shape, at = (slices.shape[0],), axis
    index, inverse, counts = parts
    values = _op["take"](slices, index, 0)
    if at not in (0, -ar.ndim):
        values = _op["moveaxis"](values, 0, at)
    results = [values]
    if return_index:
        results.append(index)
    if return_inverse:
        results.append(_op["reshape"](inverse, inverse_shape))
    if return_counts:
        results.append(counts)
    return results[0] if len(results) == 1 else tuple(results)


def unique_all(x: Any) -> UniqueAllResult:
    """The distinct elements of the flattened `x`, first positions, each element's number, and counts. NaNs differ.

    Parameters
    ----------
    x : array_like
        The elements.

    Returns
    -------
    UniqueAllResult
        values, indices, inverse_indices, counts

    Examples
    --------
    >>> np.unique_all([3, 1, 3]).indices
    array([1, 0])
    """
    return UniqueAllResult(*unique(x, True, True, True, equal_nan=False))


@overridable
def unique_counts(x: Any) -> UniqueCountsResult:
    """The distinct elements of the flattened `x` and how often each stands there. NaNs are distinct.

    Parameters
    ----------
    x : array_like
        The elements.

    Returns
    -------
    UniqueCountsResult
        values, counts

    Examples
    --------
    >>> values, counts = np.unique_counts([3, 1, 3])
    >>> values, counts
    (array([1, 3]), array([1, 2]))
    """
    return UniqueCountsResult(*unique(x, return_counts=True, equal_nan=False))


def unique_inverse(x: Any) -> UniqueInverseResult:
    """The distinct elements of the flattened `x` and the number of each element among them. NaNs are distinct.

    Parameters
    ----------
    x : array_like
        The elements.

    Returns
    -------
    UniqueInverseResult
        values, inverse_indices

    Examples
    --------
    >>> values, inverse = np.unique_inverse([3, 1, 3])
    >>> values[inverse]
    array([3, 1, 3])
    """
    return UniqueInverseResult(*unique(x, return_inverse=True, equal_nan=False))


@overridable
def unique_values(x: Any) -> ndarray:
    """The distinct elements of the flattened `x`. NaNs are distinct.

    Parameters
    ----------
    x : array_like
        The elements.

    Returns
    -------
    ndarray
        In ascending order.

    Examples
    --------
    >>> np.unique_values([3, 1, 3])
    array([1, 3])
    """
    values: ndarray = unique(x, equal_nan=False)
    return values


def _flat(*arrays: ArrayLike) -> list[ndarray]:
    """The arrays flattened, in the dtype that they promote to."""
    flat = [asarray(x).reshape(-1) for x in arrays]
    dtype = _core.result_type([x.dtype for x in flat])
    return [x.astype(dtype, copy=False) for x in flat]


@overridable
def isin(
    element: ArrayLike,
    test_elements: ArrayLike,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: str | None = None,
) -> ndarray:
    """Whether each element of an array is an element of another one.

    Parameters
    ----------
    element : array_like
    test_elements : array_like
    assume_unique : bool
        Whether elements are known to be distinct. It makes no difference.
    invert : bool
        Whether each element is none of the others.
    kind : {None, 'sort', 'table'}
        How members are looked up in NumPy. Here they are flagged if they are integers close to each other, and hashed
        else, whatever `kind` says.

    Returns
    -------
    ndarray
        bool, of the shape of `element`. NaN equals nothing.

    Raises
    ------
    ValueError
        For another `kind`, or 'table' with arrays that are no integers.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.isin([[0, 2], [4, 6]], [1, 2, 4, 8])
    array([[False,  True],
           [ True, False]])
    """
    del assume_unique
    if kind not in (None, "sort", "table"):
        raise ValueError(f"isin: `kind` must be None, 'sort' or 'table', not {kind!r}")
    try:
        values, members = asarray(element), asarray(test_elements)
    except TypeError:
        # Text, None and other objects are compared as objects; numbers beside text are converted to text.
        mine, theirs = (numpy.asarray(x.asnumpy() if isinstance(x, ndarray) else x) for x in (element, test_elements))
        among = [any(a is b or a == b for b in theirs.flat) for a in mine.flat]
        found = _core.array(among, dtype="bool").reshape(mine.shape)
        return ~found if invert else found
    whole = [_dtypes.isdtype(x.dtype, ("integral", "bool")) for x in (values, members)]
    if kind == "table" and not all(whole):
        raise ValueError(f"isin: kind 'table' takes integers, found {values.dtype} and {members.dtype}")
    dtype = _core.result_type([values.dtype, members.dtype])
    if all(whole) and not _dtypes.isdtype(dtype, ("integral", "bool")):
        # int64 and uint64 promote to a float that cannot represent all of them: compare the values that both can
        # hold.
        signed = values if spelled(values.dtype)[0] == "i" else members
        possible = signed >= 0
        if signed is members:
            possible, members = possible.reshape(-1), members.reshape(-1)
            found = _op["contains"](_op["compress"](possible, members).astype("uint64"), values)
        else:
            found = _op["logical_and"](_op["contains"](members, values.astype("uint64")), possible)
    else:
        found = _op["contains"](members.astype(dtype, copy=False), values.astype(dtype, copy=False))
    found = ~found if invert else found
    return cast(ndarray, found if found.ndim else asarray(found))


def _among(members: ndarray, ordered: ndarray) -> ndarray:
    """Whether each of some ascending elements equals one of the members."""
    if members.size > _MAX_TABLE_LEN and _dtypes.kind_of(members.dtype) == "f":
        # A larger table would not fit in the caches; sorting accesses memory sequentially.
        return cast(ndarray, _op["contains"](_op["sort"](members), ordered, True))
    return cast(ndarray, _op["contains"](members, ordered))


def intersect1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """The distinct elements that two arrays have in common, in ascending order.

    Parameters
    ----------
    ar1, ar2 : array_like
        Flattened.
    assume_unique : bool
        Whether the elements of each are known to be distinct.
    return_indices : bool
        Also return where they stand first in each of the flattened arrays.

    Returns
    -------
    ndarray or tuple of ndarray

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.intersect1d([1, 3, 4, 3], [3, 1, 2, 1])
    array([1, 3])
    """
    first, second = _flat(ar1, ar2)
    if not return_indices:
        ordered = _op["sort"](first) if assume_unique else unique(first)
        return _op["compress"](_among(second, ordered), ordered)
    ordered, at = unique(first, return_index=True)
    common = _among(second, ordered)
    values, at = _op["compress"](common, ordered), _op["compress"](common, at)
    others, insertions = unique(second, return_index=True)
    if values.size == 0:
        return values, at, at
    return values, at, _op["take"](insertions, _op["searchsorted"](others, values))


def union1d(ar1: ArrayLike, ar2: ArrayLike) -> ndarray:
    """The distinct elements of two arrays, in ascending order.

    Parameters
    ----------
    ar1, ar2 : array_like
        Flattened.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.union1d([-1, 0, 1], [-2, 0, 2])
    array([-2, -1,  0,  1,  2])
    """
    return cast(ndarray, unique(_op["concatenate"]([ar1, ar2], None)))


def setdiff1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False) -> ndarray:
    """The distinct elements of one array that another one does not have.

    Parameters
    ----------
    ar1, ar2 : array_like
        Flattened.
    assume_unique : bool
        Whether the elements of each are known to be distinct; then they keep their order.

    Returns
    -------
    ndarray
        In ascending order, unless `assume_unique`; of the dtype of `ar1`.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.setdiff1d([1, 2, 3, 2, 4, 1], [3, 4, 5, 6])
    array([1, 2])
    """
    first = asarray(ar1).reshape(-1)
    if not assume_unique:
        first = unique(first)
    return cast(ndarray, _op["compress"](isin(first, ar2, invert=True), first))


def setxor1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False) -> ndarray:
    """The distinct elements that are in exactly one of two arrays, in ascending order.

    Parameters
    ----------
    ar1, ar2 : array_like
        Flattened.
    assume_unique : bool
        Whether the elements of each are known to be distinct.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.setxor1d([1, 2, 3, 2, 4], [2, 3, 5, 7, 5])
    array([1, 4, 5, 7])
    """
    first, second = _flat(ar1, ar2)
    if not assume_unique:
        first, second = unique(first), unique(second)
    else:
        first, second = _op["sort"](first), _op["sort"](second)
    pairs = ((first, second), (second, first))
    only = [_op["compress"](~_op["contains"](other, one, True), one) for one, other in pairs]
    return cast(ndarray, _op["sort"](_op["concatenate"](only)))
