"""Grids of indices and coordinates: `meshgrid`, `indices`, `mgrid`, `r_` and relatives."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy
from numpy.typing import ArrayLike, DTypeLike

from mxnet import _core
from mxnet._core import Device, asarray, ndarray
from mxnet._renamed import old_keywords
from mxnet.numpy._dtypes import is_exact, kind_of, result_type, spelled

_np = _core.namespaces["numpy"]
_op = _core.namespaces["op"]


def _on_axis(x: ndarray, axis: int, ndim: int) -> ndarray:
    """A sequence as an array of `ndim` axes, all of length 1 but `axis`."""
    return x.reshape(tuple(x.size if i == axis else 1 for i in range(ndim)))


def meshgrid(*xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple[ndarray, ...]:
    """Coordinates of the points of a grid.

    Parameters
    ----------
    *xi : array_like, one axis
        Coordinates along each axis.
    copy : bool
        Arrays of their own; otherwise views of `xi` that repeat elements.
    sparse : bool
        Keep length 1 along the other axes, to be broadcast.
    indexing : {'xy', 'ij'}
        Whether the first two axes of the result are those of the second and first of `xi`, or in order.

    Returns
    -------
    tuple of ndarray
        One for each of `xi`.

    Raises
    ------
    ValueError
        For another `indexing`.

    Examples
    --------
    >>> import mxnet as mx
    >>> x, y = mx.np.meshgrid(mx.np.arange(2), mx.np.arange(3))
    >>> x.shape, y.shape
    ((3, 2), (3, 2))
    """
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    parts = [asarray(x).reshape(-1) for x in xi]
    ndim = len(parts)
    order = list(range(ndim))
    if indexing == "xy" and ndim > 1:
        order[:2] = [1, 0]
    grids = [_on_axis(x, order[i], ndim) for i, x in enumerate(parts)]
    if not sparse:
        shape = tuple(parts[order[i]].size for i in range(ndim))
        grids = [_np["broadcast_to"](x, shape) for x in grids]
    # The method copies in C order, also from broadcast views.
    return tuple(x.copy() for x in grids) if copy else tuple(grids)


@old_keywords(ctx="device")
def indices(
    dimensions: Sequence[int], dtype: DTypeLike = int, sparse: bool = False, device: Device | None = None
) -> Any:
    """Positions of all elements of an array, axis by axis.

    Parameters
    ----------
    dimensions : sequence of int
        Shape of the array.
    dtype : dtype
        Of the positions.
    sparse : bool
        Keep length 1 along the other axes, to be broadcast.
    device : Device, optional

    Returns
    -------
    ndarray, shape `(len(dimensions), *dimensions)`, or tuple of ndarray if `sparse`

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.indices((2, 2))
    array([[[0, 0],
            [1, 1]],
    <BLANKLINE>
           [[0, 1],
            [0, 1]]])
    """
    dimensions = tuple(dimensions)
    if not sparse:
        # Python's int is the default; NumPy takes microseconds to convert a class to a dtype.
        return _op["grid_positions"](dimensions, None if dtype is int else dtype, device)
    ndim = len(dimensions)
    steps = (_np["arange"](operator.index(n), dtype=dtype, device=device) for n in dimensions)
    return tuple(_on_axis(x, i, ndim) for i, x in enumerate(steps))


def fromfunction(function: Callable[..., Any], shape: Sequence[int], *, dtype: DTypeLike = float, **kwargs: Any) -> Any:
    """What a function makes of the positions of all elements of an array.

    Parameters
    ----------
    function : callable
        Called once, with one array of positions for each axis.
    shape : sequence of int
        Shape of the array.
    dtype : dtype
        Of the positions.
    **kwargs
        Passed on to `function`.

    Returns
    -------
    Any
        What `function` returns.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.fromfunction(lambda i, j: i == j, (2, 2), dtype=int)
    array([[ True, False],
           [False,  True]])
    """
    return function(*indices(shape, dtype=dtype), **kwargs)


def ix_(*args: ArrayLike) -> tuple[ndarray, ...]:
    """Index arrays that pick a grid: every combination of positions.

    Parameters
    ----------
    *args : array_like, one axis
        Positions, or truth values, which stand for the positions that are true.

    Returns
    -------
    tuple of ndarray
        As many as there are arguments, each along its own axis.

    Raises
    ------
    ValueError
        If an argument does not have one axis.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.arange(10).reshape(2, 5)[mx.np.ix_([0, 1], [2, 4])]
    array([[2, 4],
           [7, 9]])
    """
    result = []
    for i, given in enumerate(args):
        x = asarray(given)
        if x.ndim != 1:
            raise ValueError(f"ix_: Cross index must be 1 dimensional, argument {i} has {x.ndim} axes")
        if x.size == 0 and not isinstance(given, ndarray):
            x = _op["astype"](x, "int64")
        if spelled(x.dtype) == "bool":
            (x,) = _np["nonzero"](x)
        result.append(_on_axis(x, i, len(args)))
    return tuple(result)


def _sequence(key: slice) -> ndarray:
    """`start:stop:step`, or with an imaginary step that many points from start to stop."""
    start = 0 if key.start is None else key.start
    step = 1 if key.step is None else key.step
    if isinstance(step, complex | numpy.complexfloating):
        return _np["linspace"](start, key.stop, int(abs(complex(step))))  # type: ignore[no-any-return]
    given = [part for part in (key.start, key.stop, key.step) if part is not None]
    # NumPy scalars keep their dtype.
    dtype = _core.result_type([part.dtype for part in given]) if all(hasattr(p, "dtype") for p in given) else None
    return _np["arange"](start, key.stop, step, dtype=dtype)  # type: ignore[no-any-return]


class _Grid:
    """Coordinates of a grid, from slices in brackets."""

    def __init__(self, sparse: bool) -> None:
        self._sparse = sparse

    def __getitem__(self, key: slice | tuple[slice, ...]) -> Any:
        if isinstance(key, slice):
            return _sequence(key)
        parts = [_sequence(part) for part in key]
        ndim = len(parts)
        if not ndim:
            return () if self._sparse else _np["empty"]((0,), dtype="int64")
        floats = [x for x in parts if "float" in spelled(x.dtype)]
        if floats:
            parts = [_op["astype"](x, floats[0].dtype) for x in parts]
        steps = [_on_axis(x, i, ndim) for i, x in enumerate(parts)]
        if self._sparse:
            return tuple(steps)
        shape = tuple(x.size for x in parts)
        return _np["stack"]([_np["broadcast_to"](x, shape) for x in steps])


mgrid = _Grid(sparse=False)
ogrid = _Grid(sparse=True)


class _IndexExpression:
    """Returns the index expression in the brackets unchanged."""

    def __init__(self, as_tuple: bool) -> None:
        self._as_tuple = as_tuple

    def __getitem__(self, key: Any) -> Any:
        return (key,) if self._as_tuple and not isinstance(key, tuple) else key


s_ = _IndexExpression(as_tuple=False)
index_exp = _IndexExpression(as_tuple=True)


class _Joined:
    """Arrays, numbers and ranges in brackets, joined along an axis.

    `least` is the number of axes that every part gets at least; the axes of a part that has fewer start at `position`
    (-1: they are the last ones).
    """

    def __init__(self, axis: int, least: int, position: int) -> None:
        self._defaults = (axis, least, position)

    def _raised(self, x: ndarray, least: int, position: int) -> ndarray:
        missing = least - x.ndim
        if missing <= 0:
            return x
        front = position if position >= 0 else missing + position + 1
        front = min(max(front, 0), missing)
        return x.reshape((*[1] * front, *x.shape, *[1] * (missing - front)))

    def __getitem__(self, key: Any) -> ndarray:
        parts = list(key) if isinstance(key, tuple) else [key]
        axis, least, position = self._defaults
        if parts and isinstance(parts[0], str):
            text = parts.pop(0)
            try:
                numbers = [int(part) for part in text.split(",")]
            except ValueError:
                raise ValueError(
                    f"unknown special directive {text!r}: up to three integers are known (axis, least number of axes, "
                    "place of the axes there are); there are no matrices"
                ) from None
            axis, least, position = (*numbers, *self._defaults[len(numbers) :])[:3]
        arrays: list[ndarray] = []
        weak: list[tuple[int, Any]] = []
        for part in parts:
            if isinstance(part, str):
                raise ValueError("special directives must be the first entry")
            if isinstance(part, slice):
                arrays.append(self._raised(_sequence(part), least, position))
                continue
            if isinstance(part, bool | int | float | complex):
                weak.append((len(arrays), part))
            arrays.append(self._raised(asarray(part), least, position))
        if weak and len(weak) < len(arrays):
            # Python numbers promote by their kind only.
            weak_positions = {at for at, _ in weak}
            strong = [x for i, x in enumerate(arrays) if i not in weak_positions]
            kind = _np["concatenate"]([x.reshape(-1)[:0] for x in strong]).reshape(-1)
            for _, number in weak:
                kind = kind + type(number)(0)
            for at, number in weak:
                arrays[at] = self._raised(asarray(number, kind.dtype), least, position)
        return _np["concatenate"](arrays, axis)  # type: ignore[no-any-return]


r_ = _Joined(0, 1, -1)
c_ = _Joined(-1, 2, 0)


def _float_of(*bounds: ndarray) -> Any:
    """The promoted dtype; the default float for integers."""
    natural = _core.result_type([x.dtype for x in bounds])
    return _core.default_dtype("f") if is_exact(natural) else natural


@old_keywords(ctx="device")
def logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    base: ArrayLike = 10.0,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    device: Device | None = None,
) -> ndarray:
    """Powers of a base whose exponents are evenly spaced.

    Parameters
    ----------
    start, stop : array_like
        The first exponent, and the last one unless `endpoint` is false.
    num : int
        Number of powers.
    endpoint : bool
        Whether `stop` belongs to them.
    base : array_like
    dtype : dtype, optional
        The float that the arguments promote to if left out.
    axis : int
        Where the powers lie if the bounds are arrays.
    device : Device, optional
        Where the array is made.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.logspace(0, 2, 3)
    array([  1.,  10., 100.])
    """
    lower, upper = asarray(start), asarray(stop)
    root = asarray(base)
    ndim = max(lower.ndim, upper.ndim, root.ndim)
    numbers = (bool, int, float, complex)
    bounds = [x if type(x) in numbers else asarray(x) for x in (start, stop, base)]
    natural = result_type(*bounds, 1.0)
    if root.ndim:
        shape = numpy.broadcast_shapes(lower.shape, upper.shape, root.shape)
        lower, upper = _np["broadcast_to"](lower, shape), _np["broadcast_to"](upper, shape)
        root = _np["expand_dims"](_np["broadcast_to"](root, shape), axis if axis >= 0 else axis % (ndim + 1))
    wide = "complex128" if kind_of(natural) == "c" else "float64"
    if ndim and spelled(natural) == "float32":
        # As in NumPy, numbers are computed in double precision, arrays in their own dtype.
        wide = "float32"
    exponents = _np["linspace"](lower, upper, num, endpoint, axis=axis, dtype=wide)
    # A Python number takes the exponents' dtype.
    factor = base if type(base) in (int, float) else _op["astype"](root, wide)
    powers: ndarray = _op["astype"](_np["power"](factor, exponents), natural if dtype is None else dtype)
    return powers if device is None else powers.to_device(device)


def geomspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> ndarray:
    """Numbers each of which is the one before it times a constant.

    Parameters
    ----------
    start, stop : array_like
        The first number, and the last one unless `endpoint` is false. Both are met exactly.
    num : int
        How many numbers.
    endpoint : bool
        Whether `stop` belongs to them.
    dtype : dtype, optional
        The float that the bounds promote to if left out; by NumPy's rules float64 or complex128.
    axis : int
        Where the numbers lie if the bounds are arrays.

    Returns
    -------
    ndarray
        Complex bounds give a spiral.

    Raises
    ------
    ValueError
        If a bound is 0.

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.geomspace(1, 1000, 4)
    array([   1.,   10.,  100., 1000.])
    """
    lower, upper = asarray(start), asarray(stop)
    if bool(_np["any"](lower == 0)) or bool(_np["any"](upper == 0)):
        raise ValueError("Geometric sequence cannot include zero")
    natural = _float_of(lower, upper)
    wide = "complex128" if kind_of(natural) == "c" else "float64"
    if _core.numpy_promotion():
        natural = wide
    lower, upper = _op["astype"](lower, wide), _op["astype"](upper, wide)
    if lower.shape != upper.shape:
        shape = numpy.broadcast_shapes(lower.shape, upper.shape)
        lower, upper = _np["broadcast_to"](lower, shape), _np["broadcast_to"](upper, shape)
    # Divided by the direction of the first number, both are powers with evenly spaced exponents.
    direction = lower / _np["abs"](lower)
    first, last = lower / direction, upper / direction
    exponents = _np["linspace"](_np["log10"](first), _np["log10"](last), num, endpoint)
    points = _np["power"](_op["astype"](asarray(10.0), wide), exponents) * direction
    count = points.shape[0]
    ends = [_np["expand_dims"](lower, 0)] if count else []
    if count > 1 and endpoint:
        points = _np["concatenate"]([*ends, points[1:-1], _np["expand_dims"](upper, 0)])
    elif count:
        points = _np["concatenate"]([*ends, points[1:]])
    if axis != 0:
        points = _np["moveaxis"](points, 0, axis)
    if dtype is not None and "int" in str(numpy.dtype(dtype)):
        points = _np["trunc"](_np["real"](points))
    return _op["astype"](points, natural if dtype is None else dtype)  # type: ignore[no-any-return]
