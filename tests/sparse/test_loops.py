"""Sizes at which sparse loops change their course: blocks of products, runs of rows, several threads."""

import os
import subprocess
import sys

import numpy
import pytest
import scipy.sparse

import mxnet as mx
from mxnet import _core, np, sparse
from mxnet.error import IndexError as OutOfRange

# Rows with more stored elements than a block of products (4096), empty rows, and rows whose ends share a block.
LENGTHS = [0, 4095, 1, 0, 4097, 16, 17, 15, 8193, 0, 4096, 3, *([7] * 900), 0]
NUM_COLUMNS = 9000
OP = _core.namespaces["op"]


def long_rows(dtype):
    rng = numpy.random.default_rng(0)
    indices = numpy.concatenate([rng.permutation(NUM_COLUMNS)[:n] for n in LENGTHS])
    indptr = numpy.concatenate([[0], numpy.cumsum(LENGTHS)])
    if numpy.dtype(dtype).kind in "iu":
        data = rng.integers(0, 50, indices.size).astype(dtype)
    else:
        data = rng.normal(size=indices.size).astype(dtype)
    return data, indices, indptr


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint64", "complex64"])
def test_products_with_a_vector_of_rows_of_any_length(dtype):
    data, indices, indptr = long_rows(dtype)
    x = (numpy.arange(NUM_COLUMNS) % 13 + 1).astype(dtype)
    found = (sparse.csr_array((data, indices, indptr), shape=(len(LENGTHS), NUM_COLUMNS)) @ np.array(x)).asnumpy()
    exact = data.astype("complex128" if data.dtype.kind == "c" else "float64") * x[indices]
    want = numpy.array([exact[a:b].sum() for a, b in zip(indptr, indptr[1:], strict=False)])
    if data.dtype.kind in "iu":
        numpy.testing.assert_array_equal(found, want)
        return
    # A sum of n terms in another order: n roundings of the sum of their sizes at most.
    size = numpy.array([numpy.abs(exact[a:b]).sum() for a, b in zip(indptr, indptr[1:], strict=False)])
    eps = numpy.finfo(dtype).eps
    assert (numpy.abs(found - want) <= (8 + numpy.sqrt(LENGTHS)) * eps * size).all()


def test_sums_of_a_row_do_not_depend_on_the_rows_before_it():
    data, indices, indptr = long_rows("float32")
    x = np.array(numpy.random.default_rng(1).normal(size=NUM_COLUMNS).astype("float32"))
    whole = (sparse.csr_array((data, indices, indptr), shape=(len(LENGTHS), NUM_COLUMNS)) @ x).asnumpy()
    for i in (1, 4, 6, 8, 10, 500):
        a, b = indptr[i : i + 2]
        row = sparse.csr_array((data[a:b], indices[a:b], [0, b - a]), shape=(1, NUM_COLUMNS))
        assert (row @ x).item() == whole[i]


@pytest.mark.parametrize("width", [1, 3, 15, 16, 40])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_extrema_of_segments_are_the_first_ones(dtype, width):
    lengths = [3, 0, 50, 1, 700]
    indptr = numpy.concatenate([[0], numpy.cumsum(lengths)])
    x = numpy.random.default_rng(0).integers(-9, 9, (indptr[-1], width)).astype(dtype)
    if dtype == "float32":
        x[[5, 9], 0] = numpy.nan
    for name, best, at in (("max", numpy.max, numpy.argmax), ("min", numpy.min, numpy.argmin)):
        found, where = OP[f"segment_{name}"](np.array(x), np.array(indptr))
        for i, (a, b) in enumerate(zip(indptr, indptr[1:], strict=False)):
            want, row = (0, -1) if a == b else (best(x[a:b], axis=0), a + at(x[a:b], axis=0))
            numpy.testing.assert_array_equal(found[i].asnumpy(), numpy.broadcast_to(want, width))
            numpy.testing.assert_array_equal(where[i].asnumpy(), numpy.broadcast_to(row, width))


@pytest.mark.parametrize("at", [0, 5000, -1])
@pytest.mark.parametrize("index", [-1, NUM_COLUMNS, 2**62])
def test_columns_that_were_overwritten_are_found_in_products(at, index):
    data, indices, indptr = long_rows("float32")
    x = sparse.csr_array((data, np.array(indices), indptr), shape=(len(LENGTHS), NUM_COLUMNS))
    x.indices[at] = index
    dense, square = np.ones((NUM_COLUMNS, 1)), sparse.eye_array(NUM_COLUMNS, dtype="float32", format="csr")
    for function in (lambda: x @ dense, lambda: x @ dense[:, 0], lambda: (x @ square).data, lambda: x.T.tocsr().data):
        with pytest.raises(OutOfRange, match=f"indices.* is {index}"):
            function().wait_to_read()


def test_specials_stay_in_their_rows():
    x = sparse.csr_array(([1.0, numpy.inf, 2.0, numpy.nan, 3.0], [0, 1, 0, 1, 0], [0, 1, 2, 3, 4, 5]), shape=(5, 2))
    assert str((x @ np.ones(2)).asnumpy().tolist()) == "[1.0, inf, 2.0, nan, 3.0]"


def uneven(seed, rows=3000, columns=2000, stored=200_000):
    """A matrix whose rows and columns have very different numbers of elements."""
    rng = numpy.random.default_rng(seed)
    places = (rng.power(0.4, (2, stored)) * [[rows], [columns]]).astype("int64")
    values = rng.uniform(0.5, 1, stored).astype("float32")
    x = scipy.sparse.coo_array((values, tuple(places)), shape=(rows, columns)).tocsr()
    x.sum_duplicates()
    return x


def parts(x):
    return [x.data, x.indices, x.indptr]


@pytest.mark.parametrize("function", [lambda a, b: a + b, lambda a, b: a - b, lambda a, b: b - a])
def test_sums_of_many_rows(function):
    x, y = uneven(0), uneven(1)
    # Places whose sum is 0 are stored here, and are not in SciPy's result.
    y = scipy.sparse.vstack([-x[:6], -y[6:]], format="csr")
    found, want = function(sparse.csr_array(x), sparse.csr_array(y)), function(x, y)
    numpy.testing.assert_array_equal(found.todense().asnumpy(), want.todense())
    assert found.has_canonical_format


def test_transposes_by_several_threads_and_products_of_heavy_rows():
    x = uneven(2)
    ours = sparse.csr_array(x)
    for mine, theirs in zip(parts(ours.T.tocsr()), parts(x.T.tocsr()), strict=True):
        numpy.testing.assert_array_equal(mine.asnumpy(), theirs)
    product = x[:300] @ x.T[:, :500]
    product.sort_indices()
    found = ours[:300] @ ours.T[:, :500]
    for mine, theirs in zip(parts(found)[1:], parts(product)[1:], strict=True):
        numpy.testing.assert_array_equal(mine.asnumpy(), theirs)
    # Sums of positive products in two orders: at most as many roundings as a row has elements.
    longest = int(numpy.diff(x.indptr).max())
    numpy.testing.assert_allclose(found.data.asnumpy(), product.data, rtol=2 * longest**0.5 * 2.0**-24)


def digests() -> str:
    """The bits of results that several threads compute."""
    import hashlib

    x, y = sparse.csr_array(uneven(0)), sparse.csr_array(uneven(1))
    v, m = np.array(numpy.random.default_rng(2).normal(size=(2000, 1))), np.ones((2000, 40))
    arrays = [x @ v, x @ m, *parts(x + y), *parts(x.T.tocsr()), *parts(x[:300] @ y.T[:, :500])]
    return hashlib.sha256(b"".join(a.asnumpy().tobytes() for a in arrays)).hexdigest()


def test_bits_do_not_depend_on_threads_nor_on_the_instruction_set():
    before = mx._core.num_threads()
    try:
        found = set()
        for threads in (1, 2, 5):
            mx._core.set_num_threads(threads)
            found.add(digests())
    finally:
        mx._core.set_num_threads(before)
    for isa in ("avx2", "baseline"):
        env = os.environ | {"MXNET_ISA": isa}
        run = subprocess.run(
            [sys.executable, __file__], env=env, capture_output=True, text=True, check=True, timeout=120
        )
        found.add(run.stdout.strip())
    assert len(found) == 1


if __name__ == "__main__":
    print(digests())
