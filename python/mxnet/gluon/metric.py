"""Metrics: running averages of how good predictions are.

Sums are kept in float64 on the host; `update` waits for the arrays it gets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as onp
from numpy.typing import NDArray

__all__ = [
    "F1",
    "MAE",
    "MCC",
    "MSE",
    "RMSE",
    "Accuracy",
    "BinaryAccuracy",
    "CompositeEvalMetric",
    "CrossEntropy",
    "CustomMetric",
    "EvalMetric",
    "Fbeta",
    "Loss",
    "MeanCosineSimilarity",
    "MeanPairwiseDistance",
    "PearsonCorrelation",
    "Perplexity",
    "TopKAccuracy",
    "create",
    "np",
    "register",
]

Floats = NDArray[onp.float64]

_REGISTRY: dict[str, type[EvalMetric]] = {}
_Class = TypeVar("_Class", bound="type[EvalMetric]")


def register(klass: _Class) -> _Class:
    """Class decorator that makes a metric known to `create` under its name in lower case.

    Parameters
    ----------
    klass : subclass of EvalMetric

    Returns
    -------
    class
        `klass`.
    """
    _REGISTRY[klass.__name__.lower()] = klass
    return klass


def _alias(*names: str) -> Callable[[_Class], _Class]:
    def add(klass: _Class) -> _Class:
        for name in names:
            _REGISTRY[name] = klass
        return register(klass)

    return add


def _host(array: Any) -> NDArray[Any]:
    """The values in host memory, without change of dtype."""
    values = array.asnumpy() if hasattr(array, "asnumpy") else array
    return onp.asarray(values)


def _pairs(labels: Any, preds: Any) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """Labels with their predictions, in host memory."""
    left = list(labels) if isinstance(labels, list | tuple) else [labels]
    right = list(preds) if isinstance(preds, list | tuple) else [preds]
    if len(left) != len(right):
        raise ValueError(f"{len(left)} arrays of labels for {len(right)} arrays of predictions")
    return [(_host(label), _host(pred)) for label, pred in zip(left, right, strict=True)]


def _same_size(label: NDArray[Any], pred: NDArray[Any]) -> tuple[Floats, Floats]:
    if label.size != pred.size:
        raise ValueError(f"labels of shape {label.shape} do not fit predictions of shape {pred.shape}")
    return label.astype(onp.float64).reshape(pred.shape), pred.astype(onp.float64)


class EvalMetric:
    """Base class: a sum and a number of instances, whose ratio is the value.

    Parameters
    ----------
    name : str
    output_names, label_names : sequence of str, optional
        Which entries `update_dict` uses; all by default.
    **kwargs
        What else `get_config` reports.
    """

    def __init__(
        self,
        name: str,
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        self.name = str(name)
        self.output_names = output_names
        self.label_names = label_names
        self._kwargs = kwargs
        self.num_inst = 0
        self.sum_metric = 0.0
        self.reset()

    def __str__(self) -> str:
        return f"EvalMetric: {dict(self.get_name_value())}"

    def get_config(self) -> dict[str, Any]:
        """Name and arguments, enough to make the metric again.

        Returns
        -------
        dict
        """
        return {
            **self._kwargs,
            "metric": type(self).__name__,
            "name": self.name,
            "output_names": self.output_names,
            "label_names": self.label_names,
        }

    def update_dict(self, label: Mapping[str, Any], pred: Mapping[str, Any]) -> None:
        """Take in a batch given by names.

        Parameters
        ----------
        label, pred : mapping of str to ndarray
        """
        labels = list(label.values()) if self.label_names is None else [label[name] for name in self.label_names]
        preds = list(pred.values()) if self.output_names is None else [pred[name] for name in self.output_names]
        self.update(labels, preds)

    def update(self, labels: Any, preds: Any) -> None:
        """Take in a batch.

        Parameters
        ----------
        labels, preds : ndarray or list of ndarray
            One array of labels for each array of predictions.

        Raises
        ------
        ValueError
            If numbers or shapes do not fit.
        """
        for label, pred in _pairs(labels, preds):
            self._take(label, pred)

    def _take(self, label: NDArray[Any], pred: NDArray[Any]) -> None:
        raise NotImplementedError(f"{type(self).__name__} defines neither _take nor update")

    def _add(self, total: float, count: int) -> None:
        self.sum_metric += float(total)
        self.num_inst += int(count)

    def reset(self) -> None:
        """Forget everything."""
        self.num_inst = 0
        self.sum_metric = 0.0

    def get(self) -> tuple[Any, Any]:
        """Name and value.

        Returns
        -------
        tuple of str and float
            NaN before the first batch.
        """
        return self.name, self.sum_metric / self.num_inst if self.num_inst else math.nan

    def get_name_value(self) -> list[tuple[str, float]]:
        """Names and values, as a list also where there are several.

        Returns
        -------
        list of (str, float)
        """
        name, value = self.get()
        if isinstance(name, list):
            return list(zip(name, value, strict=True))
        return [(name, value)]


def create(metric: Any, *args: Any, **kwargs: Any) -> EvalMetric:
    """Make a metric.

    Parameters
    ----------
    metric : str, EvalMetric, callable or list of these
        A name, a metric (returned as it is), a function of labels and predictions, or several for a
        `CompositeEvalMetric`.
    *args, **kwargs
        Arguments of the class.

    Returns
    -------
    EvalMetric

    Raises
    ------
    ValueError
        If there is no metric of that name.

    Examples
    --------
    >>> from mxnet.gluon import metric
    >>> metric.create("acc").get()[0]
    'accuracy'
    """
    if isinstance(metric, EvalMetric):
        return metric
    if isinstance(metric, list):
        composite = CompositeEvalMetric()
        for part in metric:
            composite.add(create(part, *args, **kwargs))
        return composite
    if isinstance(metric, str):
        klass = _REGISTRY.get(metric.lower())
        if klass is None:
            raise ValueError(f"no metric {metric!r}; known are {', '.join(sorted(_REGISTRY))}")
        return klass(*args, **kwargs)
    if callable(metric):
        return CustomMetric(metric, *args, **kwargs)
    raise ValueError(f"`metric` must be a name, a metric, a function or a list of these, found {metric!r}")


@_alias("composite")
class CompositeEvalMetric(EvalMetric):
    """Several metrics at once.

    Parameters
    ----------
    metrics : list of EvalMetric or str, optional
    name : str
    output_names, label_names : sequence of str, optional
    """

    def __init__(
        self,
        metrics: Sequence[Any] | None = None,
        name: str = "composite",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        self.metrics = [create(metric) for metric in metrics or []]
        super().__init__(name, output_names, label_names)

    def add(self, metric: Any) -> None:
        """Add a metric.

        Parameters
        ----------
        metric : EvalMetric or str
        """
        self.metrics.append(create(metric))

    def get_metric(self, index: int) -> EvalMetric:
        """The metric at a place.

        Parameters
        ----------
        index : int

        Returns
        -------
        EvalMetric

        Raises
        ------
        IndexError
            If there is none.
        """
        if not 0 <= index < len(self.metrics):
            raise IndexError(f"there are {len(self.metrics)} metrics, so no number {index}")
        return self.metrics[index]

    def update_dict(self, label: Mapping[str, Any], pred: Mapping[str, Any]) -> None:
        """Take in a batch given by names.

        Parameters
        ----------
        label, pred : mapping of str to ndarray
        """
        if self.label_names is not None:
            label = {name: label[name] for name in self.label_names}
        if self.output_names is not None:
            pred = {name: pred[name] for name in self.output_names}
        for metric in self.metrics:
            metric.update_dict(label, pred)

    def update(self, labels: Any, preds: Any) -> None:
        """Take in a batch with every metric.

        Parameters
        ----------
        labels, preds : ndarray or list of ndarray
        """
        for metric in self.metrics:
            metric.update(labels, preds)

    def reset(self) -> None:
        """Forget everything."""
        for metric in self.metrics:
            metric.reset()

    def get(self) -> tuple[list[str], list[float]]:
        """Names and values.

        Returns
        -------
        tuple of list of str and list of float
        """
        pairs = [pair for metric in self.metrics for pair in metric.get_name_value()]
        return [name for name, _ in pairs], [value for _, value in pairs]

    def get_config(self) -> dict[str, Any]:
        """Configurations of all metrics.

        Returns
        -------
        dict
        """
        return {**super().get_config(), "metrics": [metric.get_config() for metric in self.metrics]}


@_alias("acc")
class Accuracy(EvalMetric):
    """Part of the predictions that hit the right class.

    Parameters
    ----------
    axis : int
        Axis of the classes in predictions that are scores.
    name : str
    output_names, label_names : sequence of str, optional
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


@_alias("top_k_accuracy", "top_k_acc")
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
        return pred.argmax(axis=1).astype(onp.int64)
    return (pred > threshold).astype(onp.int64).ravel()


@register
class BinaryAccuracy(EvalMetric):
    """Part of the yes/no predictions that are right.

    Parameters
    ----------
    name : str
    output_names, label_names : sequence of str, optional
    threshold : float
        Predictions above it mean 1.
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
        label, pred = _same_size(label, pred)
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
    return onp.divide(top, bottom, out=onp.zeros_like(bottom), where=bottom > 0)


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


class _Named(EvalMetric):
    """A metric whose constructor takes names only."""

    _default_name = ""

    def __init__(
        self,
        name: str | None = None,
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(self._default_name if name is None else name, output_names, label_names)


@register
class MAE(_Named):
    """Mean absolute error.

    Parameters
    ----------
    name : str, optional
        ``"mae"`` by default.
    output_names, label_names : sequence of str, optional
    """

    _default_name = "mae"

    def _take(self, label: NDArray[Any], pred: NDArray[Any]) -> None:
        left, right = _same_size(label, pred)
        self._add(onp.abs(left - right).sum(), right.size)


@register
class MSE(_Named):
    """Mean squared error.

    Parameters
    ----------
    name : str, optional
        ``"mse"`` by default.
    output_names, label_names : sequence of str, optional
    """

    _default_name = "mse"

    def _take(self, label: NDArray[Any], pred: NDArray[Any]) -> None:
        left, right = _same_size(label, pred)
        self._add(((left - right) ** 2).sum(), right.size)


@register
class RMSE(MSE):
    """Root of the mean squared error.

    Parameters
    ----------
    name : str, optional
        ``"rmse"`` by default.
    output_names, label_names : sequence of str, optional
    """

    _default_name = "rmse"

    def get(self) -> tuple[str, float]:
        """Name and value.

        Returns
        -------
        tuple of str and float
            NaN before the first batch.
        """
        name, value = super().get()
        return name, math.sqrt(value)


@_alias("ce")
class CrossEntropy(EvalMetric):
    """Mean negative logarithm of the right class's probability.

    Parameters
    ----------
    eps : float
        Added to probabilities.
    ignore_label : int, optional
        Samples of this class do not count.
    axis : int
        Axis of the classes.
    from_logits : bool
        Predictions are logits and not probabilities.
    name : str
    output_names, label_names : sequence of str, optional
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
            losses = -onp.log(right + self.eps)
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


@register
class MeanPairwiseDistance(EvalMetric):
    """Mean distance between the rows of labels and predictions.

    Parameters
    ----------
    name : str
    output_names, label_names : sequence of str, optional
    p : float
        Which norm.
    """

    def __init__(
        self,
        name: str = "mpd",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
        p: float = 2,
    ) -> None:
        super().__init__(name, output_names, label_names, p=p)
        self.p = p

    def _take(self, label: NDArray[Any], pred: NDArray[Any]) -> None:
        left, right = _same_size(label, pred)
        left, right = left.reshape(left.shape[0], -1), right.reshape(right.shape[0], -1)
        distances = (onp.abs(left - right) ** self.p).sum(axis=-1) ** (1.0 / self.p)
        self._add(distances.sum(), distances.size)


@register
class MeanCosineSimilarity(EvalMetric):
    """Mean cosine of the angle between vectors along the last axis.

    Parameters
    ----------
    name : str
    output_names, label_names : sequence of str, optional
    eps : float
        Smallest product of lengths that is divided by.
    """

    def __init__(
        self,
        name: str = "cos_sim",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
        eps: float = 1e-8,
    ) -> None:
        super().__init__(name, output_names, label_names, eps=eps)
        self.eps = eps

    def _take(self, label: NDArray[Any], pred: NDArray[Any]) -> None:
        left, right = _same_size(label, pred)
        lengths = onp.linalg.norm(left, axis=-1) * onp.linalg.norm(right, axis=-1)
        cosines = (left * right).sum(axis=-1) / onp.maximum(lengths, self.eps)
        self._add(cosines.sum(), cosines.size)


@_alias("pearsonr")
class PearsonCorrelation(EvalMetric):
    """Linear correlation of labels and predictions, from -1 to 1.

    Parameters
    ----------
    name : str
    output_names, label_names : sequence of str, optional

    Notes
    -----
    Means and co-moments are merged batch by batch. Source: T. F. Chan, G. H. Golub and R. J. LeVeque, "Updating
    Formulae and a Pairwise Algorithm for Computing Sample Variances", 1979.
    """

    def __init__(
        self,
        name: str = "pearsonr",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(name, output_names, label_names)

    def reset(self) -> None:
        """Forget everything."""
        super().reset()
        self._mean: Floats = onp.zeros(2)
        self._moments: Floats = onp.zeros((2, 2))

    def _take(self, label: NDArray[Any], pred: NDArray[Any]) -> None:
        left, right = _same_size(label, pred)
        values = onp.stack([left.ravel(), right.ravel()])
        count = values.shape[1]
        if not count:
            return
        mean = values.mean(axis=1)
        centred = values - mean[:, None]
        shift = mean - self._mean
        total = self.num_inst + count
        self._moments += centred @ centred.T + onp.outer(shift, shift) * (self.num_inst * count / total)
        self._mean += shift * (count / total)
        self.num_inst = total

    def get(self) -> tuple[str, float]:
        """Name and value.

        Returns
        -------
        tuple of str and float
            NaN before the first batch, or if labels or predictions are all equal.
        """
        scale = math.sqrt(self._moments[0, 0] * self._moments[1, 1])
        return self.name, float(self._moments[0, 1]) / scale if scale else math.nan


@register
class Loss(_Named):
    """Mean of losses; labels are not used.

    Parameters
    ----------
    name : str, optional
        ``"loss"`` by default.
    output_names, label_names : sequence of str, optional
    """

    _default_name = "loss"

    def update(self, labels: Any, preds: Any) -> None:
        """Take in losses.

        Parameters
        ----------
        labels : object
            Not looked at.
        preds : ndarray or list of ndarray
            Losses.
        """
        del labels
        for pred in preds if isinstance(preds, list | tuple) else [preds]:
            values = _host(pred)
            self._add(values.astype(onp.float64).sum(), values.size)


@register
class CustomMetric(EvalMetric):
    """Mean of a function of labels and predictions.

    Parameters
    ----------
    feval : callable of (label, pred)
        Gets NumPy arrays; returns a number, or a sum and the number of instances in it.
    name : str, optional
        The function's name by default.
    allow_extra_outputs : bool
        Let there be more predictions than labels; the last ones are not looked at.
    output_names, label_names : sequence of str, optional
    """

    def __init__(
        self,
        feval: Callable[[NDArray[Any], NDArray[Any]], float | tuple[float, int]],
        name: str | None = None,
        allow_extra_outputs: bool = False,
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        if name is None:
            name = getattr(feval, "__name__", type(feval).__name__)
            if name.startswith("<"):
                name = f"custom({name})"
        super().__init__(name, output_names, label_names, allow_extra_outputs=allow_extra_outputs)
        self._feval = feval
        self._allow_extra_outputs = allow_extra_outputs

    def update(self, labels: Any, preds: Any) -> None:
        """Take in a batch.

        Parameters
        ----------
        labels, preds : ndarray or list of ndarray

        Raises
        ------
        ValueError
            If the numbers differ and `allow_extra_outputs` does not apply.
        """
        if self._allow_extra_outputs and isinstance(labels, list | tuple) and isinstance(preds, list | tuple):
            preds = preds[: len(labels)]
        super().update(labels, preds)

    def _take(self, label: NDArray[Any], pred: NDArray[Any]) -> None:
        found = self._feval(label, pred)
        if isinstance(found, tuple):
            self._add(found[0], found[1])
        else:
            self._add(found, 1)


def np(
    numpy_feval: Callable[[NDArray[Any], NDArray[Any]], float | tuple[float, int]],
    name: str | None = None,
    allow_extra_outputs: bool = False,
) -> CustomMetric:
    """Make a metric of a function of NumPy arrays; usable as a decorator.

    Parameters
    ----------
    numpy_feval : callable of (label, pred)
    name : str, optional
        The function's name by default.
    allow_extra_outputs : bool
        See `CustomMetric`.

    Returns
    -------
    CustomMetric
    """
    return CustomMetric(numpy_feval, name, allow_extra_outputs)
