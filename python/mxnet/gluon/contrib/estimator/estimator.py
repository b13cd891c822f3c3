"""The training loop."""

from __future__ import annotations

import copy
import itertools
import logging
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from mxnet import numpy as np
from mxnet._renamed import old_keywords
from mxnet.device import Device, current_device
from mxnet.gluon import loss as losses
from mxnet.gluon import metric as metrics
from mxnet.gluon.block import Block
from mxnet.gluon.contrib.estimator.batch_processor import BatchProcessor
from mxnet.gluon.contrib.estimator.event_handler import (
    BatchBegin,
    BatchEnd,
    EpochBegin,
    EpochEnd,
    EventHandler,
    GradientUpdateHandler,
    LoggingHandler,
    MetricHandler,
    StoppingHandler,
    TrainBegin,
    TrainEnd,
    ValidationHandler,
    metric_loss,
)
from mxnet.gluon.metric import EvalMetric
from mxnet.gluon.trainer import Trainer

__all__ = ["Estimator"]

# Metrics that are measured where none are given: decisions for classification, distances for regression.
_METRICS: dict[type[losses.Loss], Callable[[], EvalMetric]] = {
    losses.SoftmaxCrossEntropyLoss: metrics.Accuracy,
    losses.L1Loss: metrics.MAE,
    losses.L2Loss: metrics.MSE,
    losses.HuberLoss: metrics.MAE,
}


def _as_metrics(given: EvalMetric | Sequence[EvalMetric], name: str) -> list[EvalMetric]:
    found: list[Any] = list(given) if isinstance(given, list | tuple) else [given]
    for metric in found:
        if not isinstance(metric, EvalMetric):
            raise TypeError(f"Estimator: `{name}` must be metrics, found {type(metric).__name__}")
    return found


def _renamed(metric: EvalMetric, prefix: str) -> EvalMetric:
    twin = copy.deepcopy(metric)
    twin.reset()
    twin.name = f"{prefix} {metric.name}"
    return twin


def _numbers(net: Block) -> str:
    """How many parameters a network has, and whether all sizes are known."""
    parameters = dict.fromkeys(net.collect_params().values())
    known = [
        parameter.shape
        for parameter in parameters
        if parameter.shape is not None and min(parameter.shape, default=1) > 0
    ]
    waiting = len(parameters) - len(known)
    return f"{sum(map(math.prod, known)):,} parameters" + (f", {waiting} of unknown size" if waiting else "")


class Estimator:
    """A training loop: batches, losses, updates, metrics, validation and logging, each as an event handler.

    Parameters
    ----------
    net : Block
    loss : gluon.loss.Loss
    train_metrics : EvalMetric or sequence of EvalMetric, optional
        By default accuracy for `SoftmaxCrossEntropyLoss`, mean squared error for `L2Loss`, mean absolute error for
        `L1Loss` and `HuberLoss`; the loss is measured always.
    val_metrics : EvalMetric or sequence of EvalMetric, optional
        By default the same as for training.
    initializer : Initializer or str, optional
        For parameters that are not initialized.
    trainer : Trainer, optional
        By default stochastic gradient descent with a rate of 0.001.
    device : Device or sequence of Device, optional
        The current device by default; batches are split over several.
    val_net : Block, optional
        Network for validation, `net` by default.
    val_loss : gluon.loss.Loss, optional
        Loss for validation, `loss` by default.
    batch_processor : BatchProcessor, optional

    Attributes
    ----------
    current_epoch, current_batch : int
        Number of whole epochs and of batches that are done, those before a checkpoint included.
    batch_in_epoch : int
        Number of batches of the current epoch that are done.
    num_batches : int or None
        Number of batches of an epoch during `fit`, if the data has a length that is not 0.

    Raises
    ------
    TypeError
        If an argument is of another kind.

    Examples
    --------
    >>> from mxnet.gluon.contrib.estimator import Estimator
    >>> net = mx.gluon.nn.Dense(1, in_units=2)
    >>> estimator = Estimator(net, mx.gluon.loss.L2Loss(), initializer="zeros")
    >>> estimator.logger.setLevel("WARNING")
    >>> data = [(np.ones((4, 2)), np.ones((4, 1)))] * 3
    >>> estimator.fit(data, epochs=2)
    >>> estimator.current_batch, estimator.train_metrics[0].get()[0]
    (6, 'training mse')
    """

    @old_keywords(context="device", ctx="device")
    def __init__(
        self,
        net: Block,
        loss: losses.Loss,
        train_metrics: EvalMetric | Sequence[EvalMetric] | None = None,
        val_metrics: EvalMetric | Sequence[EvalMetric] | None = None,
        initializer: Any = None,
        trainer: Trainer | None = None,
        device: Device | Sequence[Device] | None = None,
        val_net: Block | None = None,
        val_loss: losses.Loss | None = None,
        batch_processor: BatchProcessor | None = None,
    ) -> None:
        checked: tuple[tuple[str, Any, type], ...] = (
            ("net", net, Block),
            ("loss", loss, losses.Loss),
            ("trainer", trainer, Trainer),
            ("val_net", val_net, Block),
            ("val_loss", val_loss, losses.Loss),
            ("batch_processor", batch_processor, BatchProcessor),
        )
        for name, value, kind in checked:
            is_optional = name not in ("net", "loss")
            if not isinstance(value, kind) and not (is_optional and value is None):
                raise TypeError(f"Estimator: `{name}` must be a {kind.__name__}, found {type(value).__name__}")
        self.net = net
        self.loss = loss
        self.val_net = net if val_net is None else val_net
        self.val_loss = loss if val_loss is None else val_loss
        self.batch_processor = BatchProcessor() if batch_processor is None else batch_processor
        self.device = [current_device()] if device is None else [device] if isinstance(device, Device) else list(device)
        self._set_metrics(train_metrics, val_metrics)
        for block in dict.fromkeys((self.net, self.val_net)):
            if any(not p._data and not p.is_deferred for p in block.collect_params().values()):
                waiting = {p for p in block.collect_params().values() if not p._data and not p.is_deferred}
                for parameter in waiting:
                    parameter.initialize(None, self.device, initializer)
        self.trainer = self._default_trainer() if trainer is None else trainer
        self._logger = logging.Logger("mxnet.estimator", logging.INFO)
        self._logger.addHandler(logging.StreamHandler(sys.stdout))
        self.batch_axis = 0
        self.num_batches: int | None = None
        self.is_training = False
        self._start()

    def _default_trainer(self) -> Trainer:
        return Trainer(self.net.collect_params(), "sgd", {"learning_rate": 0.001})

    def _default_metrics(self) -> list[EvalMetric]:
        return [make() for kind, make in _METRICS.items() if isinstance(self.loss, kind)]

    def __repr__(self) -> str:
        return "\n".join((f"{type(self).__name__}(", *(f"  {line}" for line in self._configuration()), ")"))

    def _configuration(self) -> list[str]:
        lines = [f"net: {type(self.net).__name__}, {_numbers(self.net)}"]
        if self.val_net is not self.net:
            lines.append(f"validation net: {type(self.val_net).__name__}, {_numbers(self.val_net)}")
        lines.append(f"loss: {self.loss!r}")
        if self.val_loss is not self.loss:
            lines.append(f"validation loss: {self.val_loss!r}")
        lines.append(f"trainer: {self.trainer!r}")
        lines.append(f"devices: {', '.join(map(str, self.device))}")
        for name, found in (("training", self._train_metrics), ("validation", self._val_metrics)):
            lines.append(f"{name} metrics: {', '.join(type(metric).__name__ for metric in found)}")
        return lines

    def _set_metrics(self, train: Any, val: Any) -> None:
        if train is None:
            basic = self._default_metrics()
            self._train_metrics = [_renamed(metric, "training") for metric in basic]
        else:
            basic = _as_metrics(train, "train_metrics")
            self._train_metrics = list(basic)
        self._val_metrics = (
            [_renamed(metric, "validation") for metric in basic] if val is None else _as_metrics(val, "val_metrics")
        )
        self._train_metrics.append(metric_loss("training loss"))
        self._val_metrics.append(metric_loss("validation loss"))

    @property
    def logger(self) -> logging.Logger:
        """Where handlers log; it writes to the standard output."""
        return self._logger

    @property
    def train_metrics(self) -> list[EvalMetric]:
        """Metrics of the training data, the loss last."""
        return self._train_metrics

    @property
    def val_metrics(self) -> list[EvalMetric]:
        """Metrics of the validation data, the loss last."""
        return self._val_metrics

    # ---- position ----

    def _start(self) -> None:
        self.current_epoch = 0
        self.current_batch = 0
        self.batch_in_epoch = 0
        self.random_at_epoch_begin = np.random.get_state()
        self._resumed_random: Any = None

    def resume_at(self, epoch: int, batch: int, batch_in_epoch: int, random: Any, random_at_epoch_begin: Any) -> None:
        """Go on from a position; for handlers of `TrainBegin`.

        Parameters
        ----------
        epoch, batch : int
            Numbers of epochs and batches that are done.
        batch_in_epoch : int
            Number of batches of the current epoch that are done: these are drawn and passed over.
        random, random_at_epoch_begin : tuple
            States of ``np.random``, now and when the current epoch began.
        """
        self.current_epoch = epoch
        self.current_batch = batch
        self.batch_in_epoch = batch_in_epoch
        if batch_in_epoch:
            np.random.set_state(random_at_epoch_begin)
            self._resumed_random = random
        else:
            np.random.set_state(random)

    # ---- loops ----

    def evaluate(
        self, val_data: Iterable[Any], batch_axis: int = 0, event_handlers: Sequence[EventHandler] | None = None
    ) -> None:
        """Measure `val_metrics`.

        Parameters
        ----------
        val_data : iterable of batches
        batch_axis : int
            Axis of the samples.
        event_handlers : EventHandler or sequence of EventHandler, optional
            Further handlers of epochs and batches.
        """
        handlers = _ordered([MetricHandler(self.val_metrics), *_listed(event_handlers)])
        outer, self.is_training = self.is_training, False
        try:
            _emit(handlers, EpochBegin, "epoch_begin", self)
            for batch in val_data:
                _emit(handlers, BatchBegin, "batch_begin", self, batch=batch)
                _, label, pred, loss = self.batch_processor.evaluate_batch(self, batch, batch_axis)
                _emit(handlers, BatchEnd, "batch_end", self, batch=batch, pred=pred, label=label, loss=loss)
            _emit(handlers, EpochEnd, "epoch_end", self)
        finally:
            self.is_training = outer

    def fit(
        self,
        train_data: Iterable[Any],
        val_data: Iterable[Any] | None = None,
        epochs: int | None = None,
        event_handlers: Sequence[EventHandler] | None = None,
        batches: int | None = None,
        batch_axis: int = 0,
    ) -> None:
        """Train for a number of epochs or batches.

        Parameters
        ----------
        train_data : iterable of batches
            Each usually ``(data, label)``; iterated over once an epoch.
        val_data : iterable of batches, optional
            Evaluated after each epoch.
        epochs, batches : int, optional
            Exactly one of them is given.
        event_handlers : EventHandler or sequence of EventHandler, optional
            Each replaces the default handler of its class: `StoppingHandler`, `GradientUpdateHandler`, `MetricHandler`,
            `ValidationHandler` (with `val_data`), `LoggingHandler`.
        batch_axis : int
            Axis of the samples.

        Raises
        ------
        TypeError
            If a handler is no `EventHandler`.
        ValueError
            If not exactly one of `epochs` and `batches` is given, it is not positive, or there are no batches.
        """
        if (epochs is None) == (batches is None):
            raise ValueError(f"fit: exactly one of `epochs` and `batches` must be given, found {epochs} and {batches}")
        self.batch_axis = batch_axis
        handlers = self._handlers(val_data, epochs, batches, event_handlers)
        self._start()
        self.is_training = True
        self.num_batches = _num_batches(train_data)
        try:
            _emit(handlers, TrainBegin, "train_begin", self)
            # A checkpoint of a finished training leaves nothing to do.
            done = any(
                (h.max_epoch is not None and self.current_epoch >= h.max_epoch)
                or (h.max_batch is not None and self.current_batch >= h.max_batch)
                for h in handlers
                if isinstance(h, StoppingHandler)
            )
            while not done:
                done = self._epoch(train_data, handlers)
            _emit(handlers, TrainEnd, "train_end", self)
        finally:
            self.is_training = False
            self.num_batches = None

    def _epoch(self, train_data: Iterable[Any], handlers: list[EventHandler]) -> bool:
        """One pass over the data, or what is left of it after a checkpoint. Returns whether the training ends."""
        self.random_at_epoch_begin = np.random.get_state()
        iterator = iter(train_data)
        skipped = sum(1 for _ in itertools.islice(iterator, self.batch_in_epoch))
        if skipped < self.batch_in_epoch:
            raise ValueError(
                f"fit: the checkpoint is after {self.batch_in_epoch} batches of an epoch, `train_data` has {skipped}"
            )
        if self._resumed_random is not None:
            np.random.set_state(self._resumed_random)
            self._resumed_random = None
        _emit(handlers, EpochBegin, "epoch_begin", self)
        done = False
        for batch in iterator:
            _emit(handlers, BatchBegin, "batch_begin", self, batch=batch)
            _, label, pred, loss = self.batch_processor.fit_batch(self, batch, self.batch_axis)
            self.current_batch += 1
            self.batch_in_epoch += 1
            done = _emit(handlers, BatchEnd, "batch_end", self, batch=batch, pred=pred, label=label, loss=loss)
            if done:
                break
        if not self.batch_in_epoch:
            raise ValueError("fit: `train_data` has no batches")
        if not done:
            # An epoch that was cut short does not count, so that a checkpoint of it goes on with its next batch.
            self.current_epoch += 1
            self.batch_in_epoch = 0
        return _emit(handlers, EpochEnd, "epoch_end", self) or done

    def _handlers(
        self,
        val_data: Iterable[Any] | None,
        epochs: int | None,
        batches: int | None,
        given: Sequence[EventHandler] | None,
    ) -> list[EventHandler]:
        handlers = _listed(given)
        defaults: list[EventHandler] = [
            StoppingHandler(epochs, batches),
            GradientUpdateHandler(),
            MetricHandler(self.train_metrics),
        ]
        if val_data is not None:
            defaults.append(ValidationHandler(val_data, self.evaluate))
        defaults.append(
            LoggingHandler(metrics=[*self.train_metrics, *(self.val_metrics if val_data is not None else ())])
        )
        own = [made for made in defaults if not any(isinstance(handler, type(made)) for handler in handlers)]
        return _ordered([*own, *handlers])


def _num_batches(data: Any) -> int | None:
    try:
        return len(data) or None
    except TypeError:  # A loader has a length only if its sampler has one.
        return None


def _listed(handlers: EventHandler | Sequence[EventHandler] | None) -> list[EventHandler]:
    found = [] if handlers is None else [handlers] if isinstance(handlers, EventHandler) else list(handlers)
    for handler in found:
        if not isinstance(handler, EventHandler):
            raise TypeError(f"`event_handlers` must be event handlers, found {type(handler).__name__}")
    return found


def _ordered(handlers: list[EventHandler]) -> list[EventHandler]:
    return sorted(handlers, key=lambda handler: getattr(handler, "priority", 0))


def _emit(
    handlers: list[EventHandler], kind: type[EventHandler], method: str, estimator: Estimator, **kwargs: Any
) -> bool:
    """Call the handlers of an event. Returns whether one of them ends the training; all are called in any case."""
    results = [getattr(handler, method)(estimator, **kwargs) for handler in handlers if isinstance(handler, kind)]
    return any(results)
