"""Metrics of predicted numbers and vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as onp

from mxnet import autograd
from mxnet import numpy as np
from mxnet.gluon.metric._sums import SumMetric, misfit, on_device, same_size
from mxnet.gluon.metric.base import Floats, alias, register
from mxnet.numpy import ndarray

__all__ = [
    "Loss",
    "MAE",
    "MSE",
    "MeanCosineSimilarity",
    "MeanPairwiseDistance",
    "PearsonCorrelation",
    "RMSE",
]


@register
class Loss(SumMetric):
    """Mean of losses; labels are not used.

    Parameters
    ----------
    name : str
    output_names, label_names : sequence of str, optional

    Examples
    --------
    >>> metric = mx.gluon.metric.Loss()
    >>> metric.update(None, np.array([1.0, 3.0]))
    >>> metric.get()
    ('loss', 2.0)
    """

    def __init__(
        self,
        name: str = "loss",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(name, output_names, label_names)

    def update(self, _: Any, preds: Any) -> None:
        """Take in losses.

        Parameters
        ----------
        _ : object
            Labels; not looked at.
        preds : ndarray or list of ndarray
            Losses.
        """
        losses = preds if isinstance(preds, list | tuple) else [preds]
        super().update(losses, losses)

    def _count(self, label: ndarray, pred: ndarray) -> int:
        return pred.size

    def _add_to(self, state: ndarray, label: ndarray, pred: ndarray) -> None:
        state += pred.astype("float64").sum()


@register
class MAE(SumMetric):
    """Mean absolute error.

    Parameters
    ----------
    name : str
    output_names, label_names : sequence of str, optional

    Examples
    --------
    >>> metric = mx.gluon.metric.MAE()
    >>> metric.update(np.array([1.0]), np.array([3.0]))
    >>> metric.get()
    ('mae', 2.0)
    """

    def __init__(
        self,
        name: str = "mae",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(name, output_names, label_names)

    def _count(self, label: ndarray, pred: ndarray) -> int:
        if label.size != pred.size:
            raise misfit(label, pred)
        return pred.size

    def _add_to(self, state: ndarray, label: ndarray, pred: ndarray) -> None:
        left, right = same_size(label, pred)
        state += np.abs(left - right).sum()


@register
class MSE(SumMetric):
    """Mean squared error.

    Parameters
    ----------
    name : str
    output_names, label_names : sequence of str, optional

    Examples
    --------
    >>> metric = mx.gluon.metric.MSE()
    >>> metric.update(np.array([1.0]), np.array([3.0]))
    >>> metric.get()
    ('mse', 4.0)
    """

    def __init__(
        self,
        name: str = "mse",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(name, output_names, label_names)

    def _count(self, label: ndarray, pred: ndarray) -> int:
        if label.size != pred.size:
            raise misfit(label, pred)
        return pred.size

    def _add_to(self, state: ndarray, label: ndarray, pred: ndarray) -> None:
        left, right = same_size(label, pred)
        state += np.square(left - right).sum()


@register
class RMSE(MSE):
    """Root of the mean squared error.

    Parameters
    ----------
    name : str
    output_names, label_names : sequence of str, optional

    Examples
    --------
    >>> metric = mx.gluon.metric.RMSE()
    >>> metric.update(np.array([1.0, 1.0]), np.array([3.0, 3.0]))
    >>> metric.get()
    ('rmse', 2.0)
    """

    def __init__(
        self,
        name: str = "rmse",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(name, output_names, label_names)

    def get(self) -> tuple[str, float]:
        """Name and value.

        Returns
        -------
        tuple of str and float
            NaN before the first batch.
        """
        name, value = super().get()
        return name, math.sqrt(value)


@register
class MeanPairwiseDistance(SumMetric):
    """Mean distance between the rows of labels and predictions.

    Parameters
    ----------
    name : str
    output_names, label_names : sequence of str, optional
    p : float
        Which norm.

    Examples
    --------
    >>> metric = mx.gluon.metric.MeanPairwiseDistance()
    >>> metric.update(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]]))
    >>> round(metric.get()[1], 3)
    5.0
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

    def _count(self, label: ndarray, pred: ndarray) -> int:
        if label.size != pred.size:
            raise misfit(label, pred)
        return pred.shape[0]

    def _add_to(self, state: ndarray, label: ndarray, pred: ndarray) -> None:
        left, right = same_size(label, pred)
        apart = np.abs(left - right).reshape(left.shape[0], -1)
        state += ((apart**self.p).sum(axis=-1) ** (1.0 / self.p)).sum()


@register
class MeanCosineSimilarity(SumMetric):
    """Mean cosine of the angle between vectors along the last axis.

    Parameters
    ----------
    name : str
    output_names, label_names : sequence of str, optional
    eps : float
        Smallest product of lengths that is divided by.

    Examples
    --------
    >>> metric = mx.gluon.metric.MeanCosineSimilarity()
    >>> metric.update(np.array([[1.0, 0.0]]), np.array([[2.0, 0.0]]))
    >>> round(metric.get()[1], 3)
    1.0
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

    def _count(self, label: ndarray, pred: ndarray) -> int:
        if label.size != pred.size:
            raise misfit(label, pred)
        return math.prod(pred.shape[:-1])

    def _add_to(self, state: ndarray, label: ndarray, pred: ndarray) -> None:
        left, right = same_size(label, pred)
        lengths = np.sqrt(np.square(left).sum(axis=-1) * np.square(right).sum(axis=-1))
        state += ((left * right).sum(axis=-1) / np.maximum(lengths, self.eps)).sum()


@alias("pearsonr")
class PearsonCorrelation(SumMetric):
    """Linear correlation of labels and predictions, from -1 to 1.

    Parameters
    ----------
    name : str
    output_names, label_names : sequence of str, optional

    Notes
    -----
    Means and co-moments are merged batch by batch. Source: T. F. Chan, G. H. Golub and R. J. LeVeque, "Updating
    Formulae and a Pairwise Algorithm for Computing Sample Variances", 1979.

    Examples
    --------
    >>> metric = mx.gluon.metric.PearsonCorrelation()
    >>> metric.update(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 6.0]))
    >>> round(metric.get()[1], 3)
    1.0
    """

    def __init__(
        self,
        name: str = "pearsonr",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(name, output_names, label_names)

    def _start(self, label: ndarray, pred: ndarray) -> tuple[int, ...]:
        # How many, both means, both sums of squared deviations, the sum of products of deviations.
        return (6,)

    def _count(self, label: ndarray, pred: ndarray) -> int:
        if label.size != pred.size:
            raise misfit(label, pred)
        return pred.size

    def _add_to(self, state: ndarray, label: ndarray, pred: ndarray) -> None:
        left, right = (values.ravel() for values in same_size(label, pred))
        if not left.size:
            return
        means = left.mean(), right.mean()
        apart = left - means[0], right - means[1]
        squares = np.square(apart[0]).sum(), np.square(apart[1]).sum()
        batch = np.stack(
            [
                np.array(float(left.size), dtype="float64", device=left.device),
                *means,
                *squares,
                (apart[0] * apart[1]).sum(),
            ]
        )
        state[:] = _merged(state, batch)

    def _total(self) -> Floats:
        total: Floats = onp.zeros(6)
        for state in self._states.values():
            found = state.asnumpy()
            total = onp.stack(_parts_merged(total, found)) if total[0] else found
        return total

    def update_variance(self, new_values: Any, *aggregate: float) -> tuple[int, float, float]:
        """Merge a batch into the count, the mean and the sum of squared deviations of what was seen before.

        Parameters
        ----------
        new_values : array_like
        *aggregate : int, float, float
            Count, mean, sum of squared deviations.

        Returns
        -------
        tuple of int, float, float
            The three numbers of all values.
        """
        count, mean, squares = aggregate
        values = onp.asarray(new_values, onp.float64).ravel()
        if not values.size:
            return int(count), float(mean), float(squares)
        total = int(count) + values.size
        shift = float(values.mean()) - mean
        within = float(onp.square(values - values.mean()).sum())
        return total, mean + shift * (values.size / total), squares + within + shift**2 * (count * values.size / total)

    def update_cov(self, label: Any, pred: Any) -> None:
        """Add a batch to the covariance; the means, variances and the count remain those before it.

        Parameters
        ----------
        label, pred : array_like, same size
        """
        with autograd.pause():
            labels, preds = on_device(onp.asarray(label)), on_device(onp.asarray(pred))
            left, right = (values.ravel() for values in same_size(labels, preds))
            state = self._state(labels, preds)
            shift = (left.mean() - state[1]) * (right.mean() - state[2])
            within = ((left - left.mean()) * (right - right.mean())).sum()
            state[5] += within + shift * (state[0] * left.size / (state[0] + left.size))

    def get(self) -> tuple[str, float]:
        """Name and value; waits for the batches that were taken in.

        Returns
        -------
        tuple of str and float
            NaN before the first batch, or if labels or predictions are all equal.
        """
        _, _, _, left, right, both = self._total() if self._states else onp.zeros(6)
        scale = math.sqrt(left * right)
        return self.name, float(both) / scale if scale else math.nan


def _parts_merged(a: Any, b: Any) -> list[Any]:
    """Count, means and moments of two groups together; the second one is not empty."""
    count = a[0] + b[0]
    part, weight = b[0] / count, a[0] * b[0] / count
    shift, other = b[1] - a[1], b[2] - a[2]
    return [
        count,
        a[1] + shift * part,
        a[2] + other * part,
        a[3] + b[3] + shift * shift * weight,
        a[4] + b[4] + other * other * weight,
        a[5] + b[5] + shift * other * weight,
    ]


def _merged(a: ndarray, b: ndarray) -> ndarray:
    merged: ndarray = np.stack(_parts_merged(a, b))
    return merged
