"""Arguments and names of MXNet 2 beside NumPy's: lists of axes, descending order, norms over chosen axes."""

import numpy as onp
import pytest

import mxnet as mx
from mxnet import autograd, np, npx

X = onp.random.default_rng(3).normal(size=(2, 3, 4))


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "prod", "std", "var", "any"])
def test_axes_come_as_lists_too(name):
    found = getattr(np, name)(np.array(X), axis=[0, -1])
    onp.testing.assert_allclose(found.asnumpy(), getattr(onp, name)(X, axis=(0, -1)), rtol=1e-12)
    if name != "any":
        onp.testing.assert_array_equal(getattr(np.array(X), name)(axis=[0, -1]).asnumpy(), found.asnumpy())


def test_what_is_no_axis_is_refused_still():
    with pytest.raises(TypeError, match="`axis` must be an integer or a tuple of integers"):
        np.sum(np.array(X), axis=["a"])
    with pytest.raises(ValueError, match="out of bounds"):
        np.sum(np.array(X), axis=[0, 3])


def test_descending_order_is_the_reversed_one():
    x = onp.array([[3.0, 1.0, 2.0], [0.5, 5.0, 4.0]])
    onp.testing.assert_array_equal(np.sort(np.array(x), descending=True).asnumpy(), -onp.sort(-x))
    onp.testing.assert_array_equal(np.sort(np.array(x), axis=0, descending=True).asnumpy(), -onp.sort(-x, axis=0))
    onp.testing.assert_array_equal(np.argsort(np.array(x), descending=True).asnumpy(), onp.argsort(-x))
    onp.testing.assert_array_equal(np.array(x).argsort(descending=True).asnumpy(), onp.argsort(-x))
    y = np.array(x)
    y.sort(descending=True)
    onp.testing.assert_array_equal(y.asnumpy(), -onp.sort(-x))
    # Equal elements keep their order.
    onp.testing.assert_array_equal(np.argsort(np.array([1, 2, 1, 2]), descending=True).asnumpy(), [1, 3, 0, 2])


def test_descending_order_has_a_gradient():
    x = np.array([3.0, 1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        y = (np.sort(x, descending=True) * np.array([1.0, 10.0, 100.0])).sum()
    y.backward()
    assert x.grad.tolist() == [1, 100, 10]


@pytest.mark.parametrize("order", ["fro", "nuc", 2, 1, onp.inf])
def test_matrix_norm_takes_axes(order):
    found = np.linalg.matrix_norm(np.array(X), ord=order, axis=(2, 0), keepdims=True)
    onp.testing.assert_allclose(found.asnumpy(), onp.linalg.norm(X, order, axis=(2, 0), keepdims=True), rtol=1e-12)
    with pytest.raises(ValueError, match="`axis` must be two axes"):
        np.linalg.matrix_norm(np.array(X), axis=(0,))


def test_deviation_of_equal_elements_has_the_slope_zero():
    x = np.array([[2.0, 2.0, 2.0], [1.0, 2.0, 6.0]], dtype="float64")
    x.attach_grad()
    with autograd.record():
        y = x.std(axis=1).sum()
    y.backward()
    onp.testing.assert_array_equal(x.grad.asnumpy()[0], 0)
    centred = onp.array([-2, -1, 3])
    onp.testing.assert_allclose(x.grad.asnumpy()[1], centred / 3 / centred.std(), rtol=1e-14)


def test_cudnn_off_chooses_nothing():
    x = np.array(X[0].T.copy())
    arguments = (x, np.ones(3), np.zeros(3), np.zeros(3), np.ones(3))
    assert (npx.batch_norm(*arguments, cudnn_off=True) == npx.batch_norm(*arguments)).all()


def test_modules_have_two_names():
    assert mx.img is mx.image
    assert mx.rnd is mx.random
    assert mx.viz is mx.visualization


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("mode", ["raise", "wrap", "clip"])
def test_take_truncates_floats(dtype, mode):
    weight = np.array(X[0])
    weight.attach_grad()
    at = np.array([0, 2, 1.75, 2], dtype=dtype)
    with autograd.record():
        rows = np.take(weight, at, axis=1, mode=mode)
        rows.backward(np.ones_like(rows))
    onp.testing.assert_array_equal(rows.asnumpy(), X[0][:, [0, 2, 1, 2]])
    assert weight.grad.tolist() == [[1, 1, 2, 0]] * 3
    onp.testing.assert_array_equal(weight.take(at, axis=1, mode=mode).asnumpy(), rows.asnumpy())
    traced = mx.jit(lambda weight, at: np.take(weight, at, axis=1, mode=mode))
    onp.testing.assert_array_equal(traced(weight, at).asnumpy(), rows.asnumpy())


def test_floats_out_of_bounds_are_none_of_takes_positions():
    for wrong in (4.0, -5.0, onp.nan, onp.inf):
        with pytest.raises(IndexError, match="out of bounds"):
            np.take(np.array(X[0]), np.array([0.0, wrong]), axis=1)
    assert np.take(np.array(X[0]), np.array([-9.0, 9.0]), axis=1, mode="clip").tolist() == X[0][:, [0, 3]].tolist()


def test_take_refuses_floats_under_numpys_rules():
    with (
        mx.util.np_default_dtype(True),
        pytest.raises(TypeError, match="take: indices must be integers, found float64"),
    ):
        np.take(np.ones(3), np.ones(2))
