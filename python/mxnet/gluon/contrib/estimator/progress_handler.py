"""Handlers that show how a training goes: a bar, and files for TensorBoard."""

from __future__ import annotations

import importlib
import math
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from mxnet.base import PathLike
from mxnet.callback import ProgressBar
from mxnet.gluon.contrib.estimator._event_file import EventFile
from mxnet.gluon.contrib.estimator.event_handler import BatchEnd, EpochBegin, EpochEnd, TrainBegin, TrainEnd
from mxnet.gluon.metric import EvalMetric
from mxnet.numpy._errors import warn_at_caller

__all__ = ["ProgressBarHandler", "TensorBoardHandler"]

# Metrics are read for the bar this often, in seconds: reading waits for the device.
_INTERVAL = 0.1


def _listed(metrics: EvalMetric | Sequence[EvalMetric] | None) -> list[EvalMetric] | None:
    return metrics if metrics is None else [metrics] if isinstance(metrics, EvalMetric) else list(metrics)


def _values(metrics: Iterable[EvalMetric]) -> list[tuple[str, float]]:
    """Names and values; those without one are left out."""
    found = [(name, float(value)) for metric in metrics for name, value in metric.get_name_value()]
    return [(name, value) for name, value in found if not math.isnan(value)]


def _warn_of_unmeasured(name: str, metrics: Iterable[EvalMetric] | None, estimator: Any) -> None:
    """Warn of metrics that are not the estimator's and that nothing else has updated in an epoch."""
    own = [*estimator.train_metrics, *estimator.val_metrics]
    for metric in metrics or ():
        if not any(metric is known for known in own) and not _values([metric]):
            warn_at_caller(
                f"{name}: {metric.name!r} in `metrics` has no value after an epoch; the estimator updates its own "
                "metrics, which are `train_metrics` and `val_metrics`",
                RuntimeWarning,
            )


class _Line:
    """A bar as a line of text that is written over, with what `ProgressBarHandler` calls of tqdm."""

    def __init__(self, total: int | None = None, desc: str = "", file: Any = None) -> None:
        self._total, self._desc = total, desc
        self._file = sys.stderr if file is None else file
        self._count, self._values = 0, ""

    def set_postfix_str(self, s: str, refresh: bool = True) -> None:
        self._values = s
        if refresh:
            self._show()

    def update(self, n: int) -> None:
        self._count += n

    def _show(self) -> None:
        done = f"{self._count} batches" if self._total is None else ProgressBar(self._total, 30).text(self._count)
        self._file.write(f"\r{self._desc}: {done} {self._values}".ljust(79))
        self._file.flush()

    def close(self) -> None:
        self._file.write("\n")
        self._file.flush()


def _default_bar() -> Callable[..., Any]:
    try:
        made: Callable[..., Any] = importlib.import_module("tqdm").tqdm
    except ImportError:
        return _Line
    return made


class ProgressBarHandler(TrainEnd, EpochBegin, BatchEnd, EpochEnd):
    """Shows a bar for each epoch, with the values of metrics behind it.

    Parameters
    ----------
    metrics : EvalMetric or sequence of EvalMetric, optional
        By default the estimator's own, of the training or of the evaluation. Others must be updated by another handler;
        a warning tells of one that has no value after an epoch.
    bar : callable of (total, desc, file), optional
        Makes a bar with the methods `update`, `set_postfix_str` and `close` of ``tqdm.tqdm``. By default that one if
        the package tqdm is installed, else one line of text.
    file : file, optional
        Where it is written to; the standard error by default.
    priority : float

    Notes
    -----
    Metrics are read ten times a second at most, since that waits for the device.

    Examples
    --------
    >>> import io
    >>> from mxnet.gluon.contrib import estimator
    >>> loop = estimator.Estimator(mx.gluon.nn.Dense(1), mx.gluon.loss.L2Loss())
    >>> loop.logger.setLevel('WARNING')
    >>> data = [(np.ones((4, 2)), np.ones((4, 1)))] * 2
    >>> shown = io.StringIO()
    >>> loop.fit(data, epochs=1, event_handlers=[estimator.ProgressBarHandler(file=shown)])
    >>> '100%' in shown.getvalue(), 'training mse' in shown.getvalue()
    (True, True)
    """

    def __init__(
        self,
        metrics: EvalMetric | Sequence[EvalMetric] | None = None,
        bar: Callable[..., Any] | None = None,
        file: Any = None,
        priority: float = 100,
    ) -> None:
        self.metrics = _listed(metrics)
        self.priority = priority
        self._make = bar
        self._file = file
        self._bar: Any = None
        self._shown_at = 0.0

    def epoch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        self._close()
        number = f"epoch {estimator.current_epoch + 1}" if estimator.is_training else "evaluation"
        total = estimator.num_batches if estimator.is_training else None
        make = self._make or _default_bar()
        self._bar = make(total=total, desc=number, file=self._file)
        if estimator.batch_in_epoch and estimator.is_training:
            self._bar.update(estimator.batch_in_epoch)
        self._shown_at = -math.inf

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        if time.perf_counter() - self._shown_at >= _INTERVAL:
            self._show(estimator)
        self._bar.update(1)

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        if self._bar is not None:
            self._show(estimator)
            self._close()
            _warn_of_unmeasured("ProgressBarHandler", self.metrics, estimator)

    def train_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        self._close()

    def _show(self, estimator: Any) -> None:
        metrics = self.metrics
        if metrics is None:
            metrics = estimator.train_metrics if estimator.is_training else estimator.val_metrics
        self._bar.set_postfix_str(", ".join(f"{name}: {value:.4g}" for name, value in _values(metrics)))
        self._shown_at = time.perf_counter()

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class TensorBoardHandler(TrainBegin, BatchEnd, EpochEnd):
    """Writes metrics and the learning rate to files that TensorBoard shows.

    Parameters
    ----------
    logging_dir : path
        Folder of the files; it is made if there is none. ``tensorboard --logdir`` takes it.
    log_interval : "epoch" or int
        After each epoch only, or after this number of batches, too.
    metrics : EvalMetric or sequence of EvalMetric, optional
        The estimator's own, of training and validation, by default. Others are as for `ProgressBarHandler`.
    prefix : str, optional
        Names are ``prefix/name``.
    priority : float

    Raises
    ------
    ValueError
        If `log_interval` is neither "epoch" nor a positive integer.
    OSError
        If the folder or the file cannot be made, when the training begins.

    Notes
    -----
    The step of a value is the number of batches so far. TensorBoard itself is not needed to write.

    Examples
    --------
    >>> import os, tempfile
    >>> from mxnet.gluon.contrib import estimator
    >>> loop = estimator.Estimator(mx.gluon.nn.Dense(1), mx.gluon.loss.L2Loss())
    >>> loop.logger.setLevel('WARNING')
    >>> data = [(np.ones((4, 2)), np.ones((4, 1)))] * 2
    >>> folder = tempfile.TemporaryDirectory()
    >>> loop.fit(data, epochs=1, event_handlers=[estimator.TensorBoardHandler(folder.name)])
    >>> ['tfevents' in name for name in os.listdir(folder.name)]
    [True]
    >>> folder.cleanup()
    """

    def __init__(
        self,
        logging_dir: PathLike,
        log_interval: str | int = "epoch",
        metrics: EvalMetric | Sequence[EvalMetric] | None = None,
        prefix: str | None = None,
        priority: float = math.inf,
    ) -> None:
        if log_interval != "epoch" and not (isinstance(log_interval, int) and log_interval > 0):
            raise ValueError(f"TensorBoardHandler: `log_interval` must be 'epoch' or a count, found {log_interval!r}")
        self.logging_dir = logging_dir
        self.log_interval = log_interval
        self.metrics = _listed(metrics)
        self.prefix = prefix
        self.priority = priority
        self._events: EventFile | None = None

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        self._events = EventFile(self.logging_dir)

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        if isinstance(self.log_interval, int) and estimator.current_batch % self.log_interval == 0:
            self._write(estimator, estimator.train_metrics if self.metrics is None else self.metrics)

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        own = [*estimator.train_metrics, *estimator.val_metrics]
        self._write(estimator, own if self.metrics is None else self.metrics)
        _warn_of_unmeasured("TensorBoardHandler", self.metrics, estimator)

    def _write(self, estimator: Any, metrics: Sequence[EvalMetric]) -> None:
        if self._events is None:
            return
        for name, value in [*_values(metrics), ("learning rate", estimator.trainer.learning_rate)]:
            self._events.add(name if self.prefix is None else f"{self.prefix}/{name}", value, estimator.current_batch)
        self._events.flush()
