"""Batches of encoded images in one call: decoded, transformed and normalised on the engine's threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mxnet import _core
from mxnet import numpy as np
from mxnet.gluon.data.dataset import _First, _Transformed
from mxnet.gluon.data.vision import transforms
from mxnet.gluon.data.vision.image_datasets import ImageFolderDataset, ImageListDataset
from mxnet.gluon.data.vision.image_record import ImageRecordDataset

__all__ = ["has_image_batches", "image_batch"]

_Step = tuple[str, tuple[int, int, int, int]]


def has_image_batches(dataset: Any) -> bool:
    """Whether a dataset has encoded images whose first part is transformed by ours alone.

    Parameters
    ----------
    dataset : Dataset

    Returns
    -------
    bool
    """
    if type(dataset) is not _Transformed or type(dataset._fn) is not _First:
        return False
    source: Any = dataset._dataset
    return (
        type(source) in (ImageFolderDataset, ImageListDataset, ImageRecordDataset)
        and _plan(_flat(dataset._fn._fn)) is not None
        and source.has_encoded()
    )


def image_batch(dataset: Any, indices: Sequence[int], of_sample: Callable[..., Any]) -> Any:
    """Samples of a dataset with `has_image_batches`, stacked.

    Parameters
    ----------
    dataset : Dataset
    indices : sequence of int
    of_sample : callable of (place, function, *arguments)
        Calls a function with the random stream of the sample at a place of the batch.

    Returns
    -------
    [ndarray, ndarray] or None
        Images, float32 of shape ``(n, c, h, w)``, and labels; None for a batch of no samples.

    Raises
    ------
    OSError
        If a file cannot be read or decoded.
    ValueError
        If the images of the batch have different shapes.

    Notes
    -----
    Random numbers are those of the samples taken one by one. Resizing is that of `mx.image.imresize`, whose levels may
    differ by one from those of ``Resize`` on an array.
    """
    plan = _plan(_flat(dataset._fn._fn)) if len(indices) else None
    if plan is None:
        return None
    pixels, mean, std = plan
    files, flag, labels = dataset._dataset.encoded(indices)
    steps = [of_sample(position, _sample_steps, pixels) for position in range(len(files))]
    return [_core.image_batch(files, flag, steps, mean, std), np.array(labels)]


def _sample_steps(pixels: list[Any]) -> list[_Step]:
    return [step for part in pixels for step in _steps(part)]


def _flat(transform: Any) -> list[Any]:
    """The transforms in a composition, flattened."""
    if type(transform) in (transforms.Compose, transforms.HybridCompose):
        return [part for child in transform for part in _flat(child)]
    return [transform]


def _plan(parts: list[Any]) -> tuple[list[Any], list[float], list[float]] | None:
    """Pixel transforms, then mean and standard deviation; None if there is a transform of another kind."""
    kinds = [type(part) for part in parts]
    if transforms.ToTensor not in kinds:
        return None
    position = kinds.index(transforms.ToTensor)
    behind = parts[position + 1 :]
    if any(kind not in _PIXELS for kind in kinds[:position]) or len(behind) > 1:
        return None
    if not behind:
        return parts[:position], [0.0], [1.0]
    if type(behind[0]) is not transforms.Normalize:
        return None
    mean, std = (
        [float(given)] if isinstance(given, int | float) else [float(number) for number in given]
        for given in (behind[0]._mean, behind[0]._std)
    )
    return parts[:position], mean, std


def _steps(part: Any) -> list[_Step]:
    """The steps of a pixel transform for one image; random transforms draw their parameters."""
    steps: list[_Step] = _PIXELS[type(part)](part)
    return steps


def _resize(part: transforms.Resize) -> list[_Step]:
    if isinstance(part._size, int):
        return [("resize_short", (part._size, part._interpolation, 0, 0))]
    width, height = part._size
    return [("resize", (height, width, part._interpolation, 0))]


def _center_crop(part: transforms.CenterCrop) -> list[_Step]:
    width, height = part._size
    return [("center_crop", (height, width, part._interpolation, 0))]


def _crop_resize(part: transforms.CropResize) -> list[_Step]:
    crop: _Step = ("crop", part._rectangle)
    if part._size is None:
        return [crop]
    width, height = part._size
    return [crop, ("resize", (height, width, part._interpolation, 0))]


def _flip(name: str) -> Any:
    def steps(part: Any) -> list[_Step]:
        return [(name, (0, 0, 0, 0))] if float(np.random.uniform(dtype="float32")) < part._p else []

    return steps


_PIXELS: dict[type, Any] = {
    transforms.Resize: _resize,
    transforms.CenterCrop: _center_crop,
    transforms.CropResize: _crop_resize,
    transforms.RandomFlipLeftRight: _flip("flip_left_right"),
    transforms.RandomFlipTopBottom: _flip("flip_top_bottom"),
}
