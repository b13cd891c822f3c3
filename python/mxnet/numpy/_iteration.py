"""Iteration over elements and indices."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from numpy.typing import ArrayLike

from mxnet._core import asarray, ndarray
from mxnet.numpy._broadcasting import broadcast_arrays


def iterable(y: object) -> bool:
    """Whether an object can be gone through.

    Parameters
    ----------
    y : object

    Returns
    -------
    bool

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.iterable([1, 2]), mx.np.iterable(2)
    (True, False)
    """
    if isinstance(y, ndarray):
        return y.ndim > 0
    try:
        iter(y)  # type: ignore[call-overload]
    except TypeError:
        return False
    return True


class ndenumerate:  # noqa: N801  # NumPy's name
    """Positions and elements of an array, in C order.

    Parameters
    ----------
    arr : array_like

    Notes
    -----
    The elements are fetched at once when the iteration begins; what is written later is not seen.

    Examples
    --------
    >>> import mxnet as mx
    >>> list(mx.np.ndenumerate([[1, 2], [3, 4]]))
    [((0, 0), 1), ((0, 1), 2), ((1, 0), 3), ((1, 1), 4)]
    """

    def __init__(self, arr: ArrayLike) -> None:
        x = asarray(arr)
        self._items: Iterator[tuple[tuple[int, ...], Any]]
        if x.ndim == 1:
            self._items = zip(zip(range(x.size)), x.tolist(), strict=True)
        else:
            positions = itertools.product(*map(range, x.shape))
            self._items = zip(positions, x.reshape(-1).tolist(), strict=True)

    def __iter__(self) -> Iterator[tuple[tuple[int, ...], Any]]:
        # A loop uses the underlying iterator directly, without the frame of `__next__`.
        return self._items

    def __next__(self) -> tuple[tuple[int, ...], Any]:
        return next(self._items)


class broadcast:  # noqa: N801  # NumPy's name
    """The elements of several arrays that are broadcast, as tuples in C order.

    Parameters
    ----------
    *args : array_like

    Raises
    ------
    ValueError
        If they do not broadcast.

    Examples
    --------
    >>> import mxnet as mx
    >>> pairs = mx.np.broadcast([[1], [2]], [5, 6])
    >>> pairs.shape, list(pairs)
    ((2, 2), [(1, 5), (1, 6), (2, 5), (2, 6)])
    """

    def __init__(self, *args: ArrayLike) -> None:
        self._arrays: tuple[ndarray, ...] = broadcast_arrays(*args)
        self.shape: tuple[int, ...] = self._arrays[0].shape if args else ()
        self.numiter: int = len(args)
        self.reset()

    @property
    def nd(self) -> int:
        """Number of axes."""
        return len(self.shape)

    ndim = nd

    @property
    def size(self) -> int:
        """Number of tuples."""
        return self._arrays[0].size if self._arrays else 1

    def reset(self) -> None:
        """Starts again from the first tuple."""
        self.index: int = 0
        self._tuples = zip(*(x.reshape(-1).tolist() for x in self._arrays), strict=True)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self

    def __next__(self) -> tuple[Any, ...]:
        item = next(self._tuples)
        self.index += 1
        return item
