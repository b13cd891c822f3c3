"""Optimizers that scale the step of each weight by norms, composed of array operators."""

from __future__ import annotations

from typing import Any

from mxnet import numpy as np
from mxnet.numpy import ndarray
from mxnet.optimizer.composed import ComposedOptimizer, States, norm, trust_ratio
from mxnet.optimizer.optimizer import State, register

__all__ = ["LAMB", "LANS", "LARS"]


def _bounded(x: ndarray, lower: float | None, upper: float | None) -> ndarray:
    return x if lower is None and upper is None else np.clip(x, lower, upper)


@register
class LAMB(ComposedOptimizer):
    """Adam with decoupled decay, and the step of each weight scaled to the norm of the weight.

    With ``g = clip(rescale_grad * grad)``, the moments of `Adam`, each divided by ``1 - beta**t`` if
    `bias_correction` is on, and ``ratio`` 1 where a norm is zero::

        r = mean / (sqrt(var) + epsilon) + wd * weight
        ratio = clip(norm(weight), lower_bound, upper_bound) / norm(r)
        weight = weight - lr * ratio * r

    Parameters
    ----------
    learning_rate : float
    beta1, beta2 : float
        Decay of the first and second moment, in ``[0, 1)``.
    epsilon : float
    lower_bound, upper_bound : float, optional
        Limits of the norm of the weight in the ratio.
    bias_correction : bool
    use_fused_step, aggregate_num
        See `Optimizer`; both ways of a step are the same operators.
    **kwargs
        Further arguments of `Optimizer`.

    Notes
    -----
    Source: Y. You et al., "Large Batch Optimization for Deep Learning: Training BERT in 76 minutes", 2019,
    algorithm 2.

    Examples
    --------
    >>> optimizer = mx.optimizer.LAMB()
    >>> weight, gradient = np.array([1.0, -2.0]), np.array([2.0, 0.5])
    >>> optimizer.update([0], [weight], [gradient], [optimizer.create_state(0, weight)])
    >>> weight.round(3)
    array([ 0.998, -2.002])
    """

    def __init__(
        self,
        learning_rate: float | None = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-6,
        lower_bound: float | None = None,
        upper_bound: float | None = None,
        bias_correction: bool = True,
        aggregate_num: float | None = 4,
        use_fused_step: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            learning_rate=learning_rate, use_fused_step=use_fused_step, aggregate_num=aggregate_num, **kwargs
        )
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound
        self.bias_correction = bias_correction

    def create_state(self, index: int, weight: ndarray) -> State:
        return (np.zeros_like(weight), np.zeros_like(weight))

    def _formula(
        self, w: ndarray, g: ndarray, states: States, lr: ndarray, wd: ndarray, t: ndarray
    ) -> tuple[ndarray, States]:
        mean, var = states
        mean = self.beta1 * mean + (1.0 - self.beta1) * g
        var = self.beta2 * var + (1.0 - self.beta2) * np.square(g)
        first, second = mean, var
        if self.bias_correction:
            first = mean / (1.0 - self.beta1**t).astype(w.dtype)
            second = var / (1.0 - self.beta2**t).astype(w.dtype)
        r = first / (np.sqrt(second) + self.epsilon) + wd * w
        ratio = trust_ratio(_bounded(norm(w), self.lower_bound, self.upper_bound), norm(r))
        return w - lr * ratio * r, (mean, var)


@register
class LANS(ComposedOptimizer):
    """LAMB with gradients of norm 1 and with Nesterov's momentum.

    With ``g = clip(rescale_grad * grad)`` divided by its norm, the moments of `Adam`, each divided by
    ``1 - beta**t``, and ``size = clip(norm(weight), lower_bound, upper_bound)``::

        r = mean / (sqrt(var) + epsilon) + wd * weight
        c = g / (sqrt(var) + epsilon) + wd * weight
        weight = weight - lr * (beta1 * size / norm(r) * r + (1 - beta1) * size / norm(c) * c)

    where a ratio of norms is 1 if one of them is zero, and a gradient of norm zero remains.

    Parameters
    ----------
    learning_rate : float
    beta1, beta2 : float
        Decay of the first and second moment, in ``[0, 1)``.
    epsilon : float
    lower_bound, upper_bound : float, optional
        Limits of the norm of the weight in the ratio.
    use_fused_step, aggregate_num
        See `Optimizer`; both ways of a step are the same operators.
    **kwargs
        Further arguments of `Optimizer`.

    Notes
    -----
    Source: S. Zheng et al., "Accelerated Large Batch Optimization of BERT Pretraining in 54 minutes", 2020,
    algorithm 2.

    Examples
    --------
    >>> optimizer = mx.optimizer.LANS()
    >>> weight, gradient = np.array([1.0, -2.0]), np.array([2.0, 0.5])
    >>> optimizer.update([0], [weight], [gradient], [optimizer.create_state(0, weight)])
    >>> weight.round(3)
    array([ 0.998, -2.002])
    """

    def __init__(
        self,
        learning_rate: float | None = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-6,
        lower_bound: float | None = None,
        upper_bound: float | None = None,
        aggregate_num: float | None = 4,
        use_fused_step: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            learning_rate=learning_rate, use_fused_step=use_fused_step, aggregate_num=aggregate_num, **kwargs
        )
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound

    def create_state(self, index: int, weight: ndarray) -> State:
        return (np.zeros_like(weight), np.zeros_like(weight))

    def _formula(
        self, w: ndarray, g: ndarray, states: States, lr: ndarray, wd: ndarray, t: ndarray
    ) -> tuple[ndarray, States]:
        mean, var = states
        size = norm(g)
        g = g / np.where(size > 0, size, 1.0)
        mean = self.beta1 * mean + (1.0 - self.beta1) * g
        var = self.beta2 * var + (1.0 - self.beta2) * np.square(g)
        root = np.sqrt(var / (1.0 - self.beta2**t).astype(w.dtype)) + self.epsilon
        r = mean / (1.0 - self.beta1**t).astype(w.dtype) / root + wd * w
        c = g / root + wd * w
        bounded = _bounded(norm(w), self.lower_bound, self.upper_bound)
        step = self.beta1 * trust_ratio(bounded, norm(r)) * r + (1.0 - self.beta1) * trust_ratio(bounded, norm(c)) * c
        return w - lr * step, (mean, var)


@register
class LARS(ComposedOptimizer):
    """Gradient descent with momentum and a learning rate for each weight, from the norms of weight and gradient.

    With ``g = clip(rescale_grad * grad)`` and ``ratio`` 1 where a norm is zero::

        ratio = eta * norm(weight) / (norm(g) + wd * norm(weight) + epsilon)
        mom = momentum * mom - lr * ratio * (g + wd * weight)
        weight = weight + mom

    Parameters
    ----------
    learning_rate : float
    momentum : float
    eta : float
        The trust coefficient.
    epsilon : float
    lazy_update : bool
        Must be False for row-sparse gradients: the ratio is that of all rows, so none can be left out. Dense gradients
        have no rows to leave out.
    use_fused_step, aggregate_num
        See `Optimizer`; both ways of a step are the same operators.
    **kwargs
        Further arguments of `Optimizer`.

    Notes
    -----
    Source: Y. You, I. Gitman and B. Ginsburg, "Large Batch Training of Convolutional Networks", 2017, algorithm 1.
    The ratio is for every weight, biases included.

    Examples
    --------
    >>> optimizer = mx.optimizer.LARS()
    >>> weight, gradient = np.array([1.0, -2.0]), np.array([2.0, 0.5])
    >>> optimizer.update([0], [weight], [gradient], [optimizer.create_state(0, weight)])
    >>> weight.round(3)
    array([ 1., -2.])
    """

    def __init__(
        self,
        learning_rate: float | None = 0.1,
        momentum: float = 0.0,
        eta: float = 0.001,
        epsilon: float = 1e-8,
        lazy_update: bool = False,
        use_fused_step: bool = True,
        aggregate_num: float | None = 1,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            learning_rate=learning_rate, use_fused_step=use_fused_step, aggregate_num=aggregate_num, **kwargs
        )
        self.momentum = momentum
        self.eta = eta
        self.epsilon = epsilon
        self.lazy_update = lazy_update

    def create_state(self, index: int, weight: ndarray) -> State:
        return np.zeros_like(weight)

    def _formula(
        self, w: ndarray, g: ndarray, states: States, lr: ndarray, wd: ndarray, t: ndarray
    ) -> tuple[ndarray, States]:
        size, slope = norm(w), norm(g)
        is_usable = np.logical_and(size > 0, slope > 0)
        ratio = np.where(is_usable, self.eta * size / (slope + wd * size + self.epsilon), 1.0)
        mom = self.momentum * states[0] - lr * ratio * (g + wd * w)
        return w + mom, (mom,)
