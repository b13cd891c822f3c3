"""Polynomials: their roots, and those that fit points."""

import numpy as onp
import pytest

import mxnet as mx
from mxnet import autograd

np = mx.np


@pytest.fixture(autouse=True)
def numpy_mode():
    with mx.util.np_default_dtype(True):
        yield


@pytest.mark.parametrize("zeros", [[1.0, -2.0, 0.5], [3], [1j, -1j], [1 + 2j, 0.5], [[1.0, 2.0], [3.0, 4.0]]])
def test_poly_has_the_roots_it_is_made_of(zeros):
    found, expected = np.poly(zeros), onp.poly(zeros)
    onp.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-12, atol=1e-12)
    assert found.dtype == expected.dtype


def test_poly_of_an_oblong_matrix_is_refused():
    with pytest.raises(ValueError, match=r"square 2d array, found shape \(2, 3\)"):
        np.poly(np.ones((2, 3)))


@pytest.mark.parametrize("p", [[1.0, -3.0, 2.0], [0, 0, 2, 4, 0, 0], [1, 0, 1], [5], [0, 0], [], [2j, 1.0, 3.0]])
def test_roots_are_numpys(p):
    found, expected = np.roots(p).asnumpy(), onp.roots(p)
    assert found.shape == expected.shape
    onp.testing.assert_allclose(onp.sort_complex(found), onp.sort_complex(expected), rtol=1e-10, atol=1e-12)


def test_roots_of_a_matrix_are_refused():
    with pytest.raises(ValueError, match="roots: coefficients have 1 axis, found 2"):
        np.roots([[1, 2]])


POINTS = onp.linspace(-1.0, 2.0, 9)
VALUES = onp.stack([POINTS**2 - 1, onp.cos(POINTS)], 1)


@pytest.mark.parametrize("values", [VALUES[:, 0], VALUES])
@pytest.mark.parametrize("w", [None, onp.arange(1.0, 10)])
@pytest.mark.parametrize("cov", [False, True, "unscaled"])
def test_polyfit_is_numpys(values, w, cov):
    found, expected = np.polyfit(POINTS, values, 2, w=w, cov=cov), onp.polyfit(POINTS, values, 2, w=w, cov=cov)
    pairs = zip(found, expected, strict=True) if cov else [(found, expected)]
    for ours, theirs in pairs:
        onp.testing.assert_allclose(ours.asnumpy(), theirs, rtol=1e-8, atol=1e-10)


def test_full_polyfit_tells_what_the_decomposition_does():
    found, expected = np.polyfit(POINTS, VALUES[:, 1], 3, full=True), onp.polyfit(POINTS, VALUES[:, 1], 3, full=True)
    for ours, theirs in zip(found, expected, strict=True):
        onp.testing.assert_allclose(onp.asarray(ours), theirs, rtol=1e-7)


def test_a_polynomial_that_is_not_determined_warns():
    with pytest.warns(onp.exceptions.RankWarning, match="poorly conditioned"):
        np.polyfit([1.0, 1.0, 1.0], [1.0, 2.0, 3.0], 2)


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        (([1, 2], [1, 2], -1), ValueError, "deg >= 0, found -1"),
        (([[1, 2]], [1, 2], 1), TypeError, "1D vector for x, found 2 axes"),
        (([], [], 1), TypeError, "non-empty"),
        (([1, 2], [1, 2, 3], 1), TypeError, "same length, found 2 and 3"),
        (([1, 2], [1, 2], 1, None, False, None, True), ValueError, "2 points and 2 coefficients"),
    ],
)
def test_polyfit_refuses_what_does_not_fit(arguments, error, match):
    with pytest.raises(error, match=match):
        np.polyfit(*arguments)


def test_polyfit_is_differentiable_in_the_values():
    values = np.array(VALUES[:, 1])
    values.attach_grad()
    with autograd.record():
        loss = np.sum(np.polyfit(POINTS, values, 1) * np.array([2.0, 1.0]))
    loss.backward()
    step, base = 1e-6, onp.polyfit(POINTS, VALUES[:, 1], 1) @ [2.0, 1.0]
    for i in range(len(POINTS)):
        moved = VALUES[:, 1].copy()
        moved[i] += step
        slope = (onp.polyfit(POINTS, moved, 1) @ [2.0, 1.0] - base) / step
        assert abs(float(values.grad[i]) - slope) < 1e-5


@pytest.mark.parametrize(
    "call",
    [
        "polyval(np.arange(6).reshape(2, 3), 2)",
        "polyval(np.arange(6).reshape(2, 3), np.arange(3))",
        "polyval(np.arange(6.0).reshape(3, 2), np.ones((4, 1)))",
        "polyval(np.zeros((0, 3)), np.ones(3))",
        "polyval(np.zeros((2, 0)), np.ones(1))",
    ],
)
def test_polynomials_side_by_side_are_evaluated_together(call):
    found, expected = eval(call, {"np": np, **vars(np)}), eval(call, {"np": onp, **vars(onp)})
    assert found.dtype == expected.dtype
    assert found.tolist() == expected.tolist()
