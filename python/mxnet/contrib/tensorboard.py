"""Metrics for TensorBoard, from training loops of one's own."""

from __future__ import annotations

from typing import Any

from mxnet.base import PathLike
from mxnet.gluon.contrib.estimator._event_file import EventFile

__all__ = ["LogMetricsCallback"]


class LogMetricsCallback:
    """Writes the values of a metric to a file that TensorBoard shows.

    Parameters
    ----------
    logging_dir : path
        Folder of the file; it is made if there is none. ``tensorboard --logdir`` takes it.
    prefix : str, optional
        Names are ``prefix-name``.

    Raises
    ------
    OSError
        If the folder or the file cannot be made.

    Notes
    -----
    The step of a value is the number of calls so far. `mx.gluon.contrib.estimator.TensorBoardHandler` does this in an
    `Estimator`.

    Examples
    --------
    >>> import os, tempfile
    >>> from types import SimpleNamespace
    >>> folder = tempfile.TemporaryDirectory()
    >>> log = mx.contrib.tensorboard.LogMetricsCallback(folder.name)
    >>> metric = mx.gluon.metric.Accuracy()
    >>> metric.update(np.array([1]), np.array([[0.1, 0.9]]))
    >>> log(SimpleNamespace(eval_metric=metric))
    >>> len(os.listdir(folder.name))
    1
    >>> folder.cleanup()
    """

    def __init__(self, logging_dir: PathLike, prefix: str | None = None) -> None:
        self.prefix = prefix
        self.step = 0
        self._events = EventFile(logging_dir)

    def __call__(self, param: Any) -> None:
        """Write the values.

        Parameters
        ----------
        param : object
            With `eval_metric`, a metric or None.
        """
        self.step += 1
        if param.eval_metric is None:
            return
        for name, value in param.eval_metric.get_name_value():
            self._events.add(name if self.prefix is None else f"{self.prefix}-{name}", value, self.step)
        self._events.flush()
