"""Base class of the datasets that hold all their images in memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

from mxnet import numpy as np
from mxnet.base import PathLike, data_dir
from mxnet.device import cpu
from mxnet.error import FileFormatError
from mxnet.gluon.data.dataset import Dataset

__all__ = ["LabelledImages", "check_labels", "dataset_folder", "find_file"]


class LabelledImages(Dataset):
    """Images of one size with a label each.

    Parameters
    ----------
    images : numpy.ndarray, shape (n, h, w, c), uint8
    labels : numpy.ndarray, shape (n,), int32
    transform : callable of (image, label), optional
        Applied to each sample.
    """

    def __init__(self, images: Any, labels: Any, transform: Callable[..., Any] | None) -> None:
        self._images = np.array(images, device=cpu())
        self._labels = labels
        self._transform = transform

    def __getitem__(self, idx: int) -> Any:
        image, label = self._images[idx], self._labels[idx]
        return (image, label) if self._transform is None else self._transform(image, label)

    def _whole_batch(self, indices: Sequence[int]) -> Any:
        return (self._images[indices], self._labels[indices]) if self._transform is None else None

    def __len__(self) -> int:
        return len(self._labels)


def dataset_folder(root: PathLike | None, name: str) -> PathLike:
    """Folder of the files of a dataset.

    Parameters
    ----------
    root : path, optional
        ``datasets/<name>`` in `mx.base.data_dir()` by default.
    name : str

    Returns
    -------
    path
    """
    return os.path.join(data_dir(), "datasets", name) if root is None else root


def find_file(root: PathLike, names: Sequence[str]) -> str:
    """The first of several files that exists.

    Parameters
    ----------
    root : path
        Folder; a ``~`` in front is the user's.
    names : sequence of str

    Returns
    -------
    str

    Raises
    ------
    FileNotFoundError
        If there is none of them.
    """
    folder = os.path.expanduser(root)
    for name in names:
        path = os.path.join(folder, name)
        if os.path.exists(path):
            return path
    raise FileNotFoundError(
        f"no {' or '.join(names)} in {folder}: nothing is downloaded, so put the file there or name its folder as "
        "`root`"
    )


def check_labels(path: str, labels: onp.ndarray[Any, Any], num_classes: int) -> onp.ndarray[Any, Any]:
    """Labels as int32.

    Raises
    ------
    FileFormatError
        If one is out of range.
    """
    if labels.size and int(labels.max()) >= num_classes:
        raise FileFormatError(f"{path}: labels must be from 0 to {num_classes - 1}, found {int(labels.max())}")
    return labels.astype("int32")
