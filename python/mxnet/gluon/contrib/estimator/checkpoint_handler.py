"""Checkpoints of a training, and going on from one to the same bits."""

from __future__ import annotations

import json
import math
import os
import re
from typing import Any

from mxnet import _core
from mxnet import numpy as np
from mxnet._atomic_file import write_atomically
from mxnet.base import PathLike
from mxnet.error import FileFormatError
from mxnet.gluon.contrib.estimator.event_handler import BatchEnd, EpochEnd, TrainBegin, is_better
from mxnet.gluon.metric import EvalMetric

__all__ = ["CheckpointHandler"]

_VERSION = 1
_SUFFIXES = ("json", "states", "params")


class CheckpointHandler(TrainBegin, BatchEnd, EpochEnd):
    """Saves the parameters, the states of the optimizer, the random numbers and the position in the data.

    A checkpoint is three files ``{model_prefix}-epoch{e}batch{b}`` in `model_dir`: ``.params``, ``.states`` and
    ``.json``. The last is written last, so that an unfinished checkpoint is none.

    Parameters
    ----------
    model_dir : path
        Made if it does not exist.
    model_prefix : str
    monitor : EvalMetric, optional
        Metric for `save_best`.
    verbose : int
        With 1 what is saved is logged.
    save_best : bool
        Also save ``{model_prefix}-best`` whenever `monitor` is better than ever at a checkpoint of an epoch.
    mode : {"auto", "min", "max"}
        Whether smaller or larger is better; "auto" decides by the name of the metric.
    epoch_period, batch_period : int, optional
        After how many epochs and batches; None is never.
    max_checkpoints : int
        Older ones are removed.
    resume_from_checkpoint : bool
        Go on from the newest checkpoint in `model_dir`, if there is one.

    Raises
    ------
    ValueError
        If a number is not positive, `mode` is unknown, or `save_best` has no `monitor`.

    Notes
    -----
    A resumed training gives the same bits as one that was not interrupted, if the data come in an order that depends on
    `mx.random.seed` only, and batches are not changed at random by worker threads ahead of time. The running training
    metrics of an epoch that is resumed in its middle count the batches after the checkpoint, and other handlers begin
    anew.

    Examples
    --------
    >>> import os, tempfile
    >>> from mxnet.gluon.contrib import estimator
    >>> loop = estimator.Estimator(mx.gluon.nn.Dense(1), mx.gluon.loss.L2Loss())
    >>> loop.logger.setLevel('WARNING')
    >>> data = [(np.ones((4, 2)), np.ones((4, 1)))] * 2
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     loop.fit(data, epochs=1, event_handlers=[estimator.CheckpointHandler(folder)])
    ...     sorted(os.listdir(folder))
    ['model-epoch1batch2.json', 'model-epoch1batch2.params', 'model-epoch1batch2.states']
    """

    def __init__(
        self,
        model_dir: PathLike,
        model_prefix: str = "model",
        monitor: EvalMetric | None = None,
        verbose: int = 0,
        save_best: bool = False,
        mode: str = "auto",
        epoch_period: int | None = 1,
        batch_period: int | None = None,
        max_checkpoints: int = 5,
        resume_from_checkpoint: bool = False,
    ) -> None:
        periods = {"epoch_period": epoch_period, "batch_period": batch_period, "max_checkpoints": max_checkpoints}
        for name, count in periods.items():
            if count is not None and count < 1:
                raise ValueError(f"CheckpointHandler: `{name}` must be positive, found {count}")
        if monitor is None and save_best:
            raise ValueError("CheckpointHandler: `save_best` needs a `monitor`")
        if monitor is not None and not isinstance(monitor, EvalMetric):
            raise TypeError(f"CheckpointHandler: `monitor` must be a metric, found {type(monitor).__name__}")
        self.model_dir = os.fspath(model_dir)
        self.model_prefix = model_prefix
        self.monitor = monitor
        self.verbose = verbose
        self.save_best = save_best
        self.epoch_period = epoch_period
        self.batch_period = batch_period
        self.max_checkpoints = max_checkpoints
        self.resume_from_checkpoint = resume_from_checkpoint
        self._is_better = None if monitor is None else is_better("CheckpointHandler", monitor, mode)
        self.best = math.nan

    def _checkpoints(self) -> list[str]:
        """Paths of the complete checkpoints without suffix, the oldest first."""
        pattern = re.compile(re.escape(self.model_prefix) + r"-epoch(\d+)batch(\d+)\.json")
        found = (pattern.fullmatch(name) for name in os.listdir(self.model_dir))
        ordered = sorted((int(match[2]), int(match[1]), match[0][: -len(".json")]) for match in found if match)
        return [os.path.join(self.model_dir, name) for _, _, name in ordered]

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        os.makedirs(self.model_dir, exist_ok=True)
        self.best = math.nan
        checkpoints = self._checkpoints() if self.resume_from_checkpoint else []
        if checkpoints:
            self._resume(estimator, checkpoints[-1])

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        if self.batch_period is not None and estimator.current_batch % self.batch_period == 0:
            self._save(estimator)

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        if self.epoch_period is None or estimator.current_epoch % self.epoch_period:
            return
        if self.monitor is not None and self._is_better is not None and self.save_best:
            value = float(self.monitor.get()[1])
            if math.isnan(self.best) or self._is_better(value, self.best):
                self.best = value
                self._write(estimator, os.path.join(self.model_dir, f"{self.model_prefix}-best"))
        self._save(estimator)

    def _save(self, estimator: Any) -> None:
        name = f"{self.model_prefix}-epoch{estimator.current_epoch}batch{estimator.current_batch}"
        self._write(estimator, os.path.join(self.model_dir, name))
        for old in self._checkpoints()[: -self.max_checkpoints]:
            for suffix in _SUFFIXES:
                os.unlink(f"{old}.{suffix}")

    def _write(self, estimator: Any, path: str) -> None:
        estimator.net.save_parameters(f"{path}.params")
        estimator.trainer.save_states(f"{path}.states")
        position = {
            "version": _VERSION,
            "epoch": estimator.current_epoch,
            "batch": estimator.current_batch,
            "batch_in_epoch": estimator.batch_in_epoch,
            "random": np.random.get_state(),
            "random_at_epoch_begin": estimator.random_at_epoch_begin,
            "best": None if math.isnan(self.best) else self.best,
        }

        def write(name: str) -> None:
            with open(name, "w", encoding="utf-8") as file:
                json.dump(position, file)

        write_atomically(f"{path}.json", write)
        if self.verbose:
            estimator.logger.info("saved checkpoint %s", path)

    def _resume(self, estimator: Any, path: str) -> None:
        try:
            _core.check_file(f"{path}.json")
            with open(f"{path}.json", encoding="utf-8") as file:
                position = json.load(file)
            if position["version"] != _VERSION:
                raise FileFormatError(f"{path}.json: version {position['version']} is not known, only {_VERSION}")
            counts = {name: int(position[name]) for name in ("epoch", "batch", "batch_in_epoch")}
            now, at_begin = tuple(position["random"]), tuple(position["random_at_epoch_begin"])
            best = math.nan if position["best"] is None else float(position["best"])
        except (KeyError, TypeError, ValueError) as error:
            raise FileFormatError(f"{path}.json is no checkpoint of an estimator: {error}") from error
        estimator.net.load_parameters(f"{path}.params", device=estimator.device)
        estimator.trainer.load_states(f"{path}.states")
        estimator.resume_at(**counts, random=now, random_at_epoch_begin=at_begin)
        self.best = best
        if self.verbose:
            estimator.logger.info("resumed from checkpoint %s", path)
