"""Products whose parts leave the range of the type, though they do not in their order."""

import numpy
import pytest

import mxnet as mx

np = mx.np

CASES = {
    "lanes that overflow and vanish": numpy.tile([1e-3, 1e3], 2000),
    "a zero before what overflows": numpy.arange(400.0),
    "a zero after what overflows": numpy.arange(400.0)[::-1].copy(),
    "a zero among many": numpy.r_[numpy.full(100_000, 1.5), 0.0],
    "underflow": numpy.full(5000, 0.1),
    "nan": numpy.r_[0.0, numpy.nan, numpy.full(1000, 10.0)],
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.filterwarnings("ignore:overflow|invalid")
def test_products_agree_with_numpys_order(case, dtype):
    with numpy.errstate(all="ignore"):
        x = CASES[case].astype(dtype)
        for reduce in (lambda np, x: np.prod(x), lambda np, x: np.multiply.reduce(x), lambda np, x: np.nanprod(x)):
            numpy.testing.assert_allclose(reduce(np, np.array(x)).asnumpy(), reduce(numpy, x), rtol=1e-12)
        columns = numpy.stack([x, numpy.ones_like(x), x], 1)
        numpy.testing.assert_allclose(np.prod(np.array(columns), 0).asnumpy(), numpy.prod(columns, 0), rtol=1e-12)
        numpy.testing.assert_allclose(np.prod(np.array(columns.T), 1).asnumpy(), numpy.prod(columns.T, 1), rtol=1e-12)


def test_products_of_single_precision_are_computed_again_in_double_precision():
    assert np.prod(np.arange(60.0)).item() == 0
    assert abs(np.prod(np.array(numpy.tile([1e-3, 1e3], 200), dtype="float32")).item() - 1) < 1e-4
    assert np.prod(np.full(100, 10.0, dtype="float16")).item() == float("inf")


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_running_products_keep_zeros_before_what_overflows(dtype):
    x = np.full(300_001, 2, dtype=dtype)
    x[0] = 0
    assert (np.cumprod(x) == 0).all()


@pytest.mark.parametrize("threads", [1, 2])
def test_products_are_the_same_on_any_number_of_threads(threads):
    before = mx._core.num_threads()
    mx._core.set_num_threads(threads)
    try:
        x = np.array(numpy.random.default_rng(0).normal(size=(300, 2000)))
        assert np.prod(x).item() == 0
        assert np.isfinite(np.prod(np.abs(x) + 0.5, 1)).all()
    finally:
        mx._core.set_num_threads(before)
