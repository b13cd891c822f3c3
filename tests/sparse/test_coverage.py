"""Methods of SciPy's sparse arrays against SciPy, and the errors of those that are missing."""

import numpy
import pytest
import scipy.sparse

import sparse_coverage
from mxnet import np, sparse
from mxnet.error import AxisError, ShapeError, UnsupportedError

RNG = numpy.random.default_rng(0)
DENSE = RNG.uniform(-0.9, 0.9, (5, 4)) * (RNG.uniform(size=(5, 4)) < 0.5)
FORMATS = ["csr", "csc", "coo", "bsr"]


def pair(format: str, dense=DENSE):
    return getattr(sparse, f"{format}_array")(np.array(dense)), getattr(scipy.sparse, f"{format}_array")(dense)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    "name",
    [
        *("arcsin", "arcsinh", "arctan", "arctanh", "ceil", "deg2rad", "expm1", "floor", "log1p", "rad2deg"),
        *("rint", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc"),
    ],
)
def test_functions_that_keep_zeros_are_methods(format, name):
    ours, theirs = pair(format, abs(DENSE) if name == "sqrt" else DENSE)
    got = getattr(ours, name)()
    assert got.format == ours.format
    # Two libraries' functions, each right to a few units in the last place.
    numpy.testing.assert_allclose(got.todense().asnumpy(), getattr(theirs, name)().toarray(), rtol=1e-14)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_extremes_without_nan(format, axis):
    dense = DENSE.copy()
    dense[0, 0] = dense[2, 1] = numpy.nan
    dense[:, 3] = numpy.nan
    ours, theirs = pair(format, dense)
    for name in ("nanmax", "nanmin"):
        want = getattr(theirs, name)(axis)
        want = want.toarray() if scipy.sparse.issparse(want) else want
        numpy.testing.assert_array_equal(getattr(ours, name)(axis).asnumpy(), want)
    with pytest.raises(UnsupportedError, match="explicit"):
        ours.nanmax(explicit=True)


def test_iteration_goes_through_rows():
    ours, _ = pair("csr")
    rows = [row.todense().asnumpy() for row in ours]
    numpy.testing.assert_array_equal(numpy.stack(rows).reshape(DENSE.shape), DENSE)


def test_axes_are_permuted_and_added():
    dense = RNG.uniform(size=(2, 3, 4)) * (RNG.uniform(size=(2, 3, 4)) < 0.4)
    x = sparse.coo_array(np.array(dense))
    cases = [
        (sparse.permute_dims(x, (2, 0, 1)), numpy.permute_dims(dense, (2, 0, 1))),
        (sparse.permute_dims(x, copy=True), dense.T),
        (sparse.swapaxes(x, 0, -1), dense.swapaxes(0, -1)),
        (sparse.expand_dims(x, axis=-1), dense[..., None]),
        (sparse.expand_dims(x), dense[None]),
    ]
    for got, want in cases:
        numpy.testing.assert_array_equal(got.todense().asnumpy(), want)
    with pytest.raises(AxisError, match="swapaxes: axis 3"):
        sparse.swapaxes(x, 0, 3)
    for kind in ("csr", "csc", "coo", "bsr"):
        same = scipy.sparse.random_array((4, 6), density=0.5, random_state=0).asformat(kind)
        numpy.testing.assert_array_equal(
            getattr(sparse, f"{kind}_array")(same).mT.todense().asnumpy(), same.toarray().T
        )
    with pytest.raises(AxisError, match="axis -2"):
        sparse.coo_array(np.ones((3,))).mT


def test_kronecker_sums():
    a, b = DENSE[:4], DENSE[:3, :3]
    got = sparse.kronsum(sparse.csr_array(np.array(a)), sparse.coo_array(np.array(b)))
    numpy.testing.assert_allclose(
        got.todense().asnumpy(), scipy.sparse.kronsum(scipy.sparse.coo_array(a), b).toarray(), rtol=1e-15
    )
    with pytest.raises(ShapeError, match="square"):
        sparse.kronsum(sparse.csr_array((2, 3)), sparse.csr_array((2, 2)))


@pytest.mark.parametrize("name", sparse_coverage.CLASSES)
def test_what_is_missing_names_what_takes_its_place(name):
    # `members` raises if a member is neither there nor among the alternatives.
    found = {member: sparse_coverage.answer(name, member) for member in sparse_coverage.members(name)}
    for member in ("tocsr", "sum", "dot", "sin", "__matmul__", "__iter__"):
        assert found[member] == ""
    assert "diags_array" in found["setdiag"]
    array = getattr(sparse, name)((2, 2))
    with pytest.raises(AttributeError, match=rf"{name}.resize does not exist: .*block_array"):
        array.resize(3, 3)
    with pytest.raises(AttributeError, match=f"'{name}' object has no attribute 'nothing'"):
        _ = array.nothing


def test_missing_functions_name_what_takes_their_place():
    with pytest.raises(AttributeError, match=r"csr_matrix does not exist: .*csr_array"):
        _ = sparse.csr_matrix
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = sparse.nothing


def test_refused_pairs_are_named():
    # `pair_table` raises if an error does not name function and kinds.
    table = sparse_coverage.pair_table()
    assert sparse_coverage.result("add", "csr", "csc") == "csr"
    assert sparse_coverage.result("add", "csr", "number") == ""
    assert "| `matmul` | csr" in table
