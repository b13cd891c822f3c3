"""Gradient descent: plain, with momentum, and Nesterov's variant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mxnet import numpy as np
from mxnet.numpy import ndarray
from mxnet.optimizer._updates import StepNumbers, fused_nag, fused_sgd
from mxnet.optimizer.optimizer import Optimizer, State, register

__all__ = ["NAG", "SGD"]


@register
class SGD(Optimizer):
    """Gradient descent with momentum and weight decay.

    With ``g = clip(rescale_grad * grad) + wd * weight``::

        mom = momentum * mom - lr * g
        weight = weight + mom

    Parameters
    ----------
    learning_rate : float
    momentum : float
        0 keeps no state.
    lazy_update : bool
        Leave rows without a gradient, and their states, alone: of row-sparse gradients only stored rows are applied.
        Otherwise a step decays momentum and weights of all rows.
    multi_precision, use_fused_step, aggregate_num
        See `Optimizer`.
    **kwargs
        Further arguments of `Optimizer`.

    Examples
    --------
    >>> optimizer = mx.optimizer.SGD(learning_rate=0.1)
    >>> weight, gradient = np.array([1.0]), np.array([2.0])
    >>> optimizer.update([0], [weight], [gradient], [optimizer.create_state(0, weight)])
    >>> weight
    array([0.8])
    """

    _is_rowwise = True

    def __init__(
        self,
        learning_rate: float | None = 0.1,
        momentum: float = 0.0,
        lazy_update: bool = False,
        multi_precision: bool = False,
        use_fused_step: bool = True,
        aggregate_num: float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            learning_rate=learning_rate,
            multi_precision=multi_precision,
            use_fused_step=use_fused_step,
            aggregate_num=aggregate_num,
            **kwargs,
        )
        self.momentum = momentum
        self.lazy_update = lazy_update

    def create_state(self, index: int, weight: ndarray) -> State:
        return None if self.momentum == 0.0 else np.zeros_like(weight)

    def _rule(self, weight: ndarray, grad: ndarray, state: State, lr: float, wd: float, count: int) -> None:
        grad = grad + wd * weight
        if state is None:
            weight[:] = weight - lr * grad
        else:
            state[:] = self.momentum * state - lr * grad
            weight[:] = weight + state

    def _fused_update(
        self,
        weights: Sequence[ndarray],
        grads: Sequence[ndarray],
        states: Sequence[State],
        masters: Sequence[ndarray | None],
        numbers: StepNumbers,
    ) -> None:
        fused_sgd(
            weights,
            grads,
            states,
            masters,
            numbers.lrs,
            numbers.wds,
            numbers.rescale_grad,
            momentum=self.momentum,
            clip_gradient=self.clip_gradient,
        )


@register
class NAG(Optimizer):
    """Gradient descent with Nesterov's momentum.

    With ``g = clip(rescale_grad * grad) + wd * weight``::

        mom = momentum * mom - lr * g
        weight = weight + momentum * mom - lr * g

    Parameters
    ----------
    learning_rate : float
    momentum : float
        0 keeps no state.
    multi_precision, use_fused_step
        See `Optimizer`.
    **kwargs
        Further arguments of `Optimizer`.

    Examples
    --------
    >>> optimizer = mx.optimizer.NAG(learning_rate=0.1, momentum=0.9)
    >>> weight, gradient = np.array([1.0]), np.array([2.0])
    >>> optimizer.update([0], [weight], [gradient], [optimizer.create_state(0, weight)])
    >>> weight
    array([0.62])
    """

    def __init__(
        self,
        learning_rate: float | None = 0.1,
        momentum: float = 0.9,
        multi_precision: bool = False,
        use_fused_step: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            learning_rate=learning_rate, multi_precision=multi_precision, use_fused_step=use_fused_step, **kwargs
        )
        self.momentum = momentum

    def create_state(self, index: int, weight: ndarray) -> State:
        return None if self.momentum == 0.0 else np.zeros_like(weight)

    def _rule(self, weight: ndarray, grad: ndarray, state: State, lr: float, wd: float, count: int) -> None:
        grad = grad + wd * weight
        if state is None:
            weight[:] = weight - lr * grad
        else:
            state[:] = self.momentum * state - lr * grad
            weight[:] = weight + (self.momentum * state - lr * grad)

    def _fused_update(
        self,
        weights: Sequence[ndarray],
        grads: Sequence[ndarray],
        states: Sequence[State],
        masters: Sequence[ndarray | None],
        numbers: StepNumbers,
    ) -> None:
        fused_nag(
            weights,
            grads,
            states,
            masters,
            numbers.lrs,
            numbers.wds,
            numbers.rescale_grad,
            momentum=self.momentum,
            clip_gradient=self.clip_gradient,
        )
