"""Learning rates as functions of the number of updates."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mxnet._argument_repr import argument_repr

__all__ = ["CosineScheduler", "FactorScheduler", "LRScheduler", "MultiFactorScheduler", "PolyScheduler"]


class LRScheduler:
    """Base class: a warm-up, then a rate that the subclass defines.

    Parameters
    ----------
    base_lr : float
        Rate when the warm-up is over.
    warmup_steps : int
        Number of updates of the warm-up.
    warmup_begin_lr : float
        Rate at update 0 if there is a warm-up, at most `base_lr`.
    warmup_mode : {"linear", "constant"}
        Whether the rate rises from `warmup_begin_lr` to `base_lr` or stays at `warmup_begin_lr` till its end.

    Raises
    ------
    ValueError
        If a number is out of range or `warmup_mode` is unknown.

    Examples
    --------
    >>> class Halving(mx.lr_scheduler.LRScheduler):
    ...     def __call__(self, num_update):
    ...         return self.base_lr * 0.5**num_update
    >>> Halving(base_lr=1.0)(3)
    0.125
    """

    def __repr__(self) -> str:
        return argument_repr(self)

    def __init__(
        self,
        base_lr: float = 0.01,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0,
        warmup_mode: str = "linear",
    ) -> None:
        if warmup_begin_lr > base_lr:
            raise ValueError(f"`warmup_begin_lr` ({warmup_begin_lr}) must not exceed `base_lr` ({base_lr})")
        if warmup_steps < 0:
            raise ValueError(f"`warmup_steps` must be at least 0, found {warmup_steps}")
        if warmup_mode not in ("linear", "constant"):
            raise ValueError(f"`warmup_mode` must be 'linear' or 'constant', found {warmup_mode!r}")
        self.base_lr = base_lr
        self.warmup_steps = warmup_steps
        self.warmup_begin_lr = warmup_begin_lr
        self.warmup_final_lr = base_lr
        self.warmup_mode = warmup_mode

    def get_warmup_lr(self, num_update: int) -> float:
        """Rate during the warm-up.

        Parameters
        ----------
        num_update : int
            From 0 to ``warmup_steps - 1``.

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If the warm-up is over at `num_update`.
        """
        if not 0 <= num_update < self.warmup_steps:
            raise ValueError(f"`num_update` must be from 0 to {self.warmup_steps - 1}, found {num_update}")
        if self.warmup_mode == "constant":
            return self.warmup_begin_lr
        rise = (self.warmup_final_lr - self.warmup_begin_lr) * num_update / self.warmup_steps
        return self.warmup_begin_lr + rise

    def __call__(self, num_update: int) -> float:
        """Rate of an update.

        Parameters
        ----------
        num_update : int
            Largest number of updates that any one weight has had.

        Returns
        -------
        float
        """
        raise NotImplementedError(f"{type(self).__name__} does not define __call__")


def _check_factor(factor: float) -> None:
    if factor > 1.0:
        raise ValueError(f"`factor` must be at most 1, so that the rate falls, found {factor}")


class FactorScheduler(LRScheduler):
    """Multiply the rate by `factor` every `step` updates.

    Parameters
    ----------
    step : int
        At least 1.
    factor : float
        At most 1.
    stop_factor_lr : float
        The rate never falls below.
    base_lr, warmup_steps, warmup_begin_lr, warmup_mode
        See `LRScheduler`.

    Raises
    ------
    ValueError
        If a number is out of range.

    Examples
    --------
    >>> schedule = mx.lr_scheduler.FactorScheduler(step=2, factor=0.5, base_lr=1.0)
    >>> [schedule(step) for step in range(1, 7)]
    [1.0, 1.0, 0.5, 0.5, 0.25, 0.25]
    """

    def __init__(
        self,
        step: int,
        factor: float = 1,
        stop_factor_lr: float = 1e-8,
        base_lr: float = 0.01,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0,
        warmup_mode: str = "linear",
    ) -> None:
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        if step < 1:
            raise ValueError(f"`step` must be at least 1, found {step}")
        _check_factor(factor)
        self.step = step
        self.factor = factor
        self.stop_factor_lr = stop_factor_lr
        self.count = 0

    def __call__(self, num_update: int) -> float:
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        # The rate of update `count + step` still belongs to the step that began at `count`, hence `>`.
        while num_update > self.count + self.step:
            self.count += self.step
            self.base_lr = max(self.base_lr * self.factor, self.stop_factor_lr)
        return self.base_lr


class MultiFactorScheduler(LRScheduler):
    """Multiply the rate by `factor` after each of the given numbers of updates.

    Parameters
    ----------
    step : sequence of int
        Rising, each at least 1.
    factor : float
        At most 1.
    base_lr, warmup_steps, warmup_begin_lr, warmup_mode
        See `LRScheduler`.

    Raises
    ------
    ValueError
        If `step` is empty, not rising or below 1, or `factor` exceeds 1.

    Examples
    --------
    >>> schedule = mx.lr_scheduler.MultiFactorScheduler(step=[2, 4], factor=0.1, base_lr=1.0)
    >>> [round(schedule(step), 3) for step in range(1, 7)]
    [1.0, 1.0, 0.1, 0.1, 0.01, 0.01]
    """

    def __init__(
        self,
        step: Sequence[int],
        factor: float = 1,
        base_lr: float = 0.01,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0,
        warmup_mode: str = "linear",
    ) -> None:
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        steps = list(step)
        if not steps or steps[0] < 1 or any(a >= b for a, b in zip(steps, steps[1:], strict=False)):
            raise ValueError(f"`step` must be rising numbers of at least 1, found {steps}")
        _check_factor(factor)
        self.step = steps
        self.cur_step_ind = 0
        self.factor = factor
        self.count = 0

    def __call__(self, num_update: int) -> float:
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        while self.cur_step_ind < len(self.step) and num_update > self.step[self.cur_step_ind]:
            self.count = self.step[self.cur_step_ind]
            self.cur_step_ind += 1
            self.base_lr *= self.factor
        return self.base_lr


class _Decay(LRScheduler):
    """A curve from `base_lr` at the end of the warm-up to `final_lr` at `max_update`."""

    def __init__(
        self,
        max_update: int,
        base_lr: float,
        final_lr: float,
        warmup_steps: int,
        warmup_begin_lr: float,
        warmup_mode: str,
    ) -> None:
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        if max_update // 1 != max_update:
            raise ValueError(f"`max_update` must be a whole number, found {max_update}")
        if max_update < 1 or max_update <= warmup_steps:
            raise ValueError(
                f"`max_update` ({max_update}) must be at least 1 and exceed `warmup_steps` ({warmup_steps})"
            )
        self.base_lr_orig = base_lr
        self.max_update = max_update
        self.final_lr = final_lr
        self.max_steps = max_update - warmup_steps

    def _height(self, progress: float) -> float:
        """Part of the way from `final_lr` up to `base_lr`, for progress from 0 to 1."""
        raise NotImplementedError

    def __call__(self, num_update: int) -> float:
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        progress = min(num_update - self.warmup_steps, self.max_steps) / self.max_steps
        self.base_lr = self.final_lr + (self.base_lr_orig - self.final_lr) * self._height(progress)
        return self.base_lr


class PolyScheduler(_Decay):
    """Let the rate fall to `final_lr` along a power of the remaining part of the training.

    Parameters
    ----------
    max_update : int
        Update at which `final_lr` is reached.
    base_lr : float
    pwr : float
        Exponent; 1 is a straight line.
    final_lr : float
    warmup_steps, warmup_begin_lr, warmup_mode
        See `LRScheduler`.

    Raises
    ------
    ValueError
        If `max_update` is no whole number, below 1 or not beyond the warm-up.

    Examples
    --------
    >>> schedule = mx.lr_scheduler.PolyScheduler(max_update=10, base_lr=1.0, pwr=2)
    >>> [round(schedule(step), 3) for step in (0, 5, 10)]
    [1.0, 0.25, 0.0]
    """

    def __init__(
        self,
        max_update: int,
        base_lr: float = 0.01,
        pwr: float = 2,
        final_lr: float = 0,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0,
        warmup_mode: str = "linear",
    ) -> None:
        super().__init__(max_update, base_lr, final_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        self._pwr = pwr

    @property
    def power(self) -> float:
        """float: the exponent of the polynomial."""
        return self._pwr

    def _height(self, progress: float) -> float:
        return float((1 - progress) ** self._pwr)


class CosineScheduler(_Decay):
    """Let the rate fall to `final_lr` along half a cosine wave.

    Parameters
    ----------
    max_update : int
        Update at which `final_lr` is reached.
    base_lr : float
    final_lr : float
    warmup_steps, warmup_begin_lr, warmup_mode
        See `LRScheduler`.

    Raises
    ------
    ValueError
        If `max_update` is no whole number, below 1 or not beyond the warm-up.

    Notes
    -----
    Source: I. Loshchilov and F. Hutter, "SGDR: Stochastic Gradient Descent with Warm Restarts", equation 5, one period.

    Examples
    --------
    >>> schedule = mx.lr_scheduler.CosineScheduler(max_update=10, base_lr=1.0, final_lr=0.0)
    >>> [round(schedule(step), 3) for step in (0, 5, 10)]
    [1.0, 0.5, 0.0]
    """

    def __init__(
        self,
        max_update: int,
        base_lr: float = 0.01,
        final_lr: float = 0,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0,
        warmup_mode: str = "linear",
    ) -> None:
        super().__init__(max_update, base_lr, final_lr, warmup_steps, warmup_begin_lr, warmup_mode)

    def _height(self, progress: float) -> float:
        return (1 + math.cos(math.pi * progress)) / 2
