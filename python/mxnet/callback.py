"""Callbacks of training loops that report progress.

Each is called with an object that has the attributes `epoch` and `nbatch`, and `eval_metric` for `Speedometer`.
"""

from __future__ import annotations

import logging
import math
import time
from typing import Any

from mxnet._renamed import attribute_finder

__all__ = ["ProgressBar", "Speedometer"]

__getattr__ = attribute_finder(__name__)


class Speedometer:
    """Logs samples per second, and the values of the metric, every `frequent` batches.

    Parameters
    ----------
    batch_size : int
        Number of samples of a batch.
    frequent : int
        Number of batches between lines.
    auto_reset : bool
        Reset the metric after each line, so that values are of the batches since the line before.

    Raises
    ------
    ValueError
        If a number is not positive.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> report = mx.callback.Speedometer(batch_size=32, frequent=2)
    >>> for number in range(4):
    ...     report(SimpleNamespace(epoch=0, nbatch=number, eval_metric=None))
    """

    def __init__(self, batch_size: int, frequent: int = 50, auto_reset: bool = True) -> None:
        for name, number in (("batch_size", batch_size), ("frequent", frequent)):
            if number < 1:
                raise ValueError(f"Speedometer: `{name}` must be positive, found {number}")
        self.batch_size = batch_size
        self.frequent = frequent
        self.auto_reset = auto_reset
        self._start: float | None = None
        self._last = 0

    def __call__(self, param: Any) -> None:
        """Note a batch.

        Parameters
        ----------
        param : object
            With `epoch`, `nbatch` (number of the batch in the epoch) and `eval_metric` (a metric or None).
        """
        if param.nbatch < self._last:
            # Another epoch.
            self._start = None
        self._last = param.nbatch
        if self._start is None:
            self._start = time.perf_counter()
            return
        if param.nbatch % self.frequent:
            return
        seconds = max(time.perf_counter() - self._start, 1e-9)
        values = ""
        if param.eval_metric is not None:
            values = "".join(f"\t{name}={value:f}" for name, value in param.eval_metric.get_name_value())
            if self.auto_reset:
                param.eval_metric.reset()
        speed = self.frequent * self.batch_size / seconds
        logging.info("Epoch[%d] Batch [%d]\tSpeed: %.2f samples/sec%s", param.epoch, param.nbatch, speed, values)
        self._start = time.perf_counter()


class ProgressBar:
    """Logs a bar of the share of the batches that are done.

    Parameters
    ----------
    total : int
        Number of batches of an epoch.
    length : int
        Number of characters of the bar.

    Raises
    ------
    ValueError
        If a number is not positive.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> bar = mx.callback.ProgressBar(total=4, length=8)
    >>> bar.text(3)
    '[======--] 75%'
    >>> bar(SimpleNamespace(epoch=0, nbatch=3))
    """

    def __init__(self, total: int, length: int = 80) -> None:
        for name, number in (("total", total), ("length", length)):
            if number < 1:
                raise ValueError(f"ProgressBar: `{name}` must be positive, found {number}")
        self.total = total
        self.length = length

    def text(self, count: int) -> str:
        """The bar.

        Parameters
        ----------
        count : int
            Number of batches that are done; more than `total` counts as `total`.

        Returns
        -------
        str
        """
        share = min(max(count / self.total, 0.0), 1.0)
        filled = round(self.length * share)
        return f"[{'=' * filled}{'-' * (self.length - filled)}] {math.ceil(100 * share)}%"

    def __call__(self, param: Any) -> None:
        """Log the bar.

        Parameters
        ----------
        param : object
            With `nbatch`, the number of batches that are done.
        """
        logging.info(self.text(param.nbatch))
