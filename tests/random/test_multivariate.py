"""Normal vectors with a covariance."""

import numpy as onp
import pytest

import mxnet as mx
from mxnet import autograd, np

MEAN = [1.0, -2.0, 3.0]
COV = onp.array([[2.0, 0.6, -0.4], [0.6, 1.0, 0.2], [-0.4, 0.2, 0.5]])
N = 40_000


@pytest.mark.parametrize("method", ["svd", "eigh", "cholesky"])
def test_vectors_have_their_mean_and_covariance(method):
    x = np.random.default_rng(1).multivariate_normal(MEAN, np.array(COV, dtype="float64"), N, method=method)
    assert x.shape == (N, 3)
    assert x.dtype == "float64"
    x = x.asnumpy()
    # Five standard errors: those of a covariance are below sqrt(2 / n) of the variances' mean.
    assert (abs(x.mean(0) - MEAN) < 5 * onp.sqrt(onp.diag(COV) / N)).all()
    variances = onp.diag(COV)
    errors = onp.sqrt((onp.outer(variances, variances) + COV**2) / N)
    assert (abs(onp.cov(x.T) - COV) < 5 * errors).all()


def test_the_legacy_function_draws_from_the_global_stream():
    mx.random.seed(3)
    x = np.random.multivariate_normal(MEAN, COV, size=(2, 4))
    mx.random.seed(3)
    assert x.shape == (2, 4, 3)
    assert x.tolist() == np.random.multivariate_normal(MEAN, COV, size=(2, 4)).tolist()
    assert np.random.multivariate_normal(MEAN, COV).shape == (3,)


def test_batches_of_parameters():
    rng = np.random.default_rng(1)
    assert rng.multivariate_normal(np.zeros((4, 2)), np.eye(2), 5).shape == (5, 4, 2)
    batch = np.stack([np.eye(2), 100 * np.eye(2)])
    x = rng.multivariate_normal(np.zeros((2,)), batch, 5000, method="cholesky").asnumpy()
    assert x.shape == (5000, 2, 2)
    # Five standard errors of the deviation of 5000 normal numbers.
    assert onp.allclose(x.std(0), [[1, 1], [10, 10]], rtol=5 / (2 * 5000) ** 0.5)


def test_singular_and_impossible_covariances():
    rng = np.random.default_rng(1)
    x = rng.multivariate_normal([0.0, 0.0], [[1.0, 1.0], [1.0, 1.0]], 50).asnumpy()
    assert onp.allclose(x[:, 0], x[:, 1], atol=1e-5)
    bad = np.array([[1.0, 2.0], [2.0, 1.0]])
    for method in ("svd", "eigh"):
        with pytest.warns(RuntimeWarning, match="least eigenvalue is -1"):
            rng.multivariate_normal([0, 0], bad, method=method)
        with pytest.raises(ValueError, match="least eigenvalue is -1"):
            rng.multivariate_normal([0, 0], bad, check_valid="raise", method=method)
        assert rng.multivariate_normal([0, 0], bad, check_valid="ignore", method=method).shape == (2,)
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        rng.multivariate_normal([0, 0], bad, method="cholesky").asnumpy()
    with pytest.raises(ValueError, match=r"\(2,\) and \(3, 3\)"):
        rng.multivariate_normal([0, 0], np.eye(3))
    with pytest.raises(ValueError, match="'lu'"):
        rng.multivariate_normal([0, 0], np.eye(2), method="lu")
    with pytest.raises(ValueError, match="'maybe'"):
        rng.multivariate_normal([0, 0], np.eye(2), check_valid="maybe")


def test_vectors_move_with_mean_and_covariance():
    mean, cov = np.array([0.0, 0.0], dtype="float64"), np.array([[2.0, 0.3], [0.3, 1.0]], dtype="float64")
    mean.attach_grad()
    cov.attach_grad()
    with autograd.record():
        x = np.random.default_rng(1).multivariate_normal(mean, cov, N, method="cholesky")
        total = (x[:, 0] * x[:, 1]).mean() + x.mean(0).sum()
    total.backward()
    # Five standard errors: the derivatives of one sample have variances up to 2, that of x[0].
    limit = 5 * (2 / N) ** 0.5
    assert onp.allclose(mean.grad.asnumpy(), 1, rtol=0, atol=limit)
    # The covariance of the two is cov[0, 1], of which each triangle has half.
    assert onp.allclose(cov.grad.asnumpy(), [[0, 0.5], [0.5, 0]], rtol=0, atol=limit)
