"""jacobian, hessian, vjp, jvp: against closed forms and differences, nested containers, nested calls, errors."""

from typing import NamedTuple

import numpy
import pytest

from mxnet import autograd, np
from mxnet.autograd import hessian, jacobian, jvp, vjp
from mxnet.error import AutogradError

RNG = numpy.random.default_rng(11)
A = RNG.normal(size=(3, 2))


def array(values):
    return np.array(values, dtype="float64")


def differences(function, x, step=1e-3):
    """The Jacobian of a NumPy function by fourth-order central differences, shape (outputs, inputs)."""
    columns = []
    for k in range(x.size):
        unit = numpy.zeros(x.size)
        unit[k] = step

        def at(t, unit=unit):
            return function(x + t * unit.reshape(x.shape)).ravel()

        columns.append((8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * step))
    return numpy.stack(columns, axis=1)


def test_jacobian_of_a_linear_function_is_its_matrix():
    found = jacobian(lambda x: np.matmul(array(A), x), array([1.0, 2.0]))
    assert found.shape == (3, 2)
    numpy.testing.assert_array_equal(found.asnumpy(), A)


def test_jacobian_matches_differences():
    x = RNG.normal(size=(2, 3))
    found = jacobian(lambda x: np.tanh(np.matmul(x, array(A))) * x.sum(), array(x))
    assert found.shape == (2, 2, 2, 3)
    wanted = differences(lambda x: numpy.tanh(x @ A) * x.sum(), x)
    numpy.testing.assert_allclose(found.asnumpy().reshape(4, 6), wanted, rtol=1e-8, atol=1e-9)


class Pair(NamedTuple):
    first: object
    second: object


def test_results_and_inputs_may_be_nested():
    inputs = ({"w": array([1.0, 2.0]), "b": [array(3.0)]}, Pair(array([[5.0]]), None))

    def function(p, q):
        return {"y": p["w"] * p["b"][0], "z": (q.first.sum() * p["w"].sum(), None)}

    found = jacobian(function, inputs)
    assert isinstance(found["y"][1], Pair) and found["y"][1].second is None and found["z"][1] is None
    assert found["y"][0]["w"].asnumpy().tolist() == [[3, 0], [0, 3]]
    assert found["y"][0]["b"][0].asnumpy().tolist() == [1, 2]
    assert found["y"][1].first.asnumpy().tolist() == [[[0]], [[0]]]
    assert found["z"][0][1].first.asnumpy().tolist() == [[3]]
    assert found["z"][0][0]["w"].asnumpy().tolist() == [5, 5]


def test_what_a_result_does_not_depend_on_has_derivative_zero():
    x, y = array([1.0, 2.0]), array([3.0])
    found = jacobian(lambda x, y: (x * 2, np.ones(2, dtype="float64")), (x, y))
    assert found[0][1].asnumpy().tolist() == [[0], [0]]
    assert found[1][0].asnumpy().tolist() == [[0, 0], [0, 0]]
    assert jacobian(lambda x: x[:0], x).shape == (0, 2)


def test_the_same_array_twice_is_two_inputs():
    x = array([2.0])
    by_first, by_second = jacobian(lambda a, b: a * a * b, (x, x))
    assert [by_first.item(), by_second.item()] == [8, 4]


def test_inputs_and_their_gradient_buffers_are_left_alone():
    x = array([1.0])
    x.attach_grad()
    x.grad[:] = 7
    jacobian(lambda v: v * x, x)
    assert x.grad.item() == 7
    assert not autograd.is_recording()


def test_hessian_is_symmetric_and_matches_differences():
    x = RNG.normal(size=4)
    found = hessian(lambda x: np.sin(x[0] * x[1]) + np.exp(x[2]) * x[3] ** 3 + (x * x).sum() ** 2, array(x)).asnumpy()

    def gradient(x):
        s = 4 * x * (x * x).sum()
        c = numpy.cos(x[0] * x[1])
        return s + numpy.array([x[1] * c, x[0] * c, numpy.exp(x[2]) * x[3] ** 3, 3 * numpy.exp(x[2]) * x[3] ** 2])

    numpy.testing.assert_allclose(found, differences(gradient, x), rtol=1e-8, atol=1e-9)
    numpy.testing.assert_allclose(found, found.T, rtol=1e-13)


def test_hessian_of_nested_inputs_has_all_blocks():
    found = hessian(lambda p: (p["w"][0] * p["b"]).sum() ** 2, {"w": [array([1.0, 2.0])], "b": array(3.0)})
    # (b (w0 + w1))**2 at w0 + w1 = 3, b = 3
    assert found["b"]["b"].item() == 2 * 9
    assert found["w"][0]["w"][0].asnumpy().tolist() == [[18, 18], [18, 18]]
    assert found["w"][0]["b"].asnumpy().tolist() == [36, 36]
    assert found["b"]["w"][0].asnumpy().tolist() == [36, 36]


def test_vjp_and_jvp_are_products_with_the_jacobian():
    x, w = RNG.normal(size=(2, 3)), RNG.normal(size=2)

    def function(x, w):
        return [np.tanh(np.matmul(x, array(A))), {"s": (x.sum(axis=1) * w).sum()}]

    matrix = jacobian(function, (array(x), array(w)))
    dy, ds = RNG.normal(size=(2, 2)), RNG.normal()
    outputs, (dx, dw) = vjp(function, (array(x), array(w)), [array(dy), {"s": array(ds)}])
    numpy.testing.assert_allclose(outputs[0].asnumpy(), numpy.tanh(x @ A), rtol=1e-14)
    wanted = numpy.einsum("ab,abcd->cd", dy, matrix[0][0].asnumpy()) + ds * matrix[1]["s"][0].asnumpy()
    numpy.testing.assert_allclose(dx.asnumpy(), wanted, rtol=1e-13)
    numpy.testing.assert_allclose(dw.asnumpy(), ds * x.sum(axis=1), rtol=1e-13)

    tx, tw = RNG.normal(size=(2, 3)), RNG.normal(size=2)
    outputs, derivatives = jvp(function, [array(x), array(w)], (array(tx), array(tw)))
    wanted = numpy.einsum("abcd,cd->ab", matrix[0][0].asnumpy(), tx)
    numpy.testing.assert_allclose(derivatives[0].asnumpy(), wanted, rtol=1e-13)
    wanted = (matrix[1]["s"][0].asnumpy() * tx).sum() + x.sum(axis=1) @ tw
    numpy.testing.assert_allclose(derivatives[1]["s"].item(), wanted, rtol=1e-13)
    numpy.testing.assert_allclose(outputs[1]["s"].item(), x.sum(axis=1) @ w, rtol=1e-13)


def test_vjp_without_cotangents_takes_ones_and_complex_inputs():
    _, gradient = vjp(lambda x: x * x, array([1.0, 2.0]))
    assert gradient.asnumpy().tolist() == [2, 4]
    _, gradient = vjp(lambda z: (z * z.conj()).real, np.array([1 + 2j]))
    assert gradient.asnumpy().tolist() == [2 + 4j]


def test_jvp_of_constants_is_zero():
    outputs, derivatives = jvp(lambda x: (np.ones(2, dtype="float64"), x), array([1.0]), array([5.0]))
    assert derivatives[0].asnumpy().tolist() == [0, 0] and derivatives[1].asnumpy().tolist() == [5]
    assert [y.shape for y in outputs] == [(2,), (1,)]
    assert jvp(lambda x: np.ones(2, dtype="float64"), array([1.0]), array([5.0]))[1].asnumpy().tolist() == [0, 0]


def test_derivatives_nest():
    x = array(0.7)
    third = jacobian(lambda x: jacobian(lambda x: jacobian(np.sin, x), x), x)
    assert third.item() == pytest.approx(-numpy.cos(0.7), rel=1e-14)
    # Forward over forward over backward.
    one = array(1.0)
    third = jvp(lambda x: jvp(lambda x: vjp(np.sin, x)[1], x, one)[1], x, one)[1]
    assert third.item() == pytest.approx(-numpy.cos(0.7), rel=1e-14)
    point = array([0.3, 0.4])
    fourth = hessian(lambda x: hessian(lambda x: (x**4).sum(), x)[0, 0], point)
    numpy.testing.assert_allclose(fourth.asnumpy(), [[24, 0], [0, 0]], rtol=1e-12)


def test_results_are_recorded_where_the_caller_records():
    x = array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        slope = jacobian(lambda x: (x**3).sum(), x)
        loss = (slope * slope).sum()
        constant = jacobian(lambda x: (x**3).sum(), x, create_graph=False)
    loss.backward()
    # slope = 3 x**2, loss = 9 x**4
    assert x.grad.asnumpy().tolist() == [36, 288]
    with pytest.raises(AutogradError, match="head 0 was not computed while recording"):
        constant.backward()
    outside = jacobian(lambda x: (x**3).sum(), x, create_graph=True)
    outside.backward()
    assert x.grad.asnumpy().tolist() == [6, 12]


def test_arrays_that_the_function_closes_over_get_gradients_when_recorded():
    w = array([2.0])
    w.attach_grad()
    with autograd.record():
        _, gradient = vjp(lambda x: w * x * x, array([3.0]))
        loss = gradient.sum()
    loss.backward()
    assert w.grad.item() == 6


def test_training_mode_is_that_of_the_caller():
    seen = []

    def function(x):
        seen.append(autograd.is_training())
        return x

    jacobian(function, array([1.0]))
    with autograd.train_mode():
        jacobian(function, array([1.0]))
    assert seen == [False, True]


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: jacobian(3, np.ones(2)), TypeError, "jacobian: `function` must be a function, found 'int'"),
        (lambda: jacobian(lambda x: x, [np.ones(2), 3]), TypeError, r"jacobian: `inputs\[1\]` must be an ndarray"),
        (lambda: jacobian(lambda x: 3, np.ones(2)), TypeError, "`result of function` must be an ndarray.*found 'int'"),
        (
            lambda: jacobian(lambda x: x, {"k": np.arange(2, dtype="int32")}),
            TypeError,
            r"`inputs\['k'\]` must be of real or complex floats, found int32",
        ),
        (
            lambda: jacobian(lambda x: x, np.ones(2, dtype="complex64")),
            TypeError,
            "must be of real floats, found complex",
        ),
        (
            lambda: jacobian(lambda x: x > 0, np.ones(2)),
            TypeError,
            "`result of function` must be of real floats, found bool",
        ),
        (lambda: hessian(lambda x: x, np.ones(2)), ValueError, r"one array of one element, found shapes \(2,\)"),
        (lambda: hessian(lambda x: [x.sum()], np.ones(2)), ValueError, r"one array of one element, found shapes \(\)"),
        (
            lambda: vjp(lambda x: x, np.ones(2), [np.ones(2)]),
            ValueError,
            r"vjp: `cotangents` are nested as \[array\], the results as array",
        ),
        (
            lambda: vjp(lambda x: x, np.ones(2), np.ones(3)),
            ValueError,
            r"vjp: `cotangents` must have shape \(2,\), found \(3,\)",
        ),
        (
            lambda: jvp(lambda x, y: x, [np.ones(2), np.ones(1)], [np.ones(2), np.ones(2)]),
            ValueError,
            r"jvp: `tangents\[1\]` must have shape \(1,\), found \(2,\)",
        ),
        (lambda: jvp(lambda x: x, np.ones(2), None), ValueError, "jvp: `tangents` must be given"),
    ],
)
def test_errors_name_the_argument(call, error, message):
    with pytest.raises(error, match=message):
        call()
