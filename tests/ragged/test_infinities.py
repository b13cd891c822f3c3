"""Infinite elements, missing ones and arguments that do not fit: what dense arrays give, row by row."""

import numpy as onp
import pytest

import mxnet as mx
from mxnet import np, npx, ragged

INF, NAN = float("inf"), float("nan")
ROWS = [[1.0, 2.0, INF], [1.0, INF, INF], [INF], [INF, INF], [1.0, NAN, 3.0], [NAN], [-INF, 0.0, 1.0, 2.0]]


def array(rows=ROWS):
    return ragged.array([np.array(row) for row in rows])


@pytest.mark.parametrize("name", ["median", "nanvar", "nanstd"])
def test_infinite_elements_give_what_dense_rows_give(name):
    with onp.errstate(all="ignore"), pytest.warns(RuntimeWarning) if name != "median" else onp.errstate():
        expected = [getattr(onp, name)(onp.array(row)) for row in ROWS]
    assert onp.allclose(getattr(np, name)(array(), axis=1).asnumpy(), expected, equal_nan=True)


def test_too_few_elements_for_ddof_are_nan():
    found = np.nanvar(array([[NAN, NAN], [NAN, 1.0], [1.0, 2.0]]), axis=1, ddof=1)
    assert onp.array_equal(found.asnumpy(), [NAN, NAN, 0.5], equal_nan=True)


def test_weights_of_an_infinite_mean_are_counted():
    _, weights = np.average(array([[INF, 1.0], [1.0, 2.0, 3.0]]), axis=1, returned=True)
    assert weights.tolist() == [2, 3]


def test_largest_elements_of_windows_are_infinite_in_the_padding():
    r = ragged.array([np.full((3, 2), -INF), np.ones((2, 2))])
    found = npx.pooling(r, kernel=2, pad=1, stride=1)
    assert found[0].tolist() == npx.pooling(r[0].T[None], kernel=2, pad=1, stride=1)[0].T.tolist()


@pytest.mark.parametrize("how", [{"kernel": 0}, {"kernel": 2, "stride": 0}, {}])
def test_windows_that_are_none_are_refused(how):
    with pytest.raises(ValueError, match="pooling: `kernel`"):
        npx.pooling(ragged.array([np.ones((3, 2))]), **how)


@pytest.mark.parametrize("text", ["bl->bll", "bl->bb"])
def test_einsum_refuses_an_axis_that_the_output_names_twice(text):
    with pytest.raises(ValueError, match=r"einsum: the output of .* names an axis twice"):
        np.einsum(text, array())


def test_einsum_of_integers():
    r = ragged.array([np.array([[1, 2], [3, 4]]), np.array([[5, 6]])])
    w = np.array([[1, 0, 1], [0, 1, 1]])
    found = np.einsum("bld,de->ble", r, w)
    assert [row.tolist() for row in found] == [[[1, 2, 3], [3, 4, 7]], [[5, 6, 11]]]


def test_norms_over_several_axes_have_no_order():
    r = ragged.array([np.ones((3, 2)), np.ones((1, 2))])
    with pytest.raises(mx.error.UnsupportedError, match="norm: ragged arrays take one `axis` with `ord`"):
        np.linalg.norm(r, ord=1, axis=(1, 2))
    assert np.linalg.norm(r, axis=(1, 2)).tolist() == pytest.approx([6**0.5, 2**0.5])


def test_flip_refuses_an_axis_named_twice():
    with pytest.raises(mx.error.AxisError, match="flip: an axis is named twice"):
        np.flip(array(), (1, 1))


def test_weights_in_other_rows_are_refused():
    r = ragged.array([np.array([0, 1]), np.array([2])])
    other = ragged.array([np.array([1]), np.array([2, 3])])
    for weights in ((other,), ()):
        with pytest.raises(mx.error.ShapeError):
            np.bincount(r, *weights, **({} if weights else {"weights": other}))


def test_quantiles_take_one_number_and_real_elements():
    r = array([[1.0, 2.0], [3.0]])
    assert np.quantile(r, onp.float32(0.5), axis=1).tolist() == [1.5, 3]
    with pytest.raises(mx.error.UnsupportedError, match="percentile: ragged arrays take one number"):
        np.percentile(r, [25, 50], axis=1)
    with pytest.raises(mx.error.DTypeError, match="median: complex numbers have no order"):
        np.median(r.astype("complex64"), axis=1)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_means_of_many_16_bit_elements(dtype):
    r = ragged.array([np.full((70_000,), 1.0, dtype=dtype), np.full((1000,), 100.0, dtype=dtype)])
    for name in ("mean", "nanmean", "average"):
        found = getattr(np, name)(r, axis=1)
        assert found.dtype == dtype
        assert found.astype("float32").tolist() == [1, 100], name
    for name in ("var", "nanvar"):
        assert getattr(np, name)(r, axis=1).astype("float32").tolist() == [0, 0], name


def test_operands_by_keyword():
    r = ragged.array([np.array([1.0, 2.0]), np.array([3.0])])
    assert [x.tolist() for x in np.isin(element=r, test_elements=[1.0])] == [[True, False], [False]]
    assert [x.tolist() for x in np.digitize(x=r, bins=np.array([2.0]))] == [[0, 1], [1]]
    assert [x.tolist() for x in np.searchsorted(np.array([2.0]), v=r)] == [[0, 0], [1]]
