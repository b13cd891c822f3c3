"""Einstein summation and its relatives, against NumPy."""

import numpy as onp
import pytest

from mxnet import np

RNG = onp.random.default_rng(15)
CASES = [
    ("ij,jk->ik", (3, 4), (4, 5)),
    ("ij,jk", (3, 4), (4, 5)),
    ("ii", (4, 4)),
    ("ii->i", (4, 4)),
    ("iij->j", (3, 3, 2)),
    ("iii->i", (3, 3, 3)),
    ("ij->ji", (3, 4)),
    ("ba", (3, 4)),
    ("ij->", (3, 4)),
    ("i,i->", (5,), (5,)),
    ("i,j->ij", (3,), (4,)),
    ("i,j->ji", (3,), (4,)),
    ("...ij,...jk->...ik", (2, 1, 3, 4), (5, 4, 2)),
    ("...,...", (2, 3), (3,)),
    ("i...->i...", (3, 2, 2)),
    ("...i->...", (3, 2)),
    ("b...c,c->b...", (2, 3, 4), (4,)),
    ("bhqd,bhkd->bhqk", (2, 3, 4, 5), (2, 3, 6, 5)),
    ("bij,bjk,bkl->bil", (2, 3, 4), (2, 4, 5), (2, 5, 2)),
    ("ab,cd,bc->ad", (2, 3), (4, 5), (3, 4)),
    ("abc,cd,de,ef->abf", (2, 3, 4), (4, 5), (5, 6), (6, 2)),
    ("ij,ij,ij->i", (3, 4), (3, 4), (3, 4)),
    ("ij,jk->ik", (3, 1), (4, 5)),
    ("ia,ja->ij", (3, 0), (4, 0)),
    ("i , j -> i j", (3,), (4,)),
]


@pytest.mark.parametrize("optimize", [False, True])
@pytest.mark.parametrize("case", CASES, ids=lambda c: c[0])
def test_einsum_is_numpys(case, optimize):
    subscripts, *shapes = case
    xs = [RNG.normal(size=s) for s in shapes]
    got = np.einsum(subscripts, *[np.array(x, dtype="float64") for x in xs], optimize=optimize)
    want = onp.einsum(subscripts, *xs)
    assert got.shape == want.shape
    onp.testing.assert_allclose(got.asnumpy(), want, atol=1e-12)


def test_integers_stay_integers():
    a = onp.arange(12).reshape(3, 4)
    y = np.einsum("ij,kj->ik", np.array(a), np.array(a))
    assert y.dtype == "int64"
    onp.testing.assert_array_equal(y.asnumpy(), a @ a.T)


def test_lists_of_axes_and_a_given_path():
    xs = [RNG.normal(size=s) for s in ((2, 3), (3, 4), (4, 5))]
    ours = [np.array(x, dtype="float64") for x in xs]
    want = onp.einsum(xs[0], [0, 1], xs[1], [1, 2], [0, 2])
    onp.testing.assert_allclose(np.einsum(ours[0], [0, 1], ours[1], [1, 2], [0, 2]).asnumpy(), want, atol=1e-13)
    got = np.einsum("ab,bc,cd->ad", *ours, optimize=["einsum_path", (1, 2), (0, 1)])
    onp.testing.assert_allclose(got.asnumpy(), xs[0] @ xs[1] @ xs[2], atol=1e-13)


@pytest.mark.parametrize(
    ("subscripts", "shapes", "message"),
    [
        ("ij,jk->ik", [(2, 3)], "`subscripts` names 2 operands, 1 are given"),
        ("ij,jk->ik", [(2, 3), (4, 5)], "'j' is 3 elsewhere and 4 in operand 1"),
        ("ijk", [(2, 3)], "operand 0 has 2 axes, `ijk` names 3"),
        ("ij->k", [(2, 3)], "the result names 'k', which no operand has"),
        ("ij->ii", [(2, 3)], "the result names 'i' twice"),
        ("i1", [(2, 3)], "`1` in `subscripts` is neither a letter nor an ellipsis"),
        ("ii", [(2, 3)], "'i' stands for axes of size 2 and 3 of operand 0"),
    ],
)
def test_what_does_not_fit_is_said(subscripts, shapes, message):
    with pytest.raises(ValueError, match=message):
        np.einsum(subscripts, *[np.zeros(s) for s in shapes])


@pytest.mark.parametrize("axes", [0, 1, 2, ((0,), (2,)), ((1, 2), (1, 0)), (2, 1), ([0, -1], [-1, 1])])
def test_tensordot_is_numpys(axes):
    a, b = RNG.normal(size=(3, 3, 3)), RNG.normal(size=(3, 3, 3))
    got = np.tensordot(np.array(a, dtype="float64"), np.array(b, dtype="float64"), axes)
    onp.testing.assert_allclose(got.asnumpy(), onp.tensordot(a, b, axes), atol=1e-12)


def test_tensordot_names_the_axes_that_do_not_fit():
    with pytest.raises(ValueError, match=r"axis 1 of `a` \(size 3\) is paired with axis 0 of `b` \(size 4\)"):
        np.tensordot(np.zeros((2, 3)), np.zeros((4, 5)), 1)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 8])
def test_matrix_power_is_numpys(n):
    a = RNG.normal(size=(2, 3, 3))
    want = onp.linalg.matrix_power(a, n)
    onp.testing.assert_allclose(np.linalg.matrix_power(np.array(a, dtype="float64"), n).asnumpy(), want, rtol=1e-10)


def test_chains_of_products_are_numpys():
    xs = [RNG.normal(size=s) for s in ((10,), (10, 3), (3, 20), (20, 4))]
    got = np.linalg.multi_dot([np.array(x, dtype="float64") for x in xs])
    onp.testing.assert_allclose(got.asnumpy(), onp.linalg.multi_dot(xs), rtol=1e-10)
    with pytest.raises(ValueError, match="array 0 has 3 columns, array 1 has 4 rows"):
        np.linalg.multi_dot([np.zeros((2, 3)), np.zeros((4, 5))])


NORMS = [
    ((5,), None, None),
    ((5,), 1, None),
    ((5,), 3, None),
    ((5,), onp.inf, None),
    ((5,), -onp.inf, None),
    ((5,), 0, None),
    ((5,), -1, None),
    ((3, 4), None, None),
    ((3, 4), "fro", None),
    ((3, 4), 1, None),
    ((3, 4), -1, None),
    ((3, 4), onp.inf, None),
    ((3, 4), -onp.inf, None),
    ((2, 3, 4), None, None),
    ((2, 3, 4), 2, 1),
    ((2, 3, 4), "fro", (0, 2)),
    ((2, 3, 4), 1, (2, 0)),
    ((2, 3, 4), None, (0, 1)),
]


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize(("shape", "order", "axis"), NORMS)
def test_norms_are_numpys(shape, order, axis, keepdims):
    x = RNG.normal(size=shape)
    got = np.linalg.norm(np.array(x, dtype="float64"), order, axis, keepdims)
    want = onp.linalg.norm(x, order, axis, keepdims)
    assert got.shape == onp.shape(want)
    onp.testing.assert_allclose(got.asnumpy(), want, rtol=1e-12)


def test_norms_of_complex_numbers_are_real():
    x = RNG.normal(size=(3, 4)) + 1j * RNG.normal(size=(3, 4))
    got = np.linalg.norm(np.array(x, dtype="complex128"), axis=1)
    assert got.dtype == "float64"
    onp.testing.assert_allclose(got.asnumpy(), onp.linalg.norm(x, axis=1), rtol=1e-12)


def test_norms_that_do_not_exist_are_refused():
    with pytest.raises(ValueError, match="a matrix has no norm of order 3"):
        np.linalg.norm(np.zeros((2, 2)), 3)
    with pytest.raises(ValueError, match="3 axes"):
        np.linalg.norm(np.zeros((2, 2, 2)), 1, (0, 1, 2))


@pytest.mark.parametrize("x, to", [("bool", "int64"), ("bool", "float64"), ("int8", "int64"), ("float32", "float64")])
def test_operands_take_the_dtype_of_out(x, to):
    a = onp.full((3,), 100, dtype=x)
    found, want = np.zeros((), dtype=to), onp.zeros((), dtype=to)
    assert np.einsum("i,i->", np.array(a), np.array(a), out=found) is found
    onp.einsum("i,i->", a, a, out=want)
    assert found.item() == want.item() == (3 if x == "bool" else 30000)
