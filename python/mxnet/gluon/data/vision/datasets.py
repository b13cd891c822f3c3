"""Image datasets that ship with the package."""

from __future__ import annotations

import importlib.resources
from collections.abc import Callable
from typing import Any

import numpy as onp

from mxnet._renamed import attribute_finder
from mxnet.gluon.data.dataset import Dataset

__all__ = ["Digits"]

__getattr__ = attribute_finder(__name__, "mxnet.gluon.data.vision")

_SPLIT_SEED = 1797
_TEST_PART = 5  # one sample in so many is for testing


class Digits(Dataset):
    """1797 handwritten digits, 8 by 8 pixels.

    Parameters
    ----------
    train : bool
        The 1437 images for training, or the 360 for testing. The split is fixed and has the same mix of digits on both
        sides; neither is in the order of the original.
    transform : callable of (image, label), optional
        Applied to each sample.

    Notes
    -----
    A sample is an image, uint8 from 0 to 16 of shape ``(8, 8, 1)``, and a label from 0 to 9. Both are NumPy's, so that
    many of them become one array in one step.
    Source: E. Alpaydin and C. Kaynak, "Optical Recognition of Handwritten Digits", UCI Machine Learning Repository,
    1998.

    Examples
    --------
    >>> from mxnet.gluon.data.vision import Digits
    >>> image, label = Digits(train=False)[0]
    >>> image.shape
    (8, 8, 1)
    """

    def __init__(self, train: bool = True, transform: Callable[..., Any] | None = None) -> None:
        file = importlib.resources.files("mxnet.gluon.data.vision") / "digits.npz"
        with file.open("rb") as opened, onp.load(opened, allow_pickle=False) as archive:
            images, labels = archive["images"], archive["labels"]
        chosen = _split(labels, train)
        self._images = images[chosen][..., None]
        self._labels = labels[chosen].astype("int32")
        self._transform = transform

    def __getitem__(self, idx: int) -> Any:
        image, label = self._images[idx], self._labels[idx]
        return (image, label) if self._transform is None else self._transform(image, label)

    def __len__(self) -> int:
        return len(self._labels)


def _split(labels: Any, train: bool) -> Any:
    """Places of the samples of one side, each digit split in the same ratio, in a fixed random order."""
    # PCG64's stream is fixed by NumPy's compatibility promise for bit generators; `random` alone is drawn from it.
    keys = onp.random.Generator(onp.random.PCG64(_SPLIT_SEED)).random(len(labels))
    order = keys.argsort(kind="stable")
    # Grouped by digit, random inside: every fifth of the groups in a row keeps the mix.
    grouped = order[labels[order].argsort(kind="stable")]
    is_test = onp.zeros(len(labels), bool)
    is_test[grouped[::_TEST_PART]] = True
    return order[is_test[order] != train]
