"""The test utilities find what is wrong, and only that."""

import numpy as onp
import pytest

import mxnet as mx
from mxnet import test_utils
from mxnet.gluon import nn


def test_worst_elements_are_reported_first():
    a, b = onp.zeros((2, 3)), onp.zeros((2, 3))
    b[0, 1], b[1, 2] = 1e-3, 5.0
    with pytest.raises(AssertionError) as caught:
        # The tolerance is below both differences, so both are listed.
        test_utils.assert_almost_equal(a, b, rtol=0, atol=1e-4, names=("found", "wanted"))
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("2 of 6 elements differ")
    assert lines[1].startswith("  (1, 2): found=")
    assert "wanted=" in lines[2]
    assert lines[2].startswith("  (0, 1)")


def test_tolerance_is_that_of_the_less_exact_dtype():
    one = onp.float64(1)
    close = onp.float32(1 + 1e-5)
    assert test_utils.almost_equal(onp.array(one), onp.array(close))
    assert not test_utils.almost_equal(onp.array(one), onp.array(1 + 1e-4, dtype="float64"))
    assert test_utils.get_tols(onp.array(one), onp.array(close, dtype="float16"), None, None)[0] == 1e-2
    assert test_utils.get_tols(onp.array([1]), onp.array([1]), None, None) == (0, 0)


def test_nan_and_infinity():
    nan, inf = onp.array([onp.nan]), onp.array([onp.inf])
    assert not test_utils.almost_equal(nan, nan)
    assert test_utils.almost_equal(nan, nan, equal_nan=True)
    assert test_utils.almost_equal(inf, inf)
    assert not test_utils.almost_equal(inf, -inf)
    assert not test_utils.almost_equal(inf, onp.array([1e300]))
    test_utils.assert_almost_equal_ignore_nan(onp.array([1, onp.nan]), onp.array([1, 7.0]))


def test_large_integers_are_compared_exactly():
    assert not test_utils.almost_equal(onp.array([2**62]), onp.array([2**62 + 2**20]))
    assert test_utils.almost_equal(onp.array([2**62 + 1]), onp.array([2**62 + 1]))
    assert not test_utils.same(onp.array([1, 2]), onp.array([1, 3]))


def test_shapes_broadcast_unless_forbidden():
    test_utils.assert_almost_equal(onp.ones((2, 3)), onp.ones(3))
    with pytest.raises(AssertionError, match=r"\(2, 3\), b has shape \(3,\)"):
        test_utils.assert_almost_equal(onp.ones((2, 3)), onp.ones(3), use_broadcast=False)
    with pytest.raises(AssertionError, match="do not broadcast"):
        test_utils.assert_almost_equal(onp.ones((2, 3)), onp.ones(2))


def test_nested_tuples_are_compared():
    test_utils.compare_ndarray_tuple((None, [onp.ones(2)]), (None, [onp.ones(2)]))
    with pytest.raises(AssertionError, match="NoneType is compared"):
        test_utils.compare_ndarray_tuple((None,), (onp.ones(1),))


def test_numeric_gradient_accepts_right_and_rejects_wrong_ones():
    class Wrong(mx.autograd.Function):
        def forward(self, x):
            return x * x

        def backward(self, dy):
            return 1.9 * dy

    location = [onp.array([0.5, 2.0])]
    test_utils.check_numeric_gradient(lambda x: x * x * x, location)
    with pytest.raises(AssertionError, match="gradient of 0"):
        test_utils.check_numeric_gradient(lambda x: Wrong()(x), location)
    with pytest.raises(ValueError, match="nothing to differentiate"):
        test_utils.check_numeric_gradient(lambda x: x, [onp.array([1])])


def test_numeric_gradient_checks_parameters_of_blocks():
    net = nn.Dense(2, in_units=3)
    net.initialize(mx.init.Normal(1.0))
    with pytest.raises(ValueError, match="parameter weight must be float64"):
        test_utils.check_numeric_gradient(net, [onp.ones((2, 3))])
    net.cast("float64")
    test_utils.check_numeric_gradient(net, [onp.ones((2, 3))])


def test_random_shapes_and_arrays_stay_in_their_range():
    for _ in range(20):
        assert all(1 <= size <= 4 for size in test_utils.rand_shape_nd(3, dim=4))
        assert len(test_utils.rand_shape_2d()) == 2
        assert len(test_utils.rand_shape_3d(allow_zero_size=True)) == 3
    array = test_utils.rand_ndarray((50, 4), dtype="float64")
    assert array.shape == (50, 4)
    assert array.dtype == onp.float64
    assert abs(array.asnumpy()).max() < 1
    assert test_utils.random_sample(list("abcdef"), 6) == list("abcdef")
    with pytest.raises(ValueError, match="from 0 to 2, found 3"):
        test_utils.random_sample([1, 2], 3)


def test_reduction_axis_by_axis():
    values = onp.arange(24.0).reshape(2, 3, 4)
    for axis in (None, 1, -1, (0, 2)):
        for keepdims in (False, True):
            found = test_utils.np_reduce(values, axis, keepdims, onp.sum)
            assert (found == values.sum(axis=axis, keepdims=keepdims)).all()


def test_shared_memory_is_found_out():
    x = mx.np.array([1.0, 2.0, 3.0])
    assert test_utils.same_array(x, x)
    assert not test_utils.same_array(x, mx.np.array([1.0, 2.0, 3.0]))
    assert x.asnumpy().tolist() == [1, 2, 3]


def test_default_device_can_be_set():
    assert test_utils.default_device() == mx.cpu(0)
    test_utils.set_default_device(mx.cpu(1))
    try:
        assert test_utils.rand_ndarray((1,)).device == mx.cpu(1)
    finally:
        test_utils.set_default_device(None)


def test_retry_gives_a_test_more_chances():
    calls = []

    @test_utils.retry(3)
    def flaky():
        calls.append(1)
        assert len(calls) == 2

    flaky()
    assert len(calls) == 2
    with pytest.raises(AssertionError):
        flaky()
    assert len(calls) == 5


def test_exceptions_are_expected():
    test_utils.assert_exception(int, ValueError, "x")
    with pytest.raises(AssertionError, match="did not raise ValueError"):
        test_utils.assert_exception(int, ValueError, "1")


def test_part_of_the_elements_may_be_wrong():
    a, b = onp.zeros(10), onp.zeros(10)
    b[3] = 1
    test_utils.assert_almost_equal_with_err(a, b, etol=0.1)
    with pytest.raises(AssertionError, match="1 of 10"):
        test_utils.assert_almost_equal_with_err(a, b, etol=0.05)


def test_sums_back_to_the_shape_before_broadcasting():
    a = mx.np.ones((4, 2, 3))
    assert test_utils.collapse_sum_like(a, (2, 1)).asnumpy().tolist() == [[12], [12]]
    assert test_utils.collapse_sum_like(a, (4, 2, 3)) is a
    with pytest.raises(ValueError, match=r"\(5,\) does not broadcast|broadcast"):
        test_utils.collapse_sum_like(a, (5,))


def test_counting_arrays():
    assert test_utils.create_vector(3).asnumpy().tolist() == [0, 1, 2]
    assert test_utils.create_2d_np_tensor(2, 3, "int32").asnumpy().tolist() == [[0, 0, 0], [1, 1, 1]]
    for _ in range(10):
        x, y = test_utils.rand_coord_2d(1, 3, 5, 6)
        assert x in (1, 2)
        assert y == 5
