"""Factorisations of matrices with very large or very small elements are those of ordinary ones, times the scale."""

import numpy
import pytest

import mxnet as mx

np = mx.np
SCALES = {"float64": (1e-310, 1e-200, 1e160, 1e300), "float32": (1e-40, 1e-30, 1e20, 1e35)}
TYPES = ["float32", "float64", "complex64", "complex128"]


def matrix(dtype, m=4, n=4):
    rng = numpy.random.default_rng(3)
    x = rng.normal(size=(m, n))
    return (x + 1j * rng.normal(size=(m, n)) if dtype.startswith("complex") else x) / 2


def over(x, scale):
    """x / scale in double precision, whose complex quotients overflow."""
    near = 10.0 ** -(round(numpy.log10(scale)) // 2)
    return (
        numpy.asarray(x.asnumpy()).astype("complex128" if x.dtype.kind == "c" else "float64")
        * near
        * (1 / (scale * near))
    )


def cases(dtype, order):
    """Scales, and the largest error of results for matrices of this order.

    The algorithms give the exact result of a matrix that differs by a small multiple of `order` roundings, relative to
    the largest singular value (Higham, Accuracy and Stability of Numerical Algorithms, 2002, chapters 9 and 19). The
    multiple here is 4.
    """
    real = {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)
    for scale in SCALES[real]:
        # Elements are rounded to the spacing of numbers at this scale, which is wider for subnormal numbers.
        digits = float(numpy.spacing(numpy.asarray(scale, dtype=real))) / scale
        yield scale, 4 * order * max(digits, float(numpy.finfo(real).eps))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (40, 40)])
def test_singular_values_scale_with_the_matrix(dtype, shape):
    x = matrix(dtype, *shape)
    want = numpy.linalg.svd(x, compute_uv=False)
    for scale, tolerance in cases(dtype, max(shape)):
        a = np.array((x * scale).astype(dtype))
        for values in (np.linalg.svd(a)[1], np.linalg.svdvals(a)):
            numpy.testing.assert_allclose(over(values, scale), want, rtol=tolerance, atol=tolerance)
        u, s, vh = np.linalg.svd(a, full_matrices=False)
        back = over(u, 1) * over(s, scale) @ over(vh, 1)
        numpy.testing.assert_allclose(back, x, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n", [3, 30])
def test_eigenvalues_scale_with_the_matrix(dtype, n):
    x = matrix(dtype, n, n)
    hermitian = x + x.conj().T
    for scale, tolerance in cases(dtype, n):
        a = np.array((hermitian * scale).astype(dtype))
        want = numpy.linalg.eigvalsh(hermitian)
        for values in (np.linalg.eigvalsh(a), np.linalg.eigh(a)[0]):
            got = over(values, scale)
            numpy.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
        got = over(np.linalg.eigvals(np.array((x * scale).astype(dtype))), scale)
        # An error of the matrix moves eigenvalues by at most that error times the condition number of the
        # eigenvectors (Bauer and Fike, Norms and exclusion theorems, 1960).
        want, vectors = numpy.linalg.eig(x)
        limit = tolerance * numpy.linalg.norm(x, 2) * numpy.linalg.cond(vectors)
        distance = numpy.sort(numpy.abs(got)) - numpy.sort(numpy.abs(want))
        assert numpy.abs(distance).max() <= limit


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n", [2, 4, 40])
def test_solutions_and_determinants_scale_with_the_matrix(dtype, n):
    x = matrix(dtype, n, n) + 3 * n * numpy.eye(n)
    for scale, tolerance in cases(dtype, n):
        a = np.array((x * scale).astype(dtype))
        side = np.array((x[:, :2] * scale).astype(dtype))
        got = np.linalg.solve(a, side).asnumpy()
        numpy.testing.assert_allclose(got, numpy.eye(n, 2), rtol=tolerance, atol=tolerance)
        sign, log = (part.asnumpy().astype("complex128") for part in np.linalg.slogdet(a))
        want = numpy.linalg.slogdet(x)
        numpy.testing.assert_allclose(sign, want[0], rtol=tolerance, atol=tolerance)
        numpy.testing.assert_allclose(log.real, want[1] + n * numpy.log(scale), rtol=tolerance, atol=tolerance)
        if 1e-37 < scale < 1e37 or scale == 1e160:
            numpy.testing.assert_allclose(
                over(np.linalg.inv(a), 1 / scale), numpy.linalg.inv(x), rtol=tolerance, atol=tolerance
            )


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(4, 4), (6, 3), (3, 6), (50, 40)])
def test_triangular_factors_scale_with_the_matrix(dtype, shape):
    x = matrix(dtype, *shape)
    for scale, tolerance in cases(dtype, max(shape)):
        a = np.array((x * scale).astype(dtype))
        q, r = np.linalg.qr(a)
        numpy.testing.assert_allclose(over(q, 1) @ over(r, scale), x, rtol=tolerance, atol=tolerance)
        h, tau = np.linalg.qr(a, "raw")
        want_h, want_tau = np.linalg.qr(np.array(x.astype(dtype)), "raw")
        upper = over(np.triu(h.T), scale)
        numpy.testing.assert_allclose(upper, numpy.triu(want_h.asnumpy().T), rtol=tolerance, atol=tolerance)
        numpy.testing.assert_allclose(over(tau, 1), over(want_tau, 1), rtol=tolerance, atol=tolerance)


def test_what_is_made_of_singular_values_scales_too():
    x = matrix("float64")
    for scale in (1e-200, 1e160):
        a = np.array(x * scale)
        assert np.linalg.matrix_rank(a).item() == 4
        numpy.testing.assert_allclose(np.linalg.cond(a).item(), numpy.linalg.cond(x), rtol=1e-10)
        numpy.testing.assert_allclose(np.linalg.norm(a, 2).item() / scale, numpy.linalg.norm(x, 2), rtol=1e-12)
        numpy.testing.assert_allclose((np.linalg.pinv(a) * scale).asnumpy(), numpy.linalg.pinv(x), rtol=1e-9)
        solution = np.linalg.lstsq(a, np.array(x[0] * scale))[0]
        numpy.testing.assert_allclose(solution.asnumpy(), numpy.linalg.lstsq(x, x[0])[0], rtol=1e-9)
