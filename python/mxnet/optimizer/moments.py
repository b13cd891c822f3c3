"""Optimizers with running moments of the gradient, composed of array operators."""

from __future__ import annotations

from typing import Any

from mxnet import numpy as np
from mxnet.numpy import ndarray
from mxnet.optimizer.composed import ComposedOptimizer, States
from mxnet.optimizer.optimizer import State, register

__all__ = ["AdaBelief", "AdaDelta", "Adamax", "FTML", "Nadam"]


@register
class AdaBelief(ComposedOptimizer):
    """Adam with the variance of the gradient around its running mean in place of its square.

    With ``g = clip(rescale_grad * grad) + wd * weight`` and the number ``t`` of the update::

        mean = beta1 * mean + (1 - beta1) * g
        var = beta2 * var + (1 - beta2) * (g - mean)**2 + epsilon
        weight = weight - lr * mean / (1 - beta1**t) / (sqrt(var / (1 - beta2**t)) + epsilon)

    Parameters
    ----------
    learning_rate : float
    beta1, beta2 : float
        Decay of the first and second moment, in ``[0, 1)``.
    epsilon : float
    correct_bias : bool
        Divide the moments by ``1 - beta**t``.
    use_fused_step
        See `Optimizer`; both ways of a step are the same operators.
    **kwargs
        Further arguments of `Optimizer`.

    Notes
    -----
    Source: J. Zhuang et al., "AdaBelief Optimizer: Adapting Stepsizes by the Belief in Observed Gradients", 2020,
    algorithm 2.

    Examples
    --------
    >>> optimizer = mx.optimizer.AdaBelief()
    >>> weight, gradient = np.array([1.0, -2.0]), np.array([2.0, 0.5])
    >>> optimizer.update([0], [weight], [gradient], [optimizer.create_state(0, weight)])
    >>> weight.round(3)
    array([ 0.999, -2.001])
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

    def _formula(
        self, w: ndarray, g: ndarray, states: States, lr: ndarray, wd: ndarray, t: ndarray
    ) -> tuple[ndarray, States]:
        mean, var = states
        g = g + wd * w
        mean = self.beta1 * mean + (1.0 - self.beta1) * g
        var = self.beta2 * var + (1.0 - self.beta2) * np.square(g - mean) + self.epsilon
        if not self.correct_bias:
            return w - lr * mean / (np.sqrt(var) + self.epsilon), (mean, var)
        first, second = (1.0 - self.beta1**t).astype(w.dtype), (1.0 - self.beta2**t).astype(w.dtype)
        return w - lr * (mean / first) / (np.sqrt(var / second) + self.epsilon), (mean, var)


@register
class AdaDelta(ComposedOptimizer):
    """Steps in the units of the weight: the root of past squared steps over that of past squared gradients.

    With ``g = clip(rescale_grad * grad) + wd * weight``::

        var = rho * var + (1 - rho) * g**2
        delta = sqrt(moved + epsilon) / sqrt(var + epsilon) * g
        moved = rho * moved + (1 - rho) * delta**2
        weight = weight - lr * delta

    Parameters
    ----------
    learning_rate : float
    rho : float
        Decay of the running means, in ``[0, 1)``.
    epsilon : float
    use_fused_step
        See `Optimizer`; both ways of a step are the same operators.
    **kwargs
        Further arguments of `Optimizer`.

    Notes
    -----
    Source: M. D. Zeiler, "ADADELTA: An Adaptive Learning Rate Method", 2012, algorithm 1.

    Examples
    --------
    >>> optimizer = mx.optimizer.AdaDelta()
    >>> weight, gradient = np.array([1.0, -2.0]), np.array([2.0, 0.5])
    >>> optimizer.update([0], [weight], [gradient], [optimizer.create_state(0, weight)])
    >>> weight.round(3)
    array([ 0.997, -2.003])
    """

    def __init__(
        self,
        learning_rate: float | None = 1.0,
        rho: float = 0.9,
        epsilon: float = 1e-6,
        use_fused_step: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, use_fused_step=use_fused_step, **kwargs)
        self.rho = rho
        self.epsilon = epsilon

    def create_state(self, index: int, weight: ndarray) -> State:
        return (np.zeros_like(weight), np.zeros_like(weight))

    def _formula(
        self, w: ndarray, g: ndarray, states: States, lr: ndarray, wd: ndarray, t: ndarray
    ) -> tuple[ndarray, States]:
        var, moved = states
        g = g + wd * w
        var = self.rho * var + (1.0 - self.rho) * np.square(g)
        delta = np.sqrt(moved + self.epsilon) / np.sqrt(var + self.epsilon) * g
        moved = self.rho * moved + (1.0 - self.rho) * np.square(delta)
        return w - lr * delta, (var, moved)


@register
class Adamax(ComposedOptimizer):
    """Adam with the largest of the decayed gradients in place of the root of their squares.

    With ``g = clip(rescale_grad * grad) + wd * weight`` and the number ``t`` of the update::

        mean = beta1 * mean + (1 - beta1) * g
        largest = max(beta2 * largest, abs(g))
        weight = weight - lr / (1 - beta1**t) * mean / (largest + epsilon)

    Parameters
    ----------
    learning_rate : float
    beta1, beta2 : float
        Decay of the mean and of the largest gradient, in ``[0, 1)``.
    epsilon : float
        Keeps gradients that were always zero from dividing by zero.
    use_fused_step
        See `Optimizer`; both ways of a step are the same operators.
    **kwargs
        Further arguments of `Optimizer`.

    Notes
    -----
    Source: D. P. Kingma and J. Ba, "Adam: A Method for Stochastic Optimization", 2014, algorithm 2.

    Examples
    --------
    >>> optimizer = mx.optimizer.Adamax()
    >>> weight, gradient = np.array([1.0, -2.0]), np.array([2.0, 0.5])
    >>> optimizer.update([0], [weight], [gradient], [optimizer.create_state(0, weight)])
    >>> weight.round(3)
    array([ 0.998, -2.002])
    """

    def __init__(
        self,
        learning_rate: float | None = 0.002,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        use_fused_step: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, use_fused_step=use_fused_step, **kwargs)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon

    def create_state(self, index: int, weight: ndarray) -> State:
        return (np.zeros_like(weight), np.zeros_like(weight))

    def _formula(
        self, w: ndarray, g: ndarray, states: States, lr: ndarray, wd: ndarray, t: ndarray
    ) -> tuple[ndarray, States]:
        mean, largest = states
        g = g + wd * w
        mean = self.beta1 * mean + (1.0 - self.beta1) * g
        largest = np.maximum(self.beta2 * largest, np.abs(g))
        rate = lr / (1.0 - self.beta1**t).astype(w.dtype)
        return w - rate * mean / (largest + self.epsilon), (mean, largest)


@register
class FTML(ComposedOptimizer):
    """Follow the moving leader.

    With ``g = clip(rescale_grad * grad) + wd * weight`` and the number ``t`` of the update::

        var = beta2 * var + (1 - beta2) * g**2
        d = (1 - beta1**t) / lr * (sqrt(var / (1 - beta2**t)) + epsilon)
        z = beta1 * z + (1 - beta1) * g - (d - beta1 * d_before) * weight
        weight = -z / d

    Parameters
    ----------
    learning_rate : float
        Not zero: steps divide by it.
    beta1, beta2 : float
        Decay of the leader and of the second moment, in ``[0, 1)``.
    epsilon : float
    use_fused_step
        See `Optimizer`; both ways of a step are the same operators.
    **kwargs
        Further arguments of `Optimizer`.

    Notes
    -----
    Source: S. Zheng and J. T. Kwok, "Follow the Moving Leader in Deep Learning", 2017, algorithm 1.

    Examples
    --------
    >>> optimizer = mx.optimizer.FTML()
    >>> weight, gradient = np.array([1.0, -2.0]), np.array([2.0, 0.5])
    >>> optimizer.update([0], [weight], [gradient], [optimizer.create_state(0, weight)])
    >>> weight.round(3)
    array([ 0.998, -2.002])
    """

    def __init__(
        self,
        learning_rate: float | None = 0.0025,
        beta1: float = 0.6,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        use_fused_step: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, use_fused_step=use_fused_step, **kwargs)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon

    def create_state(self, index: int, weight: ndarray) -> State:
        return tuple(np.zeros_like(weight) for _ in range(3))

    def _formula(
        self, w: ndarray, g: ndarray, states: States, lr: ndarray, wd: ndarray, t: ndarray
    ) -> tuple[ndarray, States]:
        d_before, var, z = states
        g = g + wd * w
        var = self.beta2 * var + (1.0 - self.beta2) * np.square(g)
        first, second = (1.0 - self.beta1**t).astype(w.dtype), (1.0 - self.beta2**t).astype(w.dtype)
        d = first / lr * (np.sqrt(var / second) + self.epsilon)
        z = self.beta1 * z + (1.0 - self.beta1) * g - (d - self.beta1 * d_before) * w
        return -z / d, (d, var, z)


@register
class Nadam(ComposedOptimizer):
    """Adam with Nesterov's momentum.

    With ``g = clip(rescale_grad * grad) + wd * weight`` and the number ``t`` of the update::

        mu(t) = beta1 * (1 - 0.5 * 0.96**(t * schedule_decay))
        product = mu(1) * ... * mu(t)
        mean = beta1 * mean + (1 - beta1) * g
        var = beta2 * var + (1 - beta2) * g**2
        ahead = (1 - mu(t)) * g / (1 - product) + mu(t + 1) * mean / (1 - product * mu(t + 1))
        weight = weight - lr * ahead / (sqrt(var / (1 - beta2**t)) + epsilon)

    Parameters
    ----------
    learning_rate : float
    beta1, beta2 : float
        Decay of the first and second moment, in ``[0, 1)``.
    epsilon : float
    schedule_decay : float
        How fast the momentum grows to `beta1`.
    use_fused_step
        See `Optimizer`; both ways of a step are the same operators.
    **kwargs
        Further arguments of `Optimizer`.

    Notes
    -----
    Source: T. Dozat, "Incorporating Nesterov Momentum into Adam", 2016, algorithm 2. The product is kept for each
    weight, in float64.

    Examples
    --------
    >>> optimizer = mx.optimizer.Nadam()
    >>> weight, gradient = np.array([1.0, -2.0]), np.array([2.0, 0.5])
    >>> optimizer.update([0], [weight], [gradient], [optimizer.create_state(0, weight)])
    >>> weight.round(3)
    array([ 0.999, -2.001])
    """

    def __init__(
        self,
        learning_rate: float | None = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        schedule_decay: float = 0.004,
        use_fused_step: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, use_fused_step=use_fused_step, **kwargs)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon
        self.schedule_decay = schedule_decay

    def create_state(self, index: int, weight: ndarray) -> State:
        product = np.ones((), dtype="float64", device=weight.device)
        return (np.zeros_like(weight), np.zeros_like(weight), product)

    def _formula(
        self, w: ndarray, g: ndarray, states: States, lr: ndarray, wd: ndarray, t: ndarray
    ) -> tuple[ndarray, States]:
        mean, var, product = states
        g = g + wd * w
        mean = self.beta1 * mean + (1.0 - self.beta1) * g
        var = self.beta2 * var + (1.0 - self.beta2) * np.square(g)
        now, later = (self.beta1 * (1.0 - 0.5 * 0.96 ** (number * self.schedule_decay)) for number in (t, t + 1.0))
        product = product * now
        of_grad, of_mean = (now - 1.0) / (product - 1.0), later / (1.0 - product * later)
        ahead = of_grad.astype(w.dtype) * g + of_mean.astype(w.dtype) * mean
        second = (1.0 - self.beta2**t).astype(w.dtype)
        return w - lr * ahead / (np.sqrt(var / second) + self.epsilon), (mean, var, product)
