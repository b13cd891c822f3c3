"""Events of a training loop, and the handlers that are not about files."""

from __future__ import annotations

import math
import operator
import time
from collections.abc import Callable, Sequence
from typing import Any

from mxnet._renamed import attribute_finder
from mxnet.gluon.metric import EvalMetric
from mxnet.gluon.metric import Loss as metric_loss  # noqa: N813  # its public name here

__all__ = [
    "BatchBegin",
    "BatchEnd",
    "EarlyStoppingHandler",
    "EpochBegin",
    "EpochEnd",
    "EventHandler",
    "GradientUpdateHandler",
    "LoggingHandler",
    "MetricHandler",
    "StoppingHandler",
    "TrainBegin",
    "TrainEnd",
    "ValidationHandler",
    "is_better",
    "metric_loss",
]

__getattr__ = attribute_finder(__name__, "mxnet.gluon.contrib.estimator")


class EventHandler:
    """Base class. Handlers of an event are called by their `priority`, the lowest first; 0 where there is none.

    The methods get the estimator and keyword arguments; those of `BatchEnd` and `EpochEnd` may return True to end the
    training.

    Examples
    --------
    >>> from mxnet.gluon.contrib.estimator import BatchEnd
    >>> from mxnet.gluon.contrib.estimator.event_handler import EventHandler
    >>> issubclass(BatchEnd, EventHandler)
    True
    """


class TrainBegin(EventHandler):
    """Has a method that is called before training.

    Examples
    --------
    >>> from mxnet.gluon.contrib import estimator
    >>> class Report(estimator.TrainBegin):
    ...     def train_begin(self, estimator, *args, **kwargs):
    ...         print('begin')
    >>> loop = estimator.Estimator(mx.gluon.nn.Dense(1), mx.gluon.loss.L2Loss())
    >>> loop.logger.setLevel('WARNING')
    >>> data = [(np.ones((4, 2)), np.ones((4, 1)))] * 2
    >>> loop.fit(data, epochs=1, event_handlers=[Report()])
    begin
    """

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Called before training; does nothing here."""


class TrainEnd(EventHandler):
    """Has a method that is called after training.

    Examples
    --------
    >>> from mxnet.gluon.contrib import estimator
    >>> class Report(estimator.TrainEnd):
    ...     def train_end(self, estimator, *args, **kwargs):
    ...         print('end after', estimator.current_batch, 'batches')
    >>> loop = estimator.Estimator(mx.gluon.nn.Dense(1), mx.gluon.loss.L2Loss())
    >>> loop.logger.setLevel('WARNING')
    >>> data = [(np.ones((4, 2)), np.ones((4, 1)))] * 2
    >>> loop.fit(data, epochs=1, event_handlers=[Report()])
    end after 2 batches
    """

    def train_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Called after training; does nothing here."""


class EpochBegin(EventHandler):
    """Has a method that is called before each pass over the data.

    Examples
    --------
    >>> from mxnet.gluon.contrib import estimator
    >>> class Report(estimator.EpochBegin):
    ...     def epoch_begin(self, estimator, *args, **kwargs):
    ...         print('epochs so far', estimator.current_epoch)
    >>> loop = estimator.Estimator(mx.gluon.nn.Dense(1), mx.gluon.loss.L2Loss())
    >>> loop.logger.setLevel('WARNING')
    >>> data = [(np.ones((4, 2)), np.ones((4, 1)))] * 2
    >>> loop.fit(data, epochs=1, event_handlers=[Report()])
    epochs so far 0
    """

    def epoch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Called before each pass; does nothing here."""


class EpochEnd(EventHandler):
    """Has a method that is called after each pass over the data.

    Examples
    --------
    >>> from mxnet.gluon.contrib import estimator
    >>> class Report(estimator.EpochEnd):
    ...     def epoch_end(self, estimator, *args, **kwargs):
    ...         print('epoch', estimator.current_epoch)
    >>> loop = estimator.Estimator(mx.gluon.nn.Dense(1), mx.gluon.loss.L2Loss())
    >>> loop.logger.setLevel('WARNING')
    >>> data = [(np.ones((4, 2)), np.ones((4, 1)))] * 2
    >>> loop.fit(data, epochs=1, event_handlers=[Report()])
    epoch 1
    """

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool | None:
        """Called after each pass; does nothing here."""
        return None


class BatchBegin(EventHandler):
    """Has a method that is called before each batch, with ``batch=``.

    Examples
    --------
    >>> from mxnet.gluon.contrib import estimator
    >>> class Report(estimator.BatchBegin):
    ...     def batch_begin(self, estimator, *args, **kwargs):
    ...         print(kwargs['batch'][0].shape)
    >>> loop = estimator.Estimator(mx.gluon.nn.Dense(1), mx.gluon.loss.L2Loss())
    >>> loop.logger.setLevel('WARNING')
    >>> data = [(np.ones((4, 2)), np.ones((4, 1)))] * 2
    >>> loop.fit(data, epochs=1, event_handlers=[Report()])
    (4, 2)
    (4, 2)
    """

    def batch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Called before each batch; does nothing here."""


class BatchEnd(EventHandler):
    """Has a method that is called after each batch, with ``batch=, pred=, label=, loss=``.

    Examples
    --------
    >>> from mxnet.gluon.contrib import estimator
    >>> class Report(estimator.BatchEnd):
    ...     def batch_end(self, estimator, *args, **kwargs):
    ...         print(estimator.current_batch, kwargs['loss'][0].shape)
    >>> loop = estimator.Estimator(mx.gluon.nn.Dense(1), mx.gluon.loss.L2Loss())
    >>> loop.logger.setLevel('WARNING')
    >>> data = [(np.ones((4, 2)), np.ones((4, 1)))] * 2
    >>> loop.fit(data, epochs=1, event_handlers=[Report()])
    1 (4,)
    2 (4,)
    """

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool | None:
        """Called after each batch; does nothing here."""
        return None


def _positive_or_none(handler: str, **counts: int | None) -> None:
    for name, count in counts.items():
        if count is not None and count < 1:
            raise ValueError(f"{handler}: `{name}` must be positive or None, found {count}")


def is_better(handler: str, monitor: EvalMetric, mode: str) -> Callable[[float, float], bool]:
    """The comparison "new value is better than old value" of a metric.

    Parameters
    ----------
    handler : str
        For the message.
    monitor : EvalMetric
    mode : {"auto", "min", "max"}
        "auto" is "max" for accuracies, scores and correlations by their name, else "min".

    Returns
    -------
    callable of two float

    Raises
    ------
    ValueError
        If `mode` is unknown.
    """
    if mode not in ("auto", "min", "max"):
        raise ValueError(f"{handler}: `mode` must be 'auto', 'min' or 'max', found {mode!r}")
    if mode == "auto":
        name = str(monitor.get()[0]).lower()
        rising = any(word in name for word in ("acc", "f1", "fbeta", "mcc", "pcc", "pearson", "cos_sim"))
        mode = "max" if rising else "min"
    return operator.gt if mode == "max" else operator.lt


class StoppingHandler(TrainBegin, BatchEnd, EpochEnd):
    """Ends the training after a number of epochs or batches.

    Parameters
    ----------
    max_epoch, max_batch : int, optional
        Counted from the first training, also when it goes on from a checkpoint.

    Raises
    ------
    ValueError
        If a number is not positive.

    Examples
    --------
    >>> from mxnet.gluon.contrib import estimator
    >>> loop = estimator.Estimator(mx.gluon.nn.Dense(1), mx.gluon.loss.L2Loss())
    >>> loop.logger.setLevel('WARNING')
    >>> data = [(np.ones((4, 2)), np.ones((4, 1)))] * 2
    >>> loop.fit(data, epochs=9, event_handlers=[estimator.StoppingHandler(max_batch=3)])
    >>> loop.current_batch
    3
    """

    def __init__(self, max_epoch: int | None = None, max_batch: int | None = None) -> None:
        _positive_or_none("StoppingHandler", max_epoch=max_epoch, max_batch=max_batch)
        self.max_epoch = max_epoch
        self.max_batch = max_batch
        self.stop_training = False

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        self.stop_training = False

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool:
        if self.max_batch is not None and estimator.current_batch >= self.max_batch:
            self.stop_training = True
        return self.stop_training

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool:
        if self.max_epoch is not None and estimator.current_epoch >= self.max_epoch:
            self.stop_training = True
        return self.stop_training


class GradientUpdateHandler(BatchEnd):
    """Lets the trainer update the parameters; the gradients are divided by the size of the batch.

    Parameters
    ----------
    priority : int

    Examples
    --------
    >>> from mxnet.gluon.contrib import estimator
    >>> loop = estimator.Estimator(mx.gluon.nn.Dense(1), mx.gluon.loss.L2Loss())
    >>> loop.logger.setLevel('WARNING')
    >>> data = [(np.ones((4, 2)), np.ones((4, 1)))] * 2
    >>> loop.fit(data, epochs=1, event_handlers=[estimator.GradientUpdateHandler(priority=-3000)])
    >>> loop.trainer.optimizer.num_update
    2
    """

    def __init__(self, priority: float = -2000) -> None:
        self.priority = priority

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        loss = kwargs["loss"]
        estimator.trainer.step(sum(part.size for part in (loss if isinstance(loss, list) else [loss])))


class MetricHandler(EpochBegin, BatchEnd):
    """Resets metrics before each epoch and updates them after each batch.

    Parameters
    ----------
    metrics : EvalMetric or sequence of EvalMetric
        A `metric.Loss` gets the losses, the others labels and predictions.
    priority : int

    Examples
    --------
    >>> from mxnet.gluon.contrib import estimator
    >>> loop = estimator.Estimator(mx.gluon.nn.Dense(1), mx.gluon.loss.L2Loss())
    >>> loop.logger.setLevel('WARNING')
    >>> data = [(np.ones((4, 2)), np.ones((4, 1)))] * 2
    >>> mae = mx.gluon.metric.MAE()
    >>> loop.fit(data, epochs=1, event_handlers=[estimator.MetricHandler(mae)])
    >>> mae.num_inst > 0
    True
    """

    def __init__(self, metrics: EvalMetric | Sequence[EvalMetric], priority: float = -1000) -> None:
        self.metrics = [metrics] if isinstance(metrics, EvalMetric) else list(metrics)
        self.priority = priority

    def epoch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        for metric in self.metrics:
            metric.reset()

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        for metric in self.metrics:
            if isinstance(metric, metric_loss):
                metric.update(0, kwargs["loss"])
            else:
                metric.update(kwargs["label"], kwargs["pred"])


class ValidationHandler(TrainBegin, BatchEnd, EpochEnd):
    """Evaluates the network while it is trained.

    Parameters
    ----------
    val_data : iterable of batches
    eval_fn : callable
        Usually `Estimator.evaluate`; called with `val_data`, `batch_axis` and `event_handlers`.
    epoch_period, batch_period : int, optional
        After how many epochs and batches; None is never.
    priority : int
    event_handlers : sequence of EventHandler, optional
        For `eval_fn`.

    Raises
    ------
    ValueError
        If a period is not positive.

    Examples
    --------
    >>> from mxnet.gluon.contrib import estimator
    >>> loop = estimator.Estimator(mx.gluon.nn.Dense(1), mx.gluon.loss.L2Loss())
    >>> loop.logger.setLevel('WARNING')
    >>> data = [(np.ones((4, 2)), np.ones((4, 1)))] * 2
    >>> check = estimator.ValidationHandler(data, lambda **kwargs: print(sorted(kwargs)))
    >>> loop.fit(data, epochs=1, event_handlers=[check])
    ['batch_axis', 'event_handlers', 'val_data']
    """

    def __init__(
        self,
        val_data: Any,
        eval_fn: Callable[..., Any],
        epoch_period: int | None = 1,
        batch_period: int | None = None,
        priority: float = -1000,
        event_handlers: Sequence[EventHandler] | None = None,
    ) -> None:
        _positive_or_none("ValidationHandler", epoch_period=epoch_period, batch_period=batch_period)
        self.val_data = val_data
        self.eval_fn = eval_fn
        self.epoch_period = epoch_period
        self.batch_period = batch_period
        self.priority = priority
        self.event_handlers = event_handlers

    def _evaluate(self, estimator: Any) -> None:
        self.eval_fn(val_data=self.val_data, batch_axis=estimator.batch_axis, event_handlers=self.event_handlers)

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        if self.batch_period is not None and estimator.current_batch % self.batch_period == 0:
            self._evaluate(estimator)

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        if self.epoch_period is not None and estimator.current_epoch % self.epoch_period == 0:
            self._evaluate(estimator)


class LoggingHandler(TrainBegin, TrainEnd, EpochBegin, EpochEnd, BatchBegin, BatchEnd):
    """Logs the configuration, the metrics and the time of training by the logger of the estimator.

    Parameters
    ----------
    log_interval : "epoch" or int
        After each epoch only, or after this number of batches, too.
    metrics : EvalMetric or sequence of EvalMetric, optional
    priority : float

    Raises
    ------
    ValueError
        If `log_interval` is neither "epoch" nor a positive integer.

    Examples
    --------
    >>> from mxnet.gluon.contrib import estimator
    >>> loop = estimator.Estimator(mx.gluon.nn.Dense(1), mx.gluon.loss.L2Loss())
    >>> loop.logger.setLevel('WARNING')
    >>> data = [(np.ones((4, 2)), np.ones((4, 1)))] * 2
    >>> loop.fit(data, epochs=1, event_handlers=[estimator.LoggingHandler(1, loop.train_metrics)])
    """

    def __init__(
        self,
        log_interval: str | int = "epoch",
        metrics: EvalMetric | Sequence[EvalMetric] | None = None,
        priority: float = math.inf,
    ) -> None:
        if log_interval != "epoch" and not (isinstance(log_interval, int) and log_interval > 0):
            raise ValueError(f"LoggingHandler: `log_interval` must be 'epoch' or a count, found {log_interval!r}")
        self.log_interval = log_interval
        self.metrics = [metrics] if isinstance(metrics, EvalMetric) else list(metrics or ())
        self.priority = priority
        self._train_start = self._epoch_start = self._interval_start = 0.0
        self._samples = 0

    def _values(self, estimator: Any) -> str:
        values = [(metric, name, value) for metric in self.metrics for name, value in metric.get_name_value()]
        names = [name for _, name, _ in values]
        parts = []
        for metric, name, value in values:
            # Metrics of the program may have one name for both kinds of data.
            kind = "validation " if metric in estimator.val_metrics else "training "
            parts.append(f", {kind if names.count(name) > 1 else ''}{name}: {value:.4f}")
        return "".join(parts)

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        self._train_start = time.perf_counter()
        estimator.logger.info("training begins: %r", estimator)

    def train_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        seconds = time.perf_counter() - self._train_start
        estimator.logger.info(
            "training ends after %d epochs in %.1f s%s", estimator.current_epoch, seconds, self._values(estimator)
        )

    def epoch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        if estimator.is_training:
            self._epoch_start = self._interval_start = time.perf_counter()
            self._samples = 0

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        if estimator.is_training:
            seconds = time.perf_counter() - self._epoch_start
            estimator.logger.info("epoch %d in %.1f s%s", estimator.current_epoch, seconds, self._values(estimator))

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        if not isinstance(self.log_interval, int):
            return
        self._samples += sum(part.shape[estimator.batch_axis] for part in kwargs["label"])
        if estimator.current_batch % self.log_interval == 0:
            now = time.perf_counter()
            rate = self._samples / max(now - self._interval_start, 1e-9)
            estimator.logger.info("batch %d, %.1f samples/s%s", estimator.current_batch, rate, self._values(estimator))
            self._interval_start, self._samples = now, 0


class EarlyStoppingHandler(TrainBegin, EpochEnd, TrainEnd):
    """Ends the training when a metric no longer becomes better.

    Parameters
    ----------
    monitor : EvalMetric
        One that the estimator updates, such as ``estimator.val_metrics[0]``.
    min_delta : float
        Smaller changes do not count.
    patience : int
        After how many epochs in a row without a better value the training ends; 0 is as 1.
    mode : {"auto", "min", "max"}
        Whether smaller or larger is better; "auto" decides by the name of the metric.
    baseline : float, optional
        Value to begin with: the training ends if it is not bettered.

    Attributes
    ----------
    current_epoch, stopped_epoch : int
        Number of epochs that are done, and after how many it ended the training (0 if it did not).

    Raises
    ------
    TypeError
        If `monitor` is no metric.
    ValueError
        If `mode` is unknown, or `patience` or `min_delta` is negative.

    Examples
    --------
    >>> from mxnet.gluon.contrib import estimator
    >>> loop = estimator.Estimator(mx.gluon.nn.Dense(1), mx.gluon.loss.L2Loss())
    >>> loop.logger.setLevel('WARNING')
    >>> data = [(np.ones((4, 2)), np.ones((4, 1)))] * 2
    >>> stop = estimator.EarlyStoppingHandler(loop.train_metrics[-1], baseline=-1.0)  # no loss is below -1
    >>> loop.fit(data, epochs=9, event_handlers=[stop])
    >>> stop.current_epoch, stop.stopped_epoch
    (1, 1)
    """

    def __init__(
        self,
        monitor: EvalMetric,
        min_delta: float = 0,
        patience: int = 0,
        mode: str = "auto",
        baseline: float | None = None,
    ) -> None:
        if not isinstance(monitor, EvalMetric):
            raise TypeError(f"EarlyStoppingHandler: `monitor` must be a metric, found {type(monitor).__name__}")
        for name, number in (("min_delta", min_delta), ("patience", patience)):
            if number < 0:
                raise ValueError(f"EarlyStoppingHandler: `{name}` must not be negative, found {number}")
        self.monitor = monitor
        self.min_delta = min_delta
        self.patience = patience
        self.baseline = baseline
        self._is_better = is_better("EarlyStoppingHandler", monitor, mode)
        self._reset()

    def _reset(self) -> None:
        rising = self._is_better(1.0, 0.0)
        self.best = self.baseline if self.baseline is not None else (-math.inf if rising else math.inf)
        self.wait = 0
        self.current_epoch = 0
        self.stopped_epoch = 0
        self.stop_training = False

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        self._reset()

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool:
        self.current_epoch = estimator.current_epoch
        _, value = self.monitor.get()
        margin = self.min_delta if self._is_better(1.0, 0.0) else -self.min_delta
        # NaN is never better: every comparison with it is false.
        if self._is_better(value - margin, self.best):
            self.best, self.wait = value, 0
        else:
            self.wait += 1
            if self.wait >= self.patience:
                self.stopped_epoch = self.current_epoch
                self.stop_training = True
        return self.stop_training

    def train_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        if self.stop_training:
            name = self.monitor.get()[0]
            estimator.logger.info("stopped early after epoch %d: best %s %.4f", self.stopped_epoch, name, self.best)
