"""Optimizers that scale each element's step by the history of its gradient."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mxnet import numpy as np
from mxnet._renamed import old_keywords
from mxnet.numpy import ndarray
from mxnet.optimizer._updates import StepNumbers, fused_adagrad, fused_adam, fused_adamw, fused_rmsprop
from mxnet.optimizer.optimizer import Optimizer, State, register

__all__ = ["AdaGrad", "Adam", "AdamW", "RMSProp"]


def _bias_correction(beta1: float, beta2: float, count: int) -> float:
    """Factor that undoes the pull of both moments towards their first value, zero."""
    return math.sqrt(1.0 - beta2**count) / (1.0 - beta1**count)


@register
class Adam(Optimizer):
    """Adaptive moment estimation.

    With ``g = clip(rescale_grad * grad) + wd * weight`` and the number ``t`` of the update, from 1::

        mean = beta1 * mean + (1 - beta1) * g
        var = beta2 * var + (1 - beta2) * g**2
        weight = weight - lr * sqrt(1 - beta2**t) / (1 - beta1**t) * mean / (sqrt(var) + epsilon)

    Parameters
    ----------
    learning_rate : float
    beta1, beta2 : float
        Decay of the first and second moment, in ``[0, 1)``.
    epsilon : float
    lazy_update : bool
        Leave rows without a gradient, and their states, alone: of row-sparse gradients only stored rows are applied.
        Otherwise a step decays momentum and weights of all rows.
    use_fused_step
        See `Optimizer`.
    **kwargs
        Further arguments of `Optimizer`.

    Notes
    -----
    Source: D. P. Kingma and J. Ba, "Adam: A Method for Stochastic Optimization", 2014, the efficient form of section 2.

    Examples
    --------
    >>> optimizer = mx.optimizer.Adam(learning_rate=0.1)
    >>> weight, gradient = np.array([1.0]), np.array([2.0])
    >>> optimizer.update([0], [weight], [gradient], [optimizer.create_state(0, weight)])
    >>> weight
    array([0.90000004])
    """

    _is_rowwise = True

    def __init__(
        self,
        learning_rate: float | None = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        lazy_update: bool = False,
        use_fused_step: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, use_fused_step=use_fused_step, **kwargs)
        self.lazy_update = lazy_update
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon

    def create_state(self, index: int, weight: ndarray) -> State:
        return (np.zeros_like(weight), np.zeros_like(weight))

    def _rule(self, weight: ndarray, grad: ndarray, state: State, lr: float, wd: float, count: int) -> None:
        mean, var = state
        grad = grad + wd * weight
        mean[:] = self.beta1 * mean + (1.0 - self.beta1) * grad
        var[:] = self.beta2 * var + (1.0 - self.beta2) * np.square(grad)
        lr *= _bias_correction(self.beta1, self.beta2, count)
        weight[:] = weight - lr * mean / (np.sqrt(var) + self.epsilon)

    def _fused_update(
        self,
        weights: Sequence[ndarray],
        grads: Sequence[ndarray],
        states: Sequence[State],
        masters: Sequence[ndarray | None],
        numbers: StepNumbers,
    ) -> None:
        means, variances = zip(*states, strict=True)
        fused_adam(
            weights,
            grads,
            means,
            variances,
            masters,
            numbers.lrs,
            numbers.wds,
            numbers.rescale_grad,
            numbers.counts,
            beta1=self.beta1,
            beta2=self.beta2,
            epsilon=self.epsilon,
            clip_gradient=self.clip_gradient,
        )


@register
class AdamW(Optimizer):
    """Adam with weight decay that is decoupled from the gradient.

    With ``g = clip(rescale_grad * grad)``, the moments of `Adam` and its bias correction ``c`` (1 without
    `correct_bias`)::

        weight = weight - lr * c * mean / (sqrt(var) + epsilon) - lr * wd * weight

    Parameters
    ----------
    learning_rate : float
    beta1, beta2 : float
        Decay of the first and second moment, in ``[0, 1)``.
    epsilon : float
    correct_bias : bool
        Correct the moments for their start at zero.
    use_fused_step
        See `Optimizer`.
    **kwargs
        Further arguments of `Optimizer`.

    Notes
    -----
    Source: I. Loshchilov and F. Hutter, "Decoupled Weight Decay Regularization", 2017, algorithm 2.

    Examples
    --------
    >>> optimizer = mx.optimizer.AdamW(learning_rate=0.1, wd=0.01)
    >>> weight, gradient = np.array([1.0]), np.array([2.0])
    >>> optimizer.update([0], [weight], [gradient], [optimizer.create_state(0, weight)])
    >>> weight.round(4)
    array([0.899])
    """

    def __init__(
        self,
        learning_rate: float | None = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-6,
        correct_bias: bool = True,
        use_fused_step: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, use_fused_step=use_fused_step, **kwargs)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon
        self.correct_bias = correct_bias

    def create_state(self, index: int, weight: ndarray) -> State:
        return (np.zeros_like(weight), np.zeros_like(weight))

    def _rule(self, weight: ndarray, grad: ndarray, state: State, lr: float, wd: float, count: int) -> None:
        mean, var = state
        mean[:] = self.beta1 * mean + (1.0 - self.beta1) * grad
        var[:] = self.beta2 * var + (1.0 - self.beta2) * np.square(grad)
        factor = _bias_correction(self.beta1, self.beta2, count) if self.correct_bias else 1.0
        weight[:] = weight - (lr * factor * mean / (np.sqrt(var) + self.epsilon) + lr * wd * weight)

    def _fused_wds(self, lrs: Sequence[float], wds: Sequence[float]) -> Sequence[float]:
        return [lr * wd for lr, wd in zip(lrs, wds, strict=True)]

    def _fused_update(
        self,
        weights: Sequence[ndarray],
        grads: Sequence[ndarray],
        states: Sequence[State],
        masters: Sequence[ndarray | None],
        numbers: StepNumbers,
    ) -> None:
        means, variances = zip(*states, strict=True)
        fused_adamw(
            weights,
            grads,
            means,
            variances,
            masters,
            numbers.lrs,
            numbers.wds,
            numbers.rescale_grad,
            numbers.counts if self.correct_bias else None,
            beta1=self.beta1,
            beta2=self.beta2,
            epsilon=self.epsilon,
            clip_gradient=self.clip_gradient,
        )


@register
class AdaGrad(Optimizer):
    """Steps divided by the root of the sum of all squared gradients.

    With ``g = clip(rescale_grad * grad) + wd * weight``::

        history = history + g**2
        weight = weight - lr * g / (sqrt(history) + epsilon)

    Parameters
    ----------
    learning_rate : float
    epsilon : float
    use_fused_step
        See `Optimizer`.
    lazy_update : bool
        Leave rows without a gradient, and their histories, alone: of row-sparse gradients only the stored rows are
        applied.
    **kwargs
        Further arguments of `Optimizer`.

    Notes
    -----
    Source: J. Duchi, E. Hazan and Y. Singer, "Adaptive Subgradient Methods", 2011.

    Examples
    --------
    >>> optimizer = mx.optimizer.AdaGrad(learning_rate=0.1)
    >>> weight, gradient = np.array([1.0]), np.array([2.0])
    >>> optimizer.update([0], [weight], [gradient], [optimizer.create_state(0, weight)])
    >>> weight
    array([0.90000004])
    """

    _is_rowwise = True

    @old_keywords(eps="epsilon")
    def __init__(
        self,
        learning_rate: float | None = 0.01,
        epsilon: float = 1e-6,
        use_fused_step: bool = True,
        lazy_update: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, use_fused_step=use_fused_step, **kwargs)
        self.epsilon = epsilon
        self.lazy_update = lazy_update

    def create_state(self, index: int, weight: ndarray) -> State:
        return np.zeros_like(weight)

    def _rule(self, weight: ndarray, grad: ndarray, state: State, lr: float, wd: float, count: int) -> None:
        grad = grad + wd * weight
        state += np.square(grad)
        weight[:] = weight - lr * grad / (np.sqrt(state) + self.epsilon)

    def _fused_update(
        self,
        weights: Sequence[ndarray],
        grads: Sequence[ndarray],
        states: Sequence[State],
        masters: Sequence[ndarray | None],
        numbers: StepNumbers,
    ) -> None:
        fused_adagrad(
            weights,
            grads,
            states,
            masters,
            numbers.lrs,
            numbers.wds,
            numbers.rescale_grad,
            epsilon=self.epsilon,
            clip_gradient=self.clip_gradient,
        )


@register
class RMSProp(Optimizer):
    """Steps divided by the root of a running mean of squared gradients.

    With ``g = clip(rescale_grad * grad) + wd * weight``::

        var = rho * var + (1 - rho) * g**2
        weight = weight - lr * g / (sqrt(var) + epsilon)

    and, if `centered`::

        mean = rho * mean + (1 - rho) * g
        mom = momentum * mom - lr * g / sqrt(var - mean**2 + epsilon)
        weight = weight + mom

    Parameters
    ----------
    learning_rate : float
    rho : float
        Decay of the running means, in ``[0, 1)``.
    momentum : float
        Used only if `centered`.
    epsilon : float
    centered : bool
        Subtract the squared mean of the gradient.
    clip_weights : float, optional
        Weights are clipped to ``[-clip_weights, clip_weights]``.
    use_fused_step
        See `Optimizer`.
    **kwargs
        Further arguments of `Optimizer`.

    Raises
    ------
    ValueError
        If `clip_weights` is not positive.

    Notes
    -----
    Source: A. Graves, "Generating Sequences With Recurrent Neural Networks", 2013, equations 38 to 45 (centered).

    Examples
    --------
    >>> optimizer = mx.optimizer.RMSProp(learning_rate=0.1)
    >>> weight, gradient = np.array([1.0]), np.array([2.0])
    >>> optimizer.update([0], [weight], [gradient], [optimizer.create_state(0, weight)])
    >>> weight.round(4)
    array([0.6838])
    """

    @old_keywords(gamma1="rho", gamma2="momentum")
    def __init__(
        self,
        learning_rate: float | None = 0.001,
        rho: float = 0.9,
        momentum: float = 0.9,
        epsilon: float = 1e-8,
        centered: bool = False,
        clip_weights: float | None = None,
        use_fused_step: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, use_fused_step=use_fused_step, **kwargs)
        if clip_weights is not None and clip_weights <= 0:
            raise ValueError(f"`clip_weights` must be positive or None, found {clip_weights}")
        self.rho = rho
        self.momentum = momentum
        self.epsilon = epsilon
        self.centered = centered
        self.clip_weights = clip_weights

    def create_state(self, index: int, weight: ndarray) -> State:
        return tuple(np.zeros_like(weight) for _ in range(3 if self.centered else 1))

    def _rule(self, weight: ndarray, grad: ndarray, state: State, lr: float, wd: float, count: int) -> None:
        grad = grad + wd * weight
        var = state[0]
        var[:] = self.rho * var + (1.0 - self.rho) * np.square(grad)
        if self.centered:
            _, mean, mom = state
            mean[:] = self.rho * mean + (1.0 - self.rho) * grad
            mom[:] = self.momentum * mom - lr * grad / np.sqrt(var - np.square(mean) + self.epsilon)
            weight[:] = weight + mom
        else:
            weight[:] = weight - lr * grad / (np.sqrt(var) + self.epsilon)
        if self.clip_weights is not None:
            weight[:] = np.clip(weight, -self.clip_weights, self.clip_weights)

    def _fused_update(
        self,
        weights: Sequence[ndarray],
        grads: Sequence[ndarray],
        states: Sequence[State],
        masters: Sequence[ndarray | None],
        numbers: StepNumbers,
    ) -> None:
        variances = [state[0] for state in states]
        means, moms = ([state[k] if self.centered else None for state in states] for k in (1, 2))
        fused_rmsprop(
            weights,
            grads,
            variances,
            means,
            moms,
            masters,
            numbers.lrs,
            numbers.wds,
            numbers.rescale_grad,
            rho=self.rho,
            momentum=self.momentum,
            epsilon=self.epsilon,
            clip_gradient=self.clip_gradient,
            clip_weights=self.clip_weights,
        )
