"""Gradients of factorisations against differences, first and second order, real and complex.

What is differentiated does not depend on the signs and phases of singular vectors and eigenvectors, which are any.
"""

import numpy as onp
import pytest

import slopes
from mxnet import _core, np

H = np.matrix_transpose


def adjoint(x):
    return np.conjugate(H(x))


def rows(x):
    """(..., n) as rows that scale columns."""
    return np.expand_dims(x, -2)


def through_svd(a):
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    return np.matmul(u * rows(np.exp(-s)), vh), s


def full_svd(a):
    u, s, vh = np.linalg.svd(a)
    k = s.shape[-1]
    return np.matmul(u[..., :k] * rows(np.sqrt(s)), vh[..., :k, :])


def through_eigh(a):
    w, v = np.linalg.eigh(a + adjoint(a))
    return np.matmul(v * rows(np.exp(w * 0.3)), adjoint(v)), w


def upper_eigh(a):
    w, v = np.linalg.eigh(a + adjoint(a), "U")
    return np.matmul(v * rows(np.sin(w)), adjoint(v))


def through_eig(a):
    """v f(w) v^-1 is a function of the matrix alone; sums of powers of eigenvalues are symmetric."""
    w, v = np.linalg.eig(a)
    return np.matmul(v * rows(w * w), np.linalg.inv(v)), np.sum(w**3, axis=-1)


def lengths_of_eig(a):
    """Absolute values of the vectors' elements do not depend on phases, but on their lengths."""
    v = np.linalg.eig(a)[1]
    return np.sum(np.square(np.square(np.abs(v))), axis=-1)


def positive(a):
    n = a.shape[-1]
    return np.matmul(a, adjoint(a)) + np.eye(n, dtype="float64")


CASES = {
    "inv": (np.linalg.inv, [(3, 3)]),
    "inv of a stack": (np.linalg.inv, [(2, 3, 3)]),
    "solve": (np.linalg.solve, [(3, 3), (3, 2)]),
    "solve for a vector": (np.linalg.solve, [(3, 3), (3,)]),
    "solve, broadcast": (np.linalg.solve, [(2, 1, 3, 3), (2, 3, 1)]),
    "solve, one matrix": (np.linalg.solve, [(3, 3), (2, 3, 2)]),
    "det": (np.linalg.det, [(2, 3, 3)]),
    "slogdet": (lambda a: tuple(np.linalg.slogdet(a)), [(2, 3, 3)]),
    "cholesky": (lambda a: np.linalg.cholesky(positive(a)), [(2, 3, 3)]),
    "cholesky, upper": (lambda a: np.linalg.cholesky(positive(a), upper=True), [(3, 3)]),
    "qr": (lambda a: tuple(np.linalg.qr(a)), [(3, 3)]),
    "qr, tall": (lambda a: tuple(np.linalg.qr(a)), [(2, 4, 2)]),
    "qr, wide": (lambda a: tuple(np.linalg.qr(a)), [(2, 4)]),
    "qr, complete and wide": (lambda a: tuple(np.linalg.qr(a, "complete")), [(2, 3)]),
    "r of qr": (lambda a: np.linalg.qr(a, "r"), [(4, 2)]),
    "r of qr, wide": (lambda a: np.linalg.qr(a, "r"), [(2, 4)]),
    "svd": (through_svd, [(3, 3)]),
    "svd, tall": (through_svd, [(2, 4, 2)]),
    "svd, wide": (through_svd, [(2, 4)]),
    "svd, full": (full_svd, [(4, 2)]),
    "svdvals": (np.linalg.svdvals, [(2, 3, 4)]),
    "svd of hermitian": (lambda a: np.linalg.svd(a + adjoint(a), hermitian=True).S, [(3, 3)]),
    "eigh": (through_eigh, [(2, 3, 3)]),
    "eigh, upper": (upper_eigh, [(3, 3)]),
    "eigvalsh": (lambda a: np.linalg.eigvalsh(a + adjoint(a)), [(3, 3)]),
    "eig": (through_eig, [(3, 3)]),
    "eig, lengths": (lengths_of_eig, [(3, 3)]),
    "eigvals": (lambda a: np.sum(np.linalg.eigvals(a) ** 2, axis=-1), [(2, 3, 3)]),
    "pinv, tall": (np.linalg.pinv, [(4, 2)]),
    "pinv, wide": (np.linalg.pinv, [(2, 2, 3)]),
    "pinv of hermitian": (lambda a: np.linalg.pinv(a + adjoint(a), hermitian=True), [(3, 3)]),
    "lstsq": (lambda a, b: np.linalg.lstsq(a, b)[0], [(4, 2), (4, 3)]),
    "lstsq, singular values": (lambda a, b: np.linalg.lstsq(a, b)[3], [(4, 2), (4,)]),
    "residuals of lstsq": (lambda a, b: np.linalg.lstsq(a, b)[1], [(4, 2), (4, 3)]),
    "cond": (np.linalg.cond, [(3, 3)]),
    "cond in the 1-norm": (lambda a: np.linalg.cond(a, 1), [(3, 3)]),
    "nuclear norm": (lambda a: np.linalg.norm(a, "nuc"), [(3, 4)]),
    "spectral norm": (lambda a: np.linalg.norm(a, 2), [(3, 4)]),
    "matrix_power": (lambda a: np.linalg.matrix_power(a, -2), [(3, 3)]),
    "tensorinv": (np.linalg.tensorinv, [(2, 2, 4)]),
    "tensorsolve": (np.linalg.tensorsolve, [(2, 2, 4), (2, 2)]),
    "matvec": (np.matvec, [(2, 3, 4), (4,)]),
    "vecmat": (np.vecmat, [(3,), (2, 3, 4)]),
    "cross": (np.cross, [(2, 3), (3,)]),
}


def operand(shape, dtype, rng):
    x = rng.standard_normal(shape)
    if dtype == "complex128":
        x = x + 1j * rng.standard_normal(shape)
    if len(shape) > 1 and shape[-1] == shape[-2]:
        # Away from singular, with eigenvalues apart: real ones for a real matrix.
        x = 0.3 * x + onp.diag(1.0 + onp.arange(shape[-1]))
    return x


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", CASES)
def test_gradients_are_the_slopes(name, dtype):
    function, shapes = CASES[name]
    rng = onp.random.default_rng(11)
    slopes.check(function, [operand(shape, dtype, rng) for shape in shapes], rng)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_gradients_of_matrices_with_complex_eigenvalues_are_the_slopes(dtype):
    x = onp.array([[1.0, -2.0, 0.3], [2.0, 1.2, 0.1], [0.2, 0.4, 3.0]]).astype(dtype)
    rng = onp.random.default_rng(3)

    def function(a):
        return tuple(np.real(y) for y in through_eig(a))

    slopes.check(function, [x], rng)


def grad(function, x):
    a = np.array(x, dtype=x.dtype)
    a.attach_grad()
    before = _core.set_recording(True)
    try:
        y = np.sum(function(a))
    finally:
        _core.set_recording(before)
    y.backward()
    return a.grad.asnumpy()


@pytest.mark.parametrize("n", [2, 3, 30])
def test_the_determinants_of_singular_matrices_have_a_gradient(n):
    """The slope by an element is its cofactor, which is found here by differences of a polynomial of degree 1."""
    rng = onp.random.default_rng(n)
    x = rng.standard_normal((n, n))
    x[-1] = x[0]
    got = grad(np.linalg.det, x)
    want = onp.zeros((n, n))
    for i in (0, n - 1):
        for j in range(n):
            y = x.copy()
            y[i, j] += 1.0
            want[i, j] = onp.linalg.det(y)
    onp.testing.assert_allclose(got, want, atol=1e-10 * max(1.0, onp.abs(want).max()))
    assert (grad(np.linalg.det, onp.zeros((n, n))) == (onp.zeros((n, n)))).all()


def test_singular_values_alone_may_be_equal():
    onp.testing.assert_allclose(grad(lambda a: np.linalg.svd(a).S, onp.eye(3)), onp.eye(3), atol=1e-14)
    onp.testing.assert_allclose(grad(lambda a: np.linalg.eigh(a)[0], onp.eye(3)), onp.eye(3), atol=1e-14)


def test_the_whole_of_q_has_no_gradient():
    with pytest.raises(_core.AutogradError, match="the last 2 columns of q are arbitrary"):
        grad(lambda a: np.linalg.qr(a, "complete")[0], onp.ones((4, 2)) + onp.eye(4, 2))


def test_gradients_keep_the_dtype_of_the_matrix():
    x = onp.random.default_rng(1).standard_normal((3, 3)).astype("float32")
    for function in (
        np.linalg.inv,
        np.linalg.det,
        np.linalg.svdvals,
        np.linalg.pinv,
        lambda a: np.real(np.linalg.eig(a)[0]),
    ):
        assert grad(function, x).dtype == onp.float32
        assert onp.isfinite(grad(function, x)).all()
