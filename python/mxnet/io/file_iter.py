"""Batches read from files, ahead of time on a thread."""

from __future__ import annotations

import collections
import itertools
import logging
import math
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol

import numpy as onp

from mxnet import numpy as np
from mxnet._core import RandomStream
from mxnet._idx_file import read_idx
from mxnet.base import DTypeLike, PathLike, dtype_name
from mxnet.error import FileFormatError
from mxnet.io.data_iter import DataDesc, DataIter

__all__ = ["BatchSource", "CSVIter", "MNISTIter", "MXDataIter"]

Batch = tuple[Any, Any, Any, int]  # data, labels, sample numbers, padding

_DEVICES = ("cpu", "gpu", "cpu_pinned")


class BatchSource(Protocol):
    """What an `MXDataIter` reads from. All calls come from one thread at a time."""

    batch_size: int
    data_shape: tuple[int, ...]  # of a sample
    label_shape: tuple[int, ...]
    dtype: str

    def __len__(self) -> int:
        """Number of batches in a run."""

    def reset(self, is_at_end: bool) -> None:
        """Begin anew, after the last batch or before it."""

    def read(self) -> Batch | None:
        """The next batch as arrays of NumPy; None at the end."""


class MXDataIter(DataIter):
    """Batches of a source, read ahead of time on a thread.

    Parameters
    ----------
    handle : object
        With ``read()``, which gives data, labels, sample numbers (or None) and padding of a batch as arrays of NumPy,
        or None at the end; ``reset(is_at_end)``, where `is_at_end` says whether the last batch has been taken;
        ``len()``, the number of batches;
        and the attributes ``batch_size``, ``data_shape``, ``label_shape`` (of a sample) and ``dtype``.
    data_name, label_name : str
        Names of the arrays.
    **kwargs
        ``prefetch_buffer``: how many batches are read ahead, 4 by default.

    Raises
    ------
    TypeError
        If `kwargs` has another name.
    ValueError
        If ``prefetch_buffer`` is below 1.

    Examples
    --------
    >>> import numpy
    >>> class Countdown:
    ...     batch_size, data_shape, label_shape, dtype = 1, (), (), 'float32'
    ...     left = 2
    ...     def __len__(self):
    ...         return 2
    ...     def reset(self, is_at_end):
    ...         self.left = 2
    ...     def read(self):
    ...         self.left -= 1
    ...         return None if self.left < 0 else (numpy.full(1, self.left), numpy.zeros(1), None, 0)
    >>> [(x.item(), y.item()) for x, y in mx.io.MXDataIter(Countdown())]
    [(1.0, 0.0), (0.0, 0.0)]
    """

    def __init__(
        self, handle: BatchSource, data_name: str = "data", label_name: str = "softmax_label", **kwargs: Any
    ) -> None:
        prefetch_buffer = kwargs.pop("prefetch_buffer", 4)
        if kwargs:
            raise TypeError(f"{type(self).__name__}: unexpected arguments {', '.join(kwargs)}")
        if prefetch_buffer < 1:
            raise ValueError(f"{type(self).__name__}: `prefetch_buffer` must be at least 1, found {prefetch_buffer}")
        super().__init__(handle.batch_size)
        self.handle = handle
        self.data_name = data_name
        self.label_name = label_name
        self._prefetch_buffer = prefetch_buffer
        # Ends when this object goes away.
        self._thread = ThreadPoolExecutor(1, type(self).__name__)
        self._ahead: collections.deque[Future[Batch | None]] = collections.deque()
        self._batch: Batch | None = None
        self._is_at_end = False
        self._repeats_first = False
        self._first: Batch | None = None

    @property
    def provide_data(self) -> list[DataDesc]:
        """Name, shape and dtype of the data of a batch."""
        return [DataDesc(self.data_name, (self.batch_size, *self.handle.data_shape), self.handle.dtype)]

    @property
    def provide_label(self) -> list[DataDesc]:
        """Name, shape and dtype of the labels of a batch."""
        return [DataDesc(self.label_name, (self.batch_size, *self.handle.label_shape), self.handle.dtype)]

    def __len__(self) -> int:
        return len(self.handle)

    def debug_skip_load(self) -> None:
        """Give the first batch again and again, without an end: shows how fast a program is without loading."""
        self._repeats_first = True

    def reset(self) -> None:
        if not self._ahead and self._batch is None and not self._is_at_end:
            # The run has just begun: the end of a loop over the batches resets too.
            return
        for future in self._ahead:
            future.cancel()
        # Also waits for what the thread is at.
        self._thread.submit(self.handle.reset, self._is_at_end).result()
        self._ahead.clear()
        self._batch = None
        self._is_at_end = False

    def iter_next(self) -> bool:
        if self._repeats_first and self._first is not None:
            self._batch = self._first
            return True
        while len(self._ahead) < self._prefetch_buffer:
            self._ahead.append(self._thread.submit(self.handle.read))
        found = self._ahead[0].result()
        if found is None:
            self._is_at_end = True
            return False
        self._ahead.popleft()
        self._batch = found
        if self._first is None:
            self._first = found
        return True

    def next(self) -> tuple[Any, ...]:
        return super().next()

    def getitems(self) -> tuple[Any, ...]:
        """All arrays of the batch.

        Returns
        -------
        tuple of ndarray
        """
        return self.getdata(), self.getlabel()

    def getdata(self) -> Any:
        return np.array(self._current()[0], dtype=self.handle.dtype)

    def getlabel(self) -> Any:
        return np.array(self._current()[1], dtype=self.handle.dtype)

    def getindex(self) -> Any:
        return self._current()[2]

    def getpad(self) -> int:
        return self._current()[3]

    def _current(self) -> Batch:
        if self._batch is None:
            raise ValueError(f"{type(self).__name__}: there is no batch yet; call `next` or `iter_next` first")
        return self._batch


def _check(name: str, batch_size: int, ctx: str, device_id: int) -> None:
    if batch_size < 1:
        raise ValueError(f"{name}: `batch_size` must be at least 1, found {batch_size}")
    if ctx not in _DEVICES:
        raise ValueError(f"{name}: `ctx` must be one of {', '.join(_DEVICES)}, found {ctx!r}")
    if device_id < -1:
        raise ValueError(f"{name}: `device_id` must be at least -1, found {device_id}")


class CSVIter(MXDataIter):
    r"""Batches of the rows of a text file with numbers between commas.

    Parameters
    ----------
    data_csv : path
        A sample in each line; empty lines do not count.
    data_shape : tuple of int
        Shape of a sample.
    batch_size : int
    label_csv : path
        The labels, a line for each sample; ``"NULL"`` for labels that are 0.
    label_shape : tuple of int
        Shape of a label.
    round_batch : bool
        A last batch that is not full is filled up with the first samples, and the next run begins behind these; else it
        is filled with zeros. `getpad` says how many samples that are.
    prefetch_buffer : int
        How many batches are read ahead.
    ctx : {"cpu", "gpu", "cpu_pinned"}
        What the batches are for. They are made in ordinary memory of the host, whatever it says.
    device_id : int
        Which of these devices; -1 for the current one.
    dtype : dtype, optional
        float32 by default.

    Raises
    ------
    OSError
        If a file cannot be opened.
    ValueError
        If an argument is out of range.
    FileFormatError
        While reading: if a line holds something else, or the files have different numbers of lines.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, 'x.csv')
    ...     with open(path, 'w') as file:
    ...         _ = file.write('1,2\n3,4\n5,6\n')
    ...     [(x.tolist(), y.shape) for x, y in mx.io.CSVIter(path, (2,), 2)]
    [([[1.0, 2.0], [3.0, 4.0]], (2, 1)), ([[5.0, 6.0], [1.0, 2.0]], (2, 1))]
    """

    def __init__(
        self,
        data_csv: PathLike,
        data_shape: Sequence[int],
        batch_size: int,
        label_csv: PathLike = "NULL",
        label_shape: Sequence[int] = (1,),
        round_batch: bool = True,
        prefetch_buffer: int = 4,
        ctx: str = "gpu",
        device_id: int = -1,
        dtype: DTypeLike | None = None,
    ) -> None:
        _check("CSVIter", batch_size, ctx, device_id)
        name = "float32" if dtype is None else dtype_name(dtype)
        data = _Rows(data_csv, data_shape, name)
        labels = None if label_csv == "NULL" else _Rows(label_csv, label_shape, name)
        source = _CSVSource(data, labels, tuple(label_shape), batch_size, round_batch)
        super().__init__(source, prefetch_buffer=prefetch_buffer)


class _Rows:
    """The rows of a file, read from its beginning as often as is asked for."""

    def __init__(self, path: PathLike, shape: Sequence[int], dtype: str) -> None:
        self.path = os.fspath(path)
        self.shape = tuple(shape)
        self.dtype = dtype
        with open(self.path, encoding="utf-8"):
            pass  # raises now if the file does not exist

    def lines(self) -> Iterator[tuple[int, str]]:
        """Numbers and texts of the lines that are not empty."""
        with open(self.path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, line

    def parse(self, lines: list[tuple[int, str]]) -> onp.ndarray[Any, Any]:
        """An array of the samples in some lines."""
        size = math.prod(self.shape)
        first, last = lines[0][0], lines[-1][0]
        try:
            # NumPy has no bfloat16; every other name is its own.
            dtype = "float32" if self.dtype == "bfloat16" else self.dtype
            found = onp.loadtxt([line for _, line in lines], dtype, comments=None, delimiter=",", ndmin=2)
        except ValueError as error:
            raise FileFormatError(f"{self.path}: lines {first} to {last}: {error}") from None
        if found.shape[1] != size:
            raise FileFormatError(
                f"{self.path}: lines {first} to {last} have {found.shape[1]} numbers each, but shape {self.shape} "
                f"needs {size}"
            )
        return found.reshape(-1, *self.shape)


class _CSVSource:
    """Batches of the rows of one file and the labels of another one."""

    def __init__(
        self, data: _Rows, labels: _Rows | None, label_shape: tuple[int, ...], batch_size: int, round_batch: bool
    ) -> None:
        self.batch_size = batch_size
        self.data_shape = data.shape
        self.label_shape = label_shape
        self.dtype = data.dtype
        self._data = data
        self._labels = labels
        self._round_batch = round_batch
        self._num_skipped = 0  # samples of this run that filled up the last batch of the run before
        self._num_used = 0  # samples of the next run that fill up the last batch of this one
        self._num_samples: int | None = None
        self._rows = enumerate(self._pairs())

    def __len__(self) -> int:
        if self._num_samples is None:
            self._num_samples = sum(1 for _ in self._data.lines())
        return math.ceil((self._num_samples - self._num_skipped) / self.batch_size)

    def reset(self, is_at_end: bool) -> None:
        self._num_skipped = self._num_used if is_at_end else 0
        self._rows = enumerate(self._pairs())
        for _ in itertools.islice(self._rows, self._num_skipped):
            pass

    def _pairs(self) -> Iterator[tuple[tuple[int, str], tuple[int, str] | None]]:
        """Lines of both files."""
        if self._labels is None:
            yield from ((line, None) for line in self._data.lines())
            return
        for line, label in itertools.zip_longest(self._data.lines(), self._labels.lines()):
            if line is None or label is None:
                longer, shorter = (self._data, self._labels) if label is None else (self._labels, self._data)
                raise FileFormatError(f"{longer.path} has more lines than {shorter.path}")
            yield line, label

    def read(self) -> Batch | None:
        found = list(itertools.islice(self._rows, self.batch_size))
        if not found:
            return None
        pad = self.batch_size - len(found)
        self._num_used = 0
        if pad and self._round_batch:
            # Few samples may have to be taken more than once.
            again = itertools.chain.from_iterable(iter(lambda: list(enumerate(self._pairs())), None))
            found += itertools.islice(again, pad)
            self._num_used = found[-1][0] + 1
        data = self._data.parse([line for _, (line, _) in found])
        if self._labels is None:
            labels = onp.zeros((len(found), *self.label_shape), data.dtype)
        else:
            labels = self._labels.parse([label for _, (_, label) in found if label is not None])
        if len(found) < self.batch_size:
            data, labels = (onp.concatenate([x, onp.zeros((pad, *x.shape[1:]), x.dtype)]) for x in (data, labels))
        return data, labels, onp.array([number for number, _ in found]), pad


class MNISTIter(MXDataIter):
    """Batches of images and labels from two files in the idx format.

    Parameters
    ----------
    image, label : path
        The files, compressed by gzip or not.
    batch_size : int
        A last batch that is not full is dropped.
    shuffle : bool
        Take the samples in a random order, the same in every run.
    flat : bool
        Images are rows of 784 numbers; else they have shape ``(1, 28, 28)``.
    seed : int
        What the order follows from.
    silent : bool
        Do not log how many images were read.
    num_parts, part_index : int
        Take one of so many parts of the samples, neighbours of nearly equal number.
    prefetch_buffer : int
        How many batches are made ahead.
    ctx : {"cpu", "gpu", "cpu_pinned"}
        What the batches are for. They are made in ordinary memory of the host, whatever it says.
    device_id : int
        Which of these devices; -1 for the current one.
    dtype : dtype, optional
        float32 by default.

    Raises
    ------
    OSError
        If a file cannot be read.
    ValueError
        If an argument is out of range.
    FileFormatError
        If a file is something else, or they do not fit together.

    Notes
    -----
    Pixels are divided by 256, so they are in [0, 1).

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paths = [os.path.join(folder, name) for name in ('images', 'labels')]
    ...     with open(paths[0], 'wb') as file:
    ...         _ = file.write(bytes([0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 64, 128]))
    ...     with open(paths[1], 'wb') as file:
    ...         _ = file.write(bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 3]))
    ...     batches = mx.io.MNISTIter(*paths, batch_size=2, shuffle=False, flat=True, silent=True)
    >>> [(x.tolist(), y.tolist()) for x, y in batches]
    [([[0.25], [0.5]], [7.0, 3.0])]
    """

    def __init__(
        self,
        image: PathLike = "./train-images-idx3-ubyte",
        label: PathLike = "./train-labels-idx1-ubyte",
        batch_size: int = 128,
        shuffle: bool = True,
        flat: bool = False,
        seed: int = 0,
        silent: bool = False,
        num_parts: int = 1,
        part_index: int = 0,
        prefetch_buffer: int = 4,
        ctx: str = "gpu",
        device_id: int = -1,
        dtype: DTypeLike | None = None,
    ) -> None:
        _check("MNISTIter", batch_size, ctx, device_id)
        if not 0 <= part_index < num_parts:
            raise ValueError(
                f"MNISTIter: `part_index` must be from 0 to `num_parts` - 1 ({num_parts - 1}), found {part_index}"
            )
        if not 0 <= seed < 1 << 32:
            raise ValueError(f"MNISTIter: `seed` must be from 0 to 2**32 - 1, found {seed}")
        images, labels = read_idx(image), read_idx(label)
        if images.dtype != "uint8" or images.ndim != 3:
            raise FileFormatError(f"{image}: images must be uint8 with 3 axes, found {images.dtype}, {images.shape}")
        if labels.shape != images.shape[:1]:
            raise FileFormatError(
                f"{label}: one label is needed for each of {len(images)} images, found {labels.shape}"
            )
        part = onp.array_split(onp.arange(len(images)), num_parts)[part_index]
        if batch_size > len(part):
            raise ValueError(
                f"MNISTIter: `batch_size` must be at most the number of images ({len(part)}), found {batch_size}"
            )
        if shuffle:
            part = part[RandomStream([seed]).call(np.random.permutation, len(part)).asnumpy()]
        if not silent:
            logging.getLogger(__name__).info("%s: %d images, shuffle=%s", image, len(part), shuffle)
        name = "float32" if dtype is None else dtype_name(dtype)
        super().__init__(_IdxSource(images, labels, part, batch_size, flat, name), prefetch_buffer=prefetch_buffer)


class _IdxSource:
    """Batches of images in memory."""

    def __init__(self, images: Any, labels: Any, order: Any, batch_size: int, flat: bool, dtype: str) -> None:
        self.batch_size = batch_size
        self.data_shape = (images[0].size,) if flat else (1, *images.shape[1:])
        self.label_shape: tuple[int, ...] = ()
        self.dtype = dtype
        self._images = images
        self._labels = labels
        self._order = order
        self._position = 0

    def __len__(self) -> int:
        return len(self._order) // self.batch_size

    def reset(self, is_at_end: bool) -> None:
        del is_at_end  # a batch that is not full is dropped
        self._position = 0

    def read(self) -> Batch | None:
        chosen = self._order[self._position : self._position + self.batch_size]
        if len(chosen) < self.batch_size:
            return None
        self._position += self.batch_size
        images = self._images[chosen].reshape(self.batch_size, *self.data_shape) / onp.float32(256)
        return images, self._labels[chosen], chosen, 0
