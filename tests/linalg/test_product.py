"""Products of matrices: shapes, dtypes, layouts, errors."""

import numpy as onp
import pytest

import mxnet as mx
from mxnet import np

RNG = onp.random.default_rng(12)
SHAPES = [
    ((3, 4), (4, 5)),
    ((4,), (4,)),
    ((4,), (4, 5)),
    ((3, 4), (4,)),
    ((2, 3, 4), (4, 5)),
    ((2, 3, 4), (1, 4, 5)),
    ((2, 1, 3, 4), (5, 4, 2)),
    ((3, 4), (2, 4, 5)),
    ((4,), (2, 4, 5)),
    ((2, 3, 4), (4,)),
    ((0, 4), (4, 5)),
    ((3, 0), (0, 5)),
    ((70, 33), (33, 129)),
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128", "int32", "uint8", "bool"])
@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_matmul_is_numpys(a, b, dtype):
    a, b = ((RNG.integers(-3, 4, s) + RNG.integers(-3, 4, s) * (1j if dtype == "complex128" else 0)) for s in (a, b))
    a, b = a.astype(dtype), b.astype(dtype)
    got = np.matmul(np.array(a, dtype=dtype), np.array(b, dtype=dtype))
    assert str(got.dtype) == dtype
    onp.testing.assert_array_equal(got.asnumpy(), onp.matmul(a, b))


def test_any_layout_will_do():
    a, b = RNG.normal(size=(7, 6)), RNG.normal(size=(9, 14))
    x, y = np.array(a, dtype="float64"), np.array(b, dtype="float64")
    onp.testing.assert_allclose((x.T @ y[1:8, ::-2]).asnumpy(), a.T @ b[1:8, ::-2], atol=1e-13)
    onp.testing.assert_allclose((x[::-1, ::2].T @ x).asnumpy(), a[::-1, ::2].T @ a, atol=1e-13)


def test_the_operator_works_from_both_sides_and_in_place():
    a, b = RNG.normal(size=(3, 3)), RNG.normal(size=(3, 3))
    x = np.array(a, dtype="float64")
    onp.testing.assert_allclose((x @ b).asnumpy(), a @ b, atol=1e-14)
    # The numbers of a list are float32.
    onp.testing.assert_allclose((b.tolist() @ x).asnumpy(), b.astype("float32") @ a, atol=1e-14)
    y = x
    y @= np.array(b, dtype="float64")
    assert y is x
    onp.testing.assert_allclose(x.asnumpy(), a @ b, atol=1e-14)


def test_out_may_be_an_operand():
    a = RNG.normal(size=(4, 4))
    x = np.array(a, dtype="float64")
    assert np.matmul(x, x, out=x) is x
    onp.testing.assert_allclose(x.asnumpy(), a @ a, atol=1e-14)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_summed_in_float32(dtype):
    x = np.ones((1, 4096), dtype=dtype)
    assert (x @ x.T).asnumpy().astype(float).item() == 4096


def test_mixed_dtypes_promote():
    y = np.ones((2, 3), dtype="int32") @ np.ones((3, 2), dtype="float16")
    assert y.dtype == "float16"


def test_what_does_not_fit_is_said_in_numbers():
    with pytest.raises(
        ValueError, match=r"last axis of `x1` \(size 3\) must equal the second-to-last axis of `x2` \(size 4\)"
    ):
        np.matmul(np.zeros((2, 3)), np.zeros((4, 5)))
    with pytest.raises(ValueError, match=r"leading axes \(2,\) and \(3,\) do not broadcast"):
        np.matmul(np.zeros((2, 1, 3)), np.zeros((3, 3, 1)))
    with pytest.raises(ValueError, match="`x2` has 0 axes"):
        np.zeros((2, 3)) @ 2.0
    with pytest.raises(ValueError, match=r"last axis of `a` \(size 3\) must equal the only axis of `b` \(size 2\)"):
        np.dot(np.zeros((2, 3)), np.zeros(2))


@pytest.mark.parametrize(
    ("a", "b"), [((3, 4), (4, 5)), ((2, 3, 4), (5, 4, 2)), ((3,), (3,)), ((2, 3), (3,)), ((), (2, 3))]
)
def test_dot_is_numpys(a, b):
    a, b = RNG.normal(size=a), RNG.normal(size=b)
    want = onp.dot(a, b)
    got = np.dot(np.array(a, dtype="float64"), np.array(b, dtype="float64"))
    assert got.shape == want.shape
    onp.testing.assert_allclose(got.asnumpy(), want, atol=1e-13)
    onp.testing.assert_allclose(
        np.array(a, dtype="float64").dot(np.array(b, dtype="float64")).asnumpy(), want, atol=1e-13
    )


def test_large_products_run_in_the_background_and_are_right():
    a = RNG.normal(size=(300, 400)).astype("float32")
    x = np.array(a)
    x.attach_grad()
    with mx.autograd.record():
        y = (x @ x.T).sum()
    y.backward()
    want = 2 * a.astype("float64").sum(0, keepdims=True).repeat(300, 0)
    # A sum of n numbers is wrong by about sqrt(n) roundings of the sum of their absolute values.
    atol = 300**0.5 * 2.0**-24 * 2 * onp.abs(a).sum(0).max()
    onp.testing.assert_allclose(x.grad.asnumpy(), want, rtol=0, atol=atol)
