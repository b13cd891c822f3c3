"""Reading and writing at index arrays, composed of indexing operators."""

from __future__ import annotations

from numpy.typing import ArrayLike

from mxnet import _core
from mxnet._core import asarray, ndarray
from mxnet.numpy._axes import axis_of

_op = _core.namespaces["op"]


def _grid(shape: tuple[int, ...], axis: int, indices: ndarray) -> tuple[ndarray, ...]:
    """Index arrays that combine `indices` with every position on the other axes."""
    ndim = len(shape)
    grid = []
    for i, n in enumerate(shape):
        if i == axis:
            grid.append(indices)
        else:
            grid.append(_op["reshape"](_op["arange"](n), tuple(n if j == i else 1 for j in range(ndim))))
    return tuple(grid)


def put_along_axis(arr: ndarray, indices: ArrayLike, values: ArrayLike, axis: int | None) -> None:
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

    Examples
    --------
    >>> x = np.array([[3, 9, 4], [8, 1, 2]])
    >>> np.put_along_axis(x, np.argmax(x, axis=1, keepdims=True), 0, axis=1)
    >>> x
    array([[3, 0, 4],
           [0, 1, 2]])
    """
    if _core.write_along(arr, indices, values, axis):
        return
    positions = asarray(indices)
    if axis is None:
        if positions.ndim != 1:
            raise ValueError(
                f"put_along_axis: with axis=None `indices` must have a single dimension, found {positions.ndim}"
            )
        arr[_unraveled("put_along_axis", arr, positions, "raise")] = values
        return
    if positions.ndim != arr.ndim:
        raise ValueError(
            "put_along_axis: `indices` and `arr` must have the same number of axes, "
            f"found {positions.ndim} and {arr.ndim}"
        )
    axis = axis_of("put_along_axis", axis, arr.ndim)
    arr[_grid(arr.shape, axis, positions)] = values


def resolved(name: str, indices: ndarray, n: int) -> ndarray:
    """Indices counted from the front; an error about them names the function `name`."""
    try:
        return _op["resolve_indices"](indices, n)  # type: ignore[no-any-return]
    except IndexError as error:
        raise type(error)(f"{name}: {error}") from None


def _unraveled(name: str, arr: ndarray, indices: ndarray, mode: str) -> tuple[ndarray, ...]:
    """Flat indices as one index array for each axis."""
    rest: ndarray
    if mode == "raise":
        rest = resolved(name, indices, arr.size)
    else:
        rest = _op["wrapped_indices"](indices, arr.size, mode)
    axes: list[ndarray] = []
    for n in reversed(arr.shape[1:]):
        axes.append(rest % n)
        rest = rest // n
    axes.append(rest)
    return tuple(reversed(axes))


def put(a: ndarray, ind: ArrayLike, v: ArrayLike, mode: str = "raise") -> None:
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
    OverflowError
        If a Python number does not fit the dtype of `a`.
    TypeError
        If `a` is no array.

    Examples
    --------
    >>> x = np.zeros((2, 2))
    >>> np.put(x, [0, 3], [5, 6])
    >>> x
    array([[5., 0.],
           [0., 6.]])
    """
    if mode == "raise" and _core.write_at(a, ind, v):
        return
    if not isinstance(a, ndarray):
        raise TypeError(f"put: `a` must be an ndarray to be written to, not '{type(a).__name__}'")
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"put: `mode` must be one of raise, wrap, clip, not '{mode}'")
    positions, values = asarray(ind).reshape(-1), asarray(v, a.dtype).reshape(-1)
    if positions.size == 0 or values.size == 0:
        return
    if values.size == 1:
        values = values.reshape(())
    elif values.size != positions.size:
        values = values[_op["arange"](positions.size) % values.size]
    if a.ndim == 0:
        if mode == "raise":
            resolved("put", positions, 1)
        a[()] = values.reshape(-1)[-1]
        return
    a[_unraveled("put", a, positions, mode)] = values


def diagflat(v: ArrayLike, k: int = 0) -> ndarray:
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

    Examples
    --------
    >>> np.diagflat([[1, 2], [3, 4]])
    array([[1, 0, 0, 0],
           [0, 2, 0, 0],
           [0, 0, 3, 0],
           [0, 0, 0, 4]])
    """
    result: ndarray = _op["diag"](asarray(v).reshape(-1), k)
    return result


def _compress(self: ndarray, condition: ArrayLike, axis: int | None = None, out: ndarray | None = None) -> ndarray:
    """The slices along `axis` at which `condition` is true; see `mxnet.numpy.compress`.

    Parameters
    ----------
    condition : array_like, one axis
        Truth values, one for each position along the axis.
    axis : int, optional
        Axis to go along; None takes the elements as one row.
    out : ndarray, optional
        Where the result is written.

    Returns
    -------
    ndarray
        Of the shape of the array but for the axis.

    Examples
    --------
    >>> np.array([1, 2, 3]).compress([True, False, True])
    array([1, 3])
    """
    given = (condition, self, axis) if out is None else (condition, self, axis, out)
    result: ndarray = _op["compress"](*given)
    return result


_compress.__name__ = "compress"
# Every array is of the extension's class, so methods written in Python must be added to that class.
ndarray.compress = _compress  # type: ignore[method-assign]
