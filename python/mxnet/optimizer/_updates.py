"""Fused updates of many weights: hyperparameters as arrays, and the only place that names the operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mxnet import _core
from mxnet import numpy as np
from mxnet.device import Device

__all__ = ["StepNumbers", "fused_adagrad", "fused_adam", "fused_adamw", "fused_nag", "fused_rmsprop", "fused_sgd"]

_op = _core.namespaces["op"]

fused_sgd = _op["fused_sgd"]
fused_nag = _op["fused_nag"]
fused_adam = _op["fused_adam"]
fused_adamw = _op["fused_adamw"]
fused_rmsprop = _op["fused_rmsprop"]
fused_adagrad = _op["fused_adagrad"]


class StepNumbers:
    """Hyperparameters of a list of weights that change from step to step, as float64 arrays.

    The arrays remain the same objects and only their elements are written, so that a traced step reads them as inputs.

    Parameters
    ----------
    num_weights : int
    device : Device
        Where the weights are.

    Attributes
    ----------
    lrs, wds : ndarray, shape (num_weights,)
        Learning rate and weight decay of each weight.
    counts : ndarray, shape (num_weights,)
        Number of updates of each weight, the next one included.
    rescale_grad : ndarray, shape ()
        Factor of the gradients.
    """

    def __init__(self, num_weights: int, device: Device) -> None:
        self.lrs, self.wds, self.counts = (np.zeros((num_weights,), dtype="float64", device=device) for _ in range(3))
        self.rescale_grad = np.ones((), dtype="float64", device=device)
        self._written: dict[str, Any] = {}

    def write(self, lrs: Sequence[float], wds: Sequence[float], counts: Sequence[float], rescale_grad: float) -> None:
        """Set the values of the next step. Unchanged values are not written again.

        Parameters
        ----------
        lrs, wds, counts : sequence of float, length num_weights
        rescale_grad : float
        """
        for name, values in (("lrs", lrs), ("wds", wds), ("counts", counts), ("rescale_grad", rescale_grad)):
            if self._written.get(name) == values:
                continue
            same = set(values) if isinstance(values, list) else set()
            getattr(self, name)[...] = same.pop() if len(same) == 1 else values
            self._written[name] = values
