"""Indexing of sparse arrays by NumPy's arrays, masks and several arrays at once, against NumPy's indexing."""

import numpy
import pytest

from mxnet import np, sparse

X = numpy.arange(48.0).reshape(6, 8) * (numpy.arange(48).reshape(6, 8) % 3 == 0)
KEYS = {
    "mask of rows": numpy.array([1, 0, 1, 0, 1, 1], bool),
    "rows": numpy.array([0, 3, 3]),
    "mask of columns": (slice(None), numpy.array([1, 0] * 4, bool)),
    "points": (numpy.array([0, 1, 5]), numpy.array([3, 2, 7])),
    "points in two axes": (numpy.array([[0], [2]]), numpy.array([1, 3, 6])),
    "a row's points": (2, numpy.array([1, 7])),
    "number of rank 0": numpy.array(3),
}


@pytest.mark.parametrize("is_ours", [False, True])
@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("format", ["csr", "csc", "coo"])
def test_arrays_of_numpy_and_ours_index(format, name, is_ours):
    key, a = KEYS[name], getattr(sparse, f"{format}_array")(np.array(X))

    def converted(part):
        return np.array(part) if is_ours and isinstance(part, numpy.ndarray) else part

    found = a[tuple(map(converted, key)) if isinstance(key, tuple) else converted(key)]
    numpy.testing.assert_array_equal(found.todense().asnumpy(), X[key])


def test_a_mask_of_elements_selects_them():
    a = sparse.csr_array(np.array(X))
    mask = X > 20
    for given in (mask, np.array(mask), a > 20):
        found = a[given]
        numpy.testing.assert_array_equal(numpy.sort(found.todense().asnumpy()), numpy.sort(X[mask]))


@pytest.mark.parametrize(
    "key",
    [
        ([0, 2], [1, 0]),
        ([0, 2], slice(None), [1, 0]),
        (0, slice(None), [1, 0, 3]),
        ([[0, 1], [2, 0]], [1, 0], slice(1, 4)),
        (slice(None), [2, 0, 0], [1, 1, 0]),
        ([0, 1, 2], [1, 2, 0], [3, 0, 1], [1, 1, 0]),
        (slice(None, None, 2), 1, slice(None), [[1], [0]]),
    ],
)
def test_several_arrays_of_positions_select_points(key):
    rng = numpy.random.default_rng(0)
    x = rng.integers(1, 9, (3, 4, 5, 2)) * (rng.random((3, 4, 5, 2)) < 0.5)
    found = sparse.coo_array(np.array(x))[key]
    want = x[key]
    assert found.shape == want.shape
    numpy.testing.assert_array_equal(found.todense().asnumpy(), want)


def test_positions_out_of_range_name_the_axis():
    a = sparse.csr_array(np.array(X))
    with pytest.raises(IndexError, match="index 6 is out of bounds for axis 0 of size 6"):
        a[numpy.array([0, 6])]
    with pytest.raises(IndexError, match=r"a mask of shape \(3,\) does not fit axis 1 of size 8"):
        a[:, numpy.array([True, False, True])]
