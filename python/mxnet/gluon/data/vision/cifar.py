"""Colour images of 32 by 32 pixels in 10 or 100 classes, from files in CIFAR's binary format.

A record is the label (CIFAR-100: the coarse one, then the fine one), a byte each, and 3072 bytes: the red pixels row by
row, the green ones, the blue ones.
Source: A. Krizhevsky, "Learning multiple layers of features from tiny images", 2009.
"""

from __future__ import annotations

import os
import tarfile
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

from mxnet.base import PathLike
from mxnet.error import FileFormatError
from mxnet.gluon.data.vision._labelled_images import LabelledImages, check_labels, dataset_folder, find_file

__all__ = ["CIFAR10", "CIFAR100"]

_PIXELS = 3 * 32 * 32


def _read(root: PathLike, archive: str, folder: str, names: Sequence[str]) -> dict[str, bytes]:
    """The contents of files, from the archive, from the folder that it holds, or from `root` itself."""
    first = names[0]
    found = find_file(root, (first, os.path.join(folder, first), archive))
    if not found.endswith(archive):
        base = os.path.dirname(found)
        contents = {}
        for name in names:
            path = find_file(base, (name,))
            with open(path, "rb") as file:
                contents[path] = file.read()
        return contents
    try:
        # Members are read by name where they are; nothing is unpacked to disk.
        with open(found, "rb") as file, tarfile.open(fileobj=file) as opened:
            members = {os.path.basename(member.name): member for member in opened.getmembers() if member.isfile()}
            missing = [name for name in names if name not in members]
            if missing:
                raise FileFormatError(f"{found}: no {', '.join(missing)} in the archive")
            return {f"{found}:{name}": _member(opened, members[name]) for name in names}
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        raise FileFormatError(f"{found}: damaged archive: {error}") from error


def _member(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    return b"" if file is None else file.read()


def _parse(contents: dict[str, bytes], num_labels: int, chosen: int, num_classes: int) -> tuple[Any, Any]:
    """Images, shape (n, 32, 32, 3), and the chosen label of each, shape (n,)."""
    images, labels = [], []
    size = num_labels + _PIXELS
    for path, content in contents.items():
        if not content or len(content) % size:
            raise FileFormatError(f"{path}: records have {size} bytes, but the file has {len(content)}")
        records = onp.frombuffer(content, "uint8").reshape(-1, size)
        labels.append(check_labels(path, records[:, chosen], num_classes))
        # (n, c, h, w) -> (n, h, w, c)
        images.append(records[:, num_labels:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
    return onp.concatenate(images), onp.concatenate(labels)


class CIFAR10(LabelledImages):
    """60,000 colour images in 10 classes.

    Parameters
    ----------
    root : path, optional
        Folder with ``cifar-10-binary.tar.gz``, or with what it holds; ``datasets/cifar10`` in `mx.base.data_dir()` by
        default. Nothing is downloaded.
    train : bool
        The 50,000 images for training (``data_batch_1.bin`` to ``data_batch_5.bin``), or the 10,000 for testing
        (``test_batch.bin``).
    transform : callable of (image, label), optional
        Applied to each sample.

    Raises
    ------
    FileNotFoundError
        If the files are not there.
    FileFormatError
        If a file is something else or damaged.

    Notes
    -----
    A sample is an image, an array of shape ``(32, 32, 3)`` of uint8, red, green and blue, and a label, NumPy's int32.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open(os.path.join(folder, 'test_batch.bin'), 'wb') as file:
    ...         _ = file.write(bytes([7]) + bytes(3 * 32 * 32))
    ...     dataset = mx.gluon.data.vision.CIFAR10(folder, train=False)
    >>> image, label = dataset[0]
    >>> image.shape, int(label)
    ((32, 32, 3), 7)
    """

    def __init__(
        self,
        root: PathLike | None = None,
        train: bool = True,
        transform: Callable[..., Any] | None = None,
    ) -> None:
        names = [f"data_batch_{number}.bin" for number in range(1, 6)] if train else ["test_batch.bin"]
        contents = _read(dataset_folder(root, "cifar10"), "cifar-10-binary.tar.gz", "cifar-10-batches-bin", names)
        super().__init__(*_parse(contents, num_labels=1, chosen=0, num_classes=10), transform)


class CIFAR100(LabelledImages):
    """60,000 colour images in 100 classes, which form 20 coarse ones.

    Parameters
    ----------
    root : path, optional
        Folder with ``cifar-100-binary.tar.gz``, or with what it holds; ``datasets/cifar100`` in `mx.base.data_dir()` by
        default. Nothing is downloaded.
    fine_label : bool
        Labels are the classes, from 0 to 99, or the coarse ones, from 0 to 19.
    train : bool
        The 50,000 images for training (``train.bin``), or the 10,000 for testing (``test.bin``).
    transform : callable of (image, label), optional
        Applied to each sample.

    Raises
    ------
    FileNotFoundError
        If the files are not there.
    FileFormatError
        If a file is something else or damaged.

    Notes
    -----
    A sample is an image, an array of shape ``(32, 32, 3)`` of uint8, red, green and blue, and a label, NumPy's int32.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open(os.path.join(folder, 'test.bin'), 'wb') as file:
    ...         _ = file.write(bytes([7, 42]) + bytes(3 * 32 * 32))
    ...     datasets = [mx.gluon.data.vision.CIFAR100(folder, fine, train=False) for fine in (False, True)]
    >>> [int(dataset[0][1]) for dataset in datasets]
    [7, 42]
    """

    def __init__(
        self,
        root: PathLike | None = None,
        fine_label: bool = False,
        train: bool = True,
        transform: Callable[..., Any] | None = None,
    ) -> None:
        contents = _read(
            dataset_folder(root, "cifar100"),
            "cifar-100-binary.tar.gz",
            "cifar-100-binary",
            ["train.bin" if train else "test.bin"],
        )
        num_classes = 100 if fine_label else 20
        super().__init__(*_parse(contents, num_labels=2, chosen=int(fine_label), num_classes=num_classes), transform)
