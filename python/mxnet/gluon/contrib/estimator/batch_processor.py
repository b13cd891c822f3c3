"""What an estimator does with one batch."""

from __future__ import annotations

from typing import Any

from mxnet import autograd
from mxnet.gluon.utils import split_and_load
from mxnet.numpy import ndarray

__all__ = ["BatchProcessor"]

Outputs = tuple[list[ndarray], list[ndarray], list[Any], list[ndarray]]


class BatchProcessor:
    """Runs the network and the loss on a batch ``(data, label)``, split over the devices of the estimator.

    Batches of another form need a subclass.

    Examples
    --------
    >>> from mxnet.gluon.contrib import estimator
    >>> loop = estimator.Estimator(mx.gluon.nn.Dense(1), mx.gluon.loss.L2Loss())
    >>> loop.logger.setLevel('WARNING')
    >>> data = [(np.ones((4, 2)), np.ones((4, 1)))] * 2
    >>> data, label, pred, loss = estimator.BatchProcessor().evaluate_batch(loop, data[0])
    >>> pred[0].shape, loss[0].shape
    ((4, 1), (4,))
    """

    def _parts(self, estimator: Any, batch: Any, batch_axis: int) -> tuple[list[ndarray], list[ndarray]]:
        if not isinstance(batch, list | tuple):
            raise TypeError(f"BatchProcessor: a batch must be (data, label), found {type(batch).__name__}")
        if len(batch) != 2:
            raise ValueError(f"BatchProcessor: a batch must be (data, label), found {len(batch)} parts")
        data, label = (split_and_load(part, estimator.device, batch_axis, even_split=False) for part in batch)
        return data, label

    def _losses(self, loss: Any, pred: list[Any], label: list[ndarray]) -> list[ndarray]:
        """The losses of samples, one array for each device."""
        return [loss(y_hat, y) for y_hat, y in zip(pred, label, strict=True)]

    def evaluate_batch(self, estimator: Any, val_batch: Any, batch_axis: int = 0) -> Outputs:
        """Compute predictions and losses, unrecorded and in prediction mode.

        Parameters
        ----------
        estimator : Estimator
        val_batch : pair of array_like
            Data and labels.
        batch_axis : int
            Axis along which the batch is split.

        Returns
        -------
        data, label, pred, loss : list
            One entry for each device.

        Raises
        ------
        ValueError
            If the batch does not have two parts.
        TypeError
            If it is no list or tuple.
        """
        data, label = self._parts(estimator, val_batch, batch_axis)
        pred = [estimator.val_net(x) for x in data]
        loss = self._losses(estimator.val_loss, pred, label)
        return data, label, pred, loss

    def fit_batch(self, estimator: Any, train_batch: Any, batch_axis: int = 0) -> Outputs:
        """Compute predictions, losses and gradients.

        Parameters
        ----------
        estimator : Estimator
        train_batch : pair of array_like
            Data and labels.
        batch_axis : int
            Axis along which the batch is split.

        Returns
        -------
        data, label, pred, loss : list
            One entry for each device.

        Raises
        ------
        ValueError
            If the batch does not have two parts.
        TypeError
            If it is no list or tuple.
        """
        data, label = self._parts(estimator, train_batch, batch_axis)
        with autograd.record():
            pred = [estimator.net(x) for x in data]
            loss = self._losses(estimator.loss, pred, label)
        for part in loss:
            part.backward()
        return data, label, pred, loss
