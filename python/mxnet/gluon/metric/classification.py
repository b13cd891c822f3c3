"""Metrics of decisions among classes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as onp

from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.gluon.metric._sums import SumMetric, misfit, same_size
from mxnet.gluon.metric.base import Floats, alias, register
from mxnet.numpy import ndarray

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
class Accuracy(SumMetric):
    """Fraction of the labels that are predicted correctly. Each element of a label array counts as one.

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

    def _count(self, label: ndarray, pred: ndarray) -> int:
        # Predictions of the labels' shape are class numbers, others are scores.
        is_scores = pred.shape != label.shape
        if is_scores and pred.size != label.size * pred.shape[self.axis]:
            raise misfit(label, pred)
        return label.size

    def _add_to(self, state: ndarray, label: ndarray, pred: ndarray) -> None:
        chosen = pred if pred.shape == label.shape else pred.argmax(axis=self.axis)
        state += (chosen.astype("int64").ravel() == label.astype("int64").ravel()).sum()


@alias("top_k_accuracy", "top_k_acc")
class TopKAccuracy(SumMetric):
    """Fraction of the samples whose class is among the `top_k` with the highest scores.

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

    def get_config(self) -> dict[str, Any]:
        # The constructor appends `top_k` to the name.
        return {**super().get_config(), "name": self.name.removesuffix(f"_{self.top_k}")}

    def _count(self, label: ndarray, pred: ndarray) -> int:
        if pred.ndim != 2 or label.size != pred.shape[0]:
            raise misfit(label, pred)
        return label.size

    def _add_to(self, state: ndarray, label: ndarray, pred: ndarray) -> None:
        classes = label.astype("int64").reshape(-1, 1)
        right = npx.pick(pred, np.clip(classes[:, 0], 0, pred.shape[1] - 1), axis=1, keepdims=True)
        # Of equal scores the first class is the better one.
        numbers = np.arange(pred.shape[1], device=pred.device)
        better = (pred > right) | ((pred == right) & (numbers < classes))
        is_class = (classes >= 0) & (classes < pred.shape[1]) & (right == right)
        state += ((better.sum(axis=1) < self.top_k) & is_class[:, 0]).sum()


def _binary(pred: ndarray, threshold: float) -> ndarray:
    """Decisions, a column of truth values: the larger of two scores, or a probability above the threshold."""
    if pred.ndim == 2 and pred.shape[1] == 2:
        return pred.argmax(axis=1).reshape(-1, 1) == 1
    return (pred > threshold).reshape(-1, 1)


@register
class BinaryAccuracy(SumMetric):
    """Fraction of the binary decisions that are right.

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

    def _count(self, label: ndarray, pred: ndarray) -> int:
        if label.size != pred.size:
            raise misfit(label, pred)
        return pred.size

    def _add_to(self, state: ndarray, label: ndarray, pred: ndarray) -> None:
        label, pred = same_size(label, pred)
        state += ((pred > self.threshold) == (label > 0.5)).sum()


def _count_decisions(state: ndarray, truth: ndarray, chosen: ndarray) -> None:
    """Add decisions of shape (samples, classes) to hits, false alarms, misses and right rejections of each class."""
    counts = [(truth & chosen).sum(axis=0), (~truth & chosen).sum(axis=0), (truth & ~chosen).sum(axis=0)]
    counts.append((~truth & ~chosen).sum(axis=0))
    state[:, : truth.shape[1]] += np.stack(counts)


def _ratio(top: Any, bottom: Any) -> Floats:
    """Quotients, 0 where the divisor is 0."""
    top, bottom = onp.asarray(top, onp.float64), onp.asarray(bottom, onp.float64)
    quotients: Floats = onp.divide(top, bottom, out=onp.zeros_like(bottom), where=bottom > 0)
    return quotients


@register
class F1(SumMetric):
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

    def _classes(self, pred: ndarray) -> int:
        if self.class_type == "binary":
            return 1
        return pred.shape[1] if self.class_type == "multiclass" else pred.shape[-1]

    def _start(self, label: ndarray, pred: ndarray) -> tuple[int, ...]:
        return 4, self._classes(pred)

    def _count(self, label: ndarray, pred: ndarray) -> int:
        classes = self._classes(pred)
        if self.class_type == "binary" and pred.ndim == 2 and pred.shape[1] == 2:
            classes = 2
        samples = pred.size // max(classes, 1)
        labels = label.size // max(classes, 1) if self.class_type == "multilabel" else label.size
        if labels != samples or (self.class_type == "multilabel" and label.shape[-1] != classes):
            raise misfit(label, pred)
        return samples

    def _add_to(self, state: ndarray, label: ndarray, pred: ndarray) -> None:
        if self.class_type == "binary":
            truth = label.astype("int64").reshape(-1, 1) == 1
            chosen = _binary(pred, self.threshold)
        elif self.class_type == "multiclass":
            classes = np.arange(pred.shape[1], device=pred.device)
            truth = label.astype("int64").reshape(-1, 1) == classes
            chosen = pred.argmax(axis=1).reshape(-1, 1) == classes
        else:
            chosen = pred.reshape(-1, pred.shape[-1]) > self.threshold
            truth = label.reshape(-1, label.shape[-1]) > 0.5
        _count_decisions(state, truth, chosen)

    def get(self) -> tuple[str, float]:
        """Name and value.

        Returns
        -------
        tuple of str and float
            NaN before the first batch; 0 where nothing was found and nothing was to be found.
        """
        if not self.num_inst:
            return self.name, math.nan
        hit, false, missed, _ = self._total()
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
class MCC(SumMetric):
    """Matthews correlation coefficient of binary decisions, from -1 to 1.

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

    def _start(self, label: ndarray, pred: ndarray) -> tuple[int, ...]:
        return 4, 1

    def _count(self, label: ndarray, pred: ndarray) -> int:
        samples = pred.shape[0] if pred.ndim == 2 and pred.shape[1] == 2 else pred.size
        if label.size != samples:
            raise misfit(label, pred)
        return samples

    def _add_to(self, state: ndarray, label: ndarray, pred: ndarray) -> None:
        _count_decisions(state, label.astype("int64").reshape(-1, 1) == 1, _binary(pred, 0.5))

    def get(self) -> tuple[str, float]:
        """Name and value.

        Returns
        -------
        tuple of str and float
            NaN before the first batch.
        """
        if not self.num_inst:
            return self.name, math.nan
        tp, fp, fn, tn = self._total().sum(axis=1).tolist()
        scale = math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
        return self.name, (tp * tn - fp * fn) / scale if scale else 0.0


@register
class PCC(SumMetric):
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

    # So many class numbers are kept until they are counted; with scores the number of classes is known at once.
    _MAX_KEPT = 1 << 22

    def reset(self) -> None:
        """Forget everything."""
        super().reset()
        self._kept: list[tuple[ndarray, ndarray]] = []
        self._counted_classes: Floats = onp.zeros((0, 0))

    @property
    def sum_metric(self) -> float:
        """Value so far times the number of samples."""
        return self.get()[1] * self.num_inst if self.num_inst else 0.0

    @sum_metric.setter
    def sum_metric(self, value: float) -> None:
        # The base class resets its sum; this metric keeps counts in place of a sum.
        if value != 0:
            raise AttributeError("the sum of a PCC follows from its counts and cannot be set")

    def _take(self, label: ndarray, pred: ndarray) -> None:
        if pred.shape != label.shape:
            super()._take(label, pred)
            return
        self._kept.append((pred.astype("int64").ravel(), label.astype("int64").ravel()))
        self.num_inst += label.size
        if sum(truth.size for _, truth in self._kept) > self._MAX_KEPT:
            self._count_kept()

    def _start(self, label: ndarray, pred: ndarray) -> tuple[int, ...]:
        return pred.shape[1], pred.shape[1]

    def _count(self, label: ndarray, pred: ndarray) -> int:
        if pred.ndim < 2 or pred.size != label.size * pred.shape[1]:
            raise misfit(label, pred)
        return label.size

    def _add_to(self, state: ndarray, label: ndarray, pred: ndarray) -> None:
        chosen, truth = pred.argmax(axis=1).ravel(), label.astype("int64").ravel()
        np.add.at(state, (chosen, truth), 1.0)

    def _count_kept(self) -> None:
        for chosen, truth in ((a.asnumpy(), b.asnumpy()) for a, b in self._kept if a.size):
            size = int(max(truth.max(), chosen.max())) + 1
            found = onp.zeros((size, size))
            onp.add.at(found, (chosen, truth), 1.0)
            self._counted_classes = _sum_of_squares(self._counted_classes, found)
        self._kept.clear()

    def _total(self) -> Floats:
        self._count_kept()
        found = super()._total() if self._states else onp.zeros((0, 0))
        return _sum_of_squares(self._counted_classes, found)

    def get(self) -> tuple[str, float]:
        """Name and value.

        Returns
        -------
        tuple of str and float
            NaN before the first batch.
        """
        matrix = self._total()
        decided, labelled, total = matrix.sum(axis=1), matrix.sum(axis=0), matrix.sum()
        covariance = matrix.trace() * total - decided @ labelled
        scale = math.sqrt((total**2 - decided @ decided) * (total**2 - labelled @ labelled))
        return self.name, float(covariance) / scale if scale else math.nan


def _sum_of_squares(a: Floats, b: Floats) -> Floats:
    """Sum of two square matrices, the smaller one filled up with zeros."""
    size = max(len(a), len(b))
    return onp.pad(a, (0, size - len(a))) + onp.pad(b, (0, size - len(b)))


@alias("ce")
class CrossEntropy(SumMetric):
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

    def _start(self, label: ndarray, pred: ndarray) -> tuple[int, ...]:
        return (1,) if self.ignore_label is None else (2,)

    @property
    def num_inst(self) -> int:
        """How many samples count; reading it waits for the batches if a label is ignored."""
        if vars(self).get("ignore_label") is None or not self._states:
            return self._num
        return self._num + int(self._total()[1])

    @num_inst.setter
    def num_inst(self, value: int) -> None:
        self._num = value

    def _counted(self, count: int) -> None:
        # The state counts where a label is ignored.
        if self.ignore_label is None:
            self._num += count

    def _count(self, label: ndarray, pred: ndarray) -> int:
        if pred.size != label.size * pred.shape[self.axis]:
            raise misfit(label, pred)
        return label.size

    def _add_to(self, state: ndarray, label: ndarray, pred: ndarray) -> None:
        scores = np.moveaxis(pred, self.axis, -1)
        scores = scores.reshape(-1, scores.shape[-1])
        classes = label.astype("int64").ravel()
        counted = None if self.ignore_label is None else classes != self.ignore_label
        at = classes if counted is None else np.where(counted, classes, 0)
        if self.from_logits:
            scores = npx.log_softmax(scores, axis=-1)
        right = np.take_along_axis(scores, at.reshape(-1, 1), axis=1).astype("float64").ravel()
        losses = -right if self.from_logits else -np.log(np.maximum(right, self.eps))
        if counted is None:
            state += losses.sum()
        else:
            state += np.stack([np.where(counted, losses, 0).sum(), counted.sum()])


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
