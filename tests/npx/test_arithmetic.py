"""Sums, batched products, norms, checks, straight-through estimators, Poisson samples."""

import numpy as onp
import pytest

import mxnet as mx
from mxnet import autograd, np, npx


def test_sums_of_many_arrays():
    x, y, z = np.ones((2, 3)), np.full((2, 3), 2.0), np.full((2, 3), 4.0)
    assert npx.add_n(x, y, z).tolist() == [[7.0] * 3] * 2
    assert npx.add_n(x).tolist() == x.tolist()
    with pytest.raises(ValueError, match=r"array 1 has shape \(3,\), the first has \(2, 3\)"):
        npx.add_n(x, np.ones((3,)))
    with pytest.raises(TypeError, match="at least one"):
        npx.add_n()


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_batches_of_products(transpose_a, transpose_b):
    rng = onp.random.default_rng(0)
    a, b = rng.normal(size=(2, 5, 3, 4)), rng.normal(size=(2, 5, 4, 6))
    x, y = np.array(a.swapaxes(-1, -2) if transpose_a else a), np.array(b.swapaxes(-1, -2) if transpose_b else b)
    found = npx.batch_dot(x, y, transpose_a, transpose_b).asnumpy()
    # Two operands, four products and four sums round.
    assert (abs(found - a @ b) <= 10 * 2.0**-24 * (abs(a) @ abs(b))).all()
    with pytest.raises(ValueError, match=r"(?s)a: shape \(2, 3\).*b: shape \(3, 2\)"):
        npx.batch_dot(np.zeros((2, 3)), np.zeros((3, 2)))
    with pytest.raises(ValueError, match=r"(?s)a: shape \(2, 3, 4\).*b: shape \(1, 4, 5\)"):
        npx.batch_dot(np.zeros((2, 3, 4)), np.zeros((1, 4, 5)))
    with pytest.raises(ValueError, match="'csr'"):
        npx.batch_dot(x, y, forward_stype="csr")


def test_norms():
    a = onp.random.default_rng(0).normal(size=(3, 4, 5)).astype("float32")
    x = np.array(a)
    assert onp.allclose(npx.norm(x).item(), onp.linalg.norm(a), rtol=1e-6)
    assert onp.allclose(npx.norm(x, 1, axis=1).asnumpy(), abs(a).sum(1), rtol=1e-6)
    assert npx.norm(x, axis=(0, 2), keepdims=True).shape == (1, 4, 1)
    assert onp.allclose(npx.norm(x, axis=(0, 2)).asnumpy(), onp.sqrt((a * a).sum((0, 2))), rtol=1e-6)
    assert npx.norm(x, out_dtype="float64").dtype == "float64"
    with pytest.raises(ValueError, match="found 3"):
        npx.norm(x, 3)


def test_constraints_are_checked():
    assert npx.constraint_check(np.array([True, True])).item() is True
    with pytest.raises(ValueError, match=r"^scale must be positive$"):
        npx.constraint_check(np.array([True, False]), "scale must be positive")
    with pytest.raises(ValueError, match="Constraint violated"):
        npx.constraint_check(np.array([1.0, -1.0]) > 0)


def test_estimators_let_gradients_straight_through():
    x = np.array([-1.7, -0.5, 0.0, 0.5, 1.5, 2.6])
    for function, want in ((npx.round_ste, [-2, 0, 0, 0, 2, 3]), (npx.sign_ste, [-1, -1, 0, 1, 1, 1])):
        x.attach_grad()
        with autograd.record():
            y = function(x)
            total = (y * np.array([1.0, 2, 3, 4, 5, 6])).sum()
        total.backward()
        assert y.tolist() == want
        assert x.grad.tolist() == [1, 2, 3, 4, 5, 6]


def test_poisson_samples_of_scalars_and_tensors():
    mx.random.seed(4)
    x = npx.scalar_poisson(4.0, shape=(100, 50))
    assert x.dtype == "float32"
    # Five standard errors.
    assert abs(x.mean().item() - 4) < 5 * (4 / 5000) ** 0.5
    assert npx.scalar_poisson().shape == ()
    assert npx.scalar_poisson(2.0, 3, dtype="int32").dtype == "int32"
    means = np.array([[1.0, 20.0]])
    y = npx.tensor_poisson(means, shape=(2000,))
    assert y.shape == (1, 2, 2000)
    assert (abs(y.asnumpy().mean(-1) - [[1, 20]]) < 5 * onp.sqrt(onp.array([[1, 20]]) / 2000)).all()
    assert npx.tensor_poisson(means).shape == (1, 2)
    with pytest.raises(ValueError, match="-1"):
        npx.scalar_poisson(-1.0)


def test_batch_norm_over_devices_is_that_of_the_batch():
    x = np.array(onp.random.default_rng(0).normal(size=(4, 3, 2)).astype("float32"))

    def state():
        return [np.ones((3,)), np.zeros((3,)), np.zeros((3,)), np.ones((3,))]

    with autograd.record():
        found = npx.sync_batch_norm(x, *state(), key="a")
        want = npx.batch_norm(x, *state())
    assert found.tolist() == want.tolist()
    with pytest.raises(ValueError, match="found 2"):
        npx.sync_batch_norm(x, *state(), ndev=2, key="a")


def test_batch_norm_with_relu_is_both():
    x = np.array([[-1.0, 2.0], [3.0, -4.0], [0.5, 1.0]])
    arguments = (x, np.ones(2), np.zeros(2), np.zeros(2), np.ones(2))
    with autograd.record():
        found = npx.batch_norm_with_relu(*arguments, output_mean_var=True)
        unfused = npx.batch_norm(*arguments, output_mean_var=True)
    assert (
        (found[0] == npx.relu(unfused[0])).all() and (found[1] == unfused[1]).all() and (found[2] == unfused[2]).all()
    )
    assert npx.batch_norm_with_relu(*arguments).shape == (3, 2)
    assert npx.broadcast_greater(x, np.zeros(2)).tolist() == (x > 0).tolist()
