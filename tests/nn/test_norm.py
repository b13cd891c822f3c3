"""Normalisation: values, running statistics, modes, errors."""

import numpy as onp
import pytest

import mxnet as mx
from mxnet import np, npx

RNG = onp.random.default_rng(9)


def random(*shape):
    return RNG.uniform(-1, 1, shape)


def on(x):
    return np.array(x, dtype="float64")


def test_training_uses_the_batch_and_moves_the_running_statistics():
    x, gamma, beta = random(4, 3, 5), random(3), random(3)
    mean, var = np.array([1.0, 2.0, 3.0]), np.array([2.0, 3.0, 4.0])
    with mx.autograd.train_mode():
        y = npx.batch_norm(on(x), on(gamma), on(beta), mean, var, eps=1e-3, momentum=0.75, fix_gamma=False)
    m, v = x.mean((0, 2)), x.var((0, 2))
    shape = (1, 3, 1)
    want = (x - m.reshape(shape)) / onp.sqrt(v.reshape(shape) + 1e-3) * gamma.reshape(shape) + beta.reshape(shape)
    onp.testing.assert_allclose(y.asnumpy(), want, atol=1e-12)
    onp.testing.assert_allclose(mean.asnumpy(), 0.75 * onp.array([1, 2, 3]) + 0.25 * m, rtol=1e-6)
    onp.testing.assert_allclose(var.asnumpy(), 0.75 * onp.array([2, 3, 4]) + 0.25 * v, rtol=1e-6)


@pytest.mark.parametrize("training", [False, True])
def test_running_statistics_are_used_outside_training_and_on_request(training):
    x, beta = random(4, 3), random(3)
    mean, var = random(3), random(3) + 2
    given = [on(a) for a in (x, onp.full(3, 5.0), beta, mean, var)]
    with mx.autograd.train_mode() if training else mx.autograd.predict_mode():
        y = npx.batch_norm(*given, eps=1e-2, use_global_stats=training)
    onp.testing.assert_allclose(y.asnumpy(), (x - mean) / onp.sqrt(var + 1e-2) + beta, atol=1e-12)
    onp.testing.assert_array_equal(given[3].asnumpy(), mean)


def test_a_fixed_gamma_counts_as_one_and_gets_no_gradient():
    x, gamma = on(random(4, 3)), on(random(3))
    gamma.attach_grad()
    beta = on(random(3))
    beta.attach_grad()
    with mx.autograd.record():
        y = npx.batch_norm(x, gamma, beta, np.zeros(3), np.ones(3))
    y.backward()
    assert not gamma.grad.asnumpy().any()
    onp.testing.assert_allclose(beta.grad.asnumpy(), 4.0)
    onp.testing.assert_allclose(y.asnumpy().mean(0), beta.asnumpy(), atol=1e-12)


def test_the_statistics_used_can_be_had():
    x = random(4, 3, 2)
    with mx.autograd.train_mode():
        y, mean, inverse = npx.batch_norm(on(x), np.ones(3), np.zeros(3), np.zeros(3), np.ones(3), output_mean_var=True)
    assert y.shape == (4, 3, 2)
    onp.testing.assert_allclose(mean.asnumpy(), x.mean((0, 2)), atol=1e-12)
    onp.testing.assert_allclose(inverse.asnumpy(), 1 / onp.sqrt(x.var((0, 2)) + 1e-3), atol=1e-12)


def test_half_precision_data_keep_float32_statistics():
    x = np.array(random(8, 3), dtype="float16")
    mean, var = np.zeros(3), np.ones(3)
    with mx.autograd.train_mode():
        y = npx.batch_norm(x, np.ones(3), np.zeros(3), mean, var, momentum=0.0)
    assert y.dtype == "float16"
    onp.testing.assert_allclose(mean.asnumpy(), x.asnumpy().astype(float).mean(0), atol=1e-6)


@pytest.mark.parametrize("axis", [-1, 1, 0])
def test_layer_norm_is_its_formula(axis):
    x = random(3, 4, 5)
    gamma, beta = random(x.shape[axis]), random(x.shape[axis])
    y, mean, deviation = npx.layer_norm(on(x), on(gamma), on(beta), axis, 1e-3, True)
    m, v = x.mean(axis, keepdims=True), x.var(axis, keepdims=True)
    shape = [1, 1, 1]
    shape[axis] = -1
    want = (x - m) / onp.sqrt(v + 1e-3) * gamma.reshape(shape) + beta.reshape(shape)
    onp.testing.assert_allclose(y.asnumpy(), want, atol=1e-12)
    onp.testing.assert_allclose(mean.asnumpy(), m.squeeze(axis), atol=1e-12)
    onp.testing.assert_allclose(deviation.asnumpy(), onp.sqrt(v + 1e-3).squeeze(axis), atol=1e-12)


@pytest.mark.parametrize("axis", [-1, 0])
def test_rms_norm_is_its_formula(axis):
    x = random(3, 4)
    gamma = random(x.shape[axis])
    shape = [1, 1]
    shape[axis] = -1
    want = x / onp.sqrt((x**2).mean(axis, keepdims=True) + 1e-5) * gamma.reshape(shape)
    onp.testing.assert_allclose(npx.rms_norm(on(x), on(gamma), axis).asnumpy(), want, atol=1e-12)


@pytest.mark.parametrize("groups", [1, 2, 6])
def test_group_norm_is_its_formula(groups):
    x, gamma, beta = random(2, 6, 3, 2), random(6), random(6)
    y, mean, deviation = npx.group_norm(on(x), on(gamma), on(beta), groups, 1e-3, output_mean_var=True)
    rows = x.reshape(2, groups, -1)
    m, v = rows.mean(-1, keepdims=True), rows.var(-1, keepdims=True)
    shape = (1, 6, 1, 1)
    want = ((rows - m) / onp.sqrt(v + 1e-3)).reshape(x.shape) * gamma.reshape(shape) + beta.reshape(shape)
    onp.testing.assert_allclose(y.asnumpy(), want, atol=1e-12)
    onp.testing.assert_allclose(mean.asnumpy(), m[..., 0], atol=1e-12)
    onp.testing.assert_allclose(deviation.asnumpy(), onp.sqrt(v + 1e-3)[..., 0], atol=1e-12)
    if groups == 6:
        alone = npx.instance_norm(on(x), on(gamma), on(beta)).asnumpy()
        onp.testing.assert_allclose(alone, want, atol=1e-12)


def test_statistics_of_rows_have_gradients_too():
    x = on(random(3, 4))
    x.attach_grad()
    with mx.autograd.record():
        _, mean, deviation = npx.layer_norm(x, np.ones(4), np.zeros(4), eps=1e-3, output_mean_var=True)
        total = mean.sum() + 2.0 * deviation.sum()
    total.backward()
    value = x.asnumpy()
    centred = value - value.mean(1, keepdims=True)
    want = 0.25 + 2 * centred / 4 / onp.sqrt(value.var(1, keepdims=True) + 1e-3)
    onp.testing.assert_allclose(x.grad.asnumpy(), want, atol=1e-12)


@pytest.mark.parametrize(("mode", "axes"), [("instance", (1, 2, 3)), ("channel", (1,)), ("spatial", (2, 3))])
def test_l2_normalization_divides_by_the_length(mode, axes):
    x = random(2, 3, 4, 2)
    want = x / onp.sqrt((x**2).sum(axes, keepdims=True) + 1e-3)
    onp.testing.assert_allclose(npx.l2_normalization(on(x), 1e-3, mode).asnumpy(), want, atol=1e-14)
    with pytest.raises(ValueError, match="data have 1 axes, mode `spatial` needs at least 2"):
        npx.l2_normalization(np.zeros(3), mode="spatial")


def test_errors_carry_numbers():
    x = np.zeros((2, 6, 3))
    with pytest.raises(ValueError, match=r"`gamma` has shape \(5,\), needs \(6,\): axis 1 of the data"):
        npx.batch_norm(x, np.ones(5), np.zeros(6), np.zeros(6), np.ones(6), fix_gamma=False)
    with pytest.raises(
        ValueError, match=r"`running_var` has shape \(2,\), needs \(6,\)|`var` has shape \(2,\), needs \(6,\)"
    ):
        npx.batch_norm(x, np.ones(6), np.zeros(6), np.zeros(6), np.ones(2))
    with pytest.raises(ValueError, match="`num_groups` is 4, which does not divide 6 channels"):
        npx.group_norm(x, np.ones(6), np.zeros(6), 4)
    with pytest.raises(ValueError, match=r"`gamma` has shape \(6,\), needs \(3,\): axis 2"):
        npx.layer_norm(x, np.ones(6), np.zeros(3))
