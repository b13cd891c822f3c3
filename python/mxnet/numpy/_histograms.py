"""Histograms."""

from __future__ import annotations

import cmath
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy
from numpy.typing import ArrayLike

from mxnet import _core
from mxnet._core import asarray, ndarray
from mxnet.numpy._dtypes import spelled
from mxnet.numpy._overriding import overridable

_np = _core.namespaces["numpy"]
_op = _core.namespaces["op"]

Range = tuple[float, float] | None


def _bins(name: str, bins: int | str | ArrayLike, is_weighted: bool) -> int | str | ndarray:
    """The number of bins, the rule that finds it, or the edges."""
    if isinstance(bins, str):
        if is_weighted:
            raise TypeError(f"{name}: automated estimation of the number of bins is not supported for weighted data")
        return bins
    given = asarray(bins)
    if given.ndim == 1:
        if not bool(_np["all"](given[:-1] <= given[1:])):
            raise ValueError(f"{name}: `bins` must increase monotonically, when an array")
        return given
    if given.ndim > 1:
        raise ValueError(f"{name}: `bins` must be 1d, when an array, found {given.ndim} axes")
    try:
        count = operator.index(bins)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{name}: `bins` must be an integer, a string, or an array, found {bins!r}") from None
    if count < 1:
        raise ValueError(f"{name}: `bins` must be positive, when an integer, found {count}")
    return count


def _edges(
    name: str, a: ndarray, bins: int | str | ArrayLike, limits: Range, is_weighted: bool
) -> tuple[ndarray, bool]:
    """The edges, and whether they are evenly spaced."""
    found = _bins(name, bins, is_weighted)
    if isinstance(found, ndarray):
        return found, False
    count, rule = (1, found) if isinstance(found, str) else (found, None)
    return _op["histogram_bin_edges"](a, count, limits, rule), True


def _is_complex(x: ndarray) -> bool:
    return "complex" in spelled(x.dtype)


def _numbers(x: ndarray, edges: ndarray, even: bool) -> ndarray:
    """The bin of each element, counted from 1; 0 below the first edge, number of bins + 1 above the last."""
    if not (_is_complex(x) or _is_complex(edges)):
        return _op["bin_numbers"](x, edges, even)  # type: ignore[no-any-return]
    n = edges.size - 1
    dtype = _core.result_type([x.dtype, edges.dtype])
    x, edges = x.astype(dtype, copy=False), edges.astype(dtype, copy=False)
    # Complex numbers are ordered by real, then by imaginary part.
    if not even:
        numbers = _np["searchsorted"](edges, x, side="right")
        return numbers - (x == edges[-1])  # type: ignore[no-any-return]
    # For evenly spaced edges, the real part of the quotient determines the bin. It need not follow that order, so it
    # is corrected by one bin at most, as in NumPy.
    first, last = edges[0], edges[-1]
    inside = (x >= first) & (x <= last)
    kept = x[inside]
    bins = ((kept - first) / (last - first) * n).astype("int64")
    bins = bins - (bins == n)
    bins = bins - (kept < edges[bins])
    bins = bins + ((kept >= edges[bins + 1]) & (bins != n - 1))
    numbers = _np["zeros"](x.shape, dtype="int64")
    numbers[inside] = bins + 1
    return numbers  # type: ignore[no-any-return]


def _data(a: ArrayLike) -> ndarray:
    x = asarray(a).reshape(-1)
    return _op["astype"](x, "uint8") if spelled(x.dtype) == "bool" else x


@overridable
def histogram_bin_edges(
    a: ArrayLike, bins: int | str | ArrayLike = 10, range: Range = None, weights: ArrayLike | None = None
) -> ndarray:
    """Edges of the bins that `histogram` would count in.

    Parameters
    ----------
    a : array_like
        The data.
    bins : int, str or array_like
        Number of bins of equal width; a rule that finds it ('auto', 'fd', 'doane', 'scott', 'stone', 'rice', 'sturges',
        'sqrt'); or the edges themselves.
    range : (float, float), optional
        The first and the last edge; those of the data if left out.
    weights : array_like, optional
        Only looked at to refuse rules, which do not know weights.

    Returns
    -------
    ndarray
        One more than there are bins. Values of `a` are waited for unless `range` is given.

    Raises
    ------
    ValueError
        If `range` or `bins` make no sense.
    TypeError
        If a rule is asked for with weights.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.histogram_bin_edges(mx.np.array([0.0, 1.0, 2.0]), bins=4)
    array([0. , 0.5, 1. , 1.5, 2. ])
    """
    return _edges("histogram_bin_edges", _data(a), bins, range, weights is not None)[0]


def _counted(numbers: ndarray, n: int, weights: ndarray | None) -> ndarray:
    """Count, or sum of the weights, of each number from 0 to n - 1."""
    if weights is None:
        return _np["bincount"](numbers, minlength=n)  # type: ignore[no-any-return]
    kind = spelled(weights.dtype)
    if "complex" in kind:
        real, imaginary = (_np["bincount"](numbers, part, n) for part in (_np["real"](weights), _np["imag"](weights)))
        return _op["astype"](real + 1j * imaginary, weights.dtype)  # type: ignore[no-any-return]
    if "float" in kind:
        return _op["astype"](_np["bincount"](numbers, weights, n), weights.dtype)  # type: ignore[no-any-return]
    # Integers below 2^53 are added exactly.
    sums = _np["bincount"](numbers, _op["astype"](weights, "float64"), n)
    return _op["astype"](sums, weights.dtype)  # type: ignore[no-any-return]


@overridable
def histogram(
    a: ArrayLike,
    bins: int | str | ArrayLike = 10,
    range: Range = None,
    density: bool | None = None,
    weights: ArrayLike | None = None,
) -> tuple[ndarray, ndarray]:
    """How many elements lie in each of several bins.

    Parameters
    ----------
    a : array_like
        The data; the flattened array is counted.
    bins : int, str or array_like
        See `histogram_bin_edges`. A bin holds its left edge, the last one its right edge too.
    range : (float, float), optional
        The first and the last edge; what lies outside is not counted.
    density : bool, optional
        Return the probability density, whose integral over the bins is 1.
    weights : array_like, optional
        What each element counts, of the shape of `a`.

    Returns
    -------
    (ndarray, ndarray)
        Counts in int64, or sums of weights in their dtype; edges.

    Raises
    ------
    ValueError
        As `histogram_bin_edges`, and if `weights` has another shape than `a`.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.histogram(mx.np.array([1.0, 2.0, 1.0]), bins=[0, 1, 2, 3])
    (array([0, 2, 1]), array([0, 1, 2, 3]))
    """
    scales: ndarray | None = None
    if weights is not None:
        scales = asarray(weights)
        if scales.shape != asarray(a).shape:
            raise ValueError(
                f"histogram: `weights` should have the same shape as `a`, found {scales.shape} and {asarray(a).shape}"
            )
        scales = scales.reshape(-1)
    x = _data(a)
    found = _bins("histogram", bins, weights is not None)
    if not (_is_complex(x) or (scales is not None and _is_complex(scales))):
        if not isinstance(found, ndarray):
            count, rule = (1, found) if isinstance(found, str) else (found, None)
            counts, edges = _op["histogram"](x, count, range, bool(density), scales, None, rule)
            return counts, edges
        if not _is_complex(found):
            return _op["histogram"](x, 1, None, bool(density), scales, found)[0], found
    edges, even = _edges("histogram", x, found, range, weights is not None)
    n = edges.size - 1
    counts = _counted(_numbers(x, edges, even), n + 2, scales)[1 : n + 1]
    if density:
        widths = _np["diff"](edges)
        # Imaginary parts of widths are discarded, with a warning.
        widths = widths.astype("float64") if _is_complex(edges) else widths
        return counts / widths / _np["sum"](counts), edges
    return counts, edges


def histogramdd(
    sample: Any,
    bins: Any = 10,
    range: Sequence[Range] | None = None,
    density: bool | None = None,
    weights: ArrayLike | None = None,
) -> tuple[ndarray, list[ndarray]]:
    """How many points lie in each box of a grid.

    Parameters
    ----------
    sample : array_like, shape (n, d) or (n,), or sequence of d array_like of shape (n,)
        The points, or their coordinates axis by axis.
    bins : int, or sequence of int or array_like
        Number of bins along all axes, or number or edges for each.
    range : sequence of (float, float) or None, optional
        The first and the last edge along each axis.
    density : bool, optional
        Return the probability density, whose integral over the grid is 1.
    weights : array_like, shape (n,), optional
        What each point counts.

    Returns
    -------
    (ndarray, list of ndarray)
        Counts, in the default float; edges along each axis.

    Raises
    ------
    ValueError
        If numbers of axes differ, or bins or ranges make no sense.

    Examples
    --------
    >>> import mxnet as mx
    >>> counts, edges = mx.np.histogramdd(mx.np.array([[0.0, 0.0], [1.0, 1.0]]), bins=2)
    >>> counts
    array([[1., 0.],
           [0., 1.]])
    """
    if isinstance(sample, ndarray | numpy.ndarray):
        points = asarray(sample)
        if points.ndim != 2:
            points = _op["atleast_2d"](points).T
        axes = [points[:, i] for i in _indices(points.shape[1])]
    else:
        axes = [asarray(x) for x in sample]
        # A 1-d sequence holds the coordinates of points on a line.
        if all(x.ndim == 0 for x in axes):
            axes = [asarray(sample)]
        if any(x.ndim != 1 for x in axes):
            raise ValueError(f"histogramdd: coordinates have 1 axis, found shapes {[x.shape for x in axes]}")
    d = len(axes)
    if d and any(x.dtype != axes[0].dtype for x in axes):
        # The coordinates are the columns of one array.
        dtype = _core.result_type([x.dtype for x in axes])
        axes = [x.astype(dtype) for x in axes]
    each = list(bins) if isinstance(bins, Sequence | ndarray | numpy.ndarray) else [bins] * d
    if len(each) != d:
        raise ValueError(
            f"histogramdd: the dimension of bins must be equal to the dimension of the sample x: {len(each)} and {d}"
        )
    limits: Sequence[Range] = [None] * d if range is None else range
    if len(limits) != d:
        raise ValueError(f"histogramdd: range argument must have one entry per dimension: {len(limits)} for {d}")
    edges: list[ndarray] = []
    number: Any = 0
    shape = []
    for i, (x, own, limit) in enumerate(zip(axes, each, limits, strict=True)):
        given = asarray(own)
        if given.ndim == 0 and given.item() < 1:
            raise ValueError(f"histogramdd: `bins[{i}]` must be positive, when an integer, found {given.item()}")
        if given.ndim == 1 and not bool(_np["all"](given[:-1] <= given[1:])):
            raise ValueError(f"histogramdd: `bins[{i}]` must be monotonically increasing, when an array")
        if given.ndim > 1:
            raise ValueError(f"histogramdd: `bins[{i}]` must be a scalar or 1d array, found {given.ndim} axes")
        found, even = _edges("histogramdd", x, own, limit, False)
        edges.append(found)
        shape.append(found.size + 1)
        number = number * shape[-1] + _numbers(x, found, even and not _is_complex(found))
    scales = None if weights is None else asarray(weights).reshape(-1)
    counts = _counted(number, math.prod(shape), scales).reshape(tuple(shape))
    counts = counts[tuple(slice(1, -1) for _ in shape)]
    if "float" not in spelled(counts.dtype) and "complex" not in spelled(counts.dtype):
        counts = _op["astype"](counts, "float64" if _core.numpy_promotion() else "float32")
    if density:
        total = _np["sum"](counts)
        for i, found in enumerate(edges):
            widths = _np["diff"](found)
            counts = counts / widths.reshape(tuple(widths.size if j == i else 1 for j in _indices(d)))
        counts = counts / total
    return counts, edges


# Parameters of the functions above shadow `range`.
_indices = range


def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    bins: Any = 10,
    range: Sequence[Range] | None = None,
    density: bool | None = None,
    weights: ArrayLike | None = None,
) -> tuple[ndarray, ndarray, ndarray]:
    """How many points of the plane lie in each rectangle of a grid.

    Parameters
    ----------
    x, y : array_like, shape (n,)
        Coordinates.
    bins : int, array_like, or pair of these
        Number of bins or edges, for both axes or for each.
    range : pair of (float, float), optional
        The first and the last edge along each axis.
    density : bool, optional
        Return the probability density.
    weights : array_like, shape (n,), optional
        What each point counts.

    Returns
    -------
    (ndarray, ndarray, ndarray)
        Counts, of shape (bins along x, bins along y), in the default float; the edges along x and along y.

    Raises
    ------
    ValueError
        If `x` and `y` differ in length; as `histogramdd`.
    TypeError
        If one of them is a number.

    Examples
    --------
    >>> import mxnet as mx
    >>> counts, _, _ = mx.np.histogram2d([0.0, 1.0, 1.0], [0.0, 1.0, 1.0], bins=2)
    >>> counts
    array([[1., 0.],
           [0., 2.]])
    """
    first, second = asarray(x), asarray(y)
    if not (first.ndim and second.ndim):
        raise TypeError("histogram2d: coordinates are sequences, found a number")
    if first.shape != second.shape:
        raise ValueError(
            f"histogram2d: x and y must have the same length, found shapes {first.shape} and {second.shape}"
        )
    pair = bins
    if isinstance(bins, Sequence | ndarray | numpy.ndarray) and len(bins) not in (1, 2):
        pair = [bins, bins]
    elif isinstance(bins, Sequence) and len(bins) == 1:
        pair = [bins[0], bins[0]]
    counts, edges = histogramdd([first, second], pair, range, density, weights)
    return counts, edges[0], edges[1]
