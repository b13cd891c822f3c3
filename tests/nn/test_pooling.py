"""Pooling against slow loops."""

import numpy as onp
import pytest

import mxnet as mx
import windows
from mxnet import np, npx

RNG = onp.random.default_rng(8)
GEOMETRIES = [
    ((2, 3, 9), (3,), (2,), (1,)),
    ((1, 2, 8, 7), (2, 3), (2, 1), (0, 1)),
    ((1, 2, 8, 7), (5, 4), (3, 3), (2, 2)),
    ((1, 2, 5, 4, 6), (2, 2, 3), (2, 1, 2), (1, 0, 1)),
]


@pytest.mark.parametrize("kind", ["max", "avg", "sum", "lp"])
@pytest.mark.parametrize("convention", ["valid", "full", "same"])
@pytest.mark.parametrize(("shape", "kernel", "stride", "pad"), GEOMETRIES)
def test_it_is_the_loop_over_windows(kind, convention, shape, kernel, stride, pad):
    x = RNG.uniform(-1, 1, shape)
    got = npx.pooling(
        np.array(x, dtype="float64"), kernel, stride, pad, kind, convention, p_value=3 if kind == "lp" else None
    )
    want = windows.pooling(x, kernel, stride, pad, kind, convention, p=3)
    onp.testing.assert_allclose(got.asnumpy(), want, atol=1e-12)


@pytest.mark.parametrize("convention", ["valid", "full"])
def test_a_mean_may_leave_padding_out(convention):
    x = RNG.uniform(-1, 1, (1, 2, 8, 7))
    got = npx.pooling(np.array(x, dtype="float64"), (3, 2), (2, 2), (1, 1), "avg", convention, count_include_pad=False)
    want = windows.pooling(x, (3, 2), (2, 2), (1, 1), "avg", convention, include=False)
    onp.testing.assert_allclose(got.asnumpy(), want, atol=1e-12)


@pytest.mark.parametrize("kind", ["max", "avg", "sum"])
def test_a_global_pool_takes_whole_channels(kind):
    x = RNG.uniform(-1, 1, (2, 3, 4, 5))
    fold = {"max": onp.max, "avg": onp.mean, "sum": onp.sum}[kind]
    got = npx.pooling(np.array(x, dtype="float64"), pool_type=kind, global_pool=True)
    onp.testing.assert_allclose(got.asnumpy(), fold(x, axis=(2, 3), keepdims=True), atol=1e-12)


def test_channels_may_be_the_last_axis():
    x = RNG.uniform(-1, 1, (2, 3, 6, 5))
    want = npx.pooling(np.array(x), (2, 2), (2, 1)).asnumpy()
    got = npx.pooling(np.array(onp.moveaxis(x, 1, -1)), (2, 2), (2, 1), layout="NHWC").asnumpy()
    onp.testing.assert_array_equal(onp.moveaxis(got, -1, 1), want)


def test_the_first_of_equal_maxima_gets_the_gradient():
    x = np.zeros((1, 1, 4))
    x.attach_grad()
    with mx.autograd.record():
        y = npx.pooling(x, (2,), (2,))
    y.backward()
    assert x.grad.asnumpy().ravel().tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize("size", [(1, 1), (4, 7), (24, 24), (40, 3), (9, 300)])
@pytest.mark.parametrize(("kernel", "stride", "pad"), [(2, 2, 0), (3, 2, 1), (3, 1, 1), (1, 1, 0), (2, 3, 1)])
def test_rows_of_windows_do_not_touch_each_other(size, kernel, stride, pad):
    if min(size) + 2 * pad < kernel:
        return
    x = onp.round(RNG.normal(size=(2, 3, *size)) * 2)  # many elements are equal
    x[RNG.random(x.shape) < 0.2] = -onp.inf
    a = np.array(x, dtype="float32")
    a.attach_grad()
    with mx.autograd.record():
        y = npx.pooling(a, (kernel, kernel), (stride, stride), (pad, pad), "max")
    dy = onp.round(RNG.normal(size=y.shape) * 8)
    y.backward(np.array(dy, dtype="float32"))
    want, dx = onp.zeros(y.shape), onp.zeros(x.shape)
    for at in onp.ndindex(*y.shape):
        corner = [i * stride - pad for i in at[2:]]
        window = [
            (at[0], at[1], h, w)
            for h in range(corner[0], corner[0] + kernel)
            for w in range(corner[1], corner[1] + kernel)
            if 0 <= h < size[0] and 0 <= w < size[1]
        ]
        first = max(window, key=lambda i: x[i])  # of equal ones the first
        want[at] = x[first]
        dx[first] += dy[at]
    onp.testing.assert_array_equal(y.asnumpy(), want)
    onp.testing.assert_array_equal(a.grad.asnumpy(), dx)


def test_a_norm_of_zeros_has_gradient_zero():
    x = np.zeros((1, 1, 4))
    x.attach_grad()
    with mx.autograd.record():
        y = npx.pooling(x, (2,), (2,), pool_type="lp", p_value=2)
    y.backward()
    assert x.grad.asnumpy().ravel().tolist() == [0, 0, 0, 0]


def test_errors_carry_numbers():
    x = np.zeros((1, 2, 5))
    with pytest.raises(ValueError, match="kernel of size 6 does not fit spatial axis 0 of size 5 with padding 0"):
        npx.pooling(x, (6,))
    with pytest.raises(ValueError, match="`kernel` is needed unless `global_pool` is True"):
        npx.pooling(x)
    with pytest.raises(ValueError, match="`p_value` is 0, must be at least 1"):
        npx.pooling(x, (2,), pool_type="lp", p_value=0)
