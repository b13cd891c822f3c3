"""Fused updates of many weights; the one place that names the operators behind them."""

from __future__ import annotations

from collections.abc import Sequence

from mxnet import numpy_extension as npx
from mxnet.numpy import ndarray

__all__ = ["adam", "sgd"]


def sgd(
    weights: Sequence[ndarray],
    grads: Sequence[ndarray],
    moms: Sequence[ndarray] | None,
    lrs: Sequence[float],
    wds: Sequence[float],
    *,
    momentum: float,
    rescale_grad: float,
    clip_gradient: float | None,
) -> None:
    """Gradient descent, in place on `weights` and `moms`.

    Parameters
    ----------
    weights, grads : sequence of ndarray
    moms : sequence of ndarray or None
        None without momentum.
    lrs, wds : sequence of float
        One for each weight.
    momentum, rescale_grad : float
    clip_gradient : float or None
    """
    npx.sgd_update(
        list(weights), list(grads), None if moms is None else list(moms), list(lrs), list(wds),
        momentum=momentum, rescale_grad=rescale_grad, clip_gradient=clip_gradient,
    )  # fmt: skip


def adam(
    weights: Sequence[ndarray],
    grads: Sequence[ndarray],
    means: Sequence[ndarray],
    variances: Sequence[ndarray],
    lrs: Sequence[float],
    wds: Sequence[float],
    *,
    beta1: float,
    beta2: float,
    epsilon: float,
    rescale_grad: float,
    clip_gradient: float | None,
) -> None:
    """Adam, in place on `weights`, `means` and `variances`.

    Parameters
    ----------
    weights, grads, means, variances : sequence of ndarray
    lrs : sequence of float
        One for each weight, bias correction included.
    wds : sequence of float
        One for each weight.
    beta1, beta2, epsilon, rescale_grad : float
    clip_gradient : float or None
    """
    npx.adam_update(
        list(weights), list(grads), list(means), list(variances), list(lrs), list(wds),
        beta1=beta1, beta2=beta2, epsilon=epsilon, rescale_grad=rescale_grad, clip_gradient=clip_gradient,
    )  # fmt: skip
