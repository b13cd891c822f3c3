"""Gradients through indexing: numeric slopes and closed forms."""

import numpy
import pytest

from mxnet import _core, autograd
from mxnet import numpy as mxnp
from mxnet import numpy_extension as npx


def generator():
    return numpy.random.default_rng(11)


def gradients(function, *values):
    """Gradients of sum(weights * function(*values)) and of its numeric slope, with fixed random weights."""
    xs = [mxnp.array(v, dtype="float64") for v in values]
    for x in xs:
        x.attach_grad()
    with autograd.record():
        y = function(*xs)
        weights = generator().standard_normal(y.shape)
        head = (y * mxnp.array(weights)).sum()
    head.backward()

    def value(arrays):
        y = function(*[mxnp.array(a, dtype="float64") for a in arrays])
        return float((y.asnumpy() * weights).sum())

    for k, (x, v) in enumerate(zip(xs, values, strict=True)):
        slope = numpy.zeros(v.shape)
        for at in numpy.ndindex(v.shape):
            near = [[u.copy() for u in values] for _ in range(2)]
            near[0][k][at] += 1e-6
            near[1][k][at] -= 1e-6
            slope[at] = (value(near[0]) - value(near[1])) / 2e-6
        # Central differences over 2e-6 of values of size 1 carry about 1e-10 of rounding in float64.
        numpy.testing.assert_allclose(x.grad.asnumpy(), slope, atol=1e-8)


KEYS = [
    1,
    slice(0, 2),
    (slice(None, None, -2), 3),
    (None, Ellipsis, 0),
    [2, 0, 2],
    ([0, 1], [3, 3]),
    (slice(None), [1, 1, 0]),
    ([[0], [2]], [0, -1]),
    (numpy.array([True, False, True]),),
    (slice(1, None), numpy.array([True, False, True, True])),
    (numpy.arange(12).reshape(3, 4) % 5 == 0,),
    True,
]


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_reading_has_the_slopes(key):
    gradients(lambda x: x[key] * x[key].sum(), generator().standard_normal((3, 4)))


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_assignment_has_the_slopes_of_both_sides(key):
    a = generator().standard_normal((3, 4))

    def function(x, v):
        y = x * 2
        y[key] = v * 3
        return y * 1.5

    gradients(function, a, generator().standard_normal(a[key].shape))
    gradients(function, a, generator().standard_normal(()))


def test_several_assignments_and_uses_between_them():
    def function(x, v):
        y = x + 1
        z = y + 2
        y[0] = v
        y[[1, 1], 2] = v[:2] * 5
        w = y.sum(axis=0)
        y[:, 1] = x[:, 0]
        return w + y[2] + z[0]

    gradients(function, generator().standard_normal((3, 4)), generator().standard_normal(4))


def test_assigning_recorded_values_into_a_fresh_array():
    def function(v):
        y = mxnp.zeros((3, 2), dtype="float64")
        for i in range(3):
            y[i] = v * (i + 1)
        return y

    gradients(function, generator().standard_normal(2))


def test_only_the_value_that_stays_has_a_gradient():
    v = mxnp.array([1.0, 2.0, 3.0])
    v.attach_grad()
    with autograd.record():
        y = mxnp.zeros((2,))
        y[[0, 0, 1]] = v
    y.backward()
    assert v.grad.asnumpy().tolist() == [0, 1, 1]


def test_writing_to_a_variable_while_recording_is_refused():
    x = mxnp.ones((3,))
    x.attach_grad()
    with autograd.record(), pytest.raises(_core.AutogradError, match="variable"):
        x[0] = 2
    x[0] = 5
    assert x.asnumpy().tolist() == [5, 1, 1]
    with autograd.record():
        y = (x * x).sum()
    y.backward()
    assert x.grad.asnumpy().tolist() == [10, 2, 2]


def test_what_an_operation_needs_and_was_overwritten_is_an_error():
    x = mxnp.ones((3,))
    x.attach_grad()
    with autograd.record():
        y = x * 2
        z = y * y
        y[0] = 7
    with pytest.raises(_core.AutogradError, match="overwritten"):
        z.backward()


@pytest.mark.parametrize(
    "function",
    [
        lambda x: mxnp.take(x, mxnp.array([2, 0, 2]), axis=0),
        lambda x: mxnp.take(x, mxnp.array([[1, -7]]), mode="wrap"),
        lambda x: mxnp.take_along_axis(x, mxnp.array([[1, 1], [0, 3], [2, 2]]), 1),
        lambda x: mxnp.diagonal(x, 1),
        lambda x: mxnp.diag(x[0], -1),
        lambda x: mxnp.tril(x) + mxnp.triu(x, 1) * 2,
        lambda x: mxnp.trace(x) * x[0],
        lambda x: npx.pick(x, mxnp.array([1, 0, 9])),
        lambda x: npx.gather_nd(x, mxnp.array([[0, 2, 0], [1, 1, 1]])),
        lambda x: npx.index_add(x, mxnp.array([[0, 0], [1, 1]]), x[1, :2] * 3),
        lambda x: npx.index_update(x, mxnp.array([[0, 0], [1, 1]]), x[1, :2] * 3),
        lambda x: npx.embedding(mxnp.array([[2, 2], [0, 1]]), x),
        lambda x: mxnp.sort(x, axis=0) * mxnp.arange(4),
        lambda x: npx.topk(x, k=2, axis=1, ret_typ="value"),
        lambda x: mxnp.partition(x, 2, axis=1)[:, 2],
        lambda x: mxnp.compress([True, False, True], x, axis=0),
        lambda x: mxnp.extract(mxnp.array([[True, False, False, True]] * 3), x),
        lambda x: mxnp.unique(x),
    ],
)
def test_functions_have_the_slopes(function):
    gradients(function, generator().standard_normal((3, 4)))


def test_second_order_goes_through_gather_and_scatter():
    x = mxnp.array([0.5, -1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        u, v = x[[0, 2, 2]], x[1:]
        y = (u * u * u).sum() + (v * v * v).sum()
        first = autograd.grad(y, x, create_graph=True, retain_graph=True)
        first = first[0] if isinstance(first, (list, tuple)) else first
        z = first.sum()
    z.backward()
    numpy.testing.assert_allclose(x.grad.asnumpy(), [3.0, -6.0, 36.0], rtol=1e-6)
