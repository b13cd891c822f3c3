"""The factor by which losses are multiplied, so that gradients do not vanish in float16."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from mxnet import autograd
from mxnet import numpy as np

if TYPE_CHECKING:
    from mxnet.gluon import Parameter

__all__ = ["LossScaler", "gradient_values"]


def gradient_values(params: Iterable[Parameter]) -> list[Any]:
    """The elements of all gradients, one array for each parameter and device; of row-sparse ones those of their rows.

    Parameters
    ----------
    params : iterable of Parameter
        Those without gradients are passed over.
    """
    found: list[Any] = []
    for parameter in params:
        if parameter.grad_req != "null":
            grads: list[Any] = parameter.list_grad()
            found += [grad.data for grad in grads] if parameter.grad_stype == "row_sparse" else grads
    return found


class LossScaler:
    """A factor for the loss that follows the gradients: halved when one of them overflows, else doubled now and then.

    Parameters
    ----------
    init_scale : float
        The first factor.
    scale_factor : float
        What the factor is divided by after an overflow, and multiplied by after `scale_window` steps without one.
    scale_window : int
    max_scale : float
        The factor does not grow beyond it.

    Raises
    ------
    ValueError
        If a factor is not positive, `scale_factor` is not above 1, or `scale_window` is below 1.

    Examples
    --------
    >>> scaler = mx.amp.LossScaler(init_scale=1024.0)
    >>> scaler.update_scale(overflow=True)
    >>> scaler.loss_scale
    512.0
    """

    def __init__(
        self,
        init_scale: float = 2.0**16,
        scale_factor: float = 2.0,
        scale_window: int = 2000,
        max_scale: float = 2.0**24,
    ) -> None:
        if not 0 < init_scale <= max_scale:
            raise ValueError(
                f"LossScaler: `init_scale` must be positive and at most `max_scale` {max_scale}, found {init_scale}"
            )
        if not scale_factor > 1:
            raise ValueError(f"LossScaler: `scale_factor` must be above 1, found {scale_factor}")
        if scale_window < 1:
            raise ValueError(f"LossScaler: `scale_window` must be at least 1, found {scale_window}")
        self._loss_scale = float(init_scale)
        self._scale_factor = float(scale_factor)
        self._scale_window = scale_window
        self._max_scale = float(max_scale)
        self._num_good = 0

    @property
    def loss_scale(self) -> float:
        """The factor of the next loss."""
        return self._loss_scale

    def has_overflow(self, params: Iterable[Parameter]) -> bool:
        """Whether a gradient has a NaN or an infinity; waits for the gradients.

        Parameters
        ----------
        params : iterable of Parameter
            Those without gradients are passed over.

        Returns
        -------
        bool

        Examples
        --------
        >>> net = mx.gluon.nn.Dense(1, in_units=1)
        >>> net.initialize()
        >>> mx.amp.LossScaler().has_overflow(net.collect_params().values())
        False
        """
        with autograd.pause():
            are_finite = [np.isfinite(values).all() for values in gradient_values(params)]
        return not all(map(bool, are_finite))

    def update_scale(self, overflow: bool) -> None:
        """Count a step and change the factor if it is time.

        Parameters
        ----------
        overflow : bool
            Whether a gradient of the step was not finite.

        Examples
        --------
        >>> scaler = mx.amp.LossScaler(init_scale=4.0, scale_window=2)
        >>> scaler.update_scale(overflow=False)
        >>> scaler.update_scale(overflow=False)
        >>> scaler.loss_scale
        8.0
        """
        if overflow:
            self._loss_scale /= self._scale_factor
            self._num_good = 0
            return
        self._num_good += 1
        if self._num_good == self._scale_window:
            self._loss_scale = min(self._loss_scale * self._scale_factor, self._max_scale)
            self._num_good = 0
