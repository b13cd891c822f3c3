"""Batches taken as a whole: one indexed read and one call of each transform, instead of one for every sample.

A class that defines ``__getitem__`` may define ``_whole_batch(indices)`` beside it. It returns what stacking the
samples would give (an array, or a tuple of arrays for samples that are tuples), or None where only single samples can
be had. What it returns equals the stacked samples bit for bit, so no random transform and no function of the user
takes part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as onp

from mxnet.numpy import ndarray

__all__ = ["entries", "transform_batch", "whole_batch"]


def whole_batch(dataset: Any, indices: Sequence[int]) -> Any:
    """The samples of a dataset, stacked.

    Parameters
    ----------
    dataset : Dataset
    indices : sequence of int

    Returns
    -------
    ndarray, numpy.ndarray, tuple of these, or None
        None if the dataset can give single samples only.
    """
    for klass in type(dataset).__mro__:
        # A subclass that only overrides single samples must not get the batches of its base class.
        if "__getitem__" in vars(klass):
            method = vars(klass).get("_whole_batch")
            return None if method is None else method(dataset, indices)
    return None


def entries(data: Any, indices: Sequence[int]) -> Any:
    """Entries of an array, or of a dataset, stacked.

    Parameters
    ----------
    data : array, Dataset or sequence
    indices : sequence of int

    Returns
    -------
    ndarray, numpy.ndarray, tuple of these, or None
        None if `data` is something else.
    """
    if type(data) is onp.ndarray:
        return None if data.dtype.hasobject else data[indices]
    return data[indices] if type(data) is ndarray else whole_batch(data, indices)


@cache
def _sample_axes() -> dict[type, int | None]:
    """Transforms that treat each sample of a batch separately, and the number of axes of a sample (None: any)."""
    from mxnet.gluon.data.vision import transforms  # its datasets are derived from ours

    return {transforms.Cast: None, transforms.Normalize: 3, transforms.ToTensor: 3}


def transform_batch(transform: Callable[..., Any], batch: Any) -> Any:
    """Apply a transform of samples to a batch.

    Parameters
    ----------
    transform : callable
    batch : array, shape (n, ...)
        Stacked samples.

    Returns
    -------
    ndarray, shape (n, ...), or None
        The stacked transformed samples; None if the transform needs them one by one.
    """
    from mxnet.gluon.data.vision import transforms

    if type(transform) in (transforms.Compose, transforms.HybridCompose):
        for part in transform:  # type: ignore[attr-defined]  # a sequence of blocks
            batch = transform_batch(part, batch)
            if batch is None:
                return None
        return batch
    known = _sample_axes()
    if type(transform) not in known:
        return None
    axes = known[type(transform)]
    return transform(batch) if axes is None or batch.ndim == axes + 1 else None
