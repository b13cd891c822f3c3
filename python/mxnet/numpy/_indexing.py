"""Reading and writing at positions: what is composed of indexing itself."""

from __future__ import annotations

from mxnet import _core
from mxnet._core import asarray, ndarray

_op = _core.namespaces["op"]


def where(condition, x=None, y=None, /):
    """Elements of `x` where `condition` is true, of `y` elsewhere; the positions of true elements without both.

    Parameters
    ----------
    condition : array_like
        Truth values; `condition`, `x` and `y` broadcast.
    x, y : array_like, optional
        Both or none.

    Returns
    -------
    ndarray or tuple of ndarray
        `x` and `y` joined; or what `nonzero(condition)` returns.

    Raises
    ------
    ValueError
        If only one of `x` and `y` is given.
    """
    if y is not None and x is not None:
        return _op["where"](condition, x, y)
    if x is None and y is None:
        return _op["nonzero"](condition)
    raise ValueError("where: either both or neither of `x` and `y` must be given")


def _grid(shape: tuple[int, ...], axis: int, indices: ndarray) -> tuple[ndarray, ...]:
    """Index arrays that pair `indices` with every position on the other axes."""
    ndim = len(shape)
    grid = []
    for i, n in enumerate(shape):
        if i == axis:
            grid.append(indices)
        else:
            grid.append(_op["reshape"](_op["arange"](n), tuple(n if j == i else 1 for j in range(ndim))))
    return tuple(grid)


def put_along_axis(arr: ndarray, indices, values, axis: int | None) -> None:
    """Writes `values` into `arr` at `indices` along `axis`.

    Parameters
    ----------
    arr : ndarray
        The array that is changed.
    indices : array_like of int
        Positions along `axis`, with as many axes as `arr`; of one axis with ``axis=None``.
    values : array_like
        Broadcast to the shape of `indices`.
    axis : int or None
        The axis; None for the flattened array.

    Raises
    ------
    ValueError
        If the numbers of axes differ.
    IndexError
        If an index is out of bounds.
    """
    indices = asarray(indices)
    if axis is None:
        if indices.ndim != 1:
            raise ValueError(f"put_along_axis: with axis=None `indices` must have 1 axis, found {indices.ndim}")
        arr[_unraveled(arr, indices, "raise")] = values
        return
    if indices.ndim != arr.ndim:
        raise ValueError(
            "put_along_axis: `indices` and `arr` must have the same number of axes, "
            f"found {indices.ndim} and {arr.ndim}"
        )
    if not -arr.ndim <= axis < arr.ndim:
        from numpy.exceptions import AxisError

        raise AxisError(axis, arr.ndim)
    arr[_grid(arr.shape, axis % arr.ndim, indices)] = values


def _unraveled(arr: ndarray, indices: ndarray, mode: str) -> tuple[ndarray, ...]:
    """Positions in the flattened array as one index array for each axis."""
    if mode == "raise":
        rest = _op["resolve_indices"](indices, arr.size)
    else:
        rest = _op["wrapped_indices"](indices, arr.size, mode)
    axes: list[ndarray] = []
    for n in reversed(arr.shape):
        axes.append(rest % n)
        rest = rest // n
    return tuple(reversed(axes))


def put(a: ndarray, ind, v, mode: str = "raise") -> None:
    """Writes `v` at flat positions of `a`.

    Parameters
    ----------
    a : ndarray
        The array that is changed.
    ind : array_like of int
        Positions in the flattened array.
    v : array_like
        Values, repeated if they are fewer than the positions.
    mode : {'raise', 'wrap', 'clip'}
        What happens to a position out of bounds.

    Raises
    ------
    IndexError
        If a position is out of bounds and `mode` is 'raise'.
    ValueError
        For another `mode`.
    """
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"put: `mode` must be one of raise, wrap, clip, not '{mode}'")
    ind, v = _op["reshape"](asarray(ind), (-1,)), _op["reshape"](asarray(v), (-1,))
    if ind.size == 0 or v.size == 0:
        return
    if v.size != ind.size:
        v = v[_op["arange"](ind.size) % v.size]
    if a.ndim == 0:
        _op["resolve_indices"](ind, 1) if mode == "raise" else None
        a[()] = v[-1]
        return
    a[_unraveled(a, ind, mode)] = v


def diagflat(v, k: int = 0) -> ndarray:
    """Matrix with the flattened `v` on its `k`-th diagonal.

    Parameters
    ----------
    v : array_like
        The diagonal.
    k : int
        Diagonal, above the main one if positive.

    Returns
    -------
    ndarray
        Square matrix.
    """
    return _op["diag"](_op["reshape"](asarray(v), (-1,)), k)


def _compress(self: ndarray, condition, axis: int | None = None, out: ndarray | None = None) -> ndarray:
    """The slices along `axis` at which `condition` is true; see `mxnet.numpy.compress`."""
    return _op["compress"](condition, self, axis, out)


def _put(self: ndarray, indices, values, mode: str = "raise") -> None:
    """Writes `values` at flat positions; see `mxnet.numpy.put`."""
    put(self, indices, values, mode)


_compress.__name__ = "compress"
_put.__name__ = "put"
ndarray.compress = _compress
ndarray.put = _put
