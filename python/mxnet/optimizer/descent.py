"""Variants of gradient descent, composed of array operators: delayed, noisy, of signs, with L1 penalty."""

from __future__ import annotations

from typing import Any

from mxnet import numpy as np
from mxnet.numpy import ndarray
from mxnet.optimizer.composed import ComposedOptimizer, States
from mxnet.optimizer.optimizer import State, register

__all__ = ["DCASGD", "Ftrl", "SGLD", "Signum"]


@register
class DCASGD(ComposedOptimizer):
    """Gradient descent that makes up for gradients of an older weight.

    With ``g = clip(rescale_grad * grad) + wd * weight``::

        mom = momentum * mom - lr * (g + lamda * g0**2 * (weight - before))
        before = weight
        weight = weight + mom

    where ``g0`` is ``g`` without the decay.

    Parameters
    ----------
    learning_rate : float
    momentum : float
    lamda : float
        Factor of the correction.
    use_fused_step
        See `Optimizer`; both ways of a step are the same operators.
    **kwargs
        Further arguments of `Optimizer`.

    Notes
    -----
    Source: S. Zheng et al., "Asynchronous Stochastic Gradient Descent with Delay Compensation", 2016, equation 10.

    Examples
    --------
    >>> optimizer = mx.optimizer.DCASGD()
    >>> weight, gradient = np.array([1.0, -2.0]), np.array([2.0, 0.5])
    >>> optimizer.update([0], [weight], [gradient], [optimizer.create_state(0, weight)])
    >>> weight.round(3)
    array([ 0.8 , -2.05])
    """

    def __init__(
        self,
        learning_rate: float | None = 0.1,
        momentum: float = 0.0,
        lamda: float = 0.04,
        use_fused_step: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, use_fused_step=use_fused_step, **kwargs)
        self.momentum = momentum
        self.lamda = lamda

    def create_state(self, index: int, weight: ndarray) -> State:
        return (np.zeros_like(weight), weight.copy())

    def _formula(
        self, w: ndarray, g: ndarray, states: States, lr: ndarray, wd: ndarray, t: ndarray
    ) -> tuple[ndarray, States]:
        mom, before = states
        mom = self.momentum * mom - lr * (g + wd * w + self.lamda * np.square(g) * (w - before))
        return w + mom, (mom, w)


@register
class Ftrl(ComposedOptimizer):
    """Follow the regularized leader, proximal, with an L1 penalty.

    With ``g = clip(rescale_grad * grad)``::

        z = z + g - (sqrt(n + g**2) - sqrt(n)) / lr * weight
        n = n + g**2
        weight = -sign(z) * max(abs(z) - lamda1, 0) / ((beta + sqrt(n)) / lr + wd)

    Parameters
    ----------
    learning_rate : float
        Not zero: steps divide by it.
    lamda1 : float
        Factor of the L1 penalty; `wd` is that of the L2 penalty.
    beta : float
        Slows the first steps down.
    use_fused_step
        See `Optimizer`; both ways of a step are the same operators.
    lazy_update : bool
        Leave rows without a gradient, and their states, alone: of row-sparse gradients only stored rows are applied.
    **kwargs
        Further arguments of `Optimizer`.

    Notes
    -----
    Source: H. B. McMahan et al., "Ad Click Prediction: a View from the Trenches", 2013, algorithm 1.

    Examples
    --------
    >>> optimizer = mx.optimizer.Ftrl()
    >>> weight, gradient = np.array([1.0, -2.0]), np.array([2.0, 0.5])
    >>> optimizer.update([0], [weight], [gradient], [optimizer.create_state(0, weight)])
    >>> weight.round(3)
    array([ 0.6  , -0.699])
    """

    _is_rowwise = True

    def __init__(
        self,
        learning_rate: float | None = 0.1,
        lamda1: float = 0.01,
        beta: float = 1.0,
        use_fused_step: bool = True,
        lazy_update: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, use_fused_step=use_fused_step, **kwargs)
        self.lamda1 = lamda1
        self.beta = beta
        self.lazy_update = lazy_update

    def create_state(self, index: int, weight: ndarray) -> State:
        return (np.zeros_like(weight), np.zeros_like(weight))

    def _formula(
        self, w: ndarray, g: ndarray, states: States, lr: ndarray, wd: ndarray, t: ndarray
    ) -> tuple[ndarray, States]:
        z, n = states
        more = n + np.square(g)
        z = z + g - (np.sqrt(more) - np.sqrt(n)) / lr * w
        new = -np.sign(z) * np.maximum(np.abs(z) - self.lamda1, 0.0) / ((self.beta + np.sqrt(more)) / lr + wd)
        return new, (z, more)


@register
class SGLD(ComposedOptimizer):
    """Gradient descent with noise, whose weights are samples of the posterior distribution.

    With ``g = clip(rescale_grad * grad) + wd * weight``::

        weight = weight - lr / 2 * g + normal(0, lr)

    where the noise has the variance ``lr``.

    Parameters
    ----------
    learning_rate : float
    use_fused_step
        See `Optimizer`; both ways of a step are the same operators.
    **kwargs
        Further arguments of `Optimizer`.

    Notes
    -----
    Source: M. Welling and Y. W. Teh, "Bayesian Learning via Stochastic Gradient Langevin Dynamics", 2011, equation
    4. The noise comes from the stream that `mx.random.seed` sets.

    Examples
    --------
    >>> optimizer = mx.optimizer.SGLD()
    >>> weight, gradient = np.array([1.0, -2.0]), np.array([2.0, 0.5])
    >>> optimizer.update([0], [weight], [gradient], [optimizer.create_state(0, weight)])
    >>> bool((weight != np.array([1.0, -2.0])).all())
    True
    """

    def __init__(
        self,
        learning_rate: float | None = 0.1,
        use_fused_step: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, use_fused_step=use_fused_step, **kwargs)

    def _formula(
        self, w: ndarray, g: ndarray, states: States, lr: ndarray, wd: ndarray, t: ndarray
    ) -> tuple[ndarray, States]:
        drawn = "float64" if w.dtype == "float64" else "float32"
        noise = np.random.normal(0.0, 1.0, size=w.shape, dtype=drawn, device=w.device)
        return w - 0.5 * lr * (g + wd * w) + np.sqrt(lr) * noise, ()


@register
class Signum(ComposedOptimizer):
    """Gradient descent by the sign of the momentum.

    With ``g = clip(rescale_grad * grad) + wd * weight``::

        mom = momentum * mom - (1 - momentum) * g
        weight = (1 - lr * wd_lh) * weight + lr * sign(mom)

    Parameters
    ----------
    learning_rate : float
    momentum : float
        0 keeps no state.
    wd_lh : float
        Decay that is decoupled from the gradient.
    use_fused_step
        See `Optimizer`; both ways of a step are the same operators.
    **kwargs
        Further arguments of `Optimizer`.

    Notes
    -----
    Source: J. Bernstein et al., "signSGD: Compressed Optimisation for Non-Convex Problems", 2018, algorithm 2; the
    decoupled decay is that of I. Loshchilov and F. Hutter, 2017.

    Examples
    --------
    >>> optimizer = mx.optimizer.Signum()
    >>> weight, gradient = np.array([1.0, -2.0]), np.array([2.0, 0.5])
    >>> optimizer.update([0], [weight], [gradient], [optimizer.create_state(0, weight)])
    >>> weight.round(3)
    array([ 0.99, -2.01])
    """

    def __init__(
        self,
        learning_rate: float | None = 0.01,
        momentum: float = 0.9,
        wd_lh: float = 0.0,
        use_fused_step: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, use_fused_step=use_fused_step, **kwargs)
        self.momentum = momentum
        self.wd_lh = wd_lh

    def create_state(self, index: int, weight: ndarray) -> State:
        return None if self.momentum == 0.0 else np.zeros_like(weight)

    def _formula(
        self, w: ndarray, g: ndarray, states: States, lr: ndarray, wd: ndarray, t: ndarray
    ) -> tuple[ndarray, States]:
        mom = -(1.0 - self.momentum) * (g + wd * w)
        if states:
            mom = mom + self.momentum * states[0]
        return (1.0 - lr * self.wd_lh) * w + lr * np.sign(mom), ((mom,) if states else ())
