"""The base class of metrics, their registry, and metrics composed of others."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as onp
from numpy.typing import NDArray

from mxnet import registry
from mxnet._argument_repr import argument_repr

__all__ = [
    "CompositeEvalMetric",
    "CustomMetric",
    "EvalMetric",
    "Floats",
    "alias",
    "create",
    "host",
    "np",
    "pairs",
    "register",
]

Floats = NDArray[onp.float64]

_Class = TypeVar("_Class", bound="type[EvalMetric]")


def host(array: Any) -> NDArray[Any]:
    """The values in host memory, without change of dtype."""
    values = array.asnumpy() if hasattr(array, "asnumpy") else array
    return onp.asarray(values)


def pairs(labels: Any, preds: Any) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """Labels with their predictions, in host memory."""
    left = list(labels) if isinstance(labels, list | tuple) else [labels]
    right = list(preds) if isinstance(preds, list | tuple) else [preds]
    if len(left) != len(right):
        raise ValueError(f"{len(left)} arrays of labels for {len(right)} arrays of predictions")
    return [(host(label), host(pred)) for label, pred in zip(left, right, strict=True)]


class EvalMetric:
    """Base class: a sum and a number of instances, whose ratio is the value.

    Parameters
    ----------
    name : str
    output_names, label_names : sequence of str, optional
        Which entries `update_dict` uses; all by default.
    **kwargs
        What else `get_config` reports.

    Examples
    --------
    >>> metric = mx.gluon.metric.create('mae')
    >>> metric.update(np.array([1.0]), np.array([3.0]))
    >>> metric.get()
    ('mae', 2.0)
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

    def __repr__(self) -> str:
        return argument_repr(self)

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
        NotImplementedError
            Always: subclasses define it.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define update")

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
        if not self.num_inst:
            return self.name, math.nan
        # A subclass may add up arrays.
        value: Any = self.sum_metric / self.num_inst
        return self.name, value.item() if hasattr(value, "item") else value

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


_register = registry.get_register_func(EvalMetric, "metric")
_create = registry.get_create_func(EvalMetric, "metric")


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
    _register(klass)
    return klass


def alias(*names: str) -> Callable[[_Class], _Class]:
    """Class decorator: as `register`, under further names."""
    further = registry.get_alias_func(EvalMetric, "metric")(*names)

    def add(klass: _Class) -> _Class:
        further(klass)
        return register(klass)

    return add


def create(metric: Any, *args: Any, **kwargs: Any) -> EvalMetric:
    """Make a metric.

    Parameters
    ----------
    metric : str, EvalMetric, dict, callable or list of these
        A name; a metric (returned as it is); a function of labels and predictions; several for a
        `CompositeEvalMetric`; or a mapping with the name under ``"metric"`` and the arguments, as
        `EvalMetric.get_config` returns it. A string may be JSON of such a mapping, or
        ``["name", {"argument": value}]``.
    *args, **kwargs
        Arguments of the class.

    Returns
    -------
    EvalMetric

    Raises
    ------
    ValueError
        If there is no metric of that name, or JSON of another form.
    TypeError
        If `metric` is something else, or has all arguments already and others are given.

    Examples
    --------
    >>> from mxnet.gluon import metric
    >>> metric.create("acc").get()[0]
    'accuracy'
    >>> metric.create('["topkaccuracy", {"top_k": 3}]').get()[0]
    'top_k_accuracy_3'
    >>> import json
    >>> metric.create(json.dumps(metric.F1(threshold=0.3).get_config()))
    F1(threshold=0.3)
    """
    if isinstance(metric, list):
        composite = CompositeEvalMetric()
        for part in metric:
            composite.add(create(part, *args, **kwargs))
        return composite
    if callable(metric) and not isinstance(metric, EvalMetric):
        return CustomMetric(metric, *args, **kwargs)
    made: EvalMetric = _create(metric, *args, **kwargs)
    return made


@alias("composite")
class CompositeEvalMetric(EvalMetric):
    """Several metrics at once.

    Parameters
    ----------
    metrics : list of EvalMetric or str, optional
    name : str
    output_names, label_names : sequence of str, optional

    Examples
    --------
    >>> metric = mx.gluon.metric.CompositeEvalMetric([mx.gluon.metric.MAE(), mx.gluon.metric.MSE()])
    >>> metric.update(np.array([1.0]), np.array([3.0]))
    >>> metric.get()
    (['mae', 'mse'], [2.0, 4.0])
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

    def update_dict(self, labels: Mapping[str, Any], preds: Mapping[str, Any]) -> None:
        """Take in a batch given by names.

        Parameters
        ----------
        labels, preds : mapping of str to ndarray
        """
        if self.label_names is not None:
            labels = {name: labels[name] for name in self.label_names}
        if self.output_names is not None:
            preds = {name: preds[name] for name in self.output_names}
        for metric in self.metrics:
            metric.update_dict(labels, preds)

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


@register
class CustomMetric(EvalMetric):
    """Mean of a function of labels and predictions, which are read for it: this metric waits for each batch.

    Parameters
    ----------
    feval : callable of (label, pred)
        Gets NumPy arrays; returns a number, or a sum and the number of instances in it.
    name : str, optional
        The function's name by default.
    allow_extra_outputs : bool
        Let there be more predictions than labels; the last ones are not looked at.
    output_names, label_names : sequence of str, optional

    Examples
    --------
    >>> metric = mx.gluon.metric.CustomMetric(lambda label, prediction: abs(label - prediction).max())
    >>> metric.update(np.array([1.0, 2.0]), np.array([1.5, 5.0]))
    >>> float(metric.get()[1])
    3.0
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
        for label, pred in pairs(labels, preds):
            found = self._feval(label, pred)
            total, count = found if isinstance(found, tuple) else (found, 1)
            self.sum_metric += float(total)
            self.num_inst += int(count)


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
