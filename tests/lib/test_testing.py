"""Assertions of `np.testing`: NumPy's, on our arrays."""

import warnings

import numpy
import pytest

import mxnet as mx
from mxnet.numpy import testing

np = mx.np
X = np.array([1.0, 2.0, 3.0])

HOLD = [
    ("assert_allclose", (X, [1, 2, 3])),
    ("assert_allclose", (X, X * (1 + 1e-5), 1e-4)),
    ("assert_equal", ({"x": X, "y": [X, 2]}, {"x": [1, 2, 3], "y": [[1.0, 2.0, 3.0], 2]})),
    ("assert_equal", (X[0], 1)),
    ("assert_array_equal", (np.array([numpy.nan, 1]), [numpy.nan, 1])),
    ("assert_array_equal", (X.astype("bfloat16"), X)),
    ("assert_array_less", (X, 4)),
    ("assert_almost_equal", (X.mean(), 2)),
    ("assert_array_almost_equal", (X, X + 1e-9)),
    ("assert_approx_equal", (X[0], 1.0001, 3)),
    ("assert_array_almost_equal_nulp", (X, X)),
    ("assert_array_max_ulp", (X, X)),
]
FAIL = [
    ("assert_allclose", (X, [1, 2, 3.1])),
    ("assert_equal", ([X, 1], [X, 2])),
    ("assert_equal", (X, [1, 2])),
    ("assert_array_equal", (X, [1, 2, 4])),
    ("assert_array_less", (X, 3)),
    ("assert_almost_equal", (X[0], 1.1)),
    ("assert_array_almost_equal", (X, X + 1)),
    ("assert_approx_equal", (X[0], 1.1)),
    ("assert_array_almost_equal_nulp", (X, X * 1.5)),
    ("assert_array_max_ulp", (X, X * 1.5)),
]


def test_the_module_is_there_under_both_names():
    assert np.testing is testing
    assert {name for name in testing.__all__ if name.startswith("assert")} <= set(dir(numpy.testing))


@pytest.mark.parametrize(("name", "args"), HOLD)
def test_true_assertions_pass(name, args):
    getattr(np.testing, name)(*args)


@pytest.mark.parametrize(("name", "args"), FAIL)
def test_false_assertions_fail(name, args):
    with pytest.raises(AssertionError):
        getattr(np.testing, name)(*args)


def test_messages_are_numpys_and_strictness_is():
    with pytest.raises(AssertionError, match=r"(?s)tolerance rtol=1e-07.*mine.*Mismatched elements: 1 / 3"):
        np.testing.assert_allclose(X, [1, 2, 4], err_msg="mine")
    with pytest.raises(AssertionError, match="dtype"):
        np.testing.assert_array_equal(X, X.astype("float64"), strict=True)


def test_errors_and_warnings_are_expected():
    with np.testing.assert_raises(ValueError):
        np.add(X, np.ones(2))
    np.testing.assert_raises(ValueError, np.add, X, np.ones(2))
    with np.testing.assert_raises_regex(ValueError, "broadcast"):
        np.add(X, np.ones(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # NumPy 2.4 advises against it
        with np.testing.assert_warns(np.exceptions.ComplexWarning):
            np.ones(1)[:] = np.array([1j])
