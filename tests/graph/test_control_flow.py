"""Conditions and loops in compiled functions give the bits of the functions as they are, gradients included."""

import pytest

import mxnet as mx
from mxnet import autograd, np, npx


def bits(x):
    return x.shape, x.dtype, x.asnumpy().tobytes()


def branched(x, y):
    first = npx.cond(
        lambda x, y: x.sum() > 0, lambda x, y: {"a": x * y, "b": [y]}, lambda x, y: {"b": [x], "a": x - y}, [x, y]
    )
    return first["a"] * 2, npx.cond(first["b"][0][0] > 0.5, lambda x: np.exp(x), lambda x: x * 3, x)


@pytest.mark.parametrize("sign", [1, -1])
def test_conditions(sign):
    compiled = mx.jit(branched)
    x, y = np.array([1.0, 0.25]) * sign, np.array([3.0, 4.0])
    assert list(map(bits, compiled(x, y))) == list(map(bits, branched(x, y)))
    found = []
    for f in (branched, compiled):
        for array in (x, y):
            array.attach_grad()
        with autograd.record():
            a, b = f(x, y)
            total = (a * a).sum() + b.sum()
        total.backward()
        found.append((bits(total), bits(x.grad), bits(y.grad)))
    assert found[0] == found[1]


def collatz(n, limit=20):
    def step(n, count):
        return n, [np.where(n % 2 == 0, n // 2, 3 * n + 1), count + 1]

    return npx.while_loop(lambda n, count: n > 1, step, [n, np.zeros((), dtype="int64")], max_iterations=limit)


@pytest.mark.parametrize("start", [1, 2, 7, 27])
def test_loops(start):
    compiled = mx.jit(collatz)
    n = np.array(start)
    rows, (last, count) = collatz(n)
    found, (other, steps) = compiled(n)
    assert bits(found) == bits(rows)
    assert bits(other) == bits(last)
    assert bits(steps) == bits(count)


def test_gradients_of_loops():
    def grow(x):
        step = lambda total, factor: (total * factor, [total * factor + 1, factor])  # noqa: E731
        rows, (total, _) = npx.while_loop(
            lambda total, factor: total.sum() < 40, step, [x, x * 0.5 + 1], max_iterations=6
        )
        return rows.sum() + total.sum()

    x = np.array([1.5, 2.5])
    x.attach_grad()
    found = []
    for f in (grow, mx.jit(grow)):
        with autograd.record():
            y = f(x)
        y.backward()
        found.append((bits(y), bits(x.grad)))
    assert found[0] == found[1]


def test_foreach_is_unrolled():
    def scan(data, start):
        return npx.foreach(lambda x, s: (x * s, np.tanh(x + s)), data, start)

    compiled = mx.jit(scan)
    data, start = np.arange(12.0).reshape(4, 3), np.ones(3)
    (rows, last), (found, other) = scan(data, start), compiled(data, start)
    assert bits(found) == bits(rows)
    assert bits(other) == bits(last)


def test_results_must_be_alike():
    with pytest.raises(ValueError, match=r"shape \(3,\).*shape \(1,\)"):
        mx.jit(lambda x: npx.cond(x.sum() > 0, lambda x: x, lambda x: x[:1], x))(np.ones(3))
    with pytest.raises(ValueError, match="must give one value"):
        mx.jit(lambda x: npx.cond(x > 0, lambda x: x, lambda x: -x, x))(np.ones(3))
