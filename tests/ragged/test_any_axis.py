"""Functions along each axis of arrays with one to three ragged axes, against padded arrays of NumPy."""

import itertools

import numpy
import pytest
from tests.support import slopes

import mxnet as mx
from mxnet import autograd, np, npx, ragged

RNG = numpy.random.default_rng(0)


def nested(depth, rng=RNG):
    """Rows of rows: of each length from 1 to 4."""
    if not depth:
        return rng.normal(size=2).tolist()
    return [nested(depth - 1, rng) for _ in range(rng.integers(1, 5))]


def example(num_ragged, rng=RNG):
    """A ragged array with a uniform axis of 2, and the same padded by NaN."""
    r = ragged.array([nested(num_ragged, rng) for _ in range(4)], dtype="float64")
    assert r.num_ragged == num_ragged
    return r, padded(r)


def padded(r):
    return r.to_dense(fill=float("nan")).asnumpy() if isinstance(r, ragged.RaggedArray) else r.asnumpy()


def axes_of(ndim):
    return [axes for count in range(1, ndim) for axes in itertools.combinations(range(ndim), count)]


def cut(want, found):
    """NumPy keeps padding up to the longest row of the operand; where it differs, the rest is NaN."""
    if want.shape == found.shape:
        return want
    assert numpy.isnan(want).sum() >= want.size - found.size
    return want[tuple(slice(n) for n in found.shape)]


@pytest.mark.parametrize("num_ragged", [1, 2, 3])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("name", ["sum", "mean", "var", "std", "max", "min", "ptp"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_reductions_over_all_sets_of_axes(name, keepdims, num_ragged):
    r, dense = example(num_ragged)
    oracle = {"ptp": lambda x, **kw: numpy.nanmax(x, **kw) - numpy.nanmin(x, **kw)}
    for axes in axes_of(r.ndim):
        found = padded(getattr(np, name)(r, axis=axes, keepdims=keepdims))
        want = oracle.get(name, getattr(numpy, f"nan{name}", None))(dense, axis=axes, keepdims=keepdims)
        if name == "sum":
            # There is no sum where there is no element.
            want = numpy.where(numpy.isnan(dense).all(axis=axes, keepdims=keepdims), numpy.nan, want)
        numpy.testing.assert_allclose(found, cut(want, found), rtol=1e-12, atol=1e-12, err_msg=str(axes))


@pytest.mark.parametrize("num_ragged", [1, 2, 3])
def test_positions_of_extrema_along_each_axis(num_ragged):
    r, dense = example(num_ragged)
    for axis in range(r.ndim):
        for name, fill in (("argmax", -numpy.inf), ("argmin", numpy.inf)):
            found = getattr(np, name)(r, axis=axis)
            want = getattr(numpy, name)(numpy.where(numpy.isnan(dense), fill, dense), axis=axis).astype(float)
            want = numpy.where(numpy.isnan(dense).all(axis=axis), numpy.nan, want)
            found = padded(found.astype("float64") if isinstance(found, ragged.RaggedArray) else found)
            numpy.testing.assert_array_equal(found, cut(want, found))


@pytest.mark.parametrize("num_ragged", [1, 2, 3])
def test_scans_and_orders_along_each_axis(num_ragged):
    r, dense = example(num_ragged)
    for axis in range(r.ndim):
        found = padded(np.cumsum(r, axis=axis))
        want = numpy.where(numpy.isnan(dense), numpy.nan, numpy.nancumsum(dense, axis=axis))
        numpy.testing.assert_allclose(found, want, rtol=1e-12, atol=1e-12)
        found = padded(np.sort(r, axis=axis))
        want = numpy.sort(dense, axis=axis)
        if axis == num_ragged or axis > num_ragged:
            numpy.testing.assert_array_equal(found, want)
        # The positions choose the sorted elements.
        at = padded(np.argsort(r, axis=axis).astype("float64"))
        chosen = numpy.take_along_axis(dense, numpy.where(numpy.isnan(at), 0, at).astype(int), axis)
        numpy.testing.assert_array_equal(numpy.where(numpy.isnan(at), numpy.nan, chosen), found)
        # The same elements along the axis, in ascending order.
        numpy.testing.assert_array_equal(numpy.sort(found, axis=axis), want)
        numpy.testing.assert_array_equal(numpy.isnan(found), numpy.isnan(dense))


@pytest.mark.parametrize("num_ragged", [1, 2, 3])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_quantiles_along_each_axis(num_ragged):
    r, dense = example(num_ragged)
    for axis in range(r.ndim):
        for found, q in ((np.median(r, axis=axis), 0.5), (np.quantile(r, 0.3, axis=axis), 0.3)):
            want = numpy.nanquantile(dense, q, axis=axis)
            found = padded(found)
            numpy.testing.assert_allclose(found, cut(want, found), rtol=1e-12)
    assert np.percentile(r, 50).item() == numpy.nanmedian(dense)


def test_quantiles_of_empty_rows_and_of_rows_with_nan_are_nan():
    r = ragged.array([[3.0, 1.0], [], [float("nan"), 1.0]])
    numpy.testing.assert_array_equal(np.median(r, axis=1).asnumpy(), [2, numpy.nan, numpy.nan])


@pytest.mark.parametrize("name", ["nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd"])
def test_functions_without_nan(name):
    rows = [numpy.array([1.0, numpy.nan, 3.0]), numpy.array([2.0]), numpy.array([numpy.nan, -1.0])]
    r = ragged.array(rows)
    want = [getattr(numpy, name)(row) for row in rows]
    numpy.testing.assert_allclose(getattr(np, name)(r, axis=1).asnumpy(), want, rtol=1e-12)
    numpy.testing.assert_allclose(getattr(np, name)(r).item(), getattr(numpy, name)(numpy.concatenate(rows)))
    dense = padded(r)
    numpy.testing.assert_allclose(getattr(np, name)(r, axis=0).asnumpy(), getattr(numpy, name)(dense, axis=0))


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8", "bool", "complex64", "float16"])
def test_running_sums_have_the_dtype_of_dense_ones(dtype):
    rows = [numpy.array([1, 0, 3]), numpy.array([2]), numpy.array([], dtype=int)]
    r = ragged.array(rows).astype(dtype)
    found = np.cumsum(r, axis=1)
    dense = np.cumsum(np.array([1, 0, 3]).astype(dtype))
    assert found.dtype == dense.dtype
    numpy.testing.assert_array_equal(found[0].asnumpy(), dense.asnumpy())
    assert np.cumsum(r, axis=1, dtype="complex128").dtype == "complex128"
    numpy.testing.assert_array_equal(np.cumsum(r).asnumpy(), np.cumsum(r.values).asnumpy())


def test_gradients_of_running_sums():
    at = np.array([0, 3, 3, 5])
    for reverse in (False, True):
        slopes.check(
            lambda x, reverse=reverse: mx._core.namespaces["op"]["ragged_cumsum"](x, at, reverse),
            [RNG.normal(size=(5, 2))],
            RNG,
        )
    r = ragged.array([[1.0, 2.0], [3.0]])
    r.attach_grad()
    with autograd.record():
        y = np.sum(np.cumsum(r, axis=0))
    y.backward()
    assert r.grad.tolist() == [[2.0, 1.0], [1.0]]


@pytest.mark.parametrize("tail", [(), (3,)])
@pytest.mark.parametrize("is_ascend", [False, True])
def test_largest_elements_of_each_row(tail, is_ascend):
    r = ragged.array([RNG.integers(0, 9, (n, *tail)).astype("float32") for n in (5, 2, 1)])
    values, indices = npx.topk(r, axis=1, k=3, ret_typ="both", is_ascend=is_ascend, dtype="int64")
    mask = npx.topk(r, axis=1, k=3, ret_typ="mask", is_ascend=is_ascend)
    for i in range(3):
        k = min(3, r[i].shape[0])
        want, at = npx.topk(r[i], axis=0, k=k, ret_typ="both", is_ascend=is_ascend, dtype="int64")
        numpy.testing.assert_array_equal(values[i].asnumpy(), want.asnumpy())
        numpy.testing.assert_array_equal(indices[i].asnumpy(), at.asnumpy())
        kept = npx.topk(r[i], axis=0, k=k, ret_typ="mask", is_ascend=is_ascend)
        numpy.testing.assert_array_equal(mask[i].asnumpy(), kept.asnumpy())
    assert npx.topk(r, axis=1, k=1).shape == (3, None, *tail)
    assert npx.topk(r, axis=1, k=0, ret_typ="value").lengths().tolist() == [5, 2, 1]


def test_differences_shifts_and_repetitions():
    rows = [RNG.normal(size=(n, 2)) for n in (4, 1, 2)]
    r = ragged.array(rows)
    for i in range(3):
        numpy.testing.assert_array_equal(np.diff(r, axis=1)[i].asnumpy(), numpy.diff(rows[i], axis=0))
        numpy.testing.assert_array_equal(np.roll(r, 3, axis=1)[i].asnumpy(), numpy.roll(rows[i], 3, axis=0))
        numpy.testing.assert_array_equal(np.repeat(r, 2, axis=1)[i].asnumpy(), numpy.repeat(rows[i], 2, axis=0))
        numpy.testing.assert_array_equal(np.roll(r, 1, axis=0)[i].asnumpy(), rows[i - 1])
        numpy.testing.assert_array_equal(np.repeat(r, 2, axis=0)[2 * i + 1].asnumpy(), rows[i])
        numpy.testing.assert_array_equal(np.flip(r, axis=(0, 1))[i].asnumpy(), rows[2 - i][::-1])
    assert np.diff(r, n=2, axis=1).lengths().tolist() == [2, 0, 0]
    two = example(2)[0]
    moved = np.roll(two, -1, axis=1)
    for i in range(len(two)):
        assert moved[i].tolist() == two[i].tolist()[1:] + two[i].tolist()[:1]


def test_weighted_means_and_norms():
    rows = [RNG.normal(size=(n, 2)) for n in (4, 1, 2)]
    shares = [RNG.uniform(0.5, 1, n) for n in (4, 1, 2)]
    r, w = ragged.array(rows), ragged.array(shares)
    want = [numpy.average(x, axis=0, weights=y) for x, y in zip(rows, shares, strict=True)]
    found, total = np.average(r, axis=1, weights=w, returned=True)
    numpy.testing.assert_allclose(found.asnumpy(), want, rtol=1e-12)
    numpy.testing.assert_allclose(total[:, 0].asnumpy(), [y.sum() for y in shares], rtol=1e-12)
    numpy.testing.assert_allclose(np.average(r, axis=1).asnumpy(), [x.mean(0) for x in rows], rtol=1e-12)
    for ord in (1, 2):
        want = [numpy.linalg.norm(x, ord, axis=0) for x in rows]
        numpy.testing.assert_allclose(npx.norm(r, ord, axis=1).asnumpy(), want, rtol=1e-12)


EINSUMS = [
    # Subscripts for the ragged array, per-row subscripts of NumPy.
    ("bld,de->ble", "ld,de->le", "rw"),
    ("bld,bld->bl", "ld,ld->l", "rr"),
    ("bld,bld->b", "ld,ld->", "rr"),
    ("bld,bl->bd", "ld,l->d", "rv"),
    ("bld,ble->bde", "ld,le->de", "rs"),
    ("bld,ble->bed", "ld,le->ed", "rs"),
    ("bld,bde->ble", "ld,de->le", "rB"),
    ("bld,bde->bl", "ld,de->l", "rB"),
    ("bde,bld->ble", "de,ld->le", "Br"),
    ("bld,bd->bl", "ld,d->l", "rc"),
    ("bld->bd", "ld->d", "r"),
    ("bld->db", "ld->d", "r"),
    ("bld,de,bl->be", "ld,de,l->e", "rwv"),
]


@pytest.mark.parametrize(("text", "of_row", "which"), EINSUMS)
def test_sums_of_products(text, of_row, which):
    rng = numpy.random.default_rng(1)
    lengths = (3, 0, 2)
    parts = {
        "r": [rng.normal(size=(n, 4)) for n in lengths],
        "s": [rng.normal(size=(n, 5)) for n in lengths],
        "v": [rng.normal(size=n) for n in lengths],
        "B": rng.normal(size=(3, 4, 5)),
        "c": rng.normal(size=(3, 4)),
        "w": rng.normal(size=(4, 5)),
    }
    operands = [ragged.array(parts[k]) if isinstance(parts[k], list) else np.array(parts[k]) for k in which]
    found = np.einsum(text, *operands)
    want = [numpy.einsum(of_row, *(parts[k] if k == "w" else parts[k][i] for k in which)) for i in range(3)]
    if text.endswith("db"):
        found = found.T
    for i in range(3):
        numpy.testing.assert_allclose(found[i].asnumpy(), want[i], rtol=1e-12, atol=1e-12)


def test_sums_of_products_over_all_rows_and_with_two_ragged_axes():
    r, dense = example(2)
    dense = numpy.nan_to_num(dense)
    for text in ("abcd->ab", "abcd->a", "abcd->d", "abcd,abcd->abc", "abcd,de->abce", "abcd->"):
        operands = text.split("->")[0].split(",")
        matrix = RNG.normal(size=(2, 3))
        found = np.einsum(text, *(np.array(matrix) if own == "de" else r for own in operands))
        found = numpy.nan_to_num(padded(found))
        want = numpy.einsum(text, *(matrix if own == "de" else dense for own in operands))
        numpy.testing.assert_allclose(found, want, rtol=1e-12, atol=1e-12)


def test_arguments_of_einsum_mean_what_they_mean_for_dense_arrays():
    r = ragged.array([np.array([[1.5, 2.0]]), np.array([[3.0, 4.0], [5.0, 6.0]])])
    assert np.einsum("bld,bld->b", r, r, dtype="float64").dtype == "float64"
    assert np.einsum("bld,bld->b", r, r, dtype="int32", casting="unsafe").tolist() == [5, 86]
    assert np.einsum("bld,bld->b", r.astype("int32"), r.astype("int32")).dtype == "int32"
    assert np.einsum("bl->b", ragged.array([[True, True], [False]])).tolist() == [True, False]
    with pytest.raises(TypeError, match="einsum: cannot cast an operand from float32 to int32"):
        np.einsum("bld,bld->b", r, r, dtype="int32")
    with pytest.raises(ValueError, match=r"einsum: casting must be 'no'.*found 'never'"):
        np.einsum("bld,ble->bde", r, r, casting="never")
    with pytest.raises(TypeError, match="unexpected keyword argument 'speed'"):
        np.einsum("bld,ble->bde", r, r, speed=3)
    with pytest.raises(mx.error.UnsupportedError, match="ragged arrays have the order 'K', found 'F'"):
        np.einsum("bld,ble->bde", r, r, order="F")


def test_dense_operands_of_sums_of_products_are_array_like():
    r = ragged.from_lengths(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), [1, 2])
    assert np.einsum("bld,d->bl", r, [10.0, 1.0]).tolist() == [[12.0], [34.0, 56.0]]
    assert np.einsum("bld,b->bd", r, numpy.array([1.0, 2.0])).tolist() == [[1.0, 2.0], [16.0, 20.0]]


def test_gradients_of_sums_of_products():
    r, w = ragged.array([numpy.ones((2, 3)), numpy.ones((1, 3))]), np.ones((3, 2))
    r.attach_grad()
    w.attach_grad()
    with autograd.record():
        y = np.einsum("bld,de->be", r, w).sum()
    y.backward()
    assert w.grad.tolist() == [[3.0, 3.0]] * 3
    assert r.grad.values.tolist() == [[2.0] * 3] * 3


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("bqd,bkd->bqk", "ragged operands have the axes 'bq' and 'bk'"),
        ("bld,bld->l", "ragged axes, so it must begin with 'bl'"),
        ("b...,b...->b", "a letter for each axis"),
        ("bl,bl->b", "operand 0 of shape"),
        ("bld,bdl->b", "ragged operands have the axes 'bl' and 'bd'"),
    ],
)
def test_sums_of_products_that_are_not_there(text, problem):
    r = ragged.array([numpy.ones((2, 3)), numpy.ones((1, 3))])
    with pytest.raises((mx.error.UnsupportedError, mx.error.ShapeError), match=f"^einsum: .*{problem}"):
        np.einsum(text, r, r)


def test_functions_of_all_elements():
    rows = [[1, 2, 2], [], [7]]
    r = ragged.array(rows)
    assert np.unique(r).tolist() == [1, 2, 7]
    assert np.histogram(r, bins=[0, 2, 8])[0].tolist() == [1, 3]
    assert np.bincount(r).tolist() == [0, 1, 2, 0, 0, 0, 0, 1]
    assert np.isin(r, [2]).tolist() == [[False, True, True], [], [False]]
    assert np.digitize(r, np.array([2])).tolist() == [[0, 1, 1], [], [1]]
    assert np.ravel(r).tolist() == [1, 2, 2, 7]
    assert (np.shape(r), np.ndim(r), np.size(r), np.size(r, 0)) == ((3, None), 2, 4, 3)
    assert np.array_equal(r, r + 0) and not np.array_equal(r, r[:2]) and not np.array_equal(r, r + 1)
    assert npx.cast(r, "float32").dtype == "float32"
    assert npx.add_n(r, r, r).tolist() == (r * 3).tolist()
    assert [x.tolist() for x in np.array_split(r, 2)] == [[[1, 2, 2], []], [[7]]]
    assert np.hstack([r, r])[2].tolist() == [7, 7]
    assert np.append(r, r, axis=0).shape == (6, None)
