"""Metrics of predicted numbers and vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as onp
from numpy.typing import NDArray

from mxnet.gluon.metric.base import EvalMetric, Floats, alias, register, same_size

__all__ = [
    "MAE",
    "MSE",
    "MeanCosineSimilarity",
    "MeanPairwiseDistance",
    "PearsonCorrelation",
    "RMSE",
]


@register
class MAE(EvalMetric):
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

    def _take(self, label: NDArray[Any], pred: NDArray[Any]) -> None:
        left, right = same_size(label, pred)
        self._add(onp.abs(left - right).sum(), right.size)


@register
class MSE(EvalMetric):
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

    def _take(self, label: NDArray[Any], pred: NDArray[Any]) -> None:
        left, right = same_size(label, pred)
        self._add(((left - right) ** 2).sum(), right.size)


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
class MeanPairwiseDistance(EvalMetric):
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

    def _take(self, label: NDArray[Any], pred: NDArray[Any]) -> None:
        left, right = same_size(label, pred)
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

    def _take(self, label: NDArray[Any], pred: NDArray[Any]) -> None:
        left, right = same_size(label, pred)
        lengths = onp.linalg.norm(left, axis=-1) * onp.linalg.norm(right, axis=-1)
        cosines = (left * right).sum(axis=-1) / onp.maximum(lengths, self.eps)
        self._add(cosines.sum(), cosines.size)


@alias("pearsonr")
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

    def reset(self) -> None:
        """Forget everything."""
        super().reset()
        self._mean: Floats = onp.zeros(2)
        self._moments: Floats = onp.zeros((2, 2))

    def _take(self, label: NDArray[Any], pred: NDArray[Any]) -> None:
        left, right = (values.ravel() for values in same_size(label, pred))
        if not left.size:
            return
        before = self.num_inst
        # The covariance first: it needs the means before this batch.
        self.update_cov(left, right)
        for place, values in enumerate((left, right)):
            _, self._mean[place], self._moments[place, place] = self.update_variance(
                values, before, self._mean[place], self._moments[place, place]
            )
        self.num_inst = before + left.size

    def _co_moment(self, left: Floats, right: Floats) -> float:
        """What a batch adds to the sum of products of deviations."""
        means = left.mean(), right.mean()
        within = float((left - means[0]) @ (right - means[1]))
        shift = (means[0] - self._mean[0]) * (means[1] - self._mean[1])
        return within + float(shift) * (self.num_inst * left.size / (self.num_inst + left.size))

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
        left, right = (values.ravel() for values in same_size(onp.asarray(label), onp.asarray(pred)))
        self._moments[0, 1] = self._moments[1, 0] = self._moments[0, 1] + self._co_moment(left, right)

    def get(self) -> tuple[str, float]:
        """Name and value.

        Returns
        -------
        tuple of str and float
            NaN before the first batch, or if labels or predictions are all equal.
        """
        scale = math.sqrt(self._moments[0, 0] * self._moments[1, 1])
        return self.name, float(self._moments[0, 1]) / scale if scale else math.nan
