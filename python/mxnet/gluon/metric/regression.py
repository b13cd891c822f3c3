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
        left, right = same_size(label, pred)
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
