"""Images in record files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

from mxnet import image
from mxnet.base import PathLike
from mxnet.gluon.data.dataset import RecordFileDataset
from mxnet.gluon.data.vision.image_datasets import check_flag
from mxnet.recordio import unpack

__all__ = ["ImageRecordDataset"]


class ImageRecordDataset(RecordFileDataset):
    """A dataset of the images and labels of a record file.

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
    >>> import os, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, 'pictures')
    >>> header = mx.recordio.IRHeader(0, 3.0, 0, 0)
    >>> with mx.recordio.MXIndexedRecordIO(path + '.idx', path + '.rec', 'w') as record:
    ...     record.write_idx(0, mx.recordio.pack_img(header, np.zeros((4, 6, 3), dtype='uint8'), img_fmt='.png'))
    >>> picture, label = mx.gluon.data.vision.ImageRecordDataset(path + '.rec')[0]
    >>> picture.shape, label
    ((4, 6, 3), 3.0)
    >>> folder.cleanup()
    """

    def __init__(self, filename: PathLike, flag: int = 1, transform: Callable[..., Any] | None = None) -> None:
        self._flag = check_flag(flag)
        super().__init__(filename)
        self._transform = transform

    def __getitem__(self, idx: int) -> Any:
        header, data = self._item(idx)
        sample = image.imdecode(data, self._flag)
        return (sample, header.label) if self._transform is None else self._transform(sample, header.label)

    def _item(self, idx: int) -> tuple[Any, bytes]:
        """Header and encoded image of a sample."""
        header, data = unpack(super().__getitem__(idx))
        return header, data

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
        items = [self._item(idx) for idx in indices]
        return [data for _, data in items], self._flag, onp.stack([header.label for header, _ in items])
