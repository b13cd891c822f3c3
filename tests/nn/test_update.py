"""Optimiser steps over lists of weights, against their formulas in float64."""

import numpy as onp
import pytest

import mxnet as mx
from mxnet import np, npx

RNG = onp.random.default_rng(14)
SHAPES = [(3, 4), (5,), (), (0, 2)]


def lists(count, dtype="float64"):
    """`count` lists of arrays, NumPy's and ours; those beyond the second are not negative, as variances are."""
    raw = [[abs(RNG.normal(size=s)) if i > 1 else RNG.normal(size=s) for s in SHAPES] for i in range(count)]
    return raw, [[np.array(x, dtype=dtype) for x in row] for row in raw]


RATES, DECAYS = [0.1, 0.2, 0.3, 0.4], [0.0, 0.01, 0.02, 0.03]


def gradient(g, w, decay, rescale=1.0, clip=None):
    g = rescale * g
    return (g if clip is None else onp.clip(g, -clip, clip)) + decay * w


def check(ours, want):
    for got, right in zip(ours, want, strict=True):
        onp.testing.assert_allclose(got.asnumpy(), right, rtol=1e-12, atol=1e-14)


def test_descent_without_momentum():
    (w, g), (weights, grads) = lists(2)
    assert npx.sgd_update(weights, grads, None, RATES, DECAYS, rescale_grad=0.5, clip_gradient=0.3) is None
    check(weights, [a - r * gradient(b, a, d, 0.5, 0.3) for a, b, r, d in zip(w, g, RATES, DECAYS, strict=True)])


def test_momentum():
    (w, g, m), (weights, grads, moms) = lists(3)
    npx.sgd_update(weights, grads, moms, RATES, DECAYS, momentum=0.9)
    m = [0.9 * c - r * gradient(b, a, d) for a, b, c, r, d in zip(w, g, m, RATES, DECAYS, strict=True)]
    check(moms, m)
    check(weights, [a + c for a, c in zip(w, m, strict=True)])


def test_nesterov():
    (w, g, m), (weights, grads, moms) = lists(3)
    npx.nag_update(weights, grads, moms, RATES, DECAYS, momentum=0.8)
    steps = [r * gradient(b, a, d) for a, b, r, d in zip(w, g, RATES, DECAYS, strict=True)]
    m = [0.8 * c - s for c, s in zip(m, steps, strict=True)]
    check(moms, m)
    check(weights, [a + 0.8 * c - s for a, c, s in zip(w, m, steps, strict=True)])


@pytest.mark.parametrize("apart", [False, True])
def test_adam_with_decay_in_the_gradient_or_apart(apart):
    (w, g, m, v), (weights, grads, means, variances) = lists(4)
    update = npx.adamw_update if apart else npx.adam_update
    extra = {"eta": 0.5} if apart else {}
    update(weights, grads, means, variances, RATES, DECAYS, beta1=0.8, beta2=0.9, epsilon=1e-3, **extra)
    for i, (rate, decay) in enumerate(zip(RATES, DECAYS, strict=True)):
        slope = g[i] if apart else gradient(g[i], w[i], decay)
        m[i] = 0.8 * m[i] + 0.2 * slope
        v[i] = 0.9 * v[i] + 0.1 * slope**2
        move = rate * m[i] / (onp.sqrt(v[i]) + 1e-3)
        w[i] = w[i] - (0.5 * (move + decay * w[i]) if apart else move)
    check(means, m)
    check(variances, v)
    check(weights, w)


@pytest.mark.parametrize("rule", ["rmsprop", "adagrad"])
def test_steps_scaled_by_past_squares(rule):
    (w, g, v), (weights, grads, states) = lists(3)
    if rule == "rmsprop":
        npx.rmsprop_update(weights, grads, states, RATES, DECAYS, rho=0.7, epsilon=1e-3)
    else:
        npx.adagrad_update(weights, grads, states, RATES, DECAYS, epsilon=1e-3)
    for i, (rate, decay) in enumerate(zip(RATES, DECAYS, strict=True)):
        slope = gradient(g[i], w[i], decay)
        v[i] = 0.7 * v[i] + 0.3 * slope**2 if rule == "rmsprop" else v[i] + slope**2
        w[i] = w[i] - rate * slope / (onp.sqrt(v[i]) + 1e-3)
    check(states, v)
    check(weights, w)


def test_half_precision_weights_have_float32_states():
    w, g, m = np.ones((4,), dtype="float16"), np.ones((4,), dtype="float16"), np.zeros((4,))
    npx.sgd_update([w], [g], [m], [0.25], momentum=0.9)
    assert w.dtype == "float16"
    assert w.asnumpy().tolist() == [0.75] * 4
    assert m.asnumpy().tolist() == [-0.25] * 4


def test_weights_and_states_may_be_views():
    base, m = np.zeros((4, 3)), np.zeros((3, 4))
    npx.sgd_update([base.T], [np.ones((3, 4))], [m], [0.5], momentum=0.9)
    assert (base.asnumpy() == -0.5).all()
    assert (m.asnumpy() == -0.5).all()


def test_a_weight_may_be_its_own_gradient():
    w = np.array([1.0, 2.0])
    npx.sgd_update([w], [w], None, [0.5])
    assert w.asnumpy().tolist() == [0.5, 1.0]


def test_variables_are_changed_in_place():
    w = np.array([1.0, 2.0])
    w.attach_grad()
    with mx.autograd.record():
        y = (w * w).sum()
    y.backward()
    npx.sgd_update([w], [w.grad], None, [0.25])
    assert w.asnumpy().tolist() == [0.5, 1.0]


def test_errors_come_before_any_change():
    weights = [np.ones((2,)), np.ones((3,))]
    with pytest.raises(ValueError, match=r"a gradient has shape \(2,\), its weight \(3,\)"):
        npx.sgd_update(weights, [np.ones((2,)), np.ones((2,))], None, [0.1, 0.1])
    assert weights[0].asnumpy().tolist() == [1, 1]
    with pytest.raises(ValueError, match="found 4 arrays, 2 and 0 numbers"):
        npx.adam_update(weights[:1], weights[:1], weights[:1], weights[:1], [0.1, 0.2])
    with pytest.raises(ValueError, match=r"`momentum` is 0.9, but there are no `moms`"):
        npx.sgd_update(weights, weights, None, [0.1, 0.1], momentum=0.9)
    with pytest.raises(TypeError, match="weights are int64, needs a real floating type"):
        npx.sgd_update([np.array([1, 2])], [np.ones((2,))], None, [0.1])
