"""Gradients of functions composed of operators against differences: first order by every array, second along a line."""

import numpy as np
import pytest

import mxnet as mx
from mxnet import autograd

RNG = np.random.default_rng(5)
V = RNG.standard_normal(7)
W = RNG.uniform(0.5, 2, 7)
A = RNG.standard_normal((4, 5))
X = np.array([-2.5, -1.0, 0.2, 1.1, 2.0, 3.7])
AT = np.array([-1.7, 0.7, 1.3, 3.0])

CASES = {
    "interp": (lambda x, xp, fp: mx.np.interp(x, xp, fp), (AT, X, V[:6])),
    "interp outside": (lambda x, fp: mx.np.interp(x, mx.np.array(X), fp), (np.array([-9.0, 9.0]), V[:6])),
    "interp periodic": (lambda x, fp: mx.np.interp(x, mx.np.array(X), fp, period=7.0), (AT + 7, V[:6])),
    "trapezoid": (lambda y, x: mx.np.trapezoid(y, x), (A, np.sort(A, 1))),
    "gradient": (lambda f: mx.np.gradient(f, 2.0), (V,)),
    "gradient at coordinates": (lambda f, x: mx.np.gradient(f, x, edge_order=2), (V[:6], X)),
    "gradient along both axes": (lambda f: mx.np.stack(mx.np.gradient(f)), (A,)),
    "diff": (lambda x: mx.np.diff(x, 2), (A,)),
    "diff with ends": (lambda x, p: mx.np.diff(x, prepend=p, append=1.0), (A, A[:, :2])),
    "ediff1d": (lambda x: mx.np.ediff1d(x), (A,)),
    "unwrap": (lambda x: mx.np.unwrap(x), (V * 3,)),
    "cov": (lambda m: mx.np.cov(m), (A,)),
    "cov weighted": (lambda m: mx.np.cov(m, aweights=mx.np.array(W[:5])), (A,)),
    "corrcoef": (lambda m: mx.np.corrcoef(m), (A,)),
    "average": (lambda a, w: mx.np.average(a, 1, w), (A, W[:5])),
    "polyval": (lambda p, x: mx.np.polyval(p, x), (V[:4], A)),
    "polymul": (lambda p, q: mx.np.polymul(p, q), (V[:4], W[:3])),
    "vander": (lambda x: mx.np.vander(x, 4), (V,)),
    "convolve": (lambda a, v: mx.np.convolve(a, v), (V, W[:3])),
    "convolve same": (lambda a, v: mx.np.convolve(a, v, "same"), (V[:3], W)),
    "correlate": (lambda a, v: mx.np.correlate(a, v, "full"), (V, W[:4])),
    "correlate shorter first": (lambda a, v: mx.np.correlate(a, v, "same"), (V[:3], W)),
    "select": (lambda a, b: mx.np.select([a > 0, b > 0], [a * b, b**2], 0.5), (V, V[::-1].copy())),
    "piecewise": (lambda x: mx.np.piecewise(x, [x < 0, x > 1], [lambda v: v**2, lambda v: v**3]), (V,)),
    "i0": (lambda x: mx.np.i0(x), (np.abs(V) + 0.2,)),
    "apply_along_axis": (lambda x: mx.np.apply_along_axis(lambda v: v * v.sum(), 0, x), (A,)),
    "geometric mean over a grid": (lambda x, y: mx.np.exp(sum(mx.np.meshgrid(x, y))), (V[:3], W[:2])),
}


def loss(function, arrays):
    """A smooth function of all elements of the result."""
    y = function(*arrays)
    weights = mx.np.array(np.cos(np.arange(y.size, dtype="float64")).reshape(y.shape), dtype="float64")
    return (mx.np.sin(y) * weights).sum()


def variables(values):
    arrays = [mx.np.array(x, dtype="float64") for x in values]
    for array in arrays:
        array.attach_grad()
    return arrays


@pytest.fixture(autouse=True)
def float64():
    before = mx.util.set_np_default_dtype(True)
    yield
    mx.util.set_np_default_dtype(before)


@pytest.mark.parametrize("name", CASES)
def test_first_order(name):
    function, values = CASES[name]
    arrays = variables(values)
    with autograd.record():
        y = loss(function, arrays)
    y.backward()
    for i, x in enumerate(values):
        want = np.empty_like(x)
        for at in np.ndindex(x.shape):
            shifted = []
            for step in (1e-6, -1e-6):
                moved = [v.copy() for v in values]
                moved[i][at] += step
                shifted.append(float(loss(function, [mx.np.array(v, dtype="float64") for v in moved])))
            want[at] = (shifted[0] - shifted[1]) / 2e-6
        # A central difference: the step's square and the rounding of the loss over the step.
        np.testing.assert_allclose(arrays[i].grad.asnumpy(), want, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", CASES)
def test_second_order(name):
    function, values = CASES[name]
    directions = [np.sin(np.arange(x.size) + 1.0).reshape(x.shape) for x in values]

    def first(points):
        arrays = variables(points)
        with autograd.record():
            y = loss(function, arrays)
            grads = autograd.grad(y, arrays, create_graph=True)
            along = sum((g * mx.np.array(d)).sum() for g, d in zip(grads, directions, strict=True))
        along.backward()
        return [g.asnumpy() for g in grads], [x.grad.asnumpy() for x in arrays]

    _, second = first(values)
    step = 1e-5
    ahead = first([x + step * d for x, d in zip(values, directions, strict=True)])[0]
    behind = first([x - step * d for x, d in zip(values, directions, strict=True)])[0]
    for got, a, b in zip(second, ahead, behind, strict=True):
        want = (a - b) / (2 * step)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6 * max(1.0, np.abs(want).max()))
