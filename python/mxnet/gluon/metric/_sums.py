"""Metrics whose sums stay on the device: adding a batch does not wait for it."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as onp

from mxnet import _core, autograd
from mxnet import numpy as np
from mxnet._jit import BoundCall, Compiled, at_each_call
from mxnet.gluon.metric.base import EvalMetric, Floats
from mxnet.numpy import ndarray

__all__ = ["SumMetric", "misfit", "on_device", "same_size"]


def on_device(values: Any) -> ndarray:
    """An array of this library: itself, or a copy of a host array in its dtype."""
    if isinstance(values, ndarray):
        return values
    return np.array(values, dtype=values.dtype if isinstance(values, onp.ndarray) else None)


def misfit(label: ndarray, pred: ndarray) -> ValueError:
    """The error for labels that do not fit the predictions."""
    return ValueError(f"labels of shape {label.shape} do not fit predictions of shape {pred.shape}")


def same_size(label: ndarray, pred: ndarray) -> tuple[ndarray, ndarray]:
    """Labels (in the predictions' shape) and predictions as float64; ValueError if the sizes differ."""
    if label.size != pred.size:
        raise misfit(label, pred)
    return label.astype("float64").reshape(pred.shape), pred.astype("float64")


def _grown(state: ndarray | None, shape: tuple[int, ...], device: Any) -> ndarray:
    """The state enlarged with zeros."""
    old = (0,) * len(shape) if state is None else state.shape
    grown = np.zeros(tuple(map(max, old, shape)), dtype="float64", device=device)
    if state is not None:
        grown[tuple(slice(size) for size in old)] = state
    return grown


class SumMetric(EvalMetric):
    """Base class of metrics that keep sums in float64 on the devices of the predictions.

    A subclass defines `_add_to`, which is compiled, `_count`, and `_start` if its state is more than one number.
    """

    # The compiled function that adds a batch.
    _compiled: Compiled | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_compiled"}

    def reset(self) -> None:
        """Forget all batches."""
        # The state of each device; `_set_sum` is a sum that was set from outside.
        self._states: dict[str, ndarray] = {}
        self._set_sum = 0.0
        self.num_inst = 0

    def update(self, labels: Any, preds: Any) -> None:
        """Take in a batch, without waiting for its values.

        Parameters
        ----------
        labels, preds : ndarray or list of ndarray
            One array of labels for each array of predictions.

        Raises
        ------
        ValueError
            If numbers or shapes do not fit.
        """
        left: Sequence[Any] = labels if isinstance(labels, list | tuple) else [labels]
        right: Sequence[Any] = preds if isinstance(preds, list | tuple) else [preds]
        if len(left) != len(right):
            raise ValueError(f"{len(left)} arrays of labels for {len(right)} arrays of predictions")
        with autograd.pause():
            for label, pred in zip(left, right, strict=True):
                self._take(on_device(label), on_device(pred))

    def _take(self, label: ndarray, pred: ndarray) -> None:
        if label.device != pred.device:
            label = np.array(label, dtype=label.dtype, device=pred.device)
        count = self._count(label, pred)
        state = self._state(label, pred)
        if self._compiled is None:
            self._compiled = Compiled(BoundCall(type(self)._add_to, self, self._add_to))
        self._compiled(state, label, pred)
        at_each_call(functools.partial(self._counted, count))

    def _counted(self, count: int) -> None:
        self.num_inst += count

    def _state(self, label: ndarray, pred: ndarray) -> ndarray:
        """The state on the device of `pred`, with the shape that this batch needs."""
        device, shape = str(pred.device), self._start(label, pred)
        state = self._states.get(device)
        if state is None or any(a < b for a, b in zip(state.shape, shape, strict=True)):
            # The state must be an array that outlives the trace.
            state = self._states[device] = _core.outside_trace(functools.partial(_grown, state, shape, pred.device))
        return state

    def _start(self, label: ndarray, pred: ndarray) -> tuple[int, ...]:
        """Initial shape of the state, which later batches may enlarge."""
        return (1,)

    def _count(self, label: ndarray, pred: ndarray) -> int:
        """Number of instances in a batch; ValueError if its shapes do not fit."""
        raise NotImplementedError(f"{type(self).__name__} does not define _count")

    def _add_to(self, state: ndarray, label: ndarray, pred: ndarray) -> None:
        """Add a batch to the state in place."""
        raise NotImplementedError(f"{type(self).__name__} does not define _add_to")

    def _total(self) -> Floats:
        """The sum of all states, on the host."""
        found = [state.asnumpy() for state in self._states.values()]
        if not found:
            return onp.zeros(1)
        total = onp.zeros([max(sizes) for sizes in zip(*(part.shape for part in found), strict=True)])
        for part in found:
            total[tuple(slice(size) for size in part.shape)] += part
        return total

    @property
    def sum_metric(self) -> float:
        """The sum; waits for the batches added so far."""
        return float(self._total().flat[0]) + self._set_sum

    @sum_metric.setter
    def sum_metric(self, value: float) -> None:
        self._set_sum = 0.0
        self._set_sum = float(value) - (self.sum_metric if vars(self).get("_states") else 0.0)

    def get(self) -> tuple[Any, Any]:
        """Name and value; waits for the batches that were taken in.

        Returns
        -------
        tuple of str and float
            NaN before the first batch.
        """
        count = self.num_inst
        return self.name, self.sum_metric / count if count else math.nan
