"""Images in record files."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

from mxnet import image
from mxnet.gluon.data.dataset import Dataset
from mxnet.gluon.data.vision.image_datasets import check_flag

__all__ = ["ImageRecordDataset"]


def _recordio() -> Any:
    # Imported at first use: other datasets of images need no record files.
    return importlib.import_module("mxnet.recordio")


class ImageRecordDataset(Dataset):
    """Images and labels of a record file.

    Parameters
    ----------
    filename : path
        A record file with an index of the same name and the ending ``.idx`` beside it; items are those of
        `mxnet.recordio.pack_img`.
    flag : {1, 0}
        Colours or grey levels.
    transform : callable of (image, label), optional
        Applied to each sample.

    Raises
    ------
    OSError
        If one of the two files cannot be opened.
    ValueError
        If `flag` is something else.

    Notes
    -----
    A sample is an image, uint8 of shape ``(h, w, c)``, red first, and a label: a float, or an array of float32 if there
    are several.

    Examples
    --------
    >>> mx.gluon.data.vision.ImageRecordDataset('pictures.rec', flag=2)
    Traceback (most recent call last):
    ...
    ValueError: `flag` must be 1 (colour) or 0 (grey), found 2
    """

    def __init__(
        self, filename: str | os.PathLike[str], flag: int = 1, transform: Callable[..., Any] | None = None
    ) -> None:
        self._flag = check_flag(flag)
        self.filename = os.fspath(filename)
        self.idx_file = os.path.splitext(self.filename)[0] + ".idx"
        self._record = _recordio().MXIndexedRecordIO(self.idx_file, self.filename, "r")
        self._transform = transform

    def __getitem__(self, idx: int) -> Any:
        header, data = self._item(idx)
        sample = image.imdecode(data, self._flag)
        return (sample, header.label) if self._transform is None else self._transform(sample, header.label)

    def __len__(self) -> int:
        return len(self._record.keys)

    def _item(self, idx: int) -> tuple[Any, bytes]:
        """Header and encoded image of a sample."""
        header, data = _recordio().unpack(self._record.read_idx(self._record.keys[idx]))
        return header, data

    def encoded(self, indices: Sequence[int]) -> tuple[list[bytes], int, Any] | None:
        """Files of samples, the flag to decode them with, and their labels; None if samples are transformed.

        Parameters
        ----------
        indices : sequence of int

        Returns
        -------
        (list of bytes, int, numpy.ndarray) or None
        """
        if self._transform is not None:
            return None
        items = [self._item(idx) for idx in indices]
        return [data for _, data in items], self._flag, onp.stack([header.label for header, _ in items])
