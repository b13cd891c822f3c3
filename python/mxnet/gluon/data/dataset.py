"""Datasets: samples by number."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from mxnet.base import PathLike
from mxnet.gluon.data._whole_batch import entries, transform_batch, whole_batch
from mxnet.numpy import ndarray
from mxnet.recordio import MXIndexedRecordIO

__all__ = ["ArrayDataset", "Dataset", "RecordFileDataset", "SimpleDataset"]


class Dataset:
    """Base class of datasets: samples by index, from 0 to ``len(dataset) - 1``.

    A subclass defines ``__getitem__`` and ``__len__``.
    """

    def __repr__(self) -> str:
        name = type(self).__name__.lstrip("_")
        try:
            return f"{name}({len(self)} samples)"
        except NotImplementedError:
            return f"{name}()"

    def __getitem__(self, idx: int) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not define __getitem__")

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} does not define __len__")

    def __iter__(self) -> Iterator[Any]:
        return (self[idx] for idx in range(len(self)))

    def filter(self, fn: Callable[[Any], bool]) -> Dataset:
        """Samples for which a function is true.

        Parameters
        ----------
        fn : callable of a sample
            Called once with every sample, now.

        Returns
        -------
        Dataset
        """
        return _Chosen(self, [idx for idx in range(len(self)) if fn(self[idx])])

    def shard(self, num_shards: int, index: int) -> Dataset:
        """One of several parts whose sizes differ by at most one.

        Parameters
        ----------
        num_shards : int
            Number of parts, at least 1.
        index : int
            Which part, from 0.

        Returns
        -------
        Dataset
            Neighbouring samples.

        Raises
        ------
        ValueError
            If there is no such part.
        """
        if not 0 <= index < num_shards:
            raise ValueError(f"`index` must be from 0 to `num_shards` - 1 ({num_shards - 1}), found {index}")
        size, rest = divmod(len(self), num_shards)
        start = size * index + min(index, rest)
        return _Chosen(self, range(start, start + size + (index < rest)))

    def take(self, count: int | None) -> Dataset:
        """The first samples.

        Parameters
        ----------
        count : int or None
            How many; all if None or if there are less.

        Returns
        -------
        Dataset

        Raises
        ------
        ValueError
            If `count` is negative.
        """
        if count is not None and count < 0:
            raise ValueError(f"`count` must be at least 0 or None, found {count}")
        return _Chosen(self, range(len(self) if count is None else min(count, len(self))))

    def sample(self, sampler: Iterable[int]) -> Dataset:
        """Samples in the order of a sampler.

        Parameters
        ----------
        sampler : Sampler
            Run through once, now.

        Returns
        -------
        Dataset
        """
        return _Chosen(self, list(sampler))

    def transform(self, fn: Callable[..., Any], lazy: bool = True) -> Dataset:
        """Samples after a function.

        Parameters
        ----------
        fn : callable
            Gets the parts of a sample that is a tuple as arguments, else the sample.
        lazy : bool
            Call the function whenever a sample is asked for; else with every sample, now.

        Returns
        -------
        Dataset
        """
        transformed = _Transformed(self, fn)
        return transformed if lazy else SimpleDataset(list(transformed))

    def transform_first(self, fn: Callable[[Any], Any], lazy: bool = True) -> Dataset:
        """Samples with a function applied to their first part.

        Parameters
        ----------
        fn : callable
            Gets the first part of a sample that is a tuple, else the sample.
        lazy : bool
            See `transform`.

        Returns
        -------
        Dataset
        """
        return self.transform(_First(fn), lazy)


class _First:
    """Applies a function to the first of its arguments and hands on the others."""

    def __init__(self, fn: Callable[[Any], Any]) -> None:
        self._fn = fn

    def whole_batch(self, *parts: Any) -> Any:
        """The same for samples stacked along a new first axis; None if the function cannot do that."""
        first = transform_batch(self._fn, parts[0])
        if first is None:
            return None
        return (first, *parts[1:]) if len(parts) > 1 else first

    def __call__(self, first: Any, *rest: Any) -> Any:
        return (self._fn(first), *rest) if rest else self._fn(first)


class _Chosen(Dataset):
    """Some samples of another dataset."""

    def __init__(self, dataset: Dataset, indices: Sequence[int]) -> None:
        self._dataset = dataset
        self._indices = indices

    def __getitem__(self, idx: int) -> Any:
        return self._dataset[self._indices[idx]]

    def _whole_batch(self, indices: Sequence[int]) -> Any:
        return whole_batch(self._dataset, [self._indices[idx] for idx in indices])

    def __len__(self) -> int:
        return len(self._indices)


class _Transformed(Dataset):
    """Another dataset's samples after a function."""

    def __init__(self, dataset: Dataset, fn: Callable[..., Any]) -> None:
        self._dataset = dataset
        self._fn = fn

    def __getitem__(self, idx: int) -> Any:
        sample = self._dataset[idx]
        return self._fn(*sample) if isinstance(sample, tuple) else self._fn(sample)

    def _whole_batch(self, indices: Sequence[int]) -> Any:
        parts = whole_batch(self._dataset, indices)
        if parts is None:
            return None
        if isinstance(self._fn, _First):
            return self._fn.whole_batch(*parts) if isinstance(parts, tuple) else self._fn.whole_batch(parts)
        return None if isinstance(parts, tuple) else transform_batch(self._fn, parts)

    def __len__(self) -> int:
        return len(self._dataset)


class SimpleDataset(Dataset):
    """A dataset of the entries of a list or of any other sequence.

    Parameters
    ----------
    data : sequence or ndarray
        Samples along the first axis.

    Examples
    --------
    >>> squares = mx.gluon.data.SimpleDataset([1, 2, 3]).transform(lambda x: x * x)
    >>> squares[2], len(squares)
    (9, 3)
    """

    def __init__(self, data: Any) -> None:
        self._data = data

    def __getitem__(self, idx: int) -> Any:
        return self._data[idx]

    def _whole_batch(self, indices: Sequence[int]) -> Any:
        return entries(self._data, indices)

    def __len__(self) -> int:
        return len(self._data)


class ArrayDataset(Dataset):
    """A dataset of tuples, from arrays, lists or datasets of equal length.

    Parameters
    ----------
    *args : sequence, ndarray or Dataset
        At least one.

    Raises
    ------
    ValueError
        If there are none, or their lengths differ.

    Examples
    --------
    >>> from mxnet.gluon.data import ArrayDataset
    >>> ArrayDataset([1, 2, 3], ["a", "b", "c"])[1]
    (2, 'b')
    """

    def __init__(self, *args: Any) -> None:
        lengths = [len(data) for data in args]
        if not args or len(set(lengths)) != 1:
            raise ValueError(f"at least one array is needed and lengths must be equal, found lengths {lengths}")
        self._length = lengths[0]
        # Labels in an array of one axis become Python numbers at once, so that a sample costs no operation.
        self._data = [data.asnumpy() if isinstance(data, ndarray) and data.ndim == 1 else data for data in args]

    def __getitem__(self, idx: int) -> Any:
        if len(self._data) == 1:
            return self._data[0][idx]
        return tuple(data[idx] for data in self._data)

    def _whole_batch(self, indices: Sequence[int]) -> Any:
        parts = [entries(data, indices) for data in self._data]
        if any(part is None or isinstance(part, tuple) for part in parts):
            return None
        return parts[0] if len(parts) == 1 else tuple(parts)

    def __len__(self) -> int:
        return self._length


class RecordFileDataset(Dataset):
    """A dataset of the records of a file, as bytes.

    Parameters
    ----------
    filename : path
        A record file with an index of the same name and the ending ``.idx`` beside it.

    Raises
    ------
    OSError
        If one of the two files cannot be opened.
    FileFormatError
        If the index is none.

    Notes
    -----
    Threads and processes may read at once; see `mxnet.recordio.MXIndexedRecordIO`.

    Examples
    --------
    >>> import os, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, "a")
    >>> with mx.recordio.MXIndexedRecordIO(path + ".idx", path + ".rec", "w") as record:
    ...     record.write_idx(0, b"first")
    >>> dataset = mx.gluon.data.RecordFileDataset(path + ".rec")
    >>> len(dataset), dataset[0]
    (1, b'first')
    >>> folder.cleanup()
    """

    def __init__(self, filename: PathLike) -> None:
        self.filename = os.fspath(filename)
        self.idx_file = os.path.splitext(self.filename)[0] + ".idx"
        self._record = MXIndexedRecordIO(self.idx_file, self.filename, "r")

    def __getitem__(self, idx: int) -> Any:
        return self._record.read_idx(self._record.keys[idx])

    def __len__(self) -> int:
        return len(self._record.keys)
