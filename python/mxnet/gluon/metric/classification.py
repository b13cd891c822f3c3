"""Metrics of decisions among classes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as onp
from numpy.typing import NDArray

from mxnet.gluon.metric.base import EvalMetric, Floats, alias, register, same_size

__all__ = [
    "Accuracy",
    "BinaryAccuracy",
    "CrossEntropy",
    "F1",
    "Fbeta",
    "MCC",
    "PCC",
    "Perplexity",
    "TopKAccuracy",
]


@alias("acc")
class Accuracy(EvalMetric):
    """Part of the predictions that hit the right class.

    Parameters
    ----------
    axis : int
        Axis of the classes in predictions that are scores.
    name : str
    output_names, label_names : sequence of str, optional

    Examples
    --------
    >>> metric = mx.gluon.metric.Accuracy()
    >>> metric.update(np.array([0, 1]), np.array([[0.9, 0.1], [0.8, 0.2]]))
    >>> metric.get()
    ('accuracy', 0.5)
    """

    def __init__(
        self,
        axis: int = 1,
        name: str = "accuracy",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(name, output_names, label_names, axis=axis)
        self.axis = axis

    def _take(self, label: NDArray[Any], pred: NDArray[Any]) -> None:
        # Predictions of the labels' shape are class numbers, others are scores.
        chosen = pred if pred.shape == label.shape else pred.argmax(axis=self.axis)
        if chosen.size != label.size:
            raise ValueError(f"labels of shape {label.shape} do not fit predictions of shape {pred.shape}")
        hits = chosen.astype(onp.int64).ravel() == label.astype(onp.int64).ravel()
        self._add(hits.sum(), hits.size)


@alias("top_k_accuracy", "top_k_acc")
class TopKAccuracy(EvalMetric):
    """Part of the samples whose class is among the `top_k` with the highest scores.

    Parameters
    ----------
    top_k : int
        At least 2.
    name : str
        ``_k`` is appended.
    output_names, label_names : sequence of str, optional

    Raises
    ------
    ValueError
        If `top_k` is below 2.

    Examples
    --------
    >>> metric = mx.gluon.metric.TopKAccuracy(top_k=2)
    >>> metric.update(np.array([1, 2]), np.array([[0.5, 0.4, 0.1], [0.5, 0.4, 0.1]]))
    >>> metric.get()
    ('top_k_accuracy_2', 0.5)
    """

    def __init__(
        self,
        top_k: int = 1,
        name: str = "top_k_accuracy",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        if top_k < 2:
            raise ValueError(f"`top_k` must be at least 2, found {top_k}; use Accuracy for 1")
        super().__init__(f"{name}_{top_k}", output_names, label_names, top_k=top_k)
        self.top_k = top_k

    def _take(self, label: NDArray[Any], pred: NDArray[Any]) -> None:
        if pred.ndim != 2 or label.size != pred.shape[0]:
            raise ValueError(f"labels of shape {label.shape} do not fit predictions of shape {pred.shape}")
        k = min(self.top_k, pred.shape[1])
        best = onp.argpartition(pred.astype(onp.float64), pred.shape[1] - k, axis=1)[:, -k:]
        hits = (best == label.astype(onp.int64).reshape(-1, 1)).any(axis=1)
        self._add(hits.sum(), hits.size)


def _binary(pred: NDArray[Any], threshold: float) -> NDArray[onp.int64]:
    """Decisions 0 and 1: the larger of two scores, or a probability above the threshold."""
    if pred.ndim == 2 and pred.shape[1] == 2:
        chosen: NDArray[onp.int64] = pred.argmax(axis=1).astype(onp.int64)
    else:
        chosen = (pred > threshold).astype(onp.int64).ravel()
    return chosen


@register
class BinaryAccuracy(EvalMetric):
    """Part of the yes/no predictions that are right.

    Parameters
    ----------
    name : str
    output_names, label_names : sequence of str, optional
    threshold : float
        Predictions above it mean 1.

    Examples
    --------
    >>> metric = mx.gluon.metric.BinaryAccuracy()
    >>> metric.update(np.array([0, 1]), np.array([0.1, 0.8]))
    >>> metric.get()
    ('binary_accuracy', 1.0)
    """

    def __init__(
        self,
        name: str = "binary_accuracy",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
        threshold: float = 0.5,
    ) -> None:
        super().__init__(name, output_names, label_names, threshold=threshold)
        self.threshold = threshold

    def _take(self, label: NDArray[Any], pred: NDArray[Any]) -> None:
        label, pred = same_size(label, pred)
        hits = (pred > self.threshold) == (label > 0.5)
        self._add(hits.sum(), hits.size)


class _Confusion:
    """Counts of right and wrong decisions, one row for each class."""

    def __init__(self) -> None:
        self.true_positive: Floats = onp.zeros(0)
        self.false_positive: Floats = onp.zeros(0)
        self.false_negative: Floats = onp.zeros(0)
        self.true_negative: Floats = onp.zeros(0)

    def add(self, label: NDArray[onp.bool_], chosen: NDArray[onp.bool_]) -> None:
        """Count decisions; both arrays have shape (samples, classes)."""
        counts = [label & chosen, ~label & chosen, label & ~chosen, ~label & ~chosen]
        names = ("true_positive", "false_positive", "false_negative", "true_negative")
        for name, count in zip(names, counts, strict=True):
            old, new = getattr(self, name), count.sum(axis=0).astype(onp.float64)
            size = max(old.size, new.size)
            setattr(self, name, onp.pad(old, (0, size - old.size)) + onp.pad(new, (0, size - new.size)))


def _ratio(top: Any, bottom: Any) -> Floats:
    """Quotients, 0 where the divisor is 0."""
    top, bottom = onp.asarray(top, onp.float64), onp.asarray(bottom, onp.float64)
    quotients: Floats = onp.divide(top, bottom, out=onp.zeros_like(bottom), where=bottom > 0)
    return quotients


@register
class F1(EvalMetric):
    """Harmonic mean of precision and recall.

    Parameters
    ----------
    name : str
    output_names, label_names : sequence of str, optional
    class_type : {"binary", "multiclass", "multilabel"}
        Labels are 0 or 1, class numbers, or rows of 0 and 1.
    threshold : float
        Probabilities above it mean 1.
    average : {"micro", "macro"}
        One score from the counts of all classes, or the mean of the classes' scores.

    Raises
    ------
    ValueError
        If `class_type` or `average` is unknown.

    Examples
    --------
    >>> metric = mx.gluon.metric.F1()
    >>> metric.update(np.array([1, 1, 0]), np.array([0.9, 0.2, 0.1]))
    >>> round(metric.get()[1], 3)
    0.667
    """

    _beta = 1.0

    def __init__(
        self,
        name: str = "f1",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
        class_type: str = "binary",
        threshold: float = 0.5,
        average: str = "micro",
    ) -> None:
        if class_type not in ("binary", "multiclass", "multilabel"):
            raise ValueError(f"`class_type` must be 'binary', 'multiclass' or 'multilabel', found {class_type!r}")
        if average not in ("micro", "macro"):
            raise ValueError(f"`average` must be 'micro' or 'macro', found {average!r}")
        self.class_type = class_type
        self.threshold = threshold
        self.average = average
        super().__init__(name, output_names, label_names, class_type=class_type, threshold=threshold, average=average)

    def reset(self) -> None:
        """Forget everything."""
        super().reset()
        self._counts = _Confusion()

    def _take(self, label: NDArray[Any], pred: NDArray[Any]) -> None:
        if self.class_type == "binary":
            truth = label.astype(onp.int64).ravel()[:, None] == 1
            chosen = _binary(pred, self.threshold)[:, None] == 1
        elif self.class_type == "multiclass":
            classes = onp.arange(pred.shape[1])
            truth = label.astype(onp.int64).ravel()[:, None] == classes
            chosen = pred.argmax(axis=1).ravel()[:, None] == classes
        else:
            chosen = pred.reshape(-1, pred.shape[-1]) > self.threshold
            truth = label.reshape(-1, label.shape[-1]) > 0.5
        if truth.shape != chosen.shape:
            raise ValueError(f"labels of shape {label.shape} do not fit predictions of shape {pred.shape}")
        self._counts.add(truth, chosen)
        self.num_inst += truth.shape[0]

    def get(self) -> tuple[str, float]:
        """Name and value.

        Returns
        -------
        tuple of str and float
            NaN before the first batch; 0 where nothing was found and nothing was to be found.
        """
        if not self.num_inst:
            return self.name, math.nan
        hit, false, missed = self._counts.true_positive, self._counts.false_positive, self._counts.false_negative
        if self.average == "micro":
            hit, false, missed = hit.sum(), false.sum(), missed.sum()
        square = self._beta**2
        score = _ratio((1 + square) * hit, (1 + square) * hit + false + square * missed)
        return self.name, float(score.mean())


@register
class Fbeta(F1):
    """Weighted harmonic mean of precision and recall.

    Parameters
    ----------
    name : str
    output_names, label_names : sequence of str, optional
    class_type, threshold, average
        See `F1`.
    beta : float
        How many times as much recall counts as precision.

    Examples
    --------
    >>> metric = mx.gluon.metric.Fbeta(beta=2)
    >>> metric.update(np.array([1, 1, 0]), np.array([0.9, 0.2, 0.1]))
    >>> round(metric.get()[1], 3)
    0.556
    """

    def __init__(
        self,
        name: str = "fbeta",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
        class_type: str = "binary",
        beta: float = 1,
        threshold: float = 0.5,
        average: str = "micro",
    ) -> None:
        super().__init__(name, output_names, label_names, class_type, threshold, average)
        self._beta = beta
        self._kwargs["beta"] = beta


@register
class MCC(EvalMetric):
    """Matthews' correlation of yes/no decisions, from -1 to 1.

    Parameters
    ----------
    name : str
    output_names, label_names : sequence of str, optional

    Notes
    -----
    0 if all labels or all decisions are the same.

    Examples
    --------
    >>> metric = mx.gluon.metric.MCC()
    >>> metric.update(np.array([1, 0, 1, 0]), np.array([0.9, 0.1, 0.8, 0.2]))
    >>> round(metric.get()[1], 3)
    1.0
    """

    def __init__(
        self,
        name: str = "mcc",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(name, output_names, label_names)

    def reset(self) -> None:
        """Forget everything."""
        super().reset()
        self._counts = _Confusion()

    def _take(self, label: NDArray[Any], pred: NDArray[Any]) -> None:
        chosen = _binary(pred, 0.5)[:, None] == 1
        truth = label.astype(onp.int64).ravel()[:, None] == 1
        if truth.shape != chosen.shape:
            raise ValueError(f"labels of shape {label.shape} do not fit predictions of shape {pred.shape}")
        self._counts.add(truth, chosen)
        self.num_inst += truth.shape[0]

    def get(self) -> tuple[str, float]:
        """Name and value.

        Returns
        -------
        tuple of str and float
            NaN before the first batch.
        """
        if not self.num_inst:
            return self.name, math.nan
        counts = self._counts
        tp, fp, fn, tn = (
            float(array.sum())
            for array in (counts.true_positive, counts.false_positive, counts.false_negative, counts.true_negative)
        )
        scale = math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
        return self.name, (tp * tn - fp * fn) / scale if scale else 0.0


@register
class PCC(EvalMetric):
    """Correlation of labels and decisions among any number of classes, from -1 to 1; `MCC` for two.

    Parameters
    ----------
    name : str
    output_names, label_names : sequence of str, optional

    Notes
    -----
    NaN if all labels or all decisions are the same. Source: J. Gorodkin, "Comparing two K-category assignments by a
    K-category correlation coefficient", 2004.

    Examples
    --------
    >>> metric = mx.gluon.metric.PCC()
    >>> metric.update(np.array([0, 1, 2]), np.array([[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.0, 0.1, 0.9]]))
    >>> round(metric.get()[1], 3)
    1.0
    """

    def __init__(
        self,
        name: str = "pcc",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(name, output_names, label_names)

    def reset(self) -> None:
        """Forget everything."""
        super().reset()
        self._matrix: Floats = onp.zeros((0, 0))

    @property
    def sum_metric(self) -> float:
        """Value so far times the number of samples."""
        return self.get()[1] * self.num_inst if self.num_inst else 0.0

    @sum_metric.setter
    def sum_metric(self, value: float) -> None:
        # The base class resets its sum; this metric keeps counts in place of a sum.
        if value != 0:
            raise AttributeError("the sum of a PCC follows from its counts and cannot be set")

    def _take(self, label: NDArray[Any], pred: NDArray[Any]) -> None:
        chosen = (pred if pred.shape == label.shape else pred.argmax(axis=1)).astype(onp.int64).ravel()
        truth = label.astype(onp.int64).ravel()
        if chosen.size != truth.size:
            raise ValueError(f"labels of shape {label.shape} do not fit predictions of shape {pred.shape}")
        if not truth.size:
            return
        size = int(max(self._matrix.shape[0] - 1, truth.max(), chosen.max())) + 1
        grown = size - self._matrix.shape[0]
        self._matrix = onp.pad(self._matrix, ((0, grown), (0, grown)))
        onp.add.at(self._matrix, (chosen, truth), 1.0)
        self.num_inst += truth.size

    def get(self) -> tuple[str, float]:
        """Name and value.

        Returns
        -------
        tuple of str and float
            NaN before the first batch.
        """
        matrix = self._matrix
        decided, labelled, total = matrix.sum(axis=1), matrix.sum(axis=0), matrix.sum()
        covariance = matrix.trace() * total - decided @ labelled
        scale = math.sqrt((total**2 - decided @ decided) * (total**2 - labelled @ labelled))
        return self.name, float(covariance) / scale if scale else math.nan


@alias("ce")
class CrossEntropy(EvalMetric):
    """Mean negative logarithm of the right class's probability.

    Parameters
    ----------
    eps : float
        Smaller probabilities count as this.
    ignore_label : int, optional
        Samples of this class do not count.
    axis : int
        Axis of the classes.
    from_logits : bool
        Predictions are logits and not probabilities.
    name : str
    output_names, label_names : sequence of str, optional

    Examples
    --------
    >>> metric = mx.gluon.metric.CrossEntropy()
    >>> metric.update(np.array([0]), np.array([[0.5, 0.5]]))
    >>> round(metric.get()[1], 4)
    0.6931
    """

    def __init__(
        self,
        eps: float = 1e-12,
        ignore_label: int | None = None,
        axis: int = -1,
        from_logits: bool = False,
        name: str = "cross-entropy",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(
            name, output_names, label_names, eps=eps, ignore_label=ignore_label, axis=axis, from_logits=from_logits
        )
        self.eps = eps
        self.ignore_label = ignore_label
        self.axis = axis
        self.from_logits = from_logits

    def _take(self, label: NDArray[Any], pred: NDArray[Any]) -> None:
        scores = onp.moveaxis(pred.astype(onp.float64), self.axis, -1)
        scores = scores.reshape(-1, scores.shape[-1])
        classes = label.astype(onp.int64).ravel()
        if classes.size != scores.shape[0]:
            raise ValueError(f"labels of shape {label.shape} do not fit predictions of shape {pred.shape}")
        counted = onp.ones(classes.size, bool) if self.ignore_label is None else classes != self.ignore_label
        scores, classes = scores[counted], classes[counted]
        right = onp.take_along_axis(scores, classes[:, None], axis=1)[:, 0] if classes.size else onp.zeros(0)
        if self.from_logits:
            top = scores.max(axis=1, keepdims=True) if classes.size else onp.zeros((0, 1))
            losses = onp.log(onp.exp(scores - top).sum(axis=1)) + top[:, 0] - right
        else:
            losses = -onp.log(onp.maximum(right, self.eps))
        self._add(losses.sum(), losses.size)


@register
class Perplexity(CrossEntropy):
    """Exponential of the cross entropy.

    Parameters
    ----------
    eps, ignore_label, axis, from_logits
        See `CrossEntropy`.
    name : str
    output_names, label_names : sequence of str, optional

    Examples
    --------
    >>> metric = mx.gluon.metric.Perplexity()
    >>> metric.update(np.array([0, 1]), np.array([[0.5, 0.5], [0.5, 0.5]]))
    >>> round(metric.get()[1], 3)
    2.0
    """

    def __init__(
        self,
        eps: float = 1e-12,
        ignore_label: int | None = None,
        axis: int = -1,
        from_logits: bool = False,
        name: str = "perplexity",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(eps, ignore_label, axis, from_logits, name, output_names, label_names)

    def get(self) -> tuple[str, float]:
        """Name and value.

        Returns
        -------
        tuple of str and float
            NaN before the first batch.
        """
        name, value = super().get()
        return name, math.exp(value)
