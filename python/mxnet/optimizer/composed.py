"""Base class of the optimizers whose step is composed of array operators."""

from __future__ import annotations

from collections.abc import Sequence

from mxnet import numpy as np
from mxnet.base import dtype_name
from mxnet.numpy import ndarray
from mxnet.optimizer._updates import StepNumbers
from mxnet.optimizer.optimizer import Optimizer, State

__all__ = ["ComposedOptimizer", "States", "norm", "trust_ratio"]

_HALF = ("float16", "bfloat16")
States = tuple[ndarray, ...]


def _wide(x: ndarray) -> ndarray:
    """Half precision as float32, in which steps are computed; others as they are."""
    return x.astype("float32") if dtype_name(x.dtype) in _HALF else x


class ComposedOptimizer(Optimizer):
    """An optimizer that defines `_formula`; `step` and `fused_step` are the same operators.

    The learning rate, the decay and the count reach the operators as arrays, so a traced step reads them as inputs.
    """

    def _formula(
        self, w: ndarray, g: ndarray, states: States, lr: ndarray, wd: ndarray, t: ndarray
    ) -> tuple[ndarray, States]:
        """New weight and states of one weight; nothing is changed in place.

        Parameters
        ----------
        w, g : ndarray, same shape
            Weight, and gradient rescaled and clipped, in float32 or float64.
        states : tuple of ndarray
        lr, wd : ndarray, shape ()
            Of the weight's dtype.
        t : ndarray, shape (), float64
            Number of this update, from 1. Powers of it need float64: ``1 - 0.999**t`` loses four digits in float32.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define _formula")

    def step(
        self, indices: Sequence[int], weights: Sequence[ndarray], grads: Sequence[ndarray], states: Sequence[State]
    ) -> None:
        self._fused_step(indices, weights, grads, states, [None] * len(weights))

    def _fused_update(
        self,
        weights: Sequence[ndarray],
        grads: Sequence[ndarray],
        states: Sequence[State],
        masters: Sequence[ndarray | None],
        numbers: StepNumbers,
    ) -> None:
        for position, (weight, grad, state, master) in enumerate(zip(weights, grads, states, masters, strict=True)):
            kept = () if state is None else state if isinstance(state, tuple) else (state,)
            w = _wide(weight if master is None else master)
            g = _wide(grad).astype(w.dtype) * numbers.rescale_grad.astype(w.dtype)
            if self.clip_gradient is not None:
                g = np.clip(g, -self.clip_gradient, self.clip_gradient)
            lr, wd = numbers.lrs[position].astype(w.dtype), numbers.wds[position].astype(w.dtype)
            new, new_states = self._formula(w, g, tuple(map(_wide, kept)), lr, wd, numbers.counts[position])
            # States first: `w` may be the weight itself, and a state may be its value before the step.
            for array, values in zip(kept, new_states, strict=True):
                array[...] = values
            if master is not None:
                master[...] = new
            weight[...] = new


def norm(x: ndarray) -> ndarray:
    """Euclidean norm of all elements.

    Parameters
    ----------
    x : ndarray

    Returns
    -------
    ndarray, shape ()
    """
    return np.sqrt(np.square(x).sum())


def trust_ratio(numerator: ndarray, denominator: ndarray) -> ndarray:
    """Ratio of two norms; 1 where one of them is zero.

    Parameters
    ----------
    numerator, denominator : ndarray, shape ()

    Returns
    -------
    ndarray, shape ()
    """
    is_usable = np.logical_and(numerator > 0, denominator > 0)
    # `where` evaluates both of its branches, so the divisor must not be zero in either.
    ratio: ndarray = np.where(is_usable, numerator / np.where(is_usable, denominator, 1.0), 1.0)
    return ratio
