"""Sparse arrays against SciPy's: constructors, conversions, indexing, arithmetic, reductions."""

import numpy
import pytest
import scipy.sparse as ss

import mxnet as mx
from mxnet import np, npx, sparse

DTYPES = ["int8", "uint8", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128"]
FORMATS = ["csr", "csc", "coo", "bsr"]


def dense(shape=(6, 8), seed=0, dtype="float64", density=0.35):
    rng = numpy.random.default_rng(seed)
    x = numpy.round(rng.uniform(-4, 4, shape), 2) * (rng.random(shape) < density) + 0.0
    if numpy.dtype(dtype).kind == "c":
        x = x + 1j * numpy.round(x * 0.5, 1)
    return (numpy.abs(x) if numpy.dtype(dtype).kind == "u" else x).astype(dtype)


def make(format, x, **keywords):
    return getattr(sparse, f"{format}_array")(np.array(x), **keywords)


def same(got, want, rtol=0.0):
    if sparse.issparse(got) or ss.issparse(got):
        got = got.toarray()
    got = got.asnumpy() if isinstance(got, np.ndarray) else numpy.asarray(got)
    want = want.toarray() if ss.issparse(want) else numpy.asarray(want)
    assert got.shape == want.shape
    numpy.testing.assert_allclose(got, want, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("format", FORMATS)
def test_round_trips_through_every_format_keep_elements_and_dtype(format, dtype):
    x = dense(dtype=dtype)
    a = make(format, x)
    assert a.dtype == dtype and a.format == format and a.shape == x.shape
    for other in FORMATS:
        b = a.asformat(other)
        assert b.format == other and b.dtype == dtype
        same(b, x)
    same(a.tostype("row_sparse"), x)


@pytest.mark.parametrize("format", FORMATS)
def test_scipy_arrays_come_and_go(format):
    x = ss.random_array((7, 5), density=0.4, format=format, rng=numpy.random.default_rng(1))
    a = getattr(sparse, f"{format}_array")(x)
    same(a, x.toarray())
    back = a.to_scipy()
    assert back.format == format
    same(a, back.toarray())


@pytest.mark.parametrize("format", ["csr", "csc", "bsr"])
def test_exchange_with_scipy_shares_the_parts(format):
    x = ss.csr_array(dense()).asformat(format)
    x.indices, x.indptr = x.indices.astype("int64"), x.indptr.astype("int64")
    a = getattr(sparse, f"{format}_array")(x)
    x.data.flat[0] = 77
    assert a.data.ravel()[0] == 77
    back = a.to_scipy()
    for part in ("data", "indices", "indptr"):
        assert numpy.shares_memory(getattr(back, part), getattr(x, part)), part


def test_parts_exchange_by_dlpack():
    a = make("csr", dense())
    for part in (a.data, a.indices, a.indptr):
        numpy.testing.assert_array_equal(numpy.from_dlpack(part), part.asnumpy())


def test_constructors_take_scipys_arguments():
    data, row, column = [1.0, 2.0, 3.0, 4.0], [0, 1, 1, 0], [1, 0, 0, 1]
    for format in ("csr", "csc", "coo"):
        ours = getattr(sparse, f"{format}_array")
        theirs = getattr(ss, f"{format}_array")
        same(ours((data, (row, column)), shape=(3, 2)), theirs((data, (row, column)), shape=(3, 2)))
        same(ours((2, 5)), theirs((2, 5)))
        same(ours((data, (row, column))), theirs((data, (row, column))))
    same(
        sparse.csr_array((data, [1, 0, 1, 0], [0, 2, 2, 4])),
        ss.csr_array((data, [1, 0, 1, 0], [0, 2, 2, 4])),
    )
    same(sparse.csr_array(make("csc", dense())), dense())
    three = numpy.zeros((2, 3, 4))
    three[1, 2, 3] = 5
    same(sparse.coo_array(np.array(three)), three)


@pytest.mark.parametrize(
    ("parts", "shape", "fault", "numbers"),
    [
        (([1.0, 2.0], [0, 3], [0, 1, 2]), (2, 3), IndexError, ["3", "indices[1]"]),
        (([1.0, 2.0], [0, -1], [0, 1, 2]), (2, 3), IndexError, ["-1"]),
        (([1.0, 2.0], [0, 1], [0, 2, 1]), (2, 3), ValueError, ["indptr", "2", "1"]),
        (([1.0, 2.0], [0, 1], [1, 1, 2]), (2, 3), ValueError, ["begin with 0", "1"]),
        (([1.0, 2.0], [0, 1], [0, 1, 3]), (2, 3), ValueError, ["2", "3"]),
        (([1.0], [0, 1], [0, 1, 2]), (2, 3), ValueError, ["1", "2"]),
        (([1.0, 2.0], [0, 1], [0, 2]), (2, 3), ValueError, ["3 elements", "2"]),
        (([1.0, 2.0], [0.5, 1], [0, 1, 2]), (2, 3), TypeError, ["float"]),
    ],
)
@pytest.mark.parametrize("format", ["csr", "csc"])
def test_malformed_parts_are_refused_with_their_numbers(format, parts, shape, fault, numbers):
    shape = shape if format == "csr" else shape[::-1]
    with pytest.raises(fault) as raised:
        getattr(sparse, f"{format}_array")(parts, shape=shape)
    assert str(raised.value).startswith((f"{format}_array", "indices"))
    assert all(number in str(raised.value) for number in numbers)


def test_malformed_coordinates_are_refused():
    with pytest.raises(IndexError, match=r"index 5 .* axis 1 of size 3"):
        sparse.coo_array(([1.0], ([0], [5])), shape=(2, 3))
    with pytest.raises(ValueError, match="length"):
        sparse.coo_array(([1.0], ([0, 1], [1, 2])), shape=(2, 3))
    with pytest.raises(mx.error.ValueError, match="does not fit int64"):
        sparse.coo_array(([1.0], (np.array([2**63 + 1], dtype="uint64"), [0])), shape=(2, 3))
    with pytest.raises(ValueError, match=r"ascend.*indices\[0\] is 2"):
        sparse.row_sparse_array((np.ones((2, 3)), [2, 1]), shape=(4, 3))
    with pytest.raises(ValueError, match="divide"):
        sparse.bsr_array(np.ones((4, 3)), blocksize=(2, 2))


def test_nothing_is_made_dense_silently():
    a = make("csr", dense())
    for convert in (np.asarray, np.array, numpy.asarray):
        with pytest.raises(mx.error.UnsupportedError, match="todense"):
            convert(a)
    with pytest.raises(mx.error.UnsupportedError, match=r"cos\(csr_array\)"):
        np.cos(a)
    with pytest.raises(mx.error.UnsupportedError, match=r"softmax\(csr_array\)"):
        mx.npx.softmax(a)
    with pytest.raises(mx.error.UnsupportedError, match=r"add\(csr_array, int\)"):
        a + 1
    with pytest.raises(mx.error.UnsupportedError, match=r"equal\(csr_array, csc_array\)"):
        np.equal(a, a.tocsc())


def test_flags_say_whether_indices_are_in_order():
    a = sparse.csr_array(([1.0, 2.0, 3.0], [2, 0, 1], [0, 2, 3]), shape=(2, 3))
    assert not a.has_sorted_indices and not a.has_canonical_format
    b = a.sorted_indices()
    assert b.has_sorted_indices and b.indices.tolist() == [0, 2, 1]
    same(a, b.todense().asnumpy())
    c = sparse.csr_array(([1.0, 2.0, 3.0], [1, 1, 1], [0, 2, 3]), shape=(2, 3))
    assert c.has_sorted_indices and not c.has_canonical_format
    before = c.todense().asnumpy()
    c.sum_duplicates()
    assert c.nnz == 2
    same(c, before)


@pytest.mark.parametrize("format", ["csr", "csc", "coo"])
def test_eliminate_zeros_removes_stored_zeros(format):
    a = getattr(sparse, f"{format}_array")(([1.0, 0.0, 3.0], ([0, 0, 1], [1, 2, 0])), shape=(2, 3))
    before = a.todense().asnumpy()
    a.eliminate_zeros()
    assert a.nnz == 2
    same(a, before)


@pytest.mark.parametrize("format", ["csr", "csc", "coo"])
@pytest.mark.parametrize(
    "key",
    [
        (2, 3),
        (-1, -2),
        2,
        -1,
        (slice(None), 3),
        slice(1, 5),
        slice(None, None, 2),
        slice(5, 1, -2),
        (slice(1, 5), slice(2, 7)),
        (slice(None), slice(None, None, 3)),
        (slice(None), slice(None, None, -1)),
        [4, 0, 0],
        (slice(None), [7, 1, 1]),
        ([1, 2], [3, 4]),
        numpy.ix_([4, 1], [0, 7, 3]),
        numpy.array([True, False, True, True, False, False]),
        (slice(None), numpy.arange(8) % 2 == 0),
        Ellipsis,
        (slice(3, 3), slice(None)),
        ([], slice(None)),
    ],
    ids=str,
)
def test_indexing_gives_what_numpy_gives(format, key):
    x = dense()
    a = make(format, x)
    ours = tuple(np.array(k) if isinstance(k, numpy.ndarray) else k for k in key) if isinstance(key, tuple) else key
    ours = np.array(key) if isinstance(key, numpy.ndarray) else ours
    if isinstance(key, tuple) and isinstance(key[0], list) and not key[0]:
        key = (numpy.zeros(0, int), slice(None))
    same(a[ours], x[key])


def test_indexing_of_several_axes():
    x = dense((3, 4, 5), 3)
    a = sparse.coo_array(np.array(x))
    for key in [(1,), (slice(None), 2), (slice(0, 2), slice(None, None, -2), 3), (slice(None), [3, 0, 3]), (1, 2, 3)]:
        want = tuple(numpy.array(k) if isinstance(k, list) else k for k in key)
        same(a[key], x[want])


def test_indexing_errors_carry_the_numbers():
    a = make("csr", dense())
    with pytest.raises(IndexError, match=r"index 9 .* axis 1 of size 8"):
        a[0, 9]
    with pytest.raises(IndexError, match=r"index -7 .* axis 0 of size 6"):
        a[[0, -7]]
    with pytest.raises(IndexError, match="3 for an array of 2 axes"):
        a[1, 2, 3]
    with pytest.raises(mx.error.UnsupportedError, match="not assigned"):
        a[0, 0] = 1


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    "function", ["add", "subtract", "multiply", "maximum", "minimum", "not_equal", "less", "greater"]
)
def test_functions_of_two_sparse_arrays(format, function):
    x, y = dense(seed=1), dense(seed=2)
    a, b = make(format, x), make("csr", y)
    got = getattr(np, function)(a, b)
    assert sparse.issparse(got)
    same(got, getattr(numpy, function)(x, y))


@pytest.mark.parametrize("shape", [(1, 8), (6, 1), (1, 1)])
@pytest.mark.parametrize("function", ["add", "multiply", "subtract"])
def test_functions_broadcast(function, shape):
    x, y = dense(seed=1), dense(shape, seed=2, density=0.8)
    want = getattr(numpy, function)
    same(getattr(np, function)(make("csr", x), make("csr", y)), want(x, y))
    same(getattr(np, function)(make("csr", y), make("csr", x)), want(y, x))
    same(getattr(np, function)(make("csr", x), np.array(y)), want(x, y))
    same(getattr(np, function)(make("csr", y), np.array(x)), want(y, x))


def test_quotients():
    x, y = dense(seed=1), dense(seed=2)
    a, b = make("csr", x), make("csr", y)
    with numpy.errstate(all="ignore"), np.errstate(all="ignore"):
        same(a / b, x / y)
        same(a / np.array(numpy.abs(y) + 1), x / (numpy.abs(y) + 1))
    same(a / 2, x / 2)
    assert sparse.issparse(a / 2) and sparse.issparse(a / np.ones(8))


def test_functions_with_numbers_and_dense_arrays():
    x = dense()
    a = make("csr", x)
    same(a * 3, x * 3)
    same(3 * a, x * 3)
    same(-a, -x)
    same(abs(a), abs(x))
    same(a**2, x * x, 1e-15)
    same(a > 1, x > 1)
    same(a < -1, x < -1)
    same(a != 0, x != 0)
    y = dense(seed=5)
    same(a + np.array(y), x + y)
    same(np.array(y) + a, x + y)
    same(np.array(y) - a, y - x)
    same(a - np.array(y), x - y)
    same(np.array(y) * a, x * y)
    same(a + np.array(y[0]), x + y[0])
    assert sparse.issparse(np.array(y) * a)
    with pytest.raises(ValueError, match=r"\(6, 8\) and \(6, 7\)"):
        a * np.ones((6, 7))


def test_coordinates_of_several_axes_compute():
    x, y = dense((3, 4, 5), 1), dense((3, 4, 5), 2)
    a, b = sparse.coo_array(np.array(x)), sparse.coo_array(np.array(y))
    same(a + b, x + y)
    same(a * b, x * y)
    same(a * np.array(y), x * y)
    same(a.transpose((2, 0, 1)), x.transpose(2, 0, 1))
    same(a.reshape(12, 5), x.reshape(12, 5))
    same(a.reshape(2, -1, order="F"), x.reshape(2, -1, order="F"))
    for axis in (None, 0, 1, 2, (0, 2), (0, 1, 2), -1):
        same(a.sum(axis), x.sum(axis), 1e-12)
        same(a.max(axis), x.max(axis))


@pytest.mark.parametrize("format", [*FORMATS, "row_sparse"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 1)])
@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "prod", "any", "all", "count_nonzero"])
def test_reductions(format, axis, name):
    for density in (0.3, 1.0):
        x = dense(seed=4, density=density)
        a = make(format, x)
        same(getattr(np, name)(a, axis=axis), getattr(numpy, name)(x, axis=axis), 1e-12)
        same(getattr(np, name)(a, axis=axis, keepdims=True), getattr(numpy, name)(x, axis=axis, keepdims=True), 1e-12)


@pytest.mark.parametrize("format", ["csr", "csc", "coo"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_positions_of_extremes(format, axis):
    for seed in range(6):
        x = dense((5, 4), seed, density=0.2 + 0.15 * seed)
        if seed == 3:
            x = numpy.abs(x)
        a = make(format, x)
        same(a.argmax(axis), x.argmax(axis))
        same(a.argmin(axis), x.argmin(axis))


@pytest.mark.parametrize("dtype", ["int64", "int32", "float16", "float64", "complex64"])
@pytest.mark.parametrize("name", ["mean", "var", "std"])
def test_means_and_variances_have_the_dtype_that_is_asked_for(name, dtype):
    x = numpy.arange(12).reshape(3, 4) * (numpy.arange(12).reshape(3, 4) % 3 > 0)
    for axis in (None, 0, 1):
        want = numpy.asarray(getattr(numpy, name)(x, axis=axis))
        found = getattr(np, name)(make("csr", x), axis=axis, dtype=dtype)
        assert found.dtype == dtype
        # Results of integers are truncated; others are rounded a few times.
        rtol = 0 if dtype.startswith("int") else 4 * float(numpy.finfo(dtype).eps)
        same(found, want.astype(dtype), rtol=rtol)


def test_integer_sums_have_numpys_dtype():
    a = make("csr", dense(dtype="int8"))
    assert a.sum().dtype == "int64" and a.sum(axis=1).dtype == "int64"
    assert a.sum(axis=0, dtype="float64").dtype == "float64"
    assert a.max(axis=0).dtype == "int8"
    with pytest.raises(ValueError, match="without elements"):
        sparse.csr_array((0, 3)).max(axis=0)
    with pytest.raises(mx.error.AxisError, match="axis 2"):
        a.sum(axis=2)


@pytest.mark.parametrize("left", [*FORMATS, "row_sparse"])
@pytest.mark.parametrize("right", FORMATS)
def test_products_of_sparse_matrices(left, right):
    x, y = dense((6, 8), 1), dense((8, 6), 2)
    got = make(left, x) @ make(right, y)
    assert sparse.issparse(got)
    same(got, x @ y, 1e-12)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "int8", "uint8", "int64"])
@pytest.mark.parametrize("format", [*FORMATS, "row_sparse"])
def test_products_with_dense_arrays(format, dtype):
    x, v = dense(dtype=dtype), dense((8, 3), 7, dtype, density=1)
    a = make(format, x)
    # Sums of at most 8 products of numbers up to 16, in the dtype or, for halves, rounded to it once.
    tolerance = {"f": 8 * 16 * 4, "c": 8 * 16 * 8}.get(numpy.dtype(dtype).kind, 0)
    tolerance *= numpy.finfo(dtype).eps if tolerance else 0
    wide = {"float16": "float64", "float32": "float64", "complex64": "complex128"}.get(dtype, dtype)
    for b in (v, v[:, 0]):
        got = a @ np.array(b)
        assert got.dtype == dtype
        same(got, x.astype(wide) @ b.astype(wide), tolerance)
        got = np.array(b.T) @ a.T
        same(got, b.T.astype(wide) @ x.T.astype(wide), tolerance)


def test_vectors_and_wrong_shapes():
    x = dense()
    a, row = make("csr", x), sparse.coo_array(np.array(x[0]))
    same(a @ row, x @ x[0], 1e-12)
    same(row @ row, x[0] @ x[0], 1e-12)
    same(np.dot(a, np.ones(8)), x @ numpy.ones(8), 1e-12)
    same(np.dot(a, 2), x * 2)
    with pytest.raises(ValueError, match=r"size 8\).*size 6"):
        a @ a
    with pytest.raises(ValueError, match="size 5"):
        a @ np.ones(5)


def test_sampled_products():
    x, y, m = dense((6, 4), 1, density=1), dense((8, 4), 2, density=1), dense()
    same(sparse.sampled_matmul(np.array(x), np.array(y), make("csr", m)), m * (x @ y.T), 1e-12)


@pytest.mark.parametrize("format", FORMATS)
def test_rearranging(format):
    x = dense()
    a = make(format, x)
    same(a.T, x.T)
    same(a.T.T, x)
    for k in (-2, 0, 3, 9):
        same(a.diagonal(k), numpy.diagonal(x, k) if k < 8 else numpy.zeros(0))
        same(np.tril(a, k), numpy.tril(x, k))
        same(sparse.triu(a, k), numpy.triu(x, k))
    same(a.trace(), numpy.trace(x), 1e-12)
    same(np.diag(a), numpy.diag(x))
    same(a.reshape(4, 12), x.reshape(4, 12))
    same(np.concatenate([a, a]), numpy.concatenate([x, x]))
    same(np.concatenate([a, a], axis=1), numpy.concatenate([x, x], axis=1))
    same(np.vstack([a, a]), numpy.vstack([x, x]))
    same(sparse.hstack([a, a[:, :2]]), numpy.hstack([x, x[:, :2]]))
    same(sparse.kron(a, make("csr", x[:2, :3])), numpy.kron(x, x[:2, :3]), 1e-12)
    same(np.swapaxes(a, 0, 1), x.T)
    assert [axis.tolist() for axis in a.nonzero()] == [axis.tolist() for axis in x.nonzero()]
    with pytest.raises(ValueError, match=r"\(6, 8\) and \(6, 3\)"):
        np.concatenate([a, a[:, :3]])


def test_numpys_functions_come_to_ours():
    x = dense()
    a = make("csr", x)
    same(numpy.sum(a, axis=0), x.sum(0), 1e-12)
    same(numpy.sin(a), numpy.sin(x), 1e-12)
    assert sparse.issparse(numpy.sqrt(abs(a)))
    same(np.clip(a, -1, 1), x.clip(-1, 1))
    with pytest.raises(mx.error.UnsupportedError, match="without 0"):
        np.clip(a, 1, 2)
    same(np.round(a, 1), x.round(1), 1e-12)


def test_makers_against_scipy():
    same(sparse.eye_array(3, 5, k=1), ss.eye_array(3, 5, k=1))
    same(
        sparse.diags_array([[1.0, 2.0, 3.0], [4.0, 5.0]], offsets=[0, -1]),
        ss.diags_array([[1.0, 2.0, 3.0], [4.0, 5.0]], offsets=[0, -1]),
    )
    same(sparse.diags_array([1.0, 2.0]), ss.diags_array([1.0, 2.0]))
    x, y = dense((2, 3)), dense((2, 2), 1)
    blocks = [[np.array(x), None], [None, np.array(y)]]
    same(sparse.block_array(blocks), ss.block_array([[x, None], [None, y]]))
    same(sparse.block_diag([np.array(x), np.array(y)]), ss.block_diag([ss.coo_array(x), y]))
    i, j, v = sparse.find(make("csr", x))
    same(v, x[i.asnumpy(), j.asnumpy()])
    with pytest.raises(ValueError, match="as many offsets"):
        sparse.diags_array([[1.0]], offsets=[0, 1])


def test_random_arrays_have_their_density_and_seed():
    mx.random.seed(3)
    a = sparse.random_array((200, 300), density=0.02, format="csr")
    assert a.nnz == 1200 and a.has_canonical_format
    mx.random.seed(3)
    b = sparse.random_array((200, 300), density=0.02, format="csr")
    same(a, b.todense().asnumpy())
    x, parts = sparse.rand_sparse_ndarray((40, 3), "row_sparse", density=0.25)
    assert x.indices.size == 10 and parts[1] is x.indices
    with pytest.raises(ValueError, match=r"density .* 1.5"):
        sparse.random_array((2, 2), density=1.5)


def test_storage_types_by_mxnets_names():
    x = dense()
    for stype in ("csr", "row_sparse", "default", "csc"):
        got = sparse.cast_storage(np.array(x), stype)
        same(got, x)
        assert stype == "default" or got.stype == stype
    same(make("csr", x).tostype("row_sparse").tostype("csr"), x)
    rows = make("row_sparse", x)
    kept = sparse.retain(rows, [1, 4])
    want = numpy.zeros_like(x)
    want[[1, 4]] = x[[1, 4]]
    same(kept, want)
    with pytest.raises(IndexError, match="row 6"):
        rows.retain([6])


@pytest.mark.parametrize("format", [*FORMATS, "row_sparse"])
def test_files_keep_arrays(tmp_path, format):
    x = dense()
    a = make(format, x)
    sparse.save(tmp_path / "a.safetensors", {"a": a, "b": np.ones(3)})
    found = sparse.load(tmp_path / "a.safetensors")
    assert found["a"].format == format and found["b"].shape == (3,)
    same(found["a"], x)
    if format == "row_sparse":
        return
    sparse.save_npz(tmp_path / "a.npz", a)
    same(sparse.load_npz(tmp_path / "a.npz"), x)
    same(ss.load_npz(tmp_path / "a.npz"), x)
    ss.save_npz(tmp_path / "b.npz", ss.csr_array(x).asformat(format))
    same(sparse.load_npz(tmp_path / "b.npz"), x)


def test_files_of_wrong_indices_are_refused(tmp_path):
    a = make("csr", dense())
    numpy.savez(
        tmp_path / "a.npz",
        data=a.data.asnumpy(),
        indices=a.indices.asnumpy() + 9,
        indptr=a.indptr.asnumpy(),
        shape=numpy.array(a.shape),
        format=b"csr",
    )
    with pytest.raises(IndexError):
        sparse.load_npz(tmp_path / "a.npz")
    numpy.savez(tmp_path / "b.npz", x=numpy.ones(2))
    with pytest.raises(mx.error.FileFormatError):
        sparse.load_npz(tmp_path / "b.npz")


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "bsr", "row_sparse"])
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_spreads_count_elements_that_are_not_stored(format, axis, keepdims):
    rng = numpy.random.default_rng(7)
    dense = rng.normal(size=(6, 5)) * (rng.random((6, 5)) < 0.4)
    x = getattr(sparse, f"{format}_array")(np.array(dense))
    for name in ("var", "std", "ptp"):
        found = getattr(np, name)(x, axis=axis, keepdims=keepdims)
        want = getattr(numpy, name)(dense, axis=axis, keepdims=keepdims)
        numpy.testing.assert_allclose(found.asnumpy(), want, rtol=1e-12, atol=1e-14)
    if not isinstance(axis, tuple):
        for name in ("argmax", "argmin"):
            found = getattr(np, name)(x, axis=axis, keepdims=keepdims)
            numpy.testing.assert_array_equal(found.asnumpy(), getattr(numpy, name)(dense, axis=axis, keepdims=keepdims))
    assert np.var(x, ddof=1).item() == pytest.approx(dense.var(ddof=1))


@pytest.mark.parametrize("width", [None, 1, 8, 9])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "complex64"])
def test_products_with_transposes(width, dtype):
    rng = numpy.random.default_rng(8)
    dense = (rng.integers(1, 9, (300, 40)) * (rng.random((300, 40)) < 0.4)).astype(dtype)
    v = rng.integers(0, 9, 300 if width is None else (300, width)).astype(dtype)
    x = sparse.csr_array(np.array(dense))
    assert x.nnz > 40 * 100
    numpy.testing.assert_array_equal((x.T @ np.array(v)).asnumpy(), dense.T @ v)
    numpy.testing.assert_array_equal((np.array(v.T) @ x).asnumpy(), v.T @ dense)


def test_products_with_transposes_do_not_depend_on_the_number_of_threads():
    rng = numpy.random.default_rng(9)
    x = sparse.csr_array(sparse.random_array((5000, 500), density=0.01, dtype="float32"))
    v = np.array(rng.normal(size=5000).astype("float32"))
    before, found = mx._core.num_threads(), []
    try:
        for n in (1, 2):
            mx._core.set_num_threads(n)
            found.append((x.T @ v).asnumpy())
    finally:
        mx._core.set_num_threads(before)
    numpy.testing.assert_array_equal(*found)


def test_named_arrays_of_all_formats_are_saved_together(tmp_path):
    rng = numpy.random.default_rng(10)
    dense = rng.normal(size=(6, 5)) * (rng.random((6, 5)) < 0.4)
    made = {f: getattr(sparse, f"{f}_array")(np.array(dense)) for f in ("csr", "csc", "coo", "bsr", "row_sparse")}
    rows = mx.ragged.array([[1.0, 2.0], [3.0]])
    npx.save(tmp_path / "all", {**made, "dense": np.array(dense), "rows": rows})
    found = npx.load(tmp_path / "all")
    assert set(found) == {*made, "dense", "rows"} and found["rows"].tolist() == rows.tolist()
    for name, x in made.items():
        assert type(found[name]) is type(x)
        numpy.testing.assert_array_equal(found[name].todense().asnumpy(), dense)
    npx.save(tmp_path / "one", made["csr"])
    numpy.testing.assert_array_equal(npx.load(tmp_path / "one").todense().asnumpy(), dense)


def test_variances_of_many_rows_of_float16():
    dense = numpy.zeros((70_000, 1), "float16")
    dense[3], dense[9] = 1, 2
    found = np.var(sparse.csr_array(np.array(dense, dtype="float16")), axis=0)
    assert found.dtype == "float16"
    # The result is rounded to float16 once.
    assert found.item() == pytest.approx(dense.astype("float64").var(), rel=2**-11)
