"""Optimizers for single kinds of layers."""

from __future__ import annotations

from typing import Any

from mxnet import numpy as np
from mxnet.numpy import ndarray
from mxnet.optimizer.composed import ComposedOptimizer, States
from mxnet.optimizer.optimizer import State, register

__all__ = ["GroupAdaGrad"]


@register
class GroupAdaGrad(ComposedOptimizer):
    """AdaGrad with one learning rate for each row of a weight, as for the vectors of an embedding.

    With ``g = clip(rescale_grad * grad) + wd * weight``::

        history = history + mean(g**2, over all axes but the first)
        weight = weight - lr * g / (sqrt(history) + epsilon)

    Parameters
    ----------
    learning_rate : float
    epsilon : float
        Added to the root.
    lazy_update : bool
        Leave rows without a gradient alone if the gradient is row-sparse.
    use_fused_step
        See `Optimizer`; both ways of a step are the same operators.
    **kwargs
        Further arguments of `Optimizer`.

    Notes
    -----
    Source: J. Duchi, E. Hazan, Y. Singer, "Adaptive Subgradient Methods for Online Learning and Stochastic
    Optimization", 2011, with the squares of a row in one sum.

    Examples
    --------
    >>> optimizer = mx.optimizer.contrib.GroupAdaGrad(learning_rate=0.1)
    >>> weight, gradient = np.ones((2, 2)), np.array([[3.0, 4.0], [0.0, 0.0]])
    >>> optimizer.update([0], [weight], [gradient], [optimizer.create_state(0, weight)])
    >>> weight.round(3)
    array([[0.915, 0.887],
           [1.   , 1.   ]])
    """

    _is_rowwise = True

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
        return np.zeros(weight.shape[:1] + (1,) * (weight.ndim - 1), dtype=weight.dtype, device=weight.device)

    def _formula(
        self, w: ndarray, g: ndarray, states: States, lr: ndarray, wd: ndarray, t: ndarray
    ) -> tuple[ndarray, States]:
        (history,) = states
        g = g + wd * w
        history = history + np.mean(np.square(g), axis=tuple(range(1, g.ndim)), keepdims=True)
        return w - lr * g / (np.sqrt(history) + self.epsilon), (history,)
