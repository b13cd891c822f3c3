"""Images of digits and of clothes, 28 by 28 grey levels, from files in the idx format."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mxnet._idx_file import read_idx
from mxnet.base import PathLike
from mxnet.error import FileFormatError
from mxnet.gluon.data.vision._labelled_images import LabelledImages, check_labels, dataset_folder, find_file

__all__ = ["MNIST", "FashionMNIST"]


class MNIST(LabelledImages):
    """70,000 handwritten digits.

    Parameters
    ----------
    root : path, optional
        Folder with the original files, ``train-images-idx3-ubyte.gz`` and so on, compressed or not;
        ``datasets/mnist`` in `mx.base.data_dir()` by default. Nothing is downloaded.
    train : bool
        The 60,000 images for training, or the 10,000 for testing (``t10k-images-idx3-ubyte.gz``).
    transform : callable of (image, label), optional
        Applied to each sample.

    Raises
    ------
    FileNotFoundError
        If a file is not there.
    FileFormatError
        If a file is something else or damaged.

    Notes
    -----
    A sample is an image, an array of shape ``(28, 28, 1)`` of uint8, and a label from 0 to 9, NumPy's int32.

    Examples
    --------
    >>> from mxnet.gluon.data.vision import MNIST
    >>> try:
    ...     MNIST(root='nowhere')
    ... except FileNotFoundError as error:
    ...     print(error)
    no train-images-idx3-ubyte.gz or train-images-idx3-ubyte in nowhere: nothing is downloaded, so put the file there or
    name its folder as `root`
    """

    def __init__(
        self,
        root: PathLike | None = None,
        train: bool = True,
        transform: Callable[..., Any] | None = None,
    ) -> None:
        folder = dataset_folder(root, "mnist")
        part = "train" if train else "t10k"
        paths = [
            find_file(folder, (f"{part}-{name}-ubyte.gz", f"{part}-{name}-ubyte"))
            for name in ("images-idx3", "labels-idx1")
        ]
        images, labels = map(read_idx, paths)
        if images.dtype != "uint8" or images.ndim != 3:
            raise FileFormatError(f"{paths[0]}: images must be uint8 with 3 axes, found {images.dtype}, {images.shape}")
        if labels.dtype != "uint8" or labels.shape != images.shape[:1]:
            raise FileFormatError(
                f"{paths[1]}: labels must be uint8, one for each of {len(images)} images, found {labels.dtype}, "
                f"{labels.shape}"
            )
        super().__init__(images[..., None], check_labels(paths[1], labels, 10), transform)


class FashionMNIST(MNIST):
    """70,000 images of clothes, shoes and bags, in the file format of `MNIST`.

    Parameters
    ----------
    root : path, optional
        Folder with the original files, ``train-images-idx3-ubyte.gz`` and so on, compressed or not;
        ``datasets/fashion-mnist`` in `mx.base.data_dir()` by default. Nothing is downloaded.
    train : bool
        The 60,000 images for training, or the 10,000 for testing.
    transform : callable of (image, label), optional
        Applied to each sample.

    Raises
    ------
    FileNotFoundError
        If a file is not there.
    FileFormatError
        If a file is something else or damaged.

    Notes
    -----
    Source: H. Xiao, K. Rasul and R. Vollgraf, "Fashion-MNIST: a novel image dataset for benchmarking machine learning
    algorithms", 2017.

    Examples
    --------
    >>> from mxnet.gluon.data.vision import FashionMNIST
    >>> try:
    ...     FashionMNIST(root='nowhere', train=False)
    ... except FileNotFoundError as error:
    ...     print(error)
    no t10k-images-idx3-ubyte.gz or t10k-images-idx3-ubyte in nowhere: nothing is downloaded, so put the file there or
    name its folder as `root`
    """

    def __init__(
        self,
        root: PathLike | None = None,
        train: bool = True,
        transform: Callable[..., Any] | None = None,
    ) -> None:
        super().__init__(dataset_folder(root, "fashion-mnist"), train, transform)
