"""Factorisations and what they give, against `numpy.linalg`: dtypes, shapes, layouts, errors."""

import numpy as onp
import pytest

import mxnet as mx
from both import both
from mxnet import np

DTYPES = ["float32", "float64", "complex64", "complex128"]
# Small ones are factored by loops, larger ones by blocks, the largest in parallel: all three kinds.
SQUARES = [
    (1, 1),
    (2, 2),
    (3, 5, 5),
    (2, 1, 4, 4),
    (24, 24),
    (25, 25),
    (2, 40, 40),
    (250, 250),
    (0, 0),
    (0, 3, 3),
    (3, 0, 0),
]
OBLONGS = [(4, 3), (3, 4), (2, 5, 2), (2, 2, 5), (30, 50), (300, 33), (220, 260), (0, 3), (3, 0), (2, 0, 3), (0, 3, 2)]
LAYOUTS = ["C", "F", "spread", "reversed"]


def matrices(shape, dtype, seed=0):
    """Random matrices, far from singular where they are square."""
    rng = onp.random.default_rng(seed)
    x = rng.standard_normal(shape)
    if dtype.startswith("complex"):
        x = x + 1j * rng.standard_normal(shape)
    if shape[-1] == shape[-2]:
        x = x + 2 * onp.sqrt(shape[-1]) * onp.eye(shape[-1])
    return x.astype(dtype)


def hermitian(shape, dtype, seed=0):
    x = matrices(shape, dtype, seed)
    return (x + onp.conj(onp.swapaxes(x, -1, -2))) / 2


def with_layout(x, layout):
    """Our array with these elements and a memory layout."""
    if layout == "F":
        return np.swapaxes(np.array(onp.ascontiguousarray(onp.swapaxes(x, -1, -2))), -1, -2)
    if layout == "spread":
        wide = onp.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
        wide[..., ::2] = x
        return np.array(wide)[..., ::2]
    if layout == "reversed":
        return np.array(onp.ascontiguousarray(x[..., ::-1, ::-1]))[..., ::-1, ::-1]
    return np.array(x, dtype=x.dtype)


def tolerance(x):
    """Backward stable algorithms: the error is a modest multiple of the order times the spacing of the dtype."""
    eps = onp.finfo(x.dtype).eps
    return 60 * eps * max(1, *x.shape[-2:])


def close(got, want, x, scale=None):
    got = got.asnumpy() if isinstance(got, np.ndarray) else got
    want = onp.asarray(want)
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    scale = onp.abs(want).max(initial=0) if scale is None else scale
    onp.testing.assert_allclose(got, want, rtol=0, atol=tolerance(x) * max(1.0, float(scale)))


def adjoint(x):
    return onp.conj(onp.swapaxes(x, -1, -2))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SQUARES, ids=str)
def test_inverses_solutions_and_determinants_are_numpys(shape, dtype):
    x = matrices(shape, dtype)
    a = np.array(x, dtype=dtype)
    close(np.linalg.inv(a), onp.linalg.inv(x), x)
    b = matrices((*shape[:-1], 3), dtype, 1)
    close(np.linalg.solve(a, np.array(b, dtype=dtype)), onp.linalg.solve(x, b), x)
    sign, log = np.linalg.slogdet(a)
    want = onp.linalg.slogdet(x)
    close(sign, want.sign, x)
    close(log, want.logabsdet, x)
    if shape[-1] < 30:
        det = onp.asarray(onp.linalg.det(x))
        assert np.linalg.det(a).dtype == det.dtype
        onp.testing.assert_allclose(np.linalg.det(a).asnumpy(), det, rtol=10 * tolerance(x))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SQUARES, ids=str)
def test_cholesky_factors_are_numpys_and_read_one_triangle(shape, dtype):
    x = matrices(shape, dtype)
    x = x @ adjoint(x)
    garbage = onp.triu(onp.full(x.shape, onp.nan), 1).astype(dtype)
    lower, upper = onp.tril(x) + garbage, onp.triu(x) + adjoint(garbage)
    close(np.linalg.cholesky(np.array(lower, dtype=dtype)), onp.linalg.cholesky(x), x)
    got = np.linalg.cholesky(np.array(upper, dtype=dtype), upper=True)
    close(got, onp.linalg.cholesky(x, upper=True), x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SQUARES, ids=str)
def test_eigenvalues_of_hermitian_matrices_are_numpys(shape, dtype):
    x = hermitian(shape, dtype)
    for uplo, stored in (("L", onp.tril(x)), ("U", onp.triu(x)), ("u", onp.triu(x))):
        w, v = result = np.linalg.eigh(np.array(stored, dtype=dtype), uplo)
        assert result.eigenvalues is w and result.eigenvectors is v
        close(w, onp.linalg.eigvalsh(x), x)
        close(np.linalg.eigvalsh(np.array(stored, dtype=dtype), UPLO=uplo), onp.linalg.eigvalsh(x), x)
        w, v = w.asnumpy(), v.asnumpy()
        assert v.dtype == x.dtype
        close(v * w[..., None, :] @ adjoint(v), x, x)
        close(adjoint(v) @ v, onp.broadcast_to(onp.eye(shape[-1], dtype=dtype), shape), x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [s for s in SQUARES if s[-1] < 100], ids=str)
def test_eigenvectors_of_square_matrices_diagonalise_them(shape, dtype):
    x = matrices(shape, dtype)
    w, v = np.linalg.eig(np.array(x, dtype=dtype))
    want = onp.linalg.eigvals(x)
    # NumPy's are always complex from 2.5 on.
    is_real = not onp.iscomplexobj(x) and (want.imag == 0).all()
    kind = (want.real if is_real else want).dtype
    assert w.dtype == kind and v.dtype == kind
    assert np.linalg.eigvals(np.array(x, dtype=dtype)).dtype == kind
    w, v = w.asnumpy(), v.asnumpy()
    close(x @ v, v * w[..., None, :], x, scale=4 * onp.sqrt(shape[-1]))
    lengths = onp.linalg.norm(v, axis=-2)
    onp.testing.assert_allclose(lengths, 1, atol=tolerance(x))
    # The same values, in any order: each has a partner near it.
    if x.size == 0:
        return
    gaps = onp.abs(want[..., :, None] - np.linalg.eigvals(np.array(x, dtype=dtype)).asnumpy()[..., None, :])
    assert (gaps.min(-1) < 100 * tolerance(x)).all() and (gaps.min(-2) < 100 * tolerance(x)).all()


def test_real_eigenvalues_of_real_matrices_are_real():
    x = onp.array([[2.0, 1.0], [0.0, 3.0]])
    turn = onp.array([[0.0, -1.0], [1.0, 0.0]])
    for a, kind in ((x, "f"), (turn, "c"), (onp.stack([x, turn]), "c"), (x.astype("complex128"), "c")):
        w, v = np.linalg.eig(np.array(a, dtype=a.dtype))
        assert w.dtype.kind == v.dtype.kind == np.linalg.eigvals(np.array(a, dtype=a.dtype)).dtype.kind == kind


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SQUARES + OBLONGS, ids=str)
def test_singular_values_are_numpys_and_the_factors_give_the_matrix(shape, dtype):
    x = matrices(shape, dtype)
    a = np.array(x, dtype=dtype)
    want = onp.linalg.svdvals(x)
    close(np.linalg.svdvals(a), want, x)
    close(np.linalg.svd(a, compute_uv=False), want, x)
    k = min(shape[-2:])
    for full in (False, True):
        u, s, vh = result = np.linalg.svd(a, full_matrices=full)
        assert result.U is u and result.S is s and result.Vh is vh
        reference = onp.linalg.svd(x, full_matrices=full)
        assert (u.shape, s.shape, vh.shape) == tuple(y.shape for y in reference)
        close(s, want, x)
        u, s, vh = u.asnumpy(), s.asnumpy(), vh.asnumpy()
        close(u[..., :k] * s[..., None, :] @ vh[..., :k, :], x, x)
        close(adjoint(u) @ u, onp.broadcast_to(onp.eye(u.shape[-1], dtype=dtype), (*shape[:-2], *u.shape[-1:] * 2)), x)
        close(
            vh @ adjoint(vh),
            onp.broadcast_to(onp.eye(vh.shape[-2], dtype=dtype), (*shape[:-2], *vh.shape[-2:-1] * 2)),
            x,
        )


@pytest.mark.parametrize("dtype", DTYPES)
def test_singular_values_of_hermitian_matrices_come_from_eigenvalues(dtype):
    x = hermitian((2, 5, 5), dtype) - 4 * onp.eye(5, dtype=dtype)
    a = np.array(x, dtype=dtype)
    u, s, vh = np.linalg.svd(a, hermitian=True)
    close(s, onp.linalg.svdvals(x), x)
    close(np.linalg.svd(a, compute_uv=False, hermitian=True), onp.linalg.svdvals(x), x)
    close(u.asnumpy() * s.asnumpy()[..., None, :] @ vh.asnumpy(), x, x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SQUARES + OBLONGS, ids=str)
def test_qr_factors_give_the_matrix(shape, dtype):
    x = matrices(shape, dtype)
    a = np.array(x, dtype=dtype)
    for mode in ("reduced", "complete"):
        q, r = result = np.linalg.qr(a, mode)
        reference = onp.linalg.qr(x, mode)
        assert result.Q is q and result.R is r
        close(np.abs(r), onp.abs(reference.R), x)
        assert q.shape == reference.Q.shape
        q, r = q.asnumpy(), r.asnumpy()
        close(q @ r, x, x)
        close(adjoint(q) @ q, onp.broadcast_to(onp.eye(q.shape[-1], dtype=dtype), (*shape[:-2], *q.shape[-1:] * 2)), x)
        assert not onp.tril(r, -1).any()
    close(np.linalg.qr(a, "r"), np.linalg.qr(a).R.asnumpy(), x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (2, 5, 5), (60, 45), (3, 0)], ids=str)
def test_reflections_and_signs_are_lapacks(shape, dtype):
    x = matrices(shape, dtype)
    a = np.array(x, dtype=dtype)
    for got, want in zip(np.linalg.qr(a, "raw"), onp.linalg.qr(x, "raw"), strict=True):
        close(got, want, x)
    close(np.linalg.qr(a).R, onp.linalg.qr(x).R, x)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_any_layout_will_do(layout, dtype):
    x, wide = matrices((2, 6, 6), dtype), matrices((2, 4, 6), dtype)
    positive = x @ adjoint(x)
    a = with_layout(x, layout)
    close(np.linalg.inv(a), onp.linalg.inv(x), x)
    close(np.linalg.solve(a, with_layout(x, layout)), onp.linalg.solve(x, x), x)
    close(np.linalg.det(a), onp.linalg.det(x), x)
    close(np.linalg.cholesky(with_layout(positive, layout)), onp.linalg.cholesky(positive), x)
    close(np.linalg.eigvalsh(with_layout(positive, layout)), onp.linalg.eigvalsh(positive), x)
    close(np.linalg.svdvals(with_layout(wide, layout)), onp.linalg.svdvals(wide), x)
    close(np.linalg.qr(with_layout(wide, layout)).R, onp.linalg.qr(wide).R, x)
    close(np.linalg.pinv(with_layout(wide, layout)), onp.linalg.pinv(wide), x)


def test_leading_axes_of_systems_broadcast_and_one_vector_is_a_vector():
    a, b = matrices((2, 1, 4, 4), "float64"), matrices((3, 4, 2), "float64")
    x = np.linalg.solve(np.array(a, dtype="float64"), np.array(b, dtype="float64"))
    close(x, onp.linalg.solve(a, b), a)
    single = a[0, 0]
    close(
        np.linalg.solve(np.array(single, dtype="float64"), np.array(b, dtype="float64")), onp.linalg.solve(single, b), a
    )
    vector = b[0, :, 0]
    close(
        np.linalg.solve(np.array(a, dtype="float64"), np.array(vector, dtype="float64")), onp.linalg.solve(a, vector), a
    )


def test_integers_become_the_default_float_and_halves_are_refused():
    for dtype in ("int32", "uint8", "bool"):
        assert np.linalg.inv(np.eye(3, dtype=dtype)).dtype == onp.float32
        assert np.linalg.svd(np.eye(3, dtype=dtype)).S.dtype == onp.float32
        assert np.linalg.pinv(np.eye(3, dtype=dtype)).dtype == onp.float32
        assert np.linalg.matrix_rank(np.eye(3, dtype=dtype)).item() == 3
    for dtype in ("float16", "bfloat16"):
        half = np.eye(3, dtype=dtype)
        for function in (
            np.linalg.inv,
            np.linalg.det,
            np.linalg.svdvals,
            np.linalg.eigvals,
            np.linalg.pinv,
            np.linalg.cond,
        ):
            with pytest.raises(TypeError, match=f"{dtype}[\\s\\S]*float32, float64"):
                function(half)


# ---- errors ----


def test_the_error_class_is_numpys_too():
    assert issubclass(np.linalg.LinAlgError, onp.linalg.LinAlgError)
    assert np.linalg.LinAlgError is mx.error.LinAlgError
    assert issubclass(np.linalg.LinAlgError, mx.error.MXNetError)


# The largest is factored on a worker in both modes.
@pytest.mark.parametrize("n", [2, 30, 300])
@pytest.mark.parametrize("mode", ["adaptive", "async"])
def test_singular_matrices_are_an_error_at_the_call(n, mode):
    singular = onp.eye(n)
    singular[1, 1] = 0
    before = mx.engine.set_mode(mode) if hasattr(mx.engine, "set_mode") else None
    try:
        for function in (np.linalg.inv, lambda a: np.linalg.solve(a, np.ones((n,), dtype="float64"))):
            with pytest.raises(
                onp.linalg.LinAlgError, match=r"Singular matrix: the matrix is singular: pivot \d+ is zero"
            ):
                function(np.array(singular, dtype="float64"))
        stacked = onp.stack([onp.eye(n), onp.eye(n), singular]).reshape(3, 1, n, n)
        with pytest.raises(onp.linalg.LinAlgError, match=r"matrix \[2, 0\] is singular"):
            np.linalg.inv(np.array(stacked, dtype="float64"))
    finally:
        if before is not None:
            mx.engine.set_mode(before)
    mx.waitall()


@pytest.mark.parametrize("n", [3, 30, 200])
def test_matrices_that_are_not_positive_definite_are_an_error(n):
    x = onp.eye(n)
    x[n - 1, n - 1] = -1
    with pytest.raises(onp.linalg.LinAlgError, match=f"not positive definite: its leading minor of order {n}"):
        np.linalg.cholesky(np.array(x, dtype="float64"))
    # A NaN is no error: it goes on to what follows.
    x[n - 1, n - 1] = onp.nan
    both("np.linalg.cholesky(x)", 1e-15, x=x)
    x[n - 2, 0] = onp.nan
    both("np.linalg.cholesky(x)", 1e-15, x=x)


def test_shapes_that_are_no_square_matrices_are_an_error():
    for function in (
        np.linalg.inv,
        np.linalg.det,
        np.linalg.eig,
        np.linalg.eigh,
        np.linalg.cholesky,
        np.linalg.slogdet,
    ):
        with pytest.raises(onp.linalg.LinAlgError, match="must be square, found 2 x 3"):
            function(np.ones((2, 3)))
        with pytest.raises(onp.linalg.LinAlgError, match="at least 2 axes, found 1"):
            function(np.ones((3,)))
    for function in (np.linalg.svd, np.linalg.qr, np.linalg.pinv, np.linalg.cond):
        with pytest.raises(onp.linalg.LinAlgError, match="at least 2 axes, found 0"):
            function(np.ones(()))
    with pytest.raises(ValueError, match="`a` has 2 rows, `b` has 3 rows"):
        np.linalg.solve(np.ones((2, 2)), np.ones((3,)))
    with pytest.raises(ValueError, match="'x'"):
        np.linalg.eigh(np.eye(2), "x")
    with pytest.raises(ValueError, match="'full'"):
        np.linalg.qr(np.eye(2), "full")


@pytest.mark.parametrize("bad", [onp.nan, onp.inf])
def test_iterations_refuse_what_is_not_finite(bad):
    x = onp.eye(3)
    x[2, 1] = bad
    for function in (
        np.linalg.svd,
        *([np.linalg.svdvals] if onp.isnan(bad) else []),
        np.linalg.eig,
        np.linalg.eigvals,
        np.linalg.eigh,
        np.linalg.pinv,
    ):
        with pytest.raises(onp.linalg.LinAlgError, match=r"matrix \[1\] holds infinities or NaNs"):
            function(np.array(onp.stack([onp.eye(3), x]), dtype="float64"))


def test_nans_pass_through_what_is_direct():
    x = onp.ones((2, 2))
    x[0, 1] = onp.nan
    for n in (2, 40):
        a = onp.eye(n)
        a[0, 1] = onp.nan
        assert onp.isnan(np.linalg.det(np.array(x, dtype="float64")).item())
        assert onp.isnan(np.linalg.inv(np.array(a, dtype="float64")).asnumpy()).any()
        assert onp.isnan(np.linalg.qr(np.array(a, dtype="float64")).R.asnumpy()).any()


def test_determinants_of_singular_matrices_are_zero():
    zero = onp.zeros((2, 3, 3))
    assert (np.linalg.det(np.array(zero)).asnumpy() == 0).all()
    sign, log = np.linalg.slogdet(np.array(zero))
    assert (sign.asnumpy() == 0).all() and (log.asnumpy() == -onp.inf).all()


def test_determinants_beyond_the_range_of_partial_products_are_right():
    big, small = onp.full(4, 1e200), onp.full(4, 1e-200)
    x = onp.diag(onp.concatenate([big, small]))
    onp.testing.assert_allclose(np.linalg.det(np.array(x, dtype="float64")).item(), 1.0, rtol=1e-12)


# ---- what is composed ----


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 2, 5), (0, 3), (3, 0)], ids=str)
def test_pseudo_inverses_are_numpys(shape, dtype):
    x = matrices(shape, dtype)
    close(np.linalg.pinv(np.array(x, dtype=dtype)), onp.linalg.pinv(x, 1e-6), x)
    close(np.linalg.pinv(np.array(x, dtype=dtype), rtol=1e-5), onp.linalg.pinv(x, rtol=1e-5), x)


def test_pseudo_inverses_drop_what_is_small():
    x = onp.diag([1.0, 1e-3, 1e-9])
    for rcond, kept in ((1e-2, 1), (1e-5, 2), (1e-12, 3)):
        for hermitian in (False, True):
            got = np.linalg.pinv(np.array(x, dtype="float64"), rcond, hermitian)
            close(got, onp.linalg.pinv(x, rcond, hermitian), x, scale=1e9)
            assert onp.count_nonzero(got.asnumpy().diagonal()) == kept
    both = onp.stack([x, x])
    got = np.linalg.pinv(np.array(both, dtype="float64"), np.array([1e-2, 1e-12], dtype="float64"))
    assert [onp.count_nonzero(y.diagonal()) for y in got.asnumpy()] == [1, 3]
    with pytest.raises(ValueError, match=r"can.t be both set. Found 0.2 and 0.1"):
        np.linalg.pinv(np.array(x), 0.1, rtol=0.2)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("m", "n"), [(5, 3), (3, 5), (4, 4), (0, 3), (3, 0)])
@pytest.mark.parametrize("columns", [None, 2])
def test_least_squares_are_numpys(m, n, columns, dtype):
    x = matrices((m, n), dtype)
    b = matrices((m, columns or 1), dtype, 1)
    b = b[:, 0] if columns is None else b
    got = np.linalg.lstsq(np.array(x, dtype=dtype), np.array(b, dtype=dtype))
    want = onp.linalg.lstsq(x, b, rcond=None)
    close(got[0], want[0], x)
    if m > 0 and n > 0:
        close(got[1], want[1], x)
    assert got[2].item() == want[2]
    close(got[3], want[3], x)


def test_ranks_and_condition_numbers_are_numpys():
    x = onp.stack([onp.diag([1.0, 2.0, 4.0]), onp.ones((3, 3)), onp.zeros((3, 3))])
    a = np.array(x, dtype="float64")
    assert np.linalg.matrix_rank(a).asnumpy().tolist() == [3, 1, 0]
    assert np.linalg.matrix_rank(a, hermitian=True).asnumpy().tolist() == [3, 1, 0]
    assert np.linalg.matrix_rank(a, tol=2.5).asnumpy().tolist() == [1, 1, 0]
    assert np.linalg.matrix_rank(a, rtol=0.3).asnumpy().tolist() == [2, 1, 0]
    assert np.linalg.matrix_rank(np.array([0.0, 1.0])).item() == 1
    assert np.linalg.matrix_rank(np.array(0.0)).item() == 0
    regular = matrices((2, 4, 4), "float64")
    for p in (None, 1, -1, 2, -2, onp.inf, -onp.inf, "fro", "nuc"):
        onp.testing.assert_allclose(
            np.linalg.cond(np.array(regular, dtype="float64"), p).asnumpy(), onp.linalg.cond(regular, p), rtol=1e-10
        )
        assert np.linalg.cond(a[2], p).item() == onp.inf
    assert np.linalg.cond(np.ones((2, 3))).item() > 1e6
    with pytest.raises(onp.linalg.LinAlgError, match="no elements"):
        np.linalg.cond(np.ones((0, 0)))


def test_tensor_inverses_and_solutions_are_numpys():
    x = matrices((24, 24), "float64")
    a = x.reshape(4, 6, 8, 3)
    close(np.linalg.tensorinv(np.array(a, dtype="float64")), onp.linalg.tensorinv(a), x)
    a = x.reshape(24, 8, 3)
    close(np.linalg.tensorinv(np.array(a, dtype="float64"), ind=1), onp.linalg.tensorinv(a, ind=1), x)
    a, b = x.reshape(2, 3, 4, 6, 4), onp.ones((2, 3, 4))
    close(
        np.linalg.tensorsolve(np.array(a, dtype="float64"), np.array(b, dtype="float64")),
        onp.linalg.tensorsolve(a, b),
        x,
    )
    a = onp.moveaxis(x.reshape(2, 3, 4, 6, 4), 3, 0)
    close(
        np.linalg.tensorsolve(np.array(a, dtype="float64"), np.array(b, dtype="float64"), axes=(0, 4)),
        onp.linalg.tensorsolve(a, b, axes=(0, 4)),
        x,
    )
    with pytest.raises(onp.linalg.LinAlgError, match="the first 2 axes hold 6 elements, the others 4"):
        np.linalg.tensorinv(np.ones((2, 3, 4)))
    with pytest.raises(onp.linalg.LinAlgError, match="3 equations for 2 unknowns"):
        np.linalg.tensorsolve(np.ones((3, 2)), np.ones((3,)))
    with pytest.raises(ValueError, match="ind is 0"):
        np.linalg.tensorinv(np.ones((2, 2)), ind=0)


@pytest.mark.parametrize("order", [None, "fro", "nuc", 1, -1, 2, -2, onp.inf, -onp.inf])
def test_matrix_norms_are_numpys(order):
    x = matrices((2, 4, 3), "float64")
    a = np.array(x, dtype="float64")
    for keepdims in (False, True):
        got = np.linalg.norm(a, order, axis=(1, 2), keepdims=keepdims)
        close(got, onp.linalg.norm(x, order, axis=(1, 2), keepdims=keepdims), x)
        close(
            np.linalg.norm(a, order, axis=(2, 0), keepdims=keepdims),
            onp.linalg.norm(x, order, axis=(2, 0), keepdims=keepdims),
            x,
        )
    if order is not None:
        close(np.linalg.matrix_norm(a, ord=order), onp.linalg.matrix_norm(x, ord=order), x)


def test_norms_of_nothing_are_zero():
    for shape in ((0, 3), (3, 0), (2, 0, 0)):
        for order in ("fro", "nuc", 1, 2, onp.inf):
            close(
                np.linalg.matrix_norm(np.zeros(shape), ord=order),
                onp.linalg.matrix_norm(onp.zeros(shape, "float32"), ord=order),
                onp.zeros((1, 1)),
            )
        assert np.linalg.vector_norm(np.zeros(shape), ord=onp.inf).item() == 0


def test_powers_transposes_diagonals_and_traces_are_numpys():
    x = matrices((2, 3, 3), "float64")
    a = np.array(x, dtype="float64")
    for n in (-3, -1, 0, 1, 2, 5):
        close(np.linalg.matrix_power(a, n), onp.linalg.matrix_power(x, n), x)
    close(np.linalg.matrix_transpose(a), onp.linalg.matrix_transpose(x), x)
    close(np.matrix_transpose(a), onp.matrix_transpose(x), x)
    close(np.linalg.diagonal(a, offset=1), onp.linalg.diagonal(x, offset=1), x)
    close(np.linalg.trace(a, offset=-1), onp.linalg.trace(x, offset=-1), x)
    close(np.linalg.outer(a[0, 0], a[1, 1]), onp.linalg.outer(x[0, 0], x[1, 1]), x)
    close(np.linalg.tensordot(a, a, axes=((0, 1), (0, 2))), onp.linalg.tensordot(x, x, axes=((0, 1), (0, 2))), x)
    with pytest.raises(onp.linalg.LinAlgError, match="must be square, found 2 x 3"):
        np.linalg.matrix_power(np.ones((2, 3)), 2)
    with pytest.raises(onp.linalg.LinAlgError, match="singular"):
        np.linalg.matrix_power(np.ones((2, 2)), -1)
    with pytest.raises(ValueError, match="found 2 and 1"):
        np.linalg.outer(np.ones((2, 2)), np.ones((2,)))


def test_products_of_matrices_and_vectors_are_numpys():
    x, v = matrices((2, 4, 3), "complex128"), matrices((5, 1, 3), "complex128", 1)
    a, b = np.array(x, dtype="complex128"), np.array(v, dtype="complex128")
    close(np.matvec(a, b), onp.matvec(x, v), x)
    close(np.vecmat(b, np.matrix_transpose(a)), onp.vecmat(v, onp.matrix_transpose(x)), x)
    with pytest.raises(ValueError, match="`x1` has 1 axes, needs at least 2"):
        np.matvec(np.ones((3,)), np.ones((3,)))


def cross(x, y):
    """Cross product of vectors of two or three elements; NumPy refuses two from 2.5 on."""
    both = [onp.pad(v, [(0, 0)] * (v.ndim - 1) + [(0, 3 - v.shape[-1])]) for v in (x, y)]
    result = onp.cross(*both)
    return result[..., 2] if x.shape[-1] == y.shape[-1] == 2 else result


def test_cross_products_are_numpys():
    rng = onp.random.default_rng(5)
    for m in (2, 3):
        for n in (2, 3):
            x, y = rng.integers(-5, 6, (4, m)), rng.integers(-5, 6, (2, 1, n))
            onp.testing.assert_array_equal(np.cross(np.array(x), np.array(y)).asnumpy(), cross(x, y))
    x, y = rng.standard_normal((3, 5)), rng.standard_normal((5, 3))
    got = np.cross(np.array(x, dtype="float64"), np.array(y, dtype="float64"), axisa=0, axisc=0)
    onp.testing.assert_allclose(got.asnumpy(), onp.cross(x, y, axisa=0, axisc=0), rtol=1e-15, atol=1e-15)
    got = np.linalg.cross(np.array(x, dtype="float64"), np.array(x[::-1], dtype="float64"), axis=0)
    onp.testing.assert_allclose(got.asnumpy(), onp.linalg.cross(x, x[::-1], axis=0), rtol=1e-15, atol=1e-15)
    with pytest.raises(ValueError, match="found 4 and 3"):
        np.cross(np.ones((4,)), np.ones((3,)))
    with pytest.raises(ValueError, match="found 2 and 3"):
        np.linalg.cross(np.ones((2,)), np.ones((3,)))


def test_results_do_not_depend_on_threads():
    x = matrices((230, 230), "float64")
    positive = x @ x.T
    before = mx._core.num_threads()
    try:
        results = []
        for threads in (1, 2):
            mx._core.set_num_threads(threads)
            a, b = np.array(x, dtype="float64"), np.array(positive, dtype="float64")
            arrays = [
                np.linalg.inv(a),
                np.linalg.cholesky(b),
                *np.linalg.qr(a),
                np.linalg.solve(a, b),
                *np.linalg.slogdet(a),
            ]
            results.append([y.asnumpy().tobytes() for y in arrays])
    finally:
        mx._core.set_num_threads(before)
    assert results[0] == results[1]


@pytest.mark.parametrize("n", [1, 2, 3, 8, 30])
@pytest.mark.parametrize("bad", [onp.nan, onp.inf])
@pytest.mark.parametrize("function", ["eigh", "eigvalsh", "svd", "svdvals", "eig", "eigvals", "lstsq"])
def test_what_is_not_finite_is_an_error_where_it_is_one_in_numpy(function, bad, n):
    x = onp.full((n, n), bad)

    def is_refused(module):
        arguments = (module.array(x), module.ones(n)) if function == "lstsq" else (module.array(x),)
        try:
            found = getattr(module.linalg, function)(*arguments)
        except onp.linalg.LinAlgError:
            return True
        values = found if function in ("eigvalsh", "svdvals", "eigvals") else found[function == "svd"]
        # One element is its own eigenvalue.
        assert onp.array_equal(
            onp.isnan(onp.asarray(values)), onp.full(n, n > 1 or onp.isnan(bad) or function[0] == "s")
        )
        return False

    ours, numpys = is_refused(np), is_refused(onp)
    # LAPACK gives NaN or an error for singular values of infinite elements, by size and version.
    assert ours == numpys or (function in ("svd", "svdvals") and bad == onp.inf)


def test_signs_of_determinants_with_nans_are_numpys():
    for x in ([[onp.nan, 1], [1, 2]], [[onp.inf, 1], [1, 2]], [[-onp.inf, 0], [0, 2]]):
        both("np.linalg.slogdet(x)", x=onp.array(x))
        both("np.linalg.det(x)", x=onp.array(x))
