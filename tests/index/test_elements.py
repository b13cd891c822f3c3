"""Single elements are numbers of their own, as NumPy's scalars are: later writes do not reach them."""

import math
from collections import Counter

import numpy
import pytest

import mxnet as mx
from mxnet import autograd

np = mx.np


def test_elements_can_be_swapped():
    x = np.array([3.0, 1.0, 2.0])
    x[0], x[1] = x[1], x[0]
    assert x.tolist() == [1, 3, 2]
    m = np.arange(4.0).reshape(2, 2)
    m[0, 1], m[1, 0] = m[1, 0], m[0, 1]
    assert m.tolist() == [[0, 2], [1, 3]]


@pytest.mark.parametrize("key", [1, -1, (1,), numpy.int64(1), (numpy.int32(1),)])
def test_elements_keep_their_value_when_the_array_changes(key):
    x = np.array([3.0, 1.0])
    element = x[key]
    x *= 2
    assert element.item() == 1
    element += 5
    assert x.tolist() == [6, 2]


def test_elements_of_matrices_iterators_and_of_arrays_of_no_axes_are_copies_too():
    x = np.arange(6.0).reshape(2, 3)
    taken = [x[1, 2], next(iter(x[0])), next(iter(x.flat)), x.flat[4], np.array(7.0)[()]]
    x[...] = -1
    assert [element.item() for element in taken] == [5, 0, 0, 4, 7]


def test_rows_and_ellipses_are_views_still():
    x = np.zeros((2, 2))
    x[0][1] = 5
    x[1, 0, ...][...] = 3
    whole = np.array(1.0)
    whole[...] += 1
    assert x.tolist() == [[0, 5], [3, 0]] and whole.item() == 2


def test_gradients_flow_through_elements():
    x = np.array([1.0, 2.0, 3.0])
    x.attach_grad()
    with autograd.record():
        y = x[1] * x[2] + x[0]
    y.backward()
    assert x.grad.tolist() == [1, 3, 2]


def test_elements_wait_for_what_writes_them():
    x = np.zeros(1_000_000)
    for i in range(20):
        x += 1
        assert x[i].item() == i + 1


@pytest.mark.parametrize("dtype", ["int8", "int64", "float32", "float64", "complex64", "bool"])
def test_elements_are_keys_like_the_numbers_they_hold(dtype):
    values = [0, 1, 1] if dtype == "bool" else [2, 3, 3]
    x = np.array(values, dtype=dtype)
    assert Counter(x)[values[1]] == 2
    assert len(set(x)) == 2
    assert {values[1]: "found"}[x[1]] == "found"
    assert x[0] in {values[0]}


@pytest.mark.parametrize("x", [np.ones(1), np.ones((0,)), np.ones((1, 1))])
def test_arrays_with_axes_are_no_keys(x):
    with pytest.raises(TypeError, match="unhashable type: 'ndarray'"):
        hash(x)


@pytest.mark.parametrize("function", [math.floor, math.ceil, math.trunc, round])
@pytest.mark.parametrize("value", [2.5, -2.5, 3.0, -0.25, 7])
def test_rounded_numbers_are_python_integers(function, value):
    got = function(np.array(value))
    assert type(got) is int
    assert got == function(value)
    assert function(np.array([value])).tolist() == [function(value)]


def test_numbers_round_to_digits_and_infinity_is_no_integer():
    assert round(np.array(2.567, dtype="float64"), 2).item() == 2.57
    assert round(np.array(1250), -2).item() == 1200
    assert list(range(round(np.array([1.5, 2.7]).mean()))) == [0, 1]
    with pytest.raises(OverflowError):
        math.floor(np.array(np.inf))
    with pytest.raises(ValueError, match="NaN"):
        round(np.array(np.nan))
    with pytest.raises(TypeError):
        math.floor(np.array(1j))
