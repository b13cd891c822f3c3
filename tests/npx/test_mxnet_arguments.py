"""Arguments and names of MXNet 2 beside NumPy's: norms over chosen axes, modules under two names."""

import numpy as onp
import pytest

import mxnet as mx
from mxnet import np

X = onp.random.default_rng(3).normal(size=(2, 3, 4))


@pytest.mark.parametrize("order", ["fro", "nuc", 2, 1, onp.inf])
def test_matrix_norm_takes_axes(order):
    found = np.linalg.matrix_norm(np.array(X), ord=order, axis=(2, 0), keepdims=True)
    onp.testing.assert_allclose(found.asnumpy(), onp.linalg.norm(X, order, axis=(2, 0), keepdims=True), rtol=1e-12)
    with pytest.raises(ValueError, match="`axis` must be two axes"):
        np.linalg.matrix_norm(np.array(X), axis=(0,))


def test_modules_have_two_names():
    assert mx.img is mx.image
    assert mx.rnd is mx.random
    assert mx.viz is mx.visualization
