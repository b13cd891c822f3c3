"""Functions of numbers as functions of arrays."""

import numpy as onp
import pytest

import mxnet as mx
from mxnet import autograd

np = mx.np


def test_function_is_called_once_for_each_element():
    calls = []
    found = np.vectorize(lambda a: calls.append(a) or a * 2)(np.arange(4, dtype="int16"))
    assert found.tolist() == [0, 2, 4, 6] and found.dtype == onp.int16 and len(calls) == 4


def test_several_results_come_as_a_tuple():
    quotient, rest = np.vectorize(divmod)([7, 8], [[2], [5]])
    assert quotient.tolist() == [[3, 4], [1, 1]] and rest.tolist() == [[1, 0], [2, 3]]


def test_excluded_arguments_are_passed_whole():
    horner = np.vectorize(lambda x, p: sum(c * x**i for i, c in enumerate(p)), excluded={"p", 1})
    assert horner([0, 1], p=[1, 2, 3]).tolist() == [1, 6]
    assert horner([0, 1], [1, 2, 3]).tolist() == [1, 6]


def test_decorator_keeps_name_and_docstring():
    @np.vectorize(otypes=["float32"])
    def half(x):
        """Half of it."""
        return x / 2

    assert half.__name__ == "half" and half.__doc__ == "Half of it."
    assert half([1, 3]).dtype == onp.float32
    assert half(np.zeros((0, 2))).shape == (0, 2)


def test_results_with_a_signature_have_a_gradient():
    scaled = np.vectorize(lambda a, b: a * b.sum(), signature="(n),(m)->(n)")
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    x.attach_grad()
    with autograd.record():
        loss = np.sum(scaled(x, [1.0, 2.0, 3.0]))
    loss.backward()
    assert x.grad.tolist() == [[6.0, 6.0], [6.0, 6.0]]


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: np.vectorize(3), TypeError, "only accepts keyword arguments"),
        (lambda: np.vectorize(abs, signature="(n"), ValueError, "not a valid gufunc signature"),
        (lambda: np.vectorize(abs, otypes="z"), ValueError, "invalid otype"),
        (lambda: np.vectorize(abs)([]), ValueError, "size 0 inputs unless `otypes` is set"),
        (lambda: np.vectorize(abs, signature="(n)->(n)")(1), ValueError, "enough dimensions"),
        (lambda: np.vectorize(str)([1]), TypeError, "dtype"),
    ],
)
def test_what_cannot_be_called_says_so(call, error, match):
    with pytest.raises(error, match=match):
        call()
