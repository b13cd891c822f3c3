"""Softmax, its logarithm, masks, lengths; cross entropy; smooth L1."""

import numpy as onp
import pytest
from scipy import special

import mxnet as mx
from mxnet import _core, np, npx

RNG = onp.random.default_rng(10)
cross_entropy = _core.namespaces["op"]["sparse_cross_entropy"]


def random(*shape):
    return RNG.uniform(-3, 3, shape)


def on(x):
    return np.array(x, dtype="float64")


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("temperature", [None, 2.5])
def test_it_is_scipys(axis, temperature):
    x = random(3, 4, 5)
    scaled = x / (temperature or 1.0)
    got = npx.softmax(on(x), axis, temperature=temperature).asnumpy()
    onp.testing.assert_allclose(got, special.softmax(scaled, axis), atol=1e-14)
    got = npx.log_softmax(on(x), axis=axis, temperature=temperature).asnumpy()
    onp.testing.assert_allclose(got, special.log_softmax(scaled, axis), atol=1e-13)


@pytest.mark.parametrize("axis", [1, -1])
def test_only_the_elements_within_the_length_take_part(axis):
    x = random(2, 3, 4)
    length = RNG.integers(1, x.shape[axis] + 1, onp.delete(x.shape, axis))
    inside = onp.moveaxis(onp.arange(x.shape[axis]) < length[..., None], -1, axis)
    want = onp.where(inside, special.softmax(onp.where(inside, x, -onp.inf), axis), 0)
    got = npx.softmax(on(x), axis, np.array(length, dtype="int32"), use_length=True)
    onp.testing.assert_allclose(got.asnumpy(), want, atol=1e-14)


def test_the_result_may_be_wider():
    y = npx.softmax(np.array(random(3, 4), dtype="float16"), dtype="float32")
    assert y.dtype == "float32"
    onp.testing.assert_allclose(y.asnumpy().sum(-1), 1, atol=1e-6)
    with pytest.raises(TypeError, match="the result cannot be int32"):
        npx.softmax(np.zeros((2, 2)), dtype="int32")


def test_masked_elements_take_no_part():
    x, mask = random(3, 5), RNG.random((3, 5)) < 0.6
    mask[1] = False
    with onp.errstate(invalid="ignore"):
        want = onp.where(mask, special.softmax(onp.where(mask, x / 2, -onp.inf), -1), 0)
        logs = onp.where(mask, special.log_softmax(onp.where(mask, x / 2, -onp.inf), -1), -onp.inf)
    onp.testing.assert_allclose(npx.masked_softmax(on(x), np.array(mask), temperature=2.0).asnumpy(), want, atol=1e-14)
    for masked in (npx.masked_softmax, npx.masked_log_softmax):
        same = masked(on(x), np.array(mask), temperature=None)
        onp.testing.assert_array_equal(same.asnumpy(), masked(on(x), np.array(mask)).asnumpy())
    got = npx.masked_log_softmax(on(x), np.array(mask), temperature=2.0).asnumpy()
    onp.testing.assert_allclose(got, logs, atol=1e-13)


def test_gradients_do_not_leave_the_mask():
    x, mask = on(random(2, 4)), np.array([[True, False, True, True], [False] * 4])
    x.attach_grad()
    weight = random(2, 4)
    with mx.autograd.record():
        y = npx.masked_softmax(x, mask)
        total = (y * on(weight)).sum()
    total.backward()
    p = y.asnumpy()
    want = p * (weight - (weight * p).sum(-1, keepdims=True))
    onp.testing.assert_allclose(x.grad.asnumpy(), want, atol=1e-14)


def test_lengths_must_fit():
    x = np.zeros((2, 3))
    with pytest.raises(
        ValueError, match=r"`length` has shape \(3,\), needs \(2,\): the shape of the data without axis"
    ):
        npx.softmax(x, -1, np.array([1, 2, 3]), use_length=True)
    with pytest.raises(ValueError, match="`use_length` is True, but no `length` is given"):
        npx.softmax(x, use_length=True)
    with pytest.raises(ValueError, match="a `length` is given, but `use_length` is False"):
        npx.softmax(x, -1, np.array([1, 2]))
    with pytest.raises(TypeError, match="`length` is float32, needs integers"):
        npx.softmax(x, -1, np.ones((2,)), use_length=True)
    with pytest.raises(ValueError, match="`temperature` is 0"):
        npx.softmax(x, temperature=0.0)


@pytest.mark.parametrize("axis", [1, -1])
def test_cross_entropy_is_minus_the_log_probability(axis):
    x = random(4, 5, 3)
    label = RNG.integers(0, x.shape[axis], onp.delete(x.shape, axis))
    logs = special.log_softmax(x, axis)
    want = -onp.take_along_axis(logs, onp.expand_dims(label, axis), axis).squeeze(axis)
    data = on(x)
    data.attach_grad()
    with mx.autograd.record():
        loss = cross_entropy(data, np.array(label), axis)
    loss.backward()
    onp.testing.assert_allclose(loss.asnumpy(), want, atol=1e-13)
    hot = onp.moveaxis(onp.eye(x.shape[axis])[label], -1, axis)
    onp.testing.assert_allclose(data.grad.asnumpy(), onp.exp(logs) - hot, atol=1e-13)


def test_cross_entropy_ignores_one_label_and_refuses_wrong_shapes():
    x = np.array(random(3, 4))
    loss = cross_entropy(x, np.array([0, 2, 1]), -1, 2).asnumpy()
    assert loss[1] == 0
    assert (loss[[0, 2]] > 0).all()
    assert onp.isnan(cross_entropy(x, np.array([0, 4, 1])).asnumpy()[1])
    with pytest.raises(ValueError, match=r"`label` has shape \(2,\), needs \(3,\): the shape of the data without axis"):
        cross_entropy(x, np.array([0, 1]))


def test_labels_may_be_floats():
    x = random(3, 4)
    labels = [0, 3, 1]
    got = cross_entropy(on(x), np.array(labels, dtype="float32")).asnumpy()
    onp.testing.assert_allclose(got, -special.log_softmax(x, -1)[range(3), labels], atol=1e-13)


@pytest.mark.parametrize("scalar", [1.0, 2.0, 0.5])
def test_smooth_l1_is_quadratic_near_zero(scalar):
    x = random(50)
    s2 = scalar**2
    want = onp.where(abs(x) < 1 / s2, 0.5 * s2 * x**2, abs(x) - 0.5 / s2)
    onp.testing.assert_allclose(npx.smooth_l1(on(x), scalar).asnumpy(), want, atol=1e-14)
