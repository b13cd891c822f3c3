"""Helper functions for user-defined metrics: checks of shapes, decisions."""

from __future__ import annotations

from typing import Any

from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.numpy import ndarray

__all__ = ["check_label_shapes", "one_hot", "predict_with_threshold"]


def check_label_shapes(labels: Any, preds: Any, wrap: bool = False, shape: bool = False) -> tuple[Any, Any]:
    """Check that labels fit predictions.

    Parameters
    ----------
    labels, preds : ndarray or list of ndarray
    wrap : bool
        Make a list of an array.
    shape : bool
        Compare shapes, not numbers of entries.

    Returns
    -------
    labels, preds
        As given, or in lists.

    Raises
    ------
    ValueError
        If they do not fit.

    Examples
    --------
    >>> mx.gluon.metric.check_label_shapes(np.ones(2), np.ones(2), wrap=True)
    ([array([1., 1.])], [array([1., 1.])])
    """
    if shape and labels.shape != preds.shape:
        raise ValueError(f"labels of shape {labels.shape} do not fit predictions of shape {preds.shape}")
    if not shape and len(labels) != len(preds):
        raise ValueError(f"{len(labels)} labels for {len(preds)} predictions")
    if wrap:
        labels = [labels] if isinstance(labels, ndarray) else labels
        preds = [preds] if isinstance(preds, ndarray) else preds
    return labels, preds


def one_hot(idx: ndarray, num: int) -> ndarray:
    """Rows with a 1 at a class.

    Parameters
    ----------
    idx : ndarray of integers
        Classes.
    num : int
        Number of classes.

    Returns
    -------
    ndarray of int32, shape ``(*idx.shape, num)``

    Examples
    --------
    >>> mx.gluon.metric.one_hot(np.array([0, 2]), 3)
    array([[1, 0, 0],
           [0, 0, 1]], dtype=int32)
    """
    rows: ndarray = npx.one_hot(idx, num, dtype="int32")
    return rows


def predict_with_threshold(pred: ndarray, threshold: float | ndarray = 0.5) -> ndarray:
    """Decisions from probabilities.

    Parameters
    ----------
    pred : ndarray, shape (n, ...) or (n, ..., categories)
    threshold : float or ndarray, shape (categories,)
        A probability above it is a 1.

    Returns
    -------
    ndarray of int32
        0 or 1, of the shape of `pred`.

    Examples
    --------
    >>> mx.gluon.metric.predict_with_threshold(np.array([0.2, 0.7]))
    array([0, 1], dtype=int32)
    """
    decided: ndarray = np.greater(pred, threshold).astype("int32")
    return decided
