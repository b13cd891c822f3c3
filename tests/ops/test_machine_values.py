"""Results that NumPy leaves to the machine: here they are the same for every size, layout and machine."""

import math

import ml_dtypes
import numpy
import pytest

from mxnet import np

VALUES = [math.nan, math.inf, -math.inf, -1.5, 300.7, -129.0, 1e10, -1e10, 3e9, 1e19, 1.8e19, 1e30, -1e30, 0.0, 255.9]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def as_integer(value, dtype):
    """Truncated to 64 bits for uint32 and wider, else 32; what does not fit is their minimum; then the low bits."""
    info = numpy.iinfo(dtype)
    is_wide = info.bits == 64 or dtype == "uint32"
    least = -(2**63) if is_wide else -(2**31)
    most = 2**64 if dtype == "uint64" else -least
    whole = math.trunc(value) if math.isfinite(value) else None
    if whole is None or not least <= whole < most:
        whole = least
    whole %= 2**info.bits
    return whole - 2**info.bits if whole > info.max else whole


@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_floats_that_do_not_fit_an_integer(source, dtype):
    for repeats in (1, 3):
        with numpy.errstate(over="ignore"):
            x = numpy.array(VALUES * repeats).astype(ml_dtypes.bfloat16 if source == "bfloat16" else source)
        expected = [as_integer(float(value), dtype) for value in x]
        a = np.array(x)
        assert str(a.dtype) == source
        assert a.astype(dtype).tolist() == expected
        assert a[::-1].astype(dtype).tolist() == expected[::-1]
        assert [a[i].astype(dtype).item() for i in range(len(VALUES))] == expected[: len(VALUES)]


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_products_round_each_real_product(dtype):
    real = "float32" if dtype == "complex64" else "float64"
    large = math.sqrt(numpy.finfo(real).max) * 1.5
    parts = numpy.array([0, -1, 0.1, 1 / 3, large, -large, math.inf, math.nan], real)
    x = numpy.empty((8, 8), dtype)
    x.real, x.imag = parts[:, None], parts
    x = x.ravel()
    a, b = numpy.repeat(x, 64), numpy.tile(x, 64)
    with numpy.errstate(all="ignore"):
        expected = numpy.empty(a.shape, dtype)
        expected.real = a.real * b.real - a.imag * b.imag
        expected.imag = a.real * b.imag + a.imag * b.real
    found = (np.array(a) * np.array(b)).asnumpy()
    assert numpy.array_equal(found.real, expected.real, equal_nan=True)
    assert numpy.array_equal(found.imag, expected.imag, equal_nan=True)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("axis", [0, 1])
def test_cumulative_sums_of_half_precision_add_in_float32_also_in_place(dtype, axis):
    x = np.array(numpy.random.default_rng(5).uniform(size=(70, 33)), dtype=dtype)
    wide = x.astype("float32").asnumpy()
    expected = np.array(numpy.cumsum(wide, axis=axis, dtype="float32")).astype(dtype)
    assert (np.cumsum(x, axis=axis) == expected).all()
    np.cumsum(x, axis=axis, out=x)
    assert (x == expected).all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("n", [8, 31, 64, 100, 1000])
def test_extrema_of_rows_whose_sum_is_nan_although_no_element_is(dtype, n):
    """Rows are searched for NaN by their sum, which is also NaN of infinities of both signs, and of overflows."""
    largest = numpy.finfo(dtype).max
    rows = numpy.zeros((5, n), dtype=dtype)
    rows[0, [0, -1]] = numpy.inf, -numpy.inf
    rows[1, : n // 2], rows[1, n // 2 :] = largest, -largest
    rows[2, n // 2] = -numpy.inf
    rows[3] = numpy.arange(n)
    rows[4] = numpy.arange(n)
    rows[4, n // 3] = numpy.nan
    for name in ("max", "min"):
        found = getattr(np, name)(np.array(rows), axis=1).asnumpy()
        numpy.testing.assert_array_equal(found, getattr(numpy, name)(rows, axis=1))
