"""Gradients of products, which must not divide by their factors."""

import numpy as onp
import pytest

import slopes
from mxnet import autograd, np

FACTORS = {
    "none": [2.0, -1.5, 0.5, 3.0],
    "first": [0.0, -1.5, 0.5, 3.0],
    "inner": [2.0, 0.0, 0.5, 3.0],
    "last": [2.0, -1.5, 0.5, 0.0],
    "two": [2.0, 0.0, 0.0, 3.0],
    "all": [0.0, 0.0, 0.0, 0.0],
}


def gradient(function, x, dy):
    x = np.array(x, dtype="float64")
    x.attach_grad()
    with autograd.record():
        y = function(x)
    y.backward(np.array(dy, dtype="float64"))
    return x.grad.asnumpy()


@pytest.mark.parametrize("zeros", list(FACTORS))
@pytest.mark.parametrize("reverse", [False, True])
def test_running_products_have_exact_gradients_with_zeros(zeros, reverse):
    x, dy = onp.array(FACTORS[zeros]), onp.array([1.0, -2.0, 4.0, 0.5])
    n = len(x)
    want = onp.zeros(n)
    for k in range(n):
        factors = range(k, n) if reverse else range(k + 1)
        for i in factors:
            want[i] += dy[k] * onp.prod([x[j] for j in factors if j != i])
    got = gradient(lambda x: np.cumprod(x, reverse=reverse), x, dy)
    onp.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("zeros", list(FACTORS))
def test_products_have_exact_gradients_with_zeros(zeros):
    x = onp.array(FACTORS[zeros])
    want = [onp.prod(onp.delete(x, i)) for i in range(len(x))]
    onp.testing.assert_array_equal(gradient(np.prod, x, 1.0), want)


@pytest.mark.parametrize("function", [np.prod, np.cumprod], ids=["prod", "cumprod"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("kind", ["real", "complex"])
def test_gradients_of_both_orders_are_the_slopes_with_zeros(function, axis, kind):
    rng = onp.random.default_rng(3)
    x = rng.uniform(-2, 2, (5, 7))
    if kind == "complex":
        x = x + 1j * rng.uniform(-2, 2, (5, 7))
    x[1, 2] = x[1, 4] = x[3, 2] = 0
    slopes.check(lambda x: function(x, axis=axis), [x[:3, :4] if axis is None else x], rng)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 9, 31])
def test_running_products_of_any_length_have_their_gradient(n):
    rng = onp.random.default_rng(n)
    slopes.check(np.cumprod, [rng.uniform(-1.2, 1.2, n)], rng)
