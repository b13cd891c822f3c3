"""Batch builders: make one array of many samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

from mxnet import numpy as np
from mxnet._argument_repr import argument_repr
from mxnet.base import DTypeLike, dtype_name
from mxnet.numpy import ndarray

__all__ = ["Append", "AsList", "Group", "Pad", "Ragged", "Stack"]


def _host(sample: Any) -> Any:
    """A sample as an array of NumPy; Python floats become float32."""
    if isinstance(sample, onp.ndarray | onp.generic):
        return onp.asarray(sample)
    array = onp.asarray(sample)
    return array.astype("float32") if array.dtype == "float64" else array


def as_array(stacked: Any) -> ndarray:
    """Stacked samples as an array of ours.

    Parameters
    ----------
    stacked : ndarray or numpy.ndarray

    Returns
    -------
    ndarray
    """
    return stacked if isinstance(stacked, ndarray) else np.array(stacked)


class Stack:
    """Stacks samples of equal shape along a new first axis.

    Parameters
    ----------
    use_shared_mem : bool
        Accepted for compatibility with MXNet 2; has no effect. Worker processes always put batches into shared memory.

    Examples
    --------
    >>> from mxnet.gluon.data import batchify
    >>> batchify.Stack()([[1, 2], [3, 4], [5, 6]]).shape
    (3, 2)
    """

    def __init__(self, use_shared_mem: bool = False) -> None:
        del use_shared_mem

    def __repr__(self) -> str:
        return argument_repr(self)

    def __call__(self, data: Sequence[Any]) -> Any:
        """Make a batch.

        Parameters
        ----------
        data : sequence of array_like, same shape

        Returns
        -------
        ndarray, shape (n, ...)

        Raises
        ------
        ValueError
            If there are no samples, or shapes differ.
        """
        if not data:
            raise ValueError("a batch needs at least one sample")
        shapes = {tuple(onp.shape(sample) if not isinstance(sample, ndarray) else sample.shape) for sample in data}
        if len(shapes) > 1:
            raise ValueError(f"samples of one batch must have the same shape, found {sorted(shapes)}; use Pad")
        if isinstance(data[0], ndarray):
            return np.stack(list(data))
        # One conversion for the batch is cheaper than one for each sample.
        stacked = onp.stack([_host(sample) for sample in data])
        if stacked.dtype.kind in "OSU":
            raise TypeError(
                f"samples of type {type(data[0]).__name__} cannot be stacked; "
                "`batchify_fn=batchify.AsList()` keeps them as they are, `batchify.Group` treats parts of samples apart"
            )
        return np.array(stacked)

    def of_stacked(self, parts: Any) -> Any:
        """The batch of samples that are stacked already; None if they are tuples."""
        return None if isinstance(parts, tuple) else as_array(parts)


class Pad:
    """Stacks samples of different shape, padded to the largest size along each axis.

    Parameters
    ----------
    val : float, optional
        What the rest is filled with; 0 by default.
    dtype : dtype, optional
        The samples' by default.
    round_to : int, optional
        Sizes are rounded up to multiples of it.
    use_shared_mem : bool
        Accepted for compatibility with MXNet 2; has no effect. Worker processes always put batches into shared memory.

    Raises
    ------
    ValueError
        If `round_to` is below 1.

    Examples
    --------
    >>> from mxnet.gluon.data import batchify
    >>> batchify.Pad(val=-1)([[1, 2, 3], [4]]).asnumpy().tolist()
    [[1, 2, 3], [4, -1, -1]]
    """

    def __repr__(self) -> str:
        return argument_repr(self)

    def __init__(
        self,
        val: float | None = None,
        dtype: DTypeLike | None = None,
        round_to: int | None = None,
        use_shared_mem: bool = False,
    ) -> None:
        del use_shared_mem
        if round_to is not None and round_to < 1:
            raise ValueError(f"`round_to` must be at least 1 or None, found {round_to}")
        self._val = 0 if val is None else val
        self._dtype = None if dtype is None else dtype_name(dtype)
        self._round_to = round_to or 1

    def __call__(self, data: Sequence[Any]) -> Any:
        """Make a batch.

        Parameters
        ----------
        data : sequence of array_like, same number of axes

        Returns
        -------
        ndarray, shape (n, ...)

        Raises
        ------
        ValueError
            If there are no samples, or numbers of axes differ.
        """
        if not data:
            raise ValueError("a batch needs at least one sample")
        samples = [sample.asnumpy() if isinstance(sample, ndarray) else _host(sample) for sample in data]
        ranks = {sample.ndim for sample in samples}
        if len(ranks) > 1:
            raise ValueError(f"samples of one batch must have the same number of axes, found {sorted(ranks)}")
        shape = [
            -(-max(sizes) // self._round_to) * self._round_to
            for sizes in zip(*(sample.shape for sample in samples), strict=True)
        ]
        batch = onp.full((len(samples), *shape), self._val, dtype=onp.result_type(*samples))
        for position, sample in enumerate(samples):
            batch[position][tuple(slice(size) for size in sample.shape)] = sample
        return np.array(batch, dtype=batch.dtype if self._dtype is None else self._dtype)


class Append:
    """Makes an array of each sample; they may have different shapes.

    Parameters
    ----------
    expand : bool
        Give each a new axis of size 1.
    batch_axis : int
        Where.
    use_shared_mem : bool
        Accepted for compatibility with MXNet 2; has no effect. Worker processes always put batches into shared memory.

    Examples
    --------
    >>> [x.shape for x in mx.gluon.data.batchify.Append()([np.ones(2), np.ones(3)])]
    [(1, 2), (1, 3)]
    """

    def __repr__(self) -> str:
        return argument_repr(self)

    def __init__(self, expand: bool = True, batch_axis: int = 0, use_shared_mem: bool = False) -> None:
        del use_shared_mem
        self._expand = expand
        self._batch_axis = batch_axis

    def __call__(self, data: Sequence[Any]) -> list[Any]:
        """Make arrays.

        Parameters
        ----------
        data : sequence of array_like

        Returns
        -------
        list of ndarray
        """
        arrays = [sample if isinstance(sample, ndarray) else np.array(_host(sample)) for sample in data]
        return [np.expand_dims(array, self._batch_axis) for array in arrays] if self._expand else arrays


class Ragged:
    """Concatenates samples of different length without padding.

    Parameters
    ----------
    dtype : dtype, optional
        The samples' by default.

    Examples
    --------
    >>> from mxnet.gluon.data import batchify
    >>> batchify.Ragged()([[1, 2, 3], [4]])
    ragged.array([[1, 2, 3],
                  [4]])
    """

    def __init__(self, dtype: DTypeLike | None = None) -> None:
        self._dtype = None if dtype is None else dtype_name(dtype)

    def __repr__(self) -> str:
        return argument_repr(self)

    def __call__(self, data: Sequence[Any]) -> Any:
        """Make a batch.

        Parameters
        ----------
        data : sequence of array_like, shape (length_i, ...)

        Returns
        -------
        RaggedArray, shape (n, None, ...)

        Raises
        ------
        ValueError
            If there are no samples, one is a number, or axes behind the first differ.
        """
        from mxnet import ragged

        if not data:
            raise ValueError("a batch needs at least one sample")
        if all(isinstance(sample, ndarray) for sample in data):
            return ragged.array(data, self._dtype)
        hosts = [_host(sample.asnumpy() if isinstance(sample, ndarray) else sample) for sample in data]
        if any(not host.ndim for host in hosts) or len({host.shape[1:] for host in hosts}) > 1:
            # It names the sample that does not fit.
            return ragged.array([np.array(host) for host in hosts], self._dtype)
        # One conversion for the batch is cheaper than one for each sample.
        values = np.array(onp.concatenate(hosts), dtype=self._dtype)
        return ragged.from_lengths(values, [len(host) for host in hosts])


class AsList:
    """Returns the samples as a list, as they are.

    Examples
    --------
    >>> mx.gluon.data.batchify.AsList()([1, 'two'])
    [1, 'two']
    """

    def __repr__(self) -> str:
        return argument_repr(self)

    def __call__(self, data: Sequence[Any]) -> list[Any]:
        """Make a list.

        Parameters
        ----------
        data : sequence

        Returns
        -------
        list
        """
        return list(data)


class Group:
    """Builds batches of samples that are tuples, one batch for each entry.

    Parameters
    ----------
    fn : callable, or list or tuple of callables
        Batch builder of the first place, or of all places.
    *args : callable
        Batch builders of the other places.

    Raises
    ------
    TypeError
        If a builder cannot be called.

    Examples
    --------
    >>> from mxnet.gluon.data import batchify
    >>> builder = batchify.Group(batchify.Pad(), batchify.Stack())
    >>> [array.shape for array in builder([([1, 2], 0), ([3], 1)])]
    [(2, 2), (2,)]
    """

    def __repr__(self) -> str:
        return argument_repr(self)

    def __init__(self, fn: Any, *args: Callable[[Sequence[Any]], Any]) -> None:
        if isinstance(fn, list | tuple):
            if args:
                raise TypeError("builders must come as one list or as arguments, not both")
            self._builders = tuple(fn)
        else:
            self._builders = (fn, *args)
        for position, builder in enumerate(self._builders):
            if not callable(builder):
                raise TypeError(f"builder {position} cannot be called: {builder!r}")

    def __call__(self, data: Sequence[Any]) -> tuple[Any, ...]:
        """Make a batch for each place.

        Parameters
        ----------
        data : sequence of tuple
            As many places as there are builders.

        Returns
        -------
        tuple

        Raises
        ------
        ValueError
            If a sample has another number of places.
        """
        for sample in data:
            if len(sample) != len(self._builders):
                raise ValueError(f"{len(self._builders)} builders for a sample of {len(sample)} places")
        return tuple(builder([sample[position] for sample in data]) for position, builder in enumerate(self._builders))

    def of_stacked(self, parts: Any) -> Any:
        """The batch of samples that are stacked already, place by place; None unless every builder is `Stack`."""
        if not isinstance(parts, tuple) or len(parts) != len(self._builders):
            return None
        return tuple(map(as_array, parts)) if all(type(builder) is Stack for builder in self._builders) else None
