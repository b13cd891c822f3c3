"""Sequences of different lengths in one array: steps along one axis, sequences along the other."""

from __future__ import annotations

from numpy.typing import ArrayLike

from mxnet import _core
from mxnet._core import asarray, ndarray

__all__ = ["sequence_last", "sequence_mask", "sequence_reverse"]

_np = _core.namespaces["numpy"]


def _lengths(
    name: str, data: ArrayLike, sequence_length: ArrayLike | None, use_sequence_length: bool, axis: int
) -> tuple[ndarray, ndarray | None]:
    """The data, and the lengths if they are to be used."""
    x = asarray(data)
    if axis not in (0, 1):
        raise ValueError(f"{name}: `axis` must be 0 or 1, found {axis}")
    if x.ndim < 2:
        raise ValueError(f"{name}: `data` must have at least two axes, found shape {x.shape}")
    if not use_sequence_length:
        return x, None
    if sequence_length is None:
        raise ValueError(f"{name}: `use_sequence_length` needs `sequence_length`")
    lengths = asarray(sequence_length)
    if lengths.shape != (x.shape[1 - axis],):
        raise ValueError(
            f"{name}: `sequence_length` must have shape ({x.shape[1 - axis]},) for `data` {x.shape}, "
            f"found {lengths.shape}"
        )
    return x, lengths.astype("int64")


def _steps(x: ndarray, lengths: ndarray, axis: int) -> tuple[ndarray, ndarray]:
    """Numbers of steps and lengths, in shapes that broadcast against the first two axes of `x`."""
    steps = _np["arange"](x.shape[axis], dtype="int64", device=x.device)
    if axis == 0:
        return steps.reshape(-1, 1), lengths.reshape(1, -1)
    return steps.reshape(1, -1), lengths.reshape(-1, 1)


def _spread(index: ndarray, x: ndarray) -> ndarray:
    """An index over the first two axes, for every element of those behind."""
    index = index.reshape(*index.shape, *(1 for _ in x.shape[2:]))
    result: ndarray = _np["broadcast_to"](index, (*index.shape[:2], *x.shape[2:]))
    return result


def sequence_mask(
    data: ArrayLike,
    sequence_length: ArrayLike | None = None,
    use_sequence_length: bool = False,
    value: float = 0,
    axis: int = 0,
) -> ndarray:
    """Overwrite the steps behind the end of each sequence.

    Parameters
    ----------
    data : array_like, shape (t, n, ...) or, for axis 1, (n, t, ...)
    sequence_length : array_like, shape (n,), optional
        Steps that count.
    use_sequence_length : bool
        Without it nothing is overwritten.
    value : float
        What is written.
    axis : {0, 1}
        The axis of the steps.

    Returns
    -------
    ndarray
        Shape and dtype of `data`.

    Raises
    ------
    ValueError
        If the shapes do not fit or lengths are missing.

    Examples
    --------
    >>> mx.npx.sequence_mask(mx.np.ones((3, 2)), mx.np.array([1, 2]), True).tolist()
    [[1.0, 1.0], [0.0, 1.0], [0.0, 0.0]]
    """
    x, lengths = _lengths("sequence_mask", data, sequence_length, use_sequence_length, axis)
    if lengths is None:
        return x
    steps, ends = _steps(x, lengths, axis)
    result: ndarray = _np["where"](_spread(steps < ends, x), x, value)
    return result


def sequence_last(
    data: ArrayLike, sequence_length: ArrayLike | None = None, use_sequence_length: bool = False, axis: int = 0
) -> ndarray:
    """The last step of each sequence.

    Parameters
    ----------
    data : array_like, shape (t, n, ...) or, for axis 1, (n, t, ...)
    sequence_length : array_like, shape (n,), optional
        Steps that count, from 1 to t.
    use_sequence_length : bool
        Without it the last step is t.
    axis : {0, 1}
        The axis of the steps.

    Returns
    -------
    ndarray, shape (n, ...)

    Raises
    ------
    ValueError
        If the shapes do not fit or lengths are missing.

    Examples
    --------
    >>> steps = np.array([[1, 2], [3, 4], [5, 6]])  # three steps of two sequences
    >>> npx.sequence_last(steps, np.array([2, 3]), use_sequence_length=True)
    array([3, 6])
    """
    x, lengths = _lengths("sequence_last", data, sequence_length, use_sequence_length, axis)
    if lengths is None:
        last: ndarray = x[-1] if axis == 0 else x[:, -1]
        return last
    at = (lengths - 1).reshape(1, -1) if axis == 0 else (lengths - 1).reshape(-1, 1)
    chosen: ndarray = _np["squeeze"](_np["take_along_axis"](x, _spread(at, x), axis), axis=axis)
    return chosen


def sequence_reverse(
    data: ArrayLike, sequence_length: ArrayLike | None = None, use_sequence_length: bool = False, axis: int = 0
) -> ndarray:
    """Turn each sequence around within its length; what is behind stays.

    Parameters
    ----------
    data : array_like, shape (t, n, ...)
    sequence_length : array_like, shape (n,), optional
        Steps that count.
    use_sequence_length : bool
        Without it all steps count.
    axis : {0}
        The axis of the steps; MXNet has it only in front.

    Returns
    -------
    ndarray
        Shape and dtype of `data`.

    Raises
    ------
    ValueError
        If the shapes do not fit or lengths are missing.

    Examples
    --------
    >>> steps = np.array([[1, 2], [3, 4], [5, 6]])  # three steps of two sequences
    >>> npx.sequence_reverse(steps, np.array([2, 3]), use_sequence_length=True)
    array([[3, 6],
           [1, 4],
           [5, 2]])
    """
    if axis != 0:
        raise ValueError(f"sequence_reverse: `axis` must be 0, found {axis}")
    x, lengths = _lengths("sequence_reverse", data, sequence_length, use_sequence_length, axis)
    if lengths is None:
        turned: ndarray = _np["flip"](x, 0)
        return turned
    steps, ends = _steps(x, lengths, axis)
    at = _np["where"](steps < ends, ends - 1 - steps, steps)
    result: ndarray = _np["take_along_axis"](x, _spread(at, x), 0)
    return result
