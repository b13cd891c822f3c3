"""Training loops that are set up for a kind of task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mxnet import numpy as np
from mxnet._renamed import old_keywords
from mxnet.device import Device
from mxnet.gluon import loss as losses
from mxnet.gluon import metric as metrics
from mxnet.gluon.block import Block
from mxnet.gluon.contrib.estimator.batch_processor import BatchProcessor
from mxnet.gluon.contrib.estimator.estimator import Estimator
from mxnet.gluon.metric import EvalMetric
from mxnet.gluon.trainer import Trainer
from mxnet.gluon.utils import split_and_load
from mxnet.numpy import ndarray

__all__ = ["ClassificationEstimator", "LanguageModelEstimator", "RegressionEstimator"]

_Metrics = EvalMetric | Sequence[EvalMetric] | None
_Devices = Device | Sequence[Device] | None


class _TaskEstimator(Estimator):
    """With a loss, and with Adam, where none is given."""

    _default_loss: Callable[[], losses.Loss]

    @old_keywords(context="device", ctx="device")
    def __init__(
        self,
        net: Block,
        train_metrics: _Metrics = None,
        val_metrics: _Metrics = None,
        initializer: Any = None,
        trainer: Trainer | None = None,
        device: _Devices = None,
        val_net: Block | None = None,
        batch_processor: BatchProcessor | None = None,
        loss: losses.Loss | None = None,
    ) -> None:
        loss = self._default_loss() if loss is None else loss
        super().__init__(
            net, loss, train_metrics, val_metrics, initializer, trainer, device, val_net, None, batch_processor
        )

    def _default_trainer(self) -> Trainer:
        return Trainer(self.net.collect_params(), "adam", {"learning_rate": 0.001})


class ClassificationEstimator(_TaskEstimator):
    """Trains a network that returns a score for each class, shape ``(n, classes)``.

    Parameters
    ----------
    net : Block
    train_metrics, val_metrics : EvalMetric or sequence of EvalMetric, optional
        Accuracy by default.
    initializer, trainer, device, val_net, batch_processor
        See `Estimator`; the trainer is Adam with a rate of 0.001 by default.
    loss : gluon.loss.Loss, optional
        `SoftmaxCrossEntropyLoss` by default: labels are indices of classes.

    Raises
    ------
    TypeError
        As `Estimator`.

    Examples
    --------
    >>> from mxnet.gluon.contrib.estimator import ClassificationEstimator
    >>> data = [(np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1]))]
    >>> net = mx.gluon.nn.Dense(2, in_units=1)
    >>> trainer = mx.gluon.Trainer(net.collect_params(), 'adam', {'learning_rate': 0.5})
    >>> loop = ClassificationEstimator(net, initializer='zeros', trainer=trainer)
    >>> loop.logger.setLevel('WARNING')
    >>> loop.fit(data, epochs=30)
    >>> loop.train_metrics[0].get()
    ('training accuracy', 1.0)
    """

    _default_loss = losses.SoftmaxCrossEntropyLoss

    def _default_metrics(self) -> list[EvalMetric]:
        return [metrics.Accuracy()]


class RegressionEstimator(_TaskEstimator):
    """Trains a network that returns numbers, of the shape of the labels.

    Parameters
    ----------
    net : Block
    train_metrics, val_metrics : EvalMetric or sequence of EvalMetric, optional
        The mean absolute error and the root of the mean squared error by default.
    initializer, trainer, device, val_net, batch_processor
        See `Estimator`; the trainer is Adam with a rate of 0.001 by default.
    loss : gluon.loss.Loss, optional
        `L2Loss` by default.

    Raises
    ------
    TypeError
        As `Estimator`.

    Examples
    --------
    >>> from mxnet.gluon.contrib.estimator import RegressionEstimator
    >>> data = [(np.array([[0.0], [1.0]]), np.array([[1.0], [3.0]]))]
    >>> loop = RegressionEstimator(mx.gluon.nn.Dense(1, in_units=1), initializer='zeros')
    >>> loop.logger.setLevel('WARNING')
    >>> loop.fit(data, epochs=1)
    >>> [(metric.get()[0], round(metric.get()[1], 3)) for metric in loop.train_metrics]
    [('training mae', 2.0), ('training rmse', 2.236), ('training loss', 2.5)]
    """

    _default_loss = losses.L2Loss

    def _default_metrics(self) -> list[EvalMetric]:
        return [metrics.MAE(), metrics.RMSE()]


class _TokenLoss(losses.Loss):
    """Sum of the token cross entropies of each sequence; tokens equal to `ignore_label` do not count."""

    def __init__(self, ignore_label: int | None) -> None:
        super().__init__(None, 0)
        self._ignore_label = ignore_label

    def forward(self, pred: ndarray, label: ndarray) -> ndarray:
        counts = np.ones_like(label, dtype="bool") if self._ignore_label is None else label != self._ignore_label
        total: ndarray = np.where(counts, losses._class_cross_entropy(pred, label, -1), 0.0).sum(axis=-1)
        return total


class _TokenProcessor(BatchProcessor):
    """Batches of tokens; losses of sequences such that their mean is that of the tokens."""

    def __init__(self, ignore_label: int | None) -> None:
        self._ignore_label = ignore_label

    def _parts(self, estimator: Any, batch: Any, batch_axis: int) -> tuple[list[ndarray], list[ndarray]]:
        parts = list(batch) if isinstance(batch, list | tuple) else [batch]
        if batch_axis != 0 or len(parts) not in (1, 2):
            raise ValueError(
                "LanguageModelEstimator: a batch must be tokens (n, t), or tokens and the tokens behind each of them; "
                f"found {len(parts)} parts with sequences along axis {batch_axis}"
            )
        arrays = [np.asarray(part) for part in parts]
        if len(arrays) == 1:
            tokens = arrays[0]
            if tokens.ndim != 2 or not tokens.shape[0] or tokens.shape[1] < 2:
                raise ValueError(
                    "LanguageModelEstimator: tokens without labels must have shape (n, t) with n at least 1 and t at "
                    f"least 2, found {tokens.shape}"
                )
            data, label = tokens[:, :-1], tokens[:, 1:]
        else:
            data, label = arrays
            if label.ndim != 2 or not label.size or data.shape[:2] != label.shape:
                raise ValueError(
                    "LanguageModelEstimator: tokens and their labels must have one shape (n, t) with n and t at least "
                    f"1, found {data.shape} and {label.shape}"
                )
        spread = [split_and_load(part, estimator.device, 0, even_split=False) for part in (data, label)]
        return spread[0], spread[1]

    def _losses(self, loss: Any, pred: list[Any], label: list[ndarray]) -> list[ndarray]:
        num_rows = sum(y.shape[0] for y in label)
        scales: list[Any]
        if self._ignore_label is None:
            scales = [num_rows / sum(y.size for y in label)] * len(label)
        else:
            counts = [(y != self._ignore_label).sum().to_device(label[0].device) for y in label]
            scale = num_rows / np.maximum(sum(counts), 1)
            scales = [scale.to_device(y.device) for y in label]
        return [x * scale for x, scale in zip(super()._losses(loss, pred, label), scales, strict=True)]


class LanguageModelEstimator(_TaskEstimator):
    """Trains a network that scores the next token at each position of sequences.

    Parameters
    ----------
    net : Block
        From tokens, integers of shape ``(n, t)``, to scores ``(n, t, tokens)``.
    ignore_label : int, optional
        A label that counts neither in the loss nor in the metrics, such as that of padding.
    train_metrics, val_metrics : EvalMetric or sequence of EvalMetric, optional
        The perplexity by default.
    initializer, trainer, device, val_net
        See `Estimator`; the trainer is Adam with a rate of 0.001 by default.

    Raises
    ------
    TypeError
        As `Estimator`.
    ValueError
        While it is trained: if a batch has another form.

    Notes
    -----
    A batch is tokens ``(n, t)``, whose labels are then the tokens behind each, or a pair of tokens and labels. The loss
    is the mean cross entropy of all tokens of the batch that count.

    Examples
    --------
    >>> from mxnet.gluon.contrib.estimator import LanguageModelEstimator
    >>> net = mx.gluon.nn.HybridSequential()
    >>> net.add(mx.gluon.nn.Embedding(4, 8), mx.gluon.nn.Dense(4, flatten=False, in_units=8))
    >>> loop = LanguageModelEstimator(net, initializer='xavier')
    >>> loop.logger.setLevel('WARNING')
    >>> loop.fit([np.array([[0, 1, 2, 3, 0, 1, 2, 3]])], epochs=400)
    >>> bool(loop.train_metrics[0].get()[1] < 1.5)
    True
    """

    @old_keywords(context="device", ctx="device")
    def __init__(
        self,
        net: Block,
        ignore_label: int | None = None,
        train_metrics: _Metrics = None,
        val_metrics: _Metrics = None,
        initializer: Any = None,
        trainer: Trainer | None = None,
        device: _Devices = None,
        val_net: Block | None = None,
    ) -> None:
        self._ignore_label = ignore_label
        loss, processor = _TokenLoss(ignore_label), _TokenProcessor(ignore_label)
        super().__init__(net, train_metrics, val_metrics, initializer, trainer, device, val_net, processor, loss)

    def _default_metrics(self) -> list[EvalMetric]:
        return [metrics.Perplexity(ignore_label=self._ignore_label, from_logits=True)]
