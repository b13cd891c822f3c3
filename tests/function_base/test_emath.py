"""Functions that leave the real numbers."""

import numpy as onp
import pytest

import mxnet as mx

VALUES = [[-2.0, 0.5, 3.0], [0.25, 1.0, 4.0], [-1, 2, 9]]


@pytest.fixture(autouse=True)
def numpy_mode():
    with mx.util.np_default_dtype(True):
        yield


@pytest.mark.parametrize("name", ["sqrt", "log", "log2", "log10", "arccos", "arcsin", "arctanh"])
@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_dtype_and_values_are_numpys(name, values, dtype):
    with onp.errstate(all="ignore"):
        expected = getattr(onp.emath, name)(onp.array(values, dtype))
    found = getattr(mx.np.emath, name)(mx.np.array(values, dtype=dtype))
    assert found.dtype == expected.dtype
    onp.testing.assert_allclose(found.asnumpy(), expected, rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize(("x", "p"), [([2, 4], 2), ([2, 4], -2), ([-2.0, 4.0], 0.5), ([2.0], [-1, 3])])
def test_power_is_numpys(x, p):
    found, expected = mx.np.emath.power(x, p), onp.emath.power(x, p)
    assert found.dtype == expected.dtype
    onp.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-12, atol=1e-12)


def test_base_of_a_logarithm_may_be_negative():
    expected = onp.emath.logn(-2.0, [4.0, -8.0])
    onp.testing.assert_allclose(mx.np.emath.logn(-2.0, [4.0, -8.0]).asnumpy(), expected, rtol=1e-12)
