"""Images in files: folders by class, and lists. Their samples are decoded when they are asked for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as onp

from mxnet import image
from mxnet._caller_warning import warn_caller
from mxnet.gluon.data.dataset import Dataset
from mxnet.numpy import ndarray

__all__ = ["ImageFolderDataset", "ImageListDataset"]

_ENDINGS = (".jpg", ".jpeg", ".png")


def check_flag(flag: int) -> int:
    """1 for colours and 0 for grey."""
    if flag not in (0, 1):
        raise ValueError(f"`flag` must be 1 (colour) or 0 (grey), found {flag}")
    return flag


def read_bytes(path: str) -> bytes:
    """A whole file."""
    with open(path, "rb") as file:
        return file.read()


class ImageFolderDataset(Dataset):
    """A dataset of JPEG and PNG files with a folder for each class.

    Parameters
    ----------
    root : path
        Its folders are the classes, in the order of their names; files are ``root/class/name.jpg``.
    flag : {1, 0}
        Colours or grey levels.
    transform : callable of (image, label), optional
        Applied to each sample.

    Attributes
    ----------
    synsets : list of str
        Names of the classes; labels are places in it.
    items : list of (str, int)
        Path and label of each sample.

    Raises
    ------
    FileNotFoundError
        If there is no such folder.
    ValueError
        If `flag` is something else.

    Notes
    -----
    A sample is an image, uint8 of shape ``(h, w, c)``, and a label. Other files are left out, with a warning for each
    ending. A `DataLoader` decodes, resizes, cuts and normalises whole batches on the engine's threads if the samples
    are transformed by `transform_first` with ours alone, ``ToTensor`` among them, and stacked as they are by default.

    Examples
    --------
    >>> import os, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> os.mkdir(os.path.join(folder.name, 'cat'))
    >>> with open(os.path.join(folder.name, 'cat', '1.png'), 'wb') as file:
    ...     written = file.write(mx.image._imencode(np.zeros((4, 6, 3), dtype='uint8'), 3, '.png'))
    >>> dataset = mx.gluon.data.vision.ImageFolderDataset(folder.name)
    >>> dataset.synsets, dataset[0][0].shape, dataset[0][1]
    (['cat'], (4, 6, 3), 0)
    >>> folder.cleanup()
    """

    def __init__(
        self, root: str | os.PathLike[str], flag: int = 1, transform: Callable[..., Any] | None = None
    ) -> None:
        self._flag = check_flag(flag)
        self._transform = transform
        root = os.path.expanduser(os.fspath(root))
        self.synsets = sorted(entry.name for entry in os.scandir(root) if entry.is_dir())
        self.items: list[tuple[str, int]] = []
        others = set()
        for label, name in enumerate(self.synsets):
            for file in sorted(os.listdir(os.path.join(root, name))):
                if file.lower().endswith(_ENDINGS):
                    self.items.append((os.path.join(root, name, file), label))
                else:
                    others.add(os.path.splitext(file)[1].lower())
        for ending in sorted(others):
            warn_caller(f"files that end with {ending!r} in {root} are no images and left out")

    def __getitem__(self, idx: int) -> Any:
        path, label = self.items[idx]
        sample = image.imread(path, self._flag)
        return (sample, label) if self._transform is None else self._transform(sample, label)

    def __len__(self) -> int:
        return len(self.items)

    def has_encoded(self) -> bool:
        """Whether samples are what `encoded` gives, decoded: there is no `transform`."""
        return self._transform is None

    def encoded(self, indices: Sequence[int]) -> tuple[list[bytes], int, Any]:
        """Files of samples, the flag to decode them with, and their labels.

        Parameters
        ----------
        indices : sequence of int

        Returns
        -------
        (list of bytes, int, numpy.ndarray)
        """
        chosen = [self.items[idx] for idx in indices]
        return [read_bytes(path) for path, _ in chosen], self._flag, onp.array([label for _, label in chosen])


class ImageListDataset(Dataset):
    """A dataset of the JPEG and PNG files of a list.

    Parameters
    ----------
    root : path
        Folder that paths start from.
    imglist : path or sequence of sequences
        A text file below `root` with lines of a number, labels and a path, apart by tabs; or entries of a label, or
        labels, and a path.
    flag : {1, 0}
        Colours or grey levels.

    Raises
    ------
    FileNotFoundError
        If the list is a file that does not exist.
    ValueError
        If the list is missing or an entry is of another form, or `flag` is something else.

    Notes
    -----
    A sample is an image, uint8 of shape ``(h, w, c)``, and a label: a number, or an array of float32 if there are
    several.

    Examples
    --------
    >>> dataset = mx.gluon.data.vision.ImageListDataset('pictures', [[0, 'cat.jpg'], [[1, 2.5], 'dog.jpg']])
    >>> len(dataset)
    2
    """

    def __init__(
        self,
        root: str | os.PathLike[str] = ".",
        imglist: str | os.PathLike[str] | Iterable[Sequence[Any]] | None = None,
        flag: int = 1,
    ) -> None:
        self._flag = check_flag(flag)
        root = os.path.expanduser(os.fspath(root))
        self.items: list[tuple[str, Any]] = []
        if imglist is None:
            raise ValueError("`imglist` must be a file or a sequence of labels and paths, found None")
        if isinstance(imglist, str | os.PathLike):
            entries = _lines(os.path.join(root, imglist))
        else:
            entries = [tuple(entry) for entry in imglist]
        for position, entry in enumerate(entries):
            if len(entry) < 2 or not isinstance(entry[-1], str):
                raise ValueError(f"entry {position} of `imglist` must be labels and a path, found {entry}")
            labels = entry[0] if len(entry) == 2 else entry[:-1]
            self.items.append((os.path.join(root, entry[-1]), _label(labels)))

    def __getitem__(self, idx: int) -> tuple[ndarray, Any]:
        path, label = self.items[idx]
        return image.imread(path, self._flag), label

    def __len__(self) -> int:
        return len(self.items)

    def has_encoded(self) -> bool:
        """Whether samples are what `encoded` gives, decoded: always."""
        return True

    def encoded(self, indices: Sequence[int]) -> tuple[list[bytes], int, Any]:
        """Files of samples, the flag to decode them with, and their labels.

        Parameters
        ----------
        indices : sequence of int

        Returns
        -------
        (list of bytes, int, numpy.ndarray)
        """
        chosen = [self.items[idx] for idx in indices]
        return [read_bytes(path) for path, _ in chosen], self._flag, onp.stack([label for _, label in chosen])


def _label(labels: Any) -> Any:
    """A number as it is; several as an array of float32."""
    if isinstance(labels, int | float):
        return labels
    values = onp.asarray(labels, dtype="float32").reshape(-1)
    return float(values[0]) if values.size == 1 else values


def _lines(path: str) -> list[tuple[Any, ...]]:
    entries: list[tuple[Any, ...]] = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            parts = line.rstrip("\r\n").split("\t")
            if parts == [""]:
                continue
            try:
                entries.append((*map(float, parts[1:-1]), parts[-1]))
            except ValueError:
                raise ValueError(f"{path}, line {number}: labels must be numbers, found {parts[1:-1]}") from None
    return entries
