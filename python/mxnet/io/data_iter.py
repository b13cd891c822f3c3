"""Base class of the iterators, and the description of an array that they give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as onp

from mxnet.base import DTypeLike

__all__ = ["DataDesc", "DataIter", "as_list"]


class DataDesc(tuple[str, tuple[int, ...]]):
    """Name, shape, dtype and layout of an array. As a tuple it is the name and the shape.

    Parameters
    ----------
    name : str
    shape : tuple of int
        With the batch axis.
    dtype : dtype
    layout : str
        A letter for each axis; ``N`` is the batch axis.

    Examples
    --------
    >>> desc = mx.io.DataDesc('data', (32, 3, 28, 28))
    >>> name, shape = desc
    >>> name, shape, desc.layout
    ('data', (32, 3, 28, 28), 'NCHW')
    """

    dtype: Any
    layout: str

    def __new__(cls, name: str, shape: Sequence[int], dtype: DTypeLike = onp.float32, layout: str = "NCHW") -> DataDesc:
        self = super().__new__(cls, (name, tuple(shape)))
        self.dtype = dtype
        self.layout = layout
        return self

    @property
    def name(self) -> str:
        """Name of the array."""
        return self[0]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape with the batch axis."""
        return self[1]

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.name, self.shape, self.dtype, self.layout

    def __repr__(self) -> str:
        return f"DataDesc[{self.name},{self.shape},{self.dtype},{self.layout}]"

    @staticmethod
    def get_batch_axis(layout: str | None) -> int:
        """Which axis counts the samples.

        Parameters
        ----------
        layout : str or None

        Returns
        -------
        int
            0 without a layout, -1 if it has no ``N``.
        """
        return 0 if layout is None else layout.find("N")

    @staticmethod
    def get_list(shapes: Sequence[tuple[str, Any]], types: Sequence[tuple[str, Any]] | None) -> list[DataDesc]:
        """Descriptions from names and shapes, and from names and dtypes.

        Parameters
        ----------
        shapes : sequence of (str, tuple of int)
        types : sequence of (str, dtype) or None
            float32 if None.

        Returns
        -------
        list of DataDesc

        Raises
        ------
        ValueError
            If a name has a shape and no dtype.
        """
        if types is None:
            return [DataDesc(name, shape) for name, shape in shapes]
        dtypes = dict(types)
        missing = [name for name, _ in shapes if name not in dtypes]
        if missing:
            raise ValueError(f"get_list: `types` must have every name of `shapes`, {', '.join(missing)} is missing")
        return [DataDesc(name, shape, dtypes[name]) for name, shape in shapes]


def as_list(arrays: Any) -> list[Any]:
    """One array, several or None as a list.

    Parameters
    ----------
    arrays : ndarray, list or tuple of ndarray, or None

    Returns
    -------
    list
    """
    if arrays is None:
        return []
    return list(arrays) if isinstance(arrays, list | tuple) else [arrays]


class DataIter:
    """Base class: batches one after the other.

    A subclass defines `iter_next`, `getdata` and `reset`, and `getlabel` and `getpad` where there is something to say.

    Parameters
    ----------
    batch_size : int
        Samples in a batch.

    Notes
    -----
    A batch is a tuple of arrays, the data and then the labels. *Differences from MXNet 1*: batches are no objects with
    lists, and an iterator that has ended has begun anew.

    Examples
    --------
    >>> class Countdown(mx.io.DataIter):
    ...     def reset(self):
    ...         self.left = 3
    ...     def iter_next(self):
    ...         self.left -= 1
    ...         return self.left >= 0
    ...     def getdata(self):
    ...         return [np.full((2,), self.left)]
    >>> countdown = Countdown(batch_size=2)
    >>> countdown.reset()
    >>> [x.tolist() for (x,) in countdown]
    [[2, 2], [1, 1], [0, 0]]
    >>> len(list(countdown))
    3
    """

    def __init__(self, batch_size: int = 0) -> None:
        self.batch_size = batch_size

    def __iter__(self) -> DataIter:
        """The iterator itself, where it is."""
        return self

    def __next__(self) -> tuple[Any, ...]:
        """The next batch; see `next`."""
        return self.next()

    def reset(self) -> None:
        """Begin anew."""
        raise NotImplementedError(f"{type(self).__name__} does not define reset")

    def next(self) -> tuple[Any, ...]:
        """The next batch.

        Returns
        -------
        tuple of ndarray
            The data, then the labels.

        Raises
        ------
        StopIteration
            At the end. The next call gives the first batch again.
        """
        if self.iter_next():
            return (*as_list(self.getdata()), *as_list(self.getlabel()))
        self.reset()
        raise StopIteration

    def iter_next(self) -> bool:
        """Go to the next batch.

        Returns
        -------
        bool
            False at the end.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define iter_next")

    def getdata(self) -> Any:
        """The data of the batch.

        Returns
        -------
        list of ndarray, or ndarray
        """
        raise NotImplementedError(f"{type(self).__name__} does not define getdata")

    def getlabel(self) -> Any:
        """The labels of the batch.

        Returns
        -------
        list of ndarray, ndarray, or None
            None if there are none.
        """
        return None

    def getindex(self) -> Any:
        """Which samples are in the batch.

        Returns
        -------
        numpy.ndarray or None
            None if they have no numbers.
        """
        return None

    def getpad(self) -> int | None:
        """How many samples at the end of the batch only fill it up.

        Returns
        -------
        int
        """
        return 0
